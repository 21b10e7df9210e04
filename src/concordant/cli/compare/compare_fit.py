"""`concordant compare fit`: a model for a table of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.compare.pair_tables import (
    ItemsFile,
    PairColumnNames,
    PairsFile,
    TrainingPairOptions,
    refuse_options,
)
from concordant.cli.shared.output import COMPILING, Display, check_target, examples, option, progress, switch
from concordant.cli.shared.row_options import split_names
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.compare.pair_results import FittedPairs
    from concordant.cli.compare.pair_tables import PairTable

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
    output: Annotated[Path | None, option("--output -o", "FILE", "Write the model to this file.")] = None,
    model: Annotated[
        str | None,
        option(
            "--model -m",
            "MODEL",
            "davidson, rao-kupper, bradley-terry, elo or glicko rate items by id; comparer learns from "
            "features. Default: comparer with features, else davidson, or bradley-terry without ties.",
        ),
    ] = None,
    items: ItemsFile = None,
    kernel: Annotated[str | None, option("--kernel", "NAME", "linear, rbf or poly.", COMPARER)] = None,
    cost: Annotated[float | None, option("--C", "X", "Cost of errors. Default: 1.", COMPARER)] = None,
    gamma: Annotated[float | None, option("--gamma", "X", "Of the kernel.", COMPARER)] = None,
    method: Annotated[str | None, option("--method", "NAME", "compare, rank or rank2.", COMPARER)] = None,
    formulation: Annotated[str | None, option("--formulation", "NAME", "qp or lp.", COMPARER)] = None,
    tune: Annotated[bool, switch("--tune", "Choose C, and gamma, by held-out error.", COMPARER)] = False,
    alpha: Annotated[
        float | None,
        option("--alpha", "X", "Draws ratings together; above 0, all are finite. Default: 0.", RATINGS),
    ] = None,
    advantage: Annotated[
        bool,
        switch(
            "--advantage",
            "The left side has one: white, home. Of elo and glicko: --set advantage=35.",
            RATINGS,
        ),
    ] = False,
    settings: Annotated[
        list[str] | None, option("--set", "NAME=VALUE", "Any other parameter of the model; repeat.")
    ] = None,
    folds: Annotated[int, option("--folds", "N", "Folds of the held-out check; 0: no check.", min=0)] = 5,
    names: TrainingPairOptions,
    display: Display,
) -> None:
    """Fit a model to pairs: who was preferred, or neither, by id or by features of both sides."""
    if output is not None:
        check_target(output, file, items)
    from concordant.cli.compare.pair_tables import read_tables

    if folds == 1:
        raise ParameterError("--folds", 1, "0 (no check) or at least 2")
    columns = PairColumnNames.from_options(names, split_names(names.features))
    featured = model in (None, "comparer")
    data = read_tables(file, columns, items, names.id_column, judged=True, featured=featured)
    if items is None:
        refuse_options({"--id": names.id_column}, "with --items")
    if not (model == "comparer" or (model is None and data.features)):
        unread = {"--items": items, "--features": names.features, **columns.prefix_options}
        refuse_options(unread, "for a comparer")
    display.notes(data.notes)
    options = {"kernel": kernel, "C": cost, "gamma": gamma, "method": method, "formulation": formulation}
    options |= {"alpha": alpha, "advantage": advantage or None}
    parameters = _collect_parameters(options, settings or [])
    fitted = _fit_and_check(data, model, parameters, folds=folds, tune=tune, output=output, display=display)
    if output is not None:
        from concordant.store import save

        save(fitted.model, output)
    display.present(fitted)


def _fit_and_check(
    data: PairTable,
    name: str | None,
    parameters: dict[str, Any],
    *,
    folds: int,
    tune: bool,
    output: Path | None,
    display: Display,
) -> FittedPairs:
    """Fit a model, after tuning if asked for, and check it on held-out pairs."""
    from concordant.cli.compare.pair_models import (
        check_held_out,
        fit_pairs,
        forecast_pairs,
        make_model,
        weighted_share,
    )
    from concordant.cli.compare.pair_results import FittedPairs

    model = make_model(name, data, parameters)
    notes = _tune_first(model, data, parameters, folds or 5, display) if tune else []
    with display.working(f"Fitting {COMPILING}"):
        notes += fit_pairs(model, data)
        predicted = forecast_pairs(model, data).outcome
    check = None
    if folds:
        with progress("Predicting held-out pairs", total=folds, quiet=display.quiet) as tell:
            check = check_held_out(model, data, folds, tell)
    error = weighted_share(predicted != data.outcome, data.weight)
    return FittedPairs(data, model, error, check, [*notes, *_model_notes(model)], predicted, output)


def _collect_parameters(options: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    from concordant.cli.compare.pair_models import read_json_setting

    parameters = {key: value for key, value in options.items() if value is not None}
    for key, value in map(read_json_setting, settings):
        if key in parameters:
            raise ParameterError.because(f"{key} is given twice: --set {key}={value} repeats it.")
        parameters[key] = value
    return parameters


def _tune_first(
    model: Any, data: PairTable, parameters: dict[str, Any], folds: int, display: Display
) -> list[str]:
    """Set the parameters of least held-out error and describe them."""
    from concordant.cli.compare.pair_models import parameter_grid, search_parameters

    if type(model).__name__ != "Comparer":
        raise ParameterError.because("--tune needs --model comparer.")
    for key in next(parameter_grid(model)):
        if key in parameters:
            raise ParameterError.because(f"--tune chooses {key}, but {key} was given. Leave one of them out.")
    with progress("Tuning", total=len(list(parameter_grid(model))), quiet=display.quiet) as tell:
        best = search_parameters(model, data, folds, tell)
    model.set_params(**best)
    best_text = ", ".join(f"{key} {value:g}" for key, value in best.items())
    return [f"chosen by held-out error: {best_text}; so the held-out figures are a little optimistic"]


def _model_notes(model: Any) -> list[str]:
    from concordant.cli.compare.board import component_notes

    if type(model).__name__ == "Comparer":
        return [f"method {model.method_} by {model.machine_.solver}; threshold {model.threshold_:.4g}"]
    return component_notes(model)
