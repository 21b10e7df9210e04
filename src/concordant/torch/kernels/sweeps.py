"""Sweeps over sorted scores: what `concordant.torch.sweep` does, in few launches."""

from __future__ import annotations

import math

import torch
import triton.language as tl
from torch import Tensor

from concordant.surrogates.margins import Margin
from concordant.torch.kernels.common import blocks, jit, kernel, launching, owned, steps
from concordant.torch.kernels.sums import CHUNK, chunked, last_of, rows_of, run_over

__all__ = ["collected"]

ROWS = 128  # of a program that searches


def collected(
    ordered: Tensor, order: Tensor, weights: Tensor, anchors: Tensor, offsets: Tensor, shape: Margin
) -> tuple[Tensor, Tensor]:
    """Value and gradient of each row: values by sorted row, the gradient by row.

    `ordered` are the scores, each query's highest first, `order` their rows; `anchors` (of the squared hinge)
    one number per row, near which most of its query's weight lies, relative to the highest score.
    """
    n, n_queries, bounded = len(ordered), len(offsets) - 1, math.isfinite(shape.width)
    edges, n_chunks = chunked(offsets, n)
    # One block of memory, since each costs time: z, five running sums, values, and the chunks' bases.
    space = torch.empty(7 * n + 5 * n_chunks, dtype=torch.float64, device=ordered.device)
    bases, grad = space[7 * n :], torch.empty_like(ordered)
    width = shape.width if bounded else 1.0
    cell = 2.0 ** math.ceil(math.log2(max(width, 2.0**-40)))
    common = {
        "ONE": n_queries == 1,
        "BOUNDED": bounded,
        "CELL": cell,
        "CHUNK": CHUNK,
    }
    known = edges, offsets, space, n, n_queries, steps(n_queries), n_chunks
    with launching(ordered):
        prepare[(n_chunks,)](ordered, order, weights, anchors, *known, **common)
        run_over(bases, edges, n_chunks, n_queries, 5)
        collect[(blocks(n, ROWS),)](
            order, weights, anchors, *known, grad,
            EDGE=shape.edge, WIDTH=width, GAP=shape.edge - width, SCALE=shape.scale, ROWS=ROWS, **common,
        )  # fmt: skip
    return space[6 * n : 7 * n], grad


@jit
def cell_of(z: tl.tensor, CELL: tl.constexpr) -> tl.tensor:
    """Middle of the cell that z lies in."""
    return tl.floor(z * (1.0 / CELL) + 0.5) * CELL


@kernel
def prepare(
    ordered: tl.tensor,
    order: tl.tensor,
    weights: tl.tensor,
    anchors: tl.tensor,
    edges: tl.tensor,
    offsets: tl.tensor,
    space: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    n_chunks: tl.tensor,
    ONE: tl.constexpr,
    BOUNDED: tl.constexpr,
    CELL: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """Scores relative to the highest of their query; five running sums within the chunk, and totals."""
    rows, live, begin = rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    # Programs that got no chunk stand at the last list, which may be empty.
    top = tl.load(ordered + begin, mask=begin < n, other=0.0).to(tl.float64)
    here = tl.load(ordered + rows, mask=live, other=0.0).to(tl.float64) - top
    here = tl.where(live, here, 0.0)
    tl.store(space + rows, here, mask=live)
    w = tl.load(weights + tl.load(order + rows, mask=live, other=0), mask=live, other=0.0).to(tl.float64)
    if BOUNDED:
        rest = here - cell_of(here, CELL)
        moment = w * rest
    else:
        rest = here
        moment = w * (here - tl.load(anchors + rows, mask=live, other=0.0))
    wide = n.to(tl.int64)
    bases = space + 7 * wide + tl.program_id(0)
    for number in tl.static_range(5):
        if number == 0:
            term = rest
        elif number == 1:
            term = rest * rest
        elif number == 2:
            term = here
        elif number == 3:
            term = w
        else:
            term = moment
        found = tl.cumsum(term, 0)
        tl.store(space + (number + 1) * wide + rows, found, mask=live)
        tl.store(bases + number * n_chunks, last_of(found, CHUNK))
        tl.debug_barrier()  # the next sums use the same scratch


@jit
def upto(
    sums: tl.tensor,
    bases: tl.tensor,
    place: tl.tensor,
    begin: tl.tensor,
    chunk: tl.tensor,
    live: tl.tensor,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """Sum of the terms from the list's first row to before a place; its chunks begin with this one."""
    there = live & (place > begin)
    found = tl.load(sums + place - 1, mask=there, other=0.0)
    return found + tl.load(bases + chunk + (place - 1 - begin) // CHUNK, mask=there, other=0.0)


@jit
def between(
    sums: tl.tensor,
    bases: tl.tensor,
    first: tl.tensor,
    last: tl.tensor,
    begin: tl.tensor,
    chunk: tl.tensor,
    live: tl.tensor,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """Sum of the terms from first to before last."""
    upper = upto(sums, bases, last, begin, chunk, live, CHUNK)
    return upper - upto(sums, bases, first, begin, chunk, live, CHUNK)


@jit
def first_not_above(
    z: tl.tensor, level: tl.tensor, begin: tl.tensor, end: tl.tensor, live: tl.tensor, STRICT: tl.constexpr
) -> tl.tensor:
    """First place from begin on where z <= level (strict) or z < level; the binary search of each row."""
    low, high = begin, end
    longest = tl.max(end - begin, 0)
    while longest > 0:
        middle = (low + high) // 2
        met = tl.load(z + middle, mask=live & (low < high), other=0.0)
        above = (low < high) & ((met > level) if STRICT else (met >= level))
        low, high = tl.where(above, middle + 1, low), tl.where(above, high, middle)
        longest = longest // 2
    return low


@jit
def first_of_cell(
    z: tl.tensor, cell: tl.tensor, begin: tl.tensor, end: tl.tensor, live: tl.tensor, CELL: tl.constexpr
) -> tl.tensor:
    """First place from begin on that lies in this cell, or a lower one."""
    low, high = begin, end
    longest = tl.max(end - begin, 0)
    while longest > 0:
        middle = (low + high) // 2
        met = tl.load(z + middle, mask=live & (low < high), other=0.0)
        above = (low < high) & (cell_of(met, CELL) > cell)
        low, high = tl.where(above, middle + 1, low), tl.where(above, high, middle)
        longest = longest // 2
    return low


@kernel
def collect(  # noqa: PLR0915  the two sides of a pair, by the same words
    order: tl.tensor,
    weights: tl.tensor,
    anchors: tl.tensor,
    edges: tl.tensor,
    offsets: tl.tensor,
    space: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    n_chunks: tl.tensor,
    grad: tl.tensor,
    EDGE: tl.constexpr,
    WIDTH: tl.constexpr,
    GAP: tl.constexpr,
    SCALE: tl.constexpr,
    ROWS: tl.constexpr,
    ONE: tl.constexpr,
    BOUNDED: tl.constexpr,
    CELL: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """What each row collects as the better and as the worse item of its pairs."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    begin, end, query = owned(offsets, rows, live, n_queries, n_steps)
    chunk = tl.zeros_like(rows)
    if not ONE:
        chunk = tl.load(edges + query, mask=live, other=0).to(tl.int32)
    z, wide = space, n.to(tl.int64)
    rests, squared, depths = space + wide, space + 2 * wide, space + 3 * wide
    masses, moments, base = space + 4 * wide, space + 5 * wide, space + 7 * wide
    here = tl.load(z + rows, mask=live, other=0.0)
    row = tl.load(order + rows, mask=live, other=0)
    w = tl.load(weights + row, mask=live, other=0.0).to(tl.float64)
    floor, ceiling = here - EDGE, here + EDGE
    met = first_not_above(z, floor, begin, end, live, True)
    below = first_not_above(z, ceiling, begin, end, live, False)
    if BOUNDED:
        beyond = first_not_above(z, here - GAP, begin, met, live, True)
        cell = cell_of(tl.load(z + met - 1, mask=live & (met > beyond), other=0.0), CELL)
        split = first_of_cell(z, cell, beyond, met, live, CELL)
        total = tl.zeros_like(here)
        squares = tl.zeros_like(here)
        for part in tl.static_range(2):
            if part == 0:
                one, two = beyond, split
            else:
                one, two = split, met
            some = live & (two > one)
            level = cell_of(tl.load(z + one, mask=some, other=0.0), CELL) - floor
            count = (two - one).to(tl.float64)
            linear = between(rests, base, one, two, begin, chunk, some, CHUNK)
            square = between(squared, base + n_chunks, one, two, begin, chunk, some, CHUNK)
            total += tl.where(some, linear + level * count, 0.0)
            squares += tl.where(some, square + level * (2.0 * linear + level * count), 0.0)
        outside = (beyond - begin).to(tl.float64)
        depth = upto(depths, base + 2 * n_chunks, beyond, begin, chunk, live, CHUNK)
        value = w * (squares + WIDTH * (2.0 * (depth - floor * outside) - WIDTH * outside))
        pull = w * (total + WIDTH * outside)
        last = first_not_above(z, here + GAP, below, end, live, False)
        cell = cell_of(tl.load(z + last - 1, mask=live & (last > below), other=0.0), CELL)
        split = first_of_cell(z, cell, below, last, live, CELL)
        push = WIDTH * between(masses, base + 3 * n_chunks, last, end, begin, chunk, live, CHUNK)
        for part in tl.static_range(2):
            if part == 0:
                one, two = below, split
            else:
                one, two = split, last
            some = live & (two > one)
            level = ceiling - cell_of(tl.load(z + one, mask=some, other=0.0), CELL)
            mass = between(masses, base + 3 * n_chunks, one, two, begin, chunk, some, CHUNK)
            moment = between(moments, base + 4 * n_chunks, one, two, begin, chunk, some, CHUNK)
            push += tl.where(some, level * mass - moment, 0.0)
    else:
        count = (met - begin).to(tl.float64)
        linear = upto(rests, base, met, begin, chunk, live, CHUNK)
        square = upto(squared, base + n_chunks, met, begin, chunk, live, CHUNK)
        value = w * (square - floor * (2.0 * linear - floor * count))
        pull = w * (linear - floor * count)
        mass = between(masses, base + 3 * n_chunks, below, end, begin, chunk, live, CHUNK)
        moment = between(moments, base + 4 * n_chunks, below, end, begin, chunk, live, CHUNK)
        push = (ceiling - tl.load(anchors + rows, mask=live, other=0.0)) * mass - moment
    lost = here - here  # 0, but NaN where a score is not finite: comparisons would hide it
    tl.store(space + 6 * wide + rows, SCALE * value + lost, mask=live)
    slope = (2.0 * SCALE) * (push - pull) + lost
    tl.store(grad + row, slope.to(grad.dtype.element_ty), mask=live)
