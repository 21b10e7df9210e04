"""The torch losses against the definitions, the compiled kernels and one another, in every layout."""

import itertools
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

import concordant as cc  # noqa: E402
from concordant import surrogates  # noqa: E402
from concordant import torch as ct  # noqa: E402
from concordant.exceptions import (  # noqa: E402
    ConcordantError,
    GradeError,
    GuaranteeWarning,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from concordant.metrics.standardization import usable_targets  # noqa: E402
from concordant.torch import functional, host, ops  # noqa: E402
from concordant.torch.lists import Lists  # noqa: E402
from concordant.torch.targets import build_discount_tables, standardize_grades  # noqa: E402
from tests import oracles  # noqa: E402
from tests.helpers import surrogate_checks as checks  # noqa: E402

pytestmark = [
    pytest.mark.once,
    # torch.compile looks at the .grad of what it traces, and torch warns of that once a process.
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
    # torch.compile and its reset import parts of torch that use torch.jit, which torch deprecates.
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
DOUBLE, SINGLE = torch.float64, torch.float32
EXACT = {DOUBLE: 1e-10, SINGLE: 1e-6}  # of the query's largest gradient entry
DEVICES = [  # of which the first two are the CPU
    "cpu",
    "no numba",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
    ),
]
MARGINS = checks.MARGINS


@pytest.fixture
def device(request, monkeypatch):
    """Where tensors are; without numba torch's own operations do the work."""
    if request.param == "no numba":
        monkeypatch.setattr(host, "has_numba", lambda: False)
        return "cpu"
    return request.param


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Workers share the cores: on small tensors, waiting for a second thread would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pairwise(margin):
    return checks.PAIRWISE[f"pairwise[{margin}]"], partial(functional.pairwise, margin=margin)


def squared(name, *, centred):
    def call(scores, targets, weights, lists):
        return functional.squared(scores, targets, weights, lists, centred=centred)

    return checks.REST[name], call


def weighed(function):
    """Return a function of scores, targets and weights: the weights multiply the targets."""

    def call(scores, targets, weights, lists):
        return function(scores, targets * weights, lists)

    return call


CASES = (
    {f"pairwise[{m}]": (pairwise(m)[0], weighed(pairwise(m)[1])) for m in MARGINS}
    | {
        "softmax": (checks.REST["softmax"], weighed(functional.softmax)),
        "squared": squared("squared", centred=True),
        "squared[plain]": squared("squared[plain]", centred=False),
    }
    | {
        name: (case, partial(functional.position_hinge, reduction=how))
        for how in ("sum", "pairs", "all_pairs")
        for name, case in [(f"position_hinge[{how}]", checks.POSITION[f"position_hinge[{how}]"])]
    }
)


def as_given(batch, dtype):
    """The batch as scores of this precision hold it."""
    return [checks.Query(*(torch.tensor(x, dtype=dtype).double().numpy() for x in query)) for query in batch]


def run(call, batch, dtype=DOUBLE, device="cpu"):
    lists = Lists.from_sizes([len(query.scores) for query in batch]).to(device)
    columns = [np.concatenate([query[k] for query in batch]) for k in range(3)]
    values, grad = call(*(torch.tensor(c, dtype=dtype, device=device) for c in columns), lists)
    assert values.dtype == grad.dtype == dtype
    pieces = np.split(grad.double().cpu().numpy(), lists.offsets[1:-1].cpu().numpy())
    return values.double().cpu().numpy(), pieces


def check_definition(name, batch, dtype=DOUBLE, device="cpu", call=None):
    """Values and gradients are the definition's, up to rounding relative to the query's largest terms."""
    case, loss = CASES[name]
    rows = as_given(batch, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        values, pieces = run(call or loss, rows, dtype, device)
        wants = checks.oracle_results(case, rows)
        exact = 10 * EXACT[dtype]
        for value, grad, want, query in zip(values, pieces, wants, rows, strict=True):
            size = float(want.size) + float(np.max(want.sizes, initial=0.0))
            largest = np.max(want.sizes.astype(float), initial=0.0)
            if largest > float(torch.finfo(dtype).max):
                continue  # beyond this precision
            assert checks.close(value, want.value, size, exact), (value, want.value, query)
            assert checks.close(grad, checks.nearest(grad, want), largest, EXACT[dtype]), (grad, want, query)


def nasty(rng):
    """Queries that are empty, single, tied, far apart, far from 0, and without weight."""
    n = 12
    plain = rng.normal(size=n)
    draws = [
        np.zeros(0),
        rng.normal(size=1),
        np.full(n, 3.0),
        np.round(plain),
        plain * 1e6,
        np.round(plain * 1e6),
        plain + 1e6,
        np.round(plain) - 1e6,
        np.r_[plain[:6], 1e6 + plain[6:]],
        plain * 1e-6,
    ]
    targets = [rng.choice([0.0, 0.3, 1.0, 7.0], len(x)) for x in draws]
    weights = [rng.choice([0.0, 1.0, 2.0], len(x)) for x in draws]
    weights[3] *= 0.0
    return [checks.Query(*query) for query in zip(draws, targets, weights, strict=True)]


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_definition(name, dtype, device):
    rng = np.random.default_rng(0)
    check_definition(name, checks.drawn(rng, "targets", (0, 1, 2, 9, 0, 17, 30)), dtype, device)
    far = [
        query for query in nasty(rng) if "exponential" not in name or abs(query.scores).max(initial=0) < 50
    ]
    check_definition(name, far, dtype, device)
    check_definition(name, far[3:4], dtype, device)  # one list


scores_of = st.one_of(
    st.floats(-1e6, 1e6, width=32),
    st.integers(-3, 3).map(float),
    st.integers(-3, 3).map(lambda k: 1e6 + k / 2),
)
rows_of = st.lists(
    st.tuples(scores_of, st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.sampled_from([0.0, 1.0, 2.5])), max_size=8
)


@settings(max_examples=40)
@given(
    st.lists(rows_of, min_size=1, max_size=4), st.sampled_from([n for n in CASES if "exponential" not in n])
)
def test_equals_the_definition_on_anything(lists, name):
    batch = [checks.Query(*np.array(rows, dtype=float).reshape(-1, 3).T) for rows in lists]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "has_numba", lambda: False)
        check_definition(name, batch, DOUBLE)
        check_definition(name, batch, SINGLE)


def test_kernels_and_torch_agree_on_long_lists(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    lists = Lists.from_sizes([900, 0, 5, 400])
    scores = torch.randn(lists.n_rows, generator=rng)
    targets = torch.randint(0, 5, (lists.n_rows,), generator=rng).float()
    by_kernels = functional.pairwise(scores, targets, lists)
    monkeypatch.setattr(host, "has_numba", lambda: False)
    for expected, other in zip(by_kernels, functional.pairwise(scores, targets, lists), strict=True):
        assert torch.allclose(expected, other, rtol=1e-6, atol=1e-6)


def wrong_ties(scores, targets, weights, lists):
    """Pairs of equal scores left out."""
    values, grad = functional.pairwise(scores, targets * weights, lists)
    return values - lists.sums(targets * weights), grad


def wrong_sign(scores, targets, weights, lists):
    values, grad = functional.pairwise(scores, targets * weights, lists)
    return values, -grad


def wrong_neighbour(scores, targets, weights, lists):
    """Lists that run into one another."""
    whole = Lists.single(lists.n_rows)
    values, grad = functional.pairwise(scores, targets * weights, whole)
    return values.expand(lists.n_queries), grad


@pytest.mark.parametrize("wrong", [wrong_ties, wrong_sign, wrong_neighbour])
def test_the_check_rejects_a_wrong_kernel(wrong):
    batch = checks.drawn(np.random.default_rng(0), "targets", (5, 8))
    check_definition("pairwise[huber_hinge]", batch)
    with pytest.raises(AssertionError):
        check_definition("pairwise[huber_hinge]", batch, call=wrong)


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("name", CASES)
def test_long_lists_equal_the_compiled_kernels(name, dtype, device):
    rng = np.random.default_rng(1)
    sizes = (700, 3, 0, 1100) if "logistic" not in name else (150, 0, 90)
    batch = as_given(checks.drawn(rng, "targets", sizes, 3.0 if "exponential" not in name else 0.5), dtype)
    values, pieces = run(CASES[name][1], batch, dtype, device)
    scores, targets, rows = checks.join_batch(batch)
    want, grad = CASES[name][0].surrogate(scores, targets, **rows)
    assert np.allclose(values, want, rtol=10 * EXACT[dtype], atol=0)
    for got, expected in zip(pieces, np.split(grad, rows["qid"].offsets[1:-1]), strict=True):
        assert abs(got - expected).max(initial=0) <= EXACT[dtype] * abs(expected).max(initial=0)


def losses():
    """Every loss of lists, with a metric where it takes one."""
    for margin in ("huber_hinge", "squared_hinge", "hinge", "logistic", "exponential"):
        yield ct.OrderPreservingLoss("ndcg@3", margin=margin)
    yield ct.OrderPreservingLoss("dcg", normalize=True)
    yield ct.SoftmaxLoss("ap", assume="P_reinforce")
    yield ct.SquaredLoss("auc")
    yield ct.SquaredLoss("p@2", centred=False)
    yield ct.PositionHingeLoss(pairs="pairs")


with warnings.catch_warnings():
    warnings.simplefilter("ignore", GuaranteeWarning)  # the hinge, on purpose
    LOSSES = {str(loss): loss for loss in losses()}
SURROGATES = {  # the same by the package's own surrogates
    **{
        f"OrderPreservingLoss(metric='ndcg@3', reduction='mean', margin='{m}', normalize=False)": (
            surrogates.Pairwise(m),
            "ndcg@3",
        )
        for m in ("huber_hinge", "squared_hinge", "hinge", "logistic", "exponential")
    },
    "OrderPreservingLoss(metric='dcg', reduction='mean', margin='huber_hinge', normalize=True)": (
        surrogates.Pairwise(normalize=True),
        "dcg",
    ),
    "SoftmaxLoss(metric='ap', reduction='mean')": (surrogates.Softmax(), "ap"),
    "SquaredLoss(metric='auc', reduction='mean', centred=True)": (surrogates.Squared(), "auc"),
    "SquaredLoss(metric='p@2', reduction='mean', centred=False)": (surrogates.Squared(centred=False), "p@2"),
    "PositionHingeLoss(reduction='mean', pairs='pairs')": (surrogates.PositionHinge("pairs"), None),
}


class Padded:
    """A batch of lists in every layout."""

    def __init__(self, device="cpu", dtype=DOUBLE, n=9):
        rng = torch.Generator().manual_seed(0)
        self.mask = torch.rand(6, n, generator=rng) < 0.7
        self.mask[2] = False
        self.mask[4] = True
        self.scores = (
            torch.randn(6, n, generator=rng, dtype=DOUBLE).to(dtype).masked_fill(~self.mask, torch.nan)
        )
        self.grades = torch.randint(0, 4, (6, n), generator=rng).masked_fill(~self.mask, -1)
        self.shares = torch.rand(6, generator=rng, dtype=DOUBLE).to(device)
        self.scores, self.grades, self.mask = (x.to(device) for x in (self.scores, self.grades, self.mask))
        self.lists = Lists.from_sizes(self.mask.sum(1))

    def flat(self):
        return self.scores[self.mask].clone().requires_grad_()

    def split(self, tensor):
        return list(torch.split(tensor, self.lists.sizes.tolist()))

    def results(self, loss, **options):
        """Value and gradient by row, layout by layout."""
        y = self.grades[self.mask]
        for name, offsets in {
            "lists": self.lists,
            "offsets": self.lists.offsets,
            "array": self.lists.offsets.cpu().numpy(),
        }.items():
            scores = self.flat()
            value = loss(scores, y, offsets=offsets, **options)
            value.sum().backward()
            yield name, value, scores.grad
        scores = self.scores.clone().requires_grad_()
        value = loss(scores, self.grades, mask=self.mask, **options)
        value.sum().backward()
        assert (scores.grad[~self.mask] == 0).all()
        yield "padded", value, scores.grad[self.mask]
        for layout in (torch.jagged, torch.strided):
            scores = self.flat()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch: nested tensors are a prototype
                nested = torch.nested.as_nested_tensor(self.split(scores), layout=layout)
                value = loss(nested, torch.nested.as_nested_tensor(self.split(y), layout=layout), **options)
                value.sum().backward()
            yield str(layout), value, scores.grad


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("name", LOSSES)
def test_layouts_agree(name, device):
    batch = Padded(device)
    weighted = {"query_weight": batch.shares}
    results = list(batch.results(LOSSES[name], **weighted))
    _, value, grad = results[0]
    for layout, other, other_grad in results[1:]:
        assert torch.allclose(other, value, rtol=1e-12), layout
        assert torch.allclose(other_grad, grad, rtol=1e-9, atol=1e-12), layout


@pytest.mark.parametrize("device", DEVICES[:2], indirect=True)
@pytest.mark.parametrize("name", LOSSES)
def test_modules_are_the_surrogates(name, device):
    batch, (surrogate, metric) = Padded(device), SURROGATES[name]
    grades, queries = batch.grades[batch.mask].numpy(), cc.Queries.from_sizes(batch.lists.sizes.numpy())
    targets = grades.astype(float)
    if metric is not None:
        ranking_metric = cc.metric(metric)
        targets, _ = usable_targets(ranking_metric, ranking_metric.read_labels(grades), queries)
    values, grad = surrogate(batch.scores[batch.mask].numpy(), targets, qid=queries)
    _, value, torch_grad = next(batch.results(LOSSES[name]))
    assert value.item() == pytest.approx(values.mean(), rel=1e-12)
    assert np.allclose(torch_grad, grad / len(values), rtol=1e-10, atol=1e-12)


def test_every_loss_has_its_surrogate():
    assert set(LOSSES) == set(SURROGATES)


@pytest.mark.parametrize("device", DEVICES[:2], indirect=True)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_by_finite_differences(name, device):
    if "hinge'" in name and "huber" not in name and "squared" not in name:
        pytest.skip("a hinge has corners")
    batch, loss = Padded(device, n=4), LOSSES[name]

    def ragged(scores):
        return loss(scores, batch.grades[batch.mask], offsets=batch.lists, query_weight=batch.shares)

    def padded(scores):
        return loss(scores, batch.grades, mask=batch.mask)

    assert torch.autograd.gradcheck(ragged, batch.flat())
    assert torch.autograd.gradcheck(padded, batch.scores.nan_to_num(0.0).requires_grad_())


def test_reductions():
    batch = Padded()
    each = ct.SoftmaxLoss(reduction="none")
    y = batch.grades[batch.mask].double()
    call = partial(each, batch.flat(), y, offsets=batch.lists)
    values, w = call(), batch.shares
    assert values.shape == (6,)
    assert torch.allclose(call(query_weight=w), values * w)
    for reduction, plain, weighted in (
        ("mean", values.mean(), (values * w).sum() / w.sum()),
        ("sum", values.sum(), (values * w).sum()),
    ):
        loss = ct.SoftmaxLoss(reduction=reduction)
        assert torch.allclose(loss(batch.flat(), y, offsets=batch.lists), plain)
        assert torch.allclose(loss(batch.flat(), y, offsets=batch.lists, query_weight=w), weighted)
    mean = ct.SoftmaxLoss()
    lost = torch.tensor([torch.nan, 0.0, 0.0])
    assert mean(lost, torch.ones(3), offsets=[0, 1, 3], query_weight=[0.0, 1.0]).item() == pytest.approx(
        2 * np.log(2)
    )
    assert mean(batch.flat(), y, offsets=batch.lists, query_weight=torch.zeros(6)).item() == 0.0


@pytest.mark.parametrize("loss", [ct.OrderPreservingLoss(), ct.SoftmaxLoss("ndcg"), ct.SquaredLoss("auc")])
def test_nothing_gives_0(loss):
    empty = torch.empty(0, requires_grad=True)
    for kind in ({}, {"offsets": [0]}, {"offsets": [0, 0, 0]}):
        value = loss(empty, torch.empty(0), **kind)
        value.backward()
        assert value.item() == 0.0
    for shape in ((0, 3), (2, 0)):
        assert loss(torch.empty(shape), torch.empty(shape)).item() == 0.0
    off = torch.zeros(2, 3, dtype=torch.bool)
    assert loss(torch.full((2, 3), torch.nan), torch.full((2, 3), -1.0), mask=off).item() == 0.0


TARGETS = (
    "dcg", "dcg@3", "ndcg", "ndcg@3", "ndcg@10[lightgbm]", "ndcg@2[mslr]", "ndcg[trec_eval]", "p@2", "wta",
    "eru(v=1,w=3)", "auc", "wpd", "pd", "ap", "ap@2", "ap@3[lightgbm]", "ap@3[mslr]", "ap@1[mslr]",
    "ap@3[ranklib]", "err", "rr", "rr@1",
)  # fmt: skip


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("spec", TARGETS)
def test_targets_are_the_metrics_own(spec, device):
    metric, rng = cc.metric(spec), np.random.default_rng(3)
    for _ in range(8):
        sizes = rng.choice([0, 1, 3, 9], rng.integers(1, 5))
        y = rng.integers(0, 4, sizes.sum())
        if not len(y):
            continue
        want, _ = usable_targets(metric, metric.read_labels(y), cc.Queries.from_sizes(sizes))
        got = standardize_grades(metric, torch.tensor(y, device=device), Lists.from_sizes(sizes).to(device))
        assert np.allclose(got.cpu(), want, rtol=1e-14, atol=0)


def test_targets_of_a_users_gain():
    metric = cc.metric("ndcg", convention=cc.Convention(gain=np.sqrt))
    y = torch.tensor([4.0, 1.0, 0.0])
    assert np.allclose(standardize_grades(metric, y, Lists.single(3)), metric.targets(y.numpy()))


class Halving:
    """Discounts that have no hash."""

    def __call__(self, ranks):
        return 0.5 ** np.asarray(ranks, dtype=float)

    def __eq__(self, other):
        return isinstance(other, Halving)

    __hash__ = None


def test_targets_of_discounts_that_have_no_hash():
    metric = cc.metric("ndcg", convention=cc.Convention(discount=Halving()))
    y = torch.tensor([4, 1, 0])
    assert np.allclose(standardize_grades(metric, y, Lists.single(3)), metric.targets(y.numpy()))


def test_targets_of_bool_and_of_large_grades():
    lists, linear = Lists.from_offsets([0, 2, 5]), cc.metric("ndcg", convention=cc.Convention(gain="linear"))
    truth = torch.tensor([True, False, True, True, False])
    for metric in map(cc.metric, ("ndcg", "ap", "wpd", "auc", "dcg")):
        assert torch.equal(
            standardize_grades(metric, truth, lists), standardize_grades(metric, truth.long(), lists)
        )
    large = torch.tensor([2**34 + 1, 2**36, 0, 2**35, 2**40])
    want = linear.targets(large.numpy(), qid=[0, 0, 1, 1, 1])
    assert np.allclose(standardize_grades(linear, large, lists), want, rtol=1e-14)


def test_weighted_pairs_need_two_grades():
    """Powers of one grade may differ in their last digit, by where the row stands."""
    grades = torch.full((33,), 2.5, dtype=DOUBLE)
    assert not standardize_grades(cc.metric("wpd"), grades, Lists.from_offsets([0, 16, 33])).any()


def test_what_is_not_guaranteed_is_said():
    with pytest.warns(GuaranteeWarning, match="only if the labels satisfy P_reinforce"):
        ct.SoftmaxLoss("ap")
    with pytest.warns(GuaranteeWarning, match="err has no standardization"):
        ct.SoftmaxLoss("err")
    for metric in ("dcg", "ndcg@3", "auc", "wpd", "p@1"):
        ct.OrderPreservingLoss(metric)
    with pytest.warns(GuaranteeWarning, match="margin hinge is not order-preserving"):
        ct.OrderPreservingLoss("ndcg", margin="hinge")
    for margin in ("logistic", "squared_hinge"):
        ct.OrderPreservingLoss("ndcg", margin=margin)
    ct.OrderPreservingLoss(margin="hinge")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ct.SoftmaxLoss("ap"),
        lambda: ct.SquaredLoss("err"),
        lambda: ct.OrderPreservingLoss("ap"),
        lambda: ct.OrderPreservingLoss("dcg", margin="hinge"),
    ],
)
def test_warnings_point_to_the_caller(call):
    with pytest.warns(GuaranteeWarning) as caught:
        call()
    assert [warning.lineno for warning in caught] == [call.__code__.co_firstlineno]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (GradeError, lambda: ct.SoftmaxLoss("dcg")(torch.zeros(2), torch.tensor([1.0, -1.0]))),
        (NonFiniteError, lambda: ct.SoftmaxLoss("dcg")(torch.zeros(2), torch.tensor([1.0, torch.nan]))),
        (GradeError, lambda: ct.SoftmaxLoss("dcg")(torch.zeros(2), torch.tensor([1.0, 2000.0]))),
        (ConcordantError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.tensor([1.0, -1.0]))),
        (ShapeError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(3))),
        (ShapeError, lambda: ct.SoftmaxLoss()(torch.zeros(2, 1), torch.zeros(2, 1), offsets=[0, 2])),
        (ShapeError, lambda: ct.SoftmaxLoss()(torch.zeros(2, 2, 2), torch.zeros(2, 2, 2))),
        (LengthMismatchError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), offsets=[0, 3])),
        (
            LengthMismatchError,
            lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), offsets=Lists.single(3)),
        ),
        (ParameterError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), offsets=[0, 2, 1])),
        (
            ParameterError,
            lambda: ct.SoftmaxLoss()(torch.zeros(1, 2), torch.zeros(1, 2), mask=torch.ones(1, 2)),
        ),
        (ParameterError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), query_weight=[1.0, 2.0])),
        *(
            (
                NonFiniteError,
                lambda w=w: ct.SoftmaxLoss()(torch.zeros(1, 2), torch.zeros(1, 2), query_weight=[w]),
            )
            for w in (-1.0, torch.nan, torch.inf)
        ),
        (ParameterError, lambda: ct.SoftmaxLoss()(torch.tensor([1, 0]), torch.zeros(2))),
        (ParameterError, lambda: ct.PairSquaredLoss()(torch.ones(4, dtype=torch.int64), torch.zeros(2))),
        (ParameterError, lambda: ct.PairSquaredLoss()([[1.0]], torch.zeros(1))),
        (ShapeError, lambda: ct.PairSquaredLoss("pd")(torch.ones(5), torch.zeros(3))),
        (ShapeError, lambda: ct.PairSquaredLoss("pd")(torch.ones(5), torch.zeros(3), offsets=[0, 3])),
        *(
            (ConcordantError, lambda o=o: ct.PairSquaredLoss("pd")(torch.ones(9), torch.zeros(3), offsets=o))
            for o in ([1, 4], [0, 2], [0.0, 3.0], [0, 3, 2, 3])
        ),
        (ParameterError, lambda: ct.SoftmaxLoss(reduction="median")),
        (ConcordantError, lambda: ct.SoftmaxLoss("ndgc")),
        (ConcordantError, lambda: ct.OrderPreservingLoss(margin="round")),
        (ParameterError, lambda: ct.PairSquaredLoss("ndcg")),
        (ParameterError, lambda: Lists.from_offsets([1, 2])),
        (ParameterError, lambda: Lists.from_sizes([1.5])),
    ],
)
def test_bad_input_is_named(error, call):
    with pytest.raises(error):
        call()


def test_labels_off_the_mask_are_not_checked_and_may_be_left_unchecked():
    mask, y = torch.tensor([[True, False]]), torch.tensor([[1.0, torch.nan]])
    assert ct.SoftmaxLoss("dcg")(torch.zeros(1, 2), y, mask=mask).item() == 0.0
    ct.SoftmaxLoss("dcg", validate=False)(torch.zeros(2), torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_not_hidden(bad, device):
    for loss in LOSSES.values():
        scores = torch.tensor([0.0, bad, 1.0, 0.5, 0.2], device=device, requires_grad=True)
        loss.reduction, before = "none", loss.reduction
        try:
            values = loss(scores, torch.tensor([2, 1, 0, 1, 0], device=device), offsets=[0, 3, 5])
        finally:
            loss.reduction = before
        assert not values[0].isfinite()
        assert values[1].isfinite(), loss
        values.sum().backward()
        is_finite = isinstance(loss, ct.SoftmaxLoss) and bad == -torch.inf  # of a share of 0 it is finite
        assert scores.grad[:3].isfinite().all() == is_finite, loss
        assert scores.grad[3:].isfinite().all(), loss


HALVES = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("name", [n for n in LOSSES if "exponential" not in n])
def test_half_precision_scores_are_computed_in_single(name, device, dtype):
    """Sums that halves cannot hold; the gradient is rounded once, after the mean."""
    rng = torch.Generator().manual_seed(0)
    half = torch.randn(2, 300, generator=rng).to(device, dtype).requires_grad_()
    single = half.detach().float().requires_grad_()
    y = torch.randint(0, 5, (2, 300), generator=rng).to(device)
    value, want = (LOSSES[name](scores, y) for scores in (half, single))
    assert value.dtype == torch.float32
    assert torch.equal(value, want)
    (2.0**-6 * value).backward()
    (2.0**-6 * want).backward()
    assert half.grad.dtype == dtype
    assert torch.equal(half.grad, single.grad.to(dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_half_precision_pairs_are_computed_in_single(metric, dtype):
    rng, loss = torch.Generator().manual_seed(0), ct.PairSquaredLoss(metric)
    a, b = (10 * torch.randn(1, 40, 3, generator=rng).to(dtype) for _ in range(2))
    y = torch.arange(240, 280)[None]  # a bfloat16 does not tell 256 from 257
    for pairs in ((a, b), (a @ b.mT).clamp(-100, 100)):
        wide = tuple(x.float() for x in pairs) if isinstance(pairs, tuple) else pairs.float()
        value = loss(pairs, y)
        assert value.dtype == torch.float32
        assert torch.allclose(value, loss(wide, y), rtol=1e-5)
        assert value.isfinite()
    parts = [x.clone().requires_grad_() for x in (a, b)]
    (1e-6 * loss(tuple(parts), y)).backward()
    assert all(part.grad.dtype == dtype and part.grad.isfinite().all() for part in parts)


def test_half_precision_grades_are_read():
    y = torch.tensor([2.0, 0.0, 1.0])
    for loss in (ct.SoftmaxLoss("ndcg"), ct.PositionHingeLoss()):
        assert loss(torch.ones(3), y.bfloat16()).item() == loss(torch.ones(3), y).item()


def second(scores, y, loss):
    """A gradient penalty."""
    value = loss(scores, y)
    (grad,) = torch.autograd.grad(value, scores, create_graph=True)
    (value + grad.square().sum()).backward()


@pytest.mark.parametrize("name", LOSSES)
def test_a_second_derivative_is_an_error(name):
    scores, y = torch.randn(4, dtype=DOUBLE, requires_grad=True), torch.tensor([0, 2, 1, 0])
    with pytest.raises(RuntimeError, match="twice"):
        second(scores, y, LOSSES[name])
    with pytest.raises(RuntimeError, match="twice"):
        torch.autograd.functional.hessian(lambda z: LOSSES[name](z, y), scores)
    value = LOSSES[name](scores, y)  # a graph that nobody follows costs nothing
    (traced,) = torch.autograd.grad(value, scores, create_graph=True)
    assert torch.equal(traced, torch.autograd.grad(value, scores)[0])


def test_a_second_derivative_of_pairs_is_an_error():
    a, b = torch.randn(3, 2, requires_grad=True), torch.randn(3, 2)
    with pytest.raises(RuntimeError, match="twice"):
        second(a, torch.tensor([0, 1, 2]), lambda z, y: ct.PairSquaredLoss("pd")((z, b), y))


def test_a_second_derivative_of_a_compiled_loss_is_an_error():
    loss = torch.compile(ct.SoftmaxLoss("dcg"), backend="eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="twice"):
        second(torch.randn(4, requires_grad=True), torch.tensor([0, 2, 1, 0]), loss)


@pytest.mark.parametrize("needed", [False, True])
def test_forward_mode_is_refused(needed):
    scores, y, loss = torch.randn(3).requires_grad_(needed), torch.tensor([0, 2, 1]), ct.SoftmaxLoss("dcg")
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(scores, torch.ones(3))
        with pytest.raises(ParameterError, match="reverse-mode"):
            loss(dual, y)
        loss(scores, y)
    with pytest.raises((ParameterError, RuntimeError)):
        torch.func.jvp(lambda z: loss(z, y), (scores.detach(),), (torch.ones(3),))


def test_labels_get_no_gradient():
    y = torch.tensor([0.0, 2.0, 1.0], requires_grad=True)
    with pytest.raises(ParameterError, match="detach"):
        ct.SquaredLoss()(torch.zeros(3), y)
    scores = torch.zeros(3, requires_grad=True)
    for loss in (ct.SoftmaxLoss("dcg"), ct.SquaredLoss("ndcg")):
        loss(scores, y).backward()
        assert not loss(scores.detach(), y).requires_grad
    assert y.grad is None


def test_tensors_made_without_gradients_serve_with_them():
    loss, y = ct.SquaredLoss("ndcg@7"), torch.randint(0, 3, (3, 11))
    ops.equal_lists.cache_clear()
    with torch.inference_mode():
        loss(torch.randn(3, 11), y)
    assert not ops.equal_lists(3, 11, y.device).offsets.is_inference()
    with torch.inference_mode():
        tables = build_discount_tables(cc.metric("ndcg@7"), 7, y.device)
        assert not any(table.is_inference() for table in tables)


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("name", [next(iter(LOSSES)), list(LOSSES)[6], list(LOSSES)[-1]])
def test_compiled_whole(name, device):
    batch, loss = Padded(device), LOSSES[name]
    y = batch.grades[batch.mask]

    def ragged(scores, offsets):
        return loss(2 * scores, y, offsets=offsets)

    def padded(scores):
        return loss(2 * scores, batch.grades, mask=batch.mask)

    compiled = partial(torch.compile, fullgraph=True, backend="aot_eager")
    filled = batch.scores.nan_to_num(0.0).requires_grad_()
    for function, inputs in ((ragged, (batch.flat(), batch.lists.offsets)), (padded, (filled,))):
        want = torch.autograd.grad(function(*inputs), inputs[0])[0]
        value = compiled(function)(*inputs)
        assert torch.allclose(torch.autograd.grad(value, inputs[0])[0], want)
        assert torch.allclose(value, function(*inputs))


def samples(*, turned):
    """Arguments of every operator."""
    rng = torch.Generator().manual_seed(0)

    def drawn(*shape):
        drawn = torch.randn(*(shape[1], shape[0], *shape[2:]), generator=rng, dtype=DOUBLE).transpose(0, 1)
        return (drawn if turned else drawn.contiguous()).requires_grad_()

    y = torch.randint(0, 3, (3, 4), generator=rng).double()
    y = y.T.contiguous().T if turned else y
    mask = torch.rand(3, 4, generator=rng) < 0.7
    yield "pairwise", drawn(3, 4), y, None, mask, 4, *ct.OrderPreservingLoss().code
    yield "softmax", drawn(3, 4), y, None, None, 4
    yield "squared", drawn(3, 4), y, None, mask, 4, True
    yield "position_hinge", drawn(3, 4), y, None, None, 4, "sum"
    yield "pair_factors", drawn(3, 4, 2), drawn(3, 4, 2), y, None, mask, 4, False
    yield "targets", y, None, mask, 4, "dcg[concordant,gain=linear]", ""
    yield "targets", y, None, None, 4, "dcg[concordant,gain=linear]", ""
    yield "targets", torch.zeros(0, dtype=DOUBLE), None, None, 0, "ndcg", ""


@pytest.mark.parametrize("turned", [False, True])
def test_operators_keep_torch_s_rules(turned):
    """Shapes and strides are as foretold, nothing given is given back, gradients are registered."""
    utils = ("test_schema", "test_autograd_registration", "test_faketensor")
    for name, *inputs in samples(turned=turned):
        torch.library.opcheck(getattr(torch.ops.concordant, name).default, inputs, test_utils=utils)
    half = torch.randn(3, dtype=torch.bfloat16, requires_grad=True), torch.ones(3), torch.tensor([0, 2, 3])
    for scores in (half[0], half[0].detach().float().requires_grad_()):
        inputs = scores, *half[1:], None, -1
        torch.library.opcheck(torch.ops.concordant.softmax.default, inputs, test_utils=utils)


@pytest.mark.parametrize("metric", ["ndcg@3[lightgbm]", "dcg[concordant,gain=linear]"])
def test_compiled_with_a_convention_and_a_changing_size(metric):
    loss = ct.OrderPreservingLoss(metric, normalize=True)
    compiled = torch.compile(lambda z, y: loss(2 * z.T, y), fullgraph=True, backend="aot_eager")
    for n in (4, 5, 7):
        scores, y = torch.randn(n, 3, dtype=DOUBLE, requires_grad=True), torch.randint(0, 3, (3, n))
        value, want = compiled(scores, y), loss(2 * scores.T, y)
        assert torch.allclose(value, want)
        assert torch.allclose(*(torch.autograd.grad(x, scores)[0] for x in (value, want)))


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_function_cannot_be_compiled_into_a_graph(fullgraph):
    torch.compiler.reset()
    loss = ct.SoftmaxLoss(cc.metric("ndcg", convention=cc.Convention(gain=np.sqrt)))
    with pytest.raises(ParameterError, match="Python function"):
        torch.compile(loss, backend="eager", fullgraph=fullgraph)(torch.zeros(3), torch.ones(3))


def test_offsets_are_read_once(monkeypatch):
    read, calls = Lists.from_offsets, []
    monkeypatch.setattr(Lists, "from_offsets", lambda *arguments: calls.append(arguments) or read(*arguments))
    ct.OrderPreservingLoss("ndcg")(torch.zeros(3), torch.ones(3), offsets=torch.tensor([0, 2, 3]))
    assert len(calls) == 1


def test_lists_stay_where_they_are():
    lists = Lists.from_offsets([0, 2])
    assert lists.to("cpu") is lists
    with torch.device("meta"):
        assert Lists.from_offsets(torch.tensor([0, 2], device="cpu")).offsets.device.type == "cpu"
        assert Lists.from_sizes(torch.tensor([2], device="cpu")).offsets.device.type == "cpu"


def test_tables_of_equal_lists_are_not_kept():
    lists = ops.equal_lists(4, 3, torch.device("cpu"))
    assert lists.rounds[0].rows.shape == (4, 3)
    assert not any("round" in name for name in vars(lists))


def test_masked_rows_may_come_last():
    """As on a GPU, where nobody waits for their number."""
    batch = Padded()
    lists, rows = ops.lists_masked_last(batch.mask, ops.equal_lists(6, 9, batch.mask.device))
    expected, expected_rows = ops.lists_on_mask(batch.mask)
    assert lists.offsets[:7].tolist() == expected.offsets.tolist()
    assert rows[: len(expected_rows)].tolist() == expected_rows.tolist()
    assert lists.offsets[-1] == 54
    assert lists.sizes.max() <= lists.longest == 9
    assert sorted(rows.tolist()) == list(range(54))


def oracle_pairs(metric, y, u):
    """Sum over pairs of (u_ij - target)^2, and its gradient."""
    n, value, grad = len(y), 0.0, np.zeros_like(u)
    for i, j in itertools.product(range(n), repeat=2):
        if metric == "pd" and i == j:
            continue
        relevant = [float(grade >= 1) for grade in y]
        target = oracles.shared_relevance(relevant, i, j) if metric == "ap" else np.sign(y[i] - y[j])
        value += (u[i, j] - target) ** 2
        grad[i, j] = 2 * (u[i, j] - target)
    return value, grad


@pytest.mark.parametrize("metric", ["ap", "pd"])
def test_pair_scores_against_the_definition(metric):
    rng = np.random.default_rng(0)
    sizes = (4, 0, 1, 7)
    y = [rng.integers(0, 3, n).astype(float) for n in sizes]
    u = [rng.normal(size=(n, n)) for n in sizes]
    wants = [oracle_pairs(metric, *pair) for pair in zip(y, u, strict=True)]
    flat = torch.tensor(np.concatenate([x.ravel() for x in u]), requires_grad=True)
    loss = ct.PairSquaredLoss(metric, reduction="none")
    values = loss(flat, np.concatenate(y), offsets=Lists.from_sizes(sizes))
    values.sum().backward()
    assert np.allclose(values.detach(), [value for value, _ in wants], rtol=1e-12)
    assert np.allclose(flat.grad, np.concatenate([grad.ravel() for _, grad in wants]), rtol=1e-12)
    padded = torch.full((4, 7, 7), torch.nan, dtype=DOUBLE)
    grades, mask = torch.full((4, 7), -1.0), torch.zeros(4, 7, dtype=torch.bool)
    for q, n in enumerate(sizes):
        padded[q, :n, :n], grades[q, :n], mask[q, :n] = torch.tensor(u[q]), torch.tensor(y[q]), True
    padded.requires_grad_()
    assert torch.allclose(loss(padded, grades, mask=mask), values)
    counts = torch.tensor([max(n * (n if metric == "ap" else n - 1), 1) for n in sizes])
    halved = ct.PairSquaredLoss(metric, reduction="none", normalize=True)(padded, grades, mask=mask)
    assert torch.allclose(halved * counts, values)
    row = torch.tensor(u[3].ravel())
    assert ct.PairSquaredLoss(metric)(row, y[3]).item() == pytest.approx(wants[3][0])


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("metric", ["ap", "pd", "ap@2[lightgbm]"])
def test_factors_are_the_pair_scores(metric, device):
    rng = torch.Generator().manual_seed(0)
    sizes = (3, 0, 1, 9, 2)
    lists, n, d = Lists.from_sizes(sizes).to(device), sum(sizes), 3
    a, b = (torch.randn(n, d, generator=rng, dtype=DOUBLE).to(device).requires_grad_() for _ in range(2))
    y = torch.randint(0, 3, (n,), generator=rng).to(device)
    loss = partial(
        ct.PairSquaredLoss(metric), offsets=lists, query_weight=torch.rand(5, generator=rng).to(device)
    )
    edges = lists.offsets.tolist()
    u = torch.cat([(a[i:j] @ b[i:j].T).flatten() for i, j in itertools.pairwise(edges)])
    from_factors, from_scores = loss((a, b), y), loss(u, y)
    assert torch.allclose(from_factors, from_scores, rtol=1e-12)
    for got, want in zip(
        torch.autograd.grad(from_factors, (a, b)), torch.autograd.grad(from_scores, (a, b)), strict=True
    ):
        assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)
    mask = (torch.rand(4, 6, generator=rng) < 0.7).to(device)
    a, b = (torch.randn(4, 6, d, generator=rng, dtype=DOUBLE).to(device).requires_grad_() for _ in range(2))
    y = torch.randint(0, 3, (4, 6), generator=rng).to(device)
    loss = partial(ct.PairSquaredLoss(metric, normalize=True), mask=mask)
    from_factors, from_scores = loss((a, b), y), loss(a @ b.mT, y)
    assert torch.allclose(from_factors, from_scores, rtol=1e-12)
    for got, want in zip(
        torch.autograd.grad(from_factors, (a, b)), torch.autograd.grad(from_scores, (a, b)), strict=True
    ):
        assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)


def test_runs_without_numba():
    code = """
import sys; sys.modules["numba"] = None
import torch
from concordant.torch import Lists, OrderPreservingLoss, PositionHingeLoss
scores = torch.randn(5, requires_grad=True)
loss = OrderPreservingLoss("ndcg@3")(scores, torch.tensor([0, 2, 1, 0, 1]), offsets=[0, 3, 5])
(loss + PositionHingeLoss()(scores, torch.tensor([0, 2, 1, 0, 1]))).backward()
assert scores.grad.isfinite().all() and scores.grad.any()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch_missing_is_named():
    code = """
import sys; sys.modules["torch"] = None
from concordant.exceptions import MissingExtraError
try:
    import concordant.torch
except MissingExtraError as error:
    assert "pip install" in str(error)
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@needs_gpu
@pytest.mark.parametrize("margin", [m for m in MARGINS if m not in ("logistic", "exponential")])
@pytest.mark.parametrize(
    "sizes", [[8_192], [8_193], [16_384], [16_385], [20_000, 7, 0, 300], [17_000, 5, 0], [5] * 2000]
)
def test_both_ways_on_a_gpu_equal_the_cpu(margin, sizes):
    rng = torch.Generator().manual_seed(0)
    lists = Lists.from_sizes(sizes)
    scores = torch.randn(lists.n_rows, generator=rng)
    if margin == "hinge":  # no difference is rounded, to the other side of the corner; many lie on it
        scores = (scores * 2**10).round() / 2**10
    targets = torch.randint(0, 5, (lists.n_rows,), generator=rng).float()
    want = functional.pairwise(scores.double(), targets.double(), lists, margin)
    largest = lists.spread(lists.highest(want[1].abs()).clamp(min=1e-6))
    for dtype in (SINGLE, DOUBLE):
        got = functional.pairwise(scores.to("cuda", dtype), targets.cuda(), lists.to("cuda"), margin)
        assert ((got[1].double().cpu() - want[1]).abs() <= EXACT[dtype] * largest).all()
        assert torch.allclose(got[0].double().cpu(), want[0], rtol=10 * EXACT[dtype])


@pytest.mark.parametrize("device", DEVICES, indirect=True)
def test_a_pair_that_rounding_puts_on_the_corner_of_the_hinge_has_a_subgradient(device):
    """Its difference, 1 - 2^-26, is 1 in single precision: there a GPU may take any slope from -1 to 0."""
    scores = torch.tensor([0.75, -0.25 + 2**-26], device=device)
    assert scores[1].double() == -0.25 + 2**-26
    assert scores[0] - scores[1] == 1.0
    for dtype, least in ((SINGLE, 0.0), (DOUBLE, 1.0)):
        targets, lists = torch.tensor([1.0, 0.0], device=device), Lists.from_offsets([0, 2]).to(device)
        value, grad = functional.pairwise(scores.to(dtype), targets, lists, "hinge")
        assert least <= -grad[0] <= 1.0
        assert grad[1] == -grad[0]
        assert torch.allclose(value, torch.ones_like(value))  # of the first item with itself


@needs_gpu
def test_equal_bits_on_a_gpu():
    rng = torch.Generator().manual_seed(0)
    torch.use_deterministic_algorithms(True)
    try:
        for sizes, loss in itertools.product(([300, 0, 5], [20_000, 40]), LOSSES.values()):
            lists = Lists.from_sizes(sizes).to("cuda")
            scores = torch.randn(lists.n_rows, generator=rng).cuda().requires_grad_()
            y = torch.randint(0, 4, (lists.n_rows,), generator=rng).cuda()
            grads = [torch.autograd.grad(loss(scores, y, offsets=lists), scores)[0] for _ in range(3)]
            assert all(torch.equal(grad, grads[0]) for grad in grads)
    finally:
        torch.use_deterministic_algorithms(False)
