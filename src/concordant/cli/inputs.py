"""What `evaluate` and `explain` read: TREC judgements with runs, or LETOR rows with scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from concordant.exceptions import ConcordantError, MalformedLineError

if TYPE_CHECKING:
    import numpy as np

    from concordant import Queries
    from concordant.supervision.readers import Qrels
    from concordant.types import FloatArray

__all__ = ["AllQueries", "Letor", "Qrels_", "Ranking", "Runs", "Scores", "metric_labels", "read_rankings"]

TREC, LETOR = "TREC input", "LETOR input"
QrelsFile = Annotated[
    Path | None,
    typer.Option("--qrels", help="Judgements: `qid 0 docid grade` a line.", rich_help_panel=TREC),
]
RunFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--run", help="A run: `qid Q0 docid rank score tag` a line; repeat to compare.", rich_help_panel=TREC
    ),
]
AllQueries = Annotated[
    bool,
    typer.Option(
        "--all-queries",
        help="Count judged queries that are not in the run, as empty rankings.",
        rich_help_panel=TREC,
    ),
]
LetorFile = Annotated[
    Path | None,
    typer.Option("--letor", help="Rows `grade qid:7 1:0.5 ...`, as for SVMlight.", rich_help_panel=LETOR),
]
ScoreFiles = Annotated[
    list[Path] | None,
    typer.Option("--scores", help="One score a line, in the order of the rows; repeat to compare.", rich_help_panel=LETOR),
]
