"""PairSquaredLoss: least squares on pair scores, the exact surrogate of AP and PD."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from concordant._base.validate import check_choice
from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.torch.layouts import (
    ScoredLists,
    as_numbers,
    check_floating,
    check_real,
    list_sizes,
    read_layout,
)
from concordant.torch.list_loss import (
    REDUCTIONS,
    compute_targets,
    item_labels,
    metric_spec,
    reduce_values,
    should_check,
)
from concordant.torch.lists import Lists, running_sum
from concordant.torch.ops import equal_lists, operator, resolve_lists, working_dtype
from concordant.torch.targets import check_grades

# Squared loss of pair scores u_ij = <a_i, b_j>, without storing pairs: O(n d^2) time, O(n d) memory.
#
# The sum of (u_ij - t_ij)^2 is <A'A, B'B> - 2 sum_i <a_i, c_i> + sum t_ij^2 with c_i = sum_j t_ij b_j, which
# takes a single sum for shared relevance (t of rank one), and running sums over the sorted grades for signs
# of grade differences.

Parts = tuple[Tensor, Tensor, Tensor]


def _compute(
    a: Tensor,
    b: Tensor,
    labels: Tensor,
    offsets: Tensor | None,
    mask: Tensor | None,
    longest: int,
    relevant: bool,
) -> Parts:
    """Return the value of each list and the gradients of a and b; labels are relevance shares or grades."""
    left, right, y = a.double(), b.double(), labels.double()
    if labels.ndim == 1:
        lists, _ = resolve_lists(labels, offsets, None, longest)
        values, *grads = _ragged_values(left, right, y, lists, relevant)
    else:
        there = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
        values, *grads = _dense_values(left, right, y, there, relevant)
    grad_a, grad_b = (g.to(working_dtype(p.dtype)).contiguous() for g, p in zip(grads, (a, b), strict=True))
    return values.to(working_dtype(a.dtype)), grad_a, grad_b


def _ragged_values(a: Tensor, b: Tensor, y: Tensor, lists: Lists, relevant: bool) -> Parts:
    """Compute ragged lists; lists of similar sizes are processed together."""
    values, grads = a.new_zeros(lists.n_queries), (torch.zeros_like(a), torch.zeros_like(b))
    for rows, there, _ in lists.rounds:
        value, *parts = _dense_values(a[rows], b[rows], y[rows], there, relevant)
        values[lists.owner[rows[:, 0]]] = value
        for grad, part in zip(grads, parts, strict=True):
            grad[rows[there]] = part[there]
    return values, *grads


def _dense_values(a: Tensor, b: Tensor, y: Tensor, there: Tensor, relevant: bool) -> Parts:
    """Compute lists of equal size, with items given by the mask."""
    a, b = (part.masked_fill(~there[..., None], 0.0) for part in (a, b))
    gram_a, gram_b = a.mT @ a, b.mT @ b
    values = (gram_a * gram_b).sum((1, 2))
    grad_a, grad_b = a @ gram_b, b @ gram_a
    y = y.masked_fill(~there, 0.0)
    if relevant:
        met, is_relevant = (y[..., None] * a).sum(1), (y > 0.0).double()
        towards = (is_relevant[..., None] * b).sum(1)
        values = values - 2.0 * (met * towards).sum(1) + (y * y).sum(1) * is_relevant.sum(1)
        grad_a = grad_a - y[..., None] * towards[:, None]
        grad_b = grad_b - is_relevant[..., None] * met[:, None]
    else:
        above, below, pairs = _signed_sums(a, b, y, there)
        self_scores = (a * b).sum(2, keepdim=True)  # an item does not pair with itself
        values = values - 2.0 * (a * below).sum((1, 2)) + pairs - (self_scores * self_scores).sum((1, 2))
        grad_a = grad_a - below - self_scores * b
        grad_b = grad_b + above - self_scores * a
    none = ~there[..., None]
    return values, 2.0 * grad_a.masked_fill(none, 0.0), 2.0 * grad_b.masked_fill(none, 0.0)


def _signed_sums(a: Tensor, b: Tensor, y: Tensor, there: Tensor) -> Parts:
    """Return sums over j of sign(y_i - y_j) times a_j and b_j, and the number of pairs with unlike grades."""
    y = y.masked_fill(~there, torch.inf)
    levels, order = y.sort(dim=1)
    first, last = torch.searchsorted(levels, y), torch.searchsorted(levels, y, right=True)
    results = []
    for part in (a, b):
        ordered = part.gather(1, order[..., None].expand_as(part))
        q, n, d = part.shape
        columns = running_sum(ordered.permute(2, 0, 1).reshape(d, q * n), equal_lists(q, n, a.device))
        summed = columns.reshape(d, q, n).permute(1, 2, 0)
        sums = torch.nn.functional.pad(summed, (0, 0, 1, 0))  # of the first 0, 1, 2, ...
        lower, upper = (sums.gather(1, positions[..., None].expand_as(part)) for positions in (first, last))
        results.append(lower - (sums[:, -1:] - upper))
    differ = there.sum(1, keepdim=True) - (last - first)
    return results[0], results[1], (differ * there).sum(1).double()


pair_factors = operator("pair_factors", _compute, "bool relevant", n_scores=2)


class PairSquaredLoss(nn.Module):
    """Squared error of pair scores, the exact surrogate of AP and PD.

    - "ap": sum over all i, j, i = j included, of (u_ij - y_i y_j / sum(y))^2, `y` relevance;
    - "pd": sum over i != j of (u_ij - sign(y_i - y_j))^2, `y` grades.

    Pair scores are passed directly, or as factors: u_ij = <a_i, b_j>. The loss of factors takes O(n d^2) time
    and O(n d) memory: pairs are never stored.

    Called as `loss(pairs, y, offsets=None, mask=None, query_weight=None)`; `y` as for the other losses, and
    `pairs`, of a floating-point type, either

    - (B, n, n), with `y` (B, n) and a mask (B, n);
    - flat, the n x n scores of each list consecutively, row by row, with `y` flat;
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
        self.spec = metric_spec(self.metric)
        if self.metric.name not in ("ap", "pd"):
            raise ParameterError("metric", str(self.metric), "ap or pd")
        self.normalize, self.reduction, self.validate = normalize, reduction, validate

    def forward(
        self, pairs: Any, y: Tensor, *, offsets: Any = None, mask: Any = None, query_weight: Any = None
    ) -> Tensor:
        """Return the loss: a single number, or one per list."""
        factors = isinstance(pairs, (tuple, list))
        for part in pairs if factors else (pairs,):
            check_real(part, "pairs")
            check_floating(part, "pairs")
        grades = as_numbers(y, "y", (pairs[0] if factors else pairs).device).detach()
        batch = read_layout(grades, grades, offsets, mask)
        if should_check(self.validate, batch.labels):
            check_grades(self.metric, item_labels(batch))
        values = self.factor_values(pairs, batch) if factors else self.pair_values(pairs, batch)
        if self.normalize:
            values = values / self.counts(batch, values)
        return reduce_values(values, query_weight, self.reduction, self.validate)

    @property
    def relevant(self) -> bool:
        """True if pairs share relevance (ap); False if they differ in grade (pd)."""
        return self.metric.name == "ap"

    def counts(self, batch: ScoredLists, values: Tensor) -> Tensor | int:
        """Return the number of pairs of each list, at least 1."""
        n = list_sizes(batch)
        if isinstance(n, Tensor):
            n = n.to(values.dtype)
            return (n * n if self.relevant else n * (n - 1.0)).clamp(min=1.0)
        return max(n * n if self.relevant else n * (n - 1), 1)

    def labels(self, batch: ScoredLists) -> Tensor:
        """Return the shares of relevance, or the grades."""
        if not self.relevant:
            return batch.labels
        return compute_targets(batch, self.metric, self.spec, "P_reinforce")

    def extra_repr(self) -> str:
        """Describe the parameters."""
        return f"metric={str(self.metric)!r}, reduction={self.reduction!r}, normalize={self.normalize}"

    def factor_values(self, pairs: Any, batch: ScoredLists) -> Tensor:
        """Return the values of scores given by factors."""
        shapes = [tuple(part.shape) for part in pairs]
        if len(pairs) != 2 or shapes[0] != shapes[1] or shapes[0][:-1] != tuple(batch.labels.shape):
            expected = ", ".join(map(str, batch.labels.shape))
            raise ShapeError("pairs", shapes[0], f"two tensors of shape ({expected}, d)")
        return pair_factors(*pairs, self.labels(batch), *batch[2:], self.relevant)

    def pair_values(self, pairs: Tensor, batch: ScoredLists) -> Tensor:
        """Return the values of explicit scores."""
        labels, pairs = self.labels(batch), pairs.to(working_dtype(pairs.dtype))
        if labels.ndim == 2:
            expected = (*labels.shape, labels.shape[1])
            if tuple(pairs.shape) != expected:
                raise ShapeError("pairs", tuple(pairs.shape), f"{expected}: the scores of each list's pairs")
            return _padded_values(pairs, labels, batch.mask, relevant=self.relevant)
        return _flat_values(pairs, labels, batch.offsets, relevant=self.relevant)


def pair_targets(left: Tensor, right: Tensor, dtype: torch.dtype, *, relevant: bool) -> Tensor:
    """Return the targets of pairs of labels; grades are compared in their type."""
    if relevant:
        return left.to(dtype) * (right > 0.0)
    return (left > right).to(dtype) - (left < right).to(dtype)


def _padded_values(pairs: Tensor, labels: Tensor, mask: Tensor | None, *, relevant: bool) -> Tensor:
    """Return the values of (B, n, n) scores."""
    n = labels.shape[1]
    off = pairs - pair_targets(labels[:, :, None], labels[:, None, :], pairs.dtype, relevant=relevant)
    is_item = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
    both = is_item[:, :, None] & is_item[:, None, :]
    if not relevant:
        both = both & ~torch.eye(n, dtype=torch.bool, device=pairs.device)
    return torch.where(both, off, 0.0).square().sum((1, 2))


def _flat_values(pairs: Tensor, labels: Tensor, offsets: Tensor | Lists | None, *, relevant: bool) -> Tensor:
    """Return the values of the scores of all lists, stored consecutively."""
    offsets = offsets.offsets if isinstance(offsets, Lists) else offsets
    if offsets is None:
        if pairs.numel() != len(labels) ** 2:
            raise ShapeError("pairs", tuple(pairs.shape), f"{len(labels) ** 2} numbers: n^2 of the list")
        return _padded_values(
            pairs.reshape(1, len(labels), len(labels)), labels[None], None, relevant=relevant
        )
    sizes = offsets.diff()
    edges = torch.nn.functional.pad((sizes * sizes).cumsum(0), (1, 0))
    if not torch.compiler.is_compiling() and (pairs.ndim != 1 or pairs.shape[0] != int(edges[-1])):
        raise ShapeError("pairs", tuple(pairs.shape), f"{int(edges[-1])} numbers: n^2 of each list")
    owner = torch.repeat_interleave(sizes * sizes, output_size=pairs.shape[0])
    slot = torch.arange(pairs.shape[0], device=pairs.device) - edges[owner]
    n = sizes[owner].clamp(min=1)
    left, right = slot // n, slot % n
    better, worse = labels[offsets[owner] + left], labels[offsets[owner] + right]
    off = pairs - pair_targets(better, worse, pairs.dtype, relevant=relevant)
    if not relevant:
        off = torch.where(left == right, 0.0, off)
    return torch.segment_reduce(off.square(), "sum", offsets=edges, unsafe=True)
