"""The catalogue: every combination of metric, labels, surrogate and decoder, and what is known of it.

A plain table. Each combination whose parts fit together is covered by exactly one entry; what an entry
calls proven is attacked by the tests on thousands of distributions, and what it calls refuted is found anew
by the search.

>>> from concordant.theory.combination import combination
>>> theorem_of(combination("ndcg@10", "pairwise")).name
'standardized'
>>> theorem_of(combination("ap", "softmax")).status, theorem_of(combination("ap", "pairs")).status
('refuted', 'proven')
"""

from __future__ import annotations

from collections.abc import Mapping

from concordant.exceptions import ParameterError
from concordant.theory.combination import Combination
from concordant.theory.conditions import CONDITIONS
from concordant.theory.theorem import Theorem

__all__ = ["CATALOGUE", "MEANINGS", "theorem_of"]

MEANINGS: Mapping[str, str] = {  # conditions, in words
    **{name: condition.meaning for name, condition in CONDITIONS.items()},
    "proven_decode": "on queries whose order the decoder proves best (`Decoded.proven`)",
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
        "order-preserving loss is consistent.",
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
        "Nothing is shown of this loss, or of this metric: a class or margin of the caller's own, or a sum "
        "over interleavings.",
        "no reference",
        ("unknown",),
    ),
)


def theorem_of(one: Combination) -> Theorem:
    """Give the entry that covers a combination."""
    for theorem in CATALOGUE:
        if theorem.covers(one):
            return theorem
    raise ParameterError("combination", str(one), "one of the catalogue")  # a test sees to it
