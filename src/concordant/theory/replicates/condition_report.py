"""ConditionReport: on which queries a condition holds, fails, or is undecided."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from concordant.theory.conditions import CONDITIONS

STATES = ("holds", "fails", "undecided")
SHOWN = 5  # queries in the summary


@dataclass(frozen=True)
class QueryCheck:
    """Result of checking a condition on the votes of a query.

    Attributes
    ----------
    query
        Id of the query.
    n_items, n_annotators
        Numbers of items and annotators.
    estimate
        True if the condition holds on the votes as they are.
    support
        Share of the resamples on which it holds. It is not a probability: see `state`.
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
        size = f"{_format_count(self.n_items, 'item')}, {_format_count(self.n_annotators, 'annotator')}"
        shown = f", shown by items {', '.join(map(str, self.shown))}" if self.shown else ""
        return f"{self.query}: {self.state} ({size}, support {self.support:.2f}{shown})"


@dataclass(frozen=True, eq=False)
class ConditionReport:
    """State of a condition on every query.

    Attributes
    ----------
    condition
        Name of the condition.
    queries
        Results per query, in the order of the votes.
    confidence
        Confidence of each query's state: how often, over repeated samples of annotators, it is not wrong.
    n_bootstrap, margin
        Settings of the check.
    bounds
        True if the band is a bound for votes of any weights within limits, not computed from resamples.
    assumes
        Assumptions that the confidence rests on: limits of what a vote can say.
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
        """Number of queries in each state."""
        return {state: sum(query_check.state == state for query_check in self.queries) for state in STATES}

    def worst(self, n_queries: int = SHOWN) -> list[QueryCheck]:
        """Return the queries with the strongest evidence against the condition: failing, then undecided."""
        against = [query_check for query_check in self.queries if query_check.state != "holds"]
        return sorted(against, key=lambda query_check: (query_check.state != "fails", query_check.support))[
            :n_queries
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per query."""
        return [asdict(query_check) for query_check in self.queries]

    def to_json(self) -> str:
        """Return the report as JSON; ids and items that are not numbers become text."""
        names = ("condition", "confidence", "n_bootstrap", "margin", "bounds", "assumes")
        head = {name: getattr(self, name) for name in names}
        return json.dumps({**head, "counts": self.counts, "queries": self.rows()}, default=_to_json_value)

    def __repr__(self) -> str:
        states = ", ".join(f"{state} {count:,}" for state, count in self.counts.items())
        return f"ConditionReport({self.condition} on {_format_count(len(self.queries), 'query')}: {states})"

    def __str__(self) -> str:
        total, condition = len(self.queries), CONDITIONS[self.condition]
        shares = [f"{state} {count:,} ({count / total:.0%})" for state, count in self.counts.items()]
        allowed = f", up to a margin of {self.margin:g}" if self.margin else ""
        best = f"is optimal for {condition.metric} ({condition.theorem})"
        if self.margin and condition.lost:
            most = self.margin * condition.lost(max(query_check.n_items for query_check in self.queries))
            best = f"is at most {most:.2g} from the best {condition.metric}"
        lines = [
            f"{self.condition} on {_format_count(total, 'query')}{allowed}: {', '.join(shares)}.",
            f"Each at {100.0 * self.confidence:.12g}% confidence, by {self.basis()}.",
            f"Where it holds, {condition.optimal} {best}.",
        ]
        against = [f"  {query_check}" for query_check in self.worst()]
        return "\n".join([*lines, *(["Most against it:", *against] if against else [])])

    def basis(self) -> str:
        """Describe what the confidence rests on."""
        resamples = f"{_format_count(self.n_bootstrap, 'resample')} of the annotators"
        drawn = "bounds for votes of different weights" if self.bounds else resamples
        return drawn + (f", given that {' and that '.join(self.assumes)}" if self.assumes else "")


def _format_count(number: int, unit: str) -> str:
    """Format a number with its unit.

    >>> _format_count(1, "query"), _format_count(2000, "query"), _format_count(2, "item")
    ('1 query', '2,000 queries', '2 items')
    """
    many = f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"
    return f"{number:,} {unit if number == 1 else many}"


def _to_json_value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
