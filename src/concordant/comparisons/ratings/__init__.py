"""Ratings of items from votes on pairs: models of strengths with ties, and ratings that follow time."""

from concordant.comparisons.ratings.history import History, to_features
from concordant.comparisons.ratings.leaderboard import Leaderboard, Row
from concordant.comparisons.ratings.models import BradleyTerry, Davidson, Elo, Glicko, RaoKupper

__all__ = [
    "BradleyTerry",
    "Davidson",
    "Elo",
    "Glicko",
    "History",
    "Leaderboard",
    "RaoKupper",
    "Row",
    "to_features",
]
