"""Losses as torch operators: value and gradient in one forward pass, one node of a compiled graph.

Scores are flat with offsets (None: one list), or (B, n) with a mask of the items (None: all). Everything that
depends on the data, such as leaving masked rows out, happens inside the operator, so that shapes are static.
What computes an operator gives the values of the queries and the gradient of the scores; the gradient cannot
be differentiated again: a second derivative is an error. Half-precision scores are computed in float32: so
are their values, and the gradient is rounded last of all.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from concordant.exceptions import LengthMismatchError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.surrogates.margins import Margin
from concordant.torch import functional
from concordant.torch.lists import Lists
from concordant.torch.operators import operator, working
from concordant.torch.targets import standardized

__all__ = [
    "equal_lists", "lists_of", "made_targets", "operator", "pairwise", "position_hinge", "softmax", "squared",
    "targets",
]  # fmt: skip

Flat = tuple[Tensor, Tensor]


@lru_cache(maxsize=8)
@torch.inference_mode(mode=False)  # they are kept for calls that may want gradients
def equal_lists(n_lists: int, size: int, device: torch.device) -> Lists:
    """Lists of one size; a few are kept, since batches of one shape follow one another."""
    offsets = torch.arange(0, (n_lists + 1) * size, size or 1, device=device)[: n_lists + 1]
    if not size:
        offsets = torch.zeros(n_lists + 1, dtype=torch.int64, device=device)
    return Lists(offsets, size, n_lists * size)


def lists_of(
    rows: Tensor, offsets: Tensor | Lists | None, mask: Tensor | None, longest: int
) -> tuple[Lists, Tensor | None]:
    """Give the lists of the rows that count, and which rows these are (None: all, in their order).

    On a GPU masked rows come last, as lists of their own, so that nobody waits for their number.
    """
    if rows.ndim == 2:
        whole = equal_lists(rows.shape[0], rows.shape[1], rows.device)
        if mask is None:
            return whole, None
        return masked(mask) if mask.device.type == "cpu" else masked_last(mask, whole)
    if isinstance(offsets, Lists):
        return offsets, None
    if offsets is None:
        return equal_lists(1, len(rows), rows.device), None
    lists = Lists(offsets, longest, len(rows)) if longest >= 0 else Lists.of(offsets)
    if lists.n_rows != len(rows):
        raise LengthMismatchError("scores", len(rows), lists.n_rows, "the last of the offsets, a count,")
    return lists, None


def masked(mask: Tensor) -> tuple[Lists, Tensor]:
    """Lists of the rows on the mask, and those rows."""
    return Lists.from_sizes(mask.sum(1)), mask.flatten().nonzero().flatten()


def masked_last(mask: Tensor, whole: Lists) -> tuple[Lists, Tensor]:
    """Lists of the rows on the mask, then lists of the others; and all rows in that order."""
    rows = torch.sort(~mask.flatten(), stable=True).indices
    edges = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0))
    others = (edges[-1] + whole.offsets[1:]).clamp(max=whole.n_rows)
    return Lists(torch.cat([edges, others]), whole.longest, whole.n_rows), rows


def taken(tensor: Tensor, rows: Tensor | None, mask: Tensor | None) -> Tensor:
    """Give the rows that count, flat; what a mask leaves out is 0, whatever stood there."""
    if mask is not None:
        tensor = tensor.masked_fill(~mask, 0)
    flat = tensor.reshape(-1)
    return flat if rows is None else flat[rows]


def scattered(result: Flat, rows: Tensor | None, scores: Tensor) -> Flat:
    """Give the values of the caller's queries, and the gradient where the scores stand."""
    values, grad = result
    n_lists = scores.shape[0] if scores.ndim == 2 else len(values)
    if rows is not None:
        full = grad.new_zeros(scores.numel())
        full[rows] = grad
        grad = full
    if len(values) > n_lists:
        values = values[:n_lists].clone()
    return values, grad.reshape(scores.shape)


def wide(scores: Tensor) -> Tensor:
    """Give half-precision scores as float32."""
    return scores if scores.dtype == working(scores.dtype) else scores.float()


# Annotations of these functions are read by torch, which wants the class itself.


@lru_cache(maxsize=64)
def shape_of(kind: int, edge: float, width: float, scale: float) -> Margin:
    """Give the margin of this formula; a width < 0 has no end."""
    return Margin("", kind, edge, width if width >= 0.0 else math.inf, scale)


def compute_pairwise(
    scores: torch.Tensor,
    weights: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
    kind: int,
    edge: float,
    width: float,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`functional.pairwise`; a width < 0 has no end."""
    shape, work = shape_of(kind, edge, width, scale), wide(scores)
    if mask is not None and functional.tiled(work, work.shape[1], shape):
        lists = equal_lists(work.shape[0], work.shape[1], work.device)
        flat = work.reshape(-1), weights.reshape(-1)
        return scattered(functional.tile_sums(*flat, lists, shape, mask.reshape(-1)), None, scores)
    lists, rows = lists_of(work, offsets, mask, longest)
    flat = taken(work, rows, mask), taken(weights, rows, mask)
    return scattered(functional.pairwise(*flat, lists, shape), rows, scores)


def compute_softmax(
    scores: torch.Tensor,
    weights: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`functional.softmax`."""
    lists, rows = lists_of(scores, offsets, mask, longest)
    flat = taken(wide(scores), rows, mask), taken(weights, rows, mask)
    return scattered(functional.softmax(*flat, lists), rows, scores)


def compute_squared(
    scores: torch.Tensor,
    targets: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
    centred: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`functional.squared`; every row that counts weighs the same."""
    lists, rows = lists_of(scores, offsets, mask, longest)
    flat = taken(wide(scores), rows, mask), taken(targets, rows, mask), counted(scores, rows, mask)
    return scattered(functional.squared(*flat, lists, centred=centred), rows, scores)


def compute_position_hinge(
    scores: torch.Tensor,
    grades: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
    reduction: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`functional.position_hinge`; every row that counts weighs the same."""
    lists, rows = lists_of(scores, offsets, mask, longest)
    flat = taken(wide(scores), rows, mask), taken(grades, rows, mask), counted(scores, rows, mask)
    return scattered(functional.position_hinge(*flat, lists, reduction=reduction), rows, scores)


def counted(scores: Tensor, rows: Tensor | None, mask: Tensor | None) -> Tensor:
    """Give 1 for each row that counts; others may come behind them."""
    ones = torch.ones_like(scores) if mask is None else mask.to(scores.dtype)
    return taken(ones, rows, mask)


def compute_targets(
    grades: torch.Tensor,
    offsets: torch.Tensor | None,
    mask: torch.Tensor | None,
    longest: int,
    metric: str,
    assume: str,
) -> torch.Tensor:
    """`made_targets` of a metric that can be read back from its name; assume "": nothing."""
    made = made_targets(grades, offsets, mask, longest, read_metric(metric), assume or None)
    shared = made.untyped_storage().data_ptr() == grades.untyped_storage().data_ptr()
    return made.clone() if shared else made.contiguous()  # no operator may give its input back


def made_targets(
    grades: Tensor,
    offsets: Tensor | Lists | None,
    mask: Tensor | None,
    longest: int,
    metric: Metric,
    assume: str | None,
) -> Tensor:
    """Give the targets where the grades stand; 0 off the mask."""
    lists, rows = lists_of(grades, offsets, mask, longest)
    made = standardized(metric, taken(grades, rows, mask), lists, assume)
    if rows is not None:
        full = made.new_zeros(grades.numel())
        full[rows] = made
        made = full
    return made.reshape(grades.shape)


targets: Any = torch.library.custom_op("concordant::targets", compute_targets, mutates_args=())


def like_grades(grades: Tensor, *others: object) -> Tensor:
    """Shape of the targets."""
    del others
    return torch.empty_like(grades, dtype=torch.float64, memory_format=torch.contiguous_format)


targets.register_fake(like_grades)


pairwise = operator("pairwise", compute_pairwise)
softmax = operator("softmax", compute_softmax)
squared = operator("squared", compute_squared)
position_hinge = operator("position_hinge", compute_position_hinge)
