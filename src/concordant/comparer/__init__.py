"""Learning from pairs with ties."""

from concordant.comparer.comparer import Comparer

__all__ = ["Comparer"]
