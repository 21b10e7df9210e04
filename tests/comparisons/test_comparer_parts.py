"""Comparer on pairs in parts: the model of one machine, to rounding, and the same bits wherever parts are."""

import re
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.comparisons.fit_data import PairData, open_pair_source
from concordant.comparisons.machines import machine_parts
from concordant.comparisons.machines.machine_part import take_rows
from concordant.comparisons.machines.machine_parts import MachineProblem
from concordant.comparisons.machines.primal_newton import LOSSES, METHODS, build_problem, fit_margin, minimise
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    FeaturesError,
    LabelError,
    ModelFileError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.scale.parts import StreamedParts
from concordant.scale.scan import parquet as parquet_module
from tests.helpers.checkpointed import Ended, ending
from tests.helpers.parted_pairs import READS, Held, Losing, Only, Rows, pair_scan

pytestmark = pytest.mark.once

CASES = [(method, loss) for method in METHODS for loss in LOSSES]
NEAR = {"rtol": 0.0, "atol": 1e-8}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def games(n=300, p=3, seed=0, cut=1.0):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n, 2, p))
    gap = (pairs[:, 1] - pairs[:, 0]) @ np.linspace(1.0, 2.0, p) + 0.5 * rng.normal(size=n)
    return pairs, np.where(np.abs(gap) > cut, np.sign(gap), 0).astype(int)


def check_same(model, other):
    """Two comparers are the same, up to rounding."""
    np.testing.assert_allclose(model.coef_, other.coef_, **NEAR)
    machine, two = model.machine_, other.machine_
    assert (machine.method, machine.solver, machine.note, machine.converged) == (
        two.method,
        two.solver,
        two.note,
        two.converged,
    )
    scale = max(abs(machine.value), 1.0)
    np.testing.assert_allclose([machine.bias, machine.threshold], [two.bias, two.threshold], **NEAR)
    np.testing.assert_allclose(
        [machine.value, machine.gap], [two.value, two.gap], rtol=0.0, atol=1e-8 * scale
    )
    assert model.scaling_.kept.tolist() == other.scaling_.kept.tolist()
    if model.curve_ is not None:
        curves = [(curve.slope, curve.cut) for curve in (model.curve_, other.curve_)]
        np.testing.assert_allclose(*curves, **NEAR)


def bits(model):
    """Give all numbers of a model."""
    curve = () if model.curve_ is None else (model.curve_.slope, model.curve_.cut)
    machine = model.machine_
    return model.coef_.tolist(), machine.threshold, machine.bias, machine.value, machine.gap, curve


# ---------------------------------------------------------------- the solver


def differences(n, p, seed):
    pairs, y = games(n, p, seed)
    return (pairs[:, 1] - pairs[:, 0]) * np.where(y < 0, -1.0, 1.0)[:, None], y == 0


def build_parts(d, tie, C, method, loss, cuts, kind=Held, **how):
    parts = zip(np.split(d, cuts), np.split(tie, cuts), strict=True)
    rows = [Rows(k, build_problem(*part, C, method, loss)) for k, part in enumerate(parts)]
    return kind(rows, **how)


def check_solver(parts, d, tie, C, method, loss):
    """The solver takes the same steps on parts as in memory."""
    here = fit_margin(d, tie, C=C, method=method, loss=loss)
    there = minimise(MachineProblem.from_parts(parts, Only()), 1e-5, 1000)
    np.testing.assert_allclose(there.w, here.w, **NEAR)
    np.testing.assert_allclose([there.bias, there.value], [here.bias, here.value], rtol=1e-8)
    assert (there.n_iter, there.converged) == (here.n_iter, here.converged)


@pytest.mark.parametrize(("method", "loss"), CASES)
@pytest.mark.parametrize(("n", "p", "C"), [(120, 4, 0.3), (60, 30, 1.0), (40, 60, 10.0)])
def test_steps_are_those_of_one_machine(method, loss, n, p, C, monkeypatch):
    """Also where matrices are not summed along, slopes are asked place by place, and few rows are bent."""
    monkeypatch.setattr(machine_parts, "NARROW", 10)
    monkeypatch.setattr(machine_parts, "CROSSING", 0 if n == 60 else 10**6)
    d, tie = differences(n, p, n)
    parts = build_parts(d, tie, C, method, loss, [10, 10, 35])
    check_solver(parts, d, tie, C, method, loss)
    if loss == "hinge":
        assert {"free_part_hinges", "judge_part"} <= {*parts.jobs}  # the exact corner was tried


def test_the_check_rejects_sums_that_lose_a_part():
    d, tie = differences(120, 4, 1)
    how = 0.3, "compare", "squared_hinge"
    check_solver(build_parts(d, tie, *how, [50, 100]), d, tie, *how)
    with pytest.raises(AssertionError):
        check_solver(build_parts(d, tie, *how, [50, 100], Losing), d, tie, *how)


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_that_are_loaded_anew_for_each_job_give_the_same_bits(loss, monkeypatch):
    """As after a worker died: nothing is kept, and arrays come at any address."""
    monkeypatch.setattr("concordant.comparisons.machines.primal_newton.SAMPLE_FROM", 100)
    monkeypatch.setattr("concordant.comparisons.machines.primal_newton.SAMPLE", 50)
    d, tie = differences(150, 5, 2)
    solutions = []
    for forgets in (False, True):
        parts = build_parts(d, tie, 1.0, "compare", loss, [40, 90], forgets=forgets)
        solution = minimise(MachineProblem.from_parts(parts, Only()), 1e-9, 1000)
        solutions.append((solution.w.tolist(), solution.bias, solution.value, solution.gap, solution.n_iter))
    assert solutions[0] == solutions[1]


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("concordant.comparisons.machines.machine_part.SERIAL", 100)
    d, tie = differences(400, 4, 3)
    solutions = []
    for threads in ("1", "3"):
        monkeypatch.setenv("CONCORDANT_THREADS", threads)
        solution = minimise(
            MachineProblem.from_parts(build_parts(d, tie, 1.0, "compare", "hinge", [150]), Only()),
            1e-9,
            99,
        )
        solutions.append((solution.w.tolist(), solution.bias, solution.gap))
    assert solutions[0] == solutions[1]


def test_a_rising_cost_and_a_sample_are_those_of_one_machine():
    d, tie = differences(60, 3, 4)
    parted = MachineProblem.from_parts(build_parts(d, tie, 2.0, "compare", "hinge", [20, 45]), Only())
    whole = MachineProblem.from_rows(build_problem(d, tie, 2.0, "compare", "hinge"))
    sample_rows = np.array([0, 19, 20, 44, 45, 59])
    for problem in (parted, parted.scale_cost(0.25)):
        other = whole if problem is parted else whole.scale_cost(0.25)
        assert problem.total_cost == pytest.approx(other.total_cost)
        (rows, ties, cost), (other_rows, other_ties, other_cost) = (
            sample.parts.each(take_rows, sample.problem_spec, {0: np.arange(6)})[0]
            for sample in (problem.sample(sample_rows), other.sample(sample_rows))
        )
        assert (rows.tolist(), ties.tolist()) == (other_rows.tolist(), other_ties.tolist())
        assert rows.tolist() == d[sample_rows].tolist()
        np.testing.assert_allclose(cost, other_cost)
        points = [problem.look(np.ones(3), -0.5, 0.3) for problem in (problem, other)]
        np.testing.assert_allclose(points[0].grad, points[1].grad)
        assert problem.max_score(points[0]) == other.max_score(points[1])


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize(("method", "loss"), CASES)
def test_the_model_is_that_of_one_machine(method, loss):
    pairs, y = games()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    how = {"method": method, "loss": loss, "calibration": 3, "C": 0.5}
    scan = pair_scan(pairs, y, weight, [40, 41, 41, 180])
    check_same(cc.Comparer(**how).fit(scan), cc.Comparer(**how).fit(pairs, y, weight))


def test_the_check_rejects_another_model():
    pairs, y = games()
    model = cc.Comparer(calibration=0).fit(pairs, y)
    with pytest.raises(AssertionError):
        check_same(model, cc.Comparer(calibration=0).fit(pairs[:-1], y[:-1]))


NASTY = st.fixed_dictionaries(
    {
        "n": st.integers(1, 25),
        "p": st.integers(1, 3),
        "seed": st.integers(0, 1000),
        "ties": st.sampled_from(["all", "none", "some", "first part"]),
        "weights": st.sampled_from([None, "some 0", "large"]),
        "constant": st.booleans(),
        "copies": st.booleans(),
        "scale": st.sampled_from([1e-6, 1.0, 1e6]),
    }
)


def nasty(n, p, seed, ties, weights, constant, copies, scale):
    rng = np.random.default_rng(seed)
    pairs = scale * rng.normal(size=(n, 2, p)) + rng.integers(0, 3)
    if copies:
        pairs = pairs[rng.integers(0, max(n // 3, 1), size=n)]
    if constant:
        pairs[..., 0] = 0.1
    y = rng.integers(-1, 2, size=n)
    y = {"all": np.zeros(n, int), "none": np.where(y == 0, 1, y)}.get(ties, y)
    cuts = np.sort(rng.integers(0, n + 1, size=3))
    if ties == "first part":
        y[: cuts[0]] = 0
    weight = None if weights is None else rng.integers(0, 3, size=n) * (1e3 if weights == "large" else 1.0)
    if weight is not None:
        weight[-1] = 1.0
    return pairs, y, weight, cuts


@pytest.mark.slow
@given(NASTY, st.sampled_from(CASES))
@settings(max_examples=40, deadline=None)
def test_nasty_pairs_give_the_model_of_one_machine(drawn, case):
    """The objective always; the rest where it is unique, which the bias of a hinge need not be."""
    pairs, y, weight, cuts = nasty(**drawn)
    how = {"method": case[0], "loss": case[1], "calibration": 2, "C": 0.1}
    here = cc.Comparer(**how).fit(pairs, y, weight)
    there = cc.Comparer(**how).fit(pair_scan(pairs, y, weight, cuts))
    assert here.note_ == there.note_
    assert there.machine_.value == pytest.approx(here.machine_.value, rel=1e-8)
    if case[1] != "hinge":
        decisions = [model.decision_function(pairs) for model in (here, there)]
        np.testing.assert_allclose(*decisions, rtol=1e-8, atol=1e-8)
        chances = [model.predict_proba(pairs) for model in (here, there)]
        np.testing.assert_allclose(*chances, **NEAR)
        assert there.threshold_ == pytest.approx(here.threshold_, rel=1e-8, abs=1e-8)


def test_one_machine_sees_nothing_in_signs_that_are_rounding():
    """Folds whose direction is 0 but for rounding are not blown up to the size of the whole machine's."""
    drawn = {"n": 20, "p": 2, "seed": 395, "ties": "first part", "weights": None, "constant": True}
    pairs, y, _, cuts = nasty(**drawn, copies=False, scale=1e-6)
    models = [
        cc.Comparer(C=0.1, calibration=2).fit(*data)
        for data in ((pairs, y), (pair_scan(pairs, y, None, cuts),))
    ]
    check_same(*models)
    assert models[0].curve_.slope == 0.0


def test_numbers_of_pairs_are_collected_only_where_they_are_needed(monkeypatch):
    pairs, y = games(60)
    scan, jobs, real = pair_scan(pairs, y, None, [20]), [], StreamedParts.each

    def each(self, job, *arguments):
        jobs.append((job.__name__, *arguments[:1]))
        return real(self, job, *arguments)

    monkeypatch.setattr(StreamedParts, "each", each)
    cc.Comparer(calibration=0, loss="logistic").fit(scan)
    assert ("summarize_part", False) in jobs
    assert "survey_part" in {name for name, *_ in jobs}
    assert not {"decide_part", "judge_pairs"} & {name for name, *_ in jobs}
    cc.Comparer(calibration=0, loss="logistic", method="rank").fit(scan)
    assert "judge_pairs" in {name for name, *_ in jobs}
    cc.Comparer(calibration=2, loss="logistic").fit(scan)
    assert ("summarize_part", True) in jobs


# ---------------------------------------------------------------- a cluster


def arrays(*columns, chunks):
    """Give Dask arrays of these chunks of rows."""
    import dask.array as da

    return [da.from_array(column, chunks=(chunks, *column.shape[1:])) for column in columns]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_chunks_have_the_bits_of_a_scan_and_the_model_of_one_machine(client, loss):
    pairs, y = games(150)
    weight = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    how = {"loss": loss, "calibration": 2 if loss == "logistic" else 0}
    streamed = cc.Comparer(**how).fit(pair_scan(pairs, y, weight, [40, 40]))
    there = cc.Comparer(**how).fit(*arrays(pairs, y, weight, chunks=(40, 0, 110)), client=client)
    assert bits(there) == bits(streamed)
    check_same(there, cc.Comparer(**how).fit(pairs, y, weight))


def test_chunks_of_features_are_put_together_and_a_client_is_found(client):
    assert client.status == "running"
    pairs, y = games(90, 4)
    chunks, outcome = arrays(pairs, y, chunks=(30, 60))
    how = {"loss": "squared_hinge", "method": "rank", "calibration": 0}
    there = cc.Comparer(**how).fit(chunks.rechunk((chunks.chunks[0], 1, 3)), outcome)
    assert bits(there) == bits(cc.Comparer(**how).fit(pair_scan(pairs, y, None, [30])))


def test_a_scan_is_read_once_by_workers(client):
    pairs, y = games(90)
    scan = pair_scan(pairs, y, None, [30, 50])
    how = {"loss": "logistic", "calibration": 2}
    READS.clear()
    there = cc.Comparer(**how).fit(scan, client=client)
    assert sorted(READS) == [0, 1, 2]
    READS.clear()
    assert bits(there) == bits(cc.Comparer(**how).fit(scan))
    assert len(READS) > 30  # each pass reads


@pytest.mark.parametrize("scanned", [False, True])
def test_workers_need_not_keep_what_parts_were_made_of(client, scanned):
    """Not even where parts are told of folds, and so made twice."""
    pairs, y = games(90)
    parted_data = (pair_scan(pairs, y, None, [30]), None) if scanned else arrays(pairs, y, chunks=(30, 60))
    others = set(client.futures)  # of tests before this one
    source = open_pair_source(*parted_data, None, client, "auto")
    before = set(client.futures) - others
    data = PairData.from_source(source, 2, 0)
    assert source.rows == []
    assert data.digest(None)
    for _ in range(50):  # Dask forgets on another thread
        if not before & set(client.futures):
            return
        time.sleep(0.1)
    raise AssertionError(before)


def test_a_fit_goes_on_elsewhere(client, tmp_path):
    """What this process began, a cluster ends; of other parts it is another fit."""
    pairs, y = games(120)
    how = {"loss": "logistic", "calibration": 2}
    plain = cc.Comparer(**how).fit(pair_scan(pairs, y, None, [50]))
    with ending(3), pytest.raises(Ended):
        cc.Comparer(**how, checkpoint=tmp_path / "a").fit(pair_scan(pairs, y, None, [50]))
    there = cc.Comparer(**how, checkpoint=tmp_path / "a").fit(
        *arrays(pairs, y, chunks=(50, 70)), client=client
    )
    assert bits(there) == bits(plain)
    with pytest.raises(ModelFileError, match="other data"):
        cc.Comparer(**how, checkpoint=tmp_path / "a").fit(pair_scan(pairs, y, None, [60]))


def test_bad_chunks_are_named(client):
    pairs, y = games(60)
    bad = pairs.copy()
    bad[45, 1, 2] = np.nan
    with pytest.raises(NonFiniteError, match=r"chunk 1: .*row 15"):
        cc.Comparer().fit(*arrays(bad, y, chunks=(30, 30)), client=client)
    with pytest.raises(LabelError, match=r"chunk 0: y\[2\] = 7"):
        cc.Comparer().fit(*arrays(pairs, np.where(np.arange(60) == 2, 7, y), chunks=(30, 30)), client=client)
    with pytest.raises(ParameterError, match="sample_weight is zero for every pair"):
        cc.Comparer().fit(*arrays(pairs, y, np.zeros(60), chunks=(30, 30)), client=client)
    with pytest.raises(EmptyDataError):
        cc.Comparer().fit(*arrays(pairs[:0], y[:0], chunks=(0,)), client=client)
    chunks, outcome = *arrays(pairs, chunks=(30, 30)), *arrays(y, chunks=(20, 40))
    with pytest.raises(ConcordantError, match="chunk 0: y has 20 entries"):
        cc.Comparer().fit(chunks, outcome, client=client)


def test_what_cannot_be_trained_on_is_refused_before_any_work(client, monkeypatch):
    import dask

    pairs, y = games(40)
    monkeypatch.setattr(client, "submit", None)  # nobody is asked to do anything
    chunks, outcome = arrays(pairs, y, chunks=(40,))
    for how, match in (
        ({"kernel": "rbf"}, "kernel must be 'linear' for scans"),
        ({"formulation": "lp"}, "formulation must be 'qp' for scans"),
        ({"C": np.inf}, "C must be finite for scans"),
        ({"solver": "sgd", "loss": "logistic"}, "solver='sgd'"),
    ):
        with pytest.raises(ParameterError, match=match):
            cc.Comparer(**how).fit(chunks, outcome, client=client)
        if "solver" not in how:
            with pytest.raises(ParameterError, match=match):
                cc.Comparer(**how).fit(pair_scan(pairs, y))
    with pytest.raises(ParameterError, match="solver='sgd'"):
        cc.Comparer(solver="sgd", loss="logistic").fit(pair_scan(pairs, y), client=client)
    with pytest.raises(LabelError, match="y is missing"):
        cc.Comparer().fit(chunks, client=client)
    with pytest.raises(LabelError, match="y is a ndarray"):
        cc.Comparer().fit(chunks, y, client=client)
    with pytest.raises(LabelError, match="y has 2 chunks, pairs has 1"):
        cc.Comparer().fit(chunks, outcome.rechunk((20, 20)), client=client)
    with pytest.raises(ShapeError):
        cc.Comparer().fit(chunks[:, 0], outcome, client=client)
    with pytest.raises(LabelError, match="y is a Delayed"):
        cc.Comparer().fit(chunks, dask.delayed(y), client=client)
    with pytest.raises(FeaturesError, match=r"it is a Delayed.*, not a Dask array"):
        cc.Comparer().fit(dask.delayed(pairs), outcome, client=client)
    with pytest.raises(ParameterError, match="client"):
        cc.Comparer().fit(pairs, y, client=client)
    with pytest.raises(ParameterError, match="y was given, but a scan"):
        cc.Comparer().fit(pair_scan(pairs, y), y)


# ---------------------------------------------------------------- steps from pair to pair


def test_sgd_on_a_scan_comes_near_the_optimum():
    pairs, y = games(600)
    weight = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    scan = pair_scan(pairs, y, weight, [100, 100, 350])
    how = {"loss": "logistic", "calibration": 0}
    best = cc.Comparer(**how).fit(scan).machine_.value
    model = cc.Comparer(**how, solver="sgd").fit(scan)
    assert model.machine_.solver == "sgd"
    assert best <= model.machine_.value < 1.003 * best
    assert bits(cc.Comparer(**how, solver="sgd").fit(scan)) == bits(model)
    other = cc.Comparer(**how, solver="sgd", random_state=1).fit(scan)
    assert bits(other) != bits(model)


def test_sgd_goes_on_after_an_end(tmp_path):
    pairs, y = games(300)
    scan = pair_scan(pairs, y, None, [100])
    how = {"loss": "logistic", "calibration": 0, "solver": "sgd"}
    with ending(3), pytest.raises(Ended):
        cc.Comparer(**how, checkpoint=tmp_path / "a").fit(scan)
    resumed = cc.Comparer(**how, checkpoint=tmp_path / "a").fit(scan)
    assert bits(resumed) == bits(cc.Comparer(**how).fit(scan))


# ---------------------------------------------------------------- files


WORDS = np.array(["left", "tie", "right"])


def table_of(pairs, y, **more):
    columns = {
        f"{side}_x{k}": pairs[:, number, k]
        for number, side in enumerate(("left", "right"))
        for k in range(pairs.shape[2])
    }
    return pa.table({**columns, "outcome": WORDS[y + 1], **more})


def test_files_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_module, "PART_BYTES", 4200)
    pairs, y = games(100)
    weight = np.random.default_rng(0).random(100)
    more = {"w": weight, "left_id": [f"a{k}" for k in range(100)], "right_id": ["b"] * 100}
    table = table_of(pairs, y, **more)
    pq.write_table(table.slice(0, 60), tmp_path / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(60), tmp_path / "b.parquet", row_group_size=40)
    scan = cc.scan_pairs(tmp_path, sample_weight="w")
    assert repr(scan) == "PairScan(n_rows=100, n_features=3, n_parts=3, memory=1 GiB)"
    assert scan.feature_names == ("x0", "x1", "x2")
    columns = [
        np.concatenate(column) for column in zip(*((r.pairs, r.y, r.weight) for r in scan), strict=True)
    ]
    for column, other in zip(columns, (pairs, y, weight), strict=True):
        assert column.tolist() == other.tolist()
    how = {"calibration": 0, "loss": "squared_hinge"}
    check_same(cc.Comparer(**how).fit(scan), cc.Comparer(**how).fit(pairs, y, weight))


@pytest.mark.parametrize(
    ("written", "outcomes"),
    [
        ([-1, 0, 1], None),
        ([-1.0, 0.0, 1.0], None),
        (["Model_A", " draw", "1 "], None),
        ([1.0, 0.5, 0.0], "score"),
        (["H", "D", "A"], {"H": -1, "D": 0, "A": 1}),
        (pa.array(["left", "tie", "right"]).dictionary_encode(), None),
    ],
)
def test_outcomes_may_be_written_as_read_comparisons_reads_them(tmp_path, written, outcomes):
    table = pa.table({"left_x": [1, 2, 3], "right_x": [3, 2, 1], "won": written})
    pq.write_table(table, tmp_path / "a.parquet")
    (rows,) = cc.scan_pairs(tmp_path / "a.parquet", outcome="won", outcomes=outcomes)
    assert rows.y.tolist() == [-1, 0, 1]
    assert rows.pairs.tolist() == [[[1.0], [3.0]], [[2.0], [2.0]], [[3.0], [1.0]]]


def test_bad_rows_of_files_are_named(tmp_path):
    pairs, y = games(20)
    for name, change, error, match in (
        ("nan", {"left_x1": [0.0] * 12 + [np.nan] + [0.0] * 7}, NonFiniteError, "row group 1: .*row 2"),
        ("null", {"right_x1": [0.0] * 13 + [None] + [0.0] * 6}, NonFiniteError, "row group 1: .*row 3"),
        ("large", {"left_x1": [0.0] * 11 + [1e200] + [0.0] * 8}, NonFiniteError, "row group 1: .*row 1"),
        ("word", {"outcome": ["tie"] * 14 + ["x"] + ["tie"] * 5}, LabelError, "row group 1: .*'x' at row 4"),
        ("gone", {"outcome": ["tie"] * 15 + [None] + ["tie"] * 4}, LabelError, "row group 1: .*at row 5"),
        ("weight", {"w": [1.0] * 16 + [-1.0] + [1.0] * 3}, ConcordantError, "row group 1: .*pair 6"),
    ):
        table = pa.table({**dict(zip(*columns_of(table_of(pairs, y, w=np.ones(20))), strict=True)), **change})
        file = tmp_path / f"{name}.parquet"
        pq.write_table(table, file, row_group_size=10)
        with pytest.raises(error, match=f"{re.escape(str(file))}, {match}"):
            cc.Comparer().fit(cc.scan_pairs(file, sample_weight="w"))


def columns_of(table):
    return table.column_names, table.columns


def test_pairs_that_changed_are_named(tmp_path):
    pq.write_table(table_of(*games(20)), tmp_path / "a.parquet")
    scan = cc.scan_pairs(tmp_path / "a.parquet")
    pairs, y = games(20)
    pq.write_table(table_of(-pairs, y), tmp_path / "a.parquet")
    with pytest.raises(
        ConcordantError, match=r"a\.parquet, row group 0: it changed .*: it has other contents"
    ):
        cc.Comparer().fit(scan)


def test_tables_that_are_no_pairs_are_refused(tmp_path):
    def scanned(name="a", **how):
        return cc.scan_pairs(tmp_path / f"{name}.parquet", **how)

    def write(name="a", **columns):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    write(left_x=[1.0], right_x=[2.0], outcome=["tie"])
    with pytest.raises(UnknownNameError, match="column 'won'"):
        scanned(outcome="won")
    with pytest.raises(UnknownNameError, match="column 'w'"):
        scanned(sample_weight="w")
    with pytest.raises(ParameterError, match="memory"):
        scanned(memory=50)
    with pytest.raises(LabelError, match=r"no features of both sides \(a_NAME and b_NAME\)"):
        scanned(left="a_", right="b_")
    with pytest.raises(UnknownNameError, match="outcomes"):
        scanned(outcomes="scores")
    write("b", left_x=[1.0], right_x=[2.0], right_z=[2.0], outcome=["tie"])
    with pytest.raises(LabelError, match="'z' has no column 'left_z'"):
        scanned("b")
    write("c", left_z=[1.0], right_z=[2.0], outcome=["tie"])
    with pytest.raises(LabelError, match="has no column 'left_x'"):
        cc.scan_pairs([tmp_path / "a.parquet", tmp_path / "c.parquet"])
    for outcome in ([[1]], [{"a": 1}]):
        write("d", left_x=[1.0], right_x=[2.0], outcome=outcome)
        with pytest.raises(LabelError, match=r"d\.parquet: column 'outcome' holds (list|struct)<"):
            scanned("d")
    write("d", left_x=["a"], right_x=["b"], outcome=["tie"])
    with pytest.raises(NotNumericError, match="column 'left_x'"):
        scanned("d")
    write(
        "e",
        left_x=pa.array([], pa.float64()),
        right_x=pa.array([], pa.float64()),
        outcome=pa.array([], pa.string()),
    )
    with pytest.raises(EmptyDataError):
        scanned("e")
