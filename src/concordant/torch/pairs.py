"""PairSquaredLoss: least squares on scores of pairs, the exact surrogate of AP and PD."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.surrogates.surrogate import check_choice
from concordant.torch.inputs import Given, as_numbers, check_floating, check_real, read, sizes
from concordant.torch.list_loss import REDUCTIONS, checked, counted_labels, made, reduced, spec_of
from concordant.torch.lists import Lists
from concordant.torch.operators import working
from concordant.torch.pair_factors import pair_factors
from concordant.torch.targets import check_grades

__all__ = ["PairSquaredLoss"]


class PairSquaredLoss(nn.Module):
    """Squared error of pair scores: what the exact surrogates of AP and PD ask for.

    - "ap": sum over all i, j, i = j included, of (u_ij - y_i y_j / sum(y))^2, `y` relevance;
    - "pd": sum over i != j of (u_ij - sign(y_i - y_j))^2, `y` grades.

    Pair scores are given as they are, or by factors: u_ij = <a_i, b_j>. The loss of factors takes O(n d^2)
    time and O(n d) memory: no pair is ever written down.

    Called as `loss(pairs, y, offsets=None, mask=None, query_weight=None)`; `y` as for the other losses, and
    `pairs`, of a floating-point type, one of

    - (B, n, n), with `y` (B, n) and a mask (B, n);
    - flat, the n x n scores of each list one after another, row by row, with `y` flat;
    - two tensors (a, b), (n_rows, d) with `y` flat, or (B, n, d) with `y` (B, n).

    Parameters
    ----------
    metric
        "ap", with or without a cutoff, or "pd".
    normalize
        Divide by the number of pairs: n^2 (ap), n(n - 1) (pd).
    reduction
        "mean" over the lists by `query_weight`, "sum", or "none": one value per list.
    validate
        As for the other losses.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices.

    Examples
    --------
    >>> loss = PairSquaredLoss("ap")
    >>> y = torch.tensor([[1.0, 0.0, 1.0]])
    >>> a, b = torch.eye(3)[None], torch.ones(1, 3, 3)  # u_ij = 1
    >>> loss(torch.ones(1, 3, 3), y).item(), loss((a, b), y).item()
    (6.0, 6.0)
    """

    def __init__(
        self,
        metric: str | Metric = "ap",
        *,
        normalize: bool = False,
        reduction: str = "mean",
        validate: bool | None = None,
    ) -> None:
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.metric = read_metric(metric)
        self.spec = spec_of(self.metric)
        if self.metric.name not in ("ap", "pd"):
            raise ParameterError("metric", str(self.metric), "ap or pd: the metrics of pairs")
        self.normalize, self.reduction, self.validate = normalize, reduction, validate

    def forward(
        self, pairs: Any, y: Tensor, *, offsets: Any = None, mask: Any = None, query_weight: Any = None
    ) -> Tensor:
        """Give the loss: one number, or one per list."""
        factors = isinstance(pairs, (tuple, list))
        for part in pairs if factors else (pairs,):
            check_real(part, "pairs")
            check_floating(part, "pairs")
        grades = as_numbers(y, "y", (pairs[0] if factors else pairs).device).detach()
        given = read(grades, grades, offsets, mask)
        if checked(self.validate, given.labels):
            check_grades(self.metric, counted_labels(given))
        values = self.of_factors(pairs, given) if factors else self.of_pairs(pairs, given)
        if self.normalize:
            values = values / self.counts(given, values)
        return reduced(values, query_weight, self.reduction, self.validate)

    @property
    def relevant(self) -> bool:
        """Whether pairs share relevance (ap), or differ in grade (pd)."""
        return self.metric.name == "ap"

    def counts(self, given: Given, values: Tensor) -> Tensor | int:
        """Pairs of each list, at least 1."""
        n = sizes(given)
        if isinstance(n, Tensor):
            n = n.to(values.dtype)
            return (n * n if self.relevant else n * (n - 1.0)).clamp(min=1.0)
        return max(n * n if self.relevant else n * (n - 1), 1)

    def labels(self, given: Given) -> Tensor:
        """Shares of relevance, or the grades."""
        if not self.relevant:
            return given.labels
        return made(given, self.metric, self.spec, "P_reinforce")

    def extra_repr(self) -> str:
        """Give what was chosen."""
        return f"metric={str(self.metric)!r}, reduction={self.reduction!r}, normalize={self.normalize}"

    def of_factors(self, pairs: Any, given: Given) -> Tensor:
        """Values of scores given by factors."""
        shapes = [tuple(part.shape) for part in pairs]
        if len(pairs) != 2 or shapes[0] != shapes[1] or shapes[0][:-1] != tuple(given.labels.shape):
            expected = ", ".join(map(str, given.labels.shape))
            raise ShapeError("pairs", shapes[0], f"two tensors of shape ({expected}, d)")
        return pair_factors(*pairs, self.labels(given), *given[2:], self.relevant)

    def of_pairs(self, pairs: Tensor, given: Given) -> Tensor:
        """Values of explicit scores."""
        labels, pairs = self.labels(given), pairs.to(working(pairs.dtype))
        if labels.ndim == 2:
            expected = (*labels.shape, labels.shape[1])
            if tuple(pairs.shape) != expected:
                raise ShapeError("pairs", tuple(pairs.shape), f"{expected}: the scores of each list's pairs")
            return padded(pairs, labels, given.mask, relevant=self.relevant)
        return flat(pairs, labels, given.offsets, relevant=self.relevant)


def wanted(left: Tensor, right: Tensor, dtype: torch.dtype, *, relevant: bool) -> Tensor:
    """Targets of pairs of labels; grades are compared as they are given."""
    if relevant:
        return left.to(dtype) * (right > 0.0)
    return (left > right).to(dtype) - (left < right).to(dtype)


def padded(pairs: Tensor, labels: Tensor, mask: Tensor | None, *, relevant: bool) -> Tensor:
    """Values of (B, n, n) scores."""
    n = labels.shape[1]
    off = pairs - wanted(labels[:, :, None], labels[:, None, :], pairs.dtype, relevant=relevant)
    counted = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
    both = counted[:, :, None] & counted[:, None, :]
    if not relevant:
        both = both & ~torch.eye(n, dtype=torch.bool, device=pairs.device)
    return torch.where(both, off, 0.0).square().sum((1, 2))


def flat(pairs: Tensor, labels: Tensor, offsets: Tensor | Lists | None, *, relevant: bool) -> Tensor:
    """Values of the scores of all lists, one after another."""
    offsets = offsets.offsets if isinstance(offsets, Lists) else offsets
    if offsets is None:
        if pairs.numel() != len(labels) ** 2:
            raise ShapeError("pairs", tuple(pairs.shape), f"{len(labels) ** 2} numbers: n^2 of the list")
        return padded(pairs.reshape(1, len(labels), len(labels)), labels[None], None, relevant=relevant)
    sizes = offsets.diff()
    edges = torch.nn.functional.pad((sizes * sizes).cumsum(0), (1, 0))
    if not torch.compiler.is_compiling() and (pairs.ndim != 1 or pairs.shape[0] != int(edges[-1])):
        raise ShapeError("pairs", tuple(pairs.shape), f"{int(edges[-1])} numbers: n^2 of each list")
    owner = torch.repeat_interleave(sizes * sizes, output_size=pairs.shape[0])
    place = torch.arange(pairs.shape[0], device=pairs.device) - edges[owner]
    n = sizes[owner].clamp(min=1)
    left, right = place // n, place % n
    better, worse = labels[offsets[owner] + left], labels[offsets[owner] + right]
    off = pairs - wanted(better, worse, pairs.dtype, relevant=relevant)
    if not relevant:
        off = torch.where(left == right, 0.0, off)
    return torch.segment_reduce(off.square(), "sum", offsets=edges, unsafe=True)
