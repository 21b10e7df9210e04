"""FittedCertificate: what is guaranteed of a ranker, how well it was fitted, and what bounds its risk."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.rankers.claim import Claim
from concordant.solvers import Solution
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.catalogue import MEANINGS
from concordant.theory.kinds import PairSquared, described
from concordant.theory.theorem import STATUSES
from concordant.theory.transfer import Transfer, transfer_of
from concordant.types import ArrayLike

__all__ = ["NO_BOUND", "FittedCertificate", "Optimality", "Sample"]

NO_BOUND = "no risk bound is known for this loss"
EXPRESSED = {  # what the features must be able to express
    "ap": "E[y_i y_j / sum(y)] of two items by the features of pairs, E[y_i / sum(y)] by those of items",
    "pd": "E[a_ij - a_ji] by the features of pairs",
}
EXAMPLE = 0.01  # regret of a loss
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
OF_ITEMS = "scores that minimise the expected loss of every query at once"


@dataclass(frozen=True)
class Optimality:
    """How well the training problem was solved.

    Attributes
    ----------
    value
        The objective: mean loss plus penalty.
    excess
        How far it is above its optimum, by estimate.
    gap
        How far at most; None where the solver cannot say (no penalty, or a loss with corners and another
        solver than "bundle").
    converged, stopped_by, n_iter
        Whether the tolerance was met, what ended the work, and after how many iterations.
    alpha
        The penalty.
    """

    value: float
    excess: float
    gap: float | None
    converged: bool
    stopped_by: str
    n_iter: int
    alpha: float

    @classmethod
    def of(cls, solution: Solution, alpha: float, *, certified: bool) -> Optimality:
        """Read a solution; `certified`: its gap is a bound, where it is finite."""
        gap = float(solution.gap) if certified and math.isfinite(solution.gap) else None
        end = bool(solution.converged), solution.stopped_by, int(solution.n_iter)
        return cls(float(solution.value), float(solution.excess), gap, *end, float(alpha))

    def __str__(self) -> str:
        near = f"by estimate {self.excess:.1e} above its optimum"
        if self.gap is not None and self.gap <= ROUNDING * abs(self.value):
            near = "at its optimum, up to rounding"
        elif self.gap is not None and self.gap <= self.excess:
            near = f"at most {self.gap:.1e} above its optimum"
        elif self.gap is not None:
            near += f", and at most {self.gap:.1e}"
        text = f"Here alpha is {self.alpha:g}, and the objective, {self.value:.6g}, is {near}"
        return text if self.converged else f"{text}; {self.stopped_by} ended the work before its tolerance"


@dataclass(frozen=True)
class Sample:
    """What a certificate keeps of the training data.

    Attributes
    ----------
    space
        What the labels are: a name of `theory.spaces.SPACES`.
    n_queries, n_items
        Queries, and items of the longest.
    mass
        Mean over queries of the sum of the targets; None where the loss is told something else.
    weighted
        Whether labels counted by `sample_weight`.
    """

    space: str
    n_queries: int
    n_items: int
    mass: float | None
    weighted: bool


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
        How well the training problem was solved: value, excess, gap, converged, stopped_by, alpha.
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
    optimality: Optimality
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
        """What consistency rests on: "every distribution", the condition assumed or needed, or "nothing"."""
        return self.claim.condition

    @property
    def expressed(self) -> str:
        """What the features must be able to express."""
        paired = isinstance(self.claim.surrogate, PairSquared)
        return EXPRESSED[self.claim.metric.name] if paired else OF_ITEMS

    @property
    def transfer(self) -> Transfer | None:
        """How regret of the loss bounds regret of the metric; None where nothing is proven."""
        if self.claim.combination is None or self.sample.weighted:
            return None
        return transfer_of(self.claim.combination, self.claim.assumed)

    def regret_bound(
        self, surrogate_regret: ArrayLike, *, n_items: int | None = None, mass: ArrayLike = None
    ) -> Any:
        """Give the most that the metric can lose where the loss is this far above its least value.

        Parameters
        ----------
        surrogate_regret
            Expected loss of a query less its least value over all scores, >= 0; or their mean over queries,
            or a column. Of `PairRanker` squares are summed over pairs, and items of ap.
        n_items
            Items of the query, or of the longest; None: those of the longest training query.
        mass
            Expected sum of the targets of a query, or the mean over queries, where the bound needs it; None:
            that of the training queries.
        """
        known = self.transfer
        if known is None:
            weighed = "; labels counted by sample_weight" * self.sample.weighted
            wanted = f"one for which a transfer is proven; `certificate_.transfer` tells{weighed}"
            raise ParameterError("combination", self.subject, wanted)
        items = self.sample.n_items if n_items is None else n_items
        return known.bound(surrogate_regret, n_items=items, mass=self.sample.mass if mass is None else mass)

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
        if self.condition not in (EVERY, NOTHING):
            said.append(f"It is consistent under {self.condition}: {MEANINGS[self.condition]}.")
        if self.condition not in (EVERY, NOTHING, "proven_decode"):
            assumed = self.claim.assumed == self.condition
            said.append(
                "This was assumed, not tested." if assumed else "This was neither assumed nor tested."
            )
        return " ".join(said)

    def limits(self) -> str:
        """Say what consistency does not promise."""
        if self.condition == NOTHING:
            return ""
        text = "Consistency is a statement about all score functions, and about penalties that go to 0 as "
        text += f"queries become many; nothing is promised if the features cannot express {self.expressed}."
        paired = isinstance(self.claim.surrogate, PairSquared)
        weights = (
            "weights that do not depend on the labels" if paired else "labels that are right once weighted"
        )
        return text + f" Labels counted by sample_weight: it is about {weights}." * self.sample.weighted

    def regrets(self) -> str:
        """Say how far regret of the loss carries over to the metric, by an example."""
        if self.transfer is None or not self.sample.n_items:
            return ""
        metric, most = self.claim.metric, self.regret_bound(EXAMPLE)
        off = f"{metric} is at most {most:.3g} off its best"
        return f"Where the expected loss of a query is {EXAMPLE:g} above its least, {off}."

    def risk(self) -> str:
        """Say what bounds the risk, and whether that says anything."""
        bound = self.bound
        if bound is None:
            return f"Risk: {self.no_bound}."
        text = f"Risk: with probability {1.0 - bound.delta:g} over {bound.n} independent queries, the mean "
        text += f"{bound.bounds} of new ones is at most {bound.value:.4g} ({bound.measured:.4g} on these)"
        text += f", which says nothing: it is never above {bound.largest:g}" * bound.vacuous
        return text + "".join(f"; it is assumed that {one}" for one in bound.assumes) + "."


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
