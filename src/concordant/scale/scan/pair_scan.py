"""scan_pairs: Parquet files with one pair per row, read part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concordant._base.files import PathLike
from concordant._base.validate import check_nonnegative
from concordant.data.check import refuse_large
from concordant.data.io.roles import (
    find_id_columns,
    normalize_outcome,
    outcome_signs,
    pair_features,
    parse_outcomes,
)
from concordant.data.io.tables import check_finite_column, open_columns
from concordant.exceptions import ConcordantError, EmptyDataError, LabelError
from concordant.scale.scan.parquet import (
    cut_groups,
    join_paths,
    matrix,
    parquet_files,
    read_schema,
)
from concordant.scale.scan.row_groups import (
    RowGroups,
    number_type,
    read_footer,
    refuse_lacking,
    refuse_repeated,
    row_bytes,
)
from concordant.scale.scan.scan import check_memory, format_size, parse_size, read_ahead
from concordant.types import FloatArray, IntArray

# ParquetPairs: row groups of a Parquet file, each row a pair.


@dataclass(frozen=True, eq=False)
class PairRows:
    """Checked pairs of a part.

    Attributes
    ----------
    pairs
        Features of both sides, (n, 2, p).
    y, weight
        Outcome and weight of each pair.
    """

    pairs: FloatArray
    y: IntArray
    weight: FloatArray

    def __sizeof__(self) -> int:
        # Dask moves small results to large ones by this size; it does not look inside.
        return int(self.pairs.nbytes + self.y.nbytes + self.weight.nbytes)


@dataclass(frozen=True)
class PairRoles:
    """Column names of a file of pairs.

    Attributes
    ----------
    prefixes, features
        Prefixes of the left and the right item's columns; and the feature names that follow.
    outcome, meanings
        Column of outcomes, and the outcome that each word in it means.
    sample_weight
        Column of weights; None: all weights are 1.
    """

    prefixes: tuple[str, str]
    features: tuple[str, ...]
    outcome: str
    meanings: tuple[tuple[str, int], ...]
    sample_weight: str | None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Feature columns, those of the left item first."""
        return tuple(prefix + name for prefix in self.prefixes for name in self.features)

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that are read."""
        others = (self.outcome, self.sample_weight)
        return (*(name for name in others if name is not None), *self.numbers)


def _pair_bytes(roles: PairRoles) -> int:
    return row_bytes(len(roles.numbers), "float64", n_weights=1)


@dataclass(frozen=True)
class ParquetPairs(RowGroups):
    """Row groups in which each row is a pair; `roles` names the columns."""

    roles: PairRoles

    @property
    def nbytes(self) -> int:
        """Memory that the pairs take while they are processed, in bytes."""
        return self.n_rows * _pair_bytes(self.roles)

    def read(self) -> PairRows:
        """Read and check the pairs; raise at a bad pair, named by file, row group and row."""
        roles = self.roles
        with self.located("read"):
            table = self.table(roles.named)
            y = _read_outcomes(table.column(roles.outcome), roles.outcome, dict(roles.meanings))
            weight = np.ones(len(y))
            if (name := roles.sample_weight) is not None:
                weight = check_nonnegative(open_columns(table)[0](name), f"column {name!r}", "pair")
            flat = self.features(table)
            return PairRows(flat.reshape(len(flat), 2, -1), y, weight)

    def features(self, table: Any) -> FloatArray:
        """Return the checked features of both sides, side by side."""
        names = self.roles.numbers
        try:
            flat = matrix(table.select(names), "float64")
            refuse_large(flat, "pairs")
        except ConcordantError:
            for name in names:  # raises the same error, with the column's name
                refuse_large(
                    check_finite_column(table.column(name).to_numpy(), name)[:, None], f"column {name!r}"
                )
            raise
        return np.ascontiguousarray(flat)


def _read_outcomes(column: Any, name: str, meanings: Mapping[str, int]) -> IntArray:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # whose words may be unused or repeated
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    keys = [normalize_outcome(word) for word in encoded.dictionary.to_pylist()]
    return outcome_signs(keys, encoded.indices.to_numpy(zero_copy_only=False), name, meanings)


@dataclass(frozen=True, eq=False, repr=False)
class PairScan:
    """Pairs on disk, read part by part; built by `cc.scan_pairs`.

    Attributes
    ----------
    parts
        Row groups that are read together.
    feature_names
        Of an item.
    memory
        Bytes that pairs may take in memory at a time.
    """

    parts: tuple[Any, ...]
    feature_names: tuple[str, ...]
    memory: int

    def __post_init__(self) -> None:
        check_memory(self.parts, self.memory, "Write smaller row groups.")

    @property
    def n_rows(self) -> int:
        """Number of pairs in all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return len(self.feature_names)

    def __iter__(self) -> Iterator[PairRows]:
        """Read the parts in order; the next ones are read on other threads meanwhile."""
        return read_ahead([part.read for part in self.parts])

    def __repr__(self) -> str:
        size = f"n_rows={self.n_rows:,}, n_features={self.n_features:,}, n_parts={len(self.parts):,}"
        return f"PairScan({size}, memory={format_size(self.memory)})"


def scan_pairs(
    path: PathLike | Iterable[PathLike],
    *,
    left: str = "left_",
    right: str = "right_",
    outcome: str = "outcome",
    outcomes: Mapping[Any, int] | str | None = None,
    sample_weight: str | None = None,
    memory: int | str = "1 GiB",
) -> PairScan:
    """Scan Parquet files of pairs, one per row, of which only some row groups are in memory at a time.

    Parameters
    ----------
    path
        A file, a folder or several files, as in `scan_parquet`.
    left, right
        Prefixes of the columns of the left and the right item's features: left_age and right_age are the
        feature age of both. Ids, in columns left and right or else left_id and right_id, are not features.
    outcome, outcomes
        Column of outcomes, and what each means, as in `read_comparisons`.
    sample_weight
        Column of weights, by default none.
    memory
        Bytes that pairs may take at a time, as a number or as text such as "500 MiB".

    Returns
    -------
    PairScan
        Scan for `Comparer.fit`. Small consecutive row groups are read together, up to 64 MiB; they may be cut
        anywhere.

    Raises
    ------
    LabelError
        If a feature has a column on one side only, there is none, or files differ in their columns. While the
        parts are read, at the first outcome that is unknown.
    NotNumericError, NonFiniteError
        At the first bad row, by file, row group and row in it (from 0).
    ParameterError
        If six times the largest part is more than `memory`.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> table = pa.table({"left_age": [1.0, 2.0], "right_age": [3.0, 2.5], "outcome": ["right", "tie"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, folder + "/games.parquet")
    ...     scan = scan_pairs(folder)
    ...     rows = next(iter(scan))
    >>> rows.pairs.tolist(), rows.y.tolist()
    ([[[1.0], [3.0]], [[2.0], [2.5]]], [1, 0])
    >>> scan
    PairScan(n_rows=2, n_features=1, n_parts=1, memory=1 GiB)
    """
    limit, meanings = parse_size(memory), tuple(parse_outcomes(outcomes).items())
    files = {file: read_schema(file) for file in parquet_files(path)}
    if not files:
        raise EmptyDataError(join_paths([], path))
    for file, schema in files.items():
        refuse_repeated(file, schema)
    first = next(iter(files))
    features = _find_features(first, files[first].names, (left, right), (outcome, sample_weight))
    roles = PairRoles((left, right), features, outcome, meanings, sample_weight)
    _check_columns(files, roles)
    parts = [part for file in files for part in _cut_pairs(file, roles)]
    if not parts:
        raise EmptyDataError(join_paths([*files], path))
    return PairScan(tuple(parts), features, limit)


def _find_features(
    file: str, names: Sequence[str], prefixes: tuple[str, str], others: Sequence[str | None]
) -> tuple[str, ...]:
    """Return the features that both sides have; raise if there are none."""
    reserved = {*find_id_columns(names, prefixes), *(name for name in others if name is not None)}
    features = pair_features(names, prefixes, reserved)
    if not features:
        problem = f"{file} has no features of both sides ({prefixes[0]}NAME and {prefixes[1]}NAME)"
        raise LabelError(problem, f"say how their columns begin; it has {', '.join(names)}.")
    return features


def _check_columns(files: Mapping[str, Any], roles: PairRoles) -> None:
    """Raise if a file lacks a column, has features that are not numbers, or nested outcomes."""
    from pyarrow.types import is_nested

    refuse_lacking(files, roles.named)
    for file, schema in files.items():
        for name in roles.numbers:
            number_type(file, schema, name)
        if is_nested(kind := schema.field(roles.outcome).type):
            problem = f"{file}: column {roles.outcome!r} holds {kind}, and no outcomes"
            raise LabelError(problem, "give each row one word or number as its outcome.")


def _cut_pairs(file: str, roles: PairRoles) -> Iterator[ParquetPairs]:
    path = str(Path(file).absolute())
    for groups in cut_groups(path, _pair_bytes(roles)):
        yield ParquetPairs(path, file, groups, read_footer(path).stamp, roles)
