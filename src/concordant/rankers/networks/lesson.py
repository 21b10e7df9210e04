"""What a network is told: labels, weights and features by query, and the queries held out for validation."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.conditions import Family, check_assumption
from concordant.metrics.metric import Metric
from concordant.rankers.claim import Claim
from concordant.rankers.devices.losses import homogeneous
from concordant.rankers.folds import Rows
from concordant.rankers.held_out import evaluation
from concordant.rankers.optimality import Sample
from concordant.rankers.recipe import training_labels
from concordant.rankers.training import n_informative, row_weights, seen
from concordant.supervision.queries import Queries, naming_query
from concordant.surrogates import Surrogate
from concordant.types import FloatArray, IntArray

__all__ = ["Lesson", "check_parameters"]


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a network is told, rows of each query adjacent.

    Attributes
    ----------
    surrogate, claim
        What is minimised, and what is known of that.
    X, labels, queries
        Features, what the surrogate reads, and which rows belong together.
    shares, weights
        How much each query counts, and each row: its query's share, times its own weight.
    weighted
        Whether labels count by `sample_weight`.
    """

    surrogate: Surrogate
    claim: Claim
    X: Any
    labels: FloatArray
    queries: Queries
    shares: FloatArray
    weights: FloatArray
    weighted: bool

    @classmethod
    def of(
        cls, metric: Metric, surrogate: Surrogate, rows: Rows, assume: str | None, f: Family | None
    ) -> Self:
        """Supervision -> targets."""
        queries = Queries.of(rows.qid, rows.X.shape[0], "X")
        with naming_query(rows.qid):
            labels, claim = training_labels(metric, surrogate, rows.y, queries, assume, f)
        shares, weights = row_weights(rows.sample_weight, rows.query_weight, queries)
        weighted = rows.sample_weight is not None
        surrogate.bind(labels, queries.offsets, weights)  # refuses labels that it cannot read
        return cls(surrogate, claim, queries.gather(rows.X), labels, queries, shares, weights, weighted)

    def in_units(self) -> tuple[FloatArray, FloatArray, float]:
        """Give labels and weights of a size that float32 and AdamW can take, and what a loss of 1 stands for.

        A mean query has weights times targets of 1; a mean row has weight 1, where the loss is not linear in
        the targets.
        """
        n_queries, linear = int((self.queries.sizes > 0).sum()), homogeneous(self.surrogate)
        most = float(self.labels.max(initial=0.0)) if linear else 1.0
        labels, heaviest = self.labels / (most or 1.0), float(self.weights.max(initial=0.0)) or 1.0
        weights = self.weights / heaviest
        mass = float((weights * labels).sum()) / n_queries if linear else float(weights.mean())
        mass = mass or 1.0
        unit = heaviest * mass * (most or 1.0) * (n_queries / float(self.shares.sum()))
        return labels, weights / mass, unit

    @property
    def n_informative(self) -> int:
        """Queries that count and whose labels differ."""
        offsets = self.queries.offsets
        return n_informative(self.surrogate.levels(self.labels, offsets), offsets, self.shares)

    @property
    def sample(self) -> Sample:
        """What certificates say of the data."""
        targets = self.labels if self.surrogate.reads == "targets" else None
        shares = self.shares / self.shares.sum()
        return seen(self.claim, self.queries, targets, shares, weighted=self.weighted)

    def split(
        self, rows: Rows, fraction: float, metric: Metric, rng: np.random.Generator
    ) -> tuple[Lesson, Rows | None]:
        """Hold a share of the queries out, at most; none, where one of the parts would have nothing to tell.

        Called by `fit`, whose caller is warned where that is the part to train on.
        """
        filled = np.flatnonzero(self.queries.sizes)
        held = np.sort(rng.permutation(filled)[: math.floor(fraction * len(filled) * (1.0 + 1e-12))])
        test, train = self.take(held), self.take(np.setdiff1d(filled, held))
        if not test.n_informative:
            return self, None
        if not train.n_informative:
            text = f"no query is held out: without {len(held)} of {len(filled)} none has labels that differ"
            warnings.warn(f"{text}; lower validation_fraction, or give eval_set", UserWarning, stacklevel=3)
            return self, None
        out = rows.take(self.queries.rows(held))
        try:
            evaluation(metric, out, "the queries held out")
        except LabelError:  # undefined on each of them
            return self, None
        return train, out

    def take(self, numbers: IntArray) -> Lesson:
        """Some of the queries."""
        sizes, starts = self.queries.sizes[numbers], self.queries.offsets[numbers]
        rows = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        columns = self.X[rows], self.labels[rows], Queries.from_sizes(sizes)
        shares, weights = self.shares[numbers], self.weights[rows]
        return Lesson(self.surrogate, self.claim, *columns, shares, weights, self.weighted)


NUMBERS: Mapping[str, tuple[Any, float, float, str]] = {
    "dropout": (Real, 0.0, np.nextafter(1.0, 0.0), "a number >= 0 and < 1"),
    "weight_decay": (Real, 0.0, np.finfo(float).max, "a finite number >= 0"),
    "learning_rate": (Real, np.finfo(float).tiny, np.finfo(float).max, "a finite number > 0"),
    "batch_rows": (Integral, 1, np.inf, "a whole number >= 1"),
    "max_epochs": (Integral, 1, np.inf, "a whole number >= 1"),
    "early_stopping": (Integral, 1, np.inf, "a whole number of epochs >= 1, or None"),
    "validation_fraction": (Real, 0.0, np.nextafter(1.0, 0.0), "a number >= 0 and < 1"),
    "random_state": (Integral, 0, np.inf, "a whole number >= 0, or None"),
}
OPTIONAL = ("early_stopping", "random_state")
LARGEST = np.finfo(np.float64).max


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse parameters out of range."""
    from concordant.scorers.neural_transforms import check_transforms

    for name, (kind, least, most, allowed) in NUMBERS.items():
        value = given[name]
        if value is None and name in OPTIONAL:
            continue
        number = isinstance(value, kind) and not isinstance(value, bool)
        if not (number and least <= as_double(value) <= min(most, LARGEST)):
            raise ParameterError(name, value, allowed)
    hidden = given["hidden"]
    if not isinstance(hidden, (tuple, list)) or not all(is_width(width) for width in hidden):
        raise ParameterError("hidden", hidden, "a tuple of whole numbers >= 1, one per layer")
    for name, others in (("context", ()), ("warm_start", ()), ("amp", ("auto",))):
        value = given[name]
        if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value in others)):
            raise ParameterError(name, value, " or ".join(["True", "False", *map(repr, others)]))
    if given["callback"] is not None and not callable(given["callback"]):
        raise ParameterError("callback", given["callback"], "a function of an Epoch, or None")
    folder = given["checkpoint"]
    if not isinstance(folder, (str, os.PathLike, type(None))) or (isinstance(folder, str) and not folder):
        raise ParameterError("checkpoint", folder, "a folder, or None")
    check_transforms(given["transforms"])
    check_assumption(given["assume"], given["f"])


def is_width(value: Any) -> bool:
    """Tell whether a layer may have so many outputs."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
