"""Squared loss of pair scores u_ij = <a_i, b_j>, without writing a pair down: O(n d^2) time, O(n d) memory.

The sum of (u_ij - t_ij)^2 is <A'A, B'B> - 2 sum_i <a_i, c_i> + sum t_ij^2 with c_i = sum_j t_ij b_j, which
shared relevance (t of rank one) gives by one sum, and the signs of grade differences by running sums over the
sorted grades.
"""

from __future__ import annotations

import torch
from torch import Tensor

from concordant.torch.lists import Lists
from concordant.torch.operators import operator, working
from concordant.torch.ops import equal_lists, lists_of
from concordant.torch.sums import running

__all__ = ["pair_factors"]

Parts = tuple[Tensor, Tensor, Tensor]


def compute(
    a: torch.Tensor,
    b: torch.Tensor,
    labels: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
    relevant: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Value of each list, and the gradients of a and b. Labels are shares of relevance, or else grades."""
    left, right, y = a.double(), b.double(), labels.double()
    if labels.ndim == 1:
        lists, _ = lists_of(labels, offsets, None, longest)
        values, *grads = ragged(left, right, y, lists, relevant)
    else:
        there = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
        values, *grads = dense(left, right, y, there, relevant)
    grad_a, grad_b = (g.to(working(p.dtype)).contiguous() for g, p in zip(grads, (a, b), strict=True))
    return values.to(working(a.dtype)), grad_a, grad_b


def ragged(a: Tensor, b: Tensor, y: Tensor, lists: Lists, relevant: bool) -> Parts:
    """Lists of similar sizes are taken together."""
    values, grads = a.new_zeros(lists.n_queries), (torch.zeros_like(a), torch.zeros_like(b))
    for rows, there, _ in lists.rounds:
        value, *parts = dense(a[rows], b[rows], y[rows], there, relevant)
        values[lists.owner[rows[:, 0]]] = value
        for grad, part in zip(grads, parts, strict=True):
            grad[rows[there]] = part[there]
    return values, *grads


def dense(a: Tensor, b: Tensor, y: Tensor, there: Tensor, relevant: bool) -> Parts:
    """Lists of one size, items where the mask says."""
    a, b = (part.masked_fill(~there[..., None], 0.0) for part in (a, b))
    gram_a, gram_b = a.mT @ a, b.mT @ b
    values = (gram_a * gram_b).sum((1, 2))
    grad_a, grad_b = a @ gram_b, b @ gram_a
    y = y.masked_fill(~there, 0.0)
    if relevant:
        met, counted = (y[..., None] * a).sum(1), (y > 0.0).double()
        towards = (counted[..., None] * b).sum(1)
        values = values - 2.0 * (met * towards).sum(1) + (y * y).sum(1) * counted.sum(1)
        grad_a = grad_a - y[..., None] * towards[:, None]
        grad_b = grad_b - counted[..., None] * met[:, None]
    else:
        above, below, pairs = signed(a, b, y, there)
        own = (a * b).sum(2, keepdim=True)  # an item is no pair
        values = values - 2.0 * (a * below).sum((1, 2)) + pairs - (own * own).sum((1, 2))
        grad_a = grad_a - below - own * b
        grad_b = grad_b + above - own * a
    none = ~there[..., None]
    return values, 2.0 * grad_a.masked_fill(none, 0.0), 2.0 * grad_b.masked_fill(none, 0.0)


def signed(a: Tensor, b: Tensor, y: Tensor, there: Tensor) -> Parts:
    """Sums over j of sign(y_i - y_j) times a_j, and times b_j; and how many pairs differ in grade."""
    y = y.masked_fill(~there, torch.inf)
    levels, order = y.sort(dim=1)
    first, last = torch.searchsorted(levels, y), torch.searchsorted(levels, y, right=True)
    results = []
    for part in (a, b):
        ordered = part.gather(1, order[..., None].expand_as(part))
        q, n, d = part.shape
        columns = running(ordered.permute(2, 0, 1).reshape(d, q * n), equal_lists(q, n, a.device))
        summed = columns.reshape(d, q, n).permute(1, 2, 0)
        sums = torch.nn.functional.pad(summed, (0, 0, 1, 0))  # of the first 0, 1, 2, ...
        lower, upper = (sums.gather(1, place[..., None].expand_as(part)) for place in (first, last))
        results.append(lower - (sums[:, -1:] - upper))
    differ = there.sum(1, keepdim=True) - (last - first)
    return results[0], results[1], (differ * there).sum(1).double()


pair_factors = operator("pair_factors", compute, n_scores=2)
