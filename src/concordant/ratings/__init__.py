"""Ratings of items from votes on pairs: models of strengths with ties, and ratings that follow time."""

from concordant.ratings.elo import Elo
from concordant.ratings.glicko import Glicko
from concordant.ratings.history import History, to_features
from concordant.ratings.leaderboard import Leaderboard, Row
from concordant.ratings.models import BradleyTerry, Davidson, RaoKupper

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
