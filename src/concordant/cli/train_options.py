"""Options that `train` and `tune` share, and the sections that they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.train_kinds import KINDS
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.config import Config

__all__ = [
    "Checkpoint",
    "ConfigFile",
    "Convention",
    "Evaluated",
    "ModelKind",
    "OptionalData",
    "Overwrite",
    "RunOption",
    "Seed",
    "Settings",
    "TestFiles",
    "TrainMetric",
    "ValidationFile",
    "configured",
]

DATA, RUN = "Data", "Run"
OptionalData = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Rows to train on: LETOR text, or a table (.parquet .feather .csv .tsv), compressed or not. "
        "--config may name them.",
        show_default=False,
    ),
]
RunOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="RUN", help="Run directory to make.", rich_help_panel=RUN),
]
ModelKind = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL", help=f"{', '.join(KINDS)}. Default: linear.", show_default=False
    ),
]
TrainMetric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help="What to train for. Default: ndcg@10; ndcg of maxmargin, ap of pairs.",
        show_default=False,
    ),
]
Convention = Annotated[
    str | None,
    typer.Option(
        "--convention",
        "-c",
        metavar="CONVENTION",
        help="Of every metric: trec_eval, lightgbm, 'trec_eval,gain=exp2', ... Default: concordant.",
        show_default=False,
    ),
]
Evaluated = Annotated[
    list[str] | None,
    typer.Option(
        "--evaluate",
        "-e",
        metavar="METRIC",
        help="What to measure besides; repeat. Default: ndcg@1, ndcg@5, ndcg@10 and ap.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the model, as a TOML value; repeat."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, metavar="N", help="Of the random numbers. Default: 0.", show_default=False),
]
ValidationFile = Annotated[
    Path | None,
    typer.Option(
        "--validation",
        metavar="FILE",
        help="Held-out queries: tune and linear-cv choose by them; neural, and boosted with early_stopping, "
        "stop by them.",
        rich_help_panel=DATA,
    ),
]
TestFiles = Annotated[
    list[Path] | None,
    typer.Option("--test", metavar="FILE", help="Queries to measure on; repeat.", rich_help_panel=DATA),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=r"TOML with \[data], \[model], \[evaluate] and \[tune]; options win over it.",
    ),
]
Checkpoint = Annotated[
    bool,
    typer.Option(
        "--checkpoint/--no-checkpoint",
        metavar="",
        help="Keep what a killed training needs to go on. Default: yes.",
        show_default=False,
        rich_help_panel=RUN,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", metavar="", help="Replace the run that is there.", rich_help_panel=RUN),
]


def configured(
    config: Path | None,
    settings: Sequence[str] | None,
    columns: Sequence[str | None],
    **given: Any,
) -> Config:
    """Give the run that a file and the options say together.

    Parameters
    ----------
    columns
        Label, qid, docid and features, as the options give them.
    given
        data, validation, test, kind, metric, convention, seed, metrics: None where not said; of a search
        also tune, the section.
    """
    from concordant.cli.compare_options import names_in
    from concordant.cli.config import merged, read_config, resolved

    named = dict(zip(("label", "qid", "docid"), columns[:3], strict=True))
    data = {"train": given["data"], "validation": given["validation"], "test": given["test"]}
    data = {key: as_text(value) for key, value in data.items()}
    flags: Mapping[str, dict[str, Any]] = {
        "data": {**data, **named, "features": names_in(columns[3])},
        "model": {key: given[key] for key in ("kind", "metric", "convention", "seed")},
        "evaluate": {"metrics": given["metrics"]},
    }
    whole = merged({} if config is None else read_config(config), flags)
    whole["model"] |= settings_of(settings or [])
    if "tune" not in given:
        return resolved(whole)
    searched = {**given["tune"], "space": spaces_of(given["tune"]["space"])}
    space = {**whole["tune"].get("space", {}), **searched["space"]}
    said = {key: value for key, value in searched.items() if value is not None}
    return resolved({**whole, "tune": {**whole["tune"], **said, "space": space}}, tuned=True)


def as_text(value: Any) -> Any:
    """Give paths as text."""
    if isinstance(value, list):
        return [str(one) for one in value]
    return None if value is None else str(value)


def spaces_of(given: Sequence[str]) -> dict[str, Any]:
    """Give the spaces that --space says, each once."""
    from concordant.cli.tune_space import said

    spaces: dict[str, Any] = {}
    for text in given:
        name, values = said(text)
        if name in spaces:
            raise ParameterError("--space", text, f"of another parameter: {name} is given already")
        spaces[name] = values
    return spaces


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """Give the parameters that --set says, each once."""
    from concordant.cli.config import KEYS
    from concordant.cli.config_toml import read_setting

    chosen: dict[str, Any] = {}
    for text in given:
        name, value = read_setting(text)
        if name in chosen:
            raise ParameterError("--set", text, f"of another parameter: {name} is given already")
        if name in KEYS["model"]:
            own = "model" if name == "kind" else name
            raise ParameterError("--set", text, f"a parameter; --{own} says it")
        chosen[name] = value
    return chosen
