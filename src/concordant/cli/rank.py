"""`concordant rank`: the scores of a model, or its rankings as a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.data import (
    Columns,
    DataFile,
    DocidColumn,
    FeatureColumns,
    ModelPath,
    QidColumn,
    load_model,
    model_files,
    read_for,
)
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    note,
    plural,
    print_json,
    working,
)
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.data_rows import FileRows
    from concordant.types import FloatArray

__all__ = ["EXAMPLES", "rank"]

EXAMPLES = examples(
    "concordant rank runs/linear test.txt -o scores.txt",
    "concordant rank runs/linear test.parquet --trec --depth 100 --tag linear -o linear.run",
)


def rank(
    model: ModelPath,
    data: DataFile,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file. Default: standard output."),
    ] = None,
    trec: Annotated[
        bool,
        typer.Option(
            "--trec", metavar="", help="A TREC run, [cyan]qid Q0 docid rank score tag[/cyan] a line."
        ),
    ] = False,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="NAME", help="Name of the run. Default: concordant.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, metavar="N", help="Only the best N of each query.")
    ] = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rank the rows of a file: one score a line, in the order of the rows, or a TREC run."""
    refuse_without(trec, tag=tag, depth=depth)
    if output is not None:
        check_target(output, data, *model_files(model))
    with working("Reading", quiet=quiet):
        fitted = load_model(model)
        rows = read_for(model, fitted, data, Columns.of(None, qid, docid, features), labelled=False)
    with working(f"Ranking {COMPILING}", quiet=quiet):
        from concordant.cli.data_rows import padding, scores_of

        scores = scores_of(fitted, rows)
    notes = [
        *padding(fitted, rows),
        *(["no document ids: rows are named by number, from 1"] * unnamed(rows, trec=trec)),
    ]
    if type(fitted).__name__ == "PairRanker":
        notes.append("single rows have no score: these are places in the query, negated")
    ranked = ranking(rows, scores, depth) if trec else None
    if output is not None:
        write(output, rows, scores, ranked, tag or "concordant")
    for line in [] if quiet or as_json else notes:
        note(line)
    if as_json:
        print_json(as_dict(rows, scores, ranked, notes) | {"output": None if output is None else str(output)})
    elif output is None:
        typer.echo(text_of(rows, scores, ranked, tag or "concordant"), nl=False)
    elif not quiet:
        note(
            f"{plural(len(scores), 'row', 'rows')} of {plural(rows.n_queries, 'query', 'queries')}: {output}"
        )


def refuse_without(trec: bool, **only: object) -> None:
    """Refuse what only a TREC run has."""
    for name, value in only.items():
        if value is not None and not trec:
            raise ParameterError(f"--{name}", value, "left out without --trec: scores go row by row")


def unnamed(rows: FileRows, *, trec: bool) -> bool:
    """Whether documents have to be named by number."""
    return trec and (rows.docid is None or bool((rows.docid == "").any()))


def names_of(rows: FileRows) -> Any:
    """Give the document ids, or the numbers of the rows where some have none."""
    import numpy as np

    return np.arange(1, len(rows.y) + 1).astype(str) if unnamed(rows, trec=True) else rows.docid


def ranking(rows: FileRows, scores: FloatArray, depth: int | None) -> FloatArray:
    """Give the scores, -inf below the depth: as the writer of runs sorts, ties by document id downwards."""
    import numpy as np

    if depth is None:
        return scores
    by_name = np.unique(np.asarray(names_of(rows), dtype=np.str_), return_inverse=True)[1]
    codes = np.unique(rows.qid, return_inverse=True)[1]
    order = np.lexsort((-by_name, -scores, codes))
    starts = np.searchsorted(codes[order], codes[order])
    kept = np.full(len(scores), -np.inf)
    best = order[np.arange(len(order)) - starts < depth]
    kept[best] = scores[best]
    return kept


def write(path: Path, rows: FileRows, scores: FloatArray, ranked: FloatArray | None, tag: str) -> None:
    """Write scores, or the run; whole or not at all."""
    import concordant as cc
    from concordant.supervision.readers.text import write_atomically

    if ranked is not None:
        cc.write_run(path, rows.qid, names_of(rows), ranked, tag=tag)
        return
    with write_atomically(path) as stream:
        stream.writelines(f"{score!r}\n".encode() for score in scores.tolist())


def text_of(rows: FileRows, scores: FloatArray, ranked: FloatArray | None, tag: str) -> str:
    """Give the text of the file that `write` would write."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "text"), rows, scores, ranked, tag)
        return Path(folder, "text").read_text(encoding="utf-8")


def as_dict(
    rows: FileRows, scores: FloatArray, ranked: FloatArray | None, notes: list[str]
) -> dict[str, Any]:
    """Give the scores row by row, or each query's documents from the best on, as plain values."""
    import numpy as np

    told: dict[str, Any] = {"n_rows": len(scores), "n_queries": rows.n_queries, "notes": notes}
    if ranked is None:
        return told | {"scores": scores.tolist()}
    names = np.asarray(names_of(rows), dtype=np.str_)
    queries: dict[str, list[dict[str, Any]]] = {}
    order = np.lexsort((-np.unique(names, return_inverse=True)[1], -ranked))
    for row in order[ranked[order] > -np.inf].tolist():
        one = {"docid": str(names[row]), "score": float(ranked[row])}
        queries.setdefault(str(rows.qid[row]), []).append(one)
    return told | {"queries": queries}
