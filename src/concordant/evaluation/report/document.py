"""Report: all parts, and the ways out: plain values, or one HTML file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from concordant.evaluation.condition_plots import check_page
from concordant.evaluation.plots import need_plotly
from concordant.evaluation.report.pieces import (
    Calibration,
    Certified,
    Conventions,
    Counts,
    Distribution,
    Gains,
    Judged,
    Learning,
    MetricRow,
    Weights,
    WorstQuery,
)
from concordant.rankers.certificate import plain
from concordant.supervision.readers.text import write_atomically

__all__ = ["Report"]


@dataclass(frozen=True, repr=False)
class Report:
    """What a ranker is worth on judged queries, against a baseline.

    Attributes
    ----------
    title
        What stands on top.
    judged
        Data, model, baseline, version.
    metrics
        A row per metric, the headline first: means with intervals, the difference, its p-value.
    conventions
        The rules by which ties, empty queries and the rest count, and the headline under other tools' rules.
    distribution, gains
        The headline metric by query: how it is spread, and where the model gains and loses.
    learning
        Curves of the training, as far as they are known.
    calibration
        Mean grade by score.
    certificate
        What is guaranteed; None where the model has none.
    weights
        What features count for, or why that is not known.
    worst
        The queries of lowest value, with the heads of their rankings.
    counts
        Ties, empty queries and the like.
    confidence, n_boot
        Confidence of all intervals, and bootstrap resamples of the queries.
    """

    title: str
    judged: Judged
    metrics: tuple[MetricRow, ...]
    conventions: Conventions
    distribution: Distribution
    gains: Gains
    learning: Learning
    calibration: Calibration
    certificate: Certified | None
    weights: Weights
    worst: tuple[WorstQuery, ...]
    counts: Counts
    confidence: float
    n_boot: int

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values, as JSON can hold them; what is not finite is None."""
        return {name: plain(value) for name, value in asdict(self).items()}

    def to_html(self) -> str:
        """Give the page: one text that asks for nothing else. Equal reports give equal pages."""
        need_plotly()
        from concordant.evaluation.report.sections import report_page

        return report_page(self)

    def write(self, path: str | Path) -> None:
        """Write the page, whole or not at all.

        Parameters
        ----------
        path
            Where to: FILE.html, in a folder that exists.
        """
        check_page(Path(path))
        page = self.to_html()
        with write_atomically(path) as stream:
            stream.write(page.encode())

    def __repr__(self) -> str:
        head = self.metrics[0]
        told = f"{head.metric} {head.model.value:.4f} against {head.baseline.value:.4f}"
        return f"Report({self.title!r}: {told}, {self.judged.n_queries:,} queries)"
