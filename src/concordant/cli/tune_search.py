"""The search of `tune`: trials, each scored on whole held-out queries, until the best one is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concordant.cli.config import Config
from concordant.cli.data_rows import FileRows, scores_of
from concordant.cli.train_fit import Begun, fit_rows, refuse_interrupted
from concordant.exceptions import ConcordantError

__all__ = ["PATH", "Trial", "best_of", "fold_scores", "path_trials", "splits_of"]

PATH = 15  # penalties of a path
Split = tuple[FileRows, FileRows]


@dataclass(frozen=True)
class Trial:
    """Parameters that were tried, and their score on each fold; a pruned one has not seen all of them.

    Attributes
    ----------
    value
        Mean over folds of the metric that is trained for, losses negated: higher is better.
    seconds
        What it took; None where trials share their work.
    """

    number: int
    parameters: Mapping[str, Any] = field(hash=False)
    scores: tuple[float, ...]
    pruned: bool = False
    seconds: float | None = None

    @property
    def value(self) -> float:
        """Mean over the folds on which the metric is defined."""
        return mean(self.scores)

    def plain(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "trial": self.number,
            "value": self.value,
            "state": "pruned" if self.pruned else "done",
            **{f"fold {place}": score for place, score in enumerate(self.scores, start=1)},
            "parameters": dict(self.parameters),
            "seconds": self.seconds,
        }


def mean(scores: Sequence[float]) -> float:
    """Give the mean of what is defined, else NaN."""
    known = [score for score in scores if not math.isnan(score)]
    return math.fsum(known) / len(known) if known else math.nan


def best_of(trials: Sequence[Trial]) -> Trial:
    """Give the first of the best trials that have seen all folds."""
    whole = [one for one in trials if not one.pruned and not math.isnan(one.value)]
    if not whole:
        raise ConcordantError(
            "the metric is undefined on all held-out queries: no trial is better than another.\n"
            "Hint: a query counts where its labels differ; give more queries, or another metric."
        )
    return max(whole, key=lambda one: (one.value, -one.number))


def splits_of(config: Config, rows: Mapping[str, FileRows]) -> list[Split]:
    """Give the rows to fit and to judge: folds of whole queries, or training and validation set."""
    from concordant.rankers.folds import Rows, row_splits

    train = rows["train"]
    if "validation" in rows:
        return [(train, rows["validation"])]
    if config.tune is None or config.tune.folds is None:
        raise ConcordantError("this run has no search.\nHint: `concordant tune` makes one.")
    splits = row_splits(config.tune.folds, Rows(train.X, train.y, train.qid))
    return [(taken(train, fitted), taken(train, judged)) for fitted, judged in splits]


def taken(rows: FileRows, chosen: Any) -> FileRows:
    """Give some of the rows."""
    docid = None if rows.docid is None else rows.docid[chosen]
    return FileRows(rows.X[chosen], rows.y[chosen], rows.qid[chosen], docid, rows.path, rows.features)


def fold_scores(config: Config, splits: Sequence[Split]) -> Iterator[float]:
    """Give the score of these parameters on each fold; what decides is never fitted to."""
    import concordant as cc
    from concordant.rankers.base import mean_score

    for fitted, judged in splits:
        model = config.ranker()
        notes = fit_rows(model, fitted, judged if len(splits) == 1 else None)
        refuse_interrupted(model, notes)
        yield mean_score(cc.metric(config.metric), judged.y, scores_of(model, judged), judged.qid)


def path_trials(begun: Begun, *, checkpoint: bool, verbose: bool) -> list[Trial]:
    """Give the path of a linear ranker, from the largest penalty down: fits begin where the last ended."""
    from concordant import LinearRankerCV
    from concordant.cli.tune_space import Range

    config, rows = begun.config, begun.rows
    if config.tune is None:
        return []
    alpha = config.tune.space["alpha"]
    alphas = alpha.points(PATH) if isinstance(alpha, Range) else alpha.values
    shared = {name: value for name, value in config.parameters.items() if name != "alpha"}
    model = LinearRankerCV(
        metric=config.metric, alphas=alphas, cv=config.tune.folds, random_state=config.seed, **shared
    )
    if checkpoint:
        model.set_params(checkpoint=begun.folder.checkpoint / "path")
    notes = fit_rows(model, rows["train"], rows.get("validation"), quiet=not verbose)
    refuse_interrupted(model, notes)
    return [
        Trial(number, {"alpha": float(tried)}, tuple(scores.tolist()))
        for number, (tried, scores) in enumerate(zip(model.alphas_, model.scores_, strict=True))
    ]
