"""Every pair of short lists, a tile at a time: no n x n memory, no atomic additions, one launch.

Each program owns some rows, and meets them with all rows of their queries. A pair is seen from both sides, so
that each row's gradient is its own sum: equal bits from run to run.
"""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from concordant.surrogates.margins import CLIP, LOGISTIC, Margin
from concordant.torch.kernels.common import blocks, jit, kernel, launching, owned, steps

__all__ = ["all_pairs", "level_pairs"]

SHAPES = ((1024, 32, 32), (2**31, 16, 128))  # of a float32 tile, for lists up to so many items: rows, columns
PARABOLA, ROUNDED, CORNER, SIGMOID, LEVELS = 0, 1, 2, 3, 4  # formulas of a pair
NARROWEST = 1e-30  # widths below it are a corner


def all_pairs(
    scores: Tensor, weights: Tensor, offsets: Tensor, longest: int, mask: Tensor | None, shape: Margin
) -> tuple[Tensor, Tensor]:
    """Sum over j of weights[i] * phi(s_i - s_j) of each row, and the gradient; rows off the mask count 0."""
    if shape.kind == LOGISTIC:
        return launched(scores, weights, weights, offsets, longest, mask, SIGMOID, 0.0, 1.0, 1.0)
    if shape.kind != CLIP:
        raise NotImplementedError(shape.name)
    if shape.width == float("inf"):
        return launched(
            scores, weights, weights, offsets, longest, mask, PARABOLA, shape.edge, 1.0, shape.scale
        )
    form = CORNER if shape.width < NARROWEST else ROUNDED
    steepest = 2.0 * shape.scale * shape.width
    return launched(scores, weights, weights, offsets, longest, mask, form, shape.edge, shape.width, steepest)


def level_pairs(
    moved: Tensor, weights: Tensor, codes: Tensor, offsets: Tensor, longest: int
) -> tuple[Tensor, Tensor]:
    """Sum over codes j < i of weights[i] * (moved_j - moved_i)_+ for each row i, and the gradient."""
    return launched(moved, weights, codes, offsets, longest, None, LEVELS, 0.0, 1.0, 1.0)


def launched(
    scores: Tensor,
    weights: Tensor,
    codes: Tensor,
    offsets: Tensor,
    longest: int,
    mask: Tensor | None,
    form: int,
    edge: float,
    width: float,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Run the tiles."""
    values, grad, n = torch.empty_like(scores), torch.empty_like(scores), len(scores)
    if n:
        n_queries, known = len(offsets) - 1, offsets if mask is None else mask
        rows, columns = next(shape for most, *shape in SHAPES if longest <= most or scores.itemsize > 4)
        with launching(scores):
            tiles[(blocks(n, rows),)](
                scores, weights, codes, offsets, known, values, grad, n, n_queries, steps(n_queries),
                FORM=form, EDGE=edge, WIDTH=width, SCALE=scale, MASKED=mask is not None,
                ROWS=rows, COLUMNS=columns,
            )  # fmt: skip
    return values, grad


@jit
def log_of_1_and(power: tl.tensor) -> tl.tensor:
    """log(1 + power) for powers up to 1, with all digits where it is small."""
    if power.dtype == tl.float64:
        series = power * (1.0 - power * (0.5 - power * (1 / 3 - power * (0.25 - power * 0.2))))
        found = tl.where(power < 1e-3, series, tl.log(1.0 + power))
    else:  # 2 artanh(z): the device's own logarithm is rough near 1
        z = power / (2.0 + power)
        y = z * z
        rest = 1 / 7 + y * (1 / 9 + y * (1 / 11 + y * (1 / 13)))
        found = 2.0 * z * (1.0 + y * (1 / 3 + y * (0.2 + y * rest)))
    return found


@jit
def pair_terms(
    ahead: tl.tensor,
    own: tl.tensor,
    other: tl.tensor,
    FORM: tl.constexpr,
    EDGE: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Value of each pair before its weight and the scale; and what pulls the own row up, weighed."""
    if FORM == 3:
        power = tl.exp(-tl.abs(ahead))
        part = 1.0 / (1.0 + power)
        value = tl.maximum(-ahead, 0.0) + log_of_1_and(power)
        pull = part * (own * tl.where(ahead > 0.0, power, 1.0) - other * tl.where(ahead > 0.0, 1.0, power))
    else:
        down = tl.maximum(EDGE - ahead, 0.0)
        up = tl.maximum(EDGE + ahead, 0.0)
        if FORM == 0:
            value = down * down
            pull = 2.0 * (own * down - other * up)
        elif FORM == 1:
            near = tl.minimum(down * (1.0 / WIDTH), 1.0)
            value = near * (down - (0.5 * WIDTH) * near)
            pull = own * near - other * tl.minimum(up * (1.0 / WIDTH), 1.0)
        else:
            value = down
            pull = tl.where(down > 0.0, own, 0.0) - tl.where(up > 0.0, other, 0.0)
    return value, pull


@kernel
def tiles(
    scores: tl.tensor,
    weights: tl.tensor,
    codes: tl.tensor,
    offsets: tl.tensor,
    mask: tl.tensor,
    values: tl.tensor,
    grad: tl.tensor,
    n_rows: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    FORM: tl.constexpr,
    EDGE: tl.constexpr,
    WIDTH: tl.constexpr,
    SCALE: tl.constexpr,
    MASKED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """Fill value and gradient of a block of rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n_rows
    begin, end, _ = owned(offsets, rows, live, n_queries, n_steps)
    first = tl.min(tl.where(live, begin, n_rows), 0)
    last = tl.max(end, 0)
    s = tl.load(scores + rows, mask=live, other=0.0)
    own = tl.load(weights + rows, mask=live, other=0.0)
    if MASKED:
        here = tl.load(mask + rows, mask=live, other=0) != 0
        s = tl.where(here, s, 0.0)
        own = tl.where(here, own, 0.0)
    level = own
    if FORM == 4:
        level = tl.load(codes + rows, mask=live, other=0.0)
    value_sum = tl.zeros((ROWS, COLUMNS), dtype=s.dtype)
    pull_sum = tl.zeros((ROWS, COLUMNS), dtype=s.dtype)
    for start in range(first, last, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        there = columns < last
        if MASKED:
            there = tl.load(mask + columns, mask=there, other=0) != 0
        met = tl.load(scores + columns, mask=there, other=0.0)
        other = tl.load(weights + columns, mask=there, other=0.0)
        same = (columns[None, :] >= begin[:, None]) & (columns[None, :] < end[:, None]) & there[None, :]
        ahead = s[:, None] - met[None, :]
        if FORM == 4:
            below = tl.load(codes + columns, mask=there, other=0.0)
            upper = tl.where(level[:, None] > below[None, :], own[:, None], 0.0)
            lower = tl.where(level[:, None] < below[None, :], other[None, :], 0.0)
            value = tl.where(level[:, None] > below[None, :], tl.maximum(-ahead, 0.0), 0.0)
            pull = tl.where(ahead < 0.0, upper, 0.0) - tl.where(ahead > 0.0, lower, 0.0)
        else:
            value, pull = pair_terms(ahead, own[:, None], other[None, :], FORM, EDGE, WIDTH)
        value_sum += tl.where(same, value, 0.0)
        pull_sum += tl.where(same, pull, 0.0)
    pulled = tl.sum(pull_sum, 1)
    if MASKED:
        pulled = tl.where(here, pulled, 0.0)
    lost = s - s  # 0, but NaN where the score is not finite: comparisons would hide it
    tl.store(values + rows, SCALE * own * tl.sum(value_sum, 1) + lost, mask=live)
    tl.store(grad + rows, lost - SCALE * pulled, mask=live)
