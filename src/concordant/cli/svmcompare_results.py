"""What `reproduce svmcompare` found: as tables, as plain values, as CSV and as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from concordant.cli.output import new_table, number

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.svmcompare_margins import MarginStudy
    from concordant.evaluation.reproduction.svmcompare_patterns import Geometry, Learned, Patterns
    from concordant.evaluation.reproduction.svmcompare_points import Contrast, Study

__all__ = [
    "Report",
    "Told",
    "areas_report",
    "errors_report",
    "geometry_report",
    "margins_report",
    "patterns_report",
    "signed",
]

PAPERS: Mapping[str, str] = {"compare": "compare", "rank": "rank, published", "rank2": "rank2, published"}
"""A method of the paper -> which of ours it is."""
Told = tuple["Table", list[str]]


@dataclass(frozen=True, eq=False)
class Report:
    """What a command has to say.

    Attributes
    ----------
    tables
        Tables, each with what a reader should know.
    plain
        The same as plain values.
    rows
        One line of the CSV file each.
    draw
        Writes the picture.
    """

    tables: Sequence[Told]
    plain: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Path], None]


# --- figures 1 to 3


def geometry_report(shape: Geometry) -> Report:
    """Give pairs without noise: how many of each outcome, and how far from the boundary."""
    from concordant.evaluation.reproduction.svmcompare_plots import plot_geometry

    n = len(shape.pairs.y)
    table = new_table(
        f"{n} pairs without noise, r = |x|²",
        "outcome",
        "pairs",
        "nearest to the boundary",
        numeric=("pairs", "nearest to the boundary"),
    )
    pairs = zip(
        shape.pairs.points.reshape(n, 4).tolist(), shape.gap.tolist(), shape.pairs.y.tolist(), strict=True
    )
    columns = [(*points, gap, y) for points, gap, y in pairs]
    for y, name in ((-1, "left is better"), (0, "tie"), (1, "right is better")):
        far = [abs(abs(gap) - 1.0) for *_, gap, own in columns if own == y]
        table.add_row(name, f"{len(far)}", number(min(far, default=math.nan)))
    rows = [dict(zip(("x1", "x2", "xp1", "xp2", "gap", "y"), row, strict=True)) for row in columns]
    remarks = ["distance: | |r(right) - r(left)| - 1 |; in the squares of the coordinates r is linear"]
    return Report([(table, remarks)], {"pairs": rows}, rows, lambda path: plot_geometry(shape, path))


def margins_report(study: MarginStudy) -> Report:
    """Give how often the linear and the quadratic program find the same margin."""
    from concordant.evaluation.reproduction.svmcompare_margins import EQUAL, ROUNDING, figure2

    numeric = ("features", "sets", "equal", "median gap", "largest gap")
    table = new_table("Margins of separable pairs, by both programs", "scaled", *numeric, numeric=numeric)
    for one in study.summaries():
        gaps = (number(round(gap, 4) + 0.0) for gap in (one.median, one.largest))  # no -0.0000
        name = "yes" if one.scaled else "no"
        table.add_row(name, f"{one.dimension or 'all'}", f"{one.n_sets}", f"{one.equal:.0%}", *gaps)
        if not one.dimension:
            table.add_section()
    remarks = [
        "gap: share of the LP's margin, in values of the ranking function, that the QP misses",
        f"equal: gap at most {EQUAL:g}; the paper observes that on scaled features they agree",
        f"mu_LP >= mu_QP in {study.ordered} of {len(study.sets)} sets (to {ROUNDING:.0e})".replace(
            "e-0", "e-"
        ),
    ]
    rows = [asdict(one) | {"gap": one.gap} for one in study.sets]
    summaries = [asdict(one) for one in study.summaries()]
    return Report([(table, remarks)], {"summaries": summaries, "sets": rows}, rows, figure2)


def patterns_report(found: Sequence[Patterns]) -> Report:
    """Give how well each method recovers the true ranking function; the picture is of the first split."""
    from concordant.evaluation.reproduction.svmcompare_plots import plot_patterns

    first = found[0]
    numeric = ("split", "gamma", "C", "validation error", "test error", "agreement")
    title = f"{first.data}: ranking functions learned from {first.n} pairs, half of them ties"
    table = new_table(title, "method", *numeric, numeric=numeric)
    rows = []
    for method in (one.method for one in first.learned):
        own = [(pattern.seed, one) for pattern in found for one in pattern.learned if one.method == method]
        for seed, one in own:
            values = (
                f"{one.gamma:.4g}",
                f"{one.C:.4g}",
                *map(number, (one.validation, one.test, one.agreement)),
            )
            table.add_row(method, f"{seed}", *values)
            rows.append(pattern_row(first.data, first.n, seed, one))
        means = (fmean(getattr(one, name) for _, one in own) for name in ("validation", "test", "agreement"))
        table.add_row(method, "mean", "", "", *map(number, means), style="bold")
        table.add_section()
    remarks = [
        "agreement: Spearman's correlation with the true ranking function, over the square [-2, 2]²",
        "gamma and C: of least validation error, the first of the best; thresholds on inputs scaled once",
    ]
    return Report([(table, remarks)], {"learned": rows}, rows, lambda path: plot_patterns(first, path))


def pattern_row(data: str, n: int, seed: int, one: Learned) -> dict[str, Any]:
    """Give one machine as plain values."""
    names = ("method", "gamma", "C", "threshold", "validation", "test", "agreement")
    return {"data": data, "n": n, "seed": seed} | {name: getattr(one, name) for name in names}


# --- figures 4 and 5


def errors_report(study: Study) -> Report:
    """Give errors by size, beside the paper's, and what is left of its advantage."""
    from concordant.evaluation.reproduction.svmcompare_plots import plot_errors

    tables: list[Told] = [(curves(study, data, "error"), []) for data in study.data]
    tables[-1][1].extend(
        [
            "test error: mean ± standard deviation over splits; truth: the function that made the pairs",
            "published: the threshold was learned on training inputs that were scaled twice",
        ]
    )
    if (own := study.of_paper()).points:
        tables.insert(study.data.index("l2") + 1, (beside_paper(own), [BESIDE]))
    known = any(not math.isnan(one.paper) for one in study.contrasts())
    tables.append((contrast_table(study), contrasts_of_errors(known=known)))
    return Report(tables, plain(study), point_rows(study), lambda path: plot_errors(study, path))


BESIDE = "the paper's four splits; off: distance of the means in the paper's standard deviations over them"
CONTRASTS_OF_AREAS = [
    "difference: baseline less compare, mean over splits; below 0 compare is better",
    "tests: paired, over splits; Holm's correction over the rows of a measure",
]


def contrasts_of_errors(*, known: bool) -> list[str]:
    """Say what the columns are; that of the paper where it is known."""
    told = "published, paper: the same with the published threshold, and in the paper's figure"
    return [
        "difference: baseline less compare, mean over splits; above 0 compare is better",
        "tests: paired, over splits; Holm's correction over this table",
        told if known else "published: the same with the published threshold",
        "due to the threshold: share of the published difference that the right threshold closes",
    ]


def areas_report(study: Study) -> Report:
    """Give areas by the share of ties, in both versions."""
    from concordant.evaluation.reproduction.svmcompare_plots import plot_areas

    shown = [(data, measure) for data in study.data for measure in study.measures]
    tables: list[Told] = [(curves(study, *one), []) for one in shown]
    tables[-1][1].extend(
        [
            "mean ± standard deviation over splits; models were chosen by the same area on validation pairs",
            "area: inversions are errors, as in Table 3; unsigned: they are not, as in the paper's Figure 5",
        ]
    )
    tables.append((contrast_table(study), CONTRASTS_OF_AREAS))
    return Report(tables, plain(study), point_rows(study), lambda path: plot_areas(study, path))


def curves(study: Study, data: str, measure: str) -> Table:
    """Give one row a size or share of ties, one column a method."""
    methods, settings = study.methods(data), study.settings(data)
    by_size = measure == "error"
    first = "n" if by_size else "ties"
    n, share = settings[0]
    about = f"test error, {share:.0%} ties" if by_size else f"test {measure}, {n} pairs"
    table = new_table(f"{data}: {about}", first, *methods, numeric=(first, *methods))
    for setting in settings:
        values = [study.tests(data, measure, method, setting) for method in methods]
        table.add_row(f"{setting[0]}" if by_size else f"{setting[1]:g}", *map(mean_and_spread, values))
    return table


def mean_and_spread(values: Iterable[float]) -> str:
    """Give a mean and a standard deviation; of one value the value.

    >>> mean_and_spread([0.1, 0.2]), mean_and_spread([0.25])
    ('0.1500 ± 0.071', '0.2500')
    """
    seen = list(values)
    return f"{number(fmean(seen))} ± {stdev(seen):.3f}" if len(seen) > 1 else number(seen[0])


def beside_paper(study: Study) -> Table:
    """Give ours and the paper's values of l2."""
    numeric = [f"{name} {what}" for name in PAPERS for what in ("ours", "paper", "off")]
    title = "l2: beside the paper; rank and rank2 with the published threshold"
    table = new_table(title, "n", *numeric, numeric=("n", *numeric))
    for n, share in study.settings("l2"):
        cells: list[str] = []
        for name, ours in PAPERS.items():
            mean, (told, spread) = (
                float(study.tests("l2", "error", ours, (n, share)).mean()),
                study.paper[n, name],
            )
            cells += [number(mean), number(told), f"{(mean - told) / spread:+.2f}"]
        table.add_row(f"{n}", *cells)
    return table


def contrast_table(study: Study) -> Table:
    """Give what is left of the advantage of the comparison machine."""
    found = study.contrasts()
    with_thresholds = any(not math.isnan(one.published) for one in found)
    known = any(not math.isnan(one.paper) for one in found)
    numeric = ["difference", "p, t-test", "p, sign flips", "p, Holm"]
    numeric += (
        ["published"] * with_thresholds + ["paper"] * known + ["due to the threshold"] * with_thresholds
    )
    table = new_table(
        "Baselines less compare", "data", "measure", "splits", "baseline", *numeric, numeric=numeric
    )
    last = ""
    for one in found:
        if last and one.data != last:
            table.add_section()
        last = one.data
        table.add_row(*contrast_cells(one, with_thresholds=with_thresholds, known=known))
    return table


def contrast_cells(one: Contrast, *, with_thresholds: bool, known: bool) -> list[str]:
    """Give the cells of a row."""
    test = one.test
    cells = [one.data, one.measure, f"{test.n_queries}, {one.group}", one.baseline, f"{test.difference:+.4f}"]
    cells += map(probability, (test.t_test, test.permutation, one.adjusted))
    cells += [signed(one.published)] * with_thresholds + [signed(one.paper)] * known
    return cells + ["-" if math.isnan(one.due) else f"{one.due:.0%}"] * with_thresholds


def probability(p: float) -> str:
    """Give a p-value, which is never 0.

    >>> probability(0.0312), probability(0.00004), probability(math.nan)
    ('0.0312', '<0.0001', '-')
    """
    return "<0.0001" if p < 0.00005 else number(p)


def signed(value: float) -> str:
    """Give a difference with its sign.

    >>> signed(0.25), signed(math.nan)
    ('+0.2500', '-')
    """
    return "-" if math.isnan(value) else f"{value:+.4f}"


def plain(study: Study) -> dict[str, Any]:
    """Give all numbers as plain values."""
    from concordant.evaluation.reproduction.svmcompare_grid import COSTS, WIDTHS

    paper = [
        {"n": n, "method": method, "mean": mean, "sd": spread}
        for (n, method), (mean, spread) in study.paper.items()
    ]
    return {
        "grid": {"C": COSTS.tolist(), "gamma": WIDTHS.tolist()},
        "paper": paper if "l2" in study.data else [],
        "contrasts": [asdict(one) | {"due": one.due} for one in study.contrasts()],
        "points": point_rows(study),
    }


def point_rows(study: Study) -> list[dict[str, Any]]:
    """Give one row a split, measure and method."""
    return [asdict(point) for point in study.points]
