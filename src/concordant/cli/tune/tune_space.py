"""Search spaces: the parameters of a ranker that `tune` tries, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concordant.cli.runs.toml_files import read_toml_setting, toml_value
from concordant.cli.train.train_options import complete_parameters, convert_like, defaults_of
from concordant.exceptions import ParameterError

SPACES: Mapping[str, Mapping[str, str]] = {
    "linear": {"alpha": "1e-6:10:log"},
    "maxmargin": {"alpha": "1e-4:10:log"},
    "pairs": {"alpha": "1e-6:10:log"},
    "boosted": {
        "n_estimators": "50:500:log",
        "learning_rate": "0.01:0.3:log",
        "max_leaf_nodes": "4:64:log",
        "min_samples_leaf": "5:200:log",
        "l2": "0.001:100:log",
        "subsample": "0.5:1",
        "colsample": "0.4:1",
    },
    "neural": {
        "learning_rate": "1e-4:1e-2:log",
        "weight_decay": "1e-4:1:log",
        "dropout": "0:0.6",
    },
}
LARGEST = 1e300
FORM = (
    "low:high, low:high:log or a list of values, as in alpha=1e-6:10:log or booster=['lightgbm', 'xgboost']"
)


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, both included; `log`: sampled evenly in their logarithm."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """True if only whole numbers are meant."""
        return isinstance(self.low, int)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values to test whether the ranker takes all of the range."""
        return (self.low, self.high)

    def plain(self) -> str:
        """Return the text of the option --space."""
        return f"{self.low!r}:{self.high!r}" + (":log" if self.log else "")

    def points(self, count: int) -> list[float]:
        """Return numbers from low to high, evenly spaced; inner ones are rounded to three digits.

        >>> Range(0.01, 1.0, log=True).points(5)
        [0.01, 0.0316, 0.1, 0.316, 1.0]
        >>> Range(1.2346, 2.3454).points(3)
        [1.2346, 1.79, 2.3454]
        """
        import numpy as np

        spread = np.geomspace if self.log else np.linspace
        inner = [float(f"{value:.3g}") for value in spread(self.low, self.high, count)[1:-1]]
        clipped = (min(max(value, self.low), self.high) for value in inner)
        return list(dict.fromkeys((self.low, *clipped, self.high)))


@dataclass(frozen=True)
class Choices:
    """A list of values without an order."""

    values: tuple[Any, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values

    @property
    def ends(self) -> tuple[Any, ...]:
        """Values to test whether the ranker takes all of them."""
        return self.values

    def plain(self) -> list[Any]:
        """Return the list of the option --space."""
        return list(self.values)


Space = Mapping[str, Range | Choices]


def space_of(kind: str, requested: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Range | Choices]:
    """Build the space: parameters asked for, and those tried by default that are not fixed.

    >>> space_of("linear", {"tol": "1e-8:1e-4:log"}, {"alpha": 0.1})
    {'tol': Range(low=1e-08, high=0.0001, log=True)}
    """
    if kind not in SPACES:
        raise ParameterError(
            "--model", kind, f"one of {', '.join(SPACES)}", hint=f"{kind} chooses its own penalty."
        )
    usual = {name: text for name, text in SPACES[kind].items() if name not in fixed}
    space = {name: _read_space(kind, name, definition) for name, definition in {**usual, **requested}.items()}
    if not space:
        raise ParameterError.because(
            f"All parameters tried by default are set, so --space is needed. It takes {FORM}."
        )
    return space


def _read_space(kind: str, name: str, definition: Any) -> Range | Choices:
    """Parse a range or a list of values; raise if the kind has no such parameter."""
    complete_parameters(kind, {name: None})  # the name
    default = defaults_of(kind)[name]
    if isinstance(definition, list | tuple) and definition:
        values = [convert_like(value, default) for value in definition]
        return Choices(tuple({toml_value(value): value for value in values}.values()))  # tables have no hash
    parts = definition.split(":") if isinstance(definition, str) else []
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["log"]):
        raise ParameterError(f"space of {name}", definition, FORM)
    bounds = [_read_bound(name, definition, part, default) for part in parts[:2]]
    if not bounds[0] < bounds[1]:
        raise ParameterError(f"space of {name}", definition, "low:high with low < high")
    if parts[2:] and bounds[0] <= 0:
        raise ParameterError(f"space of {name}", definition, "above 0 on a log scale")
    return Range(bounds[0], bounds[1], log=bool(parts[2:]))


def _read_bound(name: str, definition: str, text: str, default: Any) -> float:
    """Parse a bound: whole if the parameter is; if it has no default, when it is written so.

    >>> _read_bound("max_depth", "2:8", "2", None), _read_bound("l2", "0:1", "0", 1.0)
    (2, 0.0)
    """
    whole = isinstance(default, int) and not isinstance(default, bool)
    try:
        value = int(text) if whole or (default is None and text.strip().isdecimal()) else float(text)
    except ValueError as error:
        allowed = "low:high with two integers" if whole else FORM
        raise ParameterError(f"space of {name}", definition, allowed) from error
    if not -LARGEST < value < LARGEST:  # nor NaN
        raise ParameterError(f"space of {name}", definition, "low:high with finite numbers")
    return value


def read_space_option(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUES: a TOML list, or the text of a range.

    >>> read_space_option("alpha=1e-6:10:log"), read_space_option("hidden=[[16], [32, 16]]")
    (('alpha', '1e-6:10:log'), ('hidden', [[16], [32, 16]]))
    """
    name, sign, values = (part.strip() for part in text.partition("="))
    if values.startswith("["):
        return read_toml_setting(text, "--space")
    if not (name and sign and values):
        raise ParameterError("--space", text, "NAME=VALUES", hint=f"VALUES is {FORM}.")
    return name, values
