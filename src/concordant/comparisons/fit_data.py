"""Checked input of `Comparer.fit`: pairs in parts, from memory, from files or from Dask arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concordant._base.validate import (
    all_zero_error,
    check_lengths,
    check_nonnegative,
    refuse_misaligned,
    sum_overflow_error,
)
from concordant.comparisons.calibration import folds
from concordant.comparisons.comparer_recipe import Recipe, error_in_parts, trains_in_parts
from concordant.comparisons.gram_kernel import Kernel
from concordant.comparisons.machine import Machine, train
from concordant.comparisons.training_pairs import (
    ALL,
    SGD_ON_CLUSTER,
    ComparerPart,
    PartInfo,
    Scaling,
    Scorer,
    TrainingPairs,
    pair_decisions,
)
from concordant.data.check import check_pairs, is_collection
from concordant.data.labels import check_outcome, warn_about_outcomes
from concordant.exceptions import EmptyDataError, FeaturesError, LabelError, ParameterError, ShapeError
from concordant.scale.cluster import check_client, submit_task
from concordant.scale.cluster_parts import (
    CollectionPiece,
    compute_pieces,
    is_partitioned,
    prepare_again,
    prepare_parts,
)
from concordant.scale.parts import MemoryParts, Parts
from concordant.scale.scan.pair_scan import PairRows, PairScan
from concordant.scale.scan.scan import locating, scan_column_error
from concordant.solvers.checkpoint import Journal, digest
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

KERNEL_ROWS = 50  # items whose kernel values identify a user's kernel function

Fitted = tuple[Scaling, Machine]
Split = tuple[IntArray, IntArray]
"""Rows to train on, and rows that are held out."""


@dataclass(eq=False)
class PairData:
    """Pairs to fit a comparer to, in parts, of which pairs in memory are one.

    Attributes
    ----------
    parts
        Parts, each a `ComparerPart`.
    n_features
        Number of features of an item.
    y, weight, folds
        Outcome, weight and fold of each pair, part after part; empty without held-out folds.
    last
        The machine of the last call of `decisions`, and its decisions.
    """

    parts: Parts
    n_features: int
    y: IntArray
    weight: FloatArray
    folds: IntArray
    last: tuple[Machine | None, FloatArray] = field(default=(None, np.empty(0)), repr=False)

    @classmethod
    def from_rows(cls, rows: PairRows, n_folds: int, seed: int) -> PairData:
        """Hold checked pairs in memory as a single part."""
        pair_folds = _folds_by_pair(rows.y == 0, n_folds, seed)
        part = ComparerPart(rows, PartInfo(0, pair_folds))
        return cls(MemoryParts([part]), int(rows.pairs.shape[2]), rows.y, rows.weight, pair_folds)

    @classmethod
    def from_source(cls, source: PairSource, n_folds: int, seed: int) -> PairData:
        """Survey the parts: one pass; the held-out folds are those of the same pairs in memory."""
        parts = source.parts([PartInfo(number) for number in range(len(source.pieces))])
        summaries = parts.each(summarize_part, n_folds > 0)
        shapes, weighted, part_outcomes, part_weights = zip(*summaries, strict=True)
        _check_parts(shapes, weighted)
        y, weight = np.concatenate(part_outcomes).astype(np.int64), np.concatenate(part_weights)
        pair_folds = _folds_by_pair(y == 0, n_folds, seed)
        if n_folds:
            cuts = np.cumsum([shape[0] for shape in shapes])[:-1]
            part_folds = enumerate(np.split(pair_folds, cuts))
            parts = prepare_again(parts, _make_part, [PartInfo(*numbered) for numbered in part_folds])
        return cls(parts, shapes[0][2], y, weight, pair_folds)

    def train(self, recipe: Recipe, journal: Journal | None, split: Split | None = None) -> Fitted:
        """Train on all pairs, or on those of a split, which must be that of a fold."""
        left_out = ALL if split is None else int(self.folds[split[1][0]])
        return train(TrainingPairs.from_parts(self.parts, left_out), recipe, journal)

    def decisions(self, fitted: Fitted, rows: IntArray | None = None) -> FloatArray:
        """Compute the decisions of all pairs, or of these rows; those of the last machine are cached."""
        scaling, machine = fitted
        if self.last[0] is not machine:
            self.last = machine, np.concatenate(self.parts.each(decide_part, scaling, machine.scorer))
        return self.last[1] if rows is None else self.last[1][rows]

    def digest(self, kernel: Kernel | None) -> str:
        """Hash the pairs, their division into parts, and the values of a user-supplied kernel."""
        return digest(np.array(self.parts.each(_digest_part, kernel)))


def _folds_by_pair(tie: BoolArray, n_folds: int, seed: int) -> IntArray:
    fold_numbers = np.zeros(len(tie), dtype=np.int64)
    for number, (_, test_rows) in enumerate(folds(tie, n_folds, seed)):
        fold_numbers[test_rows] = number
    return fold_numbers


# ---------------------------------------------------------------- jobs


def summarize_part(part: ComparerPart, with_labels: bool) -> tuple[tuple[int, ...], bool, Any, FloatArray]:
    """Return the shape of the pairs, whether any has weight, and their outcomes and weights on request."""
    rows = part.rows
    selection = slice(None if with_labels else 0)
    return (
        rows.pairs.shape,
        bool(rows.weight.any()),
        rows.y[selection].astype(np.int8),
        rows.weight[selection],
    )


def decide_part(part: ComparerPart, scaling: Scaling, scorer: Scorer) -> FloatArray:
    """Compute the decisions of all pairs of a part."""
    return pair_decisions(scaling, scorer, part.rows.pairs)


def _digest_part(part: ComparerPart, kernel: Kernel | None) -> str:
    items = part.rows.pairs[:KERNEL_ROWS, 0]
    values = None if kernel is None else kernel(items, items)
    return digest(part.rows.pairs, part.rows.y, part.rows.weight, values)


def _check_parts(shapes: Sequence[tuple[int, ...]], weighted: Sequence[bool]) -> None:
    """Raise if there are no pairs, if no pair has weight, or if parts differ in their number of features."""
    if len(widths := {shape[2] for shape in shapes}) > 1:
        raise ShapeError("pairs", tuple(sorted(widths)), "as many features in every part")
    if not any(shape[0] for shape in shapes):
        raise EmptyDataError("pairs")
    if not any(weighted):
        raise all_zero_error("sample_weight", "pair")


def read_fit_data(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike, client: Any, recipe: Recipe, n_folds: int
) -> PairData:
    """Check the arguments of `fit`; pairs will be held out in `n_folds` folds."""
    if not _is_partitioned(pairs):
        if client is not None:
            raise ParameterError.because(
                "client was given, but the pairs are in memory. Pass a scan (cc.scan_pairs) or Dask arrays "
                "to train on a cluster."
            )
        rows = PairRows(*check_weighted_pairs(pairs, y, sample_weight))
        warn_about_outcomes(rows.y, stacklevel=3)
        return PairData.from_rows(rows, n_folds, recipe.seed)
    if not trains_in_parts(recipe):
        raise error_in_parts(recipe)
    source = open_pair_source(pairs, y, sample_weight, client, recipe.solver)
    return PairData.from_source(source, n_folds, recipe.seed)


def _is_partitioned(pairs: ArrayLike) -> bool:
    return is_collection(pairs) or isinstance(pairs, PairScan)


def check_weighted_pairs(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Check pairs, outcomes and weights that fit together, at least one weight above 0."""
    features, outcome, weight = _check_pair_rows(pairs, y, sample_weight)
    if not weight.any():
        raise all_zero_error("sample_weight", "pair")
    with np.errstate(over="ignore"):
        if not np.isfinite(2.0 * weight.sum()):
            raise sum_overflow_error("sample_weight")
    return features, outcome, weight


def _check_pair_rows(
    pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Check pairs, outcomes and weights that fit together; all weights may be 0."""
    if y is None:
        raise _missing_outcomes_error()
    refuse_misaligned(pairs=pairs, y=y, sample_weight=sample_weight)
    features, outcome = check_pairs(pairs), check_outcome(y, "y")
    weight = np.ones(len(features)) if sample_weight is None else sample_weight
    weight = check_nonnegative(weight, "sample_weight", "pair")
    check_lengths("pairs", len(features), y=outcome, sample_weight=weight)
    return features, outcome, weight


def _missing_outcomes_error() -> LabelError:
    hint = "give the outcomes, -1 left better, 0 tie, 1 right better (of Comparisons: .outcome)."
    return LabelError("y is missing", hint)


# Sources of parts: Dask arrays, whose chunks workers hold, or a scan of files.

CHUNK = "chunk"  # name of a piece of an array


@dataclass(frozen=True, eq=False)
class PairSource:
    """Pairs in parts that are not prepared yet.

    Attributes
    ----------
    client
        Client of the cluster whose workers hold the parts; None: this process reads them at each pass.
    pieces, rows
        What is read together, or its names; and with a client the futures of the pieces' `PairRows`.
    """

    client: Any
    pieces: Sequence[Any]
    rows: list[Any]

    def parts(self, part_infos: Sequence[PartInfo]) -> Parts:
        """Build the parts, each a `ComparerPart`; once, so that workers can release the original rows."""
        return prepare_parts(self.client, self.pieces, _make_part, part_infos, self.rows)


def open_pair_source(pairs: Any, y: Any, sample_weight: Any, client: Any, solver: str) -> PairSource:
    """Check the arguments of `fit` for pairs in parts; return the source of their parts."""
    scanned = isinstance(pairs, PairScan)
    if solver == "sgd" and not (scanned and client is None):
        raise ParameterError.because(SGD_ON_CLUSTER)
    if not scanned:
        return _array_source(pairs, y, sample_weight, check_client(client))
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise scan_column_error(name)
    if client is None:
        return PairSource(None, pairs.parts, [])
    client = check_client(client)
    return PairSource(client, pairs.parts, [submit_task(client, _read_rows, part) for part in pairs.parts])


def _array_source(pairs: Any, y: Any, sample_weight: Any, client: Any) -> PairSource:
    """Submit the checks of the chunks to the workers; raise if the arrays are chunked differently."""
    if y is None:
        raise _missing_outcomes_error()
    if not hasattr(type(pairs), "chunks"):
        raise FeaturesError("pairs", f"it is a {type(pairs).__name__}, not a Dask array")
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        expected = "(n, 2, n_features): the features of left and right"
        raise ShapeError("pairs", tuple(pairs.shape), expected)
    columns = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    for name, value in columns.items():
        _check_chunks(name, value, pairs)
    chunks_by_column = {name: compute_pieces(client, value) for name, value in columns.items()}
    rows = []
    for number, chunk in enumerate(compute_pieces(client, pairs)):
        column_chunks = {name: chunks[number] for name, chunks in chunks_by_column.items()}
        rows.append(submit_task(client, _chunk_rows, number, chunk, column_chunks))
    return PairSource(client, [CollectionPiece(number, CHUNK) for number in range(len(rows))], rows)


def _make_part(_part: Any, rows: Any, info: PartInfo) -> ComparerPart:
    return ComparerPart(rows, info)


def _read_rows(part: Any) -> PairRows:
    rows: PairRows = part.read()
    return rows


def _check_chunks(name: str, value: Any, pairs: Any) -> None:
    """Raise if a column is not chunked as the pairs are."""
    if not is_partitioned(value):
        hint = f"give {name} as a Dask array of the same chunks."
        raise LabelError(f"pairs is a Dask array, and {name} is a {type(value).__name__}", hint)
    if value.npartitions != pairs.numblocks[0]:
        hint = "rechunk one like the other."
        raise LabelError(f"{name} has {value.npartitions} chunks, pairs has {pairs.numblocks[0]}", hint)


def _chunk_rows(number: int, pairs: FloatArray, columns: Mapping[str, Any]) -> PairRows:
    """Check the pairs of a chunk on a worker; a chunk may be empty."""
    if not len(pairs):
        nothing = np.empty(0)
        return PairRows(np.empty((0, *pairs.shape[1:])), nothing.astype(np.int64), nothing)
    with locating(CollectionPiece(number, CHUNK)):
        return PairRows(*_check_pair_rows(pairs, columns["y"], columns.get("sample_weight")))
