"""Why two tools disagree on one number: the metric under every preset, and the fields that move it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import GradeError
from concordant.metrics.convention import PRESETS, Convention, written
from concordant.metrics.convention import convention as read_convention
from concordant.metrics.metric import Metric, MetricValue
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike

__all__ = ["Explanation", "Step", "explain"]

UNCHANGED = 1e-12  # a field that moves the number by less does not move it


@dataclass(frozen=True)
class Step:
    """One field of the convention, changed, and by how much the number moved."""

    field: str
    value: Any
    change: float

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else written(self.value)
        return f"{self.field}={value} {self.change:+.4f}"


@dataclass(frozen=True)
class Row:
    """The metric under one preset, and the way from the base convention to it, field by field."""

    preset: str
    value: MetricValue
    steps: tuple[Step, ...] = ()
    refused: str = ""  # why the preset cannot score these labels

    @property
    def reason(self) -> str:
        """The steps, or why there are none."""
        return self.refused or "  ".join(map(str, self.steps)) or "no difference"

    @property
    def cause(self) -> Step | None:
        """The field that moves the number most; None where nothing moves it."""
        return max(self.steps, key=lambda step: abs(step.change), default=None)


@dataclass(frozen=True)
class Explanation:
    """A table: one row per preset. Printing it shows the numbers and the fields behind them."""

    metric: Metric
    rows: tuple[Row, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dictionary per row, for JSON or a data frame."""
        return [
            {
                "preset": row.preset,
                "value": float(row.value),
                "n_queries": row.value.n_queries,
                "n_skipped": row.value.n_skipped,
                "steps": [vars(step) | {"value": written(step.value)} for step in row.steps],
                "refused": row.refused,
            }
            for row in self.rows
        ]

    def __str__(self) -> str:
        first, *others = self.rows
        lines = [f"{self.metric}, and what moves it from {first.preset}"]
        lines += [f"{first.preset:<11} {float(first.value):.4f}"]
        lines += [f"{row.preset:<11} {float(row.value):.4f}  {row.reason}" for row in others]
        return "\n".join(lines)

    __repr__ = __str__


def explain(
    metric: str | Metric,
    y: ArrayLike,
    scores: ArrayLike,
    *,
    qid: ArrayLike = None,
    docid: ArrayLike = None,
    weights: ArrayLike = None,
    presets: str | Convention | Iterable[str | Convention] = tuple(PRESETS),
) -> Explanation:
    """Tabulate a metric under every preset, and name the fields that move the number.

    From the metric's own convention the fields of the preset are adopted one by one, in the order in
    which `Convention` lists them; each step shows how far the number moved, and the steps of a row add up to
    its difference from the first row.

    Parameters
    ----------
    metric, y, scores, qid, docid, weights
        As for a call of the metric.
    presets
        Conventions to compare with: presets, or changed ones (`"lightgbm,empty=0"`).

    Examples
    --------
    >>> explain("ndcg@3", [3, 0, 1, 2, 0], [0.1, 0.9, 0.5, 0.5, 0.2], presets=["lightgbm", "trec_eval"])
    ndcg@3, and what moves it from concordant
    concordant  0.2408
    lightgbm    0.2269  ties=input -0.0139
    trec_eval   0.3700  gain=linear +0.1154  ties=id_descending +0.0137
    """
    base = read_metric(metric)
    queries = None if qid is None else Queries.from_ids(qid) if not isinstance(qid, Queries) else qid

    def value(convention: Convention) -> MetricValue:
        return read_metric(base, convention=convention)(y, scores, qid=queries, docid=docid, weights=weights)

    first = Row(str(base.convention), value(base.convention))
    given = [presets] if isinstance(presets, (str, Convention)) else presets
    chosen = {str(preset): read_convention(preset) for preset in given}
    others = [name for name, preset in chosen.items() if preset != base.convention]
    rows = [explain_preset(name, chosen[name], base.convention, first.value, value) for name in others]
    return Explanation(base, (first, *rows))


def explain_preset(
    name: str,
    preset: Convention,
    start: Convention,
    before: MetricValue,
    value: Callable[[Convention], MetricValue],
) -> Row:
    """Walk from one convention to a preset, a field at a time; a preset that refuses the labels says why."""
    now, reached, steps = start, before, []
    try:
        for field, setting in start.differences(preset).items():
            now = now.replace(**{field: setting})
            after = value(now)
            change = float(after) - float(reached)
            # From NaN to NaN nothing moved; from or to NaN counts as a move.
            if not abs(change) <= UNCHANGED and not (math.isnan(after) and math.isnan(reached)):
                steps.append(Step(field, setting, change))
            reached = after
    except GradeError as error:
        return Row(name, MetricValue(float("nan")), refused=str(error).splitlines()[0])
    return Row(name, reached, tuple(steps))
