"""The peers that find Kemeny's order, each in a process of its own that is ended when time is up.

They are optional: `pip install corankco pref_voting`. What is not installed is left out, and said.
`python -m benchmarks.peers.kemeny NAME` reads an election from standard input and writes time and order.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.shared.tables import Cell, Table, installed
from benchmarks.shared.timing import watched
from concordant.data.io import Profile

VOTERS = 11
SAME = 1e-9  # share by which a peer's optimum may differ
OURS, PROGRAM = "concordant", "scipy's milp"
TIMED = {
    OURS: "`feedback_arc(matrix)`",
    PROGRAM: "`scipy.optimize.milp` with a row for every three items, HiGHS; rows made before",
    "corankco": "`ExactAlgorithmPulp().compute_consensus_rankings`, CBC; data set made before",
    "pref_voting": "`kemeny_young_rankings(profile)`, which tries all orders; profile made before",
}
ENOUGH, MOST = 0.5, 5  # a call's time is its best of so many runs; no further one after so many seconds
WARM = {"pref_voting": 6}  # items of the call before; 20 where it takes no minutes, so that all is compiled

Ballots = list[list[list[int]]]


@dataclass(frozen=True)
class Election:
    """Ballots as groups of tied items, best first, and how many gave each."""

    name: str
    n: int
    counts: list[int]
    ballots: Ballots
    unranked_last: bool = False

    @classmethod
    def from_profile(cls, name: str, profile: Profile, *, unranked_last: bool = False) -> "Election":
        """An election of PrefLib."""
        return cls(name, len(profile.names), profile.counts.tolist(), profile.ballots, unranked_last)

    @classmethod
    def random(cls, n: int, voters: int, spread: float, seed: int) -> "Election":
        """Plackett and Luce's votes; the best item's strength is exp(spread) times the worst one's."""
        rng = np.random.default_rng(seed)
        strengths = spread * np.linspace(1.0, 0.0, n)
        orders = np.argsort(-(strengths + rng.gumbel(size=(voters, n))), axis=1)
        ballots = [[[item] for item in order] for order in orders.tolist()]
        return cls(f"spread {spread:g}", n, [1] * voters, ballots)

    @property
    def complete(self) -> bool:
        """True if every ballot is a strict order of all items."""
        return all(len(ballot) == self.n for ballot in self.ballots)

    def matrix(self) -> np.ndarray:
        """Number of voters that prefer i to j."""
        profile = Profile([""] * self.n, np.array(self.counts), self.ballots)
        return profile.matrix(unranked_last=self.unranked_last)


@dataclass(frozen=True)
class Answer:
    """Seconds and order; or why there are none."""

    seconds: float | None = None
    order: list[int] | None = None
    reason: str = ""


def concordant(election: Election) -> Callable[[], list[int]]:
    from concordant.decoders import feedback_arc

    matrix = election.matrix()

    def call() -> list[int]:
        decoded = feedback_arc(matrix, time_limit=3_600.0)
        if not decoded.proven:
            raise SystemExit("not proven")
        return decoded.order.tolist()

    return call


def milp(election: Election) -> Callable[[], list[int]]:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    u, n = election.matrix(), election.n
    i, j = np.triu_indices(n, 1)
    number = np.zeros((n, n), dtype=np.int64)
    number[i, j] = np.arange(len(i))
    a, b, c = np.array(list(combinations(range(n), 3))).T
    columns = np.column_stack((number[a, b], number[b, c], number[a, c]))
    rows = csr_array((np.tile([1.0, 1.0, -1.0], len(a)), columns.ravel(), np.arange(0, 3 * len(a) + 1, 3)))
    limits, whole = LinearConstraint(rows, 0.0, 1.0), np.ones(len(i))

    def call() -> list[int]:
        result = milp(u[j, i] - u[i, j], integrality=whole, bounds=Bounds(0.0, 1.0), constraints=limits,
                     options={"mip_rel_gap": 0.0})  # fmt: skip
        above = np.zeros((n, n))
        above[i, j], above[j, i] = result.x, 1.0 - result.x
        return np.argsort(-above.sum(axis=1), kind="stable").tolist()

    return call


def corankco(election: Election) -> Callable[[], list[int]]:
    """Ties in the result cost as much as a pair put wrong, so that none is better than its best order."""
    from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
    from corankco.dataset import Dataset
    from corankco.ranking import Ranking
    from corankco.scoringscheme import ScoringScheme

    # ExactAlgorithm and ParCons raise NameError without CPLEX.
    pairs = zip(election.counts, election.ballots, strict=True)
    data = Dataset([Ranking([set(group) for group in ballot]) for n, ballot in pairs for _ in range(n)])
    last = float(election.unranked_last)
    scheme = ScoringScheme([[0.0, 1.0, 0.0, 0.0, last, 0.0], [1.0, 1.0, 0.0, last, last, 0.0]])

    def call() -> list[int]:
        ranking = ExactAlgorithmPulp().compute_consensus_rankings(data, scheme, True).consensus_rankings[0]
        ranked = [item.value for group in ranking for item in group]
        return ranked + sorted(set(range(election.n)) - set(ranked))  # those that nobody ranks

    return call


def pref_voting(election: Election) -> Callable[[], list[int]]:
    from pref_voting.other_methods import kemeny_young_rankings
    from pref_voting.profiles import Profile as Votes

    votes = Votes([[group[0] for group in ballot] for ballot in election.ballots], election.counts)
    return lambda: [int(item) for item in kemeny_young_rankings(votes)[0][0]]


BUILDERS: Mapping[str, Callable[[Election], Callable[[], list[int]]]] = {
    OURS: concordant,
    PROGRAM: milp,
    "corankco": corankco,
    "pref_voting": pref_voting,
}


def _asked(name: str, election: Election, limit: float) -> Answer:
    """Time and order of a peer, imports and conversion not counted."""
    if name == "pref_voting" and not election.complete:
        return Answer(reason="needs complete strict orders")
    task = json.dumps(vars(election))
    with tempfile.TemporaryDirectory() as scratch:  # where PuLP leaves its files
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2], env=os.environ | {"TMPDIR": scratch}, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(task, timeout=limit)
        except subprocess.TimeoutExpired:
            return Answer(reason=f"over {limit:g} s")
        finally:
            _ended(process)
    if process.returncode:
        return Answer(reason=(errors.strip().splitlines() or ["failed"])[-1])
    return Answer(**json.loads(output.splitlines()[-1]))


def _ended(process: subprocess.Popen) -> None:
    """Leave nothing running: neither the process nor the solver that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def against(elections: list[Election], limit: float, rounds: int) -> Table:
    """The same votes to other packages; a peer that was too slow gets no larger election of the kind."""
    table = Table(
        "Kemeny's order: other packages on the same votes",
        "; ".join(f"{name}: {timed}" for name, timed in TIMED.items())
        + f". {VOTERS} voters by Plackett and Luce's model (spread: logarithm of best to worst strength; 0: "
        "no common opinion), and elections of PrefLib. Each call in a process of its own, after one on other "
        f"votes, ended after {limit:g} s, imports included; best of up to {MOST} runs, median of {rounds} "
        f"rounds (1 from 5 s on). corankco {installed('corankco')} allows ties in the result: at these costs "
        "none is better than an order; its `ExactAlgorithm` and `ParCons` need CPLEX and were not run. "
        f"pref_voting {installed('pref_voting')}. Optimum: whether the order violates as little as the best "
        "of all, and else how much more; ours is proven.",
        ("votes", "items", "component", "tool", "seconds", "/ ours", "optimum"),
    )
    slow: set[tuple[str, str]] = set()
    for election in watched(elections, "other packages"):
        answers = {name: [_tried(name, election, limit, slow)] for name in BUILDERS}
        for _ in range(rounds - 1):
            for name, some in answers.items():
                if some[0].seconds is not None and some[0].seconds < 5.0:
                    some.append(_asked(name, election, limit))
        table.rows.extend(_compared(election, answers))
    return table


def _tried(name: str, election: Election, limit: float, slow: set[tuple[str, str]]) -> Answer:
    """The peer's answer, unless it was too slow before."""
    kind = election.name.split("-")[0]
    if (name, kind) in slow:
        return Answer(reason="not tried: too slow on fewer")
    answer = _asked(name, election, limit)
    if answer.reason.startswith("over"):
        slow.add((name, kind))
    return answer


def _compared(election: Election, answers: dict[str, list[Answer]]) -> list[tuple[Cell, ...]]:
    """Rows of one election; a round without an answer is counted, and not timed."""
    u = election.matrix()
    about = election.name, election.n, component(u)
    good = {name: [answer for answer in some if answer.order is not None] for name, some in answers.items()}
    times = {name: median(answer.seconds for answer in some) for name, some in good.items() if some}
    values = {name: [_violated(u, answer.order) for answer in some] for name, some in good.items() if some}
    least = min(map(min, values.values()))
    rows: list[tuple[Cell, ...]] = []
    for name, some in answers.items():
        reasons = [answer.reason for answer in some if answer.order is None]
        if name not in times:
            rows.append((*about, name, None, None, reasons[0]))
            continue
        more = max(values[name]) - least
        optimum = "same" if more <= SAME * max(least, 1.0) else f"{more:+g}"
        if reasons:
            optimum += f"; {len(reasons)} of {len(some)} rounds: {reasons[0]}"
        rows.append((*about, name, times[name], times[name] / times.get(OURS, np.nan), optimum))
    return rows


def _violated(u: np.ndarray, order: list[int]) -> float:
    """Sum of u[i, j] over the pairs with i after j, by the definition."""
    return float(np.tril(u[np.ix_(order, order)], -1).sum())


def component(u: np.ndarray) -> int:
    """Items of the largest strongly connected component of the majority graph."""
    from concordant.decoders.feedback_arc import components

    return max(len(items) for items in components(np.maximum(u - u.T, 0.0)))


def main() -> None:
    """Time one peer on the election of standard input, after a call on another."""
    name, election = sys.argv[1], Election(**json.load(sys.stdin))
    try:
        build = BUILDERS[name]
        build(Election.random(WARM.get(name, 20), 5, 0.0, seed=0))()
    except ImportError:
        print(json.dumps(vars(Answer(reason="not installed"))))
        return
    call, answer, spent, runs = build(election), Answer(), 0.0, 0
    while runs < MOST and (spent < ENOUGH or runs == 0):
        start = time.perf_counter()
        order = call()
        took = time.perf_counter() - start
        answer = replace(answer, seconds=min(took, answer.seconds or took), order=order)
        spent, runs = spent + took, runs + 1
    print(json.dumps(vars(answer)))


if __name__ == "__main__":
    main()
