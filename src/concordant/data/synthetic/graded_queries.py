"""Synthetic queries: grades, preference graphs, click intents and permutations, with exact distributions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.validate import check_counts, check_number
from concordant.data.labels import Permutations, Preferences, RankingData
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label, LabelDistribution
from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.types import BoolArray, FloatArray, IntArray

# Shared by all generators of queries: features, query sizes, intents and their probabilities.


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Features, one draw of the labels, and the distribution of the draw.

    Attributes
    ----------
    X
        Features, one row per item.
    y
        One draw of the labels: an array of grades, a `Preferences` or a `Permutations`.
    qid
        Query id of each row.
    distribution
        The conditional distribution of the labels, given the features.
    features
        Names of the columns of X, if they have a meaning.
    """

    X: FloatArray
    y: Label
    qid: IntArray
    distribution: LabelDistribution
    features: tuple[str, ...] = ()

    @property
    def table(self) -> Any:
        """Features as a `pyarrow.Table` with their names, which rankers store."""
        import pyarrow as pa

        names = self.features or tuple(map(str, range(self.X.shape[1])))
        return pa.table(dict(zip(names, self.X.T, strict=True)))

    @property
    def data(self) -> RankingData:
        """Rows as a `RankingData`; for grades only."""
        if not isinstance(self.y, np.ndarray):
            kind = type(self.y).__name__
            raise LabelError(f"y is a {kind}, RankingData holds grades", "use .X, .y and .qid.")
        return RankingData(self.X, self.y, self.qid)


@dataclass(frozen=True, eq=False)
class SyntheticItems:
    """Rows without labels: features, queries, and unit-variance latent scores of each row by outcome."""

    X: FloatArray
    qid: IntArray
    queries: Queries
    latent: FloatArray  # one row per outcome
    probs: FloatArray


def _draw_items(
    rng: np.random.Generator,
    n_queries: int,
    n_items: int | tuple[int, int],
    n_features: int,
    n_labels: int,
    *,
    noise: float,
    shuffle: bool,
) -> SyntheticItems:
    """Draw normal features, query sizes, and per outcome a latent score and a probability."""
    least, most = _least_and_most(n_items)
    check_counts(n_queries=n_queries, n_features=n_features, n_labels=n_labels)
    check_number("noise", noise, least=0.0)
    qid = np.repeat(np.arange(n_queries), rng.integers(least, most + 1, n_queries))
    qid = rng.permutation(qid) if shuffle else qid
    queries = Queries.from_ids(qid)
    X = rng.standard_normal((len(qid), n_features))
    directions = rng.standard_normal((n_labels, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    latent = directions @ X.T + noise * rng.standard_normal((n_labels, len(qid)))
    # A query is described by its mean features, scaled back to unit variance.
    means = np.add.reduceat(queries.gather(X), queries.offsets[:-1]) / np.sqrt(queries.sizes)[:, None]
    weights = np.exp(means @ rng.standard_normal((n_features, n_labels)) / np.sqrt(n_features))
    probs = weights / weights.sum(axis=1, keepdims=True)
    return SyntheticItems(X, qid, queries, latent / np.sqrt(1 + noise**2), probs)


def _least_and_most(n_items: int | tuple[int, int]) -> tuple[int, int]:
    """Check the range of the number of items per query.

    >>> _least_and_most(5), _least_and_most((2, 8))
    ((5, 5), (2, 8))
    """
    bounds = tuple(n_items) if isinstance(n_items, (tuple, list)) else (n_items, n_items)
    if len(bounds) != 2:
        raise ParameterError("n_items", n_items, "a number or a pair (least, most)")
    least, most = bounds
    check_counts(n_items=least)
    check_counts(n_items=most)
    if most < least:
        raise ParameterError("n_items", n_items, "a number or a pair (least, most) with least <= most")
    return least, most


def _sizes_and_starts(queries: Queries) -> list[tuple[int, int]]:
    return list(zip(queries.sizes.tolist(), queries.offsets[:-1].tolist(), strict=True))


def _finish(
    items: SyntheticItems, labels: tuple[Label, ...], probs: FloatArray, rng: np.random.Generator
) -> Synthetic:
    distribution = LabelDistribution(labels, probs, items.queries)
    return Synthetic(items.X, distribution.sample(rng), items.qid, distribution)


# Graded queries and preference graphs, each with its exact label distribution.


def grades(
    n_queries: int = 200,
    n_items: int | tuple[int, int] = (5, 40),
    n_features: int = 10,
    n_levels: int = 5,
    n_labels: int = 4,
    *,
    noise: float = 0.5,
    shuffle: bool = False,
    seed: int = 0,
) -> Synthetic:
    """Graded queries with a few intents each: an intent is a full grade vector.

    Intent `s` grades by a direction in feature space plus noise; half of the items have grade 0 and
    each further level is half as frequent. The probabilities of the intents depend on the features.

    Parameters
    ----------
    n_queries, n_features
        Size of the set.
    n_items
        Items per query: a number, or the least and the most.
    n_levels
        Grades are 0 .. n_levels - 1.
    n_labels
        Intents per query.
    noise
        Standard deviation of the part of the latent score that features do not explain (their part has 1).
    shuffle
        Mix the rows, so that queries are not adjacent.
    seed
        Equal seeds give equal data.

    Examples
    --------
    >>> toy = grades(n_queries=3, n_items=4, seed=1)
    >>> toy.X.shape, toy.distribution
    ((12, 10), LabelDistribution(4 outcomes of kind Grades, Queries(3 queries, 12 rows)))
    """
    from scipy.stats import norm

    check_counts(n_levels=n_levels)
    rng = np.random.default_rng(seed)
    items = _draw_items(rng, n_queries, n_items, n_features, n_labels, noise=noise, shuffle=shuffle)
    thresholds = norm.isf(0.5 ** np.arange(1, n_levels))
    labels = tuple(np.searchsorted(thresholds, row).astype(np.float64) for row in items.latent)
    return _finish(items, labels, items.probs, rng)


def preferences(
    n_queries: int = 200,
    n_items: int | tuple[int, int] = (3, 8),
    n_features: int = 10,
    n_labels: int = 4,
    *,
    share: float = 1.0,
    noise: float = 0.5,
    shuffle: bool = False,
    seed: int = 0,
) -> Synthetic:
    """Preference graphs of a few annotators per query; noise makes some of them cyclic.

    Each annotator judges each pair of items with probability `share` (1: a tournament) by the difference of
    their latent scores plus independent noise. The other parameters are those of `grades`.

    Examples
    --------
    >>> toy = preferences(n_queries=2, n_items=3, seed=0)
    >>> len(toy.y.better)  # three pairs in each query
    6
    """
    check_number("share", share, above=0.0, most=1.0)
    check_number("noise", noise, least=0.0)
    rng = np.random.default_rng(seed)
    items = _draw_items(rng, n_queries, n_items, n_features, n_labels, noise=0.0, shuffle=shuffle)
    pairs = [np.transpose(np.triu_indices(n, 1)) + start for n, start in _sizes_and_starts(items.queries)]
    first, second = items.queries.order[np.concatenate(pairs)].T
    labels = []
    for latent in items.latent:
        is_judged = rng.random(len(first)) <= share
        above = latent[first] - latent[second] + noise * rng.standard_normal(len(first)) > 0
        better, worse = np.where(above, first, second), np.where(above, second, first)
        labels.append(Preferences(better[is_judged], worse[is_judged], items.queries.n_rows))
    return _finish(items, tuple(labels), items.probs, rng)


# A search log whose truth is known: what every visitor of a query would have called relevant.

FEATURES = ("official", "match", "reviews", "price", "freshness", "brand", "words")
BLUR = 0.4  # standard deviation of what features do not show of an item


def search_log(n_queries: int = 500, n_items: int | tuple[int, int] = (6, 30), *, seed: int = 0) -> Synthetic:
    """Sessions of a shop's search: features of each result, and grades by a hidden intent.

    A visitor wants the official page and nothing else (navigate), one of many products (browse, the cheap or
    the dear ones), or reviews (research). How likely each intent is depends on the query: `brand` says how
    much it resembles the name of a maker, `words` how long it is. Both are the same for all results of a
    query, so that a linear score cannot use them; trees can. Where browsing is likelier than navigating,
    most pairs of results count against the official page, and yet it may belong on top: by NDCG a page that
    alone serves a visitor is worth more than one of many. Losses that compare pairs of grades miss that.

    Parameters
    ----------
    n_queries
        Number of sessions; each is a separate query.
    n_items
        Results per query: a number, or the least and the most.
    seed
        Equal seeds give equal data.

    Returns
    -------
    Synthetic
        `features` names the columns of X.

    Examples
    --------
    >>> log = search_log(n_queries=3, n_items=6)
    >>> log.features
    ('official', 'match', 'reviews', 'price', 'freshness', 'brand', 'words')
    >>> log.distribution
    LabelDistribution(4 outcomes of kind Grades, Queries(3 queries, 18 rows))
    """
    least, most = _least_and_most(n_items)
    check_counts(n_queries=n_queries)
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(least, most + 1, n_queries))
    queries = Queries.from_ids(qid)
    brand, words = rng.random(n_queries), rng.integers(1, 8, n_queries)
    # Rows: official, match, reviews, price, freshness; the first result of a query is the official page.
    true = rng.standard_normal((5, len(qid)))
    true[0] = 0.0
    true[0, queries.offsets[:-1]] = 2.0
    observed = true + BLUR * rng.standard_normal(true.shape)
    X = np.column_stack([*observed, brand[qid], words[qid].astype(np.float64)])
    distribution = LabelDistribution(_grade_by_intent(true), _intents(brand, words), queries)
    return Synthetic(X, distribution.sample(rng), qid, distribution, FEATURES)


def _grade_by_intent(true: FloatArray) -> tuple[FloatArray, ...]:
    official, match, reviews, price, _ = true
    fits = np.digitize(match, (-0.3, 0.5, 1.3)).astype(np.float64)
    page = official > 1.0
    research = np.digitize(reviews, (0.8, 1.6)) * 2.0
    cheap, premium = (np.where(is_wanted & ~page, fits, 0.0) for is_wanted in (price < 0.3, price > 0.3))
    return 4.0 * page, cheap, premium, research


def _intents(brand: FloatArray, words: IntArray) -> FloatArray:
    """Probability of each intent, one row per query."""
    navigate = 0.05 + 0.75 * brand**2
    research = (1.0 - navigate) * words / 10.0
    browse = 1.0 - navigate - research
    return np.column_stack([navigate, 0.65 * browse, 0.35 * browse, research])


# Full orders from Plackett-Luce and Mallows models, with their exact distribution.

ORDER_MODELS = ("mallows", "plackett-luce")


def permutations(
    n_queries: int = 200,
    n_items: int | tuple[int, int] = (3, 8),
    n_features: int = 10,
    n_labels: int = 6,
    *,
    model: str = "plackett-luce",
    spread: float = 1.0,
    shuffle: bool = False,
    seed: int = 0,
) -> Synthetic:
    """Full orders from a Plackett-Luce or Mallows model around the latent scores, on a finite support.

    The support of a query is all orders where there are at most `n_labels` of them (then the distribution is
    the model itself), else the distinct orders among `n_labels` draws, at the model's probabilities
    conditioned on the support. `spread` near 0 concentrates on the order of the scores. The rest as in
    `grades`.

    Examples
    --------
    >>> toy = permutations(n_queries=2, n_items=3, seed=0)  # 3 items: all 6 orders
    >>> toy.distribution.probs.sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    if model not in ORDER_MODELS:
        raise UnknownNameError("order model", model, ORDER_MODELS)
    if not spread > 0:
        raise ParameterError("spread", spread, "positive")
    check_counts(n_labels=n_labels)
    rng = np.random.default_rng(seed)
    items = _draw_items(rng, n_queries, n_items, n_features, 1, noise=0.0, shuffle=shuffle)
    positions = np.empty((n_labels, items.queries.n_rows), dtype=np.int64)
    probs = np.zeros((n_queries, n_labels))
    in_queries = items.queries.order
    for query, (n, start) in enumerate(_sizes_and_starts(items.queries)):
        rows = in_queries[start : start + n]
        orders, distinct = _draw_support(rng, items.latent[0, rows] / spread, n_labels)
        positions[:, rows] = orders.argsort(axis=1) + 1
        likelihood = _order_log_likelihood(model, items.latent[0, rows] / spread, orders, 1 / spread)
        weights = np.exp(likelihood - likelihood[distinct].max()) * distinct
        probs[query] = weights / weights.sum()
    return _finish(items, tuple(Permutations(row) for row in positions), probs, rng)


def _draw_support(rng: np.random.Generator, scores: FloatArray, n_labels: int) -> tuple[IntArray, BoolArray]:
    """Draw `n_labels` orders of the items; also return which are not repetitions of earlier ones."""
    n = len(scores)
    if n <= 20 and math.factorial(n) <= n_labels:
        orders = np.array(list(itertools.permutations(range(n))))
        orders = np.r_[orders, np.repeat(orders[:1], n_labels - len(orders), axis=0)]
    else:  # the order of scores with Gumbel noise is a Plackett-Luce draw
        orders = np.argsort(-(scores + rng.gumbel(size=(n_labels, n))), axis=1)
    distinct = np.zeros(n_labels, dtype=bool)
    distinct[np.unique(orders, axis=0, return_index=True)[1]] = True
    return orders, distinct


def _order_log_likelihood(model: str, scores: FloatArray, orders: IntArray, theta: float) -> FloatArray:
    """Log-probability of each order up to a constant; Mallows is centred at the order of the scores."""
    ranked = scores[orders]
    if model == "mallows":
        inversions = np.triu(ranked[:, :, None] < ranked[:, None, :], 1).sum(axis=(1, 2))
        cost: FloatArray = theta * inversions
        return -cost
    remaining = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    total: FloatArray = (ranked - remaining).sum(axis=1)
    return total
