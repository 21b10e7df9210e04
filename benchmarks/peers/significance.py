"""Tests of the library beside those of scipy: the same numbers, and the time that they take."""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy import stats

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race, watched
from concordant.evaluation import benjamini_hochberg, compare, paired
from concordant.evaluation.effects import percentile_t
from concordant.evaluation.significance import sign_flips

CHUNK = 250  # of scipy's resamples at a time, without which it holds all of them


def agreement(cases: int) -> Table:
    """Differences between our numbers and scipy's on the same data."""
    table = Table(
        "Agreement with scipy",
        f"{cases} random comparisons each, of 2 to 60 queries, half of them rounded to tenths so that there "
        "are ties and zeros: the largest difference. Randomisation on 12 queries, all 4,096 flips in both. "
        "Random flips and resamples cannot agree exactly: there the difference is given in standard errors "
        "of the draws (two sets of 10,000 flips), and as a ratio of widths (two sets of 20,000 resamples).",
        ("ours", "scipy", "largest difference", "unit"),
    )
    for row in watched(ROWS, "agreement"):
        name, peer, unit, difference = row
        rng = np.random.default_rng(6)
        worst = max(
            difference(rng, case) for case in range(cases if "random" not in unit else -(-cases // 10))
        )
        table.rows.append((name, peer, worst, unit.removesuffix(" (random)")))
    return table


def _two(rng: np.random.Generator, case: int, n: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values of two rankers."""
    values = rng.beta(0.8, 1.4, (2, n or int(rng.integers(2, 61))))
    first, second = values.round(1) if case % 2 else values
    second[0] += 0.05  # never all the same
    return first, second


def _t_test_gap(rng: np.random.Generator, case: int) -> float:
    """Difference of p-values."""
    a, b = _two(rng, case)
    return abs(paired(a, b, n_flips=1).t_test - float(stats.ttest_rel(a, b).pvalue))


def _mean_gap(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean difference, for scipy."""
    return np.mean(x - y, axis=axis)


def _exact_gap(rng: np.random.Generator, case: int) -> float:
    """Difference of p-values over all flips."""
    a, b = _two(rng, case, 12)
    real = stats.permutation_test((a, b), _mean_gap, permutation_type="samples", n_resamples=np.inf)
    return abs(paired(a, b, n_flips=4096).permutation - float(real.pvalue))


def _random_gap(rng: np.random.Generator, case: int) -> float:
    """Difference of p-values over random flips, in standard errors."""
    a, b = _two(rng, case, 60)
    b = b - b.mean() + a.mean() + 0.03
    real = stats.permutation_test(
        (a, b), _mean_gap, permutation_type="samples", n_resamples=10_000, batch=CHUNK, rng=case
    ).pvalue
    ours = paired(a, b, seed=case).permutation
    share = (ours + float(real)) / 2
    variance = share * (1 - share) + 2 * share * (1 - share / 2)  # scipy doubles the smaller of two tails
    return abs(ours - float(real)) / max(np.sqrt(variance / 10_000), 1e-4)


def _wilcoxon_gap(rng: np.random.Generator, case: int) -> float:
    """Difference of p-values."""
    a, b = _two(rng, case, 20)
    (pair,) = compare({"a": a, "b": b}, n_flips=1, n_boot=1, wilcoxon=True).pairs
    return abs(pair.wilcoxon - float(stats.wilcoxon(b, a).pvalue))


def _discovery_gap(rng: np.random.Generator, case: int) -> float:
    """Difference of adjusted p-values."""
    p_values = rng.random(2 + case % 40) ** 3
    return float(np.abs(benjamini_hochberg(p_values) - stats.false_discovery_control(p_values)).max())


def _width_gap(rng: np.random.Generator, case: int) -> float:
    """Widths of intervals, as a ratio less 1: ours, and that of scipy's resampled t."""
    values = _two(rng, case, 30)[0]
    centre, error = values.mean(), values.std(ddof=1) / np.sqrt(30)

    def size(sample: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.abs(sample.mean(axis) - centre) / (sample.std(axis, ddof=1) / np.sqrt(30))

    real = stats.bootstrap((values,), size, n_resamples=20_000, method="percentile", batch=2000, rng=case)
    low, high = percentile_t(values[:, None], 0.95, 20_000, case + 1000)[:, 0]  # other draws than scipy's
    return abs((high - low) / (2 * error * np.quantile(real.bootstrap_distribution, 0.95)) - 1.0)


Difference = Callable[[np.random.Generator, int], float]
ROWS: tuple[tuple[str, str, str, Difference], ...] = (
    ("t_test", "ttest_rel", "p", _t_test_gap),
    ("permutation, all flips", "permutation_test, exact", "p", _exact_gap),
    ("permutation, random flips", "permutation_test", "standard errors (random)", _random_gap),
    ("wilcoxon", "wilcoxon", "p (random)", _wilcoxon_gap),
    ("benjamini_hochberg", "false_discovery_control", "p", _discovery_gap),
    ("interval", "bootstrap of the size of t", "ratio of widths, less 1 (random)", _width_gap),
)


def race_with_scipy(*, quick: bool) -> Table:
    """Time of a randomisation test, beside scipy's."""
    n_flips = 100 if quick else 10_000
    table = Table(
        "Randomisation test, beside scipy",
        f"One pair, {n_flips:,} random flips: median seconds over rounds in which both run, in one thread, "
        f"and the ratio within rounds. scipy in batches of {CHUNK}: else it holds all flips at once.",
        ("queries", "sign_flips", "permutation_test", "times as long"),
    )
    for n in (50, 500) if quick else (50, 1000, 10_000):
        first, second = np.random.default_rng(7).random((2, n))
        calls = {
            "ours": lambda x=first, y=second: sign_flips((x - y)[:, None], n_flips, 0),
            "scipy": lambda x=first, y=second: stats.permutation_test(
                (x, y), _mean_gap, permutation_type="samples", n_resamples=n_flips, batch=CHUNK,
                vectorized=True, rng=0,
            ),
        }  # fmt: skip
        times = race(calls, title=f"{n} queries", rounds=1 if quick else 3, most=1)
        row = times.median("ours"), times.median("scipy"), times.ratio("scipy", "ours")
        table.rows.append((n, *row))
    return table


def cost(*, quick: bool) -> Table:
    """Time and memory of a large comparison."""
    n_draws = 100 if quick else 10_000
    table = Table(
        "Cost of a comparison",
        f"`compare` of all pairs, {n_draws:,} flips and resamples: core seconds, and the most memory numpy "
        "held at a time, in MB. With gaps each model lacks 1 % of the queries, others than its neighbours, "
        "and each pair is resampled on its own.",
        ("queries", "models", "pairs", "gaps", "seconds", "MB"),
    )
    shapes = [(1000, 2, 0.0), (1000, 10, 0.0), (1000, 10, 0.01), (10_000, 10, 0.0), (100_000, 5, 0.0)]
    for n, k, gaps in watched(shapes, "cost"):
        rng = np.random.default_rng(5)
        grid = rng.beta(0.8, 1.4, (n // 100 if quick else n, k))
        grid[rng.random(grid.shape) < gaps] = np.nan
        values = {f"model {i}": column for i, column in enumerate(grid.T)}
        tracemalloc.start()
        start = time.process_time()
        compare(values, n_flips=n_draws, n_boot=n_draws)
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        table.rows.append((len(grid), k, k * (k - 1) // 2, "yes" if gaps else "no", seconds, peak / 1e6))
    return table
