"""What a ranker is worth on judged queries, as plain values and as one HTML page."""

from concordant.evaluation.report.build import report
from concordant.evaluation.report.document import Report

__all__ = ["Report", "report"]
