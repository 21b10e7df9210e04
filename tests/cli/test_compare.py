"""`concordant compare`: the library's answers on files as people have them, and errors that help."""

import csv
import gzip
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from concordant import Comparer, synthetic
from concordant.cli import app
from concordant.cli.compare.pair_models import COSTS, calibrate_folds, select_pairs, split_pairs
from concordant.cli.compare.pair_tables import PairTable, read_outcome_words
from concordant.comparisons.ratings import BradleyTerry, Davidson
from concordant.evaluation.outcomes import log_loss
from concordant.evaluation.report.page import short
from concordant.exceptions import LabelError
from concordant.store import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
RNG = np.random.default_rng(3)
NAMES = np.array(["ann", "bob", "cid", "dora", "eve", "fay"])
SKILL = np.linspace(-1.0, 1.0, 6)
LEFT = RNG.integers(0, 6, 240)
RIGHT = (LEFT + RNG.integers(1, 6, 240)) % 6
GAP = SKILL[RIGHT] - SKILL[LEFT] + RNG.logistic(size=240)
OUTCOME = np.where(np.abs(GAP) < 0.5, 0, np.sign(GAP)).astype(int)
WORDS = {-1: "left", 0: "tie", 1: "right"}
GAMES = synthetic.comparisons(n=90, norm="l2", tie_share=0.4, seed=1)


def call(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def shown(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments):
    return json.loads(shown(*arguments, "--json"))


def refused(*arguments):
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


def write(path, columns):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of each form, and a model of each kind."""
    path = tmp_path_factory.mktemp("compare")
    ids = {"left": NAMES[LEFT], "right": NAMES[RIGHT]}
    write(path / "votes.csv", ids | {"outcome": [WORDS[y] for y in OUTCOME], "day": np.arange(240)})
    write(path / "new.csv", {name: column[:30] for name, column in ids.items()})
    write(path / "items.csv", {"id": NAMES, "skill": SKILL, "noise": [5, 1, 4, 2, 6, 3]})
    sides = {
        f"{side}_{name}": GAMES.pairs[:, k, p]
        for p, name in enumerate("xy")
        for k, side in enumerate(("left", "right"))
    }
    write(path / "pairs.csv", sides | {"outcome": GAMES.y})
    write(path / "points.csv", {"name": ["p", "q", "r"], "y": [0.0, 1.0, 2.0], "x": [0.5, 0.5, 1.5]})
    for name, options in {
        "votes": [],
        "elo": ["--model", "elo"],
        "items": ["--items", path / "items.csv"],
        "pairs": [],
    }.items():
        table = path / ("pairs.csv" if name == "pairs" else "votes.csv")
        shown("fit", table, *options, "--folds", 0, "--output", path / f"{name}.cmp")
    return path


# --- fit


def test_ids_give_ratings(folder):
    output = answer("fit", folder / "votes.csv")
    expected = Davidson().fit(NAMES[LEFT], NAMES[RIGHT], OUTCOME)
    assert output["model"] == "Davidson"
    assert (output["pairs"], output["items"], output["components"]) == (240, 6, 1)
    assert output["outcomes"] == {word: int((y == OUTCOME).sum()) for y, word in WORDS.items()}
    predicted = expected.predict(NAMES[LEFT], NAMES[RIGHT])
    assert output["training_error"] == (predicted != OUTCOME).mean()
    assert output["predicted"] == {word: int((predicted == y).sum()) for y, word in WORDS.items()}
    check = output["held_out"]
    assert (check["pairs"], check["unknown"]) == (240, 0)
    assert check["error"] < check["baseline_error"]
    assert check["log_loss"] < check["baseline_log_loss"]
    assert load(folder / "votes.cmp").ratings_.tobytes() == expected.ratings_.tobytes()


def test_without_ties_bradley_terry(folder, tmp_path):
    decided = OUTCOME != 0
    votes = {"left": NAMES[LEFT][decided], "right": NAMES[RIGHT][decided], "outcome": OUTCOME[decided]}
    assert answer("fit", write(tmp_path / "a.csv", votes), "--folds", 0)["model"] == "BradleyTerry"
    assert (
        answer("fit", folder / "votes.csv", "--folds", 0, "-m", "bradley-terry", "--set", "ties=drop")[
            "parameters"
        ]
        == BradleyTerry(ties="drop").get_params()
    )


def test_the_held_out_check_is_what_it_says(folder):
    """Recomputed fold by fold from the definition."""
    from concordant.comparisons.calibration import folds

    wrong, losses, baseline = 0, [], 0
    for train, test in folds(OUTCOME == 0, 4, 0):
        model = Davidson(alpha=1e-3).fit(NAMES[LEFT[train]], NAMES[RIGHT[train]], OUTCOME[train])
        wrong += (model.predict(NAMES[LEFT[test]], NAMES[RIGHT[test]]) != OUTCOME[test]).sum()
        table = model.predict_proba(NAMES[LEFT[test]], NAMES[RIGHT[test]])
        losses += [-np.log(row[y + 1]) for row, y in zip(table, OUTCOME[test], strict=True)]
        baseline += (OUTCOME[test] != np.bincount(OUTCOME[train] + 1).argmax() - 1).sum()
    check = answer("fit", folder / "votes.csv", "--folds", 4)["held_out"]
    assert check["error"] == wrong / 240
    assert check["baseline_error"] == baseline / 240
    assert check["log_loss"] == pytest.approx(np.mean(losses), rel=1e-9)


def test_time_holds_out_the_last(folder):
    output = answer("fit", folder / "votes.csv", "--time", "day")["held_out"]
    assert output["pairs"] == 48
    assert "by time" in output["how"]
    model = Davidson(alpha=1e-3).fit(NAMES[LEFT[:192]], NAMES[RIGHT[:192]], OUTCOME[:192])
    late = NAMES[LEFT[192:]], NAMES[RIGHT[192:]]
    assert output["error"] == (model.predict(*late) != OUTCOME[192:]).mean()
    elo = answer("fit", folder / "votes.csv", "--model", "elo", "--set", "k=fide")
    assert "in the order of the file" in elo["held_out"]["how"]
    assert elo["parameters"]["k"] == "fide"


def test_features_of_both_sides_give_a_comparer(folder):
    output = answer("fit", folder / "pairs.csv", "--folds", 3, "--C", 2, "--kernel", "rbf", "--gamma", 0.5)
    assert output["features"] == ["x", "y"]
    assert output["parameters"] == Comparer("rbf", C=2.0, gamma=0.5).get_params()
    expected = Comparer("rbf", C=2.0, gamma=0.5).fit(GAMES.pairs, GAMES.y)
    assert output["training_error"] == (expected.predict(GAMES.pairs) != GAMES.y).mean()
    assert output["held_out"]["error"] < output["held_out"]["baseline_error"]
    loaded = load(folder / "pairs.cmp")
    assert loaded.feature_names_in_.tolist() == ["x", "y"]


def test_an_item_table_gives_a_comparer(folder):
    pairs = np.stack((SKILL[LEFT], SKILL[RIGHT]), axis=1)[:, :, None]
    expected = Comparer(method="rank").fit(pairs, OUTCOME)
    options = ["--features", "skill", "--method", "rank"]
    output = answer("fit", folder / "votes.csv", "--items", folder / "items.csv", *options, "--folds", 0)
    assert (output["model"], output["features"]) == ("Comparer", ["skill"])
    assert output["training_error"] == (expected.predict(pairs) != OUTCOME).mean()
    assert load(folder / "items.cmp").n_features_in_ == 2


def test_tuning_chooses_from_the_grid(folder):
    output = answer("fit", folder / "pairs.csv", "--tune", "--folds", 2)
    assert output["parameters"]["C"] in COSTS
    assert any("chosen by held-out error" in note for note in output["notes"])
    assert "--tune" in refused("fit", folder / "votes.csv", "--tune")


def test_formats_columns_and_words(folder, tmp_path):
    plain = answer("fit", folder / "votes.csv", "--folds", 0)
    ids = {"home": NAMES[LEFT], "away": NAMES[RIGHT]}
    named = ["--left", "home", "--right", "away", "--outcome", "result", "--folds", 0]
    score = write(tmp_path / "score.csv", ids | {"result": (1 - OUTCOME) / 2})
    words_path = write(
        tmp_path / "own.csv", ids | {"result": [{-1: "H", 0: "D", 1: "A"}[y] for y in OUTCOME]}
    )
    pq.write_table(pa.table(ids | {"result": OUTCOME}), tmp_path / "a.parquet")
    (tmp_path / "own.csv.gz").write_bytes(gzip.compress(words_path.read_bytes()))
    for path, words in (
        (score, ["--outcomes", "score"]),
        (words_path, ["--outcomes", "H=left,D=tie,A=right"]),
        (tmp_path / "own.csv.gz", ["--outcomes", "h=left, d=tie, a=right"]),
        (tmp_path / "a.parquet", []),
    ):
        assert answer("fit", path, *named, *words) == plain | {"file": path.name}
    with pytest.raises(LabelError, match="WORD=left"):
        read_outcome_words("H=left,D")


def test_weights_count_as_rows(tmp_path):
    votes = {"left": NAMES[LEFT], "right": NAMES[RIGHT], "outcome": OUTCOME, "n": RNG.integers(1, 4, 240)}
    write(tmp_path / "a.csv", votes)
    write(tmp_path / "b.csv", {name: np.repeat(column, votes["n"]) for name, column in votes.items()})
    for name, options in (("a", ["--weight", "n"]), ("b", [])):
        shown("fit", tmp_path / f"{name}.csv", *options, "--folds", 0, "-o", tmp_path / f"{name}.cmp")
    assert np.allclose(load(tmp_path / "a.cmp").ratings_, load(tmp_path / "b.cmp").ratings_, atol=1e-8)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """The votes and the pairs with weights, and the same with each row as often as it counts."""
    path = tmp_path_factory.mktemp("weighted")
    with_votes = {"left": NAMES[LEFT], "right": NAMES[RIGHT], "outcome": OUTCOME}
    sides = {
        f"{side}_{name}": GAMES.pairs[:, k, p]
        for p, name in enumerate("xy")
        for k, side in enumerate(("left", "right"))
    }
    for name, columns in {"votes": with_votes, "pairs": sides | {"outcome": GAMES.y}}.items():
        length = len(columns["outcome"])
        table = columns | {"day": np.arange(length), "n": np.tile([1, 3], length // 2)}
        write(path / f"{name}.csv", table)
        write(path / f"{name}_long.csv", {key: np.repeat(table[key], table["n"]) for key in table})
    return path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("votes", []),
        ("pairs", ["--set", "calibration=0"]),
        ("pairs", ["--set", "calibration=0", "--tune"]),
    ],
)
def test_what_fit_says_counts_weights_as_rows(weighted, name, options):
    """By time the same pairs are held out of both tables."""
    short_table = answer("fit", weighted / f"{name}.csv", *options, "--time", "day", "--weight", "n")
    long = answer("fit", weighted / f"{name}_long.csv", *options, "--time", "day")
    plain = answer("fit", weighted / f"{name}.csv", *options, "--time", "day")
    for key in ("outcomes", "predicted", "parameters"):
        assert short_table[key] == long[key]
    assert short_table["weight"] == long["pairs"]
    assert short_table["training_error"] == pytest.approx(long["training_error"])
    for key in ("error", "baseline_error", "log_loss", "baseline_log_loss"):
        if long["held_out"][key] is not None:  # the log-loss without calibration
            assert short_table["held_out"][key] == pytest.approx(long["held_out"][key], rel=1e-6)
    assert plain["held_out"]["baseline_log_loss"] != long["held_out"]["baseline_log_loss"]


def test_rows_are_parted_as_the_votes_that_they_are(tmp_path):
    """Each pair and outcome once, with its number of votes: the held-out check is that of all votes."""
    cells = [(i, j, y) for i, j in ((0, 1), (0, 2), (1, 2)) for y in (-1, 0, 1)]
    columns = dict(zip(("left", "right", "outcome"), np.array(cells).T, strict=True))
    columns |= {name: np.array(list("pqr"))[columns[name]] for name in ("left", "right")}
    n = np.array([15, 2, 4, 17, 3, 5, 11, 2, 6])
    long = {name: np.repeat(column, n) for name, column in columns.items()}
    path = write(tmp_path / "a.csv", columns | {"n": n})
    short = answer("fit", path, "--alpha", 1, "--weight", "n")["held_out"]
    expected = answer("fit", write(tmp_path / "b.csv", long), "--alpha", 1)["held_out"]
    assert short.pop("how") == expected.pop("how")
    assert expected["pairs"] == 65
    assert short == pytest.approx(expected, rel=1e-6)
    elo = answer("fit", path, "-m", "elo", "--weight", "n")["held_out"]  # in order a row is one moment
    assert elo["pairs"] == 11 + 2 + 6


def test_parts_of_votes():
    """Fractions are votes too, a weight of 0 is none, and many votes are parted several together."""

    def halves(weight):
        n = len(weight)
        data = PairTable("a", n, None, None, np.ones(n, int), None, (), None, np.array(weight))
        return split_pairs(None, data, 2)[1]

    for train, test in halves([0.25] * 8):
        assert (train.weight.tolist(), test.weight.tolist()) == ([0.25] * 4, [0.25] * 4)
    for train, test in halves([2.5, 0.0, 1e12, 7.5]):
        total = np.zeros(2)
        assert len(train.weight) < 4
        for half in (train, test):
            total += [half.n, half.weight.sum()]
        assert total[1] == pytest.approx(1e12 + 10.0)


def test_curves_of_folds_count_weights_as_rows():
    decided, outcome = GAMES.pairs[:, 1, 0] - GAMES.pairs[:, 0, 0], GAMES.y
    weight = np.tile([1.0, 3.0], 45)
    halves = np.arange(90)[:45], np.arange(90)[45:]

    def curves(times, weight):
        rows = [np.repeat(half, times[half]) for half in halves]
        places = [np.arange(len(rows[0])), len(rows[0]) + np.arange(len(rows[1]))]
        all_rows = np.concatenate(rows)
        nothing = None, None
        data = PairTable("a", len(all_rows), *nothing, outcome[all_rows], None, (), None, weight)
        folds = [(select_pairs(data, fold_rows), None, None, None) for fold_rows in places]
        curves_by_fold = [fold[2] for fold in calibrate_folds(folds, [decided[half] for half in rows])]
        return np.unique(np.concatenate(curves_by_fold), axis=0)

    once = curves(np.ones(90, int), weight)
    assert once == pytest.approx(curves(weight.astype(int), None), abs=1e-6)
    assert once != pytest.approx(curves(np.ones(90, int), None), abs=1e-6)


def test_few_rows_may_be_many_votes(tmp_path):
    votes = {"left": list("abca"), "right": list("bcac"), "outcome": [1, 1, 1, 0], "n": [5] * 4}
    path = write(tmp_path / "a.csv", votes)
    assert "4 pairs are too few" in shown("fit", path, "--alpha", 1)
    text = shown("fit", path, "--alpha", 1, "--weight", "n")
    assert "held out: 5 folds, each predicted from the others (20 pairs)" in text
    assert "4 pairs that count 20 times: 0 left, 5 tie, 15 right" in text
    write(tmp_path / "b.csv", votes | {"n": [0] * 4})
    assert "column 'n' is 0 in every row" in refused("fit", tmp_path / "b.csv", "--weight", "n")


def test_predict_counts_weights_as_rows(folder, weighted):
    once = answer("predict", folder / "votes.cmp", weighted / "votes.csv", "--weight", "n")
    long = answer("predict", folder / "votes.cmp", weighted / "votes_long.csv")
    for key in ("error", "log_loss"):
        assert once[key] == pytest.approx(long[key])
    assert once["error"] != answer("predict", folder / "votes.cmp", weighted / "votes.csv")["error"]


@pytest.mark.slow
def test_refits_draw_as_many_votes_as_there_are(tmp_path):
    """However the votes are spread over rows, the intervals are as wide; four times the votes: half."""
    rng = np.random.default_rng(1)
    sides = rng.normal(size=(120, 2))
    gap = sides[:, 1] - sides[:, 0] + 0.4 * rng.normal(size=120)
    outcome = np.where(np.abs(gap) < 1.0, 0, np.sign(gap)).astype(int)
    table = {"left_x": sides[:, 0], "right_x": sides[:, 1], "outcome": outcome}
    long = {name: np.repeat(column, 4) for name, column in table.items()}
    path, smooth = write(tmp_path / "a.csv", table), ["--set", "loss=logistic", "--folds", 0]
    shown("fit", path, *smooth, "-o", tmp_path / "a.cmp")
    items = write(tmp_path / "items.csv", {"id": ["p", "q"], "x": [0.0, 1.0]})
    arguments = ["rank", tmp_path / "a.cmp", "--items", items, "--level", 0.7, "--bootstrap", 100]

    def width(columns, *options):
        output = answer(*arguments, "--pairs", write(path, columns), *options)
        return np.mean([row["high"] - row["low"] for row in output["rows"]])

    once, often = width(table), width(long)
    assert width(table | {"n": [4] * 120}, "--weight", "n") == pytest.approx(often, rel=0.3)
    assert width(long | {"n": [0.25] * 480}, "--weight", "n") == pytest.approx(once, rel=0.3)
    assert often < 0.7 * once


@pytest.mark.slow
def test_wins_as_one_and_zero_are_noted(folder, tmp_path):
    """0 and 1 may be losses and wins: read as written, and said."""
    decided = OUTCOME != 0
    ids = {"left": NAMES[LEFT][decided], "right": NAMES[RIGHT][decided]}
    path = write(tmp_path / "a.csv", ids | {"outcome": (OUTCOME[decided] == -1).astype(int)})
    result = call("fit", path, "--folds", 0)
    assert "no outcome is -1" in result.stderr
    assert "--outcomes score" in result.stderr
    assert "no outcome is -1" not in call("fit", path, "--folds", 0, "--quiet").stderr
    assert "no outcome is -1" in answer("fit", path, "--folds", 0)["notes"][0]
    assert "no outcome is -1" in answer("predict", folder / "votes.cmp", path)["notes"][0]
    tables = ["--items", folder / "items.csv", "--pairs", path, "--bootstrap", 2]
    assert "no outcome is -1" in answer("rank", folder / "items.cmp", *tables)["notes"][0]
    for how in ("score", "1=left,0=right"):
        meant = call("fit", path, "--folds", 0, "--outcomes", how, "--json")
        assert "no outcome is -1" not in meant.output
        assert json.loads(meant.stdout)["outcomes"]["left"] == (OUTCOME[decided] == -1).sum()
    words = write(tmp_path / "b.csv", ids | {"outcome": np.where(OUTCOME[decided] == -1, "tie", "right")})
    assert answer("fit", words, "--folds", 0)["notes"] == []


def test_ids_of_numbers_and_text(tmp_path):
    """One side may happen to have numbers only; ids with zeros in front stay as they are."""
    write(tmp_path / "a.csv", {"left": ["1", "2", "x"], "right": ["2", "x", "1"], "outcome": [1, 1, 1]})
    shown("fit", tmp_path / "a.csv", "-o", tmp_path / "a.cmp")
    assert load(tmp_path / "a.cmp").items_.tolist() == ["1", "2", "x"]
    write(tmp_path / "b.csv", {"left_id": ["1"], "right_id": ["2"]})
    assert answer("predict", tmp_path / "a.cmp", tmp_path / "b.csv")["predictions"][0]["left"] == "1"
    write(tmp_path / "c.csv", {"left": ["07", "7"], "right": ["7", "07"], "outcome": [1, 1]})
    shown("fit", tmp_path / "c.csv", "-o", tmp_path / "c.cmp")
    assert load(tmp_path / "c.cmp").items_.tolist() == ["07", "7"]


def test_what_is_known_only_to_some_folds(tmp_path):
    """A newcomer cannot be predicted from the others: said, not counted."""
    votes = {
        "left": [*NAMES[LEFT[:60]], "zoe"],
        "right": [*NAMES[RIGHT[:60]], "ann"],
        "outcome": [*OUTCOME[:60], 0],
    }
    output = answer("fit", write(tmp_path / "a.csv", votes), "--alpha", 0.1)
    assert (output["held_out"]["pairs"], output["held_out"]["unknown"]) == (60, 1)


def test_few_pairs_are_no_error(tmp_path):
    write(tmp_path / "a.csv", {"left": ["a", "b"], "right": ["b", "a"], "outcome": ["left", "left"]})
    text = shown("fit", tmp_path / "a.csv")
    assert "2 pairs are too few" in text
    assert answer("fit", tmp_path / "a.csv")["held_out"] is None


def test_notes_say_what_was_done_instead(tmp_path):
    write(
        tmp_path / "a.csv", {"left_x": np.arange(12), "right_x": np.arange(12)[::-1], "outcome": [-1, 1] * 6}
    )
    text = shown("fit", tmp_path / "a.csv", "--folds", 0)
    assert "No training pair is a tie" in text
    assert "--method rank" in text
    write(tmp_path / "b.csv", {"left_x": np.arange(12), "right_x": np.arange(12)[::-1], "outcome": [0] * 12})
    text = shown("fit", tmp_path / "b.csv")
    assert "every training pair is predicted alike: tie" in text
    assert shown("fit", tmp_path / "b.csv", "--quiet").count("\n") < 8


def test_components_are_counted_and_noted(tmp_path):
    votes = {
        "left": ["a", "b", "c", "d"] * 3,
        "right": ["b", "a", "d", "c"] * 3,
        "outcome": [1, 1, -1, 0] * 3,
    }
    path = write(tmp_path / "a.csv", votes)
    message = refused("fit", path)
    assert "2 components" in message
    assert "alpha > 0" in message
    output = answer("fit", path, "--alpha", 0.1)
    assert output["components"] == 2
    assert any("2 components" in note for note in output["notes"])


# --- predict


def test_predictions_are_the_models(folder, tmp_path):
    output = answer("predict", folder / "votes.cmp", folder / "votes.csv")
    model = load(folder / "votes.cmp")
    table = model.predict_proba(NAMES[LEFT], NAMES[RIGHT])
    assert [row["prediction"] for row in output["predictions"]] == [
        WORDS[y] for y in model.predict(NAMES[LEFT], NAMES[RIGHT])
    ]
    assert [[row["p_left"], row["p_tie"], row["p_right"]] for row in output["predictions"]] == table.tolist()
    assert output["predictions"][3]["decision"] == model.ratings_[RIGHT[3]] - model.ratings_[LEFT[3]]
    assert output["log_loss"] == log_loss(OUTCOME, table)
    assert "error" not in answer("predict", folder / "votes.cmp", folder / "new.csv")
    text = shown("predict", folder / "votes.cmp", folder / "new.csv", "-o", tmp_path / "p.csv")
    assert "30 predictions are in" in text
    with (tmp_path / "p.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["row", "left", "right", "prediction", "decision", "p_left", "p_tie", "p_right"]
    assert [float(row["p_tie"]) for row in rows] == table[:30, 1].tolist()
    assert "the first 20 of 30" in shown("predict", folder / "votes.cmp", folder / "new.csv")


def test_a_comparer_predicts_by_features(folder, tmp_path):
    model = load(folder / "pairs.cmp")
    output = answer("predict", folder / "pairs.cmp", folder / "pairs.csv")
    assert [row["decision"] for row in output["predictions"]] == model.decision_function(GAMES.pairs).tolist()
    assert "left" not in output["predictions"][0]
    write(tmp_path / "ids.csv", {"left": ["p", "q"], "right": ["q", "r"]})
    by_item = answer("predict", folder / "pairs.cmp", tmp_path / "ids.csv", "--items", folder / "points.csv")
    points = np.array([[0.5, 0.0], [0.5, 1.0], [1.5, 2.0]])  # columns by name, whatever their order
    scores = model.rank_score(points)
    assert [row["decision"] for row in by_item["predictions"]] == pytest.approx(np.diff(scores).tolist())


def test_without_calibration_no_probabilities(folder, tmp_path):
    output = answer("fit", folder / "pairs.csv", "--set", "calibration=0", "-o", tmp_path / "a.cmp")
    assert output["held_out"]["log_loss"] > 0
    rows = answer("predict", tmp_path / "a.cmp", folder / "pairs.csv")["predictions"]
    assert set(rows[0]) == {"row", "prediction", "decision"}


# --- rank


def test_the_leaderboard_is_the_models(folder, tmp_path):
    model = load(folder / "votes.cmp")
    output = answer("rank", folder / "votes.cmp", "--level", 0.9)
    expected = model.leaderboard(0.9).to_dict()
    assert output["rows"] == expected["rows"]
    assert answer("rank", folder / "votes.cmp", "--level", 0.9, "--top", 2)["rows"] == expected["rows"][:2]
    elo = answer("rank", folder / "votes.cmp", "--scale", "elo")["rows"]
    assert elo == model.leaderboard(scale="elo").to_dict()["rows"]
    shown("rank", folder / "votes.cmp", "--top", 2, "-o", tmp_path / "b.csv")
    with (tmp_path / "b.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["item"] for row in rows] == [row["item"] for row in expected["rows"]]
    assert float(rows[0]["rating"]) == expected["rows"][0]["rating"]


def test_bootstrap_intervals(folder):
    for name in ("votes", "elo"):
        model = load(folder / f"{name}.cmp")
        low, _ = model.interval(0.95, method="bootstrap", n_resamples=20, random_state=1)
        order = np.argsort(-model.ratings_)
        best, worst = model.rank_bounds(0.95, "bootstrap", n_resamples=20, random_state=1)
        output = answer("rank", folder / f"{name}.cmp", "--bootstrap", 20, "--seed", 1)
        assert [row["low"] for row in output["rows"]] == low[order].tolist()
        assert [row["worst_rank"] for row in output["rows"]] == worst[order].tolist()
        assert [row["best_rank"] for row in output["rows"]] == best[order].tolist()
        assert output["intervals"] == "20 resamples of the votes"


def test_a_comparer_ranks_a_table(folder):
    output = answer("rank", folder / "items.cmp", "--items", folder / "items.csv")
    model = load(folder / "items.cmp")
    scores = model.rank_score(np.stack((SKILL, [5, 1, 4, 2, 6, 3]), axis=1))
    scores -= scores.mean()
    order = np.argsort(-scores)
    assert [row["item"] for row in output["rows"]] == NAMES[order].tolist()
    assert [row["rating"] for row in output["rows"]] == pytest.approx(scores[order].tolist())
    assert output["rows"][0]["low"] is output["rows"][0]["best_rank"] is output["rows"][0]["votes"] is None
    text = shown("rank", folder / "items.cmp", "--items", folder / "items.csv")
    assert "no intervals" in text
    assert "ranks" not in text.splitlines()[1]


def test_a_comparer_has_intervals_by_refits(folder):
    arguments = [
        "rank",
        folder / "items.cmp",
        "--items",
        folder / "items.csv",
        "--pairs",
        folder / "votes.csv",
    ]
    output = answer(*arguments, "--bootstrap", 15)
    assert all(row["low"] < row["high"] and row["best_rank"] <= row["worst_rank"] for row in output["rows"])
    assert output["intervals"].endswith("refits")
    votes = {row["item"]: row["votes"] for row in output["rows"]}
    assert votes == {name: ((k == LEFT) | (k == RIGHT)).sum() for k, name in enumerate(NAMES)}
    assert output == answer(*arguments, "--bootstrap", 15)
    tables = ["--items", folder / "points.csv", "--pairs", folder / "pairs.csv"]
    by_features = answer("rank", folder / "pairs.cmp", *tables, "--bootstrap", 3)
    assert by_features["intervals"]
    assert by_features["rows"][0]["votes"] is None


def test_scores_without_intervals_are_marked(folder, tmp_path):
    items = {"id": np.arange(60), "skill": np.linspace(-1.0, 1.0, 60), "noise": [3] * 60}
    text = shown("rank", folder / "items.cmp", "--items", write(tmp_path / "a.csv", items))
    ratings = [line.split()[2] for line in text.splitlines()[3:63]]
    assert len({*ratings}) == 60


def test_tables_with_tabs_and_compressed(folder, tmp_path):
    for name in ("a.tsv", "a.csv.gz"):
        shown("rank", folder / "votes.cmp", "-o", tmp_path / name)
    assert (tmp_path / "a.tsv").read_text().startswith("rank\t")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"rank,")


class Links(HTMLParser):
    """Whatever a page would fetch."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes and tag != "a"]


def test_the_page_stands_alone(folder, tmp_path):
    pytest.importorskip("plotly")
    votes = {"left": ["<b>x</b>", "y & co"] * 2, "right": ["y & co", "<b>x</b>"] * 2, "outcome": [1, 1, 1, 0]}
    shown("fit", write(tmp_path / "a.csv", votes), "-o", tmp_path / "a.cmp")
    text = shown("rank", tmp_path / "a.cmp", "--html", tmp_path / "a.html")
    assert "written to" in text
    page = (tmp_path / "a.html").read_text()
    before = page.partition("<script")[0]
    assert "prefers-color-scheme: dark" in before
    assert 'name="viewport"' in before
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert '<td class="item"><b>x' not in page
    links = Links()
    links.feed(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert links.addresses == []
    assert "<script src" not in page
    checked = Links()
    checked.feed('<link href="https://a">')
    assert checked.addresses == ["https://a"]  # the check can fail
    shown("rank", folder / "items.cmp", "--items", folder / "items.csv", "--html", tmp_path / "b.html")
    assert short("n" * 30).endswith("…")


# --- what is refused


def test_a_table_that_fits_nothing(folder, tmp_path):
    path = write(tmp_path / "a.csv", {"a": [1], "b": [2], "outcome": [1]})
    message = refused("fit", path)
    assert "neither ids" in message
    assert "it has a, b, outcome" in message
    assert "has no column 'outcome'" in refused("fit", folder / "new.csv")
    assert "--outcome" in refused("fit", folder / "new.csv")
    assert "has no column 'white'" in refused("fit", folder / "votes.csv", "--left", "white")
    assert "has no column 'when'" in refused("fit", folder / "votes.csv", "--time", "when")
    assert "has no column 'left'" in refused("fit", path, "--items", folder / "items.csv")


def test_times_that_doubles_round_are_refused(tmp_path):
    votes = {"left": ["a", "b"], "right": ["b", "c"], "outcome": [1, -1]}
    path = write(tmp_path / "a.csv", votes | {"time": [1, 10**20 + 1]})
    message = refused("fit", path, "-m", "elo", "--time", "time")
    assert "column 'time' is 1e+20 at row 1, and doubles round such numbers" in message.replace(
        "1" + "0" * 20, "1e+20"
    )
    shown("fit", write(tmp_path / "b.csv", votes | {"time": [1, 10**15 + 1]}), "-m", "elo", "--time", "time")


def test_features_that_cannot_be_used(folder, tmp_path):
    columns = {"left_x": [1, 2], "right_x": [2, 1], "left_z": [1, 1], "outcome": [1, -1]}
    message = refused("fit", write(tmp_path / "a.csv", columns))
    assert "the feature 'z' has no column 'right_z'" in message
    assert "--features" in message
    shown("fit", tmp_path / "a.csv", "--features", "x")
    text = columns | {"left_z": ["a", "b"], "right_z": ["c", "d"]}
    message = refused("fit", write(tmp_path / "b.csv", text))
    assert "left_z" in message
    assert "--features" in message
    items = {"id": NAMES, "skill": SKILL, "town": ["x"] * 6}
    message = refused("fit", folder / "votes.csv", "--items", write(tmp_path / "items.csv", items))
    assert "'town' must be numeric" in message
    assert "unknown column 'age'" in refused(
        "fit", folder / "votes.csv", "--items", folder / "items.csv", "--features", "age"
    )
    holes = {"id": NAMES, "skill": [1, 2, "", 4, 5, 6]}
    assert "row 2" in refused("fit", folder / "votes.csv", "--items", write(tmp_path / "holes.csv", holes))
    assert "only the column 'id'" in refused(
        "fit", folder / "votes.csv", "--items", write(tmp_path / "c.csv", {"id": NAMES})
    )


def test_text_columns_do_not_matter_to_ratings(folder, tmp_path):
    votes = {"left": NAMES[LEFT], "right": NAMES[RIGHT], "left_town": ["x"] * 240, "right_town": ["y"] * 240}
    path = write(tmp_path / "a.csv", votes | {"outcome": OUTCOME})
    assert "--model davidson" in refused("fit", path)
    assert answer("fit", path, "--model", "davidson", "--folds", 0)["items"] == 6
    assert answer("predict", folder / "votes.cmp", path)["pairs"] == 240


def test_unknown_items_are_named_with_their_row(folder, tmp_path):
    votes = {"left": ["ann", "ann"], "right": ["bob", "anne"], "outcome": [1, 0]}
    path = write(tmp_path / "a.csv", votes)
    message = refused("fit", path, "--items", folder / "items.csv")
    assert "row 1 of a.csv, right: the item 'anne' is not in items.csv" in message
    assert "ann" in message.partition("Hint")[2]
    assert "row 1 of a.csv, right: the item 'anne' is not in the model" in refused(
        "predict", folder / "votes.cmp", path
    )
    twice = write(tmp_path / "b.csv", {"id": ["ann", "bob", "ann"], "x": [1, 2, 3]})
    assert "rows 0 and 2 both have the id 'ann'" in refused("fit", path, "--items", twice)
    empty = write(tmp_path / "c.csv", {"left": ["ann", ""], "right": ["bob", "bob"], "outcome": [1, 0]})
    assert "has no id at row 1" in refused("fit", empty)


def test_parameters_that_do_not_belong(folder):
    assert "unknown parameter of davidson 'C'" in refused("fit", folder / "votes.csv", "--C", 1)
    assert "unknown parameter of comparer 'alpha'" in refused("fit", folder / "pairs.csv", "--alpha", 1)
    assert "unknown model 'elow'" in refused("fit", folder / "votes.csv", "-m", "elow")
    assert "NAME=VALUE" in refused("fit", folder / "votes.csv", "--set", "alpha")
    assert "--C must be a finite number > 0" in refused("fit", folder / "pairs.csv", "--C", -1)
    assert "--items" in refused("fit", folder / "votes.csv", "-m", "comparer")
    assert "--left" in refused("fit", folder / "pairs.csv", "-m", "elo")
    assert "at least 2" in refused("fit", folder / "votes.csv", "--folds", 1)
    assert "unknown outcome 'right' at row 0. Hint: left, right and tie" in refused(
        "fit", folder / "votes.csv", "--outcomes", "score"
    )


def test_models_and_tables_that_do_not_match(folder, tmp_path):
    assert "this is not a model file" in refused("rank", folder / "votes.csv")
    assert "No such file" in refused("rank", tmp_path / "a.cmp")
    assert "--items" in refused("rank", folder / "items.cmp")
    assert "has only ids" in refused("predict", folder / "items.cmp", folder / "new.csv")
    assert "neither ids" in refused("predict", folder / "elo.cmp", folder / "pairs.csv")
    assert "unknown column 'skill'" in refused("rank", folder / "items.cmp", "--items", folder / "points.csv")
    assert "--level must be a number > 0 and < 1" in refused("rank", folder / "votes.cmp", "--level", 2)
    assert "'natural' or 'elo'" in refused("rank", folder / "votes.cmp", "--scale", "chess")


def test_places_are_checked_before_the_work(folder, tmp_path):
    for command in (["fit", folder / "no.csv"], ["predict", "no.cmp", "no.csv"], ["rank", "no.cmp"]):
        assert str(tmp_path / "no") in refused(*command, "-o", tmp_path / "no" / "a")
    assert ".html" in refused("rank", "no.cmp", "--html", tmp_path / "a.pdf")
    (tmp_path / "kept.cmp").write_text("old")
    refused("fit", folder / "new.csv", "-o", tmp_path / "kept.cmp")
    assert (tmp_path / "kept.cmp").read_text() == "old"


def test_no_output_overwrites_an_input(folder, tmp_path):
    votes, items, model, page = (tmp_path / name for name in ("v.csv", "items.csv", "v.cmp", "x.html"))
    for name, path in (("votes.csv", votes), ("items.csv", items), ("items.cmp", model)):
        path.write_bytes((folder / name).read_bytes())
    before = {path: path.read_bytes() for path in (votes, items, model)}
    (tmp_path / "again.csv").symlink_to(votes)
    item_options = ["--items", items]
    for command in (
        ["fit", votes, "-o", votes],
        ["fit", votes, "-o", tmp_path / "again.csv"],
        ["fit", votes, *item_options, "-o", tmp_path / "." / "items.csv"],
        ["predict", model, votes, *item_options, "-o", votes],
        ["predict", model, votes, *item_options, "-o", items],
        ["predict", model, votes, *item_options, "-o", model],
        ["rank", model, *item_options, "-o", model],
        ["rank", model, *item_options, "-o", items],
        ["rank", model, *item_options, "--pairs", votes, "-o", votes],
        ["rank", model, *item_options, "--html", model],
        ["rank", model, *item_options, "-o", page, "--html", page],
    ):
        assert "it would overwrite" in refused(*command)
    assert before == {path: path.read_bytes() for path in before}
    assert not page.exists()


def test_names_that_promise_another_format(folder, tmp_path):
    for command in (["rank", folder / "votes.cmp"], ["predict", folder / "votes.cmp", folder / "new.csv"]):
        for name in ("a.parquet", "a", "a.gz", "a.json.gz"):
            assert ".csv or .tsv" in refused(*command, "-o", tmp_path / name)
    assert "--html must be" in refused("rank", folder / "votes.cmp", "--html", tmp_path / "board.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_options_that_would_be_left_unheard(folder):
    votes, items = folder / "votes.csv", folder / "items.csv"
    for option, value in {
        "--items": items,
        "--pairs": votes,
        "--left": "left",
        "--outcomes": "score",
        "--weight": "day",
        "--left-prefix": "a_",
        "--id": "id",
    }.items():
        assert f"{option} works only" in refused("rank", folder / "votes.cmp", option, value)
    for option, value in {"--items": items, "--features": "day", "--right-prefix": "b_"}.items():
        assert f"{option} works only" in refused("fit", votes, "-m", "davidson", option, value)
    assert "--features works only" in refused("fit", votes, "--features", "day")
    assert "--id works only" in refused("fit", votes, "--id", "name")
    assert "--items works only" in refused("predict", folder / "votes.cmp", votes, "--items", items)
    assert "--id works only" in refused("predict", folder / "votes.cmp", votes, "--id", "name")
    assert "--seed works only" in refused("rank", folder / "votes.cmp", "--seed", 5)
    shown("rank", folder / "votes.cmp", "--seed", 5, "--bootstrap", 5)
    scored = ["rank", folder / "items.cmp", "--items", items]
    assert "--scale works only" in refused(*scored, "--scale", "elo")
    assert "--bootstrap works only" in refused(*scored, "--bootstrap", 5)
    assert "--left works only" in refused(*scored, "--left", "left")
    pairs = ["fit", folder / "pairs.csv", "--folds", 0]
    assert "C is given twice" in refused(*pairs, "--C", 5, "--set", "C=3")
    assert "C is given twice" in refused(*pairs, "--set", "C=5", "--set", "C=3")
    assert "--tune chooses C, but C was given" in refused(*pairs, "--C", 5, "--tune")
    assert "--tune chooses gamma, but gamma was given" in refused(
        *pairs, "--kernel", "rbf", "--gamma", 5, "--tune"
    )


def test_settings_of_the_wrong_kind(folder):
    assert "--set advantage=35" in refused("fit", folder / "votes.csv", "-m", "elo", "--advantage")
    assert "alpha must be a number" in refused("fit", folder / "votes.csv", "--set", "alpha=true")
    assert "kernel must be text" in refused("fit", folder / "pairs.csv", "--set", "kernel=true")
    assert answer("fit", folder / "votes.csv", "--set", "advantage=true")["parameters"]["advantage"] is True
    separable = ["fit", folder / "pairs.csv", "--formulation", "lp", "--folds", 0]
    assert call(*separable, "--set", "C=inf").output == call(*separable, "--C", "inf").output


def test_the_first_text_among_numbers_is_named(tmp_path):
    columns = {"left_x": [1, "abc", 2], "right_x": [2, 1, 3], "outcome": [1, -1, 0]}
    assert "'left_x' must be numeric, but row 1 is 'abc'" in refused(
        "fit", write(tmp_path / "a.csv", columns)
    )


def test_tables_without_rows_are_named(folder, tmp_path):
    for header in ("left,right,outcome", "left_x,right_x,outcome"):
        (tmp_path / "none.csv").write_text(f"{header}\n")
        assert "none.csv has no rows" in refused("fit", tmp_path / "none.csv")
    (tmp_path / "none.csv").write_text("id,skill\n")
    assert "none.csv has no rows" in refused("fit", folder / "votes.csv", "--items", tmp_path / "none.csv")


# --- the documentation


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    section = (DOCS / "command-line.md").read_text().partition("\n## compare\n")[2].partition("\n## ")[0]
    first, second, example = re.findall(r"```text\n(.*?)```", section, flags=re.DOTALL)
    (tmp_path / "tastings.csv").write_text(first)
    (tmp_path / "next.csv").write_text(second)
    monkeypatch.chdir(tmp_path)
    for block in filter(None, example.split("$ ")):
        command, _, expected = block.partition("\n")
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.stdout.strip() == expected.strip()


def test_help_has_examples():
    for command in ("fit", "predict", "rank"):
        assert "Examples" in shown(command, "--help")
