"""`concordant export`: uniform with the other commands, and nothing written where something is wrong."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.cli.export import NAMES
from concordant.store.export import FORMATS

DATA = cc.synthetic.grades(n_queries=20, n_items=(4, 8), n_features=3, seed=1)
COLUMNS = ["bm25", "age", "clicks"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models and rows, as files."""
    path = tmp_path_factory.mktemp("export")
    linear = cc.LinearRanker("ndcg").fit(DATA.X, DATA.y, qid=DATA.qid)
    named = cc.LinearRanker("ndcg").fit(pd.DataFrame(DATA.X, columns=COLUMNS), DATA.y, qid=DATA.qid)
    trees = cc.BoostedRanker(n_estimators=3, min_samples_leaf=3, n_jobs=1).fit(DATA.X, DATA.y, qid=DATA.qid)
    elo = cc.ratings.Elo().fit(["a"], ["b"], [-1])
    for name, model in (("linear", linear), ("named", named), ("trees", trees), ("elo", elo)):
        cc.save(model, path / f"{name}.model")
    (path / "run").mkdir()
    cc.save(named, path / "run" / "model.concordant")
    cc.write_letor(path / "rows.txt", DATA.X, DATA.y, DATA.qid)
    table = pd.DataFrame(DATA.X, columns=COLUMNS).assign(qid=DATA.qid, grade=DATA.y)
    table[["grade", "clicks", "qid", "bm25", "age"]].to_parquet(path / "rows.parquet")
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_a_file_and_a_note(folder, tmp_path):
    result = run(folder / "linear.model", "-o", tmp_path / "a.onnx")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "note: 267 golden rows scored as by the model, within " in result.stderr
    assert (tmp_path / "a.onnx").exists()
    silent = run(folder / "linear.model", "-o", tmp_path / "b.onnx", "--quiet")
    assert (silent.exit_code, silent.output) == (0, "")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_json_says_what_was_done(folder, tmp_path):
    path = tmp_path / "shop.json"
    result = run(folder / "run", "-f", "elasticsearch", "-o", path, "--json")
    output = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(output) == ["output", "format", "n_golden", "difference", "notes"]
    assert (output["output"], output["format"], output["n_golden"]) == (str(path), "elasticsearch", 267)
    definition = json.loads(path.read_text())["model"]["model"]["definition"]
    assert json.loads(definition) == dict(zip(COLUMNS, cc.load(folder / "named.model").coef_, strict=True))


def test_names_and_types_are_handed_on(folder, tmp_path):
    named = run(
        folder / "linear.model",
        "-f",
        "opensearch",
        "--features",
        "a, b,c",
        "--name",
        "v1",
        "-o",
        tmp_path / "a",
    )
    assert named.exit_code == 0, named.output
    assert json.loads((tmp_path / "a").read_text())["model"]["name"] == "v1"
    double = run(folder / "linear.model", "-o", tmp_path / "a.onnx", "--dtype", "float64", "--json")
    assert json.loads(double.stdout)["difference"] < 1e-12


@pytest.mark.parametrize("rows", ["rows.txt", "rows.parquet"])
@pytest.mark.parametrize(("model", "form"), [("named", "json"), ("linear", "onnx"), ("trees", "lightgbm")])
def test_golden_rows_of_a_file(model, form, rows, folder, tmp_path):
    result = run(
        folder / f"{model}.model", "-f", form, "-o", tmp_path / "a", "--golden", folder / rows, "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_golden"] == len(DATA.y)


def test_golden_rows_that_end_early_are_filled_with_zeros(folder, tmp_path):
    cc.write_letor(tmp_path / "rows.txt", DATA.X[:, :2], DATA.y, DATA.qid)
    result = run(folder / "linear.model", "-o", tmp_path / "a.json", "--golden", tmp_path / "rows.txt")
    assert result.exit_code == 0
    assert "has no value of the model's 1 last feature" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["linear.model", "-f", "lightgbm", "-o", "new"], "LinearRanker has no trees"),
        (["linear.model", "-f", "elasticsearch", "-o", "new"], "have no names"),
        (["trees.model", "-o", "new.onnx"], "cannot be written as ONNX"),
        (["linear.model", "-f", "onyx", "-o", "new"], "Did you mean 'onnx'"),
        (["linear.model", "-o", "new.bin"], "no format has the suffix"),
        (["linear.model", "-o", "new.json", "--dtype", "float64"], "has no effect on format 'json'"),
        (["linear.model", "-o", "new.json", "--features", "a,b"], "one name for each of 3"),
        (["rows.txt", "-o", "new.json"], "rows.txt"),
        (["nothing.model", "-o", "new.json"], "nothing.model"),
        (["linear.model", "-o", "linear.model", "-f", "json"], "overwrite"),
        (["elo.model", "-o", "new.json", "--golden", "rows.txt"], "ratings have no features"),
        (["linear.model", "-o", "nowhere/new.json"], "nowhere"),
        (["linear.model", "-o", "new.json", "--golden", "nothing.txt"], "nothing.txt"),
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(arguments, words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_the_help_page_lists_every_format():
    assert ", ".join(FORMATS) == NAMES
    assert "concordant export runs/linear -o ranker.onnx" in run("--help").stdout
