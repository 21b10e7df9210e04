"""Libraries of boosted trees behind one interface: what each is told, and how its trees are read."""

from collections.abc import Mapping

from concordant.rankers.boosters.booster import Booster
from concordant.rankers.boosters.catboost import CatBoost
from concordant.rankers.boosters.lightgbm import LightGBM
from concordant.rankers.boosters.xgboost import XGBoost

__all__ = ["BOOSTERS", "Booster"]

BOOSTERS: Mapping[str, Booster] = {one.name: one for one in (LightGBM(), XGBoost(), CatBoost())}
