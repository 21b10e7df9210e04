"""Training: standardized pairs become a ranking function and a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from concordant.comparer.pairs import Features, Pairs, RowFeatures, Training
from concordant.comparer.recipe import Recipe, refused_in_parts
from concordant.comparer.scaling import Scaling
from concordant.exceptions import ParameterError
from concordant.scorers.kernel import KernelScorer, NystroemMap
from concordant.scorers.linear import LinearScorer
from concordant.solvers.dual import DualSolution, fit_gram
from concordant.solvers.journal import Journal, recalled
from concordant.solvers.margin import METHODS
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["ALL_TIES", "EXACT_ROWS", "LP_BASIS", "Machine", "Weights", "train", "trained"]

Found = TypeVar("Found")

EXACT_ROWS = 5_000  # of the binary machine: its matrix takes 200 MB
LP_BASIS = 1_000  # functions of a kernel linear program
NYSTROEM_TOL = 1e-3  # gap that is small beside what the map itself leaves out
REST = 1e-12  # share of the cost of all pairs, below which a weight is rounding
FAR = 1e-3  # a gap that is no longer small, as a share of the objective

NO_TIES = (
    "no pair is a tie: the machine was trained to rank (method 'rank') with threshold 0, and predicts none"
)
NO_THRESHOLD = (
    "the bias came out >= 0, so that no threshold separates ties from differences (few ties, or a small C): "
    "the direction is the machine's, its threshold was fitted to the training pairs"
)
ALL_TIES = (
    "the machine predicts a tie for every training pair: C is small, or ties outweigh what features tell, "
    "and then the hinge ignores them at its optimum; try loss='logistic', whose probabilities still tell"
)
ONLY_TIES = "all pairs are ties: every item scores 0, and a tie is predicted always"
NO_FEATURES = "no feature varies: every item scores 0, and a tie is predicted always"


@dataclass(frozen=True, eq=False)
class Weights:
    """r(x) = x @ w, of scaled items."""

    w: FloatArray

    def __call__(self, items: FloatArray) -> FloatArray:
        """Score items: equal ones equally, whatever stands beside them."""
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
        What was really trained ("compare", "rank", "rank2"), and by what: "newton", "libsvm", "nystroem",
        "sgd", "lp", "hard lp", "hard qp", "online" (a stream) or "none".
    bias
        Of the binary machine; 0 where there is none.
    value, gap
        The objective, and how far it is above its optimum at most; of a hard margin, the margin itself (to
        be maximised); of a stream NaN.
    note
        What was done in place of what was asked for, and why; else empty.
    converged
        Whether the gap is below the tolerance.
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


def train(
    given: FloatArray, y: IntArray, weight: FloatArray, recipe: Recipe, journal: Journal | None = None
) -> tuple[Scaling, Machine]:
    """Scale, train, and fix the threshold; what a solver finds is written to the journal, and read there."""
    return trained(Pairs.of(given, y, weight), recipe, journal)


def trained(pairs: Training, recipe: Recipe, journal: Journal | None) -> tuple[Scaling, Machine]:
    """Train on scaled pairs, and fix the threshold."""
    scaling = pairs.scaling
    recipe = recipe.on(int(scaling.kept.sum()))
    if not scaling.kept.any() or not pairs.has_others:
        note = NO_FEATURES if pairs.has_others else ONLY_TIES
        nothing = Weights(np.zeros(int(scaling.kept.sum())))
        return scaling, Machine(nothing, 1.0, recipe.method, "none", note=note)
    if recipe.method == "compare" and not pairs.has_ties:
        ranking = replace(recipe, method="rank", formulation="qp", C=finite(recipe.C))
        return scaling, replace(with_threshold(pairs, solved(pairs, ranking, journal)), note=NO_TIES)
    return scaling, with_threshold(pairs, solved(pairs, recipe, journal))


def finite(C: float) -> float:
    """Give a cost so large that it stands for a hard margin."""
    return min(C, 1e6)


def solved(pairs: Training, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Choose the solver: by what is asked, and by size."""
    if (refused := refused_in_parts(recipe)) is None:
        return by_newton(pairs, recipe, journal)
    if not isinstance(pairs, Pairs):
        raise refused
    if recipe.formulation == "lp":
        return by_linear_program(pairs, recipe, journal)
    if recipe.kernel.name == "linear":
        return by_hard_margin(pairs, "hard qp", journal)
    if not math.isfinite(recipe.C):
        raise ParameterError("C", recipe.C, "finite with a kernel; try 1e6")
    if recipe.loss == "hinge" and exact(recipe, n_rows(pairs.tie, recipe.method)):
        return by_libsvm(pairs, recipe, journal)
    return by_nystroem(pairs, recipe, journal)


def exact(recipe: Recipe, rows: int) -> bool:
    """Whether the kernel's own matrix is used."""
    if recipe.approximation == "auto":
        return rows <= EXACT_ROWS
    return recipe.approximation == "exact"


def n_rows(tie: BoolArray, method: str) -> int:
    """Rows of the binary machine that libsvm sees."""
    family, ties = METHODS[method], int(tie.sum())
    rows = len(tie) - ties + (2 * ties if family.tie_weight else 0)
    return rows if family.has_bias else 2 * rows


def by_newton(pairs: Training, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Solve a linear machine in the primal."""
    return primal(pairs.features(), recipe, Weights, "newton", journal)


def by_nystroem(pairs: Pairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Solve in the primal, on features of landmarks; on those of all items where exactness is asked for."""
    turned = pairs.turned()
    items = turned.reshape(-1, turned.shape[2])
    wanted = len(items) if recipe.approximation == "exact" else recipe.n_components
    features = NystroemMap.of(recipe.kernel, items, wanted, np.random.default_rng(recipe.seed))
    rough = replace(recipe, tol=max(recipe.tol, NYSTROEM_TOL))
    rows = RowFeatures(features.differences(turned), pairs.tie, pairs.weight)
    return primal(rows, rough, features.scorer, "nystroem", journal)


def primal(
    features: Features,
    recipe: Recipe,
    scorer: Callable[[FloatArray], Weights | KernelScorer],
    solver: str,
    journal: Journal | None = None,
) -> Machine:
    """Train on explicit features."""
    found = features.fitted(recipe, journal)
    w = at_rest(found.w, recipe.C * features.total_weight)
    w = w / -found.bias if found.bias < 0.0 else w
    note = silent(lambda: features.furthest(w), found.bias, recipe.method)
    solver = "sgd" if recipe.solver == "sgd" else solver
    how = recipe.method, solver, found.bias, found.value, found.gap, note, found.converged
    return Machine(scorer(w), math.nan, *how)


def at_rest(w: FloatArray, cost: float) -> FloatArray:
    """Give 0 for a direction in which pairs of this cost cancel, up to rounding: its signs mean nothing."""
    return np.zeros_like(w) if np.abs(w).max(initial=0.0) <= REST * cost else w


def silent(furthest: Callable[[], float], bias: float, method: str) -> str:
    """Note that no training pair is decided, where that is so; given the size of the largest decision."""
    decided = method != "compare" or bias >= 0.0 or furthest() > 1.0
    return "" if decided else ALL_TIES


def by_libsvm(pairs: Pairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Solve the dual on the kernel's own matrix."""
    turned = pairs.turned()
    gram = recipe.kernel.gram(turned)
    what: dict[str, Any] = {"C": recipe.C, "method": recipe.method, "sample_weight": pairs.weight}
    fit = partial(fit_gram, gram, pairs.tie, **what, tol=100.0 * recipe.tol)
    found = whole(journal, "libsvm", DualSolution, fit)
    support = np.flatnonzero(found.coef)
    coef = found.coef[support] / (-found.bias if found.bias < 0.0 else 1.0)
    items = np.concatenate((turned[support, 1], turned[support, 0]))
    scorer = KernelScorer(recipe.kernel, items, np.concatenate((coef, -coef)))
    note = silent(lambda: float(np.abs(gram[:, support] @ coef).max()), found.bias, recipe.method)
    near = found.gap <= FAR * found.value
    how = recipe.method, "libsvm", found.bias, found.value, found.gap, note, near
    return Machine(scorer, math.nan, *how)


def by_hard_margin(pairs: Pairs, solver: str, journal: Journal | None = None) -> Machine:
    """Maximise the margin of separable pairs."""
    from concordant.solvers.hard_margin import HardMargin, hard_margin_lp, hard_margin_qp

    differences = pairs.scaling.differences(pairs.given, pairs.y)
    solve = hard_margin_lp if solver == "hard lp" else hard_margin_qp
    found = whole(journal, solver, HardMargin, partial(solve, differences, np.where(pairs.tie, 0, 1)))
    how = "compare", solver, -1.0 / found.mu, found.mu, found.gap, "", found.gap <= FAR * found.mu
    return Machine(Weights(found.w), 1.0, *how)


def by_linear_program(pairs: Pairs, recipe: Recipe, journal: Journal | None = None) -> Machine:
    """Maximise the margin in values of the ranking function: hard, or with slack and sparse coefficients."""
    from concordant.solvers.linear_program import SoftMargin, soft_margin_lp

    linear = recipe.kernel.name == "linear"
    if not math.isfinite(recipe.C):
        if not linear:
            raise ParameterError("C", recipe.C, "finite with a kernel; try 1e6")
        return by_hard_margin(pairs, "hard lp", journal)
    outcome = np.where(pairs.tie, 0, 1)
    if linear:
        basis, items = pairs.scaling.differences(pairs.given, pairs.y), np.empty((0, 0))
    else:
        turned = pairs.turned()
        items = basis_items(turned, recipe)
        basis = recipe.kernel(turned[:, 1], items) - recipe.kernel(turned[:, 0], items)
    nu = recipe.nu * recipe.C * float(pairs.weight.sum())
    fit = partial(soft_margin_lp, basis, outcome, recipe.C, nu, pairs.weight, tol=recipe.tol)
    found = whole(journal, "lp", SoftMargin, fit)
    kept = np.flatnonzero(found.a)
    scorer = Weights(found.a) if linear else KernelScorer(recipe.kernel, items[kept], found.a[kept])
    return Machine(scorer, 1.0, "compare", "lp", 0.0, found.value, found.gap, "", found.converged)


def whole(journal: Journal | None, name: str, kind: type[Found], fit: Callable[[], Found]) -> Found:
    """Give what a solver finds that cannot be interrupted: its numbers are written down at the end."""
    if journal is None:
        return fit()
    numbers, _ = recalled(journal, name, (), lambda: tuple(vars(fit()).values()))
    read: dict[Any, Callable[[Any], Any]] = {"float": float, "int": int, "bool": bool}
    types = (field.type for field in fields(kind))  # type: ignore[arg-type]
    return kind(*(read.get(one, np.asarray)(part) for one, part in zip(types, numbers, strict=True)))


def basis_items(turned: FloatArray, recipe: Recipe) -> FloatArray:
    """Give the items whose kernel functions span the linear program's ranking functions."""
    items = np.unique(turned.reshape(-1, turned.shape[2]), axis=0)
    if len(items) <= LP_BASIS or recipe.approximation == "exact":
        return items
    chosen = np.random.default_rng(recipe.seed).permutation(len(items))[:LP_BASIS]
    return items[np.sort(chosen)]


def with_threshold(pairs: Training, machine: Machine) -> Machine:
    """Fix the threshold: 1 by construction where Lemma 1 holds, else that of least training error."""
    if not math.isnan(machine.threshold):
        return machine
    if machine.method == "compare" and machine.bias < 0.0:
        return replace(machine, threshold=1.0)
    tau = pairs.best_threshold(machine.scorer)
    note = NO_THRESHOLD if machine.method == "compare" else ""
    return replace(machine, threshold=tau, note=note)
