"""Losses as modules: scores in any layout, grades or targets, and a metric that says which targets."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from concordant.exceptions import GuaranteeWarning, ParameterError
from concordant.metrics.conditions import check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import EVERY, NOTHING, usable_targets
from concordant.supervision.queries import Queries
from concordant.surrogates.listwise import Softmax
from concordant.surrogates.margins import Margin
from concordant.surrogates.margins import margin as read_margin
from concordant.surrogates.pairwise import Pairwise
from concordant.surrogates.pointwise import Squared
from concordant.surrogates.position import PositionHinge as PositionHingeSurrogate
from concordant.surrogates.surrogate import Surrogate, check_choice
from concordant.torch import ops
from concordant.torch.inputs import Given, read, sizes
from concordant.torch.targets import check_grades

__all__ = ["ListLoss", "OrderPreservingLoss", "PositionHinge", "SoftmaxLoss", "SquaredLoss", "reduced"]

REDUCTIONS = ("mean", "sum", "none")


def basis_of(metric: Metric, assume: str | None) -> str:
    """Give what the consistency of training on the metric's targets rests on, for labels of three grades."""
    _, basis = usable_targets(metric, metric.read_labels([0.0, 0.5, 1.0]), Queries.from_sizes([3]), assume)
    return basis


def warn_of(metric: Metric, assume: str | None) -> None:
    """Say what is not guaranteed, unless it was assumed."""
    basis = basis_of(metric, assume)
    if basis == NOTHING:
        told = f"{metric} has no standardization for three or more grades: nothing guarantees that training "
        warnings.warn(f"{told}on stand-in targets optimises it", GuaranteeWarning, stacklevel=4)
    elif basis not in (EVERY, assume):
        told = f"training for {metric} is consistent only under {basis}; assume={basis!r} says that you know"
        warnings.warn(told, GuaranteeWarning, stacklevel=4)


def reduced(values: Tensor, query_weight: Any, reduction: str) -> Tensor:
    """Reduce the values of the queries; the mean of no queries, or of no weight, is 0."""
    if query_weight is not None:
        shares = torch.as_tensor(query_weight, dtype=values.dtype, device=values.device)
        if shares.shape != values.shape:
            expected = f"one number >= 0 per list: shape {tuple(values.shape)}"
            raise ParameterError("query_weight", f"shape {tuple(shares.shape)}", expected)
        values = values * shares
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

    `y` are grades where a metric is named, else targets. The gradient is exact, computed with the value; a
    second derivative is an error. A NaN or infinite score makes the loss NaN.

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
        Check the labels: True; False; or None: on the CPU, where it costs little and no wait for a device.
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
        if self.metric is not None:
            warn_of(self.metric, assume)

    def forward(
        self, scores: Tensor, y: Any, *, offsets: Any = None, mask: Any = None, query_weight: Any = None
    ) -> Tensor:
        """Give the loss: one number, or one per list."""
        given = read(scores, y, offsets, mask)
        values = self.values(given._replace(labels=self.targets(given)))
        return reduced(values, query_weight, self.reduction)

    def values(self, given: Given) -> Tensor:
        """Value of each list; labels are targets by now."""
        raise NotImplementedError

    def targets(self, given: Given) -> Tensor:
        """Standardize the grades, or take the targets as they are."""
        checked = self.validate if self.validate is not None else given.labels.device.type == "cpu"
        compiling = torch.compiler.is_compiling()
        if checked and not compiling:
            self.check(given)
        if self.metric is None:
            return given.labels
        if not compiling:
            return ops.made_targets(*given[1:], self.metric, self.assume)
        targets: Tensor = ops.targets(*given[1:], str(self.metric), self.assume or "")
        return targets

    def check(self, given: Given) -> None:
        """Raise the package's errors."""
        labels = given.labels if given.mask is None else given.labels[given.mask]
        flat = labels.detach().reshape(-1)
        if self.metric is None:
            self.surrogate.check_targets(flat.double().cpu().numpy())
        else:
            check_grades(self.metric, flat)

    def extra_repr(self) -> str:
        """Give what was chosen."""
        metric = "" if self.metric is None else f"metric={str(self.metric)!r}, "
        return f"{metric}reduction={self.reduction!r}"


class OrderPreservingLoss(ListLoss):
    """Order-preserving pairwise loss: sum over all i, j of targets[i] * phi(s_i - s_j), in O(n log n).

    Nothing of size n x n is made, forward or backward. With a margin that is `order_preserving` and a
    metric's targets it is consistent for the metric: see `concordant.surrogates.Pairwise`.

    Parameters
    ----------
    metric, reduction, assume, validate
        As for `ListLoss`.
    margin
        phi: a `Margin` or its name. "logistic" takes n^2 time (nothing faster is known), O(n) memory.
    normalize
        Divide by n(n - 1), so that long lists do not weigh more.

    References
    ----------
    Buffoni, Calauzènes, Gallinari and Usunier (2011), equation 6.

    Examples
    --------
    >>> scores = torch.tensor([0.3, 0.1, 0.2], requires_grad=True)
    >>> loss = OrderPreservingLoss("ndcg@10")
    >>> value = loss(scores, torch.tensor([0.0, 2.0, 1.0]))
    >>> value.backward()
    >>> [round(x, 4) for x in (value.item(), *scores.grad.tolist())]
    [3.5528, 1.1016, -1.3771, 0.2754]
    """

    def __init__(
        self,
        metric: str | Metric | None = None,
        *,
        margin: str | Margin = "huber_hinge",
        normalize: bool = False,
        reduction: str = "mean",
        assume: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(metric, reduction=reduction, assume=assume, validate=validate)
        self.margin, self.normalize = read_margin(margin), normalize
        self.surrogate = Pairwise(self.margin, normalize)
        kind, edge, width, scale = self.margin.code
        self.code = kind, edge, width if math.isfinite(width) else -1.0, scale  # as the operator reads it

    def values(self, given: Given) -> Tensor:
        """Of each list."""
        values = ops.pairwise(*given, *self.code)
        if not self.normalize:
            return values
        n = torch.as_tensor(sizes(given), dtype=values.dtype, device=values.device)
        return values / (n * (n - 1.0)).clamp(min=1.0)

    def extra_repr(self) -> str:
        """Give what was chosen."""
        return f"{super().extra_repr()}, margin={self.margin.name!r}, normalize={self.normalize}"


class SoftmaxLoss(ListLoss):
    """Cross entropy: minus the sum of targets[i] * log softmax(s)_i; as `concordant.surrogates.Softmax`.

    Parameters
    ----------
    metric, reduction, assume, validate
        As for `ListLoss`.

    Examples
    --------
    >>> SoftmaxLoss("dcg")(torch.zeros(2), torch.tensor([1.0, 0.0])).item()
    0.6931471824645996
    """

    surrogate = Softmax()

    def values(self, given: Given) -> Tensor:
        """Of each list."""
        return ops.softmax(*given)


class SquaredLoss(ListLoss):
    """Squared error: sum of (d_i - mean d)^2 with d = scores - targets; as `concordant.surrogates.Squared`.

    Parameters
    ----------
    metric, reduction, assume, validate
        As for `ListLoss`.
    centred
        Leave the list's level out; else sum of d_i^2.

    Examples
    --------
    >>> SquaredLoss("dcg")(torch.tensor([5.0, 6.0]), torch.tensor([0, 1])).item()
    0.0
    """

    def __init__(
        self,
        metric: str | Metric | None = None,
        *,
        centred: bool = True,
        reduction: str = "mean",
        assume: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(metric, reduction=reduction, assume=assume, validate=validate)
        self.centred = bool(centred)
        self.surrogate = Squared(self.centred)

    def extra_repr(self) -> str:
        """Give what was chosen."""
        return f"{super().extra_repr()}, centred={self.centred}"

    def values(self, given: Given) -> Tensor:
        """Of each list."""
        return ops.squared(*given, self.centred)


class PositionHinge(ListLoss):
    """Position-sensitive pairwise hinge on grades; as `concordant.surrogates.PositionHinge`.

    A baseline: not consistent for any metric. `y` are grades; only their order counts.

    Parameters
    ----------
    pairs
        "sum", as published; "pairs": divided by the list's number of pairs of different levels; or
        "all_pairs": divided by n(n - 1)/2.
    reduction, validate
        As for `ListLoss`.

    Examples
    --------
    >>> PositionHinge()(torch.zeros(3), torch.tensor([2, 1, 0])).item()
    4.0
    """

    def __init__(self, *, pairs: str = "sum", reduction: str = "mean", validate: bool | None = None) -> None:
        super().__init__(None, reduction=reduction, validate=validate)
        self.surrogate = PositionHingeSurrogate(pairs)
        self.pairs = pairs

    def extra_repr(self) -> str:
        """Give what was chosen."""
        return f"{super().extra_repr()}, pairs={self.pairs!r}"

    def values(self, given: Given) -> Tensor:
        """Of each list."""
        return ops.position_hinge(*given, self.pairs)
