"""`concordant compare fit`: a model for a table of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.compare_options import (
    Columns,
    FeatureList,
    IdColumn,
    ItemsFile,
    LeftColumn,
    LeftPrefix,
    OutcomeColumn,
    OutcomeWords,
    PairsFile,
    RightColumn,
    RightPrefix,
    TimeColumn,
    WeightColumn,
    names_in,
)
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    note,
    print_json,
    progress,
    show,
    working,
)
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.compare_inputs import PairTable

__all__ = ["EXAMPLES", "fit", "tell_notes"]

EXAMPLES = examples(
    "concordant compare fit votes.csv --output votes.cmp",
    "concordant compare fit games.csv --left white --right black --outcomes score --model elo -o games.cmp",
    "concordant compare fit cup.csv --outcome result --outcomes H=left,D=tie,A=right --advantage -o cup.cmp",
    "concordant compare fit tastings.csv --items wines.csv --kernel rbf --tune -o wines.cmp",
)
COMPARER, RATINGS = "Parameters of the comparer", "Parameters of ratings"


def fit(
    file: PairsFile,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the model to this file.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="davidson, rao-kupper, bradley-terry, elo or glicko rate items by id; comparer learns from "
            "features. Default: comparer with features, else davidson, or bradley-terry without ties.",
            show_default=False,
        ),
    ] = None,
    items: ItemsFile = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="linear, rbf or poly.", rich_help_panel=COMPARER),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option("--C", metavar="X", help="Cost of errors. Default: 1.", rich_help_panel=COMPARER),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option("--gamma", metavar="X", help="Of the kernel.", rich_help_panel=COMPARER)
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="NAME", help="compare, rank or rank2.", rich_help_panel=COMPARER),
    ] = None,
    formulation: Annotated[
        str | None, typer.Option("--formulation", metavar="NAME", help="qp or lp.", rich_help_panel=COMPARER)
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", metavar="", help="Choose C, and gamma, by held-out error.", rich_help_panel=COMPARER
        ),
    ] = False,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            metavar="X",
            help="Draws ratings together; above 0, all are finite. Default: 0.",
            rich_help_panel=RATINGS,
        ),
    ] = None,
    advantage: Annotated[
        bool,
        typer.Option(
            "--advantage",
            metavar="",
            help="The left side has one: white, home. Of elo and glicko: --set advantage=35.",
            rich_help_panel=RATINGS,
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the model; repeat."),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=0, metavar="N", help="Folds of the held-out check; 0: no check.")
    ] = 5,
    left: LeftColumn = None,
    right: RightColumn = None,
    outcome: OutcomeColumn = None,
    outcomes: OutcomeWords = None,
    time: TimeColumn = None,
    weight: WeightColumn = None,
    features: FeatureList = None,
    left_prefix: LeftPrefix = "left_",
    right_prefix: RightPrefix = "right_",
    id_column: IdColumn = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to pairs: who was preferred, or neither, by id or by features of both sides."""
    if output is not None:
        check_target(output, file, items)
    from concordant.cli.compare_inputs import read_tables

    if folds == 1:
        raise ParameterError("--folds", 1, "0 (no check), or at least 2")
    named = (left, right, outcome, outcomes, time, weight, names_in(features), left_prefix, right_prefix)
    featured = model in (None, "comparer")
    data = read_tables(file, Columns(*named), items, id_column, judged=True, featured=featured)
    tell_notes(data, quiet=quiet)
    given = {"kernel": kernel, "C": cost, "gamma": gamma, "method": method, "formulation": formulation}
    given |= {"alpha": alpha, "advantage": advantage or None}
    report = fitted(data, model, given, settings or [], folds=folds, tune=tune, quiet=quiet)
    if output is not None:
        from concordant.persistence import save

        save(report.model, output)
    if as_json:
        print_json(report.as_dict() | {"output": None if output is None else str(output)})
    else:
        show(report.table(), [] if quiet else report.remarks(output))


def tell_notes(data: PairTable, *, quiet: bool) -> None:
    """Say on standard error what a reader of the table should know."""
    for text in () if quiet else data.notes:
        note(text)


def fitted(
    data: PairTable,
    name: str | None,
    given: dict[str, Any],
    settings: list[str],
    *,
    folds: int,
    tune: bool,
    quiet: bool,
) -> Any:
    """Fit, after tuning where that is asked for, and check on held-out pairs."""
    from concordant.cli.compare_check import held_out, share_of
    from concordant.cli.compare_models import chosen_model, fit_on, foretell
    from concordant.cli.compare_results import Report

    chosen = parameters_of(given, settings)
    model = chosen_model(name, data, chosen)
    notes = tune_first(model, data, chosen, folds or 5, quiet=quiet) if tune else []
    with working(f"Fitting {COMPILING}", quiet=quiet):
        notes += fit_on(model, data)
        said = foretell(model, data).outcome
    check = None
    if folds:
        with progress("Predicting held-out pairs", total=folds, quiet=quiet) as tell:
            check = held_out(model, data, folds, tell)
    error = share_of(said != data.outcome, data.weight)
    return Report(data, model, error, check, [*notes, *about(model)], said)


def parameters_of(given: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Give the parameters by their options and by --set; each once."""
    from concordant.cli.compare_models import read_setting

    chosen = {key: value for key, value in given.items() if value is not None}
    for key, value in map(read_setting, settings):
        if key in chosen:
            raise ParameterError("--set", f"{key}={value}", f"of another parameter: {key} is given already")
        chosen[key] = value
    return chosen


def tune_first(model: Any, data: PairTable, chosen: dict[str, Any], folds: int, *, quiet: bool) -> list[str]:
    """Set the parameters of least held-out error, and say which they are."""
    from concordant.cli.compare_check import candidates, tuned

    if type(model).__name__ != "Comparer":
        raise ParameterError("--tune", True, "left out but for --model comparer")
    for key in next(candidates(model)):
        if key in chosen:
            raise ParameterError("--tune", True, f"left out where {key} is given: it chooses {key}")
    with progress("Tuning", total=len(list(candidates(model))), quiet=quiet) as tell:
        best = tuned(model, data, folds, tell)
    model.set_params(**best)
    said = ", ".join(f"{key} {value:g}" for key, value in best.items())
    return [f"chosen by held-out error: {said}; so the held-out figures are a little optimistic"]


def about(model: Any) -> list[str]:
    """Say what the model found besides."""
    from concordant.cli.compare_board import parts

    if type(model).__name__ == "Comparer":
        return [f"method {model.method_} by {model.machine_.solver}; threshold {model.threshold_:.4g}"]
    return parts(model)
