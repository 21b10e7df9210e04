"""Estimators: one a file; `fit` reads supervision -> standardize -> surrogate -> solve -> decode."""

from concordant.rankers.linear import LinearRanker
from concordant.rankers.linear_cv import LinearRankerCV

__all__ = ["LinearRanker", "LinearRankerCV"]
