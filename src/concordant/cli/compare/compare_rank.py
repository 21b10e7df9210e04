"""`concordant compare rank`: the leaderboard of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.compare.compare_predict import feature_names, match_items
from concordant.cli.compare.pair_tables import (
    ItemsFile,
    ModelFile,
    PairColumnNames,
    PairOptions,
    refuse_options,
)
from concordant.cli.shared.output import (
    COMPILING,
    Display,
    check_table,
    check_target,
    examples,
    option,
    progress,
    write_rows,
)
from concordant.exceptions import LabelError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.compare.board import Board
    from concordant.cli.compare.pair_tables import ItemTable

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
        option("--pairs", "PAIRS", "Of a comparer: the pairs it was fitted to, for intervals by refits."),
    ] = None,
    top: Annotated[
        int | None, option("--top", "N", "Show the best N only; --output writes all.", min=1)
    ] = None,
    level: Annotated[float, option("--level", "P", "Confidence of the intervals.")] = 0.95,
    bootstrap: Annotated[
        int | None,
        option(
            "--bootstrap",
            "N",
            "Intervals from N resamples. Default: from the likelihood's curvature; of elo 500, of a "
            "comparer with --pairs 100.",
            min=2,
        ),
    ] = None,
    scale: Annotated[str, option("--scale", "SCALE", "Of strengths: natural, or elo points.")] = "natural",
    seed: Annotated[int, option("--seed", "N", "Seed of the resamples.", min=0)] = 0,
    html: Annotated[
        Path | None, option("--html", "FILE.html", "Write a page with the table and a plot.")
    ] = None,
    output: Annotated[Path | None, option("--output -o", "FILE.csv", "Write all rows to this file.")] = None,
    names: PairOptions,
    display: Display,
) -> None:
    """Rank items: the leaderboard of a model, with intervals and the ranks that these leave open."""
    from concordant._base.validate import check_choice, check_share

    _check_outputs(output, html, model, items, pairs)
    check_share("--level", level, 0.95)
    check_choice("--scale", scale, ("natural", "elo"))
    from concordant.cli.compare.pair_results import RankedItems
    from concordant.store import load

    fitted_model = load(model)
    columns = PairColumnNames.from_options(names, feature_names(fitted_model))
    named = ("left", "right", "outcome", "outcomes", "weight")
    pair_options = {f"--{name}": getattr(names, name) for name in named} | columns.prefix_options
    if bootstrap is None and pairs is None and type(fitted_model).__name__ != "Elo":
        refuse_options({"--seed": seed or None}, "with resamples, which are asked for by --bootstrap")
    notes: tuple[str, ...] = ()
    if hasattr(fitted_model, "known_"):
        unread = {"--items": items, "--pairs": pairs, "--id": names.id_column}
        refuse_options(unread | pair_options, "for a comparer")
        from concordant.cli.compare.board import rate_items

        with display.working(f"Ranking {COMPILING}"):
            board = rate_items(fitted_model, level, bootstrap, scale, seed)
    else:
        refuse_options({"--scale": None if scale == "natural" else scale}, "for models of ratings")
        if pairs is None:
            refuse_options({"--bootstrap": bootstrap, **pair_options}, "with --pairs")
        board, notes = _rank_table(
            fitted_model, columns, items, names.id_column, pairs, level, bootstrap, seed, display
        )
    about = {"model": model.name, "class": type(fitted_model).__name__}
    written = [path for path in (output, html) if path is not None]
    ranked = RankedItems(f"{model.stem}: leaderboard", board, top, about, notes, written)
    if output is not None:
        rows = board.rows()
        write_rows(output, list(rows[0]), rows)
    if html is not None:
        from concordant.cli.compare.pair_results import write_board

        write_board(html, ranked)
    display.present(ranked)


def _check_outputs(output: Path | None, html: Path | None, *inputs: Path | None) -> None:
    """Raise before the work if a file could not or must not be written, or a page not drawn."""
    check_table(output, html, *inputs)
    if html is not None:
        from concordant.evaluation.outcome_plots import need_pages

        need_pages()
        check_target(html, *inputs)
        if html.suffix.lower() not in (".html", ".htm"):
            raise ParameterError(
                "--html", str(html), "a file that ends in .html", hint="--output writes a table."
            )


def _rank_table(
    model: Any,
    columns: PairColumnNames,
    items: Path | None,
    id_column: str | None,
    pairs: Path | None,
    level: float,
    bootstrap: int | None,
    seed: int,
    display: Display,
) -> tuple[Board, tuple[str, ...]]:
    """Rank the items of a table by their features; also return notes on the pairs."""
    from concordant.cli.compare.board import score_items
    from concordant.cli.compare.pair_tables import read_items, read_pairs

    if items is None:
        problem = "a comparer does not know the items to rank"
        raise LabelError(problem, "pass them by --items TABLE.")
    table = _check_features(model, read_items(items, id_column, columns.features))
    data = None
    if pairs is not None:
        data = match_items(model, read_pairs(pairs, columns, table, judged=True, own_first=True))
        display.notes(data.notes)
    resamples = bootstrap or 100
    with progress(
        "Fitting to resamples of the pairs", total=resamples, quiet=display.quiet or data is None
    ) as tell:
        board = score_items(model, table, data, level, resamples, seed, tell)
    return board, () if data is None else data.notes


def _check_features(model: Any, table: ItemTable) -> ItemTable:
    if len(table.features) != model.n_features_in_:
        problem = (
            f"{table.name} has {len(table.features)} features, but the model needs {model.n_features_in_}"
        )
        raise LabelError(problem, "give the table with the same columns, in the same order.")
    return table
