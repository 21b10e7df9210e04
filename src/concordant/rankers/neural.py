"""NeuralRanker: a network that scores items, trained by the surrogate that goes with a metric."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from concordant.exceptions import MissingExtraError
from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.base import unchanged_by_errors, warn_of_shortfall
from concordant.rankers.certificate import Descent, FittedCertificate
from concordant.rankers.devices.losses import on_host
from concordant.rankers.folds import Rows
from concordant.rankers.held_out import evaluation, given_rows
from concordant.rankers.networks.lesson import Lesson, check_parameters
from concordant.rankers.neural_model import NetworkModel
from concordant.rankers.recipe import chosen_surrogate
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike

if TYPE_CHECKING:
    from concordant.rankers.networks.training import Course, Trainer

__all__ = ["NeuralRanker"]

NO_BOUND = "no bound is known for what networks express"
SHORT = {  # what a training lacks, by what ended it
    "interrupt": "interrupted after {} epochs; these are the best weights so far",
    "divergence": "after {} epochs the loss or a weight was no finite number: lower learning_rate; these are "
    "the best weights so far",
    "no score": "in {} epochs no score on the validation queries was a finite number: these are the weights "
    "before the first",
    **dict.fromkeys(("limit", "early_stopping", "callback"), ""),
}


class NeuralRanker(NetworkModel):
    """Neural ranker: name the metric; the loss that is consistent with it is minimised over networks.

    Minimises the mean over queries of the surrogate at the network's scores, given the metric's standardized
    labels, by AdamW on minibatches of whole queries.

    Parameters
    ----------
    metric, surrogate, assume, f
        As for `LinearRanker`.
    hidden
        Outputs of each hidden layer; () is a linear function.
    transforms
        What is done with each feature first: "log1p" (sign(x) log(1 + abs(x))), "quantile" (its share of
        smaller training values, 0 to 1), "standard" (mean 0, deviation 1), several of them in order, or None.
    context
        Whether an item is also described by how far each transformed feature is from the mean of its query.
        Its score then depends on the list, and `predict` reads `qid`.
    dropout
        Share of the hidden outputs that are set to 0 while training.
    weight_decay, learning_rate
        Of AdamW.
    batch_rows
        Rows of a minibatch, at most: queries are not cut, and longer ones stand alone.
    max_epochs
        Most passes over the queries.
    early_stopping
        End after so many epochs without a better score on validation queries; None: do not.
    validation_fraction
        Share of the queries that are held out for that, at most, where `fit` is given no `eval_set`. Nothing
        is held out where that is less than one query, or where the metric cannot tell orders of those apart;
        nor, with a warning, where nothing could be learned from the others.
    amp
        Whether layers are computed in bfloat16; "auto": on GPUs that can.
    device
        "auto" (a GPU if there is one), "cpu" or "cuda".
    checkpoint
        A folder in which the training is written after each epoch, as a whole or not at all. Where it holds
        one of the same data and parameters, `fit` goes on from there; one of others is refused by a
        `ModelFileError`. `max_epochs` and `device` may change, and `early_stopping` with an `eval_set`;
        without one, as long as it is not None or stays so: other queries would be held out.
    warm_start
        Begin with the weights and the transforms of the last fit, and keep them where no epoch has a better
        score on validation queries.
    random_state
        Seed of the first weights, the order of queries, dropout and the validation queries.
    callback
        Called after each epoch with an `Epoch` (epoch, loss, score, best_epoch); a true answer ends the fit.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    scorer_
        The network, a `torch.nn.Module` on the CPU, with the weights of the best epoch.
    surrogate_, basis_, certificate_
        As for `LinearRanker`; `certificate_.optimality` says only how far the loss fell: a `Descent`.
    history_
        Of each epoch: "loss", the mean while the weights were moving, and "score" on validation queries, as
        `score` gives it, where there are any.
    best_epoch_
        The first epoch with the best score; without validation queries the last one. 0: the weights before
        the first epoch, of a warm start or where no epoch had a score, of which `fit` warns.
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
    Ctrl-C during `fit` keeps the best weights so far and warns. A fit that was interrupted and continued
    gives the weights of one that was not: on a CPU to the last bit, and on a GPU where its sums are taken in
    the same order each time. Features are held as float32.

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
            As for `LinearRanker`.
        eval_set
            Validation queries, as `RankingData`, (X, y, qid), or (X, y) of one query: the best epoch is the
            one that scores best there.
        """
        metric, surrogate = self.checked_parameters()
        from concordant.rankers.networks.place import place_of, undisturbed
        from concordant.rankers.networks.start import checkpoint_of, course_of, trained, trainer_of

        given, last = self.get_params(deep=False), getattr(self, "scorer_", None) if self.warm_start else None
        self.refuse_no_labels(y, X)
        with unchanged_by_errors(self):
            features = self.checked_features(X, reset=last is None)
            rows = Rows.of(features, *map(on_host, (y, qid, sample_weight, query_weight)))
            held = None if eval_set is None else self.evaluation_rows(metric, eval_set)
            lesson = Lesson.of(metric, surrogate, rows, self.assume, self.f)
            lesson.claim.warn()
            checkpoint = checkpoint_of(given, lesson, held, last)
            with nullcontext() if checkpoint is None else checkpoint.file.held():
                course = course_of(given, checkpoint)
                if held is None and self.early_stopping is not None:
                    lesson, held = lesson.split(rows, self.validation_fraction, metric, course.generator(3))
                with undisturbed(place_of(self.device)):
                    trainer = trainer_of(given, metric, lesson, held, course, last)
                    return self.adopt(lesson, trainer, course, *trained(given, trainer, course, checkpoint))

    def checked_parameters(self) -> tuple[Metric, Surrogate]:
        """Refuse parameters out of range, before any work; the metric, and the surrogate for it."""
        if find_spec("torch") is None:
            raise MissingExtraError("torch", "torch", "NeuralRanker")
        check_parameters(self.get_params(deep=False))
        from concordant.rankers.networks.place import place_of

        place_of(self.device)
        metric = read_metric(self.metric)
        return metric, chosen_surrogate(self.surrogate, metric)

    def evaluation_rows(self, metric: Metric, eval_set: Any) -> Rows:
        """Validation rows of the caller; refused where they are wrong, or tell nothing."""
        X, y, qid = map(on_host, given_rows(eval_set))
        held = Rows.of(self.checked_features(X, reset=False), y, qid, None, None)
        evaluation(metric, held, "eval_set")
        return held

    def adopt(self, lesson: Lesson, trainer: Trainer, course: Course, first: float, reason: str) -> Self:
        """Take the network over; say where training fell short. Called by `fit`, whose caller is warned."""
        from concordant.rankers.networks.scores import mean_loss

        value = mean_loss(trainer.loss, trainer.pool, trainer.scorer)
        self.scorer_ = trainer.scorer.to("cpu").eval()
        self.surrogate_, self.basis_ = lesson.surrogate, lesson.claim.condition
        self.n_queries_, self.n_informative_ = lesson.sample.n_queries, lesson.n_informative
        self.history_ = {"loss": list(course.losses)}
        if course.scores:
            self.history_["score"] = list(course.scores)
        self.best_epoch_, self.n_iter_, self.stopped_by_ = course.best_epoch, len(course.losses), reason
        descent = Descent(first, value, course.best_epoch, "epochs", reason, bool(course.scores))
        self.certificate_ = FittedCertificate(lesson.claim, lesson.sample, descent, None, NO_BOUND)
        scoreless = course.losses and not (course.best_epoch or trainer.warm)
        short = SHORT["no score" if scoreless else reason].format(self.n_iter_)
        warn_of_shortfall("" if lesson.n_informative else "labels that differ", short)
        return self
