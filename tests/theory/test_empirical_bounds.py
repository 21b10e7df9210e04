"""Bounds for fitted rankers: by hand, the facts each step rests on, and samples that try to break them."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import concordant as cc
from concordant.exceptions import ConcordantError, ParameterError
from concordant.surrogates import ListwiseHinge, PositionHinge, Preorder
from concordant.theory.bounds import empirical
from concordant.theory.bounds.empirical import shape, terms
from concordant.theory.bounds.hinges import hinge_facts

pytestmark = pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")  # hinges, on purpose
PLAIN = Preorder("pairs", margin="hinge")
HINGES = {
    "ap": ListwiseHinge(cc.metric("ap")),
    "ndcg": ListwiseHinge(cc.metric("ndcg")),
    "p@2": ListwiseHinge(cc.metric("p@2")),
    "auc": ListwiseHinge(cc.metric("auc")),
    "softmax": ListwiseHinge(cc.metric("ndcg"), "softmax", 0.3),
    "position": PositionHinge("pairs"),
    "position, all pairs": PositionHinge("all_pairs"),
    "position, sum": PositionHinge(),
    "plain": PLAIN,
}
every_hinge = pytest.mark.parametrize("name", HINGES)


class Lists:
    """A few lists with scores; some empty, of one item, or of one label."""

    def __init__(self, seed, scale=1.0):
        rng = np.random.default_rng(seed)
        self.queries = cc.Queries.from_sizes(rng.integers(0, 7, 6))
        n_rows = self.queries.n_rows
        self.y = rng.integers(0, 3, n_rows).astype(float)
        self.scores, self.other = np.round(scale * rng.normal(size=(2, n_rows)), int(rng.integers(0, 3)))

    def facts(self, name, error="margin"):
        return hinge_facts(HINGES[name], self.y, self.queries, 1.0, error)

    def per_list(self, values, function):
        return np.array([function(part) for part in np.split(values, self.queries.offsets[1:-1])])


@every_hinge
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 10.0]), plain=st.booleans())
def test_the_hinge_dominates_the_error_also_cut_off(name, seed, scale, plain):
    lists = Lists(seed, scale)
    facts = lists.facts(name, "plain" if plain else "margin")
    error, cut, values = (part(lists.scores) for part in (facts.error, facts.cut, facts.values))
    assert (error <= facts.multiplier * cut + 1e-9).all()
    assert (cut <= values + 1e-9).all()
    assert (cut >= 0.0).all()
    assert (cut <= facts.ceiling + 1e-9).all()
    assert (error <= facts.largest + 1e-9).all()
    assert (facts.values(0.0 * lists.scores) <= facts.rest + 1e-9).all()
    assert (values <= facts.height(np.abs(lists.scores).max(initial=0.0)) + 1e-9).all()


@every_hinge
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_the_slopes_hold_also_cut_off(name, seed, scale):
    lists = Lists(seed, scale)
    facts = lists.facts(name)
    step = lists.other - lists.scores
    moved = lists.per_list(step, np.linalg.norm)
    apart = lists.per_list(np.column_stack([step, facts.codes]), moved_apart)
    for part in (facts.values, facts.cut):
        change = np.abs(part(lists.other) - part(lists.scores))
        assert (change <= facts.slopes * moved + 1e-9).all()
        assert (change <= facts.pair_slopes * apart + 1e-9).all()


def moved_apart(rows):
    """Length of the vector of changes of differences, over pairs of different levels."""
    step, codes = rows.T
    different = codes[:, None] < codes[None, :]
    return np.sqrt(((step[:, None] - step[None, :])[different] ** 2).sum())


SIGNS = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.03, 0.3])
@every_hinge
def test_rademacher_averages_of_a_sample(name, spread):
    """All signs of eight lists, weights all over the disc: the average is below each contraction's bound."""
    rng = np.random.default_rng(5)
    sizes = np.array([2, 3, 4, 5, 2, 6, 3, 4])
    queries, n = cc.Queries.from_sizes(sizes), len(sizes)
    y = np.concatenate([np.arange(size) % 3 for size in sizes]).astype(float)
    sides = np.where(y > 0, 1.0, -1.0)[:, None] * np.array([1.0, 0.3])
    X = spread * (sides + 0.1 * rng.normal(size=sides.shape))
    turns = np.linspace(0.0, 2.0 * np.pi, 60)
    weights = np.vstack([r * np.column_stack([np.cos(turns), np.sin(turns)]) for r in (0.0, 0.3, 0.7, 1.0)])
    facts = hinge_facts(HINGES[name], y, queries, 1.0, "margin")
    measured = shape(X, queries, facts.codes)
    for part, tight in ((facts.values, False), (facts.cut, True)):
        losses = np.array([part(X @ w) for w in weights])
        average = (losses @ SIGNS.T).max(axis=0).mean() / n
        complexity = terms(facts, measured, 1.0, 1.0, 0.5, tight=tight)[0].value
        assert average <= complexity / 2.0
        # A sample on which the bound has work to do; cut off, a soft-max hardly moves.
        assert average >= complexity / (400.0 if name == "softmax" and tight else 40.0)


def test_a_bound_without_its_constant_is_caught():
    """One pair a list, all differences alike and small: pair by pair, the bound is nearly attained."""
    n = 8
    y, X = np.tile([1.0, 0.0], n), np.tile([[0.1], [-0.1]], (n, 1))
    queries = cc.Queries.from_sizes([2] * n)
    facts = hinge_facts(PLAIN, y, queries, 1.0, "margin")
    losses = np.array([facts.cut(X @ np.array([w])) for w in (-1.0, 0.0, 1.0)])
    average = (losses @ SIGNS.T).max(axis=0).mean() / n
    half = terms(facts, shape(X, queries, facts.codes), 1.0, 1.0, 0.5, tight=True)[0].value / 2.0
    assert 0.3 * half < average <= half


def test_pairs_by_hand():
    rng = np.random.default_rng(2)
    queries = cc.Queries.from_sizes([4, 1, 5])
    y, X = np.array([0.0, 1, 1, 2, 1, 0, 0, 0, 2, 2]), rng.normal(size=(10, 3))
    measured = shape(sparse.csr_array(X), queries, hinge_facts(PLAIN, y, queries, 1.0, "margin").codes)
    for q, (first, last) in enumerate(itertools.pairwise(queries.offsets)):
        pairs = [(i, j) for i in range(first, last) for j in range(i, last) if y[i] != y[j]]
        assert measured.apart[q] == pytest.approx(sum(((X[i] - X[j]) ** 2).sum() for i, j in pairs))
    total = sum(measured.apart[q] / count for q, count in ((0, 5.0), (2, 6.0)))
    facts = hinge_facts(PLAIN, y, queries, 1.0, "margin")
    complexity = terms(facts, measured, 2.0, 1.0, 0.5, tight=True)[0]
    assert complexity.value == pytest.approx(2.0 * 2.0 / 3.0 * math.sqrt(total))


def test_a_smaller_slope_is_caught():
    """The check above can fail: with nine tenths of the slope, reversing equal scores breaks it."""
    y, queries = np.arange(6.0), cc.Queries.from_sizes([6])
    facts = hinge_facts(PositionHinge("pairs"), y, queries, 1.0, "margin")
    nudge = 1e-3 * np.array([5.0, 3.0, 1.0, -1.0, -3.0, -5.0])
    change = facts.values(nudge) - facts.values(0.0 * nudge)
    assert change[0] == pytest.approx(facts.slopes[0] * np.linalg.norm(nudge))


@pytest.fixture(scope="module")
def toy():
    return cc.synthetic.grades(n_queries=60, n_items=6, n_features=3, seed=1)


@pytest.fixture(scope="module")
def model(toy):
    return cc.MaxMarginRanker("ap", alpha=2.0, fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)


def by_hand(toy, B, chance, height, *, tight=True):
    """Complexity and confidence of 1 - AP, list by list."""
    total, ids = 0.0, np.unique(toy.qid)
    for query in ids:
        X, y = toy.X[toy.qid == query], toy.y[toy.qid == query]
        m, rel = len(y), int((y >= 1).sum())
        slope = 4.0 * math.sqrt(rel * (m - rel) * m) / (m * (m - 1))
        by_scores = slope**2 * ((X - X.mean(axis=0)) ** 2).sum()
        apart = sum(((a - b) ** 2).sum() for a in X[y >= 1] for b in X[y < 1])
        by_pairs = (4.0 / (m * (m - 1))) ** 2 * rel * (m - rel) * apart
        total += min(by_scores, by_pairs) if tight else by_scores
    n = len(ids)
    complexity = 2.0 * math.sqrt(2.0) * B / n * math.sqrt(total)
    return complexity, 3.0 * height * math.sqrt(math.log(2.0 / chance) / (2.0 * n))


def test_the_formula_by_hand(model, toy):
    bound = empirical(model, toy.X, toy.y, toy.qid, delta=0.1)
    B = math.sqrt(2.0 / 2.0)
    assert (bound.rule, bound.B) == ("regulariser", B)
    assert [term.value for term in bound.parts] == pytest.approx(by_hand(toy, B, 0.1, 1.0))
    assert bound.value == bound.multiplier * bound.empirical + bound.excess
    scores = model.predict(toy.X)
    values, _ = cc.listwise_hinge("ap")(scores, toy.y, qid=toy.qid)
    rest, _ = cc.listwise_hinge("ap")(0.0 * scores, toy.y, qid=toy.qid)
    assert bound.empirical == pytest.approx(np.minimum(values, rest).mean())
    assert bound.worst == pytest.approx(rest.mean())
    lost = 1.0 - cc.metric("ap").per_query(toy.y, scores, qid=toy.qid)
    assert bound.measured == pytest.approx(np.nan_to_num(lost).mean())


def test_the_sharp_version_says_what_it_assumes(model, toy):
    bound = empirical(model, toy.X, toy.y, toy.qid, version="sharp")
    far = max(
        np.linalg.norm(toy.X[toy.qid == query] - toy.X[toy.qid == query].mean(axis=0), axis=1).max()
        for query in np.unique(toy.qid)
    )
    assert pytest.approx(far) == bound.M
    height = 1.0 + 2.0 * cc.theory.bounds.kappa(6) * bound.B * far
    expected = by_hand(toy, bound.B, 0.05, height, tight=False)
    assert [term.value for term in bound.parts] == pytest.approx(expected)
    assert any("farther" in text for text in bound.assumes)
    far_bound = empirical(model, toy.X, toy.y, toy.qid, version="sharp", M=2.0 * far)
    assert far_bound.excess > bound.excess
    assert not any("farther" in text for text in far_bound.assumes)
    tight = empirical(model, toy.X, toy.y, toy.qid)
    assert tight.value < bound.value
    assert not any("farther" in text for text in tight.assumes)


@pytest.mark.parametrize(
    ("length", "base", "k"), [(0.3, 1.0, 0), (1.0, 1.0, 0), (5.0, 1.0, 3), (0.3, 0.1, 2)]
)
def test_the_union(toy, length, base, k):
    class Given:
        coef_ = np.array([length, 0.0, 0.0])

    bound = empirical(Given(), toy.X, toy.y, toy.qid, loss=HINGES["ap"], base=base)
    assert (bound.rule, bound.B) == ("union", base * 2.0**k)
    assert [term.value for term in bound.parts] == pytest.approx(
        by_hand(toy, bound.B, 0.05 / ((k + 1) * (k + 2)), 1.0)
    )


def test_weights_of_length_zero_have_a_union(toy):
    class Zero:
        coef_ = np.zeros(3)

    assert empirical(Zero(), toy.X, toy.y, toy.qid, loss=HINGES["ap"]).B == 1.0


def test_which_rule_is_fair(toy):
    scaled = cc.MaxMarginRanker("ap").fit(toy.X, toy.y, qid=toy.qid)
    assert empirical(scaled, toy.X, toy.y, toy.qid).rule == "union"
    with pytest.raises(ParameterError, match="fit_scale=False"):
        empirical(scaled, toy.X, toy.y, toy.qid, B="regulariser")
    linear = cc.LinearRanker("ndcg", fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)
    bound = empirical(linear, toy.X, toy.y, toy.qid)
    assert (bound.rule, bound.bounds) == ("union", "loss by ndcg")


@every_hinge
def test_the_regulariser_is_kept(name, toy):
    """Fitted weights are never longer than the B that the penalty promises."""
    for alpha in (0.01, 10.0):
        model = cc.MaxMarginRanker("ndcg", HINGES[name], alpha, fit_scale=False)
        model.fit(toy.X, toy.y, qid=toy.qid)
        bound = empirical(model, toy.X, toy.y, toy.qid)
        assert bound.rule == "regulariser"
        assert bound.length <= bound.B


@pytest.mark.slow
def test_row_order_and_sparsity_do_not_matter(model, toy):
    bound = empirical(model, toy.X, toy.y, toy.qid, version="sharp")
    order = np.random.default_rng(0).permutation(len(toy.y))
    moved = empirical(model, sparse.csr_array(toy.X[order]), toy.y[order], toy.qid[order], version="sharp")
    assert moved.value == pytest.approx(bound.value)
    assert pytest.approx(bound.M) == moved.M


def test_it_reads_like_a_statement(model, toy):
    bound = empirical(model, toy.X, toy.y, toy.qid)
    assert str(bound).startswith(f"loss by ap <= {bound.value:.4g} = {bound.empirical:.4g} + ")
    assert "assumes that alpha was fixed before" in str(bound)
    assert ("vacuous" in repr(bound)) == bound.vacuous == (bound.value >= 1.0)
    needed = bound.queries_needed(0.1)
    assert bound.excess * math.sqrt(bound.n / needed) <= 0.1 + 1e-12
    assert bound.excess * math.sqrt(bound.n / (needed - 1)) > 0.1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delta": 0.0}, "delta"),
        ({"version": "published"}, "version"),
        ({"B": 1e-6}, "at least the length"),
        ({"B": "magic"}, "B"),
        ({"base": 0.0, "B": "union"}, "base"),
        ({"M": -1.0, "version": "sharp"}, "M"),
        ({"loss": PositionHinge(), "error": "hinge"}, "error"),
        ({"loss": cc.surrogates.Softmax()}, "ListwiseHinge"),
        ({"loss": cc.listwise_hinge("ap", "sum")}, "max, softmax"),
        ({"largest": -1.0}, "largest"),
    ],
    ids=str,
)
def test_bad_input_is_named(model, toy, options, text):
    with pytest.raises(ConcordantError, match=text):
        empirical(model, toy.X, toy.y, toy.qid, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ap", "ndcg", "position", "plain"])
def test_samples_do_not_break_it(name):
    """The risk on a large population, against the bound from samples of it: never above in 100 draws.

    The slack is large, so that this shows little by itself: each step is tested above, and measured by
    `python -m studies bounds`.
    """
    whole = cc.synthetic.grades(n_queries=1500, n_items=5, n_features=2, seed=3)
    rng, ids = np.random.default_rng(0), np.arange(1500)
    queries = cc.Queries.from_ids(whole.qid)
    for _ in range(100):
        rows = queries.rows(rng.choice(ids, 40, replace=False))
        model = cc.MaxMarginRanker("ndcg", HINGES[name], 1.0, fit_scale=False)
        model.fit(whole.X[rows], whole.y[rows], qid=whole.qid[rows])
        bound = empirical(model, whole.X[rows], whole.y[rows], whole.qid[rows])
        risk = empirical(model, whole.X, whole.y, whole.qid).measured
        assert risk <= bound.value


def test_the_plain_error_multiplies_every_term():
    toy = cc.synthetic.grades(n_queries=30, n_items=6, n_features=3, seed=1)
    model = cc.MaxMarginRanker(loss="pairwise", alpha=2.0, fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)
    weighted, plain = (empirical(model, toy.X, toy.y, toy.qid, error=error) for error in ("margin", "plain"))
    assert plain.multiplier > 1.0
    assert plain.value == pytest.approx(plain.multiplier * weighted.value)
    assert plain.excess == pytest.approx(plain.multiplier * weighted.excess)
    assert plain.measured <= plain.worst <= 1.0


class Fixed:
    """Weights, and what else a ranker may have."""

    def __init__(self, coef, **attributes):
        self.coef_ = coef
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Fixed([1.0, 2.0]), "one weight for each of the 3 features"),
        (Fixed(np.ones(50)), "one weight for each of the 3 features"),
        (Fixed(np.ones((3, 1))), "one weight for each of the 3 features"),
        (Fixed(np.full(3, 1e306)), "at most 1 \\* 2"),
    ],
    ids=["short", "long", "matrix", "huge"],
)
def test_weights_must_fit(model, toy, text):
    with pytest.raises(ConcordantError, match=text):
        empirical(model, toy.X, toy.y, toy.qid, loss=HINGES["ap"])


def test_a_model_that_names_nothing_needs_a_loss(toy):
    with pytest.raises(ParameterError, match="loss"):
        empirical(Fixed(np.ones(3)), toy.X, toy.y, toy.qid)


def test_unfitted_models_and_other_columns_are_refused(toy):
    with pytest.raises(NotFittedError):
        empirical(cc.MaxMarginRanker(), toy.X, toy.y, toy.qid)
    frame = pl.DataFrame(toy.X, schema=["a", "b", "c"])
    model = cc.MaxMarginRanker().fit(frame, toy.y, qid=toy.qid)
    with pytest.raises(ValueError, match="feature names"):
        empirical(model, frame[["c", "b", "a"]], toy.y, toy.qid)


def test_weights_longer_than_the_penalty_promises_are_refused(toy):
    model = cc.MaxMarginRanker("ap", alpha=0.1, fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)
    model.set_params(alpha=1e4)
    with pytest.raises(ParameterError, match=r"the penalty allows at most .* Use B='union'"):
        empirical(model, toy.X, toy.y, toy.qid)
    assert empirical(model, toy.X, toy.y, toy.qid, B="union").rule == "union"


@pytest.mark.parametrize("name", ["dcg", "wpd", "ap"])
def test_losses_above_the_largest_are_refused(toy, name):
    model = cc.MaxMarginRanker(name, fit_scale=False).fit(toy.X, toy.y, qid=toy.qid)
    with pytest.raises(ParameterError, match="the largest loss of an order"):
        empirical(model, toy.X, toy.y, toy.qid, largest=0.01)
    bound = empirical(model, toy.X, toy.y, toy.qid, largest=1000.0)
    assert bound.measured <= bound.worst <= 1000.0
    assert any("loses more than 1000" in text for text in bound.assumes) == (name != "ap")


def test_a_smaller_distance_than_in_the_data_is_refused(model, toy):
    with pytest.raises(ParameterError, match="the largest distance of a document"):
        empirical(model, toy.X, toy.y, toy.qid, version="sharp", M=1e-3)


def test_orders_are_read():
    orders = cc.synthetic.permutations(n_queries=20, n_items=5, seed=0)
    model = cc.MaxMarginRanker("zero_one", "pairwise", fit_scale=False).fit(
        orders.X, orders.y, qid=orders.qid
    )
    bound = empirical(model, orders.X, orders.y, orders.qid)
    grades = 6.0 - np.asarray(orders.y.positions)
    assert bound.value == pytest.approx(empirical(model, orders.X, grades, orders.qid).value)


@pytest.mark.parametrize("size", [1e8, 1e16, 1e30])
@pytest.mark.parametrize("name", ["position", "plain"])
def test_huge_scores_do_not_undercut_the_error(name, size):
    y, queries = np.array([2.0, 1.0, 0.0]), cc.Queries.from_sizes([3])
    facts = hinge_facts(HINGES[name], y, queries, 1.0, "margin")
    assert (facts.cut(-size * y) >= facts.error(-size * y)).all()
