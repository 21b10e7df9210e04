"""What `reproduce maxmargin` found: as tables, as plain values, as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.output import compared, new_table, number, show, significance

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.evaluation.reproduction.maxmargin_points import Point, Reproduction, Summary

__all__ = ["as_dict", "show_all", "write_csv"]

ORIGIN = {"regulariser": "penalty", "union": "union"}
UNLIKE = "(that of the column bound needs no M)"
LEAST = ("alpha", "B", "bound", "largest", "test loss", "worst")


def show_all(result: Reproduction, *, quiet: bool) -> None:
    """Print four tables, each with what a reader should know."""
    for table, remarks in (quality(result), losses(result), bounds(result), least(result)):
        show(table, [] if quiet else remarks)


def quality(result: Reproduction) -> tuple[Table, list[str]]:
    """Give the metrics of the chosen rankers."""
    columns = result.compared()
    title = f"{result.data}: rankings of {result.n_queries:,} test queries"
    table = new_table(title, "method", *columns, numeric=columns)
    for name in result.rules:
        table.add_row(name, *(compared(column[name]) for column in columns.values()))
    grid = f"alpha = {result.alphas[0]:g} to {result.alphas[-1]:g}"
    edge = f"{result.n_at_edge} of {len(result.rules) * result.n_folds} at an end of the grid"
    return table, [
        significance((told for column in columns.values() for told in column.values()), len(result.rules)),
        f"penalty: {grid}, in each fold the one of best ndcg@10 on the validation queries; {edge}",
        "features: each one of each list from 0 to 1; queries where nothing is relevant are skipped",
    ]


def losses(result: Reproduction) -> tuple[Table, list[str]]:
    """Give the hinge of the chosen rankers, and the loss that it dominates, in training and in test."""
    numeric = ("alpha", "hinge", "loss", "test hinge", "test loss", "worst")
    title = f"{result.data}: losses of these rankers, means over folds"
    table = new_table(title, "method", "loss that is bounded", *numeric, numeric=numeric)
    for one in (one for one in result.summaries() if one.rule == "union"):
        means = one.train.hinge, one.train.loss, one.test.hinge, one.test.loss, one.test.worst
        table.add_row(one.method, one.bounds, f"{one.alpha:.2g}", *map(number, means))
    return table, [
        "alpha: the median; hinge: cut off, as in the bounds; worst: what the worst orders lose in test",
        "a query whose labels are all equal counts here, and loses nothing",
        *without_weights(result),
    ]


def without_weights(result: Reproduction) -> Iterator[str]:
    """Say where weights of 0 are optimal."""
    for name in result.rules:
        own = [point for point in result.points if point.method == name]
        if zero := sum(point.length == 0.0 for point in own):
            yield f"{name}: weights 0, which rank nothing, are optimal in {zero} of {len(own)} fits"


def bounds(result: Reproduction) -> tuple[Table, list[str]]:
    """Give what is guaranteed of the chosen rankers."""
    numeric = (
        "B",
        "|w|",
        "complexity",
        "confidence",
        "bound",
        "test loss",
        "vacuous",
        "queries",
        "sharp",
        "paper",
    )
    title = (
        f"{result.data}: bounds on the expected loss of these rankers, {result.n_train:,} training queries"
    )
    table = new_table(title, "method", "B from", *numeric, numeric=numeric)
    for one in result.summaries():
        terms = one.complexity, one.confidence, one.value, one.test.loss
        lengths, vacuous = (few(one.B), few(one.length)), f"{one.n_vacuous} of {one.n_folds}"
        table.add_row(*named(result, one), *lengths, *map(number, terms), vacuous, *far_off(one))
    M = max(one.M for point in result.points for one in point.guarantees.values())
    return table, [
        "bound: training hinge + complexity + confidence; medians over folds, but for the mean test loss",
        "B from the penalty: no ranker at this alpha is longer; union: the next of 1/64, 1/32, ... above |w|",
        f"each with probability {1 - result.delta:g} for all penalties of the grid at once",
        "queries: as many training queries as the bound needs to fall below what the worst orders lose",
        f"sharp: the bound without cutting off, at this B and M = {M:.3g} {UNLIKE}",
        "paper: excess by the paper's theorems, corrected, at the same B and M",
        *counted(result),
    ]


def named(result: Reproduction, one: Summary) -> tuple[str, str]:
    """Give the method, in its first row only, and where B is from."""
    return one.method if one.rule == result.rules[one.method][0] else "", ORIGIN[one.rule]


def far_off(one: Summary) -> tuple[str, str, str]:
    """Give the queries needed, the sharp bound, and the paper's excess, huge ones as powers of ten."""
    return power(math.log10(one.needed)), few(one.sharp), power(one.paper)


def counted(result: Reproduction) -> Iterator[str]:
    """Count the bounds that the test contradicts, and those that say more than the labels do."""
    broken, total = result.count(lambda point, one: point.test.loss > one.value)
    telling, _ = result.count(lambda point, one: one.value < point.train.worst)
    yield f"of {total:,} bounds, at all penalties and in all folds, {broken:,} are below the test loss,"
    yield f"and {telling:,} below what the worst orders of the training queries lose"


def least(result: Reproduction) -> tuple[Table, list[str]]:
    """Give the smallest penalties at which bounds say anything, and what rankings are worth there."""
    metrics = ("map", "ndcg@10")
    title = f"{result.data}: the smallest penalty at which no fold's bound is vacuous"
    table = new_table(title, "method", "B from", *LEAST, *metrics, numeric=(*LEAST, *metrics))
    for chosen in result.summaries():
        one = result.least(chosen.method, chosen.rule)
        if one is None:
            table.add_row(*named(result, chosen), "none", *["-"] * (len(LEAST) + len(metrics) - 1))
            continue
        means = (
            one.value,
            one.largest,
            one.test.loss,
            one.test.worst,
            *(one.metrics[name] for name in metrics),
        )
        table.add_row(*named(result, one), f"{one.alpha:.2g}", few(one.B), *map(number, means))
    return table, ["largest: the largest value of the loss; worst: what the worst orders lose in test"]


def few(value: float) -> str:
    """Give a length in three digits.

    >>> few(44.7213), few(0.015625)
    ('44.7', '0.0156')
    """
    return f"{value:.3g}"


def power(log10: float) -> str:
    """Give a number by its logarithm: whole, or as a power of ten where it is huge.

    >>> power(2.0), power(203.4), power(math.inf), power(math.nan)
    ('100', '10^203', 'none', '-')
    """
    if math.isnan(log10):
        return "-"
    if math.isinf(log10):
        return "none"
    return f"{round(10.0**log10):,}" if log10 < 9.0 else f"10^{log10:.0f}"


def as_dict(result: Reproduction) -> dict[str, Any]:
    """Give all numbers as plain values."""
    found = [result.least(one.method, one.rule) for one in result.summaries()]
    return {
        "data": result.data,
        "n_folds": result.n_folds,
        "n_train": result.n_train,
        "n_queries": result.n_queries,
        "delta": result.delta,
        "grid": result.alphas.tolist(),
        "compared": {
            metric: {name: asdict(told) for name, told in column.items()}
            for metric, column in result.compared().items()
        },
        "chosen": [asdict(one) for one in result.summaries()],
        "least": [asdict(one) for one in found if one is not None],
        "points": [row for point in result.points for row in values(point)],
    }


def values(point: Point) -> Iterator[dict[str, Any]]:
    """Give a point as plain values, one row a rule."""
    for rule, told in point.guarantees.items():
        yield {
            "method": point.method,
            "fold": point.fold,
            "alpha": point.alpha,
            "chosen": point.chosen,
            "length": point.length,
            **{f"train_{name}": value for name, value in asdict(point.train).items()},
            **{f"test_{name}": value for name, value in asdict(point.test).items()},
            **asdict(told),
            "rule": rule,
            **point.metrics,
        }


def write_csv(path: Path, result: Reproduction) -> None:
    """Write one line a method, fold, penalty and rule, whole or not at all."""
    from concordant.supervision.readers.text import write_atomically

    rows = [{"data": result.data} | row for point in result.points for row in values(point)]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())
