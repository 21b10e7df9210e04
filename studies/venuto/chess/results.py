"""Results on chess games: every model on every year, and their contrasts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from concordant.evaluation import Paired, PairedAUC, paired
from concordant.exceptions import ParameterError
from concordant.types import FloatArray
from studies.shared.contrasts import correct_jointly

OURS = "logistic, 16"
PLANNED = (  # with what it is compared; fixed before its own test results were seen
    "Elo",
    "Glicko",
    "Elo + first move",
    "Glicko + first move",
    "printed",
    "logistic, 2 + move",
    "linear, 16",
)
MEASURES = ("auc", "auc_unsigned", "error", "log_loss")

PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "trivial": (0.290, 0.299, 0.295, 0.299, 0.298, 0.307, 0.305, 0.298),
    "Elo": (0.353, 0.370, 0.346, 0.361, 0.374, 0.369, 0.361, 0.389),
    "Glicko": (0.343, 0.361, 0.347, 0.343, 0.365, 0.347, 0.335, 0.372),
    "linear, 2": (0.359, 0.214, 0.347, 0.353, 0.372, 0.361, 0.343, 0.402),
    "linear, 16": (0.375, 0.371, 0.344, 0.341, 0.405, 0.388, 0.381, 0.408),
    "poly, 2": (0.358, 0.372, 0.351, 0.353, 0.367, 0.360, 0.343, 0.402),
    "poly, 16": (0.375, 0.371, 0.344, 0.362, 0.405, 0.388, 0.368, 0.408),
    "rbf, 2": (0.321, 0.329, 0.313, 0.290, 0.318, 0.318, 0.299, 0.315),
    "rbf, 16": (0.274, 0.297, 0.299, 0.293, 0.263, 0.302, 0.285, 0.172),
}
"""ROC areas of the paper's Figure 6, 1999 to 2006, from the tables beside its source; of other games."""


@dataclass(frozen=True)
class ChessPoint:
    """A model on the test months of one year.

    Attributes
    ----------
    year, model
        Which.
    auc, auc_unsigned
        Area under the ROC curve of Table 3; and where a difference counts as found whatever its sign.
    error, log_loss
        Share of outcomes predicted wrong; mean of -log(probability of the outcome).
    C, degree, gamma, validation
        What the search chose, and the mean area it had; NaN where there is nothing to choose.
    predicted_draws
        Share of the test games of which a draw is predicted.
    collapsed
        Whether the machine's exact optimum ignores all features, for every C; linear machines with the hinge.
    """

    year: int
    model: str
    auc: float
    auc_unsigned: float
    error: float
    log_loss: float
    C: float
    degree: float
    gamma: float
    validation: float
    predicted_draws: float = math.nan
    collapsed: bool = False


@dataclass(frozen=True)
class YearOfGames:
    """Numbers of games of a year: between players with enough games, in training and in test."""

    year: int
    n_games: int
    n_train: int
    n_search: int
    n_test: int
    draw_share: float


@dataclass(frozen=True)
class Within:
    """The logistic machine on all statistics less a baseline, in one year; whole events are resampled."""

    year: int
    baseline: str
    test: PairedAUC


@dataclass(frozen=True)
class AtTolerance:
    """Test area of a linear machine with C = 1e-6, trained until its objective is best but for a share."""

    year: int
    model: str
    tol: float
    auc: float


@dataclass(frozen=True)
class ChessContrast:
    """The logistic machine on all statistics less another model, over years.

    Attributes
    ----------
    measure, baseline
        What is measured, and the other model.
    test
        Mean difference, and paired tests over years.
    adjusted
        p-value of the t-test after Holm's correction over all that are compared.
    """

    measure: str
    baseline: str
    test: Paired
    adjusted: float = 1.0


@dataclass(frozen=True, eq=False)
class ChessStudy:
    """All models on all years.

    Attributes
    ----------
    points
        Year by year, model by model.
    games
        What the years consist of.
    within
        Year by year: intervals of differences of areas.
    impossible
        Games left out because there is no such date.
    tolerances
        The linear machines on all statistics, with the hinge and with the logistic loss, by tolerance.
    """

    points: tuple[ChessPoint, ...]
    games: tuple[YearOfGames, ...]
    within: tuple[Within, ...]
    impossible: int
    tolerances: tuple[AtTolerance, ...] = ()

    @property
    def years(self) -> tuple[int, ...]:
        """The years."""
        return tuple(dict.fromkeys(point.year for point in self.points))

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(dict.fromkeys(point.model for point in self.points))

    def values(self, model: str, measure: str = "auc") -> FloatArray:
        """Values of a measure, one a year."""
        return np.array([getattr(point, measure) for point in self.points if point.model == model])

    def collapsed(self, model: str) -> int:
        """Count the years in which the exact optimum of a machine ignores all features."""
        return sum(point.collapsed for point in self.points if point.model == model)

    def contrasts(self, measure: str = "auc") -> list[ChessContrast]:
        """Compare the logistic machine on all statistics with `PLANNED`; none where it was left out."""
        if measure not in MEASURES:
            raise ParameterError("measure", measure, f"one of {', '.join(MEASURES)}")
        if OURS not in self.models:
            return []
        ours = self.values(OURS, measure)
        others = [model for model in PLANNED if model in self.models]
        return correct_jointly(
            [ChessContrast(measure, name, paired(ours, self.values(name, measure))) for name in others]
        )
