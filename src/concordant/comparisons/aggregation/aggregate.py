"""Aggregate: the ranking of many votes that overrules the fewest of them, and how contested it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concordant._base.validate import freeze
from concordant.comparisons.aggregation.preference_matrix import Item, build_vote_matrix
from concordant.decoders import Decoded
from concordant.exceptions import UnknownNameError
from concordant.types import FloatArray, IntArray

# Aggregate: one ranking of many votes, what it overrules, and how contested it is.

SHOWN = 8  # names in a repr


def format_weight(weight: float) -> str:
    """Format a weight of votes, whole numbers with thousands separators.

    >>> format_weight(12345.0), format_weight(0.125), format_weight(math.nan)
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
        Names of the items, in the order of the rows of `votes`.
    votes
        Row i, column j: how much item i is preferred to item j.
    decoded
        The order from the decoder, with its proof.
    method
        Method that found it.
    """

    items: tuple[Item, ...]
    votes: FloatArray
    decoded: Decoded
    method: str

    def __repr__(self) -> str:
        names = [str(name) for name in self.names[:SHOWN]] + ["..."] * (len(self.items) > SHOWN)
        counts = f"{format_weight(self.disagreement)} of {format_weight(self.votes.sum())}"
        return f"Aggregate({self.method}: {' > '.join(names)}; disagreement {counts}, {self.proof})"

    @property
    def order(self) -> IntArray:
        """Items by number, best first: rows of `votes`."""
        return self.decoded.order

    @property
    def names(self) -> tuple[Item, ...]:
        """Names of the items, best first."""
        return tuple(self.items[number] for number in self.order)

    @property
    def winner(self) -> Item:
        """The first item of the ranking."""
        return self.names[0]

    @property
    def ranks(self) -> dict[Item, int]:
        """Rank of each item, 1 the best."""
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
        """True if it is proven that no ranking overrules less."""
        return self.decoded.proven

    @property
    def gap(self) -> float:
        """Share of the disagreement that a better ranking might save; 0 if proven."""
        return self.decoded.gap

    @property
    def proof(self) -> str:
        """Status of the proof, in words."""
        if self.proven:
            return "proven optimal"
        return f"no ranking is below {format_weight(self.decoded.bound)} (gap {100 * self.gap:.2g} %)"

    @property
    def net(self) -> FloatArray:
        """Net preferences, row i, column j: weight of those for i above j minus those for j above i."""
        return self.votes - self.votes.T

    @property
    def condorcet_winner(self) -> Item | None:
        """The item that a majority prefers to each other item: every Kemeny ranking begins with it.

        None if there is no such item.
        """
        beaten = (self.net > 0).sum(axis=1)
        return self.items[int(np.argmax(beaten))] if beaten.max() == len(self.items) - 1 else None

    @cached_property
    def majority_cycle(self) -> tuple[Item, ...] | None:
        """A shortest cycle of majorities, each item preferred to the next and the last to the first.

        None if there is no cycle: then a ranking exists that overrules no majority.
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
        """List one row per item, best first.

        `borda` is the weight of the preferences for the item minus those against it; `wins`, `ties` and
        `losses` count the items that it beats by majority, draws with and loses to, and items never compared
        draw; `margin` is its net weight over the next item, NaN for the last.

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


# cc.aggregate: from votes to the ranking that overrules the fewest of them.

METHODS = {"kemeny": "auto", "borda": "borda", "edge-deletion": "edge-deletion", "insertion": "insertion"}
"""What each method is called by the decoder."""


def aggregate(
    votes: Any,
    *,
    method: str = "kemeny",
    names: Iterable[Item] | None = None,
    unranked: str = "ignore",
    time_limit: float = 60.0,
    callback: Callable[[float, float], object] | None = None,
) -> Aggregate:
    """Aggregate votes into one ranking: by Kemeny's rule, the one that overrules the fewest preferences.

    A vote counts for each pair that it decides; ties and omitted pairs are no preference. Of rankings that
    overrule equally much, always the same one is returned.

    Parameters
    ----------
    votes
        - A list of orders, one per voter: lists of items (text or whole numbers), best first; a list, tuple
          or set inside an order is a tie; orders may leave items out.
        - A square numpy array or frame: row i, column j is how many, or how much, prefer i to j; the columns
          of a frame are the names. (A list of lists is always taken for orders.)
        - `Comparisons`, or `Preferences`, whose rows are all treated as one query.
        - The result of `read_preflib`.
        - A path: PrefLib (.soc .soi .toc .toi .wmd), or a table with the default columns of
          `read_comparisons`.
    method
        How to search:

        - "kemeny": the best ranking, with a proof; where time runs out, or more than 300 items are connected
          by cycles of majorities, the best ranking found and a gap.
        - "edge-deletion": the best where majorities form no cycle.
        - "borda": by votes for minus votes against; the best where no majority contradicts that.
        - "insertion": the better of these two, after moves of single items; no promise.
    names
        Names of the items, in the order of rows and columns; by default those in the votes, or 0, 1, 2...
        For orders and comparisons: all items, including those that no vote names; if names are text, votes
        may refer to items by number too, from 0.
    unranked
        For orders, the meaning of omitted items: "ignore" no preference, "last" below all ranked items.
    time_limit
        Seconds after which "kemeny" stops proving.
    callback
        Called as `callback(disagreement, bound)` by "kemeny", at the start and whenever it improves either.

    Raises
    ------
    LabelError
        Where an order names an item twice, names are not unique, or weights are negative.
    UnknownNameError
        Where a vote names an item that is not in `names`; an unknown method.

    References
    ----------
    Kemeny (1959), Mathematics without numbers. Young (1988), Condorcet's theory of voting: where each voter
    gets each pair right with the same probability above one half, Kemeny's ranking is the most likely one.

    Examples
    --------
    >>> votes = [["tea", "milk", "water"], ["milk", "tea"], ["tea", {"milk", "water"}]]
    >>> aggregate(votes)
    Aggregate(kemeny: tea > milk > water; disagreement 1 of 6, proven optimal)
    >>> aggregate(votes).condorcet_winner
    'tea'
    """
    from concordant.decoders import feedback_arc

    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    weights, items = build_vote_matrix(votes, names, unranked)
    decoded = feedback_arc(weights, method=METHODS[method], time_limit=time_limit, callback=callback)
    return Aggregate(items, freeze(weights), decoded, method)
