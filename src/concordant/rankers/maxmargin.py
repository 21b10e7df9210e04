"""MaxMarginRanker: a linear scoring function with margins that are larger near the top."""

from __future__ import annotations

import math
from typing import Any

from concordant._base.validate import as_double
from concordant.exceptions import ParameterError
from concordant.metrics.comparison import ComparisonMetric, ranking_metric_error
from concordant.metrics.metric import Metric
from concordant.rankers.linear import LinearRanker, Recipe
from concordant.surrogates import ListwiseHinge, PositionHinge, Surrogate


class MaxMarginRanker(LinearRanker):
    """Linear max-margin ranker: position-sensitive hinge losses on pairs or on whole orders.

    Minimises, over w, the mean over queries of the hinge loss at scores X @ w, plus alpha/2 times the squared
    length of w, by a bundle solver that reports a certified duality gap (`solution_.gap`).

    Parameters
    ----------
    metric
        The metric, or its name. The listwise loss is built from it, the pairwise loss is not; `score` returns
        its mean.
    loss
        "listwise" (`ListwiseHinge`), "pairwise" (`PositionHinge`), or a `Surrogate` of grades, such as
        `Preorder("pairs", margin="hinge")`.
    alpha
        Penalty, > 0.
    mode, temperature
        For the listwise loss: "max" (a structural SVM), or, for lists of at most 8 items, "sum" or "softmax";
        for two labels also "sum_interleavings" (see `ListwiseHinge`).
    reduction
        For the pairwise loss: "pairs" (the mean over a query's pairs), "all_pairs", or "sum", as published.
    fit_scale
        Penalise the weights of features divided by their spread within queries; `coef_` is for X as given.
        Set it to False if the penalty must bound the length of `coef_` independently of the data, as
        `concordant.theory.bounds.empirical` requires.
    tol
        Stop when the duality gap is at most this share of the objective at weights 0.
    max_iter
        Maximum number of iterations; None: 1000.
    warm_start
        Start from the weights of the last fit.
    callback
        Called after each iteration with a `Step` (`step.w` as `coef_` would be); a true result ends the fit.
    checkpoint
        A folder from which a killed fit resumes, as in `LinearRanker`.
    verbose
        1 shows a progress bar on standard error.

    Attributes
    ----------
    coef_
        Weight of each feature.
    surrogate_
        The loss that was minimised.
    basis_
        What its consistency with the metric rests on: "nothing". These losses have risk bounds instead
        (`risk_bound`); `LinearRanker` minimises losses that are consistent.
    certificate_
        The guarantee, and how well the problem was solved: a `FittedCertificate`; `print` it.
    solution_
        Where the solver stopped: value, gap (certified), converged, stopped_by.
    scale_, n_iter_, n_queries_, n_informative_, n_features_in_, feature_names_in_
        As in `LinearRanker`.

    Notes
    -----
    Ctrl-C during `fit` keeps the best weights so far and warns. None of these losses is consistent with a
    metric; each fit causes a `GuaranteeWarning`.

    The listwise loss compares all pairs of an order alike, so that a metric which reads the first few ranks
    of a long list (ndcg@10 of a hundred items) requires little margin where it matters; on noisy data
    weights 0 may be optimal. Then train on the uncut metric ("ndcg").

    References
    ----------
    Riezler and De Bona (2009), Simple risk bounds for position-sensitive max-margin ranking algorithms. Yue,
    Finley, Radlinski and Joachims (2007), A support vector method for optimizing average precision.

    Examples
    --------
    >>> import warnings
    >>> from concordant import GuaranteeWarning, synthetic
    >>> warnings.simplefilter("ignore", GuaranteeWarning)  # max-margin, on purpose
    >>> toy = synthetic.grades(n_queries=200, n_items=10, seed=0)
    >>> model = MaxMarginRanker(metric="ap").fit(toy.X, toy.y, qid=toy.qid)
    >>> model.score(toy.X, toy.y, qid=toy.qid) > 0.5, model.solution_.converged
    (True, True)
    >>> model.certificate_.status, model.risk_bound(toy.X, toy.y, qid=toy.qid).bounds
    ('refuted', 'loss by ap')
    """

    # Parameters of the parent that are fixed here.
    solver = "bundle"
    assume = None
    f = None
    random_state = 0
    device = None

    def __init__(  # listed in full: some parameters of the parent are missing here
        self,
        metric: Any = "ndcg",
        loss: Any = "listwise",
        alpha: float = 0.1,
        *,
        mode: str = "max",
        temperature: float = 1.0,
        reduction: str = "pairs",
        fit_scale: bool = True,
        tol: float = 1e-4,
        max_iter: int | None = None,
        warm_start: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.loss = loss
        self.alpha = alpha
        self.mode = mode
        self.temperature = temperature
        self.reduction = reduction
        self.fit_scale = fit_scale
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint
        self.verbose = verbose

    def checked_parameters(self) -> Recipe:
        """Check the parameters before any work; return the metric and the loss."""
        if not 0.0 < as_double(self.alpha) < math.inf:
            raise ParameterError("alpha", self.alpha, "a finite number > 0")
        return super().checked_parameters()

    def _choose_surrogate(self, metric: Metric) -> Surrogate:
        if isinstance(metric, ComparisonMetric):
            raise ranking_metric_error(metric)
        losses = {
            "listwise": ListwiseHinge(metric, self.mode, self.temperature),
            "pairwise": PositionHinge(self.reduction),
        }
        if isinstance(self.loss, Surrogate):
            if self.loss.reads != "grades":
                hint = "Use LinearRanker(surrogate=...) for other surrogates."
                raise ParameterError("loss", self.loss, "a surrogate that reads grades", hint=hint)
            return self.loss
        if not isinstance(self.loss, str) or self.loss not in losses:
            raise ParameterError("loss", self.loss, "'listwise', 'pairwise' or a surrogate that reads grades")
        return losses[self.loss]
