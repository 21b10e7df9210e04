"""Results of `maxmargin`: points, one for each method, penalty and fold, and their summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from concordant.evaluation import Comparison, against_best
from concordant.types import FloatArray
from studies.riezler_debona.maxmargin.guarantees import Guarantee, Losses

MEDIANS = ("B", "complexity", "confidence", "value", "needed", "sharp", "paper")


@dataclass(frozen=True, eq=False)
class PenaltyPoint:
    """One method at one penalty, on one fold.

    Attributes
    ----------
    method, fold, alpha
        What it is.
    is_selected
        Whether the validation queries of the fold chose this penalty.
    length
        Length of the weights.
    train, test
        Losses on the training and the test queries.
    guarantees
        Bounds on the expected loss, by rule, from the training queries.
    per_query
        Metric -> value on each test query; NaN where skipped.
    """

    method: str
    fold: int
    alpha: float
    is_selected: bool
    length: float
    train: Losses
    test: Losses
    guarantees: Mapping[str, Guarantee]
    per_query: Mapping[str, FloatArray]

    @property
    def metrics(self) -> dict[str, float]:
        """Mean of each metric over the test queries of the fold."""
        return _means(self.per_query)


@dataclass(frozen=True, eq=False)
class RuleSummary:
    """Points of a method, one a fold, by one rule for B.

    Attributes
    ----------
    method, rule
        What it is about.
    bounds, largest
        The loss that is bounded, in words, and its largest value.
    alpha, length
        Medians of the penalty and of the length of the weights.
    B, complexity, confidence, value, needed, sharp, paper
        Medians, as for `Guarantee`: penalties differ between folds by factors, and with them B.
    train, test
        Means of the losses.
    n_folds, n_vacuous
        Points, and those whose bound is vacuous.
    metrics
        Mean over the test queries of all folds.
    """

    method: str
    rule: str
    bounds: str
    largest: float
    alpha: float
    length: float
    B: float
    complexity: float
    confidence: float
    value: float
    needed: float
    sharp: float
    paper: float
    train: Losses
    test: Losses
    n_folds: int
    n_vacuous: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class MaxMarginResult:
    """All methods, penalties and folds on one set.

    Attributes
    ----------
    data
        Name of the set.
    n_folds, n_train
        Folds, and training queries of a fold (the fewest).
    alphas
        The grid of penalties, largest first.
    delta
        Probability that a bound fails: for each method, fold and rule, all penalties of the grid together.
    points
        Fold by fold, method by method, penalty by penalty.
    """

    data: str
    n_folds: int
    n_train: int
    alphas: FloatArray
    delta: float
    points: tuple[PenaltyPoint, ...]

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """Methods in order, and the rules by which B is fixed for each."""
        return {point.method: tuple(point.guarantees) for point in self.points}

    @property
    def n_queries(self) -> int:
        """Test queries over all folds."""
        return len(next(iter(_pool(self.selected_points(self.points[0].method)).values())))

    def selected_points(self, method: str) -> tuple[PenaltyPoint, ...]:
        """Point of each fold that its validation queries chose."""
        return tuple(point for point in self.points if point.method == method and point.is_selected)

    def at(self, method: str, alpha: float) -> tuple[PenaltyPoint, ...]:
        """Point of each fold at a penalty."""
        return tuple(point for point in self.points if (point.method, point.alpha) == (method, alpha))

    def least(self, method: str, rule: str) -> RuleSummary | None:
        """Smallest penalty at which no fold's bound is vacuous; None if there is none."""
        for alpha in self.alphas[::-1].tolist():
            points = self.at(method, alpha)
            if not any(point.guarantees[rule].vacuous for point in points):
                return _summarise(points, rule)
        return None

    def summaries(self) -> list[RuleSummary]:
        """Put the chosen points of each method and rule together."""
        return [
            _summarise(self.selected_points(name), rule)
            for name, rules in self.rules.items()
            for rule in rules
        ]

    def compared(self) -> dict[str, dict[str, Comparison]]:
        """Metric -> method -> its chosen rankers against the best, on the test queries of all folds."""
        values = {name: _pool(self.selected_points(name)) for name in self.rules}
        metrics = self.points[0].per_query
        return {
            metric: against_best({name: metric_values[metric] for name, metric_values in values.items()})
            for metric in metrics
        }

    @property
    def n_at_edge(self) -> int:
        """Chosen points whose penalty is the largest or the smallest of the grid."""
        return sum(
            point.is_selected and point.alpha in (self.alphas[0], self.alphas[-1]) for point in self.points
        )

    def count(self, holds: Callable[[PenaltyPoint, Guarantee], bool]) -> tuple[int, int]:
        """Count the bounds of all points for which a condition holds, and all bounds."""
        flags = [holds(point, guarantee) for point in self.points for guarantee in point.guarantees.values()]
        return sum(flags), len(flags)


def _means(per_query: Mapping[str, FloatArray]) -> dict[str, float]:
    """Mean of each metric over the queries that it does not skip."""
    return {name: float(np.nanmean(values)) for name, values in per_query.items()}


def _pool(points: Sequence[PenaltyPoint]) -> dict[str, FloatArray]:
    """Metric -> value on each test query, fold after fold."""
    return {name: np.concatenate([point.per_query[name] for point in points]) for name in points[0].per_query}


def _summarise(points: Sequence[PenaltyPoint], rule: str) -> RuleSummary:
    """Put the points of the folds together."""
    guarantees = [point.guarantees[rule] for point in points]
    medians = {name: median(getattr(guarantee, name) for guarantee in guarantees) for name in MEDIANS}
    return RuleSummary(
        method=points[0].method,
        rule=rule,
        bounds=guarantees[0].bounds,
        largest=max(guarantee.largest for guarantee in guarantees),
        alpha=median(point.alpha for point in points),
        length=median(point.length for point in points),
        train=_mean_losses([point.train for point in points]),
        test=_mean_losses([point.test for point in points]),
        n_folds=len(points),
        n_vacuous=sum(guarantee.vacuous for guarantee in guarantees),
        metrics=_means(_pool(points)),
        **medians,
    )


def _mean_losses(losses: Sequence[Losses]) -> Losses:
    """Mean of each loss over folds."""
    return Losses(
        *(
            fmean(getattr(losses_of_fold, name) for losses_of_fold in losses)
            for name in ("hinge", "loss", "worst")
        )
    )
