"""NeuralRanker: a network that scores items, trained by the surrogate that goes with a metric."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self

from concordant._base.light_sklearn import check_is_fitted
from concordant._base.validate import refuse_misaligned
from concordant.data.check import on_host
from concordant.data.queries import Queries
from concordant.exceptions import MissingExtraError, ShapeError
from concordant.metrics.metric import Family, Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import Ranker, query_ranks, unchanged_by_errors, warn_of_shortfall
from concordant.rankers.fitted_certificate import Descent
from concordant.rankers.folds import FitRows, bind_evaluation, read_eval_set
from concordant.rankers.networks.network_training_set import NetworkTrainingSet, check_parameters
from concordant.rankers.recipe import choose_surrogate
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.networks.epochs import Course, Trainer
    from concordant.rankers.networks.network import NeuralScorer


# A fitted network: scores, which may depend on the query, and ranks.

MOST_BYTES = 2**34  # of sparse features, made dense


class NetworkModel(Ranker):
    """A fitted network: scores and ranks; subclasses have `fit`."""

    __metadata_request__predict: ClassVar = {"qid": True}

    scorer_: NeuralScorer
    device: Any
    _no_risk_bound = "no bound is known for what networks express"

    def checked_features(self, X: ArrayLike, *, reset: bool) -> Any:
        """Return features as float32 or float64; raise if sparse features are too many to be made dense."""
        features = super().checked_features(on_host(X), reset=reset)
        if hasattr(features, "toarray") and 4 * features.shape[0] * features.shape[1] > MOST_BYTES:
            expected = f"at most {MOST_BYTES // 4:,} numbers: a network needs dense features, in float32"
            raise ShapeError("X", features.shape, expected)
        return features

    def predict(self, X: ArrayLike, *, qid: ArrayLike = None) -> FloatArray:
        """Compute the score of each row, to single precision; higher is better.

        Parameters
        ----------
        X
            Features, as in `fit`.
        qid
            Query ids, if the network reads the context; None: all rows are one query. Otherwise not read.
        """
        check_is_fitted(self, "scorer_")
        from concordant.rankers.networks.batches import predict_scores

        refuse_misaligned(X=X, qid=qid)
        features = self.checked_features(X, reset=False)
        if not self.scorer_.context:
            return predict_scores(self.scorer_, features, None, self.device)
        queries = Queries.for_rows(on_host(qid), features.shape[0], "X")
        grouped = queries.gather(features)
        return queries.scatter(predict_scores(self.scorer_, grouped, queries.offsets, self.device))

    def scores_to_rank(self, X: ArrayLike, qid: ArrayLike) -> FloatArray:
        """Return the scores, which depend on the queries if the network reads the context."""
        return self.predict(X, qid=qid)

    def rank(self, X: ArrayLike, *, qid: ArrayLike = None) -> IntArray:
        """Return the rank of each row in its query, 1 for the best; equal scores keep their order."""
        return query_ranks(self, self.predict(X, qid=qid), on_host(qid))


SHORT = {  # how a training fell short, by what ended it
    "interrupt": "Training was interrupted after {} epochs. The model keeps the best weights so far.",
    "divergence": "Training stopped after {} epochs, because the loss or a weight was not finite. The model "
    "keeps the best weights so far. Lower learning_rate.",
    "no score": "In {} epochs no validation score was finite. The model keeps the weights from before the "
    "first epoch.",
    **dict.fromkeys(("limit", "early_stopping", "callback"), ""),
}


class NeuralRanker(NetworkModel):
    """Neural ranker: name the metric; the loss that is consistent with it is minimised over networks.

    Minimises the mean over queries of the surrogate at the network's scores, given the metric's standardized
    labels, by AdamW on minibatches of whole queries.

    Parameters
    ----------
    metric, surrogate, assume, f
        As in `LinearRanker`.
    hidden
        Outputs of each hidden layer; () is a linear function.
    transforms
        Transforms of each feature: "log1p" (sign(x) log(1 + abs(x))), "quantile" (its share of smaller
        training values, 0 to 1), "standard" (mean 0, deviation 1), several of them in order, or None.
    context
        True to also describe an item by the distance of each transformed feature from the mean of its query.
        Its score then depends on the list, and `predict` reads `qid`.
    dropout
        Share of the hidden outputs that are set to 0 while training.
    weight_decay, learning_rate
        Of AdamW.
    batch_rows
        Maximum number of rows of a minibatch: queries are not cut, and a longer query is a batch.
    max_epochs
        Maximum number of passes over the queries.
    early_stopping
        Stop after this many epochs without a better score on validation queries; None: never.
    validation_fraction
        Maximum share of the queries that is held out for that, if `fit` gets no `eval_set`. Nothing is held
        out if that is less than one query, if the metric is constant on the held-out queries, or, with a
        warning, if nothing could be learned from the others.
    amp
        True to compute layers in bfloat16; "auto": on GPUs that support it.
    device
        "auto" (a GPU if there is one), "cpu" or "cuda".
    checkpoint
        A folder to which the training is written after each epoch, as a whole or not at all. If it holds a
        training of the same data and parameters, `fit` resumes it; any other raises a `ModelFileError`.
        `max_epochs` and `device` may change, and `early_stopping` if there is an `eval_set`; without one, it
        may not change to or from None: other queries would be held out.
    warm_start
        Start from the weights and the transforms of the last fit, and keep them if no epoch has a better
        score on validation queries.
    random_state
        Seed of the first weights, the order of queries, dropout and the validation queries.
    callback
        Called after each epoch with an `Epoch` (epoch, loss, score, best_epoch); a true result ends the fit.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    scorer_
        The network, a `torch.nn.Module` on the CPU, with the weights of the best epoch.
    surrogate_, basis_, certificate_
        As in `LinearRanker`; `certificate_.optimality` has only the decrease of the loss: a `Descent`.
    history_
        By epoch: "loss", the mean while the weights changed, and "score" on validation queries, as `score`
        returns it, if there are any.
    best_epoch_
        The first epoch with the best score; without validation queries the last epoch. 0: the weights before
        the first epoch, after a warm start or if no epoch had a score, of which `fit` warns.
    n_iter_
        Epochs.
    stopped_by_
        "limit" (max_epochs), "early_stopping", "callback", "interrupt" or "divergence".
    n_queries_, n_informative_
        Queries trained on, and those whose labels differ, from which something is learned.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Ctrl-C during `fit` keeps the best weights so far and warns. An interrupted and resumed fit gives the
    weights of an uninterrupted fit: on a CPU to the last bit, and on a GPU if its sums are taken in the same
    order each time. Features are stored as float32.

    Examples
    --------
    >>> from concordant import synthetic
    >>> toy = synthetic.grades(n_queries=60, n_items=8, seed=0)
    >>> model = NeuralRanker("ndcg@5", hidden=(16,), learning_rate=0.03, max_epochs=5)
    >>> model = model.fit(toy.X, toy.y, qid=toy.qid)
    >>> model.score(toy.X, toy.y, qid=toy.qid) > 0.5, model.n_iter_, model.n_queries_
    (True, 5, 54)
    >>> model.certificate_
    FittedCertificate(ndcg@5 on grades, softmax, sort: proven, rests on every distribution)
    """

    def __init__(
        self,
        metric: Any = "ndcg@10",
        surrogate: Any = "auto",
        *,
        hidden: tuple[int, ...] = (128, 64),
        transforms: Any = ("log1p", "standard"),
        context: bool = False,
        dropout: float = 0.3,
        weight_decay: float = 0.01,
        learning_rate: float = 3e-4,
        batch_rows: int = 1024,
        max_epochs: int = 100,
        early_stopping: int | None = 10,
        validation_fraction: float = 0.1,
        amp: bool | str = "auto",
        device: Any = "auto",
        checkpoint: Any = None,
        assume: str | None = None,
        f: Family | None = None,
        warm_start: bool = False,
        callback: Any = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.surrogate = surrogate
        self.hidden = hidden
        self.transforms = transforms
        self.context = context
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_rows = batch_rows
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.amp = amp
        self.device = device
        self.checkpoint = checkpoint
        self.assume = assume
        self.f = f
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
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
        """Train the network.

        Parameters
        ----------
        X
            Features, one row per item: numpy, pandas, polars, pyarrow, a dense tensor or scipy sparse.
        y
            One grade >= 0 per row; or `Preferences` (pd, wpd) or `Permutations` (zero_one).
        qid
            Query ids in any order, or a `Queries`; None: all rows are one query.
        sample_weight, query_weight
            As in `LinearRanker`.
        eval_set
            Validation queries, as `RankingData`, (X, y, qid), or (X, y) of a single query: the best epoch has
            the highest score on them.
        """
        metric, surrogate = self.checked_parameters()
        from concordant.rankers.networks.batches import read_device, undisturbed
        from concordant.rankers.networks.start import begin_course, build_checkpoint, build_trainer, train

        params = self.get_params(deep=False)
        last_scorer = getattr(self, "scorer_", None) if self.warm_start else None
        with unchanged_by_errors(self):
            columns = X, y, qid, sample_weight, query_weight
            rows = self._checked_rows(*columns, reset=last_scorer is None)
            validation_rows = None if eval_set is None else self.evaluation_rows(metric, eval_set)
            training_set = NetworkTrainingSet.from_rows(metric, surrogate, rows, self.assume, self.f)
            training_set.claim.warn()
            self._warn_of_rows(y, qid)
            checkpoint = build_checkpoint(params, training_set, validation_rows, last_scorer)
            with nullcontext() if checkpoint is None else checkpoint.file.lock():
                course = begin_course(params, checkpoint)
                if validation_rows is None and self.early_stopping is not None:
                    split = rows, self.validation_fraction, metric, course.generator(3)
                    training_set, validation_rows = training_set.split(*split)
                with undisturbed(read_device(self.device)):
                    data = training_set, validation_rows
                    trainer = build_trainer(params, metric, *data, course, last_scorer)
                    first, reason = train(params, trainer, course, checkpoint)
                    return self.adopt(training_set, trainer, course, first, reason)

    def checked_parameters(self) -> tuple[Metric, Surrogate]:
        """Check the parameters before any work; return the metric, and the surrogate for it."""
        if find_spec("torch") is None:
            raise MissingExtraError("torch", "torch", "NeuralRanker")
        check_parameters(self.get_params(deep=False))
        from concordant.rankers.networks.batches import read_device

        read_device(self.device)
        metric = read_metric(self.metric)
        return metric, choose_surrogate(self.surrogate, metric)

    def evaluation_rows(self, metric: Metric, eval_set: Any) -> FitRows:
        """Return the validation rows of the caller; raise if they are invalid, or tell no orders apart."""
        X, y, qid = map(on_host, read_eval_set(eval_set))
        rows = FitRows.from_columns(self.checked_features(X, reset=False), y, qid, None, None)
        bind_evaluation(metric, rows, "eval_set")
        return rows

    def adopt(
        self, training_set: NetworkTrainingSet, trainer: Trainer, course: Course, first: float, reason: str
    ) -> Self:
        """Store the network; warn if training fell short."""
        from concordant.rankers.networks.batches import mean_loss

        value = mean_loss(trainer.loss, trainer.pool, trainer.scorer)
        self.scorer_ = trainer.scorer.to("cpu").eval()
        self.history_ = {"loss": list(course.losses)}
        if course.scores:
            self.history_["score"] = list(course.scores)
        self.best_epoch_, self.n_iter_, self.stopped_by_ = course.best_epoch, len(course.losses), reason
        is_validated = bool(course.scores)
        descent = partial(Descent, first, value, course.best_epoch, "epochs", reason, is_validated)
        self._summarize_fit(training_set, descent)
        scoreless = course.losses and not (course.best_epoch or trainer.warm)
        short = SHORT["no score" if scoreless else reason].format(self.n_iter_)
        warn_of_shortfall("" if training_set.n_informative else "labels that differ", short)
        return self
