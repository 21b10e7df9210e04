"""Outcomes of comparisons as people write them, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.types import IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OUTCOMES", "SCORES", "key_of", "meanings_of", "signs_of"]

LEFT_WINS = ("left", "first", "a", "win_a", "model_a", "white", "1-0", "-1")
TIES = ("tie", "draw", "both", "tie (bothbad)", "bothbad", "1/2-1/2", "\u00bd-\u00bd", "0")
RIGHT_WINS = ("right", "second", "b", "win_b", "model_b", "black", "0-1", "1", "+1")
OUTCOMES = dict.fromkeys(LEFT_WINS, -1) | dict.fromkeys(TIES, 0) | dict.fromkeys(RIGHT_WINS, 1)
SCORES = {"1": -1, "0.5": 0, "0": 1}
"""Chess scores of the left side: never assumed, since 1 and 0 mean "right is better" and "tie" otherwise."""


def signs_of(keys: Sequence[str], codes: NDArray[Any], name: str, meanings: Mapping[str, int]) -> IntArray:
    """Give -1, 0 or 1 of each row; `codes` says which of the keys it has.

    Raises
    ------
    LabelError
        At the first row, counted from 0, whose outcome means nothing.
    """
    if unknown := [code for code, key in enumerate(keys) if key not in meanings]:
        row = int(np.flatnonzero(np.isin(codes, unknown))[0])
        hint = f'pass outcomes= (a mapping, or "score" for chess scores); known are {", ".join(meanings)}.'
        problem = f"column {name!r} has the unknown outcome {str(keys[codes[row]])!r} at row {row}"
        raise LabelError(problem, hint)
    signs: IntArray = np.array([meanings[key] for key in keys], dtype=np.int64)[codes]
    return signs


def key_of(value: object) -> str:
    """One spelling for each outcome: whole floats as whole numbers, text in lower case and stripped."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip().casefold()


def meanings_of(outcomes: Mapping[Any, int] | str | None) -> dict[str, int]:
    """Give what each outcome means, by its one spelling."""
    if outcomes is None:
        return OUTCOMES
    if isinstance(outcomes, str):
        if outcomes != "score":
            raise UnknownNameError("outcomes", outcomes, ["score"])
        return SCORES
    for value in outcomes.values():
        if value not in (-1, 0, 1):
            raise ParameterError("outcomes", value, "a mapping to -1 (left), 0 (tie) or 1 (right)")
    return {key_of(name): int(value) for name, value in outcomes.items()}
