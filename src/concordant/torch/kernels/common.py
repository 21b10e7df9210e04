"""What the kernels share: how they are compiled, and which query a row belongs to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from concordant.exceptions import ParameterError

__all__ = ["blocks", "jit", "kernel", "launching", "owned", "steps"]

MOST = 2**30  # rows of a launch: kernels count them by 32 bits, and add two such numbers
HERE: AbstractContextManager[Any] = nullcontext()

Function = TypeVar("Function", bound=Callable[..., Any])

jit = cast("Callable[[Callable[..., Any]], Any]", triton.jit)
# Numbers of rows and lists change from batch to batch: kernels are not compiled anew for lucky ones.
kernel = cast(
    "Callable[[Callable[..., Any]], Any]",
    triton.jit(do_not_specialize=["n", "n_chunks", "n_queries", "n_rows", "n_steps"]),
)


def launching(rows: Tensor) -> AbstractContextManager[Any]:
    """Make the device of the rows the current one, on which Triton launches; nothing where it is."""
    if rows.shape[-1] > MOST:
        raise ParameterError("rows", rows.shape[-1], f"{MOST} at most on a GPU: split the batch")
    if not rows.is_cuda or rows.get_device() == torch.cuda.current_device():
        return HERE
    return cast("AbstractContextManager[Any]", torch.cuda.device(rows.device))


def blocks(n: int, size: int) -> int:
    """How many blocks of this size hold n rows."""
    return -(-n // size)


def steps(n_queries: int) -> int:
    """How often a binary search over the offsets halves them."""
    return max(n_queries - 1, 0).bit_length()


@jit
def owned(
    offsets: tl.tensor, rows: tl.tensor, live: tl.tensor, n_queries: tl.tensor, n_steps: tl.tensor
) -> tl.tensor:
    """First row of each row's query, the row behind its last, and the query; 0 for rows that are not live."""
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
