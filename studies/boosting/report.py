"""Report of `studies boosting`: its tables, and plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant._internals import new_table, number
from studies.boosting.remarks import losses, set_remarks, standings, terms, words
from studies.shared.contrasts import LEVEL, TESTS, p_cells
from studies.shared.significance import compared

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation import Comparison
    from concordant.types import FloatArray
    from studies.boosting.contrasts import RowContrast
    from studies.boosting.results import BoostingSet, BoostingStudy, StageChoice
    from studies.shared.output import RemarkedTable

NUMBERS = ("difference", "by set", "95 %", "wins", "ties", "losses", *TESTS)


@dataclass(frozen=True, eq=False)
class BoostingReport:
    """All methods on all sets."""

    study: BoostingStudy

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield what the sides choose, all sets, what our defaults do, where others are ahead, each set."""
        study, names = self.study, ("metric", "first", "second")
        contrasts, remarks = _contrasts(
            study, "concordant, chosen less peers, chosen", study.against_choice, ("metric", "data")
        )
        yield contrasts, [*remarks, *terms(study)]
        if len(study.sets) > 1:
            yield _pooled(study), standings(study)
        yield _contrasts(study, "ours against LightGBM's lambdarank", study.against_base, names)
        yield _contrasts(study, "our default against each of the others", study.against_peers, names)
        yield _duels(study), losses(study)
        for data_set in study.sets:
            yield _methods(study, data_set), set_remarks(study, data_set)
            yield _crossed(data_set), ["our default in LightGBM; best of each column in bold"]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        study = self.study

        def each(contrasts: Callable[[str], list[RowContrast]]) -> list[dict[str, Any]]:
            return [asdict(contrast) for metric in study.metrics for contrast in contrasts(metric)]

        return {
            "metrics": list(study.metrics),
            "trees": study.plan.trees,
            "every": study.plan.every,
            "shapes": [str(shape) for shape in study.shapes],
            "quick": study.quick,
            "chosen": each(study.against_choice),
            "by_set": {metric: study.by_set(metric) for metric in study.metrics},
            "sets": [_set_values(study, data_set) for data_set in study.sets],
            "against_lambdarank": each(study.against_base),
            "against_peers": each(study.against_peers),
            "set_by_set": [asdict(pair) for pair in study.cells],
            "standing": {name: list(study.standing(name)) for name in study.column(study.metrics[0])},
        }


def _set_names(study: BoostingStudy) -> str:
    return " + ".join(data_set.data for data_set in study.sets)


def _table_of(title: str, columns: dict[str, dict[str, FloatArray]], *more: str) -> tuple[Table, Any]:
    """Empty table of means, and metric -> row -> its comparison with the best."""
    from concordant.evaluation import against_best

    comparisons = {metric: against_best(values) for metric, values in columns.items()}
    return new_table(title, "method", *comparisons, *more, numeric=(*comparisons, *more)), comparisons


def _methods(study: BoostingStudy, data_set: BoostingSet) -> Table:
    """One row a method: the mean of each metric, and the trees chosen for the first."""
    first = study.metrics[0]
    columns = {metric: data_set.column(metric) for metric in study.metrics}
    table, comparisons = _table_of(f"{data_set.data}: {data_set.n_queries:,} test queries", columns, "trees")
    for row in data_set.rows[first]:
        folds = data_set.choices_by_row[first][row.name]
        trees = [choice.stage for choice in folds if choice.shape]
        last = f"{median(trees):g}" if trees else "-"
        table.add_row(row.name, *(compared(column[row.name]) for column in comparisons.values()), last)
    return table


def _crossed(data_set: BoostingSet) -> Table:
    """One row a metric that is trained for, one column a metric of the test queries."""
    comparisons = data_set.crossed()
    table = new_table(
        f"{data_set.data}: trained for one metric, measured by another",
        "for",
        *comparisons,
        numeric=comparisons,
    )
    for target in comparisons:
        table.add_row(target, *(compared(column[target]) for column in comparisons.values()))
    return table


def _pooled(study: BoostingStudy) -> Table:
    """One row a method: means over all queries and over sets, and how often it is the best in one."""
    from concordant.evaluation import against_best

    n_queries = sum(data_set.n_queries for data_set in study.sets)
    names = [name for metric in study.metrics for name in (metric, "by set")] + ["best", "tied"]
    table = new_table(f"{_set_names(study)}: {n_queries:,} test queries", "method", *names, numeric=names)
    columns = [(against_best(study.column(metric)), study.by_set(metric)) for metric in study.metrics]
    for name in columns[0][0]:
        means = [cell for over, by_set in columns for cell in (compared(over[name]), number(by_set[name]))]
        table.add_row(name, *means, *map(str, study.standing(name)))
    return table


def _contrasts(
    study: BoostingStudy, title: str, asked: Callable[[str], list[RowContrast]], names: Sequence[str]
) -> RemarkedTable:
    """One row a contrast, metric by metric; `names` are the attributes that identify it."""
    blocks = [asked(metric) for metric in study.metrics]
    table = new_table(f"{_set_names(study)}: {title}", *names, *NUMBERS, numeric=NUMBERS)
    for block in blocks:
        for pair in block:
            table.add_row(*(getattr(pair, name) for name in names), *_cells(pair))
        table.add_section()
    return table, words(study, len(blocks[0]))


def _cells(pair: RowContrast) -> list[str | Text]:
    return [
        f"{pair.test.difference:+.4f}",
        f"{pair.by_set:+.4f}",
        f"{pair.low:+.4f} to {pair.high:+.4f}",
        *(f"{count:,}" for count in (pair.wins, pair.ties, pair.losses)),
        *p_cells(pair),
    ]


def _duels(study: BoostingStudy) -> Table:
    """One row a set and a method of others, one column a metric: ours less theirs."""
    table = new_table(
        "ours less theirs, set by set", "data", "ours", "theirs", *study.metrics, numeric=study.metrics
    )
    rows: dict[tuple[str, str, str], list[RowContrast]] = {}
    for pair in study.cells:
        rows.setdefault((pair.data, pair.first, pair.second), []).append(pair)
    for data_set in study.sets:
        for names, row_pairs in rows.items():
            if names[0] == data_set.data:
                table.add_row(*names, *map(_duel, row_pairs))
        table.add_section()
    return table


def _duel(pair: RowContrast) -> Text:
    """Difference with a star where it is significant, and two where it still is after the correction."""
    stars = (pair.test.t_test < LEVEL) + (pair.adjusted < LEVEL)
    return Text(
        f"{pair.test.difference:+.4f}{'*' * stars:<2}", style="bold" if pair.test.difference < 0 else ""
    )


def _set_values(study: BoostingStudy, data_set: BoostingSet) -> dict[str, Any]:
    from concordant.evaluation import against_best

    compared_by = {metric: against_best(data_set.column(metric)) for metric in study.metrics}
    return {
        "data": data_set.data,
        "n_folds": len(data_set.folds),
        "n_queries": data_set.n_queries,
        "results": [
            _row_values(name, metric, comparisons[name], data_set.choices_by_row[metric][name])
            for metric, comparisons in compared_by.items()
            for name in comparisons
        ],
        "crossed": {
            metric: {target: comparison.mean for target, comparison in comparisons.items()}
            for metric, comparisons in data_set.crossed().items()
        },
    }


def _row_values(
    name: str, metric: str, comparison: Comparison, folds: Sequence[StageChoice]
) -> dict[str, Any]:
    return {
        "method": name,
        "metric": metric,
        **asdict(comparison),
        "folds": [
            {
                "method": choice.method,
                "shape": choice.shape,
                "stage": choice.stage,
                "validation": choice.validation,
            }
            for choice in folds
        ],
    }
