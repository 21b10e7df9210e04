"""Ratings: the same votes to us, to evalica and to choix: seconds, and how far the strengths are apart.

Without a peer its rows are missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race
from concordant import Comparisons
from concordant.comparisons.ratings import BradleyTerry, Davidson, Elo, Glicko, RaoKupper
from concordant.comparisons.ratings.likelihood import DAVIDSON

try:
    import evalica
except ImportError:
    evalica = None
try:
    import choix
except ImportError:
    choix = None

TIGHT = {"tolerance": 1e-10, "limit": 1_000}  # evalica's, for strengths as exact as ours


@dataclass(frozen=True, eq=False)
class Ballots:
    """Votes that follow Davidson's model, in everyone's own form; what a form needs is built untimed."""

    n_items: int
    left: np.ndarray
    right: np.ndarray
    outcome: np.ndarray

    @classmethod
    def random(cls, n_items: int, n_votes: int, nu: float = 0.5, seed: int = 0) -> "Ballots":
        """Pairs at random; nu = 0 gives no ties."""
        rng = np.random.default_rng(seed)
        ratings = rng.standard_normal(n_items)
        left = rng.integers(n_items, size=n_votes)
        right = (left + 1 + rng.integers(n_items - 1, size=n_votes)) % n_items
        with np.errstate(divide="ignore"):
            shares = DAVIDSON.probabilities(ratings[left] - ratings[right], float(np.log(nu)))
        outcome = (rng.random(n_votes)[:, None] > shares.cumsum(axis=1)).sum(axis=1) - 1
        return cls(n_items, left, right, outcome)

    @cached_property
    def comparisons(self) -> Comparisons:
        """For us: items by number."""
        return Comparisons(self.left, self.right, self.outcome)

    @cached_property
    def lists(self) -> tuple[list, list, list]:
        """For evalica: lists of items, and of its winners."""
        winner = {-1: evalica.Winner.X, 0: evalica.Winner.Draw, 1: evalica.Winner.Y}
        return self.left.tolist(), self.right.tolist(), [winner[result] for result in self.outcome.tolist()]

    @cached_property
    def index(self) -> object:
        """For evalica: its index of the items."""
        return evalica.indexing(*self.lists[:2])[2]

    @cached_property
    def numbers(self) -> tuple[list, list, list, list]:
        """For evalica's compiled core: items by number, winners, weights."""
        left, right, _ = evalica.indexing(*self.lists[:2], self.index)
        return left, right, [int(winner) for winner in self.lists[2]], [1.0] * len(left)

    @cached_property
    def won(self) -> list[tuple[int, int]]:
        """For choix: (winner, loser)."""
        first = self.outcome < 0
        pair = np.where(first, self.left, self.right), np.where(first, self.right, self.left)
        return list(zip(*(side.tolist() for side in pair), strict=True))


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    many, few, rounds = (2_000, 500, 1) if quick else (1_000_000, 10_000, 3)
    items = (10,) if quick else (50, 200, 1_000)
    return [
        *([_against_evalica(items, many, rounds)] if evalica else []),
        _in_order(items, many, rounds),
        *([_against_choix(items[:2], few, 1 if quick else 3)] if choix else []),
        _intervals(items[:2], many, rounds),
    ]


def _centred(strengths: np.ndarray) -> np.ndarray:
    """Logarithms, of mean 0."""
    logs = np.log(np.asarray(strengths, dtype=float))
    return logs - logs.mean()


def _against_evalica(items: tuple[int, ...], n_votes: int, rounds: int) -> Table:
    """The same model, item for item."""
    table = Table(
        "Ratings by the same model: evalica",
        f"{n_votes:,} votes, milliseconds. Ids: arrays of whole numbers to us, lists to evalica. Indexed: "
        "`Comparisons` to us, its index as well to evalica. Core: ours indexed, against evalica's compiled "
        "part alone, on lists of item numbers. Difference: largest, of log-strengths, to evalica with "
        f"tolerance {TIGHT['tolerance']:g}; the timed calls have its own, 1e-6, and ours have 1e-10.",
        ("model", "items", "given", "ours", "evalica", "ratio", "difference"),
    )
    for n_items in items:
        ballots = Ballots.random(n_items, n_votes)
        for name, model, peer, core in _matched():
            calls = {
                "ids": lambda: model.fit(ballots.left, ballots.right, ballots.outcome),  # noqa: B023
                "their ids": lambda: peer(*ballots.lists),  # noqa: B023
                "indexed": lambda: model.fit(ballots.comparisons),  # noqa: B023
                "their indexed": lambda: peer(*ballots.lists, index=ballots.index),  # noqa: B023
                "their core": lambda: core(*ballots.numbers, ballots.n_items),  # noqa: B023
            }
            timed = race(calls, title=f"{name}, {n_items} items", rounds=rounds, most=3)
            scores = peer(*ballots.lists, index=ballots.index, **TIGHT).scores.sort_index()
            apart = float(np.abs(_centred(scores) - model.fit(ballots.comparisons).ratings_).max())
            for form in ("ids", "indexed", "core"):
                ours, other = "ids" if form == "ids" else "indexed", f"their {form}"
                ms = 1e3 * timed.median(ours), 1e3 * timed.median(other)
                table.rows.append((name, n_items, form, *ms, timed.ratio(other, ours), apart))
    return table


def _matched() -> Iterator[tuple[str, object, Callable, Callable]]:
    """Our model, and evalica's function and core of the same model."""
    from evalica import _brzo

    yield (
        "Bradley-Terry, half ties", BradleyTerry(), evalica.bradley_terry,
        lambda *votes: _brzo.bradley_terry(*votes, 1.0, 0.5, 1e-6, 100),
    )  # fmt: skip
    yield (
        "Davidson = Newman", Davidson(), evalica.newman,
        lambda *votes: _brzo.newman(*votes, 0.5, 1.0, 0.5, 1e-6, 100),
    )  # fmt: skip


def _in_order(items: tuple[int, ...], n_votes: int, rounds: int) -> Table:
    """Ratings that follow time: evalica has Elo's."""
    table = Table(
        "Ratings that follow time: Elo and Glicko",
        f"{n_votes:,} votes in order, milliseconds; given as in the table of models. Difference: largest, "
        "of ratings, to evalica.elo with the same K and start; it has no K of FIDE's, and no Glicko.",
        ("model", "items", "given", "ours", "evalica", "ratio", "difference"),
    )
    options = {"initial": 1500.0, "k": 32.0}
    for n_items in items:
        ballots = Ballots.random(n_items, n_votes)
        calls = {
            "ids": lambda: Elo(32.0).fit(ballots.left, ballots.right, ballots.outcome),  # noqa: B023
            "indexed": lambda: Elo(32.0).fit(ballots.comparisons),  # noqa: B023
            "fide": lambda: Elo("fide").fit(ballots.comparisons),  # noqa: B023
            "glicko": lambda: Glicko().fit(ballots.comparisons),  # noqa: B023
        }
        if evalica:
            calls["their ids"] = lambda: evalica.elo(*ballots.lists, **options)  # noqa: B023
            indexed = {"index": ballots.index, **options}
            calls["their indexed"] = lambda: evalica.elo(*ballots.lists, **indexed)  # noqa: B023
        timed = race(calls, title=f"in order, {n_items} items", rounds=rounds, most=3)
        ms = {name: 1e3 * timed.median(name) for name in calls}
        if evalica:
            scores = evalica.elo(*ballots.lists, index=ballots.index, **options).scores.sort_index()
            apart = float(np.abs(scores.to_numpy() - Elo(32.0).fit(ballots.comparisons).ratings_).max())
            for form in ("ids", "indexed"):
                other = f"their {form}"
                row = ms[form], ms[other], timed.ratio(other, form), apart
                table.rows.append(("Elo", n_items, form, *row))
        for name, which in (("Elo, FIDE's K", "fide"), ("Glicko", "glicko")):
            table.rows.append((name, n_items, "indexed", ms[which], np.nan, np.nan, np.nan))
    return table


def _against_choix(items: tuple[int, ...], n_votes: int, rounds: int) -> Table:
    """Votes without ties."""
    table = Table(
        "Ratings without ties: choix",
        f"{n_votes:,} votes, milliseconds: `BradleyTerry().fit` on indexed votes, choix on its list of "
        "(winner, loser), with its own tolerances. Difference: largest, of log-strengths.",
        ("choix", "items", "ours", "theirs", "ratio", "difference"),
    )
    for n_items in items:
        ballots, model = Ballots.random(n_items, n_votes, nu=0.0), BradleyTerry()
        for peer in (choix.ilsr_pairwise, choix.opt_pairwise):
            calls = {
                "ours": lambda: model.fit(ballots.comparisons),  # noqa: B023
                "theirs": lambda: peer(n_items, ballots.won),  # noqa: B023
            }
            timed = race(calls, title=f"choix, {n_items} items", rounds=rounds, most=1, warm_up=False)
            theirs = peer(n_items, ballots.won)
            apart = float(np.abs(theirs - theirs.mean() - model.ratings_).max())
            ms = (1e3 * timed.median(which) for which in calls)
            table.rows.append((peer.__name__, n_items, *ms, timed.ratio("theirs", "ours"), apart))
    return table


def _intervals(items: tuple[int, ...], n_votes: int, rounds: int) -> Table:
    """Time of an answer with intervals."""
    table = Table(
        "Ratings: intervals and new votes",
        f"{n_votes:,} votes, milliseconds: a fit, intervals by information, by sandwich and by 200 "
        "resamples, the leaderboard, and an update by one vote.",
        ("model", "items", "fit", "information", "robust", "bootstrap", "leaderboard", "update"),
    )
    for n_items in items:
        ballots = Ballots.random(n_items, n_votes)
        for model in (BradleyTerry(), Davidson(), RaoKupper()):
            fitted = type(model)().fit(ballots.comparisons)
            calls = {
                "fit": lambda: model.fit(ballots.comparisons),  # noqa: B023
                "information": fitted.interval,
                "robust": lambda: fitted.interval(method="robust"),  # noqa: B023
                "bootstrap": lambda: fitted.interval(method="bootstrap", n_resamples=200),  # noqa: B023
                "leaderboard": fitted.leaderboard,
                "update": lambda: fitted.update([0], [1], [-1]),  # noqa: B023
            }
            name = type(model).__name__
            timed = race(calls, title=f"{name}, {n_items} items", rounds=min(rounds, 3), most=1)
            table.rows.append((name, n_items, *(1e3 * timed.median(which) for which in calls)))
    return table
