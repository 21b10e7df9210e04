"""The model itself: how it came about, what its scores mean, what is guaranteed, what features count for."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from concordant.evaluation.report.figures import calibration_figure, curve_figure, weights_figure
from concordant.evaluation.report.page import figure
from concordant.evaluation.report.pieces import Curve
from concordant.evaluation.report.scored import thinned
from concordant.evaluation.report.section import Section, none, number, numbers, plural, spoken

if TYPE_CHECKING:
    from concordant.evaluation.report.document import Report

__all__ = ["calibration_section", "certificate_section", "learning_section", "weights_section"]

NO_FEATURES = "There are no features."
MOST_ROWS = 20  # of the numbers of a curve
FEATURES = {
    "weights": "Each weight times the spread of its feature within queries: how far the score moves as the "
    "feature moves by its spread. Features that go together share their weight.",
    "importances": "Share of each feature in what the trees gained by splitting on it: how much it was used, "
    "not which way.",
    "foreign": "Importances as the model gives them; what they count depends on its library.",
    "drops": "The model does not say. Here each feature is shuffled within its queries, once, on up to 100 "
    "of them: what {metric} loses by that. Features that go together stand in for one another.",
}
AXES = {
    "weights": "weight times spread",
    "importances": "share in the gains",
    "foreign": "importance",
    "drops": "loss of {metric}",
}


def learning_section(report: Report) -> Section:
    """Give the curves of the training."""
    one = report.learning
    reading = "How the model came about: a curve that still rises asks for more rounds, or more queries."
    if not one.curves:
        return Section("learning", "Learning curve", reading, none(one.about))
    parts, drawn = [f"<p>{escape(one.about)}</p>"] if one.about else [], {}
    for place, curve in enumerate(one.curves):
        name, label = f"plot-learning-{place}", f"{curve.y_name} against {curve.x_name}"
        parts.append(f"<h3>{escape(curve.name)}</h3>{figure(name, label)}{curve_numbers(curve)}")
        drawn[name] = curve_figure(curve)
    return Section("learning", "Learning curve", reading, "".join(parts), drawn)


def curve_numbers(curve: Curve) -> str:
    """Give the numbers of a curve, with its intervals if it has any."""
    rows = [
        (
            f"{curve.x[i]:,.4g}",
            number(curve.y[i]),
            *([spoken(curve.low[i], curve.high[i], 4) or "-"] if curve.low else []),
        )
        for i in thinned(len(curve.x), MOST_ROWS)
    ]
    return numbers((curve.x_name, curve.y_name, *["from, to"] * bool(curve.low)), rows)


def calibration_section(report: Report) -> Section:
    """Give the mean grade by score."""
    one = report.calibration
    reading = (
        "Rows by score, in up to ten groups of about as many: the mean grade should rise with the score. "
        "Scores of a ranker are no probabilities, and need not be comparable between queries: calibration "
        f"can mean no more here. Bars: {report.confidence:.0%} intervals, a query being one observation."
    )
    if not one.bins:
        return Section("calibration", "Calibration", reading, none("No row is in the ranking."))
    rows = [
        (
            f"{each.lowest:.4g} to {each.highest:.4g}",
            f"{each.grade:.3f}",
            spoken(each.low, each.high, 3) or "-",
            f"{each.n_rows:,}",
        )
        for each in one.bins
    ]
    body = figure("plot-calibration", "Mean grade against mean score")
    if one.n_left_out:
        left = plural(one.n_left_out, "row is", "rows are")
        body += f'<p class="dim">{left} not in the ranking, and left out.</p>'
    body += numbers(("scores", "mean grade", "interval", "rows"), rows)
    return Section("calibration", "Calibration", reading, body, {"plot-calibration": calibration_figure(one)})


def certificate_section(report: Report) -> Section:
    """Say what is guaranteed, and what bounds the risk."""
    one = report.certificate
    reading = "What theory promises of this combination of metric, loss and decoder, and what it does not."
    if one is None:
        text = "There is no certificate: only models fitted by this library have one."
        return Section("certificate", "Certificate", reading, none(text))
    badge = f'<span class="status {escape(one.status)}">{escape(one.status)}</span>'
    parts = [
        ("What is known", one.guaranteed),
        ("What is not promised", one.limits),
        ("How well it was fitted", one.fitted),
        ("From the loss to the metric", one.regret),
        ("Bound on the risk", bounded(one.risk, vacuous=one.vacuous)),
    ]
    body = "\n".join(f"<h3>{name}</h3>\n<p>{escape(text)}</p>" for name, text in parts if text)
    return Section("certificate", "Certificate", reading, f"<p>{badge} {escape(one.plain)}</p>\n{body}")


def bounded(risk: str, *, vacuous: bool | None) -> str:
    """Say plainly whether the bound says anything."""
    if vacuous is None:
        return risk
    if vacuous:
        return f"The bound is vacuous: it says nothing of this model. {risk}"
    return f"The bound is not vacuous. {risk}"


def weights_section(report: Report) -> Section:
    """Give weights or importances."""
    one, metric = report.weights, report.conventions.metric
    if not one.names:
        return Section("weights", "Features", "What the features count for.", none(one.about or NO_FEATURES))
    axis = AXES[one.kind].format(metric=metric)
    rows = [(escape(name), f"{value:.4g}") for name, value in zip(one.names, one.values, strict=True)]
    shown, drawn = len(one.names), {"plot-weights": weights_figure(one, axis)}
    body = f'<p class="dim">The {shown} largest of {one.n_features:,}.</p>' * (shown < one.n_features)
    body += figure("plot-weights", f"What features count for, the largest first: {axis}")
    body += numbers(("feature", axis), rows, text=["feature"])
    return Section("weights", "Features", FEATURES[one.kind].format(metric=metric), body, drawn)
