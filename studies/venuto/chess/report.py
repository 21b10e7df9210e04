"""Report of `studies svmcompare --figure 6`: chess games, as tables, plain values, CSV and picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from concordant._internals import new_table, number
from studies.shared.contrasts import TESTS
from studies.shared.output import add_blocks
from studies.venuto.chess.results import MEASURES, OURS, PUBLISHED
from studies.venuto.svmcompare.report import signed

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from concordant.evaluation import PairedAUC
    from studies.shared.output import RemarkedTable
    from studies.venuto.chess.results import ChessContrast, ChessStudy

KNOWN = [
    "paper's auc: the mean of its own eight values, on other games; says draw: share of test games",
    "linear, poly, rbf: the hinge, as published; squared: squared hinge",
]
TOLERANCE = "tolerance: share of the objective by which it may be above its minimum; C = 1e-6"
PAIRED = "tests: paired over years; Holm's correction over these baselines"
WITHIN = "interval of 95 %: whole events are resampled; above 0 the logistic machine is better"


@dataclass(frozen=True, eq=False)
class ChessReport:
    """All models on all years."""

    study: ChessStudy

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield areas by year, what else was measured, and tests of the logistic machine."""
        study = self.study
        counts = [
            f"{games.year}: {games.n_train:,} games train, {games.n_test:,} test, "
            f"{games.draw_share:.0%} drawn"
            for games in study.games
        ]
        yield _area_table(study), [*counts, *_hinge_remarks(study)]
        yield _measures_table(study), KNOWN
        if study.tolerances:
            yield _tolerance_table(study), [TOLERANCE]
        if contrasts := study.contrasts():
            yield _contrast_table(contrasts), [f"difference: area of {OURS!r} less the baseline's", PAIRED]
        if study.within:
            yield _within_table(study), [WITHIN]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        study = self.study
        return {
            "games": list(map(asdict, study.games)),
            "impossible": study.impossible,
            "points": self.rows(),
            "contrasts": list(map(asdict, study.contrasts())),
            "within": list(map(asdict, study.within)),
            "tolerances": list(map(asdict, study.tolerances)),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a year and model."""
        return [asdict(point) for point in self.study.points]

    def draw(self, path: Path) -> None:
        """Draw Figure 6."""
        from studies.venuto.chess.plots import plot_chess

        plot_chess(self.study, path)


def _area_table(study: ChessStudy) -> Table:
    """Area of each model in each year."""
    years = [f"{year}" for year in study.years]
    table = new_table("chess: test area by year", "model", *years, "mean", numeric=(*years, "mean"))
    for model in study.models:
        values = study.values(model).tolist()
        table.add_row(model, *map(number, values), number(sum(values) / len(values)))
    return table


def _hinge_remarks(study: ChessStudy) -> list[str]:
    """Machines with the hinge that ignore their features."""
    years = len(study.years)
    collapsed = [f"{model!r} {n} of {years}" for model in study.models if (n := study.collapsed(model))]
    if not collapsed:
        return []
    return [
        f"hinge: the exact optimum has no weights for any C, in so many years: {'; '.join(collapsed)}",
        "such a machine predicts a draw always; its area is that of vanishing weights, a matter of tolerance",
    ]


def _measures_table(study: ChessStudy) -> Table:
    """Means over years, beside the paper's areas."""
    numeric = (*MEASURES, "says draw", "paper's auc")
    table = new_table("chess: means over years", "model", *numeric, numeric=numeric)
    for model in study.models:
        cells = [number(float(study.values(model, name).mean())) for name in (*MEASURES, "predicted_draws")]
        paper = PUBLISHED.get(model, ())
        table.add_row(model, *cells, number(sum(paper) / len(paper)) if paper else "-")
    return table


def _tolerance_table(study: ChessStudy) -> Table:
    """Areas of the linear machines on all statistics by tolerance."""
    numeric = ("tolerance", *(f"{year}" for year in study.years), "mean")
    table = new_table("chess: test area by tolerance", "model", *numeric, numeric=numeric)
    areas: dict[tuple[str, float], list[float]] = {}
    for point in study.tolerances:
        areas.setdefault((point.model, point.tol), []).append(point.auc)
    rows = (
        (model, [model, f"{tol:g}", *map(number, values), number(sum(values) / len(values))])
        for (model, tol), values in areas.items()
    )
    add_blocks(table, rows)
    return table


def _contrast_table(contrasts: list[ChessContrast]) -> Table:
    """Paired tests over years."""
    numeric = ("difference", *TESTS)
    title = "chess: the logistic machine on all 16 statistics"
    table = new_table(title, "baseline", *numeric, numeric=numeric)
    for contrast in contrasts:
        tests = contrast.test.t_test, contrast.test.permutation, contrast.adjusted
        table.add_row(contrast.baseline, signed(contrast.test.difference), *map(number, tests))
    return table


def _within_table(study: ChessStudy) -> Table:
    """Contrasts within each year."""
    numeric = ("difference", "low", "high", "p")
    title = "chess: the logistic machine on all 16 statistics less a baseline, year by year"
    table = new_table(title, "baseline", "year", *numeric, numeric=("year", *numeric))
    add_blocks(
        table,
        (
            (contrast.baseline, [contrast.baseline, f"{contrast.year}", *_within_cells(contrast.test)])
            for contrast in sorted(study.within, key=lambda contrast: contrast.baseline)
        ),
    )
    return table


def _within_cells(test: PairedAUC) -> list[str]:
    return [*map(signed, (test.difference, test.low, test.high)), number(test.p_value)]
