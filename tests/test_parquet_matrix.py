"""Columns of Parquet as a matrix: by Arrow where it can, by numpy where it cannot, with the same numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.exceptions import NonFiniteError
from concordant.supervision.scans.parquet_part import matrix

KINDS = st.sampled_from(["float32", "float64", "float16", "int8", "int32", "bool"])


def table_of(columns):
    return pa.table({f"f{place}": pa.array(values) for place, values in enumerate(columns)})


@given(st.lists(KINDS, min_size=1, max_size=5), st.integers(0, 9), st.integers(1, 3), st.randoms())
def test_the_numbers_are_those_of_the_columns(kinds, n_rows, n_pieces, random):
    """Of any types, and any number of pieces."""
    pieces = [
        [np.array([random.randint(0, 1) for _ in range(n_rows)], dtype=kind) for kind in kinds]
        for _ in range(n_pieces)
    ]
    table = pa.concat_tables([table_of(piece) for piece in pieces])
    expected = np.concatenate(
        [np.stack([column.astype(float) for column in piece], axis=1) for piece in pieces]
    )
    for dtype in ("float32", "float64"):
        X = matrix(table, dtype)
        assert X.dtype == dtype
        assert X.flags.c_contiguous
        assert np.array_equal(X, expected)


def test_numbers_whose_sum_leaves_the_range_are_finite_themselves():
    large = np.full((3, 2), 3e38, dtype=np.float32)
    assert np.array_equal(matrix(table_of(large.T), "float32"), large)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
@pytest.mark.parametrize("pieces", [1, 2])
def test_what_is_no_number_is_refused_by_its_column(bad, pieces):
    good = pa.array([1.0, 2.0, 3.0], type=pa.float32())
    one = pa.table({"a": good, "b": pa.array([1.0, bad, 2.0], type=pa.float32())})
    with pytest.raises(NonFiniteError, match="column 'b'"):
        matrix(pa.concat_tables([one] * pieces), "float32")
