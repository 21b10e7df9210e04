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
import oracles  # noqa: E402
import surrogate_checks as checks  # noqa: E402
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
from concordant.torch.targets import standardized  # noqa: E402

pytestmark = pytest.mark.once
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
    """Give a function of scores, targets and weights: the weights multiply the targets."""

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
    case, own = CASES[name]
    rows = as_given(batch, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        values, pieces = run(call or own, rows, dtype, device)
        wants = checks.wanted(case, rows)
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
    for one, other in zip(by_kernels, functional.pairwise(scores, targets, lists), strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6)


def wrong_ties(scores, targets, weights, lists):
    """Pairs of equal scores left out."""
    values, grad = functional.pairwise(scores, targets * weights, lists)
    return values - lists.sums(targets * weights), grad


def wrong_sign(scores, targets, weights, lists):
    values, grad = functional.pairwise(scores, targets * weights, lists)
    return values, -grad


def wrong_neighbour(scores, targets, weights, lists):
    """Lists that run into one another."""
    whole = Lists.one(lists.n_rows)
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
    scores, targets, rows = checks.joined(batch)
    want, grad = CASES[name][0].surrogate(scores, targets, **rows)
    assert np.allclose(values, want, rtol=10 * EXACT[dtype], atol=0)
    for got, own in zip(pieces, np.split(grad, rows["qid"].offsets[1:-1]), strict=True):
        assert abs(got - own).max(initial=0) <= EXACT[dtype] * abs(own).max(initial=0)


def losses():
    """Every loss of lists, with a metric where it takes one."""
    for margin in ("huber_hinge", "squared_hinge", "hinge", "logistic", "exponential"):
        yield ct.OrderPreservingLoss("ndcg@3", margin=margin)
    yield ct.OrderPreservingLoss("dcg", normalize=True)
    yield ct.SoftmaxLoss("ap", assume="P_reinforce")
    yield ct.SquaredLoss("auc")
    yield ct.SquaredLoss("p@2", centred=False)
    yield ct.PositionHinge(pairs="pairs")


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
    "PositionHinge(reduction='mean', pairs='pairs')": (surrogates.PositionHinge("pairs"), None),
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

    def results(self, loss, **given):
        """Value and gradient by row, layout by layout."""
        y = self.grades[self.mask]
        for name, offsets in {
            "lists": self.lists,
            "offsets": self.lists.offsets,
            "array": self.lists.offsets.cpu().numpy(),
        }.items():
            scores = self.flat()
            value = loss(scores, y, offsets=offsets, **given)
            value.sum().backward()
            yield name, value, scores.grad
        scores = self.scores.clone().requires_grad_()
        value = loss(scores, self.grades, mask=self.mask, **given)
        value.sum().backward()
        assert (scores.grad[~self.mask] == 0).all()
        yield "padded", value, scores.grad[self.mask]
        for layout in (torch.jagged, torch.strided):
            scores = self.flat()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch: nested tensors are a prototype
                nested = torch.nested.as_nested_tensor(self.split(scores), layout=layout)
                value = loss(nested, torch.nested.as_nested_tensor(self.split(y), layout=layout), **given)
                value.sum().backward()
            yield str(layout), value, scores.grad


@pytest.mark.parametrize("device", DEVICES, indirect=True)
@pytest.mark.parametrize("name", LOSSES)
def test_layouts_agree(name, device):
    batch = Padded(device)
    weighted = {"query_weight": batch.shares}
    results = list(batch.results(LOSSES[name], **weighted))
    _, value, grad = results[0]
    for layout, other, own in results[1:]:
        assert torch.allclose(other, value, rtol=1e-12), layout
        assert torch.allclose(own, grad, rtol=1e-9, atol=1e-12), layout


@pytest.mark.parametrize("device", DEVICES[:2], indirect=True)
@pytest.mark.parametrize("name", LOSSES)
def test_modules_are_the_surrogates(name, device):
    batch, (surrogate, metric) = Padded(device), SURROGATES[name]
    grades, queries = batch.grades[batch.mask].numpy(), cc.Queries.from_sizes(batch.lists.sizes.numpy())
    targets = grades.astype(float)
    if metric is not None:
        chosen = cc.metric(metric)
        targets, _ = usable_targets(chosen, chosen.read_labels(grades), queries)
    values, grad = surrogate(batch.scores[batch.mask].numpy(), targets, qid=queries)
    _, value, own = next(batch.results(LOSSES[name]))
    assert value.item() == pytest.approx(values.mean(), rel=1e-12)
    assert np.allclose(own, grad / len(values), rtol=1e-10, atol=1e-12)


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
        got = standardized(metric, torch.tensor(y, device=device), Lists.from_sizes(sizes).to(device))
        assert np.allclose(got.cpu(), want, rtol=1e-14, atol=0)


def test_targets_of_a_users_gain():
    metric = cc.metric("ndcg", convention=cc.Convention(gain=np.sqrt))
    y = torch.tensor([4.0, 1.0, 0.0])
    assert np.allclose(standardized(metric, y, Lists.one(3)), metric.targets(y.numpy()))


def test_what_is_not_guaranteed_is_said():
    with pytest.warns(GuaranteeWarning, match="only under P_reinforce"):
        ct.SoftmaxLoss("ap")
    with pytest.warns(GuaranteeWarning, match="err has no standardization"):
        ct.SoftmaxLoss("err")
    for metric in ("dcg", "ndcg@3", "auc", "wpd", "p@1"):
        ct.OrderPreservingLoss(metric)


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
        (LengthMismatchError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), offsets=Lists.one(3))),
        (ParameterError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), offsets=[0, 2, 1])),
        (
            ParameterError,
            lambda: ct.SoftmaxLoss()(torch.zeros(1, 2), torch.zeros(1, 2), mask=torch.ones(1, 2)),
        ),
        (ParameterError, lambda: ct.SoftmaxLoss()(torch.zeros(2), torch.zeros(2), query_weight=[1.0, 2.0])),
        (ParameterError, lambda: ct.SoftmaxLoss(reduction="median")),
        (ConcordantError, lambda: ct.SoftmaxLoss("ndgc")),
        (ConcordantError, lambda: ct.OrderPreservingLoss(margin="round")),
        (ParameterError, lambda: ct.PairSquaredLoss("ndcg")),
        (ParameterError, lambda: Lists.of([1, 2])),
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


def test_half_precision_scores():
    scores = torch.tensor([0.5, -0.25, 1.0], dtype=torch.bfloat16, requires_grad=True)
    value = ct.OrderPreservingLoss("dcg")(scores, torch.tensor([0, 2, 1]))
    value.backward()
    single = scores.detach().float().requires_grad_()
    ct.OrderPreservingLoss("dcg")(single, torch.tensor([0, 2, 1])).backward()
    assert value.dtype == scores.grad.dtype == torch.bfloat16
    assert torch.allclose(scores.grad.float(), single.grad, rtol=1e-2)


def test_a_second_derivative_is_an_error():
    scores = torch.randn(4, dtype=DOUBLE, requires_grad=True)
    value = ct.SoftmaxLoss()(scores, torch.ones(4)) ** 2
    (grad,) = torch.autograd.grad(value, scores, create_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        grad.sum().backward()


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


def test_masked_rows_may_come_last():
    """As on a GPU, where nobody waits for their number."""
    batch = Padded()
    lists, rows = ops.masked_last(batch.mask, ops.equal_lists(6, 9, batch.mask.device))
    own, kept = ops.masked(batch.mask)
    assert lists.offsets[:7].tolist() == own.offsets.tolist()
    assert rows[: len(kept)].tolist() == kept.tolist()
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
        wanted = oracles.shared_relevance(relevant, i, j) if metric == "ap" else np.sign(y[i] - y[j])
        value += (u[i, j] - wanted) ** 2
        grad[i, j] = 2 * (u[i, j] - wanted)
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
    one = torch.tensor(u[3].ravel())
    assert ct.PairSquaredLoss(metric)(one, y[3]).item() == pytest.approx(wants[3][0])


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
    one, other = loss((a, b), y), loss(u, y)
    assert torch.allclose(one, other, rtol=1e-12)
    for got, want in zip(torch.autograd.grad(one, (a, b)), torch.autograd.grad(other, (a, b)), strict=True):
        assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)
    mask = (torch.rand(4, 6, generator=rng) < 0.7).to(device)
    a, b = (torch.randn(4, 6, d, generator=rng, dtype=DOUBLE).to(device).requires_grad_() for _ in range(2))
    y = torch.randint(0, 3, (4, 6), generator=rng).to(device)
    loss = partial(ct.PairSquaredLoss(metric, normalize=True), mask=mask)
    one, other = loss((a, b), y), loss(a @ b.mT, y)
    assert torch.allclose(one, other, rtol=1e-12)
    for got, want in zip(torch.autograd.grad(one, (a, b)), torch.autograd.grad(other, (a, b)), strict=True):
        assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)


def test_runs_without_numba():
    code = """
import sys; sys.modules["numba"] = None
import torch
from concordant.torch import Lists, OrderPreservingLoss, PositionHinge
scores = torch.randn(5, requires_grad=True)
loss = OrderPreservingLoss("ndcg@3")(scores, torch.tensor([0, 2, 1, 0, 1]), offsets=[0, 3, 5])
(loss + PositionHinge()(scores, torch.tensor([0, 2, 1, 0, 1]))).backward()
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
@pytest.mark.parametrize("sizes", [[8_192], [8_193], [16_384], [16_385], [20_000, 7, 0, 300], [5] * 2000])
def test_both_ways_on_a_gpu_equal_the_cpu(margin, sizes):
    rng = torch.Generator().manual_seed(0)
    lists = Lists.from_sizes(sizes)
    scores = torch.randn(lists.n_rows, generator=rng)
    targets = torch.randint(0, 5, (lists.n_rows,), generator=rng).float()
    want = functional.pairwise(scores.double(), targets.double(), lists, margin)
    largest = lists.spread(lists.highest(want[1].abs()).clamp(min=1e-6))
    for dtype in (SINGLE, DOUBLE):
        got = functional.pairwise(scores.to("cuda", dtype), targets.cuda(), lists.to("cuda"), margin)
        assert ((got[1].double().cpu() - want[1]).abs() <= EXACT[dtype] * largest).all()
        assert torch.allclose(got[0].double().cpu(), want[0], rtol=10 * EXACT[dtype])


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
