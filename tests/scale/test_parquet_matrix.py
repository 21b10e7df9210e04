"""Columns of Parquet as a matrix, turned by Arrow or by numpy, or left in columns: the same numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant import synthetic
from concordant.exceptions import NonFiniteError
from concordant.scale.scan.parquet import columns, matrix
from concordant.solvers.linear_scores import LinearScorer

KINDS = st.sampled_from(["float32", "float64", "float16", "int8", "int32", "bool"])


def table_of(columns):
    return pa.table({f"f{number}": pa.array(values) for number, values in enumerate(columns)})


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
        by_rows, by_columns = matrix(table, dtype), columns(table, dtype)
        assert by_rows.flags.c_contiguous
        assert by_columns.flags.f_contiguous
        for X in (by_rows, by_columns):
            assert X.dtype == dtype
            assert np.array_equal(X, expected)


@pytest.mark.parametrize("read_table", [matrix, columns])
def test_numbers_whose_sum_leaves_the_range_are_finite_themselves(read_table):
    large = np.full((3, 2), 3e38, dtype=np.float32)
    assert np.array_equal(read_table(table_of(large.T), "float32"), large)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("read_table", [matrix, columns])
def test_what_is_no_number_is_refused_by_its_column(read_table, bad, pieces):
    good = pa.array([1.0, 2.0, 3.0], type=pa.float32())
    table = pa.table({"a": good, "b": pa.array([1.0, bad, 2.0], type=pa.float32())})
    with pytest.raises(NonFiniteError, match="column 'b'"):
        read_table(pa.concat_tables([table] * pieces), "float32")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Training was stopped by max_iter")
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "bundle", "sgd"])
def test_fits_of_whole_parts_leave_features_in_columns(solver, tmp_path, monkeypatch):
    """And give the same weights; steps from query to query want rows, and so does whoever else reads."""
    layouts, linked = set(), LinearScorer.__init__

    def noted(scorer, X):
        linked(scorer, X)
        layouts.add(scorer.by_columns)

    toy = synthetic.grades(n_queries=40, n_items=(3, 12), seed=0)
    scan = cc.write_parquet(toy, tmp_path / "a.parquet", row_group="4 KiB")
    model = cc.LinearRanker(solver=solver, tol=1e-10)
    expected = model.fit(toy.X, toy.y, qid=toy.qid).coef_
    monkeypatch.setattr(LinearScorer, "__init__", noted)
    coef = model.fit(scan).coef_
    assert layouts == {solver != "sgd"}
    if solver != "sgd":
        np.testing.assert_allclose(coef, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert all(rows.X.flags.c_contiguous for rows in scan)
