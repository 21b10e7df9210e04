"""Aggregate: one ranking of many votes, what it overrules, and why it is contested."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concordant.aggregation.items import Item
from concordant.decoders import Decoded
from concordant.types import FloatArray, IntArray

__all__ = ["Aggregate", "told"]

SHOWN = 8  # names in a repr


def told(weight: float) -> str:
    """Give a weight of votes, whole where it is.

    >>> told(12345.0), told(0.125), told(math.nan)
    ('12,345', '0.125', '-')
    """
    if math.isnan(weight):
        return "-"
    return f"{weight:,.0f}" if weight == round(weight) and abs(weight) < 1e15 else f"{weight:.6g}"


@dataclass(frozen=True, eq=False, repr=False)
class Aggregate:
    """A ranking of items by votes.

    Attributes
    ----------
    items
        What the items are called, in the order of the rows of `votes`.
    votes
        Row i, column j: how much item i is preferred to item j.
    decoded
        The order as the decoder gave it, with its proof.
    method
        How it was found.
    """

    items: tuple[Item, ...]
    votes: FloatArray
    decoded: Decoded
    method: str

    def __repr__(self) -> str:
        names = [str(name) for name in self.names[:SHOWN]] + ["..."] * (len(self.items) > SHOWN)
        counts = f"{told(self.disagreement)} of {told(self.votes.sum())}"
        return f"Aggregate({self.method}: {' > '.join(names)}; disagreement {counts}, {self.proof})"

    @property
    def order(self) -> IntArray:
        """Items by number, best first: rows of `votes`."""
        return self.decoded.order

    @property
    def names(self) -> tuple[Item, ...]:
        """What the items are called, best first."""
        return tuple(self.items[number] for number in self.order)

    @property
    def winner(self) -> Item:
        """The first item of the ranking."""
        return self.names[0]

    @property
    def ranks(self) -> dict[Item, int]:
        """The place of each item, 1 the best."""
        return {name: rank for rank, name in enumerate(self.names, 1)}

    @property
    def disagreement(self) -> float:
        """Weight of the preferences that the ranking overrules."""
        return self.decoded.value

    @property
    def agreement(self) -> float:
        """Share of the weight of all preferences that the ranking follows; 1 where there are none."""
        total = float(self.votes.sum())
        return 1.0 - self.disagreement / total if total else 1.0

    @property
    def proven(self) -> bool:
        """Whether no ranking overrules less."""
        return self.decoded.proven

    @property
    def gap(self) -> float:
        """Share of the disagreement that a better ranking might save; 0 if proven."""
        return self.decoded.gap

    @property
    def proof(self) -> str:
        """What is known, in words."""
        if self.proven:
            return "proven optimal"
        return f"no ranking is below {told(self.decoded.bound)} (gap {100 * self.gap:.2g} %)"

    @property
    def net(self) -> FloatArray:
        """Row i, column j: weight of the preferences for i above j less those for j above i."""
        return self.votes - self.votes.T

    @property
    def condorcet_winner(self) -> Item | None:
        """The item that a majority prefers to each other one: every Kemeny ranking begins with it.

        None where there is none.
        """
        beaten = (self.net > 0).sum(axis=1)
        return self.items[int(np.argmax(beaten))] if beaten.max() == len(self.items) - 1 else None

    @cached_property
    def majority_cycle(self) -> tuple[Item, ...] | None:
        """A shortest cycle of majorities, each item preferred to the next and the last to the first.

        None where there is none: then a ranking exists that overrules no majority.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        beats = self.net > 0
        graph, best = csr_array(beats.astype(np.float64)), list[int]()
        for first in range(len(beats)):
            reached, before = breadth_first_order(graph, first)
            closing = reached[beats[reached, first]]  # nearest first
            if closing.size:
                cycle = [int(closing[0])]
                while cycle[-1] != first:
                    cycle.append(int(before[cycle[-1]]))
                best = cycle if not best or len(cycle) < len(best) else best
            if len(best) == 3:  # none is shorter
                break
        return tuple(self.items[number] for number in reversed(best)) or None

    def table(self) -> list[dict[str, Any]]:
        """Give one row an item, best first.

        `borda` is the weight of the preferences for it less those against; `wins`, `ties` and `losses` count
        the items that it beats by majority, draws with and loses to, and items never compared draw; `margin`
        is its net weight over the next item, NaN for the last.

        >>> from concordant import aggregate
        >>> aggregate([["tea", "milk"], ["tea", "milk"], ["milk", "tea"]]).table()[0]
        {'rank': 1, 'name': 'tea', 'borda': 1.0, 'wins': 1, 'ties': 0, 'losses': 0, 'margin': 1.0}
        """
        net, order = self.net, self.order
        wins, losses = (net > 0).sum(axis=1), (net < 0).sum(axis=1)
        margins = [*net[order[:-1], order[1:]].tolist(), math.nan]
        return [
            {
                "rank": rank,
                "name": self.items[item],
                "borda": float(net[item].sum()),
                "wins": int(wins[item]),
                "ties": int(len(order) - 1 - wins[item] - losses[item]),
                "losses": int(losses[item]),
                "margin": margin,
            }
            for rank, (item, margin) in enumerate(zip(order.tolist(), margins, strict=True), 1)
        ]
