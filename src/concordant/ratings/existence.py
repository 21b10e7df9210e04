"""Whether the most likely ratings are finite, and if not, why."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.exceptions import NoFiniteRatingsError, NotConnectedError
from concordant.ratings.counts import Counts
from concordant.ratings.votes import Items
from concordant.types import BoolArray

__all__ = ["refuse_infinite"]


def refuse_infinite(counts: Counts, items: Items, *, advantage: bool, tie: bool) -> None:
    """Raise where the likelihood has no finite maximum, or more than one.

    It has one exactly if no direction (v, c, e) but a constant v lowers no vote's probability in the long
    run. With u = v[first] - v[second] + c, a win of the first side needs u >= e, of the second u <= -e, and
    a tie -e <= u <= e; c is 0 without a free advantage, e without a free tie parameter. Directions with
    c = e = 0 are excluded exactly where the votes are strongly connected. The others: a cycle of votes
    must hold more wins than ties (then e = 0), and cycles won mostly from the left and mostly from the right
    (then c = 0).
    """
    if not counts.connected:
        raise NotConnectedError([items.names[part].tolist() for part in counts.components()])
    if tie and not contested(counts) and unbounded(counts, "tie", advantage=advantage):
        problem = (
            "the votes do not bound the tie parameter: no circle of wins and ties has more wins than ties"
        )
        raise NoFiniteRatingsError(problem)
    if advantage and not both_sides(counts):
        for aim in ("left", "right"):
            if unbounded(counts, aim, advantage=True):
                problem = f"the votes do not determine the advantage: they allow any that favours the {aim}"
                raise NoFiniteRatingsError(problem)


def contested(counts: Counts) -> bool:
    """Whether in some pair each side won: then no tie parameter is unbounded."""
    return bool(((counts.cells[:, 0] > 0) & (counts.cells[:, 2] > 0)).any())


def both_sides(counts: Counts) -> bool:
    """Whether in some pair each won or tied from the left, and in some pair each did from the right."""
    forth, back = counts.first * counts.n_items + counts.second, counts.second * counts.n_items + counts.first
    good = counts.cells[:, :2].any(axis=1), counts.cells[:, 1:].any(axis=1)
    return all(bool(np.isin(forth[held], back[held]).any()) for held in good)


def unbounded(counts: Counts, aim: str, *, advantage: bool) -> bool:
    """Whether a direction exists that raises the tie parameter, or the advantage of a side.

    A linear program: the directions form a cone, so that the largest component is 0 or its bound 1.
    """
    from scipy.optimize import linprog

    n = counts.n_items
    side = (-1.0, 1.0) if aim != "tie" else (None, None) if advantage else (0.0, 0.0)
    bounds = [(0.0, 0.0), *[(None, None)] * (n - 1), side, (0.0, 1.0 * (aim == "tie"))]
    cost = np.zeros(n + 2)
    cost[n + 1 if aim == "tie" else n] = 1.0 if aim == "right" else -1.0
    rows = constraints(counts)
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(rows.shape[0]), bounds=bounds, method="highs")
    return bool(found.status == 0 and abs(found.fun or 0.0) > 0.5)


def constraints(counts: Counts) -> Any:
    """Rows a with a . (v, c, e) <= 0 that a direction must satisfy, sparse."""
    from scipy.sparse import coo_array, vstack

    n = counts.n_items

    def rows(held: BoolArray, side: float, width: float) -> Any:
        first, second = counts.first[held], counts.second[held]
        m = len(first)
        at = np.tile(np.arange(m), 4)
        where = np.concatenate((first, second, np.full(m, n), np.full(m, n + 1)))
        what = np.repeat([-side, side, -side, width], m)
        return coo_array((what, (at, where)), shape=(m, n + 2))

    wins, ties, losses = counts.cells.T > 0
    return vstack(
        [rows(wins, 1.0, 1.0), rows(losses, -1.0, 1.0), rows(ties, 1.0, -1.0), rows(ties, -1.0, -1.0)]
    ).tocsr()
