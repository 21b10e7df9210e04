"""`concordant compare rank`: the leaderboard of a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.compare_fit import tell_notes
from concordant.cli.compare_options import (
    Columns,
    IdColumn,
    ItemsFile,
    LeftColumn,
    LeftPrefix,
    ModelFile,
    OutcomeColumn,
    OutcomeWords,
    RightColumn,
    RightPrefix,
    WeightColumn,
)
from concordant.cli.compare_predict import matching, names_of
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_table,
    check_target,
    examples,
    print_json,
    progress,
    show,
    working,
    write_rows,
)
from concordant.exceptions import LabelError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.compare_board import Board
    from concordant.cli.compare_inputs import ItemTable

__all__ = ["EXAMPLES", "rank"]

EXAMPLES = examples(
    "concordant compare rank votes.cmp",
    "concordant compare rank votes.cmp --scale elo --top 20 --html board.html",
    "concordant compare rank wines.cmp --items wines.csv --pairs tastings.csv --output board.csv",
)


def rank(
    model: ModelFile,
    *,
    items: ItemsFile = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="PAIRS",
            help="Of a comparer: the pairs it was fitted to, for intervals by refits.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, metavar="N", help="Show the best N only; --output writes all."),
    ] = None,
    level: Annotated[float, typer.Option("--level", metavar="P", help="Confidence of the intervals.")] = 0.95,
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap",
            min=2,
            metavar="N",
            help="Intervals from N resamples. Default: from the likelihood's curvature; of elo 500, of a "
            "comparer with --pairs 100.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="SCALE", help="Of strengths: natural, or elo points.")
    ] = "natural",
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the resamples.")] = 0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE.html", help="Write a page with the table and a plot."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.csv", help="Write all rows to this file.")
    ] = None,
    left: LeftColumn = None,
    right: RightColumn = None,
    outcome: OutcomeColumn = None,
    outcomes: OutcomeWords = None,
    weight: WeightColumn = None,
    left_prefix: LeftPrefix = "left_",
    right_prefix: RightPrefix = "right_",
    id_column: IdColumn = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rank items: the leaderboard of a model, with intervals and the ranks that these leave open."""
    check_outputs(output, html, model, items, pairs)
    if not 0.0 < level < 1.0:
        raise ParameterError("--level", level, "between 0 and 1, such as 0.95")
    if scale not in ("natural", "elo"):
        raise ParameterError("--scale", scale, "natural or elo")
    from concordant.cli.compare_results import board_dict, board_lines, board_table
    from concordant.persistence import load

    known = load(model)
    columns = Columns(
        left, right, outcome, outcomes, None, weight, names_of(known), left_prefix, right_prefix
    )
    named = {"--left": left, "--right": right, "--outcome": outcome, "--outcomes": outcomes}
    named |= {"--weight": weight, "--left-prefix": other_than("left_", left_prefix)}
    named |= {"--right-prefix": other_than("right_", right_prefix)}
    notes: tuple[str, ...] = ()
    if hasattr(known, "known_"):
        refuse_given({"--items": items, "--pairs": pairs, "--id": id_column, **named}, "for a comparer")
        from concordant.cli.compare_board import rated

        with working(f"Ranking {COMPILING}", quiet=quiet):
            board = rated(known, level, bootstrap, scale, seed)
    else:
        refuse_given({"--scale": other_than("natural", scale)}, "for models of ratings")
        if pairs is None:
            refuse_given({"--bootstrap": bootstrap, **named}, "with --pairs")
        board, notes = scored_board(
            known, columns, items, id_column, pairs, level, bootstrap, seed, quiet=quiet
        )
    title = f"{model.stem}: leaderboard"
    if output is not None:
        rows = board_dict(board, None)["rows"]
        write_rows(output, list(rows[0]), rows)
    if html is not None:
        from concordant.cli.compare_html import write_board

        write_board(html, title, board, top)
    if as_json:
        told = board_dict(board, top)
        about = {"model": model.name, "class": type(known).__name__}
        print_json(about | told | {"notes": [*notes, *told["notes"]]})
    else:
        written = [f"written to {path}" for path in (output, html) if path is not None]
        show(board_table(title, board, top), [] if quiet else [*board_lines(board, top), *written])


def other_than(default: str, value: str) -> str | None:
    """Give what was asked for; None: what goes without saying."""
    return None if value == default else value


def refuse_given(given: Mapping[str, object], allowed: str) -> None:
    """Refuse options that would be left unheard."""
    for name, value in given.items():
        if value is not None:
            shown = str(value) if isinstance(value, Path) else value
            raise ParameterError(name, shown, f"left out but {allowed}")


def check_outputs(output: Path | None, html: Path | None, *inputs: Path | None) -> None:
    """Refuse files that could not or must not be written, and a page that could not be drawn, at once."""
    if output is not None:
        check_target(output, html, *inputs)
        check_table(output)
    if html is not None:
        from concordant.evaluation.plots import need_plotly

        need_plotly()
        check_target(html, *inputs)
        if html.suffix.lower() not in (".html", ".htm"):
            raise ParameterError("--html", str(html), "a file that ends in .html; --output writes a table")


def scored_board(
    model: Any,
    columns: Columns,
    items: Path | None,
    id_column: str | None,
    pairs: Path | None,
    level: float,
    bootstrap: int | None,
    seed: int,
    *,
    quiet: bool,
) -> tuple[Board, tuple[str, ...]]:
    """Rank the items of a table by their features; with notes on the pairs."""
    from concordant.cli.compare_board import scored
    from concordant.cli.compare_inputs import read_items, read_pairs

    if items is None:
        problem = "a comparer knows features, and not the items"
        raise LabelError(problem, "say which items to rank by --items TABLE.")
    table = as_fitted(model, read_items(items, id_column, columns.features))
    data = None
    if pairs is not None:
        data = matching(model, read_pairs(pairs, columns, table, judged=True, own_first=True))
        tell_notes(data, quiet=quiet)
    resamples = bootstrap or 100
    with progress("Fitting to resamples of the pairs", total=resamples, quiet=quiet or data is None) as tell:
        board = scored(model, table, data, level, resamples, seed, tell)
    return board, () if data is None else data.notes


def as_fitted(model: Any, table: ItemTable) -> ItemTable:
    """Refuse a table with another number of features."""
    if len(table.features) != model.n_features_in_:
        problem = (
            f"{table.name} has {len(table.features)} features, the model was fitted to {model.n_features_in_}"
        )
        raise LabelError(problem, "give the table with the same columns, in the same order.")
    return table
