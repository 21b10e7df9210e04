"""LinearRanker: a linear scoring function, trained by the surrogate that goes with a metric."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from concordant._base.validate import (
    DOUBLE_MAX,
    check_flag,
    check_number,
    check_seed,
    check_whole,
    is_verbose,
)
from concordant.data.check import are_in_memory, on_host
from concordant.data.queries import Queries, naming_query
from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.metric import Family, Metric, check_assumption
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import LinearModel, unchanged_by_errors
from concordant.rankers.device_losses import device_form, torch_device, working_on
from concordant.rankers.fit_progress import show_pass, show_steps
from concordant.rankers.parts.linear_parts import LinearPreparation, PartitionedProblem, partitioned_problem
from concordant.rankers.parts.ranker_source import (
    SGD_ON_CLUSTER,
    as_parts_source,
    validate_names,
)
from concordant.rankers.recipe import (
    choose_surrogate,
    metric_fingerprint,
    surrogate_fingerprint,
    training_labels,
)
from concordant.rankers.training import (
    SOLVERS,
    ObjectiveSetting,
    Problem,
    check_squares,
    compile_objective,
    n_informative,
    row_weights,
    solver_for,
    summarize_sample,
)
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, Journal, check_folder, digest, parameter_text
from concordant.solvers.solution import Callback
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray

Recipe = tuple[Metric, Surrogate]
UNSEEDED = (
    "checkpoint needs a random_state, so that a fit can be resumed. Pass an integer, such as random_state=0."
)


class LinearRanker(LinearModel):
    """Linear ranker: name the metric; the loss that is consistent with it is minimised.

    Minimises, over w, the mean over queries of the surrogate at scores X @ w, given the metric's standardized
    labels, plus alpha/2 times the squared length of w.

    Parameters
    ----------
    metric
        The metric to train for, or its name, such as "ndcg@10".
    surrogate
        The loss that is minimised: "auto" (the best one in our measurements for the metric), a name (squared,
        pairwise, softmax, duchi, plackett_luce, preorder, position_hinge), or a `Surrogate` with parameters.
    alpha
        Penalty, > 0 (0 is allowed, and may have no finite solution).
    fit_scale
        Penalise the weights of features divided by their spread within queries; `coef_` is for X as given.
    assume
        Condition on the labels under which the metric has a standardization (see `cc.standardize`); without
        it a metric that needs one causes a `GuaranteeWarning`.
    f
        With assume="P_f", on preferences: `f(better, worse, weights, n_items)` returns a number per item of a
        query, on which the ranker is trained (see `cc.standardize`). None: the net weights.
    solver
        "lbfgs", "newton", "sgd" (over whole queries, averaged), or "bundle", which is for losses with
        corners.
    tol
        Stop when the objective is, by estimate, above its optimum by at most this share of its value at
        weights 0. The weights then miss the optimal ones by about its square root, relative to the largest:
        by 1e-3, and up to 1e-2 on public sets, which moves NDCG in the fourth digit. Rows in another order
        are other steps, which miss it otherwise; tol=1e-12 brings both within 1e-5, for up to twice the
        iterations.
    max_iter
        Maximum number of iterations; None: 500 for "lbfgs", 100 for "newton", 1000 for "bundle", 20 epochs
        for "sgd".
    warm_start
        Start from the weights of the last fit.
    callback
        Called after each iteration with a `Step` (`step.w` as `coef_` would be); a true result ends the fit.
    checkpoint
        A folder that the fit is written to, evaluation by evaluation. Killed at any moment and called again
        with the same data and parameters (`tol`, `max_iter`, `callback` and `verbose` may differ), it resumes
        and gives the same weights, bit for bit. A folder of another fit raises. None: no checkpoint.
    random_state
        Seed for "sgd".
    device
        None: compiled kernels, on the CPU. "cpu", "cuda", "cuda:0" or a `torch.device`: the same objective
        by torch there, with solver "lbfgs", for the surrogates pairwise, softmax, squared, duchi and
        position_hinge; features are moved once, or are a tensor on the device. For float32 features
        scores and gradients are float32: a tol below 1e-7 may then end by "precision".
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
    certificate_
        The guarantee, its condition, and how well the problem was solved: a `FittedCertificate`, assembled
        when first read; `print` it.
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
    Ctrl-C during `fit` keeps the best weights so far and warns. A loss that is not consistent with the metric
    is minimised anyway, after a `GuaranteeWarning`.

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
    >>> model.certificate_
    FittedCertificate(ndcg@5 on grades, softmax, sort: proven, rests on every distribution)
    """

    def __init__(
        self,
        metric: Any = "ndcg@10",
        surrogate: Any = "auto",
        alpha: float = 0.1,
        *,
        fit_scale: bool = True,
        assume: str | None = None,
        f: Family | None = None,
        solver: str = "lbfgs",
        tol: float = 1e-6,
        max_iter: int | None = None,
        warm_start: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
        random_state: int = 0,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.alpha = alpha
        self.fit_scale = fit_scale
        self.assume = assume
        self.f = f
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.callback = callback
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
        client: Any = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow, scipy sparse or a torch tensor. Not
            copied, float32 included, if the rows of each query are adjacent and the ids ascend. Or a `Scan`,
            which contains labels, ids and weights, and need not fit in memory; or a Dask array or frame, with
            y, qid and weights as collections of the same partitions. The objective is the same, and the
            weights are equal up to rounding.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one). Only grades with
            scans and collections. Rows are matched by position: pandas objects with the same index in
            different orders raise.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query. If the rows of each query
            are adjacent, their order counts and the ids do not: renamed queries give the same weights.
        sample_weight
            One number >= 0 per row: how much the row's label counts. The row stays in the list that is
            ranked. If it differs within queries, softmax and pairwise train a sum of gains (dcg, p@k, eru)
            with every gain multiplied by it, so that inverse propensities correct clicks; nothing is
            guaranteed for other metrics (ndcg, ap, auc). Squared and duchi weight the item's term, which
            corrects nothing. See `certificate_`; a `GuaranteeWarning` says if a guarantee is lost.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts. Guarantees
            are for weights that do not depend on the labels, which is not checked.
        client
            A `distributed.Client`: workers of its cluster hold the parts of the scan, or the collections, in
            memory. None: a scan is read by this process, at each pass; collections go to the current client.
        """
        recipe = self.checked_parameters()
        with unchanged_by_errors(self):
            columns = X, y, qid, sample_weight, query_weight
            problem: Problem | PartitionedProblem
            if client is None and are_in_memory(*columns):
                problem = self.problem(recipe, *columns)
            else:
                problem = self._partitioned_problem(recipe, *columns, client)
            problem.claim.warn()
            self._warn_of_rows(y, qid)
            start = self.start(problem)
            with self.journal(recipe, problem, start) as journal:
                solution = self.solve(problem, self.alpha, start, journal)
            return self.adopt(solution, problem, float(self.alpha))

    def checked_parameters(self) -> Recipe:
        """Check the parameters before any work; return the metric, and the surrogate for it."""
        check_number("alpha", self.alpha, least=0.0)
        check_number("tol", self.tol, least=0.0)
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter, 1, DOUBLE_MAX, also="None")
        if self.callback is not None and not callable(self.callback):
            raise ParameterError("callback", self.callback, "a function that takes a Step, or None")
        check_flag("fit_scale", self.fit_scale)
        check_flag("warm_start", self.warm_start)
        check_seed("random_state", self.random_state)
        if self.checkpoint is not None:
            check_folder(self.checkpoint)
            if self.random_state is None and self.solver == "sgd":
                raise ParameterError.because(UNSEEDED)
        check_assumption(self.assume, self.f)
        metric = read_metric(self.metric)
        surrogate = self._choose_surrogate(metric)
        solver_for(self.solver, surrogate, self.alpha)
        self._check_device(surrogate)
        return metric, surrogate

    def _check_device(self, surrogate: Surrogate) -> None:
        """Raise if the device is missing, or if the surrogate or solver does not run in torch."""
        if self.device is None:
            return
        torch_device(self.device)
        device_form(surrogate)
        if self.solver != "lbfgs":
            hint = "Use solver='lbfgs', or device=None for the other solvers."
            raise ParameterError("solver", self.solver, "'lbfgs' on a device", hint=hint)

    def _choose_surrogate(self, metric: Metric) -> Surrogate:
        return choose_surrogate(self.surrogate, metric)

    def problem(
        self,
        recipe: Recipe,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
    ) -> Problem:
        """Build the problem: supervision -> targets -> loss."""
        metric, surrogate = recipe
        self._check_columns(X, y, qid=qid, sample_weight=sample_weight, query_weight=query_weight)
        y, qid, sample_weight, query_weight = map(on_host, (y, qid, sample_weight, query_weight))
        features = self.checked_features(X, reset=True)
        queries = Queries.for_rows(qid, features.shape[0], "X").in_row_order()
        with naming_query(qid):
            labels, guarantee = training_labels(metric, surrogate, y, queries, self.assume, self.f)
        shares, weights, weighted = row_weights(sample_weight, query_weight, queries)
        guarantee = guarantee.under_weights(weighted)
        setting = self._objective_setting(surrogate, labels, features, queries, shares, weights)
        targets = labels if surrogate.reads == "targets" else None
        return Problem(
            surrogate=surrogate,
            claim=guarantee,
            labels=labels,
            weights=weights,
            queries=Queries.from_sizes(queries.sizes),
            X=setting.X,
            scale=setting.scale,
            objective=setting.objective,
            sample=summarize_sample(guarantee, queries, targets, shares),
            n_informative=n_informative(surrogate.levels(labels, queries.offsets), queries.offsets, shares),
        )

    def _partitioned_problem(self, recipe: Recipe, *columns: Any) -> PartitionedProblem:
        source = as_parts_source(*columns, by_columns=self.solver != "sgd")
        if self.device is not None:
            hint = "Data in parts is trained on the CPU."
            raise ParameterError("device", self.device, "None for scans and Dask collections", hint=hint)
        if self.solver == "sgd" and source.client is not None:
            raise ParameterError.because(SGD_ON_CLUSTER)
        validate_names(self, source)
        preparation = LinearPreparation(*recipe, self.assume, self.f, self.checkpoint is not None)
        show_reading = partial(show_pass, "reading", self.verbose)
        return partitioned_problem(preparation, source, show_reading, fit_scale=bool(self.fit_scale))

    def _objective_setting(self, *arguments: Any) -> ObjectiveSetting:
        if self.device is None:
            with np.errstate(over="ignore", invalid="ignore"):  # of squares: checked below, by feature
                setting = compile_objective(*arguments, fit_scale=self.fit_scale)
            check_squares(setting.X, setting.scale)
            return setting
        from concordant.rankers.device_training import build_device_setting

        device = torch_device(self.device)
        with working_on(device):
            return build_device_setting(*arguments, fit_scale=self.fit_scale, device=device)

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Check the features as `Ranker` does; for fitting on a device, check them there."""
        if reset and self.device is not None:
            from concordant.rankers.device_training import device_features

            return device_features(self, X)
        return super().checked_features(on_host(X), reset=reset)

    def start(self, problem: Problem | PartitionedProblem) -> FloatArray:
        """Return the first weights: 0, or those of the last fit."""
        n_features = len(problem.scale)
        if not (self.warm_start and hasattr(self, "coef_")):
            return np.zeros(n_features)
        if len(self.coef_) != n_features:
            expected = f"one weight for each of the {n_features} features of X, since warm_start begins there"
            raise ShapeError("coef_", self.coef_.shape, expected)
        return self.coef_ * problem.scale

    def journal(
        self, recipe: Recipe, problem: Problem | PartitionedProblem, start: FloatArray
    ) -> AbstractContextManager[Journal | None]:
        """Return the journal of the fit; without a checkpoint, a context that holds None."""
        if self.checkpoint is None:
            return nullcontext()
        fingerprint = {"estimator": type(self).__name__, "alpha": parameter_text(float(self.alpha))}
        fingerprint |= self.fingerprint(recipe)
        start_digest = digest(start) if start.any() else ""
        return Journal(Checkpoint(check_folder(self.checkpoint), fingerprint, problem.digest, start_digest))

    def fingerprint(self, recipe: Recipe) -> dict[str, str]:
        """Fingerprint for checkpoints: what the weights depend on besides data and penalty, as texts."""
        seed = parameter_text(self.random_state) if self.solver == "sgd" else "None"
        return {
            "metric": metric_fingerprint(recipe[0]),
            "surrogate": surrogate_fingerprint(recipe[1]),
            "assume": parameter_text(self.assume),
            "f": parameter_text(self.f),
            "fit_scale": parameter_text(bool(self.fit_scale)),
            "solver": self.solver,
            "random_state": seed,
            "device": str(self.device),
        }

    def solve(
        self,
        problem: Problem | PartitionedProblem,
        alpha: float,
        start: FloatArray,
        journal: Journal | None = None,
    ) -> Solution:
        """Minimise at this penalty."""
        solver, options = SOLVERS[self.solver], {"tol": self.tol, "journal": journal}
        if self.max_iter is not None:
            options["max_iter"] = int(self.max_iter)
        if self.solver == "sgd":
            options["seed"] = self.random_state
        callback = self.callback_for(problem)
        if not is_verbose(self.verbose):
            return solver(problem.objective(alpha), start, callback=callback, **options)
        title = f"{problem.surrogate.name}, alpha={alpha:g}"
        with show_steps(title, callback, getattr(problem, "parts", None)) as show_step:
            return solver(problem.objective(alpha), start, callback=show_step, **options)

    def callback_for(self, problem: Problem | PartitionedProblem) -> Callback | None:
        """Return the caller's callback, with weights in the units of X."""
        if self.callback is None:
            return None
        return lambda step: self.callback(replace(step, w=step.w / problem.scale))
