"""Risk bounds of Riezler and De Bona: the position hinge on pairs, the listwise hinge on whole lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from concordant._base.validate import check_choice, check_number, check_whole
from concordant.exceptions import ParameterError
from concordant.theory.bounds.bound import (
    Bound,
    BoundSetting,
    Term,
    by_differences,
    by_pair,
    one_sided,
    per_function,
    vector,
)
from concordant.theory.bounds.hinges import (
    check_levels,
    kappa,
    listwise_slope,
    margin_sum,
    n_pairs,
    reach,
    spread,
    variety,
)

# Bounds for rankers trained on pairs: the position hinge of Riezler and De Bona.

VERSIONS = ("published", "corrected", "sharp", "tight")
REDUCTIONS = ("sum", "pairs")
ERRORS = ("margin", "plain")
NOT_DOMINATED = (
    "refuted: with 3 or more levels the hinge is not above the 0-1 error (erratum 5), and Lemma 1, on which "
    "the proof rests, is false (erratum 6)"
)
FALSE_LEMMA = "its proof is refuted: Lemma 1, on which it rests, is false (erratum 6)"


def pairwise(
    n: int,
    m: int,
    B: float = 1.0,
    M: float = 1.0,
    delta: float = 0.05,
    version: str = "corrected",
    reduction: str = "sum",
    error: str = "margin",
) -> Bound:
    """Bound the 0-1 error on pairs by the position hinge, for full rankings of m items.

    The hinge of a query is the sum over pairs, i better than j, of (r/y_i - r/y_j - (s_i - s_j))_+, with y
    the level, 1 the best of r levels; r = m for full rankings. With P pairs:

    - `published` (Theorem 3 and its corollaries): P 4BM/sqrt(n) + P (r - 1 + 2BM) sqrt(8 ln(2/delta) / n), a
      claim about the 0-1 error, whatever `error` is. With 3 or more levels it is refuted: the margin of
      the two lowest levels is 1/(r - 1) < 1, so the hinge can be below the 0-1 error. Its Lemma 1 takes
      differences of features to be M long; they are up to 2M.
    - `corrected`: the same proof (Bartlett and Mendelson 2002, Theorems 8 and 12) with 2M. Differences have
      the Rademacher average 4BM/sqrt(n), the contraction doubles it, P pairs add up: P 8BM/sqrt(n).
    - `sharp`: with the loss in [0, c], risk <= empirical risk + 2 R_n + c sqrt(ln(1/delta) / (2n)), R_n <=
      sqrt(2) L BM sqrt(m/n) by vector contraction (Maurer 2016), L the Lipschitz constant of the loss as
      a function of the scores (`hinges.reach`). The range c is the sum of all margins and the
      largest sum of (s_j - s_i)_+ for scores within [-BM, BM] (`hinges.spread`).
    - `tight`: as `sharp`, with each pair's hinge cut off at its margin. What is left still dominates the
      error, is as Lipschitz, and adds less to the sample's mean; its range c is the sum of all margins,
      without BM. And with the smaller of two bounds on R_n. The other one contracts pair by pair (by the
      factor 1, that of suprema without absolute values): R_n is at most the sum over pairs of
      B sqrt(E d^2 / n), d the length of the pair's difference, hence at most B sqrt(P V / n), V the largest
      sum over pairs of d^2 (`hinges.variety`). A single pair may have d = 2M, but not all at once.

    Parameters
    ----------
    n
        Training queries, drawn independently from one distribution.
    m
        Items of every query.
    B, M
        Largest length of w, fixed before the data are seen, and of the features of an item.
    delta
        Probability of failure.
    version
        "published", "corrected", "sharp" or "tight".
    reduction
        "sum" over the pairs of a query, or "pairs": their mean.
    error
        "margin": the 0-1 error with each pair weighted by its margin r/y_i - r/y_j, which the hinge
        dominates, so that the empirical hinge enters once. "plain": the 0-1 error itself, which only (r - 1)
        times the hinge dominates; the empirical hinge and all terms are multiplied by that. Equal for two
        levels. Tied scores count as errors or not: it holds for both.

    References
    ----------
    Riezler and De Bona (2009), Theorem 3. Bartlett and Mendelson (2002). Maurer (2016), "A vector-contraction
    inequality for Rademacher complexities".

    Examples
    --------
    The first term per pair, times sqrt(n):

    >>> for version in VERSIONS:
    ...     bound = pairwise(n=1, m=40, version=version, reduction="pairs")
    ...     print(version, round(bound.terms["complexity"].value, 2))
    published 4.0
    corrected 8.0
    sharp 3.35
    tight 2.86
    >>> print(pairwise(n=100_000, m=5, version="sharp", reduction="pairs"))
    sharp: margin-weighted 0-1 error per pair <= position hinge per pair + 0.02445
      with probability 0.95; 100000 queries of 5 items, B = 1, M = 1
      complexity 0.01265: 2 sqrt(2) L B M sqrt(m/n), L = 0.6325: vector contraction
      confidence 0.0118: c sqrt(ln(1/delta) / (2n)), c = 3.05, the range of the hinge
    """
    items = check_whole("m", m, 2)
    return multipartite(n, (1,) * items, B, M, delta, version, reduction, error)


def multipartite(
    n: int,
    levels: Sequence[int],
    B: float = 1.0,
    M: float = 1.0,
    delta: float = 0.05,
    version: str = "corrected",
    reduction: str = "sum",
    error: str = "margin",
) -> Bound:
    """Bound the 0-1 error on pairs of different levels by the position hinge.

    Parameters
    ----------
    n
        Training queries.
    levels
        How many items of each query are on each level, best level first.
    B, M, delta, version, reduction, error
        As for `pairwise`.

    References
    ----------
    Riezler and De Bona (2009), Corollary 1.

    Examples
    --------
    >>> multipartite(n=10_000, levels=(2, 3, 5), version="sharp", reduction="pairs")
    Bound(sharp: margin-weighted 0-1 error per pair <= position hinge per pair + 0.08243; n=10000, m=10)
    """
    sizes = check_levels(levels)
    setting = BoundSetting(n, sum(sizes), B, M, delta)
    check_choice("version", version, VERSIONS)
    check_choice("reduction", reduction, REDUCTIONS)
    check_choice("error", error, ERRORS)
    r, published, per_pair = len(sizes), version == "published", reduction == "pairs"
    weighted = error == "margin" and r > 2 and not published
    times = r - 1 if error == "plain" and not published else 1
    divisor = n_pairs(sizes) if per_pair else 1
    largest = margin_sum(sizes) if weighted else n_pairs(sizes)
    terms = _terms_per_pair if version in ("published", "corrected") else _pair_contraction_terms
    return Bound(
        **asdict(setting),
        version=version,
        bounds=f"{'margin-weighted ' * weighted}0-1 error {'per pair' if per_pair else 'summed over pairs'}",
        empirical="position hinge" + ", cut off," * (version == "tight") + " per pair" * per_pair,
        multiplier=float(times),
        reduction=reduction,
        largest=largest / divisor,
        parts=tuple(term.scaled(times) for term in terms(setting, sizes, version, divisor)),
        refuted="" if not published else NOT_DOMINATED if r > 2 else FALSE_LEMMA,
    )


def _terms_per_pair(
    setting: BoundSetting, sizes: tuple[int, ...], version: str, divisor: int
) -> tuple[Term, Term]:
    """Return the terms of the published and the corrected bound, which pay for each pair."""
    count, slope = n_pairs(sizes) // divisor, 4 if version == "published" else 8
    each = "" if count == 1 else "P "
    height = len(sizes) - 1 + 2 * setting.BM
    return per_function(setting, count, slope, f"{each}{slope}", height, f"{each}(r-1 + 2BM)")


def _pair_contraction_terms(
    setting: BoundSetting, sizes: tuple[int, ...], version: str, divisor: int
) -> tuple[Term, Term]:
    """Return the terms of the sharp and the tight bound, which pay for a query as a whole."""
    m = setting.m
    complexity = vector(setting, reach(sizes) / divisor)
    if version == "tight":
        other = by_pair(setting, n_pairs(sizes) * variety(sizes) / divisor**2)
        complexity = min(complexity, other, key=lambda term: term.factor)
        return complexity, one_sided(setting, margin_sum(sizes) / divisor)
    swing = spread(sizes) * m * (m - 1) / 2 * setting.BM  # at most 2 BM for each of max_k c_k (m - c_k) pairs
    return complexity, one_sided(setting, (margin_sum(sizes) + swing) / divisor)


def bipartite(
    n: int,
    rel: int,
    nrel: int,
    B: float = 1.0,
    M: float = 1.0,
    delta: float = 0.05,
    version: str = "corrected",
    reduction: str = "sum",
) -> Bound:
    """Bound the 0-1 error on pairs of a relevant and a non-relevant item by the position hinge.

    With two levels every margin is 1: the hinge dominates the 0-1 error, and needs no factor.

    Parameters
    ----------
    n
        Training queries.
    rel, nrel
        How many items of each query are relevant, and how many are not.
    B, M, delta, version, reduction
        As for `pairwise`.

    References
    ----------
    Riezler and De Bona (2009), Corollary 2.

    Examples
    --------
    Vector contraction is poor where the levels differ much in size; `tight` never is above `published`.

    >>> for version in VERSIONS:
    ...     print(version, round(bipartite(10_000, 1, 39, version=version, reduction="pairs").excess, 4))
    published 0.203
    corrected 0.243
    sharp 0.2179
    tight 0.0522
    """
    sizes = check_whole("rel", rel, 1), check_whole("nrel", nrel, 1)
    return multipartite(n, sizes, B, M, delta, version, reduction)


# Bounds for rankers trained on whole lists: the listwise hinge of Riezler and De Bona.

MODES = ("max", "softmax", "sum")
EMPIRICAL = {
    "max": "max listwise hinge",
    "softmax": "soft-max listwise hinge",
    "sum": "sum of listwise hinges",
    "interleavings": "sum of listwise hinges over interleavings",
}


def listwise(
    n: int,
    m: int,
    B: float = 1.0,
    M: float = 1.0,
    delta: float = 0.05,
    version: str = "corrected",
    mode: str = "max",
    temperature: float = 1.0,
    metric: str | None = None,
    largest: float = 1.0,
    levels: Sequence[int] | None = None,
) -> Bound:
    """Bound a prediction loss, such as 1 - NDCG, by a listwise hinge, for any labels of m items.

    The hinge of an order is (loss of the order - [F(gold) - F(order)])_+. Sorting by the scores maximises F,
    so the hinge of the predicted order is at least its loss; the sum over orders that contradict the labels,
    their max and their soft-max T log(1 + sum of exp((loss - [F(gold) - F(order)]) / T)) are no less.

    - `published` (Theorem 4): Q 4BM/sqrt(n) + Q (1 + 2BM) sqrt(8 ln(2/delta) / n) with Q = m!, added to the
      **sum** over orders. Its Lemma 1 takes the features of an order to be M long; they are up to
      kappa(m) M, and their differences twice that.
    - `corrected`: the same proof with 2 kappa M instead of M gives
      Q 8 kappa BM/sqrt(n) + Q (1 + 2 kappa BM) sqrt(8 ln(2/delta) / n).
    - `sharp`: the loss in [0, c] is L-Lipschitz in the scores (`hinges.listwise_slope`): vector
      contraction (Maurer 2016) gives 2 sqrt(2) L BM sqrt(m/n) + c sqrt(ln(1/delta) / (2n)), with no m!. For
      the max, c = 1 + 2 kappa BM. The soft-max is at most T log N above the max, N = m! for any
      labels: c = 1 + 2 kappa BM + T log N. Where `levels` are given, N = 1 + m! - prod_a l_a!, kappa
      becomes `hinges.spread`, and no value is below T log N - 2 kappa BM, which leaves
      c = 1 + 2 kappa BM + min(T log N, 2 kappa BM).
    - `tight`: as `sharp`, with the hinge of a list cut off at the largest prediction loss. What is left still
      dominates that loss, is as Lipschitz, and adds less to the sample's mean; its range is c = 1,
      for the max and the soft-max alike. Where `levels` are given, the contraction may also start from
      the P differences of scores instead of the m scores: in them the loss is
      4 sqrt(P) / (m (m - 1))-Lipschitz, and their squares add up to at most (BM)^2 V
      (`hinges.variety`). The smaller of the two counts.

    `published` and `corrected` bound the sum whatever the mode is, and `empirical` says so. As sum >= max,
    they bound the risk of the max hinge too, but by the mean **sum** on the sample, not by the mean max.

    Parameters
    ----------
    n, m, B, M, delta
        As for `pairwise`.
    version
        "published", "corrected", "sharp" or "tight".
    mode
        "max", "softmax" or "sum"; the sum has no sharp or tight version, since its slope carries m!.
    temperature
        T of the soft-max.
    metric
        Name of the metric, for the description of the bound.
    largest
        Largest value of the prediction loss, where it is not 1; it stands for the 1 in all formulas.
    levels
        How many items of every query are on each level, best first, if known: `sharp` and `tight` gain.

    References
    ----------
    Riezler and De Bona (2009), Theorem 4. Maurer (2016).

    Examples
    --------
    >>> print(listwise(n=1700, m=40, version="sharp", metric="ndcg"))
    sharp: 1 - NDCG <= max listwise hinge + 0.253
      with probability 0.95; 1700 queries of 40 items, B = 1, M = 1
      complexity 0.1624: 2 sqrt(2) L B M sqrt(m/n), L = 0.3744: vector contraction
      confidence 0.09057: c sqrt(ln(1/delta) / (2n)), c = 3.051, the range of the hinge
    >>> listwise(n=1700, m=40, version="published")
    Bound(published: prediction loss <= sum of listwise hinges + 10^47.60; n=1700, m=40; refuted, vacuous)
    """
    setting = BoundSetting(n, m, B, M, delta)
    sizes = None if levels is None else check_levels(levels)
    if sizes is not None and sum(sizes) != m:
        raise ParameterError("levels", levels, f"sizes that add up to m = {m}")
    height, name = check_number("largest", largest, above=0.0), (metric or "").upper()
    loss = f"1 - {name}" if name and height == 1.0 else f"loss of {name}" if name else "prediction loss"
    _check_version(version, mode)
    softness = check_number("temperature", temperature, above=0.0) * (mode == "softmax")
    if version in ("sharp", "tight"):
        parts = _order_contraction_terms(setting, sizes, version, height, softness)
        return _prediction_loss_bound(setting, version, mode, loss, height, parts)
    return _prediction_loss_bound(
        setting, version, "sum", loss, height, _terms_per_order(setting, math.factorial(m), version, height)
    )


def average_precision(
    n: int,
    m: int,
    rel: int,
    B: float = 1.0,
    M: float = 1.0,
    delta: float = 0.05,
    version: str = "corrected",
    mode: str = "max",
    temperature: float = 1.0,
) -> Bound:
    """Bound 1 - AP by a listwise hinge, for rel relevant items among m.

    `published` and `corrected` count C(m, rel) interleavings of relevant and other items instead of m! orders
    (Corollary 3). F differs between orders of the same interleaving, so the sum takes, in each, the order of
    largest F: each label sorted by score. One fixed order per interleaving would not dominate 1 - AP. That
    largest F is no linear function of w, so the proof is that of `sharp`, for each interleaving: twice its
    Rademacher average is at most 8 sqrt(2 rel nrel)/(m - 1) BM/sqrt(n), which is below 8 kappa BM/sqrt(n),
    and the confidence term of `sharp` is smaller too: the corrected terms stand. `sharp` itself is that of
    `listwise` with two levels.

    Parameters
    ----------
    n, m, B, M, delta, version, mode, temperature
        As for `listwise`.
    rel
        Relevant items of every query, from 1 to m - 1.

    References
    ----------
    Riezler and De Bona (2009), Corollary 3.

    Examples
    --------
    >>> average_precision(n=1700, m=40, rel=5, version="sharp")
    Bound(sharp: 1 - AP <= max listwise hinge + 0.1494; n=1700, m=40)
    """
    items = check_whole("m", m, 2)
    if check_whole("rel", rel, 1) >= items:
        raise ParameterError("rel", rel, f"from 1 to m - 1 = {items - 1}")
    sizes = int(rel), items - int(rel)
    if version in ("published", "corrected"):
        _check_version(version, mode)
        setting = BoundSetting(n, m, B, M, delta)
        parts = _terms_per_order(setting, math.comb(items, int(rel)), version, 1.0)
        return _prediction_loss_bound(setting, version, "interleavings", "1 - AP", 1.0, parts)
    return listwise(n, m, B, M, delta, version, mode, temperature, "ap", 1.0, sizes)


def _check_version(version: str, mode: str) -> None:
    """Raise on unknown versions and modes, and on the sum where no sharp bound is offered."""
    check_choice("version", version, VERSIONS)
    check_choice("mode", mode, MODES)
    if version in ("sharp", "tight") and mode == "sum":
        raise ParameterError("mode", mode, f"'max' or 'softmax' for version={version!r}")


def _prediction_loss_bound(
    setting: BoundSetting,
    version: str,
    empirical_name: str,
    loss: str,
    largest: float,
    parts: tuple[Term, Term],
) -> Bound:
    """Build the bound on a prediction loss; `empirical_name` is a key of `EMPIRICAL`."""
    return Bound(
        **asdict(setting),
        version=version,
        bounds=loss,
        empirical=EMPIRICAL[empirical_name] + ", cut off" * (version == "tight"),
        multiplier=1.0,
        reduction=empirical_name if version in ("sharp", "tight") else "sum",
        largest=largest,
        parts=parts,
        refuted=FALSE_LEMMA if version == "published" else "",
    )


def _terms_per_order(setting: BoundSetting, orders: int, version: str, largest: float) -> tuple[Term, Term]:
    """Return the terms of the published and the corrected bound, which pay for each of Q orders."""
    corrected = version == "corrected"
    longest, words = (kappa(setting.m), "kappa ") if corrected else (1.0, "")
    slope, height = 8 if corrected else 4, largest + 2 * longest * setting.BM
    height_words = f"Q ({largest:g} + 2 {words}BM)"
    return per_function(setting, orders, slope * longest, f"Q {slope} {words}", height, height_words)


def _order_contraction_terms(
    setting: BoundSetting, sizes: tuple[int, ...] | None, version: str, largest: float, softness: float
) -> tuple[Term, Term]:
    """Return the terms that pay for a query as a whole; a softness of 0 is the max."""
    m = setting.m
    if version == "tight":
        complexity = vector(setting, listwise_slope(sizes or (1,) * m))
        if sizes:
            steep = 4 * math.sqrt(n_pairs(sizes)) / (m * (m - 1))
            other = by_differences(setting, steep, variety(sizes))
            complexity = min(complexity, other, key=lambda term: term.factor)
        return complexity, one_sided(setting, largest)
    swing = 2 * (spread(sizes) if sizes else kappa(m)) * setting.BM
    above = softness * math.log(1 + _count_inconsistent_orders(m, sizes)) if softness else 0.0
    height = largest + swing + (min(above, swing) if sizes else above)
    return vector(setting, listwise_slope(sizes or (1,) * m)), one_sided(setting, height)


def _count_inconsistent_orders(m: int, sizes: tuple[int, ...] | None) -> int:
    """Count the orders that contradict the labels; for unknown labels, the most that any labels allow.

    >>> [_count_inconsistent_orders(3, sizes) for sizes in (None, (1, 2), (1, 1, 1))]
    [5, 4, 5]
    """
    return math.factorial(m) - math.prod(map(math.factorial, sizes or (1,)))
