"""The comparison machine: linear pairs against LinearSVC, kernels and their memory, streams."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.shared.processes import run_module
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race
from concordant import Comparer, datasets
from concordant.comparisons.machines.online_machine import OnlineState, learn
from concordant.comparisons.machines.primal_newton import fit_margin
from concordant.exceptions import DatasetNotFoundError


@dataclass(frozen=True, eq=False)
class Games:
    """Pairs of a linear truth with noise, a fifth of them ties, in everyone's own form."""

    pairs: np.ndarray
    y: np.ndarray

    @classmethod
    def random(cls, n: int, p: int = 20, seed: int = 0) -> "Games":
        rng = np.random.default_rng(seed)
        pairs = rng.standard_normal((n, 2, p))
        gap = (pairs[:, 1] - pairs[:, 0]) @ rng.standard_normal(p) + rng.standard_normal(n)
        return cls(pairs, np.where(np.abs(gap) > 1.5, np.sign(gap), 0).astype(int))

    @cached_property
    def differences(self) -> np.ndarray:
        """Right - left, turned so that right is better."""
        return (self.pairs[:, 1] - self.pairs[:, 0]) * np.where(self.y < 0, -1.0, 1.0)[:, None]

    @cached_property
    def tie(self) -> np.ndarray:
        return self.y == 0

    @cached_property
    def flipped(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of the binary machine: ties once each way round."""
        rows = np.concatenate((self.differences, -self.differences[self.tie]))
        return rows, np.where(np.concatenate((self.tie, self.tie[self.tie])), -1, 1)

    def objective(self, w: np.ndarray, bias: float, C: float, loss: str) -> float:
        rows, labels = self.flipped
        slack = np.maximum(1.0 - labels * (rows @ w + bias), 0.0)
        return 0.5 * float(w @ w) + C * float((slack if loss == "hinge" else slack**2).sum())


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    n, rounds = (2_000, 1) if quick else (100_000, 5)
    return [_linear(n, rounds), _streams(n, rounds), *_kernels(quick=quick)]


def _linear(n: int, rounds: int) -> Table:
    """Our solver and whole estimator against liblinear."""
    table = Table(
        "Linear machines",
        f"{n:,} pairs, 20 features, milliseconds. Solver: `fit_margin` on turned differences; estimator: "
        "`Comparer.fit`, checks and scaling included, without calibration; LinearSVC: scikit-learn's, on "
        "flipped differences, a tie two rows. Excess: of the objective (unpenalised bias) over its lower "
        "bound, as a share. LinearSVC penalises the bias: its default, and intercept_scaling=10, which "
        "all but frees it, are shown, at its own tol 1e-4 and 1,000 iterations.",
        ("loss", "C", "its scaling", "solver", "estimator", "LinearSVC",
         "LinearSVC / solver", "LinearSVC / estimator", "our excess", "its excess"),
    )  # fmt: skip
    games = Games.random(n)
    for loss in ("hinge", "squared_hinge"):
        for C in (0.01, 1.0, 100.0):
            for scaling in (1.0, 10.0):
                table.rows.append((loss, C, scaling, *_against_liblinear(games, loss, C, scaling, rounds)))
    return table


def _against_liblinear(games: Games, loss: str, C: float, scaling: float, rounds: int) -> Iterator[float]:
    """Times, ratios and excesses of one setting."""
    peer = LinearSVC(loss=loss, C=C, intercept_scaling=scaling, dual=loss == "hinge", random_state=0)
    model = Comparer(loss=loss, C=C, calibration=0)
    calls = {
        "solver": lambda: fit_margin(games.differences, games.tie, C=C, loss=loss),
        "estimator": lambda: model.fit(games.pairs, games.y),
        "peer": lambda: peer.fit(*games.flipped),
    }
    timed = race(calls, title=f"{loss}, C={C:g}", rounds=rounds, most=3)
    best = fit_margin(games.differences, games.tie, C=C, loss=loss, tol=1e-9)
    bound = best.value - best.gap
    ours = fit_margin(games.differences, games.tie, C=C, loss=loss)
    theirs = games.objective(peer.coef_[0], float(peer.intercept_[0]), C, loss)
    yield from (1e3 * timed.median(name) for name in calls)
    yield from (timed.ratio("peer", to) for to in ("solver", "estimator"))
    yield from (max(value / bound - 1.0, 0.0) for value in (ours.value, theirs))


def _streams(n: int, rounds: int) -> Table:
    """One pass, one stochastic step a pair."""
    table = Table(
        "Streams",
        f"{n:,} pairs, 20 features, once through: milliseconds in one call, and microseconds a pair in calls "
        "of one pair. SGDClassifier: scikit-learn's, logistic loss, on flipped differences.",
        ("call", "ours", "SGDClassifier", "ratio"),
    )
    games, few = Games.random(n), Games.random(200)

    def ours_one_by_one() -> None:
        state = OnlineState.start(20)
        for i in range(len(few.y)):
            learn(state, few.pairs[i : i + 1], few.y[i : i + 1])

    def ours_as_a_user() -> None:
        model = Comparer(loss="logistic")
        for i in range(len(few.y)):
            model.partial_fit(few.pairs[i : i + 1], few.y[i : i + 1])

    def theirs_one_by_one() -> None:
        peer, (rows, labels) = SGDClassifier(loss="log_loss"), few.flipped
        for i in range(len(few.y)):
            peer.partial_fit(rows[i : i + 1], labels[i : i + 1], classes=[-1, 1])

    def theirs() -> None:
        SGDClassifier(loss="log_loss").partial_fit(*games.flipped, classes=[-1, 1])

    whole = {"ours": lambda: learn(OnlineState.start(20), games.pairs, games.y), "theirs": theirs}
    single = {"ours": ours_one_by_one, "theirs": theirs_one_by_one}
    user = single | {"ours": ours_as_a_user}
    each = 1e6 / len(few.y)
    named = ("all at once, ms", whole, 1e3), ("one by one, us a pair", single, each)
    for name, calls, unit in (*named, ("... by Comparer.partial_fit", user, each)):
        timed = race(calls, title=name, rounds=rounds, most=3)
        row = (unit * timed.median(which) for which in calls)
        table.rows.append((name, *row, timed.ratio("theirs", "ours")))
    return table


def _kernels(*, quick: bool) -> Iterator[Table]:
    """Sushi pairs with a Gaussian kernel, each size in a process of its own: its memory can be read."""
    try:
        datasets.load("sushi-pairs")
    except DatasetNotFoundError:
        return
    table = Table(
        "Gaussian kernel on the sushi pairs",
        "`Comparer(kernel='rbf', C=1, gamma=1/14, calibration=0)`: what solved it, seconds, most memory "
        "the process held (imports and data included), and the duality gap as a share of the objective.",
        ("pairs", "ties", "solver", "seconds", "memory, MB", "gap"),
    )
    for n in (300,) if quick else (1_000, 3_000, 25_000):
        result = run_module(__name__, n)
        table.rows.append(
            tuple(result[name] for name in ("pairs", "ties", "solver", "seconds", "memory", "gap"))
        )
    yield table


def _sushi(n: int) -> dict:
    """Fit so many sushi pairs, drawn at random."""
    import resource
    import time

    data = datasets.load("sushi-pairs")
    rows = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n])
    pairs, y = data.pairs[rows], data.y[rows]
    start = time.perf_counter()
    model = Comparer(kernel="rbf", calibration=0).fit(pairs, y)
    seconds = time.perf_counter() - start
    machine = model.machine_
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    gap = machine.gap / machine.value if math.isfinite(machine.gap) else None
    counts = {"pairs": len(y), "ties": int((y == 0).sum())}
    return counts | {"solver": machine.solver, "seconds": seconds, "memory": memory, "gap": gap}


if __name__ == "__main__":
    print(json.dumps(_sushi(int(sys.argv[1]))))
