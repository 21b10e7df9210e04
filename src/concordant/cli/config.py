"""What a run is made of: a TOML file, with flags that win over it, resolved to the last parameter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.config_toml import read_toml, toml_text
from concordant.cli.config_tune import Tune, read_tune
from concordant.cli.data import Columns
from concordant.cli.train_kinds import given_parameters, made, ranker_class
from concordant.exceptions import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant import Metric

__all__ = ["HEAD", "Config", "Sections", "differences", "merged", "read_config", "resolved"]

Sections = dict[str, dict[str, Any]]
COLUMNS = ("label", "qid", "docid", "features")
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
    """A run, resolved: paths are absolute, every parameter has its value.

    Attributes
    ----------
    train, validation, test, columns
        Files, and what the columns of tables are called.
    kind, metric, seed, parameters
        The ranker.
    metrics
        What is measured, each under its convention.
    tune
        The search for parameters, beginning at these; None: there is none.
    """

    train: Path
    validation: Path | None
    test: tuple[Path, ...]
    columns: Columns
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
        held = {} if self.validation is None else {"validation": self.validation}
        return {"train": self.train, **held, **tests}

    def ranker(self) -> Any:
        """Give the ranker, not fitted, its parameters checked as far as they can be without data."""
        return made(self.kind, self.metric, self.seed, self.parameters)

    def sections(self) -> Sections:
        """Give all of it as a file says it; what is None in [data] is left out."""
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

    def chosen(self, parameters: Mapping[str, Any]) -> Config:
        """Give the run at other parameters, without the search that found them."""
        whole = given_parameters(self.kind, {**self.parameters, **parameters})
        return replace(self, parameters=whole, tune=None)

    def text(self, head: str = HEAD) -> str:
        """Give the file; `read_config` and `resolved` give the same run back."""
        return head + toml_text(self.sections())


def read_config(path: Path) -> Sections:
    """Give the sections of a file, its paths relative to where it lies; unknown names are refused."""
    given = read_toml(path)
    for name, lines in given.items():
        if name not in KEYS:
            raise UnknownNameError(f"section of {path}", name, KEYS)
        if not isinstance(lines, dict):
            raise ParameterError(f"{path}: {name}", lines, f"a section, as in [{name}]")
        if name != "model":  # its parameters are known once its kind is
            for key in lines:
                if key not in KEYS[name]:
                    raise UnknownNameError(f"key of [{name}] in {path}", key, KEYS[name])
    data = given.get("data", {})
    for key in ("train", "validation"):
        if key in data:
            data[key] = beside(path, text_of(data[key], f"{path}: {key}"))
    if "test" in data:
        data["test"] = [beside(path, one) for one in texts_of(data["test"], f"{path}: test")]
    return given


def beside(path: Path, name: str) -> str:
    """Give a file by its place relative to another one's folder."""
    return str(path.parent / expanded(name))


def expanded(name: str) -> Path:
    """Give a path from the home folder that ~ means; of an unknown user it is a name as any other."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def text_of(value: Any, name: str) -> str:
    """Refuse what is not text."""
    if not isinstance(value, str) or not value:
        raise ParameterError(name, value, "text")
    return value


def texts_of(value: Any, name: str) -> list[str]:
    """Give a list of texts; one alone may stand without brackets."""
    if isinstance(value, str):
        return [text_of(value, name)]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise ParameterError(name, value, "a list of texts")
    return list(value)


def merged(file: Sections, flags: Mapping[str, Mapping[str, Any]]) -> Sections:
    """Give both together: a flag that was given wins."""
    return {
        name: {
            **file.get(name, {}),
            **{key: value for key, value in flags.get(name, {}).items() if value not in (None, [], ())},
        }
        for name in KEYS
    }


def resolved(given: Sections, *, tuned: bool = False) -> Config:
    """Give the run that the sections describe, with every default filled in; wrong ones are refused.

    Parameters
    ----------
    tuned
        Whether there is a search; else the section [tune] is not read.
    """
    import concordant as cc

    data, model = given.get("data", {}), dict(given.get("model", {}))
    if "train" not in data:
        raise ParameterError("DATA", None, "a file: name it, or say train = '...' in [data] of --config FILE")
    kind = text_of(model.pop("kind", "linear"), "kind")
    name = text_of(model.pop("metric", default_metric(kind)), "metric")
    style = model.pop("convention", None)
    metric = cc.metric(name, convention=style)
    seed = model.pop("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ParameterError("seed", seed, "a whole number from 0 to 4294967295")
    return Config(
        train=absolute(data["train"]),
        validation=absolute(data["validation"]) if "validation" in data else None,
        test=tuple(absolute(one) for one in texts_of(data.get("test", []), "test")),
        columns=columns_of(data),
        kind=kind,
        metric=str(metric),
        seed=seed,
        parameters=given_parameters(kind, model),
        metrics=measured(given.get("evaluate", {}).get("metrics"), metric, style),
        tune=read_tune(kind, given.get("tune", {}), model, held="validation" in data) if tuned else None,
    )


def columns_of(data: Mapping[str, Any]) -> Columns:
    """Give what the columns are called."""
    named = {key: text_of(data[key], key) for key in COLUMNS[:3] if key in data}
    features = data.get("features")
    return Columns(**named, features=None if features is None else tuple(texts_of(features, "features")))


def measured(given: Any, metric: Metric, style: str | None) -> tuple[str, ...]:
    """Name what is measured: what is trained for, and what is asked for or usual.

    A convention that is said once holds for all; else what is usual has that of the metric, and what is
    asked for its own, so that a resolved file gives itself back.
    """
    import concordant as cc

    if given is None:
        others = [cc.metric(one, convention=metric.convention) for one in MEASURED]
    else:
        names = texts_of(given, "metrics")
        others = [cc.metric(one, convention=None if "[" in one else style) for one in names]
    return tuple(dict.fromkeys(str(one) for one in (metric, *others)))


def default_metric(kind: str) -> str:
    """Give the metric that a kind trains for unless told."""
    return str(ranker_class(kind)().metric)


def absolute(name: Any) -> Path:
    """Give the absolute path, without dots; links stay what they are."""
    path = Path(os.path.abspath(expanded(text_of(str(name), "path"))))  # noqa: PTH100
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ParameterError("path", str(path), "UTF-8, as the configuration is that names it") from error
    return path


def differences(one: Config, other: Config) -> list[str]:
    """Name what two runs differ in, as section.key."""
    left, right = one.sections(), other.sections()
    return [
        f"[{section}] {key}"
        for section in {**left, **right}
        for key in {**left.get(section, {}), **right.get(section, {})}
        if left.get(section, {}).get(key) != right.get(section, {}).get(key)
    ]
