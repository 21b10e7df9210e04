"""Graded queries and preference graphs, each with its exact label distribution."""

from __future__ import annotations

import numpy as np

from concordant.exceptions import ParameterError
from concordant.supervision.labels import Preferences
from concordant.supervision.synthetic.items import (
    Synthetic,
    check_counts,
    check_noise,
    draw_items,
    finish,
    sizes_and_starts,
)

__all__ = ["grades", "preferences"]


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

    Intent `s` grades by its own direction in feature space plus noise; half of the items have grade 0 and
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
    items = draw_items(rng, n_queries, n_items, n_features, n_labels, noise=noise, shuffle=shuffle)
    thresholds = norm.isf(0.5 ** np.arange(1, n_levels))
    labels = tuple(np.searchsorted(thresholds, row).astype(np.float64) for row in items.latent)
    return finish(items, labels, items.probs, rng)


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
    if not 0 < share <= 1:
        raise ParameterError("share", share, "above 0 and at most 1")
    check_noise(noise)
    rng = np.random.default_rng(seed)
    items = draw_items(rng, n_queries, n_items, n_features, n_labels, noise=0.0, shuffle=shuffle)
    pairs = [np.transpose(np.triu_indices(n, 1)) + start for n, start in sizes_and_starts(items.queries)]
    first, second = items.queries.order[np.concatenate(pairs)].T
    labels = []
    for latent in items.latent:
        seen = rng.random(len(first)) <= share
        above = latent[first] - latent[second] + noise * rng.standard_normal(len(first)) > 0
        better, worse = np.where(above, first, second), np.where(above, second, first)
        labels.append(Preferences(better[seen], worse[seen], items.queries.n_rows))
    return finish(items, tuple(labels), items.probs, rng)
