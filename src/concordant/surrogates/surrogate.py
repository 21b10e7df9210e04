"""Surrogate: a loss on score vectors, as a value; Loss: that loss on given labels, as solvers read it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from concordant._segments import run_chunks
from concordant.exceptions import ParameterError
from concordant.supervision.columns import check_column, check_lengths, check_nonnegative, frozen, refuse
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EXACT_FIRST", "MAJORISING", "Loss", "Surrogate", "check_choice", "repeat"]

EXACT_FIRST, MAJORISING = ("exact", "majorising"), ("majorising",)  # kinds of curvature
Scalar = TypeVar("Scalar", bound=np.generic)


class Loss(ABC):
    """A surrogate with its labels: values and gradients of score vectors, rows of each query adjacent.

    Attributes
    ----------
    offsets
        Query `q` owns rows `offsets[q]:offsets[q + 1]`.
    """

    def __init__(self, offsets: IntArray) -> None:
        self.offsets = frozen(offsets)

    @abstractmethod
    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Fill the values of queries `first` to `last`, and the gradient of their rows."""

    @abstractmethod
    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Fill the (generalised) Hessian times `vector` in the rows of queries `first` to `last`."""

    def value_and_grad(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """One value per query, one gradient entry per row; chunks of queries run on threads."""
        read = self.per_row(scores, "scores")
        values, grad = np.zeros(len(self.offsets) - 1), np.empty(len(read))
        run_chunks(self.offsets, lambda first, last: self.chunk(read, first, last, values, grad))
        return values, grad

    def hessian_product(self, scores: ArrayLike, vector: ArrayLike) -> FloatArray:
        """Hessian of the summed values at `scores`, times the vector."""
        read, direction = self.per_row(scores, "scores"), self.per_row(vector, "vector")
        product = np.empty(len(read))
        run_chunks(
            self.offsets,
            lambda first, last: self.product_chunk(read, direction, first, last, product),
        )
        return product

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """One number >= 0 per row, for methods that move rows by themselves, such as boosted trees.

        Parameters
        ----------
        scores
            One per row.
        kind
            "exact": the diagonal of the Hessian. "majorising": h such that at no scores the Hessian exceeds
            2 diag(h). Rows put together in leaves, whose scores move by - rate * sum(gradient) / sum(h), then
            never raise the summed values at any rate <= 1: the change is at most the sum over leaves of
            (rate^2 - rate) * sum(gradient)^2 / sum(h). Sums are over all rows of a leaf, and the step is its
            own. Values v that are clipped, by a monotone constraint, such that the sum over leaves of
            sum(gradient) v + sum(h) v^2 / 2 is still at most 0 need a rate <= 1/2; drawn rows or rounded
            gradients promise nothing. The surrogate's `curvatures` has the kinds there are.
        grad
            The gradient at these scores, where the caller has it: it may save work.
        """
        del scores, grad
        raise ParameterError(
            "curvature", kind, f"one of a surrogate that has it: {type(self).__name__} has none"
        )

    def per_row(self, values: ArrayLike, name: str) -> FloatArray:
        """Give one number per row: compiled kernels would read and write beyond a shorter array."""
        column = np.asarray(values, dtype=np.float64)
        check_lengths("the queries", int(self.offsets[-1]), **{name: column})
        return frozen(column)


@dataclass(frozen=True)
class Surrogate(ABC):
    """A loss on score vectors that is minimised instead of a metric: hyperparameters and facts, no state.

    Called with scores, targets (a metric's standardization r(y), except where the class says otherwise) and
    query ids, it gives one value per query and one gradient entry per row::

        values, grad = surrogate(scores, targets, qid=qid)

    Attributes
    ----------
    convex
        Whether the loss is convex in the scores.
    reads
        What the targets are: "targets" (standardized labels), "grades" or "positions".
    signed
        Whether negative targets keep it convex; elsewhere they are refused.
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
    reads: ClassVar[str] = "targets"
    signed: ClassVar[bool] = False

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return True

    @property
    def order_preserving(self) -> bool:
        """Whether minimisers of the expected loss follow the expected targets, for every distribution.

        References
        ----------
        Buffoni, Calauzènes, Gallinari and Usunier (2011), Definition 3.
        """
        return False

    @property
    def needs_positive(self) -> bool:
        """Whether order is preserved where every expected target is positive, if not everywhere.

        Otherwise a score may have to go to minus infinity.
        """
        return False

    @property
    def ordinal(self) -> bool:
        """Whether only the order of its grades counts, so that a full order serves as well."""
        return False

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Kinds of `Loss.curvature` it has, the exact one first, where it is there."""
        return ()

    def levels(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """Give what it tells rows apart by: where all of a query are equal, nothing is learned."""
        del offsets
        return targets

    @abstractmethod
    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Give the loss of checked targets, with one weight >= 0 per row."""

    def bind(self, targets: ArrayLike, offsets: ArrayLike, weights: ArrayLike = None) -> Loss:
        """Give the loss on these targets, rows of each query adjacent.

        Parameters
        ----------
        targets
            One finite number per row, >= 0 unless the surrogate is `signed`.
        offsets
            Where each query starts, and last the number of rows.
        weights
            One number >= 0 per row: how much the row's term counts; None: 1.
        """
        checked, edges = check_column(targets, "targets"), check_offsets(offsets)
        n_rows = int(edges[-1])
        check_lengths("the queries", n_rows, targets=checked, weights=weights)
        self.check_targets(checked)
        shares = np.ones(n_rows) if weights is None else check_nonnegative(weights, "weights", "row")
        return self.attach(checked, edges, shares)

    def check_targets(self, targets: FloatArray) -> None:
        """Refuse targets that are no label of this surrogate, whatever the queries are."""
        if not np.isfinite(targets).all():
            refuse(~np.isfinite(targets), targets, "targets")
        if not self.signed and (targets < 0).any():
            hint = (
                f"with negative targets {self.name} is not convex: add a constant per query, or use squared."
            )
            refuse(targets < 0, targets, "targets", hint)

    def __call__(
        self, scores: ArrayLike, targets: ArrayLike, *, qid: ArrayLike = None, weights: ArrayLike = None
    ) -> tuple[FloatArray, FloatArray]:
        """One value per query, ascending ids, and the gradient by row, in the caller's order."""
        loss, queries, ordered = self.prepared(scores, targets, qid, weights)
        values, grad = loss.value_and_grad(ordered)
        return values, queries.scatter(grad)

    def hessian_product(
        self,
        scores: ArrayLike,
        targets: ArrayLike,
        vector: ArrayLike,
        *,
        qid: ArrayLike = None,
        weights: ArrayLike = None,
    ) -> FloatArray:
        """Give the (generalised) Hessian of the summed values, times the vector, by row."""
        loss, queries, ordered = self.prepared(scores, targets, qid, weights)
        direction = finite(vector, "vector", len(ordered))
        return queries.scatter(loss.hessian_product(ordered, queries.gather(direction)))

    def prepared(
        self, scores: ArrayLike, targets: ArrayLike, qid: ArrayLike, weights: ArrayLike
    ) -> tuple[Loss, Queries, FloatArray]:
        """Check and sort what a caller gives."""
        with naming_query(qid):
            column = check_column(targets, "targets")
            checked = finite(scores, "scores", len(column))
            queries = Queries.of(qid, len(column), "targets")
            shares = None if weights is None else check_nonnegative(weights, "weights", "row")
            check_lengths("targets", len(column), weights=shares)
            if queries.moved is not None:  # rows will move: an error names the caller's row
                self.check_targets(column)
            ordered = None if shares is None else queries.gather(shares)
            loss = self.bind(queries.gather(column), queries.offsets, ordered)
        return loss, queries, queries.gather(checked)


def check_offsets(offsets: ArrayLike) -> IntArray:
    """Give where each query starts, if rows 0 to n are cut into queries, some of which may be empty."""
    edges = np.asarray(offsets)
    whole = edges.ndim == 1 and edges.size > 0 and edges.dtype.kind in "iu"
    if not (whole and edges[0] == 0 and (edges[1:] >= edges[:-1]).all()):
        raise ParameterError("offsets", offsets, "whole numbers from 0 on that never fall")
    return edges.astype(np.int64, copy=False)


def finite(values: ArrayLike, name: str, n_rows: int) -> FloatArray:
    """Give one finite number per row."""
    column = check_column(values, name)
    check_lengths("targets", n_rows, **{name: column})
    if not np.isfinite(column).all():
        refuse(~np.isfinite(column), column, name)
    return column


def repeat(per_query: NDArray[Scalar], offsets: IntArray) -> NDArray[Scalar]:
    """Give each row its query's number."""
    return np.repeat(per_query, np.diff(offsets))


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse what is none of the allowed words."""
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(name, value, f"one of {', '.join(map(repr, allowed))}")
