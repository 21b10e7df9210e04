"""How a search is made: the section [tune] of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from concordant.cli.config_toml import NONE
from concordant.cli.tune_space import Space, space_of
from concordant.exceptions import ParameterError

__all__ = ["FOLDS", "TRIALS", "Tune", "read_tune"]

FOLDS, TRIALS = 5, 30


@dataclass(frozen=True)
class Tune:
    """A search, resolved.

    Attributes
    ----------
    trials
        How many parameters are tried; None: the path of a linear ranker's penalty.
    folds
        Folds of whole queries; None: trials are judged on the validation file.
    prune
        Whether a trial ends once it is below the median of the others after as many folds.
    space
        What is tried.
    """

    trials: int | None
    folds: int | None
    prune: bool
    space: Space = field(hash=False)

    def section(self) -> dict[str, Any]:
        """Give it as a file says it."""
        return {**vars(self), "space": {name: one.plain() for name, one in self.space.items()}}


def read_tune(kind: str, given: Mapping[str, Any], fixed: Mapping[str, Any], *, held: bool) -> Tune:
    """Give the search that a section says.

    Parameters
    ----------
    fixed
        Parameters that the configuration sets: they are tried only where the section names them.
    held
        Whether there is a validation file.
    """
    said = {name: None if value == NONE else value for name, value in given.items()}
    space = said.get("space") or {}
    if not isinstance(space, Mapping):
        raise ParameterError("space", space, "a table, as in [tune.space]")
    space = space_of(kind, space, fixed)
    path = kind == "linear" and set(space) == {"alpha"}
    trials = counted("trials", said.get("trials"), 1)
    folds = counted("folds", said.get("folds"), 2)
    if held and folds is not None:
        raise ParameterError("--folds", folds, "left out: trials are judged on the validation file")
    prune = said.get("prune") or False
    if prune is not True and prune is not False:
        raise ParameterError("prune", prune, "true or false")
    return Tune(
        trials=None if path and trials is None else trials or TRIALS,
        folds=None if held else folds or FOLDS,
        prune=prune,
        space=space,
    )


def counted(name: str, value: Any, least: int) -> int | None:
    """Refuse what is no count."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise ParameterError(name, value, f"a whole number from {least} on")
    return None if value is None else int(value)
