"""The cascade user in blocks of tied rows: elementary symmetric means by dynamic programming."""

from __future__ import annotations

import torch
from torch import Tensor

from concordant.torch.metric_ranking import Ranking

__all__ = ["cascade_blocks"]


def cascade_blocks(stop: Tensor, found: Ranking, k: int) -> Tensor:
    """Probability that the user, who reached the block, stops at this row's place in it.

    The mean is over the orders of the block; rows that are no part of a tied block get 0. Blocks of similar
    size go together, so that padding at most doubles the memory. A block of b rows takes b steps, each of
    the work of the places that count.
    """
    chance = torch.zeros_like(stop)
    head = found.listed & (found.size > 1) & (found.first == found.rows) & (found.start < k)
    firsts = head.nonzero()[:, 0]
    sizes = found.size[firsts]
    classes = torch.frexp((sizes - 1).double()).exponent  # 2; 3, 4; 5 to 8; ...
    for level in torch.bincount(classes).nonzero().flatten().tolist():
        own = classes == level
        fill(chance, stop, firsts[own], sizes[own], 2**level, k)
    return chance


def fill(chance: Tensor, stop: Tensor, firsts: Tensor, sizes: Tensor, width: int, k: int) -> None:
    """Write the chances of these blocks, none larger than the width."""
    inside = torch.arange(width, device=stop.device)
    own = inside < sizes[:, None]
    rows = (firsts[:, None] + inside).clamp(max=len(stop) - 1)
    passing = 1.0 - stop[rows]
    depth = min(width, k)
    means = passing_means(passing, sizes, depth)
    stops = torch.zeros_like(passing)
    stops[:, :depth] = means[:, :-1] - means[:, 1:]
    chance[rows[own]] = stops[own]


def passing_means(passing: Tensor, sizes: Tensor, depth: int) -> Tensor:
    """Mean over j-subsets of each block of the product of `passing`, for j = 0 to depth.

    That is the probability of passing the first j rows of a random order. One row at a time; every term is
    non-negative, so nothing cancels.

    >>> passing_means(torch.tensor([[0.5, 0.0, 1.0]]), torch.tensor([2]), 2)
    tensor([[1.0000, 0.2500, 0.0000]])
    """
    numbers = torch.arange(depth + 1, device=passing.device, dtype=passing.dtype)
    means = torch.zeros(len(passing), depth + 1, device=passing.device, dtype=passing.dtype)
    means[:, 0] = 1.0
    for t in range(1, passing.shape[1] + 1):
        share = numbers / t  # of the j-subsets of t rows, those that hold the last one
        moved = means * (1.0 - share).clamp(min=0.0)
        moved[:, 1:] += means[:, :-1] * share[1:].clamp(max=1.0) * passing[:, t - 1, None]
        means = torch.where((t <= sizes)[:, None], moved, means)
    return means
