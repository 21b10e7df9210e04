"""ParquetPairs: row groups of a Parquet file of which each row is a pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ConcordantError
from concordant.supervision.check import refuse_large
from concordant.supervision.columns import check_nonnegative
from concordant.supervision.readers.outcomes import key_of, signs_of
from concordant.supervision.readers.tables import _columns, _numbers
from concordant.supervision.scans.parquet_part import matrix
from concordant.supervision.scans.row_groups import RowGroups
from concordant.supervision.scans.sizes import row_bytes
from concordant.types import FloatArray, IntArray

__all__ = ["PairRoles", "PairRows", "ParquetPairs", "pair_bytes"]


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of one part, checked.

    Attributes
    ----------
    pairs
        Features of both sides, (n, 2, p).
    y, weight
        Outcome and weight of each.
    """

    pairs: FloatArray
    y: IntArray
    weight: FloatArray

    def __sizeof__(self) -> int:
        # By which Dask decides what moves to what: it does not look inside.
        return int(self.pairs.nbytes + self.y.nbytes + self.weight.nbytes)


@dataclass(frozen=True)
class PairRoles:
    """Which columns are what.

    Attributes
    ----------
    prefixes, features
        How columns of the left, and of the right, begin; and what follows.
    outcome, meanings
        Column of outcomes, and what each word in it means.
    sample_weight
        Column of weights; None: all are 1.
    """

    prefixes: tuple[str, str]
    features: tuple[str, ...]
    outcome: str
    meanings: tuple[tuple[str, int], ...]
    sample_weight: str | None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of features, those of the left first."""
        return tuple(prefix + name for prefix in self.prefixes for name in self.features)

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that are read."""
        others = (self.outcome, self.sample_weight)
        return (*(name for name in others if name is not None), *self.numbers)


def pair_bytes(roles: PairRoles) -> int:
    """Give the bytes of a pair while it is worked on: features, outcome, weight, and what is made of them."""
    return row_bytes(len(roles.numbers), "float64", n_weights=1)


@dataclass(frozen=True)
class ParquetPairs(RowGroups):
    """Row groups of which each row is a pair; `roles` says which columns are what."""

    roles: PairRoles

    @property
    def nbytes(self) -> int:
        """Memory that the pairs take while they are worked on."""
        return self.n_rows * pair_bytes(self.roles)

    def read(self) -> PairRows:
        """Give the pairs; a bad one is refused by file, row group and row."""
        roles = self.roles
        with self.located("read"):
            table = self.table(roles.named)
            y = outcomes_of(table.column(roles.outcome), roles.outcome, dict(roles.meanings))
            weight = np.ones(len(y))
            if (name := roles.sample_weight) is not None:
                weight = check_nonnegative(_columns(table)[0](name), f"column {name!r}", "pair")
            flat = self.features(table)
            return PairRows(flat.reshape(len(flat), 2, -1), y, weight)

    def features(self, table: Any) -> FloatArray:
        """Give the features of both sides, checked."""
        names = self.roles.numbers
        try:
            flat = matrix(table.select(names), "float64")
            refuse_large(flat, "pairs")
        except ConcordantError:
            for name in names:  # says the same, by the column's name
                refuse_large(_numbers(table.column(name).to_numpy(), name)[:, None], f"column {name!r}")
            raise
        return np.ascontiguousarray(flat)


def outcomes_of(column: Any, name: str, meanings: Mapping[str, int]) -> IntArray:
    """Give -1, 0 or 1 of each row; what a word means is looked up once."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # whose words need not be there, nor each once
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    keys = [key_of(word) for word in encoded.dictionary.to_pylist()]
    return signs_of(keys, encoded.indices.to_numpy(zero_copy_only=False), name, meanings)
