"""LinearRankerCV: the penalty chosen by the metric itself, on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from concordant.exceptions import ParameterError
from concordant.rankers.base import LinearModel
from concordant.rankers.linear import LinearRanker
from concordant.solvers import Solution
from concordant.supervision.columns import as_numpy, check_column
from concordant.supervision.data import RankingData
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.supervision.queries import Queries
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["LinearRankerCV"]

ALPHAS = tuple(10.0**power for power in range(1, -7, -1))
Held = tuple[ArrayLike, ArrayLike, ArrayLike]  # X, y, qid of held-out queries


class LinearRankerCV(LinearModel):
    """`LinearRanker` with the penalty chosen by its metric, on a validation set or on folds of queries.

    Penalties are tried from the largest to the smallest, each fit beginning where the last one ended.

    Parameters
    ----------
    metric, surrogate, fit_scale, assume, solver, tol, max_iter, random_state
        As for `LinearRanker`.
    alphas
        Penalties to try.
    cv
        Number of folds of whole queries (of rows, where all rows are one query), or an iterable of (train
        rows, test rows); not used where `fit` is given a validation set.
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
    coef_, surrogate_, basis_, solution_, scale_, n_iter_, n_queries_, n_informative_
        As for `LinearRanker`, at the chosen penalty: fitted to all rows after folds, and to the training rows
        where a validation set was given.

    Notes
    -----
    Ctrl-C ends the search; the best penalty so far is kept, and a warning says so.

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
        solver: str = "lbfgs",
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.alphas = alphas
        self.cv = cv
        self.fit_scale = fit_scale
        self.assume = assume
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
        validation: RankingData | Held | None = None,
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
        self.alphas_ = checked_alphas(self.alphas)
        self.refuse_no_labels(y)
        features = self.checked_features(X, reset=True)
        rows = [features, y, qid, sample_weight, query_weight]
        splits = [] if validation is not None else self.splits(features.shape[0], qid)
        tries = self.tries(rows, splits, validation)
        self.scores_ = np.full((len(self.alphas_), max(len(splits), 1)), np.nan)
        solutions = self.search(tries, one_set=validation is not None)
        means = np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in self.scores_])
        best = 0 if np.isnan(means).all() else int(np.nanargmax(means))
        self.alpha_, self.best_score_ = float(self.alphas_[best]), float(means[best])
        return self.finish(rows, solutions.get(best))

    def splits(self, n_rows: int, qid: ArrayLike) -> list[tuple[IntArray, IntArray]]:
        """Rows to train and to test on: whole queries, or parts of the only one."""
        if not isinstance(self.cv, (int, np.integer)):
            return given_splits(self.cv)
        queries = Queries.of(qid, n_rows, "X")
        if queries.n_queries == 1:
            queries = Queries.from_sizes(np.ones(n_rows, dtype=np.int64))
        if not 2 <= self.cv <= queries.n_queries:
            seen = f"2 to the number of queries, {queries.n_queries} here"
            raise ParameterError(
                "cv", self.cv, f"{seen} (of rows, n_samples={n_rows}, if there is one query)"
            )
        return list(queries.folds(int(self.cv)))

    def tries(
        self, rows: list[Any], splits: list[tuple[IntArray, IntArray]], validation: Any
    ) -> list[tuple[list[Any], Held]]:
        """Give what is fitted, and the held-out queries it is scored on."""
        if validation is not None:
            held = validation
            parts = (held.X, held.y, held.qid) if isinstance(held, RankingData) else tuple(held)
            if len(parts) != 3:
                raise ParameterError("validation", f"{len(parts)} parts", "RankingData or (X, y, qid)")
            return [(rows, parts)]
        return [([taken(one, train) for one in rows], held_out(rows, test)) for train, test in splits]

    def search(self, tries: list[tuple[list[Any], Held]], *, one_set: bool) -> dict[int, Any]:
        """Fill `scores_`; the fits by penalty, where they are wanted."""
        kept: dict[int, Any] = {}
        with bar(len(tries) * len(self.alphas_), self.verbose) as step:
            for fold, (rows, held) in enumerate(tries):
                for number, model in enumerate(self.path(rows)):
                    self.scores_[number, fold] = model.score(held[0], held[1], qid=held[2])
                    if one_set:
                        kept[number] = model
                    step(f"alpha={self.alphas_[number]:g}: {self.scores_[number, fold]:.4f}")
                    if model.solution_.stopped_by == "interrupt":
                        text = "interrupted: the penalty is the best of those tried so far"
                        warnings.warn(text, UserWarning, stacklevel=3)
                        return kept
        return kept

    def path(self, rows: list[Any]) -> Iterator[LinearRanker]:
        """Fit at each penalty, beginning where the last one ended; labels and features are prepared once."""
        X, y, qid, sample_weight, query_weight = rows
        first = self.ranker(float(self.alphas_[0]))
        solver = first.checked_parameters()
        problem = first.problem(X, y, qid, sample_weight, query_weight)
        solution: Solution | None = None
        for alpha in self.alphas_:
            model = self.ranker(float(alpha))
            model.__dict__.update({name: value for name, value in vars(first).items() if name.endswith("_")})
            solution = first.solved(problem, solver, float(alpha), solution.w if solution else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one warning at the end, for the model that is kept
                yield model.adopt(solution, problem)

    def finish(self, rows: list[Any], model: LinearRanker | None) -> Self:
        """Take over the chosen fit, or fit all rows at the chosen penalty."""
        X, y, qid, sample_weight, query_weight = rows
        if model is None:
            chosen = self.ranker(self.alpha_)
            model = chosen.fit(X, y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)
        learned = {name: value for name, value in vars(model).items() if name.endswith("_")}
        names = ("n_features_in_", "feature_names_in_")  # known from the features as they were given
        self.__dict__.update({name: value for name, value in learned.items() if name not in names})
        return self

    def ranker(self, alpha: float) -> LinearRanker:
        """Give the ranker at this penalty."""
        shared = self.get_params(deep=False)
        for own in ("alphas", "cv", "verbose"):
            del shared[own]
        return LinearRanker(alpha=alpha, **shared)


def checked_alphas(alphas: Iterable[float]) -> FloatArray:
    """Penalties, largest first, without repeats."""
    values = check_column(list(alphas) if isinstance(alphas, (tuple, set)) else alphas, "alphas")
    if not (values.size and np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError("alphas", alphas, "a list of finite numbers >= 0")
    return np.unique(values)[::-1]


def given_splits(cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Pairs of rows, as a caller gives them."""
    try:
        return [(np.asarray(train), np.asarray(test)) for train, test in cv]
    except (TypeError, ValueError) as error:
        raise ParameterError("cv", cv, "a number of folds, or pairs of train and test rows") from error


def taken(values: Any, rows: IntArray) -> Any:
    """Some rows of features, labels or a column."""
    if values is None:
        return None
    if isinstance(values, (Grades, Preferences, Permutations)):
        return values.take(rows)
    return values[rows] if hasattr(values, "tocsr") else as_numpy(values, "the data")[rows]


def held_out(rows: list[Any], test: IntArray) -> Held:
    """X, y and qid of the test rows."""
    X, y, qid = (taken(one, test) for one in rows[:3])
    return X, y, qid


@contextmanager
def bar(total: int, verbose: int) -> Iterator[Callable[[str], None]]:
    """Show how many fits are done, on standard error."""
    if not verbose:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as shown:
        task = shown.add_task("fitting", total=total)
        yield lambda text: shown.update(task, advance=1, description=text)
