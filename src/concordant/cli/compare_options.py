"""Options of `compare`: what the tables are, and what their columns are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Columns",
    "FeatureList",
    "IdColumn",
    "ItemsFile",
    "LeftColumn",
    "LeftPrefix",
    "ModelFile",
    "OutcomeColumn",
    "OutcomeWords",
    "PairsFile",
    "RightColumn",
    "RightPrefix",
    "TimeColumn",
    "WeightColumn",
    "names_in",
]

COLUMNS = "Columns of the tables"
PairsFile = Annotated[
    Path,
    typer.Argument(
        metavar="PAIRS",
        help="Table of pairs, one a row: .csv .tsv .parquet .feather; text may be compressed.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model that `compare fit` wrote.", show_default=False)
]
ItemsFile = Annotated[
    Path | None,
    typer.Option("--items", metavar="TABLE", help="Table of items: a column of ids, the others features."),
]


def named(option: str, metavar: str, text: str) -> Any:
    """Give an option that names a column."""
    return typer.Option(option, metavar=metavar, help=text, rich_help_panel=COLUMNS, show_default=False)


LeftColumn = Annotated[
    str | None, named("--left", "COL", "Ids of the left items. Default: left, or left_id.")
]
RightColumn = Annotated[
    str | None, named("--right", "COL", "Ids of the right items. Default: right, or right_id.")
]
OutcomeColumn = Annotated[
    str | None,
    named("--outcome", "COL", "Who won: left, right or tie, -1, 1 or 0, and the like. Default: outcome."),
]
OutcomeWords = Annotated[
    str | None,
    named("--outcomes", "HOW", "score: 1, 0.5, 0 are the left's score. Or your words: H=left,D=tie,A=right."),
]
TimeColumn = Annotated[
    str | None,
    named("--time", "COL", "Dates or numbers: ratings follow them, and later pairs are held out."),
]
WeightColumn = Annotated[str | None, named("--weight", "COL", "How often each pair counts. Default: once.")]
FeatureList = Annotated[
    str | None, named("--features", "A,B,...", "Features to use. Default: all; they must be numbers.")
]
LeftPrefix = Annotated[
    str, named("--left-prefix", "TEXT", "How columns of the left item's features begin. Default: left_.")
]
RightPrefix = Annotated[
    str, named("--right-prefix", "TEXT", "How columns of the right item's features begin. Default: right_.")
]
IdColumn = Annotated[
    str | None, named("--id", "COL", "Ids in the table of items. Default: id, else the first column.")
]


def names_in(text: str | None) -> tuple[str, ...] | None:
    """Give the names of a list with commas.

    >>> names_in("width, height")
    ('width', 'height')
    """
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True)
class Columns:
    """What the columns are called; None: as by default, if they are there."""

    left: str | None = None
    right: str | None = None
    outcome: str | None = None
    outcomes: str | None = None
    time: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    left_prefix: str = "left_"
    right_prefix: str = "right_"

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns that may hold ids."""
        defaults = "left", "right", f"{self.left_prefix}id", f"{self.right_prefix}id"
        return *filter(None, (self.left, self.right)), *defaults

    def sides(self, names: Sequence[str]) -> tuple[str, str]:
        """Give the columns of ids: as named, else left and right, else left_id and right_id."""
        from concordant.supervision.readers.pair_columns import id_columns

        default = id_columns(names, (self.left_prefix, self.right_prefix))
        return self.left or default[0], self.right or default[1]

    def reserved(self, names: Sequence[str]) -> set[str]:
        """Columns that are no features."""
        return {*self.sides(names), self.outcome or "outcome", *filter(None, (self.time, self.weight))}
