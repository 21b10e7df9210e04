"""Certificates: how long until a counterexample stands in exact arithmetic, and what a minimiser costs."""

import statistics
import time

import numpy as np
from scipy.optimize import minimize

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race, watched
from concordant import certify
from concordant.surrogates import Pairwise
from concordant.theory.combination import combination
from concordant.theory.kinds import format_surrogate
from concordant.theory.search.hunt import sparse
from concordant.theory.search.trial import ExpectedLosses, Mixtures, Trial, minimisers

SOUGHT = [
    ("pd", "preorder"), ("ndcg", "preorder"), ("auc", "preorder"),
    *((name, kind) for name in ("ap", "err") for kind in ("squared", "pairwise", "softmax", "duchi")),
    ("ndcg", Pairwise("hinge")), ("ndcg", "position_hinge"), ("ndcg", "listwise_hinge"),
    ("ap", "listwise_hinge"), ("zero_one", "plackett_luce"), ("pd", "squared"), ("rr", "softmax"),
]  # fmt: skip
MINIMISED = [("ndcg", "pairwise"), ("ndcg", "softmax"), ("ndcg", "preorder"), ("zero_one", "plackett_luce")]


def run(*, quick: bool) -> list[Table]:
    """Both tables."""
    return [_searches(seeds=1 if quick else 5, quick=quick), _batches(quick=quick)]


def _searches(*, seeds: int, quick: bool) -> Table:
    """Seconds until a counterexample is verified."""
    table = Table(
        "Counterexamples",
        f"`cc.certify(metric, surrogate, search=True)` with its default budget, {seeds} seeds, "
        "compiled kernels: search, shrinking, exact verification and, for metrics "
        "without one, a proof that no standardization exists.",
        ("metric", "surrogate", "seeds", "verified", "median s", "longest s", "labels", "regret"),
    )
    for name, kind in watched(SOUGHT[:3] if quick else SOUGHT, "searches"):
        certify(name, kind, budget=50, n_items=3)  # compiles
        seconds, counterexamples = [], []
        for seed in range(seeds):
            start = time.perf_counter()
            counterexamples.append(certify(name, kind, search=True, seed=seed).counterexample)
            seconds.append(time.perf_counter() - start)
        good = [example for example in counterexamples if example is not None and example.verify()]
        shown = format_surrogate(combination(name, kind).surrogate)
        first = good[0].to_dict() if good else {"labels": [], "regret": ""}
        times = statistics.median(seconds), max(seconds)
        table.rows.append((name, shown, seeds, len(good), *times, len(first["labels"]), first["regret"]))
    return table


def _batches(*, quick: bool) -> Table:
    """Microseconds to minimise one expected surrogate of four items."""
    many = 40 if quick else 400
    table = Table(
        "Minimisers of expected surrogates",
        f"{many} label distributions of 4 items: microseconds for each. All at once, by damped Newton steps; "
        "one by one, by scipy's L-BFGS-B with the same values and gradients; one evaluation of all of them.",
        ("metric", "surrogate", "all at once", "scipy, one by one", "scipy / ours", "ours / one evaluation"),
    )
    for name, kind in MINIMISED:
        trial = Trial(combination(name, kind), 4)
        some = sparse(len(trial.labels), many, np.random.default_rng(0)).mixtures
        surrogate = trial.combination.surrogate
        losses = ExpectedLosses(surrogate, trial.table, some)
        calls = {
            "ours": lambda: minimisers(surrogate, trial.table, some),  # noqa: B023
            "scipy": lambda: [_single(surrogate, trial.table, some.take([row])) for row in range(many)],  # noqa: B023
            "once": lambda: losses.value_and_grad(np.zeros((many, 4))),  # noqa: B023
        }
        timed = race(calls, title=f"{name}, {kind}", rounds=1 if quick else 5, most=3)
        ours, peer = (timed.median(which) / many * 1e6 for which in ("ours", "scipy"))
        ratios = timed.ratio("scipy", "ours"), timed.ratio("ours", "once")
        table.rows.append((name, kind, ours, peer, *ratios))
    return table


def _single(surrogate: object, table: np.ndarray, mixture: Mixtures) -> np.ndarray:
    """Minimise one expected surrogate by scipy."""
    losses = ExpectedLosses(surrogate, table, mixture)

    def value_and_grad(scores: np.ndarray) -> tuple[float, np.ndarray]:
        values, grad = losses.value_and_grad(scores[None])
        return float(values[0]), grad[0]

    options = {"ftol": 1e-15, "gtol": 1e-10}
    return minimize(value_and_grad, np.zeros(table.shape[1]), jac=True, method="L-BFGS-B", options=options).x
