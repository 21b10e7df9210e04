"""Training set of a network: labels, weights and features by query, and queries held out for validation."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from concordant._base.validate import (
    DOUBLE_MAX,
    INT64_MAX,
    check_flag,
    check_number,
    check_whole,
    is_whole,
)
from concordant._base.warn import warn_caller
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.metric import Family, Metric, check_assumption
from concordant.rankers.fitted_certificate import Sample
from concordant.rankers.folds import FitRows, bind_evaluation
from concordant.rankers.guarantee import Guarantee
from concordant.rankers.recipe import training_labels
from concordant.rankers.training import n_informative, row_weights, summarize_sample
from concordant.surrogates import Surrogate
from concordant.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NetworkTrainingSet:
    """Training set of a network; rows of each query are adjacent."""

    surrogate: Surrogate  # the loss that is minimised
    claim: Guarantee  # and its guarantee
    X: Any
    labels: FloatArray  # as the surrogate reads them
    queries: Queries
    shares: FloatArray  # of the queries
    weights: FloatArray  # of each row: its query's share times the row's weight

    @classmethod
    def from_rows(
        cls, metric: Metric, surrogate: Surrogate, rows: FitRows, assume: str | None, f: Family | None
    ) -> Self:
        """Supervision -> targets."""
        queries = rows.queries
        with naming_query(rows.qid):
            labels, claim = training_labels(metric, surrogate, rows.y, queries, assume, f)
        shares, weights, weighted_kind = row_weights(rows.sample_weight, rows.query_weight, queries)
        claim = claim.under_weights(weighted_kind)
        surrogate.bind(labels, queries.offsets, weights)  # raises for labels that it cannot read
        return cls(surrogate, claim, queries.gather(rows.X), labels, queries, shares, weights)

    def in_units(self) -> tuple[FloatArray, FloatArray, float]:
        """Return labels and weights scaled for float32 and AdamW, and what a loss of 1 is in original units.

        On average a query's weights times targets sum to 1; if the loss is not linear in the targets, a row's
        weight is 1 on average.
        """
        n_queries, linear = int((self.queries.sizes > 0).sum()), self.surrogate.weighs == "targets"
        largest = float(self.labels.max(initial=0.0)) if linear else 1.0
        labels, heaviest = self.labels / (largest or 1.0), float(self.weights.max(initial=0.0)) or 1.0
        weights = self.weights / heaviest
        mass = float((weights * labels).sum()) / n_queries if linear else float(weights.mean())
        mass = mass or 1.0
        unit = heaviest * mass * (largest or 1.0) * (n_queries / float(self.shares.sum()))
        return labels, weights / mass, unit

    @property
    def n_informative(self) -> int:
        """Number of queries that count and whose labels differ."""
        offsets = self.queries.offsets
        return n_informative(self.surrogate.levels(self.labels, offsets), offsets, self.shares)

    @property
    def sample(self) -> Sample:
        """Facts about the data for certificates."""
        targets = self.labels if self.surrogate.reads == "targets" else None
        shares = self.shares / self.shares.sum()
        return summarize_sample(self.claim, self.queries, targets, shares)

    def split(
        self, rows: FitRows, fraction: float, metric: Metric, rng: np.random.Generator
    ) -> tuple[NetworkTrainingSet, FitRows | None]:
        """Hold out at most this share of the queries; none if a part would have no differing labels.

        Called by `fit`, whose caller is warned if that is the part to train on.
        """
        filled = np.flatnonzero(self.queries.sizes)
        heldout = np.sort(rng.permutation(filled)[: math.floor(fraction * len(filled) * (1.0 + 1e-12))])
        test, train = self.take(heldout), self.take(np.setdiff1d(filled, heldout))
        if not test.n_informative:
            return self, None
        if not train.n_informative:
            cut = f"without {len(heldout)} of {len(filled)} queries, none has labels that differ"
            warn_caller(f"No query is held out, because {cut}. Lower validation_fraction, or pass eval_set.")
            return self, None
        heldout_rows = rows.take(self.queries.rows(heldout))
        try:
            bind_evaluation(metric, heldout_rows, "the queries held out")
        except LabelError:  # the metric is undefined on each of them
            return self, None
        return train, heldout_rows

    def take(self, numbers: IntArray) -> NetworkTrainingSet:
        """Return the training set of some queries."""
        sizes, starts = self.queries.sizes[numbers], self.queries.offsets[numbers]
        rows = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        columns = self.X[rows], self.labels[rows], Queries.from_sizes(sizes)
        shares, weights = self.shares[numbers], self.weights[rows]
        return NetworkTrainingSet(self.surrogate, self.claim, *columns, shares, weights)


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raise if a parameter is out of range."""
    from concordant.rankers.networks.network import check_transforms

    check_number("dropout", params["dropout"], least=0.0, below=1.0)
    check_number("weight_decay", params["weight_decay"], least=0.0)
    if check_number("learning_rate", params["learning_rate"], above=0.0) < np.finfo(float).tiny:
        raise ParameterError("learning_rate", params["learning_rate"], f"at least {np.finfo(float).tiny:.3g}")
    check_number("validation_fraction", params["validation_fraction"], least=0.0, below=1.0)
    for name in ("batch_rows", "max_epochs"):
        check_whole(name, params[name], 1, DOUBLE_MAX)
    for name, least in (("early_stopping", 1), ("random_state", 0)):
        if params[name] is not None:
            check_whole(name, params[name], least, DOUBLE_MAX, also="None")
    hidden = params["hidden"]
    if not isinstance(hidden, (tuple, list)) or not all(is_whole(width, 1, INT64_MAX) for width in hidden):
        raise ParameterError("hidden", hidden, "a tuple of integers >= 1, one per layer")
    check_flag("context", params["context"])
    check_flag("warm_start", params["warm_start"])
    if not (isinstance(params["amp"], str) and params["amp"] == "auto"):
        check_flag("amp", params["amp"], also="'auto'")
    if params["callback"] is not None and not callable(params["callback"]):
        raise ParameterError("callback", params["callback"], "a function that takes an Epoch, or None")
    folder = params["checkpoint"]
    if not isinstance(folder, (str, os.PathLike, type(None))) or (isinstance(folder, str) and not folder):
        raise ParameterError("checkpoint", folder, "a folder or None")
    check_transforms(params["transforms"])
    check_assumption(params["assume"], params["f"])
