"""Programs for HiGHS, silent and as exact as it can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.types import FloatArray

__all__ = ["new_highs", "solved"]

TOLERANCE = 1e-10  # the least that HiGHS accepts
SMALLEST = 1e-12  # entries below it are dropped: again, the least


def new_highs() -> Any:
    """Give an empty program."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", SMALLEST)
    for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(option, TOLERANCE)
    return highs


def solved(
    rows: Any, last: FloatArray, limits: FloatArray, *, cost: float, curvature: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """Minimise over w and one more number, of this cost, where rows @ w + last times it is >= limits.

    Gives w, the multipliers of the rows, and the number of iterations; zeros where HiGHS finds nothing. With
    a curvature, half of it times the squares of w is added to the cost.
    """
    import highspy
    from scipy import sparse

    n_rows, n_columns = rows.shape[0], rows.shape[1] + 1
    matrix = sparse.hstack((rows, sparse.csr_array(last[:, None])), format="csr")
    model = highspy.HighsModel()
    program, cells = model.lp_, model.lp_.a_matrix_
    program.num_col_, program.num_row_ = n_columns, n_rows
    program.col_cost_ = np.append(np.zeros(n_columns - 1), cost)
    program.col_lower_, program.col_upper_ = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    program.row_lower_, program.row_upper_ = limits, np.full(n_rows, np.inf)
    cells.format_ = highspy.MatrixFormat.kRowwise
    cells.start_, cells.index_, cells.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = new_highs()
    if curvature is not None:
        square = model.hessian_
        square.dim_, square.format_ = n_columns, highspy.HessianFormat.kTriangular
        square.start_ = np.append(np.arange(n_columns), n_columns - 1)
        square.index_, square.value_ = np.arange(n_columns - 1), curvature
        highs.setOptionValue("qp_regularization_value", 0.0)  # which would move the solution
    highs.passModel(model)
    highs.run()
    solution, told = highs.getSolution(), highs.getInfo()
    n_iter = max(told.simplex_iteration_count, 0) + max(told.qp_iteration_count, 0)
    w, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
    if len(w) != n_columns or len(multipliers) != n_rows:
        return np.zeros(n_columns - 1), np.zeros(n_rows), n_iter
    return w[:-1], np.maximum(multipliers, 0.0), n_iter
