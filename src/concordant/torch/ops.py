"""Losses as torch operators: value and gradient in a single forward pass, one node of a compiled graph.

Scores are flat with offsets (None: a single list), or (B, n) with a mask of the items (None: all). Everything
that depends on the data, such as dropping masked rows, happens inside the operator, so that shapes are
static. The compute function of an operator returns the values of the queries and the gradient of the scores;
the gradient cannot be differentiated again: a second derivative is an error. Half-precision scores are
computed in float32: so are their values, and the gradient is rounded at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from concordant.exceptions import LengthMismatchError, ParameterError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.surrogates.margins import Margin
from concordant.torch import functional
from concordant.torch.lists import Lists
from concordant.torch.targets import standardize_grades

# Turning a function that returns values and gradients into a torch operator.

Compute = Callable[..., tuple[Tensor, ...]]


def _n_lists(labels: Tensor, offsets: Tensor | Lists | None) -> Any:
    if labels.ndim == 2:
        return labels.shape[0]
    if isinstance(offsets, Lists):
        return offsets.n_queries
    return 1 if offsets is None else offsets.shape[0] - 1


def _scale_rows(grad: Tensor, cotangents: Tensor, offsets: Tensor | Lists | None, *, flat: bool) -> Tensor:
    """Multiply the rows of each list by its number; a row may be a vector."""
    if flat and isinstance(offsets, Lists):
        cotangents = offsets.spread(cotangents)
    elif flat and isinstance(offsets, Tensor):
        cotangents = torch.repeat_interleave(cotangents, offsets.diff(), output_size=grad.shape[0])
    return grad * cotangents.reshape(-1, *(1,) * (grad.ndim - 1))


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which scores of this dtype are computed: float32 for halves."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


class UntracedGradient(torch.autograd.Function):
    """A precomputed gradient: it depends on the sources, but raises if differentiated."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor, *sources: Tensor) -> Tensor:
        """Return the gradient unchanged."""
        del ctx, sources
        return grad.detach()

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Raise: second derivatives are not available."""
        del ctx, cotangents
        text = "concordant's losses cannot be differentiated twice, because their gradients are not traced"
        raise RuntimeError(text)


def _pull_back(
    grads: Sequence[Tensor],
    scores: Sequence[Tensor],
    cotangents: Tensor,
    offsets: Tensor | Lists | None,
    *,
    flat: bool,
) -> list[Tensor]:
    """Return the gradients of the scores, in their dtype; under a double-backward graph, raising ones."""
    if torch.is_grad_enabled():
        with torch.no_grad():
            parts = _pull_back(grads, scores, cotangents, offsets, flat=flat)
        return [UntracedGradient.apply(part, cotangents, *scores) for part in parts]
    parts = [_scale_rows(grad, cotangents, offsets, flat=flat) for grad in grads]
    return [
        part if part.dtype == source.dtype else part.to(source.dtype)
        for part, source in zip(parts, scores, strict=True)
    ]


class EagerFunction(torch.autograd.Function):
    """The operator outside of `torch.compile`: the same, with less overhead."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, n_scores: int, *inputs: Any) -> Tensor:
        """Return the values, and save the gradients."""
        values, *grads = compute(*inputs)
        ctx.save_for_backward(*grads, *inputs[:n_scores])
        ctx.offsets, ctx.flat = inputs[n_scores + 1], inputs[n_scores].ndim == 1
        ctx.others = (None,) * (len(inputs) - n_scores)
        return values

    @staticmethod
    def backward(ctx: Any, cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply the saved gradients by the cotangents."""
        saved, n = ctx.saved_tensors, len(ctx.saved_tensors) // 2
        parts = _pull_back(saved[:n], saved[n:], cotangents, ctx.offsets, flat=ctx.flat)
        return (None, None, *parts, *ctx.others)


def _refuse_tangents(scores: Sequence[Tensor]) -> None:
    """Raise in forward-mode differentiation: it would lose the derivatives of these losses."""
    if any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in scores):
        raise ParameterError.because(
            "scores has a tangent, but these losses support reverse-mode gradients only."
        )


LISTS = "Tensor labels, Tensor? offsets, Tensor? mask, SymInt longest"


def operator(name: str, compute: Compute, *options: str, n_scores: int = 1) -> Callable[..., Tensor]:
    """Build a differentiable function of scores, labels and offsets from one that computes its gradients.

    `compute` takes `n_scores` differentiable tensors, then labels, offsets, mask, the longest list and
    `options`, as torch declares them; it returns the value of each list and the gradient of each of those
    tensors.
    """
    inputs = [*(f"Tensor scores_{number}" for number in range(n_scores)), LISTS, *options]
    schema = f"({', '.join(inputs)}) -> ({', '.join(['Tensor'] * (1 + n_scores))})"
    compiled: Any = torch.library.custom_op(f"concordant::{name}", compute, mutates_args=(), schema=schema)

    def fake(*inputs: Any) -> tuple[Tensor, ...]:
        values = inputs[0].new_empty(
            (_n_lists(*inputs[n_scores : n_scores + 2]),), dtype=working_dtype(inputs[0].dtype)
        )
        return values, *(
            torch.empty_like(scores, dtype=working_dtype(scores.dtype), memory_format=torch.contiguous_format)
            for scores in inputs[:n_scores]
        )

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        offsets = inputs[n_scores + 1]
        ctx.has_offsets, ctx.flat = offsets is not None, inputs[n_scores].ndim == 1
        ctx.n_others = len(inputs) - n_scores
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], *inputs[:n_scores], *([offsets] if ctx.has_offsets else []))

    def backward(ctx: Any, cotangents: Tensor | None, *others: object) -> tuple[Tensor | None, ...]:
        del others
        grads, scores = ctx.saved_tensors[:n_scores], ctx.saved_tensors[n_scores : 2 * n_scores]
        if cotangents is None:
            return (None,) * (n_scores + int(ctx.n_others))
        offsets = ctx.saved_tensors[-1] if ctx.has_offsets else None
        parts = _pull_back(grads, scores, cotangents, offsets, flat=ctx.flat)
        return (*parts, *(None,) * ctx.n_others)

    compiled.register_fake(fake)
    compiled.register_autograd(backward, setup_context=keep)

    def call(*inputs: Any) -> Tensor:
        if torch.compiler.is_compiling():
            values: Tensor = compiled(*inputs)[0]
            return values
        if forward_ad._current_level >= 0:  # noqa: SLF001  # no public check is as cheap
            _refuse_tangents(inputs[:n_scores])
        if torch.is_grad_enabled() and (inputs[0].requires_grad or inputs[n_scores - 1].requires_grad):
            query_values: Tensor = EagerFunction.apply(compute, n_scores, *inputs)
            return query_values
        return compute(*inputs)[0]

    return call


Flat = tuple[Tensor, Tensor]


@lru_cache(maxsize=8)
@torch.inference_mode(mode=False)  # they are cached for calls that may need gradients
def equal_lists(n_lists: int, size: int, device: torch.device) -> Lists:
    """Build lists of equal size; a few are cached, since consecutive batches often have the same shape."""
    offsets = torch.arange(0, (n_lists + 1) * size, size or 1, device=device)[: n_lists + 1]
    if not size:
        offsets = torch.zeros(n_lists + 1, dtype=torch.int64, device=device)
    return Lists(offsets, size, n_lists * size)


def resolve_lists(
    rows: Tensor, offsets: Tensor | Lists | None, mask: Tensor | None, longest: int
) -> tuple[Lists, Tensor | None]:
    """Return the lists of the rows that count, and these rows (None: all, in order).

    On a GPU masked rows come last, as separate lists, to avoid waiting for their number.
    """
    if rows.ndim == 2:
        whole = equal_lists(rows.shape[0], rows.shape[1], rows.device)
        if mask is None:
            return whole, None
        return lists_on_mask(mask) if mask.device.type == "cpu" else lists_masked_last(mask, whole)
    if isinstance(offsets, Lists):
        return offsets, None
    if offsets is None:
        return equal_lists(1, len(rows), rows.device), None
    lists = Lists(offsets, longest, len(rows)) if longest >= 0 else Lists.from_offsets(offsets)
    if lists.n_rows != len(rows):
        raise LengthMismatchError("scores", len(rows), lists.n_rows, "the last of the offsets, a count,")
    return lists, None


def lists_on_mask(mask: Tensor) -> tuple[Lists, Tensor]:
    """Return the lists of the unmasked rows, and those rows."""
    return Lists.from_sizes(mask.sum(1)), mask.flatten().nonzero().flatten()


def lists_masked_last(mask: Tensor, whole: Lists) -> tuple[Lists, Tensor]:
    """Return the lists of the unmasked rows followed by lists of the others, and all rows in that order."""
    rows = torch.sort(~mask.flatten(), stable=True).indices
    edges = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0))
    others = (edges[-1] + whole.offsets[1:]).clamp(max=whole.n_rows)
    return Lists(torch.cat([edges, others]), whole.longest, whole.n_rows), rows


def _select_rows(tensor: Tensor, rows: Tensor | None, mask: Tensor | None) -> Tensor:
    """Return the rows that count, flat; masked entries become 0, whatever they hold."""
    if mask is not None:
        tensor = tensor.masked_fill(~mask, 0)
    flat = tensor.reshape(-1)
    return flat if rows is None else flat[rows]


def _scatter_result(result: Flat, rows: Tensor | None, scores: Tensor) -> Flat:
    """Return the values of the caller's queries, and the gradient in the layout of the scores."""
    values, grad = result
    n_lists = scores.shape[0] if scores.ndim == 2 else len(values)
    if len(values) > n_lists:
        values = values[:n_lists].clone()
    return values, _scatter_rows(grad, rows, scores)


def _scatter_rows(flat: Tensor, rows: Tensor | None, like: Tensor) -> Tensor:
    """Bring numbers of the rows that count into a layout; 0 elsewhere."""
    if rows is None:
        return flat.reshape(like.shape)
    full = flat.new_zeros(like.numel())
    full[rows] = flat
    return full.reshape(like.shape)


def _widen_halves(scores: Tensor) -> Tensor:
    return scores if scores.dtype == working_dtype(scores.dtype) else scores.float()


@lru_cache(maxsize=64)
def _build_margin(kind: int, edge: float, width: float, scale: float) -> Margin:
    """Build the margin with this formula; a width < 0 means infinite."""
    return Margin("", kind, edge, width if width >= 0.0 else math.inf, scale)


def _compute_pairwise(
    scores: Tensor, weights: Tensor, offsets: Tensor | None, mask: Tensor | None, longest: int, *shape: Any
) -> Flat:
    margin, work = _build_margin(*shape), _widen_halves(scores)
    if mask is not None and functional.is_tiled(work, work.shape[1], margin):
        lists = equal_lists(work.shape[0], work.shape[1], work.device)
        flat = work.reshape(-1), weights.reshape(-1)
        return _scatter_result(functional.tile_sums(*flat, lists, margin, mask.reshape(-1)), None, scores)
    return _compute_flat(partial(functional.pairwise, margin=margin), work, weights, offsets, mask, longest)


def _compute_softmax(*batch: Any) -> Flat:
    return _compute_flat(functional.softmax, *batch)


def _compute_squared(*batch: Any) -> Flat:
    *rows, centred = batch
    return _compute_flat(partial(functional.squared, centred=centred), *rows, weigh_items=True)


def _compute_position_hinge(*batch: Any) -> Flat:
    *rows, reduction = batch
    return _compute_flat(partial(functional.position_hinge, reduction=reduction), *rows, weigh_items=True)


def _compute_flat(
    loss: Callable[..., Flat],
    scores: Tensor,
    labels: Tensor,
    offsets: Tensor | Lists | None,
    mask: Tensor | None,
    longest: int,
    *,
    weigh_items: bool = False,
) -> Flat:
    """Compute a loss of `functional`; with `weigh_items` it takes 1 as the weight of each row that counts."""
    lists, rows = resolve_lists(scores, offsets, mask, longest)
    flat = [_select_rows(_widen_halves(scores), rows, mask), _select_rows(labels, rows, mask)]
    if weigh_items:
        items = torch.ones_like(scores) if mask is None else mask.to(scores.dtype)
        flat.append(_select_rows(items, rows, mask))
    return _scatter_result(loss(*flat, lists), rows, scores)


def _compute_targets(
    grades: Tensor, offsets: Tensor | None, mask: Tensor | None, longest: int, metric: str, assume: str
) -> Tensor:
    """Compute `targets_like_grades` for a metric given by name; assume "" means None.

    torch may swallow errors raised while tracing and run uncompiled; errors raised by an operator persist.
    """
    if not metric:
        raise ParameterError.because(
            "metric with a Python function does not work with torch.compile. Use named gains and discounts."
        )
    computed = targets_like_grades(grades, offsets, mask, longest, read_metric(metric), assume or None)
    shared = computed.untyped_storage().data_ptr() == grades.untyped_storage().data_ptr()
    return computed.clone() if shared else computed.contiguous()  # an operator may not return its input


def targets_like_grades(
    grades: Tensor,
    offsets: Tensor | Lists | None,
    mask: Tensor | None,
    longest: int,
    metric: Metric,
    assume: str | None,
) -> Tensor:
    """Return the targets in the layout of the grades; 0 off the mask."""
    lists, rows = resolve_lists(grades, offsets, mask, longest)
    row_targets = standardize_grades(metric, _select_rows(grades, rows, mask), lists, assume)
    return _scatter_rows(row_targets, rows, grades)


targets: Any = torch.library.custom_op(
    "concordant::targets",
    _compute_targets,
    mutates_args=(),
    schema=f"({LISTS}, str metric, str assume) -> Tensor",
)


@targets.register_fake
def _(grades: Tensor, *others: object) -> Tensor:
    del others
    return torch.empty_like(grades, dtype=torch.float64, memory_format=torch.contiguous_format)


pairwise = operator("pairwise", _compute_pairwise, "SymInt kind, float edge, float width, float scale")
softmax = operator("softmax", _compute_softmax)
squared = operator("squared", _compute_squared, "bool centred")
position_hinge = operator("position_hinge", _compute_position_hinge, "str reduction")
