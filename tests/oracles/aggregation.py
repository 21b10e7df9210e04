"""Rank aggregation: definitions, typed naively."""

import itertools
import math


def ballot_preferences(ballot, items, *, unranked_last=False):
    """All (better, worse) of one ballot, which is a list of tied groups, best first."""
    named = [item for group in ballot for item in group]
    groups = [*ballot, [item for item in items if item not in named]] if unranked_last else ballot
    return [
        (better, worse)
        for rank, group in enumerate(groups)
        for lower in groups[rank + 1 :]
        for better in group
        for worse in lower
    ]


def disagreement(order, preferences):
    """Weight of the preferences (better, worse, weight) that an order overrules."""
    return math.fsum(w for better, worse, w in preferences if order.index(better) > order.index(worse))


def least_disagreement(items, preferences):
    """Kemeny's optimum: over all orders."""
    return min(disagreement(order, preferences) for order in itertools.permutations(items))


def net_preference(item, other, preferences):
    """Weight for one above the other, less the weight against."""
    for_it = math.fsum(w for better, worse, w in preferences if (better, worse) == (item, other))
    return for_it - math.fsum(w for better, worse, w in preferences if (better, worse) == (other, item))


def majority_cycles(items, preferences, length):
    """All sequences of so many items, each preferred to the next, and the last to the first, by majority."""
    for cycle in itertools.permutations(items, length):
        pairs = zip(cycle, cycle[1:] + cycle[:1], strict=True)
        if all(net_preference(item, other, preferences) > 0 for item, other in pairs):
            yield cycle
