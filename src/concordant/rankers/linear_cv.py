"""LinearRankerCV: the penalty is chosen by the metric itself, on held-out queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from concordant._base.validate import check_column
from concordant._base.warn import warn_caller
from concordant.data.check import on_host
from concordant.exceptions import ParameterError
from concordant.metrics.metric import Family, Metric
from concordant.rankers.base import LinearModel, mean_score, unchanged_by_errors
from concordant.rankers.fit_progress import show_count
from concordant.rankers.folds import FitRows, bind_evaluation, read_eval_set, row_splits
from concordant.rankers.linear import LinearRanker, Recipe
from concordant.rankers.training import Problem
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, Journal, check_folder, digest, parameter_text, step_key
from concordant.solvers.linear_scores import LinearScorer
from concordant.types import ArrayLike, FloatArray, IntArray

# Fits of a problem at one penalty after another, each scored on held-out rows; fits in the journal are not
# repeated.


class FitSplit(NamedTuple):
    """A problem to fit at each penalty, and the held-out rows on which the fits are scored."""

    problem: Problem
    held_out: FitRows


@dataclass(eq=False)
class PenaltyPath:
    """Scores and solutions of a split, from the largest penalty to the smallest."""

    ranker: LinearRanker
    metric: Metric  # scores the fits
    make_split: Callable[[], FitSplit]  # called only if a fit is missing
    journal: Journal | None  # of scores and solutions
    name: str  # of this split in the journal

    @cached_property
    def split(self) -> FitSplit:
        """Problem and held-out rows; built at first use."""
        return self.make_split()

    def along(self, alphas: FloatArray) -> Iterator[tuple[float, Solution]]:
        """Solve at each penalty, each time starting from the previous solution."""
        w: FloatArray | None = None
        for number, alpha in enumerate(alphas):
            value, solution = self.recall_or_fit(f"{self.name}-{number}", float(alpha), w)
            w = solution.w
            yield value, solution

    def recall_or_fit(self, name: str, alpha: float, w: FloatArray | None) -> tuple[float, Solution]:
        """Return score and solution from the journal, or compute them; interrupted fits are not stored."""
        if self.journal is None:
            return self.fit_and_score(alpha, w, None)
        step = step_key(name, (alpha, () if w is None else w))
        if (record := self.journal.recall(step)) is not None:
            self.journal.forget(name)  # a kill may have left it
            return float(record[0]), Solution.from_numbers(record[1], record[2].tolist(), record[3].tolist())
        with self.journal.within(name) as fit_journal:
            value, solution = self.fit_and_score(alpha, w, fit_journal)
        if solution.stopped_by != "interrupt":
            self.journal.append(step, (value, *solution.numbers))
            self.journal.forget(name)
        return value, solution

    def fit_and_score(
        self, alpha: float, w: FloatArray | None, journal: Journal | None
    ) -> tuple[float, Solution]:
        """Fit at the penalty, and score on the held-out rows."""
        problem, held_out = self.split
        start = np.zeros(len(problem.scale)) if w is None else w
        solution = self.ranker.solve(problem, alpha, start, journal)
        scores = LinearScorer(held_out.X).all_scores(solution.w / problem.scale)
        return mean_score(self.metric, held_out.y, scores, held_out.qid, held_out.query_weight), solution


def _fit_final(
    ranker: LinearRanker, whole: Problem, alpha: float, journal: Journal | None, name: str
) -> Solution:
    with nullcontext() if journal is None else journal.within(name) as fit_journal:
        return ranker.solve(whole, alpha, np.zeros(len(whole.scale)), fit_journal)


ALPHAS = tuple(10.0**power for power in range(1, -7, -1))


class LinearRankerCV(LinearModel):
    """`LinearRanker` with the penalty chosen by its metric, on a validation set or on folds of queries.

    Penalties are tried from the largest to the smallest; each fit starts from the previous solution.

    Parameters
    ----------
    metric, surrogate, fit_scale, assume, f, solver, tol, max_iter, random_state, device
        As in `LinearRanker`.
    alphas
        Penalties to try.
    cv
        Number of folds of whole queries (of rows, where all rows are one query), a splitter of scikit-learn
        (its groups are the queries), or an iterable of (train rows, test rows); not used if `fit` gets a
        validation set.
    checkpoint
        A folder from which a killed search resumes, as in `LinearRanker`: it holds the result of each penalty
        on each fold, and the evaluations of the current fit. All parameters but `verbose` must be the same.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    alpha_
        The chosen penalty.
    alphas_
        The penalties tried, largest first.
    scores_
        Score of each penalty (row) on each fold (column); NaN if the work was interrupted before.
    best_score_
        Mean score of the chosen penalty.
    coef_, surrogate_, basis_, certificate_, solution_, scale_, n_iter_, n_queries_, n_informative_
        As in `LinearRanker`, at the chosen penalty: fitted to all rows after folds, and to the training rows
        if a validation set was given.

    Notes
    -----
    Ctrl-C ends the search with a warning, and the best penalty so far is used. Unfinished folds are left out;
    of the first fold, the finished penalties count.

    Examples
    --------
    >>> from concordant import synthetic
    >>> toy = synthetic.grades(n_queries=100, n_items=10, seed=0)
    >>> model = LinearRankerCV(metric="ndcg@5", alphas=[1.0, 0.1, 0.01], cv=3).fit(toy.X, toy.y, qid=toy.qid)
    >>> model.scores_.shape, model.alpha_ in model.alphas_
    ((3, 3), True)
    """

    _penalty_is_fixed = False

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

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        *,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
        eval_set: Any = None,
    ) -> Self:
        """Choose the penalty and fit.

        Parameters
        ----------
        X, y, qid, sample_weight, query_weight
            As in `LinearRanker`.
        eval_set
            Held-out queries, as `RankingData`, (X, y, qid), or (X, y) of a single query: the penalty is
            chosen on them, and the weights are fitted to X.
        """
        alphas = checked_alphas(self.alphas)
        ranker = self.ranker(float(alphas[-1]))  # if the smallest is allowed, all are
        recipe = ranker.checked_parameters()
        with unchanged_by_errors(self):
            rows = self._checked_rows(X, y, qid, sample_weight, query_weight)
            whole = ranker.problem(recipe, *rows)  # raises for wrong input, before any work
            whole.claim.warn()
            self._warn_of_rows(y, qid)
            if eval_set is not None:
                validation_rows = self._validation_rows(recipe[0], eval_set)
                splits, make_splits = [], [partial(FitSplit, whole, validation_rows)]
            else:
                validation_rows, splits = None, row_splits(self.cv, rows)
                make_splits = [partial(self._fold, ranker, recipe, rows, *split) for split in splits]
            self.alphas_, self.scores_ = alphas, np.full((len(alphas), max(len(splits), 1)), np.nan)
            with self.journal(ranker.fingerprint(recipe), whole, rows, validation_rows, splits) as journal:
                solutions = self.search(ranker, recipe[0], make_splits, journal)
                best, self.best_score_ = _best_row(self.scores_)
                self.alpha_ = float(alphas[best])
                solved = solutions.get(best) if eval_set is not None else None
                solution = solved or _fit_final(ranker, whole, self.alpha_, journal, f"all-{best}")
            return self.adopt(solution, whole, self.alpha_)

    def journal(
        self,
        fingerprint: dict[str, str],
        whole: Problem,
        rows: FitRows,
        validation_rows: FitRows | None,
        splits: list[tuple[IntArray, IntArray]],
    ) -> AbstractContextManager[Journal | None]:
        """Return the journal of the search; without a checkpoint, a context that holds None."""
        if self.checkpoint is None:
            return nullcontext()
        folder = check_folder(self.checkpoint)
        fingerprint = {"estimator": type(self).__name__, **fingerprint}
        fingerprint |= {name: parameter_text(getattr(self, name)) for name in ("tol", "max_iter")}
        fingerprint |= {"alphas": str(self.alphas_.tolist()), "folds": str(len(splits))}
        data = [rows.query_weight, *(indices for split in splits for indices in split)]
        for evaluated in (rows, *([] if validation_rows is None else [validation_rows])):
            data += evaluated.labels_and_queries(whole.claim.metric)
        data += [] if validation_rows is None else [validation_rows.X]
        return Journal(Checkpoint(folder, fingerprint, f"{whole.digest} {digest(*data)}"))

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Check the features on the host: folds are cut here, and moved to the device one by one."""
        return super().checked_features(on_host(X), reset=reset)

    def _validation_rows(self, metric: Metric, eval_set: Any) -> FitRows:
        X, y, qid = map(on_host, read_eval_set(eval_set))
        rows = FitRows(self.checked_features(X, reset=False), y, qid)
        bind_evaluation(metric, rows, "eval_set")  # raises for wrong input
        return rows

    def _fold(
        self, ranker: LinearRanker, recipe: Recipe, rows: FitRows, train: IntArray, test: IntArray
    ) -> FitSplit:
        problem, held_out = ranker.problem(recipe, *rows.take(train)), rows.take(test)
        counts = held_out.query_weight is None or np.any(held_out.query_weight)
        return FitSplit(problem, held_out if counts else held_out._replace(query_weight=None))

    def search(
        self,
        ranker: LinearRanker,
        metric: Metric,
        make_splits: Sequence[Callable[[], FitSplit]],
        journal: Journal | None,
    ) -> dict[int, Solution]:
        """Fill `scores_`; return the last solution of each penalty."""
        solutions: dict[int, Solution] = {}
        fold = 0
        with show_count(self.scores_.size, self.verbose) as step:
            try:
                for fold, make_split in enumerate(make_splits):
                    path = PenaltyPath(ranker, metric, make_split, journal, f"fold-{fold}")
                    for number, (value, solution) in enumerate(path.along(self.alphas_)):
                        solutions[number] = solution
                        self.scores_[number, fold] = value
                        step(f"alpha={self.alphas_[number]:g}: {value:.4f}")
                        _pass_on_interrupt(solution)
            except KeyboardInterrupt:
                self.scores_[:, fold] = np.nan if fold else self.scores_[:, fold]
                if np.isnan(self.scores_).all():
                    raise
                warn_caller("The search was interrupted. alpha_ is the best penalty tried so far.")
        return solutions

    def ranker(self, alpha: float) -> LinearRanker:
        """Build the ranker with this penalty."""
        shared = self.get_params(deep=False)
        for name in ("alphas", "cv", "verbose"):
            del shared[name]
        return LinearRanker(alpha=alpha, **shared)


def checked_alphas(alphas: Iterable[float]) -> FloatArray:
    """Return the penalties, largest first, without repeats."""
    if not isinstance(alphas, Iterable) or isinstance(alphas, str):
        raise ParameterError("alphas", alphas, "a list of finite numbers >= 0")
    values = check_column(list(alphas), "alphas")
    if not (values.size and np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError("alphas", alphas, "a list of finite numbers >= 0")
    return np.unique(values)[::-1]


def _pass_on_interrupt(solution: Solution) -> None:
    if solution.stopped_by == "interrupt":
        raise KeyboardInterrupt


def _best_row(scores: FloatArray) -> tuple[int, float]:
    """Return the first row whose mean, without NaN, is highest; and that mean."""
    scored = ~np.isnan(scores)
    if not scored.any():
        warn_caller("The metric is undefined on all held-out queries, so the largest penalty was chosen.")
        return 0, float("nan")
    sums = np.where(scored, scores, 0.0).sum(axis=1)
    means = np.where(scored.any(axis=1), sums / np.maximum(scored.sum(axis=1), 1), -np.inf)
    return int(np.argmax(means)), float(means.max())
