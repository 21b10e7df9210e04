"""Rankers compared: against scipy, against definitions, and by simulation."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from concordant.evaluation import benjamini_hochberg, bonferroni, compare, holm, paired
from concordant.evaluation.effects import (
    detectable_effect,
    effect_interval,
    effect_size,
    mean_intervals,
    percentile_t,
    queries_needed,
    resamples,
    t_power,
)
from concordant.evaluation.significance import CORRECTIONS, max_t, sign_flips, t_test
from concordant.exceptions import (
    EmptyDataError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from tests import oracles

ROOT = Path(__file__).resolve().parents[2]
EIGHTHS = st.integers(-8, 8).map(lambda number: number / 8)
QUICK = {"n_flips": 500, "n_boot": 500}
FLAGS = ("wilcoxon", "greater_is_better")


def ndcg_like(rng, n, k):
    """Skewed, many zeros, some ties; easy and hard queries are so for all models."""
    ease = rng.beta(0.8, 1.4, (n, 1))
    values = np.clip(ease + 0.08 * rng.standard_t(4, (n, k)), 0, 1)
    values = np.where(rng.random((n, 1)) < 0.2, ease, values)
    return np.where(rng.random((n, 1)) < 0.2, 0.0, values)


def three(n=60, seed=0):
    table = ndcg_like(np.random.default_rng(seed), n, 3) + np.array([0.0, 0.02, 0.05])
    return dict(zip("abc", table.T, strict=True))


def only_pair(a, b, **options):
    """The comparison of b with a."""
    (pair,) = compare({"a": a, "b": b}, **{**QUICK, **options}).pairs
    return pair


# --- tests and corrections


def test_a_pair_is_what_paired_and_scipy_say():
    values = three()
    result = compare(values, wilcoxon=True, correction="none")
    assert [(pair.model, pair.against) for pair in result.pairs] == [("b", "a"), ("c", "a"), ("c", "b")]
    for pair in result.pairs:
        a, b = values[pair.model], values[pair.against]
        test = paired(a, b)
        assert (pair.t_test, pair.permutation, pair.adjusted) == (
            test.t_test,
            test.permutation,
            test.permutation,
        )
        assert pair.difference == pytest.approx((a - b).mean(), abs=1e-15)
        assert pair.t_test == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
        assert pair.wilcoxon == pytest.approx(stats.wilcoxon(a, b).pvalue, rel=1e-12)


def test_the_randomisation_test_is_that_of_scipy():
    values = three(12, seed=3)
    pair = only_pair(values["a"], values["c"], n_flips=2**12)
    real = stats.permutation_test(
        (values["c"], values["a"]),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert pair.permutation == pytest.approx(real.pvalue, abs=1e-12)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(EIGHTHS | st.none(), min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
@settings(max_examples=60)
def test_the_largest_t_is_counted_exactly_on_few_queries(columns):
    given_columns = np.array(
        [[np.nan if value is None else value for value in column] for column in columns]
    ).T
    assert max_t(given_columns, 64, 0) == pytest.approx(oracles.largest_t(columns), abs=1e-12)


@pytest.mark.parametrize("n_flips", [256, 999])
def test_the_largest_t_of_one_pair_is_the_randomisation_test(n_flips):
    gaps = np.random.default_rng(5).normal(0.4, 1, (8 if n_flips == 256 else 30, 1))
    assert max_t(gaps, n_flips, 3) == sign_flips(gaps, n_flips, 3)


def test_corrections_are_those_of_scipy_and_in_order():
    p_values = np.random.default_rng(6).random(9) ** 3
    assert benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values), rel=1e-12)
    assert bonferroni(p_values) == pytest.approx(np.minimum(9 * p_values, 1))
    assert (p_values <= benjamini_hochberg(p_values)).all()
    assert (benjamini_hochberg(p_values) <= holm(p_values)).all()
    assert (holm(p_values) <= bonferroni(p_values)).all()
    for correct in (bonferroni, benjamini_hochberg, holm):
        single = np.array([0.3])
        assert correct(single) is not single
    for correct in (bonferroni, benjamini_hochberg):
        assert correct([]).size == 0
        with pytest.raises(ParameterError):
            correct([0.5, np.nan])


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_no_correction_lowers_a_p_value(correction):
    values = {f"m{i}": column for i, column in enumerate(ndcg_like(np.random.default_rng(7), 30, 4).T)}
    values["m3"] = values["m0"] + 0.1 * (np.arange(30) == 0)  # one query differs: flipped in all ways alone
    result = compare(values, correction=correction, **QUICK)
    for pair in result.pairs:
        assert pair.permutation <= pair.adjusted <= 1.0
        assert pair.significant == (pair.adjusted < 0.05)


def test_what_is_said_of_a_pair_does_not_depend_on_other_models():
    values = three()
    values["b"][3] = np.nan
    alone = compare({name: values[name] for name in "ab"}, correction="none", **QUICK)
    among = compare(values, correction="none", **QUICK)
    with_baseline = compare(values, baseline="a", correction="none", **QUICK)
    rows = zip(
        (*alone.pairs, *alone.models, *with_baseline.pairs),
        (among.pairs[0], *among.models[:2], *among.pairs[:2]),
        strict=True,
    )
    for row, other in rows:
        assert row.interval == pytest.approx(other.interval, rel=1e-9)  # sums of another block may round so
        assert repr(replace(row, interval=())) == repr(replace(other, interval=()))  # NaN is not itself
    assert (among.pairs[0].n_queries, among.pairs[0].n_left_out) == (59, 1)


# --- intervals


def test_intervals_are_those_of_their_definition():
    columns = three(15)["a"][:, None]
    drawn = np.random.default_rng(4).integers(15, size=(199, 15)).tolist()
    expected = oracles.symmetric_percentile_t(columns[:, 0].tolist(), drawn, 0.9)
    assert percentile_t(columns, 0.9, 199, 4)[:, 0] == pytest.approx(expected, rel=1e-9)


def test_intervals_come_close_to_those_of_all_resamples():
    values = [0.1, 0.25, 0.3, 0.6, 0.7]
    every = list(itertools.product(range(5), repeat=5))
    expected = oracles.symmetric_percentile_t(values, every, 0.8)
    assert percentile_t(np.array(values)[:, None], 0.8, 20_000, 0)[:, 0] == pytest.approx(expected, abs=0.02)


def test_resampled_t_has_the_distribution_of_scipy():
    values = three(30)["c"]
    centre = values.mean()

    def t(sample, axis=-1):
        return (sample.mean(axis) - centre) / (sample.std(axis, ddof=1) / np.sqrt(sample.shape[axis]))

    real = stats.bootstrap((values,), t, n_resamples=20_000, method="percentile", vectorized=True, rng=1)
    size = np.quantile(np.abs(real.bootstrap_distribution), 0.95)
    low, high = percentile_t(values[:, None], 0.95, 20_000, 0)[:, 0]
    assert (high - low) / 2 == pytest.approx(size * values.std(ddof=1) / np.sqrt(30), rel=0.03)


def test_resamples_draw_as_many_queries_as_there_are(monkeypatch):
    whole = np.vstack(list(resamples(30, 100, 0)))
    assert whole.shape == (100, 30)
    assert (whole.sum(axis=1) == 30).all()
    monkeypatch.setattr("concordant.evaluation.effects.COUNTS_AT_ONCE", 70)
    assert np.array_equal(np.vstack(list(resamples(30, 100, 0))), whole)


def test_blocks_of_columns_change_nothing(monkeypatch):
    table = ndcg_like(np.random.default_rng(2), 40, 6)
    table[3, 2] = table[5, 4] = np.nan
    whole = mean_intervals(table, 0.95, 200, 0)
    monkeypatch.setattr("concordant.evaluation.effects.STATISTICS_AT_ONCE", 400)
    assert np.allclose(mean_intervals(table, 0.95, 200, 0), whole, rtol=1e-9, atol=0)
    for column, low, high in zip(table.T, *whole, strict=True):
        alone = percentile_t(column[~np.isnan(column)][:, None], 0.95, 200, 0)[:, 0]
        assert (low, high) == pytest.approx(alone, rel=1e-9)


# --- effects and power


@pytest.mark.parametrize("n", [3, 10, 200])
def test_the_effect_size_is_unbiased(n):
    freedom = n - 1
    bias = stats.nct.mean(freedom, 0.5 * np.sqrt(n)) / (0.5 * np.sqrt(n))  # of t, for a true effect of 0.5
    if np.isfinite(bias) and freedom > 1:
        assert effect_size(0.5, 1.0, n) == pytest.approx(0.5 / bias, rel=1e-9)


@pytest.mark.parametrize(
    ("t", "n"), [(0.0, 2), (2.5, 5), (-3.0, 40), (12.0, 100), (60.0, 10_000), (300.0, 50)]
)
def test_the_effect_interval_is_where_t_is_not_extreme(t, n):
    low, high = effect_interval(t, n, 0.9)
    for end, tail in ((low, 0.95), (high, 0.05)):
        assert stats.nct.cdf(t, n - 1, end * np.sqrt(n)) == pytest.approx(tail, abs=1e-9)
    assert low < high


@pytest.mark.parametrize("n", [2, 3, 20, 300, 50_000])
@pytest.mark.parametrize(("level", "power"), [(0.05, 0.8), (0.001, 0.5), (0.2, 0.99)])
def test_the_detectable_effect_has_the_power_of_scipy(n, level, power):
    effect = detectable_effect(n, level, power)
    size = stats.t.isf(level / 2, n - 1)
    shift = effect * np.sqrt(n)
    far_side = np.nan_to_num(stats.nct.cdf(-size, n - 1, shift))  # scipy has no number for tails below 1e-13
    real = stats.nct.sf(size, n - 1, shift) + far_side
    assert real == pytest.approx(power, abs=1e-9)
    assert t_power(effect, n, level) == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize("effect", [3.0, -0.4, 0.05, 0.004])
def test_no_fewer_queries_would_do(effect):
    n = queries_needed(effect, 0.05, 0.8)
    assert t_power(abs(effect), n, 0.05) >= 0.8
    assert n == 2 or t_power(abs(effect), n - 1, 0.05) < 0.8


def test_very_many_queries_are_reckoned_by_the_normal_distribution():
    few, many = (queries_needed(effect, 0.05, 0.8) for effect in (0.00281, 0.0028))
    assert few < 1_000_000 < many
    assert many / few == pytest.approx((0.00281 / 0.0028) ** 2, rel=1e-5)
    assert detectable_effect(50, 0.05, 0.04) == 0.0


# --- what is degenerate has a defined answer


def test_degenerate_pairs():
    pair = only_pair([1.0], [0.0])
    assert (pair.difference, pair.t_test, pair.permutation, pair.better) == (-1.0, 1.0, 1.0, "a")
    assert np.isnan([*pair.interval, pair.effect, *pair.effect_interval, pair.detectable]).all()
    two = only_pair([1.0, 0.5], [0.0, 0.2])
    assert two.permutation == 0.5
    half = (
        stats.t.ppf(0.975, 1) * np.std([1.0, 0.3], ddof=1) / np.sqrt(2)
    )  # Student's: resamples have no spread
    assert two.interval == pytest.approx((-0.65 - half, -0.65 + half))
    assert math.isnan(two.effect)
    assert two.queries_needed > 1
    same = only_pair([0.1, 0.2, 0.7], [0.1, 0.2, 0.7], wilcoxon=True)
    assert (same.difference, same.interval, same.effect, same.ties) == (0.0, (0.0, 0.0), 0.0, 3)
    assert (same.t_test, same.permutation, same.wilcoxon, same.better, same.queries_needed) == (
        1,
        1,
        1,
        None,
        None,
    )
    constant = only_pair([0.4, 0.5, 0.6], [0.5, 0.6, 0.7])
    assert constant.interval == pytest.approx((0.1, 0.1))
    assert (constant.effect, constant.permutation, constant.queries_needed) == (math.inf, 0.25, None)
    assert constant.t_test < 1e-12
    none = only_pair([np.nan, np.nan], [0.1, np.nan])
    assert (none.n_queries, none.n_left_out, none.permutation, none.wins) == (0, 2, 1.0, 0)
    assert np.isnan([none.difference, *none.interval, none.effect, none.detectable]).all()


def test_losses_turn_the_verdict_and_not_the_numbers():
    values = three()
    up, down = (compare(values, greater_is_better=greater, **QUICK).pairs[1] for greater in (True, False))
    assert (up.difference, up.interval, up.adjusted) == (down.difference, down.interval, down.adjusted)
    assert (up.wins, up.ties, up.losses) == (down.losses, down.ties, down.wins)
    assert {up.better, down.better} == {"a", "c"}


def test_ties_are_counted_within_the_tolerance():
    pair = only_pair([0.0, 0.0, 0.0, 0.0], [0.25, -0.25, 0.5, -1.0], tie=0.25)
    assert (pair.wins, pair.ties, pair.losses) == (1, 2, 1)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(EIGHTHS | st.just(math.nan), min_size=n, max_size=n), min_size=2, max_size=3
        )
    )
)
@settings(max_examples=40)
def test_any_values_give_a_comparison_that_can_be_written_down(columns):
    values = {f"m{i}": column for i, column in enumerate(columns)}
    result = compare(values, n_flips=20, n_boot=20, wilcoxon=True)
    json.dumps(result.to_dict())
    assert len(result.sentences()) == len(result.pairs)
    assert "adjusted" in repr(result)
    for pair in result.pairs:
        assert pair.wins + pair.ties + pair.losses == pair.n_queries
        low, high = pair.interval
        assert np.isnan(low) == (pair.n_queries < 2)
        assert np.isnan(low) or low - 1e-12 <= pair.difference <= high + 1e-12


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-149, 1e-10, 1e149])
def test_huge_and_tiny_values_have_an_answer(size):
    gaps = np.array([0.3, -0.1, 0.4, 0.2, 0.25, 0.0])
    pair, usual = (
        only_pair(np.zeros(6), size * gaps, wilcoxon=True),
        only_pair(np.zeros(6), gaps, wilcoxon=True),
    )
    if size < 1e-150:
        assert (pair.difference, pair.interval, pair.t_test, pair.permutation, pair.ties) == (
            0.0,
            (0.0, 0.0),
            1,
            1,
            6,
        )
    else:
        assert (pair.difference, *pair.interval) == pytest.approx(
            [size * each for each in (usual.difference, *usual.interval)], rel=1e-9, abs=0
        )
        assert (pair.t_test, pair.permutation, pair.wilcoxon, pair.effect) == pytest.approx(
            (usual.t_test, usual.permutation, usual.wilcoxon, usual.effect), rel=1e-9
        )


@pytest.mark.parametrize(
    ("values", "options", "error"),
    [
        ({"a": [1.0]}, {}, ParameterError),
        ({}, {}, ParameterError),
        ({"a": [1.0], "b": [1.0, 2.0]}, {}, LengthMismatchError),
        ({"a": [], "b": []}, {}, EmptyDataError),
        ({"a": [1.0], "b": [np.inf]}, {}, NonFiniteError),
        ({"a": [1.0], "b": [-1e151]}, {}, ParameterError),
        ({"a": [1.0], "b": ["x"]}, {}, NotNumericError),
        ({"a": [1.0], "b": [1.0]}, {"baseline": "c"}, UnknownNameError),
        ({"a": [1.0], "b": [1.0]}, {"correction": "tukey"}, UnknownNameError),
        *(
            ({"a": [1.0], "b": [1.0]}, {name: 1.0}, ParameterError)
            for name in ("level", "confidence", "power")
        ),
        *(({"a": [1.0], "b": [1.0]}, {name: 0}, ParameterError) for name in ("n_flips", "n_boot")),
        *(({"a": [1.0], "b": [1.0]}, {"tie": tie}, ParameterError) for tie in (-1.0, np.nan, "x")),
        ([[1.0], [1.0]], {}, ParameterError),
        ({1: [1.0], "1": [1.0], "c": [1.0]}, {}, ParameterError),
        ({"a": [1.0], "b": [1.0]}, {"correction": ["holm"]}, UnknownNameError),
        *(({"a": [1.0], "b": [1.0]}, {"seed": seed}, ParameterError) for seed in (-1, "x", True, 0.5)),
        *(({"a": [1.0], "b": [1.0]}, {name: "no"}, ParameterError) for name in FLAGS),
        *(({"a": [1.0], "b": [1.0]}, {name: 10**400}, ParameterError) for name in QUICK),
    ],
)
def test_bad_input_has_a_name(values, options, error):
    with pytest.raises(error):
        compare(values, **options)


@pytest.mark.parametrize("names", [("reference", "n_rows"), (1, 2), ("self", "")])
def test_rankers_may_have_any_name(names):
    values = dict(zip(names, three().values(), strict=False))
    result = compare(values, baseline=names[0], **QUICK)
    usual = compare({"a": values[names[0]], "b": values[names[1]]}, baseline="a", **QUICK)
    renamed = replace(result.pairs[0], model="b", against="a", better=usual.pairs[0].better)
    assert [repr(renamed)] == [*map(repr, usual.pairs)]  # NaN is not itself
    assert (result.pairs[0].model, result.settings.baseline) == (str(names[1]), str(names[0]))


def test_numbers_of_numpy_are_those_of_python():
    options = {"level": np.float32(0.25), "confidence": np.float64(0.5), "power": np.float16(0.5)}
    options |= {
        "seed": np.int64(3),
        "n_flips": np.int16(50),
        "n_boot": np.uint8(50),
        "wilcoxon": np.bool_(True),
    }
    result = compare(three(), **options)
    assert result == compare(three(), **{name: value.item() for name, value in options.items()})
    json.dumps(result.settings.__dict__)  # numpy's would raise


@pytest.mark.parametrize("level", [1e-15, 1e-17, 1e-100, 1e-300, 5e-324])
@pytest.mark.parametrize("n", [2, 6, 30, 1000])
def test_levels_below_rounding_have_an_answer(level, n):
    effect, number = detectable_effect(n, level, 0.8), queries_needed(0.5, level, 0.8)
    assert math.isnan(effect) or effect > detectable_effect(n, 1e-12, 0.8)
    assert number is None or number > queries_needed(0.5, 1e-12, 0.8)
    if n == 1000 and level > 1e-200:  # near the normal distribution
        normal = (-stats.norm.ppf(level / 2) + stats.norm.ppf(0.8)) / math.sqrt(n)
        assert effect == pytest.approx(normal, rel=0.2)


def test_differences_beyond_counting_have_an_answer():
    assert queries_needed(1e-240, 0.05, 0.8) is None
    assert only_pair([0.0, 0.0, 0.0], [1e100, -1e100, 1e-140]).queries_needed is None


# --- simulation: what is promised about errors holds, and the check can fail

TRIALS, LEVEL = 600, 0.05


def check_share(hits, trials, share, *, most=True, least=True):
    """A count is one that chance gives with probability 1 - 1e-6 where the share is true."""
    low, high = (float(end) for end in stats.binom.interval(1 - 1e-6, trials, share))
    assert not most or hits <= high, f"{hits} of {trials} are too many for {share}"
    assert not least or hits >= low, f"{hits} of {trials} are too few for {share}"


def unpaired(pair):
    return stats.ttest_ind(*pair.T).pvalue


@pytest.mark.once
def test_type_one_errors_are_those_of_the_level():
    rng = np.random.default_rng(10)
    pairs = [ndcg_like(rng, 40, 2) for _ in range(TRIALS)]
    gaps = [pair[:, 1] - pair[:, 0] for pair in pairs]
    check_share(sum(t_test(gap) <= LEVEL for gap in gaps), TRIALS, LEVEL)
    check_share(
        sum(sign_flips(gap[:, None], 199, seed)[0] <= LEVEL for seed, gap in enumerate(gaps)), TRIALS, LEVEL
    )
    with pytest.raises(AssertionError, match="too few"):
        check_share(sum(unpaired(pair) <= LEVEL for pair in pairs), TRIALS, LEVEL)


@pytest.mark.once
@pytest.mark.parametrize("moved", [False, True])
def test_corrections_bound_the_chance_of_any_false_finding(moved):
    """All four models equal; or two of them, the others far away, where no correction may look at those."""
    rng = np.random.default_rng(11)
    shift = np.array([0.0, 0.0, 0.2, 0.4]) * moved
    sides = list(itertools.combinations(range(4), 2))
    equal = np.array([shift[i] == shift[j] for i, j in sides])
    wrong = dict.fromkeys(("none", "holm", "bonferroni", "max_t"), 0)
    for trial in range(TRIALS):
        values = ndcg_like(rng, 40, 4) + shift
        gaps = np.column_stack([values[:, j] - values[:, i] for i, j in sides])
        alone = sign_flips(gaps, 199, trial)
        tests = {"none": alone, "holm": holm(alone), "bonferroni": bonferroni(alone)}
        tests["max_t"] = max_t(gaps, 199, trial)
        for name, p_values in tests.items():
            wrong[name] += bool((p_values[equal] <= LEVEL).any())
    check_share(wrong["max_t"], TRIALS, LEVEL)
    check_share(wrong["holm"], TRIALS, LEVEL, least=False)
    check_share(wrong["bonferroni"], TRIALS, LEVEL, least=False)
    if not moved:
        with pytest.raises(AssertionError, match="too many"):
            check_share(wrong["none"], TRIALS, LEVEL)


@pytest.mark.once
def test_intervals_hold_what_they_are_about():
    rng = np.random.default_rng(12)
    table = np.diff(rng.beta(0.6, 1.8, (50, 1200)).reshape(50, 600, 2), axis=2)[:, :, 0] + 0.03
    low, high = percentile_t(table, 0.95, 499, 0)
    check_share(int(((low <= 0.03) & (high >= 0.03)).sum()), 600, 0.95)
    with pytest.raises(AssertionError, match="too few"):
        check_share(int(((low <= 0.13) & (high >= 0.13)).sum()), 600, 0.95)
    normal = rng.normal(0.3, 1, (30, 400))
    ratios = normal.mean(axis=0) / normal.std(axis=0, ddof=1)
    ends = [effect_interval(float(ratio) * np.sqrt(30), 30, 0.95) for ratio in ratios]
    check_share(sum(low <= 0.3 <= high for low, high in ends), 400, 0.95)


@pytest.mark.once
def test_the_detectable_difference_is_detected_as_often_as_promised():
    rng = np.random.default_rng(13)
    effect = detectable_effect(40, LEVEL, 0.8)
    normal = rng.normal(effect, 1, (TRIALS, 40))
    check_share(sum(t_test(gap) <= LEVEL for gap in normal), TRIALS, 0.8)
    with pytest.raises(AssertionError, match="too few"):
        check_share(sum(t_test(gap - effect / 2) <= LEVEL for gap in normal), TRIALS, 0.8)


def test_the_page_quotes_the_simulations():
    text = (ROOT / "docs" / "comparing-models.md").read_text(encoding="utf-8")
    result = json.loads((ROOT / "benchmarks" / "results" / "significance.json").read_text(encoding="utf-8"))
    tables = {table["title"]: table["rows"] for table in result["tables"]}
    columns = ("population", "queries", "t-test", "randomisation", "Wilcoxon")
    shares_by_test = {
        (row["population"], row["queries"]): [row[name] for name in columns[2:]]
        for row in tables["Type-I error"]
    }
    quoted = [line.strip("| ").split(" | ") for line in text.splitlines() if line.count(" | ") == 4]
    quoted = [line for line in quoted if line[0] in {name for name, _ in shares_by_test}]
    assert len(quoted) == 15
    for name, n, *shares in quoted:
        assert list(map(float, shares)) == pytest.approx(
            shares_by_test[name, int(n.replace(",", ""))], rel=5e-3
        )
    distance = tables["Coverage of 95 % intervals"][-1]
    for kind in ("symmetric percentile-t", "Student", "percentile", "BCa"):
        assert f"{distance[kind]:.3f}" in text


# --- words


def test_words_say_who_is_better_and_what_went_unseen():
    values = three(200)
    result = compare(values, **QUICK)
    pair = result.pairs[1]
    said = result.sentences()[1]
    assert pair.significant
    assert said.startswith(f"c is better than a by {pair.difference:.4f} on average (95 % interval ")
    assert "after correction for 3 pairs: significant at 5 %" in said
    assert f"200 queries of this spread find a true difference of {pair.detectable:.4f} with" in said
    turned = compare({"c": values["c"], "a": values["a"]}, **QUICK).sentences()[0]
    assert turned.split(" on average ")[1].split(").")[0] == said.split(" on average ")[1].split(").")[0]
    close = compare({"a": values["a"], "b": values["a"] + np.tile([0.05, -0.049], 100)}, **QUICK)
    assert "b is ahead of a by 0.0005" in close.sentences()[0]
    assert f"takes about {close.pairs[0].queries_needed:,} queries." in close.sentences()[0]
    assert compare({"a": [0.5, 1], "b": [0.5, 1]}, **QUICK).sentences() == ["b and a are equal on average."]
    (none,) = compare({"a": [np.nan], "b": [1.0]}, **QUICK).sentences()
    assert "no query" in none


def test_the_tables_of_a_comparison():
    result = compare(three(), wilcoxon=True, **QUICK)
    means, pairs, tests = (block.splitlines() for block in repr(result).split("\n\n"))
    assert means[0].split() == ["model", "mean", "95", "%", "interval", "queries"]
    assert [line.split()[0] for line in means[1:]] == ["a", "b", "c"]
    assert pairs[0].split()[:2] == ["pair", "difference"]
    assert pairs[2].startswith("c - a")
    assert pairs[-1] == "adjusted p: randomisation test, max_t over 3 pairs; * below 0.05"
    assert "p Wilcoxon" in tests[0]
    pair = result.pairs[1]
    assert tests[2].split()[-3:] == [
        f"{pair.effect:+.2f}",
        f"{pair.detectable:.4f}",
        str(pair.queries_needed),
    ]
    assert "p Wilcoxon" not in repr(compare(three(), **QUICK))
