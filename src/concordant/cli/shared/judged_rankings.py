"""Input of `evaluate` and `explain`: TREC judgements with runs, or LETOR rows with scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.shared.output import option, plural, written_as
from concordant.exceptions import ConcordantError, MalformedLineError

if TYPE_CHECKING:
    from concordant import Metric, Queries
    from concordant.cli.shared.row_options import ColumnNames
    from concordant.data.io import Qrels
    from concordant.data.labels import RankingData


_trec, _letor = partial(option, panel="TREC input"), partial(option, panel="LETOR input")
Conventions = Annotated[
    list[str] | None,
    option(
        "--convention -c",
        "CONVENTION",
        "Preset such as trec_eval or lightgbm, or changed fields, 'trec_eval,gain=exp2'; repeat for "
        "several. Default: concordant.",
    ),
]

REMARKS: Mapping[str, tuple[str, str]] = {
    "n_absent": (
        "judged query is not in the run: counted with --all-queries only",
        "judged queries are not in the run: counted with --all-queries only",
    ),
    "n_dropped": (
        "line of the run belongs to a query without judgements: left out",
        "lines of the run belong to queries without judgements: left out",
    ),
    "n_unjudged": (
        "retrieved document was not judged: grade 0",
        "retrieved documents were not judged: grade 0",
    ),
    "n_missing": (
        "judged document was not retrieved: never found",
        "judged documents were not retrieved: never found",
    ),
    "n_filled": (
        "last feature of the model is in no row: 0, as LETOR leaves zeros out",
        "last features of the model are in no row: 0, as LETOR leaves zeros out",
    ),
    "n_negative": ("negative grade counts as 0", "negative grades count as 0"),
}


@dataclass(frozen=True, eq=False)
class JudgedRanking:
    """Scores of one file, with the grades they are judged by.

    Attributes
    ----------
    name
        The file name, or its path if names are ambiguous.
    y, scores, queries, docid
        Arguments of metrics.
    counts
        Counts of what was noticed while reading, by the names of `REMARKS`.
    """

    name: str
    y: Any
    scores: Any
    queries: Queries
    docid: Any = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a metric."""
        return {"y": self.y, "scores": self.scores, "qid": self.queries, "docid": self.docid}

    def remarks(self) -> list[str]:
        """Return a sentence for each count that is not 0."""
        return [plural(self.counts[name], *REMARKS[name]) for name in REMARKS if self.counts.get(name)]


def parse_metrics(names: Iterable[str], conventions: Sequence[str] | None) -> list[Metric]:
    """Parse every metric under every convention, each once."""
    import concordant as cc

    styles: Sequence[str | None] = conventions or [None]
    requested = [(name, style) for style in styles for name in names]
    twice = [name for name, style in requested if style is not None and "[" in name]
    if twice:
        raise typer.BadParameter(
            f"{twice[0]!r} names its convention. Leave out the brackets, or --convention."
        )
    return list(dict.fromkeys(cc.metric(name, convention=style) for name, style in requested))


@dataclass(frozen=True)
class JudgedFiles:
    """Options for rankings and their judgements: TREC files, or LETOR rows with scores."""

    qrels: Annotated[
        Path | None, _trec("--qrels", "FILE", "Judgements, [cyan]qid 0 docid grade[/cyan] a line.")
    ] = None
    run: Annotated[
        list[Path] | None,
        _trec(
            "--run", "FILE", "Run, [cyan]qid Q0 docid rank score tag[/cyan] a line; repeat to compare runs."
        ),
    ] = None
    all_queries: Annotated[
        bool,
        _trec("--all-queries", "", "Count judged queries that are not in the run, as empty rankings."),
    ] = False
    letor: Annotated[
        Path | None,
        _letor(
            "--letor",
            "FILE",
            "Rows, [cyan]grade qid:7 1:0.5 ...[/cyan] a line; or a table (.parquet .feather .csv .tsv).",
        ),
    ] = None
    scores: Annotated[
        list[Path] | None,
        _letor(
            "--scores", "FILE", "Scores, one a line, in the order of the rows; repeat to compare scorers."
        ),
    ] = None

    @property
    def rankings(self) -> list[Path]:
        """Paths of all rankings."""
        return [*(self.run or ()), *(self.scores or ())]

    def read(self, columns: ColumnNames) -> list[JudgedRanking]:
        """Read one ranking per run, or per file of scores; raise for any other combination of options.

        `columns`: names of the columns, if the rows are a table.
        """
        qrels, letor = self.qrels, self.letor
        trec_given, letor_given = qrels is not None or bool(self.run), letor is not None or bool(self.scores)
        if trec_given and any(vars(columns).values()):
            raise typer.BadParameter(
                "--label, --qid and --docid need --letor, because TREC files have no named columns."
            )
        if qrels is not None and self.run and not letor_given:
            import concordant as cc

            judgements = cc.read_qrels(qrels)
            runs = zip(short_names(self.run), map(cc.read_run, self.run), strict=True)
            return [_join_run(name, judgements, run, all_queries=self.all_queries) for name, run in runs]
        if letor is not None and self.scores and not trec_given:
            if self.all_queries:
                raise typer.BadParameter(
                    "--all-queries needs --qrels. All rows of --letor are scored anyway."
                )
            return list(_read_scored(letor, self.scores, columns))
        raise typer.BadParameter("Pass --qrels and --run, or --letor and --scores.")


@dataclass(frozen=True)
class JudgedModels(JudgedFiles):
    """The same, or models that score the rows."""

    model: Annotated[
        list[Path] | None,
        _letor("--model", "MODEL", "Model file or run directory that scores the rows of --letor; repeat."),
    ] = None

    @property
    def rankings(self) -> list[Path]:
        """Paths of all rankings and models."""
        return [*super().rankings, *(self.model or ())]

    def read(self, columns: ColumnNames) -> list[JudgedRanking]:
        """Read one ranking per run, or the rows with each file of scores and then with each model's."""
        letor = self.letor
        if not self.model:
            return super().read(columns)
        if letor is None or self.qrels or self.run or self.all_queries:
            raise typer.BadParameter(
                "--model needs --letor, whose rows it scores, and can be used with --scores only."
            )
        from concordant import Queries
        from concordant.cli.shared.file_rows import count_filled, score_rows
        from concordant.cli.shared.row_options import load_model, read_for

        rankings = list(_read_scored(letor, self.scores, columns)) if self.scores else []
        for path in self.model:
            model = load_model(path)
            rows = read_for(path, model, letor, columns)
            counts = {"n_filled": count_filled(model, rows)}
            queries = Queries.from_ids(rows.qid)
            scores = score_rows(model, rows)
            rankings.append(JudgedRanking(str(path), rows.y, scores, queries, rows.docid, counts))
        names = short_names(self.rankings)
        return [replace(ranking, name=name) for ranking, name in zip(rankings, names, strict=True)]


def _join_run(name: str, qrels: Qrels, run: Any, *, all_queries: bool) -> JudgedRanking:
    """Join a run with the judgements, and count what is only in one of them."""
    import numpy as np

    import concordant as cc

    judged_ids, run_ids = np.unique(qrels.qid), np.unique(run.qid)
    n_absent = len(np.setdiff1d(judged_ids, run_ids, assume_unique=True))
    if n_absent == len(judged_ids):
        raise ConcordantError(
            f"no query of {name} has judgements.\n"
            f"Hint: ids are compared as text; the run has {str(run_ids[0])!r}, the judgements "
            f"{str(judged_ids[0])!r}."
        )
    judged = cc.join(qrels, run, all_queries=all_queries)
    count_names = ("n_dropped", "n_unjudged", "n_missing", "n_negative")
    counts = {"n_absent": n_absent} | {key: getattr(judged, key) for key in count_names}
    return JudgedRanking(name, judged.y, judged.scores, cc.Queries.from_ids(judged.qid), judged.docid, counts)


def _read_scored(
    path: Path, files: Sequence[Path], columns: ColumnNames | None = None
) -> Iterator[JudgedRanking]:
    """Yield the rows with each of the files of scores."""
    import concordant as cc

    data = _judged_rows(path, columns)
    queries = cc.Queries.from_ids(data.qid)
    for name, file in zip(short_names(files), files, strict=True):
        yield JudgedRanking(name, data.y, scores_for(path, len(data.y), file), queries, data.docid)


def _judged_rows(path: Path, columns: ColumnNames | None = None) -> RankingData:
    """Read the rows of LETOR text, or of a table by its suffix, without its features."""
    import concordant as cc
    from concordant.cli.shared.row_options import TABLES, ColumnNames, read_rows

    columns = columns or ColumnNames()
    if written_as(path) in TABLES or columns != ColumnNames():
        return read_rows(path, replace(columns, features=()) if written_as(path) in TABLES else columns)
    # The features are read but not used: sparse matrices take any number of columns.
    return cc.read_letor(path, sparse=True)


def scores_for(path: Path, n_rows: int, file: Path) -> list[float]:
    """Read the scores in a file, one for each row of another."""
    scores = read_scores(file)
    if len(scores) != n_rows:
        problem = f"{plural(len(scores), 'score', 'scores')}, but {path} has {plural(n_rows, 'row', 'rows')}"
        raise MalformedLineError(file, len(scores), 0, problem, "write one score a line, row by row.")
    return scores


def read_scores(path: Path) -> list[float]:
    """Read one score per line; `-inf` is a row that is not in the ranking."""
    from concordant._base.files import read_lines

    lines = [text for _, text in read_lines(path)]
    if lines[-1] == "":  # the text after the last line end is not a line
        lines.pop()
    return [_read_score(path, line, text) for line, text in enumerate(lines, start=1)]


def _read_score(path: Path, line: int, text: str) -> float:
    from concordant._base.files import read_float

    try:
        value = read_float(text)
    except ValueError:
        value = math.nan
    number, hint = text.strip(), "a line is one number and nothing else, in row order."
    if math.isfinite(value) and number.lstrip("+-").isdigit() and Decimal(number) != Decimal(value):
        problem = f"{number[:40]} has more digits than a double holds: it would be rounded to {value:.0f}"
        hint = "rounded scores may tie; use at most 15 digits."
    elif -math.inf < value < math.inf or (value == -math.inf and "inf" in text.lower()):  # not -1e400
        return value
    else:
        problem = f"{number[:40]!r} is not a score" if number else "the line is blank"
    raise MalformedLineError(path, line, 0, problem, hint)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the file names, or the paths if two files have the same name.

    >>> short_names([Path("a/bm25.run"), Path("a/dense.run")])
    ['bm25.run', 'dense.run']
    """
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
