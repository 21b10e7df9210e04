"""Coverage of intervals of means: those of the library beside the usual ones, by simulation."""

from collections.abc import Callable

import numpy as np
from scipy import special, stats

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import watched
from concordant.evaluation.effects import effect_interval, percentile_t, resamples, spreads

KINDS = ("Student", "percentile", "BCa", "percentile-t", "symmetric percentile-t")
AT_ONCE = 200  # experiments that are resampled together
N_BOOT = 999
WORTH = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 7, 0])


def _zero_inflated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Differences of which seven in ten are 0 and more of the rest are gains."""
    sizes = rng.beta(0.5, 2, shape) * np.where(rng.random(shape) < 0.6, 1, -1)
    return np.where(rng.random(shape) < 0.7, 0.0, sizes)


def _reciprocal_rank(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Differences of two reciprocal ranks, the first of which is better."""
    first, second = (
        rng.choice(WORTH, shape, p=shares)
        for shares in ([0.35, 0.2, 0.1, 0.1, 0.1, 0.15], [0.3, 0.2, 0.1, 0.1, 0.1, 0.2])
    )
    return first - second


SAMPLES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "difference, normal": lambda rng, shape: rng.normal(0.02, 0.1, shape),
    "difference, reciprocal rank": _reciprocal_rank,
    "difference, zero-inflated": _zero_inflated,
    "difference, heavy tails": lambda rng, shape: 0.02 + 0.05 * rng.standard_t(2.1, shape),
    "difference, rare losses": lambda rng, shape: (
        np.where(rng.random(shape) < 1 / 6, -0.25, 0.05) + 0.02 * rng.normal(size=shape)
    ),
    "difference, one-sided": lambda rng, shape: 0.2 * rng.gamma(0.3, 1, shape),
    "mean, ap": lambda rng, shape: np.where(rng.random(shape) < 0.3, 0.0, rng.beta(0.6, 1.8, shape)),
}
MEANS = {"difference, heavy tails": 0.02}  # where draws tell too little of it


def coverage(trials: int) -> Table:
    """Shares of the intervals that hold the mean."""
    table = Table(
        "Coverage of 95 % intervals",
        f"Share of {trials:,} experiments in which the interval of a mean holds it, {N_BOOT} resamples. "
        "`difference` is of two models; `mean` of one. The library gives symmetric percentile-t, and `is` "
        "says where that share stands beside the interval that holds 99 % of such shares if the true one is "
        "0.95. `effect`: the noncentral-t interval of the effect size, on a quarter of the experiments; "
        f"exact for normal differences only. The truth is the mean of {1000 * trials:,} draws, or known.",
        ("values", "queries", *KINDS, "is", "effect"),
    )
    for number, (name, draw) in enumerate(watched(SAMPLES.items(), "coverage")):
        rng = np.random.default_rng(300 + number)
        many = draw(rng, (1000 * trials,))
        truth = MEANS.get(name, float(many.mean()))
        for n in (10, 25, 100, 1000):
            shares, effects = _hit_shares(draw, rng, n, trials, truth, truth / float(many.std()))
            table.rows.append((name, n, *shares, within(shares[-1], trials, 0.95), effects))
    table.rows.append(("distance from 0.95, on average", None, *_distances(table), "", None))
    return table


def _distances(table: Table) -> list[float]:
    """Distance of the shares of each kind to 0.95, on average over the rows."""
    shares = np.array([row[2 : 2 + len(KINDS)] for row in table.rows], dtype=float)
    return np.abs(shares - 0.95).mean(axis=0).tolist()


def within(share: float, trials: int, expected: float) -> str:
    """Place a share beside the interval in which 99 % of shares lie if the expected one is true."""
    low, high = (float(bound) / trials for bound in stats.binom.interval(0.99, trials, expected))
    position = "above" if share > high else "below" if share < low else "within"
    return f"{position} {low:.3f} to {high:.3f}"


def _hit_shares(
    draw: Callable, rng: np.random.Generator, n: int, trials: int, truth: float, effect: float
) -> tuple[list[float], float]:
    """The share of intervals of each kind that hold the mean, and of those of the effect that hold it."""
    step = min(AT_ONCE, trials)
    hits, effects = np.zeros(len(KINDS)), 0
    for _ in range(trials // step):
        columns = draw(rng, (n, step))
        ends = _intervals(columns, N_BOOT, int(rng.integers(2**31)))
        hits += [((low <= truth) & (truth <= high)).sum() for low, high in ends]
        effects += sum(_holds(column, effect) for column in columns.T[::4])
    return (hits / trials).tolist(), effects / (trials // step) / len(columns.T[::4])


def _holds(column: np.ndarray, effect: float) -> bool:
    """True if the interval of the effect size holds it; equal values have none."""
    spread = float(spreads(column[:, None])[0])
    if not spread:
        return False
    low, high = effect_interval(float(column.mean()) / spread * len(column) ** 0.5, len(column), 0.95)
    return low <= effect <= high


def _intervals(columns: np.ndarray, n_boot: int, seed: int) -> list[np.ndarray]:
    """Ends of the intervals of each kind; the last is the library's, the others are written here."""
    n, means, spread = len(columns), columns.mean(axis=0), columns.std(axis=0, ddof=1)
    centred, error = columns - means, spread / n**0.5
    counts = np.vstack(list(resamples(n, n_boot, seed))) / n
    drawn, squares = counts @ centred, counts @ centred**2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(drawn * np.sqrt((n - 1) / np.maximum(squares - drawn**2, 1e-14 * squares)))
    student = special.stdtrit(n - 1, 0.975) * error
    ends = np.quantile(t, [0.975, 0.025], axis=0)
    return [
        np.array([means - student, means + student]),
        means + np.quantile(drawn, [0.025, 0.975], axis=0),
        means + _bca(centred, drawn),
        means - ends * np.where(spread > 0, error, 0.0),
        percentile_t(columns, 0.95, n_boot, seed),
    ]


def _bca(centred: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Ends of the bias-corrected and accelerated interval around the mean (Efron 1987)."""
    n_boot = len(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        lean = np.nan_to_num((centred**3).sum(axis=0) / (6 * (centred**2).sum(axis=0) ** 1.5))
    below = ((drawn < 0).mean(axis=0) + (drawn <= 0).mean(axis=0)) / 2
    shift = special.ndtri(np.clip(below, 0.5 / n_boot, 1 - 0.5 / n_boot))
    moved = [shift + z for z in special.ndtri([0.025, 0.975])]
    shares = [special.ndtr(shift + z / (1 - lean * z)) for z in moved]
    places = [np.clip((share * n_boot).astype(int), 0, n_boot - 1) for share in shares]
    ordered = np.sort(drawn, axis=0)
    return np.array([np.take_along_axis(ordered, index[None], axis=0)[0] for index in places])
