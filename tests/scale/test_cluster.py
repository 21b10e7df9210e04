"""Fits on a Dask cluster: the same bits on any of them, whatever happens to the workers."""

import contextvars
import gc
import logging
import os
import signal
import threading
import time
import warnings
from platform import node
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import concordant as cc
from concordant import LinearRanker, synthetic
from concordant.exceptions import (
    ClusterError,
    ConcordantError,
    FeaturesError,
    GradeError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
)
from concordant.rankers.guarantee import knowingly
from concordant.rankers.parts.linear_parts import LinearPreparation, PartSpec, slope
from concordant.scale import cluster as module
from concordant.scale.cluster import check_client, connected, gather_results
from concordant.scale.cluster_parts import ClusterParts, WorkerPart, run_job
from tests.helpers.parted import moved, scan_of

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = pytest.mark.once

TOY = synthetic.grades(n_queries=60, n_items=(1, 12), seed=3)
SCAN = scan_of(TOY.X, TOY.y, TOY.qid, n_parts=12)
WORKER = SimpleNamespace(address="tcp://a")
NAMES = [f"x{k}" for k in range(10)]


def arrays(*columns, n_parts=4):
    """Give Dask arrays cut between queries."""
    import dask.array as da

    edges = np.flatnonzero(np.diff(TOY.qid)) + 1
    cuts = np.r_[0, edges[:: len(edges) // n_parts + 1], len(TOY.qid)]
    sizes = tuple(np.diff(np.unique(cuts)).tolist())
    return [da.from_array(column, chunks=(sizes, *column.shape[1:])) for column in columns]


def frame(n_partitions=3):
    """Give a Dask frame cut anywhere."""
    import dask.dataframe as dd

    table = pd.DataFrame(TOY.X, columns=NAMES).assign(grade=TOY.y, query=TOY.qid)
    return dd.from_pandas(table, npartitions=n_partitions)


@pytest.fixture(scope="module")
def streamed():
    return LinearRanker().fit(SCAN)


@pytest.fixture(scope="module")
def plain():
    return LinearRanker().fit(TOY.X, TOY.y, qid=TOY.qid)


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "bundle"])
def test_a_scan_has_the_bits_of_one_machine(client, solver):
    here, there = (LinearRanker(solver=solver).fit(SCAN, client=executor) for executor in (None, client))
    assert here.coef_.tolist() == there.coef_.tolist()
    assert here.solution_.value == there.solution_.value
    np.testing.assert_allclose(
        there.coef_, LinearRanker(solver=solver).fit(TOY.X, TOY.y, qid=TOY.qid).coef_, rtol=0, atol=1e-8
    )


@pytest.mark.slow
def test_what_parts_learn_of_one_another_has_the_bits_of_one_machine(client):
    """Labels of some parts decide which targets all have; workers keep the rows."""
    y = np.where(TOY.qid < 20, TOY.y, 2.0 * (TOY.y > 1))
    X, grades, qid = arrays(TOY.X, y, TOY.qid)
    scan, model = scan_of(TOY.X, y, TOY.qid, n_parts=12), LinearRanker("pd")
    with knowingly():
        here, there = (clone(model).fit(scan, client=executor).coef_ for executor in (None, client))
        of_arrays = clone(model).fit(X, grades, qid=qid, client=client).coef_
        in_memory = clone(model).fit(TOY.X, y, qid=TOY.qid).coef_
    assert here.tolist() == there.tolist()
    np.testing.assert_allclose([there, of_arrays], [in_memory] * 2, rtol=0, atol=1e-8)


def test_a_file_that_is_gone_is_named_with_the_machine_that_misses_it(client, tmp_path):
    scan = cc.write_parquet(TOY, tmp_path / "a.parquet", row_group="2 KiB")
    (tmp_path / "a.parquet").unlink()
    for executor in (None, client):
        with pytest.raises(ConcordantError, match=rf"a\.parquet is not there: {node()} has no(.|\n)*workers"):
            LinearRanker().fit(scan, client=executor)


def test_arrays(client, plain):
    X, y, qid = arrays(TOY.X, TOY.y, TOY.qid)
    model = LinearRanker().fit(X, y, qid=qid, client=client)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)
    wide = LinearRanker().fit(X.rechunk((X.chunks[0], 3)), y, qid=qid)  # the current client
    assert wide.coef_.tolist() == model.coef_.tolist()


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_weights_and_empty_partitions(client):
    weight = np.random.default_rng(0).integers(3, size=61)[TOY.qid].astype(float)
    rows = np.random.default_rng(1).integers(1, 4, size=len(TOY.y)).astype(float)
    columns = arrays(TOY.X, TOY.y, TOY.qid, weight, rows)
    import dask.array as da

    X, y, qid, per_query, per_row = (da.concatenate([column[:0], column]) for column in columns)
    there = LinearRanker().fit(X, y, qid=qid, query_weight=per_query, sample_weight=per_row, client=client)
    here = LinearRanker().fit(TOY.X, TOY.y, qid=TOY.qid, query_weight=weight, sample_weight=rows)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)


def test_frames_are_shuffled_first(client, plain):
    cut = frame()
    with pytest.raises(LabelError, match=r"query \d+ is cut: .* partition 0 and partition 1(.|\n)*shuffle"):
        LinearRanker().fit(cut[NAMES], cut.grade, qid=cut["query"], client=client)
    whole = cut.shuffle(on="query", shuffle_method="tasks")
    model = LinearRanker().fit(whole[NAMES], whole.grade, qid=whole["query"], client=client)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)
    result = cc.evaluate(model, whole[NAMES], whole.grade, qid=whole["query"], client=client)
    assert float(result["ndcg@10"]) == pytest.approx(plain.score(TOY.X, TOY.y, qid=TOY.qid))


def test_judging(client, streamed):
    metrics = ["ndcg@10", "ap", "err", "pd"]
    here, there = (
        cc.evaluate(streamed, SCAN, metrics=metrics, client=executor) for executor in (None, client)
    )
    assert dict(here) == dict(there)


def test_what_collections_lack_is_named(client):
    X, y, qid = arrays(TOY.X, TOY.y, TOY.qid)
    for data, message in (
        ((X, None, qid), "y is missing"),
        ((X, y, None), "qid is missing"),
        ((X, TOY.y, qid), "y is a ndarray"),
        ((X, y.rechunk(-1), qid), "y has 1 partitions, X has"),
        ((TOY.X, y, TOY.qid), "y is a Dask collection, and X is not"),
    ):
        with pytest.raises(LabelError, match=message):
            LinearRanker().fit(data[0], data[1], qid=data[2], client=None if data[0] is TOY.X else client)
    with pytest.raises(ParameterError, match="sgd"):
        LinearRanker(solver="sgd").fit(SCAN, client=client)


def test_what_cannot_be_read_as_collections_is_named(client):
    import dask.dataframe as dd
    from scipy import sparse

    (X, y, qid), table = arrays(TOY.X, TOY.y, TOY.qid), frame()
    twice = dd.from_pandas(pd.DataFrame(TOY.X[:, :2], columns=["a", "a"]), npartitions=1)
    for data, error, message in (
        ((X[:, 0], y, qid), FeaturesError, "neither a frame nor an array"),
        ((dask.delayed(TOY.X), y, qid), FeaturesError, "it is a Delayed.*, neither a frame nor an array"),
        ((table.x0, table.grade, table["query"]), FeaturesError, "it is a Series"),
        ((X.map_blocks(sparse.csr_array), y, qid), FeaturesError, "sparse"),
        ((X, dask.delayed(TOY.y), qid), LabelError, "y is a Delayed"),
        ((twice, table.grade, table["query"]), LabelError, "two columns of X are called 'a'"),
        ((table[NAMES], table[["grade", "x0"]], table["query"]), LabelError, "y has 2 columns"),
        ((table[NAMES], table.grade, frame(2)["query"]), LabelError, "qid has 2 partitions, X has 3"),
    ):
        with pytest.raises(error, match=message):
            LinearRanker().fit(data[0], data[1], qid=data[2], client=client)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Give features, and the rest, of the same rows in files of their own; an index begins anew in each."""
    import dask.dataframe as dd

    frames, table = [], pd.DataFrame(TOY.X, columns=NAMES).assign(grade=TOY.y, query=TOY.qid)
    for names in (NAMES, ["grade", "query"]):
        folder = tmp_path_factory.mktemp("frames")
        for number, queries in enumerate(np.array_split(np.unique(TOY.qid), 4)):
            rows = table[table["query"].isin(queries)].reset_index(drop=True)
            rows[names].to_parquet(folder / f"{number}.parquet")
        frames.append(dd.read_parquet(folder))
    return frames


def test_frames_of_unknown_divisions_meet_by_partition_and_index(client, plain, files):
    X, rest = files
    for labels in (rest, rest.map_partitions(turned)):
        model = LinearRanker().fit(X, labels.grade, qid=labels["query"], client=client)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)


def test_series_of_other_divisions_are_cut_as_the_frame_is(client, plain):
    table, edges = frame(), np.searchsorted(TOY.qid, [15, 30, 45])
    left, right = (
        table.repartition(divisions=[0, *map(int, inside), len(TOY.y) - 1], force=True)
        for inside in (edges, edges + 3)
    )
    model = LinearRanker().fit(left[NAMES], right.grade, qid=right["query"], client=client)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)


def turned(rows):
    return rows.iloc[::-1]


def test_rows_that_cannot_be_paired_are_refused(client, files):
    (X, rest), (whole_X, other) = files, (table.repartition(npartitions=1) for table in files)
    for features, labels, message in (
        (whole_X, other.map_partitions(turned), r"indices differ, and repeat values(.|\n)*y\.to_dask_array"),
        (X, rest.map_partitions(lambda rows: rows.set_index(rows.index + 1)), r"their indices differ\."),
        (X, rest.map_partitions(lambda rows: rows[:0]), "partition 0: the rows of y are not those of X"),
        (X.map_partitions(lambda rows: rows[:0]), rest, "partition 0: the rows of y are not those of X"),
    ):
        with pytest.raises(LabelError, match=message):
            LinearRanker().fit(features, labels.grade, qid=labels["query"], client=client)
    X, y, qid = arrays(TOY.X, TOY.y, TOY.qid)
    with pytest.raises(LengthMismatchError, match=r"partition 0: y has \d+ entries, X has 0 rows"):
        LinearRanker().fit(X.map_blocks(lambda rows: rows[:0]), y, qid=qid, client=client)


def test_any_name_is_one_of_a_feature(client):
    whole = frame(1)
    names = ["concordant: y", *NAMES[1:]]
    X = whole.rename(columns={"x0": names[0]})[names]
    model = LinearRanker().fit(X, whole.grade, qid=whole["query"], client=client)
    assert model.feature_names_in_.tolist() == names


def test_a_frame_of_one_column_is_that_column(client, plain):
    whole = frame(1)
    model = LinearRanker().fit(whole[NAMES], whole[["grade"]], qid=whole["query"], client=client)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)


def test_arrays_that_have_tasks_in_common_agree_on_them(client, plain, caplog, monkeypatch):
    X, y, qid = arrays(TOY.X, TOY.y, TOY.qid)
    is_finite = X[:, 0] < np.inf  # whose chunks are of unknown length, and which all three are made of
    monkeypatch.setattr(logging.getLogger("distributed.scheduler"), "handlers", [caplog.handler])
    model = LinearRanker().fit(X[is_finite], y[is_finite], qid=qid[is_finite], client=client)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-8)
    assert "run_spec" not in caplog.text


def test_bad_rows_of_a_partition_are_named(client):
    y = TOY.y.copy()
    y[-1] = -3.0
    X, grades, qid = arrays(TOY.X, y, TOY.qid)
    last = len(X.chunks[0]) - 1
    row = X.chunks[0][-1] - 1
    with pytest.raises(GradeError, match=f"partition {last}: grade -3 at row {row}"):
        LinearRanker().fit(X, grades, qid=qid, client=client)
    uneven = arrays(np.arange(len(TOY.y), dtype=float))[0]
    with pytest.raises(LabelError, match=r"partition 0: query_weight of query \d+ is both"):
        LinearRanker().fit(*arrays(TOY.X, TOY.y), qid=qid, query_weight=uneven, client=client)
    spoilt = TOY.X.copy()
    spoilt[2, 4] = np.nan
    X, grades, qid = arrays(spoilt, TOY.y, TOY.qid)
    with pytest.raises(NonFiniteError, match="partition 0: X contains NaN at row 2, column 4"):
        LinearRanker().fit(X, grades, qid=qid, client=client)


def test_a_checkpoint_goes_on_elsewhere(client, tmp_path):
    """Begun by one process, continued by a cluster, with the bits of neither interrupted."""
    whole = LinearRanker(tol=1e-10).fit(SCAN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearRanker(tol=1e-10, max_iter=2, checkpoint=tmp_path).fit(SCAN)
    model = LinearRanker(tol=1e-10, checkpoint=tmp_path).fit(SCAN, client=client)
    assert model.coef_.tolist() == whole.coef_.tolist()


def test_sums_are_added_by_eights(client):
    tasks = []

    class Spied(ClusterParts):
        def submit(self, function, *arguments, **how):
            tasks.append((function.__name__, len(arguments)))
            return super().submit(function, *arguments, **how)

    parts = Spied(client, SCAN.parts, keep, [None] * len(SCAN.parts))
    tasks.clear()
    assert parts.total(count, 1).tolist() == [len(TOY.y)]
    n = len(SCAN.parts)
    assert tasks == [("run_job", 3)] * n + [("add_vectors", 8), ("add_vectors", n - 8), ("add_vectors", 2)]


def keep(_, rows, __):
    return rows


def count(rows, unit):
    return np.array([unit * len(rows.y)])


@pytest.mark.parametrize("is_read", [False, True])
def test_a_part_that_is_moved_has_the_same_bits(is_read):
    """To another worker, by Dask's own decision: its arrays then lie elsewhere, and cannot be written to."""
    recipe = cc.metric("ndcg"), cc.surrogates.Softmax(), None, None, False
    preparation, part = LinearPreparation(*recipe), SCAN.parts[0]
    n = len(part.piece[0])
    asked = PartSpec(np.arange(n), np.full(n, 1 / n), np.arange(2), np.ones(2, dtype=np.int64))
    worker_part = WorkerPart(preparation, part, part.read() if is_read else None, asked)
    w = np.random.default_rng(0).normal(size=10)
    here, there = run_job(slope, worker_part, w), run_job(slope, moved(moved(worker_part)), moved(w))
    assert here.tolist() == there.tolist()
    assert not moved(w).flags.aligned
    with pytest.raises(Exception, match="readonly"):  # the check can fail: as it is, a part cannot be moved
        slope(moved(worker_part.value), w)


# What clusters do


def test_a_scheduler_that_does_not_answer_is_named():
    with pytest.raises(ClusterError, match=r"no scheduler answers at 'tcp://127.0.0.1:9'"):
        connected("tcp://127.0.0.1:9", timeout=0.3)
    with pytest.raises(ClusterError, match="no scheduler answers at 'nonsense://x'"):
        connected("nonsense://x", timeout=0.3)


def test_clients_that_cannot_be_used(client, monkeypatch):
    for bad in ("tcp://127.0.0.1:8786", object()):
        with pytest.raises(ParameterError, match="client"):
            check_client(bad)
    monkeypatch.setattr(module, "installed_version", lambda: "0.0.0")
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://a": "9.9"})
    with pytest.raises(ClusterError, match=r"this process has 0\.0\.0") as caught:
        check_client(client)
    assert "worker tcp://a has concordant 9.9" in str(caught.value)
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://a": ModuleNotFoundError("concordant")})
    with pytest.raises(ClusterError, match="no concordant"):
        check_client(client)
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://a": OSError("it died"), "tcp://b": "0.0.0"})
    assert check_client(client) is client


def test_no_client(monkeypatch):
    def none():
        raise ValueError("No client found")

    monkeypatch.setattr(distributed, "default_client", none)
    X, y, qid = arrays(TOY.X, TOY.y, TOY.qid)
    with pytest.raises(ClusterError, match="there is none"):
        LinearRanker().fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (lambda: distributed.scheduler.KilledWorker("task", WORKER, 3), "every worker that held a part died"),
        (
            lambda: distributed.client.FutureCancelledError("k", "connection-lost"),
            "scheduler is gone",
        ),
        (lambda: distributed.comm.CommClosedError("closed"), "scheduler is gone"),
        (distributed.TimeoutError, "has no worker"),
        (lambda: distributed.client.ClosedClientError("Client is closed"), "client was closed"),
    ],
)
def test_what_dask_says_is_named(raised, message):
    with pytest.raises(ClusterError, match=message), module.naming_faults():
        raise raised()
    with pytest.raises(ZeroDivisionError), module.naming_faults():
        raise ZeroDivisionError


def test_the_client_need_not_be_the_default_one(client, streamed, monkeypatch):
    monkeypatch.setattr("distributed.client._global_clients", {})
    model = contextvars.Context().run(lambda: LinearRanker().fit(SCAN, client=client))  # none is current
    assert model.coef_.tolist() == streamed.coef_.tolist()


@pytest.mark.parametrize("which", ["client", "cluster"])
def test_what_is_closed_amid_a_fit_is_named(which):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lonely = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with lonely, distributed.Client(lonely, set_as_default=False) as lonely_client:
        closed = {"client": lonely_client, "cluster": lonely}[which]
        with pytest.raises(ClusterError, match=r"(client was closed|scheduler is gone)(.|\n)*checkpoint"):
            LinearRanker(callback=lambda _: closed.close()).fit(SCAN, client=lonely_client)
        with pytest.raises(ClusterError):
            module.submit_task(lonely_client, len, ())


class Picky(Exception):  # noqa: N818
    """Cannot be copied."""

    def __init__(self, first, other):
        super().__init__(f"{first} {other}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (
            GradeError,
            lambda cluster_client, X, y, qid: LinearRanker().fit(X, y - 9, qid=qid, client=cluster_client),
        ),
        (
            GradeError,
            lambda cluster_client, X, y, qid: cc.evaluate(len, X, y - 9, qid=qid, client=cluster_client),
        ),
        (
            LabelError,
            lambda cluster_client, X, y, _: cc.Comparer().fit(X[:, :2, None], y + 9, client=cluster_client),
        ),
    ],
)
def test_workers_hold_nothing_of_a_refused_fit(client, error, refused):
    before = set(client.futures)
    with pytest.raises(error):
        refused(client, *arrays(TOY.X, TOY.y, TOY.qid))
    gc.collect()
    for _ in range(50):  # Dask forgets on another thread
        if set(client.futures) <= before:
            return
        time.sleep(0.1)
    raise AssertionError(set(client.futures) - before)


def test_an_error_that_cannot_be_copied_is_raised_as_it_is(client):
    released = []
    future = SimpleNamespace(exception=lambda: Picky(1, 2), release=lambda: released.append(1))
    assert str(module.copy_task_error(future)) == "1 2"
    assert released
    with pytest.raises(ZeroDivisionError):
        gather_results(client, [client.submit(lambda: 1 / 0)])


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "LOOK", 0.05)
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lonely = distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    with lonely, distributed.Client(lonely, set_as_default=False) as lonely_client:
        with pytest.raises(ClusterError, match="has had no worker"):
            gather_results(lonely_client, [lonely_client.submit(sum, [1, 2])])
        with pytest.raises(ClusterError, match="has no worker"):
            check_client(lonely_client)


@pytest.mark.slow
def test_a_killed_worker_is_survived(streamed):
    """Two processes, one of which is killed while gradients are summed; its parts are read by the other."""
    begun, killed = threading.Event(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        )
    with real, distributed.Client(real, set_as_default=False) as cluster_client:
        victims = [worker.process.pid for worker in real.workers.values()]

        def callback(step):
            if not begun.is_set():
                begun.set()
                os.kill(victims[0], signal.SIGKILL)
                killed.append(step.iteration)

        model = LinearRanker(callback=callback).fit(SCAN, client=cluster_client)
    assert killed == [1]
    assert model.coef_.tolist() == streamed.coef_.tolist()
