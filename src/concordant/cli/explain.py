"""`concordant explain`: one metric under every tool's convention, and the fields that move it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from concordant.cli.shared.judged_rankings import JudgedFiles, JudgedRanking, parse_metrics
from concordant.cli.shared.output import (
    COMPILING,
    Display,
    argument,
    console,
    examples,
    new_table,
    number,
    option,
)
from concordant.cli.shared.row_options import JudgedColumns

if TYPE_CHECKING:
    from concordant.metrics import Explanation

EXAMPLES = examples(
    "concordant explain ndcg@10 --qrels test.qrels --run bm25.run",
    "concordant explain ap -c trec_eval --qrels test.qrels --run bm25.run --json",
    "concordant explain ndcg@10 --letor test.txt --scores model.txt",
)


def explain(
    metric: Annotated[str, argument("METRIC", "Metric such as ndcg@10 or ap.")],
    *,
    files: JudgedFiles,
    convention: Annotated[
        str | None,
        option("--convention -c", "CONVENTION", "Where the comparison starts. Default: concordant."),
    ] = None,
    columns: JudgedColumns,
    display: Display,
) -> None:
    """Why tools disagree: a metric under every preset, and the fields of the convention that move it."""
    import concordant as cc

    (base,) = parse_metrics([metric], [convention] if convention else None)
    with display.working("Reading"):
        rankings = files.read(columns.names())
    with display.working(f"Evaluating under every preset {COMPILING}"):
        explanations = [(ranking, cc.metrics.explain(base, **ranking.arguments())) for ranking in rankings]
    display.present(ExplainedMetric(str(base), explanations))


@dataclass(frozen=True, eq=False)
class ExplainedMetric:
    """A metric of each ranking under every preset."""

    metric: str
    explanations: list[tuple[JudgedRanking, Explanation]]

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of each ranking: a row per preset, and the steps there from the first row."""
        for ranking, explanation in self.explanations:
            start = explanation.rows[0].preset
            columns = ("preset", "value", f"what moves it from {start}")
            rows = (
                (row.preset, number(row.value), reason)
                for row, reason in zip(explanation.rows, _reasons(explanation), strict=True)
            )
            title = f"{self.metric} of {ranking.name}"
            yield new_table(title, *columns, numeric=("value",), rows=rows), ranking.remarks()

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows of each ranking as plain values for JSON."""
        return [
            {"ranking": ranking.name, "metric": self.metric, "rows": explanation.to_dicts()}
            for ranking, explanation in self.explanations
        ]


def _reasons(explanation: Explanation) -> list[str]:
    """Return the steps to each preset: one per line in a terminal, so that none is broken."""
    is_terminal = console().is_terminal
    texts = (
        "\n".join(map(str, row.steps)) if is_terminal and row.steps else row.reason
        for row in explanation.rows
    )
    return ["", *list(texts)[1:]]  # the first row is where the steps start
