"""Objectives and metrics for training code of one's own: what LightGBM and XGBoost call in every round."""

from concordant.objectives.for_lightgbm import LightGBMMetric, LightGBMObjective, lightgbm, lightgbm_metric
from concordant.objectives.for_xgboost import XGBoostMetric, XGBoostObjective, xgboost, xgboost_metric

__all__ = [
    "LightGBMMetric",
    "LightGBMObjective",
    "XGBoostMetric",
    "XGBoostObjective",
    "lightgbm",
    "lightgbm_metric",
    "xgboost",
    "xgboost_metric",
]
