"""Conditions on replicated supervision: bands that do not mislead, votes read as given, reports that add up.

The rule for the three states is examined on labels whose distribution is known; the naive rule, which takes
the share of the resamples for a probability, is the wrong one that the examination must reject.
"""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.data.io.preflib import Profile
from concordant.data.labels import Permutations, Preferences
from concordant.data.synthetic import LabelDistribution
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    LabelError,
    ParameterError,
    UnknownNameError,
)
from concordant.theory.conditions import CONDITIONS, holds_on
from concordant.theory.replicates import Replicates, calibrate, check
from concordant.theory.replicates import condition_check as bootstrap
from concordant.theory.replicates.annotator_votes import to_votes
from concordant.theory.replicates.condition_check import (
    band,
    build_evidence,
    distribution_free_band,
    resample,
)
from concordant.theory.replicates.evidence import (
    BandVerdict,
    Limits,
    MajorityEvidence,
    find_cycle,
    has_no_long_cycle,
)
from studies.consistency.populations import company, misspecified
from tests import oracles

pytestmark = pytest.mark.once

NAMES = tuple(CONDITIONS)
ON_GRAPHS = ("P_DAG", "P_f", "low_noise")
SAME = 1e-12


def random_votes(rng, name, n, n_votes=12, *, complete=True):
    """Votes of a kind that the condition reads, with counts; some orders or grades come again and again."""
    few, counts = rng.integers(1, 5), np.maximum(rng.integers(0, 4, n_votes), np.arange(n_votes) == 0)
    if name == "order_preserving":
        values = np.argsort(rng.random((few, n)), axis=1)[rng.integers(0, few, n_votes)].astype(float)
        return to_votes(
            "orders", values, rng.integers(0, 4, n_votes) + (np.arange(n_votes) == 0), range(n), 0
        )
    levels = 2 if name == "P_reinforce" else rng.integers(2, 5)
    values = rng.integers(0, levels, (few, n))[rng.integers(0, few, n_votes)].astype(float)
    if not complete:
        values[rng.random(values.shape) < 0.4] = np.nan
        values[0] = np.arange(n)
    return to_votes("grades", values, counts, range(n), 0)


def as_oracle(name, votes):
    """The votes as the oracles read them."""
    values = votes.n_items - votes.values if name == "order_preserving" else votes.values
    return [
        [None if np.isnan(level) else int(level) for level in vote] for vote in values
    ], votes.counts.tolist()


def evidence(name, votes, f=None):
    return build_evidence(CONDITIONS[name], votes, None, f, "q")


# ---------------------------------------------------------------- what is read of votes


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_by_definition(name):
    rng, verdicts = np.random.default_rng(0), []
    for number in range(400):
        votes = random_votes(rng, name, 1 + number % 4, complete=name in ("P_reinforce", "order_preserving"))
        expected = oracles.vote_condition(name, *as_oracle(name, votes))
        verdict = evidence(name, votes).holds(votes.counts[None] / votes.n_annotators, 0.0)
        assert verdict.tolist() == [expected], as_oracle(name, votes)
        verdicts.append(expected)
    assert 0.1 < np.mean(verdicts) < 0.99


def columns(name, votes):
    """What each vote says of each expectation, by definition; one row a vote."""
    pairs, n = list(itertools.combinations(range(votes.n_items), 2)), votes.n_items
    rows = []
    for vote in as_oracle(name, votes)[0]:
        if name == "P_reinforce":
            u = oracles.shared_relevance_means([vote], [1])
            rows.append([u[i][i] - u[j][j] for i, j in pairs])
            rows[-1] += [u[i][g] - u[j][g] for i, j in pairs for g in range(n) if g not in (i, j)]
            continue
        a = oracles.vote_graph(vote)
        net = [[a[i][j] - a[j][i] for j in range(n)] for i in range(n)]
        rows.append([net[i][j] for i, j in pairs])
        if name == "P_f":
            f = oracles.net_weights(a)
            rows[-1] += [f[i] - f[j] for i, j in pairs]
        if name == "low_noise":
            triples = itertools.combinations(range(n), 3)
            rows[-1] += [net[i][j] + net[j][k] + net[k][i] for i, j, k in triples]
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("name", ["P_reinforce", *ON_GRAPHS])
def test_means_and_squares_by_definition(name):
    rng = np.random.default_rng(1)
    for number in range(60):
        votes = random_votes(rng, name, 1 + number % 5, complete=name == "P_reinforce")
        each, weights = columns(name, votes), rng.dirichlet(np.ones(len(votes.counts)), 3)
        read = evidence(name, votes)
        np.testing.assert_allclose(read.means(weights), weights @ each, atol=SAME)
        np.testing.assert_allclose(read.squares(weights[0]) * read.reach**2, weights[0] @ each**2, atol=SAME)
        assert (np.abs(each) <= read.reach + SAME).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_reach_is_what_a_vote_can_do(name, n):
    """Of all votes there are, with ties and items left out, one reaches it and none goes beyond."""
    levels = range(2) if name == "P_reinforce" else range(n)
    every = np.array([*itertools.product([*levels, np.nan], repeat=n)])
    if name == "P_reinforce":
        every = every[~np.isnan(every).any(axis=1)]
    if name == "order_preserving":
        every = np.array([*itertools.permutations(range(n))], dtype=float)
    votes = to_votes(
        "orders" if name == "order_preserving" else "grades", every, np.ones(len(every)), range(n), 0
    )
    read = evidence(name, votes)
    each = read.means(np.eye(len(votes.counts)))
    for reach, block in zip(read.reaches, np.split(each, read.ends[1:-1], axis=1), strict=True):
        assert reach == np.abs(block).max(initial=0) or not block.size


@pytest.mark.parametrize("name", ON_GRAPHS)
def test_the_reach_of_weights(name):
    """Every graph of three items, a preference of weight 5 or none each way."""
    graphs = np.array([*itertools.product([0.0, 5.0], repeat=6)])
    values = np.zeros((len(graphs), 3, 3))
    values[:, ~np.eye(3, dtype=bool)] = graphs
    votes = to_votes("preferences", values, np.ones(len(graphs)), range(3), 0)
    read = build_evidence(CONDITIONS[name], votes, None, None, "q", Limits(5.0))
    each = read.means(np.eye(len(votes.counts)))
    for reach, block in zip(read.reaches, np.split(each, read.ends[1:-1], axis=1), strict=True):
        assert reach == np.abs(block).max()


def test_shares_of_orders_by_definition():
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 4):
        votes = random_votes(rng, "order_preserving", n)
        (weights,) = rng.dirichlet(np.ones(len(votes.counts)), 1)
        places = [tuple(positions) for positions in as_oracle("order_preserving", votes)[0]]
        share = dict(zip(places, weights, strict=True))
        read, expected = evidence("order_preserving", votes), []
        for i, j in itertools.combinations(range(n), 2):
            first = {order if order[i] < order[j] else exchanged(order, i, j) for order in places}
            expected.append(sorted(share.get(o, 0.0) - share.get(exchanged(o, i, j), 0.0) for o in first))
        differences = read.split(read.means(weights[None])[0])[1]
        by_pair = [sorted(differences[read.pair == pair]) for pair in range(len(expected))]
        np.testing.assert_allclose(np.concatenate([[], *by_pair]), np.concatenate([[], *expected]), atol=SAME)


def exchanged(order, i, j):
    places = list(order)
    places[i], places[j] = places[j], places[i]
    return tuple(places)


# ---------------------------------------------------------------- states


def check_soundness(read, rng, margin=0.0, n_bands=40):
    """Wherever the truth lies in a band, no verdict about the band is wrong; gives how many were decided."""
    decided = 0
    for _ in range(n_bands):
        n_votes = len(read.families[0])
        truth = rng.dirichlet(np.full(n_votes, rng.choice([0.2, 1.0])))[None]
        if rng.random() < 0.3:
            truth = rng.multinomial(6, truth) / 6
        means, holds = read.means(truth)[0], bool(read.holds(truth, margin)[0])
        width = rng.choice([0.0, 0.05, 0.3]) * read.reach
        low, high = (width * rng.random((2, len(means)))) * (rng.random((2, len(means))) < 0.7)
        verdict = read.verdict(means - low - 1e-9 * read.reach, means + high + 1e-9 * read.reach, margin)
        assert holds or not verdict.everywhere
        assert not (holds and verdict.nowhere)
        assert not (verdict.everywhere and verdict.nowhere)
        assert bool(verdict.shown) == verdict.nowhere
        decided += verdict.everywhere or verdict.nowhere
    return decided


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "margin"),
    [*itertools.product(NAMES, [0.0]), *itertools.product(("P_reinforce", *ON_GRAPHS), [0.1])],
)
def test_no_verdict_is_wrong_where_the_band_covers_the_truth(name, margin):
    rng, decided = np.random.default_rng(3), 0
    for number in range(32):
        votes = random_votes(rng, name, 2 + number % 4, complete=name in ("P_reinforce", "order_preserving"))
        decided += check_soundness(evidence(name, votes), rng, margin)
    assert decided > 50


class Careless(MajorityEvidence):
    """Counts edges to find a tree, and forgets that they must go both ways."""

    def verdict(self, lower, upper, margin):
        from scipy.sparse.csgraph import connected_components

        certain, possible = self.edges(lower, upper, margin)
        _, part = connected_components(possible, connection="strong")
        inside = np.bincount(part, (possible & (part[:, None] == part)).sum(axis=1))
        cycle = find_cycle(certain)
        return BandVerdict(bool((inside == 2 * (np.bincount(part) - 1)).all()), bool(cycle), cycle)


class Hasty(MajorityEvidence):
    """Looks at the middle of the band only."""

    def verdict(self, lower, upper, margin):
        middle = (lower + upper) / 2
        return super().verdict(middle, middle, margin)


@pytest.mark.parametrize("wrong", [Careless, Hasty])
def test_the_check_rejects_wrong_verdicts(wrong):
    rng = np.random.default_rng(4)

    def many():
        return [check_soundness(wrong(random_votes(rng, "P_DAG", 4)), rng) for _ in range(100)]

    with pytest.raises(AssertionError, match=r"everywhere|nowhere"):
        many()


def test_the_verdict_on_cycles_is_the_best_possible():
    """Of all signs that the band allows, all have no cycle, or none, or neither."""
    rng, verdicts = np.random.default_rng(5), []
    votes = random_votes(rng, "P_DAG", 4)
    read, pairs = evidence("P_DAG", votes), list(itertools.combinations(range(4), 2))
    for _ in range(60):
        low = rng.choice([-2.0, -1.0, 0.0, 1.0], 6)
        high = np.maximum(low, rng.choice([-1.0, 0.0, 1.0, 2.0], 6))
        acyclic = set()
        for d in oracles.every_sign(low.tolist(), high.tolist()):
            matrix = np.zeros((4, 4))
            for (i, j), number in zip(pairs, d, strict=True):
                matrix[i, j], matrix[j, i] = number, -number
            acyclic.add(oracles.has_no_cycle(matrix.tolist()))
        verdict = read.verdict(low, high, 0.0)
        assert (verdict.everywhere, verdict.nowhere) == (acyclic == {True}, acyclic == {False})
        verdicts.append(verdict[:2])
    assert len(set(verdicts)) == 3


def test_long_cycles_by_definition():
    rng, verdicts = np.random.default_rng(6), []
    for number in range(600):
        n = 1 + number % 5
        edges = (rng.random((n, n)) < rng.choice([0.2, 0.4])) & ~np.eye(n, dtype=bool)
        if number % 2:
            edges |= edges.T
        verdicts.append(has_no_long_cycle(edges))
        assert verdicts[-1] != oracles.long_cycle(edges.tolist(), n)
        edges &= ~edges.T
        cycle = find_cycle(edges)
        assert (len(cycle) > 2) == bool(cycle) == oracles.long_cycle(edges.tolist(), n)
        assert all(edges[i, j] for i, j in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))
    assert 0.1 < np.mean(verdicts) < 0.9


# ---------------------------------------------------------------- the bootstrap


@pytest.mark.parametrize("name", NAMES)
def test_support_is_the_share_of_resamples(name, monkeypatch):
    """The same draws, judged one by one by definition; blocks of any size give the same."""
    rng = np.random.default_rng(7)
    for n in (2, 3, 4):
        votes = random_votes(rng, name, n)
        read, total = evidence(name, votes), votes.n_annotators
        result = resample(read, votes.counts, 40, 0.9, 0.0, [3, 0])
        draws = np.random.default_rng([3, 0]).multinomial(total, votes.counts / total, 40).tolist()
        levels, _ = as_oracle(name, votes)
        verdicts = [oracles.vote_condition(name, levels, draw) for draw in draws]
        assert result.support == pytest.approx(np.mean(verdicts))
        monkeypatch.setattr(bootstrap, "BLOCK", 50)
        again = resample(read, votes.counts, 40, 0.9, 0.0, [3, 0])
        monkeypatch.undo()
        assert again[:2] == result[:2]
        np.testing.assert_allclose(again.lower, result.lower, atol=SAME)
        np.testing.assert_allclose(again.upper, result.upper, atol=SAME)


def test_the_band_of_one_proportion():
    """Of two items there is one expectation: Agresti and Coull's interval, or Wald's where it ends beyond."""
    from scipy.stats import t

    for (wins, total), reached in itertools.product(((0, 3), (1, 4), (5, 9), (30, 40)), (0.0, 9.0)):
        low, high = band(np.array([2 * wins / total - 1]), np.ones(1), total, reached, 0.95)
        z = max(reached, t.ppf(0.975, total - 1))
        drawn, plain = (oracles.proportion_interval(wins, total, z, added) for added in (z**2, 0.0))
        assert (low[0] + 1) / 2 == pytest.approx(min(drawn[0], plain[0]))
        assert (high[0] + 1) / 2 == pytest.approx(max(drawn[1], plain[1]))
    assert band(np.zeros(2), np.zeros(2), 1, 0.0, 0.95)[1].tolist() == [np.inf, np.inf]


@pytest.mark.slow
def test_the_band_covers_the_truth():
    """All expectations at once, in 95 % of the samples; the plain bootstrap does not where votes agree."""
    rng, orders = np.random.default_rng(8), list(itertools.permutations(range(4)))
    inversions = np.array([sum(a > b for a, b in itertools.combinations(order, 2)) for order in orders])
    covered, plain, n_samples = {}, {}, 100
    for noise, n in itertools.product((0.3, 1.0, 3.0), (6, 20, 100)):
        probs = np.exp(-noise * inversions) / np.exp(-noise * inversions).sum()
        votes = to_votes("orders", 3.0 - np.argsort(orders, axis=1), np.ones(24, dtype=int), range(4), 0)
        read, share = evidence("P_f", votes), probs[[orders.index(order_of(vote)) for vote in votes.values]]
        truth = read.means(share[None])[0]
        inside, naive = [], []
        for counts in rng.multinomial(n, share, n_samples):
            result = resample(read, counts, 200, 0.95, 0.0, [0])
            inside.append(((result.lower <= truth) & (truth <= result.upper)).all())
            drawn = read.means(rng.multinomial(n, counts / n, 200) / n)
            ends = np.quantile(drawn, [0.025, 0.975], axis=0)
            naive.append(((ends[0] <= truth + SAME) & (truth <= ends[1] + SAME)).all())
        covered[noise, n], plain[noise, n] = np.mean(inside), np.mean(naive)
    assert min(covered.values()) >= 0.89, covered  # 0.95 less three standard errors
    assert min(plain.values()) < 0.3, plain


@pytest.mark.parametrize("n", [2, 10, 100, 1000])
def test_bounds_cover_skewed_means(n):
    """Rare extremes, in any of ten columns; the band of resamples misses them."""
    rng, n_samples, rare = np.random.default_rng(11), 300, min(3.0 / n, 0.5)
    inside, plain = [], []
    for _ in range(n_samples):
        table = np.where(rng.random((n, 10)) < rare, -1.0, 0.01)
        means, squares, truth = table.mean(axis=0), (table**2).mean(axis=0), 0.01 - 1.01 * rare
        low, high = distribution_free_band(means, squares, n, 0.95)
        inside.append(((low <= truth) & (truth <= high)).all())
        half = 2.0 * np.sqrt(np.maximum(squares - means**2, 0.0) / n)
        plain.append((truth >= means - half).all())
    assert np.mean(inside) >= 0.95
    assert np.mean(plain) < 0.9
    assert (distribution_free_band(np.ones(1), np.ones(1), 1, 0.95)[0] == -np.inf).all()


def test_bounds_by_definition():
    """Of numbers that are one of two, both extremes: Hoeffding's; of small ones: Bernstein's."""
    level = np.log(5 * 2 / 0.1)
    low, high = distribution_free_band(np.array([0.5, 0.0]), np.array([1.0, 1e-6]), 400, 0.9)
    assert (high - low)[0] / 2 == pytest.approx(np.sqrt(2 * level / 400))
    spread = 1e-3 * np.sqrt(400 / 399) + 2 * np.sqrt(2 * level / 399)
    assert (high - low)[1] / 2 == pytest.approx(spread * np.sqrt(2 * level / 400) + 2 * level / 1200)


def order_of(vote):
    return tuple(np.argsort(-vote).tolist())


# ---------------------------------------------------------------- calibration


def orders_with(nets):
    """A distribution of orders of three items with these d_01, d_12 and d_02, every order possible."""
    from scipy.optimize import linprog

    labels = [Permutations(places) for places in itertools.permutations((1, 2, 3))]
    places = np.array([label.positions for label in labels])
    above = np.sign(places[:, None, :] - places[:, :, None])
    rows = np.stack([above[:, 0, 1], above[:, 1, 2], above[:, 0, 2], np.ones(6)])
    cost = np.random.default_rng(0).random(6)
    probs = linprog(cost, A_eq=rows, b_eq=[*nets, 1.0], bounds=(0.01, 1)).x
    return LabelDistribution(tuple(labels), [probs / probs.sum()], queries=["q"] * 3)


def six_orders(*probs):
    """Of items 0, 1, 2, with these probabilities of 012, 021, 102, 120, 201, 210."""
    labels = tuple(Permutations(np.argsort(order) + 1) for order in itertools.permutations(range(3)))
    return LabelDistribution(labels, [probs], queries=["q"] * 3)


def every_order_alike(n):
    labels = tuple(Permutations(places) for places in itertools.permutations(range(1, n + 1)))
    return LabelDistribution(labels, np.full((1, len(labels)), 1 / len(labels)), queries=["q"] * n)


def independent(*chances):
    labels = list(itertools.product((0.0, 1.0), repeat=len(chances)))
    probs = [[np.prod([c if y else 1 - c for c, y in zip(chances, label, strict=True)]) for label in labels]]
    return LabelDistribution(tuple(labels), probs, queries=["q"] * len(chances))


def weighted_graph(*edges):
    better, worse, weights = zip(*edges, strict=True)
    return Preferences(better, worse, 3, weights)


def rare_heavy():
    """Nearly all say 0 > 1 > 2 at weight 1; a few, 2 > 0 at weight 100, which makes a cycle."""
    many, few = weighted_graph((0, 1, 1), (1, 2, 1), (0, 2, 1)), weighted_graph((2, 0, 100))
    return LabelDistribution((many, few), [[0.985, 0.015]], queries=["q"] * 3)


def heavy_tail():
    """A weight 2^k of 2 > 0 has probability 2^-k / 2; a light cycle."""
    powers = np.arange(1, 13)
    probs = 2.0**-powers / (2.0**-powers).sum()
    mean = float(probs @ 2.0**powers)
    there = [weighted_graph((0, 1, mean), (1, 2, mean), (2, 0, 2.0**power)) for power in powers]
    back = weighted_graph((0, 1, mean), (1, 2, mean), (0, 2, 0.98 * mean))
    return LabelDistribution((*there, back), [[*(probs / 2), 0.5]], queries=["q"] * 3)


POPULATIONS = {  # distribution, conditions, number of samples; all but the first two are on a knife's edge
    "random grades": (lambda: misspecified().distribution, ("P_reinforce",), 1),
    "random graphs": (lambda: misspecified("preferences").distribution, ON_GRAPHS, 1),
    "a light cycle": (lambda: orders_with((0.03, 0.03, -0.03)), ON_GRAPHS, 60),
    "equal sums": (lambda: orders_with((0.3, 0.3, 0.6)), ON_GRAPHS, 60),
    "just too short": (lambda: orders_with((0.3, 0.3, 0.55)), ON_GRAPHS, 60),
    "all alike": (lambda: every_order_alike(5), ON_GRAPHS, 40),
    "four orders alike": (lambda: every_order_alike(4), ("order_preserving",), 40),
    "independent": (lambda: independent(0.6, 0.6, 0.5), ("P_reinforce",), 60),
    "company": (lambda: company().distribution, ("P_reinforce",), 60),
}


def check_calibration(rows, wrong=lambda row: row.wrong):
    """No more than one in twenty statements contradicts the truth, however many annotators there are."""
    for row in rows:
        assert wrong(row) <= 0.05, row


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
def test_states_are_seldom_wrong(population):
    make, names, n_samples = POPULATIONS[population]
    for name in names:
        rows = calibrate(make(), name, sizes=(5, 30, 500), n_samples=n_samples, n_bootstrap=200)
        check_calibration(rows)
        assert rows[0].holds + rows[0].fails <= 0.05  # five annotators decide nothing


WEIGHTED = {"rare heavy weights": (rare_heavy, 100.0), "a heavy tail": (heavy_tail, 4096.0)}


@pytest.mark.slow
@pytest.mark.parametrize("population", WEIGHTED)
def test_states_of_weighted_votes_are_seldom_wrong(population):
    make, largest = WEIGHTED[population]
    for name in ON_GRAPHS:
        rows = calibrate(make(), name, sizes=(5, 20, 100), n_samples=40, largest=largest)
        check_calibration(rows)


def test_the_check_rejects_a_limit_that_votes_exceed():
    """Given that no vote weighs more than those seen, which is not true here, statements are often wrong."""
    with pytest.raises(AssertionError):
        check_calibration(calibrate(rare_heavy(), "P_DAG", sizes=(20, 50), n_samples=60))


def test_enough_weighted_votes_decide():
    for truth, state in ((rare_heavy(), "fails"), (tilted(0.3), "holds")):
        people = Replicates.sample(truth, 50_000)
        assert check(people, "P_DAG", largest=100.0).queries[0].state == state


def tilted(share):
    """All say 0 > 1 > 2, some at weight 100."""
    edges = (0, 1), (1, 2), (0, 2)
    labels = tuple(weighted_graph(*((*edge, weight) for edge in edges)) for weight in (1, 100))
    return LabelDistribution(labels, [[1 - share, share]], queries=["q"] * 3)


def test_what_is_assumed_is_reported():
    people = Replicates.from_labels([weighted_graph((0, 1, 2), (1, 2, 1))] * 5)
    report, wide_report = check(people, "P_DAG"), check(people, "P_f", f=first_of, largest=3, largest_f=7)
    assert report.assumes == ("no vote prefers one item to another by a weight above 2 (the largest seen)",)
    assert "by bounds for votes of different weights, given that no vote prefers" in str(report)
    assert "above 3 and that no vote sets f of two items apart by more than 7." in str(wide_report)
    assert json.loads(wide_report.to_json())["assumes"] == list(wide_report.assumes)
    even = check(Replicates.from_labels([Preferences([0], [1], 3)] * 5), "P_DAG")
    assert not even.bounds
    assert "given that no vote prefers one item to another by a weight above 1" in str(even)
    assert check(ORDERS, "P_f").assumes == ()


def first_of(better, worse, weights, n_items):
    """How much an item is preferred."""
    del worse
    return np.bincount(better, weights, minlength=n_items)


@pytest.mark.slow
def test_the_check_rejects_the_naive_rule():
    """Taking the support for a probability states the contrary of the truth in most samples."""
    for population, name in (
        ("a light cycle", "P_DAG"),
        ("all alike", "low_noise"),
        ("company", "P_reinforce"),
    ):
        make, _, n_samples = POPULATIONS[population]
        rows = calibrate(make(), name, sizes=(5, 30), n_samples=n_samples, n_bootstrap=200)
        with pytest.raises(AssertionError):
            check_calibration(rows, wrong=lambda row: row.naive_wrong)


@pytest.mark.parametrize(
    ("distribution", "name", "state"),
    [
        (lambda: orders_with((0.3, 0.3, 0.5)), "P_DAG", "holds"),
        (lambda: orders_with((0.3, 0.3, 0.5)), "P_f", "holds"),
        (lambda: orders_with((0.2, 0.2, 0.6)), "low_noise", "holds"),
        (lambda: orders_with((0.3, 0.3, -0.3)), "P_DAG", "fails"),
        (lambda: orders_with((0.3, 0.3, -0.3)), "P_f", "fails"),
        (lambda: orders_with((0.5, 0.5, 0.6)), "low_noise", "fails"),
        (lambda: independent(0.8, 0.5, 0.2), "P_reinforce", "holds"),
        (lambda: company().distribution, "P_reinforce", "fails"),
        (lambda: six_orders(0.35, 0.2, 0.18, 0.1, 0.12, 0.05), "order_preserving", "holds"),
        (lambda: six_orders(0.35, 0.2, 0.18, 0.1, 0.05, 0.12), "order_preserving", "fails"),
    ],
)
def test_enough_annotators_decide(distribution, name, state):
    truth = distribution()
    assert holds_on(truth, name).tolist() == [state == "holds"]
    states = {check(Replicates.sample(truth, 20_000, seed), name).queries[0].state for seed in range(5)}
    assert states == {state}


# ---------------------------------------------------------------- few, none, all alike


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_annotators", [1, 2, 3])
def test_few_annotators_are_no_certainty(name, n_annotators):
    """Unanimous or not."""
    for votes in ([0, 1, 2], [0, 2, 1]):
        people = Replicates.from_orders([[0, 1, 2]] * (n_annotators - 1) + [votes])
        if name == "P_reinforce":
            people = Replicates.from_array(
                [[1, 1, 0]] * (n_annotators - 1) + [[float(i == votes[0]) for i in range(3)]]
            )
        assert check(people, name, n_bootstrap=200).counts["undecided"] == 1


def test_unanimity_becomes_certain():
    states = [
        check(Replicates.from_orders([[0, 1, 2, 3]] * n), "P_DAG", n_bootstrap=200).queries[0].state
        for n in (1, 3, 5, 7, 12, 30)
    ]
    assert states[0] == "undecided"
    assert states[-1] == "holds"
    assert sorted(states, key=["undecided", "holds"].index) == states


@pytest.mark.parametrize("name", NAMES)
def test_one_item_is_always_in_order(name):
    people = Replicates.from_array([[1.0]]) if name == "P_reinforce" else Replicates.from_orders([[0]])
    (query,) = check(people, name, n_bootstrap=200).queries
    assert (query.state, query.estimate, query.support) == ("holds", True, 1.0)


@pytest.mark.parametrize("name", ["P_reinforce", *ON_GRAPHS])
def test_two_items_cannot_break_most_conditions(name):
    (query,) = check(Replicates.from_array([[1, 0], [0, 1]]), name, n_bootstrap=200).queries
    assert query.state == "holds"


def test_two_items_can_break_another_family():
    def worst(better, worse, weights, n_items):
        del better, weights
        return np.bincount(worse, minlength=n_items)

    (query,) = check(Replicates.from_orders([[0, 1]] * 40), "P_f", f=worst, n_bootstrap=200).queries
    assert (query.state, query.shown) == ("fails", ("0", "1"))


@pytest.mark.parametrize("name", ["P_reinforce", *ON_GRAPHS])
@pytest.mark.parametrize("grade", [0.0, 1.0])
def test_ties_of_all_are_undecided(name, grade):
    """Nothing speaks against the condition, and nothing for it: the next annotator may break it."""
    (query,) = check(Replicates.from_array(np.full((50, 3), grade)), name, n_bootstrap=200).queries
    assert (query.state, query.support) == ("undecided", 1.0)


def test_a_margin_settles_ties():
    (query,) = check(Replicates.from_array(np.ones((200, 3))), "P_DAG", margin=0.1, n_bootstrap=200).queries
    assert query.state == "holds"
    people = Replicates.sample(every_order_alike(4), 2000)
    for name in ON_GRAPHS:
        states = [
            check(people, name, margin=margin, n_bootstrap=200).queries[0].state for margin in (0.0, 0.3)
        ]
        assert states == ["undecided", "holds"], name


def test_orders_that_nobody_gave_are_not_impossible():
    """Two of six orders, as often as one likes: the others may have any small probability."""
    people = Replicates.from_orders([[0, 1, 2]] * 900 + [[1, 0, 2]] * 300)
    (query,) = check(people, "order_preserving", n_bootstrap=200).queries
    assert (query.state, query.estimate, query.support) == ("undecided", True, 1.0)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(NAMES), times=st.integers(2, 5))
def test_who_says_it_does_not_matter(seed, name, times):
    """Annotators in another order give the same report; each of them several times, the same estimate."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    table = rng.integers(0, 2, (int(rng.integers(1, 9)), n)).astype(float)
    orders = np.argsort(rng.random((len(table), n)), axis=1)

    def people(rows):
        return (
            Replicates.from_orders(orders[rows])
            if name == "order_preserving"
            else Replicates.from_array(table[rows])
        )

    every = np.arange(len(table))
    first = check(people(every), name, n_bootstrap=200).queries
    assert check(people(rng.permutation(every)), name, n_bootstrap=200).queries == first
    again = check(people(np.tile(every, times)), name, n_bootstrap=200).queries
    assert again[0].estimate == first[0].estimate


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_conditions_contain_one_another_resample_by_resample(seed):
    """Low noise is inside P_f of the net weights, and that inside P_DAG; the draws are the same."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, 3, (6, int(rng.integers(2, 6)))).astype(float)
    people = Replicates.from_array(votes)
    low, followed, dag = (
        check(people, name, n_bootstrap=200).queries[0].support for name in ("low_noise", "P_f", "P_DAG")
    )
    assert low <= followed <= dag


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
def test_the_unit_of_weights_does_not_matter(scale):
    graphs = [([0, 1, 0], [1, 2, 2], [2, 1, 3]), ([1], [0], [1]), ([2, 0], [0, 1], [1, 1])]

    def people(unit):
        labels = [
            Preferences(better, worse, 3, unit * np.array(weights)) for better, worse, weights in graphs
        ]
        return Replicates.from_labels([label for label in labels for _ in range(15)])

    for name in ON_GRAPHS:
        assert check(people(scale), name).queries == check(people(1.0), name).queries


def test_nobody_counts_nothing():
    """A ballot of no people, and an annotator who judged nothing, are as if they were not there."""
    ballots = [[[0], [1], [2]], [[2], [1], [0]]]
    some = Profile(["a", "b", "c"], np.array([5, 0]), ballots)
    alone = Profile(["a", "b", "c"], np.array([5]), ballots[:1])
    assert (
        check(Replicates.from_orders(some), "P_f").queries
        == check(Replicates.from_orders(alone), "P_f").queries
    )
    silent = Replicates.from_array([[1, 0, 1], [np.nan] * 3])
    assert silent.votes[0].n_annotators == 1


# ---------------------------------------------------------------- votes as given


def test_tables_and_arrays_say_the_same():
    rng = np.random.default_rng(9)
    table = rng.integers(0, 3, (7, 10)).astype(float)
    table[rng.random(table.shape) < 0.3] = np.nan
    qid = np.array([3, 1, 1, 3, 3, 1, 2, 2, 1, 3])
    who, row = np.nonzero(~np.isnan(table))
    order = rng.permutation(len(who))
    who, row = who[order], row[order]
    long = Replicates.from_table(qid[row], row, [f"p{person}" for person in who], table[who, row])
    wide = Replicates.from_array(table, qid)
    assert long.ids == wide.ids == (1, 2, 3)
    for vote, other in zip(long.votes, wide.votes, strict=True):
        assert vote.items == other.items
        np.testing.assert_array_equal(vote.values, other.values)
        assert vote.counts.tolist() == other.counts.tolist()
    assert check(long, "P_f", n_bootstrap=200).queries == check(wide, "P_f", n_bootstrap=200).queries


def test_not_judged_is_said_by_nan_in_tables_too():
    people = Replicates.from_table(
        None, ["a", "b", "c", "a", "a"], [1, 1, 1, 2, 2], [1, np.nan, np.nan, 0, np.nan]
    )
    assert people.votes[0].items == ("a", "b", "c")
    np.testing.assert_array_equal(people.votes[0].values, [[0, np.nan, np.nan], [1, np.nan, np.nan]])


def test_items_have_names():
    named = Replicates.from_orders([["tea", {"milk", "juice"}], ["milk", "tea"]])
    plain = Replicates.from_orders([[2, {1, 0}], [1, 2]])
    assert named.votes[0].items == ("juice", "milk", "tea")
    np.testing.assert_array_equal(named.votes[0].values, plain.votes[0].values)
    cycle = 40 * [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    assert "shown by items a, b, c" in str(check(Replicates.from_orders(cycle), "P_DAG"))
    assert Replicates.from_orders(np.array([["b", "a"]])).votes[0].items == ("a", "b")
    assert Replicates.from_orders([[2.5, "a", 7]]).votes[0].n_items == 3


def test_items_that_nobody_ranks_are_counted_on_request():
    assert Replicates.from_orders([[0, 5]], n_items=8).votes[0].n_items == 8


def test_orders_of_any_form_say_the_same():
    ballots = [[[0], [1, 2]], [[2], [0], [1]], [[1]]]
    profile = Profile(["0", "1", "2"], np.array([2, 3, 1]), ballots)
    lists = 2 * [[0, (1, 2)]] + 3 * [[2, 0, 1]] + [[1]]
    labels = 2 * [[2, 1, 1]] + 3 * [[1, 0, 2]]
    read = [Replicates.from_orders(orders, unranked="last").votes[0] for orders in (profile, lists)]
    assert read[0].counts.tolist() == read[1].counts.tolist()
    np.testing.assert_array_equal(read[0].values, read[1].values)
    assert sorted(read[0].values.tolist()) == [[0, 2, 0], [1, 0, 2], [2, 0, 0]]
    nets = Replicates.from_orders(profile).votes[0]
    expected = profile.matrix() - profile.matrix().T
    np.testing.assert_array_equal(np.tensordot(nets.counts, nets.nets(), 1), expected)
    graded = Replicates.from_array(labels).votes[0]
    ranked = Replicates.from_orders(lists[:-1]).votes[0]
    np.testing.assert_array_equal(graded.nets().sum(axis=0), ranked.nets().sum(axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_says_what_its_labels_say(name):
    """The condition on the sample is the condition on the distribution with the sample's shares."""
    rng = np.random.default_rng(10)
    if name == "order_preserving":
        labels = tuple(Permutations([*rng.permutation(3) + 1, *rng.permutation(4) + 1]) for _ in range(4))
    elif name == "P_reinforce":
        labels = tuple(rng.integers(0, 3, 7).astype(float) for _ in range(4))
    else:
        labels = tuple(
            Preferences(*rng.permuted([[0, 1], [1, 2], [4, 3], [5, 6]], axis=1).T, 7) for _ in range(4)
        )
    queries, even = [0] * 3 + [1] * 4, np.full((2, 4), 0.25)
    for seed in range(40):
        counts = rng.multinomial(9, even)
        sampled = LabelDistribution(labels, counts / 9, queries)
        people = Replicates.from_label_counts(LabelDistribution(labels, even, queries), counts)
        estimates = [query.estimate for query in check(people, name, n_bootstrap=200, seed=seed).queries]
        assert estimates == holds_on(sampled, name).tolist()
        assert [votes.n_annotators for votes in people.votes] == [9, 9]


def test_panels_are_complete():
    table = np.array([[1, 0, 1, np.nan, 2.0], [0, 0, np.nan, 1, 1], [1, 1, np.nan, np.nan, 0]])
    people = Replicates.from_array(table).panels()
    assert people.ids == ("0/1",)
    assert (people.votes[0].items, people.votes[0].n_annotators) == ((0, 1, 4), 3)
    assert (
        repr(Replicates.from_array(table).panels(1))
        == "Replicates(3 queries of 1 to 3 items, 1 to 3 annotators)"
    )
    assert check(people, "P_reinforce", n_bootstrap=200).queries[0].n_items == 3


def test_among_few_items_orders_stay():
    orders = [[3, 1, 0, 2], [0, 1, 2, 3], [3, 1, 0, 2]]
    triples = Replicates.from_orders(orders).among(3)
    assert [votes.items for votes in triples.votes] == [*itertools.combinations("0123", 3)]
    assert triples.votes[0].counts.tolist() == [2, 1]  # 1, 0, 2 and 0, 1, 2
    assert check(triples, "order_preserving", n_bootstrap=200).queries[0].n_annotators == 3


def test_missing_judgements_are_no_preference():
    """Only who judged both of two items prefers one: the others count for neither side."""
    table = np.array([[1, 0, np.nan], [1, 0, np.nan], [np.nan, 0, 1.0]])
    votes = Replicates.from_array(table).votes[0]
    means = evidence("P_DAG", votes).means(votes.counts[None] / 3)[0]
    np.testing.assert_allclose(means, [2 / 3, 0, -1 / 3])


# ---------------------------------------------------------------- reports


def small_report(**settings):
    people = Replicates.from_orders(
        {"clear": [[0, 1, 2]] * 60, "cycle": 40 * [[0, 1, 2], [1, 2, 0], [2, 0, 1]], "few": [[0, 1, 2]]}
    )
    return check(people, "P_DAG", **settings)


def test_a_report_adds_up():
    report = small_report()
    assert [query.state for query in report.queries] == ["holds", "fails", "undecided"]
    assert report.counts == {"holds": 1, "fails": 1, "undecided": 1}
    assert [query.query for query in report.worst()] == ["cycle", "few"]
    assert [query.query for query in report.worst(1)] == ["cycle"]
    assert repr(report) == "ConditionReport(P_DAG on 3 queries: holds 1, fails 1, undecided 1)"
    assert report.rows()[1] == {
        "query": "cycle",
        "n_items": 3,
        "n_annotators": 120,
        "estimate": False,
        "support": 0.001,
        "state": "fails",
        "shown": ("0", "1", "2"),
    }
    text = str(report)
    assert "P_DAG on 3 queries: holds 1 (33%), fails 1 (33%), undecided 1 (33%)." in text
    assert "cycle: fails (3 items, 120 annotators, support 0.00, shown by items 0, 1, 2)" in text
    assert "edge deletion is optimal for pd" in text
    assert "at most 0.3 from the best pd" in str(small_report(margin=0.1))
    assert json.loads(report.to_json())["queries"][2]["state"] == "undecided"
    assert small_report(seed=0).to_json() == report.to_json()


def test_one_is_not_many():
    report = check(Replicates.from_array([[1.0]]), "P_DAG", confidence=0.999, n_bootstrap=10_000)
    text = str(report)
    assert text.startswith("P_DAG on 1 query: holds 1 (100%)")
    assert "Each at 99.9% confidence, by 10,000 resamples" in text
    assert "Most against it" not in text
    assert str(report.queries[0]) == "0: holds (1 item, 1 annotator, support 1.00)"
    assert repr(report).startswith("ConditionReport(P_DAG on 1 query:")


def test_numbers_of_numpy_become_json():
    people = Replicates.from_orders({np.int64(7): [[0, 1, 2]], (1, 2): [[0, 1]]})
    queries = json.loads(check(people, "P_DAG", n_bootstrap=200).to_json())["queries"]
    assert [query["query"] for query in queries] == [7, [1, 2]]


def test_progress_is_reported():
    progress = []
    small_report(step=progress.append, n_bootstrap=200)
    assert progress == ["clear", "cycle", "few"]


def test_a_plot_of_reports(tmp_path):
    pytest.importorskip("plotly")
    from concordant.evaluation.outcome_plots import conditions_figure, plot_conditions

    report = small_report(n_bootstrap=200)
    figure = conditions_figure([report, small_report(n_bootstrap=200, margin=0.1)])
    assert len(figure.data) == 6
    assert [point.name for point in figure.data if point.showlegend] == ["holds", "fails", "undecided"]
    assert figure.data[1].x == (120,)
    assert "margin 0.1" in figure.layout.annotations[1].text
    plot_conditions(report, tmp_path / "conditions.html")
    assert "cycle: fails" in (tmp_path / "conditions.html").read_text()
    assert figure.layout.xaxis.ticktext == ("1", "10", "100", "1,000")
    with pytest.raises(EmptyDataError):
        conditions_figure([])
    for path, text in ((tmp_path / "a.svg", "ends in .html"), (tmp_path / "no" / "a.html", "in a folder")):
        with pytest.raises(ParameterError, match=text):
            plot_conditions(report, path)
    assert [file.name for file in tmp_path.iterdir()] == ["conditions.html"]


# ---------------------------------------------------------------- bad input

ORDERS = Replicates.from_orders([[0, 1, 2]])
GRADES = Replicates.from_array([[1, 0, 1]])
PAIRS = Replicates.from_labels([Preferences([0], [1], 3)])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: check(ORDERS, "P_DAGs"), UnknownNameError, "Did you mean 'P_DAG'"),
        (lambda: check(ORDERS, "P_reinforce"), LabelError, "needs relevance"),
        (lambda: check(GRADES, "order_preserving"), LabelError, "from_orders"),
        (lambda: check(Replicates.from_orders([[0, 1], [2, 1, 0]]), "order_preserving"), LabelError, "2 of"),
        (lambda: check(Replicates.from_orders([[0, {1, 2}]]), "order_preserving"), LabelError, "ties"),
        (lambda: check(Replicates.from_array([[1, np.nan]]), "P_reinforce"), LabelError, r"panels\(\) makes"),
        (lambda: check(GRADES, "P_reinforce", metric="ndcg"), ParameterError, "must be ap"),
        (lambda: check(ORDERS, "P_DAG", metric="ap"), ParameterError, "only with condition 'P_reinforce'"),
        (lambda: check(ORDERS, "P_DAG", f=len), ParameterError, "only with condition 'P_f'"),
        (lambda: check(ORDERS, "P_f", f="borda"), ParameterError, "a function"),
        (lambda: check(ORDERS, "P_f", f=lambda *_: [1.0]), ConcordantError, "f of query 0"),
        (lambda: check(ORDERS, "order_preserving", margin=0.1), ParameterError, "margin"),
        (lambda: check(ORDERS, "P_DAG", margin=-1), ParameterError, "margin"),
        (lambda: check(ORDERS, "P_DAG", confidence=1.0), ParameterError, "confidence"),
        (lambda: check(ORDERS, "P_DAG", n_bootstrap=0), ParameterError, "n_bootstrap"),
        (lambda: check(ORDERS, "P_DAG", seed=-1), ParameterError, "seed"),
        (lambda: Replicates.from_array([1, 0]), ConcordantError, r"\(n_annotators, n_rows\)"),
        (lambda: Replicates.from_array([[1, -1]]), ConcordantError, r"grades is -1.0 at \[0, 1\]"),
        (lambda: Replicates.from_array([["a"]]), ConcordantError, "numeric"),
        (lambda: Replicates.from_array(np.empty((0, 2))), EmptyDataError, "grades"),
        (lambda: Replicates.from_array([[np.nan, 1]], qid=[0, 1]), LabelError, "query 0 has no votes"),
        (lambda: Replicates.from_array([[1, 0]], qid=[0, 1, 2]), ConcordantError, "qid"),
        (lambda: Replicates.from_table(None, [1, 1], [5, 5], [0, 1]), LabelError, "5 judged item 1 2 times"),
        (lambda: Replicates.from_table(None, [1], [5, 6], [0, 1]), ConcordantError, "item"),
        (lambda: Replicates.from_orders([]), EmptyDataError, "orders"),
        (lambda: Replicates.from_orders({}), EmptyDataError, "orders"),
        (lambda: Replicates.from_orders([[0, 0]]), LabelError, "twice"),
        (lambda: Replicates.from_orders([["a", "b"]], n_items=2), ParameterError, "n_items"),
        (lambda: Replicates.from_orders([["a", None]]), LabelError, "has the item None"),
        (lambda: Replicates.from_orders([[np.nan, 1]]), LabelError, "has the item nan"),
        (lambda: Replicates.from_orders([[True, 1]]), LabelError, "has the item True"),
        (lambda: Replicates.from_orders([[-1, 0]]), LabelError, "has the item -1"),
        (lambda: Replicates.from_orders([[0, 10**7]]), LabelError, "the highest is 10000000"),
        (lambda: Replicates.from_orders([[0, 5]]), LabelError, "give n_items"),
        (lambda: Replicates.from_orders([[0, 5]], n_items=10**7), LabelError, "GiB"),
        (lambda: Replicates.from_orders([[0, 1]], n_items=0), ParameterError, "n_items"),
        (lambda: check(Replicates.from_array([range(10**5)]), "P_DAG"), LabelError, "GiB"),
        (lambda: check([[1, 0, 2]], "P_DAG"), LabelError, "Replicates.from_orders"),
        (lambda: check(ORDERS, "P_DAG", n_bootstrap=1, confidence=0.9999), ParameterError, "100,000"),
        (lambda: check(ORDERS, "P_DAG", n_bootstrap=199), ParameterError, "at least 200"),
        (lambda: check(ORDERS, "P_DAG", largest=2), ParameterError, "only preferences"),
        (lambda: check(ORDERS, "P_f", largest_f=2), ParameterError, "largest_f needs f"),
        (lambda: check(ORDERS, "P_f", f=first_of, largest_f=1), ParameterError, "largest_f"),
        (lambda: check(PAIRS, "P_DAG", largest=0.5), ParameterError, "largest value in the data"),
        (lambda: check(PAIRS, "P_DAG", largest=np.inf), ParameterError, "finite"),
        (lambda: Replicates.from_array([[1, None]]), LabelError, "use NaN for not judged"),
        (lambda: Replicates.from_table(None, [1], [5], [None]), LabelError, "use NaN for not judged"),
        (lambda: Replicates.from_table(None, [1], [5], [-1]), ConcordantError, "grade -1 at row 0"),
        (lambda: Replicates.from_table(None, [1], [5], [np.inf]), ConcordantError, "inf"),
        (lambda: Replicates.from_table(None, [1], [5], [np.nan]), LabelError, "no votes"),
        (lambda: Replicates.from_orders([0, 1]), LabelError, "as a list"),
        (lambda: Replicates.from_orders("drinks.soc"), LabelError, "read_preflib"),
        (lambda: Replicates.from_orders([[0, 3]], n_items=3), LabelError, "names item 3"),
        (lambda: Replicates.from_orders([[0, 1]], unranked="first"), ParameterError, "unranked"),
        (lambda: Replicates.from_labels([]), EmptyDataError, "labels"),
        (lambda: Replicates.from_labels([[1, 0], Preferences([0], [1], 2)]), LabelError, "several kinds"),
        (lambda: Replicates.from_labels([Preferences([0], [1], 2)]).panels(), LabelError, "do not record"),
        (lambda: ORDERS.among(4), LabelError, "no query has 4 items"),
        (lambda: Replicates.from_orders([range(60)]).among(6), ParameterError, "100,000"),
        (lambda: GRADES.panels(9), LabelError, "ask for fewer"),
        (lambda: Replicates.sample(every_order_alike(2), 0), ParameterError, "n_annotators"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


# ---------------------------------------------------------------- real annotators


def test_crowd_relevance(shared_data):
    """Documents were judged five at a time, by five to nine workers: too few to decide."""
    from concordant.data.datasets import load

    votes = load("crowd-relevance", folder=shared_data)
    people = Replicates.from_table(votes.query, votes.item, votes.annotator, votes.grade)
    with pytest.raises(LabelError, match="judged"):
        check(people, "P_reinforce")
    panels = people.panels(3)
    assert {panel.n_items for panel in panels.votes} == {3, 4, 5}
    report = check(panels, "P_reinforce", n_bootstrap=200)
    assert report.counts["undecided"] == len(panels)
    assert sum(Fraction(query.estimate) for query in report.queries) > len(panels) / 2


def test_puzzles_with_a_known_order(shared_data):
    """Voters ordered four puzzles by their distance from the solution: noise, but no cycles."""
    from concordant.data.datasets import load

    people = Replicates.from_orders(load("preflib-puzzle", folder=shared_data))
    assert check(people, "P_DAG", n_bootstrap=200).counts["holds"] == 4
    assert check(people, "low_noise", n_bootstrap=200).counts["fails"] == 4


@pytest.mark.slow
def test_three_kinds_of_sushi(shared_data):
    from concordant.data.datasets import load

    people = Replicates.from_orders(load("sushi-orders-a", folder=shared_data).item.reshape(-1, 10))
    assert check(people, "order_preserving", n_bootstrap=200).counts["undecided"] == 1
    counts = check(people.among(3), "order_preserving", n_bootstrap=200).counts
    assert counts["fails"] > counts["holds"] > 0
