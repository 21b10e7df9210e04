"""Gradients until the duality gap is small: our bundle, cutting planes without a distance, a plain distance.

On a synthetic set, and on LETOR sets read from CONCORDANT_DATA, whose terms forbid shipping them.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

import concordant as cc
from benchmarks.bundle_peers import one_slack, plain_distance
from benchmarks.shapes import Set
from benchmarks.tables import Cell, Table
from benchmarks.timing import best, watched
from concordant.exceptions import DatasetNotFoundError
from concordant.rankers.training import Problem
from concordant.solvers import LinearObjective, Solution, Step, bundle, lbfgs
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate

__all__ = ["certified", "few_queries"]

KINDS: dict[str, Surrogate] = {
    "position hinge": PositionHinge("pairs"),
    "hinge": Preorder("pairs", "hinge"),
    "AP": ListwiseHinge(cc.metric("ap")),
    "NDCG": ListwiseHinge(cc.metric("ndcg")),
    "NDCG@10": ListwiseHinge(cc.metric("ndcg@10")),
}
ALPHAS = (1e-1, 1e-3, 1e-5)
GAPS = (1e-3, 1e-4, 1e-6)
NEAR = (1e-2, 1e-3, 1e-4, 1e-5)
USUAL = 1e-4  # MaxMarginRanker's own tol
MOST = 2_000  # gradients after which a peer is given up
SMOOTH_MOST = 500  # iterations of L-BFGS: its own default
FITS = 3
OURS, PLAIN, EUCLID, SMOOTH = "ours", "one-slack", "plain distance", "L-BFGS"


@dataclass(frozen=True)
class Point:
    """Gradients and seconds so far, those within gradients; gap and objective as shares of that at rest."""

    gradients: int
    seconds: float
    inside: float
    gap: float
    value: float


class Timed(LinearObjective):
    """Adds up the seconds that its gradients take."""

    inside = 0.0

    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        start = time.perf_counter()
        found = super().value_and_grad(w)
        self.inside += time.perf_counter() - start
        return found


class Corner(NamedTuple):
    """A set, a loss and a penalty: what each solver did, where L-BFGS stopped, the seconds of a fit."""

    data: str
    kind: str
    alpha: float
    traces: dict[str, list[Point]]
    stop: Solution
    fit: float


SOLVERS: dict[str, Callable[..., Solution]] = {OURS: bundle, PLAIN: one_slack, EUCLID: plain_distance}


def certified(
    sets: list[Set | str],
    kinds: tuple[str, ...] = tuple(KINDS),
    alphas: tuple[float, ...] = ALPHAS,
    most: int = MOST,
) -> list[Table]:
    """All tables on solvers."""
    corners, absent = [], []
    for data in sets:
        try:
            part = data if isinstance(data, Set) else cc.datasets.load(data, fold=1).train
        except DatasetNotFoundError:
            absent.append(data)
            continue
        name = "synthetic" if isinstance(data, Set) else f"{data}, fold 1"
        jobs = [(kind, alpha) for kind in kinds for alpha in alphas]
        corners += [corner(name, part, *job, most) for job in watched(jobs, f"{name}: gaps")]
    size = " ".join(str(data) for data in sets if isinstance(data, Set))
    tables = gradients(corners, most, f"Synthetic: {size}"), fits(corners), stops(corners)
    for table in tables:
        blank = [None] * (len(table.columns) - 2)
        table.rows.extend((name, "not here: set CONCORDANT_DATA", *blank) for name in absent)
    return [tables[0], ratios(corners), *tables[1:]]


def corner(name: str, part: Set, kind: str, alpha: float, most: int) -> Corner:
    """Run every solver."""
    model = cc.MaxMarginRanker(loss=KINDS[kind], alpha=alpha)
    problem = model.problem(model.checked_parameters(), part.X, part.y, part.qid)
    fit = best(lambda: model.fit(part.X, part.y, qid=part.qid), math.inf, FITS)
    traces = {solver: trace(call, problem, alpha, most)[0] for solver, call in SOLVERS.items()}
    traces[SMOOTH], stop = trace(lbfgs, problem, alpha, min(most, SMOOTH_MOST), tol=0.0)
    return Corner(name, kind, alpha, traces, stop, fit)


def trace(
    solver: Callable[..., Solution], problem: Problem, alpha: float, most: int, tol: float = GAPS[-1]
) -> tuple[list[Point], Solution]:
    """What the solver had reached at weights 0 and after each iteration, until this gap; where it ended."""
    goal = Timed(problem.objective(alpha).loss, problem.X, alpha, problem.scale)
    points, level, start = [Point(1, 0.0, 0.0, math.inf, 1.0)], goal.at_rest(), time.perf_counter()

    def told(step: Step) -> None:
        took, shares = time.perf_counter() - start, (step.excess / level, step.value / level)
        points.append(Point(goal.n_gradients, took, goal.inside, *shares))

    ended = solver(goal, np.zeros(goal.n_features), tol=tol, max_iter=most, callback=told)
    return points, ended


def reached(points: list[Point], gap: float) -> Point | None:
    """The first point with such a gap."""
    return next((point for point in points if point.gap <= gap), None)


def gradients(corners: list[Corner], most: int, synthetic: str) -> Table:
    """Gradients of each solver to each gap."""
    table = Table(
        "Gradients to a certified gap",
        "Gradients (passes over X) of `MaxMarginRanker`'s objective, from weights 0, until the duality gap "
        "is at most 1e-3, 1e-4 and 1e-6 of the objective at weights 0. "
        f"{OURS}: `bundle`, its distance in whitened coordinates; {PLAIN}: the next weights minimise the "
        "model itself (SVMstruct, BMRM), same planes, same quadratic program; "
        f"{EUCLID}: ours with the distance of the (scaled) weights. Empty: not within {most:,}. {synthetic}",
        ("set", "loss", "alpha", *(f"{solver} to {gap:g}" for solver in SOLVERS for gap in GAPS)),
    )
    for one in corners:
        found = [reached(one.traces[solver], gap) for solver in SOLVERS for gap in GAPS]
        cells: list[Cell] = [point and point.gradients for point in found]
        table.rows.append((one.data, one.kind, one.alpha, *cells))
    return table


def ratios(corners: list[Corner]) -> Table:
    """How many times more gradients the peers take."""
    table = Table(
        "Gradients to a certified gap: ratios to ours",
        "How many times more gradients than ours: median (lowest to highest) over sets and losses. A peer "
        "that was given up counts with the gradients it had taken; > where one was.",
        ("alpha", "against", *(f"to {gap:g}" for gap in GAPS)),
    )
    for alpha in dict.fromkeys(one.alpha for one in corners):
        for peer in (PLAIN, EUCLID):
            traces = [one.traces for one in corners if one.alpha == alpha]
            table.rows.append((f"{alpha:g}", peer, *(spread(traces, peer, gap) for gap in GAPS)))
    return table


def spread(traces: list[dict[str, list[Point]]], peer: str, gap: float) -> str:
    """Median, lowest and highest ratio of gradients."""
    both = [(reached(some[peer], gap), some[peer][-1], reached(some[OURS], gap)) for some in traces]
    found = [(theirs or last).gradients / own.gradients for theirs, last, own in both if own]
    if not found:
        return "ours: not reached"
    cut = "> " if any(theirs is None for theirs, _, own in both if own) else ""
    return f"{cut}{median(found):.1f} ({min(found):.1f} to {max(found):.1f})"


def fits(corners: list[Corner]) -> Table:
    """Seconds of a whole fit, and where they go."""
    table = Table(
        "Time of a fit",
        f"`MaxMarginRanker(loss=..., alpha=...).fit(X, y, qid=qid)`, tol {USUAL:g}, all threads, best of "
        f"{FITS}. Of the solver alone, one run: gradients, ms of each, and the shares of its time that go to "
        "whitening and to quadratic programs; then the share of the peers' time outside gradients, and how "
        "many times longer they take to the same gap; empty: given up before.",
        ("set", "loss", "alpha", "fit, s", "gradients", "ms a gradient", "whitening", "programs",
         f"{PLAIN}, outside", f"{EUCLID}, outside", f"{PLAIN} / ours, time", f"{EUCLID} / ours, time"),
    )  # fmt: skip
    for one in corners:
        first = one.traces[OURS][1]  # whitening comes before it, and no program to speak of
        own, *peers = (reached(one.traces[solver], USUAL) for solver in SOLVERS)
        alone: list[Cell] = [None] * 4
        if own:
            whitening = (first.seconds - first.inside) / own.seconds
            programs = 1.0 - own.inside / own.seconds - whitening
            alone = [own.gradients, own.inside / own.gradients * 1e3, whitening, programs]
        outside = [point and 1.0 - point.inside / point.seconds for point in peers]
        longer = [point.seconds / own.seconds if own and point else None for point in peers]
        table.rows.append((one.data, one.kind, one.alpha, one.fit, *alone, *outside, *longer))
    return table


def stops(corners: list[Corner]) -> Table:
    """Where L-BFGS stops on corners, and when each solver is how low."""
    table = Table(
        "Where L-BFGS stops",
        f"`lbfgs` on the same objectives, until no step lowers them or after {SMOOTH_MOST} iterations: how "
        f"far that is above the lower bound that our bundle certifies to {GAPS[-1]:g} (shares of the "
        "objective at weights 0). Then gradients until the objective is so near to that bound, of L-BFGS, "
        "which cannot know it, and of our bundle, which may not know it yet. Empty: never.",
        ("set", "loss", "alpha", "stopped by", "gradients", "above the bound",
         *(f"{solver}: within {near:g}" for near in NEAR for solver in (SMOOTH, OURS))),
    )  # fmt: skip
    for one in corners:
        certain, stop = one.traces[OURS][-1], one.stop
        bound = certain.value - certain.gap
        firsts = [
            next((point.gradients for point in one.traces[solver] if point.value <= bound + near), None)
            for near in NEAR
            for solver in (SMOOTH, OURS)
        ]
        row = stop.stopped_by, stop.n_gradients, one.traces[SMOOTH][-1].value - bound, *firsts
        table.rows.append((one.data, one.kind, one.alpha, *row))
    return table


def few_queries(numbers: tuple[int, ...], seeds: int) -> Table:
    """Where L-BFGS stops on tiny sets, whose objectives are all corners."""
    table = Table(
        "Where L-BFGS stops: few queries",
        f"`cc.synthetic.grades`, lists of 20 items, 5 features, {seeds} seeds at each alpha of "
        f"{', '.join(f'{alpha:g}' for alpha in ALPHAS)}: how far `lbfgs`, ended by no tolerance, stops above "
        f"the lower bound of our bundle at tol {GAPS[-1]:g}, as a share of the objective at weights 0; "
        "median and highest, and the medians of the gradients taken.",
        ("queries", "loss", "above, median", "above, highest", f"{SMOOTH}: gradients", f"{OURS}: gradients"),
    )
    draws = [(alpha, seed) for alpha in ALPHAS for seed in range(seeds)]
    for number, kind in watched([(number, kind) for number in numbers for kind in KINDS], "few queries"):
        found = [stop for draw in draws for stop in tiny(number, kind, *draw)]
        above, smooth, own = zip(*found, strict=True)
        table.rows.append((number, kind, median(above), max(above), median(smooth), median(own)))
    return table


def tiny(n_queries: int, kind: str, alpha: float, seed: int) -> Iterator[tuple[float, int, int]]:
    """How far L-BFGS stops above the bound, its gradients, and the bundle's; nothing if the labels agree."""
    toy = cc.synthetic.grades(n_queries=n_queries, n_items=20, n_features=5, seed=seed)
    model = cc.MaxMarginRanker(loss=KINDS[kind], alpha=alpha)
    goal = model.problem(model.checked_parameters(), toy.X, toy.y, toy.qid).objective(alpha)
    start, level = np.zeros(goal.n_features), goal.at_rest()
    if level > 0.0:
        own, smooth = bundle(goal, start, tol=GAPS[-1]), lbfgs(goal, start, tol=0.0)
        yield (smooth.value - own.value + own.gap) / level, smooth.n_gradients, own.n_gradients
