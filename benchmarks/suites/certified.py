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
from benchmarks.peers.bundle import one_slack, plain_distance
from benchmarks.shared.shapes import Set
from benchmarks.shared.tables import Cell, Table
from benchmarks.shared.timing import best, watched
from concordant.exceptions import DatasetNotFoundError
from concordant.rankers.training import Problem
from concordant.solvers import LinearObjective, Solution, Step, bundle, lbfgs
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder, Surrogate

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
class GapPoint:
    """Gradients and seconds so far, those within gradients; gap and objective as shares of that at rest."""

    gradients: int
    seconds: float
    inside: float
    gap: float
    value: float


class TimedGradients(LinearObjective):
    """Adds up the seconds that its gradients take."""

    inside = 0.0

    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        start = time.perf_counter()
        result = super().value_and_grad(w)
        self.inside += time.perf_counter() - start
        return result


class Corner(NamedTuple):
    """A set, a loss and a penalty: what each solver did, where L-BFGS stopped, the seconds of a fit."""

    data: str
    kind: str
    alpha: float
    traces: dict[str, list[GapPoint]]
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
        corners += [_corner(name, part, *job, most) for job in watched(jobs, f"{name}: gaps")]
    size = " ".join(str(data) for data in sets if isinstance(data, Set))
    tables = _gradients(corners, most, f"Synthetic: {size}"), _fits(corners), _stops(corners)
    for table in tables:
        for name in absent:
            table.add_text(name, "not here: set CONCORDANT_DATA")
    return [tables[0], _ratios(corners), *tables[1:]]


def _corner(name: str, part: Set, kind: str, alpha: float, most: int) -> Corner:
    """Run every solver."""
    model = cc.MaxMarginRanker(loss=KINDS[kind], alpha=alpha)
    problem = model.problem(model.checked_parameters(), part.X, part.y, part.qid)
    fit = best(lambda: model.fit(part.X, part.y, qid=part.qid), math.inf, FITS)
    traces = {solver: _trace(call, problem, alpha, most)[0] for solver, call in SOLVERS.items()}
    traces[SMOOTH], stop = _trace(lbfgs, problem, alpha, min(most, SMOOTH_MOST), tol=0.0)
    return Corner(name, kind, alpha, traces, stop, fit)


def _trace(
    solver: Callable[..., Solution], problem: Problem, alpha: float, most: int, tol: float = GAPS[-1]
) -> tuple[list[GapPoint], Solution]:
    """Points that the solver reached from weights 0 on, until this gap; and where it ended."""
    goal = TimedGradients(problem.objective(alpha).loss, problem.X, alpha, problem.scale)
    points, level, start = [GapPoint(1, 0.0, 0.0, math.inf, 1.0)], goal.at_rest(), time.perf_counter()

    def record(step: Step) -> None:
        took, shares = time.perf_counter() - start, (step.excess / level, step.value / level)
        points.append(GapPoint(goal.n_gradients, took, goal.inside, *shares))

    ended = solver(goal, np.zeros(goal.n_features), tol=tol, max_iter=most, callback=record)
    return points, ended


def _reached(points: list[GapPoint], gap: float) -> GapPoint | None:
    """The first point with such a gap."""
    return next((point for point in points if point.gap <= gap), None)


def _gradients(corners: list[Corner], most: int, synthetic: str) -> Table:
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
    for corner in corners:
        points = [_reached(corner.traces[solver], gap) for solver in SOLVERS for gap in GAPS]
        cells: list[Cell] = [point and point.gradients for point in points]
        table.rows.append((corner.data, corner.kind, corner.alpha, *cells))
    return table


def _ratios(corners: list[Corner]) -> Table:
    """Gradients of the peers as multiples of ours."""
    table = Table(
        "Gradients to a certified gap: ratios to ours",
        "How many times more gradients than ours: median (lowest to highest) over sets and losses. A peer "
        "that was given up counts with the gradients it had taken; > where one was.",
        ("alpha", "against", *(f"to {gap:g}" for gap in GAPS)),
    )
    for alpha in dict.fromkeys(corner.alpha for corner in corners):
        for peer in (PLAIN, EUCLID):
            traces = [corner.traces for corner in corners if corner.alpha == alpha]
            table.rows.append((f"{alpha:g}", peer, *(_spread(traces, peer, gap) for gap in GAPS)))
    return table


def _spread(traces: list[dict[str, list[GapPoint]]], peer: str, gap: float) -> str:
    """Median, lowest and highest ratio of gradients."""
    both = [(_reached(some[peer], gap), some[peer][-1], _reached(some[OURS], gap)) for some in traces]
    quotients = [(theirs or last).gradients / ours.gradients for theirs, last, ours in both if ours]
    if not quotients:
        return "ours: not reached"
    cut = "> " if any(theirs is None for theirs, _, ours in both if ours) else ""
    return f"{cut}{median(quotients):.1f} ({min(quotients):.1f} to {max(quotients):.1f})"


def _fits(corners: list[Corner]) -> Table:
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
    for corner in corners:
        first = corner.traces[OURS][1]  # whitening comes before it, and no program to speak of
        ours, *peers = (_reached(corner.traces[solver], USUAL) for solver in SOLVERS)
        alone: list[Cell] = [None] * 4
        if ours:
            whitening = (first.seconds - first.inside) / ours.seconds
            programs = 1.0 - ours.inside / ours.seconds - whitening
            alone = [ours.gradients, ours.inside / ours.gradients * 1e3, whitening, programs]
        outside = [point and 1.0 - point.inside / point.seconds for point in peers]
        longer = [point.seconds / ours.seconds if ours and point else None for point in peers]
        table.rows.append((corner.data, corner.kind, corner.alpha, corner.fit, *alone, *outside, *longer))
    return table


def _stops(corners: list[Corner]) -> Table:
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
    for corner in corners:
        certain, stop = corner.traces[OURS][-1], corner.stop
        bound = certain.value - certain.gap
        firsts = [
            next((point.gradients for point in corner.traces[solver] if point.value <= bound + near), None)
            for near in NEAR
            for solver in (SMOOTH, OURS)
        ]
        row = stop.stopped_by, stop.n_gradients, corner.traces[SMOOTH][-1].value - bound, *firsts
        table.rows.append((corner.data, corner.kind, corner.alpha, *row))
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
        stops_found = [stop for draw in draws for stop in _tiny(number, kind, *draw)]
        above, smooth, bundled = zip(*stops_found, strict=True)
        table.rows.append((number, kind, median(above), max(above), median(smooth), median(bundled)))
    return table


def _tiny(n_queries: int, kind: str, alpha: float, seed: int) -> Iterator[tuple[float, int, int]]:
    """Distance of L-BFGS to the bound, its gradients, and the bundle's; nothing if the labels agree."""
    toy = cc.synthetic.grades(n_queries=n_queries, n_items=20, n_features=5, seed=seed)
    model = cc.MaxMarginRanker(loss=KINDS[kind], alpha=alpha)
    goal = model.problem(model.checked_parameters(), toy.X, toy.y, toy.qid).objective(alpha)
    start, level = np.zeros(goal.n_features), goal.at_rest()
    if level > 0.0:
        bundled, smooth = bundle(goal, start, tol=GAPS[-1]), lbfgs(goal, start, tol=0.0)
        yield (smooth.value - bundled.value + bundled.gap) / level, smooth.n_gradients, bundled.n_gradients
