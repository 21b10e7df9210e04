"""BoostedRanker: gradient-boosted trees, grown by the surrogate that goes with a metric."""

from __future__ import annotations

from typing import Any, Self

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.conditions import Family
from concordant.rankers.base import unchanged_by_errors
from concordant.rankers.boosted_model import TreeModel, naming_library
from concordant.rankers.boosters import BOOSTERS, Booster
from concordant.rankers.boosters.booster import Data, Trees
from concordant.rankers.boosters.features import Encoding, monotonic_signs
from concordant.rankers.boosters.lesson import Lesson, halves, told
from concordant.rankers.boosters.lightgbm_cluster import ClusteredLightGBM, dealt, refuse_alone
from concordant.rankers.boosters.parameters import REAL, WHOLE, check_parameters, safe_names, seed_of
from concordant.rankers.boosters.plan import Plan
from concordant.rankers.boosters.segments import digest_of, facts_of, in_segments
from concordant.rankers.boosters.watch import Watch, followed, interruptible
from concordant.rankers.folds import Rows
from concordant.rankers.held_out import Evaluate, evaluation, given_rows
from concordant.rankers.linear import SEEDED, check_seed
from concordant.rankers.partitioned.boosted import PartedLesson, sizes_of, surviving
from concordant.rankers.partitioned.linear import refuse_joint
from concordant.rankers.partitioned.source import Source, source_of, validate_names
from concordant.solvers.checkpoint import Checkpoint, checked_folder, digest, spelled
from concordant.solvers.partitioned.cluster import addresses
from concordant.supervision.queries import Queries, naming_query
from concordant.types import ArrayLike

__all__ = ["BoostedRanker"]

Grown = tuple[Trees, PartedLesson, Watch, Any, tuple[float, float]]
"""Trees to be, what they are grown on, what was seen meanwhile, the model, and the loss before and after."""


class BoostedRanker(TreeModel):
    """Gradient-boosted trees: name the metric; the loss that is consistent with it is minimised over trees.

    Each round adds a tree that takes a Newton step on the surrogate, summed over queries and given the
    metric's standardized labels: LightGBM and XGBoost are told its gradient and curvature; CatBoost takes no
    loss of lists from outside, but has two that standardized labels make ours.

    Parameters
    ----------
    metric, assume, f
        As for `LinearRanker`.
    surrogate
        What is minimised: "auto" (by the metric: squared, softmax or pairwise; with trees they mostly differ
        by less than the noise), a name or a `Surrogate`. Hinges have no curvature and are refused. CatBoost
        has "softmax" (its QuerySoftMax) and "squared" (its QueryRMSE).
    booster
        "lightgbm", "xgboost" or "catboost", which must be installed.
    n_estimators
        Most trees.
    learning_rate
        Share of the Newton step that a tree takes.
    max_leaf_nodes
        Most leaves of a tree, the best one split next; None: no limit but `max_depth` (of CatBoost: symmetric
        trees, its own kind).
    max_depth
        Most splits on the way to a leaf; None: no limit (16, of CatBoost; 6, of its symmetric trees).
    min_samples_leaf
        Fewest rows of a leaf. XGBoost counts curvature instead: as much as so many mean rows have at the
        start.
    l2
        Penalty of leaf values, in rows: the step of a leaf is shortened as if so many mean rows without
        gradient were in it.
    subsample
        Share of the rows, drawn anew for each tree, that its leaves are found and valued by. Rows, not
        queries: gradients are those of whole lists all the same.
    colsample
        Share of the features that a tree may use (of CatBoost, a split).
    early_stopping
        End after so many rounds without a better score on held-out queries, and keep the trees up to the
        best; None: do not.
    validation_fraction
        Share of the queries that are held out for that, where `fit` is given no `eval_set`.
    monotonic_cst
        -1, 0 or 1 for each feature, or a dict of them by name: scores never rise (-1), or never fall (1),
        with the feature. CatBoost then grows symmetric trees, of as many levels as the leaves need.
    categorical_features
        "from_dtype": columns of a frame whose type is a category; None: none; or a list of names or numbers.
        Categories that `fit` did not see count as missing, with a warning where a column has no other.
    curvature
        "exact": the second derivative. "majorising": larger, such that no round raises the training loss
        at a `learning_rate` of at most 1 (at most 1/2 with `monotonic_cst`), if every row is counted as it
        is: `subsample` 1, no sampling or rounding of gradients by `params`. "auto": exact where the loss has
        it, else majorising.
    lift
        Share of the highest target of a query that is added to all its targets, which changes no order of
        expected targets: it keeps scores of items without a target from falling for ever. "auto": 1 for
        softmax, else 0; what measures show of it is mostly below their noise.
    params
        Parameters of the library, which win over ours; not those that are ours alone, such as its objective.
    n_jobs
        Threads of the library; None or -1: its own choice, which is mostly all.
    warm_start
        Keep the trees of the last fit, and add up to `n_estimators` in all.
    random_state
        Seed of what is drawn: rows, features, held-out queries; of CatBoost always also disturbances of the
        scores of splits (its `random_strength`).
    callback
        Called after each round with a `Round` (n_trees, score, best_iteration); a true answer ends the fit.
    checkpoint
        A folder that the fit is written to: after 100, 200 and 300 rounds, then at every half more. Killed at
        any moment and called again with the same data and parameters (`callback` and `verbose` may be others)
        it goes on, and gives the same trees. LightGBM and XGBoost draw anew there, killed or not
        (`subsample`, `colsample`): not as they do without a checkpoint. CatBoost goes on by its own
        snapshots, and not with `warm_start`. A folder of another fit is refused. None: no folder.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    booster_
        The library's own model: `lightgbm.Booster`, `xgboost.Booster` or `catboost.CatBoost`.
    surrogate_, basis_, certificate_
        As for `LinearRanker`; `certificate_.optimality` says only how far the loss fell: a `Descent`.
    n_estimators_
        Trees.
    best_iteration_
        The first number of trees with the best score on held-out queries; without such queries, all.
    history_
        The score on held-out queries at 1, 2, ... trees, as `score` gives it; NaN where it was not taken.
    stopped_by_
        "limit" (n_estimators), "early_stopping", "no_split", "callback" or "interrupt".
    feature_importances_
        Share of each feature in the sum of the gains of all splits; of CatBoost, in how much predictions
        change with features.
    categories_
        Categories of each categorical feature, by its number.
    n_queries_, n_informative_
        Queries trained on, and those whose labels differ, from which something is learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The score on held-out queries is the metric's, under its convention, whatever the library. CatBoost gives
    a metric of one's own all rows of a set at once, and the lists are known here, so that it can stop early
    by any metric as the others can.

    Missing values (NaN) go where each library sends them. Absent entries of sparse features are 0, also for
    XGBoost, for which they are made dense. Equal seeds and numbers of threads give equal models, in whatever
    order the queries come. Ctrl-C during `fit` keeps the trees so far and warns.

    On a Dask cluster LightGBM grows the same kind of trees for the same loss, by `lightgbm.dask`. Each worker
    finds the bins of some features from its own rows, and rows are added up in another order: on several
    workers the trees are others than in memory, and no worse; on equally many they are equal. Missing values
    and categories are refused, and so are `early_stopping`, `eval_set`, `callback`, `checkpoint`,
    `warm_start` and `n_jobs`. A worker that dies ends the fit with a `ClusterError`; Ctrl-C ends it, too.

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
            for LightGBM on a cluster, a `Scan`, which has labels, ids and weights of its own, or a Dask array
            or frame, y, qid and weights then being collections of the same partitions.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one). Grades alone of a
            scan or of collections.
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight
            One number >= 0 per row: how much the row's label counts, as for `LinearRanker`. Their unit does
            not matter: the mean row that counts weighs 1.
        query_weight
            One number >= 0 per row, the same for all rows of a query: how much the query counts. Their unit
            does not matter: the mean query that counts weighs 1.
        eval_set
            Held-out queries, as `RankingData` or (X, y, qid): `history_` has the score on them, and early
            stopping goes by it.
        client
            A `distributed.Client`, on whose cluster trees are grown; None: for collections, the current one.
        """
        plan, booster = self.checked_parameters()
        refuse_alone(self.get_params(deep=False), X, eval_set, client)
        with unchanged_by_errors(self), naming_library(self.booster):
            source = source_of(X, y, qid, sample_weight, query_weight, client)
            if source is not None:
                return self.adopt(booster, *self.grown_there(plan, source))
            self.refuse_no_labels(y)
            start = self.start()
            features = self.checked_features(X, reset=start is None)
            trees = self.planned_trees()
            rows = Rows.of(features, y, qid, sample_weight, query_weight)
            with naming_query(qid):
                held, lesson, evaluate = self.lesson(plan, rows, eval_set)
            lesson.claim.warn()
            checkpoint = self.place(plan, trees, lesson.data, held, start)
            watch, model = self.grown(booster, trees, lesson, evaluate, start, checkpoint)
            if self.early_stopping is not None and watch.best < booster.n_trees(model):
                model = start if watch.best == watch.done else booster.cut(model, watch.best)
                watch.trained = None
            ends = lesson.ends(booster, trees, watch, model)
            return self.adopt(booster, trees, lesson, watch, model, ends)

    def checked_parameters(self) -> tuple[Plan, Booster]:
        """Refuse parameters out of range, before any work; what trees are grown for, and by whom."""
        check_parameters(self.get_params(deep=False))
        self.check_flags("warm_start")
        check_seed(self.random_state)
        if checked_folder(self.checkpoint) is not None and self.random_state is None:
            raise ParameterError("random_state", None, SEEDED)
        if not isinstance(self.booster, str) or self.booster not in BOOSTERS:
            raise UnknownNameError("booster", self.booster, BOOSTERS)
        booster, rest = BOOSTERS[self.booster], (self.curvature, self.lift, self.assume, self.f)
        plan = Plan.of(self.metric, self.surrogate, *rest, booster.takes)
        booster.check(plan.surrogate, self.curvature)
        booster.library()
        return plan, booster

    def start(self) -> Any:
        """Where the work begins: at the trees of the last fit, or at none."""
        if not (self.warm_start and hasattr(self, "booster_")):
            return None
        if self.trees_.library != self.booster:
            wanted = f"{self.trees_.library!r}, of which warm_start has trees"
            raise ParameterError("booster", self.booster, wanted)
        if self.n_estimators < self.n_estimators_:
            wanted = f"at least {self.n_estimators_}, the trees that warm_start begins with"
            raise ParameterError("n_estimators", self.n_estimators, wanted)
        return self.booster_

    def planned_trees(self) -> Trees:
        """Give what the trees shall be like."""
        names = [*map(str, getattr(self, "feature_names_in_", []))]
        signs = monotonic_signs(self.monotonic_cst, names, self.n_features_in_)
        categorical = tuple(self.encoding_.categories)
        if signs and any(signs[number] for number in categorical):
            raise ParameterError("monotonic_cst", self.monotonic_cst, "0 for categorical features")
        return Trees(
            library=self.booster,
            **{name: getattr(self, name) for name in (*WHOLE, *REAL) if name != "early_stopping"},
            seed=seed_of(self.random_state),
            n_jobs=None if self.n_jobs == -1 else self.n_jobs,
            monotonic=signs,
            categorical=categorical,
            names=safe_names(names),
            params=dict(self.params or {}),
        )

    def lesson(self, plan: Plan, rows: Rows, eval_set: Any) -> tuple[Rows | None, Lesson, Evaluate | None]:
        """Give the rows held out, if any are, what trees are grown on, and the score of those held out."""
        if eval_set is not None:
            X, y, qid = given_rows(eval_set)
            held = Rows.of(self.checked_features(X, reset=False), y, qid, None, None)
            return held, Lesson.of(plan, rows, held.X), evaluation(plan.metric, held, "eval_set")
        if self.early_stopping is None:
            return None, Lesson.of(plan, rows), None
        told(plan, rows, Queries.of(rows.qid, rows.X.shape[0], "X"))  # errors name the caller's rows
        train, held = halves(rows, float(self.validation_fraction), self.random_state)
        return held, Lesson.of(plan, train, held.X), evaluation(plan.metric, held, "the queries held out")

    def grown_there(self, plan: Plan, source: Source) -> Grown:
        """Grow the trees on a cluster; what is held there is let go with the lesson."""
        refuse_joint(plan.metric)
        validate_names(self, source)
        self.encoding_ = Encoding({})
        return surviving(source.client, lambda again: self.grown_by_all(plan, source, again=again))

    def grown_by_all(self, plan: Plan, source: Source, *, again: bool) -> Grown:
        """Grow the trees on all workers there are, and measure them there."""
        trees, booster = self.planned_trees(), ClusteredLightGBM()
        places = dealt(sizes_of(source.index), addresses(source.client))
        lesson = PartedLesson.of(plan, source, places)
        if not again:
            lesson.claim.warn(stacklevel=7)
        watch, title = Watch(), f"{plan.surrogate.name}, {booster.name}, {len(set(places))} workers"
        with followed(title, trees.n_estimators, self.verbose) as told:
            model = booster.raised(trees, lesson, watch, told)
        return trees, lesson, watch, model, lesson.ends(booster, trees, watch, model)

    def place(self, plan: Plan, trees: Trees, data: Data, held: Rows | None, start: Any) -> Checkpoint | None:
        """Give where the fit is written down, if it is to be."""
        if (folder := checked_folder(self.checkpoint)) is None:
            return None
        booster = BOOSTERS[trees.library]
        told = {"estimator": type(self).__name__, "early_stopping": spelled(self.early_stopping)}
        told |= facts_of(plan, trees, str(booster.library().__version__))
        begun = "" if start is None else digest(booster.scores(start, data.X, trees))
        return Checkpoint(folder, told, digest_of(plan, data, held), begun)

    def grown(
        self,
        booster: Booster,
        trees: Trees,
        lesson: Lesson,
        evaluate: Evaluate | None,
        start: Any,
        checkpoint: Checkpoint | None,
    ) -> tuple[Watch, Any]:
        """Grow the trees that are missing."""
        done = 0 if start is None else booster.n_trees(start)
        history = [*self.history_[:done]] if done else []
        if done and evaluate is not None:  # the rows held out may be others than those of the last fit
            history[-1] = evaluate(booster.scores(start, lesson.data.held, trees))
        watch = Watch(evaluate, self.early_stopping, done=done, history=history, random=booster.draws(trees))
        if done >= trees.n_estimators:
            return watch, start
        own = () if self.callback is None else (self.callback,)
        title = f"{lesson.data.surrogate.name}, {booster.name}"
        with followed(title, trees.n_estimators, self.verbose) as bar, interruptible(watch):
            watch.callbacks = (*bar, *own)
            model = (
                booster.planted(trees, lesson.data, watch, start)
                if checkpoint is None
                else in_segments(booster, trees, lesson.data, watch, start, checkpoint)
            )
        if watch.failure is not None:
            raise watch.failure
        return watch, model
