"""Outcomes of pairs: scores against their definitions, and a bootstrap that errs as often as it says."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import log_loss as sklearn_log_loss

from concordant.data.labels import Comparisons
from concordant.evaluation import (
    OutcomeReport,
    calibration_table,
    evaluate_outcomes,
    log_loss,
    outcome_plots,
    paired_auc,
    plot_calibration,
    plot_roc,
    trivial_roc,
)
from concordant.evaluation.outcomes import Area
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    MissingExtraError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from concordant.metrics.comparison import comparison_roc
from tests import oracles

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("ignore:no outcome is -1")]

SIZES = st.sampled_from([-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, np.inf])
EIGHTHS = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda cut: np.diff([0, *sorted(cut), 8]) / 8)


@st.composite
def judged(draw, least=1):
    n = draw(st.integers(least, 12))
    outcomes = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n))
    decisions = draw(st.lists(SIZES, min_size=n, max_size=n))
    probabilities = draw(st.lists(EIGHTHS, min_size=n, max_size=n))
    return outcomes, decisions, probabilities


# ---------------------------------------------------------------- the report


@given(judged(), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_report_is_what_the_definitions_say(data, tau):
    y, decisions, probabilities = data
    report = evaluate_outcomes(y, decisions, tau=tau, probabilities=probabilities)
    assert report.n == len(y) == report.confusion.sum()
    assert report.confusion.tolist() == oracles.confusion(y, decisions, tau)
    assert report.error == pytest.approx(oracles.comparison_error(y, decisions, tau), abs=1e-12)
    if 0 in y and set(y) != {0}:
        assert report.auc == pytest.approx(oracles.comparison_area(y, decisions), abs=1e-12)
        unsigned = oracles.comparison_area(y, decisions, ignore_inversions=True)
        assert report.auc_unsigned == pytest.approx(unsigned, abs=1e-12)
    else:
        assert np.isnan([report.auc, report.auc_unsigned]).all()
    losses = report.log_loss, report.brier, report.ranked_probability
    assert losses == pytest.approx(oracles.outcome_scores(y, probabilities, 1e-15), abs=1e-12)
    assert report.n_clipped == sum(p[outcome + 1] == 0 for outcome, p in zip(y, probabilities, strict=True))
    bins = oracles.calibration_bins(y, probabilities, 10)
    off = sum(count * abs(mean - share) for _, mean, share, count in bins) / (3 * len(y))
    assert report.calibration_error == pytest.approx(off, abs=1e-12)


def test_without_probabilities_there_is_nothing_to_say_of_them():
    report = evaluate_outcomes(Comparisons(["a", "b"], ["b", "c"], [1, 0]), [2.0, 0.0])
    values = report.log_loss, report.brier, report.ranked_probability, report.calibration_error
    assert np.isnan(values).all()
    assert (report.auc, report.n_clipped) == (1.0, 0)
    assert repr(report).startswith("OutcomeReport(n=2, error=0.0000, auc=1.0000")


def test_impossible_outcomes_are_finite_and_counted():
    report = evaluate_outcomes([1, 0, 0], [1.0, 0.0, 0.0], probabilities=np.eye(3))
    assert report.n_clipped == 2
    assert report.log_loss == pytest.approx(2 / 3 * -math.log(1e-15))
    assert "n_clipped=2" in repr(report)
    assert isinstance(report, OutcomeReport)


def test_log_loss_is_that_of_sklearn():
    rng = np.random.default_rng(0)
    y, p = rng.integers(-1, 2, 50), rng.dirichlet(np.ones(3), 50)
    assert log_loss(y, p) == pytest.approx(sklearn_log_loss(y, p, labels=[-1, 0, 1]), abs=1e-12)
    assert log_loss(y, p.astype(np.float32)) == pytest.approx(log_loss(y, p), abs=1e-6)


def test_rounding_of_probabilities_is_forgiven():
    assert log_loss([1], [[0.5, -1e-9, 0.5]]) == pytest.approx(math.log(2))


# ---------------------------------------------------------------- calibration


@given(judged(), st.integers(1, 6))
def test_bins_are_what_the_definition_says(data, n_bins):
    y, _, probabilities = data
    table = calibration_table(y, probabilities, n_bins=n_bins)
    rows = zip(table.outcome, table.predicted, table.observed, table.count, strict=True)
    expected = oracles.calibration_bins(y, probabilities, n_bins)
    assert np.array(list(rows)) == pytest.approx(np.array(expected), abs=1e-12)
    assert (table.low <= table.observed + 1e-12).all()
    assert (table.observed <= table.high + 1e-12).all()


def test_intervals_are_those_of_scipy():
    y = np.repeat([-1, 0, 1], [3, 0, 17])
    table = calibration_table(y, np.full((20, 3), 1 / 3), level=0.9)
    for k, hits in enumerate((3, 0, 17)):
        exact = stats.binomtest(hits, 20).proportion_ci(0.9, method="wilson")
        assert (table.low[k], table.high[k]) == pytest.approx((exact.low, exact.high), abs=1e-12)


def simulated(n, seed, stretch=1.0):
    """Outcomes of known probabilities, and those a model gives that takes the noise for `stretch`."""
    rng, normal = np.random.default_rng(seed), statistics.NormalDist()
    gap = rng.normal(0.0, 1.5, n)
    noisy = gap + rng.normal(size=n)
    lose, win = (np.array([normal.cdf(v) for v in (sign * gap - 1) / stretch]) for sign in (-1, 1))
    y = np.where(noisy > 1, 1, np.where(noisy < -1, -1, 0))
    return y, gap, np.stack((lose, 1 - lose - win, win), axis=1)


def check_calibrated(y, probabilities):
    """No more bins than chance allows lie outside their intervals."""
    table = calibration_table(y, probabilities, level=0.999)
    outside = (table.predicted < table.low) | (table.predicted > table.high)
    assert outside.mean() < 0.1


def test_true_probabilities_are_calibrated_and_overconfident_ones_are_not():
    y, _, honest = simulated(4000, 0)
    check_calibrated(y, honest)
    for wrong in (0.5, 2.0):
        with pytest.raises(AssertionError):
            check_calibrated(y, simulated(4000, 0, wrong)[2])


# ---------------------------------------------------------------- the trivial model


def test_the_trivial_curve_has_two_corners():
    curve = trivial_roc([-1, -1, 1, 0], [-1, 1, 1, 1, 0, 0])
    assert (curve.false_positive[1], curve.true_positive[1]) == (1.0, 0.25)
    assert curve.area == 0.125
    assert trivial_roc([1, -1, 0], [-1, -1, 1, 0]).area == pytest.approx(1 / 3)  # equal counts: -1
    assert trivial_roc([], [-1, 0]).area == 0.5
    with pytest.raises(LabelError, match="needs ties and differences"):
        trivial_roc([1], [1, 1])


# ---------------------------------------------------------------- paired areas


@given(judged(2), st.data())
def test_weighted_areas_are_areas_of_repeated_pairs(data, more):
    y, decisions, _ = data
    counts = np.array(more.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    rows = np.repeat(np.arange(len(y)), counts)
    outcomes, values = np.array(y), np.array(decisions)
    for how in ("error", "ignored"):
        area = Area.from_decisions(outcomes, values, how).at(counts.astype(float))
        if 0 < (outcomes[rows] == 0).sum() < len(rows):
            expected = oracles.comparison_area(
                outcomes[rows].tolist(), values[rows].tolist(), ignore_inversions=how == "ignored"
            )
            assert area == pytest.approx(expected, abs=1e-12)
        else:
            assert np.isnan(area)


@pytest.mark.parametrize("clusters", [None, "few"])
def test_the_bootstrap_is_that_of_areas_computed_anew(clusters):
    rng = np.random.default_rng(3)
    y = rng.integers(-1, 2, 18)
    a, b = np.round(y + rng.normal(size=(2, 18)), 1)
    groups = rng.permutation(18) // 3
    ids = None if clusters is None else groups
    result = paired_auc(y, a, b, n_resamples=60, seed=5, clusters=ids)
    draws = np.random.default_rng(5)
    n = 18 if ids is None else 6
    resamples = [
        [
            row
            for pick in draws.integers(0, n, n)
            for row in ([pick] if ids is None else np.flatnonzero(groups == pick))
        ]
        for _ in range(60)
    ]
    differences = np.array(oracles.resampled_area_differences(y, a, b, resamples))
    assert (result.low, result.high) == pytest.approx(np.quantile(differences, [0.025, 0.975]), abs=1e-12)
    assert (result.n_clusters, result.n_resamples) == (n, len(differences))
    rarer = min((differences <= 1e-12).sum(), (differences >= -1e-12).sum())
    assert result.p_value == pytest.approx(min(1.0, 2 * (1 + rarer) / (1 + len(differences))))
    assert result.auc_a == pytest.approx(oracles.comparison_area(y, a))
    assert result.difference == pytest.approx(result.auc_a - oracles.comparison_area(y, b))


def rejections(n_experiments, experiment):
    """How often the p-value is at most 0.05, over experiments in which both models are equally good."""
    return sum(experiment(seed).p_value <= 0.05 for seed in range(n_experiments))


def null_experiment(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 2, 120)
    a, b = y + rng.normal(0.0, 1.5, (2, 120))
    return paired_auc(y, a, b, n_resamples=150, seed=seed)


def clustered_experiment(seed, *, with_clusters):
    """Every pair stands six times in the data: only a bootstrap over clusters knows how few there are."""
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 2, 60)
    a, b = y + rng.normal(0.0, 1.5, (2, 60))
    rows = np.repeat(np.arange(60), 6)
    return paired_auc(
        y[rows], a[rows], b[rows], n_resamples=120, seed=seed, clusters=rows if with_clusters else None
    )


def check_level(n_rejected, n_experiments):
    """The count is one that a level of 0.05 gives, but for one time in a thousand."""
    assert stats.binomtest(n_rejected, n_experiments, 0.05).pvalue > 1e-3


@pytest.mark.slow
def test_equal_models_differ_as_rarely_as_the_level_says():
    check_level(rejections(150, null_experiment), 150)
    check_level(rejections(100, lambda seed: clustered_experiment(seed, with_clusters=True)), 100)
    with pytest.raises(AssertionError):
        check_level(rejections(100, lambda seed: clustered_experiment(seed, with_clusters=False)), 100)


def test_a_better_model_is_found_and_signs_follow():
    y, gap, _ = simulated(600, 1)
    worse = gap + np.random.default_rng(2).normal(0.0, 3.0, 600)
    result, turned = (paired_auc(y, *both, n_resamples=300) for both in ((gap, worse), (worse, gap)))
    assert result.p_value == turned.p_value < 0.01
    mirrored = -turned.difference, -turned.high, -turned.low
    assert (result.difference, result.low, result.high) == pytest.approx(mirrored, abs=1e-12)
    assert 0 < result.low < result.difference < result.high


def test_equal_orders_are_equal_models():
    y, gap, _ = simulated(50, 1)
    same = paired_auc(y, gap, 3 * gap, n_resamples=50)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_resamples_without_a_tie_are_left_out():
    result = paired_auc([0, 1, 1], [0.0, 1.0, -1.0], [0.0, 1.0, 1.0], n_resamples=200)
    assert 100 < result.n_resamples < 200
    two = paired_auc([0, 1], [0.0, 1.0], [0.0, -1.0], n_resamples=1, seed=3)
    assert two.n_resamples in (0, 1)


# ---------------------------------------------------------------- plots


def test_plots_hold_every_model(tmp_path):
    y, gap, p = simulated(3000, 0)
    curves = {"model <a>": comparison_roc(y, gap), "trivial": trivial_roc(y, y)}
    figure = outcome_plots.roc_figure(curves)
    assert [trace.name for trace in figure.data if trace.name] == [
        f"{name}: area {curve.area:.3f}" for name, curve in curves.items()
    ]
    assert max(len(trace.x) for trace in figure.data) <= 1000
    table = calibration_table(y, p)
    panels = outcome_plots.calibration_figure({"one": table, "two": table})
    assert len(panels.data) == 3 * (1 + 2)
    assert sum(bool(trace.showlegend) for trace in panels.data) == 2
    for plot, what in ((plot_roc, curves), (plot_calibration, table)):
        plot(what, tmp_path / "plot.html")
        assert (tmp_path / "plot.html").stat().st_size > 1_000_000  # plotly itself is in the file


def test_thin_curves_keep_both_ends_and_the_area():
    y, gap, _ = simulated(3000, 4)
    curve = comparison_roc(y, gap)
    x, up = curve.false_positive[:-1], curve.true_positive[:-1]
    shown = outcome_plots.thin_curve(x, up)
    assert (shown[0], shown[-1]) == (0, len(x) - 1)
    assert np.trapezoid(up[shown], x[shown]) == pytest.approx(np.trapezoid(up, x), abs=2e-3)


def test_plots_of_nothing(tmp_path, monkeypatch):
    with pytest.raises(EmptyDataError, match="curves"):
        plot_roc({}, tmp_path / "a.html")
    with pytest.raises(EmptyDataError, match="tables"):
        plot_calibration({}, tmp_path / "a.html")
    with pytest.raises(ParameterError, match=r"ends in \.html"):
        plot_roc({}, tmp_path / "a.png")
    monkeypatch.setattr("concordant.evaluation.outcome_plots.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="plotly"):
        plot_roc({}, tmp_path / "a.html")


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: evaluate_outcomes([], []), EmptyDataError, "y has no rows"),
        (lambda: evaluate_outcomes([1, 2], [0.0, 0.0]), LabelError, "not -1, 0 or 1"),
        (lambda: evaluate_outcomes([1], [0.0, 0.0]), LengthMismatchError, "decision has 2"),
        (lambda: evaluate_outcomes([1], [np.nan]), NonFiniteError, "every pair needs"),
        (lambda: evaluate_outcomes([1], [1.0], tau=-1.0), ParameterError, "tau must be"),
        (lambda: evaluate_outcomes([1], [1.0], probabilities=[[0.5, 0.5]]), ShapeError, r"\(1, 3\)"),
        (
            lambda: evaluate_outcomes([1], [1.0], probabilities=[[1, 0, 0]], n_bins=0),
            ParameterError,
            "n_bins",
        ),
        (lambda: log_loss([1], [[0.5, 0.6, 0.5]]), LabelError, "sums to 1.6"),
        (lambda: log_loss([1], [[-0.5, 0.5, 1.0]]), NonFiniteError, "row 0"),
        (lambda: log_loss([1], [[np.nan, 0.5, 0.5]]), NonFiniteError, "row 0"),
        (lambda: log_loss([], np.zeros((0, 3))), EmptyDataError, "probabilities has no rows"),
        (lambda: calibration_table([1], [[0.0, 0.0, 1.0]], level=1.0), ParameterError, "level"),
        (lambda: paired_auc([1, 1], [1.0, 1.0], [1.0, 1.0]), LabelError, "needs ties and differences"),
        (lambda: paired_auc([1, 0], [1.0, 1.0], [1.0]), LengthMismatchError, "decision_b has 1"),
        (lambda: paired_auc([1, 0], [1.0, np.nan], [1.0, 0.0]), NonFiniteError, "decision_a"),
        (lambda: paired_auc([1, 0], [1.0, 0], [1.0, 0], clusters=[1, 1]), LabelError, "in one cluster"),
        (lambda: paired_auc([1, 0], [1.0, 0], [1.0, 0], clusters=[1]), LengthMismatchError, "clusters"),
        (lambda: paired_auc([1, 0], [1.0, 0], [1.0, 0], n_resamples=0), ParameterError, "n_resamples"),
        (lambda: paired_auc([1, 0], [1.0, 0], [1.0, 0], level=0.0), ParameterError, "level"),
        (lambda: paired_auc([1, 0], [1.0, 0], [1.0, 0], inversions="no"), ParameterError, "inversions"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
