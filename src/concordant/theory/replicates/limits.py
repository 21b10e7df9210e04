"""What one vote can say at most, whether it was seen or not: without such a limit no mean is ever certain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import ParameterError
from concordant.metrics.conditions import Family
from concordant.theory.replicates.replicated import Replicates
from concordant.theory.replicates.votes import Votes

__all__ = ["EVEN", "Limits", "check_limit", "limits_of"]


class Limits(NamedTuple):
    """What one vote can say at most, and what has to be assumed for it.

    Attributes
    ----------
    weight
        Of one preference; 1 for grades and orders, by their nature.
    apart
        How far the caller's f of two items can lie apart; None: as far as was seen.
    uneven
        Votes may differ in what they weigh: a rare heavy one can turn a mean, and resamples of votes without
        it do not know. The band is then made of bounds that hold for all votes within the limits.
    assumes
        What is not known by nature, in words.
    """

    weight: float = 1.0
    apart: float | None = None
    uneven: bool = False
    assumes: tuple[str, ...] = ()


EVEN = Limits()


def limits_of(
    replicates: Replicates, f: Family | None, largest: float | None, largest_f: float | None
) -> Limits:
    """Give the limits; refuse those that votes exceed, and those of what the condition does not read."""
    weighted = any(votes.kind == "preferences" for votes in replicates.votes)
    if largest is not None and not weighted:
        raise ParameterError("largest", largest, "left out: only preferences have weights")
    if largest_f is not None and f is None:
        raise ParameterError("largest_f", largest_f, "left out where f is not given")
    assumes, weight, uneven = list[str](), 1.0, f is not None
    if weighted:
        least, most = weights_seen(replicates.votes)
        weight = most if largest is None else check_limit("largest", largest, most)
        uneven |= least < weight
        seen = " (the largest seen)" if largest is None else ""
        assumes.append(f"no vote prefers one item to another by a weight above {weight:g}{seen}")
    if f is not None:
        by = "by more than was seen" if largest_f is None else f"by more than {largest_f:g}"
        assumes.append(f"no vote sets f of two items apart {by}")
    return Limits(weight, largest_f, uneven, tuple(assumes))


def weights_seen(votes: tuple[Votes, ...]) -> tuple[float, float]:
    """Give the least and the largest weight of a preference; 1 where there is none."""
    seen = [own.values[own.values > 0.0] for own in votes if own.kind == "preferences"]
    weights = np.concatenate(seen)
    return (float(weights.min()), float(weights.max())) if len(weights) else (1.0, 1.0)


def check_limit(name: str, limit: float, seen: float) -> float:
    """Give the limit; refuse one that was exceeded."""
    known = not isinstance(limit, bool) and math.isfinite(as_double(limit))
    if not (known and limit > 0.0 and limit >= seen):
        raise ParameterError(name, limit, f"finite, above 0, and at least what was seen: {seen:g}")
    return float(limit)
