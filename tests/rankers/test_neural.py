"""NeuralRanker: transforms, gradients, what is learned, checkpoints, scikit-learn's conventions, errors."""

import hashlib
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import concordant as cc
from concordant import GuaranteeWarning, LinearRanker, Permutations, Preferences, Queries
from concordant.exceptions import (
    GradeError,
    LabelError,
    LengthMismatchError,
    MissingExtraError,
    ModelFileError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from tests import oracles

torch = pytest.importorskip("torch", reason="NeuralRanker needs torch")

from concordant.data.labels import RankingData  # noqa: E402
from concordant.rankers import neural as neural_module  # noqa: E402
from concordant.rankers.networks import batches as neural_batches  # noqa: E402
from concordant.rankers.networks.batches import (  # noqa: E402
    Pool,
    loss_of_batch,
    mean_loss,
)
from concordant.rankers.networks.epochs import Course, Recording, Trainer, filled_offsets  # noqa: E402  # noqa: E402
from concordant.rankers.networks.network import (  # noqa: E402  # noqa: E402
    Dropout,
    Log1p,
    NeuralScorer,
    Quantile,
    Standard,
    fitted_transforms,
    whole_queries,
)
from concordant.rankers.neural import NeuralRanker  # noqa: E402
from concordant.surrogates import Pairwise, PlackettLuce, Softmax, Squared  # noqa: E402

QUICK = {"hidden": (4,), "max_epochs": 3, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn(n_queries=30, n_items=8, n_features=4, seed=0):
    """Grades that follow the product of two features: no linear function of the features orders them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_items + 1, n_queries)
    qid = np.repeat(np.arange(n_queries) * 3 + 5, sizes)
    X = rng.normal(size=(len(qid), n_features))
    return X, np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3, 1.0]), qid


X, y, qid = drawn()


# ---------------------------------------------------------------- transforms

values = st.sampled_from([0.0, 1.0, -1.0, 1e-9, 1e6, -1e12]) | st.integers(-999, 999).map(lambda n: n / 7)
tables = st.integers(2, 12).flatmap(lambda n: arrays(np.float64, (n, 2), elements=values))


def check_transform_is(make, oracle, rows, others):
    """The transform fitted to `rows` does with `others` what the oracle does."""
    got = make.from_rows(rows)(torch.tensor(others)).numpy()
    np.testing.assert_allclose(got, oracle(rows, others), rtol=1e-9, atol=1e-9)


def log1p(_, others):
    return np.vectorize(oracles.signed_log)(others)


def quantile(rows, others):
    columns = zip(others.T, rows.T, strict=True)
    return np.array(
        [[oracles.share_below(value, column) for value in values] for values, column in columns]
    ).T


def standard(rows, others):
    constant = (rows == rows[0]).all(axis=0)
    shifted = rows - rows[0]
    spread = np.where(constant, 1.0, shifted.std(axis=0))
    return np.where(constant, 0.0, (others - rows[0] - shifted.mean(axis=0)) / spread)


@settings(max_examples=25)
@given(rows=tables, others=tables)
def test_log1p_is_signed(rows, others):
    check_transform_is(Log1p, log1p, rows, others)


@settings(max_examples=25)
@given(rows=tables, others=tables)
def test_quantiles_are_shares_of_the_rows(rows, others):
    check_transform_is(Quantile, quantile, rows, np.concatenate([rows, others]))


def test_quantiles_of_many_rows_are_scikit_learns():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=5000), rng.poisson(0.5, 5000), np.zeros(5000)])
    theirs = QuantileTransformer(subsample=None).fit(rows)
    others = np.concatenate([rows, rng.normal(size=(200, 3))])
    check_transform_is(Quantile, lambda _, others: theirs.transform(others), rows, others)


@settings(max_examples=25)
@given(rows=tables, others=tables)
def test_standard_has_mean_0_and_deviation_1(rows, others):
    check_transform_is(Standard, standard, rows, np.where((rows == rows[0]).all(axis=0), others[:1], rows))


def test_standard_is_not_fooled_by_rounding_or_size():
    rows = np.column_stack([np.full(50, 0.1), 1e300 * np.arange(50.0), 1e-300 * np.arange(50.0)])
    got = Standard.from_rows(rows)(torch.tensor(rows)).numpy()
    np.testing.assert_allclose(got[:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(got[:, 1:].std(axis=0), 1.0)


def test_the_type_of_the_features_says_what_is_rounding():
    rng = np.random.default_rng(0)
    times = 1.7e9 + 1000.0 * rng.normal(size=(400, 1))
    for names in (("standard",), ("log1p", "standard")):
        for rows in (times, times.astype(np.float32)):
            got = fitted_transforms(names, rows)(torch.tensor(rows).double()).numpy()
            assert np.corrcoef(got[:, 0], times[:, 0])[0, 1] > 0.99
    constant = (0.1 * (1.0 + 3e-8 * rng.normal(size=(400, 1)))).astype(np.float32)
    assert np.ptp(constant) > 0
    assert not fitted_transforms(("standard",), constant)(torch.tensor(constant).double()).any()


def test_the_check_tells_transforms_apart():
    with pytest.raises(AssertionError):
        check_transform_is(Quantile, lambda rows, others: 1.0 - quantile(rows, others), X, X)
    with pytest.raises(AssertionError):
        check_transform_is(Log1p, lambda _, others: np.log1p(np.abs(others)), X, X)


def test_transforms_are_fitted_in_turn():
    both = fitted_transforms(("log1p", "standard"), X)(torch.tensor(X)).numpy()
    np.testing.assert_allclose(both, standard(log1p(None, X), log1p(None, X)), rtol=1e-12, atol=1e-12)
    assert fitted_transforms((), X)(torch.tensor(X)) is not None


def scorer_of(n_features=4, context=False, hidden=(5, 3), dropout=0.0, names=("standard",)):
    transforms = fitted_transforms(names, X[:, :n_features])
    return NeuralScorer(
        transforms, n_features, hidden, dropout, context=context, rng=np.random.default_rng(0)
    )


def test_the_network_is_its_formula():
    scorer = scorer_of().double()
    parts = [part.detach().numpy() for part in scorer.layers.parameters()]
    layers = [parts[:2], parts[2:4], parts[4:]]
    expected = [oracles.network(row, layers) for row in standard(X, X)]
    np.testing.assert_allclose(scorer(X).detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_context_is_the_distance_from_the_querys_mean():
    scorer = scorer_of(context=True, names=())
    offsets = np.array([0, 3, 3, 4, 9])
    inputs = scorer.inputs(X[:9], offsets, dtype=torch.float64).numpy()
    means = np.concatenate([np.tile(part.mean(axis=0), (len(part), 1)) for part in np.split(X[:9], [3, 4])])
    np.testing.assert_allclose(inputs, np.hstack([X[:9], X[:9] - means]), atol=1e-12)
    assert scorer.widths == [8, 5, 3, 1]


def test_chunks_do_not_matter(monkeypatch):
    scorer = scorer_of(context=True)
    offsets = np.array([0, 3, 3, 4, 9])
    whole = scorer.inputs(X[:9], offsets)
    monkeypatch.setattr("concordant.rankers.networks.network.CHUNK", 2)
    assert torch.equal(scorer.inputs(X[:9], offsets), whole)
    assert torch.equal(scorer.inputs(sparse.csr_array(X[:9]), offsets), whole)


@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 9), max_size=12), n_rows=st.integers(1, 10))
def test_runs_of_whole_queries(sizes, n_rows):
    runs = list(whole_queries(np.array(sizes, dtype=np.int64), n_rows))
    assert [q for first, last in runs for q in range(first, last)] == list(range(len(sizes)))
    for first, last in runs:
        assert sum(sizes[first:last]) <= n_rows or last == first + 1
        assert last == len(sizes) or sum(sizes[first : last + 1]) > n_rows  # the next one has no room


# ---------------------------------------------------------------- the objective


def problem(surrogate, context=False, dtype=torch.float64):
    """A network, and some queries, one of them empty."""
    scorer = scorer_of(context=context).to(dtype)
    offsets = np.array([0, 3, 3, 4, 9, 14])
    rng = np.random.default_rng(3)
    if surrogate.reads == "positions":
        labels = np.concatenate([1.0 + rng.permutation(size) for size in np.diff(offsets)])
    else:
        labels = rng.integers(0, 4, 14).astype(float)
    weights = rng.uniform(0.5, 2.0, 14) if surrogate.reads == "targets" else np.ones(14)
    pool = Pool.from_rows(scorer, X[:14], labels, weights, offsets, torch.device("cpu"), dtype)
    return scorer, pool, loss_of_batch(surrogate, torch.device("cpu"))


SURROGATES = {
    "softmax": Softmax(),
    "pairwise": Pairwise(),
    "squared": Squared(),
    "plackett_luce": PlackettLuce(),
}


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("name", SURROGATES)
def test_the_gradient_of_the_objective(name, context):
    """By differences, of every weight and bias: mean over queries with rows, as `mean_loss` gives it."""
    scorer, pool, loss = problem(SURROGATES[name], context)
    batch = pool.whole()
    scores = scorer.scores(pool.inputs)
    _, grad = loss(scores.detach(), batch)
    scores.backward(grad / 4)
    for part in scorer.layers.parameters():
        flat, slopes = part.data.view(-1), part.grad.view(-1)
        for index in range(0, len(flat), max(len(flat) // 4, 1)):
            weight, ends = float(flat[index]), []
            for step in (1e-6, -1e-6):
                flat[index] = weight + step
                ends.append(mean_loss(loss, pool, scorer))
            flat[index] = weight
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float(slopes[index]), abs=1e-6, rel=1e-5)


@pytest.mark.parametrize("name", SURROGATES)
def test_the_loss_is_the_surrogates(name):
    scorer, pool, loss = problem(SURROGATES[name])
    scores = scorer.scores(pool.inputs).detach()
    values, _ = (
        SURROGATES[name]
        .bind(pool.labels.numpy(), pool.offsets, pool.weights.numpy())
        .value_and_grad(scores.numpy())
    )
    assert mean_loss(loss, pool, scorer) == pytest.approx(values.sum() / 4, rel=1e-9)


def test_batches_are_whole_queries_once_each():
    _, pool, _ = problem(Softmax())
    order = np.array([4, 0, 3, 2])
    plan = pool.plan(order, 6)
    batches = [pool.batch(plan, *run) for run in plan.runs]
    rows = np.concatenate([np.arange(pool.offsets[q], pool.offsets[q + 1]) for q in order])
    assert torch.equal(torch.cat([batch.inputs for batch in batches]), pool.inputs[rows])
    assert torch.equal(torch.cat([batch.labels for batch in batches]), pool.labels[rows])
    assert [batch.lists.offsets.tolist() for batch in batches] == [[0, 5], [0, 3], [0, 5, 6]]
    assert [(batch.lists.longest, batch.lists.n_rows) for batch in batches] == [(5, 5), (3, 3), (5, 6)]


@pytest.mark.parametrize("name", ["softmax", "pairwise", "squared"])
def test_rows_that_fill_a_batch_up_change_nothing(name):
    """As recorded steps on a GPU have it."""
    scorer, pool, loss = problem(SURROGATES[name])
    plan = pool.plan(np.array([4, 0, 3, 2]), 8)
    whole = filled_offsets(plan, 8, 6, 3)
    for number, (first, last) in enumerate(plan.runs):
        plain = pool.batch(plan, first, last)
        recording = object.__new__(Recording)
        recording.pool, recording.n_rows, recording.longest = pool, 8, 5
        recording.offsets = torch.tensor(whole[number])
        recording.index = torch.full((8,), -1)
        n_rows = plain.lists.n_rows
        recording.index[:n_rows] = plan.rows[plan.edges[first] :][:n_rows]
        batch = recording.batch()
        assert batch.weights[n_rows:].tolist() == [0.0] * (8 - n_rows)
        assert batch.lists.offsets.diff().max() <= 5
        values, grad = loss(scorer.scores(batch.inputs).detach(), batch)
        expected, slopes = loss(scorer.scores(plain.inputs).detach(), plain)
        assert torch.allclose(values[: len(expected)], expected)
        assert torch.allclose(grad[:n_rows], slopes)
        assert not values[len(expected) :].any()
        assert not grad[n_rows:].any()


def test_an_epoch_of_one_batch_is_a_step_of_adam():
    scorer, pool, loss = problem(Softmax())
    before = [part.detach().clone() for part in scorer.layers.parameters()]
    course = Course(0)
    value = Trainer(scorer, pool, loss, None, 1e-3, 0.0, 100, amp=False).epoch(course)
    fresh, _, _ = problem(Softmax())
    assert value == pytest.approx(mean_loss(loss, pool, fresh))
    for part, then in zip(scorer.layers.parameters(), before, strict=True):
        steps = (part - then)[part.grad.abs() > 1e-6]
        assert torch.allclose(steps, -1e-3 * part.grad[part.grad.abs() > 1e-6].sign(), rtol=1e-2)


# ---------------------------------------------------------------- what is learned


def test_more_is_learned_than_a_linear_function_can():
    train, test = drawn(n_queries=120, seed=1), drawn(n_queries=60, seed=2)
    model = NeuralRanker(
        "ndcg@3", hidden=(16,), max_epochs=60, learning_rate=0.02, batch_rows=200, dropout=0.0
    )
    model.fit(train[0], train[1], qid=train[2])
    linear = LinearRanker("ndcg@3").fit(train[0], train[1], qid=train[2])
    reached, straight = (ranker.score(test[0], test[1], qid=test[2]) for ranker in (model, linear))
    assert reached > 0.9
    assert straight < 0.85
    assert model.history_["loss"][-1] < model.history_["loss"][0]
    assert model.certificate_.optimality.value < model.certificate_.optimality.first


def test_without_hidden_layers_it_is_linear():
    model = NeuralRanker(**QUICK | {"hidden": (), "transforms": None}).fit(X, y, qid=qid)
    (weights,) = (part.detach().numpy().astype(float) for part in model.scorer_.layers.parameters())
    np.testing.assert_allclose(model.predict(X), X @ weights[0], rtol=1e-6, atol=1e-6)
    plain = NeuralRanker("dcg", Squared(centred=False), **QUICK).fit(
        X, y, qid=qid
    )  # of which the level counts
    assert [len(list(layer.parameters())) for layer in plain.scorer_.layers] == [2, 0, 0, 2]


def test_context_tells_items_by_their_list():
    """The best item is the one nearest to the mean of its query, wherever that is."""
    rng = np.random.default_rng(0)
    ids, level = np.repeat(np.arange(80), 6), np.repeat(rng.normal(scale=5.0, size=80), 6)
    near = rng.normal(size=(480, 1)) + level[:, None]
    means = np.repeat(near.reshape(80, 6).mean(axis=1), 6)
    grades = (np.abs(near[:, 0] - means) < 0.4) * 1
    options = {"hidden": (16,), "max_epochs": 60, "learning_rate": 0.02, "dropout": 0.0, "batch_rows": 200}
    scores = {}
    for context in (False, True):
        model = NeuralRanker("ndcg@3", context=context, transforms="standard", **options)
        model.fit(near, grades, qid=ids)
        scores[context] = model.score(near, grades, qid=ids)
    assert scores[True] > 0.95
    assert scores[False] < 0.8
    alone = model.predict(near[:6], qid=ids[:6])
    np.testing.assert_allclose(model.predict(near, qid=ids)[:6], alone, rtol=1e-6)
    assert not np.allclose(model.predict(near)[:6], alone)  # all rows are one query
    assert model.rank(near, qid=ids)[:6].tolist() == model.rank(near[:6]).tolist()
    order = np.random.default_rng(1).permutation(480)
    moved = model.predict(near[order], qid=ids[order])
    np.testing.assert_allclose(moved, model.predict(near, qid=ids)[order], rtol=1e-5, atol=1e-6)


def same(model, other):
    """Two networks with equal weights, to the last bit."""
    pairs = zip(model.scorer_.state_dict().items(), other.scorer_.state_dict().items(), strict=True)
    return all(a == b and torch.equal(left, right) for (a, left), (b, right) in pairs)


def test_equal_seeds_equal_weights_and_no_trace_in_torch():
    before = torch.get_rng_state()
    first, second = (NeuralRanker(**QUICK, dropout=0.5).fit(X, y, qid=qid) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(first, second)
    assert not same(first, NeuralRanker(**QUICK, dropout=0.5, random_state=1).fit(X, y, qid=qid))
    fresh = [NeuralRanker(**QUICK, random_state=None).fit(X, y, qid=qid) for _ in range(2)]
    assert not same(*fresh)


def test_the_order_of_rows_and_the_names_of_queries_do_not_matter():
    """Batches go by the order of the ids: equal ones, in whatever row order, give equal weights but for the
    order of sums within a query. Ids in another order are other batches, and another network."""
    model = NeuralRanker(**QUICK, batch_rows=20, dropout=0.0)  # its masks go by the place of a row
    order = np.random.default_rng(2).permutation(len(X))
    plain = clone(model).fit(X, y, qid=qid)
    names = np.array([f"query {100 + q}" for q in qid])
    for ids in (qid[order], names[order]):
        moved = clone(model).fit(X[order], y[order], qid=ids)
        np.testing.assert_allclose(moved.predict(X), plain.predict(X), atol=1e-4)
    assert not np.allclose(clone(model).fit(X, y, qid=-qid).predict(X), plain.predict(X), atol=1e-4)
    stable = Queries.from_ids(qid)  # rows of each query in their order: the very same
    mixed = stable.rows(np.random.default_rng(0).permutation(stable.n_queries))
    assert same(clone(model).fit(X[mixed], y[mixed], qid=qid[mixed]), plain)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_weights_of_queries_and_rows():
    options = QUICK | {"early_stopping": None, "batch_rows": 1000, "dropout": 0.0, "max_epochs": 5}
    half = qid < 50
    weighed = NeuralRanker(**options).fit(X, y, qid=qid, query_weight=1.0 * half)
    count = weighed.certificate_.optimality
    alone = NeuralRanker(**options, transforms=None).fit(X[half], y[half], qid=qid[half])
    with_all = NeuralRanker(**options, transforms=None).fit(X, y, qid=qid, query_weight=3.0 * half)
    np.testing.assert_allclose(with_all.predict(X), alone.predict(X), atol=1e-5)
    assert count.value > 0.0
    rows = NeuralRanker(**options, transforms=None).fit(X, y, qid=qid, sample_weight=1.0 + (y > 1))
    assert rows.certificate_.sample.weighted
    assert not np.allclose(
        rows.predict(X), NeuralRanker(**options, transforms=None).fit(X, y, qid=qid).predict(X)
    )


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise", "squared", "position_hinge"])
@pytest.mark.parametrize("weight", [1e-9, 1e30])
def test_the_unit_of_weights_does_not_matter(surrogate, weight):
    options = QUICK | {
        "metric": "ndcg@3",
        "surrogate": surrogate,
        "learning_rate": 0.01,
        "early_stopping": None,
    }
    plain = NeuralRanker(**options).fit(X, y, qid=qid)
    scaled = NeuralRanker(**options).fit(X, y, qid=qid, sample_weight=np.full(len(y), weight))
    np.testing.assert_allclose(scaled.predict(X), plain.predict(X), atol=1e-5)
    optimality, expected = scaled.certificate_.optimality, plain.certificate_.optimality
    assert [optimality.first / weight, optimality.value / weight] == pytest.approx(
        [expected.first, expected.value], rel=1e-4
    )
    losses = np.array(scaled.history_["loss"]) / weight
    np.testing.assert_allclose(losses, plain.history_["loss"], rtol=1e-4)


@pytest.mark.parametrize("surrogate", ["softmax", "pairwise"])
def test_the_unit_of_targets_does_not_matter(surrogate):
    """Gains 2^grade - 1 up to 2^200, far beyond float32."""
    options = QUICK | {"metric": "dcg@5", "surrogate": surrogate, "learning_rate": 0.02, "max_epochs": 20}
    grades = np.digitize(X[:, 0], [0.0, 1.0]) * 100
    model = NeuralRanker(**options, early_stopping=None).fit(X, grades, qid=qid)
    assert np.isfinite(model.history_["loss"]).all()
    assert model.certificate_.optimality.value < 0.8 * model.certificate_.optimality.first
    low = cc.metric("ndcg@5")
    assert low(grades, model.predict(X), qid=qid) > low(grades, np.zeros(len(y)), qid=qid) + 0.2


def test_single_items_and_empty_queries():
    sizes = Queries.from_ids(qid).sizes
    assert (sizes == 1).any()
    model = NeuralRanker(**QUICK).fit(X, y, qid=Queries.from_sizes(np.r_[0, sizes[:4], 0, 0, sizes[4:], 0]))
    assert np.isfinite(model.predict(X)).all()
    with pytest.warns(UserWarning, match="no query has labels that differ"):
        alone = NeuralRanker(**QUICK).fit(X, y, qid=np.arange(len(y)))
    assert alone.n_informative_ == 0
    single_query = NeuralRanker(**QUICK).fit(X, y)  # one query: nothing is held out
    assert (single_query.n_queries_, "score" in single_query.history_) == (1, False)


@pytest.mark.parametrize("labels", [0 * y, 0 * y + 2, qid % 3], ids=["0", "2", "by query"])
def test_nothing_to_learn_warns(labels):
    with pytest.warns(UserWarning, match="no query has labels that differ") as caught:
        model = NeuralRanker(**QUICK).fit(X, labels, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.n_informative_, model.n_queries_) == (0, 30)  # none was held out


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("surrogate", ["pairwise", "squared", "duchi", "preorder", "position_hinge"])
def test_every_surrogate_trains(surrogate):
    model = NeuralRanker(
        "dcg@3", surrogate, **QUICK | {"max_epochs": 9, "learning_rate": 0.05}, early_stopping=None
    ).fit(X, y, qid=qid)
    assert model.surrogate_.name == surrogate
    assert model.certificate_.optimality.value < model.certificate_.optimality.first


def test_labels_of_other_kinds():
    votes = cc.synthetic.preferences(n_queries=20, n_items=5, seed=0)
    model = NeuralRanker("pd", assume="low_noise", **QUICK).fit(votes.X, votes.y, qid=votes.qid)
    assert (model.basis_, len(model.history_["score"])) == ("low_noise", 3)
    orders = cc.synthetic.permutations(n_queries=20, n_items=5, seed=0)
    model = NeuralRanker("zero_one", "plackett_luce", **QUICK)
    with pytest.warns(GuaranteeWarning):
        model.fit(orders.X, orders.y, qid=orders.qid)
    assert np.isfinite(model.predict(orders.X)).all()


# ---------------------------------------------------------------- early stopping


def test_the_certificate_begins_with_the_first_weights():
    model = NeuralRanker(**QUICK, early_stopping=None, dropout=0.0).fit(X, y, qid=qid)
    optimality = model.certificate_.optimality
    one_batch = clone(model).set_params(batch_rows=10**30).fit(X, y, qid=qid)
    assert optimality.first == pytest.approx(
        one_batch.history_["loss"][0], rel=1e-5
    )  # of an epoch of one step
    assert (optimality.stopped_by, optimality.chosen) == ("limit", False)


def test_the_certificate_says_what_was_chosen(tmp_path):
    options = QUICK | {"callback": lambda news: news.epoch == 2}
    whole = NeuralRanker(**options).fit(X, y, qid=qid)
    assert "chosen on validation queries; the callback ended training" in " ".join(
        str(whole.certificate_).split()
    )
    NeuralRanker(**QUICK | {"max_epochs": 1}, checkpoint=tmp_path).fit(X, y, qid=qid)
    resumed = NeuralRanker(**options, checkpoint=tmp_path).fit(X, y, qid=qid)
    assert resumed.certificate_.optimality == whole.certificate_.optimality


def draw_validation(seed=9):
    X, y, qid = drawn(n_queries=20, seed=seed)
    return X, y, qid


def test_the_best_epoch_is_kept():
    rows = draw_validation()
    model = NeuralRanker("ndcg@3", hidden=(8,), max_epochs=30, early_stopping=4, learning_rate=0.05)
    model.fit(X, y, qid=qid, eval_set=rows)
    scores = model.history_["score"]
    assert model.best_epoch_ == np.argmax(scores) + 1
    assert model.n_iter_ == len(scores) == min(model.best_epoch_ + 4, 30)
    assert model.stopped_by_ == "early_stopping"
    assert model.score(rows[0], rows[1], qid=rows[2]) == pytest.approx(max(scores))
    short = clone(model).set_params(max_epochs=model.best_epoch_).fit(X, y, qid=qid, eval_set=rows)
    assert same(short, model)
    text = " ".join(str(model.certificate_).split())
    assert f"{model.best_epoch_} epochs (chosen on validation queries)" in text
    assert "the optimum is unknown" in text
    with pytest.raises(cc.exceptions.NoRiskBoundError, match="no bound is known for what networks express"):
        model.risk_bound(X, y, qid=qid)


def test_losses_are_negated_so_that_higher_is_better():
    votes = cc.synthetic.preferences(n_queries=20, n_items=5, seed=0)
    model = NeuralRanker("pd", assume="low_noise", **QUICK).fit(votes.X, votes.y, qid=votes.qid)
    assert max(model.history_["score"]) <= 0.0


def test_queries_are_held_out_whole():
    model = NeuralRanker("ndcg@3", validation_fraction=0.2, **QUICK).fit(X, y, qid=qid)
    assert model.n_queries_ == 24
    assert len(model.history_["score"]) == 3
    every = NeuralRanker("ndcg@3", early_stopping=None, **QUICK).fit(X, y, qid=qid)
    assert (every.n_queries_, list(every.history_), every.best_epoch_) == (30, ["loss"], 3)
    few = NeuralRanker("ndcg@3", validation_fraction=0.01, **QUICK).fit(X, y, qid=qid)
    assert few.n_queries_ == 30
    data = RankingData(X, y, qid)
    assert NeuralRanker(**QUICK).fit(X, y, qid=qid, eval_set=data).n_queries_ == 30


def test_evaluation_rows_of_one_query():
    model = NeuralRanker(**QUICK).fit(X, y, qid=qid, eval_set=(X, y))
    other = NeuralRanker(**QUICK).fit(X, y, qid=qid, eval_set=(X, y, np.zeros(len(y))))
    assert model.history_ == other.history_


def test_a_share_below_one_query_holds_none_out():
    first = qid < np.unique(qid)[6]
    model = NeuralRanker(**QUICK, validation_fraction=0.1).fit(X[first], y[first], qid=qid[first])
    assert (model.n_queries_, list(model.history_)) == (6, ["loss"])
    exact = NeuralRanker(**QUICK, validation_fraction=0.3).fit(X, y, qid=qid)  # 0.3 * 30 is below 9
    assert exact.n_queries_ == 21


def test_nothing_left_to_train_on_warns():
    grades = np.where(qid == qid[np.flatnonzero(np.diff(y) * (np.diff(qid) == 0))[0]], y, 0)
    with pytest.warns(UserWarning, match="No query is held out, because without 29 of 30") as caught:
        model = NeuralRanker(**QUICK, validation_fraction=0.99).fit(X, grades, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.n_queries_, list(model.history_)) == (30, ["loss"])


def test_validation_features_beyond_single_precision():
    rows, far = draw_validation(), draw_validation()[0].copy()
    far[3, 1] = 1e200
    with pytest.raises(NonFiniteError, match="is inf at row 3 of eval_set"):
        NeuralRanker(**QUICK, transforms="standard").fit(X, y, qid=qid, eval_set=(far, *rows[1:]))


def test_no_finite_score_warns(monkeypatch):
    monkeypatch.setattr("concordant.rankers.networks.start.validation", lambda *_: lambda: -np.inf)
    with pytest.warns(ConvergenceWarning, match="In 3 epochs no validation score") as caught:
        model = NeuralRanker(**QUICK).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.best_epoch_ == 0


def test_evaluation_rows_that_are_wrong():
    for rows, error, says in (
        ((X,), ParameterError, "eval_set must be "),
        ((X[:, :3], y, qid), ValueError, "3 features"),
        ((X, y[:-1], qid), LengthMismatchError, "y has"),
        ((X, -1.0 * y, qid), GradeError, "negative"),
        ((X, 0 * y, qid), LabelError, "undefined on every query of eval_set"),
    ):
        with pytest.raises(error, match=re.escape(says)):
            NeuralRanker("ndcg@3[empty=skip]", **QUICK).fit(X, y, qid=qid, eval_set=rows)


def test_a_callback_sees_every_epoch_and_may_end_it():
    steps = []
    model = NeuralRanker(callback=steps.append, **QUICK).fit(X, y, qid=qid, eval_set=draw_validation())
    assert [news.epoch for news in steps] == [1, 2, 3]
    assert [news.loss for news in steps] == model.history_["loss"]
    assert [news.score for news in steps] == model.history_["score"]
    assert steps[-1].best_epoch == model.best_epoch_
    short = NeuralRanker(callback=lambda news: news.epoch == 2, **QUICK).fit(X, y, qid=qid)
    assert (short.n_iter_, short.stopped_by_) == (2, "callback")
    assert "the callback ended training" in " ".join(str(short.certificate_).split())


def interrupting(epoch):
    def interrupt(news):
        if news.epoch == epoch:
            raise KeyboardInterrupt

    return interrupt


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    with pytest.warns(
        ConvergenceWarning, match="after 2 epochs. The model keeps the best weights so far"
    ) as caught:
        model = NeuralRanker(callback=interrupting(2), **QUICK).fit(X, y, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.stopped_by_, model.n_iter_) == ("interrupt", 2)
    assert np.isfinite(model.predict(X)).all()
    monkeypatch.setattr(Pool, "plan", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match="after 0 epochs"):
        none = NeuralRanker(**QUICK).fit(X, y, qid=qid)
    assert (none.best_epoch_, none.history_["loss"]) == (0, [])


def test_divergence_keeps_finite_weights():
    model = NeuralRanker("dcg", "squared", **QUICK | {"learning_rate": 1e30, "max_epochs": 9})
    with pytest.warns(ConvergenceWarning, match="Lower learning_rate"):
        model.fit(X, y, qid=qid)
    assert model.stopped_by_ == "divergence"
    assert np.isfinite(model.predict(X)).all()


# ---------------------------------------------------------------- checkpoints

LONG = {
    "hidden": (6,),
    "max_epochs": 7,
    "early_stopping": 4,
    "batch_rows": 30,
    "dropout": 0.2,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def uninterrupted():
    return NeuralRanker(**LONG).fit(X, y, qid=qid)


def test_a_checkpoint_changes_nothing(uninterrupted, tmp_path):
    model = NeuralRanker(checkpoint=tmp_path / "deep" / "er", **LONG).fit(X, y, qid=qid)
    assert same(model, uninterrupted)
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["checkpoint.npz"]
    again = NeuralRanker(checkpoint=str(tmp_path / "deep" / "er"), **LONG).fit(X, y, qid=qid)
    assert same(again, uninterrupted)
    assert again.history_ == uninterrupted.history_
    assert again.stopped_by_ == uninterrupted.stopped_by_


@pytest.mark.parametrize("epoch", [1, 3, 6])
def test_an_interrupted_fit_goes_on(uninterrupted, tmp_path, epoch):
    with pytest.warns(ConvergenceWarning):
        NeuralRanker(checkpoint=tmp_path, callback=interrupting(epoch), **LONG).fit(X, y, qid=qid)
    model = NeuralRanker(checkpoint=tmp_path, **LONG).fit(X, y, qid=qid)
    assert same(model, uninterrupted)
    assert model.history_ == uninterrupted.history_
    assert model.best_epoch_ == uninterrupted.best_epoch_


def test_interrupted_within_an_epoch(uninterrupted, tmp_path, monkeypatch):
    real, calls = Pool.batch, []

    def interrupted_batch(*args):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(Pool, "batch", interrupted_batch)
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        NeuralRanker(checkpoint=tmp_path, **LONG).fit(X, y, qid=qid)
    assert same(NeuralRanker(checkpoint=tmp_path, **LONG).fit(X, y, qid=qid), uninterrupted)


def test_more_epochs_go_on_from_the_last(uninterrupted, tmp_path):
    for max_epochs in (2, 4, 7):
        model = NeuralRanker(checkpoint=tmp_path, **LONG | {"max_epochs": max_epochs}).fit(X, y, qid=qid)
    assert same(model, uninterrupted)


def test_without_a_seed_a_fit_goes_on_with_its_own(tmp_path):
    options = LONG | {"random_state": None, "checkpoint": tmp_path}
    first = NeuralRanker(**options | {"max_epochs": 2}).fit(X, y, qid=qid)
    second = NeuralRanker(**options).fit(X, y, qid=qid)
    assert second.history_["loss"][:2] == first.history_["loss"]
    assert second.n_queries_ == first.n_queries_


KILLED = """
import os, signal, sys
sys.modules["numba"] = None  # training in torch needs none
import numpy as np, torch
from concordant.rankers.neural import NeuralRanker
torch.set_num_threads(1)
data = np.load(sys.argv[1])
def kill(news):
    if news.epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
model = NeuralRanker(checkpoint=sys.argv[2], callback=kill, **eval(sys.argv[3]))
model.fit(data["X"], data["y"], qid=data["qid"])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_process_goes_on(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=y, qid=qid)
    options = LONG | {
        "early_stopping": None,
        "transforms": ("log1p", "quantile", "standard"),
        "context": True,
    }
    args = [str(tmp_path / "data.npz"), str(tmp_path / "folder"), repr(options)]
    done = subprocess.run([sys.executable, "-c", KILLED, *args], check=False)
    assert done.returncode == -signal.SIGKILL
    model = NeuralRanker(checkpoint=tmp_path / "folder", **options).fit(X, y, qid=qid)
    assert same(model, NeuralRanker(**options).fit(X, y, qid=qid))


def test_killed_while_writing(tmp_path, monkeypatch):
    """The file is the one before: a half-written one never has its name."""
    folder = tmp_path / "folder"
    NeuralRanker(checkpoint=folder, **LONG | {"max_epochs": 2}).fit(X, y, qid=qid)
    before = (folder / "checkpoint.npz").read_bytes()

    def broken(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr("pathlib.Path.replace", broken)
    with pytest.raises(ModelFileError, match="no space"):
        NeuralRanker(checkpoint=folder, **LONG).fit(X, y, qid=qid)
    assert (folder / "checkpoint.npz").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["checkpoint.npz"]


def test_folders_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("concordant.rankers.networks.start.build_trainer", None)  # would be the first work
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(ModelFileError, match="cannot be made or written to"):
            NeuralRanker(checkpoint=folder, **QUICK).fit(X, y, qid=qid)
    (tmp_path / "checkpoint.npz").mkdir()
    with pytest.raises(ModelFileError, match="cannot be read"):
        NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)


def test_a_folder_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    NeuralRanker(checkpoint="~/kept", **QUICK).fit(X, y, qid=qid)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_one_training_in_other_words(tmp_path):
    options = {"hidden": (8,), "max_epochs": 2, "weight_decay": 0.0, "transforms": (), "device": "cpu"}
    names = np.array([f"q{q}" for q in qid])
    first = NeuralRanker(**options, checkpoint=tmp_path).fit(X, y, qid=names, eval_set=(X, y, names))
    same_words = {"hidden": [np.int64(8)], "weight_decay": 0, "transforms": None, "early_stopping": None}
    rows = X, cc.Grades(y), names.astype(object)
    again = NeuralRanker(**options | same_words, checkpoint=tmp_path)
    again.fit(X, cc.Grades(y), qid=names.astype(object), eval_set=rows)
    assert same(again, first)
    with pytest.raises(ModelFileError, match="other data"):
        again.fit(X, y, qid=names, eval_set=(X, y[::-1], names))


def changed(path, edit):
    path.write_bytes(edit(path.read_bytes()))


DAMAGE = {
    "truncated": (lambda data: data[:-20], "checksum"),
    "one bit": (lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:], "checksum"),
    "empty": (lambda _: b"", "cannot read it as a checkpoint"),
    "another file": (lambda _: pickle.dumps({"weights": [1.0]}), "cannot read it as a checkpoint"),
    "a newer one": (
        lambda data: data.replace(b"checkpoint 1 ", b"checkpoint 2 ", 1),
        "this version cannot read it",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_checkpoints_are_refused(name, tmp_path):
    edit, says = DAMAGE[name]
    NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)
    changed(tmp_path / "checkpoint.npz", edit)
    with pytest.raises(ModelFileError, match=says):
        NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)


def forged(path, **arrays):
    """Other arrays under a right checksum."""
    head, _, contents = path.read_bytes().partition(b"\n")
    with np.load(io.BytesIO(contents)) as archive:
        contained = dict(archive)
    stream = io.BytesIO()
    np.savez(stream, **{name: part for name, part in (contained | arrays).items() if part is not None})
    digest = hashlib.sha256(stream.getvalue()).hexdigest().encode()
    path.write_bytes(head.rpartition(b" ")[0] + b" " + digest + b"\n" + stream.getvalue())


def test_forged_checkpoints_run_no_code(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    path = tmp_path / "checkpoint.npz"
    for parts, says in (
        ({"now.0.weight": np.array([Bomb()], dtype=object)}, "cannot be read"),
        ({"now.0.weight": np.zeros((2, 2))}, "no now.0.weight of this network"),
        ({"best.0.bias": None}, "no best.0.bias of this network"),
        ({"about": np.zeros(3, np.uint8)}, "does not identify its fit"),
        ({"about": None}, "does not identify its fit"),
    ):
        path.unlink(missing_ok=True)
        NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)
        forged(path, **parts)
        with pytest.raises(ModelFileError, match=re.escape(says)):
            NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)
    assert not (tmp_path / "exploded").exists()


OTHER = {
    "features": ({}, {"X": X + 1e-12}, "other data"),
    "labels": ({}, {"y": np.where(np.arange(len(y)) == 3, 1 + y, y)}, "other data"),
    "queries": ({}, {"qid": np.r_[qid[:-1], qid[-1] + 1]}, "other data"),
    "weights": ({}, {"sample_weight": 1.0 + y}, "other data"),
    "validation": ({}, {"eval_set": (X, y, qid)}, "validation_fraction=0.1, not None (eval_set)"),
    "hidden": ({"hidden": (5,)}, {}, "hidden=(4,), not (5,)"),
    "metric": ({"metric": "ndcg@3"}, {}, "metric=ndcg@10, not ndcg@3"),
    "loss": ({"surrogate": "pairwise"}, {}, "surrogate=Softmax()"),
    "seed": ({"random_state": 3}, {}, "random_state=0, not 3"),
    "no validation": ({"early_stopping": None}, {}, "not None (early_stopping=None)"),
}


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("name", OTHER)
def test_checkpoints_of_other_trainings_are_refused(name, tmp_path):
    parameters, rows, says = OTHER[name]
    NeuralRanker(checkpoint=tmp_path, **QUICK).fit(X, y, qid=qid)
    other = {"X": X, "y": y, "qid": qid} | rows
    with pytest.raises(ModelFileError, match=re.escape(says)):
        NeuralRanker(checkpoint=tmp_path, **QUICK | parameters).fit(other.pop("X"), other.pop("y"), **other)


def test_sparse_and_text_ids_have_digests_of_their_own(tmp_path):
    rows = sparse.csr_array(np.where(X > 0, X, 0.0))
    names = np.array([f"q{q}" for q in qid], dtype=object)
    first = NeuralRanker(checkpoint=tmp_path, **QUICK | {"max_epochs": 1})
    first.fit(rows, y, qid=names, eval_set=(rows, y, names))
    NeuralRanker(checkpoint=tmp_path, **QUICK).fit(rows, y, qid=names, eval_set=(rows, y, names))
    with pytest.raises(ModelFileError, match="other data"):
        NeuralRanker(checkpoint=tmp_path, **QUICK).fit(2 * rows, y, qid=names, eval_set=(rows, y, names))


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@needs_gpu
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of position_hinge
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise", "squared", "position_hinge"])
def test_an_interrupted_fit_goes_on_on_a_gpu(tmp_path, surrogate):
    options = LONG | {"surrogate": surrogate, "metric": "dcg", "device": "cuda", "early_stopping": None}
    whole = NeuralRanker(**options).fit(X, y, qid=qid)
    NeuralRanker(checkpoint=tmp_path, **options | {"max_epochs": 2}).fit(X, y, qid=qid)
    assert same(NeuralRanker(checkpoint=tmp_path, **options).fit(X, y, qid=qid), whole)


@needs_gpu
@pytest.mark.parametrize("surrogate", ["softmax", "pairwise", "squared"])
def test_recorded_steps_are_the_launched_ones(surrogate, monkeypatch):
    options = LONG | {"surrogate": surrogate, "metric": "dcg", "device": "cuda", "dropout": 0.0, "amp": False}
    monkeypatch.setattr("concordant.rankers.networks.epochs.LEAST", 1)
    recorded = NeuralRanker(**options).fit(X, y, qid=qid)
    monkeypatch.setattr("concordant.rankers.networks.epochs.LEAST", 10**9)
    launched = NeuralRanker(**options).fit(X, y, qid=qid)
    host = NeuralRanker(**options | {"device": "cpu"}).fit(X, y, qid=qid)
    np.testing.assert_allclose(recorded.predict(X), launched.predict(X), atol=1e-5)
    np.testing.assert_allclose(recorded.predict(X), host.predict(X), atol=1e-4)


# ---------------------------------------------------------------- warm starts


def test_a_warm_start_begins_with_the_last_weights():
    model = NeuralRanker(warm_start=True, **QUICK).fit(X, y, qid=qid)
    first = model.history_["loss"][0]
    transforms = model.scorer_.transforms
    model.fit(X + 1.0, y, qid=qid)
    assert torch.equal(model.scorer_.transforms[1].mean, transforms[1].mean)
    model.fit(X, y, qid=qid)
    assert model.history_["loss"][0] < first
    with pytest.raises(ParameterError, match="warm_start"):
        model.set_params(hidden=(5,)).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="3 features, but NeuralRanker is expecting 4"):
        model.set_params(hidden=(4,)).fit(X[:, :3], y, qid=qid)
    assert model.predict(X).shape == y.shape  # refused as a whole


def test_a_warm_start_is_not_made_worse(tmp_path):
    rows = draw_validation()
    model = NeuralRanker(
        "ndcg@3", hidden=(8,), max_epochs=20, learning_rate=0.03, warm_start=True, device="cpu"
    )
    model.fit(X, y, qid=qid, eval_set=rows)
    good = model.score(rows[0], rows[1], qid=rows[2])
    weights = model.predict(X).tolist()
    wrong = {"learning_rate": 0.5, "max_epochs": 2, "checkpoint": tmp_path}
    last = pickle.dumps(model)
    for _ in range(2):  # the second time from the checkpoint
        model = pickle.loads(last).set_params(**wrong).fit(X, 3 - y, qid=qid, eval_set=rows)  # noqa: S301
        assert model.score(rows[0], rows[1], qid=rows[2]) == good
        assert (model.best_epoch_, model.predict(X).tolist()) == (0, weights)
        assert max(model.history_["score"]) <= good


def test_a_warm_start_is_part_of_a_checkpoint(tmp_path):
    model = NeuralRanker(warm_start=True, early_stopping=None, **QUICK).fit(X, y, qid=qid)
    other = clone(model).set_params(random_state=5).fit(X, y, qid=qid).set_params(random_state=0)
    model.set_params(checkpoint=tmp_path).fit(X, y, qid=qid)
    with pytest.raises(ModelFileError, match="started from other weights than this warm start"):
        other.set_params(checkpoint=tmp_path).fit(X, y, qid=qid)
    with pytest.raises(ModelFileError, match="continued in a new folder"):
        model.fit(X, y, qid=qid)


# ---------------------------------------------------------------- scikit-learn


def test_pickled_and_back():
    model = NeuralRanker("ndcg@3", Pairwise("squared_hinge"), **QUICK).fit(X, y, qid=qid)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert same(back, model)
    assert clone(model).get_params() == model.get_params()
    assert repr(NeuralRanker()) == "NeuralRanker()"


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_routing_through_a_pipeline_and_a_grid():
    pipe = make_pipeline(StandardScaler(), NeuralRanker(context=True, **QUICK)).fit(X, y, qid=qid)
    scaled = StandardScaler().fit_transform(X)
    alone = NeuralRanker(context=True, **QUICK).fit(scaled, y, qid=qid)
    assert pipe.predict(X, qid=qid).tolist() == alone.predict(scaled, qid=qid).tolist()
    assert pipe.score(X, y, qid=qid) == alone.score(scaled, y, qid=qid)
    grid = {"hidden": [(3,), (4,)]}
    search = GridSearchCV(NeuralRanker(**QUICK), grid, cv=GroupKFold(2)).fit(X, y, groups=qid, qid=qid)
    assert search.best_estimator_.n_queries_ == 27
    for fold, (train, test) in enumerate(GroupKFold(2).split(X, y, qid)):
        ranker = NeuralRanker(**QUICK | {"hidden": (3,)}).fit(X[train], y[train], qid=qid[train])
        assert search.cv_results_[f"split{fold}_test_score"][0] == ranker.score(
            X[test], y[test], qid=qid[test]
        )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    make_frame = pytest.importorskip(library, reason=f"{library} is not installed").DataFrame
    frame = make_frame(dict(zip("abcd", X.T, strict=True)))
    model, plain = (NeuralRanker(**QUICK).fit(rows, y, qid=qid) for rows in (frame, X))
    assert same(model, plain)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.predict(frame).tolist() == plain.predict(X).tolist()


def test_compressed_rows():
    rows = np.where(X > 0, X, 0.0)
    dense = NeuralRanker(**QUICK).fit(rows, y, qid=qid, eval_set=(rows, y, qid))
    for make in (sparse.csr_matrix, sparse.csc_array):
        thin = NeuralRanker(**QUICK).fit(make(rows), y, qid=qid, eval_set=(make(rows), y, qid))
        assert same(thin, dense)
        assert thin.predict(make(rows)).tolist() == dense.predict(rows).tolist()


def test_float32_and_read_only_features():
    single = X.astype(np.float32)
    single.flags.writeable = False
    model = NeuralRanker(**QUICK).fit(single, y, qid=qid)
    double = NeuralRanker(**QUICK).fit(single.astype(np.float64), y, qid=qid)
    assert same(model, double)
    assert model.predict(single).dtype == np.float64


def test_sparse_features_that_are_too_many(monkeypatch):
    monkeypatch.setattr("concordant.rankers.neural.MOST_BYTES", 4 * X.size - 1)
    with pytest.raises(ShapeError, match="a network needs dense features"):
        NeuralRanker(**QUICK).fit(sparse.csr_array(X), y, qid=qid)
    assert NeuralRanker(**QUICK).fit(X, y, qid=qid)


def test_many_rows_are_sampled_for_the_transforms(monkeypatch):
    monkeypatch.setattr("concordant.rankers.networks.start.FITTED_ROWS", 50)
    for rows in (X, sparse.csr_array(X)):
        model = NeuralRanker(**QUICK, transforms="standard").fit(rows, y, qid=qid)
        assert np.isfinite(model.predict(rows)).all()


def test_rows_beside_do_not_matter_to_predictions(monkeypatch):
    model = NeuralRanker(hidden=(64, 32), max_epochs=2, device="cpu").fit(X, y, qid=qid)
    wide = np.tile(X, (40, 1))
    whole = model.predict(wide)
    assert whole.tolist() == np.tile(model.predict(X), 40).tolist()
    monkeypatch.setattr("concordant.rankers.networks.batches.CHUNK", 7)
    assert model.predict(wide).tolist() == whole.tolist()


def test_bfloat16():
    model = NeuralRanker(amp=True, **QUICK).fit(X, y, qid=qid)
    plain = NeuralRanker(amp=False, **QUICK).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=0.05)
    assert not same(model, plain)
    assert same(NeuralRanker(amp="auto", **QUICK).fit(X, y, qid=qid), plain)  # on a CPU


def test_dropout_keeps_the_mean_and_draws_from_its_generator():
    layer, ones = Dropout(0.25), torch.ones(4000)
    before = torch.get_rng_state()
    first, second = (layer(ones, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert sorted(first.unique().tolist()) == pytest.approx([0.0, 4 / 3])
    assert float(first.mean()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(torch.get_rng_state(), before)
    assert layer.eval()(ones) is ones


def test_fits_in_threads_are_those_of_one(monkeypatch):
    """Step by step, so that generators that both drew from would be shared out between them."""
    alone = [NeuralRanker(**QUICK, dropout=0.5, random_state=seed).fit(X, y, qid=qid) for seed in (0, 1)]
    meet, real = threading.Barrier(2, timeout=30), Trainer.step

    def step(*arguments):
        meet.wait()
        return real(*arguments)

    monkeypatch.setattr(Trainer, "step", step)
    before = torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        both = list(
            pool.map(
                lambda seed: NeuralRanker(**QUICK, dropout=0.5, random_state=seed).fit(X, y, qid=qid), (0, 1)
            )
        )
    assert all(map(same, both, alone))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fit_on_the_cpu_leaves_the_generators_of_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "manual_seed_all", None)
    monkeypatch.setattr(torch, "manual_seed", None)
    assert NeuralRanker(**QUICK, dropout=0.5).fit(X, y, qid=qid)


@contextmanager
def default(kind, value, before):
    getattr(torch, f"set_default_{kind}")(value)
    try:
        yield
    finally:
        getattr(torch, f"set_default_{kind}")(before)


SETTINGS = {
    "dtype": lambda: default("dtype", torch.float64, torch.float32),
    "device": lambda: default("device", "meta", None),
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize(
    ("name", "surrogate"),
    [*((name, "softmax") for name in SETTINGS), ("dtype", "plackett_luce"), ("device", "plackett_luce")],
)
def test_settings_of_torch_do_not_matter(name, surrogate, tmp_path):
    options = QUICK | {"context": True, "transforms": ("log1p", "quantile", "standard")}
    rows = X, y, qid
    if surrogate == "plackett_luce":
        orders = cc.synthetic.permutations(n_queries=12, n_items=5, seed=0)
        rows, options = (
            (orders.X, orders.y, orders.qid),
            options | {"metric": "zero_one", "surrogate": surrogate},
        )
    plain = NeuralRanker(**options).fit(*rows[:2], qid=rows[2])
    scores = plain.predict(rows[0], qid=rows[2])
    with SETTINGS[name]():
        NeuralRanker(**options | {"max_epochs": 1}, checkpoint=tmp_path).fit(*rows[:2], qid=rows[2])
        model = NeuralRanker(**options, checkpoint=tmp_path).fit(*rows[:2], qid=rows[2])
        assert model.predict(rows[0], qid=rows[2]).tolist() == scores.tolist()
    assert same(model, plain)
    assert model.fit(*rows[:2], qid=rows[2])  # nothing of the settings stays in the model


@pytest.mark.parametrize("device", ["cuda:3", "cuda", torch.device("cuda", 7), 5])
def test_predictions_without_the_gpu_of_the_fit(device, uninterrupted, monkeypatch):
    model = pickle.loads(pickle.dumps(uninterrupted))  # noqa: S301
    scores = model.predict(X)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert model.set_params(device=device).predict(X).tolist() == scores.tolist()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert model.predict(X).tolist() == scores.tolist()
    for wrong in ("abacus", "cuda:x", None, "meta"):
        with pytest.raises(ParameterError, match="'auto', 'cpu', 'cuda' or 'cuda:0'"):
            model.set_params(device=wrong).predict(X)


def test_tensors():
    plain = NeuralRanker(**QUICK).fit(X, y, qid=qid, query_weight=1.0 + qid % 2)
    rows = torch.tensor(X, requires_grad=True)
    model = NeuralRanker(**QUICK).fit(
        rows, torch.tensor(y), qid=torch.tensor(qid), query_weight=torch.tensor(1.0 + qid % 2)
    )
    assert same(model, plain)
    assert model.predict(rows).tolist() == plain.predict(X).tolist()
    assert model.rank(rows, qid=torch.tensor(qid)).tolist() == plain.rank(X, qid=qid).tolist()
    half, grades = rows.to(torch.bfloat16), torch.tensor(y).to(torch.bfloat16)
    model = NeuralRanker(**QUICK).fit(half, grades, qid=torch.tensor(qid), eval_set=(half, grades, qid))
    rounded = half.detach().float().numpy()
    assert same(model, NeuralRanker(**QUICK).fit(rounded, y, qid=qid, eval_set=(rounded, y, qid)))


def test_data_that_do_not_fit_on_the_device(monkeypatch):
    """As on a GPU that is too small: inputs stay in the host's memory."""
    plain = NeuralRanker(**QUICK).fit(X, y, qid=qid)
    monkeypatch.setattr(neural_batches, "room_for", lambda *_: torch.device("cpu"))
    assert same(NeuralRanker(**QUICK).fit(X, y, qid=qid), plain)


# ---------------------------------------------------------------- errors

BAD = {
    "hidden": ({"hidden": (4, 0)}, ParameterError, "got (4, 0)"),
    "hidden number": ({"hidden": 4}, ParameterError, "a tuple of integers"),
    "transforms": ({"transforms": "log"}, UnknownNameError, "Did you mean 'log1p'"),
    "two transforms": ({"transforms": ("log1p", None)}, UnknownNameError, "standard"),
    "transform number": ({"transforms": 3}, ParameterError, "transforms must be "),
    "context": ({"context": "yes"}, ParameterError, "True or False"),
    "dropout": ({"dropout": 1.0}, ParameterError, "< 1"),
    "weight_decay": ({"weight_decay": -1.0}, ParameterError, "weight_decay must be "),
    "learning_rate": ({"learning_rate": 0.0}, ParameterError, "> 0"),
    "learning_rate NaN": ({"learning_rate": np.nan}, ParameterError, "learning_rate must be "),
    "batch_rows": ({"batch_rows": 0}, ParameterError, "batch_rows must be "),
    "max_epochs": ({"max_epochs": 1.5}, ParameterError, "an integer"),
    "early_stopping": ({"early_stopping": True}, ParameterError, "or None"),
    "validation_fraction": ({"validation_fraction": 1}, ParameterError, "< 1"),
    "amp": ({"amp": "bf16"}, ParameterError, "True, False or 'auto'"),
    "device": ({"device": "abacus"}, ParameterError, "device must be "),
    "no device": ({"device": None}, ParameterError, "must be 'auto', 'cpu'"),
    "checkpoint": ({"checkpoint": 3}, ParameterError, "a folder"),
    "no checkpoint": ({"checkpoint": ""}, ParameterError, "a folder"),
    "callback": ({"callback": "print"}, ParameterError, "callback"),
    "random_state": ({"random_state": -1}, ParameterError, "random_state must be "),
    "metric": ({"metric": "ndgc"}, UnknownNameError, "Did you mean 'ndcg'"),
    "surrogate": ({"surrogate": "soft"}, UnknownNameError, "plackett_luce"),
    "assume": ({"assume": "noise"}, UnknownNameError, "low_noise"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named_before_any_work(name, monkeypatch):
    parameters, error, says = BAD[name]
    monkeypatch.setattr(NeuralRanker, "checked_features", None)  # would be the first work
    with pytest.raises(error, match=re.escape(says)):
        NeuralRanker(**parameters).fit(X, y, qid=qid)


def put(values, row, value):
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


ids = np.array([f"query {q}" for q in qid])
ROWS = {
    "negative grade": ({"y": put(y, 6, -1)}, GradeError, f"grade -1 at row 6 (query '{ids[6]}') is negative"),
    "short y": ({"y": y[:-1]}, LengthMismatchError, "y has"),
    "short qid": ({"qid": ids[:-1]}, LengthMismatchError, "qid has"),
    "no weight": ({"sample_weight": 0 * y}, ParameterError, "sample_weight is zero for every row"),
    "two weights": ({"query_weight": put(1 + 0 * y, 1, 7)}, LabelError, "is both 1 and 7"),
    "no labels": ({"y": None}, ValueError, "requires y to be passed"),
    "NaN feature": ({"X": put(X, (4, 1), np.nan)}, ValueError, "contains NaN"),
    "no rows": ({"X": X[:0], "y": y[:0], "qid": ids[:0]}, ValueError, "0 sample(s)"),
    "preferences": ({"y": Preferences([0], [1], len(y))}, LabelError, "ndcg reads grades"),
    "permutations": ({"y": Permutations(1 + 0 * y)}, LabelError, "ndcg reads grades"),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows_are_named_before_any_work(name, monkeypatch):
    changes, error, says = ROWS[name]
    rows = {"X": X, "y": y, "qid": ids} | changes
    monkeypatch.setattr("concordant.rankers.networks.start.build_trainer", None)
    with pytest.raises(error, match=re.escape(says)):
        NeuralRanker().fit(rows.pop("X"), rows.pop("y"), **rows)


def test_constant_features_stay_0_in_predictions():
    flat = X.copy()
    flat[:, 3] = 0.0
    other = flat.copy()
    other[:, 3] = 1.0
    model = NeuralRanker(**QUICK).fit(flat, y, qid=qid, eval_set=(other, y, qid))
    assert model.best_epoch_ > 0
    assert model.predict(other).tolist() == model.predict(flat).tolist()


def test_a_feature_that_the_sample_does_not_show(monkeypatch):
    monkeypatch.setattr("concordant.rankers.networks.start.FITTED_ROWS", 20)
    rare = np.column_stack([X, np.zeros(len(X))])
    rare[[3, 40], -1] = 1.0, 7.0
    for rows in (rare, sparse.csr_array(rare)):
        model = NeuralRanker(**QUICK).fit(rows, y, qid=qid)
        spread = model.scorer_.transforms[1].spread[-1]
        assert 0.1 < float(spread) < 1.0  # of log(1 + 7), once in 21 rows


def test_predictions_are_numbers():
    far = X[:8].copy()
    far[0], far[1, :2], far[1, 2:], far[2] = 1e300, 1e300, -1e300, -1e300
    for context in (False, True):
        model = NeuralRanker(**QUICK, context=context, transforms="standard").fit(1e-10 * X, y, qid=qid)
        assert np.isfinite(model.predict(far)).all()


def test_features_beyond_single_precision():
    huge = X * 1e200
    assert np.isfinite(NeuralRanker(**QUICK, transforms="standard").fit(huge, y, qid=qid).predict(huge)).all()
    with pytest.raises(ParameterError, match="with transforms=None"):
        NeuralRanker(**QUICK, transforms=None).fit(huge, y, qid=qid)


def test_nothing_works_before_fit():
    for call in (lambda m: m.predict(X), lambda m: m.rank(X), lambda m: m.score(X, y)):
        with pytest.raises(NotFittedError):
            call(NeuralRanker())


def test_without_torch(monkeypatch):
    monkeypatch.setattr(neural_module, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="NeuralRanker needs torch"):
        NeuralRanker().fit(X, y, qid=qid)


def test_what_is_not_proven_warns_once():
    with pytest.warns(GuaranteeWarning, match="P_reinforce") as caught:
        model = NeuralRanker("ap", **QUICK).fit(X, (y > 1) * 1, qid=qid)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.basis_ == "P_reinforce"


def test_a_bar_goes_to_standard_error_only(capsys):
    NeuralRanker(**QUICK).fit(X, y, qid=qid)
    assert capsys.readouterr() == ("", "")
    NeuralRanker(verbose=1, **QUICK).fit(X, y, qid=qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert "epochs" in err


# ---------------------------------------------------------------- real data


def test_mq2008(shared_data):
    fold = cc.datasets.load("mq2008", fold=1, folder=shared_data)
    train, test = fold.train, fold.test
    model = NeuralRanker("ndcg@10", hidden=(16,), max_epochs=4, learning_rate=3e-3)
    model.fit(train.X, train.y, qid=train.qid, eval_set=fold.validation)
    constant = cc.metric("ndcg@10")(test.y, np.zeros(len(test.y)), qid=test.qid)
    assert model.score(test.X, test.y, qid=test.qid) > constant + 0.1
