"""All pairs of short lists, a tile at a time: no n x n memory, no atomic additions, a single launch.

Each program handles some rows and compares them with all rows of their queries. A pair is visited from both
sides, so that each row's gradient is a separate sum: equal bits from run to run.
"""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from concordant.surrogates.margins import CLIP, LOGISTIC, Margin
from concordant.torch.triton_sweeps import blocks, find_owners, jit, kernel, launching, steps

SHAPES = ((1024, 32, 32), (2**31, 16, 128))  # float32 tiles (rows, columns) by longest list
PARABOLA, ROUNDED, CORNER, SIGMOID, LEVELS = 0, 1, 2, 3, 4  # formulas of a pair
NARROWEST = 1e-30  # narrower widths are a corner


def all_pairs(
    scores: Tensor, weights: Tensor, offsets: Tensor, longest: int, mask: Tensor | None, shape: Margin
) -> tuple[Tensor, Tensor]:
    """Sum over j of weights[i] * phi(s_i - s_j) of each row, with gradient; masked rows do not count."""
    if shape.kind == LOGISTIC:
        return _launch_tiles(scores, weights, weights, offsets, longest, mask, SIGMOID, 0.0, 1.0, 1.0)
    if shape.kind != CLIP:
        raise NotImplementedError(shape.name)
    if shape.width == float("inf"):
        return _launch_tiles(
            scores, weights, weights, offsets, longest, mask, PARABOLA, shape.edge, 1.0, shape.scale
        )
    form = CORNER if shape.width < NARROWEST else ROUNDED
    steepest = 2.0 * shape.scale * shape.width
    return _launch_tiles(
        scores, weights, weights, offsets, longest, mask, form, shape.edge, shape.width, steepest
    )


def level_pairs(
    moved: Tensor, weights: Tensor, codes: Tensor, offsets: Tensor, longest: int
) -> tuple[Tensor, Tensor]:
    """Sum over codes j < i of weights[i] * (moved_j - moved_i)_+ for each row i, with gradient."""
    return _launch_tiles(moved, weights, codes, offsets, longest, None, LEVELS, 0.0, 1.0, 1.0)


def _launch_tiles(
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
    values, grad, n = torch.empty_like(scores), torch.empty_like(scores), len(scores)
    if n:
        n_queries, marks = len(offsets) - 1, offsets if mask is None else mask
        rows, columns = next(shape for most, *shape in SHAPES if longest <= most or scores.itemsize > 4)
        with launching(scores):
            _tiles[(blocks(n, rows),)](
                scores, weights, codes, offsets, marks, values, grad, n, n_queries, steps(n_queries),
                FORM=form, EDGE=edge, WIDTH=width, SCALE=scale, MASKED=mask is not None,
                ROWS=rows, COLUMNS=columns,
            )  # fmt: skip
    return values, grad


@jit
def _log_of_1_and(power: tl.tensor) -> tl.tensor:
    """Return log(1 + power) for powers up to 1, accurate for small powers."""
    if power.dtype == tl.float64:
        series = power * (1.0 - power * (0.5 - power * (1 / 3 - power * (0.25 - power * 0.2))))
        logarithm = tl.where(power < 1e-3, series, tl.log(1.0 + power))
    else:  # 2 artanh(z): the device's logarithm is inaccurate near 1
        z = power / (2.0 + power)
        y = z * z
        rest = 1 / 7 + y * (1 / 9 + y * (1 / 11 + y * (1 / 13)))
        logarithm = 2.0 * z * (1.0 + y * (1 / 3 + y * (0.2 + y * rest)))
    return logarithm


@jit
def _pair_terms(
    ahead: tl.tensor,
    weight: tl.tensor,
    other: tl.tensor,
    FORM: tl.constexpr,
    EDGE: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Return the value of each pair before weight and scale; and the weighted pull on the row."""
    if FORM == 3:
        power = tl.exp(-tl.abs(ahead))
        part = 1.0 / (1.0 + power)
        value = tl.maximum(-ahead, 0.0) + _log_of_1_and(power)
        pull = part * (weight * tl.where(ahead > 0.0, power, 1.0) - other * tl.where(ahead > 0.0, 1.0, power))
    else:
        down = tl.maximum(EDGE - ahead, 0.0)
        up = tl.maximum(EDGE + ahead, 0.0)
        if FORM == 0:
            value = down * down
            pull = 2.0 * (weight * down - other * up)
        elif FORM == 1:
            near = tl.minimum(down * (1.0 / WIDTH), 1.0)
            value = near * (down - (0.5 * WIDTH) * near)
            pull = weight * near - other * tl.minimum(up * (1.0 / WIDTH), 1.0)
        else:
            value = down
            pull = tl.where(down > 0.0, weight, 0.0) - tl.where(up > 0.0, other, 0.0)
    return value, pull


@kernel
def _tiles(
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
    begin, end, _ = find_owners(offsets, rows, live, n_queries, n_steps)
    first = tl.min(tl.where(live, begin, n_rows), 0)
    last = tl.max(end, 0)
    s = tl.load(scores + rows, mask=live, other=0.0)
    weight = tl.load(weights + rows, mask=live, other=0.0)
    if MASKED:
        here = tl.load(mask + rows, mask=live, other=0) != 0
        s = tl.where(here, s, 0.0)
        weight = tl.where(here, weight, 0.0)
    level = weight
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
            upper = tl.where(level[:, None] > below[None, :], weight[:, None], 0.0)
            lower = tl.where(level[:, None] < below[None, :], other[None, :], 0.0)
            value = tl.where(level[:, None] > below[None, :], tl.maximum(-ahead, 0.0), 0.0)
            pull = tl.where(ahead < 0.0, upper, 0.0) - tl.where(ahead > 0.0, lower, 0.0)
        else:
            value, pull = _pair_terms(ahead, weight[:, None], other[None, :], FORM, EDGE, WIDTH)
        value_sum += tl.where(same, value, 0.0)
        pull_sum += tl.where(same, pull, 0.0)
    pulled = tl.sum(pull_sum, 1)
    if MASKED:
        pulled = tl.where(here, pulled, 0.0)
    lost = s - s  # 0, or NaN if a score is not finite: comparisons would hide it
    tl.store(values + rows, SCALE * weight * tl.sum(value_sum, 1) + lost, mask=live)
    tl.store(grad + rows, lost - SCALE * pulled, mask=live)
