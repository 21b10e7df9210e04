"""Fits killed at random moments and begun again: how many give the same model; what checkpoints cost."""

import hashlib
import multiprocessing
import random
import shutil
import signal
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Table
from benchmarks.timing import race, watched
from concordant import (
    BoostedRanker,
    Comparer,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    NeuralRanker,
    PairRanker,
    synthetic,
)

PRELOADED = ["benchmarks.kill_resume", "lightgbm", "xgboost", "catboost", "concordant.rankers.networks.start"]
ATTEMPTS = 5  # for each kill: a fit may end before it
TREES: dict[str, Any] = {"n_estimators": 250, "n_jobs": 1, "subsample": 0.7, "colsample": 0.7}
KINDS: dict[
    str, tuple[Callable[..., Any], dict[str, Any], int]
] = {  # name -> class, parameters, queries or pairs
    "LinearRanker, lbfgs": (LinearRanker, {"surrogate": "pairwise", "alpha": 1e-6, "tol": 1e-12}, 3000),
    "LinearRanker, newton": (LinearRanker, {"solver": "newton", "alpha": 1e-6, "tol": 1e-12}, 3000),
    "LinearRanker, sgd": (LinearRanker, {"solver": "sgd", "max_iter": 20, "tol": 1e-12}, 500),
    "LinearRankerCV": (LinearRankerCV, {"cv": 3}, 500),
    "MaxMarginRanker": (MaxMarginRanker, {"alpha": 1e-4}, 400),
    "PairRanker": (PairRanker, {"metric": "pd", "features": ("difference", "cross")}, 300),
    "BoostedRanker, lightgbm": (BoostedRanker, TREES, 150),
    "BoostedRanker, xgboost": (BoostedRanker, {**TREES, "booster": "xgboost", "n_estimators": 160}, 100),
    "BoostedRanker, catboost": (BoostedRanker, {**TREES, "booster": "catboost", "n_estimators": 120}, 60),
    "NeuralRanker": (NeuralRanker, {"hidden": (16,), "max_epochs": 10, "device": "cpu"}, 60),
    "Comparer, newton": (Comparer, {"calibration": 3}, 10_000),
    "Comparer, sgd": (Comparer, {"solver": "sgd", "loss": "logistic", "calibration": 3}, 4_000),
    "Comparer, libsvm": (Comparer, {"kernel": "rbf", "calibration": 4}, 300),
    "Comparer, lp": (Comparer, {"formulation": "lp", "calibration": 4}, 600),
}


def run(*, quick: bool) -> list[Table]:
    """Both tables."""
    warnings.simplefilter("ignore")
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    kinds = [*KINDS][:7:6] if quick else [*KINDS]
    return [killed(kinds, 1 if quick else 20, quick=quick), costs(kinds, 1 if quick else 5, quick=quick)]


def killed(kinds: list[str], kills: int, *, quick: bool) -> Table:
    """Count equal models."""
    table = Table(
        "Killed and begun again",
        f"Each kind: {kills} fits in processes of their own, ended by `kill -9` at a moment drawn evenly "
        "from the length of the fit, and begun again with the same folder in another process. Equal: all "
        "bits of the scores of the training rows and of every number that the fit keeps are those of a fit "
        "with a checkpoint that nobody killed. The last column is the median of what was left to do.",
        ("fit", "seconds", "kills", "equal models", "seconds after the kill / whole"),
    )
    rng = random.Random(0)
    for name in watched(kinds, "kinds"):
        trial = Trial(name, small=quick)
        table.rows.append((name, trial.seconds, *trial.repeated(kills, rng)))
    return table


def costs(kinds: list[str], rounds: int, *, quick: bool) -> Table:
    """Compare fits with and without a checkpoint."""
    table = Table(
        "What a checkpoint costs",
        "Seconds of a fit without and with a new folder, in turn, compiled kernels; the ratio within rounds. "
        "The folder's size afterwards.",
        ("fit", "without s", "with s", "with / without", "kB"),
    )
    for name in watched(kinds, "costs"):
        with tempfile.TemporaryDirectory() as place:
            folders = (Path(place) / str(number) for number in range(10_000))
            with_one: Callable[[], Any] = partial(fit_in_next, name, folders, small=quick)
            calls = {"without": partial(fitted, name, None, small=quick), "with": with_one}
            timed = race(calls, title=name, rounds=rounds, most=3)
            size = sum(path.stat().st_size for path in (Path(place) / "0").iterdir()) / 1000
        medians = timed.median("without"), timed.median("with")
        table.rows.append((name, *medians, timed.ratio("with", "without"), size))
    return table


def fit_in_next(name: str, folders: Any, *, small: bool) -> None:
    """Fit in a folder that is new."""
    fitted(name, next(folders), small=small)


class Trial:
    """One kind of fit, and what it takes and gives where nobody kills it."""

    def __init__(self, name: str, *, small: bool) -> None:
        self.name, self.small = name, small
        with tempfile.TemporaryDirectory() as place:
            self.ended(Path(place) / "compiled")
            self.seconds, self.model = self.ended(Path(place) / "whole")

    def begun(self, folder: Path) -> tuple[Any, Any]:
        """Begin in a process of its own; the process, and where it tells."""
        context = multiprocessing.get_context("forkserver")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=told, args=(self.name, folder, self.small, theirs))
        process.start()
        theirs.close()
        ours.recv()  # that the fit begins
        return process, ours

    def ended(self, folder: Path) -> tuple[float, str]:
        """Seconds and model of a fit that nobody kills."""
        process, pipe = self.begun(folder)
        found: tuple[float, str] = pipe.recv()
        process.join()
        return found

    def repeated(self, kills: int, rng: random.Random) -> tuple[int, int, float]:
        """Kill so many; how many were killed, how many models are equal, and what was left to do."""
        equal, left = [], []
        for _ in range(kills):
            place = Path(tempfile.mkdtemp())
            if any(self.killed(place / str(number), rng) for number in range(ATTEMPTS)):
                last = max(place.iterdir(), key=lambda path: int(path.name), default=place / "0")
                seconds, model = self.ended(last)
                equal.append(model == self.model)
                left.append(seconds / self.seconds)
            shutil.rmtree(place)
        return len(equal), sum(equal), statistics.median(left)

    def killed(self, folder: Path, rng: random.Random) -> bool:
        """Begin a fit, and kill it; whether it had not ended by itself."""
        process, pipe = self.begun(folder)
        time.sleep(rng.uniform(0.0, self.seconds))
        process.kill()
        process.join()
        pipe.close()
        return bool(process.exitcode == -signal.SIGKILL)


def told(name: str, folder: Path, small: bool, pipe: Any) -> None:
    """Fit, and tell of the beginning and of the end."""
    warnings.simplefilter("ignore")
    rows_of(name, small=small)
    pipe.send("begun")
    start = time.perf_counter()
    model = fitted(name, folder, small=small)
    pipe.send((time.perf_counter() - start, bits_of(name, model, small=small)))


@cache
def rows_of(name: str, *, small: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Draw what a fit is given."""
    kind, _, size = KINDS[name]
    size = size // 10 if small else size
    if kind is not Comparer:
        toy = synthetic.grades(n_queries=size, n_items=20, n_features=20, seed=0)
        return (toy.X, toy.y), {"qid": toy.qid}
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(size, 2, 10))
    gap = (pairs[:, 1] - pairs[:, 0]) @ rng.normal(size=10) + rng.normal(size=size)
    return (pairs, np.where(np.abs(gap) < 1.0, 0, np.sign(gap)).astype(int)), {}


def fitted(name: str, folder: Path | None, *, small: bool) -> Any:
    """Fit one of a kind."""
    kind, parameters, _ = KINDS[name]
    rows, rest = rows_of(name, small=small)
    return kind(**parameters, checkpoint=folder).fit(*rows, **rest)


def bits_of(name: str, model: Any, *, small: bool) -> str:
    """Give a digest of the scores of the rows, and of the numbers among what was learned."""
    rows, rest = rows_of(name, small=small)
    found = hashlib.blake2b()
    for part in ("decision_function", "predict", "rank"):
        if hasattr(model, part):
            given = rest if part == "rank" else {}
            found.update(np.ascontiguousarray(getattr(model, part)(rows[0], **given)).tobytes())
            break
    for key, value in sorted(vars(model).items()):
        if key.endswith("_") and isinstance(value, (int, float, str, np.ndarray)):
            found.update(key.encode() + np.asarray(value).tobytes())
    return found.hexdigest()
