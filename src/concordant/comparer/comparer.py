"""Comparer: which of two items is better, or neither, learned from pairs with ties."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from concordant.comparer.data import checked, data_of
from concordant.comparer.held_out import calibrated
from concordant.comparer.journal import journal_of
from concordant.comparer.machine import ALL_TIES, Weights
from concordant.comparer.recipe import read_recipe
from concordant.comparer.stream import Stream
from concordant.decoders.threshold import outcomes
from concordant.exceptions import GuaranteeWarning, ParameterError, ShapeError
from concordant.supervision.check import check_features, check_pairs, refuse_large
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["Comparer"]

FAR = 1e-3  # a share of the objective that is worth a warning
DISCARDED = "partial_fit starts anew: the model that fit had made is gone"


def is_calibrated(model: Comparer) -> bool:
    """Whether `predict_proba` exists: calibrated on folds, or on the pairs of a stream."""
    return bool(model.calibration) or hasattr(model, "stream_")


class Comparer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector comparison machine: pairs in, which is better or neither out.

    A ranking function r and a threshold are learned together: the right item is predicted better where
    r(right) - r(left) exceeds the threshold, the left one where the opposite holds, else neither.

    Parameters
    ----------
    kernel
        "linear", "rbf" (exp(-gamma d^2)), "poly" ((gamma a.b + coef0)^degree), or a function of two matrices
        of items that gives the matrix of their kernel values, symmetric and positive semidefinite (else no
        gap means anything). Features are scaled first.
    C
        Cost of a unit of slack, summed over pairs. `inf`: hard margin, linear kernel only; raises
        `NotSeparableError` where there is none.
    gamma, degree, coef0
        Of the kernel; gamma "scale" is one over the number of features that vary.
    method
        "compare": ties train the ranking function, as pairs whose difference is to be small. "rank": they do
        not, and only the threshold is fitted to them; "rank2": each tie trains as two opposite differences.
        These two are the baselines of the paper.
    formulation
        "qp": a binary support vector machine on differences. "lp": the margin is measured in values of r, and
        the coefficients are sparse; `nu` weighs the margin. For method "compare" and hinge loss.
    loss
        "hinge", "squared_hinge" or "logistic".
    approximation
        With a kernel: "exact", "nystroem" (features of `n_components` random training items), or "auto":
        exact up to 5,000 rows of the binary machine (a tie is two rows; methods without bias double them) and
        hinge loss, else nystroem. A kernel "lp" takes its functions from at most 1,000 items unless "exact".
    n_components
        Items whose kernel functions are the features of "nystroem".
    nu
        Weight of the margin in the linear program, as a share of the cost of all pairs: about this share of
        them may miss the margin.
    calibration
        Folds on which `predict_proba` is calibrated, at the cost of as many fits; 0: none.
    tol
        Share of the objective at which a duality gap is small enough (with "nystroem" at least 1e-3); libsvm
        may violate its conditions of optimality by 100 times that.
    solver
        "auto", or "sgd": a linear or Nystrom machine with logistic loss by stochastic gradient, for data so
        large that few passes must do.
    max_iter
        Newton steps at most.
    checkpoint
        A folder, in which a killed fit goes on: called again with the same pairs and parameters it gives the
        same model, bit for bit. Newton steps are written down round by round, epochs of "sgd" one by one; a
        kernel's libsvm and linear programs, which nothing can be had from before they end, machine by
        machine. A folder of another fit is refused. None: no folder. `partial_fit` does not read it.
    random_state
        Seed of landmarks and folds.

    Attributes
    ----------
    threshold_
        1 for method "compare", by construction; else fitted.
    method_, note_
        What was trained in the end, and why, where it is not what was asked for: a `GuaranteeWarning` says
        so too. Without one, the note also tells where a tie is predicted for every training pair.
    coef_
        Linear kernel: weight of each feature in its own unit; 0 for features that do not vary.
    machine_, scaling_, curve_
        Ranking function with objective and gap; the scaling; the calibration, None without one.
    classes_
        -1, 0, 1.

    Notes
    -----
    Degenerate data. No ties: trained as "rank", threshold 0. Only ties, or no feature that varies: every item
    scores 0 and a tie is predicted always. A bias >= 0, for which the paper's Lemma 1 says nothing (its own
    code then turns all ranks round): the direction is kept, the threshold fitted to the training pairs.
    A single pair is no special case.

    References
    ----------
    Venuto, Hocking, Sphanurattana, Sugiyama, "Support vector comparison machines".

    Examples
    --------
    >>> from concordant import Comparer, synthetic
    >>> games = synthetic.comparisons(n=200, norm="l2", tie_share=0.5)
    >>> model = Comparer(kernel="rbf", C=10.0).fit(games.pairs, games.y)
    >>> model.predict(games.pairs[:5]).tolist(), games.y[:5].tolist()
    ([1, 0, 0, 1, 1], [1, 0, 0, 1, 1])
    >>> far, near = model.rank_score([[2.0, 0.0], [0.5, 0.0]])  # the truth is the squared norm
    >>> bool(far > near)
    True
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        method: str = "compare",
        formulation: str = "qp",
        loss: str = "hinge",
        approximation: str = "auto",
        n_components: int = 1000,
        nu: float = 0.2,
        calibration: int = 5,
        tol: float = 1e-5,
        solver: str = "auto",
        max_iter: int = 1000,
        checkpoint: Any = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.method = method
        self.formulation = formulation
        self.loss = loss
        self.approximation = approximation
        self.n_components = n_components
        self.nu = nu
        self.calibration = calibration
        self.tol = tol
        self.solver = solver
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def fit(
        self,
        pairs: ArrayLike,
        y: ArrayLike = None,
        sample_weight: ArrayLike = None,
        *,
        client: Any = None,
    ) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        pairs
            Features of both sides, (n, 2, p): `pairs[:, 0]` left, `pairs[:, 1]` right. Of a table of items
            and a list of votes, `Comparisons.pairs` makes them. Or pairs in parts, see Notes: a Dask array
            whose chunks are of whole pairs, or `cc.scan_pairs(...)`.
        y
            -1 the left is better, 1 the right is better, 0 no difference. Of a Dask array, one of the same
            chunks; a scan has its own.
        sample_weight
            Numbers >= 0 that multiply C, one per pair; 0 leaves a pair out. As `y`.
        client
            A `distributed.Client`, whose workers hold the parts in memory. None: a scan is read by this
            process, at each pass; Dask arrays go to the current client.

        Notes
        -----
        On pairs in parts the linear kernel with formulation "qp" and a finite C is trained by the same steps
        as in memory, to the same model up to rounding (1e-8); with the same parts it has the same bits on any
        number of workers. What is added up over the parts is of the size of the features, squared. Numbers of
        pairs come to this process only for calibration and where a threshold is fitted (methods "rank" and
        "rank2", or a bias >= 0): about 40 bytes per pair. Solver "sgd" reads a scan part by part, in random
        order, and is not for a client.
        """
        recipe = read_recipe(self)
        data = data_of(pairs, y, sample_weight, client, recipe, int(self.calibration))
        with journal_of(self, recipe, data) as journal:
            with nullcontext() if journal is None else journal.within("machine") as own:
                fitted = data.train(recipe, own)
            curve, folds = None, self.calibration
            if folds:
                curve = calibrated(data, recipe, fitted, folds, journal)
        self.__dict__.pop("stream_", None)  # from here on nothing fails: an old model stays whole till then
        self.n_features_in_, self.classes_ = data.n_features, np.array([-1, 0, 1])
        (self.scaling_, self.machine_), self.curve_ = fitted, curve
        self.warn()
        return self

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike) -> Self:
        """Learn more pairs, one after the other, at a cost per pair that does not grow with those seen.

        Method "compare", any loss (logistic is meant for streams); a stochastic step per pair, weights
        averaged. A linear machine scales features by what it has seen so far; of a kernel, the first call
        fixes scaling and landmarks, so it should hold a fair sample. Every pair is scored before it is
        learned, which is what `predict_proba` is calibrated on. A model fitted by `fit` starts anew, with a
        warning. Where the bias is >= 0 (few ties so far) the threshold is 0.
        """
        given, outcome, _ = checked(pairs, y, None)
        recipe, stream = read_recipe(self), getattr(self, "stream_", None)
        if stream is None:
            stream = Stream.start(given, recipe)
            if hasattr(self, "machine_"):
                warnings.warn(DISCARDED, GuaranteeWarning, stacklevel=2)
        elif stream.asked != recipe:
            allowed = "called with the parameters it began with; clone the model to start anew"
            raise ParameterError("partial_fit", "other parameters", allowed)
        else:
            check_pairs(given[:1], self.n_features_in_)
        stream.learn(given, outcome)
        self.stream_, self.n_features_in_, self.classes_ = stream, given.shape[2], np.array([-1, 0, 1])
        self.scaling_, self.machine_, self.curve_ = stream.scaling, stream.machine(), None
        return self

    def rank_score(self, items: ArrayLike) -> FloatArray:
        """Scores r of items, a row of features each; the higher the better, and only differences count."""
        check_is_fitted(self, "machine_")
        table = check_features(items, "items")
        if hasattr(table, "tocsr"):
            table = table.toarray()
        refuse_large(table, "items")
        if table.shape[1] != self.n_features_in_:
            raise ShapeError("items", table.shape, f"(n, {self.n_features_in_}): as many features as fitted")
        return self.machine_.scorer(self.scaling_(table))

    def decision_function(self, pairs: ArrayLike) -> FloatArray:
        """r(right) - r(left) of each pair."""
        check_is_fitted(self, "machine_")
        given = check_pairs(pairs, self.n_features_in_)
        return self.rank_score(given[:, 1]) - self.rank_score(given[:, 0])

    def predict(self, pairs: ArrayLike) -> IntArray:
        """-1, 0 or 1 of each pair: the decision's sign where its size exceeds the threshold, else 0."""
        return outcomes(self.decision_function(pairs), self.threshold_)

    @available_if(is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, pairs: ArrayLike) -> FloatArray:
        """Probabilities of -1, 0 and 1, (n, 3): a curve of the decision, calibrated on held-out pairs.

        The most probable outcome need not be what `predict` gives: the threshold belongs to the machine.
        """
        decision = self.decision_function(pairs)
        curve = self.stream_.curve() if hasattr(self, "stream_") else self.curve_
        if curve is None:
            raise NotFittedError("the model was fitted with calibration=0; fit it again.")
        return curve(decision)

    def score(self, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Share of pairs that are predicted right: 1 less the zero-one error."""
        given, outcome, weight = checked(pairs, y, sample_weight)
        return float(np.average(self.predict(given) == outcome, weights=weight))

    @property
    def threshold_(self) -> float:
        """Differences of scores up to this size are ties."""
        check_is_fitted(self, "machine_")
        return self.machine_.threshold

    @property
    def method_(self) -> str:
        """What was trained."""
        check_is_fitted(self, "machine_")
        return self.machine_.method

    @property
    def note_(self) -> str:
        """What was done in place of what was asked for; else empty."""
        check_is_fitted(self, "machine_")
        return self.machine_.note

    @property
    def coef_(self) -> FloatArray:
        """Weight of each feature, in its own unit; of a linear kernel."""
        check_is_fitted(self, "machine_")
        if not isinstance(self.machine_.scorer, Weights):
            raise AttributeError("coef_ is for the linear kernel; rank_score gives scores.")  # noqa: TRY004
        weights = np.zeros(self.n_features_in_)
        weights[self.scaling_.kept] = self.machine_.scorer.w / self.scaling_.deviation
        return weights

    def warn(self) -> None:
        """Say where the model is not what was asked for, or not optimal."""
        machine = self.machine_
        if machine.note and machine.note != ALL_TIES:  # a search over C meets it often, and scores say enough
            warnings.warn(machine.note, GuaranteeWarning, stacklevel=3)
        if not machine.converged and not machine.gap <= FAR * machine.value:
            text = f"the objective {machine.value:.6g} may lie {machine.gap:.3g} above its optimum"
            hint = "lower C or tol" if machine.solver == "libsvm" else "raise max_iter, or lower C"
            warnings.warn(f"{text} ({machine.solver}); {hint}.", ConvergenceWarning, stacklevel=3)
