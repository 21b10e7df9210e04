"""Layouts of scores and labels: flat with offsets, padded with a mask, or nested."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from concordant.exceptions import LengthMismatchError, ParameterError, ShapeError
from concordant.torch.lists import Lists


class ScoredLists(NamedTuple):
    """Scores and labels, flat (offsets None: a single list) or (B, n) with a mask (None: all are items)."""

    scores: Tensor
    labels: Tensor
    offsets: Tensor | Lists | None
    mask: Tensor | None
    longest: int  # -1 if unknown


def read_layout(scores: Tensor, labels: Any, offsets: Any = None, mask: Tensor | None = None) -> ScoredLists:
    """Read any layout; labels have the layout of the scores."""
    check_real(scores, "scores")
    if scores.is_nested:
        if offsets is not None or mask is not None:
            raise ParameterError.because(
                "offsets or mask was given, but nested scores already define the lists. Leave them out."
            )
        return _read_nested(scores, labels)
    labels = as_numbers(labels, "y", scores.device)
    if labels.shape != scores.shape:
        raise ShapeError("y", tuple(labels.shape), f"{tuple(scores.shape)}, as scores has")
    if scores.ndim == 1 and mask is None:
        return ScoredLists(scores, labels, *_read_offsets(offsets, scores))
    if scores.ndim == 2 and offsets is None:
        return ScoredLists(scores, labels, None, _read_mask(mask, scores), scores.shape[1])
    expected = "one number per row with offsets, or (B, n), one row per list, with a mask (True: an item)"
    raise ShapeError("scores", tuple(scores.shape), expected)


def check_real(tensor: Any, name: str) -> None:
    """Raise unless the input is a tensor of real numbers."""
    if not isinstance(tensor, Tensor) or tensor.is_complex():
        type_text = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise ParameterError.because(f"{name} must be a tensor of real numbers, got {type_text}.")


def check_floating(tensor: Tensor, name: str) -> None:
    """Raise on integer tensors, which have no gradient."""
    if not tensor.is_floating_point():
        raise ParameterError.because(f"{name} must be a floating-point tensor, got {tensor.dtype}.")


def as_numbers(values: Any, name: str, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Convert values to a tensor of real numbers on the device."""
    try:
        tensor = torch.as_tensor(values, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ParameterError.because(
            f"{name} cannot be converted to a tensor ({type(values).__name__}: {error})."
        ) from error
    check_real(tensor, name)
    return tensor if dtype is None else torch.as_tensor(values, dtype=dtype, device=device)


def _read_offsets(offsets: Any, scores: Tensor) -> tuple[Tensor | Lists | None, None, int]:
    """Check the offsets of flat scores once; under `torch.compile` the operators do that."""
    if offsets is None:
        return None, None, scores.shape[0]
    compiling = torch.compiler.is_compiling()
    if not isinstance(offsets, Lists):
        if compiling:
            return as_numbers(offsets, "offsets", scores.device), None, -1
        home_device = offsets.device if isinstance(offsets, Tensor) else torch.device("cpu")
        offsets = Lists.from_offsets(as_numbers(offsets, "offsets", home_device))
    if offsets.n_rows != scores.shape[0]:
        raise LengthMismatchError("scores", scores.shape[0], offsets.n_rows, "the lists' data")
    if offsets.offsets.device != scores.device:
        offsets = offsets.to(scores.device)
    return offsets.offsets if compiling else offsets, None, offsets.longest


def _read_mask(mask: Any, scores: Tensor) -> Tensor | None:
    if mask is None:
        return None
    items = as_numbers(mask, "mask", scores.device)
    if items.dtype != torch.bool or items.shape != scores.shape:
        description = f"{items.dtype} of shape {tuple(items.shape)}"
        raise ParameterError.because(
            f"mask must be a bool tensor of shape {tuple(scores.shape)}, True for items, got {description}."
        )
    return items


def _read_nested(scores: Tensor, labels: Any) -> ScoredLists:
    """Convert nested tensors, jagged or strided, to flat ones."""
    if not getattr(labels, "is_nested", False):
        raise ParameterError.because(f"y must be nested like the scores, got {type(labels).__name__}.")
    check_real(labels, "y")
    flat, offsets = _unnested(scores, "scores")
    flat_labels, label_offsets = _unnested(labels, "y")
    if flat_labels.shape != flat.shape:
        raise ShapeError("y", tuple(flat_labels.shape), f"{tuple(flat.shape)} in all, as scores has")
    # Under torch.compile lists of other sizes are other shapes: no check is possible.
    if (
        label_offsets is not offsets
        and not torch.compiler.is_compiling()
        and not torch.equal(label_offsets, offsets)
    ):
        raise ShapeError(
            "y", tuple(label_offsets.diff().tolist()), f"lists of sizes {tuple(offsets.diff().tolist())}"
        )
    return ScoredLists(flat, flat_labels, *_read_offsets(offsets, flat))


def _unnested(nested: Any, name: str) -> tuple[Tensor, Tensor]:
    """Return the rows of all lists, and the offsets of the lists."""
    if nested.layout == torch.jagged:
        if nested.lengths() is not None:  # rows between the lists belong to none of them
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


def list_sizes(batch: ScoredLists) -> Tensor | int:
    """Return the number of items of each list; a single number if all lists are equally long."""
    if batch.mask is not None:
        return batch.mask.sum(1)
    if isinstance(batch.offsets, Lists):
        return batch.offsets.sizes
    if batch.offsets is not None:
        return batch.offsets.diff()
    return batch.scores.shape[-1]
