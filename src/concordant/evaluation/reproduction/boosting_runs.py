"""Runs of `boosting`: one method trained once on one fold, what validation says of it, and its test values.

A run is kept in a file, so that a study that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from concordant.evaluation.reproduction.boosting_methods import Method
from concordant.evaluation.reproduction.boosting_trees import Part, Parts, Plan, Shape
from concordant.metrics import AP, DCG, NDCG, Metric, Precision
from concordant.supervision.readers.text import write_atomically
from concordant.types import FloatArray

__all__ = ["METRICS", "Run", "Spot", "best_of", "run", "run_or_read"]

PACKAGE = Path(__file__).parents[2]
METRICS: Mapping[str, Metric] = {
    "ndcg@10": NDCG(k=10),
    "dcg@10": DCG(k=10),
    "ap": AP(),
    "p@10": Precision(k=10),
}


@dataclass(frozen=True, order=True)
class Spot:
    """Where a run belongs: the set, the fold, the method, the shape of its trees."""

    data: str
    fold: int
    method: str
    shape: str


@dataclass(frozen=True, eq=False)
class Run:
    """A method on a fold, looked at stage by stage.

    Attributes
    ----------
    spot
        Which it is.
    stages
        What is chosen from: numbers of trees; of a linear ranker penalties.
    validation
        Metric -> mean over the validation queries at each stage.
    test
        Metric -> value on each test query, ascending ids, at the stage that is best for this metric on the
        validation queries; NaN where skipped.
    """

    spot: Spot
    stages: tuple[float, ...]
    validation: Mapping[str, FloatArray]
    test: Mapping[str, FloatArray]

    def best(self, metric: str) -> int:
        """Number of the stage that validation likes best, the first of equals."""
        return first_best(self.validation[metric])

    def told(self, metric: str) -> float:
        """Mean over the validation queries there."""
        return float(self.validation[metric][self.best(metric)])


def first_best(values: FloatArray) -> int:
    """Place of the highest value, the first of equals; undefined ones are the lowest."""
    return int(np.argmax(np.nan_to_num(values, nan=-np.inf)))


def best_of(runs: Sequence[Run], metric: str) -> Run:
    """Give the run that validation likes best, the first of equals."""
    return runs[first_best(np.array([one.told(metric) for one in runs]))]


def run(spot: Spot, method: Method, shape: Shape, parts: Parts, plan: Plan) -> Run:
    """Train, look at the validation queries after each stage, then at the test queries at the best ones."""
    model = method.trained(parts.train, shape, plan)
    held, tested = (method.scores(model, part.X, plan) for part in (parts.validation, parts.test))
    validation = {
        name: np.array([mean(metric, parts.validation, scores) for scores in held])
        for name, metric in METRICS.items()
    }
    test = {
        name: metric.per_query(parts.test.y, tested[first_best(validation[name])], qid=parts.test.queries)
        for name, metric in METRICS.items()
    }
    return Run(spot, method.stages(plan), validation, test)


def mean(metric: Metric, part: Part, scores: FloatArray) -> float:
    """Mean of a metric over the queries of a part."""
    return float(metric(part.y, scores, qid=part.queries))


def run_or_read(
    spot: Spot, method: Method, shape: Shape, parts: Parts, plan: Plan, cache: Path | None
) -> Run:
    """Give the run from its file; else run, and write the file, whole or not at all."""
    if cache is None:
        return run(spot, method, shape, parts, plan)
    key = key_of(spot, method, shape, parts, plan)
    path = cache / f"{slug(spot)}-{hashlib.sha256(key.encode()).hexdigest()[:10]}.npz"
    kept = read(path, spot, key)
    if kept is not None:
        return kept
    made = run(spot, method, shape, parts, plan)
    write(path, made, key)
    return made


def key_of(spot: Spot, method: Method, shape: Shape, parts: Parts, plan: Plan) -> str:
    """Give all that a run depends on: another key is another run."""
    digest = hashlib.sha256()
    for part in (parts.train, parts.validation, parts.test):
        for array in (part.X, part.y, part.queries.offsets):
            digest.update(np.ascontiguousarray(array).tobytes())
    told = {
        "spot": [spot.data, spot.fold, spot.method, spot.shape],
        "by": method.recipe(shape),
        "code": code_of(method.sources),
        "stages": method.stages(plan),
        "metrics": {name: repr(metric) for name, metric in METRICS.items()},
        "data": digest.hexdigest(),
    }
    return json.dumps(told)


@cache
def code_of(patterns: tuple[str, ...]) -> str:
    """Give a digest of the files of this package that fit one of the patterns."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in PACKAGE.glob(pattern)}):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def slug(spot: Spot) -> str:
    """Give a name for a file.

    >>> slug(Spot("mq2008", 1, "XGBoost rank:ndcg", "15 leaves"))
    'mq2008-1-xgboost-rank-ndcg-15-leaves'
    """
    words = f"{spot.data} {spot.fold} {spot.method} {spot.shape}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-")


def write(path: Path, made: Run, key: str) -> None:
    """Write a run to its file, whole or not at all."""
    columns = {f"validation {name}": values for name, values in made.validation.items()}
    columns |= {f"test {name}": values for name, values in made.test.items()}
    with write_atomically(path) as stream:
        np.savez(
            stream,
            allow_pickle=False,
            key=np.array(key),
            stages=np.array(made.stages),
            **columns,
        )


def read(path: Path, spot: Spot, key: str) -> Run | None:
    """Give the run of a file; None where there is none, or another, or a damaged one."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as held:
            if str(held["key"]) != key:
                return None
            validation, test = (
                {name: held[f"{part} {name}"] for name in METRICS} for part in ("validation", "test")
            )
            stages = tuple(held["stages"].tolist())
            return Run(spot, stages, validation, test)
    except (FileNotFoundError, KeyError, ValueError, zipfile.BadZipFile, EOFError):
        return None
