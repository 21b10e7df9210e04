"""Pairwise losses of quadratic and linear pieces in O(n log n): a sort, binary searches, running sums.

Scores are sorted, highest first, relative to the highest of their query. The better item i of a pair collects
from the items j with d = edge - (s_i - s_j) > 0; those with d > width lie beyond its window. Within a window
d is summed by cells: z = cell + rest, with cells at least as wide as a window, so that a window touches at
most two cells; only the rests are summed, and no digits are lost to the distance from the query's top.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from concordant.surrogates.margins import Margin
from concordant.torch.lists import Lists, kernels_serve, running_sum


def sort_rows(scores: Tensor, lists: Lists) -> Tensor:
    """Sort the rows of each query by score, highest first; ties stay in row order."""
    if scores.dtype == torch.bool:
        scores = scores.to(torch.uint8)
    if lists.n_queries == 1:
        return torch.sort(scores, descending=True, stable=True).indices
    if not scores.is_floating_point():  # whole numbers below 2^32 in size
        return torch.sort((lists.owner << 33) - scores, stable=True).indices
    if scores.dtype == torch.float32:
        bits = (scores + 0.0).view(torch.int32)  # maps minus zero to zero
        rising = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(torch.int64)
        return torch.sort((lists.owner << 33) - rising, stable=True).indices
    order = torch.sort(scores, descending=True, stable=True).indices
    return order[torch.sort(lists.owner[order], stable=True).indices]


def rank_levels(grades: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Rank each row's grade among the distinct grades of its query, 0 lowest.

    Also return the grades by level: a query's are in its rows, each at the index of its level.
    """
    order = sort_rows(-grades, lists)  # lowest first
    ordered, rows = grades[order], torch.arange(lists.n_rows, device=grades.device)
    number = ((ordered > ordered.roll(1)) & (rows > lists.starts)).cumsum(0)
    number = number - number[lists.starts]
    levels, table = torch.empty_like(number), torch.zeros_like(grades)
    levels[order] = number
    table[lists.starts + number] = ordered
    return levels, table


def _find_first_rows(z: Tensor, levels: Tensor, lists: Lists, *, strict: bool) -> Tensor:
    """Find for each row the first row of its query with z <= its level (not strict: < its level)."""
    if lists.n_queries == 1:
        # searchsorted needs increasing numbers
        return torch.searchsorted(-z, -levels, right=not strict)
    first_rows = torch.empty_like(lists.starts)
    for part in lists.rounds:
        table = torch.where(part.there, -part.table(z), torch.inf)
        positions = torch.searchsorted(table, -part.table(levels), right=not strict)
        part.put(positions + part.rows[:, :1], first_rows)
    return torch.minimum(first_rows, lists.ends)  # an infinite level must not reach the padding


class PrefixSums(NamedTuple):
    """Sums of the first 0, 1, 2, ... rows of each query, for several sequences: (n_rows + n_queries, k)."""

    table: Tensor
    owner: Tensor

    def upto(self, position: Tensor) -> Tensor:
        """Return the sums over the rows of the query before a position, for each sequence."""
        return self.table.index_select(0, position + self.owner)

    def between(self, first: Tensor, last: Tensor) -> Tensor:
        """Return the sums over the rows from first to before last."""
        return self.upto(last) - self.upto(first)


def prefix_sums(lists: Lists, *sequences: Tensor) -> PrefixSums:
    """Build prefix sums of several sequences."""
    n, k = lists.n_rows, len(sequences)
    table = sequences[0].new_zeros(n + lists.n_queries, k)
    rows = torch.arange(1, n + 1, device=table.device) + lists.owner
    table[rows] = running_sum(torch.stack(sequences), lists).mT
    return PrefixSums(table, lists.owner)


def sweep(scores: Tensor, weights: Tensor, lists: Lists, shape: Margin) -> tuple[Tensor, Tensor]:
    """Sum over i, j of weights[i] * phi(s_i - s_j) of each query, with gradient."""
    if lists.n_rows == 0:
        return scores.new_zeros(lists.n_queries), torch.empty_like(scores)
    if kernels_serve(scores):
        return _sweep_by_kernels(scores, weights, lists, shape)
    order = sort_rows(scores, lists)
    s, w = scores.double()[order], weights.double()[order]
    parts = _sweep_windowed if math.isfinite(shape.width) else _sweep_unbounded
    values, slopes = parts(s - s[lists.starts], w, lists, shape)
    lost = s - s  # 0, or NaN if a score is not finite: comparisons would hide it
    grad = torch.empty_like(scores)
    grad[order] = (lost - 2.0 * shape.scale * slopes).to(scores.dtype)
    return lists.sums(lost + shape.scale * values).to(scores.dtype), grad


def _sweep_by_kernels(scores: Tensor, weights: Tensor, lists: Lists, shape: Margin) -> tuple[Tensor, Tensor]:
    """Compute `sweep` by Triton kernels."""
    from concordant.torch.triton_sweeps import collect_pairs

    if lists.n_queries == 1:
        ordered, order = torch.sort(scores, descending=True, stable=True)
    else:
        order = sort_rows(scores, lists)
        ordered = scores[order]
    anchors = ordered
    if not math.isfinite(shape.width):
        tops = ordered[lists.offsets[:-1].clamp(max=lists.n_rows - 1)].double()
        anchors = lists.spread(weighted_mean(scores.double(), weights.double(), lists) - tops).contiguous()
    values, grad = collect_pairs(ordered, order, weights.contiguous(), anchors, lists.offsets, shape)
    return lists.sums(values).to(scores.dtype), grad


def weighted_mean(z: Tensor, w: Tensor, lists: Lists) -> Tensor:
    """Return the weighted mean of each query's z; 0 if all weights are 0."""
    total = lists.sums(w)
    return torch.where(total > 0, lists.sums(w * z) / total, 0.0)


def _sweep_windowed(z: Tensor, w: Tensor, lists: Lists, shape: Margin) -> tuple[Tensor, Tensor]:
    """Sweep for margins of finite width; return value and slope by sorted row, before the scale."""
    gap, width = shape.edge - shape.width, shape.width
    cells, rests, firsts = _split_cells(z, width, lists)
    sums = prefix_sums(lists, rests, rests * rests, z, w, w * rests)
    # The better item collects, with its weight: items above its floor; beyond, above its floor + width.
    floor, ceiling = z - shape.edge, z + shape.edge
    met, beyond = (
        _find_first_rows(z, floor, lists, strict=True),
        _find_first_rows(z, z - gap, lists, strict=True),
    )
    total, squares = torch.zeros_like(z), torch.zeros_like(z)
    for first, last, middle in _in_cells(beyond, met, cells, firsts):
        off, square, *_ = sums.between(first, last).unbind(1)
        count, level = (last - first).double(), middle - floor
        total += torch.where(last > first, off + level * count, 0.0)
        squares += torch.where(last > first, square + level * (2.0 * off + level * count), 0.0)
    outside = (beyond - lists.starts).double()
    far = sums.upto(beyond)[:, 2] - floor * outside  # sum of d beyond the window
    value = w * (squares + width * (2.0 * far - width * outside))
    pull = w * (total + width * outside)
    # The worse item collects weights of the items below its ceiling; beyond, below its ceiling - width.
    met, beyond = (
        _find_first_rows(z, ceiling, lists, strict=False),
        _find_first_rows(z, z + gap, lists, strict=False),
    )
    push = width * sums.between(beyond, lists.ends)[:, 3]
    for first, last, middle in _in_cells(met, beyond, cells, firsts):
        *_, mass, moment = sums.between(first, last).unbind(1)
        push += torch.where(last > first, (ceiling - middle) * mass - moment, 0.0)
    return value, pull - push


def _in_cells(
    first: Tensor, last: Tensor, cells: Tensor, firsts: Tensor
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Split windows where the cell changes: from, to, and the middle of the cell."""
    lowest = (last - 1).clamp(min=0)
    split = torch.minimum(torch.maximum(firsts[lowest], first), last)
    upper = cells[first.clamp(max=len(cells) - 1)]
    return (first, split, upper), (split, last, cells[lowest])


def _split_cells(z: Tensor, width: float, lists: Lists) -> tuple[Tensor, Tensor, Tensor]:
    """Split each z into the middle of its cell and the rest; also return the first row of each row's cell."""
    size = 2.0 ** math.ceil(math.log2(max(width, 2.0**-40)))
    cells, rows = torch.round(z / size) * size, torch.arange(lists.n_rows, device=z.device)
    new = rows == lists.starts
    new[1:] |= cells[1:] != cells[:-1]
    return cells, z - cells, torch.where(new, rows, 0).cummax(0).values


def _sweep_unbounded(z: Tensor, w: Tensor, lists: Lists, shape: Margin) -> tuple[Tensor, Tensor]:
    """Sweep for an unbounded parabola: the squared hinge."""
    floor, ceiling = z - shape.edge, z + shape.edge
    mean = lists.spread(weighted_mean(z, w, lists))
    sums = prefix_sums(lists, z, z * z, w, w * (z - mean))
    met = _find_first_rows(z, floor, lists, strict=True)
    count, (total, square, *_) = (met - lists.starts).double(), sums.upto(met).unbind(1)
    value = w * (square - floor * (2.0 * total - floor * count))
    pull = w * (total - floor * count)
    below = _find_first_rows(z, ceiling, lists, strict=False)
    *_, mass, moment = sums.between(below, lists.ends).unbind(1)
    return value, pull - ((ceiling - mean) * mass - moment)
