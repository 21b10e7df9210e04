"""Warnings that point at the user's line, however many calls lie between."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType

# No user wrote the lines there.
PASSED_OVER = frozenset(
    {"catboost", "concordant", "distributed", "joblib", "lightgbm", "multiprocessing", "sklearn", "xgboost"}
)
_last_location: dict[type[Warning], tuple[object, ...]] = {}  # of `warn_caller_once`


def find_frame(matches: Callable[[str, str], bool]) -> tuple[FrameType | None, int]:
    """Return the nearest frame whose names of module and function match, and its level: 1 for the caller."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    level = 1
    while frame is not None and not matches(str(frame.f_globals.get("__name__")), frame.f_code.co_name):
        frame, level = frame.f_back, level + 1
    return frame, level


def _is_outside(module: str, function: str) -> bool:
    del function
    return module.partition(".")[0] not in PASSED_OVER


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the stack outside this package and the libraries of `PASSED_OVER`."""
    _, level = find_frame(_is_outside)
    warnings.warn(text, category, stacklevel=level)


def warn_caller_once(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn as `warn_caller` does, but not twice in a row from one call at one line.

    scikit-learn resets what Python remembers of warnings in every fold: each would warn again.
    """
    if find_frame(lambda module, _: module.startswith("sklearn."))[0] is None:
        warn_caller(text, category)
        return
    frame, level = find_frame(_is_outside)
    location = text, id(frame), frame and frame.f_lasti
    if location != _last_location.get(category):
        warnings.warn(text, category, stacklevel=level)
        _last_location[category] = location
