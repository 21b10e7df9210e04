"""What `evaluate` and `explain` read: TREC judgements with runs, or LETOR rows with scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import plural, written_as
from concordant.exceptions import ConcordantError, MalformedLineError

if TYPE_CHECKING:
    from concordant import Metric, Queries
    from concordant.cli.data import Columns
    from concordant.supervision.data import RankingData
    from concordant.supervision.readers import Qrels

__all__ = [
    "AllQueries",
    "Conventions",
    "LetorFile",
    "ModelFiles",
    "QrelsFile",
    "Ranking",
    "RunFiles",
    "ScoreFiles",
    "chosen_metrics",
    "read_rankings",
]

TREC, LETOR = "TREC input", "LETOR input"
QrelsFile = Annotated[
    Path | None,
    typer.Option(
        "--qrels",
        metavar="FILE",
        help="Judgements, [cyan]qid 0 docid grade[/cyan] a line.",
        rich_help_panel=TREC,
    ),
]
RunFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="Run, [cyan]qid Q0 docid rank score tag[/cyan] a line; repeat to compare runs.",
        rich_help_panel=TREC,
    ),
]
AllQueries = Annotated[
    bool,
    typer.Option(
        "--all-queries",
        metavar="",
        help="Count judged queries that are not in the run, as empty rankings.",
        rich_help_panel=TREC,
    ),
]
Conventions = Annotated[
    list[str] | None,
    typer.Option(
        "--convention",
        "-c",
        metavar="CONVENTION",
        help="Preset such as trec_eval or lightgbm, or changed fields, 'trec_eval,gain=exp2'; repeat for "
        "several. Default: concordant.",
        show_default=False,
    ),
]
LetorFile = Annotated[
    Path | None,
    typer.Option(
        "--letor",
        metavar="FILE",
        help="Rows, [cyan]grade qid:7 1:0.5 ...[/cyan] a line; or a table (.parquet .feather .csv .tsv).",
        rich_help_panel=LETOR,
    ),
]
ScoreFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--scores",
        metavar="FILE",
        help="Scores, one a line, in the order of the rows; repeat to compare scorers.",
        rich_help_panel=LETOR,
    ),
]
ModelFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model file or run directory that scores the rows of --letor; repeat.",
        rich_help_panel=LETOR,
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
    "n_negative": ("negative grade counts as 0", "negative grades count as 0"),
}


@dataclass(frozen=True, eq=False)
class Ranking:
    """The scores of one file, beside the grades they are judged by.

    Attributes
    ----------
    name
        The file, as short as is unambiguous.
    y, scores, queries, docid
        What metrics are called with.
    counts
        What was noticed on the way, by the names of `REMARKS`; empty for LETOR.
    """

    name: str
    y: Any
    scores: Any
    queries: Queries
    docid: Any = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Give the keywords of a metric's call."""
        return {"y": self.y, "scores": self.scores, "qid": self.queries, "docid": self.docid}

    def remarks(self) -> list[str]:
        """Give a sentence for each count that is not 0."""
        return [plural(self.counts[name], *REMARKS[name]) for name in REMARKS if self.counts.get(name)]


def chosen_metrics(names: Iterable[str], conventions: Sequence[str] | None) -> list[Metric]:
    """Give every metric under every convention, each once."""
    import concordant as cc

    styles: Sequence[str | None] = conventions or [None]
    given = [(name, style) for style in styles for name in names]
    twice = [name for name, style in given if style is not None and "[" in name]
    if twice:
        raise typer.BadParameter(
            f"{twice[0]!r} names its convention; leave out the brackets, or --convention."
        )
    return list(dict.fromkeys(cc.metric(name, convention=style) for name, style in given))


def read_rankings(
    qrels: Path | None,
    run: Sequence[Path] | None,
    letor: Path | None,
    scores: Sequence[Path] | None,
    *,
    all_queries: bool = False,
    columns: Columns | None = None,
) -> list[Ranking]:
    """Give one ranking per run, or per file of scores; any other combination of options is refused.

    `columns`: what those of a table are called.
    """
    trec_given, letor_given = qrels is not None or bool(run), letor is not None or bool(scores)
    if trec_given and columns is not None and any(vars(columns).values()):
        raise typer.BadParameter("--label, --qid and --docid go with --letor: TREC files have no columns.")
    if qrels is not None and run and not letor_given:
        return list(read_trec(qrels, run, all_queries=all_queries))
    if letor is not None and scores and not trec_given:
        if all_queries:
            raise typer.BadParameter("--all-queries goes with --qrels: LETOR rows are all scored.")
        return list(read_scored(letor, scores, columns))
    raise typer.BadParameter("give --qrels and --run, or --letor and --scores.")


def read_trec(path: Path, runs: Sequence[Path], *, all_queries: bool) -> Iterator[Ranking]:
    """Give each run, joined with the judgements."""
    import concordant as cc

    qrels = cc.read_qrels(path)
    for name, run in zip(short_names(runs), runs, strict=True):
        yield join_run(name, qrels, cc.read_run(run), all_queries=all_queries)


def join_run(name: str, qrels: Qrels, run: Any, *, all_queries: bool) -> Ranking:
    """Give a run beside the judgements, and count what is in one of them only."""
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
    counts = {key: n_absent if key == "n_absent" else getattr(judged, key) for key in REMARKS}
    return Ranking(name, judged.y, judged.scores, cc.Queries.from_ids(judged.qid), judged.docid, counts)


def read_scored(path: Path, files: Sequence[Path], columns: Columns | None = None) -> Iterator[Ranking]:
    """Give the rows with each of the files of scores."""
    import concordant as cc

    data = judged_rows(path, columns)
    queries = cc.Queries.from_ids(data.qid)
    for name, file in zip(short_names(files), files, strict=True):
        yield Ranking(name, data.y, scores_for(path, len(data.y), file), queries, data.docid)


def judged_rows(path: Path, columns: Columns | None = None) -> RankingData:
    """Give the rows of LETOR text, or of a table by its suffix, without its features."""
    import concordant as cc
    from concordant.cli.data import TABLES, Columns, read_rows

    columns = columns or Columns()
    if written_as(path) in TABLES or columns != Columns():
        return read_rows(path, replace(columns, features=()) if written_as(path) in TABLES else columns)
    # The features are read and not used: sparse never refuses a set, however many columns it has.
    return cc.read_letor(path, sparse=True)


def scores_for(path: Path, n_rows: int, file: Path) -> list[float]:
    """Give the scores in a file, one for each row of another."""
    scores = read_scores(file)
    if len(scores) != n_rows:
        problem = f"{plural(len(scores), 'score', 'scores')}, but {path} has {plural(n_rows, 'row', 'rows')}"
        raise MalformedLineError(file, len(scores), 0, problem, "write one score a line, row by row.")
    return scores


def read_scores(path: Path) -> list[float]:
    """Give the number on each line; `-inf` is a row that is not in the ranking."""
    from concordant.supervision.readers.text import read_lines

    lines = [text for _, text in read_lines(path)]
    if lines[-1] == "":  # what follows the last line end is not a line
        lines.pop()
    return [read_score(path, line, text) for line, text in enumerate(lines, start=1)]


def read_score(path: Path, line: int, text: str) -> float:
    """Give one line as a score, or say what is wrong with it."""
    try:
        value = float(text) if "_" not in text else math.nan  # Python reads 1_000 as a number
    except ValueError:
        value = math.nan
    if value < math.inf:
        return value
    problem = f"{text.strip()[:40]!r} is not a score" if text.strip() else "the line is blank"
    raise MalformedLineError(path, line, 0, problem, "a line is one number and nothing else, in row order.")


def short_names(paths: Sequence[Path]) -> list[str]:
    """Give the file names, or the paths where two files are called alike.

    >>> short_names([Path("a/bm25.run"), Path("a/dense.run")])
    ['bm25.run', 'dense.run']
    """
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
