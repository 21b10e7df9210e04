"""How a function that gives values and gradients becomes a torch operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from concordant.torch.lists import Lists

__all__ = ["n_lists", "operator"]

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


def multiplied(ctx: Any, cotangents: Tensor) -> tuple[Tensor | None, ...]:
    """Multiply the gradients that `Eager` kept."""
    parts = [shared(grad, cotangents, ctx.offsets, flat=ctx.flat) for grad in ctx.saved_tensors]
    return (None, None, *parts, *ctx.others)


class Eager(torch.autograd.Function):
    """The operator outside of `torch.compile`: the same, with less to do around it."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, n_scores: int, *inputs: Any) -> Tensor:
        """Give the values, and keep the gradients."""
        values, *grads = compute(*inputs)
        ctx.save_for_backward(*grads)
        ctx.offsets, ctx.flat = inputs[n_scores + 1], inputs[n_scores].ndim == 1
        ctx.others = (None,) * (len(inputs) - n_scores)
        return values

    @staticmethod
    def backward(ctx: Any, cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply them; where a graph of this is wanted, one that says that there is none."""
        found: tuple[Tensor | None, ...]
        found = once(ctx, cotangents) if torch.is_grad_enabled() else multiplied(ctx, cotangents)
        return found


once = once_differentiable(multiplied)


def operator(name: str, compute: Compute, n_scores: int = 1) -> Callable[..., Tensor]:
    """Give a differentiable function of scores, labels and offsets from one that computes its gradients.

    `compute` takes `n_scores` tensors that are differentiated, then labels, offsets, mask, the longest list
    and what else it wants; it gives the value of each list and the gradient of each of those tensors.
    """
    compiled: Any = torch.library.custom_op(f"concordant::{name}", compute, mutates_args=())

    def fake(*inputs: Any) -> tuple[Tensor, ...]:
        values = inputs[0].new_empty((n_lists(*inputs[n_scores : n_scores + 2]),))
        return values, *(torch.empty_like(scores) for scores in inputs[:n_scores])

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        offsets = inputs[n_scores + 1]
        ctx.given, ctx.flat = offsets is not None, inputs[n_scores].ndim == 1
        ctx.n_others = len(inputs) - n_scores
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:], *([offsets] if ctx.given else []))

    def backward(ctx: Any, cotangents: Tensor | None, *others: object) -> tuple[Tensor | None, ...]:
        del others
        grads, rest = ctx.saved_tensors[:n_scores], ctx.saved_tensors[n_scores:]
        if cotangents is None:
            return (None,) * (n_scores + int(ctx.n_others))
        offsets = rest[0] if ctx.given else None
        parts = (shared(grad, cotangents, offsets, flat=ctx.flat) for grad in grads)
        return (*parts, *(None,) * ctx.n_others)

    compiled.register_fake(fake)
    compiled.register_autograd(once_differentiable(backward), setup_context=keep)

    def call(*inputs: Any) -> Tensor:
        if torch.compiler.is_compiling():
            values: Tensor = compiled(*inputs)[0]
            return values
        if torch.is_grad_enabled() and (inputs[0].requires_grad or inputs[n_scores - 1].requires_grad):
            found: Tensor = Eager.apply(compute, n_scores, *inputs)
            return found
        return compute(*inputs)[0]

    return call
