"""The configuration of a run: a TOML file, with flags that win over it, and every default filled in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.runs.toml_files import NONE, read_toml, toml_text
from concordant.cli.shared.row_options import ColumnNames
from concordant.cli.train.train_options import complete_parameters, make_ranker, ranker_class
from concordant.cli.tune.tune_space import Space, space_of
from concordant.exceptions import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant import Metric


# The section [tune] of a configuration.

FOLDS, TRIALS = 5, 30


@dataclass(frozen=True)
class Tune:
    """The search of a run, resolved.

    Attributes
    ----------
    trials
        Number of trials; None: the path of a linear ranker's penalty.
    folds
        Number of folds of whole queries; None: trials are scored on the validation file.
    prune
        True if a trial ends once it is below the median of the others after as many folds.
    space
        Ranges and choices of the parameters.
    """

    trials: int | None
    folds: int | None
    prune: bool
    space: Space = field(hash=False)

    def section(self) -> dict[str, Any]:
        """Return the section of a configuration file."""
        return {**vars(self), "space": {name: values.plain() for name, values in self.space.items()}}


def _read_tune(
    kind: str, section: Mapping[str, Any], fixed: Mapping[str, Any], *, has_validation: bool
) -> Tune:
    """Resolve the section [tune].

    Parameters
    ----------
    fixed
        Parameters that the configuration sets; they are searched only if the section names them.
    has_validation
        True if there is a validation file.
    """
    settings = {name: None if value == NONE else value for name, value in section.items()}
    space = settings.get("space") or {}
    if not isinstance(space, Mapping):
        raise ParameterError("space", space, "a table, as in [tune.space]")
    space = space_of(kind, space, fixed)
    path = kind == "linear" and set(space) == {"alpha"}
    trials = _check_count("trials", settings.get("trials"), 1)
    folds = _check_count("folds", settings.get("folds"), 2)
    if has_validation and folds is not None:
        raise ParameterError.because(
            "--folds was given, but trials are scored on the validation file. Leave one of them out."
        )
    prune = settings.get("prune") or False
    if prune is not True and prune is not False:
        raise ParameterError("prune", prune, "true or false")
    return Tune(
        trials=None if path and trials is None else trials or TRIALS,
        folds=None if has_validation else folds or FOLDS,
        prune=prune,
        space=space,
    )


def _check_count(name: str, value: Any, least: int) -> int | None:
    """Check that an option is None or a whole number of at least `least`."""
    from concordant._base.validate import check_whole

    return None if value is None else check_whole(name, value, least)


Sections = dict[str, dict[str, Any]]
COLUMNS = ("label", "qid", "docid", "features", "exclude")
KEYS: Mapping[str, tuple[str, ...]] = {
    "data": ("train", "validation", "test", *COLUMNS),
    "model": ("kind", "metric", "convention", "seed"),  # and the parameters of the kind
    "evaluate": ("metrics",),
    "tune": ("trials", "folds", "prune", "space"),  # which `train` does not read
}
MEASURED = ("ndcg@1", "ndcg@5", "ndcg@10", "ap")  # besides the metric that is trained for
HEAD = "# Written by concordant: everything this run depends on. `concordant rerun` reads it.\n\n"


@dataclass(frozen=True)
class Config:
    """The configuration of a run, resolved: paths are absolute, every parameter has its value.

    Attributes
    ----------
    train, validation, test, columns
        Data files, and the names of their columns.
    kind, metric, seed, parameters
        The ranker.
    metrics
        Metrics to measure, each with its convention.
    tune
        The search, which starts at `parameters`; None: no search.
    """

    train: Path
    validation: Path | None
    test: tuple[Path, ...]
    columns: ColumnNames
    kind: str
    metric: str
    seed: int
    parameters: Mapping[str, Any] = field(hash=False)
    metrics: tuple[str, ...]
    tune: Tune | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The data files by their part: train, validation, test; test 1, test 2 where there are several."""
        single = len(self.test) == 1
        tests = {"test" if single else f"test {n}": path for n, path in enumerate(self.test, start=1)}
        validation = {} if self.validation is None else {"validation": self.validation}
        return {"train": self.train, **validation, **tests}

    def ranker(self) -> Any:
        """Create the ranker, unfitted; parameters are checked as far as possible without data."""
        return make_ranker(self.kind, self.metric, self.seed, self.parameters)

    def sections(self) -> Sections:
        """Return the sections of a configuration file; None in [data] is left out."""
        data: dict[str, Any] = {
            "train": str(self.train),
            "validation": None if self.validation is None else str(self.validation),
            "test": [str(path) for path in self.test] or None,
            **vars(self.columns),
        }
        head = {"kind": self.kind, "metric": self.metric, "seed": self.seed}
        return {
            "data": {name: value for name, value in data.items() if value is not None},
            "model": {**head, **self.parameters},
            "evaluate": {"metrics": list(self.metrics)},
            **({} if self.tune is None else {"tune": self.tune.section()}),
        }

    def with_parameters(self, parameters: Mapping[str, Any]) -> Config:
        """Return the run with other parameters, without the search that found them."""
        whole = complete_parameters(self.kind, {**self.parameters, **parameters})
        return replace(self, parameters=whole, tune=None)

    def text(self, head: str = HEAD) -> str:
        """Return the text of the file; `read_config` and `resolve_config` read the same run back."""
        return head + toml_text(self.sections())


def read_config(path: Path) -> Sections:
    """Read the sections of a file, whose paths are relative to its folder; raise for unknown names."""
    sections = read_toml(path)
    for name, lines in sections.items():
        if name not in KEYS:
            raise UnknownNameError(f"section of {path}", name, KEYS)
        if not isinstance(lines, dict):
            raise ParameterError(f"{path}: {name}", lines, f"a section, as in [{name}]")
        if name != "model":  # its parameters are known once its kind is
            for key in lines:
                if key not in KEYS[name]:
                    raise UnknownNameError(f"key of [{name}] in {path}", key, KEYS[name])
    data = sections.get("data", {})
    for key in ("train", "validation"):
        if key in data:
            data[key] = _path_beside(path, _check_text(data[key], f"{path}: {key}"))
    if "test" in data:
        data["test"] = [_path_beside(path, file) for file in _check_texts(data["test"], f"{path}: test")]
    return sections


def _path_beside(path: Path, name: str) -> str:
    """Return a path that is relative to the folder of another file."""
    return str(path.parent / _expand_home(name))


def _expand_home(name: str) -> Path:
    """Expand ~ to the home folder; of an unknown user it is left as it is."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _check_text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ParameterError(name, value, "a string")
    return value


def _check_texts(value: Any, name: str) -> list[str]:
    """Return a list of texts; a single text may stand without brackets."""
    if isinstance(value, str):
        return [_check_text(value, name)]
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and text for text in value):
        raise ParameterError(name, value, "a list of strings")
    return list(value)


def merge_sections(file: Sections, flags: Mapping[str, Mapping[str, Any]]) -> Sections:
    """Merge a file and flags; flags that were given win."""
    return {
        name: {
            **file.get(name, {}),
            **{key: value for key, value in flags.get(name, {}).items() if value not in (None, [], ())},
        }
        for name in KEYS
    }


def resolve_config(sections: Sections, *, tuned: bool = False) -> Config:
    """Build the configuration from its sections, with every default filled in; raise for wrong values.

    Parameters
    ----------
    tuned
        True to read the section [tune].
    """
    import concordant as cc
    from concordant._base.validate import check_whole

    data, model = sections.get("data", {}), dict(sections.get("model", {}))
    if "train" not in data:
        raise ParameterError.because(
            "Name a training file: DATA, or train = '...' in [data] of --config FILE."
        )
    kind = _check_text(model.pop("kind", "linear"), "kind")
    name = _check_text(model.pop("metric", _default_metric(kind)), "metric")
    style = model.pop("convention", None)
    metric = cc.metric(name, convention=style)
    seed = check_whole("seed", model.pop("seed", 0), 0, 2**32 - 1)
    return Config(
        train=_absolute_path(data["train"]),
        validation=_absolute_path(data["validation"]) if "validation" in data else None,
        test=tuple(_absolute_path(file) for file in _check_texts(data.get("test", []), "test")),
        columns=_read_columns(data),
        kind=kind,
        metric=str(metric),
        seed=seed,
        parameters=complete_parameters(kind, model),
        metrics=_measured_metrics(sections.get("evaluate", {}).get("metrics"), metric, style),
        tune=_read_tune(kind, sections.get("tune", {}), model, has_validation="validation" in data)
        if tuned
        else None,
    )


def _read_columns(data: Mapping[str, Any]) -> ColumnNames:
    columns: dict[str, Any] = {key: _check_text(data[key], key) for key in COLUMNS[:3] if key in data}
    lists = {key: tuple(_check_texts(data[key], key)) for key in COLUMNS[3:] if data.get(key) is not None}
    return ColumnNames(**columns | lists)


def _measured_metrics(requested: Any, metric: Metric, style: str | None) -> tuple[str, ...]:
    """Return the metrics to measure: the one trained for, then those asked for, or the usual ones.

    A convention given once holds for all. Otherwise the usual metrics have that of `metric`, and requested
    ones their own, so that a resolved file resolves to itself.
    """
    import concordant as cc

    if requested is None:
        others = [cc.metric(name, convention=metric.convention) for name in MEASURED]
    else:
        names = _check_texts(requested, "metrics")
        others = [cc.metric(name, convention=None if "[" in name else style) for name in names]
    return tuple(dict.fromkeys(str(measured_metric) for measured_metric in (metric, *others)))


def _default_metric(kind: str) -> str:
    return str(ranker_class(kind)().metric)


def _absolute_path(name: Any) -> Path:
    """Return the absolute path, without dots; links are not resolved."""
    path = Path(os.path.abspath(_expand_home(_check_text(str(name), "path"))))  # noqa: PTH100
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            "path", str(path), "a name in UTF-8, as the configuration file stores it"
        ) from error
    return path


def differences(config: Config, other: Config) -> list[str]:
    """List the settings in which two runs differ, as section.key."""
    left, right = config.sections(), other.sections()
    return [
        f"[{section}] {key}"
        for section in {**left, **right}
        for key in {**left.get(section, {}), **right.get(section, {})}
        if left.get(section, {}).get(key) != right.get(section, {}).get(key)
    ]
