"""`concordant compare predict`: what a model says of pairs."""

from __future__ import annotations

from dataclasses import replace
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
    PairsFile,
    RightColumn,
    RightPrefix,
    WeightColumn,
)
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_table,
    check_target,
    examples,
    plural,
    print_json,
    show,
    working,
    write_rows,
)
from concordant.exceptions import LabelError

if TYPE_CHECKING:
    from concordant.cli.compare_inputs import PairTable

__all__ = ["EXAMPLES", "matching", "names_of", "predict"]

EXAMPLES = examples(
    "concordant compare predict votes.cmp new.csv --output predictions.csv",
    "concordant compare predict wines.cmp new.csv --items wines.csv",
)
SHOWN = 20  # predictions on the screen


def predict(
    model: ModelFile,
    file: PairsFile,
    *,
    items: ItemsFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.csv", help="Write all predictions to this file."),
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
    """Predict pairs: left, tie or right, and the probability of each; measured where outcomes are known."""
    if output is not None:
        check_target(output, model, file, items)
        check_table(output)
    from concordant.cli.compare_inputs import read_tables
    from concordant.cli.compare_models import foretell
    from concordant.cli.compare_results import prediction_rows, prediction_table
    from concordant.persistence import load

    known = load(model)
    columns = Columns(
        left, right, outcome, outcomes, None, weight, names_of(known), left_prefix, right_prefix
    )
    featured = not hasattr(known, "known_")
    judged = outcome is not None
    data = matching(known, read_tables(file, columns, items, id_column, judged=judged, featured=featured))
    tell_notes(data, quiet=quiet)
    with working(f"Predicting {COMPILING}", quiet=quiet):
        said = foretell(known, data)
    rows = prediction_rows(data, said)
    if output is not None:
        write_rows(output, list(rows[0]), rows)
    quality = measures(data, said)
    if as_json:
        about = {"model": model.name, "file": file.name, "pairs": data.n, "notes": list(data.notes)}
        print_json(about | quality | {"predictions": rows})
        return
    title, told = f"{file.name}: predictions of {model.name}", told_of(data, quality, output)
    show(prediction_table(title, rows[:SHOWN]), [] if quiet else told)


def told_of(data: PairTable, quality: dict[str, float], output: Path | None) -> list[str]:
    """Say how good the predictions are, and where the others are."""
    lines = [", ".join(f"{name.replace('_', '-')} {value:.4f}" for name, value in quality.items())]
    if data.n > SHOWN:
        lines.append(f"the first {SHOWN} of {data.n:,} pairs; --output FILE.csv writes all")
    if output is not None:
        lines[1:] = [f"{plural(data.n, 'prediction is', 'predictions are')} in {output}"]
    return [line for line in lines if line]


def names_of(model: Any) -> tuple[str, ...] | None:
    """Give the features that a model was fitted to, where it knows their names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(names.tolist())


def matching(model: Any, data: PairTable) -> PairTable:
    """Refuse pairs that the model cannot judge: without features, or of items that it does not know."""
    from concordant.cli.compare_inputs import unknown_item

    if not hasattr(model, "known_"):
        if data.pairs is None:
            problem = f"the model judges features, and {data.name} has ids only"
            raise LabelError(problem, "give the features of the items by --items TABLE.")
        return data
    if data.left is None or data.right is None:
        problem = f"the model judges items by id, and {data.name} has no ids"
        raise LabelError(problem, "say where they are by --left and --right.")
    left, right = as_known(model, data.left), as_known(model, data.right)
    for ids, side in ((left, "left"), (right, "right")):
        codes = model.known_.find(ids)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            names = [str(name) for name in model.items_.tolist()]
            raise unknown_item(str(ids[row]), f"row {row} of {data.name}, {side}", "the model", names)
    return replace(data, left=left, right=right)


def as_known(model: Any, ids: Any) -> Any:
    """Give ids as text where the model's are: of a few, all may happen to be numbers."""
    import numpy as np

    return ids.astype(np.str_) if model.items_.dtype.kind == "U" else ids


def measures(data: PairTable, said: Any) -> dict[str, float]:
    """Give error and log-loss where outcomes are known, each pair as often as it counts."""
    from concordant.cli.compare_check import loss_of, share_of

    if data.outcome is None:
        return {}
    error = {"error": share_of(said.outcome != data.outcome, data.weight)}
    if said.probabilities is None:
        return error
    return error | {"log_loss": loss_of(data.outcome, said.probabilities, data.weight)}
