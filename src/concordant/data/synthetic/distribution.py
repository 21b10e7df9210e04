"""LabelDistribution: exact conditional distribution of the labels of each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from concordant._base.validate import check_grades, freeze
from concordant.data.check import check_features
from concordant.data.labels import Grades, Permutations, Preferences
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, LengthMismatchError, NonFiniteError, ParameterError, ShapeError
from concordant.types import ArrayLike, FloatArray, IntArray

Label: TypeAlias = FloatArray | Preferences | Permutations
"""What one outcome says about all rows: an array of grades, preferences or full orders."""


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """Query `q` has label `s` with probability `probs[q, s]`, independently of the other queries.

    A label covers all items of a query at once, so labels of items may depend on each other: the intents
    behind an ambiguous query, annotators who disagree. Ranking theory is about such dependence.

    Parameters
    ----------
    labels
        The possible outcomes, all of one kind; each describes all rows, in the caller's order.
    probs
        One row per query (in the order of `queries.ids`), one column per label; rows sum to 1.
    queries
        Query of each row, as a `Queries` or as query ids.

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
            kinds = ", ".join(type(label).__name__ for label in labels)
            raise LabelError(f"labels are of several kinds: {kinds}", "give every outcome as the same kind.")
        queries = Queries.for_rows(self.queries, len(labels[0]), "labels[0]")
        for number, label in enumerate(labels):
            if len(label) != queries.n_rows:
                raise LengthMismatchError(f"labels[{number}]", len(label), queries.n_rows, "labels[0]")
        probs = check_probabilities(self.probs, (queries.n_queries, len(labels)))
        for name, value in (("labels", labels), ("probs", freeze(probs)), ("queries", queries)):
            object.__setattr__(self, name, value)

    @property
    def n_labels(self) -> int:
        """Number of outcomes."""
        return len(self.labels)

    def sample(self, rng: np.random.Generator | int) -> Label:
        """Draw one label for all rows; the outcome of each query is drawn independently."""
        draws = np.random.default_rng(rng).random((self.queries.n_queries, 1))
        cumulative = self.probs.cumsum(axis=1)
        # Sums are rounded: scaling by the last, and not comparing with it, keeps draws near 1 in the table.
        label_numbers = (draws * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
        return _combine(self.labels, self.queries.scatter(label_numbers[self.queries.codes]))

    def mean_per_query(self, function: Callable[[Label], ArrayLike]) -> FloatArray:
        """Expectation of a per-query function of the label; NaN (undefined) counts as 0."""
        mean = np.zeros(self.queries.n_queries)
        for number, label in enumerate(self.labels):
            values = np.asarray(function(label), dtype=np.float64)
            mean += self.probs[:, number] * np.where(np.isnan(values), 0.0, values)
        return mean

    def mean_per_row(self, function: Callable[[Label], ArrayLike]) -> FloatArray:
        """Expectation of a per-row function of the label, rows in the caller's order."""
        probs = self.queries.scatter(self.probs[self.queries.codes])
        mean = np.zeros(self.queries.n_rows)
        for number, label in enumerate(self.labels):
            mean += probs[:, number] * np.asarray(function(label), dtype=np.float64)
        return mean

    def __repr__(self) -> str:
        kind = "Grades" if isinstance(self.labels[0], np.ndarray) else type(self.labels[0]).__name__
        return f"LabelDistribution({self.n_labels} outcomes of kind {kind}, {self.queries!r})"


def as_label(label: ArrayLike) -> Label:
    """Check grades; other label objects are returned unchanged."""
    if isinstance(label, (Preferences, Permutations)):
        return label
    values: FloatArray = freeze(check_grades(label.values if isinstance(label, Grades) else label, "labels"))
    return values


def check_probabilities(raw_probs: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Check for rows of finite numbers >= 0 that sum to 1."""
    probs: FloatArray = check_features(raw_probs, "probs").astype(np.float64)
    if probs.shape != shape:
        raise ShapeError("probs", probs.shape, f"{shape}: one row per query or pair, one column per label")
    if (bad := ~(np.isfinite(probs) & (probs >= 0))).any():
        where, hint = f"row {np.argwhere(bad)[0][0]}", "probabilities are finite, >= 0."
        raise NonFiniteError("probs", float(probs[bad][0]), where, int(bad.sum()), hint)
    sums = probs.sum(axis=1)
    if (off := np.flatnonzero(np.abs(sums - 1) > 1e-9)).size:
        raise LabelError(f"probs[{off[0]}] sums to {sums[off[0]]:.12g}", "the outcomes of a query sum to 1.")
    return probs


def _combine(labels: tuple[Label, ...], label_numbers: IntArray) -> Label:
    """Select the label of each row by number; all rows of a query have the same number."""
    rows = np.arange(len(label_numbers))
    first = labels[0]
    if isinstance(first, Preferences):
        graphs = [label for label in labels if isinstance(label, Preferences)]
        edge_masks = [label_numbers[graph.better] == number for number, graph in enumerate(graphs)]

        def gather(name: str) -> Any:
            pieces = zip(graphs, edge_masks, strict=True)
            return np.concatenate([getattr(graph, name)[mask] for graph, mask in pieces])

        return Preferences(gather("better"), gather("worse"), first.n_rows, gather("weights"))
    if isinstance(first, Permutations):
        return Permutations(np.stack([label.positions for label in labels])[label_numbers, rows])  # type: ignore[union-attr]
    grades: FloatArray = np.stack(labels)[label_numbers, rows]  # type: ignore[arg-type]
    return grades


def tile(label: Label, rows: IntArray, times: int) -> Label:
    """Repeat a label, restricted to these rows, `times` times.

    >>> tile(np.array([5.0, 6.0, 7.0]), np.array([2, 0]), 2).tolist()
    [7.0, 5.0, 7.0, 5.0]
    """
    if isinstance(label, Permutations):
        return Permutations(np.tile(label.positions[rows], times))
    if not isinstance(label, Preferences):
        return np.tile(label[rows], times)
    new_rows = np.full(label.n_rows, -1)
    new_rows[rows] = np.arange(len(rows))
    is_inside = (new_rows[label.better] >= 0) & (new_rows[label.worse] >= 0)
    shift = np.repeat(np.arange(times) * len(rows), is_inside.sum())
    better, worse = (np.tile(new_rows[end[is_inside]], times) + shift for end in (label.better, label.worse))
    return Preferences(better, worse, len(rows) * times, np.tile(label.weights[is_inside], times))
