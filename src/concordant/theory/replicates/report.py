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
        size = f"{self.n_items} items, {self.n_annotators:,} annotators"
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
    """

    condition: str
    queries: tuple[QueryCheck, ...]
    confidence: float
    n_bootstrap: int
    margin: float

    @property
    def counts(self) -> dict[str, int]:
        """How many queries are in each state."""
        return {state: sum(one.state == state for one in self.queries) for state in STATES}

    def worst(self, n_queries: int = SHOWN) -> list[QueryCheck]:
        """Give the queries that speak most against the condition: those that fail, then by their support."""
        return sorted(self.queries, key=lambda one: (one.state != "fails", one.support))[:n_queries]

    def rows(self) -> list[dict[str, Any]]:
        """Give one row a query."""
        return [asdict(one) for one in self.queries]

    def to_json(self) -> str:
        """Give all of it as JSON; ids and items that are no numbers become text."""
        head = {name: getattr(self, name) for name in ("condition", "confidence", "n_bootstrap", "margin")}
        return json.dumps({**head, "counts": self.counts, "queries": self.rows()}, default=plain)

    def __str__(self) -> str:
        total, condition = len(self.queries), CONDITIONS[self.condition]
        shares = [f"{state} {count} ({count / total:.0%})" for state, count in self.counts.items()]
        allowed = f", up to a margin of {self.margin:g}" if self.margin else ""
        best = f"is optimal for {condition.metric} ({condition.theorem})"
        if self.margin and condition.lost:
            most = self.margin * condition.lost(max(one.n_items for one in self.queries))
            best = f"is at most {most:.2g} from the best {condition.metric}"
        lines = [
            f"{self.condition} on {total} queries{allowed}: {', '.join(shares)}.",
            f"Each at {self.confidence:.0%} confidence, by {self.n_bootstrap:,} resamples of the annotators.",
            f"Where it holds, {condition.optimal} {best}.",
            "Most against it:",
        ]
        return "\n".join([*lines, *(f"  {one}" for one in self.worst())])


def plain(value: Any) -> Any:
    """Give what JSON can hold."""
    return value.item() if hasattr(value, "item") else str(value)
