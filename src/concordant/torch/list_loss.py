"""Base of the loss modules: scores in any layout, and grades that a metric standardizes, or targets."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from concordant._base.validate import check_choice, check_nonnegative
from concordant.data.queries import Queries
from concordant.exceptions import GuaranteeWarning, ParameterError
from concordant.metrics.metric import Metric, check_assumption
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import EVERY, NOTHING, usable_targets
from concordant.surrogates.surrogate import Surrogate
from concordant.torch import ops
from concordant.torch.layouts import ScoredLists, check_floating, read_layout
from concordant.torch.targets import check_grades

REDUCTIONS = ("mean", "sum", "none")


def _consistency_basis(metric: Metric, assume: str | None) -> str:
    """Return the condition for consistent training on the metric's targets, for labels of three grades."""
    _, basis = usable_targets(metric, metric.read_labels([0.0, 0.5, 1.0]), Queries.from_sizes([3]), assume)
    return basis


def _warn_if_unproven(metric: Metric, assume: str | None, stacklevel: int) -> None:
    """Warn if consistency is not guaranteed, unless the condition was assumed."""
    basis = _consistency_basis(metric, assume)
    if basis == NOTHING:
        text = (
            f"{metric} has no standardization for three or more grades, so nothing guarantees that training "
        )
        warnings.warn(f"{text}on stand-in targets optimises it.", GuaranteeWarning, stacklevel=stacklevel + 1)
    elif basis not in (EVERY, assume):
        text = (
            f"Training is guaranteed to optimise {metric} only if the labels satisfy {basis}. If yours do, "
        )
        warnings.warn(f"{text}pass assume={basis!r}.", GuaranteeWarning, stacklevel=stacklevel + 1)


def metric_spec(metric: Metric) -> str | None:
    """Return the name from which the metric can be read back; None if it contains a Python function."""
    spec = str(metric)
    try:
        return spec if read_metric(spec) == metric else None
    except ValueError:
        return None


def compute_targets(batch: ScoredLists, metric: Metric, spec: str | None, assume: str | None) -> Tensor:
    """Compute the targets of the labels."""
    if not torch.compiler.is_compiling():
        return ops.targets_like_grades(*batch[1:], metric, assume)
    targets: Tensor = ops.targets(*batch[1:], spec or "", assume or "")
    return targets


def should_check(validate: bool | None, tensor: Tensor) -> bool:
    """Decide if labels are checked: as requested, else on the CPU; never under `torch.compile`."""
    is_requested = tensor.device.type == "cpu" if validate is None else validate
    return is_requested and not torch.compiler.is_compiling()


def item_labels(batch: ScoredLists) -> Tensor:
    """Return the labels of the items, flat."""
    labels = batch.labels if batch.mask is None else batch.labels[batch.mask]
    return labels.detach().reshape(-1)


def reduce_values(values: Tensor, query_weight: Any, reduction: str, validate: bool | None = None) -> Tensor:
    """Reduce the values of the queries; the mean over no queries, or zero weight, is 0."""
    if query_weight is not None:
        shares = torch.as_tensor(query_weight, dtype=values.dtype, device=values.device)
        if shares.shape != values.shape:
            raise ParameterError.because(
                f"query_weight must have one number >= 0 per list, shape {tuple(values.shape)}, got shape "
                f"{tuple(shares.shape)}."
            )
        if should_check(validate, values):
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
    """Base class of losses on the scores of lists.

    Called as `loss(scores, y, offsets=None, mask=None, query_weight=None)`:

    - ragged: `scores` and `y` flat, `offsets` the start of each list followed by the number of rows (a
      tensor, or a `Lists`, which saves waiting for the device); None: all rows are a single list;
    - padded: `scores` and `y` (B, n), `mask` True for items; None: every entry is an item. Masked entries are
      never read;
    - nested: `scores` and `y` nested tensors, jagged or strided.

    `y` are grades if a metric is named, else targets; no gradient reaches them. The gradient of the scores is
    exact, computed with the value; a second derivative is an error. A NaN or infinite score makes the loss
    NaN or infinite. Half-precision scores give a float32 loss.

    Parameters
    ----------
    metric
        Metric to train for: grades are standardized on the device. None: `y` are targets already.
    reduction
        "mean" over the lists, including empty ones, weighted by `query_weight`; "sum"; or "none": one value
        per list.
    assume
        The condition that the labels are assumed to satisfy, as for `concordant.standardize`. If a metric has
        targets only under a condition, or none at all, a `GuaranteeWarning` is raised unless it is assumed.
    validate
        Check labels and query weights: True; False; or None: on the CPU, where checks are cheap and need no
        wait for a device. Under `torch.compile` nothing is checked.
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
        self.spec = None if self.metric is None else metric_spec(self.metric)  # for compiled graphs
        if self.metric is not None:
            _warn_if_unproven(self.metric, assume, self.caller + 1)

    @property
    def caller(self) -> int:
        """Stack level of the code that constructs the loss, counted from the first `__init__`."""
        return 1 if type(self).__init__ is ListLoss.__init__ else 2

    def forward(
        self, scores: Tensor, y: Any, *, offsets: Any = None, mask: Any = None, query_weight: Any = None
    ) -> Tensor:
        """Return the loss: a single number, or one per list."""
        batch = read_layout(scores, y, offsets, mask)
        check_floating(batch.scores, "scores")
        values = self.values(batch._replace(labels=self.targets(batch)))
        return reduce_values(values, query_weight, self.reduction, self.validate)

    def values(self, batch: ScoredLists) -> Tensor:
        """Return the value of each list; labels are targets by now."""
        raise NotImplementedError

    def targets(self, batch: ScoredLists) -> Tensor:
        """Standardize the grades, or return the targets unchanged."""
        if should_check(self.validate, batch.labels):
            self.check(batch)
        if self.metric is None:
            if batch.labels.requires_grad:
                raise ParameterError.because(
                    "y requires a gradient, but targets are constants. Pass y.detach()."
                )
            return batch.labels
        if batch.labels.requires_grad:
            batch = batch._replace(labels=batch.labels.detach())
        return compute_targets(batch, self.metric, self.spec, self.assume)

    def check(self, batch: ScoredLists) -> None:
        """Check the labels and raise the package's errors."""
        flat = item_labels(batch)
        if self.metric is None:
            self.surrogate.check_targets(flat.double().cpu().numpy())
        else:
            check_grades(self.metric, flat)

    def extra_repr(self) -> str:
        """Describe the parameters."""
        metric = "" if self.metric is None else f"metric={str(self.metric)!r}, "
        return f"{metric}reduction={self.reduction!r}"
