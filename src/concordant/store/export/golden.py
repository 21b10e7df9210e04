"""Golden rows: the written contents must score them as the model does, before they become a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concordant._base.files import PathLike
from concordant.data.check import check_features
from concordant.exceptions import ConcordantError, ExportError, ParameterError, ShapeError
from concordant.store.export.export_sources import ExportSource, feature_names
from concordant.types import FloatArray

# Ranges of the features of a model: centres, spreads, and the values at which trees split.

DIGITS = 11  # most data have no more
STEADY = 1e-12  # spreads below this share of a feature's size are rounding
TINY, LARGEST_THRESHOLD = 1e-34, 1e30  # thresholds beyond it separate only missing values


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """Ranges of the features of a model."""

    centre: FloatArray  # of each feature, as far as the model knows; else 0
    spread: FloatArray  # likewise; else 1
    marks: dict[int, FloatArray] = field(default_factory=dict)  # where the score has a kink or a jump
    categories: dict[int, int] = field(default_factory=dict)  # number of codes, of categorical features

    def sample_rows(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Draw random rows; half of the values are marks, if there are any."""
        rows = self.centre + self.spread * rng.normal(size=(n_rows, len(self.centre)))
        for number, marks in self.marks.items():
            at_marks = rng.random(n_rows) < 0.5
            rows[at_marks, number] = rng.choice(marks, at_marks.sum())
        for number, codes in self.categories.items():
            rows[:, number] = rng.integers(max(codes, 1), size=n_rows)
        return rows


def _read_ranges(source: ExportSource) -> FeatureRanges:
    if source.kind == "trees":
        return _tree_ranges(source.last)
    centre, spread = np.zeros(source.n_features), np.ones(source.n_features)
    if source.kind == "linear":
        spread = np.asarray(getattr(source.last, "scale_", spread), dtype=np.float64)
    elif source.kind == "comparer":
        scaling = source.last.scaling_
        centre[scaling.kept], spread[scaling.kept] = scaling.mean, scaling.deviation
    else:
        return _network_ranges(source, centre, spread)
    return _undo_scaling(source, centre, spread)


def _undo_scaling(source: ExportSource, centre: FloatArray, spread: FloatArray) -> FeatureRanges:
    scale = np.where(source.before.scale == 0.0, 1.0, source.before.scale)
    with np.errstate(over="ignore"):
        raw_centre = (centre - source.before.shift) / scale
        return FeatureRanges(raw_centre, _replace_bad_spreads(spread / np.abs(scale)))


def _replace_bad_spreads(spread: FloatArray) -> FloatArray:
    """Replace spreads that are not positive and finite by 1."""
    return np.where(np.isfinite(spread) & (spread > 0.0), spread, 1.0)


def _network_ranges(source: ExportSource, centre: FloatArray, spread: FloatArray) -> FeatureRanges:
    """Read centre and spread from the first transform that knows them, with the earlier transforms inverted.

    Landmarks of quantiles are marks: the share of a value that many rows have is no limit of others.
    """
    steps, marks = list(source.last.scorer_.transforms), {}
    first_scaled = next((index for index, step in enumerate(steps) if not _is_logarithm(step)), len(steps))
    if first_scaled < len(steps) and hasattr(steps[first_scaled], "landmarks"):
        landmarks = steps[first_scaled].landmarks.double().numpy()
        centre, spread = landmarks.mean(axis=1), landmarks.std(axis=1)
        spread = np.where(spread > STEADY * np.abs(centre), spread, 0.0)
    elif first_scaled < len(steps):
        centre = steps[first_scaled].mean.double().numpy()
        spread = steps[first_scaled].spread.double().numpy()
    scaled_ends = np.column_stack([centre, centre + _replace_bad_spreads(spread)])
    ends = _invert_steps(scaled_ends, steps[:first_scaled]).T
    for index, step in enumerate(steps):
        if hasattr(step, "landmarks"):
            landmark_rows = map(np.unique, _invert_steps(step.landmarks.double().numpy(), steps[:index]))
            # Inverted numbers are no longer exact; those that occur often mostly have few digits.
            marks = {number: _shorten(row) if index else row for number, row in enumerate(landmark_rows)}
            break
    ranges = _undo_scaling(source, ends[0], np.abs(ends[1] - ends[0]))
    return FeatureRanges(ranges.centre, ranges.spread, marks)


def _shorten(values: FloatArray) -> FloatArray:
    """Round numbers to few digits.

    >>> _shorten(np.array([0.30000000000000004, -1000000000.0000001])).tolist()
    [0.3, -1000000000.0]
    """
    return np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])


def _is_logarithm(step: Any) -> bool:
    """True if a transform knows nothing of the features."""
    return not (hasattr(step, "landmarks") or hasattr(step, "mean"))


def _invert_steps(values: FloatArray, steps: Sequence[Any]) -> FloatArray:
    """Invert logarithms and standardizations; a row is a feature."""
    for step in reversed(steps):
        if _is_logarithm(step):
            values = np.sign(values) * np.expm1(np.minimum(np.abs(values), 50.0))
        else:
            mean, spread = step.mean.double().numpy()[:, None], step.spread.double().numpy()[:, None]
            values = mean + values * np.where(np.isfinite(spread), spread, 0.0)
    return values


def _tree_ranges(last: Any) -> FeatureRanges:
    """Return the thresholds of the splits, and the ranges that they cover."""
    split_values: dict[int, list[float]] = {}
    for number, threshold in READERS[last.trees_.library](last):
        if number not in last.trees_.categorical and abs(threshold) < LARGEST_THRESHOLD:
            # LightGBM separates 0 from other values by 1e-35, and reads values nearer to 0 as 0.
            split_values.setdefault(number, []).append(threshold if abs(threshold) > TINY else 0.0)
    centre, spread = np.zeros(last.n_features_in_), np.ones(last.n_features_in_)
    thresholds = {number: np.unique(values) for number, values in split_values.items()}
    for number, values in thresholds.items():
        centre[number], spread[number] = values.mean(), max(values.std(), 0.1 * abs(values.mean()))
    sizes = {number: len(categories) for number, categories in last.encoding_.categories.items()}
    return FeatureRanges(centre, _replace_bad_spreads(spread), thresholds, sizes)


def _lightgbm_splits(last: Any) -> Iterator[tuple[int, float]]:
    lines = last.booster_.model_to_string().splitlines()
    numbers = [line.partition("=")[2].split() for line in lines if line.startswith("split_feature=")]
    values = [line.partition("=")[2].split() for line in lines if line.startswith("threshold=")]
    for features, thresholds in zip(numbers, values, strict=True):
        yield from zip(map(int, features), map(float, thresholds), strict=True)


def _xgboost_splits(last: Any) -> Iterator[tuple[int, float]]:
    names = last.booster_.feature_names or [f"f{number}" for number in range(last.n_features_in_)]
    number_of = {name: number for number, name in enumerate(names)}
    waiting = [json.loads(tree) for tree in last.booster_.get_dump(dump_format="json")]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.get("children", []))
        if isinstance(node.get("split_condition"), int | float):
            yield number_of[node["split"]], float(node["split_condition"])


def _catboost_splits(last: Any) -> Iterator[tuple[int, float]]:
    for number, borders in last.booster_.get_borders().items():
        yield from ((int(number), float(border)) for border in borders)


READERS = {"lightgbm": _lightgbm_splits, "xgboost": _xgboost_splits, "catboost": _catboost_splits}


SINGLE, DOUBLE = 1e-5, 1e-9  # largest error of scores, relative to the size of their terms
LOST = 1e-3  # largest error of scores, relative to their spread over usual rows
FAINT = 1e-9  # sizes below this share of the usual ones do not matter
N_USUAL, N_SINGLE = 256, 512
MOST_NUMBERS = 2**22  # per batch; rows of many features are fewer
FAR = 1e6  # distance of a far row from the centre, in spreads
LARGEST_VALUE = 1e30  # of features in synthetic rows: single precision can still multiply them


@dataclass(frozen=True, eq=False)
class Draft:
    """Contents of a file to be written, and how they are read back."""

    contents: bytes
    read: Callable[[bytes, FloatArray], FloatArray]  # scores rows by a file of these bytes, read again
    single: bool = False  # it reads single precision: then golden rows are rounded to it
    constant: float = 0.0  # that the file leaves out of every score
    largest: float = np.inf  # size from which on rows cannot be scored there
    wider: str = ""  # first hint in errors if single precision is not enough
    notes: tuple[str, ...] = ()  # what the person who serves the model should know

    def tolerance(self, source: ExportSource) -> float:
        """Largest relative difference of scores that is allowed; sums of many terms round more often."""
        # Networks themselves give scores in single precision.
        return SINGLE + source.n_features * 2.0**-24 if self.single or source.kind == "network" else DOUBLE

    def round_rows(self, rows: FloatArray, path: PathLike) -> FloatArray:
        """Round rows to the precision of the file; raise if they overflow."""
        if not self.single:
            return rows
        with np.errstate(over="ignore"):
            rounded = rows.astype(np.float32).astype(np.float64)
        if (is_infinite := np.isinf(rounded)).any():
            row, feature = np.argwhere(is_infinite)[0]
            problem = f"feature {feature} is as large as {rows[row, feature]:.3g}, which float32 cannot hold"
            raise ExportError(path, problem, f"{self.wider}divide it where it is made, and fit again.")
        return rounded


def check_draft(source: ExportSource, draft: Draft, path: PathLike, golden: Any) -> tuple[int, float]:
    """Compare the scores of golden rows; return their number and the largest relative difference.

    Raises an `ExportError` if scores are off by more than the tolerance, or by more than a small share of
    their spread over usual rows; for these, the error of rounding the features counts too.
    """
    batches = _synthetic_batches(source) if golden is None else _user_batches(source, golden)
    checked, largest, usual_size, real_scores = 0, 0.0, 0.0, []
    for number, raw_batch in enumerate(batches):
        real = golden is not None or number == 0
        batch = _scorable(source, draft, raw_batch, path, real=real)
        if not len(batch):
            continue
        rows = draft.round_rows(batch, path)
        expected, file_scores = source.scores(rows), _read_back(draft, rows, path) + draft.constant
        _refuse_unscored(file_scores, path)
        sizes, difference = _score_sizes(source, draft, rows, expected), np.abs(file_scores - expected)
        usual_size = max(usual_size, float(np.median(sizes)))
        relative = _relative_sizes(difference, np.maximum(sizes, FAINT * usual_size))
        _refuse_different(relative, difference, draft.tolerance(source), path)
        if real:
            # Synthetic rows lie exactly on the thresholds of trees and would be rounded across them.
            exact = expected if source.kind == "trees" and golden is None else source.scores(batch)
            real_scores.append((file_scores, exact))
        checked, largest = checked + len(rows), max(largest, float(relative.max()))
    if real_scores:
        file_scores, exact = map(np.concatenate, zip(*real_scores, strict=True))
        _refuse_lost(file_scores, exact, source, draft, path)
    return checked, largest


def _read_back(draft: Draft, rows: FloatArray, path: PathLike) -> FloatArray:
    try:
        return draft.read(draft.contents, rows)
    except ConcordantError:
        raise
    except Exception as error:  # whatever libraries raise
        first = str(error).partition("\n")[0][:200]
        problem = f"its reader cannot read the file that would be written ({type(error).__name__}: {first})"
        raise ExportError(path, problem, "nothing was written; please report it, with the model.") from error


def _scorable(
    source: ExportSource, draft: Draft, batch: FloatArray, path: PathLike, *, real: bool
) -> FloatArray:
    """Return the rows that are small enough to be scored; raise for others, unless far by design."""
    sizes = source.sizes(draft.round_rows(batch, path), constant=not draft.constant)
    if sizes is None or (is_small := sizes < draft.largest).all():
        return batch
    if real:
        row = int(np.argmin(is_small))
        problem = f"golden row {row} has terms of size {sizes[row]:.3g}, which float32 cannot add"
        raise ExportError(path, problem, f"{draft.wider}make the features smaller, and fit again.")
    return batch[is_small]


def _score_sizes(source: ExportSource, draft: Draft, rows: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the sizes of scores: the sum of absolute terms; for networks and trees, the score itself."""
    sizes = source.sizes(rows, constant=not draft.constant)
    return np.abs(expected) + expected.std() if sizes is None else sizes


def _relative_sizes(difference: FloatArray, size: FloatArray) -> FloatArray:
    """Divide differences by sizes; 0 if there is no difference, infinite if the size is 0.

    >>> _relative_sizes(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 4.0])).tolist()
    [0.0, inf, 0.25]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0.0, 0.0, difference / size)


def _refuse_unscored(file_scores: FloatArray, path: PathLike) -> None:
    if not (is_finite := np.isfinite(file_scores)).all():
        row = int(np.argmin(is_finite))
        hint = "weights or features are beyond its numbers: bring the features nearer to 1, and fit again."
        raise ExportError(path, f"the written file would score golden row {row} as {file_scores[row]}", hint)


def _refuse_lost(
    file_scores: FloatArray, expected: FloatArray, source: ExportSource, draft: Draft, path: PathLike
) -> None:
    """Raise for scores whose rounding would change the order of usual rows."""
    difference, spread = np.abs(file_scores - expected), float(expected.std())
    if source.kind == "network":  # a network rounds its scores itself
        difference = np.maximum(difference - np.abs(expected) * 2.0**-23, 0.0)
    most = float(difference.max())
    if most > LOST * spread > 0.0:
        off = f"{most:.3g}, while the scores of golden rows differ by {spread:.3g} (standard deviation)"
        hint = f"{draft.wider}features lose digits there, those far from 0 most: subtract a constant where "
        problem = f"the written file would be off by {off}"
        raise ExportError(path, problem, f"{hint}they are made, and fit again.")


def _refuse_different(share: FloatArray, difference: FloatArray, tolerance: float, path: PathLike) -> None:
    worst = int(np.argmax(share))
    if share[worst] > tolerance:
        off = f"{difference[worst]:.3g}, {share[worst]:.3g} of its size; {tolerance:.1g} is allowed"
        problem = f"the written file would score golden row {worst} differently from the model: off by {off}"
        raise ExportError(path, problem, "nothing was written; please report it, with the model.")


def _synthetic_batches(source: ExportSource) -> Iterator[FloatArray]:
    """Yield rows at the scale of the features; then rows of one feature each; then zeros and far rows.

    For ratings a row is the number of an item.
    """
    if source.kind == "ratings":
        yield np.arange(len(source.last.ratings_), dtype=np.float64)[:, None]
        return
    ranges, rng = _read_ranges(source), np.random.default_rng(0)
    room = MOST_NUMBERS // source.n_features
    usual = ranges.sample_rows(max(min(N_USUAL, room), 8), rng)
    yield usual
    yield _single_features(ranges, max(min(N_SINGLE, room), 1))
    zeros = np.zeros((1, source.n_features))
    away = np.concatenate([ranges.centre + sign * FAR * ranges.spread for sign in (-1.0, 1.0)]).reshape(2, -1)
    extreme = np.where(usual[:4] < ranges.centre, -LARGEST_VALUE, LARGEST_VALUE)
    far = np.concatenate([zeros, zeros + 1.0, away, extreme]).clip(-LARGEST_VALUE, LARGEST_VALUE)
    categorical = list(ranges.categories)
    far[:, categorical] = usual[: len(far), categorical]  # codes cannot be large
    yield far
    if source.kind == "trees":  # a third of the values is missing
        yield np.where(rng.random(usual.shape) < 1.0 / 3.0, np.nan, usual)


def _single_features(ranges: FeatureRanges, most: int = N_SINGLE) -> FloatArray:
    """Return rows in which only one feature, or every `most`-th, is not 0: each weight is checked alone.

    >>> _single_features(FeatureRanges(np.zeros(2), np.array([1.0, 3.0]))).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    n_features = len(ranges.spread)
    rows = np.zeros((min(n_features, most), n_features))
    numbers = np.arange(n_features)
    rows[numbers % most, numbers] = ranges.spread
    return rows


def _user_batches(source: ExportSource, golden: Any) -> Iterator[FloatArray]:
    """Yield the caller's rows: all at once, or query by query if a network reads the context."""
    from concordant.data.queries import Queries

    if source.kind == "ratings":
        raise ParameterError.because("golden was given, but ratings have no features. Leave it out.")
    rows = _user_rows(source, getattr(golden, "X", golden))
    qid = getattr(golden, "qid", None)
    if source.kind != "network" or not source.last.scorer_.context or qid is None:
        yield rows
        return
    queries = Queries.for_rows(qid, len(rows), "golden")
    for query in np.split(queries.gather(rows), queries.offsets[1:-1]):
        if len(query):
            yield query


def _user_rows(source: ExportSource, golden: Any) -> FloatArray:
    """Return the caller's rows as numbers; pairs become items, and categories codes."""
    columns = getattr(golden, "columns", None) if hasattr(golden, "dtypes") else None
    columns = getattr(golden, "column_names", columns)  # of a pyarrow table, whose `columns` are arrays
    fitted = feature_names(source.model, None, source.n_features)
    if columns is not None and fitted and [str(name) for name in columns] != list(fitted):
        raise ParameterError.because(
            f"The columns of golden must be the fitted features in their order, got {list(columns)[:5]}."
        )
    if np.ndim(golden) == 3:
        golden = np.asarray(golden).reshape(-1, np.shape(golden)[-1])
    is_trees = source.kind == "trees"
    rows = source.last.checked_features(golden, reset=False) if is_trees else check_features(golden, "golden")
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    if rows.shape[1] != source.n_features:
        raise ShapeError("golden", rows.shape, f"(n, {source.n_features}): as many features as fitted")
    return np.asarray(rows, dtype=np.float64)
