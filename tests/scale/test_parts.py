"""Training and judging from data in parts: the same objective, the same solvers, the same numbers."""

import gc
import re
import threading
import warnings
import weakref
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import concordant as cc
from concordant import LinearRanker, synthetic
from concordant._base.segments import kernel_threads
from concordant.exceptions import (
    ConcordantError,
    FeaturesError,
    GradeError,
    GuaranteeWarning,
    LabelError,
    NonFiniteError,
    ParameterError,
    UnknownNameError,
)
from concordant.rankers.fit_progress import show_pass
from concordant.rankers.guarantee import knowingly
from concordant.rankers.parts.linear_parts import LinearPreparation, partitioned_problem
from concordant.rankers.parts.ranker_source import as_parts_source
from concordant.scale.parts import FAN, StreamedParts, add_vectors, tree_sum
from concordant.scale.scan.scan import format_size, parse_size, read_ahead
from concordant.solvers.objective import row_noise
from tests.helpers.parted import scan_of

TOY = synthetic.grades(n_queries=60, n_items=(1, 12), seed=3)
SCAN = scan_of(TOY.X, TOY.y, TOY.qid, n_parts=5)
EQUAL = 1e-8  # by which a fit on parts may differ from one in memory, as a share of the largest weight


def check_same(model, other, tol=EQUAL):
    """Two fits gave the same weights, counts and objective."""
    size = max(np.abs(other.coef_).max(), 1e-300)
    assert np.abs(model.coef_ - other.coef_).max() <= tol * size
    assert model.solution_.value == pytest.approx(other.solution_.value, rel=1e-10)
    assert (model.n_queries_, model.n_informative_) == (other.n_queries_, other.n_informative_)
    assert model.certificate_.claim == other.certificate_.claim
    assert model.certificate_.sample.mass == pytest.approx(other.certificate_.sample.mass)
    np.testing.assert_allclose(model.scale_, other.scale_, rtol=1e-10)


def fitted(*data, fit=None, **parameters):
    """Fit without warnings of what is not guaranteed or not quite reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LinearRanker(**parameters).fit(*data, **(fit or {}))


# Sums


def by_levels(vectors):
    """The definition: eights of neighbours are added from left to right, then eights of these, and so on."""
    while len(vectors) > 1:
        vectors = [sum(vectors[k + 1 : k + FAN], vectors[k]) for k in range(0, len(vectors), FAN)]
    return vectors[0]


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 63, 64, 65, 72, 511, 512, 513, 600])
def test_sums_are_those_of_the_tree(n):
    vectors = np.random.default_rng(n).normal(size=(n, 3)) * np.logspace(0, 9, n)[:, None]
    assert tree_sum(iter(vectors)).tolist() == by_levels(list(vectors)).tolist()


def test_the_order_of_a_sum_shows():
    """From left to right every 1 is lost on 2**53; in the tree eights of them are added first."""
    vectors = [np.array([2.0**53]), *[np.ones(1)] * 15]
    assert add_vectors(*vectors).tolist() == [2.0**53]
    assert tree_sum(iter(vectors)).tolist() == by_levels(vectors).tolist() == [2.0**53 + 8]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 29))
def test_noise_does_not_depend_on_the_parts(sizes, cut):
    offsets, cut = np.cumsum([0, *sizes]), min(cut, len(sizes))
    whole = row_noise(np.arange(len(sizes)), offsets)
    first = row_noise(np.arange(cut), offsets[: cut + 1])
    rest = row_noise(np.arange(cut, len(sizes)), offsets[cut:] - offsets[cut])
    assert np.hstack((first, rest)).tolist() == whole.tolist()


def test_noise_is_standard_normal():
    from scipy.stats import kstest

    noise, other = row_noise(np.arange(2000), np.arange(0, 40_001, 20))
    assert kstest(noise, "norm").pvalue > 1e-3
    assert kstest(other, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.03


# Reading ahead


def test_the_next_part_is_read_on_another_thread_while_one_is_worked_on():
    begun, threads = threading.Event(), []

    def second():
        threads.append(threading.current_thread())
        begun.set()
        return 2

    for part in read_ahead([lambda: 1, second]):
        assert begun.wait(5)  # before the first one is done with
        assert part in (1, 2)
    assert threads[0] is not threading.main_thread()


def test_what_a_reader_raises_comes_in_its_turn():
    def bad():
        raise LabelError("bad", "mend it.")

    parts = []
    with pytest.raises(LabelError):
        parts.extend(read_ahead([lambda: 1, lambda: 2, bad, lambda: 4]))
    assert parts == [1, 2]
    assert list(read_ahead([])) == []
    assert next(read_ahead([lambda: 1, bad])) == 1  # given up before


def test_few_parts_are_in_memory_at_a_time():
    alive, most = weakref.WeakSet(), []

    class Held:
        pass

    def prepare(*_):
        rows = Held()
        alive.add(rows)
        return rows

    parts = StreamedParts(SCAN.parts, prepare, [None] * len(SCAN.parts))
    gc.collect()
    for turn in range(3):
        del turn
        parts.each(lambda _: most.append(len(alive)))
    assert max(most) <= 3
    parts_in_memory = []
    parts.each(parts_in_memory.append)
    assert len(alive) == len(SCAN.parts)  # the check can fail


# Training


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "bundle"])
@pytest.mark.parametrize("surrogate", ["softmax", "squared", "pairwise", "duchi", "preorder"])
@pytest.mark.parametrize("metric", ["ndcg@10", "ap"])
def test_weights_are_those_of_the_data_in_memory(metric, surrogate, solver):
    options = {"metric": metric, "surrogate": surrogate, "solver": solver}
    check_same(fitted(SCAN, **options), fitted(TOY.X, TOY.y, fit={"qid": TOY.qid}, **options))


def test_a_loss_with_corners_comes_as_near_to_the_same_optimum():
    """Rounding decides on which side of a corner a step ends, and so where it goes next."""
    options = {"surrogate": "position_hinge", "solver": "bundle"}
    parts, plain = fitted(SCAN, **options), fitted(TOY.X, TOY.y, fit={"qid": TOY.qid}, **options)
    check_near(parts, plain)
    margin = cc.MaxMarginRanker("ap")
    with knowingly():
        check_near(clone(margin).fit(SCAN), clone(margin).fit(TOY.X, TOY.y, qid=TOY.qid))


def check_near(model, other):
    """Two fits are as near to one optimum as they say."""
    apart = abs(model.solution_.value - other.solution_.value)
    assert apart <= max(model.solution_.gap, other.solution_.gap)


@st.composite
def problems(draw):
    """Nasty little sets: single items, ties, text ids, weights of 0, features that do not vary, or huge."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=12))
    n = sum(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, 3)) * np.array([1.0, draw(st.sampled_from([0.0, 1e-2, 1e6])), 1.0]) + 5.0
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    y = rng.integers(draw(st.sampled_from([1, 2, 5])), size=n).astype(float)
    names = rng.permutation(len(sizes))
    ids = np.repeat(names if draw(st.booleans()) else np.array([f"q{k}" for k in names]), sizes)
    weights = {}
    if draw(st.booleans()):
        weights["query_weight"] = np.repeat(np.r_[1.0, rng.integers(3, size=len(sizes) - 1)], sizes)
    if draw(st.booleans()):
        weights["sample_weight"] = np.r_[1.0, rng.integers(3, size=n - 1)].astype(float)
    return X, y, ids, weights, draw(st.integers(1, 5)), draw(st.integers(0, 99))


@settings(max_examples=40)
@given(problems(), st.sampled_from(["ndcg", "ap", "err", "pd"]), st.sampled_from([True, False]))
def test_nasty_sets_give_the_same_weights(problem, metric, fit_scale):
    X, y, ids, weights, n_parts, seed = problem
    order = np.argsort(ids, kind="stable")
    options = {"metric": metric, "fit_scale": fit_scale, "alpha": 0.3}
    fit_options = {"qid": ids[order], **{name: column[order] for name, column in weights.items()}}
    plain = fitted(X[order], y[order], fit=fit_options, **options)
    parts = fitted(scan_of(X, y, ids, n_parts, seed=seed, **weights), **options)
    assert parts.solution_.value == pytest.approx(plain.solution_.value, rel=1e-6, abs=1e-12)
    # Unscaled features near 1e6 leave the weights less exact than the 1e-8 of ordinary data.
    np.testing.assert_allclose(parts.coef_ * plain.scale_, plain.coef_ * plain.scale_, rtol=0, atol=1e-7)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 6),
    st.integers(0, 3),
    st.sampled_from(["softmax", "squared", "pairwise", "duchi", "preorder"]),
)
def test_one_query_of_three_grades_decides_the_targets_of_all(seed, n_parts, n_graded, surrogate):
    """Wherever the cuts are: by two grades alone, other parts would be trained on 0 and 1."""
    y = np.where(TOY.qid < TOY.qid[0] + n_graded, TOY.y, 2.0 * (TOY.y > 1))
    scan, options = scan_of(TOY.X, y, TOY.qid, n_parts, seed=seed), {"metric": "pd", "surrogate": surrogate}
    check_same(fitted(scan, **options), fitted(TOY.X, y, fit={"qid": TOY.qid}, **options))


def test_ids_of_digits_are_whole_numbers_in_files(tmp_path):
    """As text, ids have another order; queries stand in the order of the rows all the same."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, ids = [f"x{k}" for k in range(10)], TOY.qid.astype(str)
    columns = dict(zip(names, TOY.X.T, strict=True))
    pq.write_table(pa.table({"qid": ids, "grade": TOY.y, **columns}), tmp_path / "a.parquet")
    model = fitted(cc.scan_parquet(tmp_path / "a.parquet"))
    check_same(model, fitted(TOY.X, TOY.y, fit={"qid": TOY.qid}))
    check_same(model, fitted(TOY.X, TOY.y, fit={"qid": ids}))


class Sloppy(StreamedParts):
    """Wrong: leaves the last part out of every sum."""

    def total(self, job, *arguments):
        return tree_sum([job(part, *arguments) for part in self.iter_prepared()][:-1])


def test_the_check_sees_a_forgotten_part():
    plain = fitted(TOY.X, TOY.y, fit={"qid": TOY.qid})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concordant.scale.cluster_parts.StreamedParts", Sloppy)
        wrong = fitted(SCAN)
    with pytest.raises(AssertionError):
        check_same(wrong, plain)


def prepared(metric, surrogate, scan=SCAN):
    """Arguments of `partitioned_problem`."""
    recipe = cc.metric(metric), cc.surrogates.surrogate(surrogate)
    return (
        LinearPreparation(*recipe, None, None, digests=False),
        as_parts_source(scan),
        partial(show_pass, "", 0),
    )


@pytest.mark.parametrize("surrogate", ["softmax", "squared", "pairwise"])
def test_gradient_and_hessian_by_differences(surrogate):
    objective = partitioned_problem(*prepared("ndcg", surrogate), fit_scale=True).objective(0.2)
    w = np.random.default_rng(0).normal(size=10)
    grad = objective.value_and_grad(w)[1]

    def value(w):
        return objective.value_and_grad(w)[0]

    slopes = [(value(w + step) - value(w - step)) / 2e-6 for step in 1e-6 * np.eye(10)]
    np.testing.assert_allclose(grad, slopes, rtol=1e-5, atol=1e-7)
    direction = np.random.default_rng(1).normal(size=10)
    objective.value_and_grad(w)
    product = objective.hessian_product(direction)
    ahead, behind = (objective.value_and_grad(w + side * direction)[1] for side in (1e-5, -1e-5))
    np.testing.assert_allclose(product, (ahead - behind) / 2e-5, rtol=1e-3, atol=1e-5)
    objective.value_and_grad(w)
    there = w + 0.5 * direction
    assert objective.along(direction, 0.5) + 0.1 * there @ there == pytest.approx(value(there))


def test_bits_do_not_depend_on_threads():
    """Of BLAS, too, which cuts sums of long vectors by them: workers have fewer than this process."""
    rng, n = np.random.default_rng(0), 40_000
    long = scan_of(
        rng.normal(size=(n, 2)), rng.integers(3, size=n), np.repeat(np.arange(400), 100), n_parts=1
    )
    setting, bends, sums = prepared("ndcg", "softmax", long), [], []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"), kernel_threads(threads):
            problem = partitioned_problem(*setting, fit_scale=True)
            bends.append(problem.objective(0.1).stats.bends.tolist())
            sums.append(problem.objective(0.1).value_and_grad(np.ones(2))[1].tolist())
    assert bends[0] == bends[1]
    assert sums[0] == sums[1]


def test_a_gradient_is_one_pass():
    scan = scan_of(TOY.X, TOY.y, TOY.qid, n_parts=3)
    model = fitted(scan)
    surveys = 1
    assert {part.reads for part in scan.parts} == {model.solution_.n_gradients + surveys}
    mixed = scan_of(TOY.X, np.where(TOY.qid < 9, TOY.y, TOY.y > 1), TOY.qid, n_parts=20)
    learnt = 2  # of which the first shows that other parts have three grades
    assert fitted(mixed, metric="pd").solution_.n_gradients + learnt == mixed.parts[0].reads


@pytest.mark.slow
def test_stochastic_steps_come_near_the_optimum():
    best = fitted(SCAN, tol=1e-10).solution_.value
    model = fitted(SCAN, solver="sgd", max_iter=30, tol=1e-4)
    assert model.solution_.value <= best * (1.0 + 2e-3)
    again = fitted(SCAN, solver="sgd", max_iter=30, tol=1e-4)
    assert again.coef_.tolist() == model.coef_.tolist()


def test_warm_start_and_names():
    names = tuple(f"x{k}" for k in range(10))
    scan = scan_of(TOY.X, TOY.y, TOY.qid, names=names)
    model = LinearRanker(warm_start=True).fit(scan)
    assert model.feature_names_in_.tolist() == list(names)
    first = model.n_iter_
    assert model.fit(scan).n_iter_ <= first
    assert not hasattr(LinearRanker().fit(SCAN), "feature_names_in_")


def test_a_guarantee_that_is_lacking_is_warned_of_once():
    with pytest.warns(GuaranteeWarning) as caught:
        LinearRanker("err").fit(SCAN)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_risk_bound_is_for_rows_in_memory():
    model = fitted(SCAN)
    with pytest.raises(FeaturesError, match="rows are on disk"):
        model.risk_bound(SCAN, None)
    assert model.risk_bound(TOY.X, TOY.y, qid=TOY.qid).n == model.n_queries_


def test_labels_of_all_parts_decide_the_space():
    y = np.where(TOY.qid == TOY.qid.max(), TOY.y, TOY.y > 0)
    for labels, space in ((y, "grades"), (TOY.y > 0, "binary")):
        model = fitted(scan_of(TOY.X, np.asarray(labels, dtype=float), TOY.qid), metric="dcg")
        plain = fitted(TOY.X, np.asarray(labels, dtype=float), metric="dcg", fit={"qid": TOY.qid})
        assert model.certificate_.sample.space == plain.certificate_.sample.space == space


def test_bad_rows_are_named_before_training():
    y = TOY.y.copy()
    y[TOY.qid == TOY.qid[7]] = 2000.0  # 2^2000 - 1
    with pytest.raises(GradeError, match=r"^part \d: grade 2000 at row \d+ \(query ") as caught:
        LinearRanker("ndcg").fit(scan := scan_of(TOY.X, y, TOY.qid))
    part, row = map(int, re.findall(r"(?:part|row) (\d+)", str(caught.value))[:2])
    assert scan.parts[part].y[row] == 2000.0  # as it was read, not as it was sorted
    assert caught.value.row == row
    X = TOY.X.copy()
    X[3] *= 1e300
    with pytest.raises(NonFiniteError, match="sum of squares"):
        LinearRanker().fit(scan_of(X, TOY.y, TOY.qid))


def test_refused():
    with pytest.raises(ParameterError, match="a scan already names its columns"):
        LinearRanker().fit(SCAN, TOY.y)
    with pytest.raises(ParameterError, match="client"):
        LinearRanker().fit(TOY.X, TOY.y, qid=TOY.qid, client="tcp://nowhere")
    with pytest.raises(ParameterError, match="query_weight"):
        LinearRanker().fit(scan_of(TOY.X, TOY.y, TOY.qid, query_weight=np.zeros(len(TOY.y))))
    with pytest.raises(ParameterError, match="sample_weight"):
        LinearRanker().fit(scan_of(TOY.X, TOY.y, TOY.qid, sample_weight=np.zeros(len(TOY.y))))


@pytest.mark.parametrize("call", ["fit", "predict", "score", "rank"])
def test_where_rows_are_asked_for_a_scan_says_what_to_do(call):
    model = cc.LinearRankerCV() if call == "fit" else LinearRanker().fit(SCAN)
    for asked in ((SCAN, TOY.y), (SCAN,)) if call in ("fit", "score") else ((SCAN,),):
        with pytest.raises(FeaturesError, match=r"it is a scan, .*cc\.evaluate.*for rows in scan"):
            getattr(model, call)(*asked)


def test_rankers_of_rows_in_memory_ask_for_labels():
    """Not by a raw `TypeError`, which y without a default would give."""
    for call in (cc.LinearRankerCV().fit, LinearRanker().fit(SCAN).score):
        with pytest.raises(LabelError, match="requires y to be passed"):
            call(TOY.X)


def test_a_network_says_that_it_takes_no_scan():
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(FeaturesError, match="it is a scan"):
        cc.NeuralRanker().fit(SCAN)


def test_a_refused_fit_leaves_an_earlier_model_whole():
    model = LinearRanker().fit(SCAN)
    before = model.coef_
    with pytest.raises(ConcordantError):
        model.fit(scan_of(TOY.X, TOY.y, TOY.qid, query_weight=np.zeros(len(TOY.y))))
    assert model.coef_ is before


def test_an_interrupt_keeps_the_best_weights():
    class Interrupting:
        calls = 0

        def __call__(self, _):
            self.calls += 1
            if self.calls > 22:
                raise KeyboardInterrupt

    stop = Interrupting()
    original = StreamedParts.__init__

    def spied(self, *arguments):
        original(self, *arguments)
        self.on_part_done = stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamedParts, "__init__", spied)
        with pytest.warns(UserWarning, match="interrupt"):
            model = LinearRanker(tol=1e-12).fit(SCAN)
    assert model.solution_.stopped_by == "interrupt"
    assert model.coef_.any()


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path):
    whole = fitted(SCAN, tol=1e-10)
    fitted(SCAN, tol=1e-10, max_iter=2, checkpoint=tmp_path)
    scan = scan_of(TOY.X, TOY.y, TOY.qid, n_parts=5)
    model = fitted(scan, tol=1e-10, checkpoint=tmp_path)
    assert model.coef_.tolist() == whole.coef_.tolist()
    assert max(part.reads for part in scan.parts) < whole.solution_.n_gradients + 1
    other = scan_of(TOY.X + 1.0, TOY.y, TOY.qid, n_parts=5)
    with pytest.raises(ConcordantError, match="other data"):
        fitted(other, tol=1e-10, checkpoint=tmp_path)


def test_the_bar_moves_with_the_parts(capsys):
    LinearRanker(verbose=1).fit(SCAN)
    assert "reading" in capsys.readouterr().err


# Judging

METRICS = ("ndcg@10", "ndcg@3[trec_eval]", "dcg", "err", "ap", "p@5", "rr", "eru", "pd", "wpd", "auc")


@pytest.mark.parametrize("weighted", [False, True])
def test_every_metric_is_that_of_the_data_in_memory(weighted):
    scores = np.round(TOY.X[:, 0])  # with ties
    X, weight = np.column_stack((scores, TOY.X[:, 1])), np.repeat([1.0, 0.0, 3.0], [20, 20, 20])
    weights = {"query_weight": weight[np.unique(TOY.qid, return_inverse=True)[1]]} if weighted else {}
    result = cc.evaluate(lambda X: X[:, 0], scan_of(X, TOY.y, TOY.qid, n_parts=4, **weights), metrics=METRICS)
    queries = cc.Queries.from_ids(TOY.qid)
    for name in METRICS:
        metric = cc.metric(name)
        per_query = metric.per_query(TOY.y, scores, qid=TOY.qid)
        assert result.per_query[name].tolist() == pytest.approx(per_query.tolist(), nan_ok=True, abs=0)
        mean = metric.average(per_query, weight if weighted else None)
        assert float(result[name]) == float(mean)
        assert (result[name].n_queries, result[name].n_skipped) == (mean.n_queries, mean.n_skipped)
    assert result.ids.tolist() == queries.ids.tolist()
    plain = cc.evaluate(lambda X: X[:, 0], X, TOY.y, qid=TOY.qid, metrics=METRICS, **weights)
    assert {name: float(plain[name]) for name in plain} == {name: float(result[name]) for name in result}


def test_what_judges():
    model = LinearRanker().fit(SCAN)
    value = cc.evaluate(model, SCAN)["ndcg@10"]
    assert float(value) == pytest.approx(model.score(TOY.X, TOY.y, qid=TOY.qid), rel=1e-12)
    assert cc.evaluate(model, cc.RankingData(TOY.X, TOY.y, TOY.qid))["ndcg@10"] == value
    assert cc.evaluate(model, SCAN, metrics="ndcg@10[lightgbm]")["ndcg@10[lightgbm]"] > 0
    named = scan_of(TOY.X, TOY.y, TOY.qid, names=tuple("abcdefghij"))
    of_names = LinearRanker().fit(named)
    assert cc.evaluate(of_names, named)["ndcg@10"] == pytest.approx(value)
    assert of_names.feature_names_in_.tolist() == list("abcdefghij")
    with pytest.raises(LabelError, match="not the features"):
        cc.evaluate(of_names, scan_of(TOY.X, TOY.y, TOY.qid, names=tuple("jihgfedcba")))
    for bad in (3, None):
        with pytest.raises(ParameterError, match="model"):
            cc.evaluate(bad, SCAN)
    with pytest.raises(ParameterError, match="not rankings"):
        cc.evaluate(model, SCAN, metrics="comparison_error")
    with pytest.raises(ParameterError, match="at least one"):
        cc.evaluate(model, SCAN, metrics=[])
    with pytest.raises(ParameterError, match="Leave y and qid out"):
        cc.evaluate(model, cc.RankingData(TOY.X, TOY.y, TOY.qid), TOY.y)


def test_what_was_not_measured_is_not_there():
    result = cc.evaluate(lambda X: X[:, 0], SCAN, metrics="ndcg@5")
    assert "ndcg@5" in result
    for name in ("ap", "zzz", 7):
        assert name not in result
        assert result.get(name) is None
        with pytest.raises(UnknownNameError, match=r"metric of this evaluation .*\nHint: .* are ndcg@5"):
            result[name]


@pytest.mark.parametrize("X", ["a.parquet", None, 7.5])
def test_what_has_no_rows_is_refused(X):
    with pytest.raises(FeaturesError, match=f"X cannot be read as features: it is a {type(X).__name__}"):
        cc.evaluate(lambda X: X, X)


def test_a_metric_by_which_parts_depend_on_one_another_is_refused():
    metric = cc.metric("err[max_grade=data]")
    with pytest.raises(ParameterError, match=r"max_grade must be a number for data in parts"):
        cc.evaluate(lambda X: X[:, 0], SCAN, metrics=["ap", metric])
    with pytest.raises(ParameterError, match=r"max_grade must be a number for data in parts"):
        LinearRanker(metric).fit(SCAN)
    assert cc.evaluate(lambda X: X[:, 0], TOY.X, TOY.y, qid=TOY.qid, metrics=metric)[str(metric)] > 0


def test_features_of_a_pipeline_are_compared_by_name():
    names = tuple("abcdefghij")
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(pd.DataFrame(TOY.X, columns=names), TOY.y)
    with pytest.raises(LabelError, match="not the features"):
        cc.evaluate(model, scan_of(TOY.X, TOY.y, TOY.qid, names=names[::-1]))
    with pytest.warns(UserWarning, match="feature names"):
        cc.evaluate(model, scan_of(TOY.X, TOY.y, TOY.qid, names=names))


def test_rows_without_features_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1\n0 qid:1\n")
    for model in (LinearRanker(), cc.PairRanker("ap")):
        with pytest.raises(FeaturesError, match="no feature"):
            model.fit(cc.scan_letor(tmp_path / "a.txt"))


def test_judging_names_a_query_once():
    for data in (SCAN, cc.RankingData(TOY.X, TOY.y, TOY.qid)):
        with pytest.raises(NonFiniteError) as caught:
            cc.evaluate(lambda X: np.full(len(X), np.nan), data)
        assert str(caught.value).count("(query ") == 1
    with pytest.raises(ParameterError, match=r"metric must be .*got 3"):
        cc.evaluate(lambda X: X[:, 0], SCAN, metrics=3)


def test_a_frame_may_have_columns_called_as_ranking_data_has_fields(tmp_path):
    table = pd.DataFrame({"qid": [1, 1, 2], "y": [0, 1, 1], "X": [0.5, 2.0, 1.0]})
    assert cc.write_parquet(table, tmp_path / "a.parquet").feature_names == ("X",)
    result = cc.evaluate(lambda table: table.X, table, table.y, qid=table.qid)
    assert float(result["ndcg@10"]) == 1.0


@pytest.mark.parametrize(("text", "size"), [("1 GiB", 2**30), ("500MB", 5 * 10**8), (7, 7), ("0.5 KiB", 512)])
def test_sizes(text, size):
    assert parse_size(text) == size
    assert format_size(2**31) == "2 GiB"


@pytest.mark.parametrize("bad", ["much", "", "-1 GiB", 0, True, "1 TB", None, float("nan"), float("inf")])
def test_sizes_that_are_none(bad):
    with pytest.raises(ParameterError, match="memory"):
        parse_size(bad)
