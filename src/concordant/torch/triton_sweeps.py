"""Triton kernels: running sums, and sweeps over sorted scores; imported when tensors are on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from concordant.exceptions import ParameterError
from concordant.surrogates.margins import Margin

# Shared by the kernels: compilation, and the query of a row.

MOST = 2**30  # rows of a launch: kernels count them in 32 bits, and add two such numbers
HERE: AbstractContextManager[Any] = nullcontext()

Function = TypeVar("Function", bound=Callable[..., Any])

jit = cast("Callable[[Callable[..., Any]], Any]", triton.jit)
# Numbers of rows and lists vary by batch: do not recompile kernels for special values.
kernel = cast(
    "Callable[[Callable[..., Any]], Any]",
    triton.jit(do_not_specialize=["n", "n_chunks", "n_queries", "n_rows", "n_steps"]),
)


def launching(rows: Tensor) -> AbstractContextManager[Any]:
    """Make the device of the rows the current one, on which Triton launches; no-op if it is already."""
    if rows.shape[-1] > MOST:
        raise ParameterError("rows", rows.shape[-1], f"at most {MOST} on a GPU", hint="Split the batch.")
    if not rows.is_cuda or rows.get_device() == torch.cuda.current_device():
        return HERE
    return cast("AbstractContextManager[Any]", torch.cuda.device(rows.device))


def blocks(n: int, size: int) -> int:
    """Return the number of blocks of this size that hold n rows."""
    return -(-n // size)


def steps(n_queries: int) -> int:
    """Return the number of steps of a binary search over the offsets."""
    return max(n_queries - 1, 0).bit_length()


@jit
def find_owners(
    offsets: tl.tensor, rows: tl.tensor, live: tl.tensor, n_queries: tl.tensor, n_steps: tl.tensor
) -> tl.tensor:
    """Return the start and end of each row's query, and the query; 0 for rows that are not live."""
    low = tl.zeros_like(rows)
    high = low + n_queries
    for _ in range(n_steps):
        middle = (low + high) // 2
        right = tl.load(offsets + middle, mask=live, other=0) <= rows
        low = tl.where(right, middle, low)
        high = tl.where(right, high, middle)
    begin = tl.load(offsets + low, mask=live, other=0).to(tl.int32)
    end = tl.load(offsets + low + 1, mask=live, other=0).to(tl.int32)
    return begin, end, low


# Running sums of lists.
#
# Lists are cut into chunks: sums run within a chunk, and a second launch runs over the totals of the chunks
# of each list. The order of additions is fixed: equal bits from run to run.

CHUNK = 1024  # rows of a chunk


def _chunk_lists(offsets: Tensor, n: int) -> tuple[Tensor, int]:
    """Return the first chunk of each list, and a bound on the number of chunks; one list needs no table."""
    n_queries = len(offsets) - 1
    if n_queries == 1:
        return offsets, blocks(n, CHUNK)
    counts = (offsets.diff() + (CHUNK - 1)) // CHUNK
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0)), n // CHUNK + n_queries


def _run_over(bases: Tensor, edges: Tensor, n_chunks: int, n_queries: int, k: int) -> None:
    """Turn chunk totals into the sum before each chunk in its list."""
    size = CHUNK if n_queries == 1 else 64
    _run_totals[(n_queries, k)](bases, edges, n_chunks, ONE=n_queries == 1, SIZE=size)


def running_sums(values: Tensor, offsets: Tensor) -> Tensor:
    """Return running sums within each list; several sequences are rows of a table."""
    table = values.reshape(-1, values.shape[-1]).contiguous()
    (k, n), n_queries = table.shape, len(offsets) - 1
    sums = torch.empty(table.shape, dtype=torch.float64, device=values.device)
    if n and k:
        edges, n_chunks = _chunk_lists(offsets, n)
        bases = torch.empty(k * n_chunks, dtype=torch.float64, device=values.device)
        layout = edges, offsets, n, n_queries, steps(n_queries), n_chunks
        constants = {"ONE": n_queries == 1, "CHUNK": CHUNK}
        with launching(table):
            _chunk_sums[(n_chunks, k)](table, sums, bases, *layout, **constants)
            _run_over(bases, edges, n_chunks, n_queries, k)
            _add_bases[(n_chunks, k)](sums, bases, *layout, **constants)
    return sums.reshape(values.shape)


@jit
def _rows_of(
    edges: tl.tensor,
    offsets: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    ONE: tl.constexpr,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """Return the rows of this program's chunk, which of them exist, and the first row of their list."""
    chunk = tl.program_id(0)
    if ONE:
        begin, end, first = 0, n, chunk * CHUNK
    else:
        low, high = 0, n_queries
        for _ in range(n_steps):
            middle = (low + high) // 2
            right = tl.load(edges + middle) <= chunk
            low, high = tl.where(right, middle, low), tl.where(right, high, middle)
        begin = tl.load(offsets + low).to(tl.int32)
        end = tl.load(offsets + low + 1).to(tl.int32)
        first = begin + (chunk - tl.load(edges + low).to(tl.int32)) * CHUNK
    rows = first + tl.arange(0, CHUNK)
    return rows, rows < end, begin


@jit
def _last_of(sums: tl.tensor, CHUNK: tl.constexpr) -> tl.tensor:
    """Return the total of a chunk, by the same additions."""
    return tl.sum(tl.where(tl.arange(0, CHUNK) == CHUNK - 1, sums, 0.0), 0)


@kernel
def _chunk_sums(
    values: tl.tensor,
    sums: tl.tensor,
    bases: tl.tensor,
    edges: tl.tensor,
    offsets: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    n_chunks: tl.tensor,
    ONE: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """Compute the running sums of a chunk of a sequence, and its total."""
    rows, live, _ = _rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    number = tl.program_id(1).to(tl.int64)
    chunk_sums = tl.cumsum(tl.load(values + number * n + rows, mask=live, other=0.0).to(tl.float64), 0)
    tl.store(sums + number * n + rows, chunk_sums, mask=live)
    tl.store(bases + number * n_chunks + tl.program_id(0), _last_of(chunk_sums, CHUNK))


@kernel
def _run_totals(
    bases: tl.tensor, edges: tl.tensor, n_chunks: tl.tensor, ONE: tl.constexpr, SIZE: tl.constexpr
) -> None:
    """Turn chunk totals into the sum before each chunk; one program per list and sequence."""
    if ONE:
        start, stop = 0, n_chunks
    else:
        start = tl.load(edges + tl.program_id(0)).to(tl.int32)
        stop = tl.load(edges + tl.program_id(0) + 1).to(tl.int32)
    list_bases = bases + tl.program_id(1).to(tl.int64) * n_chunks
    before = tl.full((), 0.0, tl.float64)
    for first in range(start, stop, SIZE):
        chunk_numbers = first + tl.arange(0, SIZE)
        ends = tl.load(list_bases + chunk_numbers, mask=chunk_numbers < stop, other=0.0)
        totals = tl.cumsum(ends, 0)
        tl.store(list_bases + chunk_numbers, before + (totals - ends), mask=chunk_numbers < stop)
        before += _last_of(totals, SIZE)


@kernel
def _add_bases(
    sums: tl.tensor,
    bases: tl.tensor,
    edges: tl.tensor,
    offsets: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    n_chunks: tl.tensor,
    ONE: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """Add the sum before the chunk."""
    rows, live, _ = _rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    number = tl.program_id(1).to(tl.int64)
    chunk_sums = tl.load(sums + number * n + rows, mask=live, other=0.0)
    base = tl.load(bases + number * n_chunks + tl.program_id(0))
    tl.store(sums + number * n + rows, chunk_sums + base, mask=live)


# Sweeps over sorted scores: like `concordant.torch.torch_sweep`, in few launches.

ROWS = 128  # rows per program that searches


def collect_pairs(
    ordered: Tensor, order: Tensor, weights: Tensor, anchors: Tensor, offsets: Tensor, shape: Margin
) -> tuple[Tensor, Tensor]:
    """Return the value (by sorted row) and the gradient (by row) of each row.

    `ordered` are the scores, each query's highest first, `order` their rows; `anchors` (of the squared hinge)
    one number per row, near which most of its query's weight lies, relative to the highest score.
    """
    n, n_queries, bounded = len(ordered), len(offsets) - 1, math.isfinite(shape.width)
    edges, n_chunks = _chunk_lists(offsets, n)
    # A single allocation, since each takes time: z, five running sums, values, and the chunks' bases.
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
    layout = edges, offsets, space, n, n_queries, steps(n_queries), n_chunks
    with launching(ordered):
        _prepare[(n_chunks,)](ordered, order, weights, anchors, *layout, **common)
        _run_over(bases, edges, n_chunks, n_queries, 5)
        _collect[(blocks(n, ROWS),)](
            order, weights, anchors, *layout, grad,
            EDGE=shape.edge, WIDTH=width, GAP=shape.edge - width, SCALE=shape.scale, ROWS=ROWS, **common,
        )  # fmt: skip
    return space[6 * n : 7 * n], grad


@jit
def _cell_of(z: tl.tensor, CELL: tl.constexpr) -> tl.tensor:
    """Return the middle of the cell that z lies in."""
    return tl.floor(z * (1.0 / CELL) + 0.5) * CELL


@kernel
def _prepare(
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
    """Compute scores relative to the highest of their query, five running sums of the chunk, and totals."""
    rows, live, begin = _rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    # Programs without a chunk stand at the last list, which may be empty.
    top = tl.load(ordered + begin, mask=begin < n, other=0.0).to(tl.float64)
    here = tl.load(ordered + rows, mask=live, other=0.0).to(tl.float64) - top
    here = tl.where(live, here, 0.0)
    tl.store(space + rows, here, mask=live)
    w = tl.load(weights + tl.load(order + rows, mask=live, other=0), mask=live, other=0.0).to(tl.float64)
    if BOUNDED:
        rest = here - _cell_of(here, CELL)
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
        chunk_sums = tl.cumsum(term, 0)
        tl.store(space + (number + 1) * wide + rows, chunk_sums, mask=live)
        tl.store(bases + number * n_chunks, _last_of(chunk_sums, CHUNK))
        tl.debug_barrier()  # the next sums use the same scratch memory


@jit
def _upto(
    sums: tl.tensor,
    bases: tl.tensor,
    position: tl.tensor,
    begin: tl.tensor,
    chunk: tl.tensor,
    live: tl.tensor,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """Return the sum from the list's first row to before a position; `chunk` is the list's first chunk."""
    there = live & (position > begin)
    chunk_sum = tl.load(sums + position - 1, mask=there, other=0.0)
    return chunk_sum + tl.load(bases + chunk + (position - 1 - begin) // CHUNK, mask=there, other=0.0)


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
    """Return the sum of the terms from first to before last."""
    upper = _upto(sums, bases, last, begin, chunk, live, CHUNK)
    return upper - _upto(sums, bases, first, begin, chunk, live, CHUNK)


@jit
def _first_not_above(
    z: tl.tensor, level: tl.tensor, begin: tl.tensor, end: tl.tensor, live: tl.tensor, STRICT: tl.constexpr
) -> tl.tensor:
    """Return the first position from begin on with z <= level (strict) or z < level, by binary search."""
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
def _first_of_cell(
    z: tl.tensor, cell: tl.tensor, begin: tl.tensor, end: tl.tensor, live: tl.tensor, CELL: tl.constexpr
) -> tl.tensor:
    """Return the first position from begin on that lies in this cell, or a lower one."""
    low, high = begin, end
    longest = tl.max(end - begin, 0)
    while longest > 0:
        middle = (low + high) // 2
        met = tl.load(z + middle, mask=live & (low < high), other=0.0)
        above = (low < high) & (_cell_of(met, CELL) > cell)
        low, high = tl.where(above, middle + 1, low), tl.where(above, high, middle)
        longest = longest // 2
    return low


@kernel
def _collect(  # noqa: PLR0915  # the two sides of a pair share their names
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
    """Collect the terms of each row as the better and as the worse item of its pairs."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = rows < n
    begin, end, query = find_owners(offsets, rows, live, n_queries, n_steps)
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
    met = _first_not_above(z, floor, begin, end, live, True)
    below = _first_not_above(z, ceiling, begin, end, live, False)
    if BOUNDED:
        beyond = _first_not_above(z, here - GAP, begin, met, live, True)
        cell = _cell_of(tl.load(z + met - 1, mask=live & (met > beyond), other=0.0), CELL)
        split = _first_of_cell(z, cell, beyond, met, live, CELL)
        total = tl.zeros_like(here)
        squares = tl.zeros_like(here)
        for part in tl.static_range(2):
            if part == 0:
                part_start, part_stop = beyond, split
            else:
                part_start, part_stop = split, met
            some = live & (part_stop > part_start)
            level = _cell_of(tl.load(z + part_start, mask=some, other=0.0), CELL) - floor
            count = (part_stop - part_start).to(tl.float64)
            linear = between(rests, base, part_start, part_stop, begin, chunk, some, CHUNK)
            square = between(squared, base + n_chunks, part_start, part_stop, begin, chunk, some, CHUNK)
            total += tl.where(some, linear + level * count, 0.0)
            squares += tl.where(some, square + level * (2.0 * linear + level * count), 0.0)
        outside = (beyond - begin).to(tl.float64)
        depth = _upto(depths, base + 2 * n_chunks, beyond, begin, chunk, live, CHUNK)
        value = w * (squares + WIDTH * (2.0 * (depth - floor * outside) - WIDTH * outside))
        pull = w * (total + WIDTH * outside)
        last = _first_not_above(z, here + GAP, below, end, live, False)
        cell = _cell_of(tl.load(z + last - 1, mask=live & (last > below), other=0.0), CELL)
        split = _first_of_cell(z, cell, below, last, live, CELL)
        push = WIDTH * between(masses, base + 3 * n_chunks, last, end, begin, chunk, live, CHUNK)
        for part in tl.static_range(2):
            if part == 0:
                part_start, part_stop = below, split
            else:
                part_start, part_stop = split, last
            some = live & (part_stop > part_start)
            level = ceiling - _cell_of(tl.load(z + part_start, mask=some, other=0.0), CELL)
            mass = between(masses, base + 3 * n_chunks, part_start, part_stop, begin, chunk, some, CHUNK)
            moment = between(moments, base + 4 * n_chunks, part_start, part_stop, begin, chunk, some, CHUNK)
            push += tl.where(some, level * mass - moment, 0.0)
    else:
        count = (met - begin).to(tl.float64)
        linear = _upto(rests, base, met, begin, chunk, live, CHUNK)
        square = _upto(squared, base + n_chunks, met, begin, chunk, live, CHUNK)
        value = w * (square - floor * (2.0 * linear - floor * count))
        pull = w * (linear - floor * count)
        mass = between(masses, base + 3 * n_chunks, below, end, begin, chunk, live, CHUNK)
        moment = between(moments, base + 4 * n_chunks, below, end, begin, chunk, live, CHUNK)
        push = (ceiling - tl.load(anchors + rows, mask=live, other=0.0)) * mass - moment
    lost = here - here  # 0, or NaN if a score is not finite: comparisons would hide it
    tl.store(space + 6 * wide + rows, SCALE * value + lost, mask=live)
    slope = (2.0 * SCALE) * (push - pull) + lost
    tl.store(grad + row, slope.to(grad.dtype.element_ty), mask=live)
