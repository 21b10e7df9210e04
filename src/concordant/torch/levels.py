"""Pairs of items of different levels, by halving the levels: each half is one sweep over sorted scores.

Levels are numbered and pairs counted as `surrogates` does for arrays, by torch, so that no row travels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from concordant.torch.lists import Lists
from concordant.torch.sums import kernels_serve
from concordant.torch.sweep import ranked, sums_of

__all__ = ["level_codes", "overtaken", "pair_shares"]

SHORT = 32_768  # items up to which, on a GPU, comparing every pair is faster than halving the levels


def level_codes(grades: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Number of each row's level in its query, the lowest 0; and how many levels each query has.

    >>> codes, levels = level_codes(torch.tensor([2.0, 0.0, 2.0, 5.0]), Lists.of([0, 3, 4]))
    >>> codes.tolist(), levels.tolist()
    ([1.0, 0.0, 1.0, 0.0], [2.0, 1.0])
    """
    grades = grades if grades.is_floating_point() else grades.double()
    order = ranked(-grades, lists)  # lowest first
    ordered, rows = grades[order], torch.arange(lists.n_rows, device=grades.device)
    rises = torch.zeros_like(rows)
    rises[1:] = ordered[1:] > ordered[:-1]
    steps = torch.where(rows == lists.starts, 0, rises).cumsum(0)  # of whole numbers: exact
    codes = torch.empty_like(steps, dtype=torch.float64)
    codes[order] = (steps - steps[lists.starts]).double()
    return codes, lists.highest(codes).clamp(min=-1.0) + 1.0


def pair_shares(codes: Tensor, lists: Lists, reduction: str) -> Tensor:
    """How much a pair counts in each query."""
    sizes = lists.sizes.double()
    if reduction == "sum":
        return torch.ones_like(sizes)
    counts = 0.5 * sizes * (sizes - 1.0)
    if reduction == "pairs":
        # A query has at most as many levels as rows: each is counted in the slot of one of its rows.
        slots = torch.bincount(codes.long() + lists.starts, minlength=lists.n_rows)
        counts = 0.5 * (sizes**2 - lists.sums(slots.double() ** 2))
    return 1.0 / counts.clamp(min=1.0)


def overtaken(moved: Tensor, weights: Tensor, codes: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Sum over pairs of codes i > j of weights[i] * (moved_j - moved_i)_+, and the gradient."""
    grad, values = torch.zeros_like(moved), torch.zeros_like(moved)
    if lists.n_rows == 0:
        return moved.new_zeros(lists.n_queries), grad
    if kernels_serve(moved) and lists.longest <= SHORT:
        from concordant.torch.kernels.tiles import level_pairs

        values, grad = level_pairs(moved, weights, codes, lists.offsets, lists.longest)
        return lists.sums(values), grad
    order = torch.sort(codes, descending=True, stable=True).indices  # equal scores: the higher level first
    order = by_score(moved, order, lists)
    z, numbers = moved - moved[order][lists.starts], codes.long()
    for bit in range(int(numbers.max()).bit_length()):
        groups = lists.owner * lists.longest + (numbers >> (bit + 1))
        place = order[torch.sort(groups[order], stable=True).indices]
        value, slope = halved(z[place], weights[place], (numbers[place] >> bit) & 1, groups[place], lists)
        values[place] += value
        grad[place] += slope
    lost = moved - moved  # 0, but NaN where a score is not finite: comparisons would hide it
    return lists.sums(values + lost), grad + lost


def by_score(moved: Tensor, order: Tensor, lists: Lists) -> Tensor:
    """Sort the rows of each query, the highest first; equal ones as they stand in the order."""
    order = order[torch.sort(moved[order], descending=True, stable=True).indices]
    if lists.n_queries == 1:
        return order
    return order[torch.sort(lists.owner[order], stable=True).indices]


def halved(z: Tensor, w: Tensor, upper: Tensor, groups: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Value and slope of the pairs between the upper and the lower half of each group, by sorted row."""
    first, last = torch.searchsorted(groups, groups), torch.searchsorted(groups, groups, right=True)
    high, low = upper.double(), 1.0 - upper.double()
    sums = sums_of(lists, low, low * z, high * w)
    here = sums.upto(torch.arange(lists.n_rows, device=z.device))
    above, depth, _ = (here - sums.upto(first)).unbind(1)
    value = high * w * (depth - above * z)
    return value, low * (sums.upto(last) - here)[:, 2] - high * w * above
