"""What `reproduce boosting` found: as tables and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.output import compared, new_table, number, show, significance

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.boosting_results import Choice, Contrast, Reproduction, Study
    from concordant.evaluation.significance import Comparison
    from concordant.types import FloatArray

__all__ = ["as_dict", "show_all"]

LEVEL = 0.05
CHOSEN = ("BoostedRanker, chosen", "peers, chosen")
NUMBERS = ("difference", "95 %", "wins", "ties", "losses", "p, t-test", "p, sign flips", "p, Holm")


def show_all(study: Study, *, quiet: bool) -> None:
    """Print each set, what the metric of training does, all sets together, and where others are ahead."""
    for one in study.sets:
        show(methods(study, one), [] if quiet else remarks(study, one))
        show(crossed(one), [] if quiet else ["the default of ours in LightGBM; best of each column in bold"])
    if len(study.sets) > 1:
        show(pooled(study), [] if quiet else standings(study))
    for title, asked in (
        ("ours against LightGBM's lambdarank", study.against_base),
        ("our default against each of the others", study.against_peers),
    ):
        found = [asked(metric) for metric in study.metrics]
        show(contrasts(f"{places(study)}: {title}", found), [] if quiet else words())
    show(duels(study), [] if quiet else losses(study))


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
        trees = f"{median(choice.stage for choice in folds):g}" if all(fold.shape for fold in folds) else "-"
        table.add_row(row.name, *(compared(column[row.name]) for column in told.values()), trees)
    return table


def remarks(study: Study, one: Reproduction) -> list[str]:
    """Give what a reader of a set's table should know."""
    from concordant.evaluation.significance import against_best

    told = [own for metric in study.metrics for own in against_best(one.column(metric)).values()]
    chosen = [choice for metric in study.metrics for folds in one.chosen[metric].values() for choice in folds]
    shapes = " or ".join(str(shape) for shape in study.shapes)
    lines = [
        significance(told, len(one.rows[study.metrics[0]])),
        f"{shapes}, up to {study.plan.trees} trees of rate 0.05: validation queries choose, for each metric",
        f"and fold; {sum(choice.last for choice in chosen)} of {len(chosen)} choices are at the last stage",
        f"trees: median over folds of the number chosen for {study.metrics[0]}",
    ]
    lines += [picked(study, one, name) for name in CHOSEN]
    if one.data == "mq2007-partial":
        lines.append("85 % of the documents of MQ2007: compare methods, not levels")
    return [*lines, "one fold and few trees: a look, not a result"] if study.quick else lines


def picked(study: Study, one: Reproduction, name: str) -> str:
    """Say what validation picked, and how often."""
    counts = Counter(
        choice.method.partition(" for ")[0] for metric in study.metrics for choice in one.chosen[metric][name]
    )
    n_methods = len(next(row for row in one.rows[study.metrics[0]] if row.name == name).methods)
    told = ", ".join(f"{method} {count}" for method, count in counts.most_common())
    return f"{name}: of {n_methods} methods, on validation queries: {told}"


def crossed(one: Reproduction) -> Table:
    """Give one row a metric that is trained for, one column a metric of the test queries."""
    told = one.crossed()
    table = new_table(f"{one.data}: trained for one metric, measured by another", "for", *told, numeric=told)
    for target in told:
        table.add_row(target, *(compared(column[target]) for column in told.values()))
    return table


def pooled(study: Study) -> Table:
    """Give one row a method: means over the queries of all sets, and how often it is the best in one."""
    columns = {metric: study.column(metric) for metric in study.metrics}
    n_queries = sum(one.n_queries for one in study.sets)
    table, told = table_of(f"{places(study)}: {n_queries:,} test queries", columns, "best", "tied")
    for name in columns[study.metrics[0]]:
        standing = (str(count) for count in study.standing(name))
        table.add_row(name, *(compared(column[name]) for column in told.values()), *standing)
    return table


def standings(study: Study) -> list[str]:
    """Say what the last columns count."""
    cells = len(study.sets) * len(study.metrics)
    tied = "tied: in how many it is the best or not significantly worse"
    best = f"best: in how many of the {cells} sets and metrics"
    return ["marks as above, over the queries of all sets", f"{best}; {tied}"]


def contrasts(title: str, found: Sequence[Sequence[Contrast]]) -> Table:
    """Give one row a contrast, metric by metric."""
    table = new_table(title, "metric", "first", "second", *NUMBERS, numeric=NUMBERS)
    for block in found:
        for one in block:
            table.add_row(one.metric, one.first, one.second, *cells(one))
        table.add_section()
    return table


def cells(one: Contrast) -> list[str | Text]:
    """Give the numbers of a contrast."""
    test = one.test
    return [
        f"{test.difference:+.4f}",
        f"{one.low:+.4f} to {one.high:+.4f}",
        *(f"{count:,}" for count in (one.wins, one.ties, one.losses)),
        number(test.t_test),
        number(test.permutation),
        Text(number(one.adjusted), style="bold" if one.adjusted < LEVEL else ""),
    ]


def words() -> list[str]:
    """Say what the columns of contrasts are."""
    return [
        "difference: first less second, mean over test queries; its interval; above 0 the first is better",
        "wins, ties, losses: queries on which the first is better, equal, worse",
        "Holm's correction: over the rows of a metric",
    ]


def duels(study: Study) -> Table:
    """Give one row a set and a method of others, one column a metric: ours less theirs."""
    table = new_table(
        "ours less theirs, set by set", "data", "ours", "theirs", *study.metrics, numeric=study.metrics
    )
    rows: dict[tuple[str, str, str], list[Contrast]] = {}
    for one in study.cells:
        rows.setdefault((one.data, one.first, one.second), []).append(one)
    for names, found in rows.items():
        table.add_row(*names, *map(duel, found), end_section=names[1:] == CHOSEN)
    return table


def duel(one: Contrast) -> Text:
    """Give a difference, starred where it is hardly chance: twice where it is not after the correction."""
    stars = (one.test.t_test < LEVEL) + (one.adjusted < LEVEL)
    return Text(
        f"{one.test.difference:+.4f}{'*' * stars:<2}", style="bold" if one.test.difference < 0 else ""
    )


def losses(study: Study) -> list[str]:
    """Say how often a peer is ahead, and how often significantly."""
    sides = {
        "ours is ahead": [one for one in study.cells if one.test.difference > 0.0],
        "others are ahead": study.behind(),
    }
    told = []
    for who, found in sides.items():
        alone, corrected = (sum(p < LEVEL for p in ps) for ps in p_values(found))
        told.append(
            f"{who} in {len(found)} of {len(study.cells)}, at 5 % in {alone} (*), {corrected} of which"
        )
        told[-1] += " after Holm's correction over the table (**)"
    return ["mean over test queries; below 0 the other is ahead; stars: paired t-test", *told]


def p_values(found: Sequence[Contrast]) -> tuple[list[float], list[float]]:
    """Give the p-values of contrasts, alone and corrected."""
    return [one.test.t_test for one in found], [one.adjusted for one in found]


def as_dict(study: Study) -> dict[str, Any]:
    """Give all numbers as plain values."""
    return {
        "metrics": list(study.metrics),
        "trees": study.plan.trees,
        "every": study.plan.every,
        "shapes": [str(shape) for shape in study.shapes],
        "quick": study.quick,
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
