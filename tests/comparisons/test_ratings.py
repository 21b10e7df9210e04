"""Models of strengths: the most likely ratings, when there are none, how sure they are, the leaderboard."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from concordant import Comparisons, datasets
from concordant.comparisons.ratings import BradleyTerry, Davidson, Leaderboard, RaoKupper
from concordant.comparisons.ratings import likelihood as solver
from concordant.comparisons.ratings.intervals import separated_ranks
from concordant.comparisons.ratings.leaderboard import overlapping_ranks
from concordant.comparisons.ratings.likelihood import DAVIDSON, FARTHEST, RAO_KUPPER, Likelihood
from concordant.comparisons.ratings.votes import Counts, read_votes
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NoFiniteRatingsError,
    NonFiniteError,
    NotConnectedError,
    ParameterError,
    UnknownNameError,
)
from tests.oracles import most_likely_strengths, vote_log_likelihood

pytestmark = pytest.mark.filterwarnings("ignore:no outcome is -1")

MODELS = [
    ("davidson", "half", BradleyTerry()),
    ("davidson", "drop", BradleyTerry(ties="drop")),
    ("davidson", "own", Davidson()),
    ("rao_kupper", "own", RaoKupper()),
]
CLASSES = [BradleyTerry, Davidson, RaoKupper]


def drawn(seed, n_items, n_votes, tie_share=0.3):
    """Votes of any kind, each item in at least one."""
    rng = np.random.default_rng(seed)
    left = np.concatenate((np.arange(n_items), rng.integers(n_items, size=n_votes)))
    right = (left + 1 + rng.integers(n_items - 1, size=len(left))) % n_items
    outcome = np.where(rng.random(len(left)) < tie_share, 0, rng.choice([-1, 1], size=len(left)))
    return left, right, outcome


def simulated(rng, ratings, n_votes, model="davidson", tie=0.8, advantage=0.0):
    """Votes that follow a model."""
    n = len(ratings)
    left = rng.integers(n, size=n_votes)
    right = (left + 1 + rng.integers(n - 1, size=n_votes)) % n
    form = DAVIDSON if model == "davidson" else RAO_KUPPER
    shares = form.probabilities(ratings[left] - ratings[right] + advantage, math.log(tie))
    return left, right, (rng.random(n_votes)[:, None] > shares.cumsum(axis=1)).sum(axis=1) - 1


# ---------------------------------------------------------------- the maximum


@pytest.mark.parametrize(("name", "ties", "model"), MODELS)
@pytest.mark.parametrize("advantage", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_ratings_are_the_most_likely_ones(name, ties, model, advantage, alpha):
    for seed in range(2):
        n_items = 2 + 2 * seed
        left, right, outcome = drawn(seed, n_items, 30)
        weights = np.random.default_rng(seed).integers(1, 4, size=len(left)).astype(float)
        fitted = clone(model).set_params(alpha=alpha, advantage=advantage)
        fitted.fit(left, right, outcome, sample_weight=weights)
        votes = list(zip(left.tolist(), right.tolist(), outcome.tolist(), weights.tolist(), strict=True))
        ratings, lead, tie = most_likely_strengths(
            name, n_items, votes, alpha=alpha, advantage=advantage, ties=ties
        )
        np.testing.assert_allclose(fitted.ratings_, ratings, atol=5e-6)
        assert fitted.advantage_ == pytest.approx(lead, abs=5e-6)
        fitted_tie = getattr(fitted, "nu_", getattr(fitted, "theta_", tie))
        assert fitted_tie == pytest.approx(tie, abs=2e-5)
        assert abs(fitted.ratings_.sum()) < 1e-12
        counted_votes = [vote for vote in votes if ties != "drop" or vote[2]]
        value = vote_log_likelihood(
            name, fitted.ratings_, counted_votes, tie=tie, advantage=lead, half_ties=ties == "half"
        )
        penalty = 0.5 * alpha * (np.sum(fitted.ratings_**2) + lead**2)
        assert fitted.value_ == pytest.approx(value - penalty, abs=1e-6)


def random_likelihood(form, seed, alpha=0.2):
    rng = np.random.default_rng(seed)
    counts = Counts.from_votes(read_votes(*drawn(seed, 5, 40)), sided=True)
    likelihood = Likelihood(counts, form, alpha, advantage=True, tie=True, fixed_tie=0.0)
    x = np.concatenate((rng.normal(size=5) * 2.0, [0.4, 0.7]))
    return likelihood, x


def check_derivatives(likelihood, x):
    """Gradient and information are derivatives of the value."""
    point, step = likelihood.at(x), 1e-5
    for i in range(len(x)):
        bump = step * (np.arange(len(x)) == i)
        up, down = likelihood.at(x + bump), likelihood.at(x - bump)
        assert (up.value - down.value) / (2 * step) == pytest.approx(point.grad[i], abs=1e-6)
        np.testing.assert_allclose((down.grad - up.grad) / (2 * step), point.information[i], atol=1e-6)
    vector = np.random.default_rng(0).normal(size=len(x))
    np.testing.assert_allclose(point.times(vector), point.information @ vector, atol=1e-10)


@pytest.mark.parametrize("form", [DAVIDSON, RAO_KUPPER], ids=["davidson", "rao_kupper"])
def test_derivatives(form):
    for seed in range(3):
        check_derivatives(*random_likelihood(form, seed))


def test_the_check_rejects_a_wrong_derivative():
    likelihood, x = random_likelihood(DAVIDSON, 0)

    class Wrong:
        def at(self, y):
            point = likelihood.at(y)
            point.grad[0] *= 1.01
            return point

    with pytest.raises(AssertionError):
        check_derivatives(Wrong(), x)


@pytest.mark.parametrize("form", [DAVIDSON, RAO_KUPPER], ids=["davidson", "rao_kupper"])
@given(d=st.floats(-50, 50), tie=st.floats(0.01, 5))
def test_scores_are_derivatives_of_the_logarithms(form, d, tie):
    def shares(d, tie):
        return form.probabilities(np.array([d]), tie)[0]

    at = shares(d, tie)
    assert at.sum() == pytest.approx(1.0, abs=1e-12)
    assert (at >= 0).all()
    by_d, by_tie = (scores[0] for scores in form.scores(np.array([d]), tie))
    step = 1e-6
    np.testing.assert_allclose(
        at * by_d, (shares(d + step, tie) - shares(d - step, tie)) / (2 * step), atol=1e-6
    )
    np.testing.assert_allclose(
        at * by_tie, (shares(d, tie + step) - shares(d, tie - step)) / (2 * step), atol=1e-6
    )


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("advantage", [False, True])
def test_conjugate_gradients_reach_the_same(kind, advantage, monkeypatch):
    rng = np.random.default_rng(3)
    left, right, outcome = simulated(rng, rng.normal(size=40), 4000)
    exact = kind(advantage=advantage).fit(left, right, outcome)
    monkeypatch.setattr(solver, "DENSE_ITEMS", 1)
    other = kind(advantage=advantage).fit(left, right, outcome)
    np.testing.assert_allclose(other.ratings_, exact.ratings_, atol=1e-9)
    assert max(exact.n_iter_, other.n_iter_) < 15
    gradient = exact.likelihood(exact.counts_, 0.0).at(exact.x_).grad
    assert np.abs(gradient).max() < 1e-9 * len(left)


def test_a_long_chain_and_a_tiny_prior():
    """Ten items, each losing everything to the one before; the best and the worst are far apart."""
    items = np.arange(10)
    votes = np.repeat(items[:-1], 1000), np.repeat(items[1:], 1000), -np.ones(9000)
    model = BradleyTerry(alpha=1e-6).fit(*votes)
    assert model.n_iter_ < 100
    assert (np.diff(model.ratings_) < -10).all()
    gradient = model.likelihood(model.counts_, 1e-6).at(model.x_).grad
    assert np.abs(gradient).max() < 1e-8
    with pytest.raises(NotConnectedError):
        BradleyTerry().fit(*votes)


@pytest.mark.parametrize("kind", CLASSES)
def test_strengths_beyond_the_doubles(kind):
    """A chain in which each item wins 20 to 1 against the next: every difference is log(20)."""
    items = np.repeat(np.arange(299), 21)
    outcome = np.tile([1.0, *[-1.0] * 20], 299)
    model = kind().fit(items, items + 1, outcome)
    np.testing.assert_allclose(np.diff(model.ratings_), -math.log(20), atol=1e-9)
    assert np.ptp(model.ratings_) > 800


def chain(n_links, forth=2, back=1, ties=0):
    """Votes of neighbours alone."""
    pattern = [-1.0] * forth + [1.0] * back + [0.0] * ties
    links = np.repeat(np.arange(n_links), len(pattern))
    return links, links + 1, np.tile(pattern, n_links)


@pytest.mark.parametrize("n_links", [400, 5000])
@pytest.mark.parametrize("model", [BradleyTerry(), Davidson(advantage=True, alpha=1e-9), RaoKupper()])
def test_long_chains_are_solved_exactly(n_links, model):
    """Conjugate gradients would need about as many products as there are links."""
    if model.advantage:
        left, right, outcome = chain(n_links, ties=1)
        votes = np.append(left, right), np.append(right, left), np.append(outcome, -outcome)
    else:
        votes = chain(n_links)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = clone(model).fit(*votes)
    np.testing.assert_allclose(np.diff(fitted.ratings_), -math.log(2), atol=2e-3 if model.alpha else 1e-9)
    assert fitted.advantage_ == pytest.approx(0.0, abs=1e-9)
    gradient = fitted.likelihood(fitted.counts_, model.alpha).at(fitted.x_).grad
    assert np.abs(gradient).max() < 1e-8


def test_products_that_do_not_suffice_are_said(monkeypatch):
    for name in ("DENSE_ITEMS", "FACTORED_ITEMS", "FACTORED_PAIRS"):
        monkeypatch.setattr(solver, name, 0)
    monkeypatch.setattr(solver, "MOST_PRODUCTS", 3)
    with pytest.warns(UserWarning, match="Raise max_iter"):
        BradleyTerry(max_iter=20).fit(*chain(50))


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_the_unit_of_weights_does_not_matter(kind, unit):
    left, right, outcome = drawn(2, 6, 60)
    plain = kind().fit(left, right, outcome)
    weighed = kind().fit(left, right, outcome, sample_weight=np.full(len(left), unit))
    np.testing.assert_allclose(weighed.ratings_, plain.ratings_, atol=1e-9)
    assert weighed.value_ == pytest.approx(unit * plain.value_, rel=1e-9)


def test_heavy_votes_do_not_drown_light_ones():
    """Two pairs that never met, one a thousand billion times as heavy: each is as if it were alone."""
    votes = ["a", "b", "c", "c"], ["b", "a", "d", "d"], [-1, -1, -1, -1]
    model = BradleyTerry(alpha=1e-9).fit(*votes, sample_weight=[1e12, 1e12, 1.0, 1.0])
    alone = BradleyTerry(alpha=1e-9).fit(["c", "c"], ["d", "d"], [-1, -1])
    np.testing.assert_allclose(model.ratings_[:2], 0.0, atol=1e-9)
    np.testing.assert_allclose(model.ratings_[2:], alone.ratings_, atol=1e-6)
    assert alone.ratings_[0] == pytest.approx(9.578, abs=1e-3)
    low, high = model.interval()
    assert (high - low > 1e4).all()  # how the pairs compare, only the prior says


@pytest.mark.parametrize("kind", CLASSES)
def test_a_tie_beside_hardly_a_win_has_a_maximum(kind):
    """The tie parameter is then nearly unbounded, and its slope a difference of nearly equal numbers."""
    for win in (1e-12, 1e-6):
        votes = [0, 1], [1, 2], [-1, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = kind(alpha=0.01).fit(*votes, sample_weight=[win, 1.0])
        assert model.n_iter_ < 60
        assert np.abs(model.likelihood(model.counts_, 0.01).at(model.x_).grad).max() < 1e-14


def test_a_mean_that_only_the_prior_knows_has_its_variance():
    """Errors of separate pairs, by the plain inverse; once with a prior so weak that this is singular."""
    votes = ["a", "b", "c", "d", "c"], ["b", "a", "d", "c", "d"], [-1, -1, -1, -1, -1]
    for alpha in (0.1, 1e-11):
        model = BradleyTerry(alpha=alpha).fit(*votes)
        information = model.likelihood(model.counts_, alpha).at(model.x_).information
        blocks = np.zeros((4, 4))
        for part in ([0, 1], [2, 3]):
            bend = -information[part[0], part[1]]
            blocks[np.ix_(part, part)] = 0.5 / alpha + np.array([[0.5, -0.5], [-0.5, 0.5]]) / (
                2 * bend + alpha
            )
        centring = np.eye(4) - 0.25
        np.testing.assert_allclose(model.covariance(), centring @ blocks @ centring, rtol=1e-4)
        robust = model.covariance("robust")
        assert np.isfinite(robust).all()
        assert np.abs(robust).max() < 10.0


def test_too_few_steps_are_said():
    with pytest.warns(UserWarning, match="Raise max_iter"):
        BradleyTerry(max_iter=1).fit(["a", "b", "a"], ["b", "a", "b"], [-1, -1, -1])


def test_half_a_tie_is_half_a_win_each_way():
    left, right, outcome = drawn(0, 4, 60)
    once = BradleyTerry().fit(left, right, outcome)
    tie = outcome == 0
    twice = [np.concatenate((side, side)) for side in (left, right)]
    results = np.concatenate((np.where(tie, -1, outcome), np.where(tie, 1, outcome)))
    doubled = BradleyTerry().fit(*twice, results)
    np.testing.assert_allclose(once.ratings_, doubled.ratings_, atol=1e-12)


@pytest.mark.parametrize("kind", CLASSES)
def test_turning_every_vote_round_changes_nothing_but_the_advantage(kind):
    left, right, outcome = drawn(1, 4, 80)
    model, other = (
        kind(advantage=True).fit(*votes) for votes in ((left, right, outcome), (right, left, -outcome))
    )
    np.testing.assert_allclose(model.ratings_, other.ratings_, atol=1e-9)
    assert model.advantage_ == pytest.approx(-other.advantage_, abs=1e-9)
    np.testing.assert_allclose(
        model.predict_proba([0], [1]), other.predict_proba([1], [0])[:, ::-1], atol=1e-9
    )


# ---------------------------------------------------------------- counts


@given(seed=st.integers(0, 1000), n_items=st.integers(2, 30), n_votes=st.integers(1, 60), sided=st.booleans())
def test_counts_are_sums(seed, n_items, n_votes, sided):
    left, right, outcome = drawn(seed, n_items, n_votes)
    weights = np.random.default_rng(seed).integers(0, 3, size=len(left)).astype(float)
    counts = Counts.from_votes(read_votes(left, right, outcome, weights), sided=sided)
    expected = {}
    for i, j, y, w in zip(left.tolist(), right.tolist(), outcome.tolist(), weights.tolist(), strict=True):
        pair, result = ((i, j), y) if sided or i < j else ((j, i), -y)
        expected.setdefault(pair, np.zeros(3))[result + 1] += w
    expected = {pair: cells.tolist() for pair, cells in expected.items() if cells.any()}
    pairs = zip(counts.first.tolist(), counts.second.tolist(), strict=True)
    assert dict(zip(pairs, counts.cells.tolist(), strict=True)) == expected
    assert counts.n_votes == weights.sum()
    assert counts.plus(counts).n_votes == 2 * weights.sum()
    assert counts.records.sum() == 2 * weights.sum()
    wins = np.bincount(np.where(outcome < 0, left, right), weights * (outcome != 0), n_items)
    assert counts.records[:, 0].tolist() == wins.tolist()


def test_both_ways_of_counting_agree(monkeypatch):
    votes = read_votes(*drawn(5, 8, 500))
    by_table = Counts.from_votes(votes, sided=True)
    monkeypatch.setattr("concordant.comparisons.ratings.votes.CELLS_PER_VOTE", -1000)
    by_sorting = Counts.from_votes(votes, sided=True)
    for name in ("first", "second", "cells"):
        np.testing.assert_array_equal(getattr(by_table, name), getattr(by_sorting, name))


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("advantage", [False, True])
def test_update_is_a_fit_to_all_votes(kind, advantage):
    left, right, outcome = drawn(2, 6, 200)
    names = np.array(["f", "e", "d", "c", "b", "a"])
    first = (left < 4) & (right < 4)
    model = kind(advantage=advantage).fit(names[left[first]], names[right[first]], outcome[first])
    assert model.items_.tolist() == ["c", "d", "e", "f"]
    model.update(names[left[~first]], names[right[~first]], outcome[~first])
    whole = kind(advantage=advantage).fit(names[left], names[right], outcome)
    assert model.items_.tolist() == ["c", "d", "e", "f", "a", "b"]
    again = model.ratings_[np.argsort(model.items_)]
    np.testing.assert_allclose(again, whole.ratings_, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba("a", "f"), whole.predict_proba("a", "f"), atol=1e-9)


def test_an_update_that_fails_changes_nothing():
    model = BradleyTerry().fit(["a", "b"], ["b", "a"], [-1, -1])
    with pytest.raises(NotConnectedError):
        model.update(["c"], ["d"], [0])
    assert model.items_.tolist() == ["a", "b"]
    assert model.predict("a", "b").tolist() == [0]
    assert BradleyTerry().update(["a", "b"], ["b", "a"], [-1, -1]).ratings_.tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- when there is no maximum


def exists(model, votes):
    try:
        model.fit(*votes)
    except NoFiniteRatingsError:
        return False
    return True


def settles(model, votes):
    """Whether the maximum is one point: a vanishing prior does not move it, and it is curved all round."""
    there = []
    for alpha in (1e-5, 1e-8):
        fitted = clone(model).set_params(alpha=alpha, max_iter=500).fit(*votes)
        tie = fitted.log_tie_ if math.isfinite(fitted.log_tie_) else 0.0
        there.append(np.array([*fitted.ratings_, fitted.advantage_, tie]))
    likelihood = fitted.likelihood(fitted.counts_, 0.0)
    curved = np.linalg.eigvalsh(likelihood.at(fitted.x_).anchored_information())[0] > 1e-6
    only_ties = there[1][-1] >= FARTHEST
    return bool(np.abs(there[0] - there[1]).max() < 0.05 and curved and not only_ties)


few_votes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([-1, 0, 0, 1])), min_size=1, max_size=8
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("advantage", [False, True])
@settings(max_examples=60)
@given(few_votes)
def test_ratings_are_refused_exactly_where_none_are_most_likely(kind, advantage, votes):
    left = [i for i, _, _ in votes]
    right = [(i + shift) % 4 for i, shift, _ in votes]
    outcome = [y for _, _, y in votes]
    model = kind(advantage=advantage)
    assert exists(model, (left, right, outcome)) == settles(model, (left, right, outcome))


def test_the_check_rejects_connection_alone():
    """A tie connects both ways, and yet the ratings of these votes are not finite."""
    votes = [0, 0], [1, 1], [-1, 0]
    assert Counts.from_votes(read_votes(*votes)).connected
    assert settles(BradleyTerry(), votes)
    assert not settles(Davidson(), votes)


@pytest.mark.parametrize(
    ("model", "votes"),
    [
        (BradleyTerry(), (["a"], ["b"], [-1])),  # never lost
        (BradleyTerry(), (["a", "b", "c", "d"], ["b", "a", "d", "c"], [-1] * 4)),  # never met
        (BradleyTerry(ties="drop"), (["a", "a"], ["b", "b"], [-1, 0])),
        (Davidson(), (["a", "a"], ["b", "b"], [-1, 0])),  # connected, and yet: losses may have probability 0
        (RaoKupper(), (["a", "a"], ["b", "b"], [-1, 0])),
        (Davidson(), (["a"], ["b"], [0])),
        (BradleyTerry(advantage=True), (["a", "b", "c"], ["b", "c", "a"], [-1] * 3)),  # the left always wins
        (BradleyTerry(advantage=True), (["a", "a"], ["b", "b"], [-1, 1])),  # always on the same sides
    ],
)
def test_what_is_refused_has_ratings_with_a_prior(model, votes):
    assert not exists(model, votes)
    fitted = clone(model).set_params(alpha=0.1).fit(*votes)
    assert np.isfinite(fitted.ratings_).all()
    assert np.isfinite(fitted.leaderboard()[0].high)
    np.testing.assert_allclose(fitted.predict_proba(votes[0], votes[1]).sum(axis=1), 1.0)


def test_components_are_named():
    votes = ["a", "b", "c", "d", "x"], ["b", "a", "d", "c", "a"], [-1, -1, 0, 0, -1]
    with pytest.raises(
        NotConnectedError, match="3 components \\('a' and 1 more; 'c' and 1 more; 'x'\\)"
    ) as error:
        BradleyTerry().fit(*votes)
    assert error.value.components == [["a", "b"], ["c", "d"], ["x"]]
    model = BradleyTerry(alpha=0.1).fit(*votes)
    assert [part.tolist() for part in model.components_] == [["a", "b"], ["c", "d"], ["x"]]


def test_components_are_of_the_votes_that_count():
    votes = ["a", "a"], ["b", "b"], [0, -1]
    with pytest.raises(NotConnectedError, match="2 components"):
        BradleyTerry(ties="drop").fit(*votes)
    assert len(BradleyTerry(ties="drop", alpha=0.1).fit(*votes).components_) == 2
    assert len(BradleyTerry(alpha=0.1).fit(*votes).components_) == 1


def test_parameters_stay_those_of_the_fit():
    votes = drawn(0, 4, 60)
    for change in ({"ties": "drop"}, {"alpha": 9.0}, {"advantage": True}):
        model = BradleyTerry().fit(*votes).set_params(**change)
        for call in (
            model.interval,
            model.covariance,
            model.resample_ratings,
            model.leaderboard,
            model.rank_bounds,
            lambda model=model: model.components_,
            lambda model=model: model.update([0], [1], [-1]),
        ):
            with pytest.raises(ParameterError, match="fit again"):
                call()
        model.fit(*votes).update([0], [1], [-1]).interval()
    model = BradleyTerry().fit(*votes).set_params(tol=1e-6, max_iter=np.int64(50))
    assert model.update([0], [1], [-1]).counts_.n_votes == len(votes[0]) + 1


def test_only_ties_and_no_ties():
    tied = Davidson(alpha=0.1).fit(["a"], ["b"], [0])
    assert tied.nu_ == math.inf
    np.testing.assert_allclose(tied.predict_proba("a", "b"), [[0.0, 1.0, 0.0]], atol=1e-100)
    assert RaoKupper(alpha=0.1).fit(["a"], ["b"], [0]).theta_ == math.inf
    votes = ["a", "a", "b"], ["b", "b", "a"], [-1, -1, -1]
    plain = BradleyTerry().fit(*votes)
    for model, tie in ((Davidson(), "nu_"), (RaoKupper(), "theta_")):
        np.testing.assert_allclose(model.fit(*votes).ratings_, plain.ratings_, atol=1e-10)
        assert getattr(model, tie) == (0.0 if tie == "nu_" else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
@settings(max_examples=40)
@given(few_votes, st.booleans(), st.sampled_from([0.0, 1e-12, 1.0, 1e6]))
def test_any_votes_have_ratings_with_a_prior(kind, votes, advantage, weight):
    left = [i for i, _, _ in votes]
    right = [(i + shift) % 4 for i, shift, _ in votes]
    weights = [weight, *[1.0] * (len(votes) - 1)]
    assume(any(weights))
    model = kind(alpha=0.01, advantage=advantage)
    model.fit(left, right, [y for _, _, y in votes], sample_weight=weights)
    assert np.isfinite(model.ratings_).all()
    shares = model.predict_proba(left, right)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for method in ("information", "robust"):
        low, high = model.interval(method=method)
        assert (low <= model.ratings_).all()
        assert (model.ratings_ <= high).all()
        assert np.isfinite(high - low).all()
    assert len(model.leaderboard()) == len(model.items_)


def test_bad_input_is_named():
    good = ["a", "b"], ["b", "a"], [-1, -1]
    with pytest.raises(LabelError, match="vote 1 is between 'b' and itself"):
        BradleyTerry().fit(["a", "b"], ["b", "b"], [-1, -1])
    with pytest.raises(EmptyDataError):
        BradleyTerry().fit(np.array([], dtype=int), np.array([], dtype=int), [])
    with pytest.raises(LabelError):
        BradleyTerry().fit(["a"], ["b"], [math.nan])
    with pytest.raises(LengthMismatchError):
        BradleyTerry().fit(*good, sample_weight=[1.0])
    with pytest.raises(NonFiniteError):
        BradleyTerry().fit(*good, sample_weight=[1.0, math.inf])
    with pytest.raises(ParameterError, match="is zero for every vote"):
        BradleyTerry(alpha=1.0).fit(*good, sample_weight=[0.0, 0.0])
    with pytest.raises(ParameterError, match="Leave them out"):
        BradleyTerry().fit(Comparisons(*good), ["b"])
    model = BradleyTerry().fit(Comparisons(*good))
    with pytest.raises(UnknownNameError, match="unknown item 'z'"):
        model.predict("a", "z")
    with pytest.raises(UnknownNameError, match="unknown item 3"):
        model.predict("a", 3)
    with pytest.raises(LabelError, match="same type"):
        model.update([1], [2], [0])
    with pytest.raises(LengthMismatchError):
        model.predict_proba(["a", "b"], ["b"])
    many = BradleyTerry(alpha=1.0).fit(np.arange(100), np.arange(1, 101), np.zeros(100))
    with pytest.raises(UnknownNameError, match="10, 100, 99 others"):
        many.predict(7, 1000)
    for name, value in (
        ("alpha", -1),
        ("alpha", math.nan),
        ("advantage", "yes"),
        ("tol", 0),
        ("max_iter", 0),
        ("ties", "own"),
    ):
        with pytest.raises(ParameterError, match=name):
            BradleyTerry(**{name: value}).fit(*good)
    for call in (
        lambda: model.interval(1.0),
        lambda: model.interval(method="magic"),
        lambda: model.interval(method="bootstrap", n_resamples=0),
        lambda: model.leaderboard(scale="kelvin"),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(ValueError, match="not fitted"):
        BradleyTerry().predict("a", "b")


def test_single_ids_are_one_vote():
    single = BradleyTerry(alpha=1.0).fit("a", "b", -1)
    assert single.update("b", "c", 0, sample_weight=2.0).counts_.n_votes == 3
    whole = BradleyTerry(alpha=1.0).fit(["a", "b"], ["b", "c"], [-1, 0], sample_weight=[1.0, 2.0])
    np.testing.assert_allclose(single.ratings_, whole.ratings_, atol=1e-9)
    assert BradleyTerry(alpha=1.0).fit(np.int64(1), 2, 0).items_.tolist() == [1, 2]


def test_columns_that_are_none_are_named():
    good = ["a", "b"], ["b", "a"], [-1, -1]
    model = BradleyTerry().fit(*good)
    for columns, message in (
        ((good[0],), "right is missing"),
        (good[:2], "outcome is missing"),
        (({"a", "b"}, *good[1:]), "left is a set"),
        ((good[0], iter(good[1]), good[2]), "right is a list_iterator"),
        (({"a": "b"}, *good[1:]), "left is a dict"),
    ):
        for call in (BradleyTerry().fit, model.update):
            with pytest.raises(LabelError, match=message):
                call(*columns)
    with pytest.raises(LabelError, match="left is a set"):
        model.predict({"a"}, "b")
    with pytest.raises(LengthMismatchError):
        model.update("ab", ["a", "b"], [-1, -1])
    with pytest.raises(ParameterError, match="overflows"):
        model.fit(*good, sample_weight=[1e308, 1e308])


def test_large_numbers_stay_themselves():
    large = 2**60
    model = BradleyTerry(alpha=1.0).fit(np.array([large], np.uint64), np.array([large + 1], np.uint64), [0])
    model.update(np.array([large + 1]), np.array([large + 2]), [0])
    assert model.items_.tolist() == [large, large + 1, large + 2]
    assert model.known_.find(np.array([large + 3])).tolist() == [-1]


def test_resampling_options_are_checked():
    model = BradleyTerry().fit(["a", "b"], ["b", "a"], [-1, -1])
    for options in (
        {"n_resamples": True},
        {"n_resamples": 1},
        {"n_resamples": 2.0},
        {"random_state": "x"},
        {"random_state": -1},
    ):
        for call in (model.interval, model.leaderboard):
            with pytest.raises(ParameterError, match=next(iter(options))):
                call(method="bootstrap", **options)
    assert model.resample_ratings(np.int32(3)).shape == (3, 2)
    for call in (model.interval, model.leaderboard, model.covariance, model.rank_bounds):
        with pytest.raises(ParameterError, match="'information', 'robust' or 'bootstrap'"):
            call(method="magic")
    heavy = BradleyTerry().fit(["a", "b"], ["b", "a"], [-1, -1], sample_weight=[1e20, 1.0])
    with pytest.raises(ParameterError, match="draws that many votes"):
        heavy.resample_ratings()


def test_predictions():
    model = Davidson().fit(["a", "a", "b", "a"], ["b", "b", "a", "b"], [-1, -1, -1, 0])
    assert model.predict(["a", "b", "a"], ["b", "a", "a"]).tolist() == [-1, 1, 0]
    even = BradleyTerry().fit(["a", "b"], ["b", "a"], [-1, -1])
    assert even.predict("a", "b").tolist() == [0]
    np.testing.assert_allclose(even.elo_, 1500.0)
    drawish = Davidson().fit(["a"] * 5, ["b"] * 5, [-1, 1, 0, 0, 0])
    assert drawish.predict("a", "b").tolist() == [0]


# ---------------------------------------------------------------- how sure


def covered(kind, method, rounds, n_votes, shrink=1.0, level=0.9):
    """Share of true ratings inside their intervals, over simulations."""
    rng = np.random.default_rng(7)
    truth = np.linspace(-1.0, 1.0, 6)
    model, form = (kind(), "rao_kupper" if kind is RaoKupper else "davidson")
    inside = []
    for _ in range(rounds):
        tie = 0.0 if kind is BradleyTerry else 1.6
        votes = simulated(rng, truth, n_votes, form, tie or 1e-300)
        model.fit(*votes)
        options = {"n_resamples": 100} if method == "bootstrap" else {}
        low, high = model.interval(level, method=method, **options)
        middle, half = (low + high) / 2, shrink * (high - low) / 2
        inside.append((np.abs(truth - middle) <= half).mean())
    return float(np.mean(inside))


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("method", ["information", "robust"])
def test_intervals_hold_the_truth(kind, method):
    assert covered(kind, method, 150, 400) == pytest.approx(0.9, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
def test_resamples_spread_as_estimates_do(kind):
    rng = np.random.default_rng(0)
    tie = 1e-300 if kind is BradleyTerry else 1.6
    form = "rao_kupper" if kind is RaoKupper else "davidson"
    model = kind().fit(*simulated(rng, np.linspace(-1.0, 1.0, 5), 2000, form, tie))
    errors = np.cov(model.resample_ratings(300), rowvar=False)
    np.testing.assert_allclose(np.sqrt(np.diag(errors)), np.sqrt(np.diag(model.covariance())), rtol=0.2)
    low, high = model.interval(0.9, method="bootstrap", n_resamples=300)
    assert ((low < model.ratings_) & (model.ratings_ < high)).all()
    np.testing.assert_allclose((high - low) / 3.29, np.sqrt(np.diag(errors)), rtol=0.2)


def test_the_check_rejects_intervals_of_half_the_width():
    assert covered(Davidson, "information", 150, 400, shrink=0.5) < 0.8


def test_half_ties_make_information_wide_and_robust_right():
    """A tie is less surprising than half a win and half a loss: only the sandwich knows."""
    rng = np.random.default_rng(0)
    truth, errors = np.zeros(5), []
    widths = {"information": [], "robust": []}
    for _ in range(100):
        model = BradleyTerry().fit(*simulated(rng, truth, 500, tie=6.0))
        errors.append(model.ratings_)
        for method, errors_of_method in widths.items():
            errors_of_method.append(np.sqrt(np.diagonal(model.covariance(method))).mean())
    spread = np.std(errors)
    assert np.mean(widths["robust"]) == pytest.approx(spread, rel=0.1)
    assert np.mean(widths["information"]) > 1.5 * spread


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("advantage", [False, True])
def test_covariance_is_the_inverse_of_the_information(kind, advantage):
    """Written with an item held at 0 and then centred, in place of a constraint on the sum."""
    model = kind(advantage=advantage).fit(*drawn(4, 5, 200))
    information = model.likelihood(model.counts_, 0.0).at(model.x_).information
    inverse = np.zeros_like(information)
    inverse[1:, 1:] = np.linalg.inv(information[1:, 1:])
    centring = np.eye(5) - 0.2
    np.testing.assert_allclose(model.covariance(), centring @ inverse[:5, :5] @ centring, atol=1e-10)
    np.testing.assert_allclose(model.covariance("robust").sum(axis=0), 0.0, atol=1e-10)


def test_the_sandwich_sums_votes_one_by_one():
    left, right, outcome = drawn(6, 4, 60)
    model = Davidson(advantage=True).fit(left, right, outcome)
    meat = np.zeros((6, 6))
    for i, j, y in zip(left, right, outcome, strict=True):
        d = np.array([model.ratings_[i] - model.ratings_[j] + model.advantage_])
        by_d, by_tie = (scores[0, y + 1] for scores in DAVIDSON.scores(d, model.log_tie_))
        derivative = np.zeros(6)
        derivative[i], derivative[j], derivative[4], derivative[5] = by_d, -by_d, by_d, by_tie
        meat += np.outer(derivative, derivative)
    information = model.likelihood(model.counts_, 0.0).at(model.x_).information
    bread, centring = np.linalg.pinv(information), np.eye(4) - 0.25
    expected = centring @ (bread @ meat @ bread)[:4, :4] @ centring
    np.testing.assert_allclose(model.covariance("robust"), expected, atol=1e-9)


def test_bootstrap_survives_resamples_without_a_maximum():
    model = Davidson().fit(
        ["a", "b", "b", "c", "c", "a", "a"], ["b", "c", "c", "a", "a", "b", "b"], [-1, -1, 1, -1, 1, 0, 1]
    )
    ratings = model.resample_ratings(60)
    assert np.isfinite(ratings).all()
    np.testing.assert_array_equal(ratings, model.resample_ratings(60))
    assert not np.array_equal(ratings, model.resample_ratings(60, random_state=1))


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("outcome", [-1, 0, 1])
@pytest.mark.parametrize("weights", [[1.0], [0.0, 1.0], [1.0, 1.0, 2.0]])
def test_a_bootstrap_of_one_outcome_knows_nothing(kind, outcome, weights):
    n = len(weights)
    model = kind(alpha=0.1).fit(["a"] * n, ["b"] * n, [outcome] * n, sample_weight=weights)
    low, high = model.interval(method="bootstrap", n_resamples=5)
    assert low.tolist() == [-math.inf] * 2
    assert high.tolist() == [math.inf] * 2
    board = model.leaderboard(method="bootstrap", n_resamples=5)
    assert [(row.best_rank, row.worst_rank) for row in board] == [(1, 2), (1, 2)]


def test_errors_of_advantage_and_tie_parameter():
    rng = np.random.default_rng(5)
    estimates = {"advantage": [], "log_tie": []}
    for _ in range(60):
        votes = simulated(rng, np.linspace(-1.0, 1.0, 5), 800, advantage=0.3)
        model = Davidson(advantage=True).fit(*votes)
        estimates["advantage"].append(model.advantage_)
        estimates["log_tie"].append(model.log_tie_)
    for method in ("information", "robust"):
        for name, error in model.parameter_errors(method).items():
            assert error == pytest.approx(np.std(estimates[name]), rel=0.3)
    assert BradleyTerry().fit(*votes).parameter_errors() == {}
    with pytest.raises(ParameterError, match="'information' or 'robust'"):
        model.parameter_errors("bootstrap")


# ---------------------------------------------------------------- the leaderboard


def test_ranks_by_intervals():
    low, high = np.array([0.0, 2.0, 2.5, 9.0]), np.array([1.0, 3.0, 4.0, 9.5])
    best, worst = overlapping_ranks(low, high)
    for i in range(4):
        assert best[i] == 1 + sum(low[j] > high[i] for j in range(4))
        assert worst[i] == 4 - sum(high[j] < low[i] for j in range(4))


def wrong_statements(shown, rounds=300, level=0.8):
    """Share of simulations in which some item's true rank is outside of the ranks it is given."""
    rng = np.random.default_rng(0)
    truth = np.array([0.0, 0.0, 0.0, -1.0, -1.0])
    errors = np.full((5, 5), -0.02) + 0.1 * np.eye(5)
    root = np.linalg.cholesky(errors + 1e-12 * np.eye(5))
    wrong = 0
    for _ in range(rounds):
        best, worst = shown(truth + root @ rng.normal(size=5), errors, level)
        wrong += bool(
            (best[:3] > 1).any() or (worst[3:] < 5).any() or (worst[:3] < 3).any() or (best[3:] > 4).any()
        )
    return wrong / rounds


def test_ranks_are_right_together():
    assert wrong_statements(separated_ranks) < 0.2
    one_by_one = 1 - 0.2 * 20  # each pair at 80 %, in place of all pairs
    assert wrong_statements(lambda *arguments: separated_ranks(*arguments[:2], one_by_one)) > 0.25


def test_differences_are_sharper_than_intervals():
    """Where items meet one another, their errors have something in common."""
    rng = np.random.default_rng(1)
    model = BradleyTerry().fit(*simulated(rng, np.linspace(0.0, 1.6, 5), 600, tie=1e-300))
    best, worst = model.rank_bounds(0.95)
    rough = overlapping_ranks(*model.interval(1 - 0.05 / 10))
    assert (worst - best).sum() <= (rough[1] - rough[0]).sum()


def test_leaderboard():
    model = BradleyTerry().fit(
        ["a", "a", "b", "c", "b"] * 9, ["b", "c", "c", "a", "a"] * 9, [-1, -1, 0, -1, -1] * 9
    )
    board = model.leaderboard(0.9)
    assert isinstance(board, Leaderboard)
    assert [row.rank for row in board] == [1, 2, 3]
    assert [row.rating for row in board] == sorted(model.ratings_.tolist(), reverse=True)
    for row in board.rows:
        assert row.votes == row.wins + row.ties + row.losses
        assert row.best_rank <= row.rank <= row.worst_rank
        assert row.low < row.rating < row.high
    plain = board.to_dict()
    assert plain["level"] == 0.9
    assert plain["rows"][0]["item"] == board[0].item
    lines = str(board).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:4] == ["rank", "ranks", "item", "rating"]
    elo = model.leaderboard(0.9, scale="elo")
    assert elo[0].rating == pytest.approx(1500 + 400 / math.log(10) * board[0].rating)
    named = BradleyTerry(alpha=1.0).fit(["<b>"], ["x"], [0]).leaderboard()
    assert "&lt;b&gt;" in named._repr_html_()


def test_leaderboard_by_resamples():
    rng = np.random.default_rng(1)
    model = BradleyTerry().fit(*simulated(rng, np.linspace(0.0, 2.0, 5), 900, tie=1e-300))
    board = model.leaderboard(method="bootstrap", n_resamples=200, random_state=3)
    low, high = model.interval(method="bootstrap", n_resamples=200, random_state=3)
    ranks = model.rank_bounds(method="bootstrap", n_resamples=200, random_state=3)
    for row in board:
        assert (row.low, row.high) == (low[row.item], high[row.item])
        assert (row.best_rank, row.worst_rank) == (ranks[0][row.item], ranks[1][row.item])
    usual = model.leaderboard()
    assert sum(row.worst_rank - row.best_rank for row in board) < 20
    assert [row.item for row in board] == [row.item for row in usual]


def test_leaderboard_of_many_items(monkeypatch):
    """Past the limit of a full matrix there are resamples, and ranks by intervals that hold together."""
    rng = np.random.default_rng(2)
    model = BradleyTerry().fit(*simulated(rng, np.repeat([0.0, 3.0], 3), 3000, tie=1e-300))
    by_differences = model.rank_bounds(method="bootstrap", n_resamples=50)
    monkeypatch.setattr("concordant.comparisons.ratings.intervals.MOST_ITEMS", 3)
    for method in ("information", "robust"):
        with pytest.raises(ParameterError, match="'bootstrap' for more than 3 items"):
            model.leaderboard(method=method)
    best, worst = model.rank_bounds(method="bootstrap", n_resamples=50)
    assert best.tolist() == [4, 4, 4, 1, 1, 1]
    assert worst.tolist() == [6, 6, 6, 3, 3, 3]
    assert (best <= by_differences[0]).all()
    assert (worst >= by_differences[1]).all()
    assert len(model.leaderboard(method="bootstrap", n_resamples=5)) == 6


# ---------------------------------------------------------------- published data


def test_pudding(shared_data):
    """Davidson (1970) has nu about 0.747; the strengths are our own, as they were when this was written."""
    model = Davidson().fit(datasets.load("pudding", folder=shared_data).comparisons)
    assert model.nu_ == pytest.approx(0.747, abs=5e-4)
    strengths = np.exp(model.ratings_) / np.exp(model.ratings_).sum()
    np.testing.assert_allclose(strengths, [0.1388, 0.1730, 0.1617, 0.1653, 0.1587, 0.2024], atol=2e-4)


@pytest.mark.parametrize("name", ["springall", "cems", "icehockey", "pudding", "llmfao"])
def test_real_votes_have_ratings(shared_data, name):
    votes = datasets.load(name, folder=shared_data).comparisons
    for kind in CLASSES:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = kind(alpha=0.01).fit(votes)
        assert model.n_iter_ < 20
        assert len(model.leaderboard(method="robust")) == len(model.items_)


# ---------------------------------------------------------------- peers


def test_evalica_has_the_same_strengths():
    evalica = pytest.importorskip("evalica")
    left, right, outcome = drawn(0, 6, 400)
    winner = [
        {-1: evalica.Winner.X, 0: evalica.Winner.Draw, 1: evalica.Winner.Y}[y] for y in outcome.tolist()
    ]
    peer = evalica.bradley_terry(left.tolist(), right.tolist(), winner, tolerance=1e-12, limit=10_000)
    theirs = np.log(peer.scores.sort_index().to_numpy())
    ours = BradleyTerry().fit(left, right, outcome).ratings_
    np.testing.assert_allclose(ours, theirs - theirs.mean(), atol=1e-8)


def test_choix_has_the_same_strengths():
    choix = pytest.importorskip("choix")
    left, right, outcome = drawn(0, 6, 400, tie_share=0.0)
    won = np.where(outcome < 0, left, right), np.where(outcome < 0, right, left)
    theirs = choix.ilsr_pairwise(6, list(zip(*won, strict=True)), tol=1e-12)
    ours = BradleyTerry().fit(left, right, outcome).ratings_
    np.testing.assert_allclose(ours, theirs - theirs.mean(), atol=1e-8)
