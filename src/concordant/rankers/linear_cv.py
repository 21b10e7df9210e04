"""LinearRankerCV: the penalty chosen by the metric itself, on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Self

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.rankers.base import LinearModel, mean_score, unchanged_by_errors
from concordant.rankers.devices.losses import on_host
from concordant.rankers.folds import Rows, row_splits
from concordant.rankers.linear import LinearRanker, Recipe
from concordant.rankers.linear_path import Path, Try, final
from concordant.rankers.progress import counted
from concordant.rankers.training import Problem
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, checked_folder, digest, spelled
from concordant.solvers.journal import Journal
from concordant.supervision.columns import check_column
from concordant.supervision.data import RankingData
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["LinearRankerCV"]

ALPHAS = tuple(10.0**power for power in range(1, -7, -1))


class LinearRankerCV(LinearModel):
    """`LinearRanker` with the penalty chosen by its metric, on a validation set or on folds of queries.

    Penalties are tried from the largest to the smallest, each fit beginning where the last one ended.

    Parameters
    ----------
    metric, surrogate, fit_scale, assume, f, solver, tol, max_iter, random_state, device
        As for `LinearRanker`.
    alphas
        Penalties to try.
    cv
        Number of folds of whole queries (of rows, where all rows are one query), a splitter of scikit-learn
        (its groups are the queries), or an iterable of (train rows, test rows); not used where `fit` is given
        a validation set.
    checkpoint
        A folder, in which a killed search goes on, as for `LinearRanker`: it holds the result of each penalty
        on each fold, and the evaluations of the fit that is under way. All parameters but `verbose` must be
        the same.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    alpha_
        The penalty chosen.
    alphas_
        The penalties tried, largest first.
    scores_
        Score of each penalty (row) on each fold (column); NaN where the work was interrupted before.
    best_score_
        Mean score of the chosen one.
    coef_, surrogate_, basis_, certificate_, solution_, scale_, n_iter_, n_queries_, n_informative_
        As for `LinearRanker`, at the chosen penalty: fitted to all rows after folds, and to the training rows
        where a validation set was given.

    Notes
    -----
    Ctrl-C ends the search: folds that are not finished are left out (of the first one, what there is counts),
    the best penalty so far is kept, and a warning says so.

    Examples
    --------
    >>> from concordant import synthetic
    >>> toy = synthetic.grades(n_queries=100, n_items=10, seed=0)
    >>> model = LinearRankerCV(metric="ndcg@5", alphas=[1.0, 0.1, 0.01], cv=3).fit(toy.X, toy.y, qid=toy.qid)
    >>> model.scores_.shape, model.alpha_ in model.alphas_
    ((3, 3), True)
    """

    def __init__(
        self,
        metric: Any = "ndcg@10",
        surrogate: Any = "auto",
        alphas: Iterable[float] = ALPHAS,
        *,
        cv: Any = 5,
        fit_scale: bool = True,
        assume: str | None = None,
        f: Family | None = None,
        solver: str = "lbfgs",
        tol: float = 1e-6,
        max_iter: int | None = None,
        checkpoint: Any = None,
        random_state: int = 0,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.alphas = alphas
        self.cv = cv
        self.fit_scale = fit_scale
        self.assume = assume
        self.f = f
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.device is None
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
        validation: RankingData | tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Choose the penalty and fit.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight
            As for `LinearRanker`.
        validation
            Held-out queries, as `RankingData` or (X, y, qid): the penalty is chosen there, and the weights
            are those fitted to X.
        """
        alphas = checked_alphas(self.alphas)
        ranker = self.ranker(float(alphas[-1]))  # if the smallest is allowed, all are
        recipe = ranker.checked_parameters()
        self.refuse_no_labels(y, X)
        with unchanged_by_errors(self):
            features = self.checked_features(X, reset=True)
            rows = Rows.of(features, *map(on_host, (y, qid, sample_weight, query_weight)))
            whole = ranker.problem(recipe, *rows)  # refuses what is wrong before any work
            whole.claim.warn()
            if validation is not None:
                held = self.validation_rows(recipe[0], validation)
                splits, tries = [], [partial(Try, whole, held)]
            else:
                held, splits = None, row_splits(self.cv, rows)
                tries = [partial(self.fold, ranker, recipe, rows, *split) for split in splits]
            self.alphas_, self.scores_ = alphas, np.full((len(alphas), max(len(splits), 1)), np.nan)
            with self.journal(ranker.told(recipe), whole, rows, held, splits) as journal:
                solutions = self.search(ranker, recipe[0], tries, journal)
                best, self.best_score_ = best_row(self.scores_)
                self.alpha_ = float(alphas[best])
                kept = solutions.get(best) if validation is not None else None
                solution = kept or final(ranker, whole, self.alpha_, journal, f"all-{best}")
            return self.adopt(solution, whole, self.alpha_, fixed=False)

    def journal(
        self,
        told: dict[str, str],
        whole: Problem,
        rows: Rows,
        held: Rows | None,
        splits: list[tuple[IntArray, IntArray]],
    ) -> AbstractContextManager[Journal | None]:
        """Give where the search is written down, if it is to be."""
        if (folder := checked_folder(self.checkpoint)) is None:
            return nullcontext()
        told = {"estimator": type(self).__name__, **told}
        told |= {name: spelled(getattr(self, name)) for name in ("tol", "max_iter")}
        told |= {"alphas": str(self.alphas_.tolist()), "folds": str(len(splits))}
        data = [rows.query_weight, *(part for split in splits for part in split)]
        for some in (rows, *([] if held is None else [held])):
            queries = Queries.of(some.qid, some.X.shape[0], "X")
            data += [whole.claim.metric.read_labels(some.y), queries.order, queries.offsets]
        data += [] if held is None else [held.X]
        return Journal(Checkpoint(folder, told, f"{whole.digest} {digest(*data)}"))

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Do as `Ranker`: folds are cut here, and moved to the device one by one."""
        return super().checked_features(on_host(X), reset=reset)

    def validation_rows(self, metric: Metric, given: Any) -> Rows:
        """Held-out rows, checked."""
        parts = (given.X, given.y, given.qid) if isinstance(given, RankingData) else given
        if not isinstance(parts, (tuple, list)) or len(parts) != 3:
            raise ParameterError("validation", type(given).__name__, "RankingData or (X, y, qid)")
        held = Rows(self.checked_features(parts[0], reset=False), *parts[1:])
        mean_score(metric, held.y, np.zeros(held.X.shape[0]), held.qid)  # refuses what is wrong
        return held

    def fold(self, ranker: LinearRanker, recipe: Recipe, rows: Rows, train: IntArray, test: IntArray) -> Try:
        """Give the problem of the training rows."""
        problem, held = ranker.problem(recipe, *rows.take(train)), rows.take(test)
        counts = held.query_weight is None or np.any(held.query_weight)
        return Try(problem, held if counts else held._replace(query_weight=None))

    def search(
        self,
        ranker: LinearRanker,
        metric: Metric,
        tries: Sequence[Callable[[], Try]],
        journal: Journal | None,
    ) -> dict[int, Solution]:
        """Fill `scores_`; the last solution of each penalty."""
        solutions: dict[int, Solution] = {}
        fold = 0
        with counted(self.scores_.size, self.verbose) as step:
            try:
                for fold, make in enumerate(tries):
                    path = Path(ranker, metric, make, journal, f"fold-{fold}")
                    for number, (value, solution) in enumerate(path.along(self.alphas_)):
                        solutions[number] = solution
                        self.scores_[number, fold] = value
                        step(f"alpha={self.alphas_[number]:g}: {value:.4f}")
                        pass_on_interrupt(solution)
            except KeyboardInterrupt:
                self.scores_[:, fold] = np.nan if fold else self.scores_[:, fold]
                if np.isnan(self.scores_).all():
                    raise
                text = "interrupted: the penalty is the best of those tried so far"
                warnings.warn(text, UserWarning, stacklevel=3)
        return solutions

    def ranker(self, alpha: float) -> LinearRanker:
        """Give the ranker at this penalty."""
        shared = self.get_params(deep=False)
        for own in ("alphas", "cv", "verbose"):
            del shared[own]
        return LinearRanker(alpha=alpha, **shared)


def checked_alphas(alphas: Iterable[float]) -> FloatArray:
    """Penalties, largest first, without repeats."""
    if not isinstance(alphas, Iterable) or isinstance(alphas, str):
        raise ParameterError("alphas", alphas, "a list of finite numbers >= 0")
    values = check_column(list(alphas), "alphas")
    if not (values.size and np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError("alphas", alphas, "a list of finite numbers >= 0")
    return np.unique(values)[::-1]


def pass_on_interrupt(solution: Solution) -> None:
    """Raise what ended the solver, if that was Ctrl-C."""
    if solution.stopped_by == "interrupt":
        raise KeyboardInterrupt


def best_row(scores: FloatArray) -> tuple[int, float]:
    """Give the first row whose mean, without NaN, is highest; and that mean."""
    scored = ~np.isnan(scores)
    if not scored.any():
        text = "the metric is undefined on all held-out queries: the largest penalty is kept"
        warnings.warn(text, UserWarning, stacklevel=3)
        return 0, float("nan")
    sums = np.where(scored, scores, 0.0).sum(axis=1)
    means = np.where(scored.any(axis=1), sums / np.maximum(scored.sum(axis=1), 1), -np.inf)
    return int(np.argmax(means)), float(means.max())
