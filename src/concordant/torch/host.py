"""Losses on the CPU by the package's compiled kernels, if numba is installed: few passes, no temporaries."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from concordant.surrogates.listwise import BoundSoftmax
from concordant.surrogates.margins import Margin
from concordant.surrogates.pairwise import PairLoss
from concordant.surrogates.pointwise import BoundSquared
from concordant.surrogates.position_hinge import PositionHinge
from concordant.surrogates.surrogate import Loss
from concordant.torch.lists import Lists
from concordant.types import FloatArray

Result = tuple[Tensor, Tensor]


@cache
def has_numba() -> bool:
    """True if numba can compile kernels here."""
    return find_spec("numba") is not None


def serves(scores: Tensor) -> bool:
    """True if the compiled kernels can read these scores: finite, on the CPU."""
    return scores.device.type == "cpu" and has_numba() and bool(scores.isfinite().all())


def to_array(tensor: Tensor) -> FloatArray:
    """Convert a tensor to a numpy array in double precision."""
    numbers: FloatArray = tensor.detach().to(torch.float64).contiguous().numpy()
    return numbers


def _compute_loss(loss: Loss, scores: Tensor) -> Result:
    """Return value and gradient, in the precision of the scores."""
    values, grad = loss.value_and_grad(to_array(scores))
    return torch.from_numpy(values).to(scores.dtype), torch.from_numpy(grad).to(scores.dtype)


def pairwise(scores: Tensor, weights: Tensor, lists: Lists, shape: Margin) -> Result:
    """Compute `functional.pairwise`."""
    return _compute_loss(PairLoss(shape, lists.offsets.numpy(), to_array(weights)), scores)


def softmax(scores: Tensor, weights: Tensor, lists: Lists) -> Result:
    """Compute `functional.softmax`."""
    return _compute_loss(BoundSoftmax(lists.offsets.numpy(), to_array(weights)), scores)


def squared(scores: Tensor, targets: Tensor, weights: Tensor, lists: Lists, *, centred: bool) -> Result:
    """Compute `functional.squared`."""
    loss = BoundSquared(lists.offsets.numpy(), to_array(weights), to_array(targets), centred=centred)
    return _compute_loss(loss, scores)


def position_hinge(
    scores: Tensor, grades: Tensor, weights: Tensor, lists: Lists, *, reduction: str
) -> Result:
    """Compute `functional.position_hinge`."""
    loss = PositionHinge(reduction).attach(to_array(grades), lists.offsets.numpy(), to_array(weights))
    return _compute_loss(loss, scores)
