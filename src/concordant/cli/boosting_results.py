"""What `reproduce boosting` found: as tables and as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.boosting_words import LEVEL, losses, remarks_of, standings, terms, words
from concordant.cli.output import compared, new_table, number, show

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.boosting_contrasts import Contrast
    from concordant.evaluation.reproduction.boosting_results import Choice, Reproduction, Study
    from concordant.evaluation.significance import Comparison
    from concordant.types import FloatArray

__all__ = ["as_dict", "show_all"]

NUMBERS = ("difference", "by set", "95 %", "wins", "ties", "losses", "p, t-test", "p, sign flips", "p, Holm")


def show_all(study: Study, *, quiet: bool) -> None:
    """Print what the sides choose, all sets, what our defaults do, where others are ahead, and each set."""
    told = partial(show_contrasts, study, quiet=quiet)
    told("concordant, chosen less peers, chosen", study.against_choice, ("metric", "data"), terms(study))
    if len(study.sets) > 1:
        show(pooled(study), [] if quiet else standings(study))
    told("ours against LightGBM's lambdarank", study.against_base)
    told("our default against each of the others", study.against_peers)
    show(duels(study), [] if quiet else losses(study))
    for one in study.sets:
        show(methods(study, one), [] if quiet else remarks_of(study, one))
        show(crossed(one), [] if quiet else ["our default in LightGBM; best of each column in bold"])


def show_contrasts(
    study: Study,
    title: str,
    asked: Callable[[str], list[Contrast]],
    names: Sequence[str] = ("metric", "first", "second"),
    more: Sequence[str] = (),
    *,
    quiet: bool,
) -> None:
    """Print contrasts of each metric."""
    found = [asked(metric) for metric in study.metrics]
    remarks = [] if quiet else [*words(study, len(found[0])), *more]
    show(contrasts(f"{places(study)}: {title}", found, names), remarks)


def places(study: Study) -> str:
    """Name the sets."""
    return " + ".join(one.data for one in study.sets)


def table_of(title: str, columns: dict[str, dict[str, FloatArray]], *more: str) -> tuple[Table, Any]:
    """Give an empty table of means, and metric -> row -> its comparison with the best."""
    from concordant.evaluation.significance import against_best

    told = {metric: against_best(values) for metric, values in columns.items()}
    return new_table(title, "method", *told, *more, numeric=(*told, *more)), told


def methods(study: Study, one: Reproduction) -> Table:
    """Give one row a method: the mean of each metric, and the trees chosen for the first."""
    first = study.metrics[0]
    columns = {metric: one.column(metric) for metric in study.metrics}
    table, told = table_of(f"{one.data}: {one.n_queries:,} test queries", columns, "trees")
    for row in one.rows[first]:
        folds = one.chosen[first][row.name]
        trees = [choice.stage for choice in folds if choice.shape]
        last = f"{median(trees):g}" if trees else "-"
        table.add_row(row.name, *(compared(column[row.name]) for column in told.values()), last)
    return table


def crossed(one: Reproduction) -> Table:
    """Give one row a metric that is trained for, one column a metric of the test queries."""
    told = one.crossed()
    table = new_table(f"{one.data}: trained for one metric, measured by another", "for", *told, numeric=told)
    for target in told:
        table.add_row(target, *(compared(column[target]) for column in told.values()))
    return table


def pooled(study: Study) -> Table:
    """Give one row a method: means over all queries and over sets, and how often it is the best in one."""
    from concordant.evaluation.significance import against_best

    n_queries = sum(one.n_queries for one in study.sets)
    names = [name for metric in study.metrics for name in (metric, "by set")] + ["best", "tied"]
    table = new_table(f"{places(study)}: {n_queries:,} test queries", "method", *names, numeric=names)
    told = [(against_best(study.column(metric)), study.by_set(metric)) for metric in study.metrics]
    for name in told[0][0]:
        means = [cell for over, by_set in told for cell in (compared(over[name]), number(by_set[name]))]
        table.add_row(name, *means, *map(str, study.standing(name)))
    return table


def contrasts(title: str, found: Sequence[Sequence[Contrast]], names: Sequence[str]) -> Table:
    """Give one row a contrast, metric by metric, by what these names of it are."""
    table = new_table(title, *names, *NUMBERS, numeric=NUMBERS)
    for block in found:
        for one in block:
            table.add_row(*(getattr(one, name) for name in names), *cells(one))
        table.add_section()
    return table


def cells(one: Contrast) -> list[str | Text]:
    """Give the numbers of a contrast."""
    test = one.test
    return [
        f"{test.difference:+.4f}",
        f"{one.by_set:+.4f}",
        f"{one.low:+.4f} to {one.high:+.4f}",
        *(f"{count:,}" for count in (one.wins, one.ties, one.losses)),
        number(test.t_test),
        number(test.permutation),
        Text(number(one.adjusted), style="bold" if one.adjusted < LEVEL else ""),
    ]


def duels(study: Study) -> Table:
    """Give one row a set and a method of others, one column a metric: ours less theirs."""
    table = new_table(
        "ours less theirs, set by set", "data", "ours", "theirs", *study.metrics, numeric=study.metrics
    )
    rows: dict[tuple[str, str, str], list[Contrast]] = {}
    for one in study.cells:
        rows.setdefault((one.data, one.first, one.second), []).append(one)
    for place in study.sets:
        for names, found in rows.items():
            if names[0] == place.data:
                table.add_row(*names, *map(duel, found))
        table.add_section()
    return table


def duel(one: Contrast) -> Text:
    """Give a difference, starred where it is hardly chance: twice where it is not after the correction."""
    stars = (one.test.t_test < LEVEL) + (one.adjusted < LEVEL)
    return Text(
        f"{one.test.difference:+.4f}{'*' * stars:<2}", style="bold" if one.test.difference < 0 else ""
    )


def as_dict(study: Study) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "metrics": list(study.metrics),
        "trees": study.plan.trees,
        "every": study.plan.every,
        "shapes": [str(shape) for shape in study.shapes],
        "quick": study.quick,
        "chosen": [asdict(one) for metric in study.metrics for one in study.against_choice(metric)],
        "by_set": {metric: study.by_set(metric) for metric in study.metrics},
        "sets": [set_values(study, one) for one in study.sets],
        "against_lambdarank": [asdict(one) for metric in study.metrics for one in study.against_base(metric)],
        "against_peers": [asdict(one) for metric in study.metrics for one in study.against_peers(metric)],
        "set_by_set": [asdict(one) for one in study.cells],
        "standing": {name: list(study.standing(name)) for name in study.column(study.metrics[0])},
    }


def set_values(study: Study, one: Reproduction) -> dict[str, Any]:
    """Give the numbers of one set."""
    from concordant.evaluation.significance import against_best

    compared_by = {metric: against_best(one.column(metric)) for metric in study.metrics}
    return {
        "data": one.data,
        "n_folds": len(one.folds),
        "n_queries": one.n_queries,
        "results": [
            row_values(name, metric, told[name], one.chosen[metric][name])
            for metric, told in compared_by.items()
            for name in told
        ],
        "crossed": {
            metric: {target: own.mean for target, own in told.items()}
            for metric, told in one.crossed().items()
        },
    }


def row_values(name: str, metric: str, told: Comparison, folds: Sequence[Choice]) -> dict[str, Any]:
    """Give one row and metric as plain values."""
    return {
        "method": name,
        "metric": metric,
        **asdict(told),
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
