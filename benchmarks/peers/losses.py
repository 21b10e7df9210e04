"""The peers that compute pairwise losses with gradients, each called as its users do; on the CPU.

They are optional: `pip install jax rax torch==2.13.0`, and `pip install --no-deps allRank` (its wheel also
holds a folder `tests`: best in a separate environment). What is not installed is left out, and said.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numba
import numpy as np

from concordant.surrogates import Margin, huber_hinge
from concordant.surrogates.short_pair_kernels import all_clip

SLOW = ("allRank", "allRank, lambdaRank")  # many seconds a call


@dataclass(frozen=True)
class LossPeer:
    """A call on scores that gives a value; `same` names our surrogate that equals `factor` times it."""

    name: str
    timed: str
    threads: str
    call: Callable[[np.ndarray], float]
    same: tuple[str, str] | None  # surrogate, margin
    factor: float = 1.0


def rax(grades: np.ndarray) -> list[LossPeer]:
    import jax
    import rax

    def total(scores: Any, labels: Any) -> Any:
        return rax.pairwise_hinge_loss(scores, labels, reduce_fn=jax.numpy.sum)

    compiled, labels = jax.jit(jax.value_and_grad(total)), jax.numpy.asarray(grades, jax.numpy.float32)

    def call(scores: np.ndarray) -> float:
        value, grad = compiled(jax.numpy.asarray(scores, jax.numpy.float32), labels)
        jax.block_until_ready(grad)
        return float(value)

    timed = "`jax.jit(jax.value_and_grad(rax.pairwise_hinge_loss))`, float32; compiled before"
    return [LossPeer("rax", timed, "all", call, ("preorder", "hinge"))]


def allrank(grades: np.ndarray) -> list[LossPeer]:
    import torch

    loss, labels = _allrank_loss(), torch.tensor(grades[None], dtype=torch.float32)

    def call(scores: np.ndarray, scheme: str | None) -> float:
        rows = torch.tensor(scores[None], dtype=torch.float32, requires_grad=True)
        value = loss(rows, labels, weighing_scheme=scheme)
        value.backward()
        return float(value)

    kinds = (
        (None, ("preorder", "logistic"), ""),
        ("lambdaRank_scheme", None, ", weighing_scheme='lambdaRank_scheme'"),
    )
    return [
        LossPeer(
            name,
            f"`lambdaLoss(scores, y{scheme})` and `.backward()`, float32",
            "all",
            lambda scores, kind=kind: call(scores, kind),
            same,
            float(np.log(2.0)),  # its logarithm is the binary one
        )
        for name, (kind, same, scheme) in zip(SLOW, kinds, strict=True)
    ]


def _allrank_loss() -> Callable:
    """allRank's own lambdaLoss.py; what it imports but does not use (torchvision, gcsfs) is replaced."""
    package = find_spec("allrank")
    if package is None or not package.submodule_search_locations:
        raise ImportError("allrank")
    data, losses = ModuleType("allrank.data.dataset_loading"), ModuleType("allrank.models.losses")
    data.PADDED_Y_VALUE, losses.DEFAULT_EPS = -1, 1e-10
    losses.__path__ = [f"{package.submodule_search_locations[0]}/models/losses"]
    sys.modules.update({data.__name__: data, losses.__name__: losses})
    return importlib.import_module("allrank.models.losses.lambdaLoss").lambdaLoss


def double_loop(targets: np.ndarray) -> list[LossPeer]:
    """Every pair, as one would write it: compiled, and free to add in any order."""
    compiled = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(
        _every_pair
    )
    shape, grad = huber_hinge(), np.empty(len(targets))

    def call(scores: np.ndarray) -> float:
        return compiled(scores, targets, *shape.parameters, grad)

    timed = "for i, for j, `if`: compiled by numba (nogil, sums in any order)"
    return [LossPeer("double loop", timed, "1", call, ("pairwise", "huber_hinge"))]


def _every_pair(scores, targets, edge, width, scale, grad):
    value = 0.0
    grad[:] = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            d = edge - (scores[i] - scores[j])
            if d > 0.0:
                c = min(d, width)
                value += targets[i] * scale * c * (2.0 * d - c)
                slope = 2.0 * scale * targets[i] * c
                grad[i] -= slope
                grad[j] += slope
    return value


def vectorised(targets: np.ndarray) -> list[LossPeer]:
    """Our own double loop for short lists."""
    shape: Margin = huber_hinge()
    grad = np.empty(len(targets))

    def call(scores: np.ndarray) -> float:
        return all_clip(scores, targets, shape.parameters, grad)

    timed = "our own for short lists: each pair once, no branches, vector instructions"
    return [LossPeer("double loop, vectorised", timed, "1", call, ("pairwise", "huber_hinge"))]


LOOPS = (double_loop, vectorised)
