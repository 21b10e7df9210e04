"""Rows of a file, and the features of them that a model reads.

It loads numpy; the options of commands, in `row_options`, do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concordant.cli.shared.evaluation_tables import MetricResult, measure
from concordant.cli.shared.judged_rankings import JudgedRanking
from concordant.cli.shared.output import COMPILING, plural, working
from concordant.data.labels import RankingData
from concordant.exceptions import ConcordantError, LabelError, ShapeError
from concordant.types import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class FileRows(RankingData):
    """Rows of a file, with its path, and the names of the features if it is a table.

    Attributes
    ----------
    n_filled
        Number of last features without any value in LETOR text, which leaves zeros out; they were set to 0.
    """

    path: Path = Path()
    features: tuple[str, ...] | None = None
    n_filled: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `fit`."""
        return (_named_table(self.X, self.features), self.y), {"qid": self.qid}

    def measure_model(
        self, model: Any, name: str, metrics: Sequence[str], *, quiet: bool
    ) -> list[MetricResult]:
        """Measure a model on these rows; `name` is their name in tables."""
        import concordant as cc

        with working(f"Measuring {name} {COMPILING}", quiet=quiet):
            ranking = JudgedRanking(
                name, self.y, score_rows(model, self), cc.Queries.from_ids(self.qid), self.docid
            )
            return [measure(ranking, cc.metric(metric)) for metric in metrics]


def _named_table(X: Any, names: Iterable[str] | None) -> Any:
    """Return the features as estimators take them: with their names, if they have names."""
    if names is None:
        return X
    import pyarrow as pa

    return pa.table({name: X[:, column] for column, name in enumerate(names)})


def features_for(model: Any, rows: FileRows) -> Any:
    """Return the features that a model reads: by name if both have names, else by number.

    LETOR text leaves zeros out, so that its last features may be in no row: they count as 0, and
    `padding_notes` states it. Any other mismatch raises.
    """
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None and rows.features is not None:
        return _named_features(rows, [str(name) for name in feature_names])
    n_given, n_expected = rows.X.shape[1], int(model.n_features_in_)
    if n_given > n_expected or (n_given < n_expected and rows.features is not None):
        expected = f"{plural(n_expected, 'feature', 'features')}, as the model was fitted with"
        raise ShapeError(str(rows.path), rows.X.shape, expected)
    names = None if feature_names is None else map(str, feature_names)
    return _named_table(pad_features(rows.X, n_expected), names)


def _named_features(rows: FileRows, feature_names: list[str]) -> Any:
    column_by_name = {name: number for number, name in enumerate(rows.features or ())}
    missing = [name for name in feature_names if name not in column_by_name]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        problem = f"{rows.path} lacks features of the model: {', '.join(missing[:5])}{more}"
        raise LabelError(
            problem, f"its features are {', '.join(column_by_name)}; rename them, or give others."
        )
    return _named_table(rows.X[:, [column_by_name[name] for name in feature_names]], feature_names)


def pad_features(X: Any, n_features: int) -> Any:
    """Append columns of 0."""
    more = n_features - X.shape[1]
    return X if more == 0 else np.hstack((X, np.zeros((X.shape[0], more), dtype=X.dtype)))


def count_filled(model: Any, rows: FileRows) -> int:
    """Count the model's last features that LETOR text has no value of."""
    return rows.n_filled + (0 if rows.features is not None else int(model.n_features_in_) - rows.n_features)


def padding_notes(model: Any, rows: FileRows) -> list[str]:
    """State which features were taken as 0."""
    more = count_filled(model, rows)
    lacking = plural(more, "last feature", "last features")
    remark = f"{rows.path.name} has no value of the model's {lacking}: 0, as LETOR leaves zeros out"
    return [remark] * (more > 0)


def score_rows(model: Any, rows: FileRows) -> FloatArray:
    """Return one score per row; of pair rankers the negated position in the query."""
    if not hasattr(model, "scores_to_rank"):
        raise ConcordantError(
            f"a {type(model).__name__} does not score rows.\nHint: `concordant compare` reads such models."
        )
    return np.asarray(model.scores_to_rank(features_for(model, rows), rows.qid), dtype=np.float64)
