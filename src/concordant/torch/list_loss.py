"""What the modules share: scores in any layout, grades or targets, and a metric that says which targets."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from concordant.exceptions import GuaranteeWarning, ParameterError
from concordant.metrics.conditions import check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import EVERY, NOTHING, usable_targets
from concordant.supervision.columns import check_nonnegative
from concordant.supervision.queries import Queries
from concordant.surrogates.surrogate import Surrogate, check_choice
from concordant.torch import ops
from concordant.torch.inputs import Given, check_floating, read
from concordant.torch.targets import check_grades

__all__ = ["REDUCTIONS", "ListLoss", "checked", "counted_labels", "made", "reduced", "spec_of"]

REDUCTIONS = ("mean", "sum", "none")


def basis_of(metric: Metric, assume: str | None) -> str:
    """Give what the consistency of training on the metric's targets rests on, for labels of three grades."""
    _, basis = usable_targets(metric, metric.read_labels([0.0, 0.5, 1.0]), Queries.from_sizes([3]), assume)
    return basis


def warn_of(metric: Metric, assume: str | None, stacklevel: int) -> None:
    """Say what is not guaranteed, unless it was assumed."""
    basis = basis_of(metric, assume)
    if basis == NOTHING:
        told = f"{metric} has no standardization for three or more grades: nothing guarantees that training "
        warnings.warn(f"{told}on stand-in targets optimises it", GuaranteeWarning, stacklevel=stacklevel + 1)
    elif basis not in (EVERY, assume):
        told = f"training for {metric} is consistent only under {basis}; assume={basis!r} says that you know"
        warnings.warn(told, GuaranteeWarning, stacklevel=stacklevel + 1)


def spec_of(metric: Metric) -> str | None:
    """Name from which the metric can be read back; None where a Python function is part of it."""
    spec = str(metric)
    try:
        return spec if read_metric(spec) == metric else None
    except ValueError:
        return None


def made(given: Given, metric: Metric, spec: str | None, assume: str | None) -> Tensor:
    """Targets of the labels."""
    if not torch.compiler.is_compiling():
        return ops.made_targets(*given[1:], metric, assume)
    if spec is None:
        raise ParameterError("metric", "of a Python function", "one that has a name, under torch.compile")
    targets: Tensor = ops.targets(*given[1:], spec, assume or "")
    return targets


def checked(validate: bool | None, tensor: Tensor) -> bool:
    """Whether the labels are checked: as told, else on the CPU; never while torch compiles."""
    wanted = tensor.device.type == "cpu" if validate is None else validate
    return wanted and not torch.compiler.is_compiling()


def counted_labels(given: Given) -> Tensor:
    """Labels of the items, flat."""
    labels = given.labels if given.mask is None else given.labels[given.mask]
    return labels.detach().reshape(-1)


def reduced(values: Tensor, query_weight: Any, reduction: str, validate: bool | None = None) -> Tensor:
    """Reduce the values of the queries; the mean of no queries, or of no weight, is 0."""
    if query_weight is not None:
        shares = torch.as_tensor(query_weight, dtype=values.dtype, device=values.device)
        if shares.shape != values.shape:
            expected = f"one number >= 0 per list: shape {tuple(values.shape)}"
            raise ParameterError("query_weight", f"shape {tuple(shares.shape)}", expected)
        if checked(validate, values):
            check_nonnegative(shares.detach().double().cpu().numpy(), "query_weight", "query")
        values = torch.where(shares > 0, values * shares, 0.0)
    if reduction == "none":
        return values
    if query_weight is None and values.shape[0] == 1:
        return values.reshape(())
    if reduction == "sum" or values.shape[0] == 0:
        return values.sum()
    if query_weight is None:
        return values.mean()
    total = shares.sum()
    return values.sum() / torch.where(total > 0, total, 1.0)


class ListLoss(nn.Module):
    """A loss on the scores of lists; a subclass says which.

    Called as `loss(scores, y, offsets=None, mask=None, query_weight=None)`:

    - ragged: `scores` and `y` flat, `offsets` where each list starts and last the number of rows (a tensor,
      or a `Lists`, which spares the device a wait); None: all rows are one list;
    - padded: `scores` and `y` (B, n), `mask` True where an item stands; None: every place is an item. What
      stands off the mask is never read;
    - nested: `scores` and `y` nested tensors, jagged or strided.

    `y` are grades where a metric is named, else targets; no gradient reaches them. The gradient of the scores
    is exact, computed with the value; a second derivative is an error. A NaN or infinite score makes the loss
    NaN or infinite. Half-precision scores give a float32 loss.

    Parameters
    ----------
    metric
        Train for this metric: grades are standardized on the device. None: `y` are targets already.
    reduction
        "mean" over the lists, empty ones too, by `query_weight`; "sum"; or "none": one value per list.
    assume
        The condition that the labels are taken to satisfy, as for `concordant.standardize`. Where a metric
        has targets only under a condition, or none at all, a `GuaranteeWarning` says so unless it is assumed.
    validate
        Check labels and query weights: True; False; or None: on the CPU, where it costs little and no wait
        for a device. Under `torch.compile` nothing is checked.
    """

    surrogate: Surrogate
    metric: Metric | None

    def __init__(
        self,
        metric: str | Metric | None = None,
        *,
        reduction: str = "mean",
        assume: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        check_assumption(assume)
        self.metric = None if metric is None else read_metric(metric)
        self.reduction, self.assume, self.validate = reduction, assume, validate
        self.spec = None if self.metric is None else spec_of(self.metric)  # as compiled graphs name it
        if self.metric is not None:
            warn_of(self.metric, assume, self.caller + 1)

    @property
    def caller(self) -> int:
        """Stack level, from the first `__init__` on, of who made the loss."""
        return 1 if type(self).__init__ is ListLoss.__init__ else 2

    def forward(
        self, scores: Tensor, y: Any, *, offsets: Any = None, mask: Any = None, query_weight: Any = None
    ) -> Tensor:
        """Give the loss: one number, or one per list."""
        given = read(scores, y, offsets, mask)
        check_floating(given.scores, "scores")
        values = self.values(given._replace(labels=self.targets(given)))
        return reduced(values, query_weight, self.reduction, self.validate)

    def values(self, given: Given) -> Tensor:
        """Value of each list; labels are targets by now."""
        raise NotImplementedError

    def targets(self, given: Given) -> Tensor:
        """Standardize the grades, or take the targets as they are."""
        if checked(self.validate, given.labels):
            self.check(given)
        if self.metric is None:
            if given.labels.requires_grad:
                raise ParameterError("y", "a tensor that requires a gradient", "targets; use y.detach()")
            return given.labels
        if given.labels.requires_grad:
            given = given._replace(labels=given.labels.detach())
        return made(given, self.metric, self.spec, self.assume)

    def check(self, given: Given) -> None:
        """Raise the package's errors."""
        flat = counted_labels(given)
        if self.metric is None:
            self.surrogate.check_targets(flat.double().cpu().numpy())
        else:
            check_grades(self.metric, flat)

    def extra_repr(self) -> str:
        """Give what was chosen."""
        metric = "" if self.metric is None else f"metric={str(self.metric)!r}, "
        return f"{metric}reduction={self.reduction!r}"
