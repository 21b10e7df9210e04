"""PairRanker on data in parts: the sums of parts are those of all rows, and so are the weights."""

import re
import warnings
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import concordant as cc
from concordant import GuaranteeWarning, PairRanker, synthetic
from concordant.exceptions import (
    ConcordantError,
    GradeError,
    LabelWarning,
    ModelFileError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from concordant.rankers.pair_features import AUTO, TABLES
from concordant.scale import cluster_parts
from concordant.scale.parts import FAN, Tree, add_vectors, tree_sum
from concordant.solvers.ridge import Block, Moments
from tests.helpers.checkpointed import Ended, ending
from tests.helpers.parted import scan_of

pytestmark = pytest.mark.once

TOY = synthetic.grades(n_queries=40, n_items=(1, 7), n_features=4, seed=3)
SCAN = scan_of(TOY.X, TOY.y, TOY.qid, n_parts=20)
RNG = np.random.default_rng(0)
COLUMNS = {
    "sample_weight": RNG.integers(0, 3, len(TOY.y)).astype(float) * 1e200,  # products of which overflow
    "query_weight": RNG.integers(0, 3, TOY.qid.max() + 1)[TOY.qid].astype(float),
}
metrics = pytest.mark.parametrize("metric", ["ap", "pd"])


def phi(left, right):
    return (left + right) ** 2


def check_same(model, other):
    """Two fits gave the same model, but for rounding."""
    for name in ("coef_", "diagonal_coef_", "intercept_", "diagonal_intercept_", "scale_"):
        values, expected_values = np.atleast_1d(getattr(model, name)), np.atleast_1d(getattr(other, name))
        near = 1e-8 * np.abs(expected_values).max(initial=1e-6)  # where all are 0, rounding leaves some 1e-33
        np.testing.assert_allclose(values, expected_values, rtol=1e-8, atol=near)
    for name in (
        "pair_features_",
        "groups_",
        "symmetric_",
        "n_queries_",
        "n_informative_",
        "sample_",
        "metric_",
    ):
        assert getattr(model, name) == getattr(other, name), name
    assert (model.basis_, model.certificate_.claim) == (other.basis_, other.certificate_.claim)
    optimality, expected = model.certificate_.optimality, other.certificate_.optimality
    assert optimality.value == pytest.approx(expected.value, rel=1e-8, abs=1e-12)
    assert (optimality.converged, optimality.alpha) == (expected.converged, expected.alpha)


def bits(model):
    """All that is fitted."""
    return model.coef_.tolist(), model.diagonal_coef_.tolist(), model.intercept_, model.diagonal_intercept_


# ---------------------------------------------------------------- sums of products


def check_merge(merge, rows, targets, weights, cut, *, intercept):
    """Moments of two parts become those of all rows, by their definition."""

    def moments_of(rows_of_part):
        block = Block(rows[rows_of_part], targets[rows_of_part], weights[rows_of_part])
        return Moments.from_blocks([block], rows.shape[1], intercept=intercept)

    both = moments_of(slice(cut)), moments_of(slice(cut, None))
    before = [moments.gram.copy() for moments in both]
    merged = merge(*both)
    total = weights.sum() or 1.0
    means = weights @ rows / total if intercept else np.zeros(rows.shape[1])
    level = weights @ targets / total if intercept else 0.0
    off, beyond = rows - means, targets - level
    size = np.abs(rows).max(initial=1e-300) * np.abs(weights).sum()
    np.testing.assert_allclose(merged.means, means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(merged.gram, (off.T * weights) @ off, rtol=1e-9, atol=1e-12 * size)
    np.testing.assert_allclose(merged.cross, (off.T * weights) @ beyond, rtol=1e-9, atol=1e-12 * size)
    assert merged.square == pytest.approx(weights @ beyond**2, rel=1e-9, abs=1e-12 * size)
    assert (merged.weight, merged.intercept) == (pytest.approx(weights.sum()), intercept)
    assert [moments.gram.tolist() for moments in both] == [
        gram.tolist() for gram in before
    ]  # they are not changed


def plainly(moments, other):
    """Add centred sums as if they were about the same means: wrong."""
    whole = moments.weight + other.weight or 1.0
    return replace(
        moments,
        weight=moments.weight + other.weight,
        means=(moments.weight * moments.means + other.weight * other.means) / whole,
        target_mean=(moments.weight * moments.target_mean + other.weight * other.target_mean) / whole,
        gram=moments.gram + other.gram,
        cross=moments.cross + other.cross,
        square=moments.square + other.square,
    )


@given(
    st.lists(st.tuples(*[st.integers(-4, 4)] * 3, st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=8),
    st.integers(0, 8),
    st.sampled_from([0.0, 1.0, 1e3]),
    st.booleans(),
)
@settings(max_examples=60)
def test_merged_moments_are_those_of_all_rows(table, cut, jump, intercept):
    rows = np.array([row[:2] for row in table], dtype=float)
    rows[cut:] += jump
    targets, weights = (np.array([row[k] for row in table], dtype=float) for k in (2, 3))
    check_merge(Moments.merged, rows, targets, weights, cut, intercept=intercept)


def test_sums_about_other_means_are_not_just_added():
    rows, targets, weights = RNG.normal(size=(9, 2)), RNG.normal(size=9), RNG.random(9)
    check_merge(Moments.merged, rows, targets, weights, 4, intercept=True)
    check_merge(plainly, rows, targets, weights, 4, intercept=False)  # there the means are 0
    with pytest.raises(AssertionError):
        check_merge(plainly, rows, targets, weights, 4, intercept=True)


@given(st.integers(1, 200), st.data())
@settings(max_examples=40)
def test_a_tree_may_be_left_and_continued_by_subtrees(n, data):
    vectors = np.random.default_rng(n).normal(size=(n, 2))
    tree, heard = Tree(add_vectors, lambda subtree: heard.append(subtree.done)), []
    while tree.done < n:
        level = tree.level(data.draw(st.integers(0, 3)))
        some = vectors[tree.done : tree.done + FAN**level]
        tree.add(tree_sum(some), level, len(some))
    assert tree.whole().tolist() == tree.whole().tolist() == tree_sum(vectors).tolist()
    assert heard[-1] == n
    assert heard == sorted(set(heard))


# ---------------------------------------------------------------- fits


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@metrics
@pytest.mark.parametrize("more", [{}, COLUMNS], ids=["plain", "weights"])
@pytest.mark.parametrize("every", [False, True], ids=["auto", "every group"])
@pytest.mark.parametrize("n_parts", [1, 3, 20])
def test_the_weights_are_those_of_all_rows(metric, more, every, n_parts):
    features = tuple(TABLES[metric == "ap"]) if every else AUTO[metric]
    model = PairRanker(metric, features=features)
    whole = model.fit(TOY.X, TOY.y, qid=TOY.qid, **more)
    parts = PairRanker(metric, features=features).fit(scan_of(TOY.X, TOY.y, TOY.qid, n_parts, **more))
    check_same(parts, whole)
    assert parts.rank(TOY.X, qid=TOY.qid).tolist() == whole.rank(TOY.X, qid=TOY.qid).tolist()


@metrics
def test_a_wrong_merge_is_seen(metric, monkeypatch):
    whole = PairRanker(metric).fit(TOY.X, TOY.y, qid=TOY.qid)
    monkeypatch.setattr(Moments, "merged", plainly if metric == "ap" else lambda moments, _: moments)
    with pytest.raises(AssertionError):
        check_same(PairRanker(metric).fit(SCAN), whole)


@pytest.mark.parametrize("fit_scale", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_penalties_and_levels(alpha, fit_scale):
    """Features far from 0, in each part at another level."""
    X = TOY.X + 100.0 + 50.0 * TOY.qid[:, None]
    model = PairRanker("ap", alpha, fit_scale=fit_scale, features=("sum", "absdiff"))
    whole = model.fit(X, TOY.y, qid=TOY.qid)
    check_same(PairRanker(**model.get_params()).fit(scan_of(X, TOY.y, TOY.qid, 7)), whole)


def test_a_function_of_two_items_and_names_of_features():
    names = ("a", "b", "c", "d")
    whole = PairRanker(features=phi).fit(TOY.X, TOY.y, qid=TOY.qid)
    parts = PairRanker(features=phi).fit(scan_of(TOY.X, TOY.y, TOY.qid, 4, names))
    check_same(parts, whole)
    assert parts.pair_features_ == ["phi0", "phi1", "phi2", "phi3"]
    named = PairRanker("pd", features=("difference",)).fit(scan_of(TOY.X, TOY.y, TOY.qid, 4, names))
    assert named.feature_names_in_.tolist() == list(names)
    assert named.pair_features_ == [f"difference({name})" for name in names]
    assert not hasattr(named.fit(SCAN), "feature_names_in_")


def outcome(*data, **more):
    """Fit: the model and the kinds of warnings, or the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", LabelWarning)  # of labels in memory
        try:
            model = PairRanker(more.pop("metric"), features="auto").fit(*data, **more)
        except ConcordantError as error:
            return type(error), str(error)
    return model, [(warning.category, str(warning.message)) for warning in caught]


@metrics
@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=7),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3]),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_nasty_sets(metric, grades, n_parts, most, seed):
    """Single items, ties, nothing relevant in a part or anywhere, weights of 0: the same model or error."""
    rng = np.random.default_rng(seed)
    sizes = [len(labels) for labels in grades]
    qid, y = np.repeat(np.arange(len(sizes)), sizes), np.concatenate(grades).astype(float)
    X = rng.integers(-2, 3, size=(len(y), 2)).astype(float)
    weight = rng.integers(most, size=len(y)) / 2.0
    per_query = np.repeat(rng.integers(most, size=len(sizes)), sizes).astype(float)
    columns = {} if most == 3 else {"sample_weight": weight, "query_weight": per_query}
    scan = scan_of(X, y, qid, n_parts, **columns)
    (model, warned), (other, expected) = (
        outcome(scan, metric=metric),
        outcome(X, y, qid=qid, metric=metric, **columns),
    )
    assert warned == expected
    if isinstance(model, PairRanker):
        check_same(model, other)
    else:
        assert model is other


# ---------------------------------------------------------------- what is told


def test_guarantees_are_warned_of_once_and_first(monkeypatch):
    three = TOY.y.copy()  # three grades in one query only: a part decides for all
    three[TOY.qid != TOY.qid[-1]] = 0.0
    three[TOY.qid == TOY.qid[-1]] = np.arange((TOY.qid == TOY.qid[-1]).sum()) % 3
    scan = scan_of(TOY.X, three, TOY.qid, 5)
    with pytest.warns(GuaranteeWarning, match="borda") as caught:
        model = PairRanker("pd", decoder="borda").fit(scan)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.sample_.space == "grades"
    two = scan_of(TOY.X, three > 0, TOY.qid, 5)
    assert PairRanker("pd", decoder="borda").fit(two).sample_.space == "binary"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(PairRanker, "sum_pairs", lambda *_: pytest.fail("the work began"))
        with pytest.raises(GuaranteeWarning):
            PairRanker("pd", decoder="borda").fit(scan)


def test_nothing_to_learn_is_warned_of():
    with pytest.warns(UserWarning, match="no query has a relevant item, at a weight above 0") as caught:
        PairRanker().fit(scan_of(TOY.X, 0 * TOY.y, TOY.qid, 3))
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="no query has labels that differ, at a weight above 0"):
        PairRanker("pd").fit(scan_of(TOY.X, 0 * TOY.y + 1, TOY.qid, 3))


def test_parts_are_read_twice_and_shown(capfd):
    scan = scan_of(TOY.X, TOY.y, TOY.qid, 4)
    PairRanker("pd", verbose=1).fit(scan)
    assert [part.reads for part in scan.parts] == [2] * 4
    shown = capfd.readouterr().err
    assert "reading" in shown
    assert "pairs" in shown


def test_bad_rows_are_named_by_file_row_group_and_row(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "train.parquet"

    def scan(**columns):
        table = {"qid": [1, 1, 2, 2, 3, 3], "y": [0.0, 1.0, 0.0, 2.0, 1.0, 0.0], "a": [0.5, 1, 2, 4, 3, 1]}
        pq.write_table(pa.table({**table, **columns}), path, row_group_size=2)
        return cc.scan_parquet(path)

    whole = PairRanker("pd").fit(scan())
    assert whole.n_features_in_ == 1
    message = re.escape("train.parquet, row group 1: column 'a' is nan at row 1")
    with pytest.raises(NonFiniteError, match=message):
        PairRanker("pd").fit(scan(a=[0.5, 1, 2, np.nan, 3, 1]))
    with pytest.raises(GradeError, match=re.escape("train.parquet, row group 2: grade -3 at row 0")):
        whole.fit(scan(y=[0.0, 1.0, 0.0, 2.0, -3.0, 0.0]))
    assert whole.n_features_in_ == 1  # as it was


def test_what_a_part_cannot_do_names_it():
    scan = scan_of(TOY.X, TOY.y, TOY.qid, 3)
    large = np.where(TOY.qid == scan.parts[2].qid[0], 1e200, 1.0)[:, None]
    with pytest.raises(NonFiniteError, match=r"^part 2: the sum of squares is inf at feature 0"):
        PairRanker("ap").fit(scan_of(large * TOY.X, TOY.y, TOY.qid, 3))
    bad = float(scan.parts[1].X[0, 0])

    def broken(left, right):
        return np.where((left == bad) | (right == bad), np.nan, left + right)

    message = re.escape("part 1: features(left, right) contains NaN at row")
    with pytest.raises(NonFiniteError, match=message) as caught:
        PairRanker(features=broken).fit(scan)
    assert caught.value.row is None  # it counts pairs
    with pytest.raises(ParameterError, match=r"^part 0: features must be antisymmetric"):
        PairRanker("pd", features=phi).fit(scan)
    widths = iter([1, 1, 1, 1, 2, 2])
    with pytest.raises(ShapeError, match="4 numbers per pair, as in other parts"):
        PairRanker(features=lambda left, right: np.tile(left + right, next(widths))).fit(scan)


def test_sums_that_overflow_together():
    """Each part's are in the range of doubles."""
    X, y, qid = np.tile([[0.0], [1.0]], (4, 1)) * 1.4 * 2.0**500, np.tile([0, 1], 4), np.repeat(range(4), 2)
    with pytest.raises(NonFiniteError, match=r"^the sum of squares is 2\.1\S*e\+301 at feature 0"):
        PairRanker("pd", features=("difference",)).fit(scan_of(X, y, qid, 4))
    assert PairRanker("pd", features=("difference",)).fit(scan_of(X / 1.5, y, qid, 4)).coef_ > 0.0


def test_what_cannot_be_fitted_is_refused():
    wide = scan_of(np.zeros((4, 210)), [0, 1, 0, 1], [0, 0, 1, 1], 2)
    with pytest.raises(ParameterError, match=r"^features gives 22365 features.*at most 20000"):
        PairRanker(features=("cross",)).fit(wide)
    assert {part.reads for part in wide.parts} == {0}
    for name, columns in (("sample_weight", {"sample_weight": 0 * TOY.y}), ("query_weight", {})):
        scan = scan_of(TOY.X, TOY.y, TOY.qid, 3, **(columns or {name: 0 * TOY.y}))
        with pytest.raises(ParameterError, match=f"{name} is zero for every"):
            PairRanker().fit(scan)
    with pytest.raises(ParameterError, match="a scan already names its columns"):
        PairRanker().fit(SCAN, TOY.y)
    with pytest.raises(ParameterError, match="X is an in-memory array"):
        PairRanker().fit(TOY.X, TOY.y, client="tcp://somewhere")
    with pytest.raises(ConcordantError, match="requires y"):
        PairRanker().fit(TOY.X)


# ---------------------------------------------------------------- checkpoints, and clusters


@metrics
@pytest.mark.parametrize("writes", [0, 7, 12])
def test_an_ended_fit_goes_on(metric, writes, tmp_path):
    whole = PairRanker(metric).fit(SCAN)
    with ending(writes), pytest.raises(Ended):
        PairRanker(metric, checkpoint=tmp_path).fit(SCAN)
    before = [part.reads for part in SCAN.parts]
    model = PairRanker(metric, checkpoint=tmp_path).fit(SCAN)
    assert bits(model) == bits(whole)
    assert model.n_informative_ == whole.n_informative_
    again = [part.reads - then for part, then in zip(SCAN.parts, before, strict=True)]
    assert again == [1] * (writes + 1) + [2] * (len(SCAN.parts) - writes - 1)
    done = PairRanker(metric, 5.0, checkpoint=tmp_path).fit(SCAN)  # from the sums: none is read for them
    assert bits(done) == bits(PairRanker(metric, 5.0).fit(SCAN))


def test_folders_of_other_fits_are_refused(tmp_path):
    PairRanker("pd", checkpoint=tmp_path).fit(SCAN)
    for other in (scan_of(TOY.X + 1.0, TOY.y, TOY.qid, 20), scan_of(TOY.X, TOY.y, TOY.qid, 5)):
        with pytest.raises(ModelFileError, match="it was written for other data"):
            PairRanker("pd", checkpoint=tmp_path).fit(other)
    with pytest.raises(ModelFileError, match="it was written for other data"):
        PairRanker("pd", checkpoint=tmp_path).fit(TOY.X, TOY.y, qid=TOY.qid)
    with pytest.raises(ModelFileError, match="features="):
        PairRanker("pd", features=("difference",), checkpoint=tmp_path).fit(SCAN)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@metrics
def test_a_cluster_gives_the_same_bits(client, metric):
    assert bits(PairRanker(metric).fit(SCAN, client=client)) == bits(PairRanker(metric).fit(SCAN))
    weighed = scan_of(TOY.X, TOY.y, TOY.qid, 9, **COLUMNS)
    features = {"ap": lambda left, right: left * right, "pd": lambda left, right: left - right}[metric]
    here, there = (
        PairRanker(metric, features=features).fit(weighed, client=executor) for executor in (None, client)
    )
    assert bits(here) == bits(there)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_collections(client):
    da = pytest.importorskip("dask.array")
    order = np.argsort(TOY.qid, kind="stable")
    cuts = np.searchsorted(TOY.qid[order], [0, 9, 20, 21, 40])
    sizes = tuple(np.diff(cuts).tolist())
    columns = {"X": TOY.X, "y": TOY.y, "qid": TOY.qid, **COLUMNS}
    collections = {k: da.from_array(v[order], chunks=(sizes, *v.shape[1:])) for k, v in columns.items()}
    for metric in ("ap", "pd"):
        model = PairRanker(metric).fit(**collections, client=client)
        check_same(model, PairRanker(metric).fit(TOY.X, TOY.y, qid=TOY.qid, **COLUMNS))


@pytest.mark.parametrize("writes", [0, 3, 12])
def test_a_fit_goes_on_elsewhere(client, writes, tmp_path):
    """Begun by one process, continued by a cluster some parts at a time, and the other way round."""
    assert cluster_parts.TURNS * sum(client.nthreads().values()) == FAN
    whole = PairRanker("ap").fit(SCAN)
    with ending(writes), pytest.raises(Ended):
        PairRanker("ap", checkpoint=tmp_path / "here").fit(SCAN)
    model = PairRanker("ap", checkpoint=tmp_path / "here").fit(SCAN, client=client)
    assert bits(model) == bits(whole)
    with ending(1) as writes_of_second, pytest.raises(Ended):
        PairRanker("ap", checkpoint=tmp_path / "there").fit(SCAN, client=client)
    assert writes_of_second == [2]  # eights: 8 and 8 of 20 are there
    assert bits(PairRanker("ap", checkpoint=tmp_path / "there").fit(SCAN)) == bits(whole)
