"""cc.aggregate: votes in, the ranking that overrules the least of them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from concordant.aggregation.items import Item
from concordant.aggregation.result import Aggregate
from concordant.aggregation.votes import matrix_of
from concordant.exceptions import UnknownNameError
from concordant.supervision.columns import frozen

__all__ = ["METHODS", "aggregate"]

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
    """Give one ranking for many votes: by Kemeny's rule the one that overrules the fewest preferences.

    A vote counts for each pair that it decides; a tie, and a pair that it leaves out, is no preference. Of
    rankings that overrule equally much one is given, and always the same one.

    Parameters
    ----------
    votes
        - A list of orders, one a voter: lists of items (text or whole numbers), best first; a list, tuple or
          set inside an order is a tie; orders may leave items out.
        - A square numpy array or frame: row i, column j is how many, or how much, prefer i to j; the columns
          of a frame are the names. (A list of lists is always taken for orders.)
        - `Comparisons`, or `Preferences`, whose rows are all taken for one query.
        - What `read_preflib` gives.
        - A path: PrefLib (.soc .soi .toc .toi .wmd), or a table as `read_comparisons` has it by default.
    method
        How to search:

        - "kemeny": the best ranking, with a proof; where time runs out, or more than 300 items hang together
          in cycles of majorities, the best one found and a gap.
        - "edge-deletion": the best where majorities form no cycle.
        - "borda": by votes for less votes against; the best where no majority contradicts that.
        - "insertion": the better of these two, after moves of single items; no promise.
    names
        What the items are called, in the order of rows and columns; by default as the votes call them, or
        0, 1, 2... Of orders and comparisons: all items there are, also those that no vote names; where they
        are text, votes may name items by number too, from 0.
    unranked
        Of orders, what is meant by items left out: "ignore" no preference, "last" below all that are ranked.
    time_limit
        Seconds after which "kemeny" stops proving.
    callback
        Called as `callback(disagreement, bound)` by "kemeny", first and whenever it has improved one of them.

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
    weights, items = matrix_of(votes, names, unranked)
    decoded = feedback_arc(weights, method=METHODS[method], time_limit=time_limit, callback=callback)
    return Aggregate(items, frozen(weights), decoded, method)
