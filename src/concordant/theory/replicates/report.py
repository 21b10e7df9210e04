"""ConditionReport: on which queries a condition holds, fails, or is undecided."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from concordant.theory.conditions import CONDITIONS

__all__ = ["STATES", "ConditionReport", "QueryCheck"]

STATES = ("holds", "fails", "undecided")
SHOWN = 5  # queries in the summary


@dataclass(frozen=True)
class QueryCheck:
    """What the votes of one query say about a condition.

    Attributes
    ----------
    query
        Its id.
    n_items, n_annotators
        Its size.
    estimate
        Whether the condition holds on the votes as they are.
    support
        Share of the resamples on which it holds. No probability: see `state`.
    state
        "holds" if the condition holds everywhere in the band around the expectations, "fails" if it holds
        nowhere in it, else "undecided".
    shown
        Items that show the failure: a cycle, or two or three that break the condition.
    """

    query: Hashable
    n_items: int
    n_annotators: int
    estimate: bool
    support: float
    state: str
    shown: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        size = f"{counted(self.n_items, 'item')}, {counted(self.n_annotators, 'annotator')}"
        shown = f", shown by items {', '.join(map(str, self.shown))}" if self.shown else ""
        return f"{self.query}: {self.state} ({size}, support {self.support:.2f}{shown})"


@dataclass(frozen=True, eq=False)
class ConditionReport:
    """The state of a condition on every query.

    Attributes
    ----------
    condition
        Its name.
    queries
        What was found on each, in the order of the votes.
    confidence
        Of each query's state: how often, over repeated samples of annotators, it is not a wrong one.
    n_bootstrap, margin
        As asked for.
    bounds
        The band is made of bounds for votes of any weights within limits, and not of the resamples.
    assumes
        What the confidence is given: limits of what one vote can say.
    """

    condition: str
    queries: tuple[QueryCheck, ...]
    confidence: float
    n_bootstrap: int
    margin: float
    bounds: bool = False
    assumes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many queries are in each state."""
        return {state: sum(one.state == state for one in self.queries) for state in STATES}

    def worst(self, n_queries: int = SHOWN) -> list[QueryCheck]:
        """Give the queries that speak most against the condition: those that fail, then undecided ones."""
        against = [one for one in self.queries if one.state != "holds"]
        return sorted(against, key=lambda one: (one.state != "fails", one.support))[:n_queries]

    def rows(self) -> list[dict[str, Any]]:
        """Give one row a query."""
        return [asdict(one) for one in self.queries]

    def to_json(self) -> str:
        """Give all of it as JSON; ids and items that are no numbers become text."""
        names = ("condition", "confidence", "n_bootstrap", "margin", "bounds", "assumes")
        head = {name: getattr(self, name) for name in names}
        return json.dumps({**head, "counts": self.counts, "queries": self.rows()}, default=plain)

    def __repr__(self) -> str:
        states = ", ".join(f"{state} {count:,}" for state, count in self.counts.items())
        return f"ConditionReport({self.condition} on {counted(len(self.queries), 'query')}: {states})"

    def __str__(self) -> str:
        total, condition = len(self.queries), CONDITIONS[self.condition]
        shares = [f"{state} {count:,} ({count / total:.0%})" for state, count in self.counts.items()]
        allowed = f", up to a margin of {self.margin:g}" if self.margin else ""
        best = f"is optimal for {condition.metric} ({condition.theorem})"
        if self.margin and condition.lost:
            most = self.margin * condition.lost(max(one.n_items for one in self.queries))
            best = f"is at most {most:.2g} from the best {condition.metric}"
        lines = [
            f"{self.condition} on {counted(total, 'query')}{allowed}: {', '.join(shares)}.",
            f"Each at {100.0 * self.confidence:.12g}% confidence, by {self.basis()}.",
            f"Where it holds, {condition.optimal} {best}.",
        ]
        against = [f"  {one}" for one in self.worst()]
        return "\n".join([*lines, *(["Most against it:", *against] if against else [])])

    def basis(self) -> str:
        """Tell what the confidence rests on."""
        resamples = f"{counted(self.n_bootstrap, 'resample')} of the annotators"
        drawn = "bounds for votes of different weights" if self.bounds else resamples
        return drawn + (f", given that {' and that '.join(self.assumes)}" if self.assumes else "")


def counted(number: int, unit: str) -> str:
    """Give a number of things.

    >>> counted(1, "query"), counted(2000, "query"), counted(2, "item")
    ('1 query', '2,000 queries', '2 items')
    """
    many = f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"
    return f"{number:,} {unit if number == 1 else many}"


def plain(value: Any) -> Any:
    """Give what JSON can hold."""
    return value.item() if hasattr(value, "item") else str(value)
