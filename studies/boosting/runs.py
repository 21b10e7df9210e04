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

import concordant
from concordant._internals import write_atomically
from concordant.metrics import AP, DCG, NDCG, Metric, Precision
from concordant.types import FloatArray
from studies.boosting.methods import TrainingMethod
from studies.boosting.trees import Part, Parts, Plan, Shape

ROOTS = {"concordant": Path(concordant.__file__).parent, "studies": Path(__file__).parents[1]}
METRICS: Mapping[str, Metric] = {
    "ndcg@10": NDCG(k=10),
    "dcg@10": DCG(k=10),
    "ap": AP(),
    "p@10": Precision(k=10),
}


@dataclass(frozen=True, order=True)
class Spot:
    """Identity of a run: the set, the fold, the method, the shape of its trees."""

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
        return _first_best(self.validation[metric])

    def validation_mean(self, metric: str) -> float:
        """Mean over the validation queries there."""
        return float(self.validation[metric][self.best(metric)])


def _first_best(values: FloatArray) -> int:
    """Place of the highest value, the first of equals; undefined ones are the lowest."""
    return int(np.argmax(np.nan_to_num(values, nan=-np.inf)))


def best_of(runs: Sequence[Run], metric: str) -> Run:
    """Return the run with the highest validation mean, the first of equals."""
    return runs[_first_best(np.array([candidate.validation_mean(metric) for candidate in runs]))]


def run(spot: Spot, method: TrainingMethod, shape: Shape, parts: Parts, plan: Plan) -> Run:
    """Train, look at the validation queries after each stage, then at the test queries at the best ones."""
    model = method.train(parts.train, shape, plan)
    validation_scores, test_scores = (
        method.scores(model, part.X, plan) for part in (parts.validation, parts.test)
    )
    validation = {
        name: np.array([mean(metric, parts.validation, scores) for scores in validation_scores])
        for name, metric in METRICS.items()
    }
    test = {
        name: metric.per_query(
            parts.test.y, test_scores[_first_best(validation[name])], qid=parts.test.queries
        )
        for name, metric in METRICS.items()
    }
    return Run(spot, method.stages(plan), validation, test)


def mean(metric: Metric, part: Part, scores: FloatArray) -> float:
    """Mean of a metric over the queries of a part."""
    return float(metric(part.y, scores, qid=part.queries))


def run_or_read(
    spot: Spot, method: TrainingMethod, shape: Shape, parts: Parts, plan: Plan, cache: Path | None
) -> Run:
    """Read the run from its file; else run, and write the file atomically."""
    if cache is None:
        return run(spot, method, shape, parts, plan)
    key = key_of(spot, method, shape, parts, plan)
    path = cache / f"{_slug(spot)}-{hashlib.sha256(key.encode()).hexdigest()[:10]}.npz"
    cached = _read(path, spot, key)
    if cached is not None:
        return cached
    new_run = run(spot, method, shape, parts, plan)
    _write(path, new_run, key)
    return new_run


def key_of(spot: Spot, method: TrainingMethod, shape: Shape, parts: Parts, plan: Plan) -> str:
    """Describe all that a run depends on; runs of different keys are different runs."""
    digest = hashlib.sha256()
    for part in (parts.train, parts.validation, parts.test):
        for array in (part.X, part.y, part.queries.offsets):
            digest.update(np.ascontiguousarray(array).tobytes())
    description = {
        "spot": [spot.data, spot.fold, spot.method, spot.shape],
        "by": method.recipe(shape),
        "code": code_of(method.sources),
        "stages": method.stages(plan),
        "metrics": {name: repr(metric) for name, metric in METRICS.items()},
        "data": digest.hexdigest(),
    }
    return json.dumps(description)


@cache
def code_of(patterns: tuple[str, ...]) -> str:
    """Return a digest of the files that fit one of the patterns; a pattern begins with a name of `ROOTS`."""
    files: dict[str, Path] = {}
    for pattern in patterns:
        root, _, inside = pattern.partition("/")
        files |= {
            f"{root}/{path.relative_to(ROOTS[root]).as_posix()}": path for path in ROOTS[root].glob(inside)
        }
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _slug(spot: Spot) -> str:
    """Turn a spot into a file name.

    >>> _slug(Spot("mq2008", 1, "XGBoost rank:ndcg", "15 leaves"))
    'mq2008-1-xgboost-rank-ndcg-15-leaves'
    """
    words = f"{spot.data} {spot.fold} {spot.method} {spot.shape}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-")


def _write(path: Path, new_run: Run, key: str) -> None:
    """Write a run to its file, whole or not at all."""
    columns = {f"validation {name}": values for name, values in new_run.validation.items()}
    columns |= {f"test {name}": values for name, values in new_run.test.items()}
    with write_atomically(path) as stream:
        np.savez(
            stream,
            allow_pickle=False,
            key=np.array(key),
            stages=np.array(new_run.stages),
            **columns,
        )


def _read(path: Path, spot: Spot, key: str) -> Run | None:
    """Read the run of a file; None if it is missing, damaged or of another key."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if str(archive["key"]) != key:
                return None
            validation, test = (
                {name: archive[f"{part} {name}"] for name in METRICS} for part in ("validation", "test")
            )
            stages = tuple(archive["stages"].tolist())
            return Run(spot, stages, validation, test)
    except (FileNotFoundError, KeyError, ValueError, zipfile.BadZipFile, EOFError):
        return None
