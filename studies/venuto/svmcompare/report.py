"""Reports of `studies svmcompare`, figures 1 to 5: tables, plain values, CSV and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Protocol

from concordant._internals import new_table, number
from studies.shared.contrasts import TESTS
from studies.shared.output import RowReport, add_blocks

if TYPE_CHECKING:
    from rich.table import Table

    from studies.shared.output import RemarkedTable
    from studies.venuto.svmcompare.margins import MarginStudy
    from studies.venuto.svmcompare.patterns import Geometry, Learned, Patterns
    from studies.venuto.svmcompare.results import SplitContrast, SplitStudy

PAPERS: Mapping[str, str] = {"compare": "compare", "rank": "rank, published", "rank2": "rank2, published"}
"""A method of the paper -> which of ours it is."""


class FigureReport(RowReport, Protocol):
    """A report that has a picture."""

    def draw(self, path: Path) -> None:
        """Draw the figure to an HTML file."""


# --- figures 1 to 3


@dataclass(frozen=True, eq=False)
class GeometryReport:
    """Pairs without noise: how many of each outcome, and how far from the boundary."""

    shape: Geometry

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield one table with a row for each outcome."""
        rows = self.rows()
        numeric = ("pairs", "nearest to the boundary")
        table = new_table(f"{len(rows)} pairs without noise, r = |x|²", "outcome", *numeric, numeric=numeric)
        for y, name in ((-1, "left is better"), (0, "tie"), (1, "right is better")):
            far = [abs(abs(row["gap"]) - 1.0) for row in rows if row["y"] == y]
            table.add_row(name, f"{len(far)}", number(min(far, default=math.nan)))
        distance = "| |r(right) - r(left)| - 1 |"
        yield table, [f"distance: {distance}; in the squares of the coordinates r is linear"]

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs as plain values."""
        return {"pairs": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a pair."""
        points, y = self.shape.pairs.points, self.shape.pairs.y
        columns = [*points.reshape(len(y), 4).T.tolist(), self.shape.gap.tolist(), y.tolist()]
        names = ("x1", "x2", "xp1", "xp2", "gap", "y")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def draw(self, path: Path) -> None:
        """Draw Figure 1."""
        from studies.venuto.svmcompare.plots import plot_geometry

        plot_geometry(self.shape, path)


@dataclass(frozen=True, eq=False)
class MarginsReport:
    """Margins by the linear and by the quadratic program."""

    study: MarginStudy

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield one table with a row for each kind of sets."""
        from studies.venuto.svmcompare.margins import EQUAL, ROUNDING

        numeric = ("features", "sets", "equal", "median gap", "largest gap")
        table = new_table("Margins of separable pairs, by both programs", "scaled", *numeric, numeric=numeric)
        for summary in self.study.summaries():
            gaps = (number(round(gap, 4) + 0.0) for gap in (summary.median, summary.largest))  # no -0.0000
            features, sets = f"{summary.dimension or 'all'}", f"{summary.n_sets}"
            table.add_row("yes" if summary.scaled else "no", features, sets, f"{summary.equal:.0%}", *gaps)
            if not summary.dimension:
                table.add_section()
        rounding = f"{ROUNDING:.0e}".replace("e-0", "e-")
        yield (
            table,
            [
                "gap: share of the LP's margin, in values of the ranking function, that the QP misses",
                f"equal: gap at most {EQUAL:g}; the paper observes that on scaled features they agree",
                f"mu_LP >= mu_QP in {self.study.ordered} of {len(self.study.sets)} sets (to {rounding})",
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return summaries and sets as plain values."""
        return {"summaries": list(map(asdict, self.study.summaries())), "sets": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a set."""
        return [asdict(margin_set) | {"gap": margin_set.gap} for margin_set in self.study.sets]

    def draw(self, path: Path) -> None:
        """Draw Figure 2."""
        from studies.venuto.svmcompare.margins import figure2

        figure2(path)


PATTERNS = (
    "agreement: Spearman's correlation with the true ranking function, over the square [-2, 2]²",
    "gamma and C: of least validation error, the first of the best; thresholds on inputs scaled once",
)


@dataclass(frozen=True, eq=False)
class PatternsReport:
    """Agreement of each method with the true ranking function, split by split."""

    splits: Sequence[Patterns]

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield one table with a row for each method and split, and means."""
        first = self.splits[0]
        numeric = ("split", "gamma", "C", "validation error", "test error", "agreement")
        title = f"{first.data}: ranking functions learned from {first.n} pairs, half of them ties"
        table = new_table(title, "method", *numeric, numeric=numeric)
        for method, machines in self.machines().items():
            for seed, machine in machines:
                setting = f"{machine.gamma:.4g}", f"{machine.C:.4g}"
                measures = map(number, (machine.validation, machine.test, machine.agreement))
                table.add_row(method, f"{seed}", *setting, *measures)
            means = (
                fmean(getattr(machine, name) for _, machine in machines)
                for name in ("validation", "test", "agreement")
            )
            table.add_row(method, "mean", "", "", *map(number, means), style="bold")
            table.add_section()
        yield table, PATTERNS

    def machines(self) -> dict[str, list[tuple[int, Learned]]]:
        """Method -> its machine of each split, with the seed."""
        machines: dict[str, list[tuple[int, Learned]]] = {}
        for pattern in self.splits:
            for machine in pattern.learned:
                machines.setdefault(machine.method, []).append((pattern.seed, machine))
        return machines

    def to_dict(self) -> dict[str, Any]:
        """Return the machines as plain values."""
        return {"learned": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a method and split."""
        first = self.splits[0]
        names = ("method", "gamma", "C", "threshold", "validation", "test", "agreement")
        return [
            {"data": first.data, "n": first.n, "seed": seed}
            | {name: getattr(machine, name) for name in names}
            for machines in self.machines().values()
            for seed, machine in machines
        ]

    def draw(self, path: Path) -> None:
        """Draw Figure 3 of the first split."""
        from studies.venuto.svmcompare.plots import plot_patterns

        plot_patterns(self.splits[0], path)


# --- figures 4 and 5

BESIDE = "the paper's four splits; off: distance of the means in the paper's standard deviations over them"
ERRORS = (
    "test error: mean ± standard deviation over splits; truth: the function that made the pairs",
    "published: the threshold was learned on training inputs that were scaled twice",
)
AREAS = (
    "mean ± standard deviation over splits; models were chosen by the same area on validation pairs",
    "area: inversions are errors, as in Table 3; unsigned: they are not, as in the paper's Figure 5",
)
CONTRASTS_OF_AREAS = (
    "difference: baseline less compare, mean over splits; below 0 compare is better",
    "tests: paired, over splits; Holm's correction over the rows of a measure",
)


@dataclass(frozen=True, eq=False)
class SplitReport:
    """All methods on all splits, as plain values and rows."""

    study: SplitStudy

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        from studies.venuto.svmcompare.grid import COSTS, WIDTHS

        study = self.study
        paper = [
            {"n": n, "method": method, "mean": mean, "sd": spread}
            for (n, method), (mean, spread) in study.paper.items()
        ]
        return {
            "grid": {"C": COSTS.tolist(), "gamma": WIDTHS.tolist()},
            "paper": paper if "l2" in study.data else [],
            "simulated": list(study.simulated),
            "contrasts": [asdict(contrast) | {"due": contrast.due} for contrast in study.contrasts()],
            "points": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a split, measure and method."""
        return [asdict(point) for point in self.study.points]


class ErrorsReport(SplitReport):
    """Errors by size, beside the paper's, and what is left of its advantage."""

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield the errors on each kind of data, those of the paper, and the contrasts."""
        study = self.study
        on_paper_splits = study.paper_splits()
        for data in study.data:
            yield _curve_table(study, data, "error"), ERRORS if data == study.data[-1] else ()
            if data == "l2" and on_paper_splits.points:
                yield _paper_table(on_paper_splits), [BESIDE]
        has_paper = any(not math.isnan(contrast.paper) for contrast in study.contrasts())
        yield _contrast_table(study), _error_contrast_remarks(has_paper=has_paper)

    def draw(self, path: Path) -> None:
        """Draw Figure 4."""
        from studies.venuto.svmcompare.plots import plot_errors

        plot_errors(self.study, path)


class AreasReport(SplitReport):
    """Areas by the share of ties, in both versions."""

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield the areas of each kind of data and version, and the contrasts."""
        study = self.study
        curves = [(data, measure) for data in study.data for measure in study.measures]
        for curve in curves:
            yield _curve_table(study, *curve), AREAS if curve == curves[-1] else ()
        yield _contrast_table(study), CONTRASTS_OF_AREAS

    def draw(self, path: Path) -> None:
        """Draw Figure 5."""
        from studies.venuto.svmcompare.plots import plot_areas

        plot_areas(self.study, path)


def _error_contrast_remarks(*, has_paper: bool) -> list[str]:
    published = "published, paper: the same with the published threshold, and in the paper's figure"
    return [
        "difference: baseline less compare, mean over splits; above 0 compare is better",
        "tests: paired, over splits; Holm's correction over this table",
        published if has_paper else "published: the same with the published threshold",
        "due to the threshold: share of the published difference that the right threshold closes",
    ]


def _curve_table(study: SplitStudy, data: str, measure: str) -> Table:
    """One row a size or share of ties, one column a method."""
    methods, settings = study.methods(data), study.settings(data)
    by_size = measure == "error"
    first = "n" if by_size else "ties"
    n, share = settings[0]
    about = f"test error, {share:.0%} ties" if by_size else f"test {measure}, {n} pairs"
    name = "l2, simulated" if data == "l2" in study.simulated else data  # the paper's own pool is known
    table = new_table(f"{name}: {about}", first, *methods, numeric=(first, *methods))
    for setting in settings:
        values = [study.tests(data, measure, method, setting) for method in methods]
        table.add_row(f"{setting[0]}" if by_size else f"{setting[1]:g}", *map(_mean_and_spread, values))
    return table


def _mean_and_spread(values: Iterable[float]) -> str:
    """Format a mean and a standard deviation; of one value the value.

    >>> _mean_and_spread([0.1, 0.2]), _mean_and_spread([0.25])
    ('0.1500 ± 0.071', '0.2500')
    """
    numbers = list(values)
    return f"{number(fmean(numbers))} ± {stdev(numbers):.3f}" if len(numbers) > 1 else number(numbers[0])


def _paper_table(study: SplitStudy) -> Table:
    """Our values of l2 and the paper's."""
    numeric = [f"{name} {what}" for name in PAPERS for what in ("ours", "paper", "off")]
    title = "l2: beside the paper; rank and rank2 with the published threshold"
    table = new_table(title, "n", *numeric, numeric=("n", *numeric))
    for n, share in study.settings("l2"):
        cells: list[str] = []
        for name, ours in PAPERS.items():
            mean, (reported, spread) = (
                float(study.tests("l2", "error", ours, (n, share)).mean()),
                study.paper[n, name],
            )
            cells += [number(mean), number(reported), f"{(mean - reported) / spread:+.2f}"]
        table.add_row(f"{n}", *cells)
    return table


def _contrast_table(study: SplitStudy) -> Table:
    """Remaining advantage of the comparison machine."""
    contrasts = study.contrasts()
    with_thresholds = any(not math.isnan(contrast.published) for contrast in contrasts)
    has_paper = any(not math.isnan(contrast.paper) for contrast in contrasts)
    numeric = ["difference", *TESTS, *["published"] * with_thresholds, *["paper"] * has_paper]
    numeric += ["due to the threshold"] * with_thresholds
    names = ("data", "measure", "splits", "baseline")
    table = new_table("Baselines less compare", *names, *numeric, numeric=numeric)
    rows = (
        (contrast.data, _contrast_cells(contrast, with_thresholds=with_thresholds, has_paper=has_paper))
        for contrast in contrasts
    )
    add_blocks(table, rows)
    return table


def _contrast_cells(contrast: SplitContrast, *, with_thresholds: bool, has_paper: bool) -> list[str]:
    test = contrast.test
    cells = [
        contrast.data,
        contrast.measure,
        f"{test.n_queries}, {contrast.group}",
        contrast.baseline,
        f"{test.difference:+.4f}",
    ]
    cells += map(_format_p, (test.t_test, test.permutation, contrast.adjusted))
    cells += [signed(contrast.published)] * with_thresholds + [signed(contrast.paper)] * has_paper
    return cells + ["-" if math.isnan(contrast.due) else f"{contrast.due:.0%}"] * with_thresholds


def _format_p(p: float) -> str:
    """Format a p-value, which is never 0.

    >>> _format_p(0.0312), _format_p(0.00004), _format_p(math.nan)
    ('0.0312', '<0.0001', '-')
    """
    return "<0.0001" if p < 0.00005 else number(p)


def signed(value: float) -> str:
    """Format a difference with its sign.

    >>> signed(0.25), signed(math.nan)
    ('+0.2500', '-')
    """
    return "-" if math.isnan(value) else f"{value:+.4f}"
