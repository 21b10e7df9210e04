"""Loss modules: the package's surrogates for scores in any layout."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from concordant.exceptions import GuaranteeWarning
from concordant.metrics.metric import Metric
from concordant.surrogates.listwise import Softmax
from concordant.surrogates.margins import Margin
from concordant.surrogates.margins import margin as read_margin
from concordant.surrogates.pairwise import Pairwise
from concordant.surrogates.pointwise import Squared
from concordant.surrogates.position_hinge import PositionHinge
from concordant.torch import ops
from concordant.torch.layouts import ScoredLists, list_sizes
from concordant.torch.list_loss import ListLoss


class OrderPreservingLoss(ListLoss):
    """Order-preserving pairwise loss: sum over all i, j of targets[i] * phi(s_i - s_j), in O(n log n).

    Needs no n x n memory, forward or backward. With a margin that is `order_preserving` and a metric's
    targets it is consistent for the metric: see `concordant.surrogates.Pairwise`. For a margin that is not
    order-preserving, even if every expected target is positive, a `GuaranteeWarning` is raised.

    Parameters
    ----------
    metric, reduction, assume, validate
        As for `ListLoss`.
    margin
        phi: a `Margin` or its name. "logistic" takes n^2 time (no faster way is known), O(n) memory.
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
        if self.metric is not None and not (self.surrogate.order_preserving or self.surrogate.needs_positive):
            text = (
                f"The margin {self.margin.name} is not order-preserving, so nothing guarantees that training "
            )
            warnings.warn(f"{text}with it optimises {self.metric}.", GuaranteeWarning, stacklevel=self.caller)
        kind, edge, width, scale = self.margin.code
        self.code = kind, edge, width if math.isfinite(width) else -1.0, scale  # passed to the operator

    def values(self, batch: ScoredLists) -> Tensor:
        """Return the value of each list."""
        values = ops.pairwise(*batch, *self.code)
        if not self.normalize:
            return values
        n = list_sizes(batch)
        if isinstance(n, torch.Tensor):
            n = n.to(values.dtype)
            return values / (n * (n - 1.0)).clamp(min=1.0)
        return values / max(n * (n - 1), 1)

    def extra_repr(self) -> str:
        """Describe the parameters."""
        return f"{super().extra_repr()}, margin={self.margin.name!r}, normalize={self.normalize}"


class SoftmaxLoss(ListLoss):
    """Cross entropy: minus the sum of targets[i] * log softmax(s)_i; see `concordant.surrogates.Softmax`.

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

    def values(self, batch: ScoredLists) -> Tensor:
        """Return the value of each list."""
        return ops.softmax(*batch)


class SquaredLoss(ListLoss):
    """Squared error: sum of (d_i - mean d)^2 with d = scores - targets; see `concordant.surrogates.Squared`.

    Parameters
    ----------
    metric, reduction, assume, validate
        As for `ListLoss`.
    centred
        Ignore the list's level; otherwise the sum of d_i^2.

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
        """Describe the parameters."""
        return f"{super().extra_repr()}, centred={self.centred}"

    def values(self, batch: ScoredLists) -> Tensor:
        """Return the value of each list."""
        return ops.squared(*batch, self.centred)


class PositionHingeLoss(ListLoss):
    """Position-sensitive pairwise hinge on grades; see `concordant.surrogates.PositionHinge`.

    A baseline: not consistent for any metric. `y` are grades; only their order matters.

    Parameters
    ----------
    pairs
        "sum", as published; "pairs": divided by the list's number of pairs of different levels; or
        "all_pairs": divided by n(n - 1)/2.
    reduction, validate
        As for `ListLoss`.

    Examples
    --------
    >>> PositionHingeLoss()(torch.zeros(3), torch.tensor([2, 1, 0])).item()
    4.0
    """

    def __init__(self, *, pairs: str = "sum", reduction: str = "mean", validate: bool | None = None) -> None:
        super().__init__(None, reduction=reduction, validate=validate)
        self.surrogate = PositionHinge(pairs)
        self.pairs = pairs

    def extra_repr(self) -> str:
        """Describe the parameters."""
        return f"{super().extra_repr()}, pairs={self.pairs!r}"

    def values(self, batch: ScoredLists) -> Tensor:
        """Return the value of each list."""
        return ops.position_hinge(*batch, self.pairs)
