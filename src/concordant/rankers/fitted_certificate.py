"""FittedCertificate: a ranker's guarantee, its condition, and how well the ranker was fitted."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import NoRegretBoundError, ParameterError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.standardization import EVERY, NOTHING
from concordant.rankers.guarantee import PROVEN_DECODE, Guarantee
from concordant.solvers import Solution
from concordant.theory.catalogue import MEANINGS, meaning_of
from concordant.theory.certificate import SHORT_STATUSES, in_few_lines
from concordant.theory.kinds import PairSquared, format_surrogate
from concordant.theory.theorem import STATUSES, Theorem
from concordant.theory.transfer import Transfer, nonnegative_column, transfer_of
from concordant.types import ArrayLike

# Parts of a certificate that describe a fit: how well the problem was solved, and on what data.

THEOREM_FIELDS = ("theorem", "statement", "reference", "hypotheses")
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
# What ended the work, by `stopped_by`.
ENDINGS = {"interrupt": "Ctrl-C", "callback": "the callback", "no_split": "the lack of a further split"}


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
        Upper bound of that distance; None if the solver has none (no penalty, or a loss with corners and
        another solver than "bundle").
    converged, stopped_by, n_iter
        True if the tolerance was met; what ended the work; the number of iterations.
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
    def from_solution(cls, solution: Solution, alpha: float, *, certified: bool) -> Optimality:
        """Read a solution; `certified`: its gap is a bound, if it is finite."""
        gap = float(solution.gap) if certified and math.isfinite(solution.gap) else None
        end = bool(solution.converged), solution.stopped_by, int(solution.n_iter)
        return cls(float(solution.value), float(solution.excess), gap, *end, float(alpha))

    def __str__(self) -> str:
        near = f"an estimated {self.excess:.1e} above the optimum"
        if self.gap is not None and self.gap <= ROUNDING * abs(self.value):
            near = "optimal up to rounding"
        elif self.gap is not None and self.gap <= self.excess:
            near = f"at most {self.gap:.1e} above the optimum"
        elif self.gap is not None:
            near += f", and at most {self.gap:.1e}"
        solved = "Solved" if self.converged else "Not solved to tolerance"
        text = f"{solved}: the objective is {self.value:.6g} at alpha={self.alpha:g}, {near}"
        return text if self.converged else f"{text}; {self.ending}"

    @property
    def ending(self) -> str:
        """Reason why the work did not reach its tolerance."""
        if self.stopped_by == "precision":
            corner = ", or a corner of the loss," if self.gap is None else ""
            return f"rounding{corner} kept the solver from getting closer"
        return f"{ENDINGS.get(self.stopped_by, self.stopped_by)} ended training early"


@dataclass(frozen=True)
class Descent:
    """Decrease of the training loss, for models whose optimum is unknown.

    Attributes
    ----------
    first, value
        Mean training loss before the work (for trees at scores 0, for a network at its first weights), and at
        the end.
    n_iter
        Number of trees, or epochs, in the model.
    unit
        "trees" or "epochs".
    stopped_by
        "limit" (their number), "early_stopping", "no_split" (no leaf could be cut), "callback", "interrupt"
        or "divergence" (the loss or a weight was no finite number).
    chosen
        True if their number was chosen on validation queries, whatever ended the work.
    """

    first: float
    value: float
    n_iter: int
    unit: str
    stopped_by: str
    chosen: bool = False

    def __str__(self) -> str:
        is_chosen = self.chosen or self.stopped_by == "early_stopping"
        by = ["chosen on validation queries"] if is_chosen else []
        if self.stopped_by not in ("limit", "early_stopping"):
            by += [f"{ENDINGS.get(self.stopped_by, self.stopped_by)} ended training"]
        text = f"Trained: {self.n_iter} {self.unit} ({'; '.join(by or ['number set in advance'])})"
        took = f"took the mean training loss from {self.first:.6g} to {self.value:.6g}"
        return f"{text} {took}; the optimum is unknown"


@dataclass(frozen=True)
class Sample:
    """Summary of the training data, for a certificate.

    Attributes
    ----------
    space
        Space of the labels: a name of `theory.spaces.SPACES`.
    n_queries, n_items
        Queries, and items of the longest.
    mass
        Mean over queries of the sum of the targets; None if the loss does not read targets.
    weighted
        What `sample_weight` weighed: "items", "queries", or nothing, "".
    """

    space: str
    n_queries: int
    n_items: int
    mass: float | None
    weighted: str


EXPRESSED = {  # what the features must be able to express
    "ap": "E[y_i y_j / sum(y)] of two items by the features of pairs, E[y_i / sum(y)] by those of items",
    "pd": "E[a_ij - a_ji] by the features of pairs",
}
NEEDED = "It needs enough queries, features that can express the best scores, weights that ignore the labels."
EXAMPLE = 0.01  # regret of a loss
LOSS = {  # the loss whose regret bounds that of the metric; for pairs, by metric
    "ap": "squared loss of a query, summed over its pairs and its items (the objective has their means),",
    "pd": "squared loss of a query, summed over its pairs (the objective has their mean),",
}
OF_ITEMS = "scores that minimise the expected loss of every query at once"


@dataclass(frozen=True, repr=False)
class FittedCertificate:
    """What is guaranteed of a fitted ranker, under which condition, and how well it was fitted.

    Attributes
    ----------
    claim
        The `Guarantee`: metric, labels, loss and decoder, the theorem on them, and what was assumed.
    sample
        Summary of the training data.
    optimality
        How well the training problem was solved: value, excess, gap, converged, stopped_by, alpha; for trees
        and networks only how far the loss fell, a `Descent`.

    Examples
    --------
    >>> from concordant import LinearRanker, synthetic
    >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> certificate = LinearRanker("ndcg@5", "squared").fit(toy.X, toy.y, qid=toy.qid).certificate_
    >>> certificate
    FittedCertificate(ndcg@5 on grades, squared, sort: proven, rests on every distribution)
    >>> certificate.optimality.converged, round(certificate.regret_bound(0.01), 4)
    (True, 0.1992)
    >>> print(certificate)
    ndcg@5 on grades, squared, sort: proven. It is consistent for every distribution of the labels. ...
    """

    claim: Guarantee
    sample: Sample
    optimality: Optimality | Descent

    @property
    def theorem(self) -> Theorem | None:
        """The theorem of the catalogue; None if it has none for these labels."""
        return self.claim.theorem

    @property
    def status(self) -> str:
        """Over all distributions of the labels: "proven", "conditional", "refuted" or "open"."""
        return self.claim.status

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions under which it is consistent, if it is not for every distribution."""
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
        """Bound of the metric's regret by the loss's regret; None if none is proven."""
        return self.transfer_under(self.claim.assumed)

    def regret_bound(
        self,
        surrogate_regret: ArrayLike,
        *,
        n_items: int | None = None,
        mass: ArrayLike = None,
        assume: str | None = None,
    ) -> Any:
        """Bound the metric's regret, given that of the loss.

        Parameters
        ----------
        surrogate_regret
            Expected loss of a query minus its least value over all scores, >= 0, or the mean of this over
            queries: the metric's regret is then that of the query, or the mean. A column has an entry per
            query. For `PairRanker` squares are summed over pairs, and over items for ap; and the bound is for
            queries whose decode is proven (else the difference of value and bound of `Decoded` is added).
        n_items
            Items of the query, or of the longest one; None: those of the longest training query.
        mass
            Expected sum of the targets of the query, or the mean over the queries, if the bound needs it; an
            entry per query of a column. None: the weighted mean of the training queries, which bounds means
            over such queries, but no single query. For boosted trees these are the lifted targets.
        assume
            A condition on the labels under which a bound is known, "low_noise"; None: what the ranker
            assumed.
        """
        transfer = self.transfer if assume is None else self.transfer_under(assume)
        if transfer is None:
            raise self._no_regret_bound
        if mass is not None:
            nonnegative_column(mass, "mass")  # raises even if the mass is not needed
        elif "mass" in transfer.needs and nonnegative_column(surrogate_regret, "surrogate_regret").ndim:
            raise ParameterError.because(
                "mass is missing: pass one value per entry of surrogate_regret. The default, a mean over the "
                "training queries, does not bound single queries."
            )
        items = self.sample.n_items if n_items is None else n_items
        mass = self.sample.mass if mass is None else mass
        return transfer.bound(surrogate_regret, n_items=items, mass=mass)

    def transfer_under(self, assumed: str | None) -> Transfer | None:
        """Return how regret carries over under a condition; None if nothing is proven."""
        is_void = self._by_family and assumed == "low_noise"
        if self.claim.combination is None or self.sample.weighted or is_void:
            return None
        return transfer_of(self.claim.combination, assumed)

    @property
    def _by_family(self) -> bool:
        """True if preferences became numbers by f, for which low noise implies nothing."""
        return self.claim.condition == "P_f"

    @property
    def _no_regret_bound(self) -> NoRegretBoundError:
        why = "by f, under P_f" if self._by_family else self.status
        why = f"{self.sample.weighted} weighted by sample_weight" if self.sample.weighted else why
        return NoRegretBoundError(str(self.claim.metric), format_surrogate(self.claim.surrogate), why)

    @property
    def subject(self) -> str:
        """What was fitted: metric, label space, loss and decoder."""
        claim = self.claim
        weights = " with weights of items" * claim.items_weighted
        loss = format_surrogate(claim.surrogate)
        return f"{claim.metric} on {claim.space}{weights}, {loss}, {claim.decoder}"

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values; numbers that are not finite become None."""
        guarantee, certificate = self.claim, self.claim.catalogue_certificate
        theorem_fields = {} if certificate is None else certificate.to_dict()
        entries = {
            "metric": str(guarantee.metric),
            "labels": guarantee.space,
            "surrogate": format_surrogate(guarantee.surrogate),
            "decoder": guarantee.decoder,
            "status": self.status,
            "condition": self.condition,
            "assumed": guarantee.assumed,
            "holds_under": list(self.holds_under),
            **{name: theorem_fields.get(name) for name in THEOREM_FIELDS},
            "expressed": self.expressed,
            "transfer": None if self.transfer is None else self.transfer.statement,
            "sample": vars(self.sample),
            "optimality": vars(self.optimality),
        }
        return {name: to_plain(value) for name, value in entries.items()}

    def to_json(self) -> str:
        """Convert to JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        return f"FittedCertificate({self.subject}: {self.status}, rests on {self.condition})"

    def __str__(self) -> str:
        meaning = f"Its longest query had {self.sample.n_items} items." if self.claim.by_proof else ""
        status = f"{self.subject}: {self.status}. {meaning or SHORT_STATUSES[self.status]}"
        return in_few_lines([status, self._basis(), f"{self.optimality}.", self._further_reading()])

    def _basis(self) -> str:
        """Describe in a sentence or two what the guarantee rests on, or why there is none."""
        if self.condition == NOTHING:
            return f"Reason: {f'{self.claim.why}.' if self.theorem is None else self.theorem.statement}"
        if self.condition == EVERY:
            return NEEDED
        tested = "" if self.condition == PROVEN_DECODE else f" {self._assumption}"
        return f"It is consistent under {self.condition}: {self.meaning(self.condition)}.{tested}"

    @property
    def _assumption(self) -> str:
        is_assumed = self.claim.assumed == self.condition
        return f"This was {'assumed, not' if is_assumed else 'neither assumed nor'} tested."

    def _further_reading(self) -> str:
        if self.theorem is None:
            return "Read next: the page Certificates of the documentation."
        if self.condition == NOTHING:
            is_searched = self.status == "refuted" and not self.claim.items_weighted
            search = f"Counterexample: {self.claim.question[:-1]}, search=True). " * is_searched
            return f"{search}Read next: `theorem`."
        facts = ", `transfer` and `regret_bound`" if self.transfer else " and `holds_under`"
        is_linear = isinstance(self.optimality, Optimality) and self.claim.surrogate.reads != "pairs"
        risk = "; model.risk_bound(X, y, qid=qid)" * is_linear
        return f"Read next: `theorem`{facts} of this certificate{risk}."

    def guaranteed(self) -> str:
        """Describe what the catalogue says of the combination, and what was assumed."""
        sentences, theorem = [f"{self.subject}: {self.status}.", STATUSES[self.status]], self.theorem
        if theorem is None:
            return " ".join([*sentences, f"({self.claim.why}.)"])
        sentences += [theorem.statement, f"({theorem.reference}.)"]
        if self.claim.by_proof:
            sentences[1] = f"{STATUSES[self.status].rstrip('.')}, {MEANINGS[PROVEN_DECODE]}."
            return " ".join([*sentences, f"The longest query here has {self.sample.n_items} items."])
        if self.condition not in (EVERY, NOTHING):
            sentences.append(f"It is consistent under {self.condition}: {self.meaning(self.condition)}.")
        if self.condition not in (EVERY, NOTHING, PROVEN_DECODE):
            sentences.append(self._assumptions())
        return " ".join(sentences)

    def meaning(self, condition: str) -> str:
        """Meaning of a condition for this metric."""
        return meaning_of(condition, self.claim.metric)

    def _assumptions(self) -> str:
        is_assumed = self.claim.assumed == self.condition
        others = [] if is_assumed else [name for name in self.holds_under if name != self.condition]
        also = "".join(f"; it is consistent under {name}, too: {self.meaning(name)}" for name in others)
        return f"{self._assumption.rstrip('.')}{also}."

    def limits(self) -> str:
        """Describe what consistency does not promise."""
        if self.condition == NOTHING:
            return ""
        return (
            "Consistency is a statement about all score functions, and about penalties that go to 0 as "
            "queries become many. Nothing is promised if weights of queries depend on the labels or are 0, "
            f"or if the features cannot express {self.expressed}."
        )

    def regrets(self) -> str:
        """Describe by an example how regret of the loss carries over to the metric; empty if it does not."""
        if self.transfer is None or not self.sample.n_items or not (most := self.regret_bound(EXAMPLE)):
            return ""
        metric = self.claim.metric
        loss = LOSS[metric.name] if isinstance(self.claim.surrogate, PairSquared) else "loss of a query"
        text, sums = f"Regret on lists of at most {self.sample.n_items} items", ""
        if averaged := "mass" in self.transfer.needs:
            text += ", averaged over queries by their weights"
            sums = f" and its targets sum to {self.sample.mass:.3g} (as in training),"
        text += f": if the expected {loss} is {EXAMPLE:g} above its least{sums or ','}"
        text += f" {metric} is at most {most:.3g} off its best"
        text += f" under {self.transfer.condition}" * (self.transfer.condition != EVERY)
        text += f" {MEANINGS[PROVEN_DECODE]}" * self.claim.unproven
        text += ", which says nothing: it is never more than 1 off" * (most >= 1.0 and _is_at_most_1(metric))
        text += ". A single query may lose more" * averaged
        text += f". Where {metric} is undefined it counts as 0" * isinstance(metric.empty_rule, str)
        return f"{text}."


def _is_at_most_1(metric: Metric) -> bool:
    return type(metric) in METRICS.values() and metric.bounded


def to_plain(value: Any) -> Any:
    """Replace numbers that are not finite by None, for JSON."""
    if isinstance(value, dict):
        return {name: to_plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
