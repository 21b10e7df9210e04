"""Bounds for rankers trained on pairs: the position hinge of Riezler and De Bona."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from concordant.surrogates.surrogate import check_choice
from concordant.theory.bounds.bound import Bound, Setting, Term, check_whole
from concordant.theory.bounds.lipschitz import check_levels, margin_sum, n_pairs, reach, spread, variety
from concordant.theory.bounds.terms import by_pair, one_sided, per_function, two_sided, vector

__all__ = ["ERRORS", "PAIRWISE_VERSIONS", "REDUCTIONS", "bipartite", "multipartite", "pairwise"]

PAIRWISE_VERSIONS = ("published", "corrected", "sharp", "tight")
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
      a function of the scores (`lipschitz.reach`). The range c is the sum of all margins and the
      largest sum of (s_j - s_i)_+ for scores within [-BM, BM] (`lipschitz.spread`).
    - `tight`: as `sharp`, with each pair's hinge cut off at its margin. What is left still dominates the
      error, is as Lipschitz, and adds less to the sample's mean; its range c is the sum of all margins,
      without BM. And with the smaller of two bounds on R_n. The other one contracts pair by pair (by the
      factor 1, that of suprema without absolute values): R_n is at most the sum over pairs of
      B sqrt(E d^2 / n), d the length of the pair's difference, hence at most B sqrt(P V / n), V the largest
      sum over pairs of d^2 (`lipschitz.variety`). A single pair may have d = 2M, but not all at once.

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
    What the first term is per pair, times sqrt(n):

    >>> for version in PAIRWISE_VERSIONS:
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
    setting = Setting(n, sum(sizes), B, M, delta)
    check_choice("version", version, PAIRWISE_VERSIONS)
    check_choice("reduction", reduction, REDUCTIONS)
    check_choice("error", error, ERRORS)
    r, published, per_pair = len(sizes), version == "published", reduction == "pairs"
    weighted = error == "margin" and r > 2 and not published
    times = r - 1 if error == "plain" and not published else 1
    divisor = n_pairs(sizes) if per_pair else 1
    largest = margin_sum(sizes) if weighted else n_pairs(sizes)
    terms = counted if version in ("published", "corrected") else contracted
    return Bound(
        **asdict(setting),
        version=version,
        bounds=f"{'margin-weighted ' * weighted}0-1 error {'per pair' if per_pair else 'summed over pairs'}",
        empirical="position hinge" + ", cut off," * (version == "tight") + " per pair" * per_pair,
        multiplier=float(times),
        reduction=reduction,
        largest=largest / divisor,
        parts=terms(setting, sizes, version, times, divisor),
        refuted="" if not published else NOT_DOMINATED if r > 2 else FALSE_LEMMA,
    )


def counted(
    setting: Setting, sizes: tuple[int, ...], version: str, times: int, divisor: int
) -> tuple[Term, Term]:
    """Give the terms that pay for each pair: published and corrected."""
    count, slope = n_pairs(sizes) // divisor, 4 if version == "published" else 8
    each = "" if count == 1 else "P "
    height = len(sizes) - 1 + 2 * setting.BM
    return (
        per_function(setting, count, slope, f"{each}{slope}BM / sqrt(n)", times),
        two_sided(setting, count, height, f"{each}(r-1 + 2BM)", times),
    )


def contracted(
    setting: Setting, sizes: tuple[int, ...], version: str, times: int, divisor: int
) -> tuple[Term, Term]:
    """Give the terms that pay for a query as a whole: sharp and tight."""
    m = setting.m
    complexity = vector(setting, reach(sizes) / divisor, times)
    if version == "tight":
        other = by_pair(setting, n_pairs(sizes) * variety(sizes) / divisor**2, times)
        complexity = min(complexity, other, key=lambda term: term.factor)
        return complexity, one_sided(setting, margin_sum(sizes) / divisor, times)
    swing = spread(sizes) * m * (m - 1) / 2 * setting.BM  # at most 2 BM for each of max_k c_k (m - c_k) pairs
    return complexity, one_sided(setting, (margin_sum(sizes) + swing) / divisor, times)


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

    >>> for version in PAIRWISE_VERSIONS:
    ...     print(version, round(bipartite(10_000, 1, 39, version=version, reduction="pairs").excess, 4))
    published 0.203
    corrected 0.243
    sharp 0.2179
    tight 0.0522
    """
    sizes = check_whole("rel", rel, 1), check_whole("nrel", nrel, 1)
    return multipartite(n, sizes, B, M, delta, version, reduction)
