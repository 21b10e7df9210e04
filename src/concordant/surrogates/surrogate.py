"""Surrogate: a loss on score vectors; Loss: a surrogate with its labels, as solvers call it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

import numpy as np

from concordant._base.segments import run_chunks
from concordant._base.validate import (
    check_column,
    check_lengths,
    check_nonnegative,
    freeze,
    refuse,
    refuse_misaligned,
)
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from concordant.surrogates.long_pair_kernels import Space


# Work space for kernels, used by one chunk at a time.


class Spaces:
    """Pool of arrays for lists of up to `longest` items: allocating would cost as much as the work."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.free: list[Space] = []  # one per thread that was at work

    @contextmanager
    def lend(self) -> Iterator[Space]:
        """Lend a work space to a chunk."""
        from concordant.surrogates.long_pair_kernels import workspace

        try:
            space = self.free.pop()
        except IndexError:  # all are in use
            space = workspace(self.longest)
        yield space
        self.free.append(space)


EXACT_FIRST, MAJORISING = ("exact", "majorising"), ("majorising",)  # kinds of curvature
Scalar = TypeVar("Scalar", bound=np.generic)
Chunk: TypeAlias = tuple[IntArray, int, int]
"""Offsets of all queries, and the first and the last query that a kernel visits."""


class Loss(ABC):
    """A surrogate with its labels: values and gradients of score vectors, rows of each query adjacent.

    Attributes
    ----------
    offsets
        Query `q` owns rows `offsets[q]:offsets[q + 1]`.
    """

    def __init__(self, offsets: IntArray) -> None:
        self.offsets = freeze(offsets)

    @abstractmethod
    def chunk(self, scores: FloatArray, first: int, last: int, values: FloatArray, grad: FloatArray) -> None:
        """Fill the values of queries `first` to `last`, and the gradient of their rows."""

    @abstractmethod
    def product_chunk(
        self, scores: FloatArray, vector: FloatArray, first: int, last: int, product: FloatArray
    ) -> None:
        """Fill the rows of queries `first` to `last` with the (generalised) Hessian times `vector`."""

    def value_and_grad(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return one value per query and one gradient entry per row; chunks of queries run on threads."""
        row_scores = self.per_row(scores, "scores")
        values, grad = np.zeros(len(self.offsets) - 1), np.empty(len(row_scores))
        run_chunks(self.offsets, lambda first, last: self.chunk(row_scores, first, last, values, grad))
        return values, grad

    def hessian_product(self, scores: ArrayLike, vector: ArrayLike) -> FloatArray:
        """Return the Hessian of the summed values at `scores`, times the vector."""
        row_scores, row_vector = self.per_row(scores, "scores"), self.per_row(vector, "vector")
        product = np.empty(len(row_scores))
        run_chunks(
            self.offsets,
            lambda first, last: self.product_chunk(row_scores, row_vector, first, last, product),
        )
        return product

    def curvature(self, scores: ArrayLike, kind: str, grad: FloatArray | None = None) -> FloatArray:
        """Return one number >= 0 per row, for methods that move rows independently, such as boosted trees.

        Parameters
        ----------
        scores
            One per row.
        kind
            "exact": the diagonal of the Hessian. "majorising": h such that the Hessian never exceeds 2
            diag(h), at any scores. If rows are grouped in leaves, whose scores move by - rate * sum(gradient)
            / sum(h), then the summed values never increase at any rate <= 1: the change is at most the sum
            over leaves of (rate^2 - rate) * sum(gradient)^2 / sum(h). Sums are over all rows of a leaf, and
            the step is exactly this one. Values v that are clipped, by a monotone constraint, such that the
            sum over leaves of sum(gradient) v + sum(h) v^2 / 2 is still at most 0 need a rate <= 1/2; with
            sampled rows or rounded gradients there is no guarantee. The surrogate's `curvatures` lists the
            available kinds.
        grad
            The gradient at these scores, if known: it may save work.
        """
        del scores, grad
        raise ParameterError.because(f"{type(self).__name__} has no curvature, got curvature={kind!r}.")

    def per_row(self, values: ArrayLike, name: str) -> FloatArray:
        """Check one number per row: compiled kernels would read and write beyond a shorter array."""
        column = np.asarray(values, dtype=np.float64)
        check_lengths("the queries", int(self.offsets[-1]), **{name: column})
        return freeze(column)


@dataclass(frozen=True)
class Surrogate(ABC):
    """Loss on score vectors that is minimised instead of a metric: hyperparameters and facts, no state.

    Called with scores, targets (a metric's standardization r(y), unless the class says otherwise) and query
    ids, it returns one value per query and one gradient entry per row::

        values, grad = surrogate(scores, targets, qid=qid)

    Attributes
    ----------
    convex
        True if the loss is convex in the scores.
    reads
        Kind of targets: "targets" (standardized labels), "grades" or "positions".
    signed
        True if the loss is convex for negative targets too; otherwise they raise.
    weighs
        What the weight of a row multiplies: its "targets", in which the loss is linear, its entire "terms",
        or "" (something else).
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
    reads: ClassVar[str] = "targets"
    signed: ClassVar[bool] = False
    weighs: ClassVar[str] = ""

    @property
    def smooth(self) -> bool:
        """True if the loss has a gradient everywhere."""
        return True

    @property
    def order_preserving(self) -> bool:
        """True if minimisers of the expected loss follow the expected targets, for every distribution.

        References
        ----------
        Buffoni, Calauzènes, Gallinari and Usunier (2011), Definition 3.
        """
        return False

    @property
    def needs_positive(self) -> bool:
        """True if order is preserved only where every expected target is positive.

        Otherwise a score may have to go to minus infinity.
        """
        return False

    @property
    def ordinal(self) -> bool:
        """True if only the order of the grades matters, so that a full order serves as well."""
        return False

    @property
    def curvatures(self) -> tuple[str, ...]:
        """Available kinds of `Loss.curvature`, the exact kind first if available."""
        return ()

    def levels(self, targets: FloatArray, offsets: IntArray) -> FloatArray:
        """Return the values by which rows differ: a query in which all are equal teaches nothing."""
        del offsets
        return targets

    @abstractmethod
    def attach(self, targets: FloatArray, offsets: IntArray, weights: FloatArray) -> Loss:
        """Build the loss from checked targets, with one weight >= 0 per row."""

    def bind(self, targets: ArrayLike, offsets: ArrayLike, weights: ArrayLike = None) -> Loss:
        """Bind targets and build the loss; the rows of each query are adjacent.

        Parameters
        ----------
        targets
            One finite number per row, >= 0 unless the surrogate is `signed`.
        offsets
            Start of each query, followed by the number of rows.
        weights
            One number >= 0 per row, the weight of the row's term; None: 1.
        """
        checked, edges = check_column(targets, "targets"), _check_offsets(offsets)
        n_rows = int(edges[-1])
        check_lengths("the queries", n_rows, targets=checked, weights=weights)
        self.check_targets(checked)
        shares = np.ones(n_rows) if weights is None else check_nonnegative(weights, "weights", "row")
        return self.attach(checked, edges, shares)

    def check_targets(self, targets: FloatArray) -> None:
        """Raise if targets are not valid labels of this surrogate, whatever the queries are."""
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
        """Return one value per query, by ascending id, and the gradient by row, in the caller's order."""
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
        """Return the (generalised) Hessian of the summed values times the vector, by row."""
        refuse_misaligned(targets=targets, vector=vector)
        loss, queries, ordered = self.prepared(scores, targets, qid, weights)
        direction = _check_finite(vector, "vector", len(ordered))
        return queries.scatter(loss.hessian_product(ordered, queries.gather(direction)))

    def prepared(
        self, scores: ArrayLike, targets: ArrayLike, qid: ArrayLike, weights: ArrayLike
    ) -> tuple[Loss, Queries, FloatArray]:
        """Check and sort the caller's data; return the loss, the queries and the sorted scores."""
        refuse_misaligned(scores=scores, targets=targets, qid=qid, weights=weights)
        with naming_query(qid):
            column = check_column(targets, "targets")
            checked = _check_finite(scores, "scores", len(column))
            queries = Queries.for_rows(qid, len(column), "targets")
            shares = None if weights is None else check_nonnegative(weights, "weights", "row")
            check_lengths("targets", len(column), weights=shares)
            if queries.moved is not None:  # rows will move: errors must name the caller's row
                self.check_targets(column)
            ordered = None if shares is None else queries.gather(shares)
            loss = self.bind(queries.gather(column), queries.offsets, ordered)
        return loss, queries, queries.gather(checked)


def _check_offsets(offsets: ArrayLike) -> IntArray:
    """Check that offsets cut rows 0 to n into queries, some of which may be empty."""
    edges = np.asarray(offsets)
    whole = edges.ndim == 1 and edges.size > 0 and edges.dtype.kind in "iu"
    if not (whole and edges[0] == 0 and (edges[1:] >= edges[:-1]).all()):
        raise ParameterError("offsets", offsets, "non-decreasing integers that start at 0")
    return edges.astype(np.int64, copy=False)


def _check_finite(values: ArrayLike, name: str, n_rows: int) -> FloatArray:
    """Check that there is one finite number per row."""
    column = check_column(values, name)
    check_lengths("targets", n_rows, **{name: column})
    if not np.isfinite(column).all():
        refuse(~np.isfinite(column), column, name)
    return column


def repeat(per_query: NDArray[Scalar], offsets: IntArray) -> NDArray[Scalar]:
    """Repeat each query's number for each of its rows."""
    return np.repeat(per_query, np.diff(offsets))
