"""Running sums of lists.

Lists are cut into chunks: sums run within a chunk, and a second launch runs over what the chunks of a list
end with. The order of additions is fixed: equal bits from run to run.
"""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from concordant.torch.kernels.common import blocks, jit, kernel, launching, steps

__all__ = ["CHUNK", "chunked", "last_of", "rows_of", "run_over", "running_sums"]

CHUNK = 1024  # rows of a chunk


def chunked(offsets: Tensor, n: int) -> tuple[Tensor, int]:
    """First chunk of each list, and a bound on how many there are; one list needs no table."""
    n_queries = len(offsets) - 1
    if n_queries == 1:
        return offsets, blocks(n, CHUNK)
    counts = (offsets.diff() + (CHUNK - 1)) // CHUNK
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0)), n // CHUNK + n_queries


def run_over(bases: Tensor, edges: Tensor, n_chunks: int, n_queries: int, k: int) -> None:
    """Turn what chunks end with into what stands before each in its list."""
    size = CHUNK if n_queries == 1 else 64
    run_totals[(n_queries, k)](bases, edges, n_chunks, ONE=n_queries == 1, SIZE=size)


def running_sums(values: Tensor, offsets: Tensor) -> Tensor:
    """Sums of each list's rows up to and with each row; several sequences are rows of a table."""
    table = values.reshape(-1, values.shape[-1]).contiguous()
    (k, n), n_queries = table.shape, len(offsets) - 1
    sums = torch.empty(table.shape, dtype=torch.float64, device=values.device)
    if n and k:
        edges, n_chunks = chunked(offsets, n)
        bases = torch.empty(k * n_chunks, dtype=torch.float64, device=values.device)
        known = edges, offsets, n, n_queries, steps(n_queries), n_chunks
        chosen = {"ONE": n_queries == 1, "CHUNK": CHUNK}
        with launching(table):
            chunk_sums[(n_chunks, k)](table, sums, bases, *known, **chosen)
            run_over(bases, edges, n_chunks, n_queries, k)
            add_bases[(n_chunks, k)](sums, bases, *known, **chosen)
    return sums.reshape(values.shape)


@jit
def rows_of(
    edges: tl.tensor,
    offsets: tl.tensor,
    n: tl.tensor,
    n_queries: tl.tensor,
    n_steps: tl.tensor,
    ONE: tl.constexpr,
    CHUNK: tl.constexpr,
) -> tl.tensor:
    """Rows of this program's chunk, whether there are such, and the first row of their list."""
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
def last_of(sums: tl.tensor, CHUNK: tl.constexpr) -> tl.tensor:
    """Sum that a chunk ends with, by the same additions."""
    return tl.sum(tl.where(tl.arange(0, CHUNK) == CHUNK - 1, sums, 0.0), 0)


@kernel
def chunk_sums(
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
    """Running sums of one chunk of one sequence, and what it ends with."""
    rows, live, _ = rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    number = tl.program_id(1).to(tl.int64)
    found = tl.cumsum(tl.load(values + number * n + rows, mask=live, other=0.0).to(tl.float64), 0)
    tl.store(sums + number * n + rows, found, mask=live)
    tl.store(bases + number * n_chunks + tl.program_id(0), last_of(found, CHUNK))


@kernel
def run_totals(
    bases: tl.tensor, edges: tl.tensor, n_chunks: tl.tensor, ONE: tl.constexpr, SIZE: tl.constexpr
) -> None:
    """Turn what chunks end with into what stands before each; one program per list and sequence."""
    if ONE:
        start, stop = 0, n_chunks
    else:
        start = tl.load(edges + tl.program_id(0)).to(tl.int32)
        stop = tl.load(edges + tl.program_id(0) + 1).to(tl.int32)
    own = bases + tl.program_id(1).to(tl.int64) * n_chunks
    before = tl.full((), 0.0, tl.float64)
    for first in range(start, stop, SIZE):
        places = first + tl.arange(0, SIZE)
        ends = tl.load(own + places, mask=places < stop, other=0.0)
        found = tl.cumsum(ends, 0)
        tl.store(own + places, before + (found - ends), mask=places < stop)
        before += last_of(found, SIZE)


@kernel
def add_bases(
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
    """Add what stands before the chunk."""
    rows, live, _ = rows_of(edges, offsets, n, n_queries, n_steps, ONE, CHUNK)
    number = tl.program_id(1).to(tl.int64)
    found = tl.load(sums + number * n + rows, mask=live, other=0.0)
    base = tl.load(bases + number * n_chunks + tl.program_id(0))
    tl.store(sums + number * n + rows, found + base, mask=live)
