"""Pair items with ordinal labels into comparisons within their groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant._base.validate import (
    as_exact,
    check_column,
    check_lengths,
    check_whole,
    refuse,
    refuse_misaligned,
    refuse_rounded,
)
from concordant.data.check import check_features
from concordant.data.queries import Queries
from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.types import ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PairedItems:
    """Comparisons built from items.

    Attributes
    ----------
    pairs
        Features of both sides, shape (n_pairs, 2, n_features); None if no features were passed.
    y
        -1 where the left item has the larger label, +1 where the right one has, 0 where they are equal.
    left, right
        Rows of the items, as the caller counts them: `pairs[k, 0]` is `X[left[k]]`.
    """

    pairs: FloatArray | None
    y: IntArray
    left: IntArray
    right: IntArray

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"PairedItems({len(self):,} pairs, {int((self.y == 0).sum()):,} ties)"


def pair_items(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike = None, *, cap: int | None = None, seed: int = 0
) -> PairedItems:
    """Pair the items of each group, with y = sign(label of the right - label of the left).

    Groups of at most one item have no pairs. Time and memory grow with the number of pairs returned, not
    with the number of possible pairs. Which item stands on the left is drawn at random: otherwise it would
    always be the earlier row, and where rows are sorted best first, as search results are, one outcome would
    never occur, and the side alone would predict the winner.

    Parameters
    ----------
    X
        Features, one row per item. None if only `y`, `left` and `right` are needed, and no features should be
        copied (a row is copied once for each pair that it is in).
    y
        Labels: finite numbers of which only the order matters, larger is better.
    qid
        Group of each item, in any order, or a `Queries`; None makes all items one group.
    cap
        The maximum number of pairs per group: a larger group is sampled without replacement, all pairs
        equally likely. None: all n(n - 1)/2 pairs of a group of n.
    seed
        Equal seeds yield equal pairs and sides.

    Raises
    ------
    LabelError
        If no group has two items.

    References
    ----------
    Venuto et al., Support vector comparison machines, section 2.1.

    Examples
    --------
    >>> paired = pair_items([[1.0], [5.0], [9.0], [7.0]], [2, 0, 2, 1], qid=["a", "b", "a", "b"])
    >>> paired, sorted(zip(paired.left.tolist(), paired.right.tolist(), paired.y.tolist()))
    (PairedItems(2 pairs, 1 ties), [(0, 2, 0), (3, 1, -1)])
    >>> paired.pairs.shape
    (2, 2, 1)
    """
    refuse_misaligned(X=X, y=y, qid=qid)
    labels = _check_labels(y)
    features = None if X is None else _check_dense(X, len(labels))
    if cap is not None:
        check_whole("cap", cap, 1, also="None")
    queries = Queries.for_rows(qid, len(labels))
    rng = np.random.default_rng(seed)
    group, pair_number = _draw_pairs(queries.sizes, cap, rng)
    if not group.size:
        problem = f"no group has two items (rows: {len(labels)}, groups: {queries.n_queries})"
        raise LabelError(problem, "give items that belong together the same qid.")
    first, second = (
        queries.order[queries.offsets[group] + positions] for positions in pair_positions(pair_number)
    )
    turned = rng.random(len(group)) < 0.5
    left, right = np.where(turned, second, first), np.where(turned, first, second)
    outcome = (labels[right] > labels[left]).astype(np.int64) - (labels[right] < labels[left])
    pairs = None if features is None else np.stack((features[left], features[right]), axis=1)
    return PairedItems(pairs, outcome, left, right)


def _check_labels(y: ArrayLike) -> FloatArray:
    """Check labels, one finite number per item; raise on whole numbers too large to be distinguished."""
    exact = as_exact(y, "y")
    labels = check_column(exact, "y")
    if not labels.size:
        raise EmptyDataError("y")
    refuse_rounded(exact, labels, "y")
    if (bad := ~np.isfinite(labels)).any():
        refuse(bad, labels, "y", "drop items without a label.")
    return labels


def _check_dense(X: ArrayLike, n_rows: int) -> FloatArray:
    """Check the items' features; raise on a sparse matrix, since pairs are dense."""
    if hasattr(X, "tocsr"):
        raise ParameterError.because(
            "X must be dense, got a sparse matrix. Pass X=None and select rows left and right yourself."
        )
    features: FloatArray = check_features(X)
    check_lengths("y", n_rows, X=features)
    return features


def _draw_pairs(sizes: IntArray, cap: int | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw pairs as (group, number of the pair within the group, from 0); both ascending."""
    possible = sizes * (sizes - 1) // 2
    counts = possible if cap is None else np.minimum(possible, cap)
    starts = np.cumsum(counts) - counts
    group = np.repeat(np.arange(len(sizes)), counts)
    number = np.arange(len(group)) - starts[group]
    for full in np.flatnonzero(counts < possible):
        # Pair numbers are drawn instead of pairs: numpy holds at most some 20 entries per number drawn.
        drawn = rng.choice(int(possible[full]), size=int(counts[full]), replace=False, shuffle=False)
        number[starts[full] : starts[full] + counts[full]] = np.sort(drawn)
    return group, number


def pair_positions(number: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions i < j of numbered pairs, where pair (i, j) has number j(j - 1)/2 + i.

    >>> [positions.tolist() for positions in pair_positions(np.arange(6))]
    [[0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]]
    """
    later = ((1.0 + np.sqrt(1.0 + 8.0 * number)) / 2.0).astype(np.int64)
    later -= later * (later - 1) // 2 > number  # the square root may be rounded either way
    later += later * (later + 1) // 2 <= number
    return number - later * (later - 1) // 2, later
