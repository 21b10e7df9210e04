"""FittedCertificate: what is guaranteed of a ranker, how well it was fitted, and what bounds its risk."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any

from concordant.exceptions import NoRegretBoundError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.rankers.claim import PROVEN_DECODE, Claim
from concordant.rankers.optimality import Descent, Optimality, Sample
from concordant.surrogates import Duchi, PositionHinge, Squared
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.bounds.hinges import UNBOUNDED
from concordant.theory.catalogue import MEANINGS
from concordant.theory.kinds import PairSquared, described
from concordant.theory.theorem import STATUSES
from concordant.theory.transfer import Transfer, column, transfer_of
from concordant.types import ArrayLike

__all__ = ["NO_BOUND", "Descent", "FittedCertificate", "Optimality", "Sample"]

NO_BOUND = "no risk bound is known for this loss"
EXPRESSED = {  # what the features must be able to express
    "ap": "E[y_i y_j / sum(y)] of two items by the features of pairs, E[y_i / sum(y)] by those of items",
    "pd": "E[a_ij - a_ji] by the features of pairs",
}
EXAMPLE = 0.01  # regret of a loss
LOSS = {  # of whose regret the metric's is a function; pairs by metric
    "ap": "squared loss of a query, summed over its pairs and its items (the objective has their means),",
    "pd": "squared loss of a query, summed over its pairs (the objective has their mean),",
}
SUMS = {  # what a position hinge adds up, by its reduction
    "sum": "summed over a query's pairs of different grades,",
    "pairs": "averaged over a query's pairs of different grades,",
    "all_pairs": "summed over a query's pairs of different grades, over the number of all its pairs,",
}
OF_ITEMS = "scores that minimise the expected loss of every query at once"


@dataclass(frozen=True, repr=False)
class FittedCertificate:
    """What is guaranteed of a fitted ranker, under which condition, and how well it was fitted.

    Attributes
    ----------
    claim
        Metric, labels, loss and decoder; what the catalogue of theorems says of them, and what was assumed.
    sample
        What is kept of the training data.
    optimality
        How well the training problem was solved: value, excess, gap, converged, stopped_by, alpha; of trees
        and networks only how far the loss fell, a `Descent`.
    bound
        A bound on the risk, which holds with probability 1 - `bound.delta`; None: see `no_bound`.
    no_bound
        Why there is no bound; else empty.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> given = LinearRanker("ndcg@5", "squared").fit(toy.X, toy.y, qid=toy.qid).certificate_
    >>> given
    FittedCertificate(ndcg@5 on grades, squared, sort: proven, rests on every distribution)
    >>> given.optimality.converged, round(given.regret_bound(0.01), 4)
    (True, 0.1992)
    >>> print(given)
    ndcg@5 on grades, squared, sort: proven. It is consistent for every distribution of the labels. ...
    """

    claim: Claim
    sample: Sample
    optimality: Optimality | Descent
    bound: EmpiricalBound | None = None
    no_bound: str = NO_BOUND

    @property
    def status(self) -> str:
        """Over all distributions of the labels: "proven", "conditional", "refuted" or "open"."""
        return self.claim.status

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions under which it is consistent, where it is not for every distribution."""
        return self.claim.holds_under

    @property
    def condition(self) -> str:
        """What consistency rests on: "every distribution", the condition assumed or needed, or "nothing".

        "proven_decode": queries were so long that the decoder may not prove its order best.
        """
        return self.claim.condition

    @property
    def expressed(self) -> str:
        """What the features must be able to express."""
        paired = isinstance(self.claim.surrogate, PairSquared)
        return EXPRESSED[self.claim.metric.name] if paired else OF_ITEMS

    @property
    def transfer(self) -> Transfer | None:
        """How regret of the loss bounds regret of the metric; None where nothing is proven."""
        return self.transfer_under(self.claim.assumed)

    def regret_bound(
        self,
        surrogate_regret: ArrayLike,
        *,
        n_items: int | None = None,
        mass: ArrayLike = None,
        assume: str | None = None,
    ) -> Any:
        """Give the most that the metric can lose where the loss is this far above its least value.

        Parameters
        ----------
        surrogate_regret
            Expected loss of a query less its least value over all scores, >= 0; or their mean over queries,
            or a column. Of `PairRanker` squares are summed over pairs, and items of ap; and the bound is for
            queries whose decode is proven (else what value and bound of `Decoded` are apart comes on top).
        n_items
            Items of the query, or of the longest; None: those of the longest training query.
        mass
            Expected sum of the targets of a query, or the mean over queries, where the bound needs it; None:
            that of the training queries.
        assume
            A condition on the labels under which a bound is known, "low_noise"; None: what the ranker
            assumed.
        """
        known = self.transfer if assume is None else self.transfer_under(assume)
        if known is None:
            raise self.no_regret_bound
        if mass is not None:
            column(mass, "mass")  # refused also where it is not needed
        items = self.sample.n_items if n_items is None else n_items
        return known.bound(surrogate_regret, n_items=items, mass=self.sample.mass if mass is None else mass)

    def transfer_under(self, assumed: str | None) -> Transfer | None:
        """How regret carries over under a condition; None where nothing is proven."""
        if (
            self.claim.combination is None
            or self.sample.weighted
            or (self.by_family and assumed == "low_noise")
        ):
            return None
        return transfer_of(self.claim.combination, assumed)

    @property
    def by_family(self) -> bool:
        """Whether preferences became numbers by f, of which low noise says nothing."""
        return self.claim.condition == "P_f"

    @property
    def no_regret_bound(self) -> NoRegretBoundError:
        """Say that none is proven, and why."""
        why = "by f, under P_f" if self.by_family else self.status
        why = "labels counted by sample_weight" if self.sample.weighted else why
        return NoRegretBoundError(str(self.claim.metric), described(self.claim.surrogate), why)

    @property
    def subject(self) -> str:
        """What was fitted."""
        own = self.claim
        return f"{own.metric} on {own.space}, {described(own.surrogate)}, {own.decoder}"

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values; what is not finite is None."""
        own, known = self.claim, self.claim.known
        told = {} if known is None else known.to_dict()
        given = {
            "metric": str(own.metric),
            "labels": own.space,
            "surrogate": described(own.surrogate),
            "decoder": own.decoder,
            "status": self.status,
            "condition": self.condition,
            "assumed": own.assumed,
            "holds_under": list(self.holds_under),
            **{name: told.get(name) for name in ("theorem", "statement", "reference", "hypotheses")},
            "expressed": self.expressed,
            "transfer": None if self.transfer is None else self.transfer.statement,
            "sample": vars(self.sample),
            "optimality": vars(self.optimality),
            "bound": None if self.bound is None else as_dict(self.bound),
            "no_bound": self.no_bound,
        }
        return {name: plain(value) for name, value in given.items()}

    def to_json(self) -> str:
        """Give all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        return f"FittedCertificate({self.subject}: {self.status}, rests on {self.condition})"

    def __str__(self) -> str:
        return textwrap.fill(self.paragraph(), 110)

    def paragraph(self) -> str:
        """Say in a few sentences what is guaranteed, under which condition, and how well it was fitted."""
        parts = [self.guaranteed(), self.limits(), f"{self.optimality}.", self.regrets(), self.risk()]
        return " ".join(part for part in parts if part)

    def guaranteed(self) -> str:
        """Say what is known of the combination, and what was assumed."""
        said, known = [f"{self.subject}: {self.status}.", STATUSES[self.status]], self.claim.theorem
        if known is None:
            return " ".join([*said, f"({self.claim.why}.)"])
        said += [known.statement, f"({known.reference}.)"]
        if self.claim.by_proof:
            said[1] = f"{said[1].rstrip('.')}, {MEANINGS[PROVEN_DECODE]}."
            return " ".join([*said, f"The longest query here has {self.sample.n_items} items."])
        if self.condition not in (EVERY, NOTHING):
            said.append(f"It is consistent under {self.condition}: {MEANINGS[self.condition]}.")
        if self.condition not in (EVERY, NOTHING, PROVEN_DECODE):
            said.append(self.assumptions())
        return " ".join(said)

    def assumptions(self) -> str:
        """Say whether the condition was assumed, and which others would serve."""
        if self.claim.assumed == self.condition:
            return "This was assumed, not tested."
        others = [name for name in self.holds_under if name != self.condition]
        also = "".join(f"; it is consistent under {name}, too: {MEANINGS[name]}" for name in others)
        return f"This was neither assumed nor tested{also}."

    def limits(self) -> str:
        """Say what consistency does not promise."""
        if self.condition == NOTHING:
            return ""
        text = "Consistency is a statement about all score functions, and about penalties that go to 0 as "
        text += f"queries become many; nothing is promised if the features cannot express {self.expressed}."
        return text + f" Labels counted by sample_weight: it is about {self.counted}." * self.sample.weighted

    @property
    def counted(self) -> str:
        """What is said of labels that count by weights: only some losses multiply a label by its weight."""
        loss = self.claim.surrogate
        if isinstance(loss, PairSquared):
            return "weights that do not depend on the labels"
        if isinstance(loss, (Squared, Duchi)):
            text = "the labels as they are, and weights that do not depend on them. An inverse propensity "
            return text + f"corrects nothing in {loss.name}; softmax and pairwise multiply the label by it"
        return "labels that are right once weighted"

    def regrets(self) -> str:
        """Say how far regret of the loss carries over to the metric, by an example; if there is any."""
        if self.transfer is None or not self.sample.n_items or not (most := self.regret_bound(EXAMPLE)):
            return ""
        metric = self.claim.metric
        loss = LOSS[metric.name] if isinstance(self.claim.surrogate, PairSquared) else "loss of a query"
        off = f"{metric} is at most {most:.3g} off its best"
        off += f" {MEANINGS[PROVEN_DECODE]}" * self.claim.unproven
        off += ", which says nothing: it is never more than 1 off" * (most >= 1.0 and at_most_one(metric))
        return f"Where the expected {loss} is {EXAMPLE:g} above its least, {off}."

    def risk(self) -> str:
        """Say what bounds the risk, and whether that says anything."""
        bound = self.bound
        if bound is None:
            return f"Risk: {self.no_bound}."
        text = f"Risk: with probability {1.0 - bound.delta:g} over {bound.n} independent queries, the mean "
        loss = self.claim.surrogate
        summed = f", {SUMS[loss.reduction]}" if isinstance(loss, PositionHinge) else ""
        text += (
            f"{bound.bounds}{summed} of new ones is at most {bound.value:.4g} ({bound.measured:.4g} on these)"
        )
        text += f", which says nothing: {bound.verdict}" * bound.vacuous
        return text + "".join(f"; it is assumed that {one}" for one in bound.assumes) + "."


def at_most_one(metric: Metric) -> bool:
    """Tell whether no value of the metric is above 1."""
    return type(metric) in METRICS.values() and metric.name not in UNBOUNDED


def as_dict(bound: EmpiricalBound) -> dict[str, Any]:
    """Give a bound as plain values."""
    given = {field.name: getattr(bound, field.name) for field in fields(bound) if field.name != "parts"}
    terms = {term.name: term.value for term in bound.parts}
    return {**given, **terms, "excess": bound.excess, "value": bound.value, "vacuous": bound.vacuous}


def plain(value: Any) -> Any:
    """Give what JSON can hold: None for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
