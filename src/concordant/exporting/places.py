"""Where the features of a model lie: centres, spreads, and the values at which trees part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concordant.exporting.sources import Source
from concordant.types import FloatArray

__all__ = ["Places", "places_of"]

DIGITS = 11  # that most data do not exceed
STEADY = 1e-12  # spreads below this share of a feature's size are rounding
TINY, MOST = 1e-34, 1e30  # thresholds beyond it part only what is missing


@dataclass(frozen=True, eq=False)
class Places:
    """Where features lie.

    Attributes
    ----------
    centre, spread
        Of each feature, as far as the model knows; else 0 and 1.
    marks
        Values at which something happens, by feature.
    categories
        How many codes a categorical feature has, by feature.
    """

    centre: FloatArray
    spread: FloatArray
    marks: dict[int, FloatArray] = field(default_factory=dict)
    categories: dict[int, int] = field(default_factory=dict)

    def usual(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Give random rows; half of the values are marks, where there are any."""
        rows = self.centre + self.spread * rng.normal(size=(n_rows, len(self.centre)))
        for number, marks in self.marks.items():
            chosen = rng.random(n_rows) < 0.5
            rows[chosen, number] = rng.choice(marks, chosen.sum())
        for number, codes in self.categories.items():
            rows[:, number] = rng.integers(max(codes, 1), size=n_rows)
        return rows

    def turned(self, rows: FloatArray, size: float) -> FloatArray:
        """Give rows of this size, with the signs of these."""
        return np.where(rows < self.centre, -size, size)

    def with_categories(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Give the rows with the categories of others: codes cannot be large."""
        numbers = list(self.categories)
        rows[:, numbers] = others[: len(rows), numbers]
        return rows

    def with_gaps(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Give rows in which every third value is missing."""
        return np.where(rng.random(rows.shape) < 1.0 / 3.0, np.nan, rows)


def places_of(source: Source) -> Places:
    """Give what the model knows of its features."""
    if source.kind == "trees":
        return tree_places(source.last)
    centre, spread = np.zeros(source.n_features), np.ones(source.n_features)
    if source.kind == "linear":
        spread = np.asarray(getattr(source.last, "scale_", spread), dtype=np.float64)
    elif source.kind == "comparer":
        scaling = source.last.scaling_
        centre[scaling.kept], spread[scaling.kept] = scaling.mean, scaling.deviation
    else:
        return network_places(source, centre, spread)
    return seen_before(source, centre, spread)


def seen_before(source: Source, centre: FloatArray, spread: FloatArray) -> Places:
    """Give where the features lie before the steps of a pipeline."""
    scale = np.where(source.before.scale == 0.0, 1.0, source.before.scale)
    with np.errstate(over="ignore"):
        return Places((centre - source.before.shift) / scale, sound(spread / np.abs(scale)))


def sound(spread: FloatArray) -> FloatArray:
    """Give 1 for spreads that are none."""
    return np.where(np.isfinite(spread) & (spread > 0.0), spread, 1.0)


def network_places(source: Source, centre: FloatArray, spread: FloatArray) -> Places:
    """Give centre and spread as the first transform that knows them does, the ones before it taken back.

    Of quantiles the landmarks are marks: what a value that many rows have becomes is no limit of others.
    """
    steps, marks = list(source.last.scorer_.transforms), {}
    known = next((place for place, one in enumerate(steps) if not is_logarithm(one)), len(steps))
    if known < len(steps) and hasattr(steps[known], "landmarks"):
        landmarks = steps[known].landmarks.double().numpy()
        centre, spread = landmarks.mean(axis=1), landmarks.std(axis=1)
        spread = np.where(spread > STEADY * np.abs(centre), spread, 0.0)
    elif known < len(steps):
        centre, spread = steps[known].mean.double().numpy(), steps[known].spread.double().numpy()
    ends = [taken_back(end[:, None], steps[:known])[:, 0] for end in (centre, centre + sound(spread))]
    for place, one in enumerate(steps):
        if hasattr(one, "landmarks"):
            found = map(np.unique, taken_back(one.landmarks.double().numpy(), steps[:place]))
            # What is taken back is not the very number any more; those that come often are short, mostly.
            marks = {number: shortened(row) if place else row for number, row in enumerate(found)}
            break
    places = seen_before(source, ends[0], np.abs(ends[1] - ends[0]))
    return Places(places.centre, places.spread, marks)


def shortened(values: FloatArray) -> FloatArray:
    """Give numbers of few digits.

    >>> shortened(np.array([0.30000000000000004, -1000000000.0000001])).tolist()
    [0.3, -1000000000.0]
    """
    return np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])


def is_logarithm(step: Any) -> bool:
    """Whether a transform knows nothing of the features."""
    return not (hasattr(step, "landmarks") or hasattr(step, "mean"))


def taken_back(values: FloatArray, steps: Sequence[Any]) -> FloatArray:
    """Give what becomes these values by logarithms and standards; a row is a feature."""
    for step in reversed(steps):
        if is_logarithm(step):
            values = np.sign(values) * np.expm1(np.minimum(np.abs(values), 50.0))
        else:
            mean, spread = step.mean.double().numpy()[:, None], step.spread.double().numpy()[:, None]
            values = mean + values * np.where(np.isfinite(spread), spread, 0.0)
    return values


def tree_places(last: Any) -> Places:
    """Give the thresholds of the splits, and where they lie."""
    marks: dict[int, list[float]] = {}
    for number, threshold in READERS[last.trees_.library](last):
        if number not in last.trees_.categorical and abs(threshold) < MOST:
            # LightGBM parts 0 from others by 1e-35, and reads what is nearer to 0 as 0.
            marks.setdefault(number, []).append(threshold if abs(threshold) > TINY else 0.0)
    centre, spread = np.zeros(last.n_features_in_), np.ones(last.n_features_in_)
    found = {number: np.unique(values) for number, values in marks.items()}
    for number, values in found.items():
        centre[number], spread[number] = values.mean(), max(values.std(), 0.1 * abs(values.mean()))
    sizes = {number: len(known) for number, known in last.encoding_.categories.items()}
    return Places(centre, sound(spread), found, sizes)


def lightgbm_splits(last: Any) -> Iterator[tuple[int, float]]:
    """Give feature and threshold of each split."""
    lines = last.booster_.model_to_string().splitlines()
    numbers = [line.partition("=")[2].split() for line in lines if line.startswith("split_feature=")]
    values = [line.partition("=")[2].split() for line in lines if line.startswith("threshold=")]
    for features, thresholds in zip(numbers, values, strict=True):
        yield from zip(map(int, features), map(float, thresholds), strict=True)


def xgboost_splits(last: Any) -> Iterator[tuple[int, float]]:
    """Give feature and threshold of each split."""
    names = last.booster_.feature_names or [f"f{number}" for number in range(last.n_features_in_)]
    number_of = {name: number for number, name in enumerate(names)}
    waiting = [json.loads(tree) for tree in last.booster_.get_dump(dump_format="json")]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.get("children", []))
        if isinstance(node.get("split_condition"), int | float):
            yield number_of[node["split"]], float(node["split_condition"])


def catboost_splits(last: Any) -> Iterator[tuple[int, float]]:
    """Give feature and border of each split."""
    for number, borders in last.booster_.get_borders().items():
        yield from ((int(number), float(border)) for border in borders)


READERS = {"lightgbm": lightgbm_splits, "xgboost": xgboost_splits, "catboost": catboost_splits}
