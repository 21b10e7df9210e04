"""What is minimised instead of a metric: losses on score vectors, with gradients and facts."""

from concordant.surrogates.calibration import Calibration
from concordant.surrogates.listwise import PlackettLuce, Softmax
from concordant.surrogates.lowrank import LowRankSurrogate
from concordant.surrogates.margins import (
    Margin,
    exponential,
    hinge,
    huber_hinge,
    logistic,
    margin,
    squared_hinge,
)
from concordant.surrogates.orders import ListwiseHinge
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.parse import SURROGATES, surrogate
from concordant.surrogates.pointwise import Duchi, Penalty, Squared
from concordant.surrogates.position import PositionHinge
from concordant.surrogates.surrogate import Loss, Surrogate

__all__ = [
    "SURROGATES", "Calibration", "Duchi", "ListwiseHinge", "Loss", "LowRankSurrogate", "Margin", "Pairwise",
    "Penalty", "PlackettLuce", "PositionHinge", "Preorder", "Softmax", "Squared", "Surrogate",
    "exponential", "hinge", "huber_hinge", "logistic", "margin", "squared_hinge", "surrogate",
]  # fmt: skip
