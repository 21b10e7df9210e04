"""Running sums of lists, each from its first row on, in a fixed order: equal bits from run to run."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from concordant.torch.lists import Lists

__all__ = ["SHORT", "has_triton", "is_short", "kernels_serve", "running"]

SHORT = {torch.float32: 16_384, torch.float64: 8_192}
"""Items up to which, on a GPU, comparing every pair is faster than sorting (`benchmarks`)."""


@cache
def has_triton() -> bool:
    """Whether kernels can be compiled here."""
    return find_spec("triton") is not None


def kernels_serve(tensor: Tensor) -> bool:
    """Whether Triton kernels can read this tensor."""
    return tensor.is_cuda and has_triton()


def is_short(scores: Tensor, longest: int) -> bool:
    """Whether comparing every pair, a tile at a time, is the fastest way on the device of the scores."""
    return kernels_serve(scores) and longest <= SHORT.get(scores.dtype, 0)


def running(values: Tensor, lists: Lists) -> Tensor:
    """Sums of each list's rows up to and with each row; one sequence (n_rows), or several (k, n_rows).

    >>> running(torch.tensor([1.0, 2.0, 4.0]), Lists.of([0, 2, 3])).tolist()
    [1.0, 3.0, 4.0]
    """
    if kernels_serve(values):
        from concordant.torch.kernels.sums import running_sums

        return running_sums(values, lists.offsets)
    if lists.n_queries == 1 or values.numel() == 0:
        return values.cumsum(-1)
    sums = torch.empty_like(values)
    for part in lists.rounds:  # no sum carries the digits of another list
        part.put(part.table(values).cumsum(-1), sums)  # behind a list's last row anything may stand
    return sums
