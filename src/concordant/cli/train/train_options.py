"""Options that `train` and `tune` share, and the configuration they make."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.shared.output import argument, option, switch
from concordant.cli.shared.row_options import TrainingColumns
from concordant.exceptions import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.cli.runs.config import Config


# The rankers that `train` and `tune` know by name, and their parameters.

KINDS: Mapping[str, str] = {
    "linear": "LinearRanker",
    "linear-cv": "LinearRankerCV",
    "maxmargin": "MaxMarginRanker",
    "pairs": "PairRanker",
    "boosted": "BoostedRanker",
    "neural": "NeuralRanker",
}
# Parameters that a command sets itself, or that a file cannot hold.
OWN = ("callback", "checkpoint", "f", "verbose", "warm_start")
ELSEWHERE = {"metric": "--metric", "random_state": "--seed"}
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def ranker_class(kind: str) -> Any:
    """Return the class of a kind."""
    if kind not in KINDS:
        raise UnknownNameError("model", kind, KINDS)
    import concordant as cc

    return getattr(cc, KINDS[kind])


def defaults_of(kind: str) -> dict[str, Any]:
    """Return the parameters that can be set, with their defaults; metric and seed have their own options."""
    signature = inspect.signature(ranker_class(kind)).parameters
    return {
        name: parameter.default
        for name, parameter in signature.items()
        if name not in OWN and name not in ELSEWHERE
    }


def complete_parameters(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults; given parameters are converted to the types of theirs."""
    defaults = defaults_of(kind)
    for name, value in settings.items():
        if name in ELSEWHERE:
            flag = ELSEWHERE[name]
            raise ParameterError.because(
                f"{name} is set by {flag} (in a file: {flag[2:]}), got {name}={value!r}."
            )
        if name not in defaults:
            from concordant.rankers.foreign_names import equivalent

            ours = equivalent(name, defaults)
            raise UnknownNameError(f"parameter of {kind}", name, defaults, f"it is {ours} here." * bool(ours))
    return {
        name: convert_like(settings[name], default) if name in settings else default
        for name, default in defaults.items()
    }


def convert_like(value: Any, default: Any) -> Any:
    """Convert a TOML value to the type of the default: lists to tuples, whole numbers to floats.

    >>> convert_like([16, 8], (128, 64)), convert_like(1, 0.1), convert_like("none", 10)
    ((16, 8), 1.0, None)
    """
    if value == "none":
        return None
    if isinstance(value, list):
        inner = default[0] if isinstance(default, tuple) and default else None
        return tuple(convert_like(entry, inner) for entry in value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def make_ranker(kind: str, metric: str, seed: int, parameters: Mapping[str, Any]) -> Any:
    """Create the ranker, unfitted; it checks its parameters here if it can."""
    kind_class = ranker_class(kind)
    signature = inspect.signature(kind_class).parameters
    seeded = {"random_state": seed} if "random_state" in signature else {}
    model = kind_class(metric=metric, **seeded, **parameters)
    check = getattr(model, "checked_parameters", None)
    if check is not None:
        check()
    return model


def packages_of(kind: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the installed packages whose versions a result may depend on."""
    backend = {"boosted": str(parameters.get("booster")), "neural": "torch"}.get(kind)
    named = [*LIBRARIES, *([backend] if backend else [])]
    spelled = {"scikit-learn": "sklearn"}
    return [name for name in named if importlib.util.find_spec(spelled.get(name, name)) is not None]


DATA, RUN = "Data", "Run"
OptionalData = Annotated[
    Path | None,
    argument(
        "DATA",
        "Rows to train on: LETOR text, or a table (.parquet .feather .csv .tsv), compressed or not. "
        "--config may name them.",
    ),
]


@dataclass(frozen=True)
class RankerOptions:
    """Options for a run and its ranker."""

    output: Annotated[Path, option("--output -o", "RUN", "Run directory to make.", RUN)]
    model: Annotated[str | None, option("--model", "MODEL", f"{', '.join(KINDS)}. Default: linear.")] = None
    metric: Annotated[
        str | None,
        option(
            "--metric -m", "METRIC", "What to train for. Default: ndcg@10; ndcg of maxmargin, ap of pairs."
        ),
    ] = None
    convention: Annotated[
        str | None,
        option(
            "--convention -c",
            "CONVENTION",
            "Of every metric: trec_eval, lightgbm, 'trec_eval,gain=exp2', ... Default: concordant.",
        ),
    ] = None
    evaluate: Annotated[
        list[str] | None,
        option(
            "--evaluate -e",
            "METRIC",
            "What to measure besides; repeat. Default: ndcg@1, ndcg@5, ndcg@10 and ap.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None, option("--set", "NAME=VALUE", "Parameter of the model, as a TOML value; repeat.")
    ] = None
    seed: Annotated[int | None, option("--seed", "N", "Of the random numbers. Default: 0.", min=0)] = None
    config: Annotated[
        Path | None,
        option(
            "--config", "FILE", r"TOML with \[data], \[model], \[evaluate] and \[tune]; options win over it."
        ),
    ] = None


@dataclass(frozen=True)
class HeldOutFiles:
    """Options for the data files that are not trained on."""

    validation: Annotated[
        Path | None,
        option(
            "--validation",
            "FILE",
            "Held-out queries: tune and linear-cv choose by them; neural, and boosted with early_stopping, "
            "stop by them.",
            DATA,
        ),
    ] = None
    test: Annotated[list[Path] | None, option("--test", "FILE", "Queries to measure on; repeat.", DATA)] = (
        None
    )


@dataclass(frozen=True)
class FolderOptions:
    """Options for what a run keeps and what it replaces."""

    checkpoint: Annotated[
        bool,
        switch(
            "--checkpoint/--no-checkpoint",
            "Keep what a killed training needs to go on. Default: yes.",
            RUN,
            show_default=False,
        ),
    ] = True
    overwrite: Annotated[bool, switch("--overwrite", "Replace the run that is there.", RUN)] = False


def build_config(
    data: Path | None,
    ranker: RankerOptions,
    held_out: HeldOutFiles,
    columns: TrainingColumns,
    tune: Mapping[str, Any] | None = None,
) -> Config:
    """Build the configuration from a file and the options; `tune`: those of a search."""
    from concordant.cli.runs.config import merge_sections, read_config, resolve_config

    paths = {"train": data, **vars(held_out)}
    model = {name: getattr(ranker, name) for name in ("metric", "convention", "seed")}
    flags: Mapping[str, dict[str, Any]] = {
        "data": {**{key: _as_text(value) for key, value in paths.items()}, **vars(columns.names())},
        "model": {"kind": ranker.model, **model},
        "evaluate": {"metrics": ranker.evaluate},
    }
    whole = merge_sections({} if ranker.config is None else read_config(ranker.config), flags)
    whole["model"] |= _read_settings(ranker.settings or [])
    if tune is None:
        return resolve_config(whole)
    space = {**whole["tune"].get("space", {}), **_read_spaces(tune["space"] or [])}
    search = {key: value for key, value in tune.items() if value is not None}
    return resolve_config({**whole, "tune": {**whole["tune"], **search, "space": space}}, tuned=True)


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [str(path) for path in value]
    return None if value is None else str(value)


def _read_spaces(texts: Sequence[str]) -> dict[str, Any]:
    from concordant.cli.tune.tune_space import read_space_option

    return _read_each("--space", texts, read_space_option)


def _read_settings(texts: Sequence[str]) -> dict[str, Any]:
    from concordant.cli.runs.config import KEYS
    from concordant.cli.runs.toml_files import read_toml_setting

    settings = _read_each("--set", texts, read_toml_setting)
    for name, text in zip(settings, texts, strict=True):
        if name in KEYS["model"]:
            flag = "model" if name == "kind" else name
            raise ParameterError.because(f"--set {text} does not work. Use --{flag}.")
    return settings


def _read_each(flag: str, texts: Sequence[str], read: Callable[[str], tuple[str, Any]]) -> dict[str, Any]:
    """Parse NAME=VALUE texts; raise if a name is given twice."""
    values: dict[str, Any] = {}
    for text in texts:
        name, value = read(text)
        if name in values:
            raise ParameterError.because(f"{name} is given twice: {flag} {text} repeats it.")
        values[name] = value
    return values
