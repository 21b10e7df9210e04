"""Figure 2 of "Support vector comparison machines": margins by the linear and by the quadratic program.

Venuto, Hocking, Sphanurattana and Sugiyama observe that on scaled features the two programs agree. Here that
is measured on random separable sets, features as they are and scaled; and the figure is drawn again, with
pairs of our own, since theirs are not published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from concordant._internals import HardMargin, hard_margin_lp, hard_margin_qp, need_plotly, write_page
from concordant.exceptions import ParameterError
from concordant.types import FloatArray, IntArray

SETS = 40
DIMENSIONS = (2, 3, 5, 10)
PAIRS = 50  # drawn; those near a boundary are left out
BAND = 0.1  # so near: there is no margin without
DECADES = 3.0  # by which units of features differ at most
ROUNDING = 1e-8  # by which a margin may be off
EQUAL = 1e-3  # margins that differ by a smaller share agree
FIGURE_PAIRS, FIGURE_BAND = 40, 0.5  # of the figure: fewer pairs and a margin that can be seen
APART = 0.05  # margins that differ by a larger share do so visibly


@dataclass(frozen=True)
class MarginSet:
    """Both margins of one set of pairs.

    Attributes
    ----------
    dimension, scaled
        Number of features, and whether they were scaled.
    mu_lp, mu_qp
        Margin of the linear and of the quadratic program, in values of the ranking function.
    """

    dimension: int
    scaled: bool
    mu_lp: float
    mu_qp: float

    @property
    def gap(self) -> float:
        """Share of the widest margin that the quadratic program misses; >= 0 up to rounding."""
        return 1.0 - self.mu_qp / self.mu_lp


@dataclass(frozen=True)
class MarginSummary:
    """Summary of sets of one kind; `dimension` 0 stands for all dimensions.

    Attributes
    ----------
    dimension, scaled, n_sets
        Which sets, and how many.
    equal
        Share of the sets on which the margins agree: the gap is at most a thousandth.
    median, largest
        Of the gaps.
    """

    dimension: int
    scaled: bool
    n_sets: int
    equal: float
    median: float
    largest: float

    @classmethod
    def from_sets(cls, dimension: int, sets: list[MarginSet]) -> MarginSummary:
        """Put sets together."""
        gaps = [margin_set.gap for margin_set in sets]
        equal = fmean(gap <= EQUAL for gap in gaps)
        return cls(dimension, sets[0].scaled, len(sets), equal, median(gaps), max(gaps))


@dataclass(frozen=True)
class MarginStudy:
    """Margins of random separable sets, the same ones with features as they are and scaled."""

    sets: tuple[MarginSet, ...]

    @property
    def ordered(self) -> int:
        """Sets on which the linear program's margin is not the smaller one, up to rounding."""
        return sum(margin_set.mu_lp >= margin_set.mu_qp - ROUNDING for margin_set in self.sets)

    def summaries(self) -> tuple[MarginSummary, ...]:
        """Scaled features first, dimension by dimension, then all dimensions; then the same unscaled."""
        summaries = []
        for scaled in (True, False):
            sets = [margin_set for margin_set in self.sets if margin_set.scaled == scaled]
            for dimension in (*sorted({margin_set.dimension for margin_set in sets}), 0):
                some = [margin_set for margin_set in sets if dimension in (0, margin_set.dimension)]
                summaries.append(MarginSummary.from_sets(dimension, some))
        return tuple(summaries)


def study(*, n_sets: int = SETS, seed: int = 0, step: Callable[[str], object] | None = None) -> MarginStudy:
    """Compare both margins on random separable sets.

    Items have normal features, in units that differ by up to three decades, and a linear rank; half of the
    pairs are ties, and pairs near a boundary are left out. Scaled means less the mean and over the standard
    deviation of both sides of the pairs.

    Parameters
    ----------
    n_sets
        Sets in each dimension, >= 1.
    seed
        Of the sets.
    step
        Called with what comes next, `n_sets` times.

    Examples
    --------
    >>> [one.n_sets for one in study(n_sets=1).summaries()]
    [1, 1, 1, 1, 4, 1, 1, 1, 1, 4]
    """
    if n_sets < 1:
        raise ParameterError("n_sets", n_sets, ">= 1")
    rng, sets = np.random.default_rng(seed), []
    for number in range(1, n_sets + 1):
        if step is not None:
            step(f"set {number}")
        for dimension in DIMENSIONS:
            w, units = rng.normal(size=dimension), 10.0 ** rng.uniform(0.0, DECADES, dimension)
            pairs, y = _draw_separable(rng, w, units, PAIRS, BAND)
            sets += [
                _measure(_solve_programs(pairs, y, scaled=is_scaled), scaled=is_scaled)
                for is_scaled in (True, False)
            ]
    return MarginStudy(tuple(sets))


def _draw_separable(
    rng: np.random.Generator, w: FloatArray, units: FloatArray, n: int, band: float
) -> tuple[FloatArray, IntArray]:
    """Draw up to n pairs, shape (n, 2, p), and outcomes that w separates with a margin; of both kinds."""
    while True:
        items = rng.normal(size=(n, 2, len(w)))
        r = (items[:, 1] - items[:, 0]) @ w
        r /= np.median(np.abs(r))
        is_clear = np.abs(np.abs(r) - 1.0) > band
        y = np.where(np.abs(r) <= 1.0, 0.0, np.sign(r)).astype(np.int64)[is_clear]
        if len(set(np.abs(y))) > 1:
            return items[is_clear] * units, y


def _differences(pairs: FloatArray, *, scaled: bool) -> FloatArray:
    """Features of the right less those of the left."""
    units = pairs.std(axis=(0, 1)) if scaled else np.ones(pairs.shape[2])
    return np.asarray((pairs[:, 1] - pairs[:, 0]) / units)


def _solve_programs(pairs: FloatArray, y: IntArray, *, scaled: bool) -> tuple[HardMargin, HardMargin]:
    """Solve both programs."""
    rows = _differences(pairs, scaled=scaled)
    return hard_margin_lp(rows, y), hard_margin_qp(rows, y)


def _measure(solutions: tuple[HardMargin, HardMargin], *, scaled: bool) -> MarginSet:
    lp, qp = solutions
    return MarginSet(len(lp.w), scaled, lp.mu, qp.mu)


# --- the figure


@dataclass(frozen=True, eq=False)
class Panel:
    """Points of a panel, and the ranking functions drawn into it.

    Attributes
    ----------
    title
        What it shows.
    differences, y
        The points, and what they are: 0 ties.
    solutions
        Program -> its solution.
    levels
        Values of r at the boundaries.
    """

    title: str
    differences: FloatArray
    y: IntArray
    solutions: Mapping[str, HardMargin]
    levels: tuple[float, ...]


def panels(*, seed: int = 0) -> tuple[Panel, Panel, Panel]:
    """Left: differences and the LP. Middle: flipped, both programs. Right: the same, scaled.

    The pairs have an angle of order 1 and a distance in the hundreds. They are chosen, as an illustration:
    the first set drawn on which the programs differ before scaling, by 5 % of the margin or more, and agree
    after it. `study` says how often that is so.

    Examples
    --------
    >>> left, middle, right = panels()
    >>> middle.solutions["LP"].mu > 1.05 * middle.solutions["QP"].mu
    True
    >>> abs(right.solutions["LP"].mu / right.solutions["QP"].mu - 1.0) < 0.001
    True
    """
    rng = np.random.default_rng(seed)
    while True:
        pairs, y = _draw_separable(
            rng, np.array([1.0, 0.6]), np.array([1.0, 200.0]), FIGURE_PAIRS, FIGURE_BAND
        )
        before, after = _solve_programs(pairs, y, scaled=False), _solve_programs(pairs, y, scaled=True)
        if _measure(before, scaled=False).gap > APART and _measure(after, scaled=True).gap <= EQUAL:
            break
    rows, lp = _differences(pairs, scaled=False), before[0]
    left = Panel(f"differences<br><sub>mu: LP {lp.mu:.4f}</sub>", rows, y, {"LP": lp}, (-1.0, 1.0))
    return (
        left,
        _flip("flipped", rows, y, before),
        _flip("flipped and scaled", _differences(pairs, scaled=True), y, after),
    )


def _flip(name: str, rows: FloatArray, y: IntArray, solutions: tuple[HardMargin, HardMargin]) -> Panel:
    """Turn differences so that the second item is better, and show ties both ways round."""
    lp, qp = solutions
    turned = np.concatenate((rows * np.where(y == 0, 1, y)[:, None], -rows[y == 0]))
    kinds = np.concatenate((np.abs(y), y[y == 0]))
    title = f"{name}<br><sub>mu: LP {lp.mu:.4f}, QP {qp.mu:.4f}</sub>"
    return Panel(title, turned, kinds, {"LP": lp, "QP": qp}, (1.0,))


def figure2(path: str | Path, *, seed: int = 0) -> None:
    """Write the three panels as one HTML file that needs nothing else; whole, or not at all.

    Parameters
    ----------
    path
        Where to.
    seed
        Of the pairs.
    """
    from studies.venuto.svmcompare.margin_plots import margins_figure

    need_plotly()
    write_page(margins_figure(panels(seed=seed)), path)
