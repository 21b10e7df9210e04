"""Bounds on problems whose risk is known: none is broken, every wrong constant is caught."""

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant.exceptions import ParameterError
from concordant.surrogates import ListwiseHinge, PositionHinge
from concordant.theory.bounds import bound
from concordant.theory.bounds.hinges import listwise_slope, reach
from studies.__main__ import app
from studies.riezler_debona.bounds import study as simulation
from studies.riezler_debona.bounds.problems import adversarial, disc, misordered
from studies.riezler_debona.bounds.sampling import Sampler

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def result():
    return simulation.run()


def test_no_bound_is_broken_in_a_thousand_draws(result):
    assert result.draws == 1000
    right = [check for check in result.checks if not check.wrong]
    assert len(right) > 20
    assert not any(check.broken for check in right)
    assert sum(check.exceeded for check in right if check.exceeded is not None) == 0
    assert all(check.slack > 1 for check in right if check.measured > 0)


def test_wrong_constants_are_caught(result):
    wrong = [check for check in result.checks if check.wrong]
    assert len(wrong) == 5
    assert all(check.broken for check in wrong)
    assert result.as_expected
    inequalities = " ".join(check.inequality for check in wrong)
    for mistake in ("as published", "without kappa", "as of one score", "R01 - Rhat"):
        assert mistake in inequalities


def test_the_lemma_is_nearly_attained(result):
    """In the plane, E |sum of signs times unit vectors| is about sqrt(pi/4) sqrt(n)."""
    first = result.checks[0]
    assert first.slack == pytest.approx(2 / np.sqrt(np.pi), rel=0.06)


def test_the_proofs_are_not_idle(result):
    """Each inequality is within a small factor of what is measured: a factor of 5 too small is broken."""
    steps = [check for check in result.checks if check.inequality.startswith(("R_n", "E sup"))]
    assert all(check.slack < 5 for check in steps)


def test_equal_seeds_give_equal_results():
    assert simulation.run(draws=20, seed=3) == simulation.run(draws=20, seed=3)
    assert simulation.run(draws=20, seed=3).checks != simulation.run(draws=20, seed=4).checks


def test_every_step_is_reported():
    steps = []
    simulation.run(draws=2, step=steps.append)
    assert len(steps) == simulation.STEPS


@pytest.mark.parametrize("bad", [{"n": 0}, {"draws": 0}, {"seed": -1}])
def test_bad_input(bad):
    with pytest.raises(ParameterError):
        simulation.run(**bad)


@pytest.mark.parametrize("levels", [(1, 1, 1), (2, 2), (1, 2), (1, 1, 2)])
def test_losses_are_those_of_the_library(levels):
    problem = adversarial(levels, B=3.0)
    grades = len(levels) - problem.places
    picked = range(0, len(problem.weights), 37)
    for query, column in itertools.product(range(len(problem.probs)), picked):
        scores = problem.scores[query, :, column]
        (hinge,), _ = PositionHinge()(scores, grades)
        assert problem.position_hinge()[query, column] == pytest.approx(hinge)
    metric = "ap" if len(levels) == 2 else "ndcg"
    largest, total, soft = (
        problem.max_hinge(metric),
        problem.sum_hinge(metric),
        problem.softmax_hinge(metric, 0.5),
    )
    for query, column in itertools.product(range(len(problem.probs)), picked):
        scores = problem.scores[query, :, column]
        for mode, values in (("max", largest), ("sum", total)):
            (expected,), _ = ListwiseHinge(cc.metric(metric), mode)(scores, grades)
            assert values[query, column] == pytest.approx(expected)
        (expected,), _ = ListwiseHinge(cc.metric(metric), "softmax", temperature=0.5)(scores, grades)
        assert soft[query, column] == pytest.approx(expected)


def test_losses_are_as_steep_as_stated_and_no_steeper():
    """The largest slope between neighbours of the grid, in the direction of the features."""
    for levels in ((1, 1, 1), (2, 2)):
        problem = adversarial(levels)
        distance = np.linalg.norm(problem.scores[:, :, :, None] - problem.scores[:, :, None, :], axis=1)
        near = (distance > 1e-9) & (distance < 0.5)
        for values, slope in (
            (problem.position_hinge(), reach(levels)),
            (problem.max_hinge("ndcg"), listwise_slope(levels)),
            (problem.softmax_hinge("ndcg", 0.5), listwise_slope(levels)),
        ):
            change = np.abs(values[:, :, None] - values[:, None, :])
            assert (change[near] / distance[near]).max() <= slope * (1 + 1e-9)


def test_losses_stay_within_their_stated_ranges():
    for levels, B in itertools.product(((1, 1, 1), (2, 2), (1, 3)), (0.5, 1.0, 4.0)):
        problem = adversarial(levels, B)
        soft = problem.softmax_hinge("ndcg", 0.5)
        half = simulation.listwise(
            1, sum(levels), B, 1.0, np.exp(-2.0), "sharp", "softmax", temperature=0.5, levels=levels
        )
        assert soft.max() - soft.min() <= half.terms["confidence"].factor + 1e-9
        hinge = problem.position_hinge()
        full = simulation.multipartite(1, levels, B, 1.0, np.exp(-2.0), "sharp")
        assert hinge.max() - hinge.min() <= full.terms["confidence"].factor + 1e-9
        assert hinge.max() == pytest.approx(full.terms["confidence"].factor) or len(levels) > 2


def test_the_grid_is_in_the_disc():
    weights = disc(2.0)
    lengths = np.linalg.norm(weights, axis=1)
    assert lengths.max() == pytest.approx(2.0)
    assert lengths.min() == 0.0
    problem = adversarial((2, 3))
    assert np.linalg.norm(problem.features, axis=2).max() <= 1 + 1e-12
    assert problem.probs.sum() == pytest.approx(1.0)
    assert np.abs(misordered().features).max() == 1.0


def test_a_bound_that_is_too_small_is_seen():
    problem = adversarial((2, 2))
    sampler = Sampler(100, 500, np.random.default_rng(0))
    values = problem.position_hinge()
    true = simulation.multipartite(100, (2, 2), version="sharp")
    small = bound.replace(
        true, parts=tuple(bound.replace(part, factor=part.factor / 6) for part in true.parts)
    )
    deviations = sampler.deviations(problem, values, values)
    assert not sampler.quantile("", "", deviations, true).broken
    assert sampler.quantile("", "", deviations, small).broken


def call(*arguments):
    return CliRunner().invoke(app, ["bounds", *map(str, arguments)])


def test_command_line():
    answer = call()
    assert answer.exit_code == 0, answer.output
    assert "0 bounds broken; 5 of 5 wrong constants caught" in answer.stdout
    assert "NOT caught" not in answer.stdout
    assert answer.stdout == call("--seed", 0, "--draws", 1000, "--queries", 100).stdout
    report = json.loads(call("--draws", 30, "--json").stdout)
    assert report["draws"] == 30
    assert {"loss", "inequality", "measured", "bound", "slack", "broken", "wrong"} <= report["checks"][
        0
    ].keys()
    assert call("--draws", 0).exit_code == 2
    few = call("--draws", 100).stdout
    assert "NOT caught" in few
    assert "of 5 wrong constants caught; draw more samples (1,000 catch all)" in few
