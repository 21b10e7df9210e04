"""`concordant tune`: scores are those of whole held-out queries; killed searches go on to the same trials."""

import csv
import json
import shutil

import numpy as np
import pytest

import concordant as cc
from concordant.cli.runs.config import merge_sections, read_config, resolve_config
from concordant.cli.train.train_options import KINDS, defaults_of, make_ranker
from concordant.cli.tune.tune_space import SPACES, Choices, Range, space_of
from concordant.store import digest_of
from tests.helpers.cli_calls import answer, call, contents, killed, mean, refusal, written_log

pytestmark = pytest.mark.once

TREES = ["--model", "boosted", "--set", "n_jobs=1", "--folds", 2, "--space", "n_estimators=2:6"]
FILES = {"config.toml", "best.toml", "run.json", "metrics.json", "trials.csv", "model.concordant"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for seed, name in enumerate(("train", "vali", "test")):
        written_log(folder, name, 40 - 10 * seed, seed)
    return folder


@pytest.fixture(scope="module")
def path_run(home, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "path"
    return run, answer("tune", home / "train.txt", "--test", home / "test.txt", "--folds", 3, "-o", run)


@pytest.fixture(scope="module")
def study(home, tmp_path_factory):
    """A study of five trials."""
    pytest.importorskip("optuna")
    pytest.importorskip("lightgbm")
    run = tmp_path_factory.mktemp("runs") / "study"
    return run, answer("tune", home / "train.txt", *TREES, "--trials", 5, "-o", run)


def plain(trials):
    return [{**trial, "seconds": None} for trial in trials]


# --- the path


@pytest.mark.slow
def test_the_path_is_that_of_the_library(home, path_run):
    run, output = path_run
    rows = cc.read_letor(home / "train.txt")
    alphas = [trial["parameters"]["alpha"] for trial in output["trials"]]
    assert len(alphas) == 15
    assert alphas == sorted(alphas, reverse=True)
    model = cc.LinearRankerCV(alphas=alphas, cv=3).fit(rows.X, rows.y, qid=rows.qid)
    scores = [[trial[f"fold {fold}"] for fold in (1, 2, 3)] for trial in output["trials"]]
    assert np.array_equal(scores, model.scores_)
    assert output["best"]["parameters"] == {"alpha": model.alpha_}
    assert output["best"]["value"] == pytest.approx(model.best_score_, abs=1e-15)
    assert set(contents(run)) == FILES


def test_the_best_trains_the_model_of_the_search(home, path_run, tmp_path):
    run, output = path_run
    again = answer("train", "--config", run / "best.toml", "-o", tmp_path / "best")
    assert again["model"]["digest"] == output["model"]["digest"] == digest_of(run / "model.concordant")
    rows = cc.read_letor(home / "train.txt")
    model = cc.LinearRanker(alpha=output["best"]["parameters"]["alpha"]).fit(rows.X, rows.y, qid=rows.qid)
    assert np.array_equal(cc.load(run / "model.concordant").coef_, model.coef_)


def test_the_search_reproduces_itself(path_run):
    run, _ = path_run
    output = answer("rerun", run)
    assert output["same"]
    assert output["search"] == {"same": True, "before": 15, "now": 15}
    assert "search" not in answer("rerun", run, "--best")


def test_another_trial_is_exit_1(path_run, tmp_path):
    shutil.copytree(path_run[0], tmp_path / "run")
    table = tmp_path / "run" / "trials.csv"
    head, first, *others = table.read_text().splitlines()
    table.write_text("\n".join([head, first.replace(",done,0.", ",done,0.9"), *others]) + "\n")
    result = call("rerun", tmp_path / "run", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["model"]["same"]


def test_a_validation_file_decides_instead_of_folds(home, tmp_path):
    space = ["--space", "alpha=[10, 0.1, 0.001]", "--validation", home / "vali.txt"]
    output = answer("tune", home / "train.txt", *space, "-o", tmp_path / "run")
    train, validation = (cc.read_letor(home / f"{name}.txt") for name in ("train", "vali"))
    for trial in output["trials"]:
        model = cc.LinearRanker(alpha=trial["parameters"]["alpha"]).fit(train.X, train.y, qid=train.qid)
        expected = mean("ndcg@10", validation.y, model.predict(validation.X), validation.qid)
        assert trial["value"] == pytest.approx(expected, abs=1e-3)  # the path begins elsewhere
    assert output["config"]["data"]["validation"] == str(home / "vali.txt")
    assert answer("rerun", tmp_path / "run")["same"]
    assert "Leave one of them out" in refusal(
        "tune", home / "train.txt", *space, "--folds", 2, "-o", tmp_path / "other"
    )


# --- studies


def test_trials_are_scored_on_whole_held_out_queries(home, study):
    _, output = study
    rows = cc.read_letor(home / "train.txt")
    queries = cc.Queries.from_ids(rows.qid)
    scored_queries = set()
    for trial in output["trials"][:2]:
        for fold, (fitted, scored) in enumerate(queries.folds(2), start=1):
            assert not set(rows.qid[fitted]) & set(rows.qid[scored])
            scored_queries |= set(rows.qid[scored])
            model = cc.BoostedRanker(n_jobs=1, **trial["parameters"])
            model.fit(rows.X[fitted], rows.y[fitted], qid=rows.qid[fitted])
            expected = mean("ndcg@10", rows.y[scored], model.predict(rows.X[scored]), rows.qid[scored])
            assert trial[f"fold {fold}"] == pytest.approx(expected, abs=1e-12)
    assert scored_queries == set(rows.qid)
    assert output["best"]["value"] == max(trial["value"] for trial in output["trials"])


def test_trials_are_in_the_space_and_begin_at_the_defaults(study):
    _, output = study
    space = space_of("boosted", {"n_estimators": "2:6"}, {})
    for trial in output["trials"]:
        assert set(trial["parameters"]) == set(space)
        assert all(value in space[name] for name, value in trial["parameters"].items())
    first = output["trials"][0]["parameters"]
    assert all(first[name] == defaults_of("boosted")[name] for name in space if name != "n_estimators")
    assert len({json.dumps(trial["parameters"]) for trial in output["trials"]}) == 5


def test_a_study_is_a_function_of_its_seed(home, study, tmp_path):
    run, output = study
    assert answer("rerun", run)["same"]
    other = answer("tune", home / "train.txt", *TREES, "--trials", 2, "--seed", 1, "-o", tmp_path / "other")
    assert plain(other["trials"])[1] != plain(output["trials"])[1]


@pytest.mark.slow
def test_a_killed_study_goes_on_to_the_same_trials(home, study, tmp_path):
    _, output = study
    run = tmp_path / "run"
    options = ["tune", home / "train.txt", *TREES, "--trials", 5, "-o", run]
    log = run / "study.log"
    assert killed(lambda: log.is_file() and log.read_bytes().count(b'"seconds"') >= 2, *options)
    (run / "study.log.lock").touch()  # as one that was killed while it wrote
    with log.open("ab") as stream:
        stream.write(b'{"op_code":4,"worker_id"')
    again = answer(*options)
    assert again["resumed"]
    assert plain(again["trials"]) == plain(output["trials"])
    assert again["model"]["digest"] == output["model"]["digest"]


def test_a_finished_study_goes_on_with_more_trials(home, study, tmp_path):
    _, output = study
    options = ["tune", home / "train.txt", *TREES, "-o", tmp_path / "run"]
    answer(*options, "--trials", 3)
    assert "this run is finished" in refusal(*options, "--trials", 3)
    assert "this run is finished" in refusal(*options, "--trials", 5, "--seed", 3)
    more = answer(*options, "--trials", 5)
    assert plain(more["trials"]) == plain(output["trials"])
    assert more["model"]["digest"] == output["model"]["digest"]
    assert answer(*options, "--trials", 2, "--overwrite")["search"]["trials"] == 2


def test_fewer_trials_than_are_finished_are_refused(home, study, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(study[0], run)
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "finished": None}))
    before = contents(run)
    options = ["tune", home / "train.txt", *TREES, "-o", run, "--trials"]
    assert "at least 5, got 2" in refusal(*options, 2)
    assert {**contents(run), "study.log": b""} == {**before, "study.log": b""}
    assert answer(*options, 6)["search"]["trials"] == 6
    assert answer("rerun", run)["same"]


def test_an_interrupted_overwriting_keeps_its_study(home, study, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    run = tmp_path / "run"
    shutil.copytree(study[0], run)
    options = ["tune", home / "train.txt", *TREES, "--trials", 2, "--seed", 1, "-o", run, "--overwrite"]
    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.tune.tune_fit.complete", stop)
        assert call(*options).exit_code == 130
    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.tune.tune_fit._run_trial", stop)  # no trial is made again
        assert answer(*options)["resumed"]


def test_tables_can_be_tried(home, tmp_path):
    pytest.importorskip("optuna")
    pytest.importorskip("lightgbm")
    fixed = [f"--set={name}={defaults_of('boosted')[name]}" for name in SPACES["boosted"]][1:]
    space = ["--space", "params=[{max_bin=63}, {max_bin=255}, {max_bin=63}]", "--set", "n_estimators=2"]
    output = answer(
        "tune", home / "train.txt", *TREES[:6], *fixed, *space, "--trials", 2, "-o", tmp_path / "run"
    )
    assert {trial["parameters"]["params"]["max_bin"] for trial in output["trials"]} <= {63, 255}
    assert answer("rerun", tmp_path / "run")["same"]


def test_a_search_without_its_trials_is_refused_before_it(path_run, tmp_path, monkeypatch):
    monkeypatch.setattr("concordant.cli.tune.tune_fit.tune_run", None)
    shutil.copytree(path_run[0], tmp_path / "run")
    (tmp_path / "run" / "trials.csv").write_bytes(b"\xff")
    assert "not written by a run" in refusal("rerun", tmp_path / "run")
    (tmp_path / "run" / "trials.csv").unlink()
    assert "trials.csv is missing" in refusal("rerun", tmp_path / "run")
    assert answer("rerun", tmp_path / "run", "--best")["same"]


def test_the_table_of_trials_is_exact(study):
    run, output = study
    with (run / "trials.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for row, trial in zip(rows, output["trials"], strict=True):
        assert (int(row["trial"]), row["state"]) == (trial["trial"], trial["state"])
        for name in ("value", "fold 1", "fold 2"):
            assert float(row[name]) == trial[name]
        assert all(float(row[name]) == value for name, value in trial["parameters"].items())


def test_choices_and_fixed_parameters(home, tmp_path):
    pytest.importorskip("optuna")
    space = ["--space", "surrogate=['softmax', 'squared']", "--set", "alpha=0.5", "--trials", 4]
    output = answer("tune", home / "train.txt", *space, "--folds", 2, "-o", tmp_path / "run")
    assert {trial["parameters"]["surrogate"] for trial in output["trials"]} == {"softmax", "squared"}
    assert output["config"]["model"]["alpha"] == 0.5
    assert output["config"]["model"]["surrogate"] == output["best"]["parameters"]["surrogate"]


def test_pruned_trials_are_never_the_best(home, tmp_path):
    pytest.importorskip("optuna")
    options = ["--space", "alpha=1e-6:1e6:log", "--trials", 14, "--folds", 4, "--prune"]
    shown = call("tune", home / "train.txt", *options, "-o", tmp_path / "run")
    assert shown.exit_code == 0, shown.output
    with (tmp_path / "run" / "trials.csv").open() as stream:
        trials = list(csv.DictReader(stream))
    pruned = [trial for trial in trials if trial["state"] == "pruned"]
    assert pruned
    assert all(trial["fold 4"] == "" for trial in pruned)
    best = json.loads((tmp_path / "run" / "run.json").read_text())["search"]
    assert trials[best["best"]]["state"] == "done"
    assert best["value"] == max(float(trial["value"]) for trial in trials if trial["state"] == "done")
    assert "before the last fold" in shown.stderr


def test_the_section_of_a_file(home, tmp_path):
    pytest.importorskip("optuna")
    text = '[data]\ntrain = "train.txt"\n[tune]\ntrials = 3\nfolds = 2\n[tune.space]\nalpha = "0.1:1"\n'
    (home / "search.toml").write_text(text)
    output = answer("tune", "--config", home / "search.toml", "--trials", 2, "-o", tmp_path / "run")
    assert len(output["trials"]) == 2
    assert all(0.1 <= trial["parameters"]["alpha"] <= 1 for trial in output["trials"])
    answer("train", "--config", home / "search.toml", "-o", tmp_path / "train")  # which does not search
    config = read_config(tmp_path / "run" / "config.toml")
    assert config["tune"] == {"trials": 2, "folds": 2, "prune": False, "space": {"alpha": "0.1:1.0"}}


def test_the_tables_show_the_best_and_what_is_at_the_end(path_run, home, tmp_path):
    _, output = path_run
    shown = call("tune", home / "train.txt", "--space", "alpha=[10, 1]", "-o", tmp_path / "run")
    assert shown.exit_code == 0
    best = json.loads((tmp_path / "run" / "run.json").read_text())["search"]
    assert f"{best['value']:.4f}" in shown.stdout
    assert "run: " in shown.stdout
    wide = call("tune", home / "train.txt", "--space", "alpha=1e3:1e4", "-o", tmp_path / "end")
    alpha = json.loads((tmp_path / "end" / "run.json").read_text())["search"]["parameters"]["alpha"]
    assert ("is at the end" in wide.stderr) == (alpha in (1e3, 1e4))
    assert output["best"]["parameters"]["alpha"] <= 10


# --- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "linear-cv"], "chooses its own penalty"),
        (["--set", "alpha=1"], "--space"),
        (["--space", "alhpa=0:1"], "Did you mean 'alpha'"),
        (["--space", "alpha"], "NAME=VALUES"),
        (["--space", "alpha=1"], "low:high"),
        (["--space", "alpha=1:0"], "low:high with low < high"),
        (["--space", "alpha=0:1:log"], "above 0"),
        (["--space", "alpha=0:1:lin"], "low:high"),
        (["--space", "alpha=0:x"], "low:high"),
        (["--space", "alpha=0:inf"], "finite"),
        (["--space", "alpha=nan:1"], "finite"),
        (["--space", "alpha=[]"], "low:high"),
        (["--space", "alpha=[1"], "TOML"),
        (["--space", "alpha=0:1", "--space", "alpha=0:2"], "given twice"),
        (["--space", "max_iter=1.5:3"], "max_iter must be an integer >= 1 or None, got 1.5"),
        (["--folds", "41"], "the number of queries, 40"),
        (["--folds", "1"], "--folds"),
        (["--trials", "0"], "--trials"),
        (["--space", "alpha=[-1.0, 1.0]"], "alpha must be a finite number >= 0, got -1.0"),
        (["--space", "surrogate=['softmax', 'softmx']"], "Did you mean 'softmax'"),
    ],
)
def test_wrong_options_end_with_a_message(home, tmp_path, options, words):
    assert words in refusal("tune", home / "train.txt", "-o", tmp_path / "run", *options)


def test_a_missing_optuna_is_named_before_the_work(home, tmp_path, monkeypatch):
    monkeypatch.setattr("concordant.cli.tune.tune_fit.find_spec", lambda _: None)
    message = refusal("tune", home / "train.txt", "--trials", 2, "-o", tmp_path / "run")
    assert "pip install 'concordant[tune]'" in message
    assert not (tmp_path / "run").exists()
    answer("tune", home / "train.txt", "--space", "alpha=[1]", "-o", tmp_path / "run")  # a path needs none


def test_labels_that_are_all_alike_decide_nothing(tmp_path):
    (tmp_path / "flat.txt").write_text("".join(f"0 qid:{row // 2} 1:{row}\n" for row in range(20)))
    message = refusal("tune", tmp_path / "flat.txt", "-m", "ap", "-o", tmp_path / "run")
    assert "undefined on all held-out queries" in message


# --- spaces


@pytest.mark.parametrize("kind", SPACES)
def test_default_spaces_are_allowed_to_their_ends(kind):
    if kind in ("boosted", "neural"):
        pytest.importorskip({"boosted": "lightgbm", "neural": "torch"}[kind])
    space = space_of(kind, {}, {})
    for end in ("low", "high"):
        parameters = {name: getattr(choice, end) for name, choice in space.items()}
        make_ranker(kind, "ap" if kind == "pairs" else "ndcg", 0, {**defaults_of(kind), **parameters})
    for name, choice in space.items():
        assert defaults_of(kind)[name] in choice, name
        assert space_of(kind, {name: choice.plain()}, space) == {name: choice}


def test_all_kinds_but_the_one_that_searches_itself_have_a_space():
    assert set(SPACES) == set(KINDS) - {"linear-cv"}


def test_spaces_are_read_by_the_type_of_the_parameter():
    assert space_of("boosted", {"max_depth": "2:8"}, SPACES["boosted"]) == {"max_depth": Range(2, 8)}
    assert space_of("boosted", {"l2": "0:1"}, SPACES["boosted"]) == {"l2": Range(0.0, 1.0)}
    hidden = space_of("neural", {"hidden": [[16], [32, 16]]}, SPACES["neural"])
    assert hidden == {"hidden": Choices(((16,), (32, 16)))}


@pytest.mark.parametrize(("low", "high"), [(1.2346, 2.3454), (1.0004, 1.0005), (0.12349, 99.951)])
@pytest.mark.parametrize("log", [False, True])
def test_points_begin_and_end_as_asked(low, high, log):
    space = Range(low, high, log=log)
    points = space.points(15)
    assert (points[0], points[-1]) == (low, high)
    assert points == sorted(set(points))
    assert all(point in space for point in points)


def test_a_resolved_search_gives_itself_back(tmp_path):
    flags = {"data": {"train": "t.txt"}, "tune": {"trials": 7, "space": {"surrogate": ["softmax", "none"]}}}
    config = resolve_config(merge_sections({}, flags), tuned=True)
    (tmp_path / "config.toml").write_text(config.text())
    assert resolve_config(read_config(tmp_path / "config.toml"), tuned=True) == config
