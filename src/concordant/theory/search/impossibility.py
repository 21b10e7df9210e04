"""Proof, by enumeration, that a metric has no standardization: no r(y) whose mean ranks well for all labels.

A function r of the labels is a *standardization* if, for every distribution D of the labels, every order
compatible with the scores E_D[r] (sorted, ties in any order) is optimal for D. Where none exists, no convex
symmetric order-preserving loss on a bounded r is consistent, if its expectation attains its minimum and it is
affine in r up to a term without scores, as the squared, the pairwise and the softmax loss are: Buffoni et al.
(2011), converse of Theorem 2, whose proof takes E[loss] to be symmetric in items of equal E[r]. One D
suffices to prove it.

How E_D[r] ranks the items is one of finitely many *patterns* of strict relations and ties. A pattern is
*refuted* at D in one of two ways.

1. An order compatible with it is not optimal for D. Then scores of this pattern contradict the definition
   at D itself.
2. For some label z, no order compatible with it is in L(D, z), which holds the orders that are best for z
   among those optimal for D. Consider the distributions D' = (1 - e) D + e z for small e > 0.

   - The value of an order under D' is (1 - e) times that under D, plus e times that under z. Orders are
     finitely many: once e is small, one that is not optimal for D stays behind those that are, and among
     these the value under z decides. So the orders optimal for D' are exactly L(D, z).
   - The scores (1 - e) E_D[r] + e r(z) tend to E_D[r]: once e is small, the strict relations of the pattern
     still hold, while ties may have been broken. So every order compatible with the scores at D' is
     compatible with the pattern. There is at least one, and it is not in L(D, z), hence not optimal for D',
     which contradicts the definition at D'.

Nothing is assumed of r. If every pattern is refuted at one D, no r exists. Equal scores, which allow every
order, can be refuted only in the first way: some two orders differ in value. In the example of Buffoni et
al. (Theorem 3), which follows, the second way does what their Lemma 4 does.

>>> proof = impossibility("ap")
>>> print(proof)
ap on binary has no standardization r(y), for 4 items.
Let y be (1,1,0,0) or (0,0,1,1), with probability 1/2 and 1/2.
E[ap] is largest, 17/24, for {1,2}>{3,4} or {3,4}>{1,2}: 8 of 24 orders (braces: in any order).
Equal scores E[r] would allow all orders, but 1>2>3>4 has 17/24 and 1>3>2>4 has 2/3, a difference of 1/24.
If sorting by E[r] gives best orders only, however ties are broken, then E[r] ranks the items in 18 of 75
ways: one of these, or one with more ties broken.
- {3,4}>{1,2}: mix a little of (1,0,0,0) into y, and the best orders are only 1>2>{3,4}.
- {1,2}>{3,4}: mix a little of (0,0,1,0) into y, and the best orders are only 3>4>{1,2}.
A little changes no strict relation between scores: sorting by the new E[r] gives none of these best orders.
So there is no r.
Hence no convex symmetric order-preserving loss on a bounded function r of the labels is consistent with ap,
if it is affine in r(y) up to a term without scores, as the squared, the pairwise and the softmax loss are,
and its expectation attains its minimum (Buffoni et al. 2011, converse of Theorem 2).
>>> proof.verify()
True
>>> impossibility("p@2") is None  # 1 for relevant items, 0 for others, is a standardization
True
"""

from __future__ import annotations

from collections.abc import Sequence

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.synthetic.distribution import Label
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.exact.enclosure import low
from concordant.theory.exact.values import best_orders, every_value
from concordant.theory.search.mixing import Mixed, ruling_out, table
from concordant.theory.search.patterns import refutations
from concordant.theory.search.proof import Impossibility
from concordant.theory.spaces import SPACES, every_label, spaces_of

__all__ = ["Impossibility", "impossibility"]

PLAINEST = ("preferences", "permutations", "binary")  # label spaces, the one to look at first standing first
MAX_ITEMS = 5  # 541 patterns


def impossibility(
    metric: Metric | str, labels: str = "auto", n_items: int = 4, highest: int = 1
) -> Impossibility | None:
    """Look for a proof that a metric has no standardization; None if none is found, which proves nothing.

    Irrational values (of dcg, ndcg, most eru) are out of reach: bounds do not prove that two orders tie. So
    are metrics without exact values: of a gain that is a function, or max_grade="data", which no single label
    knows.

    Parameters
    ----------
    metric
        A metric of rankings, or its name.
    labels
        A space of labels that the metric reads: "binary", "grades", "preferences" or "permutations"; "auto":
        preferences for pd and wpd, permutations for zero_one, binary for all others.
    n_items
        Number of items, 2 to 5.
    highest
        Highest grade, of "grades".

    Examples
    --------
    >>> proof = impossibility("err[max_grade=1]")
    >>> (good, most), (bad, less) = proof.contrast
    >>> most - less
    Fraction(1, 48)
    """
    chosen = read_metric(metric)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MAX_ITEMS:
        raise ParameterError("n_items", n_items, f"2 to {MAX_ITEMS}")
    given = every_label(space := check_space(chosen, labels), n_items, highest)
    try:
        known = table(chosen, given)
    except ParameterError:  # no exact values
        return None
    mixed = ruling_out(known)
    return None if mixed is None else written_down(chosen, space, highest, mixed, known.labels)


def check_space(metric: Metric, labels: str) -> str:
    """Give the space of labels that is meant, which the metric has to read."""
    if not (spaces := spaces_of(metric)):
        raise ParameterError("metric", str(metric), "one of rankings")
    if labels == "auto":
        return next(name for name in PLAINEST if name in spaces)
    if not isinstance(labels, str) or labels not in SPACES:
        raise UnknownNameError("label space", labels, ["auto", *SPACES])
    if labels not in spaces:
        raise ParameterError("labels", labels, f"what {metric.name} reads: {' or '.join(spaces)}")
    return labels


def written_down(
    metric: Metric, space: str, highest: int, mixed: Mixed, labels: Sequence[Label]
) -> Impossibility:
    """Give the proof at a distribution that refutes every pattern."""
    values = every_value(metric, *mixed)
    best = best_orders(metric, values)
    good, bad = best[0], min(values.keys() - best)
    return Impossibility(
        metric=metric,
        space=space,
        highest=highest,
        labels=mixed.labels,
        probs=mixed.probs,
        best=tuple(best),
        value=low(values[good]),
        contrast=((good, low(values[good])), (bad, low(values[bad]))),
        refutations=tuple(refutations(metric, best, labels)),
    )
