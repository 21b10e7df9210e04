"""Rows of a file, and what of them a model is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concordant.cli.inputs import Ranking
from concordant.cli.output import COMPILING, plural, working
from concordant.cli.results import Result, measure
from concordant.exceptions import ConcordantError, LabelError, ShapeError
from concordant.supervision.data import RankingData
from concordant.types import FloatArray

__all__ = ["FileRows", "features_for", "given_features", "padding", "scores_of"]


@dataclass(frozen=True, eq=False, repr=False)
class FileRows(RankingData):
    """Rows of a file, with its path, and the names of the features where it is a table."""

    path: Path = Path()
    features: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return int(self.X.shape[1])

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give what `fit` is called with."""
        return (given_features(self), self.y), {"qid": self.qid}

    def judged(self, model: Any, name: str, metrics: Sequence[str], *, quiet: bool) -> list[Result]:
        """Give what a model is worth on these rows, which are called so."""
        import concordant as cc

        with working(f"Measuring {name} {COMPILING}", quiet=quiet):
            ranking = Ranking(name, self.y, scores_of(model, self), cc.Queries.from_ids(self.qid), self.docid)
            return [measure(ranking, cc.metric(one)) for one in metrics]


def given_features(rows: FileRows, X: Any = None) -> Any:
    """Give features as estimators take them: with their names, where the file has names."""
    X = rows.X if X is None else X
    if rows.features is None:
        return X
    import pyarrow as pa

    return pa.table({name: X[:, place] for place, name in enumerate(rows.features)})


def features_for(model: Any, rows: FileRows) -> Any:
    """Give the features that a model reads: by name where both have names, else by number.

    LETOR text leaves zeros out, so that the last features may be in no row of it: they count as 0, and
    `padding` says so. Anything else that does not fit is refused.
    """
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is not None and rows.features is not None:
        return named_features(rows, [str(name) for name in wanted])
    n_given, n_wanted = rows.X.shape[1], int(model.n_features_in_)
    if n_given > n_wanted or (n_given < n_wanted and rows.features is not None):
        expected = f"{plural(n_wanted, 'feature', 'features')}, as the model was fitted with"
        raise ShapeError(str(rows.path), rows.X.shape, expected)
    X = padded(rows.X, n_wanted)
    if wanted is None:
        return X
    return given_features(FileRows(X, rows.y, rows.qid, None, rows.path, tuple(map(str, wanted))))


def named_features(rows: FileRows, wanted: list[str]) -> Any:
    """Give the columns of these names, in this order."""
    place = {name: number for number, name in enumerate(rows.features or ())}
    missing = [name for name in wanted if name not in place]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        problem = f"{rows.path} lacks features of the model: {', '.join(missing[:5])}{more}"
        raise LabelError(problem, f"its features are {', '.join(place)}; rename them, or give others.")
    return given_features(
        FileRows(
            rows.X[:, [place[name] for name in wanted]], rows.y, rows.qid, None, rows.path, tuple(wanted)
        )
    )


def padded(X: Any, n_features: int) -> Any:
    """Give the features with columns of 0 added."""
    more = n_features - X.shape[1]
    return X if more == 0 else np.hstack((X, np.zeros((X.shape[0], more), dtype=X.dtype)))


def padding(model: Any, rows: FileRows) -> list[str]:
    """Say which features were taken as 0."""
    more = int(model.n_features_in_) - rows.X.shape[1]
    if more <= 0 or rows.features is not None:
        return []
    lacking = plural(more, "last feature", "last features")
    return [f"{rows.path.name} has no value of the model's {lacking}: 0, as LETOR leaves zeros out"]


def scores_of(model: Any, rows: FileRows) -> FloatArray:
    """Give one score per row; of pair rankers the place in the query, negated."""
    if not hasattr(model, "scores_to_rank"):
        raise ConcordantError(
            f"a {type(model).__name__} does not score rows.\nHint: `concordant compare` reads such models."
        )
    return np.asarray(model.scores_to_rank(features_for(model, rows), rows.qid), dtype=np.float64)
