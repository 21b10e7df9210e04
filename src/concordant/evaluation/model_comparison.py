"""Comparison of rankers on the same queries: differences, their uncertainty, and detectable differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from concordant.evaluation.effects import (
    N_BOOT,
    detectable_effect,
    effect_interval,
    effect_size,
    mean_intervals,
    queries_needed,
    spreads,
)
from concordant.evaluation.model_comparison_result import (
    ComparisonSettings,
    Interval,
    ModelComparison,
    ModelMean,
    PairComparison,
)
from concordant.evaluation.significance import (
    CORRECTIONS,
    Paired,
    check_named,
    from_gaps,
    gaps_between,
    max_t,
    mean_of,
    sign_flips,
)
from concordant.exceptions import EmptyDataError, ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray


def compare(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    level: float = 0.05,
    confidence: float = 0.95,
    correction: str = "max_t",
    n_flips: int = 10_000,
    n_boot: int = N_BOOT,
    power: float = 0.8,
    tie: float = 1e-9,
    wilcoxon: bool = False,
    seed: int = 0,
    greater_is_better: bool = True,
) -> ModelComparison:
    """Compare rankers on the same queries: all with the baseline, or each with every one before it.

    Each pair is tested on the queries where both are defined: by the paired t-test and by the randomisation
    (sign-flip) test, which agree on all but the fewest queries. The correction raises the p-values of the
    latter. Intervals are symmetric percentile-t: among percentile, BCa and percentile-t intervals these came
    closest to their confidence on skewed metrics with many ties (`python -m benchmarks significance`); each
    holds for its pair alone, not for all at once.

    With one query, p-values are 1 and there is no interval. Without a difference on any query they are 1 and
    the interval is 0. A difference that is the same on all queries has no spread: the p-value of its t-test
    is 0, its interval is the difference, its effect is infinite, and `detectable` is NaN.

    Parameters
    ----------
    values
        Name of each ranker -> its value on each query, the queries in the same order; NaN where undefined.
    baseline
        The ranker that all others are compared with. None: all pairs.
    level
        Adjusted p-values below it are significant; also the level of `detectable` and `queries_needed`.
    confidence
        Confidence of all intervals.
    correction
        `"max_t"`: the largest statistic of all pairs under joint sign-flips; it knows how the pairs depend on
        one another, and rejects more than `"holm"` and `"bonferroni"`, which do not. All three
        bound the probability of any false finding; `"bh"` the share of false ones among the findings;
        `"none"` nothing.
    n_flips, n_boot
        Random choices of signs, and resamples.
    power
        Probability of finding a difference that `detectable` and `queries_needed` ask for.
    tie
        Queries whose difference is no larger count as ties; tests use the differences as they are.
    wilcoxon
        True to add the signed-rank test. It tests whether differences are symmetric around 0, not whether
        their mean is 0, and is wrong if they are skewed.
    seed
        Equal seeds give equal results.
    greater_is_better
        False for losses.

    References
    ----------
    Smucker, Allan and Carterette (2007), A comparison of statistical significance tests for information
    retrieval evaluation. Carterette (2012), Multiple testing in statistical analysis of systems-based
    information retrieval experiments. Sakai (2014), Statistical reform in information retrieval? Fuhr (2017),
    Some common mistakes in IR evaluation. Urbano, Lima and Hanjalic (2019), Statistical significance testing
    in information retrieval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> old = rng.beta(1, 2, 200)
    >>> new = np.clip(old + 0.1 * rng.normal(size=200) + 0.03, 0, 1)
    >>> result = compare({"old": old, "new": new})
    >>> pair = result.pairs[0]
    >>> pair.model, pair.against, round(pair.difference, 3), pair.significant
    ('new', 'old', 0.029, True)
    """
    settings = ComparisonSettings(
        baseline,
        level,
        confidence,
        correction,
        n_flips,
        n_boot,
        power,
        tie,
        wilcoxon,
        seed,
        greater_is_better,
    )
    columns = _check_models(values)
    names = _list_pairs(list(columns), settings.baseline)
    table = np.column_stack(list(columns.values()))
    differences = np.column_stack(
        [gaps_between(columns[model], columns[against]) for model, against in names]
    )
    low, high = mean_intervals(
        np.hstack([table, differences]), settings.confidence, settings.n_boot, settings.seed
    )
    intervals = list(zip(low.tolist(), high.tolist(), strict=True))
    models = zip(columns.items(), intervals[: len(columns)], strict=True)
    flipped = sign_flips(np.nan_to_num(differences), settings.n_flips, settings.seed).tolist()
    tests = [from_gaps(gaps, p_value) for gaps, p_value in zip(differences.T, flipped, strict=True)]
    pairs = zip(names, differences.T, tests, intervals[len(columns) :], strict=True)
    entries = [_compare_pair(*pair, settings) for pair in pairs]
    adjusted = _correct_p_values(flipped, differences, settings)
    return ModelComparison(
        models=tuple(_model_mean(name, column, interval) for (name, column), interval in models),
        pairs=tuple(
            PairComparison(**pair, adjusted=p_value, significant=p_value < settings.level)
            for pair, p_value in zip(entries, adjusted, strict=True)
        ),
        n_queries=len(table),
        settings=settings,
    )


def _check_models(values: Mapping[str, ArrayLike]) -> dict[str, FloatArray]:
    """Check one column for each of at least two rankers, all of one length, which is not 0."""
    columns = check_named(values)
    if len(columns) < 2:
        raise ParameterError("values", list(columns), "the values of at least two rankers")
    if not len(next(iter(columns.values()))):
        raise EmptyDataError("values")
    return columns


def _list_pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    """List the pairs to compare: all others with the baseline, or each with every ranker before it.

    >>> _list_pairs(["a", "b", "c"], None)
    [('b', 'a'), ('c', 'a'), ('c', 'b')]
    """
    if baseline is None:
        return [(names[j], names[i]) for i, j in itertools.combinations(range(len(names)), 2)]
    if baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    return [(name, baseline) for name in names if name != baseline]


def _model_mean(name: str, column: FloatArray, interval: Interval) -> ModelMean:
    return ModelMean(name, mean_of(column), interval, int((~np.isnan(column)).sum()))


def _compare_pair(
    names: tuple[str, str],
    differences: FloatArray,
    test: Paired,
    interval: Interval,
    settings: ComparisonSettings,
) -> dict[str, Any]:
    """Compute the entry of a pair before any correction for others."""
    model, against = names
    defined = differences[~np.isnan(differences)]
    sign = 1.0 if settings.greater_is_better else -1.0
    wins, losses = (int((side * defined > settings.tie).sum()) for side in (sign, -sign))
    ahead = sign * test.difference
    return {
        "model": model,
        "against": against,
        "difference": test.difference,
        "interval": interval,
        "n_queries": test.n_queries,
        "n_left_out": len(differences) - test.n_queries,
        "t_test": test.t_test,
        "permutation": test.permutation,
        "wilcoxon": _signed_rank(defined) if settings.wilcoxon else math.nan,
        "better": model if ahead > 0.0 else against if ahead < 0.0 else None,
        "wins": wins,
        "ties": len(defined) - wins - losses,
        "losses": losses,
        **_effect_sizes(defined, settings),
    }


def _effect_sizes(differences: FloatArray, settings: ComparisonSettings) -> dict[str, Any]:
    n, mean = len(differences), mean_of(differences)
    spread = float(spreads(differences[:, None])[0]) if n > 1 else 0.0
    ratio = mean / spread if spread else math.nan
    return {
        "effect": effect_size(mean, spread, n),
        "effect_interval": effect_interval(ratio * math.sqrt(n), n, settings.confidence),
        "detectable": detectable_effect(n, settings.level, settings.power) * spread if spread else math.nan,
        "queries_needed": queries_needed(ratio, settings.level, settings.power),
    }


def _signed_rank(differences: FloatArray) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test, differences of 0 left out."""
    if not differences.any():
        return 1.0
    from scipy import stats

    test: Any = stats.wilcoxon
    return float(test(differences).pvalue)


def _correct_p_values(
    p_values: list[float], differences: FloatArray, settings: ComparisonSettings
) -> list[float]:
    correct = CORRECTIONS[settings.correction]
    if correct is not None:
        return [float(p) for p in correct(p_values)]
    if len(p_values) == 1:  # with a single pair, max_t is the randomisation test itself
        return p_values
    joint = max_t(differences, settings.n_flips, settings.seed)
    # A pair that differs on few queries is flipped in all ways when alone; a correction must not lower that.
    return [float(p) for p in np.maximum(joint, p_values)]
