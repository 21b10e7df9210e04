"""Checkpoints: a fit that ended anywhere goes on to the same model; files of other fits are refused."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import concordant
from concordant import BoostedRanker, Comparer, LinearRanker, LinearRankerCV, PairRanker
from concordant.exceptions import ModelFileError, ParameterError
from concordant.metrics.convention import Convention
from concordant.rankers.boosters import tree_training_set as segments
from concordant.rankers.recipe import metric_fingerprint, surrogate_fingerprint
from concordant.solvers import checkpoint as journals
from concordant.solvers.checkpoint import (
    JOURNAL,
    SNAPSHOT,
    Checkpoint,
    Journal,
    Snapshot,
    digest,
    parameter_text,
    recall_or_run,
)
from concordant.surrogates import ListwiseHinge
from tests.helpers.checkpointed import (
    KINDS,
    PAIRS,
    Ended,
    X,
    data_of,
    ending,
    fine,
    fitted,
    made_of,
    model_of,
    qid,
    slowly,
    y,
)

pytestmark = pytest.mark.once

every_kind = pytest.mark.parametrize("name", KINDS)
KILLED = "newton", "cv", "pairs", "xgboost", "catboost", "comparer"  # `python -m benchmarks kill_resume`: all
DRAWN = "lightgbm", "xgboost"  # begin anew at each edge, with other draws than without a checkpoint


@pytest.fixture(autouse=True)
def often():
    with fine(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give an uninterrupted fit with a checkpoint: what the model is made of, the writes, and the folder."""
    fits = {}

    def give(name):
        if name not in fits:
            folder = tmp_path_factory.mktemp("whole") / "folder"
            with fine(), warnings.catch_warnings(), ending(10**9) as writes:
                warnings.simplefilter("ignore")
                fits[name] = made_of(fitted(name, folder)), writes[0], folder
        return fits[name]

    return give


def copied(folder, target):
    """Copy a checkpoint; its files by name."""
    target.mkdir()
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return {path.name: path.read_bytes() for path in target.iterdir()}


# ---------------------------------------------------------------- the same model


@every_kind
def test_a_checkpoint_changes_nothing_but_draws(name, whole):
    same = made_of(fitted(name)) == whole(name)[0]
    assert same or name in DRAWN


@pytest.mark.parametrize("booster", DRAWN)
def test_trees_without_draws_are_the_same_as_without_a_checkpoint(booster, tmp_path):
    options = {"booster": booster, "subsample": 1.0, "colsample": 1.0, "early_stopping": None}
    plain, with_checkpoint = fitted(booster, **options), fitted(booster, tmp_path / "a", **options)
    np.testing.assert_array_equal(with_checkpoint.predict(X), plain.predict(X))
    assert with_checkpoint.certificate_.optimality == plain.certificate_.optimality


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_fit_that_ended_at_a_write_goes_on(name, share, whole, tmp_path):
    model, n_writes, _ = whole(name)
    rng = random.Random(n_writes)
    for number in {0, n_writes - 1, rng.randrange(n_writes)}:
        with ending(number, share), pytest.raises(Ended):
            fitted(name, tmp_path / f"{number}")
        assert made_of(fitted(name, tmp_path / f"{number}")) == model


@every_kind
def test_a_fit_that_ends_again_and_again_goes_on(name, whole, tmp_path):
    model, n_writes, _ = whole(name)
    rng, ends = random.Random(n_writes), 0
    while True:
        assert ends <= n_writes
        try:
            with ending(rng.randint(1, max(n_writes // 4, 1)), 0.3):
                model_at_end = fitted(name, tmp_path / "folder")
        except Ended:
            ends += 1
            continue
        break
    assert ends >= 1
    assert made_of(model_at_end) == model


@every_kind
def test_a_finished_fit_does_no_work_again(name, whole, tmp_path, monkeypatch):
    model, _, folder = whole(name)
    before = copied(folder, tmp_path / "copy")
    monkeypatch.setattr(Journal, "append", None)
    monkeypatch.setattr(Snapshot, "write", None)
    assert made_of(fitted(name, tmp_path / "copy")) == model
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()} == before


def test_a_finished_linear_fit_does_not_evaluate(whole, tmp_path, monkeypatch):
    copied(whole("lbfgs")[2], tmp_path / "copy")
    monkeypatch.setattr("concordant.solvers.objective.LinearObjective.value_and_grad", None)
    assert made_of(fitted("lbfgs", tmp_path / "copy")) == whole("lbfgs")[0]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_processes_go_on(whole, tmp_path, monkeypatch):
    """At a random moment of each kind: the process is gone, without a word."""
    context = multiprocessing.get_context("forkserver")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # else it is not preloaded
    libraries = "lightgbm", "xgboost", "catboost", "concordant.rankers.networks.start"
    context.set_forkserver_preload(["tests.helpers.checkpointed", *libraries])
    rng, hits = random.Random(0), 0
    for name in KILLED:
        model, n_writes, _ = whole(name)
        folder, pause = tmp_path / name, 0.2 / n_writes
        process = context.Process(target=slowly, args=(name, folder, pause))
        process.start()
        deadline = time.monotonic() + 60.0
        while not folder.exists() and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        process.join()
        hits += process.exitcode == -signal.SIGKILL
        assert made_of(fitted(name, folder)) == model, name
    assert hits > len(KILLED) // 2


CORNERS = {  # of trees
    "nothing to split by": (np.ones_like(X), {}),
    "no split": (X, {"min_samples_leaf": 150}),
    "missing values": (np.where(np.quantile(X, 0.9) < X, np.nan, X), {}),
    "categories": (pd.DataFrame({"c": pd.Categorical(qid % 3), "x": X[:, 0]}), {}),
}


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_of_trees_go_on(booster, corner, tmp_path):
    rows, other = CORNERS[corner]

    def model(folder):
        return model_of(booster, folder, **{"early_stopping": None, **other}).fit(rows, y, qid=qid)

    whole = model(tmp_path / "whole")
    with ending(0), pytest.raises(Ended):
        model(tmp_path / "a")
    resumed = model(tmp_path / "a")
    np.testing.assert_array_equal(resumed.predict(rows), whole.predict(rows))
    learned = resumed.n_estimators_, resumed.stopped_by_, resumed.certificate_.optimality
    assert learned == (whole.n_estimators_, whole.stopped_by_, whole.certificate_.optimality)


@pytest.mark.parametrize("name", ["lbfgs", "cv", "lightgbm", "catboost"])
def test_ctrl_c_does_not_end_a_folder(name, whole, tmp_path, monkeypatch):
    """The trees or weights so far are given, with a warning; the next call goes on."""
    owner, method = (Journal, "append") if name in ("lbfgs", "cv") else (Snapshot, "write")
    real, calls = getattr(owner, method), []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3 and owner is Journal:
            raise KeyboardInterrupt
        return real(*arguments)

    def pressed(step):
        if step.n_trees == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, method, interrupted)
        try:
            fitted(name, tmp_path / "a", **({} if owner is Journal else {"callback": pressed}))
        except KeyboardInterrupt:  # before there was anything to give
            assert owner is Journal
    assert made_of(fitted(name, tmp_path / "a")) == whole(name)[0]


# ---------------------------------------------------------------- the check can fail


def forged(folder, number, change):
    """Change the numbers of a record of a journal, and give it a right checksum."""
    path = folder / JOURNAL
    data, start = path.read_bytes(), len(journals.JOURNAL_MAGIC)
    for _ in range(number):
        start += journals.HEAD + journals.LENGTH.unpack_from(data, start)[0]
    (length,) = journals.LENGTH.unpack_from(data, start)
    payload = data[start + journals.HEAD :][:length]
    facts, _, numbers = payload.partition(b"\n")
    changed = facts + b"\n" + change(np.frombuffer(numbers, "<f8")).astype("<f8").tobytes()
    path.write_bytes(data[:start] + journals.frame_record(changed) + data[start + journals.HEAD + length :])


def test_a_forged_record_is_noticed_by_the_step_that_follows(whole, tmp_path):
    copied(whole("lbfgs")[2], tmp_path / "copy")
    forged(tmp_path / "copy", 2, lambda numbers: numbers * 1.01)
    with pytest.raises(ModelFileError, match="its steps differ from those of this fit"):
        fitted("lbfgs", tmp_path / "copy")


def test_another_model_is_seen_to_be_another(whole, tmp_path):
    """The comparison of models that all of this rests on fails where a resume is wrong in one bit."""
    model, n_writes, folder = whole("sgd")
    copied(folder, tmp_path / "copy")
    forged(tmp_path / "copy", n_writes - 1, lambda numbers: np.nextafter(numbers, 9.0))
    assert made_of(fitted("sgd", tmp_path / "copy")) != model
    file = Snapshot(Checkpoint(tmp_path / "trees", {}, ""))
    with ending(1), pytest.raises(Ended):
        fitted("lightgbm", tmp_path / "trees")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoint, "check", lambda *_: None)
        facts, arrays = file.read()
    file.write({**facts, "rounds": facts["rounds"] - 1}, arrays)
    assert made_of(fitted("lightgbm", tmp_path / "trees")) != whole("lightgbm")[0]


# ---------------------------------------------------------------- other fits


OTHER = {  # kind -> other parameters, and what is said
    "lbfgs": ({"alpha": 0.5}, "alpha=.*, not 0.5"),
    "newton": ({"solver": "lbfgs"}, "solver=newton, not lbfgs"),
    "sgd": ({"random_state": 3}, "random_state=0, not 3"),
    "torch": ({"device": None}, "device=cpu, not None"),
    "cv": ({"alphas": [1.0, 0.2]}, "alphas="),
    "maxmargin": ({"metric": "ndcg@3"}, "metric=ndcg@5, not ndcg@3"),
    "pairs": ({"features": ("difference",)}, "features="),
    "pairs and items": ({"metric": "pd"}, "metric=ap, not pd"),
    "lightgbm": ({"learning_rate": 0.2}, "learning_rate=0.05, not 0.2"),
    "xgboost": ({"booster": "lightgbm"}, "library="),
    "catboost": ({"early_stopping": 6}, "early_stopping=5, not 6"),
    "neural": ({"dropout": 0.3}, "dropout=0.2, not 0.3"),
    "comparer": ({"C": 2.0}, "C=1.0, not 2.0"),
    "comparer sgd": ({"random_state": 4}, "seed=0, not 4"),
    "comparer libsvm": ({"kernel": "linear"}, "kernel='rbf', not 'linear'|gamma="),
    "comparer lp": ({"formulation": "qp"}, "formulation='lp', not 'qp'"),
    "comparer nystroem": ({"n_components": 10}, "n_components=20, not 10"),
    "comparer hard": ({"C": 1.0}, "C=inf, not 1.0"),
}


@every_kind
def test_folders_of_other_fits_are_refused(name, whole, tmp_path):
    before = copied(whole(name)[2], tmp_path / "copy")
    other, words = OTHER[name]
    with pytest.raises(ModelFileError, match=words) as caught:
        fitted(name, tmp_path / "copy", **other)
    assert "delete it, or name another folder" in str(caught.value)
    (rows, labels), rest = data_of(name)
    flipped = rows.copy()
    flipped.flat[7] += 1e-9
    with pytest.raises(ModelFileError, match="other data"):
        model_of(name, tmp_path / "copy").fit(flipped, labels, **rest)
    changed = labels.copy()
    changed[0] = 0 if labels[0] else 1
    with pytest.raises(ModelFileError, match="other data"):
        model_of(name, tmp_path / "copy").fit(rows, changed, **rest)
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()} == before


@pytest.mark.parametrize("name", ["lbfgs", "comparer lp", "lightgbm", "pairs", "neural"])
def test_folders_of_other_versions_are_refused(name, whole, tmp_path, monkeypatch):
    copied(whole(name)[2], tmp_path / "copy")
    monkeypatch.setattr(concordant, "__version__", "99.1")
    with pytest.raises(ModelFileError, match=r"written by concordant \S+, and this is 99.1"):
        fitted(name, tmp_path / "copy")


def test_another_booster_version_is_refused(whole, tmp_path, monkeypatch):
    copied(whole("lightgbm")[2], tmp_path / "copy")
    monkeypatch.setattr("lightgbm.__version__", "99.1")
    with pytest.raises(ModelFileError, match=r"lightgbm=\S+, not 99.1"):
        fitted("lightgbm", tmp_path / "copy")


@pytest.mark.parametrize(("name", "other"), [("cv", {"tol": 1e-4}), ("comparer", {"C": 2.0})])
def test_a_deleted_journal_takes_its_parts_along(name, other, whole, tmp_path):
    copied(whole(name)[2], tmp_path / "a")
    assert len(list((tmp_path / "a").glob("*.journal"))) > 1
    (tmp_path / "a" / "mine.journal").write_text("of somebody else")
    (tmp_path / "a" / JOURNAL).unlink()  # as the hint says
    assert made_of(fitted(name, tmp_path / "a", **other)) == made_of(fitted(name, **other))
    assert (tmp_path / "a" / "mine.journal").read_text() == "of somebody else"


@pytest.mark.parametrize(("first", "second"), [("lbfgs", "lightgbm"), ("pairs", "sgd"), ("cv", "lbfgs")])
def test_one_folder_is_of_one_kind_of_fit(first, second, whole, tmp_path):
    copied(whole(first)[2], tmp_path / "copy")
    with pytest.raises(ModelFileError, match=r"another kind of fit|estimator="):
        fitted(second, tmp_path / "copy")


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # of weights of items
def test_weights_validation_and_warm_starts_are_part_of_a_fit(tmp_path):
    model = LinearRanker(checkpoint=tmp_path / "w").fit(X, y, qid=qid)
    with pytest.raises(ModelFileError, match="other data"):
        LinearRanker(checkpoint=tmp_path / "w").fit(
            X, y, qid=qid, sample_weight=1.0 + (np.arange(len(y)) == 3)
        )
    with pytest.raises(ModelFileError, match="other data"):
        LinearRanker(checkpoint=tmp_path / "w").fit(X, y, qid=qid, query_weight=1.0 + (qid == qid[0]))
    with pytest.raises(ModelFileError, match="other weights than this warm start"):
        model.set_params(warm_start=True).fit(X, y, qid=qid)
    search = LinearRankerCV(alphas=[1.0], checkpoint=tmp_path / "v")
    search.fit(X, y, qid=qid, eval_set=(X, y, qid))
    with pytest.raises(ModelFileError, match=r"other data|folds"):
        search.fit(X, y, qid=qid, eval_set=(X, np.roll(y, 1), qid))


def test_validation_and_warm_starts_of_trees_are_part_of_a_fit(tmp_path):
    pytest.importorskip("lightgbm")
    trees = BoostedRanker(n_estimators=3, n_jobs=1, checkpoint=tmp_path / "t")
    trees.fit(X, y, qid=qid, eval_set=(X, y, qid))
    with pytest.raises(ModelFileError, match="other data"):
        trees.fit(X, y, qid=qid, eval_set=(X, np.roll(y, 1), qid))
    trees.set_params(warm_start=True, n_estimators=3, checkpoint=tmp_path / "s").fit(X, y, qid=qid)
    trees.set_params(n_estimators=5).fit(X, y, qid=qid)
    trees.set_params(n_estimators=6)
    with pytest.raises(ModelFileError, match="n_estimators=5, not 6"):
        trees.fit(X, y, qid=qid)


def test_user_functions_are_distinguished(tmp_path):
    names = {"features": lambda left, right: left - right}, {"features": lambda left, right: right - left}
    PairRanker("pd", **names[0], checkpoint=tmp_path / "p").fit(X, y, qid=qid)
    with pytest.raises(ModelFileError, match="other data"):
        PairRanker("pd", **names[1], checkpoint=tmp_path / "p").fit(X, y, qid=qid)
    kernels = (lambda a, b: a @ b.T), (lambda a, b: (a @ b.T) ** 3)
    Comparer(kernels[0], calibration=0, checkpoint=tmp_path / "c").fit(*PAIRS)
    with pytest.raises(ModelFileError, match="other data"):
        Comparer(kernels[1], calibration=0, checkpoint=tmp_path / "c").fit(*PAIRS)


def steep(power, field="discount"):
    """Give a metric with a function in its convention: one name for all powers."""
    rules = {"discount": lambda rank: 1.0 / np.asarray(rank, dtype=float) ** power}
    rules["gain"] = lambda grade: np.asarray(grade, dtype=float) ** power
    return concordant.metric("dcg@5", convention=Convention(**{field: rules[field]}))


@pytest.mark.parametrize("field", ["gain", "discount"])
@pytest.mark.parametrize("name", ["lbfgs", "cv", "lightgbm", "neural"])
def test_functions_in_a_convention_are_distinguished(name, field, tmp_path):
    options = {"max_iter": 1} if name in ("lbfgs", "cv") else {}
    fitted(name, tmp_path / "a", metric=steep(0.5, field), **options)
    fitted(name, tmp_path / "a", metric=steep(0.5, field), **options)  # another function that gives the same
    with pytest.raises(ModelFileError, match="written with metric="):
        fitted(name, tmp_path / "a", metric=steep(3.0, field), **options)


def test_surrogates_of_metrics_are_distinguished():
    texts = {surrogate_fingerprint(ListwiseHinge(steep(power))) for power in (0.5, 0.5, 3.0)}
    assert len(texts) == 2
    bent = concordant.metric("dcg@5", convention=Convention(discount=partial(Bent(), np.ones(1))))
    assert "0x" not in surrogate_fingerprint(ListwiseHinge(bent))


def test_rules_that_end_are_distinguished_to_their_end():
    tables = np.array([1.0, 0.5, 0.25]), np.array([1.0, 0.5, 0.125])
    rules = [partial(lambda table, rank: table[rank - 1], table) for table in tables]
    texts = {
        metric_fingerprint(concordant.metric("dcg@3", convention=Convention(discount=rule))) for rule in rules
    }
    assert len(texts) == 2
    assert metric_fingerprint(concordant.metric("ndcg@5")) == "ndcg@5"


def test_a_linear_fit_may_be_given_more_iterations(tmp_path):
    options = {"metric": "ndcg@5", "tol": 1e-12}
    for max_iter in (1, 3, 50):
        model = LinearRanker(**options, max_iter=max_iter, checkpoint=tmp_path / "a").fit(X, y, qid=qid)
    assert made_of(model) == made_of(LinearRanker(**options, max_iter=50).fit(X, y, qid=qid))


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_warm_starts_of_trees_go_on(booster, tmp_path):
    pytest.importorskip(booster)

    def begun():
        options = {"booster": booster, "n_estimators": 3, "n_jobs": 1, "warm_start": True, "subsample": 0.7}
        return BoostedRanker(**options).fit(X, y, qid=qid)

    model = begun().set_params(n_estimators=14, checkpoint=tmp_path / "a").fit(X, y, qid=qid)
    assert model.n_estimators_ == 14
    with ending(1), pytest.raises(Ended):
        begun().set_params(n_estimators=14, checkpoint=tmp_path / "b").fit(X, y, qid=qid)
    resumed = begun().set_params(n_estimators=14, checkpoint=tmp_path / "b").fit(X, y, qid=qid)
    assert made_of(resumed) == made_of(model)


# ---------------------------------------------------------------- damaged files


def test_a_journal_cut_at_any_length_gives_its_whole_records(tmp_path):
    checkpoint, path = Checkpoint(tmp_path / "a", {"alpha": "1"}, "data"), tmp_path / "a" / JOURNAL
    sizes, results = [], [(1.0, np.arange(3.0)), (np.eye(2),), (np.nan, np.empty(0), -0.0)]
    with Journal(checkpoint) as journal:
        for number, result in enumerate(results):
            sizes.append(path.stat().st_size)
            recall_or_run(journal, "step", (number,), lambda result=result: result)
    data = path.read_bytes()
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        with Journal(checkpoint) as journal:
            records = [journal.recall(journals.step_key("step", (number,))) for number in range(len(results))]
        n_whole = sum(length >= size for size in [*sizes[1:], len(data)])
        assert [record is not None for record in records] == [
            number < n_whole for number in range(len(results))
        ]
        for record, result in zip(records[:n_whole], results, strict=False):
            assert [part.tobytes() for part in record] == [np.asarray(part).tobytes() for part in result]
        assert path.read_bytes() == data[: [*sizes, len(data)][n_whole]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lbfgs", "cv", "comparer"])
def test_a_fit_goes_on_from_a_cut_journal(name, whole, tmp_path):
    model, _, folder = whole(name)
    data, rng, target = (folder / JOURNAL).read_bytes(), random.Random(5), tmp_path / "copy"
    copied(folder, target)
    for length in (0, 7, *rng.sample(range(len(data)), 18)):
        (target / JOURNAL).write_bytes(data[:length])
        assert made_of(fitted(name, target)) == model


@pytest.mark.parametrize("name", ["lbfgs", "comparer lp", "pairs", "lightgbm", "catboost", "neural"])
def test_flipped_bits_never_give_another_model(name, whole, tmp_path):
    model, _, folder = whole(name)
    copied(folder, tmp_path / "copy")
    (path,) = [p for p in (tmp_path / "copy").iterdir() if p.name in (JOURNAL, SNAPSHOT)]
    data, rng, refused = path.read_bytes(), random.Random(6), 0
    for _ in range(40):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            assert made_of(fitted(name, tmp_path / "copy")) == model
        except ModelFileError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("name", ["lbfgs", "pairs", "xgboost"])
@pytest.mark.parametrize("contents", [b"\x00" * 500, b"concordant", b"\n", os.urandom(300), b"[1, 2]\n"])
def test_other_files_are_refused(name, contents, whole, tmp_path):
    copied(whole(name)[2], tmp_path / "copy")
    (path,) = (tmp_path / "copy").iterdir()
    path.write_bytes(contents)
    if path.name == JOURNAL and journals.JOURNAL_MAGIC.startswith(contents):  # begun, and cut off
        assert made_of(fitted(name, tmp_path / "copy")) == whole(name)[0]
        return
    with pytest.raises(ModelFileError, match="this version cannot read it"):
        fitted(name, tmp_path / "copy")


RECORDS = {
    "no JSON": b"{",
    "a list": b"[1]\n",
    "no step": b'{"shapes": [[]]}\n' + b"\0" * 8,
    "no shapes": None,
    "other shapes": [[3]],
    "text": "many",
    "half a number": [[]],
}


@pytest.mark.parametrize("kind", RECORDS)
def test_records_that_say_nothing_are_refused(kind, tmp_path):
    """With right checksums: whoever wrote them."""
    checkpoint = Checkpoint(tmp_path / "a", {"alpha": "1"}, "data")
    with Journal(checkpoint) as journal:
        recall_or_run(journal, "step", (1.0,), lambda: (2.0,))
    step = journals.step_key("step", (1.0,))
    payload = RECORDS[kind]
    if not isinstance(payload, bytes):
        facts = {"step": step} | ({} if payload is None else {"shapes": payload})
        payload = json.dumps(facts).encode() + b"\n" + b"\0" * (5 if kind == "half a number" else 8)
    path = tmp_path / "a" / JOURNAL
    head = len(journals.JOURNAL_MAGIC)
    (length,) = journals.LENGTH.unpack_from(path.read_bytes(), head)
    path.write_bytes(path.read_bytes()[: head + journals.HEAD + length] + journals.frame_record(payload))
    with Journal(checkpoint) as journal, pytest.raises(ModelFileError, match=r"record|steps"):
        journal.recall(step)


def test_journals_of_parts_are_distinguished(tmp_path):
    checkpoint = Checkpoint(tmp_path / "a", {}, "data")
    with Journal(checkpoint) as journal:
        with journal.within("one") as part:
            recall_or_run(part, "step", (), lambda: (2.0,))
        (tmp_path / "a" / "one.journal").rename(tmp_path / "a" / "two.journal")
        with pytest.raises(ModelFileError, match="another part"), journal.within("two"):
            pass
    with pytest.raises(ModelFileError, match="not open"):
        journal.append("step", ())


# ---------------------------------------------------------------- the folder


HOLDER = """
import sys
from pathlib import Path
from concordant.solvers.checkpoint import Checkpoint
with Checkpoint(Path(sys.argv[1]), {}, "").lock(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_has_one_fit_at_a_time(tmp_path, whole):
    pytest.importorskip("fcntl")
    for file, names in ((JOURNAL, ("lbfgs", "cv", "comparer")), (SNAPSHOT, ("pairs", "catboost", "neural"))):
        command = [sys.executable, "-c", HOLDER, str(tmp_path / file), file]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process:
            assert process.stdout.readline() == b"held\n"
            for name in names:
                with pytest.raises(ModelFileError, match="another fit is writing to it"):
                    fitted(name, tmp_path / file)
            process.kill()
        assert (
            made_of(fitted(names[0], tmp_path / file)) == whole(names[0])[0]
        )  # a lock ends with its process


@pytest.mark.parametrize("name", ["lbfgs", "cv", "comparer", "pairs", "xgboost", "catboost", "neural"])
def test_folders_that_cannot_be_written_to_are_refused(name, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(ModelFileError, match="cannot be made or written to"):
            fitted(name, folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only to root")
def test_read_only_folders_are_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ModelFileError, match="cannot be made or written to"):
            fitted("lbfgs", tmp_path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["lbfgs", "pairs", "lightgbm"])
def test_a_full_disk_is_named(name, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with ending(1), pytest.raises(Ended):
        fitted(name, tmp_path / "a")
    monkeypatch.setattr("concordant.solvers.checkpoint.np.savez", lambda *_, **__: full())
    monkeypatch.setattr(Journal, "open_stream", full)
    with pytest.raises((ModelFileError, OSError), match="No space left"):
        fitted(name, tmp_path / "a")


@every_kind
def test_what_is_no_folder_is_refused(name):
    for wrong in (3, "", b"folder", ["a"], "a\0b", "~nosuchuser/x", "a\ud800"):
        with pytest.raises(ParameterError, match="a folder or None"):
            fitted(name, wrong)


@every_kind
def test_the_folder_is_a_parameter_like_others(name, tmp_path):
    model = model_of(name, tmp_path / "a")
    assert clone(model).checkpoint == tmp_path / "a"
    assert not (tmp_path / "a").exists()
    assert KINDS[name][0]().checkpoint is None


@pytest.mark.parametrize(
    "model",
    [LinearRanker(solver="sgd"), BoostedRanker(n_jobs=1), BoostedRanker(booster="catboost")],
    ids=["sgd", "lightgbm", "catboost"],
)
def test_what_is_drawn_needs_a_seed(model, tmp_path):
    with pytest.raises(ParameterError, match="checkpoint needs a random_state"):
        model.set_params(random_state=None, checkpoint=tmp_path).fit(X, y, qid=qid)


def test_catboost_does_not_warm_start_in_a_folder(tmp_path):
    model = fitted("catboost", early_stopping=None).set_params(warm_start=True, n_estimators=14)
    with pytest.raises(ParameterError, match="checkpoint and warm_start do not work together"):
        model.set_params(checkpoint=tmp_path / "a").fit(X, y, qid=qid)
    assert model.n_estimators_ == 11


def test_catboost_knows_all_rounds_at_once(tmp_path):
    """Others of its parameters follow from their number: few would be refused by a snapshot of many."""
    options = {"n_estimators": 205, "early_stopping": None, "max_leaf_nodes": 3}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segments, "SEGMENT", 100)
        with ending(0), pytest.raises(Ended):
            fitted("catboost", tmp_path / "a", **options)
        resumed = fitted("catboost", tmp_path / "a", **options)
    assert made_of(resumed) == made_of(fitted("catboost", **options))


def test_catboost_models_do_not_name_the_folder(tmp_path):
    plain, with_checkpoint = fitted("catboost"), fitted("catboost", tmp_path / "a")
    assert "train_dir" not in with_checkpoint.booster_.get_params()
    np.testing.assert_array_equal(with_checkpoint.feature_importances_, plain.feature_importances_)
    metadata = dict(with_checkpoint.booster_.get_metadata().items())
    assert str(tmp_path) not in str(metadata)


def test_candidates_of_a_search_do_not_share_a_folder(tmp_path):
    """Each is another fit: the second one is refused, and not given the first one's weights."""
    with config_context(enable_metadata_routing=True):
        model = LinearRanker(checkpoint=tmp_path / "a").set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, error_score="raise")
        with pytest.raises(ModelFileError, match="delete it, or name another folder"):
            search.fit(X, y, qid=qid)


def test_fits_on_a_device_go_on(tmp_path):
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")
    for name in ("lbfgs", "cv", "neural"):
        options = {"device": "cuda"} | ({"amp": False} if name == "neural" else {})
        with ending(3), pytest.raises(Ended):
            fitted(name, tmp_path / name, **options)
        np.testing.assert_array_equal(
            fitted(name, tmp_path / name, **options).predict(X), fitted(name, **options).predict(X)
        )


def test_callbacks_and_interrupts_do_not_end_a_folder(tmp_path):
    """A fit that its callback ended is gone past next time."""
    for name in ("lbfgs", "lightgbm", "catboost"):
        short = fitted(name, tmp_path / name, callback=lambda step: getattr(step, "n_trees", 5) >= 5)
        assert made_of(fitted(name, tmp_path / name)) == made_of(fitted(name, tmp_path / f"{name} whole"))
        assert made_of(short) != made_of(fitted(name, tmp_path / name))


# ---------------------------------------------------------------- pieces


def test_a_digest_reads_everything():
    values = [
        np.arange(3.0),
        np.arange(3),
        np.arange(3.0).reshape(3, 1),
        None,
        np.array(["a", None], dtype=object),
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(*values) != digest(*values[::-1])
    assert digest(np.asfortranarray(np.eye(3)[:2])) == digest(np.eye(3)[:2])


def test_parameters_have_one_spelling():
    assert parameter_text(np.float32(0.5)) == parameter_text(0.5) == "0.5"
    assert parameter_text(np.int8(3)) == parameter_text(3)
    assert parameter_text(digest).endswith("checkpoint.digest")


class Bent:
    """A function with a state, which has no name of its own."""

    def __call__(self, left, right):
        return left @ right.T


def test_functions_are_spelled_without_addresses():
    for function in (
        Bent(),
        partial(digest, Bent(), power=2),
        partial(Bent(), np.ones(2)),
        np.vectorize(Bent()),
    ):
        assert "0x" not in parameter_text(function)
    assert parameter_text(partial(digest, 1, power=2)) != parameter_text(partial(digest, 1, power=3))
    functions = partial(digest, 1), partial(digest, 2), partial(parameter_text, 2)
    assert len({parameter_text(function) for function in functions}) == 3


def test_what_a_killed_write_left_is_removed(whole, tmp_path):
    copied(whole("pairs")[2], tmp_path / "a")
    for left in (".checkpoint.0123abcd.tmp.npz", "..checkpoint.npz.0123abcd.tmp.probe"):
        (tmp_path / "a" / left).write_bytes(b"half")
    (tmp_path / "a" / ".checkpoint.notes.tmp.npz").write_bytes(b"of somebody else")
    fitted("pairs", tmp_path / "a")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {SNAPSHOT, ".checkpoint.notes.tmp.npz"}


def test_a_snapshot_is_on_the_disk_before_it_replaces_another(tmp_path, monkeypatch):
    calls, real = [], (os.fsync, Path.replace)
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync") or real[0](descriptor))
    monkeypatch.setattr(Path, "replace", lambda *paths: calls.append("replace") or real[1](*paths))
    Snapshot(Checkpoint(tmp_path, {}, "")).write({}, {"a": np.ones(3)})
    assert calls == ["fsync", "replace"]


def test_the_journal_costs_what_it_keeps(whole):
    """One gradient and a value for each evaluation of L-BFGS, and less than 300 bytes beside."""
    _, n_writes, folder = whole("lbfgs")
    size = (folder / JOURNAL).stat().st_size
    assert size < 1500 + (n_writes - 1) * (8 * (X.shape[1] + 2) + 300)
