"""What `compare-models` reads: rankings that are measured here, or the values that `evaluate -o` wrote."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from concordant.cli.inputs import Ranking, read_scored, short_names
from concordant.cli.output import same_file
from concordant.cli.results import Result, by_number
from concordant.exceptions import ConcordantError, EmptyDataError, MalformedLineError, UnknownNameError

if TYPE_CHECKING:
    from concordant.cli.data import Columns
    from concordant.types import FloatArray

__all__ = ["Compared", "check_several", "from_results", "named_baseline", "read_scored_models", "read_values"]

COLUMNS = ("ranking", "metric", "query", "value")  # and a convention, where there is one
Values = dict[
    tuple[str, str], dict[str, dict[str, float]]
]  # (metric, convention) -> ranking -> query -> value


@dataclass(frozen=True, eq=False)
class Compared:
    """One metric of several rankings on the queries that all of them have.

    Attributes
    ----------
    metric, convention
        As they can be given back by --metric and --convention.
    queries
        Ids, numbers in the order of numbers.
    values
        Name of each ranking -> its value on each query; NaN where the query was skipped.
    left_out
        Name of each ranking -> its queries that some other ranking does not have.
    """

    metric: str
    convention: str
    queries: list[str]
    values: Mapping[str, FloatArray]
    left_out: Mapping[str, int]

    @property
    def greater_is_better(self) -> bool:
        """Whether this is so of the metric; it is of one that is not known here."""
        import concordant as cc

        try:
            return bool(cc.metric(self.metric).greater_is_better)
        except ConcordantError:
            return True


def check_several(files: Sequence[Path]) -> None:
    """Refuse a single ranking, and one that is given twice."""
    if len(files) == 1:
        raise typer.BadParameter(f"{files[0]} alone has nothing to be compared with: give two files or more.")
    for place, file in enumerate(files):
        if any(same_file(file, other) for other in files[:place]):
            raise typer.BadParameter(f"{file} is given twice: it cannot differ from itself.")


def named_baseline(given: str | None, files: Sequence[Path]) -> str | None:
    """Give the name under which a file stands in the tables; any other name as it is.

    >>> named_baseline("runs/a.run", [Path("runs/a.run"), Path("runs/b.run")])
    'a.run'
    """
    names = dict(zip(map(str, files), short_names(files), strict=True))
    return given if given is None else names.get(given, given)


def read_scored_models(
    letor: Path | None,
    scores: Sequence[Path],
    models: Sequence[Path],
    *,
    refused: bool,
    columns: Columns | None = None,
) -> list[Ranking]:
    """Give the rows with each file of scores, then with the scores of each model."""
    if letor is None or refused:
        raise typer.BadParameter("--model goes with --letor, whose rows it scores; and with --scores.")
    from concordant import Queries
    from concordant.cli.data import load_model, read_for
    from concordant.cli.data_rows import scores_of

    known = list(read_scored(letor, scores, columns)) if scores else []
    for path in models:
        model = load_model(path)
        rows = read_for(path, model, letor, columns)
        queries = Queries.from_ids(rows.qid)
        known.append(Ranking(str(path), rows.y, scores_of(model, rows), queries, rows.docid))
    names = short_names([*scores, *models])
    return [replace(one, name=name) for one, name in zip(known, names, strict=True)]


def from_results(results: Sequence[Result]) -> list[Compared]:
    """Give one comparison a metric and convention."""
    values: Values = {}
    for result in results:
        key = result.name, result.convention
        values.setdefault(key, {})[result.ranking.name] = dict(result.by_query())
    return [joined(*key, rankings) for key, rankings in values.items()]


def joined(metric: str, convention: str, rankings: Mapping[str, Mapping[str, float]]) -> Compared:
    """Give the values on the queries that are in every ranking."""
    import numpy as np

    common = set.intersection(*(set(values) for values in rankings.values()))
    if not common:
        raise ConcordantError(
            f"no query is in all of {', '.join(rankings)}.\n"
            "Hint: ids are compared as text; with --all-queries, judged queries that a run lacks count."
        )
    queries = sorted(common, key=by_number)
    columns = {name: np.array([values[qid] for qid in queries]) for name, values in rankings.items()}
    left_out = {name: len(values) - len(common) for name, values in rankings.items()}
    return Compared(metric, convention, queries, columns, left_out)


def read_values(paths: Sequence[Path], metrics: Sequence[str] | None) -> list[Compared]:
    """Give one comparison a metric and convention of tables that `evaluate -o` wrote."""
    values: Values = {}
    for path in paths:
        for line, row in read_rows(path):
            key, ranking = (row["metric"], row.get("convention") or ""), row["ranking"]
            queries = values.setdefault(key, {}).setdefault(ranking, {})
            if row["query"] in queries:
                problem = f"{ranking!r} has query {row['query']!r} of {row['metric']} twice"
                raise MalformedLineError(
                    path, line, 0, problem, "a ranking has one value a query; rename one."
                )
            queries[row["query"]] = number_in(path, line, row["value"])
    if not values:
        raise EmptyDataError(", ".join(map(str, paths)))
    known = {metric for metric, _ in values}
    for name in metrics or ():
        if name not in known:
            raise UnknownNameError("metric", name, known)
    return [joined(*key, rankings) for key, rankings in values.items() if not metrics or key[0] in metrics]


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the number and the cells of each line after the header."""
    from concordant.supervision.readers.text import read_lines

    lines = [text for _, text in read_lines(path)]
    reader = csv.DictReader(lines)
    try:
        yield from cells(path, reader)
    except csv.Error as error:  # such as a lone carriage return
        raise MalformedLineError(path, max(reader.line_num, 1), 0, str(error).rstrip(".")) from error


def cells(path: Path, reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the number and the cells of each line, if they fit the header."""
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        hint = "write such a file by concordant evaluate ... -o FILE."
        raise MalformedLineError(path, 1, 0, f"there is no column {missing[0]!r}", hint)
    for row in reader:
        if None in row or None in row.values():
            problem = f"{len([one for one in row.values() if one is not None])} cells do not fit the header"
            raise MalformedLineError(path, reader.line_num, 0, problem, "write one value a line.")
        yield reader.line_num, row


def number_in(path: Path, line: int, text: str) -> float:
    """Give a value; nothing is a query that was skipped."""
    try:
        value = float(text) if text.strip() else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise MalformedLineError(
            path, line, 0, f"{text[:40]!r} is not a value", "write a number, or nothing."
        )
    return value
