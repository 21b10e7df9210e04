"""scan_pairs: Parquet files of pairs, one a row, that are read part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concordant.exceptions import EmptyDataError, LabelError, UnknownNameError
from concordant.supervision.readers.outcomes import meanings_of
from concordant.supervision.readers.pair_columns import id_columns, pair_features
from concordant.supervision.readers.text import PathLike
from concordant.supervision.scans.pair_part import PairRoles, PairRows, ParquetPairs, pair_bytes
from concordant.supervision.scans.parquet import (
    cut_groups,
    listed,
    parquet_files,
    schema_of,
)
from concordant.supervision.scans.prefetch import ahead
from concordant.supervision.scans.row_groups import footer_of
from concordant.supervision.scans.scan import check_memory, read_size, written_size
from concordant.supervision.scans.schemas import number_type, other_columns, refuse_repeated

__all__ = ["PairScan", "scan_pairs"]


@dataclass(frozen=True, eq=False, repr=False)
class PairScan:
    """Pairs on disk; `cc.scan_pairs` makes one.

    Attributes
    ----------
    parts
        What is read together.
    feature_names
        Of an item.
    memory
        Bytes of pairs that may be in memory at a time.
    """

    parts: tuple[Any, ...]
    feature_names: tuple[str, ...]
    memory: int

    def __post_init__(self) -> None:
        check_memory(self.parts, self.memory, "write smaller row groups")

    @property
    def n_rows(self) -> int:
        """Pairs of all parts."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_features(self) -> int:
        """Of an item."""
        return len(self.feature_names)

    def __iter__(self) -> Iterator[PairRows]:
        """Read part after part, the next ones on other threads while one is worked on."""
        return ahead([part.read for part in self.parts])

    def __repr__(self) -> str:
        size = f"n_rows={self.n_rows:,}, n_features={self.n_features:,}, n_parts={len(self.parts):,}"
        return f"PairScan({size}, memory={written_size(self.memory)})"


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
    """Pairs of Parquet files, one a row, of which only some row groups are in memory at a time.

    Parameters
    ----------
    path
        A file, a folder or several files, as `scan_parquet` has them.
    left, right
        How columns of the left, and of the right item's features begin: left_age and right_age are the
        feature age of both. Ids, in columns left and right or else left_id and right_id, are no features.
    outcome, outcomes
        Column of outcomes, and what each means, as `read_comparisons` has them.
    sample_weight
        Column of weights, by default none.
    memory
        Bytes that pairs may take at a time, as a number or as text such as "500 MiB".

    Returns
    -------
    PairScan
        To be given to `Comparer.fit`. Small row groups that follow one another are read together, up to
        64 MiB; they may be cut anywhere.

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
    limit, meanings = read_size(memory), tuple(meanings_of(outcomes).items())
    files = {file: schema_of(file) for file in parquet_files(path)}
    if not files:
        raise EmptyDataError(listed([], path))
    for file, schema in files.items():
        refuse_repeated(file, schema)
    first = next(iter(files))
    features = features_of(first, files[first].names, (left, right), (outcome, sample_weight))
    roles = PairRoles((left, right), features, outcome, meanings, sample_weight)
    check_columns(files, roles)
    parts = [part for file in files for part in cut_pairs(file, roles)]
    if not parts:
        raise EmptyDataError(listed([*files], path))
    return PairScan(tuple(parts), features, limit)


def features_of(
    file: str, names: Sequence[str], prefixes: tuple[str, str], others: Sequence[str | None]
) -> tuple[str, ...]:
    """Give the features of both sides; a file without any is refused."""
    reserved = {*id_columns(names, prefixes), *(name for name in others if name is not None)}
    found = pair_features(names, prefixes, reserved)
    if not found:
        problem = f"{file} has no features of both sides ({prefixes[0]}NAME and {prefixes[1]}NAME)"
        raise LabelError(problem, f"say how their columns begin; it has {', '.join(names)}.")
    return found


def check_columns(files: Mapping[str, Any], roles: PairRoles) -> None:
    """Refuse files without a column that is read, with features of no numbers, or outcomes of several."""
    from pyarrow.types import is_nested

    first = next(iter(files))
    for file, schema in files.items():
        if lacking := [name for name in roles.named if name not in schema.names]:
            if file == first:
                raise UnknownNameError("column", lacking[0], schema.names)
            raise other_columns(file, lacking[0], first)
        for name in roles.numbers:
            number_type(file, schema, name)
        if is_nested(kind := schema.field(roles.outcome).type):
            problem = f"{file}: column {roles.outcome!r} holds {kind}, and no outcomes"
            raise LabelError(problem, "give each row one word or number as its outcome.")


def cut_pairs(file: str, roles: PairRoles) -> Iterator[ParquetPairs]:
    """Give the parts of a file."""
    path = str(Path(file).absolute())
    for groups in cut_groups(path, pair_bytes(roles)):
        yield ParquetPairs(path, file, groups, footer_of(path).stamp, roles)
