"""Libraries of boosted trees behind a common interface: how each is called, and how its trees are read."""

from collections.abc import Mapping

from concordant.rankers.boosters.booster import Booster
from concordant.rankers.boosters.catboost import CatBoost
from concordant.rankers.boosters.lightgbm import LightGBM
from concordant.rankers.boosters.xgboost import XGBoost

__all__ = ["BOOSTERS", "Booster"]

BOOSTERS: Mapping[str, Booster] = {booster.name: booster for booster in (LightGBM(), XGBoost(), CatBoost())}
