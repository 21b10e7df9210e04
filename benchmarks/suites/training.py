"""Training linear rankers: gradients against BLAS, passes to the optimum, LightGBM, LinearSVC, solvers.

On synthetic sets of the shape of public ones; accuracy is relative to the optimum of the same objective.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from unittest.mock import patch

import numpy as np

import concordant as cc
from benchmarks.shared.shapes import MQ2007, MSLR, Set
from benchmarks.shared.tables import Cell, Table
from benchmarks.shared.timing import race, verdict, watched
from concordant._base.segments import n_threads
from concordant.solvers import LinearObjective, Solution, Step, lbfgs, newton, sgd, smooth_solvers
from concordant.solvers import smooth_solvers as smooth
from concordant.solvers.precondition import Preconditioner
from concordant.surrogates import Pairwise, Preorder, Softmax, Squared, Surrogate

ALPHAS = (1.0, 1e-2, 1e-4, 1e-6)
ACCURATE = 1e-4  # excess over the optimum, as a share of it
LEVELS = (1e-2, 1e-4, 1e-6)
GRADIENT_GOAL, PASSES_GOAL, PAIRS_GOAL = 1.5, 25, 30.0
BLAS, FIT, PLAIN = "X @ w, X.T @ g", "LinearRanker.fit", "lbfgs, not whitened"
METHODS = {"lbfgs": (lbfgs, 200), PLAIN: (lbfgs, 500), "newton": (newton, 50), "sgd": (sgd, 20)}  # iterations

Jobs = dict[str, tuple[str, Callable[[], object]]]  # name -> what is timed, the call


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if quick:
        few = Set.random(MQ2007.part(0.02))
        tables = _one_gradient(few, 1), _passes(few, ALPHAS[:1]), _against_trees(few, 1, n_trees=2)
        return [*tables, _against_pairs(few, 1, ALPHAS[:1]), _solvers([few])]
    big, small = Set.random(MSLR), Set.random(MQ2007)
    tables = _one_gradient(big, 5), _passes(big, ALPHAS), _against_trees(big, 3, n_trees=20)
    return [*tables, _against_pairs(small, 3, ALPHAS[:3]), _solvers([small, Set.random(MSLR.part(0.1))])]


def objective(data: Set, surrogate: Surrogate, alpha: float, *, scaled: bool = True) -> LinearObjective:
    """Objective of LinearRanker(metric="ndcg@10") with this surrogate."""
    labels = data.y if surrogate.reads == "grades" else cc.standardize("ndcg@10", data.y, qid=data.qid)
    loss = surrogate.bind(labels, data.offsets, data.per_row)
    return LinearObjective(loss, data.X, alpha, data.spread if scaled else None)


@dataclass(frozen=True)
class TracePoint:
    """Passes over X and seconds so far, and the objective."""

    passes: int
    seconds: float
    value: float


def _trace(
    solver: Callable[..., Solution], goal: LinearObjective, *, stop: float = -np.inf, most: int = 200
) -> list[TracePoint]:
    """Points that the solver reached, until the objective is down to `stop`."""
    points, before, start = [], goal.n_gradients, time.perf_counter()

    def record(step: Step) -> bool:
        # An epoch of sgd reads X once more, query by query.
        read = goal.n_gradients - before + (step.iteration if solver is sgd else 0)
        points.append(TracePoint(read, time.perf_counter() - start, step.value))
        return step.value <= stop

    solver(goal, np.zeros(goal.n_features), tol=1e-15, max_iter=most, callback=record)
    return points


def _optimum(goal: LinearObjective) -> float:
    """The objective's least value, to 1e-10."""
    return lbfgs(goal, np.zeros(goal.n_features), tol=1e-10).value


def _one_gradient(data: Set, rounds: int) -> Table:
    """Value and gradient in the weights, against the two products with X that it cannot do without."""
    kinds = (Squared(), Softmax(), Pairwise(), Preorder())
    w, rows = (np.random.default_rng(0).standard_normal(n) for n in reversed(data.X.shape))
    single = w.astype(np.float32), rows.astype(np.float32)
    calls: dict[str, Callable[[], object]] = {BLAS: lambda: (data.X @ single[0], data.X.T @ single[1])}
    for kind in kinds:
        goal = objective(data, kind, 1e-3)
        calls[kind.name] = lambda goal=goal: goal.value_and_grad(w)
        calls[f"{kind.name} alone"] = lambda loss=goal.loss, at=data.X @ single[0]: loss.value_and_grad(at)
    timings = race(calls, title="gradients", rounds=rounds, enough=0.5)
    table = Table(
        "One gradient",
        f"{data} Value and gradient of the objective (X float32, sums float64), against `{BLAS}` in float32 "
        f"by numpy's BLAS; goal: at most {GRADIENT_GOAL} times that. All threads.",
        ("surrogate", f"/ {BLAS}", "highest round", "ms", f"{BLAS}, ms", "the loss alone, ms", "reached"),
    )
    for kind in kinds:
        middle, most = timings.ratio(kind.name, BLAS), max(timings.ratios(kind.name, BLAS))
        times = [timings.median(name) * 1e3 for name in (kind.name, BLAS, f"{kind.name} alone")]
        reached = verdict(always=most <= GRADIENT_GOAL, usually=middle <= GRADIENT_GOAL)
        table.rows.append((kind.name, middle, most, *times, reached))
    return table


def _passes(data: Set, alphas: Iterable[float]) -> Table:
    """Passes over X until the objective is near its optimum, whatever the penalty."""
    table = Table(
        "Gradients to the optimum",
        f"{data} L-BFGS from 0 until the objective is within {ACCURATE:g} of its optimum, which is found to "
        f"1e-10; goal: at most {PASSES_GOAL} gradients.",
        ("surrogate", "alpha", "gradients", "seconds", "gradients to 1e-10", "reached"),
    )
    jobs = [(kind, alpha) for kind in (Pairwise(), Squared(), Softmax()) for alpha in alphas]
    for kind, alpha in watched(jobs, "gradients to the optimum"):
        goal = objective(data, kind, alpha)
        least = _optimum(goal)
        needed = goal.n_gradients
        last = _trace(lbfgs, goal, stop=least * (1.0 + ACCURATE))[-1]
        reached = "yes" if last.passes <= PASSES_GOAL else "no"
        table.rows.append((kind.name, alpha, last.passes, last.seconds, needed, reached))
    return table


def _against_trees(data: Set, rounds: int, n_trees: int) -> Table:
    """From arrays to a model, against LightGBM; two kinds of model, so only the waiting is compared."""
    goal = objective(data, Pairwise(), 1e-3)
    stop = _optimum(goal) * (1.0 + ACCURATE)
    about = f"`lbfgs` on `Pairwise()`, alpha 1e-3, until within {ACCURATE:g} of the optimum"
    jobs: Jobs = {
        "lbfgs": (about, lambda: _trace(lbfgs, goal, stop=stop)),
        FIT: (
            "`cc.LinearRanker(metric='ndcg@10').fit(X, y, qid=qid)`: all that it does",
            lambda: _fitted(data),
        ),
        **_trees(data, n_trees),
    }
    calls = {name: call for name, (_, call) in jobs.items()}
    timings = race(calls, title="models", rounds=rounds, most=1)
    table = Table(
        "Against LightGBM",
        f"{data} How long one waits for a linear model, and for {n_trees} trees: different models, and no "
        f"word on which ranks better. {n_threads()} threads. Goal: several times faster.",
        ("model", "timed", "/ lbfgs", f"/ {FIT}", "seconds"),
    )
    for name, (timed, _) in jobs.items():
        ratios = timings.ratio(name, "lbfgs"), timings.ratio(name, FIT)
        table.rows.append((name, timed, *ratios, timings.median(name)))
    if len(jobs) == 2:
        table.add_text("LightGBM", "not installed")
    return table


def _fitted(data: Set) -> object:
    return cc.LinearRanker(metric="ndcg@10").fit(data.X, data.y, qid=data.qid)


def _trees(data: Set, n_trees: int) -> Jobs:
    """LightGBM's lambdarank with its defaults, from a Dataset and from arrays."""
    try:
        import lightgbm
    except ImportError:
        return {}
    parameters = {"objective": "lambdarank", "num_threads": n_threads(), "verbose": -1}

    def build() -> object:
        settings = {"label": data.y, "group": np.diff(data.offsets), "params": parameters}
        return lightgbm.Dataset(data.X, **settings).construct()

    ready = build()
    return {
        "LightGBM": (
            f"`lightgbm.train`, lambdarank, {n_trees} trees, defaults; Dataset built before",
            lambda: lightgbm.train(parameters, ready, n_trees),
        ),
        "LightGBM, from arrays": (
            "the same, Dataset built in the time",
            lambda: lightgbm.train(parameters, build(), n_trees),
        ),
    }


def _against_pairs(data: Set, rounds: int, alphas: Iterable[float]) -> Table:
    """The same objective on explicit pairs by scikit-learn's LinearSVC."""
    making = "making pairs / ours"
    table = Table(
        "Against LinearSVC on pairs",
        f"{data} Squared hinge on pairs of different grades: `Preorder('unit', 'squared_hinge')` here, "
        "`LinearSVC(fit_intercept=False)` on the differences of their rows there, C = 1 / (alpha * queries), "
        f"so that the objective is the same; both until it is within {ACCURATE:g} of its optimum (LinearSVC "
        f"with the largest tol that gets there). Ours binds, too. Goal: {PAIRS_GOAL:g} times faster.",
        ("alpha", "pairs", "LinearSVC / ours", making, "ours, s", "LinearSVC, s", "its tol", "reached"),
    )
    try:
        from sklearn.svm import LinearSVC
    except ImportError:
        table.add_text(None, "scikit-learn is not installed")
        return table
    kind, scaled = Preorder("unit", "squared_hinge"), data.X / data.spread
    D, signs = _differences(scaled, data.y, data.offsets)
    for alpha in alphas:
        goal = objective(data, kind, alpha)
        stop = _optimum(goal) * (1.0 + ACCURATE)

        def machine(tol: float, C: float = 1.0 / (alpha * data.shape.n_queries)) -> LinearSVC:
            return LinearSVC(C=C, tol=tol, fit_intercept=False, max_iter=10_000).fit(D, signs)

        tol = _largest_tol(machine, goal, stop)
        calls: dict[str, Callable[[], object]] = {
            "ours": lambda a=alpha, stop=stop: _trace(lbfgs, objective(data, kind, a), stop=stop),
            "pairs": lambda: _differences(scaled, data.y, data.offsets),
            "LinearSVC": lambda tol=tol, machine=machine: machine(tol),
        }
        timings = race(calls, title=f"pairs, alpha {alpha:g}", rounds=rounds, most=1)
        middle, *_, reached = timings.goal("LinearSVC", "ours", PAIRS_GOAL)
        times = timings.ratio("pairs", "ours"), timings.median("ours"), timings.median("LinearSVC")
        table.rows.append((alpha, len(D), middle, *times, tol, reached))
    return table


def _differences(X: np.ndarray, y: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Better row less worse, of every pair of different grades of a query; every other one turned round."""
    pairs = [np.nonzero(y[a:b, None] > y[None, a:b]) for a, b in pairwise(offsets.tolist())]
    starts = np.repeat(offsets[:-1], [len(better) for better, _ in pairs])
    better, worse = (np.concatenate(rows) + starts for rows in zip(*pairs, strict=True))
    signs = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    return (X[better] - X[worse]) * signs[:, None], signs


def _largest_tol(machine: Callable[[float], object], goal: LinearObjective, stop: float) -> float:
    """The largest tol with which LinearSVC gets as near to the optimum as asked."""
    tol = 0.1
    while goal.value_and_grad(machine(tol).coef_[0])[0] > stop and tol > 1e-9:
        tol /= 10.0
    return tol


@contextmanager
def _unwhitened() -> Iterator[None]:
    """Solvers work in the coordinates of the features."""

    def plain(goal: LinearObjective) -> Preconditioner:
        return Preconditioner(np.ones(goal.n_features))

    with patch.object(smooth, "whitening", plain), patch.object(smooth_solvers, "whitening", plain):
        yield


def _solvers(sets: list[Set]) -> Table:
    """Passes over X and seconds of each solver to each accuracy, and of L-BFGS without whitening."""
    columns = (f"{what} to {level:g}" for what in ("passes", "s") for level in LEVELS)
    table = Table(
        "Solvers",
        "Passes over X (gradients, Hessian products, epochs) and seconds until the objective, `Pairwise()` "
        "at alpha 1e-3, is within 1e-2, 1e-4 and 1e-6 of its optimum; empty: not reached. Features divided "
        "by their spread within queries, or as they are. sgd's passes include those that find its rate.",
        ("documents", "features", "solver", *columns),
    )
    for data, scaled in watched([(data, scaled) for data in sets for scaled in (True, False)], "solvers"):
        least = _optimum(objective(data, Pairwise(), 1e-3, scaled=scaled))
        for name, (solver, most) in METHODS.items():
            goal = objective(data, Pairwise(), 1e-3, scaled=scaled)
            with _unwhitened() if name == PLAIN else nullcontext():
                points = _trace(solver, goal, stop=least * (1.0 + LEVELS[-1]), most=most)
            kind = f"{data.X.shape[1]}, {'scaled' if scaled else 'as they are'}"
            table.rows.append((len(data.y), kind, name, *_firsts(points, least)))
    return table


def _firsts(points: list[TracePoint], least: float) -> Iterator[Cell]:
    """Passes to each accuracy, then seconds."""
    points_reached = [next((p for p in points if p.value <= least * (1.0 + level)), None) for level in LEVELS]
    yield from (first and first.passes for first in points_reached)
    yield from (first and first.seconds for first in points_reached)
