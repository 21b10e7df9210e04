"""From checked rows to the training set of trees: the loss on their labels, and training in segments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concordant._base.validate import all_zero_error
from concordant.data.check import weight_kind
from concordant.data.queries import Queries
from concordant.exceptions import ModelFileError, ParameterError
from concordant.rankers.boosters.booster import Booster, BoostingMonitor, TreeData, Trees
from concordant.rankers.boosters.plan import BoostingPlan
from concordant.rankers.fitted_certificate import Sample
from concordant.rankers.folds import FitRows
from concordant.rankers.guarantee import Guarantee
from concordant.rankers.recipe import metric_fingerprint, surrogate_fingerprint
from concordant.rankers.training import (
    label_weights,
    n_informative,
    query_shares,
    query_weights,
    summarize_sample,
)
from concordant.solvers.checkpoint import ANEW, Checkpoint, Snapshot, digest, parameter_text
from concordant.surrogates import Surrogate
from concordant.types import FloatArray

# Trees grown in segments of rounds, each from the saved state, so that a killed fit can be resumed.
#
# A library's trainer holds more state than its trees: random draws, and scores with their rounding. CatBoost
# saves all of it, and resumes exactly. The other libraries do not expose it. Therefore each of their fits
# with a checkpoint restarts at every edge between segments, killed or not, from the trees in the file.
# Resumed and uninterrupted fits are then equal by construction.

SEGMENT = 100  # least number of rounds of a segment: at each edge features are binned and trees summed again
GROWTH = 2  # later segments have 1 / GROWTH of the rounds before: else summing trees would be quadratic
# Final reasons to stop; a fit that stopped for another reason is resumed.
OWN_ENDS = ("limit", "early_stopping", "no_split")


@dataclass(frozen=True, eq=False)
class Segment:
    """Rounds between two edges."""

    start: Any  # model of an earlier fit; None: there is none
    contents: bytes  # state saved at the previous edge; empty: none
    begun: int  # rounds before the segment
    rounds: int  # in the segment
    folder: Path  # of the checkpoint


def training_fingerprint(plan: BoostingPlan, trees: Trees, version: str) -> dict[str, str]:
    """Return everything besides the data that the trees depend on, as texts by name."""
    fingerprint = {name: parameter_text(value) for name, value in (vars(plan) | vars(trees)).items()}
    fingerprint["metric"] = metric_fingerprint(plan.metric)
    fingerprint["surrogate"] = surrogate_fingerprint(plan.surrogate)
    return fingerprint | {trees.library: version}


def digest_data(plan: BoostingPlan, data: TreeData, heldout: FitRows | None) -> str:
    """Digest the training data and the held-out data."""
    arrays = [data.X, data.labels, data.query_weights, data.row_weights, data.offsets]
    if heldout is not None:
        arrays += [heldout.X, *heldout.labels_and_queries(plan.metric), heldout.query_weight]
    return digest(*arrays)


def grow_in_segments(
    booster: Booster,
    trees: Trees,
    data: TreeData,
    monitor: BoostingMonitor,
    start: Any,
    checkpoint: Checkpoint,
) -> Any:
    """Grow the missing rounds in segments; the file holds the state from which the next segment starts."""
    file = Snapshot(checkpoint)
    with file.lock():
        return _grow_from_snapshot(booster, trees, data, monitor, start, file)


def _grow_from_snapshot(
    booster: Booster, trees: Trees, data: TreeData, monitor: BoostingMonitor, start: Any, file: Snapshot
) -> Any:
    folder = file.checkpoint.folder
    n_missing = trees.n_estimators - (0 if start is None else booster.n_trees(start))
    contents, n_done, is_finished = _restored(file, monitor)
    while not is_finished:
        rounds = min(max(SEGMENT, n_done // GROWTH), n_missing - n_done)
        segment = Segment(start, contents, n_done, rounds, folder)
        model, contents = booster.segment(trees, data, monitor, segment)
        if monitor.train_scores is not None:  # else the scores would be computed again for the final loss
            values, _ = data.loss.value_and_grad(monitor.train_scores)
            monitor.losses[booster.n_trees(model)] = float(values.sum())
        monitor.train_scores = None  # no scores are cached for a model that was loaded
        if monitor.stopped_by not in OWN_ENDS:
            return model
        n_done += rounds
        is_finished = n_done == n_missing or monitor.stopped_by != "limit"
        facts = {"rounds": n_done, "stopped_by": monitor.stopped_by, "ended": is_finished}
        facts |= {"history": monitor.history, "losses": [*monitor.losses.items()]}
        file.write(facts, {"contents": np.frombuffer(contents, dtype=np.uint8)})
    return booster.from_bytes(contents)


def _restored(file: Snapshot, monitor: BoostingMonitor) -> tuple[bytes, int, bool]:
    """Return saved state, rounds done, and whether training is finished; (b"", 0, False) without a file."""
    if (saved := file.read()) is None:
        return b"", 0, False
    facts, arrays = saved
    try:
        history, losses = [*map(float, facts["history"])], {int(n): float(v) for n, v in facts["losses"]}
        progress = arrays["contents"].tobytes(), int(facts["rounds"]), bool(facts["ended"])
        stopped_by = OWN_ENDS[OWN_ENDS.index(facts["stopped_by"])]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(file.path, "it does not record the progress of the training", ANEW) from error
    monitor.rewind(history)
    monitor.losses, monitor.stopped_by = losses, stopped_by
    return progress


@dataclass(frozen=True, eq=False)
class BaseTreeTrainingSet(ABC):
    """Facts about the training set of trees, in memory or on a cluster."""

    surrogate: Surrogate  # the loss that is minimised
    curvature: str  # its kind
    claim: Guarantee
    sample: Sample
    n_informative: int  # queries that count and whose labels differ
    n_counted: int  # queries with a weight above 0

    @abstractmethod
    def first_and_last_loss(
        self, booster: Booster, trees: Trees, monitor: BoostingMonitor, model: Any
    ) -> tuple[float, float]:
        """Return the mean training loss at scores 0, and of the trees that were kept."""


@dataclass(frozen=True, eq=False)
class TreeTrainingSet(BaseTreeTrainingSet):
    """Training set of trees in memory: features, loss and held-out features."""

    data: TreeData

    @classmethod
    def from_rows(cls, plan: BoostingPlan, rows: FitRows, heldout_features: Any = None) -> TreeTrainingSet:
        """Supervision -> targets -> loss, summed over queries with mean weight 1."""
        queries = rows.queries
        labels, row_weights, claim = weigh_labels(plan, rows, queries)
        shares = query_shares(rows.query_weight, queries)
        n_counted = int((shares > 0.0).sum())
        weights = shares * n_counted
        targets = labels if plan.surrogate.reads == "targets" else None
        loss_weights = np.repeat(weights, queries.sizes) * row_weights
        data = TreeData(
            X=queries.gather(rows.X),
            surrogate=plan.surrogate,
            loss=plan.surrogate.bind(labels, queries.offsets, loss_weights),
            curvature=plan.curvature,
            labels=labels,
            query_weights=weights,
            row_weights=row_weights,
            offsets=queries.offsets,
            heldout_features=heldout_features,
        )
        sample = summarize_sample(claim, queries, targets, shares)
        informative = n_informative(plan.surrogate.levels(labels, queries.offsets), queries.offsets, shares)
        return cls(plan.surrogate, plan.curvature, claim, sample, informative, n_counted, data)

    def mean_loss(self, scores: FloatArray) -> float:
        """Return the mean loss over the queries that count."""
        return float(self.data.loss.value_and_grad(scores)[0].sum()) / self.n_counted

    def first_and_last_loss(
        self, booster: Booster, trees: Trees, monitor: BoostingMonitor, model: Any
    ) -> tuple[float, float]:
        """Return the mean training loss at scores 0, and of the kept trees (mostly recorded)."""
        first, n_trees = self.mean_loss(np.zeros(self.data.X.shape[0])), booster.n_trees(model)
        if monitor.train_scores is None and n_trees in monitor.losses:
            return first, monitor.losses[n_trees] / self.n_counted
        if monitor.train_scores is None:
            monitor.train_scores = booster.scores(model, self.data.X, trees)
        return first, self.mean_loss(monitor.train_scores)


def weigh_labels(
    plan: BoostingPlan, rows: FitRows, queries: Queries
) -> tuple[FloatArray, FloatArray, Guarantee]:
    """Return weighted labels and row weights, by sorted row, and the guarantee of training on them."""
    labels, claim = plan.labels(rows.y, queries)
    row_weights = _normalize_weights(rows.sample_weight, queries)
    claim = claim.under_weights(weight_kind(row_weights, queries.offsets))
    return *plan.weigh_and_lift(labels, row_weights, queries), claim


def _normalize_weights(sample_weight: Any, queries: Queries) -> FloatArray | None:
    """Return the label weights by sorted row, scaled to a mean positive weight of 1; None: all are 1."""
    if sample_weight is None:
        return None
    weights = label_weights(sample_weight, queries)
    highest, mean = mean_weight([summed_weights(weights)])
    return weights / highest / mean


def summed_weights(weights: FloatArray) -> tuple[float, float, int]:
    """Return the highest weight, the sum of the positive weights as shares of it, and their number."""
    highest = float(weights.max(initial=0.0))
    shares = weights / (highest or 1.0)  # so that huge and tiny ones can be added
    counting = shares[shares > 0.0]
    return highest, float(counting.sum()), len(counting)


def mean_weight(sums: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Return the highest weight of all parts, and the mean positive weight as a share of it.

    >>> mean_weight([summed_weights(np.array([4.0, 0.0])), summed_weights(np.array([2.0, 3.0]))])
    (4.0, 0.75)
    """
    highest = max(top for top, _, _ in sums)
    if not highest:
        raise all_zero_error("sample_weight", "row")
    mean = sum(total * (top / highest) for top, total, _ in sums) / sum(number for _, _, number in sums)
    return highest, mean


def split_heldout(rows: FitRows, share: float, seed: int | None) -> tuple[FitRows, FitRows]:
    """Hold out about this share of the queries that count; all other queries stay in the training rows."""
    queries = rows.queries
    weights = None if rows.query_weight is None else query_weights(rows.query_weight, queries)
    positive = np.arange(queries.n_queries) if weights is None else np.flatnonzero(weights)
    shuffled = np.random.default_rng(seed).permutation(positive)
    heldout_rows = queries.rows(np.sort(shuffled[round((1.0 - share) * len(positive)) :]))
    train = np.setdiff1d(np.arange(queries.n_rows), heldout_rows)
    if not (heldout_rows.size and len(heldout_rows) < len(queries.rows(positive))):
        raise ParameterError.because(
            f"validation_fraction={share:g} of {len(positive)} queries leaves none to train on or none to "
            "validate on. Change it, or pass eval_set."
        )
    return rows.take(train), rows.take(np.sort(heldout_rows))
