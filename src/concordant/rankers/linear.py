"""LinearRanker: a linear scoring function, trained by the surrogate that goes with a metric."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Self

import numpy as np

from concordant.exceptions import ParameterError
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import LinearModel
from concordant.rankers.progress import watched
from concordant.rankers.recipe import chosen_surrogate, training_labels
from concordant.rankers.training import Problem, row_weights, solver_named
from concordant.solvers import Solution
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike, FloatArray

__all__ = ["LinearRanker"]


class LinearRanker(LinearModel):
    """Linear ranker: name the metric; the loss that is consistent with it is minimised.

    Minimises, over w, the mean over queries of the surrogate at scores X @ w, given the metric's standardized
    labels, plus alpha/2 |w|^2.

    Parameters
    ----------
    metric
        What a ranking is worth: a metric or its name, such as "ndcg@10".
    surrogate
        What is minimised: "auto" (what measured best for the metric), a name (squared, pairwise, softmax,
        duchi, plackett_luce, preorder), or a `Surrogate` with parameters of its own.
    alpha
        Penalty, > 0 (0 is allowed, and may have no finite solution).
    fit_scale
        Penalise the weights of features divided by their spread within queries; `coef_` is for X as given.
    assume
        Condition on the labels under which the metric has a standardization (see `cc.standardize`); without
        it a metric that needs one gives a warning.
    solver
        "lbfgs", "newton" or "sgd" (over whole queries, averaged).
    tol
        Stop when the objective is, by estimate, within this share of its optimum.
    max_iter
        Most iterations; epochs of "sgd".
    warm_start
        Begin where the last fit ended.
    callback
        Called after each iteration with a `Step`; a true answer ends the fit.
    random_state
        Seed of "sgd".
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    coef_
        Weight of each feature.
    surrogate_
        The surrogate that was minimised.
    basis_
        What its consistency with the metric rests on: "every distribution", a condition, or "nothing".
    solution_
        Where the solver stopped, and how far from optimal: value, excess, gap, converged, stopped_by.
    scale_
        Spread of each feature within queries (1 without `fit_scale`).
    n_iter_
        Iterations.
    n_queries_, n_informative_
        Queries, and those whose labels differ, from which something is learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Ctrl-C during `fit` keeps the best weights so far and warns.

    References
    ----------
    Buffoni, Calauzènes, Gallinari and Usunier (2011), Learning scoring functions with order-preserving losses
    and standardized supervision.

    Examples
    --------
    >>> from concordant import synthetic
    >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> model = LinearRanker(metric="ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    >>> model.score(toy.X, toy.y, qid=toy.qid) > 0.5, model.basis_
    (True, 'every distribution')
    """

    def __init__(
        self,
        metric: Any = "ndcg@10",
        surrogate: Any = "auto",
        alpha: float = 1e-3,
        *,
        fit_scale: bool = True,
        assume: str | None = None,
        solver: str = "lbfgs",
        tol: float = 1e-6,
        max_iter: int = 500,
        warm_start: bool = False,
        callback: Any = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.alpha = alpha
        self.fit_scale = fit_scale
        self.assume = assume
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.callback = callback
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
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow or scipy sparse; float32 is not copied.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one).
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts (an inverse propensity, say). The row
            stays in the list as something to be ranked.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts.
        """
        solver = self.checked_parameters()
        problem = self.problem(X, y, qid, sample_weight, query_weight)
        start = self.coef_ * problem.scale if self.warm_start and hasattr(self, "coef_") else None
        return self.adopt(self.solved(problem, solver, self.alpha, start), problem)

    def checked_parameters(self) -> Any:
        """Refuse parameters out of range, before any work; the solver."""
        for name, least in (("alpha", 0.0), ("tol", 0.0), ("max_iter", 1.0)):
            value = getattr(self, name)
            if not (isinstance(value, numbers.Real) and least <= float(value) < np.inf):
                raise ParameterError(name, value, f"a finite number >= {least:g}")
        return solver_named(self.solver)

    def problem(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike, sample_weight: ArrayLike, query_weight: ArrayLike
    ) -> Problem:
        """Supervision -> metric -> targets -> surrogate."""
        self.refuse_no_labels(y)
        features = self.checked_features(X, reset=True)
        queries = Queries.of(qid, features.shape[0], "X")
        metric = read_metric(self.metric)
        self.surrogate_ = chosen_surrogate(self.surrogate, metric)
        with naming_query(qid):
            labels, self.basis_ = training_labels(metric, self.surrogate_, y, queries, self.assume)
        weights = row_weights(sample_weight, query_weight, queries)
        self.n_queries_ = queries.n_queries
        ordered = queries.gather(features)
        return Problem.of(self.surrogate_, labels, ordered, queries, weights, scaled=self.fit_scale)

    def solved(self, problem: Problem, solver: Any, alpha: float, start: FloatArray | None) -> Solution:
        """Minimise at this penalty."""
        w = np.zeros(problem.X.shape[1]) if start is None else start
        options = {"seed": self.random_state} if self.solver == "sgd" else {}
        with watched(f"{self.surrogate_.name}, alpha={alpha:g}", self.verbose, self.callback) as callback:
            limits = {"tol": self.tol, "max_iter": int(self.max_iter), "callback": callback}
            solution: Solution = solver(problem.objective(alpha), w, **limits, **options)
        return solution

    def adopt(self, solution: Solution, problem: Problem) -> Self:
        """Take the solution over; say where it falls short."""
        from sklearn.exceptions import ConvergenceWarning

        self.scale_, self.n_informative_ = problem.scale, problem.n_informative
        self.solution_, self.n_iter_ = solution, solution.n_iter
        self.coef_ = solution.w / problem.scale
        if solution.stopped_by in ("max_iter", "interrupt"):
            done = f"stopped by {solution.stopped_by} after {solution.n_iter} iterations"
            text = f"{done}: the objective may be {solution.excess:.1e} above its optimum"
            warnings.warn(text + "; raise max_iter or tol", ConvergenceWarning, stacklevel=3)
        if not problem.n_informative:
            warnings.warn("no query has labels that differ: nothing was learned", UserWarning, stacklevel=3)
        return self
