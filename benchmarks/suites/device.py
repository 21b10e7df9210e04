"""Linear rankers on a device: one gradient against the products it cannot do without, training, whole fits.

On a GPU at the size of MSLR-WEB30K; where there is none, small and on the CPU, which shows that it runs.
"""

import time
from typing import TYPE_CHECKING

import numpy as np

import concordant as cc
from benchmarks.shared.devices import Device, waited, without_torch
from benchmarks.shared.shapes import Set
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race, watched
from concordant.solvers import Objective, Step, lbfgs
from concordant.surrogates import Pairwise, Softmax, Squared, Surrogate

if TYPE_CHECKING:
    import torch

KINDS = Softmax(), Pairwise(), Squared()
ALPHAS = (1e-1, 1e-3, 1e-5)
ACCURATE = 1e-4  # excess over the optimum, as a share of it
GRADIENT_GOAL, SECONDS_GOAL = 2.0, 0.2
PRODUCTS, SORT = "X @ w, X.T @ g", "one sort"


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if absent := without_torch("On a device"):
        return absent
    import torch

    device = Device.best(quick=quick)
    data = device.draw_set()
    about, X = f"{data} {device}", torch.from_numpy(data.X).to(device.device)
    alphas = ALPHAS[1:2] if quick else ALPHAS
    tables = _one_gradient(about, data, X, 1 if quick else 5), _training(about, data, X, alphas)
    return [*tables, _fits(about, data, X)]


def _objective(data: Set, X: "torch.Tensor", kind: Surrogate, alpha: float) -> Objective:
    """Objective of LinearRanker(metric="ndcg@10", device=...) with this surrogate."""
    ranker = cc.LinearRanker("ndcg@10", kind, alpha, device=X.device)
    return ranker.problem(ranker.checked_parameters(), X, data.y, data.qid).objective(alpha)


def _verdict(X: "torch.Tensor", *, reached: bool) -> str | None:
    """Answer if a goal is reached; the goals are a GPU's."""
    return None if X.device.type == "cpu" else "yes" if reached else "no"


def _one_gradient(about: str, data: Set, X: "torch.Tensor", rounds: int) -> Table:
    """Value and gradient in the weights, against two products with X and one sort of the scores."""
    import torch

    w, rows = (torch.randn(n, device=X.device) for n in reversed(X.shape))
    scores, host = X @ w, np.random.default_rng(0).standard_normal(X.shape[1])
    calls = {PRODUCTS: waited(lambda: (X @ w, X.t() @ rows)), SORT: waited(scores.sort)}
    for kind in KINDS:
        goal = _objective(data, X, kind, 1e-3)
        calls[kind.name] = waited(lambda goal=goal: goal.value_and_grad(host))
    timings = race(calls, title="gradients", rounds=rounds)
    table = Table(
        "One gradient",
        f"{about} X float32 and there; value and gradient of the objective, weights from and to the host, "
        f"against `{PRODUCTS}` and one sort of the scores; goal: at most {GRADIENT_GOAL:g} times their sum.",
        ("surrogate", "/ products and sort", "ms", f"{PRODUCTS}, ms", f"{SORT}, ms", "reached"),
    )
    limits = [timings.median(name) for name in (PRODUCTS, SORT)]
    for kind in KINDS:
        ratio = timings.median(kind.name) / sum(limits)
        times = (1e3 * seconds for seconds in (timings.median(kind.name), *limits))
        table.rows.append((kind.name, ratio, *times, _verdict(X, reached=ratio <= GRADIENT_GOAL)))
    return table


def _training(about: str, data: Set, X: "torch.Tensor", alphas: tuple[float, ...]) -> Table:
    """Seconds to the optimum, once X is there."""
    table = Table(
        "Training",
        f"{about} X there; `lbfgs` from 0 until the objective is within {ACCURATE:g} of its optimum, which a "
        f"run to 1e-9 finds; goal: {SECONDS_GOAL:g} s.",
        ("surrogate", "alpha", "seconds", "gradients", "gradients to 1e-9", "reached"),
    )
    for kind, alpha in watched([(kind, alpha) for kind in KINDS for alpha in alphas], "training"):
        goal = _objective(data, X, kind, alpha)
        least, before = lbfgs(goal, np.zeros(goal.n_features), tol=1e-9), goal.n_gradients
        stop, start = least.value * (1.0 + ACCURATE), time.perf_counter()

        def is_reached(step: Step, stop: float = stop) -> bool:
            return step.value <= stop

        lbfgs(goal, np.zeros(goal.n_features), tol=1e-15, callback=is_reached)
        seconds, passes = time.perf_counter() - start, goal.n_gradients - before
        reached = _verdict(X, reached=seconds <= SECONDS_GOAL)
        table.rows.append((kind.name, alpha, seconds, passes, least.n_gradients, reached))
    return table


def _fits(about: str, data: Set, X: "torch.Tensor") -> Table:
    """From arrays to a fitted ranker with its certificate."""
    table = Table(
        "Whole fits",
        f"{about} `LinearRanker('ndcg@10', surrogate, alpha=1e-3, device=...).fit(X, y, qid=qid)`: all it "
        "does, checks, transfer and risk bound included; the second fit of each.",
        ("surrogate", "X", "seconds", "iterations"),
    )
    ways = {"an array": (data.X, X.device), "a tensor there": (X, X.device)}
    for kind in KINDS[:2]:
        for name, (features, device) in ways.items():
            ranker = cc.LinearRanker("ndcg@10", kind, 1e-3, device=device).fit(features, data.y, qid=data.qid)
            start = time.perf_counter()
            ranker.fit(features, data.y, qid=data.qid)
            table.rows.append((kind.name, name, time.perf_counter() - start, ranker.n_iter_))
    return table
