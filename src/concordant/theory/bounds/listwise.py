"""Bounds for rankers trained on whole lists: the listwise hinge of Riezler and De Bona."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from concordant.exceptions import ParameterError
from concordant.surrogates.surrogate import check_choice
from concordant.theory.bounds.bound import Bound, Setting, Term, check_positive, check_whole
from concordant.theory.bounds.lipschitz import (
    check_levels,
    kappa,
    listwise_slope,
    n_pairs,
    spread,
    variety,
)
from concordant.theory.bounds.pairwise import FALSE_LEMMA
from concordant.theory.bounds.terms import by_differences, one_sided, per_function, two_sided, vector

__all__ = ["LISTWISE_VERSIONS", "MODES", "average_precision", "listwise"]

LISTWISE_VERSIONS = ("published", "corrected", "sharp", "tight")
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
    - `sharp`: the loss in [0, c] is L-Lipschitz in the scores (`lipschitz.listwise_slope`): vector
      contraction (Maurer 2016) gives 2 sqrt(2) L BM sqrt(m/n) + c sqrt(ln(1/delta) / (2n)), with no m!. For
      the max, c = 1 + 2 kappa BM. The soft-max is at most T log N above the max, N = m! for any
      labels: c = 1 + 2 kappa BM + T log N. Where `levels` are given, N = 1 + m! - prod_a l_a!, kappa
      becomes `lipschitz.spread`, and no value is below T log N - 2 kappa BM, which leaves
      c = 1 + 2 kappa BM + min(T log N, 2 kappa BM).
    - `tight`: as `sharp`, with the hinge of a list cut off at the largest prediction loss. What is left still
      dominates that loss, is as Lipschitz, and adds less to the sample's mean; its range is c = 1,
      for the max and the soft-max alike. Where `levels` are given, the contraction may also start from
      the P differences of scores instead of the m scores: in them the loss is
      4 sqrt(P) / (m (m - 1))-Lipschitz, and their squares add up to at most (BM)^2 V
      (`lipschitz.variety`). The smaller of the two counts.

    `published` and `corrected` speak of the sum whatever the mode is, and `empirical` says so. As sum >= max,
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
        Name of the metric, for the words of the result.
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
    setting = Setting(n, m, B, M, delta)
    sizes = None if levels is None else check_levels(levels)
    if sizes is not None and sum(sizes) != m:
        raise ParameterError("levels", levels, f"sizes that add up to m = {m}")
    height, name = check_positive("largest", largest), (metric or "").upper()
    loss = f"1 - {name}" if name and height == 1.0 else f"loss of {name}" if name else "prediction loss"
    check_version(version, mode)
    softness = check_positive("temperature", temperature) * (mode == "softmax")
    if version in ("sharp", "tight"):
        parts = contracted(setting, sizes, version, height, softness)
        return built(setting, version, mode, loss, height, parts)
    return built(setting, version, "sum", loss, height, counted(setting, math.factorial(m), version, height))


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
        check_version(version, mode)
        setting = Setting(n, m, B, M, delta)
        parts = counted(setting, math.comb(items, int(rel)), version, 1.0)
        return built(setting, version, "interleavings", "1 - AP", 1.0, parts)
    return listwise(n, m, B, M, delta, version, mode, temperature, "ap", 1.0, sizes)


def check_version(version: str, mode: str) -> None:
    """Refuse unknown versions and modes, and the sum where no sharp bound is offered."""
    check_choice("version", version, LISTWISE_VERSIONS)
    check_choice("mode", mode, MODES)
    if version in ("sharp", "tight") and mode == "sum":
        allowed = f"'max' or 'softmax' for version={version!r}: the slope and the range of the sum carry m!"
        raise ParameterError("mode", mode, allowed)


def built(
    setting: Setting, version: str, added: str, loss: str, largest: float, parts: tuple[Term, Term]
) -> Bound:
    """Give a bound on a prediction loss; `added` names the empirical loss."""
    return Bound(
        **asdict(setting),
        version=version,
        bounds=loss,
        empirical=EMPIRICAL[added] + ", cut off" * (version == "tight"),
        multiplier=1.0,
        reduction=added if version in ("sharp", "tight") else "sum",
        largest=largest,
        parts=parts,
        refuted=FALSE_LEMMA if version == "published" else "",
    )


def counted(setting: Setting, orders: int, version: str, largest: float) -> tuple[Term, Term]:
    """Give the terms that pay for each of Q orders: published and corrected."""
    corrected = version == "corrected"
    longest, words = (kappa(setting.m), "kappa ") if corrected else (1.0, "")
    slope, height = 8 if corrected else 4, largest + 2 * longest * setting.BM
    return (
        per_function(setting, orders, slope * longest, f"Q {slope} {words}BM / sqrt(n)"),
        two_sided(setting, orders, height, f"Q ({largest:g} + 2 {words}BM)"),
    )


def contracted(
    setting: Setting, sizes: tuple[int, ...] | None, version: str, largest: float, softness: float
) -> tuple[Term, Term]:
    """Give the terms that pay for a query as a whole; a softness of 0 is the max."""
    m = setting.m
    if version == "tight":
        complexity = vector(setting, listwise_slope(sizes or (1,) * m))
        if sizes:
            steep = 4 * math.sqrt(n_pairs(sizes)) / (m * (m - 1))
            other = by_differences(setting, steep, variety(sizes))
            complexity = min(complexity, other, key=lambda term: term.factor)
        return complexity, one_sided(setting, largest)
    swing = 2 * (spread(sizes) if sizes else kappa(m)) * setting.BM
    above = softness * math.log(1 + inconsistent(m, sizes)) if softness else 0.0
    height = largest + swing + (min(above, swing) if sizes else above)
    return vector(setting, listwise_slope(sizes or (1,) * m)), one_sided(setting, height)


def inconsistent(m: int, sizes: tuple[int, ...] | None) -> int:
    """Give the number of orders that contradict the labels; the most that any labels allow, if unknown.

    >>> inconsistent(3, None), inconsistent(3, (1, 2)), inconsistent(3, (1, 1, 1))
    (5, 4, 5)
    """
    return math.factorial(m) - math.prod(map(math.factorial, sizes or (1,)))
