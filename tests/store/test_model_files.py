"""Model files of rankers: the same to the last bit; what was cut, changed or made to harm is refused."""

import gzip
import io
import json
import os
import pickle
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc
from concordant import (
    BoostedRanker,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    NeuralRanker,
    PairRanker,
    Permutations,
    Preferences,
    describe,
    digest_of,
    load,
    metric,
    save,
    surrogates,
    synthetic,
)
from concordant._base.files import write_atomically
from concordant.cli.runs import run_folder as runs_files
from concordant.cli.shared.output import write_rows
from concordant.comparisons.ratings import Elo
from concordant.exceptions import ConcordantError, MissingExtraError, ModelFileError
from concordant.metrics.convention import PRESETS
from concordant.solvers.checkpoint import SNAPSHOT, Checkpoint, Snapshot
from concordant.store import model_file
from concordant.store.foreign import FOREIGN, check_xgboost, foreign_kind
from concordant.store.model_file import CHECKSUM, checksum_file, zip_files
from concordant.store.registry import MODELS
from concordant.store.values import Packer, Reader
from tests.store.test_persistence import npy, rewritten, same, unzipped, with_sizes, zip_of

TOY = synthetic.grades(n_queries=12, n_items=6, n_features=4, seed=0)
FRAME = pd.DataFrame(TOY.X, columns=["width", "höhe", "a b", "[x]"])
ROWS = np.arange(len(TOY.y))
MIXED = FRAME.assign(colour=pd.Categorical(np.array(["red", "blue", "grün"])[ROWS % 3]), size=ROWS % 4)
NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::concordant.exceptions.QueryWarning"),  # folds of rows, on purpose
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning"),  # baselines, on purpose
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:All weights are 0"),
    pytest.mark.filterwarnings("ignore:The groups parameter is ignored"),
]

SMALL = {"n_estimators": 5, "min_samples_leaf": 2, "n_jobs": 1}
RANKERS = {
    "linear": (LinearRanker("ndcg@5[lightgbm]"), FRAME),
    "linear without names": (LinearRanker(fit_scale=False, alpha=np.float64(0.5)), TOY.X),
    "linear of objects": (LinearRanker(metric("dcg@3[mslr]"), surrogates.Pairwise("logistic")), FRAME),
    "linear on one feature": (LinearRanker("ap", "squared", solver="newton"), TOY.X[:, :1]),
    "cv": (LinearRankerCV("ndcg", alphas=[1.0, 0.1], cv=2), FRAME),
    "cv of an array": (LinearRankerCV("err", alphas=np.array([1.0, 0.1]), cv=GroupKFold(2)), TOY.X),
    "cv shuffled": (LinearRankerCV(alphas=(1.0,), cv=KFold(2, shuffle=True, random_state=1)), TOY.X),
    "cv drawn": (LinearRankerCV(alphas=(1.0,), cv=GroupShuffleSplit(2, random_state=1)), TOY.X),
    "cv of rows": (LinearRankerCV(alphas=(1.0,), cv=[(ROWS[:36], ROWS[36:])]), TOY.X),
    "max-margin": (MaxMarginRanker(tol=1e-2), FRAME),
    "max-margin of pairs": (MaxMarginRanker("ap", "pairwise", reduction="sum", tol=1e-2), TOY.X),
    "max-margin soft": (MaxMarginRanker("rr", surrogates.PositionHinge("sum"), tol=1e-2), TOY.X),
    "pairs": (PairRanker(), FRAME),
    "pairs of pd": (PairRanker("pd", features=["difference"]), FRAME),
    **{
        f"{booster}{kind}": (BoostedRanker(booster=booster, **{**SMALL, **options}), X)
        for booster in ("lightgbm", "xgboost", "catboost")
        for kind, options, X in (
            ("", {"metric": "err"}, TOY.X),
            (" by category", {"categorical_features": ["colour", "size"], "max_leaf_nodes": 6}, MIXED),
            (" stopped early", {"n_estimators": 30, "early_stopping": 2, "learning_rate": 0.5}, FRAME),
            (
                " constrained",
                {"monotonic_cst": {"width": 1}, "subsample": 0.7, "max_leaf_nodes": None, "max_depth": 3},
                FRAME,
            ),
        )
    },
}
NETWORK = {"max_epochs": 2, "device": "cpu"}
NETWORKS = {
    "network": (NeuralRanker(hidden=(5, 3), **NETWORK), FRAME),
    "network in context": (NeuralRanker("err", context=True, transforms="quantile", **NETWORK), TOY.X),
    "linear network": (NeuralRanker("ap", hidden=(), transforms=None, early_stopping=None, **NETWORK), TOY.X),
}
ALL = [
    *(pytest.param(name, marks=()) for name in RANKERS),
    *(pytest.param(name, marks=NEEDS_TORCH) for name in NETWORKS),
]


def fitted(name):
    """A copy of a ranker, fitted; and what it was fitted to."""
    ranker, X = {**RANKERS, **NETWORKS}[name]
    return clone(ranker).fit(X, TOY.y, qid=TOY.qid), X


def scores(model, X):
    if isinstance(model, PairRanker):
        return np.concatenate([u.ravel() for u in model.predict_pairs(X, qid=TOY.qid)])
    return model.predict(X, qid=TOY.qid) if isinstance(model, NeuralRanker) else model.predict(X)


def learned(model):
    """Everything that fitting left on a model, but models of other libraries, which have no equality."""
    public = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if foreign_kind(value) is None}


def check_same(model, loaded, X):
    """A loaded model is the one that was saved, to the last bit."""
    assert type(loaded) is type(model)
    assert vars(loaded).keys() == vars(model).keys() - {"_summary"}  # the certificate was made of it
    assert same_but_splitters(learned(loaded), learned(model))
    assert scores(loaded, X).tobytes() == scores(model, X).tobytes()
    assert loaded.rank(X, qid=TOY.qid).tobytes() == model.rank(X, qid=TOY.qid).tobytes()
    assert loaded.score(X, TOY.y, qid=TOY.qid) == model.score(X, TOY.y, qid=TOY.qid)
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.certificate_.to_json() == model.certificate_.to_json()
    assert loaded.basis_ == model.basis_
    names = [getattr(estimator, "feature_names_in_", np.zeros(0)).tolist() for estimator in (loaded, model)]
    assert names[0] == names[1]


def same_but_splitters(first, second):
    """As `same`; splitters of scikit-learn have no equality, but tell all in their text."""
    return same(*({**parameters, "cv": repr(parameters.get("cv"))} for parameters in (first, second)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_loaded_ranker_is_the_same(name, tmp_path):
    model, X = fitted(name)
    save(model, tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    check_same(model, loaded, X)
    if isinstance(model, PairRanker):
        decodings = [
            [(decoding.order.tolist(), decoding.value, decoding.proven) for decoding in m.decode(X)]
            for m in (model, loaded)
        ]
        assert decodings[0] == decodings[1]
    if isinstance(model, BoostedRanker):
        assert same(loaded.feature_importances_, model.feature_importances_)
    # Equal models give equal files: the one that was loaded, and one fitted anew with its parameters.
    save(loaded, tmp_path / "b.model")
    save(clone(loaded).fit(X, TOY.y, qid=TOY.qid), tmp_path / "c.model")
    contents = (tmp_path / "a.model").read_bytes()
    assert contents == (tmp_path / "b.model").read_bytes() == (tmp_path / "c.model").read_bytes()


def test_the_check_can_fail(tmp_path):
    """A weight that differs in its last bit, or a parameter, is noticed."""
    model, X = fitted("linear")
    save(model, tmp_path / "a.model")
    for change in (
        lambda ranker: ranker.coef_.__setitem__(0, np.nextafter(ranker.coef_[0], 9.0)),
        lambda ranker: ranker.set_params(alpha=2.0),
        lambda ranker: vars(ranker).update(feature_names_in_=np.array(list("abcd"), dtype=object)),
        lambda ranker: vars(ranker).pop("scale_"),
    ):
        loaded = load(tmp_path / "a.model")
        change(loaded)
        with pytest.raises((AssertionError, ValueError)):
            check_same(model, loaded, X)


def test_every_estimator_is_among_them():
    """A new estimator does not go without a file."""
    rankers = {attribute for attribute in dir(cc) if attribute.endswith(("Ranker", "RankerCV"))}
    assert rankers <= MODELS.keys()
    tried = {type(ranker).__name__ for ranker, _ in {**RANKERS, **NETWORKS}.values()}
    assert tried == rankers


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost"])
def test_trees_go_on_growing(booster, tmp_path):
    model = BoostedRanker(booster=booster, warm_start=True, **SMALL).fit(FRAME, TOY.y, qid=TOY.qid)
    save(model, tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    model = pickle.loads(pickle.dumps(model))  # noqa: S301  # CatBoost goes on otherwise from no copy at all
    for ranker in (model, loaded):
        ranker.set_params(n_estimators=8).fit(FRAME, TOY.y, qid=TOY.qid)
    assert loaded.n_estimators_ == 8
    assert loaded.predict(FRAME).tobytes() == model.predict(FRAME).tobytes()


LABELS = {
    **dict.fromkeys(("pd", "wpd"), Preferences(ROWS[::2], ROWS[1::2], n_rows=len(ROWS))),
    "zero_one": Permutations(np.tile(np.arange(1, 7), 12)),
}
CHOICES = [
    *((f"ndcg@3[{preset}]", "auto") for preset in PRESETS),
    *((f"ap[{preset}]", "squared") for preset in PRESETS),
    *((name, "auto") for name in ("dcg", "ndcg", "err", "ap", "p@2", "wta", "rr", "auc", "pd", "wpd")),
    *((name, "squared") for name in ("eru(v=1,w=2)@3", "err[max_grade=5]", "p@2[relevant_from=2]")),
    *(("ndcg", name) for name in surrogates.SURROGATES if name not in ("plackett_luce", "listwise_hinge")),
    *(
        ("ndcg@3", loss)
        for loss in (
            surrogates.Pairwise(surrogates.huber_hinge(0.25), normalize=True),
            surrogates.Pairwise("exponential"),
            surrogates.Preorder("gain", "squared_hinge"),
            surrogates.Squared(centred=False),
            surrogates.Duchi(nu=0.5),
            cc.listwise_hinge("ndcg@3[trec_eval]"),
            surrogates.PositionHinge("pairs"),
        )
    ),
    ("zero_one", "plackett_luce"),
    ("zero_one", "squared"),
]


@pytest.mark.parametrize(("name", "loss"), CHOICES, ids=str)
def test_what_users_choose_travels(name, loss, tmp_path):
    """Metrics, conventions and losses, by name and as objects."""
    y = LABELS.get(name, TOY.y)
    for chosen_metric in (name, metric(name)):
        model = LinearRanker(chosen_metric, loss, tol=1e-2).fit(TOY.X, y, qid=TOY.qid)
        save(model, tmp_path / "a.model")
        loaded = load(tmp_path / "a.model")
        assert repr(loaded) == repr(model)
        assert (loaded.metric, loaded.surrogate_) == (model.metric, model.surrogate_)
        assert loaded.certificate_ == model.certificate_
        assert same(learned(loaded), learned(model))
        facts = describe(tmp_path / "a.model")
        assert facts["metric"] == str(metric(name))
        assert facts["convention"] == vars(metric(name).convention)
        assert facts["certificate"]["text"] == str(model.certificate_)


def test_what_a_file_says_of_itself(tmp_path):
    model, _ = fitted("lightgbm by category")
    save(model, tmp_path / "a.model")
    facts = describe(tmp_path / "a.model")
    json.dumps(facts, allow_nan=False)  # plain values
    assert (facts["class"], facts["schema"], facts["library"]) == ("BoostedRanker", 2, cc.__version__)
    assert facts["feature_names"] == MIXED.columns.tolist()
    assert facts["parameters"]["n_estimators"] == 5
    assert set(facts["versions"]) == {"numpy", "scikit-learn", "lightgbm"}
    assert facts["digest"] == digest_of(tmp_path / "a.model")


def test_of_some_parameters_nothing_is_kept(tmp_path):
    steps = []
    model = LinearRanker(callback=steps.append, verbose=0).fit(TOY.X, TOY.y, qid=TOY.qid)
    assert steps
    save(model, tmp_path / "a.model")
    assert load(tmp_path / "a.model").callback is None


def test_a_digest_is_the_models_own(tmp_path):
    model, _ = fitted("linear")
    save(model, tmp_path / "a.model")
    save(model, tmp_path / "a.model.gz")
    digest = digest_of(tmp_path / "a.model")
    assert digest == digest_of(tmp_path / "a.model.gz")
    assert same(learned(load(tmp_path / "a.model", digest=digest)), learned(model))
    save(model.set_params(alpha=3.0), tmp_path / "b.model")
    assert digest != digest_of(tmp_path / "b.model")
    with pytest.raises(ModelFileError, match=f"not {digest}"):
        load(tmp_path / "b.model", digest=digest)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_equal_models_give_equal_files_compressed_or_not(suffix, written, tmp_path, monkeypatch):
    (tmp_path / "elo").write_bytes(written["elo"])
    model = load(tmp_path / "elo")
    for name, moment in (("a", 1e9), ("b", 2e9)):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        save(model, tmp_path / f"{name}.model{suffix}")
    assert (tmp_path / f"a.model{suffix}").read_bytes() == (tmp_path / f"b.model{suffix}").read_bytes()
    assert same(learned(load(tmp_path / f"a.model{suffix}")), learned(model))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_a_file_that_is_not_there(suffix, written, tmp_path):
    missing = tmp_path / f"nowhere.model{suffix}"
    with pytest.raises(FileNotFoundError, match=r"No such file.*nowhere"):
        load(missing)
    (tmp_path / "elo").write_bytes(written["elo"])
    with pytest.raises(FileNotFoundError, match=r"No such file.*folder"):
        save(load(tmp_path / "elo"), tmp_path / "folder" / missing.name)


def test_trees_of_another_digest_are_not_parsed(tmp_path, monkeypatch):
    model, _ = fitted("lightgbm")
    save(model, tmp_path / "a.model")
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    files["booster_.trees.txt"] = files["booster_.trees.txt"].replace(b"shrinkage=0.05", b"shrinkage=0.04")
    changed = rewritten(tmp_path, manifest, files)
    monkeypatch.setitem(FOREIGN, "lightgbm", FOREIGN["lightgbm"]._replace(build=None))
    with pytest.raises(ModelFileError, match="another model"):
        load(changed, digest=digest_of(tmp_path / "a.model"))
    (tmp_path / "cut").write_bytes(zip_of(json.dumps(manifest), {"booster_.trees.txt": b""}))
    with pytest.raises(ModelFileError, match="not those that its manifest names"):
        load(tmp_path / "cut")
    monkeypatch.undo()
    (tmp_path / "whole").write_bytes((tmp_path / "a.model").read_bytes())
    load(tmp_path / "whole")


def test_trees_of_a_library_that_is_not_installed(tmp_path, monkeypatch):
    model, _ = fitted("xgboost")
    save(model, tmp_path / "a.model")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match="xgboost"):
        load(tmp_path / "a.model")
    assert describe(tmp_path / "a.model")["parameters"]["booster"] == "xgboost"


# --- what cannot be saved


def last_grade(better, worse, weights, n_items):
    del worse, weights
    return np.bincount(better, minlength=n_items)


UNSAVEABLE = {
    "f is a function": lambda: LinearRanker("pd", assume="P_f", f=last_grade).fit(
        TOY.X, LABELS["pd"], qid=TOY.qid
    ),
    "metric is .* whose text does not define it completely": lambda: LinearRanker(
        metric("ndcg", convention=PRESETS["concordant"].replace(gain=np.sqrt))
    ).fit(TOY.X, TOY.y, qid=TOY.qid),
    "features is a function": lambda: PairRanker("pd", features=lambda left, right: left - right).fit(
        TOY.X, TOY.y, qid=TOY.qid
    ),
    "surrogate.*penalty is a Penalty": lambda: LinearRanker(
        "ndcg", surrogates.Duchi(surrogates.Penalty("own", np.square, np.abs, np.abs))
    ).fit(TOY.X, TOY.y, qid=TOY.qid),
    "cv.*is a RandomState": lambda: LinearRankerCV(
        alphas=(1.0,), cv=KFold(2, shuffle=True, random_state=np.random.RandomState(0))
    ).fit(TOY.X, TOY.y, qid=TOY.qid),
    "a Pipeline cannot be saved.*\nHint: save its last step": lambda: make_pipeline(
        StandardScaler(), LinearRanker()
    ).fit(TOY.X, TOY.y),
    "a GridSearchCV cannot be saved.*\nHint: .*best_estimator_": lambda: GridSearchCV(
        LinearRanker(), {"alpha": [1.0]}, cv=2
    ).fit(TOY.X, TOY.y),
    "fit it again": lambda: fitted("linear")[0].set_params(alpha=-1.0),
}


@pytest.mark.parametrize("message", UNSAVEABLE)
def test_what_no_file_can_hold_is_refused_before_anything_is_written(message, tmp_path):
    model = UNSAVEABLE[message]()
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "a.model")
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        save(LinearRanker(), tmp_path / "a.model")


# --- written whole or not at all


def small_files(folder):
    """Files of several kinds of models, by name."""
    names = ["linear", "cv shuffled", "max-margin soft", "pairs", "lightgbm by category"]
    names += ["network"] if find_spec("torch") else []
    models = {**{name: fitted(name)[0] for name in names}, "elo": Elo().fit(["a", "b"], ["b", "c"], [1, -1])}
    for name, model in models.items():
        save(model, folder / name)
    return {name: (folder / name).read_bytes() for name in models}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return small_files(tmp_path_factory.mktemp("models"))


KILLED = """
import os, signal, sys
import concordant._base.files as text
from concordant.store import load, save

opened = text.open_binary

class Killing:
    def __init__(self, stream): self.stream = stream
    def __enter__(self): return self
    def __exit__(self, *_): self.stream.close()
    def write(self, contents):
        self.stream.write(contents[: len(contents) // 2])
        self.stream.flush()
        os.kill(os.getpid(), signal.SIGKILL)

model = load(sys.argv[1])
text.open_binary = lambda path, mode="rb": Killing(opened(path, mode)) if "w" in mode else opened(path, mode)
save(model, sys.argv[1])
"""


@pytest.mark.slow
def test_a_writer_killed_in_the_middle_leaves_the_old_file(written, tmp_path):
    path = tmp_path / "a.model"
    path.write_bytes(written["elo"])
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    half = [file for file in tmp_path.iterdir() if file != path]
    assert [0 < file.stat().st_size < len(written["elo"]) for file in half] == [True]  # it was in the middle
    assert path.read_bytes() == written["elo"]
    load(path)
    with pytest.raises(ModelFileError):
        load(half[0])


def test_a_full_disk_leaves_the_old_file(written, tmp_path, monkeypatch):
    path = tmp_path / "a.model"
    path.write_bytes(written["elo"])
    model = load(path)

    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr("concordant._base.files.open_binary", lambda *_: Full())
    with pytest.raises(OSError, match="space"):
        save(model, path)
    monkeypatch.undo()
    assert path.read_bytes() == written["elo"]
    assert list(tmp_path.iterdir()) == [path]


def snapshot_at(path):
    """Write the snapshot of a fit; its name is always the same."""
    Snapshot(Checkpoint(path.parent, {}, "")).write({}, {"a": np.zeros(1)})


WRITERS = {
    "a.model": lambda path: save(Elo().fit(["a"], ["b"], [1]), path),
    "a.model.gz": lambda path: save(Elo().fit(["a"], ["b"], [1]), path),
    "a.txt.zst": lambda path: cc.write_letor(path, [[1.0]], [1], [1]),
    "a.run": lambda path: cc.write_run(path, ["q"], ["d"], [1.0]),
    "a.parquet": lambda path: cc.write_parquet(
        pd.DataFrame({"qid": [1, 1], "grade": [0, 1], "a": [0.5, 1.0]}), path, grade="grade"
    ),
    "a.json": lambda path: cc.export(Elo().fit(["a"], ["b"], [1]), path),
    "table.csv": lambda path: write_rows(path, ["a"], [{"a": 1}]),
    "metrics.json": lambda path: runs_files.write_text(path, "{}"),
    SNAPSHOT: snapshot_at,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(name, tmp_path):
    path, write = tmp_path / name, WRITERS[name]
    before = os.umask(0o027)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640  # a new file has what the mask leaves
        contents = path.read_bytes()
        path.write_bytes(b"")
        for mode in (0o600, 0o666, 0o444):
            path.chmod(mode)
            write(path)
            assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (mode, contents)
    finally:
        os.umask(before)
    if os.geteuid() == 0:
        os.chown(path, 1234, 5678)
        write(path)
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "kept"
    for is_there in (False, True):  # a link that leads nowhere, and one to a file
        path.unlink()
        path.symlink_to(Path("far", "kept"))
        target.write_bytes(b"") if is_there else target.unlink(missing_ok=True)
        write(path)
        assert path.is_symlink()
        assert target.read_bytes() == contents
    assert [entry.name for entry in (tmp_path / "far").iterdir()] == ["kept"]
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "far"}


def test_nobody_else_reads_what_is_being_written(tmp_path):
    """The temporary file beside one of mode 0600 has that mode, too."""
    (tmp_path / "a").touch(0o600)
    with write_atomically(tmp_path / "a") as stream:
        (temporary,) = [entry for entry in tmp_path.iterdir() if entry.name != "a"]
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        stream.write(b"a")
    assert (tmp_path / "a").read_bytes() == b"a"


def test_pipes_and_devices_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["/bin/cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        cc.write_run(tmp_path / "pipe", ["q"], ["d"], [1.0])
        assert reader.communicate(timeout=60)[0] == b"q Q0 d 1 1.0 concordant\n"
    assert (tmp_path / "pipe").is_fifo()
    # What /dev/stdout leads to: a defect here would do no harm, there it would replace a file of the system.
    code = "import concordant as cc; cc.write_run('/proc/self/fd/1', ['q'], ['d'], [1.0])"
    (tmp_path / "out").write_text("before\n")
    with (tmp_path / "out").open("a") as out:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=out)
    assert (tmp_path / "out").read_text() == "before\nq Q0 d 1 1.0 concordant\n"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == b"q Q0 d 1 1.0 concordant\n"


def test_where_nothing_can_be_written(tmp_path):
    """The error names the file that was asked for, before anything else is done."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "a")
    cases = {
        "folder": IsADirectoryError,
        "missing/a": FileNotFoundError,
        "file/a": NotADirectoryError,
        "circle": OSError,
        "nowhere": FileNotFoundError,
    }
    if os.geteuid():
        (tmp_path / "closed").mkdir(0o500)
        cases["closed/a"] = PermissionError
    for name, error in cases.items():
        with pytest.raises(error, match=rf"{name}'") as caught, write_atomically(tmp_path / name):
            pytest.fail("it was opened")
        assert caught.value.filename == os.fspath(tmp_path / name)


# --- what was damaged


def outcome(contents, folder, whole):
    """What became of these bytes: "refused" by name, "same" model, or "other"; anything else is raised."""
    (folder / "tried").unlink(missing_ok=True)  # much faster than writing over it
    (folder / "tried").write_bytes(contents)
    try:
        model = load(folder / "tried")
    except ConcordantError:
        return "refused"
    return "same" if same_but_splitters(learned(model), whole) else "other"


def flipped(contents, folder, step=1):
    """Of files with one byte flipped, and of files cut: how many were refused, or loaded as the same."""
    whole = learned(loaded_from(contents, folder))
    outcomes = {"refused": 0, "same": 0, "other": 0}
    for at in range(0, len(contents), step):
        changed = contents[:at] + bytes([contents[at] ^ 0xFF]) + contents[at + 1 :]
        outcomes[outcome(changed, folder, whole)] += 1
    cut = [outcome(contents[:length], folder, whole) for length in range(0, len(contents), step)]
    return outcomes, {result: cut.count(result) for result in outcomes}


def test_bytes_flipped_and_lengths_cut(written, tmp_path):
    """A dense sample; with step 1 they are all."""
    outcomes, cut = flipped(written["elo"], tmp_path, step=5)
    assert outcomes["other"] == 0
    assert outcomes["refused"] > 0.7 * sum(
        outcomes.values()
    )  # a zip has dates and the like, which nobody reads
    assert cut == {"refused": sum(cut.values()), "same": 0, "other": 0}


def loaded_from(contents, folder):
    (folder / "whole").write_bytes(contents)
    return load(folder / "whole")


def test_the_check_of_damage_can_fail(written, tmp_path):
    """Another model with right checksums is "other"."""
    manifest, files = unzipped(written["linear"])
    files["coef_.npy"] = npy(np.zeros(4))
    changed = rewritten(tmp_path, manifest, files).read_bytes()
    whole = learned(loaded_from(written["linear"], tmp_path))
    assert outcome(changed, tmp_path, whole) == "other"
    assert outcome(written["linear"], tmp_path, whole) == "same"


def test_files_of_earlier_versions_say_only_whether_rows_have_weights(written, tmp_path):
    """They wrote true or false; the guarantee of true is that of weights of items, the weaker one."""
    manifest, files = unzipped(written["linear"])
    for weighted, condition in ((False, "every distribution"), (True, "nothing")):
        changed = json.loads(json.dumps(manifest))
        sample = changed["fitted"]["certificate_"]["fields"]["sample"]["fields"]
        sample["weighted"] = weighted
        model = load(rewritten(tmp_path, changed, files))
        assert model.certificate_.condition == condition
    assert model.certificate_.sample.weighted == "items"


# --- what was made to harm


def zip_with(entries):
    """A zip of these entries, names twice if so given."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as archive:
        for name, contents, method in entries:
            archive.writestr(zipfile.ZipInfo(name), contents, method)
    return result.getvalue()


def entries_of(contents, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        return [(name, archive.read(name), method) for name in archive.namelist()]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_twice_are_refused(written, tmp_path):
    entries = entries_of(written["elo"])
    (tmp_path / "a").write_bytes(zip_with(entries))
    load(tmp_path / "a")
    (tmp_path / "a").write_bytes(zip_with([*entries, entries[1]]))
    with pytest.raises(ModelFileError, match="one name"):
        load(tmp_path / "a")
    manifest, files = unzipped(written["elo"])
    twice = json.dumps(manifest).replace('"schema": 2', '"schema": 1, "schema": 2')
    (tmp_path / "a").write_bytes(zip_of(twice, files))
    with pytest.raises(ModelFileError, match="a name twice"):
        load(tmp_path / "a")
    (tmp_path / "a").write_bytes(zip_with([*entries, ("../../evil.npy", b"", 8)]))
    with pytest.raises(ModelFileError, match="not those that its manifest names"):
        load(tmp_path / "a")


def declared(contents, name, size):
    """The same zip, that says another size of this file, in both places where it does."""
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        entry, start = archive.getinfo(name), archive.start_dir
    changed = bytearray(contents)
    changed[entry.header_offset + 22 : entry.header_offset + 26] = size.to_bytes(4, "little")
    at = changed.index(name.encode(), start) - 46  # its record in the directory
    changed[at + 24 : at + 28] = size.to_bytes(4, "little")
    return bytes(changed)


@pytest.mark.parametrize("name", ["manifest.json", "ratings_.npy"])
def test_bombs(name, written, tmp_path):
    """Two gigabytes in a small file, whether it says so or not, and nobody makes room for them."""
    files = {entry: contents for entry, contents, _ in entries_of(written["elo"])}
    small = zip_files({**files, name: bytes(2**27)})
    assert len(small) < 2**18
    for bomb in (
        small,
        declared(small, name, 100),
        declared(small, name, 2**31 - 1),
        declared(small, name, 0),
    ):
        (tmp_path / "bomb").write_bytes(bomb)
        with pytest.raises(ModelFileError):
            load(tmp_path / "bomb", max_bytes=2**26)
    (tmp_path / "bomb").write_bytes(small)
    with pytest.raises(ModelFileError, match=r"unpacked.\nHint: load\(path, max_bytes"):
        load(tmp_path / "bomb", max_bytes=2**26)


def directory_of(n_entries, extra=b""):
    """A zip of so many entries without a name or contents."""
    lengths = struct.pack("<IIIHHH", 0, 0, 0, 0, len(extra), 0)
    entry = b"PK\x01\x02" + struct.pack("<6H", 20, 20, 0, 0, 0, 0x21) + lengths + bytes(12) + extra
    entries = entry * n_entries
    start, mark = b"PK\x06\x06" + struct.pack("<QHHII", 44, 45, 45, 0, 0), b"PK\x06\x07"
    end = start + struct.pack("<4Q", n_entries, n_entries, len(entries), 0)
    end += mark + struct.pack("<IQI", 0, len(entries), 1)
    return (
        entries
        + end
        + b"PK\x05\x06"
        + struct.pack("<4H", 0, 0, 2**16 - 1, 2**16 - 1)
        + b"\xff" * 8
        + bytes(2)
    )


EMPTY_ITEMS = b'{"fitted": [' + b"[]," * 400_000 + b"[]]}"
HUGE = {
    "entries": (directory_of(70_000), 2**30, "it has 70,000 files"),
    "entries of a small limit": (directory_of(1_100), 10**6, "it has 1,100 files"),
    "a directory": (directory_of(200, b"\x99\x99\0\0" * 8_000), 2**30, "its directory has 6,409,200 bytes"),
    "values": (zip_of(EMPTY_ITEMS.decode(), {}), 10**8, "its manifest has 800,0.. of the signs"),
    "a manifest": (zip_of('"' + "a" * 2**21 + '"', {}), 2**24, "its manifest has 2,097,154 bytes"),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("reads", [load, describe, digest_of])
def test_what_is_huge_is_refused_before_it_is_parsed(name, reads, tmp_path, monkeypatch):
    contents, max_bytes, problem = HUGE[name]
    (tmp_path / "a.gz").write_bytes(gzip.compress(contents, 1))
    monkeypatch.setattr("json.loads", None)
    if name in ("entries", "a directory"):
        monkeypatch.setattr("zipfile.ZipInfo._decodeExtra", None)
    with pytest.raises(ModelFileError, match=rf"{problem}.*\nHint: .*load\(path, max_bytes"):
        reads(tmp_path / "a.gz", max_bytes=max_bytes)


def test_large_models_load(written, tmp_path):
    """Names of 100,000 features, and 5,000 arrays."""
    names, grades = [f"feature {number}" for number in range(100_000)], [0, 1, 0, 1]
    model = LinearRanker(metric="p@1", surrogate="squared", max_iter=1)
    model.fit(np.zeros((4, 100_000)), grades, qid=[0, 0, 1, 1])
    model.feature_names_in_ = np.array(names, dtype=object)
    save(model, tmp_path / "a.model")
    assert load(tmp_path / "a.model").feature_names_in_.tolist() == names
    (tmp_path / "elo").write_bytes(written["elo"])
    model = load(tmp_path / "elo")
    for _ in range(1_000):
        model.history_.append(deepcopy(model.history_[0]))
    save(model, tmp_path / "b.model")
    assert len(load(tmp_path / "b.model").history_) == 1_001
    with pytest.raises(ModelFileError, match="files"):
        load(tmp_path / "b.model", max_bytes=10**6)


def test_a_deep_manifest_is_refused_whatever_the_limit_of_recursion(written, tmp_path):
    manifest, files = unzipped(written["elo"])
    manifest["parameters"]["k"] = "[" * 300 + '"'  # text is not nested
    (tmp_path / "a").write_bytes(zip_of(json.dumps(manifest), files))
    with pytest.raises(ModelFileError, match="k must be"):
        load(tmp_path / "a")
    deep = json.dumps(manifest).replace(json.dumps(manifest["parameters"]["k"]), "[" * 90_000 + "]" * 90_000)
    (tmp_path / "a").write_bytes(zip_of(deep, files))
    code = "import sys, concordant as cc; sys.setrecursionlimit(10**6); cc.load(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a"], check=False, capture_output=True)
    assert done.returncode == 1  # not a signal
    assert b"nested more than 100 deep" in done.stderr


def test_other_compressions_are_refused(written, tmp_path):
    """Of these Python unpacks all at once, whatever it is asked for."""
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        (tmp_path / "a").write_bytes(zip_with(entries_of(written["elo"], method)))
        with pytest.raises(ModelFileError, match="compressed in a way"):
            load(tmp_path / "a")


TIE = '"tie_"'  # its value is replaced
MANIFESTS = {
    "a future schema": ('"schema": 2', '"schema": 3'),
    "a far future": ('"schema": 2', '"schema": 99999999999999999999'),
    "a schema of truth": ('"schema": 2', '"schema": true'),
    "NaN": (TIE, "NaN"),
    "infinity": (TIE, "-Infinity"),
    "a number of many digits": (TIE, "9" * 5000),
    "a number beyond doubles": (TIE, str(10**400)),
    "depth": (TIE, "[" * 100_000 + "]" * 100_000),
    "depth of objects": (TIE, '{"values":' * 5000 + "1" + "}" * 5000),
    "no object": ("{", "[{"),
    "nothing": ('"class"', '"klass"'),
}


@pytest.mark.parametrize("change", MANIFESTS)
def test_manifests_made_to_harm(change, written, tmp_path):
    manifest, files = unzipped(written["elo"])
    text, (text_before, text_after) = json.dumps(manifest), MANIFESTS[change]
    if text_before == TIE:
        text_before, text_after = f"{TIE}: " + json.dumps(manifest["fitted"]["tie_"]), f"{TIE}: {text_after}"
    assert text_before in text
    (tmp_path / "a").write_bytes(zip_of(text.replace(text_before, text_after, 1), files))
    with pytest.raises(ModelFileError):
        load(tmp_path / "a")


@pytest.mark.parametrize(("then", "now"), [(False, ""), (True, "items")])
def test_weights_of_earlier_versions(then, now, written, tmp_path):
    """They wrote whether there were weights, not of what."""
    manifest, files = unzipped(written["linear"])
    manifest["fitted"]["certificate_"]["fields"]["sample"]["fields"]["weighted"] = then
    loaded = load(rewritten(tmp_path, manifest, files)).certificate_
    assert (loaded.sample.weighted, loaded.claim.weighted) == (now, now)


def test_the_manifest_has_its_own_checksum(written, tmp_path):
    manifest, files = unzipped(written["linear"])
    written_so = zip_of(json.dumps(manifest), files)
    manifest["convention"]["gain"] = "linear"
    changed = {name: contents for name, contents, _ in entries_of(written_so)}
    changed["manifest.json"] = json.dumps(manifest).encode()
    (tmp_path / "a").write_bytes(zip_files(changed))
    for reads in (load, describe, digest_of):
        with pytest.raises(ModelFileError, match="manifest does not have the checksum"):
            reads(tmp_path / "a")


def header(text):
    """An .npy file with this header and no entries."""
    line = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


ARRAYS = {
    "too short": npy(np.zeros(3)),
    "too many axes": npy(np.zeros((4, 1))),
    "no axis": npy(np.float64(0.0)),
    "float32": npy(np.zeros(4, np.float32)),
    "whole numbers": npy(np.zeros(4, np.int64)),
    "complex": npy(np.zeros(4, complex)),
    "other byte order": npy(np.zeros(4, ">f8")),
    "records": npy(np.zeros(4, [("a", "f8")])),
    "text": npy(np.array(["a"] * 4)),
    "objects": npy(np.array([None] * 4)),
    "entries of no bytes": header(
        "{'descr': '<U0', 'fortran_order': False, 'shape': (9223372036854775807,)}"
    ),
    "void": header("{'descr': '|V0', 'fortran_order': False, 'shape': (9223372036854775807,)}"),
    "huge": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}"),
    "long beside 0": header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0)}"),
    "below 0": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -2)}"),
    "a call": header("{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (4,)}"),
    "a pickle": pickle.dumps(np.zeros(4)),
    "an npz": zip_with([("a.npy", npy(np.zeros(4)), 8)]),
    "nothing": b"",
}


@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("name", ["coef_.npy", "solution_.w.npy"])
def test_arrays_with_right_checksums_that_are_wrong(name, change, written, tmp_path):
    manifest, files = unzipped(written["linear"])
    assert name in files
    files[name] = ARRAYS[change]
    with pytest.raises(ModelFileError):
        load(rewritten(tmp_path, manifest, files))


WRONG = {
    "linear": {
        "features": lambda m, _: m["fitted"].update(n_features_in_=5),
        "another loss": lambda m, _: m["fitted"].update(surrogate_={"part": "PlackettLuce", "fields": {}}),
        "queries": lambda m, _: m["fitted"].update(n_queries_=7),
        "items beyond memory": lambda m, _: m["fitted"]["certificate_"]["fields"]["sample"]["fields"].update(
            n_items=2**31
        ),
        "a metric": lambda m, _: m["fitted"]["certificate_"]["fields"]["claim"]["fields"].update(metric="x"),
        "no metric": lambda m, _: m["parameters"].update(metric={"metric": "accuracy"}),
        "a function's name": lambda m, _: m["parameters"].update(metric={"metric": "ndcg[gain=os.system]"}),
        "trees for weights": lambda m, f: (
            f.update({"a.txt": b"tree"}),
            m["fitted"].update(coef_={"foreign": "lightgbm", "fields": {"trees": {"bytes": "a.txt"}}}),
        ),
        "a callback": lambda m, _: m["parameters"].update(callback={"part": "Softmax", "fields": {}}),
        "a checkpoint": lambda m, _: m["parameters"].update(checkpoint="a folder"),
        "words": lambda m, _: m["parameters"].update(verbose=3),
        "names": lambda m, _: m.update(feature_names=["a", "b", "c"]),
    },
    "cv shuffled": {
        "scores": lambda _, f: f.update({"scores_.npy": npy(np.zeros((2, 2)))}),
        "folds": lambda m, _: m["parameters"]["cv"]["fields"].update(n_splits=0),
    },
    "pairs": {
        "pair features": lambda m, _: m["fitted"].update(pair_features_=["a"]),
        "diagonal": lambda _, f: f.update({"diagonal_coef_.npy": npy(np.zeros(1))}),
        "symmetric": lambda m, _: m["fitted"].update(symmetric_=not m["fitted"]["symmetric_"]),
        "groups": lambda m, _: m["fitted"].update(groups_={"tuple": ["os.system"]}),
    },
    "lightgbm by category": {
        "number of trees": lambda m, _: m["fitted"].update(n_estimators_=9),
        "features": lambda m, _: m["fitted"].update(n_features_in_=9),
        "library": lambda m, _: m["fitted"]["trees_"]["fields"].update(library="catboost"),
        "categories": lambda m, _: m["fitted"]["encoding_"]["fields"].update(categories={"items": []}),
        "trees": lambda _, f: f.update({"booster_.trees.txt": b"tree\nversion=v4\n"}),
        "no trees": lambda _, f: f.update({"booster_.trees.txt": b""}),
        "no text": lambda _, f: f.update({"booster_.trees.txt": b"\xff\xfe"}),
    },
    "network": {
        "narrow": lambda _, f: f.update({"scorer_.weights.0.npy": npy(np.zeros((5, 3), np.float32))}),
        "doubles": lambda _, f: f.update({"scorer_.weights.0.npy": npy(np.zeros((5, 4)))}),
        "not read": lambda _, f: f.update({"more.npy": npy(np.zeros(1))}),
        "features": lambda m, _: m["fitted"]["scorer_"]["fields"].update(n_features=3),
        "context": lambda m, _: m["fitted"]["scorer_"]["fields"].update(context=True),
        "dropout": lambda m, _: m["fitted"]["scorer_"]["fields"].update(dropout="1"),
        "transform": lambda m, _: m["fitted"]["scorer_"]["fields"].update(
            transforms={"tuple": [{"tuple": ["os", {"values": {}}]}]}
        ),
    },
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in WRONG for change in WRONG[name]])
def test_parts_with_right_checksums_that_do_not_fit(name, change, written, tmp_path):
    if name not in written:
        pytest.skip("torch is not installed")
    manifest, files = unzipped(written[name])
    before = json.dumps(manifest), dict(files)
    WRONG[name][change](manifest, files)
    assert (json.dumps(manifest), files) != before
    with pytest.raises(ModelFileError):
        load(rewritten(tmp_path, manifest, files))


UNREAD = {  # numbers that no prediction reads, or that may be infinite
    "network": {"scorer_.dropout"},
    "cv shuffled": {"scores_", "best_score_"},
    "lightgbm by category": {"history_"},
    "elo": {"latest_"},
}
UNREAD_PARTS = re.compile(
    r"^(certificate_|solution_|surrogate_|trees_|encoding_|sample_|machine_\.(value|gap))"
)


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_numbers_that_are_not_finite(word, written, tmp_path):
    """Every array and number of a model that predictions read: refused, by its name."""
    n_refused = 0
    for name, contents in written.items():
        arrays = unzipped(contents)[1]
        for array in [entry for entry in arrays if entry.endswith(".npy") and "transforms" not in entry]:
            manifest, files = unzipped(contents)
            values = np.load(io.BytesIO(files[array]))
            if values.dtype.kind != "f" or not values.size:
                continue
            values.flat[-1] = float(word)
            files[array] = npy(values)
            if array.removesuffix(".npy") in UNREAD.get(name, ()):
                load(rewritten(tmp_path, manifest, files))
                continue
            with pytest.raises(ModelFileError, match=r"finite"):
                load(rewritten(tmp_path, manifest, files))
            n_refused += 1
        n_refused += refused_numbers(name, contents, word, tmp_path)
    assert n_refused > 20


def refused_numbers(name, contents, word, folder):
    """How many numbers of a manifest were refused as not finite."""
    n_refused = 0
    for way in [way for way in places(unzipped(contents)[0]["fitted"]) if way]:
        manifest, files = unzipped(contents)
        *before, last = way
        node = manifest["fitted"]
        for key in before:
            node = node[key]
        field = ".".join(key for key in map(str, way) if key not in ("fields", "values"))
        is_unread = field in UNREAD.get(name, ()) or (field == "tie_" and word != "nan")
        if type(node[last]) is not float or UNREAD_PARTS.match(field):
            continue
        node[last] = {"float": word}
        if is_unread or field.startswith("history_"):
            continue
        with pytest.raises(ModelFileError, match=re.escape(field)):
            load(rewritten(folder, manifest, files))
        n_refused += 1
    return n_refused


LIGHTGBM_NUMBERS = {"leaf_value": ["nan", "inf", "-inf", "1e999"], "threshold": ["nan"]}


@pytest.mark.parametrize(
    ("name", "word"), [(name, number) for name, words in LIGHTGBM_NUMBERS.items() for number in words]
)
@pytest.mark.parametrize("linear", [False, True])
def test_trees_of_lightgbm_with_values_that_are_not_finite(name, word, linear, tmp_path):
    model = BoostedRanker(params={"linear_tree": True} if linear else {}, **SMALL)
    save(model.fit(TOY.X, TOY.y, qid=TOY.qid), tmp_path / "a.model")
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    name = "leaf_const" if linear and name == "leaf_value" else name
    changed = re.sub(rf"{name}=\S+", f"{name}={word}", files["booster_.trees.txt"].decode(), count=1)
    files["booster_.trees.txt"] = with_right_sizes(changed).encode()
    with pytest.raises(ModelFileError, match=name):
        load(rewritten(tmp_path, manifest, files))


LIGHTGBM = {  # pattern -> what stands there instead, in the first place; sizes stay right
    "a child beyond": (r"left_child=-?\d+", "left_child=99999"),
    "a leaf beyond": (r"left_child=-?\d+", "left_child=-99999"),
    "a circle": (r"left_child=-?\d+", "left_child=0"),
    "a feature beyond": (r"split_feature=\d+", "split_feature=99"),
    "a feature below 0": (r"split_feature=\d+", "split_feature=-1"),
    "no number": (r"threshold=\S+", "threshold=os.system"),
    "leaves": (r"num_leaves=\d+", "num_leaves=2147483647"),
    "no leaves": (r"num_leaves=\d+", "num_leaves=0"),
    "a value less": (r"leaf_value=\S+ ", "leaf_value="),
    "a set beyond": (r"decision_type=\d+", "decision_type=1"),
    "sets": (r"num_cat=\d+", "num_cat=1000000000"),
    "a line twice": (r"num_cat=(\d+)", r"num_cat=\1\nnum_cat=\1"),
    "linear": (r"is_linear=0", "is_linear=1"),
    "classes": (r"num_class=1", "num_class=7"),
    "features": (r"max_feature_idx=\d+", "max_feature_idx=16000000"),
    "names": (r"feature_names=\S+", "feature_names=a a a"),
    "a loss": (r"label_index=0", "label_index=0\nobjective=lambdarank"),
    "a tree's number": (r"Tree=0", "Tree=1"),
    "no end": (r"end of parameters", ""),
    "a parameter": (r"\[boosting: gbdt\]", "[boosting: gbdt"),
    "a line that ends in CR": (r"shrinkage=", "shrinkage=0.1\rleft_child=900000 900000\rx="),
    "a head that has CR": (r"version=v4", "version=v4\rmax_feature_idx=1"),
    "an end before the end": (r"shrinkage=", "shrinkage=0.1\0x="),
    "a line without =": (r"shrinkage=", "shrinkage\nx="),
    "an empty line": (r"num_cat=", "x=\n\nnum_cat="),
    "a tree before the trees": (r"tree_sizes=", "Tree=0\nnum_leaves=9\ntree_sizes="),
    "other digits": (r"num_leaves=\d", "num_leaves=\N{ARABIC-INDIC DIGIT THREE}"),
    "a megabyte of digits": (r"threshold=\S+", "threshold=" + "1" * 2**20 + "x"),
    "a megabyte of spaces": (r"threshold=\S+", "threshold=" + " " * 2**20 + "x"),
    "a megabyte of names": (r"importances:\n", "importances:\n" + "=1" * 2**19 + "x\n"),
}


def with_right_sizes(text):
    head, separator, body = text.partition("\n\n")
    blocks = re.findall(r"Tree=.*?\n\n\n", body, re.DOTALL)
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    return re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", head) + separator + body


@pytest.mark.parametrize("change", LIGHTGBM)
def test_trees_of_lightgbm_that_are_none(change, written, tmp_path):
    """Given to LightGBM, most of these end the process."""
    manifest, files = unzipped(written["lightgbm by category"])
    text = files["booster_.trees.txt"].decode()
    assert with_right_sizes(text) == text
    changed = with_right_sizes(re.sub(*LIGHTGBM[change], text, count=1))
    assert changed != text
    files["booster_.trees.txt"] = changed.encode()
    with pytest.raises(ModelFileError, match=r"these are no trees|'num_features'"):
        load(rewritten(tmp_path, manifest, files))


def first(tree, name, value):
    tree[name][0] = value


XGBOOST = {
    "a child beyond": lambda t, _: first(t, "left_children", 99999),
    "a circle": lambda t, _: first(t, "left_children", 0),
    "one side": lambda t, _: first(t, "left_children", -1),
    "another parent": lambda t, _: t["parents"].__setitem__(1, 3),
    "a feature beyond": lambda t, _: first(t, "split_indices", 99),
    "a number less": lambda t, _: t["split_conditions"].pop(),
    "text": lambda t, _: first(t, "base_weights", "1"),
    "nodes": lambda t, _: t["tree_param"].update(num_nodes="1000000000"),
    "deleted": lambda t, _: t["tree_param"].update(num_deleted="1"),
    "vectors": lambda t, _: t["tree_param"].update(size_leaf_vector="9"),
    "a set that is not there": lambda t, _: first(t, "split_type", 1),
    "sets": lambda t, _: t.update(categories_segments=[0], categories_sizes=[5], categories_nodes=[0]),
    "no trees": lambda _, m: m["trees"].clear(),
    "order": lambda t, _: t.update(id=1),
    "rounds": lambda _, m: m.update(iteration_indptr=[0, 99]),
    "groups": lambda _, m: m["tree_info"].__setitem__(0, 5),
    "a leaf of NaN": lambda t, _: t["split_conditions"].__setitem__(-1, float("nan")),
    "an infinite leaf": lambda t, _: t["split_conditions"].__setitem__(-1, float("inf")),
    "a leaf beyond single precision": lambda t, _: t["split_conditions"].__setitem__(-1, 1e39),
    "a threshold of NaN": lambda t, _: first(t, "split_conditions", float("nan")),
}


@pytest.mark.parametrize("change", XGBOOST)
def test_trees_of_xgboost_that_are_none(change, tmp_path):
    save(fitted("xgboost")[0], tmp_path / "a.model")
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    trees = json.loads(files["booster_.trees.json"])
    model = trees["learner"]["gradient_booster"]["model"]
    XGBOOST[change](model["trees"][0], model)
    files["booster_.trees.json"] = json.dumps(trees).encode()
    with pytest.raises(ModelFileError, match="these are no trees"):
        load(rewritten(tmp_path, manifest, files))


def test_trees_of_catboost_with_values_that_are_not_finite(tmp_path):
    model, _ = fitted("catboost")
    save(model, tmp_path / "a.model")
    values = model.booster_.get_leaf_values()
    for change in (lambda: values.__setitem__(0, np.nan), lambda: values.__setitem__(0, np.inf)):
        change()
        manifest, files = unzipped((tmp_path / "a.model").read_bytes())
        model.booster_.set_leaf_values(values)
        model.booster_.save_model(str(tmp_path / "trees.cbm"), format="cbm")
        files["booster_.trees.cbm"] = (tmp_path / "trees.cbm").read_bytes()
        with pytest.raises(ModelFileError, match="a leaf has a number that is not finite"):
            load(rewritten(tmp_path, manifest, files))


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("transforms", "field", "value"),
    [
        ("standard", "mean", np.inf),
        ("standard", "spread", 0.0),
        ("standard", "spread", np.nan),
        ("quantile", "landmarks", np.nan),
    ],
)
def test_transforms_with_numbers_that_are_not_finite(transforms, field, value, tmp_path):
    """The spread of a feature that is constant is infinite."""
    X = np.column_stack([TOY.X, np.ones(len(TOY.y))])
    model = NeuralRanker(transforms=transforms, **NETWORK).fit(X, TOY.y, qid=TOY.qid)
    save(model, tmp_path / "a.model")
    assert (
        load(tmp_path / "a.model").predict(X, qid=TOY.qid).tobytes()
        == model.predict(X, qid=TOY.qid).tobytes()
    )
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    (name,) = [entry for entry in files if field in entry]
    values = np.load(io.BytesIO(files[name]))
    values.flat[0] = value
    files[name] = npy(values)
    with pytest.raises(ModelFileError, match=field):
        load(rewritten(tmp_path, manifest, files))


@pytest.mark.parametrize("again", [r'"left_children"', r'"\u006ceft_children"'])
def test_what_python_and_xgboost_read_otherwise(again, tmp_path):
    """Given to XGBoost, which takes the first of these, they end the process."""
    save(fitted("xgboost")[0], tmp_path / "a.model")
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    match = re.search(r'"left_children":(\[.*?\])', text := files["booster_.trees.json"].decode())
    harm = f'"left_children":{json.dumps([10**8] * len(json.loads(match[1])))},{again}:{match[1]}'
    files["booster_.trees.json"] = text.replace(match[0], harm, 1).encode()
    with pytest.raises(ModelFileError, match="a name twice in one object"):
        load(rewritten(tmp_path, manifest, files))


def test_xgboost_is_given_what_was_checked(tmp_path):
    """Names are written as they were read: XGBoost itself does not know this one, escaped."""
    model, X = fitted("xgboost")
    save(model, tmp_path / "a.model")
    manifest, files = unzipped((tmp_path / "a.model").read_bytes())
    escaped = files["booster_.trees.json"].replace(b'"left_children"', rb'"\u006ceft_children"')
    files["booster_.trees.json"] = escaped
    assert load(rewritten(tmp_path, manifest, files)).predict(X).tobytes() == model.predict(X).tobytes()


def test_numbers_of_xgboost_are_written_as_they_were():
    """Any single-precision number, and any name of a feature."""
    library, (model, _) = pytest.importorskip("xgboost"), fitted("xgboost")
    trees = json.loads(bytes(model.booster_.save_raw("json")))
    trees["learner"]["feature_names"] = ["größe", "日本", 'a "b"\n', "back\\slash"]
    trees_before = trees["learner"]["gradient_booster"]["model"]["trees"]
    rng = np.random.default_rng(0)
    for tree in trees_before:
        bits = rng.integers(0, 2**32, len(tree["split_conditions"]), dtype=np.uint32)
        drawn = bits.view(np.float32)
        tree["base_weights"] = [
            float(str(number)) for number in np.where(np.isfinite(drawn), drawn, np.float32(0))
        ]
    first(trees_before[0], "base_weights", float(str(np.float32(1e-45))))
    plain = json.dumps(trees, ensure_ascii=False).encode()
    as_written = library.Booster(model_file=bytearray(plain)).save_raw("json")
    through = library.Booster(model_file=bytearray(check_xgboost(bytes(as_written)))).save_raw("json")
    assert bytes(through) == bytes(as_written)
    trees_after = json.loads(bytes(through))["learner"]["gradient_booster"]["model"]["trees"]
    for tree_after, other in zip(trees_after, trees_before, strict=True):  # the drawn ones, to the last bit
        assert np.array_equal(np.float32(tree_after["base_weights"]), np.float32(other["base_weights"]))


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize(
    "name",
    [
        "city=Paris",
        "a=1=2",
        "Tree=0",
        "end of trees",
        "parameters:",
        'a "b"',
        "a,b:",
        "日本",
        "tab\t",
        "a\nb",
    ],
)
def test_odd_names_of_features(booster, name, tmp_path):
    X = FRAME.set_axis([name, "b", "c", "d"], axis=1)
    model = BoostedRanker(booster=booster, **SMALL).fit(X, TOY.y, qid=TOY.qid)
    save(model, tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    assert loaded.feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize(
    ("booster", "options"),
    [
        ("xgboost", {"params": {"tree_method": "exact", "gamma": 0.1}}),  # nodes are deleted again
        ("xgboost", {"params": {"num_parallel_tree": 2}}),
        ("lightgbm", {"params": {"linear_tree": True}}),
        ("lightgbm", {"min_samples_leaf": 500}),  # one leaf
        ("lightgbm", {"params": {"min_data_per_group": 1, "max_cat_to_onehot": 1, "cat_smooth": 1.0}}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:No split was found")
def test_odd_trees_are_trees(booster, options, tmp_path):
    X = TOY.X if "linear_tree" in options.get("params", {}) or booster == "xgboost" else MIXED
    model = BoostedRanker(booster=booster, **{**SMALL, **options})
    model.set_params(categorical_features=["size"] if X is MIXED else None)
    X = X if X is TOY.X else X.drop(columns="colour")
    model.fit(X, TOY.y, qid=TOY.qid)
    save(model, tmp_path / "a.model")
    assert load(tmp_path / "a.model").predict(X).tobytes() == model.predict(X).tobytes()


class Canary:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_run(written, tmp_path):
    """Objects that would act when they are unpickled stay asleep; and the check can fail."""
    sung = tmp_path / "sung"
    manifest, files = unzipped(written["linear"])
    stream = io.BytesIO()
    np.save(stream, np.array([Canary(sung)] * 4, dtype=object), allow_pickle=True)
    for contents in (stream.getvalue(), pickle.dumps(Canary(sung))):
        for name in (*files, "manifest.json"):
            changed = {**files, name: contents}
            path = tmp_path / "a"
            if name == "manifest.json":
                path.write_bytes(zip_files({name: contents, CHECKSUM: checksum_file(contents), **files}))
            else:
                path = rewritten(tmp_path, dict(manifest), changed)
            for reads in (load, describe, digest_of):
                try:
                    reads(path)
                except ModelFileError:
                    continue
                assert reads is not load
    (tmp_path / "b").write_bytes(pickle.dumps(Canary(sung)))
    with pytest.raises(ModelFileError, match="not a model file"):
        load(tmp_path / "b")
    assert not sung.exists()
    np.load(io.BytesIO(stream.getvalue()), allow_pickle=True)
    assert sung.exists()
    sung.rmdir()
    pickle.loads((tmp_path / "b").read_bytes())  # noqa: S301
    assert sung.exists()


# --- values

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
PLAIN = st.recursive(
    SCALARS | arrays(st.sampled_from(["f8", "i8", "?", "<U3", ">f4"]), array_shapes(min_dims=0, max_side=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.dictionaries(st.integers() | st.none() | st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100)
@given(value=PLAIN)
def test_values_travel(value):
    """Whatever plain values a parameter has, they come back the same, of the same types."""
    packer = Packer("a file")
    text = json.dumps(packer.pack(value, "it"), allow_nan=False)
    assert repr(Reader(packer.files).read_value(json.loads(text), "it")) == repr(value)


# --- random changes


JUNK = (None, True, -1, 0, 2**31, 2**63, 2**64, 0.5, 1e308, "", "x", "nan", [], {}, [[]], {"float": "nan"})
JUNK += ({"array": "coef_.npy", "read_only": True}, {"tuple": []}, {"values": {}}, {"items": [[1, 2]]})
JUNK += ({"metric": "ndcg@999999999999999"}, {"part": "Softmax", "fields": {}}, {"bytes": "coef_.npy"})


JUNKED = ("parameters", "fitted", "feature_names")


def places(node, path=()):
    """Every place of a JSON value."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


def with_junk(manifest, rng):
    """A manifest with some values replaced by others, or left out."""
    for _ in range(rng.integers(1, 3)):
        spots = list(places({key: manifest[key] for key in JUNKED if key in manifest}))
        *way, last = spots[rng.integers(len(spots))]
        node = manifest
        for key in way:
            node = node[key]
        if rng.integers(8):
            node[last] = deepcopy(JUNK[rng.integers(len(JUNK))])
        else:
            del node[last]
    return manifest


def damaged(contents, rng):
    """A file cut, or with a few bytes overwritten."""
    if rng.integers(2):
        return contents[: rng.integers(len(contents))]
    bytes_after = bytearray(contents)
    for at in rng.integers(0, len(contents), rng.integers(1, 5)):
        bytes_after[at] = rng.integers(256)
    return bytes(bytes_after)


def altered(contents, rng):
    """A file changed with care: its checksums are right."""
    manifest, files = unzipped(contents)
    names = [name for name in files if name.endswith(".npy")]
    if rng.integers(2):
        name = names[rng.integers(len(names))]
        bytes_after = bytearray(files[name])
        for at in rng.integers(0, len(bytes_after), rng.integers(1, 4)):
            bytes_after[at] = rng.integers(256)
        files[name] = (
            bytes(bytes_after) if rng.integers(3) else list(ARRAYS.values())[rng.integers(len(ARRAYS))]
        )
    else:
        with_junk(manifest, rng)
    with_sizes(manifest, files)
    return zip_of(json.dumps(manifest), files)


def count_outcomes(change, written, count, folder, seed=0):
    """How many of so many changed files were refused, loaded as the same, or as another model."""
    rng = np.random.default_rng(seed)
    whole = {name: learned(loaded_from(contents, folder)) for name, contents in written.items()}
    outcomes = {"refused": 0, "same": 0, "other": 0}
    for _ in range(count):
        name = sorted(written)[rng.integers(len(written))]
        outcomes[outcome(change(written[name], rng), folder, whole[name])] += 1
    return outcomes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_changes_bring_no_other_error(written, tmp_path):
    outcomes = count_outcomes(damaged, written, 300, tmp_path)
    assert sum(outcomes.values()) == 300
    assert outcomes["other"] == 0
    outcomes = count_outcomes(altered, written, 300, tmp_path)
    assert sum(outcomes.values()) == 300
    assert outcomes["refused"] > 200
    assert outcomes["other"]  # sound models, which only a digest tells from the one that was saved


@settings(max_examples=60)
@given(contents=st.binary(max_size=200), front=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06"]))
def test_any_bytes(contents, front, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(front + contents)
    for reads in (load, describe, digest_of):
        with pytest.raises(ModelFileError):
            reads(path)


def test_limits_are_stated():
    assert model_file.MAX_BYTES == 2**30


if __name__ == "__main__":  # python tests/store/test_model_files.py 10000: more than a test has time for
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as working_folder:
        some = small_files(Path(working_folder))
        for name in ("elo", "linear"):
            sys.stdout.write(
                f"{name}, each byte flipped, each length: {flipped(some[name], Path(working_folder))}\n"
            )
        for change in (damaged, altered):
            outcomes = count_outcomes(change, some, int(sys.argv[1]), Path(working_folder), seed=1)
            sys.stdout.write(f"{change.__name__} at random: {outcomes}\n")
