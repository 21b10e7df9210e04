"""Ranking metrics as values, each with its convention."""

from concordant.metrics.additive import DCG, ERU, NDCG, Precision
from concordant.metrics.cascade import AP, ERR, RR
from concordant.metrics.comparison import ROC, ComparisonAUC, ComparisonError, comparison_roc
from concordant.metrics.convention import PRESETS, Convention, convention
from concordant.metrics.explain import Explanation, explain
from concordant.metrics.metric import CONDITIONS, Metric, MetricValue
from concordant.metrics.order_metric import ZeroOne
from concordant.metrics.pair_metrics import AUC, PD, WPD
from concordant.metrics.parse import ALIASES, METRICS, metric
from concordant.metrics.standardization import standardize

__all__ = [
    "ALIASES", "AP", "AUC", "CONDITIONS", "DCG", "ERR", "ERU", "METRICS", "NDCG", "PD", "PRESETS", "ROC",
    "RR", "WPD",
    "ComparisonAUC", "ComparisonError", "Convention", "Explanation", "Metric", "MetricValue", "Precision",
    "ZeroOne",
    "comparison_roc", "convention", "explain", "metric", "standardize",
]  # fmt: skip
