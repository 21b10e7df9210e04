"""Items with ordinal labels become comparisons within their groups."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.check import check_features
from concordant.supervision.columns import as_numpy, check_column, check_lengths, refuse, refuse_rounded
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["PairedItems", "pair_items"]


@dataclass(frozen=True, eq=False)
class PairedItems:
    """Comparisons made of items.

    Attributes
    ----------
    pairs
        Features of both sides, shape (n_pairs, 2, n_features); None where no features were given.
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
    """Give the pairs of items of the same group, with y = sign(label of the right - label of the left).

    Groups of one item and empty groups give no pair. Time and memory grow with the number of pairs given,
    not with the number that could be. Which item stands on the left is drawn at random: else it would always
    be the earlier row, and where the rows stand best first, as search results do, one outcome would never
    occur, and the side alone would tell the winner.

    Parameters
    ----------
    X
        Features, one row per item. None: only `y`, `left` and `right` are wanted, and no features are copied
        (a row is copied once for each pair that it is in).
    y
        Labels: finite numbers of which only the order counts, the larger the better.
    qid
        Group of each item, in any order, or a `Queries`; None makes all items one group.
    cap
        The most pairs of a group: from a group with more, this many are drawn without replacement, all pairs
        equally likely. None: all n(n - 1)/2 pairs of a group of n.
    seed
        Equal seeds give equal pairs and sides.

    Raises
    ------
    LabelError
        If no group has two items.

    References
    ----------
    Venuto et al., Support vector comparison machines, section 2.1.

    Examples
    --------
    >>> made = pair_items([[1.0], [5.0], [9.0], [7.0]], [2, 0, 2, 1], qid=["a", "b", "a", "b"])
    >>> made, sorted(zip(made.left.tolist(), made.right.tolist(), made.y.tolist()))
    (PairedItems(2 pairs, 1 ties), [(0, 2, 0), (3, 1, -1)])
    >>> made.pairs.shape
    (2, 2, 1)
    """
    labels = check_labels(y)
    features = None if X is None else check_dense(X, len(labels))
    if cap is not None and not (isinstance(cap, Integral) and cap >= 1):
        raise ParameterError("cap", cap, "None or a whole number >= 1")
    queries = Queries.of(qid, len(labels))
    rng = np.random.default_rng(seed)
    group, number = chosen_pairs(queries.sizes, cap, rng)
    if not group.size:
        problem = f"no group has two items (rows: {len(labels)}, groups: {queries.n_queries})"
        raise LabelError(problem, "give items that belong together the same qid.")
    first, second = (queries.order[queries.offsets[group] + place] for place in places(number))
    turned = rng.random(len(group)) < 0.5
    left, right = np.where(turned, second, first), np.where(turned, first, second)
    outcome = (labels[right] > labels[left]).astype(np.int64) - (labels[right] < labels[left])
    pairs = None if features is None else np.stack((features[left], features[right]), axis=1)
    return PairedItems(pairs, outcome, left, right)


def check_labels(y: ArrayLike) -> FloatArray:
    """Give one finite number per item; whole numbers too large to be told apart are refused."""
    given = as_numpy(y, "y")
    labels = check_column(given, "y")
    if not labels.size:
        raise EmptyDataError("y")
    if given.dtype.kind in "iu":
        refuse_rounded(given.ravel(), "y")
    if (bad := ~np.isfinite(labels)).any():
        refuse(bad, labels, "y", "drop items without a label.")
    return labels


def check_dense(X: ArrayLike, n_rows: int) -> FloatArray:
    """Give the features of the items; a sparse matrix is refused, since pairs are dense."""
    if hasattr(X, "tocsr"):
        raise ParameterError("X", type(X).__name__, "dense, or None: then take rows left and right yourself")
    features: FloatArray = check_features(X)
    check_lengths("y", n_rows, X=features)
    return features


def chosen_pairs(sizes: IntArray, cap: int | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Give the group and the number within the group, from 0, of each pair; both ascend."""
    possible = sizes * (sizes - 1) // 2
    counts = possible if cap is None else np.minimum(possible, cap)
    starts = np.cumsum(counts) - counts
    group = np.repeat(np.arange(len(sizes)), counts)
    number = np.arange(len(group)) - starts[group]
    for full in np.flatnonzero(counts < possible):
        # Numbers are drawn, not pairs: numpy keeps at most some 20 for each one that it gives.
        drawn = rng.choice(int(possible[full]), size=int(counts[full]), replace=False, shuffle=False)
        number[starts[full] : starts[full] + counts[full]] = np.sort(drawn)
    return group, number


def places(number: IntArray) -> tuple[IntArray, IntArray]:
    """Give places i < j of the pairs of these numbers, where pair (i, j) has number j(j - 1)/2 + i.

    >>> [place.tolist() for place in places(np.arange(6))]
    [[0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]]
    """
    later = ((1.0 + np.sqrt(1.0 + 8.0 * number)) / 2.0).astype(np.int64)
    later -= later * (later - 1) // 2 > number  # the square root may round up, or down
    later += later * (later + 1) // 2 <= number
    return number - later * (later - 1) // 2, later
