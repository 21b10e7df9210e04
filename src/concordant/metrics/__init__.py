"""What a ranking is worth: metrics as values, each with its convention."""

from concordant.metrics.additive import DCG, ERU, NDCG, Precision
from concordant.metrics.cascade import AP, ERR, RR
from concordant.metrics.comparison import ROC, ComparisonAUC, ComparisonError, comparison_roc
from concordant.metrics.conditions import CONDITIONS
from concordant.metrics.convention import PRESETS, Convention, convention
from concordant.metrics.explain import Explanation, explain
from concordant.metrics.metric import Metric, MetricValue
from concordant.metrics.orders import ZeroOne
from concordant.metrics.pairwise import AUC, PD, WPD
from concordant.metrics.parse import ALIASES, METRICS, metric
from concordant.metrics.standardization import standardize

__all__ = [
    "ALIASES", "AP", "AUC", "CONDITIONS", "DCG", "ERR", "ERU", "METRICS", "NDCG", "PD", "PRESETS", "ROC",
    "RR", "WPD",
    "ComparisonAUC", "ComparisonError", "Convention", "Explanation", "Metric", "MetricValue", "Precision",
    "ZeroOne",
    "comparison_roc", "convention", "explain", "metric", "standardize",
]  # fmt: skip
