"""Explanation of differences between tools: the metric under every preset, and the fields that change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from concordant._base.validate import refuse_misaligned
from concordant.data.queries import Queries
from concordant.exceptions import GradeError
from concordant.metrics.convention import PRESETS, Convention, format_field
from concordant.metrics.convention import convention as read_convention
from concordant.metrics.metric import Metric, MetricValue
from concordant.metrics.parse import metric as read_metric
from concordant.types import ArrayLike

UNCHANGED = 1e-12  # smaller changes of the value count as none


@dataclass(frozen=True)
class ConventionStep:
    """One changed field of the convention, and the change of the value that it causes."""

    field: str
    value: Any
    change: float

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else format_field(self.value)
        return f"{self.field}={value} {self.change:+.4f}"


@dataclass(frozen=True)
class PresetValue:
    """The metric under one preset, and the steps from the base convention to it, field by field."""

    preset: str
    value: MetricValue
    steps: tuple[ConventionStep, ...] = ()
    refused: str = ""  # why the preset cannot score these labels

    @property
    def reason(self) -> str:
        """The steps, or why there are none."""
        return self.refused or "  ".join(map(str, self.steps)) or "no difference"

    @property
    def cause(self) -> ConventionStep | None:
        """The field that changes the value most; None if no field changes it."""
        return max(self.steps, key=lambda step: abs(step.change), default=None)


@dataclass(frozen=True)
class Explanation:
    """A table with one row per preset. Printing it shows the values and the fields that cause differences."""

    metric: Metric
    rows: tuple[PresetValue, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per row, for JSON or a data frame."""
        return [
            {
                "preset": row.preset,
                "value": float(row.value),
                "n_queries": row.value.n_queries,
                "n_skipped": row.value.n_skipped,
                "steps": [vars(step) | {"value": format_field(step.value)} for step in row.steps],
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
    """Tabulate a metric under every preset, and name the fields that change its value.

    Starting from the metric's convention, the fields of the preset are adopted one by one, in the order in
    which `Convention` lists them; each step shows the change of the value, and the steps of a row add up to
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
    refuse_misaligned(y=y, scores=scores, qid=qid, docid=docid)
    queries = None if qid is None else Queries.from_ids(qid) if not isinstance(qid, Queries) else qid

    def value(convention: Convention) -> MetricValue:
        return read_metric(base, convention=convention)(y, scores, qid=queries, docid=docid, weights=weights)

    first = PresetValue(str(base.convention), value(base.convention))
    preset_list = [presets] if isinstance(presets, (str, Convention)) else presets
    conventions = {str(preset): read_convention(preset) for preset in preset_list}
    others = [name for name, preset in conventions.items() if preset != base.convention]
    rows = [_explain_preset(name, conventions[name], base.convention, first.value, value) for name in others]
    return Explanation(base, (first, *rows))


def _explain_preset(
    name: str,
    preset: Convention,
    start: Convention,
    before: MetricValue,
    value: Callable[[Convention], MetricValue],
) -> PresetValue:
    """Change a convention to a preset field by field; note why a preset cannot score the labels."""
    now, reached, steps = start, before, []
    try:
        for field, setting in start.differences(preset).items():
            now = now.replace(**{field: setting})
            after = value(now)
            change = float(after) - float(reached)
            # NaN to NaN is no change; a number to NaN, or back, is one.
            if not abs(change) <= UNCHANGED and not (math.isnan(after) and math.isnan(reached)):
                steps.append(ConventionStep(field, setting, change))
            reached = after
    except GradeError as error:
        return PresetValue(name, MetricValue(float("nan")), refused=str(error).splitlines()[0])
    return PresetValue(name, reached, tuple(steps))
