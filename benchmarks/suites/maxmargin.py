"""Max-margin losses: growth of the position hinge, searches for the worst order, gradients to a small gap."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from benchmarks.shared.lists import asked, different, drawn, renewed
from benchmarks.shared.processes import peak
from benchmarks.shared.shapes import MQ2007, MSLR, Set
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import Race, race
from benchmarks.suites.certified import certified, few_queries
from benchmarks.suites.surrogates import NEVER, switched
from benchmarks.suites.worst_orders import many_lists, one_by_one
from concordant.surrogates import PositionHinge
from concordant.surrogates.pairwise import LONG, sweep_from

LENGTHS = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_000_000)
SWEPT = sweep_from(LENGTHS[2].bit_length() - 1)  # items above which even full rankings are swept
LONGEST_MATRIX = 4_096  # items up to which the definition is run: 128 MB a matrix
SAME = 1e-9  # share by which ours may differ from the definition
OURS, SORT, MATRIX, LOOP = "ours", "np.argsort", "n x n", "our double loop"


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if quick:
        small = Set.random(MQ2007.part(0.01))
        tables = *_growth((256, 512, 1_024), 1), one_by_one((20, 40), 1), many_lists(MSLR.part(0.001), 1)
        gaps = certified([small, "mq2008"], ("position hinge", "AP"), (1e-1,), most=200)
        return [*tables, *gaps, few_queries((1,), 1)]
    tables = *_growth(LENGTHS, 5), one_by_one((20, 120, 320, 1_000, 3_000), 5), many_lists(MSLR.part(0.05), 5)
    gaps = certified([Set.random(MQ2007.part(0.15)), "mq2008", "ohsumed"])
    return [*tables, *gaps, few_queries((1, 3, 10, 30, 100), 10)]


def _labellings(n: int) -> dict[str, np.ndarray]:
    """Labels of one list: an order of all items, grades, two labels."""
    grades = drawn(1, n)[1]
    orders = np.random.default_rng(0).permutation(n) + 1.0
    return {"full ranking": orders, "5 grades": grades, "binary": (grades > 0.0).astype(np.float64)}


def _growth(lengths: tuple[int, ...], rounds: int) -> list[Table]:
    """Time of value and gradient of one list that grows, and the exponents fitted to it."""
    table = Table(
        "The position hinge of one list: n log n",
        "`PositionHinge()`, value and gradient, bound before, other scores in every call, one thread; a full "
        "ranking has as many levels as items. `np.argsort` is of the same scores; n x n is the definition "
        f"written in numpy, up to {LONGEST_MATRIX:,} items, checked to give the same value and gradient; "
        f"{LOOP} is what ours does with lists of up to {LONG} items, or up to {SWEPT:,} where all levels "
        "differ, here at any length. Memory: peak of a "
        "call, ours one that binds a new loss, in arrays of as many doubles as items.",
        ("labels", "items", "ns per item", "ns per item / log2 n", f"/ {SORT}", f"{MATRIX} / ours",
         f"{LOOP} / ours", "memory, arrays", f"memory of {MATRIX}, arrays"),
    )  # fmt: skip
    times: dict[str, dict[int, Race]] = {}
    for n in lengths:
        for name, y in _labellings(n).items():
            timings, memory = _raced(n, y, rounds)
            times.setdefault(name, {})[n] = timings
            ours = timings.nanoseconds(OURS, n)
            slower = [
                timings.ratio(name, OURS) if name in timings.seconds else None for name in (MATRIX, LOOP)
            ]
            row = name, n, ours, ours / np.log2(n), timings.ratio(OURS, SORT), *slower, *memory
            table.rows.append(row)
    table.rows.sort(key=lambda row: list(times).index(row[0]))
    return [table, _fitted(times)]


def _raced(n: int, y: np.ndarray, rounds: int) -> tuple[Race, tuple[float, float | None]]:
    """Times of ours, of sorting and, where it fits, of the definition; memory of both."""
    levels = (y - y.mean()) / max(y.std(), 1e-12)
    scores = different(n, levels)
    calls: dict[str, Callable[[], object]] = {
        OURS: asked(PositionHinge().bind(y, np.array([0, n])), scores),
        SORT: lambda: np.argsort(next(scores)),
    }
    if n <= LONGEST_MATRIX:
        _check(next(scores), y)
        calls[MATRIX] = lambda: _by_definition(next(scores), y)
        with switched(NEVER):
            calls[LOOP] = asked(PositionHinge().bind(y, np.array([0, n])), scores)
    timings = race(calls, title=f"a list of {n:,}", rounds=rounds if n <= LONGEST_MATRIX else min(rounds, 3))
    memory = peak(renewed(PositionHinge(), y, scores))
    return timings, (memory / (8 * n), peak(calls[MATRIX]) / (8 * n) if MATRIX in calls else None)


def _by_definition(scores: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and gradient, from a matrix of all pairs."""
    levels, codes = np.unique(y, return_inverse=True)
    moved = len(levels) / (len(levels) - codes) - scores  # m / rank label - score
    slack = np.maximum(np.subtract.outer(moved, moved), 0.0)
    slack[np.less_equal.outer(codes, codes)] = 0.0
    short = slack > 0.0
    return float(slack.sum()), (short.sum(axis=0) - short.sum(axis=1)).astype(np.float64)


def _check(scores: np.ndarray, y: np.ndarray) -> None:
    """Raise if the numbers differ: speeds of different numbers are not compared."""
    (value,), grad = PositionHinge()(scores, y)
    expected, slopes = _by_definition(scores, y)
    if not (abs(value - expected) <= SAME * expected and np.allclose(grad, slopes, rtol=SAME, atol=SAME)):
        raise SystemExit(f"the position hinge of {len(y)} items is {value!r}, by definition {expected!r}")


def _fitted(times: dict[str, dict[int, Race]]) -> Table:
    """Slopes of log time against log n, beside that of n log n itself."""
    table = Table(
        "The position hinge of one list: fitted growth",
        "Slope of log time against log n, by least squares over the lengths of the table above beyond "
        f"{SWEPT:,} items, where ours sweeps any labels, and of n log2 n over the same lengths; then "
        f"the highest from one length to the next. {MATRIX}: over the lengths where it was run. 1 is linear, "
        "2 every pair.",
        ("labels", OURS, SORT, "n log2 n", MATRIX, "ours, steepest step", f"{SORT}, steepest step"),
    )
    for name, races in times.items():
        swept = [n for n in races if n > SWEPT] or list(races)  # a quick run has none
        lengths = np.array(swept, dtype=np.float64)
        ours, sort = (np.array([races[n].median(name) for n in swept]) for name in (OURS, SORT))
        short = np.array([n for n, timings in races.items() if MATRIX in timings.seconds], dtype=np.float64)
        matrix = np.array([races[int(n)].median(MATRIX) for n in short])
        ideal = lengths * np.log2(lengths)
        slopes = *(slope(lengths, some) for some in (ours, sort, ideal)), slope(short, matrix)
        table.rows.append((name, *slopes, _steepest(lengths, ours), _steepest(lengths, sort)))
    return table


def slope(lengths: np.ndarray, seconds: np.ndarray) -> float:
    """The exponent of a power law, by least squares."""
    return float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])


def _steepest(lengths: np.ndarray, seconds: np.ndarray) -> float:
    """The highest exponent from one length to the next."""
    points = zip(np.log(lengths), np.log(seconds), strict=True)
    return float(max((top - low) / (b - a) for (a, low), (b, top) in pairwise(points)))
