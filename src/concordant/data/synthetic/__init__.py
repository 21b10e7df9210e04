"""Synthetic data with the exact distribution of the labels, so that regret can be computed exactly.

>>> from concordant.data import synthetic
>>> toy = synthetic.grades(n_queries=2, n_items=3)
>>> toy.data
RankingData(n_rows=6, n_features=10, n_queries=2)
"""

from __future__ import annotations

from concordant.data.synthetic.distribution import Label, LabelDistribution
from concordant.data.synthetic.graded_queries import Synthetic, grades, permutations, preferences, search_log
from concordant.data.synthetic.tied_pairs import SyntheticComparisons, comparisons

__all__ = [
    "Label",
    "LabelDistribution",
    "Synthetic",
    "SyntheticComparisons",
    "comparisons",
    "grades",
    "permutations",
    "preferences",
    "search_log",
]
