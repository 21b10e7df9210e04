"""Full orders from Plackett-Luce and Mallows models, with their exact distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.supervision.labels import Permutations
from concordant.supervision.synthetic.items import (
    Synthetic,
    check_counts,
    draw_items,
    finish,
    sizes_and_starts,
)
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["permutations"]

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
    the model itself), else the distinct ones among `n_labels` draws, at the model's probabilities conditioned
    on the support. `spread` near 0 concentrates on the order of the scores. The rest as in `grades`.

    Examples
    --------
    >>> toy = permutations(n_queries=2, n_items=3, seed=0)  # 3 items: all 6 orders
    >>> toy.distribution.probs.sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    if model not in ORDER_MODELS:
        raise UnknownNameError("order model", model, ORDER_MODELS)
    if not spread > 0:
        raise ParameterError("spread", spread, "above 0")
    check_counts(n_labels=n_labels)
    rng = np.random.default_rng(seed)
    items = draw_items(rng, n_queries, n_items, n_features, 1, noise=0.0, shuffle=shuffle)
    positions = np.empty((n_labels, items.queries.n_rows), dtype=np.int64)
    probs = np.zeros((n_queries, n_labels))
    in_queries = items.queries.order
    for query, (n, start) in enumerate(sizes_and_starts(items.queries)):
        rows = in_queries[start : start + n]
        orders, distinct = support(rng, items.latent[0, rows] / spread, n_labels)
        positions[:, rows] = orders.argsort(axis=1) + 1
        likelihood = order_log_likelihood(model, items.latent[0, rows] / spread, orders, 1 / spread)
        weights = np.exp(likelihood - likelihood[distinct].max()) * distinct
        probs[query] = weights / weights.sum()
    return finish(items, tuple(Permutations(row) for row in positions), probs, rng)


def support(rng: np.random.Generator, scores: FloatArray, n_labels: int) -> tuple[IntArray, BoolArray]:
    """Give `n_labels` orders of the items, and which of them are not repetitions of earlier ones."""
    n = len(scores)
    if n <= 20 and math.factorial(n) <= n_labels:
        orders = np.array(list(itertools.permutations(range(n))))
        orders = np.r_[orders, np.repeat(orders[:1], n_labels - len(orders), axis=0)]
    else:  # the order of scores with Gumbel noise is a Plackett-Luce draw
        orders = np.argsort(-(scores + rng.gumbel(size=(n_labels, n))), axis=1)
    distinct = np.zeros(n_labels, dtype=bool)
    distinct[np.unique(orders, axis=0, return_index=True)[1]] = True
    return orders, distinct


def order_log_likelihood(model: str, scores: FloatArray, orders: IntArray, theta: float) -> FloatArray:
    """Log-probability of each order up to a constant; Mallows is centred at the order of the scores."""
    ranked = scores[orders]
    if model == "mallows":
        inversions = np.triu(ranked[:, :, None] < ranked[:, None, :], 1).sum(axis=(1, 2))
        cost: FloatArray = theta * inversions
        return -cost
    remaining = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    total: FloatArray = (ranked - remaining).sum(axis=1)
    return total
