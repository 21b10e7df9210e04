"""BoostedRanker on a Dask cluster: the loss of one machine, by LightGBM's own way of sharing the work."""

import itertools
import os
import signal
import socket
import threading
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant import BoostedRanker, Queries, synthetic
from concordant.exceptions import (
    ClusterError,
    GradeError,
    GuaranteeWarning,
    LibraryError,
    ParameterError,
    WorkerLostError,
)
from concordant.rankers import boosted as boosted_module
from concordant.rankers.boosters import lightgbm_cluster
from concordant.rankers.boosters import lightgbm_cluster as module
from concordant.rankers.boosters.lightgbm_cluster import ClusteredLightGBM, WorkerObjective, deal_parts
from concordant.rankers.boosters.plan import BoostingPlan, slopes
from concordant.rankers.boosters.tree_training_set import TreeTrainingSet
from concordant.rankers.folds import FitRows
from concordant.rankers.parts import boosted_parts as parted_boosted
from concordant.rankers.parts.boosted_parts import PartitionedTreeTrainingSet, part_sizes
from concordant.rankers.parts.ranker_source import as_parts_source
from concordant.scale import cluster as cluster_module
from concordant.scale.cluster import addresses, gather_results, local_cluster
from tests.helpers.parted import scan_of

pytest.importorskip("lightgbm", reason="LightGBM is not installed")
dask = pytest.importorskip("dask", reason="Dask is not installed")
pytestmark = pytest.mark.once

TOY = synthetic.grades(n_queries=150, n_items=(1, 12), seed=3)
DATA = TOY.X, TOY.y, TOY.qid
RNG = np.random.default_rng(0)
WEIGHTS = {
    "sample_weight": RNG.uniform(0.0, 3.0, len(TOY.y)).round(1),
    "query_weight": RNG.integers(3, size=TOY.qid.max() + 1)[TOY.qid].astype(float),
}
SMALL = {"n_estimators": 8, "learning_rate": 0.2, "max_leaf_nodes": 5, "min_samples_leaf": 5}
ONE, TWO = (scan_of(*DATA, n_parts=n_parts) for n_parts in (1, 5))


def boosted(metric="ndcg@5", *arguments, **more):
    return BoostedRanker(metric, *arguments, **{**SMALL, **more})


def pieces(*columns, n_parts=4):
    """Cut between queries."""
    edges = np.flatnonzero(np.diff(TOY.qid)) + 1
    return [np.split(column, edges[len(edges) // n_parts :: len(edges) // n_parts]) for column in columns]


def arrays(*columns):
    """Give Dask arrays cut between queries."""
    from dask import array

    return [array.concatenate([array.from_array(piece) for piece in many]) for many in pieces(*columns)]


# ---------------------------------------------------------------- the same loss as in memory


def check_same(model, expected, atol):
    """Both scored alike, and say the same of their training."""
    np.testing.assert_allclose(model.predict(TOY.X), expected.predict(TOY.X), rtol=0, atol=atol)
    ends = [
        (optimality.first, optimality.value)
        for optimality in (model.certificate_.optimality, expected.certificate_.optimality)
    ]
    np.testing.assert_allclose(*ends, rtol=1e-7)
    for name in ("n_estimators_", "best_iteration_", "stopped_by_", "n_queries_", "n_informative_", "basis_"):
        assert getattr(model, name) == getattr(expected, name), name
    np.testing.assert_allclose(model.feature_importances_, expected.feature_importances_, atol=1e-6)
    assert str(model.certificate_.sample) == str(expected.certificate_.sample)
    assert np.isnan(model.history_).all()
    assert model.history_.shape == expected.history_.shape


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "surrogate", "atol"),
    [
        ("dcg", "auto", 0.0),  # whose targets are whole numbers, which single precision keeps
        ("ndcg@5", "auto", 1e-6),
        ("ndcg@5", "squared", 1e-6),
        ("auc", "pairwise", 1e-6),
    ],
)
def test_one_worker_grows_the_trees_of_one_machine(client, metric, surrogate, atol):
    y = TOY.y > 2 if metric == "auc" else TOY.y
    scan = scan_of(TOY.X, y.astype(float), TOY.qid, n_parts=1)
    there = boosted(metric, surrogate).fit(scan, client=client)
    check_same(there, boosted(metric, surrogate).fit(TOY.X, y, qid=TOY.qid), atol)


def test_labels_that_are_not_standardized_are_noticed(client, monkeypatch):
    here = boosted().fit(*DATA[:2], qid=TOY.qid)
    standardized = BoostingPlan.labels
    monkeypatch.setattr(
        BoostingPlan, "labels", lambda self, y, queries: (y, standardized(self, y, queries)[1])
    )
    wrong = boosted().fit(ONE, client=client)
    with pytest.raises(AssertionError):
        check_same(wrong, here, 1e-6)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
@pytest.mark.parametrize("surrogate", ["softmax", "squared"])
def test_weights_and_parameters(client, surrogate):
    model = boosted(
        surrogate=surrogate, l2=3.0, monotonic_cst=[1] * 10, params={"min_data": 7, "max_bin": 40}
    )
    here = model.fit(*DATA[:2], qid=TOY.qid, **WEIGHTS)
    there = boosted(**{name: getattr(model, name) for name in ("surrogate", "l2", "monotonic_cst", "params")})
    there.fit(scan_of(*DATA, n_parts=1, **WEIGHTS), client=client)
    check_same(there, here, 1e-6)
    assert there.certificate_.sample.weighted


def test_labels_of_some_parts_decide_the_targets_of_all(client):
    y = np.where(TOY.qid < 9, TOY.y, 2.0 * (TOY.y > 1))
    plan, source = (
        BoostingPlan.from_names("pd"),
        as_parts_source(scan_of(TOY.X, y, TOY.qid, n_parts=20), client=client),
    )
    there = PartitionedTreeTrainingSet.from_parts(
        plan, source, deal_parts(part_sizes(source.index), addresses(client))
    )
    here = TreeTrainingSet.from_rows(plan, FitRows.from_columns(TOY.X, y, TOY.qid, None, None))
    assert there.at_rest == pytest.approx(here.mean_loss(np.zeros(len(y))), rel=1e-12)


@pytest.mark.parametrize("weights", [{}, WEIGHTS])
@pytest.mark.parametrize("surrogate", ["softmax", "squared", "pairwise"])
def test_numbers_of_all_parts_are_those_of_one(client, surrogate, weights):
    """Scale of weights, unit of curvature, loss at 0: sums over parts."""
    plan, sizes = BoostingPlan.from_names("ndcg@5", surrogate), np.bincount(TOY.qid)[TOY.qid]
    X, y, qid = (column[sizes > 1] for column in DATA)  # rounding gives some lonely items a curvature
    weights = {name: weight[sizes > 1] for name, weight in weights.items()}
    here = TreeTrainingSet.from_rows(
        plan, FitRows.from_columns(X, y, qid, weights.get("sample_weight"), weights.get("query_weight"))
    )
    source = as_parts_source(scan_of(X, y, qid, n_parts=5, **weights), client=client)
    there = PartitionedTreeTrainingSet.from_parts(
        plan, source, deal_parts(part_sizes(source.index), addresses(client))
    )
    expected = [here.data.unit, here.data.gain, here.mean_loss(np.zeros(len(y)))]
    np.testing.assert_allclose([there.unit, there.gain, there.at_rest], expected, rtol=1e-12)
    assert (there.n_informative, there.n_counted) == (here.n_informative, here.n_counted)
    assert (there.claim, there.varies) == (here.claim, True)
    np.testing.assert_allclose(there.sample.mass, here.sample.mass, rtol=1e-12)


def test_what_lightgbm_gets():
    """Several parts of one worker are one sum of losses."""
    queries, targets = Queries.from_ids(TOY.qid), TOY.y.astype(np.float32)
    weight, scores = WEIGHTS["query_weight"].astype(np.float32), RNG.normal(size=len(TOY.y))
    plan = BoostingPlan.from_names("ndcg@5")
    attended_threads, module.worker_threads = module.worker_threads, lambda: 1
    try:
        columns = WorkerObjective(plan.surrogate, plan.curvature, 4.0)(targets, scores, weight, queries.sizes)
    finally:
        module.worker_threads = attended_threads
    loss = plan.surrogate.bind(targets, queries.offsets, weight)
    for column, other in zip(columns, slopes(loss, scores, plan.curvature, 4.0)[1], strict=True):
        np.testing.assert_array_equal(column, other)


# ---------------------------------------------------------------- two workers


@pytest.fixture(scope="module")
def together(client):
    return boosted().fit(TWO, client=client)


def test_two_workers_lower_the_loss_as_one_does(together):
    here = boosted().fit(*DATA[:2], qid=TOY.qid).certificate_.optimality
    there = together.certificate_.optimality
    assert there.first == pytest.approx(here.first, rel=1e-12)
    fell, falls = here.first - here.value, there.first - there.value
    assert 0.95 < falls / fell < 1.05
    assert together.score(*DATA[:2], qid=TOY.qid) > 0.75
    assert together.n_estimators_ == SMALL["n_estimators"]


def test_equal_fits_are_equal_in_every_bit(client, together):
    again = boosted().fit(TWO, client=client)
    assert again.booster_.model_to_string() == together.booster_.model_to_string()
    assert "12400" in together.booster_.model_to_string()  # no port of this fit


def test_rows_and_features_that_are_drawn(client, together):
    model = boosted(subsample=0.5, colsample=0.5)
    scores, other = (model.fit(TWO, client=client).predict(TOY.X) for _ in range(2))
    assert (scores == other).all()
    assert (scores != together.predict(TOY.X)).any()


def test_a_query_of_weight_two_stands_there_twice(client):
    """Of features with few values, so that both have the same bins."""
    X = (TOY.X[:, :4] * 2).round().clip(-3, 3)
    rows = np.repeat(np.arange(len(X)), 1 + (TOY.qid % 2))
    copies = np.concatenate([np.arange(1 + query % 2) for query in TOY.qid])
    model = boosted(min_samples_leaf=1, l2=0.0, params={"min_data_in_bin": 1})
    weight = 1.0 + TOY.qid % 2
    weighed = model.fit(scan_of(X, TOY.y, TOY.qid, n_parts=2, query_weight=weight), client=client).predict(X)
    ids = 2 * TOY.qid[rows] + copies  # ids of their own
    twice = model.fit(scan_of(X[rows], TOY.y[rows], ids, n_parts=2), client=client).predict(X)
    plain = model.fit(scan_of(X, TOY.y, TOY.qid, n_parts=2), client=client).predict(X)
    np.testing.assert_allclose(weighed, twice, atol=1e-5)
    assert np.abs(plain - twice).max() > 1e-2  # the check can fail


def test_collections(client, together):
    there = boosted().fit(*(columns := arrays(*DATA))[:2], qid=columns[2])  # the current client
    falls = there.certificate_.optimality.first - there.certificate_.optimality.value
    fell = together.certificate_.optimality.first - together.certificate_.optimality.value
    assert 0.9 < falls / fell < 1.1
    from dask import dataframe

    names = [f"x{k}" for k in range(10)]
    table = pd.DataFrame(TOY.X, columns=names).assign(grade=TOY.y, query=TOY.qid)
    rows = pieces(np.arange(len(table)))[0]
    frame = dataframe.concat([dataframe.from_pandas(table.iloc[numbers], npartitions=1) for numbers in rows])
    named = boosted(monotonic_cst={"x3": 1}).fit(
        frame[names], frame["grade"], qid=frame["query"], client=client
    )
    assert named.feature_names_in_.tolist() == names == named.booster_.feature_name()
    rising = pd.DataFrame(np.eye(10)[[3]] * [[-2.0], [0.0], [2.0]], columns=names)
    assert (np.diff(named.predict(rising)) >= 0.0).all()


def test_models_of_a_cluster_are_models(together, tmp_path):
    cc.save(together, tmp_path / "model.ccm")
    again = cc.load(tmp_path / "model.ccm")
    np.testing.assert_array_equal(again.predict(TOY.X), together.predict(TOY.X))
    assert (together.rank(*DATA[:1], qid=TOY.qid) >= 1).all()
    assert "softmax" in str(together.certificate_)


# ---------------------------------------------------------------- nothing to learn


def test_no_split(client):
    constant = scan_of(np.ones((40, 2)), np.arange(40) % 3, np.repeat(np.arange(8), 5), n_parts=2)
    with pytest.warns(UserWarning, match="No split"):
        model = boosted().fit(constant, client=client)
    assert (model.n_estimators_, model.stopped_by_, model.history_.shape) == (1, "no_split", (1,))
    assert not model.predict(np.zeros((3, 2))).any()
    for part in constant.parts:
        part.X[:] = part.number  # rows of a worker are all alike: nobody finds bins
    with pytest.warns(UserWarning, match="No split"):
        assert boosted().fit(constant, client=client).stopped_by_ == "no_split"
    with pytest.warns(UserWarning, match="Nothing was learned"):
        boosted().fit(scan_of(TOY.X, np.ones(len(TOY.y)), TOY.qid, n_parts=2), client=client)


def test_trees_end_where_no_leaf_can_be_cut(client):
    X, y, qid = (column[TOY.qid < 8] for column in DATA)
    model = boosted("dcg", "squared", min_samples_leaf=10, learning_rate=1.0, n_estimators=400, l2=0.0)
    here = model.fit(X, y, qid=qid)
    expected = here.n_estimators_, here.stopped_by_
    there = model.fit(scan_of(X, y, qid, n_parts=1), client=client)
    assert (there.n_estimators_, there.stopped_by_) == expected


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"booster": "xgboost"}, "booster must be 'lightgbm' for scans"),
        ({"early_stopping": 3}, "early_stopping must be None on a cluster"),
        ({"callback": print}, "callback"),
        ({"checkpoint": "folder"}, "checkpoint"),
        ({"warm_start": True}, "warm_start must be False on a cluster"),
        ({"categorical_features": [0]}, "categorical_features"),
        ({"n_jobs": 2}, "n_jobs must be -1 on a cluster, got 2"),
        ({"params": {"num_machines": 3}}, "number of workers"),
        ({"params": {"nthread": 3}}, "threads"),
        ({"params": {"objective": "lambdarank"}}, "surrogate names the loss"),
    ],
)
def test_refused_parameters(client, parameters, message):
    if parameters.get("booster"):
        pytest.importorskip("xgboost", reason="XGBoost is not installed")
    with pytest.raises(ParameterError, match=message):
        boosted(**parameters).fit(ONE, client=client)


def test_refused_data(client):
    with pytest.raises(ParameterError, match=r"pass client=distributed\.Client.*read_table"):
        boosted().fit(ONE)
    with pytest.raises(ParameterError, match="eval_set"):
        boosted().fit(ONE, eval_set=DATA, client=client)
    with pytest.raises(ParameterError, match="client"):
        boosted().fit(*DATA[:2], qid=TOY.qid, client=client)
    from dask import dataframe

    table = pd.DataFrame({"a": [1, 2, 3], "b": pd.Categorical([1, 2, 1]), "y": [0, 1, 2], "q": [1, 1, 1]})
    frame = dataframe.from_pandas(table, npartitions=1)
    with pytest.raises(ParameterError, match="'b' is categorical"):
        boosted().fit(frame[["a", "b"]], frame["y"], qid=frame["q"], client=client)
    model = boosted("dcg")
    huge = TOY.y.astype(float)
    huge[7] = 60.0
    with pytest.raises(GradeError, match=r"part \d.*too large for the single precision"):
        model.fit(scan_of(TOY.X, huge, TOY.qid, n_parts=3), client=client)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(LibraryError, match="max_bin"):
        boosted(params={"max_bin": 1}).fit(TWO, client=client)


# ---------------------------------------------------------------- workers


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 4))
def test_parts_are_dealt_evenly(sizes, n_workers):
    places = deal_parts(np.array(sizes), [f"w{k}" for k in range(n_workers)])
    rows = [
        sum(size for size, worker in zip(sizes, places, strict=True) if worker == name)
        for name in set(places)
    ]
    assert len(places) == len(sizes)
    assert max(rows) - min(rows) <= max(sizes)
    assert min(rows) > 1 or sum(rows) == 1


def test_a_worker_that_fails_does_not_leave_the_others_waiting(client, monkeypatch, together):
    rounds = itertools.count()

    def failing(*arguments):
        if next(rounds) == 5:
            raise MemoryError("of one worker alone")
        return slopes(*arguments)

    monkeypatch.setattr(module, "slopes", failing)
    with pytest.raises(MemoryError, match="of one worker alone"):
        boosted().fit(TWO, client=client)
    monkeypatch.undo()
    until = time.monotonic() + 10.0
    while any(client.processing().values()):
        assert time.monotonic() < until, "a worker is still waiting"
        time.sleep(0.02)
    again = boosted().fit(TWO, client=client)
    assert again.booster_.model_to_string() == together.booster_.model_to_string()


def test_a_failed_fit_leaves_no_links_behind(client):
    """Workers keep their threads, and LightGBM its links in them: one that fits alone must not use them."""
    for _ in range(3):
        with pytest.raises(LibraryError, match="max_bin"):
            boosted(params={"max_bin": 1}).fit(TWO, client=client)
        assert boosted().fit(ONE, client=client).n_estimators_ == SMALL["n_estimators"]


def test_what_failed_is_not_collected_amid_another_fit():
    threads = []

    class Booster:
        def __del__(self):
            threads.append(threading.get_ident())

    def fail():
        booster = Booster()
        raise RuntimeError(type(booster).__name__)

    with pytest.raises(RuntimeError) as caught:
        module.run_unlinked(fail)
    assert threads == [threading.get_ident()], caught
    with pytest.raises(RuntimeError) as caught:
        fail()
    assert len(threads) == 1, caught  # the check can fail


@pytest.mark.parametrize("waits", [(0.0, 0.3), (0.3, 0.0)])
def test_the_cause_is_raised_and_not_its_echo(client, waits):
    """Whichever comes in first."""

    def fail(seconds, error):
        time.sleep(seconds)
        raise error

    def gathered_after(*errors):
        tasks = [client.submit(fail, *arguments, pure=False) for arguments in zip(waits, errors, strict=True)]
        return lightgbm_cluster.AttendedClient(client, [], module.run_unlinked, module.is_broken_link).gather(
            tasks
        )

    with pytest.raises(MemoryError):
        gathered_after(OSError("Socket recv error"), MemoryError())
    with pytest.raises(OSError, match="recv"):
        gathered_after(OSError("Socket recv error"), OSError("Socket send error"))


def test_a_worker_that_is_gone_is_an_error(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "LOOK", 0.05)
    with pytest.raises(ClusterError, match=r"tcp://gone is gone.*\n.*call fit again"):
        gather_results(client, [client.submit(time.sleep, 0.3, pure=False)], ["tcp://gone"])


def test_who_cannot_leave_a_fit_is_started_anew(monkeypatch):
    """One that waits for a link to be made has none that could be cut."""
    monkeypatch.setattr(lightgbm_cluster, "GRACE", 0.05)
    monkeypatch.setattr(lightgbm_cluster, "SOON", 0.0)
    looks, anew = itertools.count(), []
    client = SimpleNamespace(
        as_current=nullcontext,
        cancel=lambda _: None,
        scheduler_info=lambda **_: {"workers": {"a": {}, "b": {}}},
        run=lambda *_, workers, **__: {worker: worker == "b" or next(looks) < 2 for worker in workers},
        restart_workers=lambda workers, **_: anew.extend(workers),
    )
    who = lightgbm_cluster.AttendedClient(
        client, ["b", "a", "gone"], module.run_unlinked, module.is_broken_link
    )
    with pytest.raises(KeyboardInterrupt), who.fitting("fit"):
        raise KeyboardInterrupt
    assert anew == ["b"]


def losing(times):
    """Give slopes that fail as LightGBM does where a worker is lost, in the first so many fits."""
    from lightgbm.basic import LightGBMError

    fits = itertools.count()

    def lost(*arguments):
        if next(fits) < times:
            raise LightGBMError("Socket recv error, Connection reset by peer (code: 104)")
        return slopes(*arguments)

    return lost


def test_trees_are_grown_again_where_a_worker_is_lost(client, monkeypatch):
    here = boosted("err", "squared")  # which is not consistent, as is said once
    with pytest.warns(GuaranteeWarning):
        expected = here.fit(ONE, client=client).booster_.model_to_string()
    monkeypatch.setattr(module, "slopes", losing(2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = boosted("err", "squared").fit(ONE, client=client)
    assert model.booster_.model_to_string() == expected
    kinds = [warning.category for warning in said]
    assert (kinds.count(UserWarning), kinds.count(GuaranteeWarning)) == (2, 1)
    assert {warning.filename for warning in said} == {__file__}
    assert "grown again by 2 of 2 workers" in str(said[-1].message)


@pytest.mark.filterwarnings("ignore:a worker was lost")
def test_a_cluster_that_loses_workers_again_and_again_is_given_up(client, monkeypatch):
    model = boosted()
    monkeypatch.setattr(module, "slopes", losing(100))
    with pytest.raises(WorkerLostError, match=r"a worker was lost while trees were grown|is gone"):
        model.fit(ONE, client=client)
    assert not hasattr(model, "booster_")


@pytest.mark.slow
def test_a_killed_worker_is_survived(monkeypatch):
    """Two processes, one of which is killed amid the growing; its nanny starts another."""
    monkeypatch.setattr(parted_boosted, "RETURN", 300.0)  # where tests share the cores
    model = boosted(n_estimators=200)
    with local_cluster(2) as cluster_client:
        expected = model.fit(TWO, client=cluster_client).booster_.model_to_string()
        victims = [min(cluster_client.run(os.getpid).values())]

        def kill(step):
            if step.n_trees >= 5 and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        monkeypatch.setattr(boosted_module, "progress_callbacks", lambda *_: nullcontext((kill,)))
        with pytest.warns(UserWarning, match="grown again by 2 of 2 workers"):
            text = model.fit(TWO, client=cluster_client).booster_.model_to_string()
    assert not victims
    assert text == expected


@pytest.mark.slow
def test_what_is_lost_before_it_is_fetched_is_missed(monkeypatch):
    """A task may be done, its worker die, and nobody else be allowed to do it again."""
    monkeypatch.setattr(cluster_module, "LOOK", 0.2)
    with local_cluster(2) as cluster_client:
        address = addresses(cluster_client)[0]
        task = cluster_client.submit(bytes, 10, workers=[address], pure=False)
        cluster_module.wait_for_futures(cluster_client, [task], [address])
        os.kill(cluster_client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
        with pytest.raises(WorkerLostError, match="gone"):
            gather_results(cluster_client, [task], [address])


def test_links_are_cut_for_those_who_wait():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        ends, other_link = (
            socket.create_connection(server.getsockname()),
            socket.create_connection(other.getsockname()),
        )
        with ends, other_link, server.accept()[0] as near, other.accept()[0] as far:
            heard = []

            def wait():  # as LightGBM does: nothing received is no end to it
                try:
                    while True:
                        heard.append(near.recv(1))
                except OSError as error:
                    heard.append(error)

            waiter = threading.Thread(target=wait)
            waiter.start()
            assert lightgbm_cluster.cut_links({server.getsockname()}) == 2
            waiter.join(10.0)
            assert isinstance(heard[-1], OSError)
            far.sendall(b"x")
            assert other_link.recv(1) == b"x"
    before = len([*Path("/dev/fd").iterdir()])
    assert lightgbm_cluster.cut_links({("127.0.0.1", 1)}) == 0
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_links_that_are_over_are_cut_too():
    """After a send to an end that has gone the system forgets its address, and recv gives nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as fresh:
        over = socket.create_connection(server.getsockname())
        server.accept()[0].close()
        with over:
            over.send(b"x")
            until = time.monotonic() + 10.0
            while time.monotonic() < until:
                try:
                    over.getpeername()
                except OSError:
                    break
            assert over.recv(1) == b""  # for ever
            assert lightgbm_cluster.cut_links({("127.0.0.1", 1)}) == 1
            with pytest.raises(OSError, match="socket"):
                over.recv(1)
        fresh.bind(("127.0.0.1", 0))  # was never connected: left alone
        fresh.listen()


def test_progress_is_shown(client, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boosted(verbose=1).fit(TWO, client=client)
    shown = capsys.readouterr()
    assert "softmax, lightgbm, 2 workers" in shown.err
    assert "8 trees" in shown.err
    assert "ports" not in shown.out


def test_main_names():
    """Else LightGBM's estimator would add its own default beside an alias."""
    booster = ClusteredLightGBM()
    assert [booster.main_name(name) for name in ("min_data", "reg_lambda", "seed")] == [
        "min_data_in_leaf",
        "lambda_l2",
        "seed",
    ]


def test_a_metric_that_looks_at_all_grades_is_refused(client):
    with pytest.raises(ParameterError, match="max_grade"):
        boosted("err[max_grade=data]").fit(TWO, client=client)
