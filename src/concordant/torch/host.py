"""On the CPU, where numba is installed, the package's compiled kernels: few passes, no temporary tensors."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from concordant.surrogates.listwise import SoftmaxLoss
from concordant.surrogates.margins import Margin
from concordant.surrogates.pairwise import PairLoss
from concordant.surrogates.pointwise import SquaredLoss
from concordant.surrogates.position import PositionHinge
from concordant.surrogates.surrogate import Loss
from concordant.torch.lists import Lists
from concordant.types import FloatArray

__all__ = ["has_numba", "pairwise", "position_hinge", "serves", "softmax", "squared"]

Result = tuple[Tensor, Tensor]


@cache
def has_numba() -> bool:
    """Whether kernels can be compiled here."""
    return find_spec("numba") is not None


def serves(scores: Tensor) -> bool:
    """Whether the compiled kernels can read these scores: they want finite ones, on the CPU."""
    return scores.device.type == "cpu" and has_numba() and bool(scores.isfinite().all())


def array(tensor: Tensor) -> FloatArray:
    """Give a tensor's numbers in double precision."""
    numbers: FloatArray = tensor.detach().to(torch.float64).contiguous().numpy()
    return numbers


def computed(loss: Loss, scores: Tensor) -> Result:
    """Value and gradient, in the precision of the scores."""
    values, grad = loss.value_and_grad(array(scores))
    return torch.from_numpy(values).to(scores.dtype), torch.from_numpy(grad).to(scores.dtype)


def pairwise(scores: Tensor, weights: Tensor, lists: Lists, shape: Margin) -> Result:
    """`functional.pairwise`."""
    return computed(PairLoss(shape, lists.offsets.numpy(), array(weights)), scores)


def softmax(scores: Tensor, weights: Tensor, lists: Lists) -> Result:
    """`functional.softmax`."""
    return computed(SoftmaxLoss(lists.offsets.numpy(), array(weights)), scores)


def squared(scores: Tensor, targets: Tensor, weights: Tensor, lists: Lists, *, centred: bool) -> Result:
    """`functional.squared`."""
    loss = SquaredLoss(lists.offsets.numpy(), array(weights), array(targets), centred=centred)
    return computed(loss, scores)


def position_hinge(
    scores: Tensor, grades: Tensor, weights: Tensor, lists: Lists, *, reduction: str
) -> Result:
    """`functional.position_hinge`."""
    loss = PositionHinge(reduction).attach(array(grades), lists.offsets.numpy(), array(weights))
    return computed(loss, scores)
