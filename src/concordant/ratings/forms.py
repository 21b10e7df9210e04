"""Forms: how probable a win, a tie and a loss are, given the difference of two log-strengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.types import FloatArray

__all__ = ["DAVIDSON", "RAO_KUPPER", "Form"]


@dataclass(frozen=True)
class Form:
    """One model of an outcome; all take differences d of log-strengths and the tie parameter.

    Attributes
    ----------
    kernel
        Name of the compiled pass over pairs.
    probabilities
        Of win, tie and loss: shape (n, 3).
    scores
        Derivatives of the three log-probabilities by d, and by the tie parameter: twice (n, 3).
    no_ties, first_guess
        The tie parameter where ties have probability 0, and where the search for it begins.
    least
        Below which the tie parameter may not fall.
    """

    kernel: str
    probabilities: Callable[[FloatArray, float], FloatArray]
    scores: Callable[[FloatArray, float], tuple[FloatArray, FloatArray]]
    no_ties: float
    first_guess: Callable[[float], float]
    least: float

    def compiled(self) -> Callable[..., Any]:
        """The kernel."""
        from concordant.ratings import kernels

        return getattr(kernels, self.kernel)  # type: ignore[no-any-return]


def sigmoid(d: FloatArray) -> FloatArray:
    """Give 1 / (1 + exp(-d)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * d))


def davidson_probabilities(d: FloatArray, tie: float) -> FloatArray:
    """Give exp(d / 2), nu and exp(-d / 2), over their sum; tie = log(nu)."""
    logs = np.stack((0.5 * d, np.full_like(d, tie), -0.5 * d), axis=1)
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: FloatArray = parts / parts.sum(axis=1, keepdims=True)
    return shares


def davidson_scores(d: FloatArray, tie: float) -> tuple[FloatArray, FloatArray]:
    """Give what is counted less what is expected: half a point a side, and ties."""
    win, level, loss = davidson_probabilities(d, tie).T
    by_d = np.array([0.5, 0.0, -0.5]) - 0.5 * (win - loss)[:, None]
    return by_d, np.array([0.0, 1.0, 0.0]) - level[:, None]


def rao_kupper_probabilities(d: FloatArray, tie: float) -> FloatArray:
    """Give the probability that the difference, with logistic noise, exceeds the threshold log(theta)."""
    win, loss = sigmoid(d - tie), sigmoid(-d - tie)
    level = np.clip(1.0 - win - loss, 0.0, 1.0) if tie > 1.0 else np.expm1(2.0 * tie) * win * loss
    return np.stack((win, level, loss), axis=1)


def rao_kupper_scores(d: FloatArray, tie: float) -> tuple[FloatArray, FloatArray]:
    """Give the derivatives; a tie is on the near side of both thresholds."""
    not_win, not_loss = sigmoid(tie - d), sigmoid(d + tie)
    excess = np.expm1(2.0 * tie)
    wide = 2.0 + 2.0 / excess if excess > 0.0 else 0.0
    by_d = np.stack((not_win, not_win - not_loss, -not_loss), axis=1)
    return by_d, np.stack((-not_win, wide - not_win - not_loss, -not_loss), axis=1)


DAVIDSON = Form(
    "davidson",
    davidson_probabilities,
    davidson_scores,
    no_ties=-np.inf,
    first_guess=lambda share: float(np.log(2.0 * share / (1.0 - share))),
    least=-np.inf,
)
RAO_KUPPER = Form(
    "rao_kupper",
    rao_kupper_probabilities,
    rao_kupper_scores,
    no_ties=0.0,
    first_guess=lambda share: float(np.log((1.0 + share) / (1.0 - share))),
    least=0.0,
)
