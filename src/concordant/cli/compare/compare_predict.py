"""`concordant compare predict`: predictions of a model for pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.compare.pair_tables import (
    ItemsFile,
    ModelFile,
    PairColumnNames,
    PairOptions,
    PairsFile,
    refuse_options,
)
from concordant.cli.shared.output import COMPILING, Display, check_table, examples, option, write_rows
from concordant.exceptions import LabelError

if TYPE_CHECKING:
    from concordant.cli.compare.pair_tables import PairTable

EXAMPLES = examples(
    "concordant compare predict votes.cmp new.csv --output predictions.csv",
    "concordant compare predict wines.cmp new.csv --items wines.csv",
)


def predict(
    model: ModelFile,
    file: PairsFile,
    *,
    items: ItemsFile = None,
    output: Annotated[
        Path | None, option("--output -o", "FILE.csv", "Write all predictions to this file.")
    ] = None,
    names: PairOptions,
    display: Display,
) -> None:
    """Predict pairs: left, tie or right, and the probability of each; measured where outcomes are known."""
    check_table(output, model, file, items)
    from concordant.cli.compare.pair_models import forecast_pairs
    from concordant.cli.compare.pair_results import PredictedPairs
    from concordant.cli.compare.pair_tables import read_tables
    from concordant.store import load

    fitted_model = load(model)
    columns = PairColumnNames.from_options(names, feature_names(fitted_model))
    featured = not hasattr(fitted_model, "known_")
    if items is None:
        refuse_options({"--id": names.id_column}, "with --items")
    if not featured:
        refuse_options({"--items": items, **columns.prefix_options}, "for a comparer")
    judged = names.outcome is not None
    data = read_tables(file, columns, items, names.id_column, judged=judged, featured=featured)
    data = match_items(fitted_model, data)
    display.notes(data.notes)
    with display.working(f"Predicting {COMPILING}"):
        forecast = forecast_pairs(fitted_model, data)
    quality = _measure_forecast(data, forecast)
    predicted = PredictedPairs(model.name, data, forecast, quality, output)
    if output is not None:
        rows = predicted.rows()
        write_rows(output, list(rows[0]), rows)
    display.present(predicted)


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the features a model was fitted to, if it has them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(names.tolist())


def match_items(model: Any, data: PairTable) -> PairTable:
    """Raise unless the model can judge the pairs: they have its features, or items that it knows."""
    from concordant.cli.compare.pair_tables import unknown_item

    if not hasattr(model, "known_"):
        if data.pairs is None:
            problem = f"the model needs features, but {data.name} has only ids"
            raise LabelError(problem, "give the features of the items by --items TABLE.")
        return data
    if data.left is None or data.right is None:
        problem = f"the model needs item ids, but {data.name} has none"
        raise LabelError(problem, "name their columns by --left and --right.")
    left, right = _as_model_ids(model, data.left), _as_model_ids(model, data.right)
    for ids, side in ((left, "left"), (right, "right")):
        codes = model.known_.find(ids)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            names = [str(name) for name in model.items_.tolist()]
            raise unknown_item(str(ids[row]), f"row {row} of {data.name}, {side}", "the model", names)
    return replace(data, left=left, right=right)


def _as_model_ids(model: Any, ids: Any) -> Any:
    """Convert ids to text where the model's are text: a few of them may all be numbers."""
    import numpy as np

    return ids.astype(np.str_) if model.items_.dtype.kind == "U" else ids


def _measure_forecast(data: PairTable, forecast: Any) -> dict[str, float]:
    from concordant.cli.compare.pair_models import weighted_log_loss, weighted_share

    if data.outcome is None:
        return {}
    error = {"error": weighted_share(forecast.outcome != data.outcome, data.weight)}
    if forecast.probabilities is None:
        return error
    return error | {"log_loss": weighted_log_loss(data.outcome, forecast.probabilities, data.weight)}
