"""Fits killed at random moments and begun again: how many give the same model; what checkpoints cost."""

import hashlib
import multiprocessing
import random
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

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race, watched
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

PRELOADED = [
    "numba",
    "scipy.optimize",
    "lightgbm",
    "xgboost",
    "catboost",
    "concordant.rankers.networks.start",
]
ATTEMPTS = 30  # for each kill, sooner each time: a fit may end before it
TREES: dict[str, Any] = {"n_estimators": 350, "n_jobs": 1, "subsample": 0.7, "colsample": 0.7}
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
    "BoostedRanker, xgboost": (BoostedRanker, {**TREES, "booster": "xgboost", "n_estimators": 350}, 50),
    "BoostedRanker, catboost": (BoostedRanker, {**TREES, "booster": "catboost", "n_estimators": 220}, 30),
    "NeuralRanker": (NeuralRanker, {"hidden": (16,), "max_epochs": 10, "device": "cpu"}, 60),
    "Comparer, newton": (Comparer, {"calibration": 3}, 10_000),
    "Comparer, sgd": (Comparer, {"solver": "sgd", "loss": "logistic", "calibration": 3}, 4_000),
    "Comparer, libsvm": (Comparer, {"kernel": "rbf", "calibration": 4}, 300),
    "Comparer, lp": (Comparer, {"formulation": "lp", "calibration": 4}, 600),
}


def run(*, quick: bool) -> list[Table]:
    """Both tables."""
    warnings.simplefilter("ignore")
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__, *PRELOADED])
    kinds = [*KINDS][:7:6] if quick else [*KINDS]
    return [_killed(kinds, 1 if quick else 20, quick=quick), _costs(kinds, 1 if quick else 3, quick=quick)]


def _killed(kinds: list[str], kills: int, *, quick: bool) -> Table:
    """Count equal models."""
    table = Table(
        "Killed and begun again",
        f"Each kind: {kills} fits, each in a process of its own, ended by `kill -9` at a moment drawn evenly "
        "from the length of the fit, and begun again with the same folder in another process. Equal: all "
        "bits of the scores of the training rows and of every number that the fit keeps are those of a fit "
        "with a checkpoint that nobody killed. The last column is the median of what was left to do.",
        ("fit", "seconds", "kills", "equal models", "seconds after the kill / whole"),
    )
    rng = random.Random(0)
    for name in watched(kinds, "kinds"):
        trial = ResumeTrial(name, times=0.1 if quick else 1.0)
        table.rows.append((name, trial.seconds, *trial.repeated(kills, rng)))
    return table


def _costs(kinds: list[str], rounds: int, *, quick: bool) -> Table:
    """Compare fits with and without a checkpoint."""
    table = Table(
        "What a checkpoint costs",
        "Seconds of a fit without and with a new folder, in turn, compiled kernels; the ratio within rounds. "
        "The folder's size afterwards.",
        ("fit", "rows or pairs", "without s", "with s", "with / without", "kB"),
    )
    larger = [] if quick else [(name, 10.0) for name in kinds if name.startswith("BoostedRanker")]
    for name, times in watched([*((name, 0.1 if quick else 1.0) for name in kinds), *larger], "costs"):
        with tempfile.TemporaryDirectory() as parent:
            folders = (Path(parent) / str(number) for number in range(10_000))
            with_one: Callable[[], Any] = partial(_fit_in_next, name, folders, times=times)
            calls = {"without": partial(_fitted, name, None, times=times), "with": with_one}
            timed = race(calls, title=name, rounds=rounds, most=3)
            size = sum(path.stat().st_size for path in (Path(parent) / "0").iterdir()) / 1000
        medians = timed.median("without"), timed.median("with")
        n_rows = len(_rows_of(name, times=times)[0][1])
        table.rows.append((name, n_rows, *medians, timed.ratio("with", "without"), size))
    return table


def _fit_in_next(name: str, folders: Any, *, times: float) -> None:
    """Fit in a folder that is new."""
    _fitted(name, next(folders), times=times)


class ResumeTrial:
    """One kind of fit, and what it takes and gives where nobody kills it."""

    def __init__(self, name: str, *, times: float) -> None:
        self.name, self.times = name, times
        _fitted(name, None, times=0.1)  # compiles
        with tempfile.TemporaryDirectory() as parent:
            self.seconds, self.model = self.ended(Path(parent) / "whole")

    def ended(self, folder: Path) -> tuple[float, str]:
        """Seconds and model of a fit in this process, which nobody kills."""
        start = time.perf_counter()
        model = _fitted(self.name, folder, times=self.times)
        return time.perf_counter() - start, _bits_of(self.name, model, times=self.times)

    def repeated(self, kills: int, rng: random.Random) -> tuple[int, int, float]:
        """Kill so many; how many were killed, how many models are equal, and what was left to do."""
        equal, left = [], []
        for _ in range(kills):
            with tempfile.TemporaryDirectory() as parent:
                folders = (Path(parent) / str(number) for number in range(ATTEMPTS))
                moments = (rng.uniform(0.0, self.seconds) * 0.8**number for number in range(ATTEMPTS))
                tried = zip(folders, moments, strict=True)
                folder = next(folder for folder, moment in tried if self.killed(folder, moment))
                seconds, model = self.ended(folder)
            equal.append(model == self.model)
            left.append(seconds / self.seconds)
        return len(equal), sum(equal), statistics.median(left)

    def killed(self, folder: Path, moment: float) -> bool:
        """Begin a fit in a process of its own, and kill it; whether it had not ended by itself."""
        context = multiprocessing.get_context("forkserver")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_begun, args=(self.name, folder, self.times, theirs))
        process.start()
        theirs.close()
        ours.recv()  # that the fit begins
        time.sleep(moment)
        process.kill()
        process.join()
        ours.close()
        return bool(process.exitcode == -signal.SIGKILL)


def _begun(name: str, folder: Path, times: float, pipe: Any) -> None:
    """Report the beginning, and fit."""
    warnings.simplefilter("ignore")
    _fitted(name, None, times=0.1)  # compiles
    _rows_of(name, times=times)
    pipe.send("begun")
    _fitted(name, folder, times=times)


@cache
def _rows_of(name: str, *, times: float) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Draw what a fit is given."""
    kind, _, size = KINDS[name]
    size = int(size * times)
    if kind is not Comparer:
        toy = synthetic.grades(n_queries=size, n_items=20, n_features=20, seed=0)
        return (toy.X, toy.y), {"qid": toy.qid}
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(size, 2, 10))
    gap = (pairs[:, 1] - pairs[:, 0]) @ rng.normal(size=10) + rng.normal(size=size)
    return (pairs, np.where(np.abs(gap) < 1.0, 0, np.sign(gap)).astype(int)), {}


def _fitted(name: str, folder: Path | None, *, times: float) -> Any:
    """Fit one of a kind."""
    kind, parameters, _ = KINDS[name]
    rows, rest = _rows_of(name, times=times)
    return kind(**parameters, checkpoint=folder).fit(*rows, **rest)


def _bits_of(name: str, model: Any, *, times: float) -> str:
    """Digest of the scores of the rows, and of the numbers among what was learned."""
    rows, _ = _rows_of(name, times=times)
    digest = hashlib.blake2b()
    for part in ("decision_function", "predict"):  # weights of pairs are among the numbers
        if hasattr(model, part):
            digest.update(np.ascontiguousarray(getattr(model, part)(rows[0])).tobytes())
            break
    for key, value in sorted(vars(model).items()):
        if key.endswith("_") and isinstance(value, (int, float, str, np.ndarray)):
            digest.update(key.encode() + np.asarray(value).tobytes())
    return digest.hexdigest()
