"""Metrics on the device equal `concordant.metric`, query by query, under every convention."""

import copy
import math
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.data.queries import Queries
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.metrics import PRESETS
from tests import oracles

torch = pytest.importorskip("torch", reason="torch is not installed")

from concordant.torch import Lists, OrderPreservingLoss, metric_values  # noqa: E402
from concordant.torch.metrics import DeviceMetric, metric  # noqa: E402

NAMES = [
    "dcg", "dcg@3", "ndcg", "ndcg@1", "ndcg@4", "ndcg@100", "p@1", "p@3", "wta", "ap", "ap@2", "rr", "rr@3",
    "err", "err@3", "eru", "eru(v=1,w=2)@3", "auc", "pd", "wpd",
]  # fmt: skip


def squares(grades):
    return grades**2


def steep(numbers):
    return 1.0 / numbers


CONVENTIONS = [
    *PRESETS.values(),
    *(cc.Convention(ties=rule, seed=3) for rule in ("random", "best", "worst", "id_descending", "input")),
    *(cc.Convention(ap_denominator=rule) for rule in ("min", "found", "uncut")),
    cc.Convention(max_grade="data", empty="nan", relevant_from=2, empty_ap=0.5),
    cc.Convention(gain=squares, discount=steep, empty=0.25),
    cc.Convention(ties="random", ap_denominator="uncut", relevant_from=3, short_list="zero"),
]

grades = st.one_of(st.integers(0, 4).map(float), st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0]))
scores = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0]),  # many ties
    st.floats(-1e300, 1e300),
    st.sampled_from([1e300, -1e300, 5e-324, -0.0, -math.inf]),
)
lists = st.integers(0, 7).flatmap(
    lambda n: st.tuples(st.lists(grades, min_size=n, max_size=n), st.lists(scores, min_size=n, max_size=n))
)
batches = st.lists(lists, min_size=1, max_size=4).filter(lambda batch: any(y for y, _ in batch))


def flat(batch):
    """Grades, scores and sizes of some lists."""
    y, s = (np.concatenate([np.array(part[i], float) for part in batch]) for i in (0, 1))
    return y, s, np.array([len(part[0]) for part in batch])


def check_same(device, y, s, sizes):
    """The device metric gives what the library's metric gives (1e-12), NaN where that skips."""
    if device.metric.convention.max_grade == "probability" and device.metric.name == "err":
        y = y / 4.0
    want = device.metric.per_query(y, s, qid=Queries.from_sizes(sizes))
    got = device.per_query(torch.tensor(s), torch.tensor(y), offsets=np.r_[0, sizes.cumsum()])
    assert got.dtype == torch.float64
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12, err_msg=str(device.metric))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(batch=batches, style=st.sampled_from(CONVENTIONS))
def test_values_are_those_of_the_library(name, batch, style):
    check_same(metric(name, convention=style), *flat(batch))


@pytest.mark.parametrize("style", PRESETS)
def test_every_preset_on_longer_lists(style):
    rng = np.random.default_rng(len(style))
    sizes = np.array([40, 0, 1, 90, 13])
    y = rng.integers(0, 5, sizes.sum()).astype(float)
    y[:40] = 0.0
    for s in (rng.normal(size=len(y)), rng.integers(0, 6, len(y)).astype(float), np.zeros(len(y))):
        for name in NAMES:
            check_same(metric(name, convention=style), y, s, sizes)


ORACLES = {
    "ndcg@3": lambda y, o: oracles.ndcg(y, o, 3),
    "ap@2": lambda y, o: oracles.ap(y, o, 2),
    "ap@3[ap_denominator=found]": lambda y, o: oracles.ap(y, o, 3, 1, "found"),
    "rr@4": lambda y, o: oracles.rr(y, o, 4),
    "err@4": lambda y, o: oracles.err(y, o, 4),
    "pd": lambda y, o: oracles.pd(lambda i, j: y[i] > y[j], o),
    "wpd": lambda y, o: oracles.pd(lambda i, j: max(2.0 ** y[i] - 2.0 ** y[j], 0), o),
    "auc": oracles.auc,
}


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=25)
@given(data=st.lists(st.tuples(grades, st.sampled_from([0.0, 1.0, 2.0, -1e300])), min_size=1, max_size=6))
def test_values_are_the_mean_of_the_definition_over_the_orders(name, data):
    y, s = ([float(pair[i]) for pair in data] for i in (0, 1))
    (got,) = metric(name).per_query(torch.tensor(s, dtype=torch.float64), torch.tensor(y)).tolist()
    if math.isnan(got):
        assert np.isnan(cc.metric(name).per_query(y, s)).all()
    else:
        want = oracles.expected(lambda order: ORACLES[name](y, order), s)
        assert got == pytest.approx(want, rel=1e-12, abs=1e-12)


class RowOrder(DeviceMetric):
    """Wrong: ties stand in row order whatever the convention says."""

    def ranking(self, scores, grades, lists, ids):  # noqa: ARG002
        from concordant.torch.metric_values import rank_lists

        return rank_lists(scores, lists, broken=True)


class OnePlaceMore(DeviceMetric):
    """Wrong: k + 1 places count."""

    def __init__(self, wrapped):
        import dataclasses

        super().__init__(wrapped)
        self.deeper = metric(dataclasses.replace(wrapped, k=wrapped.k + 1))

    def per_query(self, *arguments, **named):
        return self.deeper.per_query(*arguments, **named)


@pytest.mark.parametrize("wrong", [RowOrder, OnePlaceMore])
def test_the_check_rejects_a_wrong_metric(wrong):
    y, s, sizes = np.array([0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 0.5, 0.2]), np.array([4])
    check_same(metric("ndcg@2"), y, s, sizes)
    with pytest.raises(AssertionError):
        check_same(wrong(cc.metric("ndcg@2")), y, s, sizes)


@pytest.mark.parametrize("name", ["ndcg@3", "ap", "err", "wpd", "rr[ties=id_descending]"])
@settings(max_examples=8)
@given(batch=batches)
def test_ragged_padded_and_nested_rows_give_the_same(name, batch):
    y, s, sizes = flat(batch)
    ranking_metric, width = metric(name), int(sizes.max()) + 2
    ragged = ranking_metric.per_query(torch.tensor(s), torch.tensor(y), offsets=Lists.from_sizes(sizes))
    mask = np.arange(width) < sizes[:, None]
    padded = [np.full(mask.shape, np.nan) for _ in range(2)]
    for table, column in zip(padded, (s, y), strict=True):
        table[mask] = column
    tables = [torch.tensor(table) for table in padded]
    assert torch.equal(
        ranking_metric.per_query(*tables, mask=torch.tensor(mask)).nan_to_num(-1), ragged.nan_to_num(-1)
    )
    columns = [
        torch.nested.nested_tensor(
            [torch.tensor(part[i], dtype=torch.float64) for part in batch], layout=torch.jagged
        )
        for i in (1, 0)
    ]
    assert torch.equal(ranking_metric.per_query(*columns).nan_to_num(-1), ragged.nan_to_num(-1))


def test_a_mask_may_have_holes_and_a_full_table_needs_none():
    s, y = torch.tensor([[0.3, 9.0, 0.2], [0.1, 0.2, 0.3]]), torch.tensor([[0, 4, 1], [2, 0, 0]])
    mask = torch.tensor([[True, False, True], [True, True, True]])
    ranking_metric = metric("ndcg")
    want = ranking_metric.per_query(
        torch.tensor([0.3, 0.2, 0.1, 0.2, 0.3]), torch.tensor([0, 1, 2, 0, 0]), offsets=[0, 2, 5]
    )
    assert torch.equal(ranking_metric.per_query(s, y, mask=mask), want)
    assert torch.equal(ranking_metric.per_query(s, y)[1], want[1])


@settings(max_examples=25)
@given(batch=batches, style=st.sampled_from(["concordant", "lightgbm", "empty=nan"]), data=st.data())
def test_the_mean_weighs_the_queries_that_count(batch, style, data):
    y, s, sizes = flat(batch)
    weight = st.floats(0, 1e300, allow_subnormal=False)
    weights = data.draw(st.lists(weight, min_size=len(sizes), max_size=len(sizes)).filter(any))
    ranking_metric = metric("ndcg@3", convention=style)
    got = ranking_metric(
        torch.tensor(s), torch.tensor(y), offsets=Lists.from_sizes(sizes), query_weight=np.array(weights)
    )
    want = ranking_metric.metric(y, s, qid=Queries.from_sizes(sizes), weights=weights)
    assert got.ndim == 0
    assert float(got) == pytest.approx(float(want), rel=1e-12, nan_ok=True)


def test_all_queries_count_the_same_without_weights():
    y, s = torch.tensor([1, 0, 0, 1, 0, 0]), torch.tensor([0.2, 0.1, 0.2, 0.1, 0.0, 0.0])
    assert float(metric("rr")(s, y, offsets=[0, 2, 4, 6])) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64]
)
def test_the_type_of_the_scores_does_not_change_the_value(dtype):
    s = torch.tensor([3, 1, 2, 2, 0, -1], dtype=dtype)
    got = metric("ndcg")(s, torch.tensor([0, 3, 2, 1, 0, 4], dtype=torch.uint8))
    assert float(got) == pytest.approx(
        float(cc.metric("ndcg")([0, 3, 2, 1, 0, 4], [3, 1, 2, 2, 0, -1])), rel=1e-12
    )


def test_large_whole_scores_are_not_rounded():
    s = torch.tensor([2**40, 2**40 + 1])
    assert float(metric("rr")(s, torch.tensor([0, 1]))) == 1.0


def test_minus_zero_ties_with_zero():
    s, y = torch.tensor([0.0, -0.0, 0.0]), torch.tensor([0, 1, 0])
    for first in (s, s.double()):
        assert float(metric("rr")(first, y)) == pytest.approx(11 / 18)
        assert float(metric("rr[ties=input]")(first, y)) == 0.5


def test_no_gradient_passes_and_none_is_needed():
    s = torch.tensor([0.3, 0.1, 0.2], requires_grad=True)
    assert not metric("ap")(s, torch.tensor([0, 1, 1])).requires_grad


@pytest.mark.parametrize("levels", [5, 100_000])
@pytest.mark.parametrize("name", ["pd", "wpd[gain=linear]", "auc", "err@10", "rr", "ap", "ndcg"])
def test_a_list_too_long_for_a_table_of_pairs(name, levels):
    rng = np.random.default_rng(0)
    n = 100_000  # a table of pairs would take 80 GB
    y = rng.integers(0, levels, n) / (1.0 if levels == 5 else levels / 4)
    check_same(metric(name), y, rng.normal(size=n).round(3), np.array([n]))


def test_differences_of_large_gains_do_not_cancel():
    y, s = np.array([0.0, 1e12, 1e12 + 0.5]), np.array([2.0, 3.0, 1.0])
    (got,) = metric("wpd[gain=linear]").per_query(torch.tensor(s), torch.tensor(y)).tolist()
    assert got == 0.5 + (1e12 + 0.5)


@pytest.mark.parametrize("grade", [1 / 3, 0.3, 2.7, math.pi])
def test_equal_grades_are_one_level(grade):
    for n in range(2, 40):  # vectors of rows, and those left over
        y, sizes = np.r_[np.full(n, grade), 0.0, grade], np.array([n, 2])
        check_same(metric("wpd"), y, np.arange(n + 2.0), sizes)
        assert math.isnan(metric("wpd").per_query(torch.zeros(n), torch.full((n,), grade)))


def test_the_last_bit_of_a_gain_makes_no_pair(monkeypatch):
    def uneven(*arguments):
        """Gains as a vector unit gives them: rows left over differ in the last bit."""
        gains = arguments[-1].exp2() - 1.0
        return torch.where(torch.arange(len(gains)) < 4, gains, gains.nextafter(torch.tensor(torch.inf)))

    monkeypatch.setattr(metric_values, "gains", uneven)
    y, s = torch.tensor([0.3] * 6, dtype=torch.float64), torch.arange(6.0)
    assert math.isnan(metric("wpd").per_query(s, y))
    check_same(metric("wpd"), np.array([0.3] * 6 + [0.0, 0.3]), np.arange(8.0), np.array([6, 2]))


@settings(max_examples=100)
@given(data=st.lists(st.tuples(st.sampled_from([0.0, 1e-300, 0.3, 1 / 3, 2.7]), scores), min_size=1))
def test_weights_of_fractional_grades_are_those_of_the_library(data):
    y, s = np.array(data).T
    check_same(metric("wpd"), y, s, np.array([len(y) // 2, len(y) - len(y) // 2]))


class Unhashable:
    """A discount of the caller's that has no hash."""

    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, Unhashable)

    def __call__(self, numbers):
        return 1.0 / numbers


def test_discounts_without_a_hash_are_read():
    y, s = np.array([0.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0])
    check_same(metric("ndcg@2", convention=cc.Convention(discount=Unhashable())), y, s, np.array([3]))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_lists_are_as_long_as_their_labels(layout):
    def nested(tensor, cut):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch: nested tensors are a prototype
            return torch.nested.as_nested_tensor([tensor[:cut], tensor[cut:]], layout=layout)

    s, y = torch.arange(6.0), torch.tensor([0.0, 1.0, 2.0, 0.0, 1.0, 3.0])
    for measure in (metric("ndcg"), OrderPreservingLoss(metric="ndcg")):
        flat = measure(s, y, offsets=[0, 2, 6])
        assert float(measure(nested(s, 2), nested(y, 2))) == pytest.approx(float(flat))
        with pytest.raises(ShapeError, match=re.escape("(4, 2); expected lists of sizes (2, 4)")):
            measure(nested(s, 2), nested(y, 4))
    ids, by_id = torch.arange(6), metric("ndcg[trec_eval]")
    by_id(nested(s, 2), nested(y, 2), docid=nested(ids, 2))
    for wrong in (ids, nested(ids, 4)):
        with pytest.raises(ConcordantError):
            by_id(nested(s, 2), nested(y, 2), docid=wrong)


def test_queries_do_not_disturb_one_another():
    y = np.array([1000.0, 999.0, 1.0, 0.0, 2.0, 2.0, 1.0])
    sizes, s = np.array([2, 2, 3]), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    for name in ("dcg", "ndcg", "wpd"):
        device = metric(name)
        got = device.per_query(torch.tensor(s), torch.tensor(y), offsets=Lists.from_sizes(sizes)).numpy()
        want = device.metric.per_query(y, s, qid=Queries.from_sizes(sizes))
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_document_ids_break_ties():
    y, s, ids = np.array([0.0, 1.0, 0.0, 2.0]), np.zeros(4), np.array([0, 9, 7, 7], dtype=np.uint8)
    device = metric("ndcg[trec_eval]")
    got = float(device(torch.tensor(s), torch.tensor(y), docid=torch.tensor(ids)))
    assert got == pytest.approx(float(device.metric(y, s, docid=ids)), rel=1e-12)
    assert got == float(device(torch.tensor(s), torch.tensor(y), docid=ids.tolist()))
    assert got != float(device(torch.tensor(s), torch.tensor(y)))


def test_a_module_without_parameters():
    device = metric("ndcg@10[lightgbm]")
    assert isinstance(device, torch.nn.Module)
    assert not list(device.parameters())
    assert not device.state_dict()
    assert repr(device) == "DeviceMetric('ndcg@10[lightgbm]')"
    assert copy.deepcopy(device).metric == device.metric


S, Y = torch.tensor([0.3, 0.2]), torch.tensor([1.0, 0.0])
BAD = {
    "NaN score": (NonFiniteError, "ndcg", (torch.tensor([0.1, math.nan]), Y), {}),
    "infinite score": (NonFiniteError, "ndcg", (torch.tensor([0.1, math.inf]), Y), {}),
    "NaN grade": (NonFiniteError, "ndcg", (S, torch.tensor([math.nan, 1.0])), {}),
    "negative grade": (GradeError, "ndcg", (S, torch.tensor([0, -1])), {}),
    "2^grade overflows": (GradeError, "ndcg", (S, torch.tensor([0.0, 2000.0])), {}),
    "grade above max_grade": (GradeError, "err", (S, torch.tensor([5, 1])), {}),
    "negative weight": (NonFiniteError, "ndcg", (S, Y), {"query_weight": torch.tensor([-1.0])}),
    "weights all 0": (ParameterError, "ndcg", (S, Y), {"query_weight": torch.tensor([0.0])}),
    "a weight per row": (LengthMismatchError, "ndcg", (S, Y), {"query_weight": torch.ones(2)}),
    "no rows": (EmptyDataError, "ndcg", (S[:0], Y[:0]), {}),
    "lengths differ": (ConcordantError, "ndcg", (S, torch.ones(3)), {}),
    "offsets end early": (ConcordantError, "ndcg", (S, Y), {"offsets": [0, 1]}),
    "y is no tensor": (ConcordantError, "ndcg", (S, cc.Preferences(better=[0], worse=[1], n_rows=2)), {}),
    "mask of another shape": (ConcordantError, "ndcg", (S[None], Y[None]), {"mask": torch.ones(2, 2).bool()}),
    "docid with fractions": (ParameterError, "ndcg", (S, Y), {"docid": torch.ones(2)}),
    "scores are an array": (ParameterError, "ndcg", (S.numpy(), Y), {}),
    "scores are a list": (ParameterError, "ndcg", ([0.3, 0.2], Y), {}),
    "complex scores": (ParameterError, "ndcg", (S.to(torch.complex64), Y), {}),
    "complex grades": (ParameterError, "ndcg", (S, Y.to(torch.complex64)), {}),
    "grades are text": (ParameterError, "ndcg", (S, ["a", "b"]), {}),
    "offsets are text": (ParameterError, "ndcg", (S, Y), {"offsets": ["a"]}),
    "weights are text": (ParameterError, "ndcg", (S, Y), {"query_weight": ["a"]}),
    "complex weights": (ParameterError, "ndcg", (S, Y), {"query_weight": torch.ones(1).to(torch.complex64)}),
    "docid is text": (ParameterError, "ndcg[trec_eval]", (S, Y), {"docid": ["a", "b"]}),
    "complex docid": (ParameterError, "ndcg[trec_eval]", (S, Y), {"docid": S.to(torch.complex64)}),
    "docid of another length": (ConcordantError, "ndcg", (S, Y), {"docid": torch.ones(3).long()}),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    error, name, arguments, named = BAD[case]
    with pytest.raises(error):
        metric(name)(*arguments, **named)


def test_the_named_row_is_the_callers():
    with pytest.raises(GradeError, match="row 3"):
        metric("err")(torch.zeros(4), torch.tensor([1, 2, 3, 5]), offsets=[0, 2, 4])


@pytest.mark.parametrize("name", ["zero_one", "comparison_error", "comparison_auc"])
def test_metrics_of_other_labels_are_refused(name):
    with pytest.raises(ParameterError, match="metric must be ap, auc, dcg"):
        metric(name)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError):
        metric("ndgc")


def test_unchecked_values_are_the_same():
    y, s = torch.tensor([1.0, 0.0, 2.0, 0.0]), torch.tensor([0.1, 0.2, 0.2, 0.3])
    for name in NAMES:
        assert torch.equal(metric(name, validate=False).per_query(s, y), metric(name).per_query(s, y))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_gives_the_same(name):
    rng = np.random.default_rng(0)
    lists = Lists.from_sizes(rng.integers(0, 70, 200))  # tied blocks of every size up to 69
    y = torch.tensor(rng.integers(0, 5, lists.n_rows) / 4.0)
    for style in CONVENTIONS:
        device = metric(name, convention=style)
        for s in (torch.randn(lists.n_rows), torch.tensor(rng.integers(0, 8, lists.n_rows)), 0.0 * y):
            want = device.per_query(s, y, offsets=lists)
            got = device.per_query(s.cuda(), y.cuda(), offsets=lists.to("cuda")).cpu()
            torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12, equal_nan=True)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import torch
import concordant.torch
value = concordant.torch.metric("ndcg@10")(torch.tensor([0.3, 0.2, 0.1]), torch.tensor([0, 1, 2]))
names = ("err", "ap@2[mslr]", "pd", "wpd", "auc", "rr[ties=random]", "eru", "p@2[catboost]")
values = [concordant.torch.metric(name)(torch.zeros(3), torch.tensor([0, 1, 2])) for name in names]
print(round(float(value), 4), all(value.isfinite() for value in values))
"""


def test_metrics_work_where_numba_is_absent():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.strip() == "0.5869 True", done.stderr
