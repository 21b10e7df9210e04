"""Whether tests and intervals keep their word, on values that look like per-query metrics: by simulation."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from benchmarks.interval_coverage import coverage, within
from benchmarks.significance_peers import agreement, cost, race_with_scipy
from benchmarks.tables import Table
from benchmarks.timing import watched
from concordant.evaluation import benjamini_hochberg, bonferroni, holm
from concordant.evaluation.corrections import max_t
from concordant.evaluation.effects import detectable_effect
from concordant.evaluation.flips import sign_flips

LEVEL, N_FLIPS = 0.05, 1999
AT_ONCE = 50  # experiments whose queries are flipped by the same random signs
Population = Callable[[np.random.Generator, int, int, int], np.ndarray]
# (rng, queries, experiments, models) -> values of those three axes; all models have the same mean


def normal(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Normal differences, easy and hard queries."""
    return rng.beta(2, 2, (n, trials, 1)) + 0.1 * rng.normal(size=(n, trials, k))


def ndcg_like(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Skewed, a quarter of queries 0 for all, a fifth tied: easy and hard queries are so for all models."""
    ease = rng.beta(0.8, 1.4, (n, trials, 1))
    values = np.clip(ease + 0.12 * rng.standard_t(4, (n, trials, k)), 0, 1)
    values = np.where(rng.random((n, trials, 1)) < 0.2, ease, values)
    return np.where(rng.random((n, trials, 1)) < 0.25, 0.0, values)


def reciprocal_rank(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """1, 1/2, 1/3, ... or 0; half of the queries have the same rank in all models."""
    worth, shares = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 7, 0]), [0.3, 0.2, 0.1, 0.1, 0.1, 0.2]
    own, shared = (rng.choice(worth, (n, trials, size), p=shares) for size in (k, 1))
    return np.where(rng.random((n, trials, 1)) < 0.5, shared, own)


def precision(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Tenths, many of them tied."""
    return rng.binomial(10, rng.beta(0.7, 2.0, (n, trials, 1)), (n, trials, k)) / 10


def heavy_tails(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Student's t with 2.1 degrees of freedom: a variance, just so, and no further moment."""
    return 0.05 * rng.standard_t(2.1, (n, trials, k))


def rare_losses(rng: np.random.Generator, n: int, trials: int, k: int) -> np.ndarray:
    """Every other model wins a little on five queries of six and loses much on the sixth: same mean."""
    noise = 0.02 * rng.normal(size=(n, trials, k))
    trade = np.where(rng.random((n, trials, 1)) < 1 / 6, -0.25, 0.05)
    return rng.beta(2, 2, (n, trials, 1)) + noise + trade * (np.arange(k) % 2)


POPULATIONS: dict[str, Population] = {
    "normal": normal, "ndcg": ndcg_like, "reciprocal rank": reciprocal_rank, "precision@10": precision,
    "heavy tails": heavy_tails, "rare losses": rare_losses,
}  # fmt: skip


def run(*, quick: bool) -> list[Table]:
    """All tables."""
    return [
        agreement(5 if quick else 200),
        errors(100 if quick else 10_000),
        families(10 if quick else 1500),
        coverage(50 if quick else 4000),
        powers(100 if quick else 4000),
        race_with_scipy(quick=quick),
        cost(quick=quick),
    ]


def gaps_of(draw: Population, seed: int, n: int, trials: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of experiments: the values of two models, and their differences; a column an experiment."""
    rng = np.random.default_rng(seed)
    for _ in range(trials // AT_ONCE):
        values = draw(rng, n, AT_ONCE, 2)
        yield values, values[:, :, 1] - values[:, :, 0]


def errors(trials: int) -> Table:
    """How often each test finds a difference where the means are equal."""
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
    for place, (name, n) in enumerate(watched(cells, "type-I error")):
        found = np.zeros(4)
        for seed, (values, gaps) in enumerate(gaps_of(POPULATIONS[name], place, n, trials)):
            p_values = (
                stats.ttest_1samp(gaps, 0.0, axis=0).pvalue,  # which `t_test` is, column by column
                sign_flips(gaps, N_FLIPS, seed),
                stats.wilcoxon(gaps, axis=0, method="asymptotic").pvalue,
                stats.ttest_ind(values[:, :, 0], values[:, :, 1], axis=0).pvalue,
            )
            found += [int((p <= LEVEL).sum()) for p in p_values]
        t, flips, ranks, unpaired = (found / trials).tolist()
        told = [within(share, trials, LEVEL) for share in (t, flips)]
        table.rows.append((name, n, t, told[0], flips, told[1], ranks, unpaired))
    return table


def families(trials: int) -> Table:
    """How often any equal pair is called different, and how many different ones are found."""
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
    for place, (name, n) in enumerate(watched(cells, "family-wise error")):
        wrong, right = {}, {}
        for moved in (False, True):
            counts = corrected(POPULATIONS[name], 100 + place, n, trials, moved=moved)
            wrong[moved] = {key: count[0] / trials for key, count in counts.items()}
            right = {key: count[1] / trials / 5 for key, count in counts.items()}
        for key, found in right.items():
            told = [(wrong[moved][key], within(wrong[moved][key], trials, LEVEL)) for moved in (False, True)]
            table.rows.append((name, n, key, *told[0], *told[1], found))
    return table


def corrected(draw: Population, seed: int, n: int, trials: int, *, moved: bool) -> dict[str, np.ndarray]:
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
            found = p_values <= LEVEL
            told = [bool(found[equal].any()), int(found[~equal].sum())]
            counts[key] = counts.get(key, np.zeros(2)) + told
    return counts


def powers(trials: int) -> Table:
    """How often the smallest detectable difference is detected."""
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
    for place, (name, n) in enumerate(watched(cells, "power")):
        draw, effect = POPULATIONS[name], detectable_effect(n, LEVEL, 0.8)
        if name not in spreads:
            spreads[name] = float(np.diff(draw(np.random.default_rng(0), 500 * trials, 1, 2), axis=2).std())
        found = np.zeros(2)
        for seed, (_, gaps) in enumerate(gaps_of(draw, 200 + place, n, trials)):
            moved = gaps + effect * spreads[name]
            p_values = stats.ttest_1samp(moved, 0.0, axis=0).pvalue, sign_flips(moved, N_FLIPS, seed)
            found += [int((p <= LEVEL).sum()) for p in p_values]
        t, flips = (found / trials).tolist()
        table.rows.append((name, n, effect, t, flips, within(t, trials, 0.8)))
    return table
