"""What `reproduce svmcompare --figure 6` found: chess games, as tables and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from concordant.cli.output import new_table, number
from concordant.cli.svmcompare_results import Report, Told, signed

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.svmcompare_chess import ChessStudy
    from concordant.evaluation.reproduction.svmcompare_chess_results import ChessContrast

__all__ = ["chess_report"]

KNOWN = [
    "paper's auc: the mean of its own eight values, on other games; says draw: share of test games",
    "linear, poly, rbf: the hinge, as published; squared: squared hinge",
]
TOLERANCE = "tolerance: share of the objective by which it may be above its minimum; C = 1e-6"
TESTS = "tests: paired over years; Holm's correction over these baselines"
WITHIN = "interval of 95 %: whole events are resampled; above 0 the logistic machine is better"


def chess_report(study: ChessStudy) -> Report:
    """Give areas by year, what else was measured, and tests of the logistic machine on all statistics."""
    from concordant.evaluation.reproduction.svmcompare_chess import figure6
    from concordant.evaluation.reproduction.svmcompare_chess_results import OURS

    counts = [
        f"{one.year}: {one.n_train:,} games train, {one.n_test:,} test, {one.draw_share:.0%} drawn"
        for one in study.games
    ]
    tables: list[Told] = [(by_year(study), [*counts, *hinge(study)]), (measures(study), KNOWN)]
    if study.tolerances:
        tables.append((by_tolerance(study), [TOLERANCE]))
    if told := study.contrasts():
        tables.append((contrasts(told), [f"difference: area of {OURS!r} less the baseline's", TESTS]))
    if study.within:
        tables.append((within(study), [WITHIN]))
    return Report(
        tables, plain(study), [asdict(point) for point in study.points], lambda path: figure6(study, path)
    )


def by_year(study: ChessStudy) -> Table:
    """Give the area of each model in each year."""
    years = [f"{year}" for year in study.years]
    table = new_table("chess: test area by year", "model", *years, "mean", numeric=(*years, "mean"))
    for model in study.models:
        values = study.values(model).tolist()
        table.add_row(model, *map(number, values), number(sum(values) / len(values)))
    return table


def hinge(study: ChessStudy) -> list[str]:
    """Say which machines with the hinge ignore their features."""
    years = len(study.years)
    told = [f"{model!r} {n} of {years}" for model in study.models if (n := study.collapsed(model))]
    if not told:
        return []
    return [
        f"hinge: the exact optimum has no weights for any C, in so many years: {'; '.join(told)}",
        "such a machine predicts a draw always; its area is that of vanishing weights, a matter of tolerance",
    ]


def measures(study: ChessStudy) -> Table:
    """Give means over years, beside the paper's areas."""
    from concordant.evaluation.reproduction.svmcompare_chess_results import MEASURES, PUBLISHED

    numeric = (*MEASURES, "says draw", "paper's auc")
    table = new_table("chess: means over years", "model", *numeric, numeric=numeric)
    for model in study.models:
        cells = [number(float(study.values(model, name).mean())) for name in (*MEASURES, "predicted_draws")]
        paper = PUBLISHED.get(model, ())
        table.add_row(model, *cells, number(sum(paper) / len(paper)) if paper else "-")
    return table


def by_tolerance(study: ChessStudy) -> Table:
    """Give the areas of the linear machines on all statistics by tolerance."""
    years = [f"{year}" for year in study.years]
    numeric = ("tolerance", *years, "mean")
    table = new_table("chess: test area by tolerance", "model", *numeric, numeric=numeric)
    last = ""
    for model, tol in dict.fromkeys((one.model, one.tol) for one in study.tolerances):
        if last and model != last:
            table.add_section()
        last = model
        areas = [one.auc for one in study.tolerances if (one.model, one.tol) == (model, tol)]
        table.add_row(model, f"{tol:g}", *map(number, areas), number(sum(areas) / len(areas)))
    return table


def contrasts(told: list[ChessContrast]) -> Table:
    """Give the paired tests over years."""
    numeric = ("difference", "p, t-test", "p, sign flips", "p, Holm")
    table = new_table(
        "chess: the logistic machine on all 16 statistics", "baseline", *numeric, numeric=numeric
    )
    for one in told:
        tests = one.test.t_test, one.test.permutation, one.adjusted
        table.add_row(one.baseline, signed(one.test.difference), *map(number, tests))
    return table


def within(study: ChessStudy) -> Table:
    """Give the contrasts of each year."""
    numeric = ("difference", "low", "high", "p")
    table = new_table(
        "chess: the logistic machine on all 16 statistics less a baseline, year by year",
        "baseline",
        "year",
        *numeric,
        numeric=("year", *numeric),
    )
    last = ""
    for one in sorted(study.within, key=lambda one: one.baseline):
        if last and one.baseline != last:
            table.add_section()
        last, test = one.baseline, one.test
        ends = signed(test.difference), signed(test.low), signed(test.high)
        table.add_row(one.baseline, f"{one.year}", *ends, number(test.p_value))
    return table


def plain(study: ChessStudy) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "games": [asdict(one) for one in study.games],
        "impossible": study.impossible,
        "points": [asdict(point) for point in study.points],
        "contrasts": [asdict(one) for one in study.contrasts()],
        "within": [asdict(one) for one in study.within],
        "tolerances": [asdict(one) for one in study.tolerances],
    }
