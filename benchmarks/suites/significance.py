"""Simulations: how often tests and intervals keep their word, on values that look like per-query metrics."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from benchmarks.peers.significance import agreement, cost, race_with_scipy
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import watched
from benchmarks.suites.interval_coverage import coverage, within
from concordant.evaluation import benjamini_hochberg, bonferroni, holm
from concordant.evaluation.effects import detectable_effect
from concordant.evaluation.significance import max_t, sign_flips

LEVEL, N_FLIPS = 0.05, 1999
AT_ONCE = 50  # experiments whose queries are flipped by the same random signs
Population = Callable[[np.random.Generator, int, int, int], np.ndarray]
# (rng, queries, experiments, models) -> values of those three axes; all models have the same mean


def _normal(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Normal differences, easy and hard queries."""
    return rng.beta(2, 2, (n, trials, 1)) + 0.1 * rng.normal(size=(n, trials, k))


def _ndcg_like(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Skewed, a quarter of queries 0 for all, a fifth tied: easy and hard queries are so for all models."""
    ease = rng.beta(0.8, 1.4, (n, trials, 1))
    values = np.clip(ease + 0.12 * rng.standard_t(4, (n, trials, k)), 0, 1)
    values = np.where(rng.random((n, trials, 1)) < 0.2, ease, values)
    return np.where(rng.random((n, trials, 1)) < 0.25, 0.0, values)


def _reciprocal_rank(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """1, 1/2, 1/3, ... or 0; half of the queries have the same rank in all models."""
    worth, shares = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 7, 0]), [0.3, 0.2, 0.1, 0.1, 0.1, 0.2]
    separate, shared = (rng.choice(worth, (n, trials, size), p=shares) for size in (k, 1))
    return np.where(rng.random((n, trials, 1)) < 0.5, shared, separate)


def _precision(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Tenths, many of them tied."""
    return rng.binomial(10, rng.beta(0.7, 2.0, (n, trials, 1)), (n, trials, k)) / 10


def _heavy_tails(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Student's t with 2.1 degrees of freedom: a variance, just so, and no further moment."""
    return 0.05 * rng.standard_t(2.1, (n, trials, k))


def _rare_losses(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Every other model wins a little on five queries of six and loses much on the sixth: same mean."""
    noise = 0.02 * rng.normal(size=(n, trials, k))
    trade = np.where(rng.random((n, trials, 1)) < 1 / 6, -0.25, 0.05)
    return rng.beta(2, 2, (n, trials, 1)) + noise + trade * (np.arange(k) % 2)


POPULATIONS: dict[str, Population] = {
    "normal": _normal, "ndcg": _ndcg_like, "reciprocal rank": _reciprocal_rank, "precision@10": _precision,
    "heavy tails": _heavy_tails, "rare losses": _rare_losses,
}  # fmt: skip


def run(*, quick: bool) -> list[Table]:
    """All tables."""
    return [
        agreement(5 if quick else 200),
        _errors(100 if quick else 10_000),
        _families(10 if quick else 1500),
        coverage(50 if quick else 4000),
        _powers(100 if quick else 4000),
        race_with_scipy(quick=quick),
        cost(quick=quick),
    ]


def _gaps_of(draw: Population, seed: int, n: int, trials: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of experiments: the values of two models, and their differences; a column an experiment."""
    rng = np.random.default_rng(seed)
    for _ in range(trials // AT_ONCE):
        values = draw(rng, n, AT_ONCE, 2)
        yield values, values[:, :, 1] - values[:, :, 0]


def _errors(trials: int) -> Table:
    """Share of experiments in which a test finds a difference where the means are equal."""
    table = Table(
        "Type-I error",
        f"Share of {trials:,} experiments with two models of equal mean in which p is at most {LEVEL}; "
        f"randomisation with {N_FLIPS:,} flips, or all where there are no more. `is`: where the share "
        "on its left stands beside the interval that holds 99 % of such shares if the true one is the level. "
        "The unpaired t-test is wrong here, on purpose: it wastes what the queries have in common. `rare "
        "losses` breaks what the sign-flip and signed-rank tests assume (symmetric differences), not that "
        "the means are equal. Wilcoxon by scipy's normal approximation.",
        (
            "population", "queries", "t-test", "is", "randomisation", "is ", "Wilcoxon", "unpaired (wrong)",
        ),
    )  # fmt: skip
    cells = [(name, n) for name in POPULATIONS for n in (10, 25, 100, 1000)]
    for number, (name, n) in enumerate(watched(cells, "type-I error")):
        counts = np.zeros(4)
        for seed, (values, gaps) in enumerate(_gaps_of(POPULATIONS[name], number, n, trials)):
            p_values = (
                stats.ttest_1samp(gaps, 0.0, axis=0).pvalue,  # which `t_test` is, column by column
                sign_flips(gaps, N_FLIPS, seed),
                stats.wilcoxon(gaps, axis=0, method="asymptotic").pvalue,
                stats.ttest_ind(values[:, :, 0], values[:, :, 1], axis=0).pvalue,
            )
            counts += [int((p <= LEVEL).sum()) for p in p_values]
        t, flips, ranks, unpaired = (counts / trials).tolist()
        verdicts = [within(share, trials, LEVEL) for share in (t, flips)]
        table.rows.append((name, n, t, verdicts[0], flips, verdicts[1], ranks, unpaired))
    return table


def _families(trials: int) -> Table:
    """Shares of experiments with an equal pair called different, and of different pairs found."""
    table = Table(
        "Family-wise error",
        f"Four models, six pairs, {trials:,} experiments: share in which any pair of equal mean is found "
        f"different at {LEVEL}. `all equal`: no pair differs. `two equal`: two models are moved by 0.06 and "
        "0.12, one pair is equal; `found` is the share of the five others that are found. `bh` promises less "
        "than the others, `none` nothing.",
        (
            "population", "queries", "correction", "error, all equal", "is", "error, two equal", "is ",
            "found, two equal",
        ),
    )  # fmt: skip
    cells = [(name, n) for name in POPULATIONS for n in (10, 50)]
    for number, (name, n) in enumerate(watched(cells, "family-wise error")):
        wrong, right = {}, {}
        for moved in (False, True):
            counts = _corrected(POPULATIONS[name], 100 + number, n, trials, moved=moved)
            wrong[moved] = {key: count[0] / trials for key, count in counts.items()}
            right = {key: count[1] / trials / 5 for key, count in counts.items()}
        for key, share in right.items():
            verdicts = [
                (wrong[moved][key], within(wrong[moved][key], trials, LEVEL)) for moved in (False, True)
            ]
            table.rows.append((name, n, key, *verdicts[0], *verdicts[1], share))
    return table


def _corrected(draw: Population, seed: int, n: int, trials: int, *, moved: bool) -> dict[str, np.ndarray]:
    """For each correction: experiments with a false finding, and true findings."""
    corrections = {"none": np.asarray, "bonferroni": bonferroni, "holm": holm, "bh": benjamini_hochberg}
    pairs = [(j, i) for i in range(4) for j in range(i + 1, 4)]
    shift = np.array([0.0, 0.0, 0.06, 0.12]) * moved
    equal = np.array([shift[i] == shift[j] for j, i in pairs])
    rng, counts = np.random.default_rng(seed), {}
    for trial in range(trials):
        values = draw(rng, n, 1, 4)[:, 0] + shift
        gaps = np.column_stack([values[:, j] - values[:, i] for j, i in pairs])
        alone = sign_flips(gaps, N_FLIPS, trial)
        adjusted = {key: correct(alone) for key, correct in corrections.items()}
        adjusted["max_t"] = np.maximum(max_t(gaps, N_FLIPS, trial), alone)  # as `compare` does
        for key, p_values in adjusted.items():
            is_different = p_values <= LEVEL
            findings = [bool(is_different[equal].any()), int(is_different[~equal].sum())]
            counts[key] = counts.get(key, np.zeros(2)) + findings
    return counts


def _powers(trials: int) -> Table:
    """Share of experiments in which the smallest detectable difference is detected."""
    table = Table(
        "Power at the smallest detectable difference",
        f"Differences of two models moved so that their mean is what `detectable` names for their true "
        f"spread; share of {trials:,} experiments in which p is at most {LEVEL}. It should be the power that "
        "was asked for, 0.8; the formula is exact for the t-test of normal differences. Heavy tails have a "
        "spread that samples seldom show: there `detectable` of the true spread is too cautious.",
        ("population", "queries", "detectable / spread", "t-test", "randomisation", "t-test is"),
    )
    cells = [(name, n) for name in POPULATIONS for n in (10, 25, 100, 1000)]
    spreads: dict[str, float] = {}
    for number, (name, n) in enumerate(watched(cells, "power")):
        draw, effect = POPULATIONS[name], detectable_effect(n, LEVEL, 0.8)
        if name not in spreads:
            spreads[name] = float(np.diff(draw(np.random.default_rng(0), 500 * trials, 1, 2), axis=2).std())
        counts = np.zeros(2)
        for seed, (_, gaps) in enumerate(_gaps_of(draw, 200 + number, n, trials)):
            moved = gaps + effect * spreads[name]
            p_values = stats.ttest_1samp(moved, 0.0, axis=0).pvalue, sign_flips(moved, N_FLIPS, seed)
            counts += [int((p <= LEVEL).sum()) for p in p_values]
        t, flips = (counts / trials).tolist()
        table.rows.append((name, n, effect, t, flips, within(t, trials, 0.8)))
    return table
