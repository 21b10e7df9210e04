"""Figure 2 of the comparison machine: margins of both programs on random sets, and the figure."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from concordant.exceptions import MissingExtraError, ParameterError
from studies.venuto.svmcompare import margin_plots as svmcompare_margin_plots
from studies.venuto.svmcompare import margins as svmcompare_margins
from studies.venuto.svmcompare.margins import MarginSet, MarginStudy, figure2, panels, study
from studies.venuto.svmcompare.report import MarginsReport

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def result():
    return study(n_sets=6)


def check_study(result):
    """The linear program is never behind, and scaling changes its margin on no set."""
    scaled, plain = (
        [margin_set for margin_set in result.sets if margin_set.scaled == kind] for kind in (True, False)
    )
    for margin_set, other in zip(scaled, plain, strict=True):
        assert margin_set.dimension == other.dimension
        assert abs(margin_set.mu_lp - other.mu_lp) < 1e-8
    for margin_set in result.sets:
        assert 0 < margin_set.mu_qp <= margin_set.mu_lp + 1e-9 <= 1 + 1e-9
        assert margin_set.gap >= -1e-8


def test_margins_of_random_sets(result):
    check_study(result)
    assert len(result.sets) == 6 * 4 * 2
    every = {summary.scaled: summary for summary in result.summaries() if summary.dimension == 0}
    assert every[True].equal > every[False].equal
    assert every[True].largest < every[False].largest
    assert 0 < every[True].equal < 1  # an observation of the paper, and no theorem


@pytest.mark.parametrize(
    "wrong",
    [
        lambda margin_set: replace(margin_set, mu_qp=1.01 * margin_set.mu_lp),
        lambda margin_set: replace(margin_set, mu_lp=0.9 * margin_set.mu_lp),
    ],
)
def test_the_check_of_a_study_sees_wrong_margins(result, wrong):
    with pytest.raises(AssertionError):
        check_study(MarginStudy((wrong(result.sets[0]), *result.sets[1:])))


def test_margins_in_the_wrong_order_are_counted_and_shown(result):
    assert result.ordered == len(result.sets)
    wrong = MarginStudy((replace(result.sets[0], mu_qp=result.sets[0].mu_lp + 1e-6), *result.sets[1:]))
    assert wrong.ordered == len(result.sets) - 1
    alone = MarginStudy((MarginSet(2, True, 0.5, 0.6), MarginSet(2, False, 0.5, 0.6)))
    assert [round(summary.median, 9) for summary in alone.summaries()] == [-0.2] * 4
    ((_, remarks),) = MarginsReport(wrong).tables()
    assert remarks[-1] == f"mu_LP >= mu_QP in {wrong.ordered} of {len(wrong.sets)} sets (to 1e-8)"


def test_a_study_can_be_repeated(result):
    steps = []
    again = study(n_sets=2, step=steps.append)
    assert steps == ["set 1", "set 2"]
    assert again.sets == result.sets[: len(again.sets)]
    assert study(n_sets=1, seed=1).sets != study(n_sets=1).sets
    with pytest.raises(ParameterError, match="n_sets must be >= 1, got 0"):
        study(n_sets=0)


def test_summaries():
    sets = [MarginSet(p, True, 0.5, qp) for p, qp in ((2, 0.5), (2, 0.4), (3, 0.5 - 1e-4))]
    sets += [replace(margin_set, scaled=False, mu_qp=0.1) for margin_set in sets]
    two, three, both, *unscaled = MarginStudy(tuple(sets)).summaries()
    assert (two.dimension, two.n_sets, two.equal) == (2, 2, 0.5)
    assert np.allclose([two.median, two.largest], [0.1, 0.2])
    assert (three.n_sets, three.equal) == (1, 1)
    assert (both.dimension, both.n_sets) == (0, 3)
    assert np.allclose(both.equal, 2 / 3)
    assert [summary.equal for summary in unscaled] == [0, 0, 0]


@pytest.fixture(scope="module")
def shown():
    return panels(seed=2)


def test_panels(shown):
    left, middle, right = shown
    ties = (left.y == 0).sum()
    assert len(middle.y) == len(right.y) == len(left.y) + ties
    assert abs(middle.solutions["LP"].mu - right.solutions["LP"].mu) < 1e-8
    assert np.ptp(left.differences, axis=0)[1] > 100 * np.ptp(left.differences, axis=0)[0]
    for panel in (left, middle, right):
        for margin in panel.solutions.values():
            g = panel.differences @ margin.w
            assert (np.abs(g[panel.y == 0]) <= 1 - margin.mu + 1e-9).all()
            assert ((panel.y * g)[panel.y != 0] >= 1 + margin.mu - 1e-9).all()


def test_the_figure(shown, tmp_path):
    pytest.importorskip("plotly")
    figure = svmcompare_margin_plots.margins_figure(shown)
    names = [trace.name for trace in figure.data if trace.showlegend]
    assert names == ["tie", "difference", "LP", "LP, margin", "QP", "QP, margin"]
    for trace in (line for line in figure.data if line.mode == "lines"):
        panel = shown[int((trace.xaxis or "x").removeprefix("x") or 1) - 1]
        margin = panel.solutions[trace.legendgroup]
        ends = [(x, y) for x, y in zip(trace.x, trace.y, strict=True) if x is not None]
        offsets = {0.0} if "margin" not in trace.name else {-margin.mu, margin.mu}
        levels = {level + offset for level in panel.levels for offset in offsets}
        assert all(min(abs(margin.w @ end - level) for level in levels) < 1e-9 for end in ends)
        assert len(ends) == 2 * len(levels)
    figure2(tmp_path / "figure.html", seed=2)
    page = (tmp_path / "figure.html").read_text()
    assert json.dumps(svmcompare_margin_plots.TITLE)[1:-1] in page
    assert len(re.findall(r"mu: LP \d\.\d{4}", page)) >= 3


def test_the_figure_without_plotly(tmp_path, monkeypatch):
    def absent():
        raise MissingExtraError("plotly", "report", "an HTML plot")

    monkeypatch.setattr(svmcompare_margins, "need_plotly", absent)
    with pytest.raises(MissingExtraError):
        figure2(tmp_path / "figure.html")
    assert not list(tmp_path.iterdir())
