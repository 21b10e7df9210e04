"""Scores as functions of features."""

from concordant.scorers.linear import LinearScorer

__all__ = ["LinearScorer"]
