"""Linear rankers on a device: the losses, objective and optimum of the compiled kernels; what is refused."""

import contextlib
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import concordant as cc
from concordant import GuaranteeWarning, LinearRanker, LinearRankerCV, MaxMarginRanker, Queries
from concordant.exceptions import MissingExtraError, NonFiniteError, ParameterError, ShapeError
from concordant.surrogates import Duchi, ListwiseHinge, Pairwise, Penalty, PositionHinge, Softmax, Squared
from tests.helpers.surrogate_checks import CASES, POSITION, reads, targets_for

torch = pytest.importorskip("torch", reason="torch is not installed")

from concordant.rankers import device_losses as device_module  # noqa: E402
from concordant.rankers import device_training  # noqa: E402
from concordant.rankers.device_losses import (  # noqa: E402
    FORMS,
    device_form,
    device_loss,
    torch_device,
    working_on,
)
from concordant.rankers.training import compile_objective  # noqa: E402
from concordant.solvers import lbfgs  # noqa: E402
from concordant.torch.lists import Lists  # noqa: E402

SIZES = [0, 1, 6, 0, 9, 1, 4, 0]
KNOWN = {name: case for name, case in (CASES | POSITION).items() if type(case.surrogate) in FORMS}
SOME = ["softmax", "pairwise[huber_hinge,normalize]", "squared", "squared[plain]", "duchi[cosh]"]
on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
pytestmark = pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")


class Toy:
    """A few queries: empty ones, single items, equal rows, rows of weight 0."""

    def __init__(self, name, *, sizes=SIZES, seed=0):
        rng = np.random.default_rng(seed)
        self.surrogate, self.queries = KNOWN[name].surrogate, Queries.from_sizes(np.array(sizes))
        self.X = rng.integers(-8, 9, (self.queries.n_rows, 4)) / 4.0
        self.X[8:10] = self.X[7]
        self.X[:, 3] = self.queries.codes * 100.0  # constant within queries
        self.labels = np.concatenate([targets_for(rng, reads(self.surrogate), n) for n in sizes])
        self.shares = np.full(len(sizes), 1.0 / len(sizes))
        self.weights = rng.choice([0.0, 0.5, 2.0], len(self.labels)) / len(sizes)
        self.scores = np.round(rng.normal(size=len(self.labels)), 1)  # some ties

    @property
    def arguments(self):
        return self.surrogate, self.labels, self.X, self.queries, self.shares, self.weights

    def here(self, **options):
        return compile_objective(*self.arguments, **{"fit_scale": True} | options)

    def there(self, device="cpu", **options):
        return device_training.build_device_setting(
            *self.arguments, **{"fit_scale": True, "device": device} | options
        )


def drawn(n_queries=40, n_items=9, n_features=4, seed=0):
    """Features of different size, grades that follow them, and ids that do not stand together."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_items + 1, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries) * 3 + 5, sizes))
    X = rng.normal(size=(len(qid), n_features))
    level = X @ np.arange(1, n_features + 1) + 2.0 * rng.normal(size=len(qid))
    return X * 10.0 ** np.arange(n_features), np.digitize(level, [-1.0, 2.0, 5.0]), qid


X, y, qid = drawn()


# ---------------------------------------------------------------- losses


def check_loss(loss, toy, device="cpu", rel=1e-10):
    """Values and gradient are those of the compiled loss."""
    values, grad = toy.surrogate.bind(toy.labels, toy.queries.offsets, toy.weights).value_and_grad(toy.scores)
    tensors = (torch.tensor(rows, device=device) for rows in (toy.scores, toy.labels, toy.weights))
    got = loss(*tensors, Lists.from_offsets(np.array(toy.queries.offsets), device))
    for mine, theirs in zip(got, (values, grad), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine.cpu().numpy(), theirs, rtol=rel, atol=rel)


@pytest.mark.parametrize("name", KNOWN)
def test_losses_are_those_of_the_compiled_kernels(name):
    for seed in range(3):
        check_loss(device_loss(KNOWN[name].surrogate), Toy(name, seed=seed))


@on_cuda
def test_losses_on_cuda():
    for name, case in KNOWN.items():
        check_loss(device_loss(case.surrogate), Toy(name), "cuda")


def test_losses_of_nothing():
    for sizes in ([], [0], [0, 0]):
        for name in SOME:
            toy = Toy.__new__(Toy)
            toy.surrogate, toy.queries = KNOWN[name].surrogate, Queries.from_sizes(np.array(sizes, dtype=int))
            toy.labels = toy.weights = toy.scores = np.empty(0)
            check_loss(device_loss(toy.surrogate), toy)


def wrong_losses():
    """Without weights; of the other sign; summed over all queries."""
    loss = device_loss(Softmax())
    yield lambda scores, labels, weights, lists: loss(scores, labels, torch.ones_like(weights), lists)
    yield lambda *arguments: (loss(*arguments)[0], -loss(*arguments)[1])
    yield lambda *arguments: (loss(*arguments)[0].sum()[None], loss(*arguments)[1])


@pytest.mark.parametrize("loss", list(wrong_losses()))
def test_the_check_sees_wrong_losses(loss):
    with pytest.raises(AssertionError):
        check_loss(loss, Toy("softmax"))


class Own(Softmax):
    """A caller's surrogate, whatever it inherits."""


@pytest.mark.parametrize("kind", ["preorder", "plackett_luce", Own(), ListwiseHinge(cc.metric("ndcg"))])
def test_surrogates_without_a_form_are_refused_by_name(kind):
    with pytest.raises(ParameterError, match="duchi, pairwise, position_hinge, softmax or squared"):
        LinearRanker("ndcg@5", surrogate=kind, device="cpu").fit(X, y, qid=qid)


def test_penalties_of_the_callers_are_refused():
    surrogate = Duchi(Penalty("own", np.square, np.square, np.square))
    with pytest.raises(ParameterError, match="'square', 'cosh' or 'quartic' on a device"):
        device_form(surrogate)


# ---------------------------------------------------------------- objectives


def check_objective(name, *, fit_scale, device="cpu"):
    """Scale, value and gradient are those of the compiled objective."""
    toy = Toy(name)
    here, there = toy.here(fit_scale=fit_scale), toy.there(device, fit_scale=fit_scale)
    np.testing.assert_allclose(there.scale, here.scale, rtol=1e-12)
    mine, theirs = there.objective(0.1), here.objective(0.1)
    for w in (np.zeros(4), np.array([0.5, -1.0, 0.25, 0.01])):
        (value, grad), (expected, slope) = mine.value_and_grad(w), theirs.value_and_grad(w)
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(grad, slope, rtol=1e-10, atol=1e-10)
    assert mine.n_gradients == 2
    assert mine.at_rest() == pytest.approx(theirs.at_rest(), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("fit_scale", [True, False])
@pytest.mark.parametrize("name", KNOWN)
def test_objectives_are_those_of_the_compiled_kernels(name, fit_scale):
    check_objective(name, fit_scale=fit_scale)


@on_cuda
def test_objectives_on_cuda():
    for name in KNOWN:
        check_objective(name, fit_scale=True, device="cuda")


@pytest.mark.parametrize("name", SOME)
def test_gradients_are_differences_of_values(name):
    objective, w, step = Toy(name).there().objective(0.1), np.array([0.3, -0.2, 0.1, 0.001]), 1e-6
    _, grad = objective.value_and_grad(w)
    for bump, slope in zip(step * np.eye(4), grad, strict=True):
        up, down = (objective.value_and_grad(w + side * bump)[0] for side in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", [*SOME, "position_hinge[sum]"])
def test_curvatures_are_near_those_of_the_kernels(name):
    toy, rng = Toy(name, sizes=[30] * 20), np.random.default_rng(0)
    bend, level = toy.there().objective(0.1).curvatures(rng)
    expected, whole = toy.here().objective(0.1).curvatures(rng)
    assert bend == pytest.approx(expected, rel=0.5)
    assert level == pytest.approx(whole, rel=0.5)


def test_parts_and_pieces_give_the_same_measures(monkeypatch):
    toy = Toy("softmax", sizes=[0, 50, 1, 0, 70, 3])
    whole = toy.there()
    monkeypatch.setattr(device_training, "PART_CELLS", 40)
    monkeypatch.setattr(device_training, "PIECE_ROWS", 8)
    parts = toy.there()
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-13)
    np.testing.assert_allclose(parts.scale, toy.here().scale, rtol=1e-13)
    np.testing.assert_allclose(parts.objective(1.0).X, whole.objective(1.0).X, atol=1e-13)
    assert parts.scale[3] == 1.0  # constant within queries


@on_cuda
def test_large_arrays_go_through_locked_memory(monkeypatch):
    monkeypatch.setattr(device_training, "STAGED", 1)
    monkeypatch.setattr(device_training, "STEP", 7)
    for shape in ((1, 1), (7, 2), (5, 5), (100, 3)):
        rows = np.random.default_rng(0).normal(size=shape)
        there = device_training.to_device(rows, "cuda")
        np.testing.assert_array_equal(there.cpu().numpy(), rows)
        np.testing.assert_array_equal(device_training.to_array(there), rows)


# ---------------------------------------------------------------- rankers


def check_optimum(kind, dtype, device="cpu"):
    """Objective, certificate and scores are those of the compiled kernels."""
    rows, tol = X.astype(dtype), 1e-8 if dtype is np.float64 else 1e-6
    rng = np.random.default_rng(1)
    weights = {"sample_weight": rng.choice([0.0, 1.0, 3.0], len(y)), "query_weight": 1.0 + qid % 2}
    for alpha in (0.1, 1e-4):
        here, there = (
            LinearRanker("ndcg@5", kind, alpha, tol=how, device=where).fit(rows, y, qid=qid, **weights)
            for where, how in ((None, 1e-9), (device, tol))
        )
        least, rest = here.solution_.value, abs(here.solution_.value) + 1.0
        assert least - 1e-7 * rest <= there.solution_.value <= least + 3.0 * tol * rest
        assert there.solution_.converged
        assert there.certificate_.status == here.certificate_.status
        bounds = [model.risk_bound(rows, y, qid=qid).value for model in (there, here)]
        assert bounds[0] == pytest.approx(bounds[1], rel=1e-3)
        np.testing.assert_allclose(there.scale_, here.scale_, rtol=1e-6)
        assert there.n_informative_ == here.n_informative_
        scores = there.predict(rows), here.predict(rows)
        np.testing.assert_allclose(*scores, atol=3e-2 * np.ptp(scores[1]))


KINDS = [Softmax(), Pairwise(), Squared(), Squared(centred=False), Duchi()]


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_compiled_kernels(kind, dtype):
    check_optimum(kind, dtype)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@on_cuda
def test_the_optimum_on_cuda():
    for kind in KINDS:
        check_optimum(kind, np.float32, "cuda")


def test_hinges_are_trained_too():
    here, there = (
        LinearRanker("ndcg@5", PositionHinge(), 1.0, device=where).fit(X, y, qid=qid)
        for where in (None, "cpu")
    )
    assert there.solution_.value == pytest.approx(here.solution_.value, rel=1e-4)
    assert len({model.risk_bound(X, y, qid=qid).bounds for model in (there, here)}) == 1


def test_single_precision_is_not_spent_on_the_level():
    far = (X / X.std(axis=0) + 1e4 * (1 + qid % 7)[:, None]).astype(np.float32)
    here, there = (
        LinearRanker("ndcg@5", alpha=1e-3, tol=1e-8, device=where).fit(far, y, qid=qid)
        for where in (None, "cpu")
    )
    assert there.solution_.value == pytest.approx(here.solution_.value, rel=1e-6)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", [Duchi(), Squared(centred=False)])
def test_nor_on_the_mean_where_the_level_counts(kind):
    far = (X / X.std(axis=0) + 1e6).astype(np.float32)
    best, there = (
        LinearRanker("ndcg@5", kind, alpha=1e-3, tol=tol, device=where).fit(far, y, qid=qid)
        for where, tol in ((None, 1e-12), ("cpu", 1e-6))
    )
    assert there.solution_.converged
    assert there.solution_.value == pytest.approx(best.solution_.value, rel=1e-5)
    objective = LinearRanker("ndcg@5", kind).problem((cc.metric("ndcg@5"), kind), far, y, qid).objective(1e-3)
    true, _ = objective.value_and_grad(there.coef_ * best.scale_)
    assert true == pytest.approx(best.solution_.value, rel=1e-5)


@pytest.mark.parametrize("size", [1e-42, 1e-30, 1e30, 1e37])
@pytest.mark.parametrize("kind", [Softmax(), Pairwise(), Squared(), Duchi()])
def test_single_precision_is_not_left(kind, size):
    rows = (X / np.abs(X).max(axis=0) * size).astype(np.float32)
    for fit_scale in (True, False):
        alpha = 1e-3 if fit_scale else 1e-3 * size**2
        here, there = (
            LinearRanker("ndcg@5", kind, alpha, fit_scale=fit_scale, device=where).fit(rows, y, qid=qid)
            for where in (None, "cpu")
        )
        assert there.solution_.converged
        assert there.solution_.value == pytest.approx(here.solution_.value, rel=1e-3)


@pytest.mark.parametrize("size", [1e-45, 1e-30, 1e12, 1e15])
@pytest.mark.parametrize("kind", [Softmax(), Pairwise()])
def test_targets_of_any_size_are_held(kind, size):
    for dtype in (np.float32, np.float64):
        there, plain = (
            LinearRanker("dcg@5[gain=linear]", kind, 0.1 * unit, device="cpu").fit(
                X.astype(dtype), y * unit, qid=qid
            )
            for unit in (size, 1.0)
        )
        assert there.solution_.converged
        assert there.solution_.value == pytest.approx(plain.solution_.value * size, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "size"), [(Squared(), 1e25), (Squared(centred=False), 1e38), (Duchi(), 1e150)]
)
def test_targets_beyond_single_precision_are_refused(kind, size):
    with pytest.raises(NonFiniteError, match="give X as float64"):
        LinearRanker("dcg@5[gain=linear]", kind, device="cpu").fit(X.astype(np.float32), y * size, qid=qid)


def test_autocast_does_not_reach_the_objective():
    rows = X.astype(np.float32)
    plain = LinearRanker("ndcg@5", device="cpu").fit(rows, y, qid=qid)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model = LinearRanker("ndcg@5", device="cpu").fit(rows, y, qid=qid)
        assert torch.is_autocast_enabled("cpu")
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_kernels_start_on_the_named_device(monkeypatch):
    entered = []

    class Guard:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            entered.append(self.device)

        def __exit__(self, *_):
            entered.append("left")

    monkeypatch.setattr(torch.cuda, "device", Guard)
    with working_on(torch.device("cuda:1")):
        assert entered == [torch.device("cuda:1")]
    with working_on(torch.device("cpu")):
        assert entered[1:] == ["left"]
    reached, toy = [], Toy("softmax")
    objective = toy.there().objective(0.1)
    monkeypatch.setattr("concordant.rankers.device_training.working_on", recording(reached))
    objective.value_and_grad(np.zeros(4))
    objective.at_rest()
    objective.sample(np.random.default_rng(0))
    objective.curvatures(np.random.default_rng(0))
    assert reached == [torch.device("cpu")] * 4


def recording(reached):
    """Give a stand-in for `working_on` that notes the device."""

    def stand_in(device):
        reached.append(device)
        return contextlib.nullcontext()

    return stand_in


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_cuda)])
def test_features_may_be_a_tensor(device):
    expected = LinearRanker("ndcg@5", device=device).fit(X, y, qid=qid)
    rows = torch.tensor(X, device=device, requires_grad=True)
    labels, ids = torch.tensor(y, device=device), torch.tensor(qid, device=device)
    for kind in ("softmax", Squared(centred=False)):
        model = LinearRanker("ndcg@5", kind, device=device).fit(rows, labels, qid=ids)
        np.testing.assert_array_equal(rows.detach().cpu(), X)  # not written to
        again = LinearRanker("ndcg@5", kind, device=device).fit(X, y, qid=qid)
        np.testing.assert_array_equal(model.coef_, again.coef_)
        assert model.risk_bound(rows, labels, qid=ids) == again.risk_bound(X, y, qid=qid)
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(expected.predict(rows), expected.predict(X))
    score = expected.score(rows, y, qid=qid)
    assert score == expected.score(X, y, qid=qid) > 0.5


KINDS_OF_NUMBERS = [torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", KINDS_OF_NUMBERS)
def test_tensors_of_any_numbers_are_read(dtype):
    rows = torch.tensor(np.round(X[:, :2])).to(dtype)
    model = LinearRanker("ndcg@5", device=torch.device("cpu")).fit(rows, y, qid=qid)
    wide = np.float64 if dtype in (torch.int64, torch.float64) else np.float32
    plain = rows.double().numpy().astype(wide)
    again = LinearRanker("ndcg@5", device="cpu").fit(plain, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    np.testing.assert_array_equal(model.predict(rows), again.predict(plain))
    here = LinearRanker("ndcg@5").fit(rows, torch.tensor(y).to(dtype), qid=qid)
    np.testing.assert_array_equal(here.coef_, LinearRanker("ndcg@5").fit(plain, y, qid=qid).coef_)


def test_without_a_device_a_tensor_is_an_array():
    model = LinearRanker("ndcg@5").fit(torch.tensor(X), y, qid=qid)
    np.testing.assert_array_equal(model.coef_, LinearRanker("ndcg@5").fit(X, y, qid=qid).coef_)


def test_frozen_arrays_and_frames_are_read():
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LinearRanker("ndcg@5", device="cpu").fit(frame, y, qid=qid)
    assert model.feature_names_in_.tolist() == list("abcd")
    rows = X.copy()
    rows.flags.writeable = False
    np.testing.assert_array_equal(
        LinearRanker("ndcg@5", device="cpu").fit(rows, y, qid=qid).coef_, model.coef_
    )


def test_it_stays_an_estimator():
    model = LinearRanker("ndcg@5", device="cpu", warm_start=True).fit(X, y, qid=qid)
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert clone(LinearRanker(device=torch.device("cpu"))).device == torch.device("cpu")
    before, steps = model.coef_, []
    model.set_params(callback=lambda step: steps.append(step.w)).fit(X, y, qid=qid)
    assert model.n_iter_ <= 1
    np.testing.assert_allclose(model.coef_, before, rtol=1e-2)
    assert MaxMarginRanker().device is None


def test_searches_run_on_the_device():
    search = GridSearchCV(LinearRanker("ndcg@5", device="cpu"), {"alpha": [1.0, 0.1]}, cv=GroupKFold(3))
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_score_ > 0.5
    here, there = (
        LinearRankerCV("ndcg@5", alphas=[1.0, 0.01], cv=3, device=where).fit(X, y, qid=qid)
        for where in (None, "cpu")
    )
    np.testing.assert_allclose(there.scores_, here.scores_, atol=5e-3)
    model = LinearRankerCV("ndcg@5", alphas=[1.0, 0.01], device="cpu").fit(
        torch.tensor(X), y, qid=qid, eval_set=(torch.tensor(X), y, qid)
    )
    assert model.best_score_ > 0.5
    assert model.predict(torch.tensor(X)).shape == y.shape


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("device", ["gpu", 3.5, "cuda:999", "meta", ["cpu"]])
def test_devices_that_are_not_there_are_refused(device):
    with pytest.raises(ParameterError, match="device must be "):
        LinearRanker(device=device).fit(X, y, qid=qid)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_cuda_is_refused_where_there_is_none():
    with pytest.raises(ParameterError, match="sees 0 CUDA devices"):
        LinearRanker(device="cuda").fit(X, y, qid=qid)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(device_module, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'concordant[torch]'")):
        torch_device("cpu")
    LinearRanker().fit(X, y, qid=qid)  # without a device nothing is asked for


@pytest.mark.parametrize("solver", ["newton", "sgd", "bundle"])
def test_solvers_that_need_the_kernels_are_refused(solver):
    with pytest.raises(ParameterError, match="'lbfgs' on a device"):
        LinearRanker(solver=solver, device="cpu").fit(X, y, qid=qid)


def test_sparse_features_are_refused():
    with pytest.raises(ParameterError, match=re.escape("a sparse csr_array")):
        LinearRanker(device="cpu").fit(sparse.csr_array(X), y, qid=qid)
    with pytest.raises(ParameterError, match="X must be dense on a device"):
        LinearRankerCV(device="cpu").fit(sparse.csr_array(X), y, qid=qid)


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (1, 2, 2)])
def test_tensors_of_other_shapes_are_refused(shape):
    with pytest.raises(ShapeError, match="rows and columns"):
        LinearRanker(device="cpu").fit(torch.zeros(shape), y)


def test_complex_tensors_are_refused():
    with pytest.raises(ParameterError, match="real numbers"):
        LinearRanker(device="cpu").fit(torch.zeros(len(y), 2, dtype=torch.complex64), y)


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "inf")])
@pytest.mark.parametrize("wrapped", [np.asarray, torch.tensor])
def test_features_that_are_not_finite_are_refused(bad, word, wrapped):
    rows = X.copy()
    rows[17, 2] = bad
    with pytest.raises(ValueError, match=f"X contains {word} at row 17, column 2 "):
        LinearRanker(device="cpu").fit(wrapped(rows), y, qid=qid)


def test_differences_beyond_single_precision_are_refused():
    rows = np.where(np.arange(len(y))[:, None] % 2, 3e38, -3e38).astype(np.float32)
    with pytest.raises(NonFiniteError, match="give it as float64"):
        LinearRanker(device="cpu").fit(rows, y)


def hollow():
    """Tensors that do not hold one number after the other."""
    rows = torch.tensor(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch: compressed rows and nested tensors are prototypes
        return {
            "sparse_coo": rows.to_sparse(),
            "sparse_csr": rows.to_sparse_csr(),
            "meta": rows.to("meta"),
            "nested": torch.nested.as_nested_tensor([rows[:3], rows[3:]]),
        }


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize(("kind", "rows"), hollow().items())
def test_tensors_without_numbers_of_their_own_are_refused(device, kind, rows):
    with pytest.raises(ParameterError, match=kind):
        LinearRanker(device=device).fit(rows, y, qid=qid)


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("fit_scale", [True, False])
def test_squares_beyond_doubles_are_refused(device, fit_scale):
    plain = X / np.abs(X).max(axis=0)
    constant = np.column_stack([plain[:, :3], np.full(len(y), 1e200)])
    for rows in (plain * 1e160, plain * 1e306, constant):
        with pytest.raises(NonFiniteError, match="rescale X"):
            LinearRanker(device=device, fit_scale=fit_scale).fit(rows, y, qid=qid)
    if device is None:
        with pytest.raises(NonFiniteError, match="feature 3"):
            LinearRanker(fit_scale=fit_scale).fit(sparse.csr_array(constant), y, qid=qid)


def test_labels_are_checked_as_ever():
    with pytest.raises(ValueError, match="negative"):
        LinearRanker(device="cpu").fit(X, -1.0 * y, qid=qid)
    with pytest.warns(GuaranteeWarning):
        LinearRanker("err", device="cpu").fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="Nothing was learned"):
        LinearRanker(device="cpu").fit(X, np.ones(len(y)), qid=qid)


def test_lbfgs_takes_either_objective():
    toy = Toy("softmax", sizes=[8] * 10)
    here, there = (
        lbfgs(setting.objective(0.1), np.zeros(4), tol=1e-10) for setting in (toy.here(), toy.there())
    )
    assert there.value == pytest.approx(here.value, rel=1e-9)
    np.testing.assert_allclose(there.w, here.w, atol=1e-4)
