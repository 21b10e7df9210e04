"""LabelDistribution: the exact conditional distribution of the labels of each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from concordant.exceptions import LabelError, LengthMismatchError, NonFiniteError, ParameterError, ShapeError
from concordant.supervision.check import check_features
from concordant.supervision.columns import check_grades, frozen
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["Label", "LabelDistribution", "tile"]

Label: TypeAlias = FloatArray | Preferences | Permutations
"""What one outcome says about all rows: an array of grades, preferences or full orders."""


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """Query `q` has label `s` with probability `probs[q, s]`, independently of the other queries.

    A label speaks about all items of a query at once, so labels of items may depend on one another: the
    intents behind an ambiguous query, annotators who disagree. Ranking theory lives on such dependence.

    Parameters
    ----------
    labels
        The possible outcomes, all of one kind; each describes all rows, in the caller's order.
    probs
        One row per query (in the order of `queries.ids`), one column per label; rows sum to 1.
    queries
        Which rows belong together, as a `Queries` or as query ids.

    Examples
    --------
    Two intents: half of the users want items 0 and 1, half want item 2.

    >>> intents = LabelDistribution(([1, 1, 0], [0, 0, 1]), [[0.5, 0.5]], queries=["q", "q", "q"])
    >>> intents.sample(0).tolist()
    [0.0, 0.0, 1.0]
    >>> intents.mean_per_row(lambda grades: grades).tolist()
    [0.5, 0.5, 0.5]
    """

    labels: tuple[Label, ...]
    probs: FloatArray
    queries: Queries

    def __post_init__(self) -> None:
        labels = tuple(as_label(label) for label in self.labels)
        if not labels:
            raise ParameterError("labels", self.labels, "at least one label")
        if len({type(label) for label in labels}) > 1:
            seen = ", ".join(type(label).__name__ for label in labels)
            raise LabelError(f"labels are of several kinds: {seen}", "give every outcome as the same kind.")
        queries = Queries.of(self.queries, len(labels[0]), "labels[0]")
        for number, label in enumerate(labels):
            if len(label) != queries.n_rows:
                raise LengthMismatchError(f"labels[{number}]", len(label), queries.n_rows, "labels[0]")
        probs = check_probabilities(self.probs, (queries.n_queries, len(labels)))
        for name, value in (("labels", labels), ("probs", frozen(probs)), ("queries", queries)):
            object.__setattr__(self, name, value)

    @property
    def n_labels(self) -> int:
        """How many outcomes there are."""
        return len(self.labels)

    def sample(self, rng: np.random.Generator | int) -> Label:
        """One label for all rows: every query draws its own outcome."""
        draws = np.random.default_rng(rng).random((self.queries.n_queries, 1))
        cumulative = self.probs.cumsum(axis=1)
        # Sums are rounded: scaling by the last, and not comparing with it, keeps draws near 1 in the table.
        chosen = (draws * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
        return combine(self.labels, self.queries.scatter(chosen[self.queries.codes]))

    def mean_per_query(self, function: Callable[[Label], ArrayLike]) -> FloatArray:
        """Give the expectation of a per-query function of the label; NaN (undefined there) counts as 0."""
        mean = np.zeros(self.queries.n_queries)
        for number, label in enumerate(self.labels):
            values = np.asarray(function(label), dtype=np.float64)
            mean += self.probs[:, number] * np.where(np.isnan(values), 0.0, values)
        return mean

    def mean_per_row(self, function: Callable[[Label], ArrayLike]) -> FloatArray:
        """Give the expectation of a per-row function of the label, rows in the caller's order."""
        probs = self.queries.scatter(self.probs[self.queries.codes])
        mean = np.zeros(self.queries.n_rows)
        for number, label in enumerate(self.labels):
            mean += probs[:, number] * np.asarray(function(label), dtype=np.float64)
        return mean

    def __repr__(self) -> str:
        kind = "Grades" if isinstance(self.labels[0], np.ndarray) else type(self.labels[0]).__name__
        return f"LabelDistribution({self.n_labels} outcomes of kind {kind}, {self.queries!r})"


def as_label(label: ArrayLike) -> Label:
    """Give checked grades, or the label object as it stands."""
    if isinstance(label, (Preferences, Permutations)):
        return label
    values: FloatArray = frozen(check_grades(label.values if isinstance(label, Grades) else label, "labels"))
    return values


def check_probabilities(given: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Rows of finite numbers >= 0 that sum to 1."""
    probs: FloatArray = check_features(given, "probs").astype(np.float64)
    if probs.shape != shape:
        raise ShapeError("probs", probs.shape, f"{shape}: one row per query or pair, one column per label")
    if (bad := ~(np.isfinite(probs) & (probs >= 0))).any():
        where = f"row {np.argwhere(bad)[0][0]}"
        raise NonFiniteError(
            "probs", float(probs[bad][0]), where, int(bad.sum()), "probabilities are finite, >= 0."
        )
    sums = probs.sum(axis=1)
    if (off := np.flatnonzero(np.abs(sums - 1) > 1e-9)).size:
        raise LabelError(f"probs[{off[0]}] sums to {sums[off[0]]:.12g}", "the outcomes of a query sum to 1.")
    return probs


def combine(labels: tuple[Label, ...], chosen: IntArray) -> Label:
    """Give each row the label it has chosen; all rows of a query choose alike."""
    rows = np.arange(len(chosen))
    first = labels[0]
    if isinstance(first, Preferences):
        graphs = [label for label in labels if isinstance(label, Preferences)]
        kept = [chosen[graph.better] == number for number, graph in enumerate(graphs)]
        columns = (
            np.concatenate([getattr(graph, name)[keep] for graph, keep in zip(graphs, kept, strict=True)])
            for name in ("better", "worse", "weights")
        )
        better, worse, weights = columns
        return Preferences(better, worse, first.n_rows, weights)
    if isinstance(first, Permutations):
        return Permutations(np.stack([label.positions for label in labels])[chosen, rows])  # type: ignore[union-attr]
    grades: FloatArray = np.stack(labels)[chosen, rows]  # type: ignore[arg-type]
    return grades


def tile(label: Label, rows: IntArray, times: int) -> Label:
    """Give `times` copies of what a label says about these rows, one after another.

    >>> tile(np.array([5.0, 6.0, 7.0]), np.array([2, 0]), 2).tolist()
    [7.0, 5.0, 7.0, 5.0]
    """
    if isinstance(label, Permutations):
        return Permutations(np.tile(label.positions[rows], times))
    if not isinstance(label, Preferences):
        return np.tile(label[rows], times)
    place = np.full(label.n_rows, -1)
    place[rows] = np.arange(len(rows))
    keep = (place[label.better] >= 0) & (place[label.worse] >= 0)
    shift = np.repeat(np.arange(times) * len(rows), keep.sum())
    better, worse = (np.tile(place[end[keep]], times) + shift for end in (label.better, label.worse))
    return Preferences(better, worse, len(rows) * times, np.tile(label.weights[keep], times))
