"""Report: all parts, as plain values or as an HTML file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from concordant._base.files import write_atomically
from concordant.evaluation.outcome_plots import check_page, need_pages
from concordant.evaluation.report.report_values import (
    Caveats,
    CertificateSummary,
    Conventions,
    Distribution,
    FeatureWeights,
    Gains,
    GradeByScore,
    JudgedData,
    Learning,
    MetricRow,
    WorstQuery,
)
from concordant.rankers.fitted_certificate import to_plain


@dataclass(frozen=True, repr=False)
class Report:
    """Evaluation of a ranker on judged queries, against a baseline.

    Attributes
    ----------
    title
        Title of the page.
    judged
        Data, model, baseline, version.
    metrics
        A row per metric, the headline first: means with intervals, the difference, its p-value.
    conventions
        Rules for ties, empty queries and so on, and the headline under the rules of other tools.
    distribution, gains
        The headline metric by query: its distribution, and where the model gains and loses.
    learning
        Curves of the training, if there are any.
    calibration
        Mean grade by score.
    certificate
        Guarantees; None if the model has no certificate.
    weights
        Importance of the features, or the reason why it is unknown.
    worst
        Queries of lowest value, with the heads of their rankings.
    counts
        Ties, empty queries and so on.
    confidence, n_boot
        Confidence of all intervals, and bootstrap resamples of the queries.
    """

    title: str
    judged: JudgedData
    metrics: tuple[MetricRow, ...]
    conventions: Conventions
    distribution: Distribution
    gains: Gains
    learning: Learning
    calibration: GradeByScore
    certificate: CertificateSummary | None
    weights: FeatureWeights
    worst: tuple[WorstQuery, ...]
    counts: Caveats
    confidence: float
    n_boot: int

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values that JSON can hold; None for numbers that are not finite."""
        return {name: to_plain(value) for name, value in asdict(self).items()}

    def to_html(self) -> str:
        """Return the page, which loads nothing from elsewhere. Equal reports give equal pages."""
        need_pages()
        from concordant.evaluation.report.report_page import report_page

        return report_page(self)

    def write(self, path: str | Path) -> None:
        """Write the page atomically.

        Parameters
        ----------
        path
            FILE.html, in a folder that exists.
        """
        check_page(Path(path))
        page = self.to_html()
        with write_atomically(path) as stream:
            stream.write(page.encode())

    def __repr__(self) -> str:
        head = self.metrics[0]
        headline = f"{head.metric} {head.model.value:.4f} against {head.baseline.value:.4f}"
        return f"Report({self.title!r}: {headline}, {self.judged.n_queries:,} queries)"
