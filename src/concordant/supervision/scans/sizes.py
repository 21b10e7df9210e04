"""Sizes: what a row takes in memory while it is read and worked on."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["UNKNOWN_DOCID", "docid_bytes", "row_bytes", "text_bytes"]

# Places, scores, targets and gradients of a row, beside its columns. Parts are counted six times, and these
# arrays are not there six times: measured as a sixth of what a linear fit takes beyond its columns.
WORKING = 40
CHARACTER = 3.5  # bytes, counted six times: numpy keeps 4 of each in three parts, and in a copy to sort them
PAGE_HEADERS = 256  # bytes of a column that are no text
NUMBER_LENGTH = 21  # characters of a number of 64 bits, as text
UNKNOWN_DOCID = 256  # bytes: some 70 characters


def row_bytes(n_features: int, dtype: str, n_weights: int = 0) -> int:
    """Give the bytes of a row, document ids left out: features, grade, weights, and what works on them.

    >>> row_bytes(136, "float32")
    592
    """
    return n_features * np.dtype(dtype).itemsize + 8 * (1 + n_weights) + WORKING


def text_bytes(length: float) -> int:
    """Give the bytes of an id of so many characters, of which a column takes as many as the longest has."""
    return int(np.ceil(CHARACTER * length))


def docid_bytes(metadata: Any, name: str | None) -> int:
    """Give the bytes of a document id of a Parquet file, as far as the footer tells their lengths.

    That is the largest mean of a row group, or the length of its first or last id, if it tells these.
    """
    places = [place for place in range(metadata.num_columns) if metadata.schema.column(place).path == name]
    if not places:
        return 0
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    lengths = [length_of(group.column(places[0]), group.num_rows) for group in groups if group.num_rows]
    return text_bytes(max(lengths, default=0))


def length_of(column: Any, rows: int) -> float:
    """Give the characters of an id, as far as a column of a row group tells."""
    if column.physical_type != "BYTE_ARRAY":
        return NUMBER_LENGTH
    told = column.statistics
    extremes = [told.min, told.max] if told is not None and told.has_min_max else []
    mean = float(column.total_uncompressed_size - PAGE_HEADERS) / rows
    return max([mean, 1.0, *(len(one) for one in extremes)])
