"""Rank aggregation: the ranking is Kemeny's by enumeration, whatever form the votes have; the command too."""

import csv
import dataclasses
import importlib
import io
import itertools
import json
import math
import re
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.comparisons.aggregation.aggregate import METHODS
from concordant.data.io import Digraph, Profile
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    NonFiniteError,
    ParameterError,
    UnknownNameError,
)
from tests import oracles

CYCLE = 4 * [["c", "t", "m"]] + 3 * [["t", "m", "c"]] + 2 * [["m", "c", "t"]]


# --- what is true of every result


def check_aggregate(result, items, preferences):
    """Every field is what its definition, typed naively, gives for these (better, worse, weight)."""
    size = math.fsum(weight for _, _, weight in preferences)
    near = {"rel": 1e-9, "abs": 1e-9 * size}
    assert sorted(result.names, key=items.index) == list(items)
    assert result.items == tuple(items)
    assert result.names == tuple(items[number] for number in result.order)
    assert result.ranks == {name: 1 + rank for rank, name in enumerate(result.names)}
    assert result.winner == result.names[0]
    least = oracles.least_disagreement(items, preferences)
    assert result.disagreement == pytest.approx(oracles.disagreement(result.names, preferences), **near)
    assert result.decoded.bound <= least + 1e-9 * size
    if result.method == "kemeny":
        assert result.proven
    if result.proven:
        assert result.disagreement == pytest.approx(least, **near)
    assert result.gap == (
        0.0 if result.proven else pytest.approx(1 - result.decoded.bound / result.disagreement)
    )
    assert result.agreement == pytest.approx(1 - result.disagreement / size if size else 1.0)
    check_rows(result, items, preferences)
    check_majorities(result, items, preferences)


def check_rows(result, items, preferences):
    for rank, row in enumerate(result.table()):
        net = [oracles.net_preference(row["name"], other, preferences) for other in items]
        assert (row["rank"], row["name"]) == (rank + 1, result.names[rank])
        assert row["borda"] == pytest.approx(math.fsum(net), rel=1e-9, abs=1e-9 * max(map(abs, net)))
        counts = [sum(x > 0 for x in net), sum(x == 0 for x in net) - 1, sum(x < 0 for x in net)]
        assert [row["wins"], row["ties"], row["losses"]] == counts
        if rank + 1 < len(items):
            assert row["margin"] == net[items.index(result.names[rank + 1])]
        else:
            assert math.isnan(row["margin"])


def check_majorities(result, items, preferences):
    winners = [
        item
        for item in items
        if all(oracles.net_preference(item, other, preferences) > 0 for other in items if other != item)
    ]
    assert [result.condorcet_winner] == (winners or [None])
    lengths = range(3, len(items) + 1)
    cycles = next(filter(None, ([*oracles.majority_cycles(items, preferences, k)] for k in lengths)), [None])
    assert result.majority_cycle in cycles
    if winners and result.proven:
        assert result.winner == winners[0]


@pytest.mark.parametrize(
    "change",
    [
        {"order": [2, 1, 0]},
        {"order": [2, 1, 0], "value": 17.0},
        {"value": 9.0},
        {"bound": 11.0, "proven": False},
        {"proven": False, "bound": 9.0, "gap": 0.1},
        {"gap": 0.1},
    ],
)
def test_the_check_rejects_wrong_results(change):
    result = cc.aggregate(CYCLE)
    items, preferences = list(result.items), voiced([[[item] for item in order] for order in CYCLE], "cmt")
    check_aggregate(result, items, preferences)
    change = change | ({"order": np.array(change["order"])} if "order" in change else {})
    wrong = dataclasses.replace(result, decoded=dataclasses.replace(result.decoded, **change))
    with pytest.raises(AssertionError):
        check_aggregate(wrong, items, preferences)
    with pytest.raises(AssertionError):
        check_aggregate(dataclasses.replace(result, votes=result.votes.T), items, preferences)


# --- every kind of votes


def voiced(ballots, items, *, unranked_last=False):
    """All (better, worse, 1) of ballots."""
    return [
        (*pair, 1.0)
        for ballot in ballots
        for pair in oracles.ballot_preferences(ballot, items, unranked_last=unranked_last)
    ]


@st.composite
def elections(draw):
    """Items, text or numbers, and ballots of tied groups that name at least one of them."""
    n = draw(st.integers(1, 5))
    items = draw(
        st.sampled_from([["e", "b", "d", "a", "c"], [7, -2, 10, 3, 0], ["10", "9", "x y", "ü", ""]])
    )[:n]
    ballots = []
    for _ in range(draw(st.integers(1, 6))):
        ranked = draw(st.permutations(items))[: draw(st.integers(1, n))]
        cuts = sorted(draw(st.sets(st.integers(1, len(ranked)), max_size=4)) | {0, len(ranked)})
        ballots.append([ranked[a:b] for a, b in itertools.pairwise(cuts)])
    return items, ballots


def as_order(ballot):
    """A ballot as users write it: single items as they are, ties in a list, tuple or set."""
    kinds = itertools.cycle((list, tuple, set, frozenset))
    return [group[0] if len(group) == 1 else kind(group) for group, kind in zip(ballot, kinds, strict=False)]


@given(elections(), st.sampled_from(["ignore", "last"]), st.sampled_from(list(METHODS)))
def test_orders(election, unranked, method):
    items, ballots = election
    preferences = voiced(ballots, items, unranked_last=unranked == "last")
    orders = [as_order(ballot) for ballot in ballots]
    result = cc.aggregate(orders, names=items, unranked=unranked, method=method)
    check_aggregate(result, items, preferences)
    named = sorted({item for ballot in ballots for group in ballot for item in group})
    reversed_result = cc.aggregate(tuple(reversed(orders)), unranked=unranked, method=method)
    preferences = voiced(ballots, named, unranked_last=unranked == "last")
    check_aggregate(reversed_result, named, preferences)
    assert (
        reversed_result.names == cc.aggregate(orders, unranked=unranked, method=method).names
    )  # whoever votes first


@given(elections(), st.sampled_from(["ignore", "last"]))
def test_profiles(election, unranked):
    items, ballots = election
    numbered = [[[items.index(item) for item in group] for group in ballot] for ballot in ballots]
    profile = Profile([f"i{item}" for item in items], np.full(len(ballots), 2), numbered)
    preferences = [
        (f"i{better}", f"i{worse}", 2.0)
        for better, worse, _ in voiced(ballots, items, unranked_last=unranked == "last")
    ]
    check_aggregate(cc.aggregate(profile, unranked=unranked), profile.names, preferences)
    renamed = cc.aggregate(profile, unranked=unranked, names=items)
    check_aggregate(renamed, items, voiced(2 * ballots, items, unranked_last=unranked == "last"))
    numbers = [as_order(ballot) for ballot in numbered]
    again = cc.aggregate(
        2 * numbers, unranked=unranked, names=profile.names
    )  # by number, where names are text
    check_aggregate(again, profile.names, preferences)


@st.composite
def weighings(draw):
    """Items, and weighted preferences between them: contradicting, missing, tiny and huge ones too."""
    n = draw(st.integers(1, 5))
    weight = draw(
        st.sampled_from([st.integers(0, 3), st.floats(0, 1e200), st.sampled_from([0.0, 1e-300, 0.25])])
    )
    pairs = (
        draw(st.lists(st.sampled_from([*itertools.permutations(range(n), 2)]), max_size=15)) if n > 1 else []
    )
    return n, [(better, worse, float(draw(weight))) for better, worse in pairs]


def matrix(n, preferences):
    weights = np.zeros((n, n))
    for better, worse, weight in preferences:
        weights[better, worse] += weight
    return weights


def totals(n, preferences):
    """One preference a direction: sums of weights are rounded as they are in the matrix."""
    weights = matrix(n, preferences)
    return [(i, j, float(weights[i, j])) for i, j in itertools.permutations(range(n), 2) if weights[i, j]]


@pytest.mark.slow
@given(weighings(), st.sampled_from(list(METHODS)))
def test_matrices_graphs_and_preferences(weighing, method):
    n, preferences = weighing
    better, worse, weights = (np.array([row[k] for row in preferences]) for k in range(3))
    expected, votes = totals(n, preferences), matrix(n, preferences)
    kinds = [votes, csr_array(votes), pd.DataFrame(votes), cc.Preferences(better, worse, n, weights)]
    for given_as in kinds:
        check_aggregate(cc.aggregate(given_as, method=method), list(range(n)), expected)
    names = "edcba"[:n]
    graph = Digraph(list(names), weights, better.astype(int), worse.astype(int))
    called = [(names[i], names[j], weight) for i, j, weight in expected]
    check_aggregate(cc.aggregate(graph, method=method), [*names], called)
    check_aggregate(cc.aggregate(votes, names=[*names], method=method), [*names], called)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([3, 10, 7, 1]), st.sampled_from([3, 10, 7, 1]), st.sampled_from([-1, 0, 1])
        ),
        min_size=1,
        max_size=20,
    ),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:no outcome is -1")
def test_comparisons(rows, text):
    left, right, outcome = (list(column) for column in zip(*rows, strict=True))
    if text:
        left, right = [f"i{item}" for item in left], [f"i{item}" for item in right]
    items = sorted({*left, *right})
    preferences = [
        (first, other, 1.0) if sign < 0 else (other, first, 1.0)
        for first, other, sign in zip(left, right, outcome, strict=True)
        if sign and first != other
    ]
    votes = cc.Comparisons(left, right, outcome)
    check_aggregate(cc.aggregate(votes), items, preferences)
    more = [*items[::-1], "nobody" if text else 99]
    check_aggregate(cc.aggregate(votes, names=more), more, preferences)


@settings(max_examples=20)
@given(elections())
def test_files(tmp_path_factory, election):
    items, ballots = election
    folder = tmp_path_factory.mktemp("votes")
    lines = [f"# ALTERNATIVE NAME {number}: i{item}" for number, item in enumerate(items, 1)]
    for ballot in ballots:
        groups = [",".join(str(items.index(item) + 1) for item in group) for group in ballot]
        lines.append("1: " + ",".join(f"{{{group}}}" for group in groups))
    (folder / "votes.toi").write_text("\n".join(lines))
    names = [f"i{item}" for item in items]
    preferences = [(f"i{a}", f"i{b}", weight) for a, b, weight in voiced(ballots, items)]
    check_aggregate(cc.aggregate(folder / "votes.toi"), names, preferences)
    rows = [f"{a},{b},left" for a, b, _ in preferences] + [f"{names[-1]},{names[0]},tie"]
    (folder / "votes.csv").write_text("left,right,outcome\n" + "\n".join(rows))
    names_in_rows = sorted({name for row in rows for name in row.split(",")[:2]})
    check_aggregate(cc.aggregate(str(folder / "votes.csv")), names_in_rows, preferences)


def test_the_methods_differ():
    crowd = 3 * [["a", "b", "c"]] + 2 * [["b", "c", "a"]]
    results = {method: cc.aggregate(crowd, method=method) for method in METHODS}
    assert {method: result.disagreement for method, result in results.items()} == {
        "kemeny": 4,
        "borda": 5,
        "edge-deletion": 4,
        "insertion": 4,
    }
    assert results["borda"].winner == "b"
    assert "no ranking is below 4 (gap 20 %)" in repr(results["borda"])


def test_what_is_given_is_neither_kept_nor_changed():
    votes = np.array([[0.0, 1.0], [3.0, 0.0]])
    result = cc.aggregate(votes)
    votes[:] = 0
    assert result.votes.tolist() == [[0.0, 1.0], [3.0, 0.0]]
    with pytest.raises(ValueError, match="read-only"):
        result.votes[0, 1] = 2.0
    graph = Digraph(["a", "b"], np.array([1.0, 5.0]), np.array([0, 1]), np.array([1, 1]))
    assert cc.aggregate(graph).votes.tolist() == [[0.0, 1.0], [0.0, 0.0]]  # nobody is above himself


def test_the_result_says_what_it_is():
    many = cc.aggregate([list(range(12))])
    assert repr(many) == (
        "Aggregate(kemeny: 0 > 1 > 2 > 3 > 4 > 5 > 6 > 7 > ...; disagreement 0 of 66, proven optimal)"
    )
    assert str(cc.aggregate(np.array([[0, 2e6], [0.5, 0]]))) == (
        "Aggregate(kemeny: 0 > 1; disagreement 0.5 of 2e+06, proven optimal)"
    )
    nothing = cc.aggregate(np.zeros((2, 2)))
    assert (nothing.agreement, nothing.disagreement, nothing.proven, nothing.names) == (
        1.0,
        0.0,
        True,
        (0, 1),
    )
    assert nothing.condorcet_winner is nothing.majority_cycle is None


def test_a_long_cycle_is_found_whole():
    n = 30
    ring = np.zeros((n, n))
    ring[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    result = cc.aggregate(ring, time_limit=5.0)
    assert result.disagreement == 1.0
    assert result.majority_cycle == tuple(range(n))
    ring[4, 2] = 1.0
    assert cc.aggregate(ring, method="borda").majority_cycle == (2, 3, 4)


def test_time_limit_and_callback_reach_the_decoder():
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 100, (60, 60)).astype(float)
    np.fill_diagonal(votes, 0)
    steps = []
    result = cc.aggregate(votes, time_limit=0.0, callback=lambda value, bound: steps.append((value, bound)))
    assert steps
    assert not result.proven
    assert 0 < result.gap < 1
    assert result.decoded.bound <= result.disagreement
    assert all(bound <= value for value, bound in steps)


# --- bad input


BAD = [
    ([], EmptyDataError, "votes has no rows"),
    ([[]], EmptyDataError, "votes has no rows"),
    (np.zeros((0, 0)), EmptyDataError, "votes has no rows"),
    (["ab", "ba"], LabelError, "order 0 is 'ab', a str"),
    ([["a"], {"a", "b"}], LabelError, "order 1 is"),
    ([["a", "b", "a"]], LabelError, "order 0 names 'a' twice"),
    ([["a"], ["b", {"a", "b"}]], LabelError, "order 1 names 'b' twice"),
    ([[0, 0], [3, 0]], LabelError, "a matrix of votes is passed as a numpy array"),
    ([["a", 1]], LabelError, "orders mix text and numbers: 'a' and 1"),
    ([["a", None]], LabelError, "order 0 has the item 'None', a NoneType"),
    ([[0.5, 0]], LabelError, "pass a matrix as a numpy array"),
    ([[["a", ["b"]]]], LabelError, "a list inside an order is a tie"),
    ([[True, False]], LabelError, "a bool"),
    (np.zeros((2, 3)), LabelError, "votes has shape .2, 3.; expected a square matrix"),
    (np.zeros(3), LabelError, "votes has shape"),
    (np.array([["a", "b"], ["b", "a"]]), LabelError, "votes are a list of orders"),
    (np.array([[0, 1, 2], [2, 1, 0], [0, 2, 1]]), LabelError, r"votes\[1, 1\] = 1 prefers an item to itself"),
    (np.array([[0, -1], [1, 0]]), LabelError, r"votes\[0, 1\] = -1 is negative.\nHint: margins"),
    (np.array([[0, np.nan], [1, 0]]), NonFiniteError, "votes contains NaN at row 0, column 1"),
    (np.array([[0, 1e308], [1, 0]]), NonFiniteError, "rescale"),
    (Digraph(["a", "b"], np.array([-2.0]), np.array([0]), np.array([1])), LabelError, "is negative"),
    (Profile(["a", "a"], np.array([1]), [[[0], [1]]]), LabelError, "'a' is the name of two items"),
    (cc.Permutations([2, 1]), LabelError, "it is a Permutations"),
    (cc.Grades([2, 1]), LabelError, "votes are a list of orders"),
    ({"a": 1}, LabelError, "votes are a list of orders"),
    (iter([["a"]]), LabelError, "votes are a list of orders"),
    (None, LabelError, "votes are a list of orders"),
    (pd.DataFrame({"left": ["a"], "right": ["b"], "outcome": ["left"]}), LabelError, "cc.read_comparisons"),
    ("votes.txt", UnknownNameError, "unknown format of votes '.txt'"),
]


@pytest.mark.parametrize(("votes", "error", "words"), BAD)
def test_bad_votes(votes, error, words):
    with pytest.raises(error, match=words):
        cc.aggregate(votes)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"names": ["x"]}, LengthMismatchError, "names has 1 entries, the matrix of votes has 2 rows"),
        ({"names": ["x", "x"]}, LabelError, "'x' is the name of two items"),
        ({"names": ["x", 0.5]}, LabelError, "names has the item '0.5'"),
        ({"names": "xy"}, ParameterError, "a list of one name per item"),
        ({"names": 2}, ParameterError, "a list of one name per item"),
        ({"method": "kemney"}, UnknownNameError, "Did you mean 'kemeny'"),
        ({"method": "auto"}, UnknownNameError, "borda, edge-deletion, insertion, kemeny"),
        ({"method": ["borda"]}, UnknownNameError, "unknown method"),
        ({"unranked": "first"}, ParameterError, "'ignore' or 'last'"),
        ({"unranked": "last"}, ParameterError, "votes that are not orders"),
        ({"time_limit": -1}, ParameterError, "time_limit"),
        ({"callback": 3}, ParameterError, "callback"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        cc.aggregate(np.array([[0, 1], [2, 0]]), **options)


@pytest.mark.parametrize(
    ("votes", "names", "item"),
    [
        ([["a", "x"]], ["a", "b"], "'x'"),
        ([["a", 2]], ["a", "b"], "2"),
        ([["a", -1]], ["a", "b"], "-1"),
        ([[0, 1]], [1, 2], "0"),
        (cc.Comparisons(["a"], ["x"], [1]), ["a", "b"], "'x'"),
        (cc.Comparisons([1.5], [1.0], [1]), ["a", "b"], "1.0"),
    ],
)
def test_items_that_are_not_in_names(votes, names, item):
    with pytest.raises(UnknownNameError, match=f"unknown item {item}"):
        cc.aggregate(votes, names=names)


def test_missing_files():
    with pytest.raises(FileNotFoundError):
        cc.aggregate("no/such/file.soc")


# --- the command


DRINKS = "".join(
    f"# ALTERNATIVE NAME {n}: {name}\n" for n, name in enumerate(["coffee", "tea", "milk", "water"], 1)
)
DRINKS += "4: 1,2,3,4\n3: 2,3,1\n2: 3,1,2,4\n"
GAMES = "white,black,outcome\nann,bob,1\nbob,cat,1\nann,cat,0.5\ncat,bob,0\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drinks.soi").write_text(DRINKS)
    (tmp_path / "games.csv").write_text(GAMES)
    (tmp_path / "wins.csv").write_text("left,right,outcome\nann,bob,left\n")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, ["aggregate", *map(str, arguments)])


def shown(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unranked", ["ignore", "last"])
def test_json_is_the_library(method, unranked):
    expected = cc.aggregate("drinks.soi", method=method, unranked=unranked)
    output = json.loads(shown("drinks.soi", "--method", method, "--unranked", unranked, "--json"))
    rows = [
        row | {"margin": None if math.isnan(row["margin"]) else row["margin"]} for row in expected.table()
    ]
    assert output.pop("seconds") >= 0
    assert output == {
        "file": "drinks.soi",
        "voters": 9,
        "ballots": 3,
        "items": 4,
        "method": method,
        "disagreement": expected.disagreement,
        "total": expected.votes.sum(),
        "agreement": expected.agreement,
        "proven": True,
        "bound": expected.disagreement,
        "gap": 0.0,
        "condorcet_winner": None,
        "majority_cycle": ["coffee", "tea", "milk"],
        "ranking": rows,
    }
    output = json.loads(shown("drinks.soi", "--method", method, "--unranked", unranked, "--json", "--top", 1))
    assert output["ranking"] == rows[:1]


@pytest.mark.usefixtures("folder")
def test_table_and_remarks():
    lines = [line.split() for line in shown("drinks.soi").splitlines()]
    assert lines[0] == ["drinks.soi:", "kemeny", "ranking"]
    assert ["1", "coffee", "8", "2", "0", "1", "3"] in lines
    assert ["4", "water", "-18", "0", "0", "3", "-"] in lines
    text = shown("drinks.soi", "--top", 2)
    assert "water" not in text
    assert "9 voters with 3 different ballots; 4 items, the best 2 shown" in text
    assert "overrules 10 of 45 preferences (22.2 %): proven optimal" in text
    assert "no Condorcet winner" in text
    assert "contradict one another: coffee > tea > milk > coffee" in text
    assert "voters" not in shown("drinks.soi", "--quiet")


@pytest.mark.usefixtures("folder")
def test_tables_of_games():
    text = shown("games.csv", "--left", "white", "--right", "black", "--outcomes", "score")
    assert "4 comparisons with 1 tie; 3 items" in text
    assert "Condorcet winner" in text
    assert "majorities form no cycle" in text
    output = json.loads(
        shown("games.csv", "--left", "white", "--right", "black", "--outcomes", "score", "--json")
    )
    assert (output["comparisons"], output["tied"], output["total"]) == (4, 1, 3.0)
    assert [row["name"] for row in output["ranking"]] == ["ann", "bob", "cat"]


def test_graphs_without_edges(folder):
    (folder / "none.wmd").write_text("# ALTERNATIVE NAME 1: [b]x[/b]\n# ALTERNATIVE NAME 2: y\n")
    text = shown("none.wmd")
    assert "[b]x[/b]" in text
    assert "0 edges; 2 items" in text
    assert "any order will do" in text


def test_a_gap_is_shown(folder):
    rng = np.random.default_rng(0)
    names = "".join(f"# ALTERNATIVE NAME {number}: i{number}\n" for number in range(1, 51))
    edges = [f"{i},{j},{rng.integers(1, 99)}" for i, j in itertools.permutations(range(1, 51), 2)]
    (folder / "hard.wmd").write_text(names + "\n".join(edges))
    text = shown("hard.wmd", "--time-limit", 0)
    assert re.search(r"no ranking is below [\d,]+ \(gap [\d.]+ %\)", text)
    assert "2,450 edges; 50 items" in text


@pytest.mark.parametrize(("name", "separator"), [("out.csv", ","), ("out.tsv", "\t")])
def test_table_has_every_item(folder, name, separator):
    shown("drinks.soi", "--output", name, "--top", 1)
    with (folder / name).open() as stream:
        rows = list(csv.DictReader(stream, delimiter=separator))
    assert [row["name"] for row in rows] == ["coffee", "tea", "milk", "water"]
    assert rows[0] == {
        "rank": "1",
        "name": "coffee",
        "borda": "8.0",
        "wins": "2",
        "ties": "0",
        "losses": "1",
        "margin": "3.0",
    }
    assert rows[-1]["margin"] == ""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.soc"], "error: none.soc: No such file or directory"),
        (["drinks.txt"], "unknown format of votes '.txt'"),
        (["drinks.soi", "--method", "bodra"], "unknown method 'bodra'. Did you mean 'borda'?"),
        (["drinks.soi", "--left", "white"], "--left was given, but PrefLib files have no columns"),
        (["drinks.soi", "--unranked", "first"], "--unranked must be 'ignore' or 'last', got 'first'"),
        (["drinks.soi", "--time-limit", "-1"], "--time-limit must be"),
        (["drinks.soi", "--output", "nowhere/out.csv"], "error: nowhere: No such file or directory"),
        (["drinks.soi", "--output", "."], "Is a directory"),
        (["games.csv", "--outcomes", "score"], "unknown column 'left'"),
        (["wins.csv", "--unranked", "last"], "--unranked must be 'ignore' for votes that are not orders"),
        (["games.csv", "--left", "white", "--right", "black", "--outcomes", "goals"], "unknown outcomes"),
        (["drinks.soi", "--top", "0"], "--top"),
        ([], "FILE"),
    ],
)
def test_wrong_use_ends_with_a_message(arguments, words):
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.usefixtures("folder")
def test_interrupt_is_130(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    module = importlib.import_module("concordant.comparisons.aggregation.aggregate")
    monkeypatch.setattr(module, "build_vote_matrix", stop)
    assert call("drinks.soi").exit_code == 130


def test_examples_of_the_help_run(folder):
    (folder / "election.soc").write_text(DRINKS.replace("2,3,1\n", "2,3,1,4\n"))
    (folder / "ballots.toi").write_text(DRINKS)
    text = shown("--help").partition("Examples")[2]
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert [line[:2] for line in lines] == 4 * [["concordant", "aggregate"]]
    for line in lines:
        shown(*line[2:])
    assert (folder / "ranking.csv").exists()


def test_the_spinner_tells_the_gap():
    from rich.console import Console

    from concordant.cli.aggregate import teller

    assert teller(None) is None
    with Console(file=io.StringIO()).status("x") as status:
        teller(status)(120.0, 90.0)
        assert "disagreement 120, at least 90, gap 25 %" in str(status.renderable.text)
        teller(status)(0.0, 0.0)


def test_the_output_in_the_documentation(folder):
    text = (Path(__file__).resolve().parents[2] / "docs" / "aggregation.md").read_text()
    votes, output = re.findall(
        r"```text\n(#.*?)```\n\n```text\n\$ concordant aggregate drinks.soi\n(.*?)```", text, re.DOTALL
    )[0]
    (folder / "drinks.soi").write_text(votes)

    def timeless(printed):
        return re.sub(r"\d+\.\d\d s$", "", printed.strip(), flags=re.MULTILINE)

    assert timeless(shown("drinks.soi")) == timeless(output)


# --- real elections


def extracted(archive, tmp_path):
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    return sorted(path for path in tmp_path.rglob("*") if path.suffix in (".soc", ".soi", ".toc", ".toi"))


@pytest.mark.parametrize("archive", ["00024-dots", "00025-puzzle"])
@pytest.mark.parametrize("method", METHODS)
def test_crowds_find_the_true_order(shared_data, tmp_path, archive, method):
    """Dots by their number, puzzles by the moves they need: names are those numbers."""
    paths = extracted(shared_data / "preflib" / f"{archive}.tar.xz", tmp_path)
    assert len(paths) == 4
    for path in paths:
        result = cc.aggregate(path, method=method)
        numbers = [int(name) for name in result.names]
        assert numbers == sorted(numbers)
        assert result.proven
        assert result.majority_cycle is None


def test_song_contests_are_proven(shared_data, tmp_path):
    """Juries name some of the songs, and their majorities contradict one another."""
    paths = extracted(shared_data / "preflib" / "00064-eurovision.tar.xz", tmp_path)
    cycles = 0
    for path in paths[::6]:
        best = cc.aggregate(path)
        assert best.proven
        cycles += best.majority_cycle is not None
        for method in ("borda", "edge-deletion", "insertion"):
            quick = cc.aggregate(path, method=method)
            assert quick.decoded.bound <= best.disagreement <= quick.disagreement
    assert cycles


def test_columns_of_a_frame_are_the_names():
    frame = pd.DataFrame([[0, 1, 3], [2, 0, 1], [0, 2, 0]], columns=list("abc"))
    expected = cc.aggregate(frame.to_numpy(), names=["a", "b", "c"])
    labelled = frame.set_axis(list("abc"), axis=0)
    for votes in (frame, labelled, pl.from_pandas(frame)):
        assert cc.aggregate(votes).names == expected.names
    assert cc.aggregate(frame, names=["x", "y", "z"]).items == ("x", "y", "z")
    with pytest.raises(LabelError, match="does not match column"):
        cc.aggregate(labelled[["b", "a", "c"]])


def test_what_may_be_meant_otherwise_is_noted(tmp_path):
    (tmp_path / "a.csv").write_text("left,right,outcome\nGPT-4,b,1\nb,gpt-4 ,0\n")
    result = call(tmp_path / "a.csv")
    assert result.exit_code == 0
    assert "Use --outcomes score if 1 is the left's win" in result.stderr.replace("\n", " ")
    assert "'GPT-4' and 'gpt-4 '" in result.stderr
    assert "GPT" not in call(tmp_path / "a.csv", "--quiet").stderr
    assert "--outcomes" not in call(tmp_path / "a.csv", "--outcomes", "score").stderr
    (tmp_path / "a.soi").write_text("# ALTERNATIVE NAME 1: Tea\n# ALTERNATIVE NAME 2: tea\n1: 1,2\n")
    assert "'Tea' and 'tea'" in call(tmp_path / "a.soi").stderr


def test_names_without_an_order_are_refused():
    with pytest.raises(ParameterError, match="a list of one name per item"):
        cc.aggregate(np.array([[0, 3], [1, 0]]), names={"tea", "milk"})


@pytest.mark.parametrize(("name", "words"), [("votes.csv", "overwrite"), ("ranking.parquet", ".csv or .tsv")])
def test_the_command_writes_where_and_what_it_says(tmp_path, name, words):
    votes = tmp_path / "votes.csv"
    votes.write_text("left,right,outcome\na,b,left\nb,c,left\n")
    before = votes.read_bytes()
    result = CliRunner().invoke(app, ["aggregate", str(votes), "--output", str(tmp_path / name)])
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert votes.read_bytes() == before
