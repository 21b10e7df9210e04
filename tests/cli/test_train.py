"""`concordant train` and `rerun`: the library's numbers, in a folder that says all that they depend on."""

import hashlib
import importlib.metadata
import json
import os
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.cli.runs import run_folder as runs
from concordant.cli.runs.config import merge_sections, read_config, resolve_config
from concordant.cli.runs.run_folder import RunFolder
from concordant.cli.runs.toml_files import read_toml_setting, toml_text
from concordant.cli.train.train_options import KINDS, defaults_of
from concordant.store import digest_of
from tests.helpers.cli_calls import answer, call, contents, killed, mean, refusal, written_log

SMALL = {
    "linear": [],
    "linear-cv": ["--set", "alphas=[1.0, 0.1]", "--set", "cv=2"],
    "maxmargin": ["--set", "tol=0.01"],
    "pairs": [],
    "boosted": ["--set", "n_estimators=5", "--set", "n_jobs=1"],
    "neural": ["--set", "max_epochs=2", "--set", "hidden=[4]"],
}
NEEDS = {"boosted": "lightgbm", "neural": "torch"}
FILES = {"config.toml", "run.json", "metrics.json", "model.concordant"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for seed, name in enumerate(("train", "vali", "test")):
        written_log(folder, name, 40 - 10 * seed, seed)
    return folder


@pytest.fixture
def run(home, tmp_path):
    """A finished run."""
    answer("train", home / "train.txt", "--test", home / "test.txt", "-o", tmp_path / "run")
    return tmp_path / "run"


def test_the_kinds_are_all_that_can_be_tried():
    assert set(SMALL) == set(KINDS)


@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("kind", SMALL)
def test_a_run_is_that_of_the_library_and_reproduces_itself(home, tmp_path, kind):
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    out = tmp_path / "run"
    output = answer(
        "train", home / "train.txt", "--test", home / "test.txt", "--model", kind, *SMALL[kind], "-o", out
    )
    train, test = (cc.read_letor(home / f"{name}.txt") for name in ("train", "test"))
    parameters = dict(map(read_toml_setting, SMALL[kind][1::2]))
    model = getattr(cc, KINDS[kind])(
        **{name: tuple(v) if isinstance(v, list) else v for name, v in parameters.items()}
    )
    model.fit(train.X, train.y, qid=train.qid)
    for row in output["results"]:
        rows = {"train": train, "test": test}[row["ranking"]]
        expected = mean(row["metric"], rows.y, model.scores_to_rank(rows.X, rows.qid), rows.qid)
        assert row["value"] == pytest.approx(expected, abs=1e-12)
    assert output["metrics"][0] == model.metric
    assert set(contents(out)) == FILES
    assert output["model"]["digest"] == digest_of(out / "model.concordant")
    again = answer("rerun", out)
    assert again["same"]
    assert again["model"]["now"] == output["model"]["digest"]


def test_the_folder_says_what_the_result_depends_on(home, run):
    facts = json.loads((run / "run.json").read_text())
    assert facts["versions"]["concordant"] == cc.__version__
    assert facts["versions"]["numpy"] == importlib.metadata.version("numpy")
    assert facts["seed"] == 0
    assert facts["finished"] >= facts["started"]
    assert facts["seconds"] > 0
    for part in ("train", "test"):
        path = home / f"{part}.txt"
        rows = cc.read_letor(path)
        assert facts["data"][part] == {
            "path": str(path),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
            "rows": len(rows.y),
            "queries": rows.n_queries,
            "features": rows.X.shape[1],
        }
    model = tomllib.loads((run / "config.toml").read_text())["model"]
    assert set(model) == {"kind", "metric", "seed", *defaults_of("linear")}
    assert json.loads((run / "metrics.json").read_text())["results"][0]["metric"] == "ndcg@10"


def test_the_configuration_trains_the_same_model(run, tmp_path):
    output = answer("train", "--config", run / "config.toml", "-o", tmp_path / "again")
    assert output["model"]["digest"] == digest_of(run / "model.concordant")
    assert (run / "config.toml").read_bytes() == (tmp_path / "again" / "config.toml").read_bytes()


def test_options_win_over_the_file_and_its_paths_are_beside_it(home, tmp_path, monkeypatch):
    text = '[data]\ntrain = "train.txt"\n[model]\nmetric = "ap"\nalpha = 7\n[evaluate]\nmetrics = "rr"\n'
    (home / "linear.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    output = answer("train", "--config", home / "linear.toml", "-m", "ndcg@3", "--seed", 4, "-o", "run")
    model = output["config"]["model"]
    assert (model["metric"], model["alpha"], model["seed"]) == ("ndcg@3", 7.0, 4)
    assert output["config"]["data"] == {"train": str(home / "train.txt")}
    assert output["config"]["evaluate"] == {"metrics": ["ndcg@3", "rr"]}


def test_conventions_are_those_that_were_said(home, tmp_path):
    """A resolved file gives itself back, whatever the metrics' conventions are."""
    cases = [
        (["-m", "ndcg@5[lightgbm]"], ["ndcg@5[lightgbm]", "ndcg@1[lightgbm]", "ap[lightgbm]"]),
        (["-m", "ndcg@5[lightgbm]", "-e", "ap", "-e", "rr[rax]"], ["ndcg@5[lightgbm]", "ap", "rr[rax]"]),
        (["-m", "ndcg@5", "-c", "lightgbm", "-e", "ap"], ["ndcg@5[lightgbm]", "ap[lightgbm]"]),
    ]
    for number, (options, expected) in enumerate(cases):
        out = tmp_path / str(number)
        output = answer("train", home / "train.txt", *options, "-o", out)
        metrics = output["config"]["evaluate"]["metrics"]
        assert set(expected) <= set(metrics)
        assert "ap" in expected or "ap" not in metrics
        assert answer("rerun", out)["same"]


def test_a_table_gives_the_numbers_of_the_text(home, tmp_path, run):
    columns = ["--qid", "query", "--features", "official,match,reviews,price,freshness,brand,words"]
    output = answer(
        "train", home / "train.parquet", "--test", home / "test.parquet", *columns, "-o", tmp_path / "table"
    )
    metrics = json.loads((run / "metrics.json").read_text())["results"]
    assert [row["value"] for row in output["results"]] == pytest.approx(
        [row["value"] for row in metrics], abs=1e-12
    )
    model = cc.load(tmp_path / "table" / "model.concordant")
    assert model.feature_names_in_.tolist() == columns[3].split(",")


def test_trees_without_a_checkpoint_are_grown_without_one_again(home, tmp_path):
    pytest.importorskip("lightgbm")
    options = ["--model", "boosted", *SMALL["boosted"], "--no-checkpoint"]
    output = answer("train", home / "train.txt", *options, "-o", tmp_path / "run")
    assert output["checkpoint"] is False
    assert answer("rerun", tmp_path / "run")["same"]


def test_validation_rows_are_held_out(home, tmp_path):
    options = ["--model", "linear-cv", "--set", "alphas=[10, 0.1]", "--validation", home / "vali.txt"]
    answer("train", home / "train.txt", *options, "-o", tmp_path / "run")
    train, validation = (cc.read_letor(home / f"{name}.txt") for name in ("train", "vali"))
    model = cc.LinearRankerCV(alphas=[10, 0.1]).fit(train.X, train.y, qid=train.qid, eval_set=validation)
    assert cc.load(tmp_path / "run" / "model.concordant").alpha_ == model.alpha_


# --- rerun


def test_a_result_that_differs_is_exit_1(run):
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["results"][-1]["value"] += 1e-15
    (run / "metrics.json").write_text(json.dumps(metrics))
    result = call("rerun", run, "--json")
    output = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [row["same"] for row in output["metrics"]].count(False) == 1
    assert output["model"]["same"]
    shown = call("rerun", run)
    assert shown.exit_code == 1
    assert "different" in shown.stdout


@pytest.mark.parametrize("text", ["{}", '{"results": 3}', '{"results": [{}]}', "[]"])
def test_metrics_that_no_run_wrote_are_refused_before_training(run, text, monkeypatch):
    monkeypatch.setattr("concordant.cli.train.train_fit.train_run", None)
    (run / "metrics.json").write_text(text)
    assert "not written by a run" in refusal("rerun", run)


@pytest.mark.parametrize(
    "wrong", [{"model": None}, {"versions": 3}, {"data": None}, {"data": {"train": "train.txt"}}]
)
def test_facts_that_no_run_wrote_are_refused_before_training(run, wrong, monkeypatch):
    monkeypatch.setattr("concordant.cli.train.train_fit.train_run", None)
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, **wrong}))
    assert "not written by a run" in refusal("rerun", run)


def test_another_model_is_exit_1_and_other_versions_are_named(run):
    facts = json.loads((run / "run.json").read_text())
    model = cc.load(run / "model.concordant")
    model.coef_ = 2 * model.coef_
    cc.save(model, run / "model.concordant")
    facts["model"]["digest"] = digest_of(run / "model.concordant")
    facts["versions"]["numpy"] = "1.0"
    (run / "run.json").write_text(json.dumps(facts))
    result = call("rerun", run)
    assert result.exit_code == 1
    assert "numpy was 1.0" in result.stderr


def test_a_model_of_another_run_is_refused(home, run, monkeypatch):
    monkeypatch.setattr("concordant.cli.train.train_fit.train_run", None)
    model = cc.load(run / "model.concordant")
    model.coef_ = -model.coef_
    cc.save(model, run / "model.concordant")
    assert "is not the model that" in refusal("rerun", run)
    assert "another model" in refusal("rank", run, home / "test.txt")
    assert "another model" in refusal("evaluate", "--letor", home / "test.txt", "--model", run)


def test_changed_data_and_half_runs_are_refused(home, run, tmp_path):
    shutil.copytree(home, tmp_path / "copy")
    answer("train", tmp_path / "copy" / "train.txt", "-o", tmp_path / "mine")
    path = tmp_path / "copy" / "train.txt"
    path.write_text(path.read_text() + "1 qid:999 1:0.5\n")
    assert "is not what it was" in refusal("rerun", tmp_path / "mine")
    path.unlink()
    assert "No such file" in refusal("rerun", tmp_path / "mine")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "finished": None}))
    assert "not finished" in refusal("rerun", run)
    assert "not a run directory" in refusal("rerun", home)


def test_moved_data_are_found_by_name(home, run, tmp_path):
    shutil.copytree(home, tmp_path / "copy")
    config = run / "config.toml"
    config.write_text(config.read_text().replace(str(home), "/nowhere"))
    assert "No such file" in refusal("rerun", run)
    output = answer("rerun", run, "--folder", tmp_path / "copy", "-o", tmp_path / "new")
    assert output["same"]
    assert set(contents(tmp_path / "new")) == FILES


# --- folders


def test_folders_are_never_overwritten_unasked(home, run, tmp_path):
    before = contents(run)
    assert "this run is finished" in refusal("train", home / "train.txt", "-o", run)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert "not a run directory" in refusal(
        "train", home / "train.txt", "-o", tmp_path / "mine", "--overwrite"
    )
    assert contents(run) == before
    assert "error" in refusal("train", home / "train.txt", "-o", home / "train.txt")
    (run / "notes.txt").write_text("mine")
    answer("train", home / "train.txt", "-m", "ap", "-o", run, "--overwrite")
    assert set(contents(run)) == {*FILES, "notes.txt"}
    assert cc.load(run / "model.concordant").metric == "ap"


def test_a_configuration_that_a_user_wrote_makes_no_run(home, tmp_path):
    (tmp_path / "config.toml").write_text('# my notes\n[model]\nkind = "linear"\n')
    for more in ([], ["--overwrite"]):
        words = refusal(
            "train", home / "train.txt", "--config", tmp_path / "config.toml", "-o", tmp_path, *more
        )
        assert "not a run directory" in words
    assert contents(tmp_path).keys() == {"config.toml"}
    assert (tmp_path / "config.toml").read_text().startswith("# my notes")


@pytest.mark.slow
def test_files_of_a_run_are_not_written_over(home, run):
    before, data = contents(run), home / "train.txt"
    for name in before:
        assert "would overwrite" in refusal("rank", run, data, "-o", run / name)
        assert "would overwrite" in refusal("evaluate", "--letor", data, "--model", run, "-o", run / name)
        assert "would overwrite" in refusal("report", run, data, "-o", run / name)
        assert "would overwrite" in refusal("export", run, "-f", "json", "-o", run / name)
    assert contents(run) == before
    assert call("rank", run, data, "-o", run / "scores.txt").exit_code == 0


def test_a_run_that_another_process_finishes_meanwhile_is_kept(home, run, tmp_path, monkeypatch):
    from concordant.cli.train import train_fit

    read = train_fit.read_files

    def slow(*arguments, **more):
        shutil.copytree(run, tmp_path / "run")
        return read(*arguments, **more)

    monkeypatch.setattr(train_fit, "read_files", slow)
    assert "this run is finished" in refusal("train", home / "train.txt", "-o", tmp_path / "run")
    assert contents(tmp_path / "run") == contents(run)


def test_damaged_facts_are_named_and_can_be_overwritten(home, run):
    (run / "run.json").write_text("{")
    assert "the file is not JSON" in refusal("rerun", run)
    assert "--overwrite" in refusal("train", home / "train.txt", "-o", run)
    answer("train", home / "train.txt", "-o", run, "--overwrite")


def test_one_process_at_a_time(home, tmp_path):
    with RunFolder(tmp_path / "run").hold():
        assert "another process" in refusal("train", home / "train.txt", "-o", tmp_path / "run")
    answer("train", home / "train.txt", "-o", tmp_path / "run")


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_model(home, tmp_path):
    """Of the folder; that each estimator goes on is tested where its checkpoints are."""
    options = ["train", home / "train.txt", "--set", "tol=1e-12", "--set", "alpha=1e-9", "-o"]
    run = tmp_path / "run"
    folder = run / "checkpoint"
    assert killed(
        lambda: folder.is_dir() and any(path.is_file() for path in folder.rglob("*")), *options, run
    )
    assert not (run / "model.concordant").exists()
    output = answer(*options, run)
    assert output["resumed"]
    assert output["model"]["digest"] == answer(*options, tmp_path / "whole")["model"]["digest"]
    assert set(contents(run)) == FILES


def test_ctrl_c_is_130_and_only_the_same_run_goes_on(home, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    data, out = tmp_path / "train.txt", tmp_path / "run"
    data.write_bytes((home / "train.txt").read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.train.train_fit.fit_rows", stop)
        assert call("train", data, "-o", out).exit_code == 130
    assert set(contents(out)) == {"config.toml", "run.json"}
    assert "differs in [model] alpha, [model] tol" in refusal(
        "train", data, "-o", out, "--set", "alpha=2", "--set", "tol=0.1"
    )
    assert "there is no model.concordant" in refusal("rank", out, data)
    data.write_text(data.read_text() + "1 qid:999 1:0.5\n")
    assert f"differs in {data}" in refusal("train", data, "-o", out)
    data.write_bytes((home / "train.txt").read_bytes())
    (out / ".model.0a1b2c3d.tmp.concordant").write_text("what a kill leaves")
    assert answer("train", data, "-o", out)["resumed"]
    assert set(contents(out)) == FILES


def stopping(by):
    """A fit that leaves a checkpoint, and ends as it is told."""

    def stop(model, *_, **__):
        model.checkpoint.mkdir(parents=True)
        (model.checkpoint / "hours").write_text("of work")
        raise by

    return stop


def stopped(by, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concordant.cli.train.train_fit.fit_rows", stopping(by))
        return call(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("by", [KeyboardInterrupt(), OSError("disk full"), MemoryError()])
def test_an_interrupted_overwriting_goes_on_by_the_same_command(home, run, by):
    options = ["train", home / "train.txt", "-m", "ap", "-o", run, "--overwrite"]
    stopped(by, *options)
    assert "model.concordant" not in contents(run)
    assert any(name.endswith("hours") for name in contents(run))
    output = answer(*options)
    assert output["resumed"]
    assert set(contents(run)) == FILES
    stopped(by, *options)
    assert not answer(*options[:2], "-m", "rr", *options[4:])["resumed"]  # of another run nothing is kept
    assert set(contents(run)) == FILES
    assert not answer(*options[:2], "-m", "rr", *options[4:])["resumed"]  # nor of a finished one


def test_an_overwriting_that_fails_gives_back_what_was_there(home, run):
    before = contents(run)
    options = ["train", home / "train.txt", "-m", "ap", "-o", run, "--overwrite"]
    assert isinstance(stopped(ValueError("max_bin"), *options).exception, ValueError)
    assert contents(run) == before
    stopped(KeyboardInterrupt(), *options)
    stopped(KeyboardInterrupt(), *options, "--seed", 1)  # what was there before the first try counts
    stopped(ValueError("max_bin"), *options, "--seed", 2)
    assert contents(run) == before
    assert "this run is finished" in refusal(*options[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 1, 2, 3, 7, 8, 12, 13, 14, 15])  # there, and back
def test_a_kill_while_runs_change_places_loses_none(home, run, monkeypatch, step):
    """At each move: either the old run is there again, or the same command ends in the new one."""
    before = contents(run)
    left = [step]

    def count_moves(done):
        def wrapped(*arguments):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return done(*arguments)

        return wrapped

    options = ["train", home / "train.txt", "-m", "ap", "-o", run, "--overwrite"]
    with monkeypatch.context() as patch:
        for name in ("move", "write_bytes"):
            patch.setattr(f"concordant.cli.runs.run_folder.{name}", count_moves(getattr(runs, name)))
        stopped(ValueError("max_bin"), *options)
    with RunFolder(run).hold():
        aside = run / ".concordant-before"
        contents_after = contents(aside if aside.is_dir() else run)
    assert contents_after == before
    answer(*options)
    assert set(contents(run)) == FILES
    assert cc.load(run / "model.concordant").metric == "ap"


def test_a_run_is_not_overwritten_by_a_file_of_its_own(run, monkeypatch):
    monkeypatch.chdir(run.parent)
    before = contents(run)
    options = ["--config", run / "config.toml", "-o", run.name, "--overwrite"]
    assert "Copy it elsewhere first" in refusal("train", *options)
    assert "Copy it elsewhere first" in refusal("tune", *options, "--space", "alpha=0.1:1")
    assert contents(run) == before


def test_only_what_our_own_writes_leave_is_removed(home, tmp_path):
    stopped(KeyboardInterrupt(), "train", home / "train.txt", "-o", tmp_path / "run")
    mine = {".notes.tmp.txt", ".notes.0a1b2c3d.tmp.txt", ".run.tmp.json", ".run.0a1b2c3d.tmp.json.bak"}
    for name in [*mine, ".run.0a1b2c3d.tmp.json"]:
        (tmp_path / "run" / name).write_text("text")
    (tmp_path / "run" / ".tmp.driveupload").mkdir()
    (tmp_path / "run" / ".metrics.0a1b2c3d.tmp.json").mkdir()
    answer("train", home / "train.txt", "-o", tmp_path / "run")
    assert set(contents(tmp_path / "run")) == FILES | mine
    assert (tmp_path / "run" / ".tmp.driveupload").is_dir()


def test_half_a_model_is_no_run(home, tmp_path, monkeypatch):
    """A ranker that was told to stop gives what it has: that is not what was asked for."""

    class Stopped:
        stopped_by_ = "interrupt"

        def get_params(self, **_):
            return {}

        def set_params(self, **_):
            return self

        def fit(self, *_, **__):
            return self

    monkeypatch.setattr("concordant.cli.runs.config.make_ranker", lambda *_: Stopped())
    result = call("train", home / "train.txt", "-o", tmp_path / "run")
    assert result.exit_code == 130
    assert "run the same command again" in result.stderr
    assert "model.concordant" not in contents(tmp_path / "run")


# --- output


def test_tables_show_sizes_values_notes_and_certificate(home, tmp_path):
    result = call("train", home / "train.txt", "--test", home / "test.txt", "-o", tmp_path / "run")
    assert result.exit_code == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    lines = list(map(str.split, result.stdout.splitlines()))
    rows = cc.read_letor(home / "test.txt")
    assert ["test", f"{len(rows.y):,}", str(rows.n_queries), "7", "test.txt"] in lines
    value = next(row for row in metrics["results"] if (row["ranking"], row["metric"]) == ("test", "ap"))
    assert ["test", f"{value['value']:.4f}", *map(str, counts(value))] in lines
    assert "proven" in result.stdout
    quiet = call("train", home / "train.txt", "-o", tmp_path / "quiet", "--quiet")
    assert quiet.stderr == ""
    assert "proven" not in quiet.stdout
    options = ("--metric", "err", "-o", tmp_path / "err")
    for printed in (result.stdout, call("train", home / "train.txt", *options).stdout):
        assert "Read next: `theorem`" in printed
        assert "model." not in printed
    assert "Counterexample: `concordant certify 'err' SURROGATE --search`. Read next:" in printed


def counts(row):
    return row["n_queries"] - row["n_skipped"], row["n_skipped"]


def test_rows_without_queries_are_remarked_upon(home, tmp_path):
    lines = (home / "train.txt").read_text().splitlines()
    bare = [" ".join(word for word in line.split() if not word.startswith("qid:")) for line in lines]
    (tmp_path / "bare.txt").write_text("\n".join(bare) + "\n")
    assert "are one query" in call("train", tmp_path / "bare.txt", "-o", tmp_path / "run").stderr
    assert "are one query" not in call("train", home / "train.txt", "-o", tmp_path / "other").stderr


def test_warnings_of_the_fit_are_notes(home, tmp_path):
    options = ["--set", "surrogate=preorder", "-o", tmp_path / "run"]
    result = call("train", home / "train.txt", *options)
    assert result.exit_code == 0
    assert "note: " in result.stderr
    assert "Nothing guarantees" in " ".join(json.loads((tmp_path / "run" / "run.json").read_text())["notes"])


# --- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "liner"], "unknown model 'liner'. Did you mean 'linear'?"),
        (["-m", "ndgc"], "unknown metric 'ndgc'"),
        (["--set", "alhpa=1"], "unknown parameter of linear 'alhpa'. Did you mean 'alpha'?"),
        (["--set", "reg_lambda=1"], "Hint: it is alpha here. The known ones are"),
        (["--set", "alpha"], "NAME=VALUE"),
        (["--set", "alpha=-1"], "alpha must be a finite number >= 0, got -1.0."),
        (["--set", "alpha=[1"], "TOML value"),
        (["--set", "alpha=1", "--set", "alpha=2"], "is given twice"),
        (["--set", "metric=ap"], "--metric"),
        (["--set", "random_state=1"], "--seed"),
        (["--set", "kind=linear"], "Use --model."),
        (["--set", "checkpoint=x"], "unknown parameter"),
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**32)], "from 0 to 4294967295"),
        (["-c", "lightgmb"], "Did you mean 'lightgbm'"),
        (["--qid", "query"], "LETOR text, which has no columns"),
        (["--test", "nosuch.txt"], "nosuch.txt: No such file"),
        (["--config", "nosuch.toml"], "nosuch.toml: No such file"),
        (["--test", "~nosuchuser/t.txt"], "~nosuchuser/t.txt: No such file"),
    ],
)
def test_wrong_options_end_with_a_message_and_leave_nothing(home, tmp_path, options, words):
    assert words in refusal("train", home / "train.txt", "-o", tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[modl]\n", "unknown section"),
        ("[data]\ntrian = 'x'\n", "Did you mean 'train'?"),
        ("[data]\ntrain = 3\n", "got 3"),
        ("[model]\nkind = \n", "line 2, column 8"),
        ("model = 3\n", "a section, as in [model]"),
        ("[model]\nalpha = 1\nalpha = 2\n", "line 3"),
        ("[evaluate]\nmetrics = [1]\n", "a list of strings"),
        ("[model]\nkind = 'linear\n", "line 2"),
        ("\xff", "not UTF-8"),
        ("[data]\ntest = '~nosuchuser/t.txt'\n", "~nosuchuser/t.txt: No such file"),
    ],
)
def test_wrong_files_name_the_place(home, tmp_path, text, words):
    (tmp_path / "wrong.toml").write_bytes(text.encode("latin-1"))
    message = refusal(
        "train", home / "train.txt", "--config", tmp_path / "wrong.toml", "-o", tmp_path / "run"
    )
    assert words in message


def test_sets_that_do_not_go_together(home, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 9:0.5\n0 qid:1 1:1\n")
    output = answer("train", home / "train.txt", "--test", tmp_path / "wide.txt", "-o", tmp_path / "wide")
    assert output["data"]["train"]["features"] == 9  # LETOR leaves zeros out: the widest file counts
    assert any(note.startswith("train.txt has no value of the model's 2 last") for note in output["notes"])
    (tmp_path / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:1\n")
    output = answer("train", home / "train.txt", "--test", tmp_path / "narrow.txt", "-o", tmp_path / "narrow")
    assert [
        note for note in output["notes"] if note.startswith("narrow.txt has no value of the model's 6 last")
    ]
    table = ["train", home / "train.parquet", "-o", tmp_path / "run", "--qid", "query"]
    assert "column 'url' must be numeric" in refusal(*table)
    assert "--features A,B" in refusal(*table)
    named = [*table, "--features", "official,match", "--test", home / "test.txt"]
    assert "which has no columns of names" in refusal(*named)
    assert "DATA" in refusal("train", "-o", tmp_path / "run")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_and_a_name_that_no_text_can_hold_are_refused(home, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a pipe" in refusal("train", tmp_path / "pipe", "-o", tmp_path / "run")
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    shutil.copy(home / "train.txt", name)
    assert "UTF-8" in refusal("train", name, "-o", tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- configuration


values = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), values))
def test_toml_reads_back_as_it_was(section):
    assert tomllib.loads(toml_text({"model": section}))["model"] == section


@pytest.mark.parametrize("kind", KINDS)
def test_a_resolved_configuration_gives_itself_back(tmp_path, kind):
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    flags = {"data": {"train": "a b/train.txt", "test": ["t.txt"]}, "model": {"kind": kind, "seed": 3}}
    config = resolve_config(merge_sections({}, flags))
    (tmp_path / "config.toml").write_text(config.text(), encoding="utf-8")
    assert resolve_config(read_config(tmp_path / "config.toml")) == config
    assert config.train == Path("a b/train.txt").absolute()
    assert np.array_equal(config.ranker().get_params()["metric"], config.metric)


UNINFORMATIVE = {  # labels and query ids -> options, why nothing is learned
    "0 0 0 0, 1 1 2 2": ([], "every label is 0."),
    "1 1 0 0, 1 1 2 2": ([], "labels differ between queries, but within none."),
    "0.5 0 0.9 0, 1 1 2 2": (
        ["-m", "ap"],
        "no query has labels that differ for ap; labels lie between 0 and 0.9.",
    ),
}


@pytest.mark.parametrize("rows", UNINFORMATIVE)
@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_a_file_from_which_nothing_is_learned_is_an_error(tmp_path, rows, suffix):
    labels, ids = (column.split() for column in rows.split(", "))
    form = "{} qid:{} 1:{}" if suffix == "txt" else "{},{},{}"
    lines = ["label,qid,a"] * (suffix == "csv") + [
        form.format(*row) for row in zip(labels, ids, "3142", strict=True)
    ]
    (tmp_path / f"data.{suffix}").write_text("\n".join(lines) + "\n")
    options, reason = UNINFORMATIVE[rows]
    message = refusal("train", tmp_path / f"data.{suffix}", *options, "-o", tmp_path / "run")
    assert reason in message
    assert ("--label COL" in message) is (suffix == "csv" and not options)
    assert not (tmp_path / "run" / "config.toml").exists()


@pytest.fixture
def wide(tmp_path):
    """A table of twelve features and a weight; and its rows without the header."""
    log = cc.synthetic.search_log(6, (4, 8), seed=3)
    rng = np.random.default_rng(0)
    columns = {"grade": log.y.astype(int), "qid": log.qid}
    columns |= {f"f{number}": rng.normal(size=len(log.y)) for number in range(1, 13)}
    columns["weight"] = log.y + 1.0
    cells = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = [",".join(map(str, row)) for row in cells]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    cc.write_parquet(tmp_path / "wide.csv", tmp_path / "wide.parquet")
    return tmp_path


@pytest.mark.parametrize(("source", "more"), [("wide.csv", []), ("wide.parquet", ["--memory", "1GiB"])])
def test_the_features_taken_are_named_and_chosen(wide, source, more):
    base = ["train", wide / source, "-o", wide / "run", "--overwrite", *more]
    shown = call(*base).stderr
    assert f"{source}: 13 features: f1, f2, f3, f4, f5, f6, ..., weight" in shown
    assert "--exclude weight" in shown
    assert "weight" not in call(*base, "--exclude", "weight,f3-f12").stderr
    assert cc.load(wide / "run" / "model.concordant").feature_names_in_.tolist() == ["f1", "f2"]
    both = ["--features", "f1-f5,weight", "--exclude", "f2-f4", "--test", wide / source]
    assert answer(*base, *both)["data"]["test"]["features"] == 3
    assert "unknown column 'nosuch'" in refusal(*base, "--exclude", "nosuch")
    assert "'f1' stands before 'f5'" in refusal(*base, "--features", "f5-f1")


def test_columns_that_are_needed_are_not_excluded(tmp_path):
    (tmp_path / "a.csv").write_text("qid,y,f1\n1,1,0.5\n1,0,0.1\n")
    base = ["train", tmp_path / "a.csv", "-o", tmp_path / "run"]
    for name in ("qid", "y"):
        assert f"column '{name}' is excluded" in refusal(*base, "--exclude", name)
    for options in (["--exclude", "f1"], ["--features", "f1", "--exclude", "f1"]):
        assert "no column is left for features" in refusal(*base, *options)


def test_pairs_learn_nothing_from_equal_labels(tmp_path):
    (tmp_path / "a.csv").write_text("qid,y,f1\n1,1,0.5\n1,1,0.1\n2,1,0.3\n2,1,0.2\n")
    text = refusal("train", tmp_path / "a.csv", "--model", "pairs", "--metric", "ap", "-o", tmp_path / "run")
    assert "nothing can be learned" in text
    assert "every label is 1" in text


def test_excluded_columns_need_not_be_in_other_tables(wide):
    text = (wide / "wide.csv").read_text().replace("weight", "note")
    (wide / "test.csv").write_text(text)
    files = [wide / "wide.csv", "--test", wide / "test.csv", "-o", wide / "run"]
    assert answer("train", *files, "--exclude", "weight")["data"]["test"]["features"] == 12
    assert call("rerun", wide / "run").exit_code == 0


def test_columns_of_text_without_a_header_are_numbered(wide):
    base = ["train", wide / "rows.csv", "-o", wide / "run"]
    assert "it has no header, so its columns are 1 to 15" in refusal(*base)
    output = answer(*base, "--label", "1", "--qid", "2", "--features", "3-14")
    assert output["data"]["train"]["features"] == 12
    assert output["data"]["train"]["rows"] == len((wide / "rows.csv").read_text().splitlines())
