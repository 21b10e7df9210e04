"""Comparer: learns which of two items is better, or neither, from pairs with ties."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, Self

import numpy as np

from concordant._base.light_sklearn import (
    BaseEstimator,
    ClassifierMixin,
    ConvergenceWarning,
    NotFittedError,
    available_if,
    check_is_fitted,
)
from concordant.comparisons.calibration import OutcomeCurve, fit_curve, held_out_decisions
from concordant.comparisons.comparer_recipe import Recipe, read_recipe
from concordant.comparisons.fit_data import PairData, check_weighted_pairs, read_fit_data
from concordant.comparisons.machine import ALL_TIES, Machine, Weights
from concordant.comparisons.stream import Stream
from concordant.comparisons.training_pairs import Scaling
from concordant.data.check import check_features, check_pairs, refuse_large
from concordant.decoders.threshold import outcomes
from concordant.exceptions import GuaranteeWarning, ParameterError, ShapeError
from concordant.solvers.checkpoint import Checkpoint, Journal, check_folder, parameter_text, step_key
from concordant.types import ArrayLike, FloatArray, IntArray

# The checkpoint of a fit.


def _open_journal(model: Comparer, recipe: Recipe, data: PairData) -> AbstractContextManager[Journal | None]:
    if model.checkpoint is None:
        return nullcontext()
    folder = check_folder(model.checkpoint)
    kernel = vars(recipe.kernel)
    fingerprint = {
        name: parameter_text(value) for name, value in (vars(recipe) | kernel).items() if name != "kernel"
    }
    fingerprint["kernel"] = fingerprint.pop("name")
    fingerprint |= {"estimator": type(model).__name__, "calibration": str(int(model.calibration))}
    return Journal(
        Checkpoint(folder, fingerprint, data.digest(recipe.kernel if callable(model.kernel) else None))
    )


# Calibration of a machine: decisions on held-out pairs, in the machine's unit.


def calibrate(
    data: PairData,
    recipe: Recipe,
    fitted: tuple[Scaling, Machine],
    n_folds: int,
    journal: Journal | None = None,
) -> OutcomeCurve:
    """Fit the calibration curve to decisions on held-out pairs.

    Machines of different folds measure in different units (those of their thresholds, where they have one):
    their decisions are rescaled to the unit of the fitted machine by the root mean square on the pairs that
    each was trained on. Weights are scaled to a mean of 1, so that the curve's prior stays one pair.
    Decisions of a fold are written to the journal, and replayed from it.
    """
    y, weight = data.y, data.weight
    size = _root_mean_square(data.decisions(fitted), weight)

    def score_fold(train_rows: IntArray, test_rows: IntArray, journal: Journal | None) -> FloatArray:
        if not weight[train_rows].any():
            return np.zeros(len(test_rows))
        model = data.train(recipe, journal, (train_rows, test_rows))
        fold_spread = _root_mean_square(data.decisions(model, train_rows), weight[train_rows])
        return data.decisions(model, test_rows) * (size / fold_spread if fold_spread > 0.0 else 1.0)

    numbers = count()

    def decide(train_rows: IntArray, test_rows: IntArray) -> FloatArray:
        if journal is None:
            return score_fold(train_rows, test_rows, None)
        name, step = f"fold-{next(numbers)}", step_key("fold", (train_rows, test_rows))
        if (recorded := journal.recall(step)) is None:
            with journal.within(name) as fold_journal:
                recorded = [score_fold(train_rows, test_rows, fold_journal)]
            journal.append(step, recorded)
        journal.forget(name)
        return recorded[0]

    held_out = held_out_decisions(decide, y, n_folds, recipe.seed)
    return fit_curve(held_out, y, weight * (np.count_nonzero(weight) / weight.sum()))


def _root_mean_square(decision: FloatArray, weight: FloatArray) -> float:
    """Weighted root mean square, without overflow."""
    largest = float(np.abs(decision).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    return largest * float(np.sqrt(np.average((decision / largest) ** 2, weights=weight)))


FAR = 1e-3  # a share of the objective that is worth a warning
DISCARDED = "partial_fit starts over and discards the model trained by fit."


def _is_calibrated(model: Comparer) -> bool:
    """True if `predict_proba` exists: calibrated on folds, or on the pairs of a stream."""
    return bool(model.calibration) or hasattr(model, "stream_")


class Comparer(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector comparison machine: predicts which item of a pair is better, or neither.

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
        large that only a few passes are affordable.
    max_iter
        Newton steps at most.
    checkpoint
        A folder from which a killed fit resumes: called again with the same pairs and parameters it gives the
        same model, bit for bit. Newton steps are recorded round by round, epochs of "sgd" one by one; libsvm
        and the linear programs of a kernel, which yield nothing before they end, machine by machine. A folder
        of another fit is refused. None: no checkpoints. `partial_fit` does not read it.
    random_state
        Seed of landmarks and folds.

    Attributes
    ----------
    threshold_
        1 for method "compare", by construction; else fitted.
    method_, note_
        The method that was trained in the end, and why, where it differs from the requested one (a
        `GuaranteeWarning` reports it too). The note also reports, without a warning, that a tie is predicted
        for every training pair.
    coef_
        Linear kernel: weight of each feature in the feature's unit; 0 for features that do not vary.
    machine_, scaling_, curve_
        Ranking function with objective and gap; the scaling; the calibration curve, or None.
    classes_
        -1, 0, 1.

    Notes
    -----
    Degenerate data. No ties: trained as "rank", threshold 0. Only ties, or no feature that varies: every item
    scores 0 and a tie is always predicted. A bias >= 0, which the paper's Lemma 1 does not cover (the paper's
    code then reverses all ranks): the direction is kept, the threshold fitted to the training pairs.
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
            Features of both sides, (n, 2, p): `pairs[:, 0]` left, `pairs[:, 1]` right. `Comparisons.pairs`
            builds them from a table of items and a list of votes. Or pairs in parts, see Notes: a Dask array
            whose chunks hold whole pairs, or `cc.scan_pairs(...)`.
        y
            -1 the left is better, 1 the right is better, 0 no difference. With a Dask array, another of the
            same chunks; a scan brings its outcomes along.
        sample_weight
            Numbers >= 0 that multiply C, one per pair; 0 leaves a pair out. In the same form as `y`.
        client
            A `distributed.Client`, whose workers hold the parts in memory. None: this process reads a scan
            at each pass; Dask arrays go to the current client.

        Notes
        -----
        On pairs in parts the linear kernel with formulation "qp" and a finite C is trained by the same steps
        as in memory, to the same model up to rounding (1e-8); with the same parts it has the same bits on any
        number of workers. The sums over the parts have the size of the number of features, squared. Per-pair
        numbers reach this process only for calibration and where a threshold is fitted (methods "rank" and
        "rank2", or a bias >= 0): about 40 bytes per pair. Solver "sgd" reads a scan part by part, in random
        order, and does not run on a client.
        """
        recipe = read_recipe(self)
        data = read_fit_data(pairs, y, sample_weight, client, recipe, int(self.calibration))
        with _open_journal(self, recipe, data) as journal:
            with nullcontext() if journal is None else journal.within("machine") as machine_journal:
                fitted = data.train(recipe, machine_journal)
            curve, folds = None, self.calibration
            if folds:
                curve = calibrate(data, recipe, fitted, folds, journal)
        self.__dict__.pop("stream_", None)  # from here on nothing fails: an old model stays whole till then
        self.n_features_in_, self.classes_ = data.n_features, np.array([-1, 0, 1])
        (self.scaling_, self.machine_), self.curve_ = fitted, curve
        self.warn()
        return self

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike) -> Self:
        """Learn more pairs, one after the other, at a constant cost per pair.

        Method "compare", any loss (logistic is meant for streams); a stochastic step per pair, weights
        averaged. A linear machine scales features by the pairs so far; with a kernel, the first call fixes
        scaling and landmarks, so it should hold a fair sample. Every pair is scored before it is learned, and
        `predict_proba` is calibrated on these scores. A model fitted by `fit` is discarded, with a warning.
        Where the bias is >= 0 (few ties so far) the threshold is 0. A batch may lack -1: outcomes
        of only 0 and 1 raise no warning, unlike in `fit`.
        """
        features, outcome, _ = check_weighted_pairs(pairs, y, None)
        recipe, stream = read_recipe(self), getattr(self, "stream_", None)
        if stream is None:
            stream = Stream.start(features, recipe)
            if hasattr(self, "machine_"):
                warnings.warn(DISCARDED, GuaranteeWarning, stacklevel=2)
        elif stream.asked != recipe:
            raise ParameterError.because(
                "Parameters changed between calls of partial_fit. Clone the model to start over with new "
                "ones."
            )
        else:
            check_pairs(features[:1], self.n_features_in_)
        stream.learn(features, outcome)
        self.stream_, self.n_features_in_, self.classes_ = stream, features.shape[2], np.array([-1, 0, 1])
        self.scaling_, self.machine_, self.curve_ = stream.scaling, stream.machine(), None
        return self

    def rank_score(self, items: ArrayLike) -> FloatArray:
        """Score items, one row of features each; higher is better, and only differences matter."""
        check_is_fitted(self, "machine_")
        table = check_features(items, "items")
        if hasattr(table, "tocsr"):
            table = table.toarray()
        refuse_large(table, "items")
        if table.shape[1] != self.n_features_in_:
            raise ShapeError("items", table.shape, f"(n, {self.n_features_in_}): as many features as fitted")
        return self.machine_.scorer(self.scaling_(table))

    def decision_function(self, pairs: ArrayLike) -> FloatArray:
        """Difference r(right) - r(left) of each pair."""
        check_is_fitted(self, "machine_")
        features = check_pairs(pairs, self.n_features_in_)
        return self.rank_score(features[:, 1]) - self.rank_score(features[:, 0])

    def predict(self, pairs: ArrayLike) -> IntArray:
        """Predict -1, 0 or 1: the sign of the decision where its size exceeds the threshold, else 0."""
        return outcomes(self.decision_function(pairs), self.threshold_)

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, pairs: ArrayLike) -> FloatArray:
        """Probabilities of -1, 0 and 1, (n, 3), by the curve calibrated on held-out pairs.

        The most probable outcome may differ from that of `predict`: the threshold belongs to the machine.
        """
        decision = self.decision_function(pairs)
        curve = self.stream_.curve() if hasattr(self, "stream_") else self.curve_
        if curve is None:
            raise NotFittedError(
                "The model was fitted with calibration=0. Raise it to 2 or more, and fit again."
            )
        return curve(decision)

    def score(self, pairs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Accuracy: 1 minus the zero-one error."""
        features, outcome, weight = check_weighted_pairs(pairs, y, sample_weight)
        return float(np.average(self.predict(features) == outcome, weights=weight))

    @property
    def threshold_(self) -> float:
        """Largest difference of scores that counts as a tie."""
        check_is_fitted(self, "machine_")
        return self.machine_.threshold

    @property
    def method_(self) -> str:
        """Method that was trained: "compare", "rank" or "rank2"."""
        check_is_fitted(self, "machine_")
        return self.machine_.method

    @property
    def note_(self) -> str:
        """Deviation of the trained model from the requested one; else empty."""
        check_is_fitted(self, "machine_")
        return self.machine_.note

    @property
    def coef_(self) -> FloatArray:
        """Weight of each feature in the unit of the feature; linear kernel only."""
        check_is_fitted(self, "machine_")
        if not isinstance(self.machine_.scorer, Weights):
            raise AttributeError("coef_ exists for the linear kernel only. Use rank_score for scores.")  # noqa: TRY004
        weights = np.zeros(self.n_features_in_)
        weights[self.scaling_.kept] = self.machine_.scorer.w / self.scaling_.deviation
        return weights

    def warn(self) -> None:
        """Warn where the model deviates from the request, or is not optimal."""
        machine = self.machine_
        if machine.note and machine.note != ALL_TIES:  # a search over C meets it often, and scores say enough
            warnings.warn(machine.note, GuaranteeWarning, stacklevel=3)
        if not machine.converged and not machine.gap <= FAR * machine.value:
            text = f"The objective {machine.value:.6g} may be {machine.gap:.3g} above its optimum"
            hint = "Lower C or tol" if machine.solver == "libsvm" else "Raise max_iter, or lower C"
            warnings.warn(f"{text} ({machine.solver}). {hint}.", ConvergenceWarning, stacklevel=3)
