"""LinearRanker: a linear scoring function, trained by the surrogate that goes with a metric."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import ParameterError, ShapeError
from concordant.metrics.conditions import Family, check_assumption
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import LinearModel, unchanged_by_errors
from concordant.rankers.devices.losses import device_form, on_host, torch_device, working_on
from concordant.rankers.partitioned.linear import LinearPreparation, PartedProblem, parted_problem
from concordant.rankers.partitioned.source import (
    ON_CLUSTER,
    Source,
    is_on_cluster,
    source_of,
    validate_names,
)
from concordant.rankers.progress import passing, watched
from concordant.rankers.recipe import chosen_surrogate, training_labels
from concordant.rankers.told import told_metric, told_surrogate
from concordant.rankers.training import (
    SOLVERS,
    Problem,
    Setting,
    check_squares,
    compiled,
    n_informative,
    row_weights,
    seen,
    solver_for,
)
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Checkpoint, checked_folder, digest, spelled
from concordant.solvers.journal import Journal
from concordant.solvers.solution import Callback
from concordant.supervision.queries import Queries, naming_query
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray

__all__ = ["SEEDED", "LinearRanker", "Recipe"]

Recipe = tuple[Metric, Surrogate]
SEEDED = "a whole number with a checkpoint: what is drawn anew cannot go on as it was"


class LinearRanker(LinearModel):
    """Linear ranker: name the metric; the loss that is consistent with it is minimised.

    Minimises, over w, the mean over queries of the surrogate at scores X @ w, given the metric's standardized
    labels, plus alpha/2 times the squared length of w.

    Parameters
    ----------
    metric
        What a ranking is worth: a metric or its name, such as "ndcg@10".
    surrogate
        What is minimised: "auto" (what measured best for the metric), a name (squared, pairwise, softmax,
        duchi, plackett_luce, preorder, position_hinge), or a `Surrogate` with parameters of its own.
    alpha
        Penalty, > 0 (0 is allowed, and may have no finite solution).
    fit_scale
        Penalise the weights of features divided by their spread within queries; `coef_` is for X as given.
    assume
        Condition on the labels under which the metric has a standardization (see `cc.standardize`); without
        it a metric that needs one gives a `GuaranteeWarning`.
    f
        Of assume="P_f", on preferences: `f(better, worse, weights, n_items)` gives one number per item of a
        query, on which the ranker is trained (see `cc.standardize`). None: the net weights.
    solver
        "lbfgs", "newton", "sgd" (over whole queries, averaged), or "bundle", which is for losses with
        corners.
    tol
        Stop when the objective is, by estimate, above its optimum by at most this share of its value at
        weights 0.
    max_iter
        Most iterations; None: 500 of "lbfgs", 100 of "newton", 1000 of "bundle", 20 epochs of "sgd".
    warm_start
        Begin where the last fit ended.
    callback
        Called after each iteration with a `Step` (`step.w` as `coef_` would be); a true answer ends the fit.
    checkpoint
        A folder that the fit is written to, evaluation by evaluation. Killed at any moment and called again
        with the same data and parameters (`tol`, `max_iter`, `callback` and `verbose` may be others) it goes
        on and gives the same weights, bit for bit. A folder of another fit is refused. None: no folder.
    random_state
        Seed of "sgd".
    device
        None: compiled kernels, on the CPU. "cpu", "cuda", "cuda:0" or a `torch.device`: the same objective
        by torch there, with solver "lbfgs", for the surrogates pairwise, softmax, squared, duchi and
        position_hinge; features are moved once, or are a tensor that is there. Of float32 features scores
        and gradients are float32: a tol below 1e-7 may then end by "precision".
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
        What is guaranteed, under which condition, how well the problem was solved, and what bounds the risk:
        a `FittedCertificate`; `print` it.
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
    is minimised all the same: one `GuaranteeWarning` says so before the work.

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
        client: Any = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow, scipy sparse or a torch tensor. Not
            copied, float32 either, where the rows of each query are adjacent and the ids ascend. Or a
            `Scan`, which has labels, ids and weights of its own, and need not fit in memory; or a Dask array
            or frame, y, qid and weights then being collections of the same partitions. The objective is the
            same, and the weights are, up to rounding.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one). Grades alone of a
            scan or of collections.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts. The row stays in the list as something
            to be ranked. Softmax and pairwise multiply the label by it, so that an inverse propensity
            corrects labels seen at some places only; squared and duchi weigh the item's term, which corrects
            nothing.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts.
        client
            A `distributed.Client`: workers of its cluster hold the parts of the scan, or the collections, in
            memory. None: a scan is read by this process, at each pass; collections go to the current client.
        """
        recipe = self.checked_parameters()
        with unchanged_by_errors(self):
            given, by_columns = (X, y, qid, sample_weight, query_weight), self.solver != "sgd"
            source = source_of(*given, client, by_columns=by_columns)
            problem: Problem | PartedProblem = (
                self.problem(recipe, *given) if source is None else self.parted(recipe, source)
            )
            problem.claim.warn()
            start = self.start(problem)
            with self.journal(recipe, problem, start) as journal:
                solution = self.solved(problem, self.alpha, start, journal)
            return self.adopt(solution, problem, float(self.alpha), fixed=True)

    def checked_parameters(self) -> Recipe:
        """Refuse parameters out of range, before any work; the metric, and the surrogate for it."""
        for name, kind, least in (("alpha", Real, 0), ("tol", Real, 0), ("max_iter", Integral, 1)):
            value = getattr(self, name)
            if name == "max_iter" and value is None:
                continue
            if not (isinstance(value, kind) and least <= as_double(value) < np.inf):
                whole = "whole" if kind is Integral else "finite"
                raise ParameterError(name, value, f"a {whole} number >= {least}")
        if self.callback is not None and not callable(self.callback):
            raise ParameterError("callback", self.callback, "a function of a Step, or None")
        self.check_flags("fit_scale", "warm_start")
        check_seed(self.random_state)
        if checked_folder(self.checkpoint) is not None and self.random_state is None and self.solver == "sgd":
            raise ParameterError("random_state", None, SEEDED)
        check_assumption(self.assume, self.f)
        metric = read_metric(self.metric)
        surrogate = self.chosen(metric)
        solver_for(self.solver, surrogate, self.alpha)
        self.check_device(surrogate)
        return metric, surrogate

    def check_device(self, surrogate: Surrogate) -> None:
        """Refuse a device that is not there, and what has no form in torch."""
        if self.device is None:
            return
        torch_device(self.device)
        device_form(surrogate)
        if self.solver != "lbfgs":
            wanted = "'lbfgs' on a device; the others read curvature, single queries or digits that only the"
            raise ParameterError("solver", self.solver, f"{wanted} compiled kernels (device=None) give")

    def chosen(self, metric: Metric) -> Surrogate:
        """Give the surrogate to minimise for the metric."""
        return chosen_surrogate(self.surrogate, metric)

    def problem(
        self,
        recipe: Recipe,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike = None,
        sample_weight: ArrayLike = None,
        query_weight: ArrayLike = None,
    ) -> Problem:
        """Supervision -> targets -> loss."""
        metric, surrogate = recipe
        self.refuse_no_labels(y)
        y, qid, sample_weight, query_weight = map(on_host, (y, qid, sample_weight, query_weight))
        features = self.checked_features(X, reset=True)
        queries = Queries.of(qid, features.shape[0], "X")
        with naming_query(qid):
            labels, claim = training_labels(metric, surrogate, y, queries, self.assume, self.f)
        shares, weights = row_weights(sample_weight, query_weight, queries)
        setting = self.setting(surrogate, labels, features, queries, shares, weights)
        targets = labels if surrogate.reads == "targets" else None
        return Problem(
            surrogate=surrogate,
            claim=claim,
            labels=labels,
            weights=weights,
            queries=Queries.from_sizes(queries.sizes),
            X=setting.X,
            scale=setting.scale,
            objective=setting.objective,
            sample=seen(claim, queries, targets, shares, weighted=sample_weight is not None),
            n_informative=n_informative(surrogate.levels(labels, queries.offsets), queries.offsets, shares),
        )

    def parted(self, recipe: Recipe, source: Source) -> PartedProblem:
        """Do as `problem` on data in parts."""
        if self.device is not None:
            wanted = "None for scans and collections: their parts are worked on by compiled kernels"
            raise ParameterError("device", self.device, wanted)
        if self.solver == "sgd" and is_on_cluster(source):
            raise ParameterError("solver", "sgd", ON_CLUSTER)
        validate_names(self, source)
        preparation = LinearPreparation(*recipe, self.assume, self.f, self.checkpoint is not None)
        told = partial(passing, "reading", self.verbose)
        return parted_problem(preparation, source, told, fit_scale=bool(self.fit_scale))

    def setting(self, *given: Any) -> Setting:
        """Where the objective is evaluated: by compiled kernels, or on the device."""
        if self.device is None:
            with np.errstate(over="ignore", invalid="ignore"):  # of squares: told by name
                setting = compiled(*given, fit_scale=self.fit_scale)
            check_squares(setting.X, setting.scale)
            return setting
        from concordant.rankers.devices.training import on_device

        device = torch_device(self.device)
        with working_on(device):
            return on_device(*given, fit_scale=self.fit_scale, device=device)

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Do as `Ranker`; on a device what is fitted is read there."""
        if reset and self.device is not None:
            from concordant.rankers.devices.training import device_features

            return device_features(self, X)
        return super().checked_features(on_host(X), reset=reset)

    def start(self, problem: Problem | PartedProblem) -> FloatArray:
        """Where the work begins."""
        n_features = len(problem.scale)
        if not (self.warm_start and hasattr(self, "coef_")):
            return np.zeros(n_features)
        if len(self.coef_) != n_features:
            wanted = f"one weight for each of the {n_features} features of X, since warm_start begins there"
            raise ShapeError("coef_", self.coef_.shape, wanted)
        return self.coef_ * problem.scale

    def journal(
        self, recipe: Recipe, problem: Problem | PartedProblem, start: FloatArray
    ) -> AbstractContextManager[Journal | None]:
        """Give where the work is written down, if it is to be."""
        if (folder := checked_folder(self.checkpoint)) is None:
            return nullcontext()
        told = {"estimator": type(self).__name__, "alpha": spelled(float(self.alpha)), **self.told(recipe)}
        begun = digest(start) if start.any() else ""
        return Journal(Checkpoint(folder, told, problem.digest, begun))

    def told(self, recipe: Recipe) -> dict[str, str]:
        """What the weights depend on besides data and penalty, as texts."""
        seed = spelled(self.random_state) if self.solver == "sgd" else "None"
        return {
            "metric": told_metric(recipe[0]),
            "surrogate": told_surrogate(recipe[1]),
            "assume": spelled(self.assume),
            "f": spelled(self.f),
            "fit_scale": spelled(bool(self.fit_scale)),
            "solver": self.solver,
            "random_state": seed,
            "device": str(self.device),
        }

    def solved(
        self,
        problem: Problem | PartedProblem,
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
        title = f"{problem.surrogate.name}, alpha={alpha:g}"
        parts = getattr(problem, "parts", None)
        with watched(title, self.verbose, self.callback_for(problem), parts) as callback:
            return solver(problem.objective(alpha), start, callback=callback, **options)

    def callback_for(self, problem: Problem | PartedProblem) -> Callback | None:
        """Give the caller's callback, told of weights in the units of X."""
        if self.callback is None:
            return None
        return lambda step: self.callback(replace(step, w=step.w / problem.scale))


def check_seed(seed: Any) -> None:
    """Refuse what numpy cannot make a generator of."""
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ParameterError("random_state", seed, "a whole number >= 0, or None") from error
