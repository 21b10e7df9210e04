"""Golden rows: on which what was written must say what the model says, before it becomes a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ConcordantError, ExportError, ParameterError, ShapeError
from concordant.exporting.places import Places, places_of
from concordant.exporting.sources import Source, feature_names
from concordant.supervision.check import check_features
from concordant.supervision.readers.text import PathLike
from concordant.types import FloatArray

__all__ = ["DOUBLE", "SINGLE", "Draft", "check_draft"]

SINGLE, DOUBLE = 1e-5, 1e-9  # what scores may be off by, as a share of what they are sums of
LOST = 1e-3  # what they may be off by, as a share of how far apart usual rows are
FAINT = 1e-9  # sizes below this share of the usual ones do not matter
N_USUAL, N_SINGLE = 256, 512
MOST_NUMBERS = 2**22  # of one batch; rows of many features are fewer
FAR = 1e6  # spreads that a far row is away
MOST = 1e30  # that features of made rows are large: single precision can still multiply them


@dataclass(frozen=True, eq=False)
class Draft:
    """What is to become a file, and how it is read back.

    Attributes
    ----------
    contents
        The bytes.
    read
        Scores of rows by what stands in a file of these bytes, read anew.
    single
        Whether it reads single precision: then golden rows are rounded to it.
    constant
        What the file leaves out of every score.
    largest
        Sizes from which on rows cannot be scored there; infinite: any.
    wider
        What to do where single precision is not enough, before all else; empty: nothing.
    notes
        What whoever serves it should know.
    """

    contents: bytes
    read: Callable[[bytes, FloatArray], FloatArray]
    single: bool = False
    constant: float = 0.0
    largest: float = np.inf
    wider: str = ""
    notes: tuple[str, ...] = ()

    def tolerance(self, source: Source) -> float:
        """Share of the sizes that scores may be off by; sums of many terms round more often."""
        # Networks themselves give scores in single precision.
        return SINGLE + source.n_features * 2.0**-24 if self.single or source.kind == "network" else DOUBLE

    def rounded(self, rows: FloatArray, path: PathLike) -> FloatArray:
        """Give rows as they arrive; refuse those that cannot."""
        if not self.single:
            return rows
        with np.errstate(over="ignore"):
            found = rows.astype(np.float32).astype(np.float64)
        if (over := np.isinf(found)).any():
            row, feature = np.argwhere(over)[0]
            problem = f"feature {feature} is as large as {rows[row, feature]:.3g}, which float32 cannot hold"
            raise ExportError(path, problem, f"{self.wider}divide it where it is made, and fit again.")
        return found


def check_draft(source: Source, draft: Draft, path: PathLike, golden: Any) -> tuple[int, float]:
    """Compare the scores of golden rows; give their number, and the largest difference as a share of sizes.

    Refused by an `ExportError` where scores are off by more than the tolerance, or by more than is small
    beside how far apart usual rows are: of these, what rounding the features costs counts too.
    """
    batches = made_batches(source) if golden is None else given_batches(source, golden)
    checked, largest, usual, told = 0, 0.0, 0.0, []
    for number, given in enumerate(batches):
        real = golden is not None or number == 0
        batch = scorable(source, draft, given, path, real=real)
        if not len(batch):
            continue
        rows = draft.rounded(batch, path)
        expected, found = source.scores(rows), read_back(draft, rows, path) + draft.constant
        refuse_unscored(found, path)
        sizes, difference = sizes_of(source, draft, rows, expected), np.abs(found - expected)
        usual = max(usual, float(np.median(sizes)))
        share = shares(difference, np.maximum(sizes, FAINT * usual))
        refuse_different(share, difference, draft.tolerance(source), path)
        if real:
            # Made rows stand where trees part, to the last digit, and rounded elsewhere: no others do.
            exact = expected if source.kind == "trees" and golden is None else source.scores(batch)
            told.append((found, exact))
        checked, largest = checked + len(rows), max(largest, float(share.max()))
    if told:
        found, exact = map(np.concatenate, zip(*told, strict=True))
        refuse_lost(found, exact, source, draft, path)
    return checked, largest


def read_back(draft: Draft, rows: FloatArray, path: PathLike) -> FloatArray:
    """Give the scores of rows by the contents; refuse contents that their reader does not read."""
    try:
        return draft.read(draft.contents, rows)
    except ConcordantError:
        raise
    except Exception as error:  # whatever libraries raise
        first = str(error).partition("\n")[0][:200]
        problem = f"its reader does not read what would be written ({type(error).__name__}: {first})"
        raise ExportError(path, problem, "nothing was written; please report it, with the model.") from error


def scorable(source: Source, draft: Draft, batch: FloatArray, path: PathLike, *, real: bool) -> FloatArray:
    """Give the rows that are not too large to be scored; refuse others, unless they are far on purpose."""
    sizes = source.sizes(draft.rounded(batch, path), constant=not draft.constant)
    if sizes is None or (small := sizes < draft.largest).all():
        return batch
    if real:
        row = int(np.argmin(small))
        problem = f"golden row {row} has terms of size {sizes[row]:.3g}, which float32 cannot add"
        raise ExportError(path, problem, f"{draft.wider}make the features smaller, and fit again.")
    return batch[small]


def sizes_of(source: Source, draft: Draft, rows: FloatArray, expected: FloatArray) -> FloatArray:
    """Give what differences are shares of: what a score is a sum of; of networks and trees, its own size."""
    sizes = source.sizes(rows, constant=not draft.constant)
    return np.abs(expected) + expected.std() if sizes is None else sizes


def shares(difference: FloatArray, size: FloatArray) -> FloatArray:
    """Give differences as shares of sizes; 0 where there is none, infinite where the size is 0.

    >>> shares(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 4.0])).tolist()
    [0.0, inf, 0.25]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0.0, 0.0, difference / size)


def refuse_unscored(found: FloatArray, path: PathLike) -> None:
    """Refuse scores that are no finite numbers."""
    if not (fine := np.isfinite(found)).all():
        row = int(np.argmin(fine))
        hint = "weights or features are beyond its numbers: bring the features nearer to 1, and fit again."
        raise ExportError(path, f"what would be written scores golden row {row} as {found[row]}", hint)


def refuse_lost(
    found: FloatArray, expected: FloatArray, source: Source, draft: Draft, path: PathLike
) -> None:
    """Refuse scores whose rounding would change the order of usual rows."""
    difference, spread = np.abs(found - expected), float(expected.std())
    if source.kind == "network":  # which rounds its scores itself
        difference = np.maximum(difference - np.abs(expected) * 2.0**-23, 0.0)
    most = float(difference.max())
    if most > LOST * spread > 0.0:
        off = f"{most:.3g}, while the scores of golden rows differ by {spread:.3g} (standard deviation)"
        hint = f"{draft.wider}features lose digits there, those far from 0 most: subtract a constant where "
        problem = f"what would be written is off by {off}"
        raise ExportError(path, problem, f"{hint}they are made, and fit again.")


def refuse_different(share: FloatArray, difference: FloatArray, tolerance: float, path: PathLike) -> None:
    """Refuse scores that are off by more than rounding."""
    worst = int(np.argmax(share))
    if share[worst] > tolerance:
        off = f"{difference[worst]:.3g}, {share[worst]:.3g} of its size; {tolerance:.1g} is allowed"
        problem = f"what would be written scores golden row {worst} otherwise than the model: off by {off}"
        raise ExportError(path, problem, "nothing was written; please report it, with the model.")


def made_batches(source: Source) -> Iterator[FloatArray]:
    """Give rows at the scale of the features; then rows of one feature each; then zeros and far ones.

    Of ratings a row is the number of an item.
    """
    if source.kind == "ratings":
        yield np.arange(len(source.last.ratings_), dtype=np.float64)[:, None]
        return
    places, rng = places_of(source), np.random.default_rng(0)
    room = MOST_NUMBERS // source.n_features
    usual = places.usual(max(min(N_USUAL, room), 8), rng)
    yield usual
    yield single_features(places, max(min(N_SINGLE, room), 1))
    zeros = np.zeros((1, source.n_features))
    away = np.concatenate([places.centre + sign * FAR * places.spread for sign in (-1.0, 1.0)]).reshape(2, -1)
    far = np.concatenate([zeros, zeros + 1.0, away, places.turned(usual[:4], MOST)])
    yield places.with_categories(np.clip(far, -MOST, MOST), usual)
    if source.kind == "trees":
        yield places.with_gaps(usual, rng)


def single_features(places: Places, most: int = N_SINGLE) -> FloatArray:
    """Give rows in which one feature is not 0, or every so many of more: each weight must be right by itself.

    >>> single_features(Places(np.zeros(2), np.array([1.0, 3.0]))).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    n_features = len(places.spread)
    rows = np.zeros((min(n_features, most), n_features))
    numbers = np.arange(n_features)
    rows[numbers % most, numbers] = places.spread
    return rows


def given_batches(source: Source, golden: Any) -> Iterator[FloatArray]:
    """Give the caller's rows: all at once, or query by query where a network reads the context."""
    from concordant.supervision.queries import Queries

    if source.kind == "ratings":
        raise ParameterError("golden", type(golden).__name__, "left out: ratings have no features")
    rows = given_rows(source, getattr(golden, "X", golden))
    qid = getattr(golden, "qid", None)
    if source.kind != "network" or not source.last.scorer_.context or qid is None:
        yield rows
        return
    queries = Queries.of(qid, len(rows), "golden")
    for query in np.split(queries.gather(rows), queries.offsets[1:-1]):
        if len(query):
            yield query


def given_rows(source: Source, golden: Any) -> FloatArray:
    """Give the caller's rows as numbers; pairs become items, and categories codes."""
    columns = getattr(
        golden, "column_names", getattr(golden, "columns", None) if hasattr(golden, "dtypes") else None
    )
    fitted = feature_names(source.model, None, source.n_features)
    if columns is not None and fitted and [str(name) for name in columns] != list(fitted):
        raise ParameterError("golden", list(columns)[:5], "of the features that were fitted, in their order")
    if np.ndim(golden) == 3:
        golden = np.asarray(golden).reshape(-1, np.shape(golden)[-1])
    if source.kind == "trees":
        rows = source.last.checked_features(golden, reset=False)
    else:
        rows = check_features(golden, "golden")
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    if rows.shape[1] != source.n_features:
        raise ShapeError("golden", rows.shape, f"(n, {source.n_features}): as many features as fitted")
    return np.asarray(rows, dtype=np.float64)
