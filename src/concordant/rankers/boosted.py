"""BoostedRanker: gradient-boosted trees, grown by the surrogate that goes with a metric."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from concordant._base.light_sklearn import ConvergenceWarning, check_is_fitted, validate_data
from concordant._base.validate import check_flag, check_seed, refuse_misaligned
from concordant._base.warn import warn_caller
from concordant.data.check import (
    are_in_memory,
    column_labels,
    naming_features,
    plain_features,
    refuse_non_finite,
)
from concordant.data.queries import naming_query
from concordant.exceptions import LibraryError, ParameterError, UnknownNameError
from concordant.metrics.metric import Family
from concordant.rankers.base import ARRAY_RULES, Ranker, query_ranks, unchanged_by_errors, warn_of_shortfall
from concordant.rankers.boosters import BOOSTERS, Booster
from concordant.rankers.boosters.booster import (
    BoostingMonitor,
    TreeData,
    Trees,
    interruptible,
    progress_callbacks,
)
from concordant.rankers.boosters.features import Encoding, categorical_numbers, monotonic_signs
from concordant.rankers.boosters.lightgbm_cluster import ClusteredLightGBM, check_cluster_params, deal_parts
from concordant.rankers.boosters.plan import (
    REAL,
    WHOLE,
    BoostingPlan,
    check_parameters,
    draw_seed,
    safe_names,
)
from concordant.rankers.boosters.tree_training_set import (
    BaseTreeTrainingSet,
    TreeTrainingSet,
    digest_data,
    grow_in_segments,
    split_heldout,
    training_fingerprint,
    weigh_labels,
)
from concordant.rankers.fitted_certificate import Descent
from concordant.rankers.folds import Evaluate, FitRows, bind_evaluation, read_eval_set
from concordant.rankers.linear import UNSEEDED
from concordant.rankers.parts.boosted_parts import PartitionedTreeTrainingSet, grow_despite_losses, part_sizes
from concordant.rankers.parts.linear_parts import refuse_joint
from concordant.rankers.parts.ranker_source import PartsSource, as_parts_source, validate_names
from concordant.scale.cluster import addresses
from concordant.solvers.checkpoint import Checkpoint, check_folder, digest, parameter_text
from concordant.types import ArrayLike, FloatArray, IntArray

# A fitted `BoostedRanker`: features to scores, scores to ranks.

ROUNDING = 1e-6  # of scores in single precision


class TreeModel(Ranker):
    """Scores by trees, and ranks."""

    booster_: Any
    encoding_: Encoding
    trees_: Trees
    _no_risk_bound = "no bound is known for what trees express"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Return features as numbers, categories as codes; NaN is missing, infinity raises."""
        with naming_features():
            return self.numbers(X, reset=reset)

    def numbers(self, X: ArrayLike, *, reset: bool) -> Any:
        """Encode the features for the trees."""
        if not hasattr(X, "tocsr") and not hasattr(X, "shape"):
            X = np.asarray(X)
        if reset:
            self.encoding_ = Encoding.from_features(X, categorical_numbers(self.categorical_features, X))
        if hasattr(X, "tocsr") and self.encoding_.categories:
            categorical_text = ", ".join(map(str, self.encoding_.categories))
            raise ParameterError.because(
                f"X must be dense, got a sparse matrix. Features {categorical_text} were categories in fit."
            )
        if not self.encoding_.categories:
            checked = validate_data(self, plain_features(X), reset=reset, accept_sparse="csr", **ARRAY_RULES)
            refuse_non_finite(checked, "X", column_labels(self), missing=True)
            return _short_indices(checked) if hasattr(checked, "tocsr") else checked
        validate_data(self, X, reset=reset, skip_check_array=True)
        coded = self.encoding_.numbers(X)
        refuse_non_finite(coded, "X", column_labels(self), missing=True)
        return coded

    def adopt(
        self,
        booster: Booster,
        trees: Trees,
        training_set: BaseTreeTrainingSet,
        monitor: BoostingMonitor,
        model: Any,
        ends: tuple[float, float],
    ) -> Self:
        """Store the trees, and warn if they fall short."""
        self.booster_, self.trees_ = model, trees
        self.n_estimators_, self.best_iteration_ = booster.n_trees(model), monitor.best
        self.history_, self.stopped_by_ = np.array(monitor.history), monitor.stopped_by
        first, value = ends
        descent = partial(Descent, first, value, self.n_estimators_, "trees", monitor.stopped_by)
        self._summarize_fit(training_set, descent)
        rose = self.n_informative_ and not value <= first * (1.0 + ROUNDING)
        inexact = _rise_text(ends, booster, training_set) * bool(rose)
        warn_of_shortfall("" if self.n_informative_ else "labels that differ", inexact)
        if self.n_informative_ and not self.feature_importances_.any():
            warn_caller("No split was found, so all scores are equal. Lower min_samples_leaf, or add rows.")
        if monitor.stopped_by == "interrupt":
            done = f"Training was interrupted after {len(monitor.history)} of {trees.n_estimators} rounds"
            warn_caller(f"{done}. The model keeps {self.n_estimators_} trees.", ConvergenceWarning)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Compute the score of each row; higher is better. Equal rows have equal scores."""
        check_is_fitted(self, "booster_")
        features = self.checked_features(X, reset=False)
        booster = BOOSTERS[self.trees_.library]
        booster.library()  # not imported yet, if the model was unpickled
        return booster.scores(self.booster_, features, self.trees_)

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Return the scores, whatever the queries."""
        del qid
        return self.predict(X)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Return the rank of each row in its query, 1 for the best; equal scores keep their order."""
        refuse_misaligned(X=X, qid=qid)
        return query_ranks(self, self.predict(X), qid)

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """Categories of each categorical feature, by its number."""
        return dict(self.encoding_.categories)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits; all 0 if there are no splits."""
        check_is_fitted(self, "booster_")
        gains = BOOSTERS[self.trees_.library].gains(self.booster_, self.n_features_in_)
        shares: FloatArray = gains / max(gains.sum(), np.finfo(np.float64).tiny)
        return shares


@contextmanager
def _naming_library(library: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.lstrip("_").partition(".")[0] != library:
            raise
        raise LibraryError(library, str(error)) from error


def _short_indices(X: Any) -> Any:
    """Return compressed rows with 32-bit indices if they fit, in order, each cell stored once.

    CatBoost reads no other indices; LightGBM takes the last of several entries of a cell.
    """
    rows = csr_matrix(X)
    if not rows.has_canonical_format:
        rows = csr_matrix(X, copy=True)
        rows.sum_duplicates()
    if max(rows.nnz, *rows.shape) < 2**31:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows


def _rise_text(ends: tuple[float, float], booster: Booster, training_set: BaseTreeTrainingSet) -> str:
    curvatures = training_set.surrogate.curvatures if booster.needs_gradients else ()
    is_possible = "majorising" in curvatures and training_set.curvature != "majorising"
    other = ", or use curvature='majorising'" * is_possible
    text = "The training loss rose from {:.4g} to {:.4g}".format(*ends)
    return f"{text}. Lower learning_rate or raise l2{other}."


GrownTrees = tuple[Trees, PartitionedTreeTrainingSet, BoostingMonitor, Any, tuple[float, float]]
"""Trees to be, what they are grown on, what was seen meanwhile, the model, and the loss before and after."""


class BoostedRanker(TreeModel):
    """Gradient-boosted trees: name the metric; the loss that is consistent with it is minimised over trees.

    Each round adds a tree that takes a Newton step on the surrogate, summed over queries and given the
    metric's standardized labels: LightGBM and XGBoost get its gradient and curvature; CatBoost accepts no
    user-defined loss of lists, but two of its losses are the same with standardized labels.

    Parameters
    ----------
    metric, assume, f
        As in `LinearRanker`.
    surrogate
        The loss that is minimised: "auto" (by the metric: squared, softmax or pairwise; with trees they
        mostly differ by less than the noise), a name or a `Surrogate`. Hinges have no curvature and raise.
        CatBoost has "softmax" (its QuerySoftMax) and "squared" (its QueryRMSE).
    booster
        "lightgbm", "xgboost" or "catboost", which must be installed.
    n_estimators
        Maximum number of trees.
    learning_rate
        Share of the Newton step that a tree takes.
    max_leaf_nodes
        Maximum number of leaves of a tree, which is grown best leaf first; None: no limit but `max_depth`
        (with CatBoost: symmetric trees, its native kind).
    max_depth
        Maximum number of splits on the way to a leaf; None: no limit (16 with CatBoost; 6 for its symmetric
        trees).
    min_samples_leaf
        Minimum number of rows of a leaf. XGBoost counts curvature instead: that of as many mean rows at the
        start.
    l2
        Penalty of leaf values, in rows: the step of a leaf is shortened as if it had this many more mean rows
        without gradient.
    subsample
        Share of the rows, drawn for each tree, that determine its splits and leaf values. Rows, not queries:
        gradients are still those of whole lists.
    colsample
        Share of the features that a tree may use (with CatBoost, a split).
    early_stopping
        Stop after this many rounds without a better score on held-out queries, and keep the trees up to the
        best score; None: never.
    validation_fraction
        Share of the queries that is held out for that, if `fit` gets no `eval_set`.
    monotonic_cst
        -1, 0 or 1 for each feature, or a dict of them by name: scores never rise (-1), or never fall (1),
        with the feature. CatBoost then grows symmetric trees, of as many levels as the leaves need.
    categorical_features
        "from_dtype": columns of a frame whose type is a category; None: none; or a list of names or numbers.
        Categories unknown to `fit` count as missing, with a warning if a column has no others.
    curvature
        "exact": the second derivative. "majorising": larger, such that no round raises the training loss
        at a `learning_rate` of at most 1 (at most 1/2 with `monotonic_cst`), if every row is counted
        exactly: `subsample` 1, no sampling or rounding of gradients by `params`. "auto": exact if the loss
        has it, else majorising.
    lift
        Share of the highest target of a query that is added to all its targets, which changes no order of
        expected targets: it keeps scores of items without a target from falling for ever. "auto": 1 for
        softmax, else 0; its effect on metrics is mostly below the noise.
    params
        Parameters of the library, which override ours; not those that we must set, such as its objective.
    n_jobs
        Threads of the library; None or -1: its default, mostly all.
    warm_start
        Keep the trees of the last fit, and add trees up to `n_estimators` in total.
    random_state
        Seed for drawing rows, features and held-out queries; with CatBoost also for the noise on the scores
        of splits (its `random_strength`).
    callback
        Called after each round with a `Round` (n_trees, score, best_iteration); a true result ends the fit.
    checkpoint
        A folder that the fit is written to: after 100, 200 and 300 rounds, then whenever there are half as
        many more. Killed at any moment and called again with the same data and parameters (`callback` and
        `verbose` may differ), it resumes and gives the same trees. LightGBM and XGBoost restart their draws
        there, killed or not (`subsample`, `colsample`): they differ from the draws without a checkpoint.
        CatBoost resumes from its native snapshots, and not with `warm_start`. A folder of another fit raises.
        None: no checkpoint.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    booster_
        The library's model: `lightgbm.Booster`, `xgboost.Booster` or `catboost.CatBoost`.
    surrogate_, basis_, certificate_
        As in `LinearRanker`; `certificate_.optimality` has only the decrease of the loss: a `Descent`.
    n_estimators_
        Number of trees.
    best_iteration_
        The first number of trees with the best score on held-out queries; without such queries, all.
    history_
        The score on held-out queries at 1, 2, ... trees, as `score` returns it; NaN if it was not computed.
    stopped_by_
        "limit" (n_estimators), "early_stopping", "no_split", "callback" or "interrupt".
    feature_importances_
        Share of each feature in the sum of the gains of all splits; with CatBoost, in the change of
        predictions by features.
    categories_
        Categories of each categorical feature, by its number.
    n_queries_, n_informative_
        Queries trained on, and those whose labels differ, from which something is learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The score on held-out queries is the metric's, under its convention, whatever the library. CatBoost passes
    all rows of a set to a user-defined metric at once, so that it can stop early by any metric, as the others
    can.

    Missing values (NaN) are handled by the library. Absent entries of sparse features are 0, also for
    XGBoost, for which they are made dense. Equal seeds and numbers of threads give equal models, whatever the
    order of the queries. Ctrl-C during `fit` keeps the trees so far and warns.

    On a Dask cluster LightGBM grows the same kind of trees for the same loss, by `lightgbm.dask`. Each worker
    computes the bins of some features from its local rows, and rows are added up in another order: on several
    workers the trees differ from those in memory, and are no worse; equal numbers of workers give equal
    trees. Missing values and categories raise, and so do `early_stopping`, `eval_set`, `callback`,
    `checkpoint`, `warm_start` and `n_jobs`. A worker that dies ends the fit with a `ClusterError`;
    Ctrl-C ends it, too.

    Examples
    --------
    >>> from concordant import synthetic
    >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> model = BoostedRanker("ndcg@5", n_estimators=20, n_jobs=1).fit(toy.X, toy.y, qid=toy.qid)
    >>> model.score(toy.X, toy.y, qid=toy.qid) > 0.5, model.n_estimators_
    (True, 20)
    >>> model.certificate_
    FittedCertificate(ndcg@5 on grades, softmax, sort: proven, rests on every distribution)
    """

    def __init__(
        self,
        metric: Any = "ndcg@10",
        surrogate: Any = "auto",
        booster: str = "lightgbm",
        *,
        n_estimators: int = 300,
        learning_rate: float = 0.05,
        max_leaf_nodes: int | None = 15,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2: float = 1.0,
        subsample: float = 1.0,
        colsample: float = 1.0,
        early_stopping: int | None = None,
        validation_fraction: float = 0.1,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        curvature: str = "auto",
        lift: float | str = "auto",
        assume: str | None = None,
        f: Family | None = None,
        params: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: int | None = 0,
        callback: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.booster = booster
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.subsample = subsample
        self.colsample = colsample
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.curvature = curvature
        self.lift = lift
        self.assume = assume
        self.f = f
        self.params = params
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint
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
        client: Any = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow or scipy sparse. NaN is missing. Or,
            for LightGBM on a cluster, a `Scan`, which contains labels, ids and weights, or a Dask array or
            frame, with y, qid and weights as collections of the same partitions.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one). Only grades with
            scans and collections.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts, as in `LinearRanker`. Their unit
            does not matter: the mean row that counts weighs 1.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts. Their unit
            does not matter: the mean query that counts weighs 1. Guarantees are for weights that do not
            depend on the labels, which is not checked.
        eval_set
            Held-out queries, as `RankingData` or (X, y, qid): `history_` has the score on them, and early
            stopping uses it.
        client
            A `distributed.Client`, on whose cluster trees are grown; None: for collections, the current one.
        """
        plan, booster = self.checked_parameters()
        columns = X, y, qid, sample_weight, query_weight
        if is_in_parts := client is not None or not are_in_memory(*columns):
            check_cluster_params(self.get_params(deep=False), X, eval_set, client)
        with unchanged_by_errors(self), _naming_library(self.booster):
            if is_in_parts:
                return self.adopt(booster, *self.grow_on_cluster(plan, as_parts_source(*columns, client)))
            start = self.start()
            rows = self._checked_rows(*columns, reset=start is None)
            trees = self._planned_trees()
            with naming_query(qid):
                held_out, training_set, evaluate = self.split_rows(plan, rows, eval_set)
            training_set.claim.warn()
            self._warn_of_rows(y, qid)
            checkpoint = self._make_checkpoint(plan, trees, training_set.data, held_out, start)
            monitor, model = self._grow_trees(booster, trees, training_set, evaluate, start, checkpoint)
            if self.early_stopping is not None and monitor.best < booster.n_trees(model):
                model = start if monitor.best == monitor.done else booster.cut(model, monitor.best)
                monitor.train_scores = None
            ends = training_set.first_and_last_loss(booster, trees, monitor, model)
            return self.adopt(booster, trees, training_set, monitor, model, ends)

    def checked_parameters(self) -> tuple[BoostingPlan, Booster]:
        """Check the parameters before any work; return the plan and the booster."""
        check_parameters(self.get_params(deep=False))
        check_flag("warm_start", self.warm_start)
        check_seed("random_state", self.random_state)
        if self.checkpoint is not None:
            check_folder(self.checkpoint)
            if self.random_state is None:
                raise ParameterError.because(UNSEEDED)
        if not isinstance(self.booster, str) or self.booster not in BOOSTERS:
            raise UnknownNameError("booster", self.booster, BOOSTERS)
        booster, rest = BOOSTERS[self.booster], (self.curvature, self.lift, self.assume, self.f)
        plan = BoostingPlan.from_names(self.metric, self.surrogate, *rest, booster.accepts_loss)
        booster.check(plan.surrogate, self.curvature)
        booster.library()
        return plan, booster

    def start(self) -> Any:
        """Return the trees of the last fit for a warm start; else None."""
        if not (self.warm_start and hasattr(self, "booster_")):
            return None
        if self.trees_.library != self.booster:
            expected = f"{self.trees_.library!r} to continue with warm_start"
            raise ParameterError("booster", self.booster, expected)
        if self.n_estimators < self.n_estimators_:
            expected = f"at least {self.n_estimators_}, the number of trees that warm_start continues from"
            raise ParameterError("n_estimators", self.n_estimators, expected)
        return self.booster_

    def _planned_trees(self) -> Trees:
        names = [*map(str, getattr(self, "feature_names_in_", []))]
        signs = monotonic_signs(self.monotonic_cst, names, self.n_features_in_)
        categorical = tuple(self.encoding_.categories)
        if signs and any(signs[number] for number in categorical):
            raise ParameterError("monotonic_cst", self.monotonic_cst, "0 for categorical features")
        return Trees(
            library=self.booster,
            **{name: getattr(self, name) for name in (*WHOLE, *REAL) if name != "early_stopping"},
            seed=draw_seed(self.random_state),
            n_jobs=None if self.n_jobs == -1 else self.n_jobs,
            monotonic=signs,
            categorical=categorical,
            names=safe_names(names),
            params=dict(self.params or {}),
        )

    def split_rows(
        self, plan: BoostingPlan, rows: FitRows, eval_set: Any
    ) -> tuple[FitRows | None, TreeTrainingSet, Evaluate | None]:
        """Return the held-out rows, if any, the training set, and the evaluation on the held-out rows."""
        if eval_set is not None:
            X, y, qid = read_eval_set(eval_set)
            held_out = FitRows.from_columns(self.checked_features(X, reset=False), y, qid, None, None)
            training_set = TreeTrainingSet.from_rows(plan, rows, held_out.X)
            return held_out, training_set, bind_evaluation(plan.metric, held_out, "eval_set")
        if self.early_stopping is None:
            return None, TreeTrainingSet.from_rows(plan, rows), None
        weigh_labels(plan, rows, rows.queries)  # errors name the caller's rows
        train, held_out = split_heldout(rows, float(self.validation_fraction), self.random_state)
        training_set = TreeTrainingSet.from_rows(plan, train, held_out.X)
        return held_out, training_set, bind_evaluation(plan.metric, held_out, "the queries held out")

    def grow_on_cluster(self, plan: BoostingPlan, source: PartsSource) -> GrownTrees:
        """Grow the trees on a cluster; the data are released there with the training set."""
        refuse_joint(plan.metric)
        validate_names(self, source)
        self.encoding_ = Encoding({})
        return grow_despite_losses(
            source.client, lambda again: self._grow_on_workers(plan, source, again=again)
        )

    def _grow_on_workers(self, plan: BoostingPlan, source: PartsSource, *, again: bool) -> GrownTrees:
        trees, booster = self._planned_trees(), ClusteredLightGBM()
        worker_of_part = deal_parts(part_sizes(source.index), addresses(source.client))
        training_set = PartitionedTreeTrainingSet.from_parts(plan, source, worker_of_part)
        if not again:
            training_set.claim.warn()
        monitor = BoostingMonitor()
        title = f"{plan.surrogate.name}, {booster.name}, {len(set(worker_of_part))} workers"
        with progress_callbacks(title, trees.n_estimators, self.verbose) as callbacks:
            model = booster.grow_or_stump_on_cluster(trees, training_set, monitor, callbacks)
        ends = training_set.first_and_last_loss(booster, trees, monitor, model)
        return trees, training_set, monitor, model, ends

    def _make_checkpoint(
        self, plan: BoostingPlan, trees: Trees, data: TreeData, held_out: FitRows | None, start: Any
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        booster = BOOSTERS[trees.library]
        version, patience = str(booster.library().__version__), parameter_text(self.early_stopping)
        fingerprint = {"estimator": type(self).__name__, "early_stopping": patience}
        fingerprint |= training_fingerprint(plan, trees, version)
        start_digest = "" if start is None else digest(booster.scores(start, data.X, trees))
        data_digest = digest_data(plan, data, held_out)
        return Checkpoint(check_folder(self.checkpoint), fingerprint, data_digest, start_digest)

    def _grow_trees(
        self,
        booster: Booster,
        trees: Trees,
        training_set: TreeTrainingSet,
        evaluate: Evaluate | None,
        start: Any,
        checkpoint: Checkpoint | None,
    ) -> tuple[BoostingMonitor, Any]:
        done = 0 if start is None else booster.n_trees(start)
        history = [*self.history_[:done]] if done else []
        if done and evaluate is not None:  # the held-out rows may differ from those of the last fit
            history[-1] = evaluate(booster.scores(start, training_set.data.heldout_features, trees))
        monitor = BoostingMonitor(
            evaluate, self.early_stopping, done=done, history=history, random=booster.is_random(trees)
        )
        if done >= trees.n_estimators:
            return monitor, start
        user_callbacks = () if self.callback is None else (self.callback,)
        title = f"{training_set.data.surrogate.name}, {booster.name}"
        with progress_callbacks(title, trees.n_estimators, self.verbose) as bar, interruptible(monitor):
            monitor.callbacks = (*bar, *user_callbacks)
            model = (
                booster.grow_or_stump(trees, training_set.data, monitor, start)
                if checkpoint is None
                else grow_in_segments(booster, trees, training_set.data, monitor, start, checkpoint)
            )
        if monitor.failure is not None:
            raise monitor.failure
        return monitor, model
