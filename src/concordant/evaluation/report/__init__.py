"""Report on a ranker and judged queries, as plain values and as an HTML page."""

from concordant.evaluation.report.build import report
from concordant.evaluation.report.document import Report

__all__ = ["Report", "report"]
