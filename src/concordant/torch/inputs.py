"""How scores and labels are given: flat with offsets, padded with a mask, or nested; all are read alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from concordant.exceptions import LengthMismatchError, ParameterError, ShapeError
from concordant.torch.lists import Lists

__all__ = ["Given", "as_numbers", "check_floating", "check_real", "read", "sizes"]


class Given(NamedTuple):
    """Scores and labels, flat (offsets None: one list) or (B, n) with a mask (None: all are items)."""

    scores: Tensor
    labels: Tensor
    offsets: Tensor | Lists | None
    mask: Tensor | None
    longest: int  # -1: not known


def read(scores: Tensor, labels: Any, offsets: Any = None, mask: Tensor | None = None) -> Given:
    """Read any layout; labels stand as the scores do."""
    check_real(scores, "scores")
    if scores.is_nested:
        if offsets is not None or mask is not None:
            raise ParameterError("offsets and mask", "given", "left out: nested scores know their lists")
        return read_nested(scores, labels)
    labels = as_numbers(labels, "y", scores.device)
    if labels.shape != scores.shape:
        raise ShapeError("y", tuple(labels.shape), f"{tuple(scores.shape)}, as scores has")
    if scores.ndim == 1 and mask is None:
        return Given(scores, labels, *read_offsets(offsets, scores))
    if scores.ndim == 2 and offsets is None:
        return Given(scores, labels, None, read_mask(mask, scores), scores.shape[1])
    expected = "one number per row with offsets, or (B, n), one row per list, with a mask (True: an item)"
    raise ShapeError("scores", tuple(scores.shape), expected)


def check_real(given: Any, name: str) -> None:
    """Refuse what is no tensor, and complex numbers."""
    if not isinstance(given, Tensor) or given.is_complex():
        seen = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise ParameterError(name, str(seen), "a tensor of real numbers")


def check_floating(given: Tensor, name: str) -> None:
    """Refuse whole numbers: they have no gradient."""
    if not given.is_floating_point():
        raise ParameterError(name, str(given.dtype), "of a floating-point type")


def as_numbers(given: Any, name: str, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Give a tensor of real numbers, on the device."""
    try:
        read = torch.as_tensor(given, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ParameterError(name, type(given).__name__, f"numbers that torch can read ({error})") from error
    check_real(read, name)
    return read if dtype is None else torch.as_tensor(given, dtype=dtype, device=device)


def read_offsets(offsets: Any, scores: Tensor) -> tuple[Tensor | Lists | None, None, int]:
    """Offsets of flat scores, read and checked once; under `torch.compile` the operators do that."""
    if offsets is None:
        return None, None, scores.shape[0]
    compiling = torch.compiler.is_compiling()
    if not isinstance(offsets, Lists):
        if compiling:
            return as_numbers(offsets, "offsets", scores.device), None, -1
        own = offsets.device if isinstance(offsets, Tensor) else torch.device("cpu")
        offsets = Lists.of(as_numbers(offsets, "offsets", own))
    if offsets.n_rows != scores.shape[0]:
        raise LengthMismatchError("scores", scores.shape[0], offsets.n_rows, "the lists' data")
    if offsets.offsets.device != scores.device:
        offsets = offsets.to(scores.device)
    return offsets.offsets if compiling else offsets, None, offsets.longest


def read_mask(mask: Any, scores: Tensor) -> Tensor | None:
    """A mask of the items."""
    if mask is None:
        return None
    read = as_numbers(mask, "mask", scores.device)
    if read.dtype != torch.bool or read.shape != scores.shape:
        seen = f"{read.dtype} of shape {tuple(read.shape)}"
        raise ParameterError("mask", seen, f"bool of shape {tuple(scores.shape)}, True where an item stands")
    return read


def read_nested(scores: Tensor, labels: Any) -> Given:
    """Nested tensors, jagged or strided, as flat ones."""
    if not getattr(labels, "is_nested", False):
        raise ParameterError("y", type(labels).__name__, "nested, as the scores are")
    check_real(labels, "y")
    flat, offsets = unnested(scores, "scores")
    flat_labels, own = unnested(labels, "y")
    if flat_labels.shape != flat.shape:
        raise ShapeError("y", tuple(flat_labels.shape), f"{tuple(flat.shape)} in all, as scores has")
    # Under torch.compile lists of other sizes are other shapes: there is nothing to look at.
    if own is not offsets and not torch.compiler.is_compiling() and not torch.equal(own, offsets):
        raise ShapeError("y", tuple(own.diff().tolist()), f"lists of sizes {tuple(offsets.diff().tolist())}")
    return Given(flat, flat_labels, *read_offsets(offsets, flat))


def unnested(nested: Any, name: str) -> tuple[Tensor, Tensor]:
    """Give the rows of all lists, and where each list starts."""
    if nested.layout == torch.jagged:
        if nested.lengths() is not None:  # rows between the lists that are none of theirs
            nested = torch.nested.as_nested_tensor(list(nested.unbind()), layout=torch.jagged)
        flat, offsets = nested.values(), nested.offsets()
    else:
        parts = nested.unbind()
        flat = torch.cat(parts) if parts else torch.empty(0, device=nested.device)
        counts = torch.tensor([0, *(len(part) for part in parts)], device=nested.device)
        offsets = counts.cumsum(0)
    if flat.ndim != 1:
        raise ShapeError(name, tuple(flat.shape), "lists of single numbers")
    return flat, offsets


def sizes(given: Given) -> Tensor | int:
    """Items of each list; one number where all have as many."""
    if given.mask is not None:
        return given.mask.sum(1)
    if isinstance(given.offsets, Lists):
        return given.offsets.sizes
    if given.offsets is not None:
        return given.offsets.diff()
    return given.scores.shape[-1]
