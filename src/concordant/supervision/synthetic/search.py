"""A search log whose truth is known: what every visitor of a query would have called relevant."""

from __future__ import annotations

import numpy as np

from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import LabelDistribution
from concordant.supervision.synthetic.items import Synthetic, check_counts, least_and_most
from concordant.types import FloatArray, IntArray

__all__ = ["FEATURES", "search_log"]

FEATURES = ("official", "match", "reviews", "price", "freshness", "brand", "words")
INTENTS = ("navigate", "browse cheap", "browse premium", "research")
BLUR = 0.4  # standard deviation of what features do not show of an item


def search_log(n_queries: int = 500, n_items: int | tuple[int, int] = (6, 30), *, seed: int = 0) -> Synthetic:
    """Sessions of a shop's search: features of each result, and grades by an intent that nobody sees.

    A visitor wants the official page and nothing else (navigate), one of many products (browse, the cheap or
    the dear ones), or reviews (research). How likely each intent is depends on the query: `brand` says how
    much it looks like the name of a maker, `words` how long it is. Both are the same for all results of a
    query, so that a linear score cannot use them; trees can. Where browsing is likelier than navigating,
    most pairs of results speak against the official page, and yet it may belong on top: by NDCG a page that
    alone serves a visitor is worth more than one of many. Losses that compare pairs of grades miss that.

    Parameters
    ----------
    n_queries
        Sessions; each is a query of its own.
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
    least, most = least_and_most(n_items)
    check_counts(n_queries=n_queries)
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(least, most + 1, n_queries))
    queries = Queries.from_ids(qid)
    brand, words = rng.random(n_queries), rng.integers(1, 8, n_queries)
    # Rows: official, match, reviews, price, freshness; the first result of a query is the official page.
    true = rng.standard_normal((5, len(qid)))
    true[0] = 0.0
    true[0, queries.offsets[:-1]] = 2.0
    seen = true + BLUR * rng.standard_normal(true.shape)
    X = np.column_stack([*seen, brand[qid], words[qid].astype(np.float64)])
    distribution = LabelDistribution(graded(true), intents(brand, words), queries)
    return Synthetic(X, distribution.sample(rng), qid, distribution, FEATURES)


def graded(true: FloatArray) -> tuple[FloatArray, ...]:
    """Give the grades of all rows by each intent."""
    official, match, reviews, price, _ = true
    fits = np.digitize(match, (-0.3, 0.5, 1.3)).astype(np.float64)
    page = official > 1.0
    told = np.digitize(reviews, (0.8, 1.6)) * 2.0
    return 4.0 * page, *(np.where(wanted & ~page, fits, 0.0) for wanted in (price < 0.3, price > 0.3)), told


def intents(brand: FloatArray, words: IntArray) -> FloatArray:
    """Give the probability of each intent, one row per query."""
    navigate = 0.05 + 0.75 * brand**2
    research = (1.0 - navigate) * words / 10.0
    browse = 1.0 - navigate - research
    return np.column_stack([navigate, 0.65 * browse, 0.35 * browse, research])
