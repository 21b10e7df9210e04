"""How a function that gives values and gradients becomes a torch operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from concordant.exceptions import ParameterError
from concordant.torch.lists import Lists

__all__ = ["n_lists", "operator", "working"]

Compute = Callable[..., tuple[Tensor, ...]]


def n_lists(labels: Tensor, offsets: Tensor | Lists | None) -> Any:
    """How many lists there are."""
    if labels.ndim == 2:
        return labels.shape[0]
    if isinstance(offsets, Lists):
        return offsets.n_queries
    return 1 if offsets is None else offsets.shape[0] - 1


def shared(grad: Tensor, cotangents: Tensor, offsets: Tensor | Lists | None, *, flat: bool) -> Tensor:
    """Multiply the rows of each list by its number; a row may be a vector."""
    if flat and isinstance(offsets, Lists):
        cotangents = offsets.spread(cotangents)
    elif flat and isinstance(offsets, Tensor):
        cotangents = torch.repeat_interleave(cotangents, offsets.diff(), output_size=grad.shape[0])
    return grad * cotangents.reshape(-1, *(1,) * (grad.ndim - 1))


def working(dtype: torch.dtype) -> torch.dtype:
    """Precision that scores of this one are computed in: float32 for halves."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


class Final(torch.autograd.Function):
    """A gradient that is computed, not traced: it depends on the sources, but says so only when asked."""

    @staticmethod
    def forward(ctx: Any, grad: Tensor, *sources: Tensor) -> Tensor:
        """Give the gradient as it is."""
        del ctx, sources
        return grad.detach()

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Refuse."""
        del ctx, cotangents
        told = "concordant's losses cannot be differentiated twice: their gradient is computed, not traced"
        raise RuntimeError(told)


def pulled_back(
    grads: Sequence[Tensor],
    scores: Sequence[Tensor],
    cotangents: Tensor,
    offsets: Tensor | Lists | None,
    *,
    flat: bool,
) -> list[Tensor]:
    """Gradients of the scores, in their precision; where a graph of this is wanted, one that refuses."""
    if torch.is_grad_enabled():
        with torch.no_grad():
            parts = pulled_back(grads, scores, cotangents, offsets, flat=flat)
        return [Final.apply(part, cotangents, *scores) for part in parts]
    parts = [shared(grad, cotangents, offsets, flat=flat) for grad in grads]
    return [
        part if part.dtype == own.dtype else part.to(own.dtype)
        for part, own in zip(parts, scores, strict=True)
    ]


class Eager(torch.autograd.Function):
    """The operator outside of `torch.compile`: the same, with less to do around it."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, n_scores: int, *inputs: Any) -> Tensor:
        """Give the values, and keep the gradients."""
        values, *grads = compute(*inputs)
        ctx.save_for_backward(*grads, *inputs[:n_scores])
        ctx.offsets, ctx.flat = inputs[n_scores + 1], inputs[n_scores].ndim == 1
        ctx.others = (None,) * (len(inputs) - n_scores)
        return values

    @staticmethod
    def backward(ctx: Any, cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply them."""
        saved, n = ctx.saved_tensors, len(ctx.saved_tensors) // 2
        parts = pulled_back(saved[:n], saved[n:], cotangents, ctx.offsets, flat=ctx.flat)
        return (None, None, *parts, *ctx.others)


def refuse_tangents(scores: Sequence[Tensor]) -> None:
    """Raise where forward-mode differentiation is under way: it would lose these losses' derivatives."""
    if any(forward_ad.unpack_dual(own).tangent is not None for own in scores):
        expected = "without a tangent: these losses are differentiated in reverse mode only"
        raise ParameterError("scores", "a dual tensor", expected)


def operator(name: str, compute: Compute, n_scores: int = 1) -> Callable[..., Tensor]:
    """Give a differentiable function of scores, labels and offsets from one that computes its gradients.

    `compute` takes `n_scores` tensors that are differentiated, then labels, offsets, mask, the longest list
    and what else it wants; it gives the value of each list and the gradient of each of those tensors.
    """
    compiled: Any = torch.library.custom_op(f"concordant::{name}", compute, mutates_args=())

    def fake(*inputs: Any) -> tuple[Tensor, ...]:
        values = inputs[0].new_empty(
            (n_lists(*inputs[n_scores : n_scores + 2]),), dtype=working(inputs[0].dtype)
        )
        return values, *(
            torch.empty_like(scores, dtype=working(scores.dtype), memory_format=torch.contiguous_format)
            for scores in inputs[:n_scores]
        )

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        offsets = inputs[n_scores + 1]
        ctx.given, ctx.flat = offsets is not None, inputs[n_scores].ndim == 1
        ctx.n_others = len(inputs) - n_scores
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], *inputs[:n_scores], *([offsets] if ctx.given else []))

    def backward(ctx: Any, cotangents: Tensor | None, *others: object) -> tuple[Tensor | None, ...]:
        del others
        grads, scores = ctx.saved_tensors[:n_scores], ctx.saved_tensors[n_scores : 2 * n_scores]
        if cotangents is None:
            return (None,) * (n_scores + int(ctx.n_others))
        offsets = ctx.saved_tensors[-1] if ctx.given else None
        parts = pulled_back(grads, scores, cotangents, offsets, flat=ctx.flat)
        return (*parts, *(None,) * ctx.n_others)

    compiled.register_fake(fake)
    compiled.register_autograd(backward, setup_context=keep)

    def call(*inputs: Any) -> Tensor:
        if torch.compiler.is_compiling():
            values: Tensor = compiled(*inputs)[0]
            return values
        if forward_ad._current_level >= 0:  # noqa: SLF001  nothing public tells it as cheaply
            refuse_tangents(inputs[:n_scores])
        if torch.is_grad_enabled() and (inputs[0].requires_grad or inputs[n_scores - 1].requires_grad):
            found: Tensor = Eager.apply(compute, n_scores, *inputs)
            return found
        return compute(*inputs)[0]

    return call
