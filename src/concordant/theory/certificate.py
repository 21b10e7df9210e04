"""Certificate: what is guaranteed of a combination, under which condition, or the counterexample."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import NoRegretBoundError
from concordant.metrics.conditions import CONDITIONS
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.theory.catalogue import MEANINGS
from concordant.theory.combination import Combination
from concordant.theory.kinds import described
from concordant.theory.search.counterexample import Counterexample
from concordant.theory.search.impossibility import Impossibility
from concordant.theory.theorem import STATUSES, Theorem
from concordant.theory.transfer import Transfer, transfer_of
from concordant.types import ArrayLike

__all__ = ["Certificate", "Tried"]


@dataclass(frozen=True)
class Tried:
    """What was tried on a machine.

    Attributes
    ----------
    n_items
        Items of the queries.
    distributions
        Label distributions whose minimiser was found and decoded; 0 where all orders are worth the same.
    worst
        Largest regret among them; 0 where there is none beyond rounding.
    unsettled
        Distributions left out, since no minimiser was found.
    seed
        Of the random numbers.
    """

    n_items: tuple[int, ...]
    distributions: int
    worst: float
    unsettled: int
    seed: int

    def __str__(self) -> str:
        items = f"{self.n_items[0]} to {self.n_items[-1]}" if len(self.n_items) > 1 else str(self.n_items[0])
        if not self.distributions and not self.unsettled:
            return f"Nothing could be tried: all orders of {items} items are worth the same."
        left = f"; {self.unsettled} left out, without a minimiser" if self.unsettled else ""
        tried = f"{self.distributions:,} label distributions of {items} items (seed {self.seed})"
        return f"Tried: {tried}{left}; the largest regret was {self.worst:.4g}."


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What is known of a combination, and what was seen when it was put to the test.

    Attributes
    ----------
    combination
        Metric, labels, surrogate and decoder.
    theorem
        The entry of the catalogue that covers it.
    status
        Over all distributions of the labels: "proven", "conditional", "refuted" or "open".
    tried
        What was tried; None where only the catalogue was asked (`budget=0`).
    counterexample
        A distribution on which it fails, verified in exact arithmetic; None where none was found.
    impossibility
        A proof that no function of the labels would serve, where one was found.
    """

    combination: Combination
    theorem: Theorem
    status: str
    tried: Tried | None = None
    counterexample: Counterexample | None = None
    impossibility: Impossibility | None = None

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions on the labels under which it is consistent all the same."""
        return () if self.status == "proven" else self.theorem.conditions(self.combination)

    @property
    def condition(self) -> str:
        """What consistency rests on: "every distribution", conditions of which one will do, or "nothing"."""
        return EVERY if self.status == "proven" else " or ".join(self.holds_under) or NOTHING

    @property
    def transfer(self) -> Transfer | None:
        """How regret of the surrogate bounds that of the metric, for every distribution; None: no proof."""
        return transfer_of(self.combination) if self.status == "proven" else None

    def regret_bound(
        self,
        surrogate_regret: ArrayLike,
        *,
        n_items: int,
        mass: float | None = None,
        assume: str | None = None,
    ) -> Any:
        """Give the most that the metric can lose where the surrogate is this far above its least value.

        Parameters
        ----------
        surrogate_regret
            Expected surrogate of a query less its least value, >= 0; or their mean over queries.
        n_items
            Items of the query, or of the largest.
        mass
            Expected sum of the targets of a query, or its mean over queries, where the bound needs it.
        assume
            A condition on the labels under which a bound is known, "low_noise"; None: for every distribution.
        """
        known = self.transfer if assume is None else transfer_of(self.combination, assume)
        if known is None:
            one = self.combination
            raise NoRegretBoundError(str(one.metric), described(one.surrogate), self.status)
        return known.bound(surrogate_regret, n_items=n_items, mass=mass)

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        one, tried = self.combination, self.tried
        return {
            "metric": str(one.metric),
            "labels": one.space,
            "surrogate": described(one.surrogate),
            "decoder": one.decoder,
            "status": self.status,
            "condition": self.condition,
            "holds_under": list(self.holds_under),
            "theorem": self.theorem.name,
            "statement": self.theorem.statement,
            "reference": self.theorem.reference,
            "hypotheses": list(self.theorem.hypotheses),
            "tried": None if tried is None else {**vars(tried), "n_items": list(tried.n_items)},
            "counterexample": None if self.counterexample is None else self.counterexample.to_dict(),
            "impossibility": None if self.impossibility is None else self.impossibility.to_dict(),
            "transfer": None if self.transfer is None else self.transfer.statement,
        }

    def to_json(self) -> str:
        """Give all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        held = f", holds under {' or '.join(self.holds_under)}" if self.holds_under else ""
        return f"Certificate({self.combination}: {self.status}{held})"

    def __str__(self) -> str:
        parts = [textwrap.fill(self.paragraph(), 110)]
        if self.counterexample is not None:
            parts.append(f"Counterexample, verified in exact arithmetic:\n{self.counterexample}")
        if self.impossibility is not None:
            parts.append(str(self.impossibility))
        return "\n\n".join(parts)

    def reservations(self, tried: Tried) -> Iterator[str]:
        """Say what the search leaves open."""
        if self.counterexample is not None or not tried.distributions:
            return
        if tried.worst > 0.0:
            yield "That regret was seen in floating point; no distribution was found that shows it exactly."
        elif self.status == "refuted":
            yield "A counterexample may take a larger budget, or more items."

    def paragraph(self) -> str:
        """Say in a few sentences what holds."""
        known = self.status == self.theorem.status or self.counterexample is not None
        meant = (
            STATUSES[self.status] if known else f"The catalogue calls it {self.theorem.status}: see below."
        )
        said = [f"{self.combination}: {self.status}.", meant, self.theorem.statement]
        said.append(f"({self.theorem.reference}.)")
        said += [f"It is consistent under {shown(name)}: {MEANINGS[name]}." for name in self.holds_under]
        if self.transfer is not None:
            said.append(f"{self.transfer.statement[:1].upper()}{self.transfer.statement[1:].rstrip('.')}.")
        if self.tried is not None:
            said += [str(self.tried), *self.reservations(self.tried)]
        return " ".join(said)


def shown(condition: str) -> str:
    """Give a condition with where it is shown to suffice, if a paper shows it."""
    return f"{condition} ({CONDITIONS[condition]})" if condition in CONDITIONS else condition
