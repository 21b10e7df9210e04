"""The catalogue: every combination of metric, labels, surrogate and decoder, and its theorem.

A plain table. Each combination whose parts fit together is covered by exactly one entry. The tests attack
what an entry calls proven on thousands of distributions, and the search finds what it calls refuted.

>>> from concordant.theory.combination import combination
>>> theorem_of(combination("ndcg@10", "pairwise")).name
'standardized'
>>> theorem_of(combination("ap", "softmax")).status, theorem_of(combination("ap", "pairs")).status
('refuted', 'proven')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from concordant.exceptions import ParameterError
from concordant.metrics.metric import Metric
from concordant.theory.combination import Combination, cached
from concordant.theory.conditions import CONDITIONS
from concordant.theory.theorem import Theorem

FEATURE_WEIGHTS = "feature_weights"

MEANINGS: Mapping[str, str] = {  # conditions, in words
    **{name: condition.meaning for name, condition in CONDITIONS.items()},
    "proven_decode": "on queries whose order the decoder proves best (`Decoded.proven`)",
    FEATURE_WEIGHTS: "the weights of items are positive, and depend on the features alone",
}
BUFFONI = "Buffoni, Calauzènes, Gallinari and Usunier (2011)"
RAMASWAMY = "Ramaswamy, Agarwal and Tewari (2013)"

CATALOGUE = (
    Theorem(
        "standardized",
        "proven",
        "Minimising an order-preserving loss on the metric's standardized labels and sorting is consistent.",
        f"{BUFFONI}, Theorems 1 and 2",
        ("known", "items", "targets", "standardized", "order-preserving"),
    ),
    Theorem(
        "standardized, in the limit",
        "proven",
        "The least expected loss may only be approached, where an expected target is 0; but scores that "
        "approach it come to rank all items of different expected targets rightly.",
        "proof in the documentation, page Certificates",
        ("known", "items", "targets", "standardized", "order-preserving in the limit"),
    ),
    Theorem(
        "standardized conditionally",
        "refuted",
        "No function of the labels has an expectation that is optimal for every distribution; under the "
        "condition, the one that is used has.",
        f"{BUFFONI}, Theorem 2 and its converse; that none exists: Theorem 3 for ap, else by enumeration",
        ("known", "items", "targets", "standardized conditionally", "order-preserving at all"),
        ("*",),
    ),
    Theorem(
        "not standardized",
        "refuted",
        "No function of the labels has an expectation that is optimal for every distribution, so that no "
        "convex order-preserving loss that is linear in one is consistent.",
        f"{BUFFONI}, converse of Theorem 2; that none exists: Theorem 3 for err, else by enumeration",
        ("known", "items", "targets", "not standardized", "order-preserving at all"),
    ),
    Theorem(
        "hinge on targets",
        "refuted",
        "A margin with a corner does not preserve order: items of different expected targets may be tied.",
        "found by search",
        ("known", "items", "targets", "not order-preserving"),
    ),
    Theorem(
        "orders by a margin",
        "refuted",
        "What compares the items of full orders finds the order of a typical voter, not the most probable "
        "one; on order-preserving spaces the two are the same.",
        "found by search; under the condition: proof in the documentation, page Certificates",
        ("known", "items", "grades", "differentiable margin on orders"),
        ("order_preserving",),
    ),
    Theorem(
        "grades compared",
        "refuted",
        "A loss that compares grades has a minimiser which depends on more than expected targets.",
        "found by search; Duchi, Mackey and Jordan (2010) for preferences",
        ("known", "items", "grades", "no such margin on orders"),
    ),
    Theorem(
        "likelihood of orders",
        "refuted",
        "The likelihood of Plackett and Luce ranks by a typical voter, not the most probable order; on "
        "order-preserving spaces the two are the same.",
        "found by search; under the condition Xia, Liu, Wang, Zhang and Li (2008)",
        ("known", "items", "positions"),
        ("order_preserving",),
    ),
    Theorem(
        "pairs, decoded exactly",
        "proven",
        "Least squares on pair targets, decoded by the best order, is consistent. Up to 20 items of ap and "
        "16 of pd the decoder always proves its order best; on longer lists it says whether it has.",
        f"{RAMASWAMY}, Theorem 3",
        ("known", "pairs", "exact"),
    ),
    Theorem(
        "pairs of two grades",
        "proven",
        "On two grades expected preferences are differences of the items' expected grades: no majority cycle "
        "exists, and every shortcut finds the order of the expected grades.",
        "proof in the documentation, page Certificates",
        ("known", "pairs", "not exact", "two grades"),
    ),
    Theorem(
        "pairs, sorted by the diagonal",
        "refuted",
        "Sorting by u_ii ignores which items are relevant together.",
        f"{RAMASWAMY}, Theorem 4",
        ("known", "pairs", "diagonal"),
        ("P_reinforce",),
    ),
    Theorem(
        "pairs, edges deleted",
        "refuted",
        "Deleting the lightest majorities need not leave the least weight behind.",
        f"{RAMASWAMY}, Theorem 7",
        ("known", "pairs", "edge-deletion", "more than two grades"),
        ("P_DAG",),
    ),
    Theorem(
        "pairs, summed",
        "refuted",
        "Sorting by the sums of pair scores may put an item above another that the majority prefers.",
        f"{RAMASWAMY}, Theorem 6",
        ("known", "pairs", "borda", "more than two grades"),
        ("P_f",),
    ),
    Theorem(
        "pairs, insertion",
        "refuted",
        "An order that no single move improves need not be the best, on grades as on preferences: every "
        "majority is the mean of labels of three grades.",
        "found by search",
        ("known", "pairs", "insertion", "more than two grades"),
        ("proven_decode",),
    ),
    Theorem(
        "pairs, beam",
        "conditional",
        "A beam may miss the best order of long lists; where it proves its order best it has not.",
        f"{RAMASWAMY}, Theorem 3, where the order is proven best",
        ("known", "pairs", "beam"),
        ("proven_decode",),
    ),
    Theorem(
        "unknown",
        "open",
        "Nothing is shown of this loss, or of this metric: a class, margin or penalty of the caller's own, "
        "or a sum over interleavings.",
        "no reference",
        ("unknown",),
    ),
)

GAINS_WEIGHTED = Theorem(
    "gains weighted",
    "proven",
    "The loss is linear in its targets and multiplies each by its item's weight; a target depends on its own "
    "item's label alone. It is consistent with the discounted sum of targets that are multiplied by the "
    "weights: of dcg, p@k and eru the metric with weighted gains, of ndcg@1 and ap@1 on two grades p@1. With "
    "inverse propensities on clicks, and a gain of 0 for no click, that is the metric of the labels behind "
    "the clicks.",
    "proof in the documentation, page Certificates",
    (),
)
TARGETS_WEIGHTED = Theorem(
    "targets weighted",
    "refuted",
    "The loss multiplies each target by its item's weight, but a target depends on the labels of the whole "
    "list. Weighted targets are in general the targets of no labels: not of those given, and not of the "
    "labels behind clicks.",
    "exact counterexamples in the documentation, pages Rankers and Certificates",
    (),
)
TERMS_WEIGHTED = Theorem(
    "terms weighted",
    "refuted",
    "The loss weighs the whole term of an item, not its target. It learns weighted means of the targets r, "
    "such as E[w r] / E[w]. Weights w that depend on the features alone change nothing, since these means "
    "are then E[r]. Inverse propensities correct nothing.",
    "proof in the documentation, page Certificates",
    (),
)
OTHERWISE_WEIGHTED = Theorem(
    "otherwise weighted",
    "refuted",
    "The loss is consistent under a condition only, and nothing is shown of it where items have weights.",
    "no reference",
    (),
)


def under_item_weights(combination: Combination, base: Theorem, conditions: Sequence[str]) -> Theorem:
    """Return the theorem for weights that differ within queries; `base` holds without, under `conditions`.

    >>> from concordant.theory.combination import combination
    >>> losses = [combination(name, loss) for name in ("dcg", "ndcg") for loss in ("softmax", "squared")]
    >>> [under_item_weights(loss, theorem_of(loss), ()).name for loss in losses]
    ['gains weighted', 'terms weighted', 'targets weighted', 'terms weighted']
    """
    if base.status != "proven" and not conditions:
        return base
    if combination.surrogate.weighs == "terms":
        conditions_with_weights = tuple(f"{name} and {FEATURE_WEIGHTS}" for name in conditions) or (
            FEATURE_WEIGHTS,
        )
        return replace(TERMS_WEIGHTED, hypotheses=base.hypotheses, holds_under=conditions_with_weights)
    if combination.surrogate.weighs == "targets":
        gains = combination.metric.itemwise_targets(combination.space)
        return replace(GAINS_WEIGHTED if gains else TARGETS_WEIGHTED, hypotheses=base.hypotheses)
    return replace(OTHERWISE_WEIGHTED, hypotheses=base.hypotheses)


def meaning_of(condition: str, metric: Metric) -> str:
    """Return the meaning of a condition, or of several joined by "and"; for AP also an unusual divisor.

    >>> from concordant import metric
    >>> meaning_of("P_reinforce", metric("ap@2[ap_denominator=min]"))
    'an item more relevant on its own ... by the company it keeps, with u_ij = E[y_i y_j / min(sum(y), 2)]'
    """
    divisor = getattr(metric, "share_divisor", "sum(y)")
    meanings = dict(MEANINGS)
    if divisor != "sum(y)":
        meanings["P_reinforce"] += f", with u_ij = E[y_i y_j / {divisor}]"
    return "; and ".join(meanings[name] for name in condition.split(" and "))


@cached
def theorem_of(combination: Combination) -> Theorem:
    """Return the entry that covers a combination."""
    for theorem in CATALOGUE:
        if theorem.covers(combination):
            return theorem
    raise ParameterError("combination", str(combination), "in the catalogue")  # a test sees to it
