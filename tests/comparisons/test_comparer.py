"""Comparer: the contract of an estimator on pairs, and what it does on degenerate data."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import concordant as cc
from concordant.comparisons import machine as machine_module
from concordant.comparisons.calibration import fit_curve
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    FeaturesError,
    GuaranteeWarning,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    NotSeparableError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from tests import oracles

LINEAR = {"calibration": 0}
KINDS = [
    {},
    {"method": "rank"},
    {"method": "rank2"},
    {"loss": "squared_hinge"},
    {"loss": "logistic"},
    {"formulation": "lp"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "rbf", "approximation": "nystroem", "n_components": 30},
    {"kernel": "rbf", "loss": "logistic", "n_components": 30},
    {"kernel": "rbf", "formulation": "lp"},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "method": "rank", "degree": 2},
    {"kernel": "rbf", "method": "rank2"},
]


def games(n=150, seed=0, norm="l2"):
    drawn = cc.synthetic.comparisons(n=n, norm=norm, tie_share=0.5, seed=seed)
    return drawn.pairs, drawn.y


def linear_games(n=200, p=3, seed=0, cut=1.0, noise=0.5):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n, 2, p))
    gap = (pairs[:, 1] - pairs[:, 0]) @ np.linspace(1.0, 2.0, p) + noise * rng.normal(size=n)
    return pairs, np.where(np.abs(gap) > cut, np.sign(gap), 0).astype(int)


# ---------------------------------------------------------------- the contract


def check_contract(model, pairs, y):
    """What every comparer owes its user."""
    fitted = model.fit(pairs, y)
    assert fitted is model
    decision = model.decision_function(pairs)
    scores = [model.rank_score(pairs[:, side]) for side in (0, 1)]
    np.testing.assert_allclose(decision, scores[1] - scores[0], atol=1e-9)
    expected = np.sign(decision) * (np.abs(decision) > model.threshold_)
    assert (model.predict(pairs) == expected).all()
    assert model.score(pairs, y) == pytest.approx(np.mean(expected == y))
    np.testing.assert_allclose(model.decision_function(pairs[:, ::-1]), -decision, atol=1e-9)
    assert (model.predict(pairs[:, ::-1]) == -model.predict(pairs)).all()
    assert model.threshold_ >= 0.0
    assert model.classes_.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_contract(kind):
    curved = kind.get("kernel", "linear") != "linear"
    check_contract(cc.Comparer(**LINEAR | kind), *(games(80) if curved else linear_games(80)))


def test_the_contract_rejects_a_model_that_prefers_a_side():
    class Sided(cc.Comparer):
        def decision_function(self, pairs):
            return super().decision_function(pairs) + 0.1

    with pytest.raises(AssertionError):
        check_contract(Sided(**LINEAR), *linear_games(60))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_learns_what_there_is_to_learn(kind):
    """Kernels the norm, linear machines the linear truth: far better than the commonest outcome."""
    curved = kind.get("kernel", "linear") != "linear"
    pairs, y = games(200) if curved else linear_games(300)
    test_pairs, test_y = games(400, seed=1) if curved else linear_games(400, seed=1)
    model = cc.Comparer(C=3.0, **LINEAR | kind).fit(pairs, y)
    commonest = max(np.mean(test_y == outcome) for outcome in (-1, 0, 1))
    assert model.score(test_pairs, test_y) > commonest + 0.12


@pytest.mark.parametrize("kind", [{}, {"kernel": "rbf", "gamma": 0.3}, {"formulation": "lp"}], ids=str)
def test_units_of_features_do_not_matter_and_constants_are_dropped(kind):
    pairs, y = linear_games(60, 2) if "kernel" not in kind else games(60)
    plain = cc.Comparer(**LINEAR | kind).fit(pairs, y)
    other = np.concatenate((pairs * [1e4, 1e-3] + [3.0, -5.0], np.full((60, 2, 1), 7.0)), axis=2)
    moved = cc.Comparer(**LINEAR | kind).fit(other, y)
    np.testing.assert_allclose(moved.decision_function(other), plain.decision_function(pairs), atol=2e-3)
    assert moved.scaling_.kept.tolist() == [True, True, False]


def test_scaling_is_that_of_both_sides_and_is_applied_once():
    """Erratum of the published baselines, which learned their threshold on inputs scaled twice."""
    pairs, y = games(100)
    model = cc.Comparer(kernel="rbf", gamma=0.3, method="rank", calibration=0).fit(pairs, y)
    both = pairs.reshape(-1, 2)
    np.testing.assert_allclose(model.scaling_.mean, both.mean(axis=0))
    np.testing.assert_allclose(model.scaling_.deviation, both.std(axis=0))
    decision = model.decision_function(pairs)
    errors = [oracles.threshold_errors(decision, y, t) for t in np.abs(decision)]
    assert oracles.threshold_errors(decision, y, model.threshold_) <= min(errors)


def test_weights_are_repetitions_and_0_is_absence():
    pairs, y = linear_games(60)
    weight = np.random.default_rng(0).integers(0, 3, size=60)
    rows = np.repeat(np.arange(60), weight)
    for kind in ({}, {"kernel": "rbf"}, {"method": "rank"}, {"formulation": "lp"}):
        weighted = cc.Comparer(tol=1e-9, **LINEAR | kind).fit(pairs, y, sample_weight=weight)
        repeated = cc.Comparer(tol=1e-9, **LINEAR | kind).fit(pairs[rows], y[rows])
        decisions = weighted.decision_function(pairs), repeated.decision_function(pairs)
        np.testing.assert_allclose(*decisions, atol=1e-4)


def test_coef_is_in_the_features_own_units():
    pairs, y = linear_games(200)
    pairs = pairs * [1.0, 100.0, 0.01]
    model = cc.Comparer(**LINEAR).fit(pairs, y)
    np.testing.assert_allclose(
        (pairs[:, 1] - pairs[:, 0]) @ model.coef_, model.decision_function(pairs), atol=1e-9
    )
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = cc.Comparer(kernel="rbf", calibration=0).fit(pairs, y).coef_


def test_a_kernel_of_ones_own_is_the_kernel():
    pairs, y = games(60)
    custom = cc.Comparer(kernel=lambda a, b: (a @ b.T + 1.0) ** 2, C=1.0, calibration=0).fit(pairs, y)
    named = cc.Comparer(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=1.0, calibration=0).fit(pairs, y)
    np.testing.assert_allclose(custom.decision_function(pairs), named.decision_function(pairs), atol=1e-9)


def test_a_linear_kernel_of_ones_own_gives_the_linear_machine():
    """libsvm on a Gram matrix against Newton steps on features: one model."""
    pairs, y = linear_games(80)
    newton = cc.Comparer(C=0.1, tol=1e-10, calibration=0).fit(pairs, y)
    libsvm = cc.Comparer(kernel=lambda a, b: a @ b.T, C=0.1, tol=1e-12, calibration=0).fit(pairs, y)
    assert (newton.machine_.solver, libsvm.machine_.solver) == ("newton", "libsvm")
    np.testing.assert_allclose(newton.decision_function(pairs), libsvm.decision_function(pairs), atol=1e-5)


def test_all_items_as_landmarks_give_the_exact_kernel_machine():
    pairs, y = games(60)
    exact = cc.Comparer(kernel="rbf", C=1.0, tol=1e-9, calibration=0).fit(pairs, y)
    mapped = cc.Comparer(
        kernel="rbf", C=1.0, tol=1e-9, approximation="nystroem", n_components=500, calibration=0
    ).fit(pairs, y)
    assert (exact.machine_.solver, mapped.machine_.solver) == ("libsvm", "nystroem")
    np.testing.assert_allclose(exact.decision_function(pairs), mapped.decision_function(pairs), atol=1e-3)


def test_large_data_take_the_map_without_a_warning(monkeypatch):
    monkeypatch.setattr(machine_module, "EXACT_ROWS", 100)
    pairs, y = games(80)
    model = cc.Comparer(kernel="rbf", n_components=40, calibration=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(pairs, y).machine_.solver == "nystroem"
        assert cc.Comparer(kernel="rbf", approximation="exact", calibration=0).fit(
            pairs, y
        ).machine_.solver == ("libsvm")


def test_rows_of_the_rule():
    tie = np.array([True, False, False])
    assert [machine_module.n_rows(tie, method) for method in ("compare", "rank", "rank2")] == [4, 4, 8]


# ---------------------------------------------------------------- scikit-learn


def test_clone_parameters_pickle_and_tags():
    model = cc.Comparer(kernel="rbf", C=2.0)
    assert clone(model).get_params() == model.get_params()
    pairs, y = games(40)
    model.fit(pairs, y)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(back.predict_proba(pairs), model.predict_proba(pairs))
    assert model.__sklearn_tags__().input_tags.three_d_array
    assert "Comparer" in repr(model)


def test_grid_search_and_cross_validation_take_pairs():
    pairs, y = games(90)
    search = GridSearchCV(
        cc.Comparer(kernel="rbf", calibration=0), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}, cv=3
    )
    search.fit(pairs, y)
    assert search.best_score_ > 0.6
    assert len(cross_val_score(cc.Comparer(calibration=0), *linear_games(90), cv=3)) == 3


def test_fit_twice_is_fit_once():
    pairs, y = games(60)
    model = cc.Comparer(kernel="rbf").fit(pairs, y)
    before = model.predict_proba(pairs)
    assert (model.fit(pairs, y).predict_proba(pairs) == before).all()
    with pytest.warns(GuaranteeWarning, match="starts over"):
        model.partial_fit(pairs, y)
    assert (model.fit(pairs, y).predict_proba(pairs) == before).all()


def test_unfitted_models_say_so():
    for call in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(cc.Comparer(), call)(np.zeros((1, 2, 1)))
    with pytest.raises(NotFittedError):
        cc.Comparer().rank_score([[1.0]])
    with pytest.raises(NotFittedError):
        _ = cc.Comparer().threshold_
    assert not hasattr(cc.Comparer(calibration=0), "predict_proba")
    late = cc.Comparer(calibration=0).fit(*linear_games(30)).set_params(calibration=5)
    with pytest.raises(NotFittedError, match="calibration=0"):
        late.predict_proba(np.zeros((1, 2, 3)))


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize("kind", [{}, {"method": "rank"}, {"kernel": "rbf"}, {"loss": "logistic"}], ids=str)
def test_probabilities_are_calibrated_and_symmetric(kind):
    pairs, y = linear_games(600, noise=1.0)
    fresh, outcome = linear_games(2000, seed=1, noise=1.0)
    model = cc.Comparer(**kind).fit(pairs, y)
    probability = model.predict_proba(fresh)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_proba(fresh[:, ::-1]), probability[:, ::-1], atol=1e-9)
    shares = np.array([np.mean(outcome == value) for value in (-1, 0, 1)])
    np.testing.assert_allclose(probability.mean(axis=0), shares, atol=0.05)
    loss = cc.evaluation.log_loss(outcome, probability)
    assert loss < -np.sum(shares * np.log(shares)) - 0.1  # better than the shares of the outcomes


@pytest.mark.parametrize(("n", "C", "cut"), [(200, 0.01, 1.0), (200, 0.003, 1.5), (120, 0.01, 0.7)])
def test_folds_whose_machines_measure_in_other_units_do_not_spoil_probabilities(n, C, cut):
    """Few ties and a small C: of some folds the bias is near 0, or above it."""
    pairs, y = linear_games(n, cut=cut, noise=1.0)
    fresh, outcome = linear_games(4000, seed=1, cut=cut, noise=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model = cc.Comparer(C=C).fit(pairs, y)
    best = fit_curve(model.decision_function(fresh), outcome)(model.decision_function(fresh))
    losses = [cc.evaluation.log_loss(outcome, p) for p in (model.predict_proba(fresh), best)]
    assert losses[0] < losses[1] + 0.08


def test_probabilities_do_not_depend_on_the_unit_of_weights():
    pairs, y = linear_games(200)
    plain = cc.Comparer(C=1.0).fit(pairs, y)
    small = cc.Comparer(C=200.0).fit(pairs, y, sample_weight=np.full(200, 1 / 200))
    np.testing.assert_allclose(small.predict_proba(pairs), plain.predict_proba(pairs), atol=1e-6)


# ---------------------------------------------------------------- degenerate data


def test_no_ties_fall_back_to_ranking_and_say_so():
    pairs, y = linear_games(60, cut=0.0)
    for kind in ({}, {"formulation": "lp"}, {"kernel": "rbf"}, {"C": np.inf}):
        with pytest.warns(GuaranteeWarning, match="No training pair is a tie"):
            model = cc.Comparer(**kind).fit(pairs, y)
        assert (model.method_, model.threshold_) == ("rank", 0.0)
        assert "No training pair is a tie" in model.note_
        assert model.predict_proba(pairs)[:, 1].max() == 0.0
        assert model.score(pairs, y) > 0.8


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_only_ties_and_constant_features_predict_ties(kind):
    pairs, y = games(20)
    with pytest.warns(GuaranteeWarning, match="All training pairs are ties"):
        model = cc.Comparer(**kind).fit(pairs, 0 * y)
    assert not model.predict(pairs).any()
    assert not model.rank_score(pairs[:, 0]).any()
    with pytest.warns(GuaranteeWarning, match="No feature varies"):
        flat = cc.Comparer(**kind).fit(np.ones((20, 2, 2)), y)
    assert not flat.predict(pairs).any()
    np.testing.assert_allclose(flat.predict_proba(pairs)[:, 1], np.mean(y == 0), atol=0.06)


def test_no_features_at_all():
    with pytest.raises(ShapeError, match="at least one feature"):
        cc.Comparer().fit(np.zeros((4, 2, 0)), [0, 1, 0, -1])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("outcome", [-1, 0, 1])
def test_a_single_pair(kind, outcome):
    pair = np.array([[[0.0, 1.0], [2.0, 5.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model = cc.Comparer(**kind).fit(pair, [outcome])
    assert model.predict(pair)[0] == outcome or (outcome and kind == {"formulation": "lp"})
    assert np.isfinite(model.predict_proba(pair)).all()


def test_a_bias_above_0_keeps_the_direction():
    """The published code divides by it and turns all ranks round."""
    pairs, y = linear_games(100, cut=0.15)
    assert 0 < (y == 0).sum() < 12
    with pytest.warns(GuaranteeWarning, match="no usable tie threshold"):
        model = cc.Comparer(C=1e-4, calibration=0).fit(pairs, y)
    assert model.machine_.bias >= 0.0
    others = y != 0
    agree = np.sign(model.decision_function(pairs))[others] == y[others]
    assert agree.mean() > 0.8


def test_a_machine_that_decides_nothing_says_so():
    """A linear machine on norms: no direction tells, and the optimum of the hinge is w = 0."""
    pairs, y = games(100)
    for kind in ({}, {"kernel": "rbf", "C": 1e-6}, {"kernel": "rbf", "C": 1e-6, "approximation": "nystroem"}):
        model = cc.Comparer(**kind).fit(pairs, y)
        assert "a tie for every training pair" in model.note_
        assert not model.predict(pairs).any()


def test_contradicting_pairs_are_no_error():
    pairs = np.array([[[0.0], [1.0]]] * 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        for kind in KINDS:
            model = cc.Comparer(**LINEAR | kind).fit(pairs, [1, -1, 0, 0])
            assert np.isfinite(model.decision_function(pairs)).all()


@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.sampled_from([0.0, 1.0, -1.0, 1e-30, 1e30, 3.5]), min_size=4, max_size=4),
            st.sampled_from([-1, 0, 1]),
        ),
        min_size=1,
        max_size=8,
    ),
    kind=st.sampled_from(
        [{}, {"method": "rank"}, {"method": "rank2"}, {"kernel": "rbf"}, {"loss": "logistic"}]
    ),
)
@settings(max_examples=40, deadline=None)
def test_nasty_pairs_give_finite_antisymmetric_decisions(rows, kind):
    pairs = np.array([features for features, _ in rows]).reshape(-1, 2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cc.Comparer(**LINEAR | kind).fit(pairs, [y for _, y in rows])
    decision = model.decision_function(pairs)
    assert np.isfinite(decision).all()
    size = max(1.0, np.abs(decision).max())
    np.testing.assert_allclose(model.decision_function(pairs[:, ::-1]), -decision, atol=1e-9 * size)


# ---------------------------------------------------------------- hard margins and linear programs


def separable(n=40, seed=0):
    pairs, _ = linear_games(n, 2, seed)
    gap = (pairs[:, 1] - pairs[:, 0]) @ [1.0, 2.0]
    rows = (np.abs(gap) < 0.8) | (np.abs(gap) > 1.2)
    return pairs[rows], np.where(np.abs(gap) > 1, np.sign(gap), 0).astype(int)[rows]


def test_hard_margins_make_no_training_error_and_the_program_has_the_larger_margin():
    pairs, y = separable()
    qp = cc.Comparer(C=np.inf, calibration=0).fit(pairs, y)
    lp = cc.Comparer(C=np.inf, formulation="lp", calibration=0).fit(pairs, y)
    assert qp.score(pairs, y) == lp.score(pairs, y) == 1.0
    assert lp.machine_.value >= qp.machine_.value - 1e-9
    assert (qp.threshold_, lp.threshold_) == (1.0, 1.0)


def test_a_large_finite_cost_approaches_the_hard_margin():
    pairs, y = separable()
    hard = cc.Comparer(C=np.inf, calibration=0).fit(pairs, y)
    soft = cc.Comparer(C=1e5, tol=1e-9, calibration=0).fit(pairs, y)
    np.testing.assert_allclose(soft.decision_function(pairs), hard.decision_function(pairs), atol=1e-4)


def test_what_is_not_separable_is_said_to_be_so():
    pairs, y = linear_games(60, noise=2.0)
    for formulation in ("qp", "lp"):
        with pytest.raises(NotSeparableError):
            cc.Comparer(C=np.inf, formulation=formulation, calibration=0).fit(pairs, y)


def test_the_kernel_program_is_sparse():
    pairs, y = games(80)
    model = cc.Comparer(kernel="rbf", formulation="lp", C=1.0, calibration=0).fit(pairs, y)
    assert len(model.machine_.scorer.coef) < 80
    assert model.threshold_ == 1.0


def test_the_kernel_program_takes_its_functions_from_a_sample(monkeypatch):
    monkeypatch.setattr(machine_module, "LP_BASIS", 20)
    pairs, y = games(80)
    sampled, whole = (
        cc.Comparer(kernel="rbf", formulation="lp", C=1.0, approximation=how, calibration=0).fit(pairs, y)
        for how in ("auto", "exact")
    )
    assert len(sampled.machine_.scorer.coef) <= 20
    assert sampled.machine_.value >= whole.machine_.value - 1e-9


def test_a_failed_fit_leaves_the_model_as_it_was():
    pairs, y = linear_games(60, noise=2.0)
    fresh = cc.Comparer(C=np.inf)
    with pytest.raises(NotSeparableError):
        fresh.fit(pairs, y)
    with pytest.raises(NotFittedError):
        fresh.predict(pairs)
    model = cc.Comparer().fit(pairs, y)
    before = model.predict_proba(pairs)
    with pytest.raises(ParameterError):
        model.set_params(C=-1.0).fit(pairs[:, :, :2], y)
    with pytest.raises(ParameterError):
        model.set_params(C=1.0, method="rank").partial_fit(pairs[:, :, :2], y)
    assert (model.predict_proba(pairs) == before).all()


def test_what_is_no_kernel_is_refused_or_ends():
    pairs, y = games(80)
    for wrong in (lambda a, b: a @ np.triu(np.ones((2, 2))) @ b.T, lambda a, b: -(a @ b.T)):
        with pytest.raises(ParameterError, match="positive semidefinite"):
            cc.Comparer(wrong, calibration=0).fit(pairs, y)


def test_a_large_gap_of_libsvm_is_warned_of(monkeypatch):
    monkeypatch.setattr("concordant.comparisons.machine.STEPS", 0.005)
    pairs, y = games(100)
    with pytest.warns(ConvergenceWarning, match="libsvm"):
        model = cc.Comparer("rbf", C=1e3, calibration=0).fit(pairs, y)
    assert not model.machine_.converged


def test_gamma_counts_the_features_that_vary():
    pairs, y = games(60)
    padded = np.concatenate((pairs, np.ones((60, 2, 3))), axis=2)
    plain, other = (cc.Comparer("rbf", calibration=0).fit(columns, y) for columns in (pairs, padded))
    np.testing.assert_allclose(other.decision_function(padded), plain.decision_function(pairs), atol=1e-9)


# ---------------------------------------------------------------- streams


def test_stochastic_gradient_is_near_the_optimum():
    pairs, y = linear_games(2000)
    exact = cc.Comparer(loss="logistic", calibration=0).fit(pairs, y)
    rough = cc.Comparer(loss="logistic", solver="sgd", calibration=0).fit(pairs, y)
    assert (exact.machine_.solver, rough.machine_.solver) == ("newton", "sgd")
    assert rough.machine_.value < 1.01 * exact.machine_.value


def test_a_stream_keeps_its_parameters_and_says_what_it_knows():
    pairs, y = linear_games(300)
    model = cc.Comparer(loss="logistic").partial_fit(pairs, y)
    assert np.isnan(model.machine_.gap)
    assert not model.machine_.converged
    with pytest.raises(ParameterError, match="Clone the model"):
        model.set_params(C=3.0).partial_fit(pairs, y)
    with pytest.raises(ParameterError, match="No feature varies in the 3 pairs"):
        cc.Comparer("rbf").partial_fit(np.ones((3, 2, 2)), [0, 1, 0])
    with pytest.raises(ParameterError, match="finite"):
        cc.Comparer(C=np.inf).partial_fit(pairs, y)


@pytest.mark.parametrize(("loss", "n"), [("hinge", 200), ("logistic", 100)])
def test_short_streams_have_usable_probabilities(loss, n):
    pairs, y = linear_games(n, cut=1.5, noise=1.0)
    fresh, outcome = linear_games(3000, seed=1, cut=1.5, noise=1.0)
    model = cc.Comparer(loss=loss).partial_fit(pairs, y)
    decision = model.decision_function(fresh)
    best = fit_curve(decision, outcome)(decision)
    losses = [cc.evaluation.log_loss(outcome, p) for p in (model.predict_proba(fresh), best)]
    assert losses[0] < losses[1] + 0.15


def test_a_stream_learns_and_goes_on():
    pairs, y = linear_games(3000, noise=0.3)
    model = cc.Comparer(loss="logistic")
    for first in range(0, 3000, 500):
        model.partial_fit(pairs[first : first + 500], y[first : first + 500])
    fresh, outcome = linear_games(1000, seed=1, noise=0.3)
    batch = cc.Comparer(loss="logistic").fit(pairs, y)
    assert model.score(fresh, outcome) > batch.score(fresh, outcome) - 0.03
    assert model.threshold_ == 1.0
    losses = [cc.evaluation.log_loss(outcome, m.predict_proba(fresh)) for m in (model, batch)]
    assert losses[0] < losses[1] + 0.1


def test_a_stream_with_a_kernel():
    pairs, y = games(1500)
    model = cc.Comparer(kernel="rbf", gamma=0.3, C=10.0, loss="logistic", n_components=60)
    for first in range(0, 1500, 250):
        model.partial_fit(pairs[first : first + 250], y[first : first + 250])
    fresh, outcome = games(500, seed=1)
    assert model.score(fresh, outcome) > 0.75


def test_streams_refuse_what_they_cannot_learn():
    pairs, y = games(20)
    with pytest.raises(ParameterError, match="partial_fit"):
        cc.Comparer(method="rank").partial_fit(pairs, y)
    model = cc.Comparer().partial_fit(pairs, y)
    with pytest.raises(ShapeError):
        model.partial_fit(np.zeros((3, 2, 5)), [0, 1, 0])


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("pairs", "y", "error"),
    [
        (np.zeros((3, 2)), [0, 1, 0], ShapeError),
        (np.zeros((3, 3, 2)), [0, 1, 0], ShapeError),
        (np.zeros((0, 2, 2)), [], EmptyDataError),
        (np.zeros((2, 2, 1)), [0, 1, 0], LengthMismatchError),
        (np.full((1, 2, 1), np.nan), [0], NonFiniteError),
        (np.full((1, 2, 1), np.inf), [0], NonFiniteError),
        (np.full((1, 2, 1), 1e200), [0], NonFiniteError),
        (np.zeros((1, 2, 1)), [2], LabelError),
        (np.zeros((1, 2, 1)), None, LabelError),
        (np.zeros((1, 2, 1)), np.array([True]), LabelError),
        (np.zeros((1, 2, 1)), ["a"], ConcordantError),
        ([[["x"], ["y"]]], [0], ConcordantError),
    ],
)
def test_bad_data_are_named(pairs, y, error):
    with pytest.raises(error):
        cc.Comparer().fit(pairs, y)
    with pytest.raises(error):
        cc.Comparer().partial_fit(pairs, y)


def test_weights_whose_sum_is_no_double_are_refused():
    pairs, y = games(60)
    with pytest.raises(ParameterError, match="sum of sample_weight overflows"):
        cc.Comparer().fit(pairs, y, sample_weight=np.full(60, 1e308))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"kernel": "cosine"}, ParameterError),
        ({"C": 0.0}, ParameterError),
        ({"C": -1}, ParameterError),
        ({"C": np.nan}, ParameterError),
        ({"C": "1"}, ParameterError),
        ({"gamma": 0.0, "kernel": "rbf"}, ParameterError),
        ({"gamma": "auto", "kernel": "rbf"}, ParameterError),
        ({"method": "rank3"}, UnknownNameError),
        ({"loss": ["hinge"]}, UnknownNameError),
        ({"formulation": "sdp"}, UnknownNameError),
        ({"approximation": "fourier"}, UnknownNameError),
        ({"formulation": "lp", "method": "rank"}, ParameterError),
        ({"formulation": "lp", "loss": "logistic"}, ParameterError),
        ({"C": np.inf, "loss": "logistic"}, ParameterError),
        ({"C": np.inf, "kernel": "rbf"}, ParameterError),
        ({"C": np.inf, "kernel": "rbf", "formulation": "lp"}, ParameterError),
        ({"calibration": 1}, ParameterError),
        ({"calibration": -1}, ParameterError),
        ({"n_components": 0}, ParameterError),
        ({"tol": 0.0}, ParameterError),
        ({"nu": -1.0}, ParameterError),
        ({"max_iter": 0}, ParameterError),
        ({"degree": 0, "kernel": "poly"}, ParameterError),
        ({"random_state": None}, ParameterError),
        ({"random_state": 2**40}, ParameterError),
        ({"C": 1e300}, ParameterError),
        ({"solver": "adam"}, UnknownNameError),
        ({"solver": "sgd"}, ParameterError),
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters, error):
    with pytest.raises(error):
        cc.Comparer(**parameters).fit(*games(20))


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "sgd", "loss": "logistic"}, {"kernel": "rbf", "approximation": "nystroem"}],
    ids=str,
)
def test_seeds_are_those_of_the_libraries_beneath(options):
    assert cc.Comparer(random_state=2**32 - 1, calibration=2, **options).fit(*games(40)).n_features_in_
    with pytest.raises(ParameterError, match="from 0 to 4294967295"):
        cc.Comparer(random_state=2**32, **options).fit(*games(40))
    with pytest.raises(ParameterError, match="1 to 2147483647"):
        cc.Comparer(max_iter=2**31, **options).fit(*games(40))


def test_bad_weights_and_shapes_at_prediction():
    pairs, y = games(20)
    for weight in ([-1.0] * 20, [np.nan] * 20, [0.0] * 20, [1.0]):
        with pytest.raises(ConcordantError):
            cc.Comparer().fit(pairs, y, sample_weight=weight)
    model = cc.Comparer(calibration=0).fit(*linear_games(20, 2))
    for wrong in (np.zeros((1, 2, 3)), np.zeros((1, 2)), np.full((1, 2, 2), np.nan)):
        with pytest.raises(ConcordantError):
            model.predict(wrong)
    with pytest.raises(ShapeError, match="as many features"):
        model.rank_score(np.zeros((1, 3)))
    with pytest.raises(NonFiniteError):
        model.rank_score([[1e307, 0.0]])


def test_a_feature_that_is_not_finite_is_named_by_its_side():
    pairs = np.ones((4, 2, 3))
    pairs[2, 1, 0] = np.nan
    with pytest.raises(FeaturesError, match=r"pairs contains NaN at row 2, right, column 0 \(1 such"):
        cc.Comparer().fit(pairs, [1, 0, -1, 0])
    pairs[2, 1, 0] = 1e200
    with pytest.raises(NonFiniteError, match="row 2, right, column 0"):
        cc.Comparer().fit(pairs, [1, 0, -1, 0])
