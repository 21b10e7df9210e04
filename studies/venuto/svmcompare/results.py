"""Results of `svmcompare`: points, one for each method and split, and their contrasts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from concordant.evaluation import Paired, paired
from concordant.types import FloatArray
from studies.shared.contrasts import correct_jointly
from studies.venuto.svmcompare.data import Paper
from studies.venuto.svmcompare.grid import METHODS, PUBLISHED

ERROR = "error"
PAPER_SEEDS = frozenset(range(1, 5))  # of the splits that the paper used
GROUPS = {
    "ties .1 to .3": 0.35,
    "ties .4 to .6": 0.65,
    "ties .7 to .9": 1.0,
}  # of splits, by the share of ties


@dataclass(frozen=True)
class SplitPoint:
    """A method on one split.

    Attributes
    ----------
    data, n, tie_share, seed
        Which split: pairs of each of its sets, and the share of ties.
    measure
        "error", the zero-one error; "area" under the ROC curve of Table 3; or "area, unsigned", where a
        difference counts as found whatever its sign, as in the published Figure 5.
    method
        "truth" (the ranking function that made the pairs), "compare", "rank", "rank2", or a baseline with the
        threshold as it was published.
    gamma, C
        What the validation pairs chose by the same measure; NaN for the truth.
    validation, test
        The measure on the validation and the test pairs.
    """

    data: str
    n: int
    tie_share: float
    seed: int
    measure: str
    method: str
    gamma: float
    C: float
    validation: float
    test: float


@dataclass(frozen=True)
class SplitContrast:
    """A baseline less the comparison machine, over splits.

    Attributes
    ----------
    data, measure, group
        Which splits, and what is measured.
    baseline
        "rank" or "rank2".
    test
        Mean of baseline less compare, and paired tests over splits.
    adjusted
        p-value of the t-test after Holm's correction over all contrasts of the measure.
    published
        The same mean with the threshold as it was published; NaN where thresholds do not matter.
    paper
        The same mean in the paper's figure; NaN unless the splits are the paper's own.
    """

    data: str
    measure: str
    group: str
    baseline: str
    test: Paired
    adjusted: float
    published: float
    paper: float

    @property
    def due(self) -> float:
        """Share of the gap with the published threshold that the right threshold closes."""
        return 1.0 - self.test.difference / self.published if self.published > 0.0 else float("nan")


@dataclass(frozen=True, eq=False)
class SplitStudy:
    """All methods on all splits.

    Attributes
    ----------
    points
        Split by split, measure by measure, method by method.
    paper
        What the paper's l2 panel shows.
    simulated
        Names of the pools that were drawn.
    """

    points: tuple[SplitPoint, ...]
    paper: Paper = field(default_factory=dict)
    simulated: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the pools."""
        return tuple(dict.fromkeys(point.data for point in self.points))

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(dict.fromkeys(point.measure for point in self.points))

    def methods(self, data: str) -> tuple[str, ...]:
        """Methods that were measured on these data."""
        return tuple(dict.fromkeys(point.method for point in self.points if point.data == data))

    def settings(self, data: str) -> tuple[tuple[int, float], ...]:
        """(pairs, share of ties) of the splits."""
        return tuple(dict.fromkeys((point.n, point.tie_share) for point in self.points if point.data == data))

    def curve_points(self, data: str, measure: str, method: str) -> tuple[SplitPoint, ...]:
        """Points of a curve, splits in order."""
        key = data, measure, method
        return tuple(point for point in self.points if (point.data, point.measure, point.method) == key)

    def tests(self, data: str, measure: str, method: str, setting: tuple[int, float]) -> FloatArray:
        """Test values over seeds."""
        points = self.curve_points(data, measure, method)
        return np.array([point.test for point in points if (point.n, point.tie_share) == setting])

    def paper_splits(self) -> SplitStudy:
        """Points on the paper's own splits; none unless all four of them are there."""
        points = tuple(
            point
            for point in self.points
            if (point.data, point.measure) == ("l2", ERROR)
            and (point.n, "compare") in self.paper
            and point.seed in PAPER_SEEDS
        )
        return replace(self, points=points if {point.seed for point in points} == PAPER_SEEDS else ())

    def contrasts(self) -> list[SplitContrast]:
        """Baselines against the comparison machine, over the splits of each group."""
        return [pair for measure in self.measures for pair in _corrected_contrasts(self, measure)]

    def groups(self, data: str) -> tuple[str, ...]:
        """Names of the groups of splits: by thirds of the shares of ties where these vary."""
        return tuple(dict.fromkeys(_group(point) for point in self.points if point.data == data))


def _group(point: SplitPoint) -> str:
    """Name the group of a split: all sizes together, shares of ties by thirds.

    >>> make = lambda share, measure: SplitPoint("l2", 50, share, 1, measure, "rank", 1.0, 1.0, 0.1, 0.1)
    >>> _group(make(0.5, "error")), _group(make(0.1, "area")), _group(make(0.9, "area"))
    ('all sizes', 'ties .1 to .3', 'ties .7 to .9')
    """
    if point.measure == ERROR:
        return "all sizes"
    return next(name for name, most in GROUPS.items() if point.tie_share <= most)


def _corrected_contrasts(study: SplitStudy, measure: str) -> list[SplitContrast]:
    """All contrasts of a measure, with Holm's correction over them."""
    return correct_jointly(
        [
            _contrast(study, data, measure, baseline, group)
            for data in study.data
            for baseline in METHODS[1:]
            for group in study.groups(data)
        ]
    )


def _contrast(study: SplitStudy, data: str, measure: str, baseline: str, group: str) -> SplitContrast:
    """Compare a baseline with the comparison machine on the same splits; p-values as they are."""

    def tests(method: str) -> FloatArray:
        return np.array(
            [point.test for point in study.curve_points(data, measure, method) if _group(point) == group]
        )

    ours, wrong = tests("compare"), tests(baseline + PUBLISHED)
    test = paired(tests(baseline), ours)
    published = float((wrong - ours).mean()) if len(wrong) else float("nan")
    return SplitContrast(
        data,
        measure,
        group,
        baseline,
        test,
        test.t_test,
        published,
        _paper_mean(study, data, measure, baseline),
    )


def _paper_mean(study: SplitStudy, data: str, measure: str, baseline: str) -> float:
    """The paper's baseline less its comparison machine; NaN where splits are not just the paper's."""
    points = study.curve_points(data, measure, "compare")
    if points != study.paper_splits().curve_points(data, measure, "compare"):
        return float("nan")
    sizes = dict.fromkeys(point.n for point in points)
    return float(np.mean([study.paper[n, baseline][0] - study.paper[n, "compare"][0] for n in sizes]))
