"""Losses on score vectors that are minimised instead of a metric, with gradients and facts."""

from concordant.surrogates.listwise import PlackettLuce, Softmax
from concordant.surrogates.lowrank_surrogate import LossCalibration, LowRankSurrogate
from concordant.surrogates.margins import (
    Margin,
    exponential,
    hinge,
    huber_hinge,
    logistic,
    margin,
    squared_hinge,
)
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.parse import SURROGATES, surrogate
from concordant.surrogates.pointwise import Duchi, Penalty, Squared
from concordant.surrogates.position_hinge import PositionHinge
from concordant.surrogates.surrogate import Loss, Surrogate

__all__ = [
    "SURROGATES", "Duchi", "ListwiseHinge", "Loss", "LossCalibration", "LowRankSurrogate", "Margin",
    "Pairwise", "Penalty", "PlackettLuce", "PositionHinge", "Preorder", "Softmax", "Squared", "Surrogate",
    "exponential", "hinge", "huber_hinge", "logistic", "margin", "squared_hinge", "surrogate",
]  # fmt: skip
