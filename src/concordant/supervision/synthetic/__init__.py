"""Generators that return the data and its exact label distribution, so that regret can be computed exactly.

>>> from concordant.supervision import synthetic
>>> toy = synthetic.grades(n_queries=2, n_items=3)
>>> toy.data
RankingData(n_rows=6, n_features=10, n_queries=2)
"""

from __future__ import annotations

from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.supervision.synthetic.items import Synthetic
from concordant.supervision.synthetic.orders import permutations
from concordant.supervision.synthetic.pairs import SyntheticComparisons, comparisons
from concordant.supervision.synthetic.queries import grades, preferences
from concordant.supervision.synthetic.search import search_log

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
