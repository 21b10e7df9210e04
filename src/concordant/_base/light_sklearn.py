"""The names of scikit-learn that estimators need, imported without pandas and scipy.stats.

scikit-learn imports both at start-up for a few functions that estimators do not call; they take two thirds of
its import time. Here each is imported when one of these functions first uses it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stand-in for a module, which is imported when an attribute is first read."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:  # something else imported it meanwhile
            sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)


@contextmanager
def _deferred(*names: str) -> Iterator[None]:
    """Let modules that are imported in the block see stand-ins; other code imports the real modules."""
    stands_in = {name: _Deferred(name) for name in names if name not in sys.modules and find_spec(name)}
    sys.modules.update(stands_in)
    try:
        yield
    finally:
        for name, module in stands_in.items():
            if sys.modules.get(name) is module:
                sys.modules.pop(name, None)


with _deferred("pandas", "scipy.stats"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "ConvergenceWarning",
    "NotFittedError",
    "available_if",
    "check_array",
    "check_is_fitted",
    "validate_data",
]
