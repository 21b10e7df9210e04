"""Certificate: the guarantee of a combination, and its condition, or the counterexample."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from concordant.exceptions import NoRegretBoundError
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.theory.catalogue import meaning_of
from concordant.theory.combination import Combination
from concordant.theory.kinds import format_surrogate
from concordant.theory.theorem import STATUSES, Theorem
from concordant.theory.transfer import Transfer, transfer_of
from concordant.types import ArrayLike

if TYPE_CHECKING:
    from concordant.theory.search.counterexample import Counterexample
    from concordant.theory.search.proof import Impossibility

SHORT_STATUSES = {**STATUSES, "refuted": "It is not consistent: on some labels it fails."}


@dataclass(frozen=True)
class Tried:
    """Summary of a search for counterexamples.

    Attributes
    ----------
    n_items
        Items of the queries.
    distributions
        Label distributions whose minimiser was found and decoded; 0 if all orders are worth the same.
    worst
        Largest regret among them; 0 if there is none beyond rounding.
    unsettled
        Distributions left out, since no minimiser was found.
    seed
        Seed of the random numbers.
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
    """Theorem on a combination, and the results of testing it.

    Attributes
    ----------
    combination
        Metric, labels, surrogate and decoder.
    theorem
        The entry of the catalogue that covers it.
    status
        Over all distributions of the labels: "proven", "conditional", "refuted" or "open".
    tried
        Summary of the search; None if nothing was searched.
    counterexample
        A distribution on which the combination fails, verified in exact arithmetic; None if none was found.
    impossibility
        A proof that no function of the labels would serve; None if none was found.
    """

    combination: Combination
    theorem: Theorem
    status: str
    tried: Tried | None = None
    counterexample: Counterexample | None = None
    impossibility: Impossibility | None = None

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions on the labels under which the combination is consistent nevertheless."""
        return () if self.status == "proven" else self.theorem.conditions(self.combination)

    @property
    def condition(self) -> str:
        """Condition of consistency: "every distribution", alternatives joined by "or", or "nothing"."""
        return EVERY if self.status == "proven" else " or ".join(self.holds_under) or NOTHING

    @property
    def transfer(self) -> Transfer | None:
        """Bound of the metric's regret by the surrogate's, for every distribution; None if unproven."""
        return transfer_of(self.combination) if self.status == "proven" else None

    def regret_bound(
        self,
        surrogate_regret: ArrayLike,
        *,
        n_items: int,
        mass: ArrayLike = None,
        assume: str | None = None,
    ) -> Any:
        """Return the largest regret of the metric that a regret of the surrogate allows.

        Parameters
        ----------
        surrogate_regret
            Expected surrogate of a query less its least value, >= 0, or the mean over queries: the metric's
            regret is then for that query, or the mean. An array holds one regret per query.
        n_items
            Number of items of the query, or of the largest query.
        mass
            Expected sum of the targets of the query, or the mean over the queries, if the bound needs it. A
            mean bounds the mean regret, not single queries; an array of regrets takes a mass per query, or
            the largest.
        assume
            A condition on the labels under which a bound is known, "low_noise"; None: for every distribution.
        """
        transfer = self.transfer if assume is None else transfer_of(self.combination, assume)
        if transfer is None:
            combination = self.combination
            raise NoRegretBoundError(
                str(combination.metric), format_surrogate(combination.surrogate), self.status
            )
        return transfer.bound(surrogate_regret, n_items=n_items, mass=mass)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values."""
        combination, tried = self.combination, self.tried
        return {
            "metric": str(combination.metric),
            "labels": combination.space,
            "surrogate": format_surrogate(combination.surrogate),
            "decoder": combination.decoder,
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
        """Return the certificate as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        conditions = f", holds under {' or '.join(self.holds_under)}" if self.holds_under else ""
        return f"Certificate({self.combination}: {self.status}{conditions})"

    def __str__(self) -> str:
        is_as_catalogued = self.status == self.theorem.status or self.counterexample is not None
        catalogued = f"The catalogue calls it {self.theorem.status}: see below."
        meaning = SHORT_STATUSES[self.status] if is_as_catalogued else catalogued
        metric, tried = self.combination.metric, self.tried
        conditions = [f"under {name}: {meaning_of(name, metric)}" for name in self.holds_under]
        reason = f"It is consistent {'; or '.join(conditions)}." if conditions else self.theorem.statement
        parts = [f"{self.combination}: {self.status}. {meaning}", reason]
        parts += [] if tried is None else [" ".join([str(tried), *self.reservations(tried)])]
        return in_few_lines([*parts, self._further_reading()])

    def _further_reading(self) -> str:
        facts = ["`transfer` and `regret_bound`"] * (self.status == "proven")
        facts += ["`counterexample`"] * (self.counterexample is not None)
        facts += ["`impossibility`"] * (self.impossibility is not None)
        search = "; search=True looks for a counterexample" * (self.tried is None)
        return f"Read next: {', '.join(['`theorem`', *facts])}{search}."

    def reservations(self, tried: Tried) -> Iterator[str]:
        """Yield what the search leaves open."""
        if self.counterexample is not None or not tried.distributions:
            return
        if tried.worst > 0.0:
            yield "That regret was seen in floating point; no distribution was found that shows it exactly."
        elif self.status == "refuted":
            yield "A counterexample may take a larger budget, or more items."


def in_few_lines(parts: Sequence[str], most: int = 5, width: int = 110) -> str:
    """Wrap each part, and cut the longest ones where the whole would take more lines.

    >>> print(in_few_lines(["one two", "three four five six"], most=3, width=10))
    one two
    three four
    five ...
    """
    wrapped = [textwrap.wrap(part, width) for part in parts]
    while sum(map(len, wrapped)) > most:
        longest = max(range(len(parts)), key=lambda number: len(wrapped[number]))
        n_lines = len(wrapped[longest]) - 1
        wrapped[longest] = textwrap.wrap(parts[longest], width, max_lines=n_lines, placeholder=" ...")
    return "\n".join(line for lines in wrapped for line in lines)
