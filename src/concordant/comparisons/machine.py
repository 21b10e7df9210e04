"""Training of a comparison machine: from standardized pairs to a ranking function and a threshold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from concordant.comparisons.comparer_recipe import Recipe, trains_in_parts
from concordant.comparisons.gram_kernel import KernelScorer, NystroemMap
from concordant.comparisons.machines.machine_rows import Terms
from concordant.comparisons.machines.primal_newton import METHODS, Method, objective
from concordant.comparisons.training_pairs import CollectedPairs, PairDifferences, Scaling, TrainingPairs
from concordant.exceptions import ParameterError
from concordant.solvers.checkpoint import Journal, recall_or_run
from concordant.solvers.linear_scores import LinearScorer
from concordant.types import BoolArray, FloatArray

# The kernel machine on pairs: libsvm on the Gram matrix of flipped differences.
#
# The comparison machine and both ranking baselines are one family (see `primal_newton.py`): the rows of the
# binary support vector machine are the pairs themselves, with a sign and a label.

STEPS = 100  # of libsvm, times the rows: on an indefinite matrix it may never end


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Solution of the dual by libsvm, with its duality gap.

    Attributes
    ----------
    coef
        One number per pair: the direction is u = sum_i coef_i d_i, with the flipped differences d_i.
    bias
        Bias of the machine; 0 for the ranking methods, which have none.
    value, gap
        The primal objective, and a bound on its distance from the optimum (the duality gap).
    """

    coef: FloatArray
    bias: float
    value: float
    gap: float


def fit_gram(
    gram: FloatArray,
    is_tie: BoolArray,
    *,
    C: float,
    method: str = "compare",
    sample_weight: FloatArray | None = None,
    tol: float = 1e-3,
) -> DualSolution:
    """Solve the dual (equation 18 of the paper) by libsvm.

    Parameters
    ----------
    gram
        Inner products of the pairs' differences (right - left, with the sign that makes right the better
        side), (n, n).
    is_tie
        True where the pair is a tie.
    C
        Cost of a unit of slack.
    method
        "compare", "rank" or "rank2". There must be a difference, and for "compare" a tie.
    sample_weight
        Multiplies C, pair by pair.
    tol
        Tolerance of libsvm on the violation of the optimality conditions.

    Examples
    --------
    >>> d = np.array([[2.0], [0.5]])  # a difference of 2, a tie at a distance of 0.5
    >>> found = fit_gram(d @ d.T, np.array([False, True]), C=100.0, tol=1e-8)
    >>> u = float(found.coef @ d[:, 0])
    >>> round(u, 6), round(found.bias, 6)
    (1.333333, -1.666667)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    family = METHODS[method]
    weight = np.ones(len(gram)) if sample_weight is None else sample_weight
    rows = _machine_rows(is_tie, weight, family)
    matrix = gram[np.ix_(rows.pair, rows.pair)]
    matrix *= rows.sign[:, None] * rows.sign
    limit = int(STEPS * max(len(matrix), 10_000))
    machine = SVC(C=C, kernel="precomputed", tol=tol, cache_size=500, max_iter=limit)
    with warnings.catch_warnings():  # the gap shows it
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(matrix, rows.label, sample_weight=rows.cost)
    dual = np.zeros(len(rows.pair))
    dual[machine.support_] = machine.dual_coef_[0]
    coef: FloatArray = np.bincount(rows.pair, weights=dual * rows.sign, minlength=len(gram)).astype(
        np.float64
    )
    bias = float(machine.intercept_[0]) if family.has_bias else 0.0
    g = gram @ coef
    squared = float(coef @ g)
    value = 0.5 * squared + objective(g, is_tie, weight, bias=bias, C=C, family=family)
    bound = float(np.abs(dual).sum()) - 0.5 * squared
    return DualSolution(coef, bias, value, max(value - bound, 0.0))


def _machine_rows(is_tie: BoolArray, weight: FloatArray, family: Method) -> Terms:
    """Build the hinges of nonzero cost as rows of a binary machine.

    Without a bias every row is paired with its mirror image, each at half the cost: the best bias is then 0.
    """
    share = weight * np.where(is_tie, family.tie_weight, family.difference_weight)
    terms = Terms.from_pairs(is_tie, share, has_bias=family.has_bias)
    used = terms.cost > 0.0
    rows = Terms(terms.pair[used], terms.sign[used], terms.label[used], terms.cost[used])
    if family.has_bias:
        return rows
    twice = np.tile(rows.pair, 2), np.append(rows.sign, -rows.sign), np.append(rows.label, -rows.label)
    return Terms(*twice, 0.5 * np.tile(rows.cost, 2))


SolutionT = TypeVar("SolutionT")

EXACT_ROWS = 5_000  # of the binary machine: its matrix takes 200 MB
LP_BASIS = 1_000  # functions of a kernel linear program
NYSTROEM_TOL = 1e-3  # gap that is small beside what the map itself leaves out
REST = 1e-12  # share of the cost of all pairs, below which a weight is rounding
FAR = 1e-3  # a gap that is no longer small, as a share of the objective

NO_TIES = "No training pair is a tie, so the model was trained with method='rank' and never predicts a tie."
NO_THRESHOLD = (
    "The solution has no usable tie threshold (there are few ties, or C is small), so the threshold was "
    "fitted to the training pairs."
)
ALL_TIES = (
    "The model predicts a tie for every training pair, because C is small or ties outweigh the features. "
    "Raise C, or use loss='logistic', whose probabilities still differ."
)
ONLY_TIES = "All training pairs are ties, so every score is 0 and every prediction a tie."
NO_FEATURES = "No feature varies, so every score is 0 and every prediction a tie."


@dataclass(frozen=True, eq=False)
class Weights:
    """Linear scoring function r(x) = x @ w of scaled items."""

    w: FloatArray

    def __call__(self, items: FloatArray) -> FloatArray:
        """Score items; equal items get equal scores, whatever the other rows are."""
        return LinearScorer(items).all_scores(self.w)


@dataclass(frozen=True, eq=False)
class Machine:
    """A ranking function of scaled items, and its threshold.

    Attributes
    ----------
    scorer
        Scores of scaled items: `Weights` or a `KernelScorer`.
    threshold
        Differences up to this size are ties.
    method, solver
        The trained method ("compare", "rank", "rank2"), and its solver: "newton", "libsvm", "nystroem",
        "sgd", "lp", "hard lp", "hard qp", "online" (a stream) or "none".
    bias
        Bias of the binary machine; 0 where there is none.
    value, gap
        The objective, and a bound on its distance from the optimum; for a hard margin, the margin itself (to
        be maximised); for a stream NaN.
    note
        Deviation from the requested method, and why; else empty.
    converged
        True if the gap is below the tolerance.
    """

    scorer: Weights | KernelScorer
    threshold: float
    method: str
    solver: str
    bias: float = 0.0
    value: float = 0.0
    gap: float = 0.0
    note: str = ""
    converged: bool = True


def train(pairs: TrainingPairs, recipe: Recipe, journal: Journal | None) -> tuple[Scaling, Machine]:
    """Train on scaled pairs, and fix the threshold; solutions are recorded in the journal."""
    scaling = pairs.scaling
    recipe = recipe.resolve_gamma(int(scaling.kept.sum()))
    if not scaling.kept.any() or not pairs.has_others:
        note = NO_FEATURES if pairs.has_others else ONLY_TIES
        nothing = Weights(np.zeros(int(scaling.kept.sum())))
        return scaling, Machine(nothing, 1.0, recipe.method, "none", note=note)
    if recipe.method == "compare" and not pairs.has_ties:
        ranking = replace(recipe, method="rank", formulation="qp", C=_cap_cost(recipe.C))
        return scaling, replace(_with_threshold(pairs, _solve_machine(pairs, ranking, journal)), note=NO_TIES)
    return scaling, _with_threshold(pairs, _solve_machine(pairs, recipe, journal))


def _cap_cost(C: float) -> float:
    return min(C, 1e6)


def _solve_machine(pairs: TrainingPairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    if trains_in_parts(recipe):
        return _primal(pairs.differences(recipe), pairs.total_weight, recipe, Weights, "newton", journal)
    collected = pairs.collect()
    if recipe.formulation == "lp":
        return _by_linear_program(collected, recipe, journal)
    if recipe.kernel.name == "linear":
        return _by_hard_margin(collected, "hard qp", journal)
    if not math.isfinite(recipe.C):
        raise ParameterError("C", recipe.C, "finite with a kernel", hint="Try C=1e6.")
    if recipe.loss == "hinge" and _uses_exact_kernel(recipe, n_rows(collected.tie, recipe.method)):
        return _by_libsvm(collected, recipe, journal)
    return _by_nystroem(collected, recipe, journal)


def _uses_exact_kernel(recipe: Recipe, rows: int) -> bool:
    if recipe.approximation == "auto":
        return rows <= EXACT_ROWS
    return recipe.approximation == "exact"


def n_rows(tie: BoolArray, method: str) -> int:
    """Number of rows of the binary machine that libsvm solves."""
    family, ties = METHODS[method], int(tie.sum())
    rows = len(tie) - ties + (2 * ties if family.tie_weight else 0)
    return rows if family.has_bias else 2 * rows


def _by_nystroem(pairs: CollectedPairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Solve in the primal on Nystrom features; all items are landmarks if approximation is "exact"."""
    turned = pairs.orient()
    items = turned.reshape(-1, turned.shape[2])
    n_landmarks = len(items) if recipe.approximation == "exact" else recipe.n_components
    features = NystroemMap.from_items(recipe.kernel, items, n_landmarks, np.random.default_rng(recipe.seed))
    rough = replace(recipe, tol=max(recipe.tol, NYSTROEM_TOL))
    differences = PairDifferences.from_rows(features.differences(turned), pairs.tie, pairs.weight, rough)
    return _primal(differences, float(pairs.weight.sum()), rough, features.scorer, "nystroem", journal)


def _primal(
    differences: PairDifferences,
    total_weight: float,
    recipe: Recipe,
    scorer: Callable[[FloatArray], Weights | KernelScorer],
    solver: str,
    journal: Journal | None = None,
) -> Machine:
    solution = differences.fit(recipe, journal)
    w = _at_rest(solution.w, recipe.C * total_weight)
    w = w / -solution.bias if solution.bias < 0.0 else w
    note = _all_ties_note(lambda: differences.furthest(w), solution.bias, recipe.method)
    solver = "sgd" if recipe.solver == "sgd" else solver
    fields = recipe.method, solver, solution.bias, solution.value, solution.gap, note, solution.converged
    return Machine(scorer(w), math.nan, *fields)


def _at_rest(w: FloatArray, cost: float) -> FloatArray:
    """Set weights to 0 where pairs of this total cost cancel up to rounding: their signs are noise."""
    return np.zeros_like(w) if np.abs(w).max(initial=0.0) <= REST * cost else w


def _all_ties_note(furthest: Callable[[], float], bias: float, method: str) -> str:
    """Return a note if no training pair is decided, from the size of the largest decision; else empty."""
    decided = method != "compare" or bias >= 0.0 or furthest() > 1.0
    return "" if decided else ALL_TIES


def _by_libsvm(pairs: CollectedPairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    turned = pairs.orient()
    gram = recipe.kernel.gram(turned)
    options: dict[str, Any] = {"C": recipe.C, "method": recipe.method, "sample_weight": pairs.weight}
    fit = partial(fit_gram, gram, pairs.tie, **options, tol=100.0 * recipe.tol)
    solution = _solve_or_recall(journal, "libsvm", DualSolution, fit)
    support = np.flatnonzero(solution.coef)
    coef = solution.coef[support] / (-solution.bias if solution.bias < 0.0 else 1.0)
    items = np.concatenate((turned[support, 1], turned[support, 0]))
    scorer = KernelScorer(recipe.kernel, items, np.concatenate((coef, -coef)))
    note = _all_ties_note(lambda: float(np.abs(gram[:, support] @ coef).max()), solution.bias, recipe.method)
    is_near_optimum = solution.gap <= FAR * solution.value
    fields = recipe.method, "libsvm", solution.bias, solution.value, solution.gap, note, is_near_optimum
    return Machine(scorer, math.nan, *fields)


def _by_hard_margin(pairs: CollectedPairs, solver: str, journal: Journal | None = None) -> Machine:
    from concordant.comparisons.machines.linear_program import HardMargin, hard_margin_lp, hard_margin_qp

    differences = pairs.differences()
    solve = hard_margin_lp if solver == "hard lp" else hard_margin_qp
    hard_margin = _solve_or_recall(
        journal, solver, HardMargin, partial(solve, differences, np.where(pairs.tie, 0, 1))
    )
    fields = (
        "compare",
        solver,
        -1.0 / hard_margin.mu,
        hard_margin.mu,
        hard_margin.gap,
        "",
        hard_margin.gap <= FAR * hard_margin.mu,
    )
    return Machine(Weights(hard_margin.w), 1.0, *fields)


def _by_linear_program(pairs: CollectedPairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Maximise the margin in values of the ranking function: hard, or with slack and sparse coefficients."""
    from concordant.comparisons.machines.linear_program import SoftMargin, soft_margin_lp

    linear = recipe.kernel.name == "linear"
    if not math.isfinite(recipe.C):
        if not linear:
            raise ParameterError("C", recipe.C, "finite with a kernel", hint="Try C=1e6.")
        return _by_hard_margin(pairs, "hard lp", journal)
    outcome = np.where(pairs.tie, 0, 1)
    if linear:
        basis, items = pairs.differences(), np.empty((0, 0))
    else:
        turned = pairs.orient()
        items = _basis_items(turned, recipe)
        basis = recipe.kernel(turned[:, 1], items) - recipe.kernel(turned[:, 0], items)
    nu = recipe.nu * recipe.C * float(pairs.weight.sum())
    fit = partial(soft_margin_lp, basis, outcome, recipe.C, nu, pairs.weight, tol=recipe.tol)
    soft_margin = _solve_or_recall(journal, "lp", SoftMargin, fit)
    support = np.flatnonzero(soft_margin.a)
    scorer = (
        Weights(soft_margin.a)
        if linear
        else KernelScorer(recipe.kernel, items[support], soft_margin.a[support])
    )
    return Machine(
        scorer, 1.0, "compare", "lp", 0.0, soft_margin.value, soft_margin.gap, "", soft_margin.converged
    )


def _solve_or_recall(
    journal: Journal | None, name: str, solution_type: type[SolutionT], fit: Callable[[], SolutionT]
) -> SolutionT:
    """Run a solver that cannot be interrupted, or replay its solution from the journal."""
    if journal is None:
        return fit()
    numbers, _ = recall_or_run(journal, name, (), lambda: tuple(vars(fit()).values()))
    converters: dict[Any, Callable[[Any], Any]] = {"float": float, "int": int, "bool": bool}
    types = (field.type for field in fields(solution_type))  # type: ignore[arg-type]
    return solution_type(
        *(
            converters.get(field_type, np.asarray)(number)
            for field_type, number in zip(types, numbers, strict=True)
        )
    )


def _basis_items(turned: FloatArray, recipe: Recipe) -> FloatArray:
    """Select the items whose kernel functions are the basis of the linear program."""
    items = np.unique(turned.reshape(-1, turned.shape[2]), axis=0)
    if len(items) <= LP_BASIS or recipe.approximation == "exact":
        return items
    sample = np.random.default_rng(recipe.seed).permutation(len(items))[:LP_BASIS]
    return items[np.sort(sample)]


def _with_threshold(pairs: TrainingPairs, machine: Machine) -> Machine:
    """Fix the threshold: 1 by construction where Lemma 1 holds, else that of least training error."""
    if not math.isnan(machine.threshold):
        return machine
    if machine.method == "compare" and machine.bias < 0.0:
        return replace(machine, threshold=1.0)
    tau = pairs.best_threshold(machine.scorer)
    note = NO_THRESHOLD if machine.method == "compare" else ""
    return replace(machine, threshold=tau, note=note)
