"""`concordant rank`: the scores of a model, or its rankings as a TREC run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.shared.output import COMPILING, Display, check_target, examples, option, plural, switch
from concordant.cli.shared.row_options import (
    ColumnNames,
    DataFile,
    DocidColumn,
    FeatureColumns,
    ModelPath,
    QidColumn,
    load_model,
    model_files,
    read_for,
)
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.shared.file_rows import FileRows
    from concordant.types import FloatArray

EXAMPLES = examples(
    "concordant rank runs/linear test.txt -o scores.txt",
    "concordant rank runs/linear test.parquet --trec --depth 100 --tag linear -o linear.run",
)


def rank(
    model: ModelPath,
    data: DataFile,
    *,
    output: Annotated[
        Path | None, option("--output -o", "FILE", "Write to this file. Default: standard output.")
    ] = None,
    trec: Annotated[
        bool, switch("--trec", "A TREC run, [cyan]qid Q0 docid rank score tag[/cyan] a line.")
    ] = False,
    tag: Annotated[str | None, option("--tag", "NAME", "Name of the run. Default: concordant.")] = None,
    depth: Annotated[int | None, option("--depth", "N", "Only the best N of each query.", min=1)] = None,
    qid: QidColumn = None,
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    display: Display,
) -> None:
    """Rank the rows of a file: one score a line, in the order of the rows, or a TREC run."""
    _refuse_without(trec, tag=tag, depth=depth)
    if output is not None:
        check_target(output, data, *model_files(model))
    with display.working("Reading"):
        fitted = load_model(model)
        columns = ColumnNames.from_options(qid=qid, docid=docid, features=features)
        rows = read_for(model, fitted, data, columns, labelled=False)
    with display.working(f"Ranking {COMPILING}"):
        from concordant.cli.shared.file_rows import padding_notes, score_rows

        scores = score_rows(fitted, rows)
    notes = [
        *padding_notes(fitted, rows),
        *(["no document ids: rows are named by number, from 1"] * _lacks_names(rows, trec=trec)),
    ]
    if type(fitted).__name__ == "PairRanker":
        notes.append("single rows have no score: these are places in the query, negated")
    ranked = _cut_at_depth(rows, scores, depth) if trec else None
    result = RankedRows(rows, scores, ranked, tag or "concordant", notes, output)
    if output is not None:
        result.write(output)
    display.present(result)
    if display.as_json:
        return
    display.notes(notes)
    if output is None:
        typer.echo(result.contents(), nl=False)
    else:
        many = plural(len(scores), "row", "rows")
        display.notes([f"{many} of {plural(rows.n_queries, 'query', 'queries')}: {output}"])


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows with their scores; `ranked`: those of a TREC run, -inf for documents that are left out."""

    rows: FileRows
    scores: FloatArray
    ranked: FloatArray | None
    tag: str
    notes: list[str]
    output: Path | None

    def tables(self) -> tuple[()]:
        """Return no table: scores and runs are files."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the scores by row, or the documents of each query, best first."""
        import numpy as np

        facts: dict[str, Any] = {"n_rows": len(self.scores), "n_queries": self.rows.n_queries}
        facts["notes"] = self.notes
        output = None if self.output is None else str(self.output)
        if self.ranked is None:
            return facts | {"scores": self.scores.tolist(), "output": output}
        names = np.asarray(_document_names(self.rows), dtype=np.str_)
        queries: dict[str, list[dict[str, Any]]] = {}
        order = np.lexsort((-np.unique(names, return_inverse=True)[1], -self.ranked))
        for row in order[self.ranked[order] > -np.inf].tolist():
            document = {"docid": str(names[row]), "score": float(self.ranked[row])}
            queries.setdefault(str(self.rows.qid[row]), []).append(document)
        return facts | {"queries": queries, "output": output}

    def write(self, path: Path) -> None:
        """Write scores, or the run, whole or not at all."""
        import concordant as cc
        from concordant._base.files import write_atomically

        if self.ranked is not None:
            cc.write_run(path, self.rows.qid, _document_names(self.rows), self.ranked, tag=self.tag)
            return
        with write_atomically(path) as stream:
            stream.writelines(f"{score!r}\n".encode() for score in self.scores.tolist())

    def contents(self) -> bytes:
        """Return the contents of the file that `write` would write: UTF-8, whatever the terminal."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder, "text"))
            return Path(folder, "text").read_bytes()


def _refuse_without(trec: bool, **only: object) -> None:
    for name, value in only.items():
        if value is not None and not trec:
            raise ParameterError.because(f"--{name} needs --trec. Without it, scores are written row by row.")


def _lacks_names(rows: FileRows, *, trec: bool) -> bool:
    """True if documents have to be named by number."""
    return trec and (rows.docid is None or bool((rows.docid == "").any()))


def _document_names(rows: FileRows) -> Any:
    """Return the document ids, or row numbers where some have none."""
    import numpy as np

    return np.arange(1, len(rows.y) + 1).astype(str) if _lacks_names(rows, trec=True) else rows.docid


def _cut_at_depth(rows: FileRows, scores: FloatArray, depth: int | None) -> FloatArray:
    """Set scores below the depth to -inf; ties are broken by descending document id, as runs are written."""
    import numpy as np

    if depth is None:
        return scores
    by_name = np.unique(np.asarray(_document_names(rows), dtype=np.str_), return_inverse=True)[1]
    codes = np.unique(rows.qid, return_inverse=True)[1]
    order = np.lexsort((-by_name, -scores, codes))
    starts = np.searchsorted(codes[order], codes[order])
    cut_scores = np.full(len(scores), -np.inf)
    best = order[np.arange(len(order)) - starts < depth]
    cut_scores[best] = scores[best]
    return cut_scores
