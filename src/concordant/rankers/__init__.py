"""Estimators, one per file; `fit` reads supervision -> standardize -> surrogate -> solve -> decode."""

from concordant.rankers.boosted import BoostedRanker
from concordant.rankers.linear import LinearRanker
from concordant.rankers.linear_cv import LinearRankerCV
from concordant.rankers.maxmargin import MaxMarginRanker
from concordant.rankers.neural import NeuralRanker
from concordant.rankers.pair_ranker import PairRanker
from concordant.rankers.recipe import listwise_hinge

__all__ = [
    "BoostedRanker",
    "LinearRanker",
    "LinearRankerCV",
    "MaxMarginRanker",
    "NeuralRanker",
    "PairRanker",
    "listwise_hinge",
]
