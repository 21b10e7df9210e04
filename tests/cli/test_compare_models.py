"""`concordant compare-models`: the library's numbers on files as people have them, and errors that help."""

import csv
import gzip
import json
import re
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.cli.compare_models import EXAMPLES
from concordant.cli.shared.output import without_nan
from concordant.evaluation import compare

N_QUERIES, N_DOCS = 24, 12
QUICK = ("--resamples", 300)
SPREADS = {"old.run": 2.5, "new.run": 1.5, "best.run": 0.8}


def call(*arguments):
    return CliRunner().invoke(app, ["compare-models", *map(str, arguments)])


def shown(*arguments):
    result = call(*arguments, *QUICK)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments):
    return json.loads(shown(*arguments, "--json"))["comparisons"]


def refused(*arguments):
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


@pytest.fixture(scope="module")
def data():
    """Grades, and scores that know them better and better; nothing is relevant for the first query."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, (N_QUERIES, N_DOCS)) * (rng.random((N_QUERIES, N_DOCS)) < 0.5)
    grades[0] = 0
    return grades, {name: grades + spread * rng.normal(size=grades.shape) for name, spread in SPREADS.items()}


@pytest.fixture
def trec(tmp_path, data):
    """Judgements and three runs; the last lacks query 3, the first has one that nobody judged."""
    grades, scores = data
    places = list(np.ndindex(grades.shape))
    (tmp_path / "test.qrels").write_text("".join(f"{q} 0 d{d} {grades[q, d]}\n" for q, d in places))
    for name, table in scores.items():
        lines = [f"{q} Q0 d{d} 0 {table[q, d]} x\n" for q, d in places if (name, q) != ("best.run", 3)]
        lines += ["999 Q0 d0 0 1 x\n"] * (name == "old.run")
        (tmp_path / name).write_text("".join(lines))
    return [
        "--qrels",
        tmp_path / "test.qrels",
        *(argument for name in SPREADS for argument in ("--run", tmp_path / name)),
    ]


@pytest.fixture
def letor(tmp_path, data):
    """Rows whose three features are the scores, the files of scores, and a linear model of each alone."""
    grades, scores = data
    X, y = np.column_stack([table.ravel() for table in scores.values()]), grades.ravel()
    qid = np.repeat(np.arange(N_QUERIES), N_DOCS)
    lines = [
        f"{grade} qid:{q} " + " ".join(f"{i}:{float(value)!r}" for i, value in enumerate(row, start=1))
        for grade, q, row in zip(y, qid, X, strict=True)
    ]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    for name, column in zip(scores, X.T, strict=True):
        (tmp_path / f"{name}.txt").write_text("".join(f"{float(value)!r}\n" for value in column))
    return tmp_path / "rows.txt", [tmp_path / f"{name}.txt" for name in scores], X, y, qid


def per_query(data, metric, *, without=()):
    grades, scores = data
    qid = np.repeat(np.arange(N_QUERIES), N_DOCS)
    queries = [q for q in range(N_QUERIES) if q not in without]
    return {
        name: cc.metric(metric).per_query(grades.ravel(), table.ravel(), qid=qid)[queries]
        for name, table in scores.items()
    }


def check_same(output, values, **options):
    """The numbers of the command are those of the library for these values, to the last bit."""
    expected = without_nan(compare(values, n_flips=300, n_boot=300, **options).to_dict())
    assert output["n_queries"] == expected["n_queries"]
    assert output["models"] == expected["models"]
    assert [{name: pair[name] for name in expected["pairs"][0]} for pair in output["pairs"]] == expected[
        "pairs"
    ]


# --- the same numbers, whatever they are read from


def test_runs_are_compared_on_the_queries_that_all_have(trec, data):
    first, second = answer(*trec, "-m", "ndcg@10", "-m", "ap", "--seed", 4, "--correction", "holm")
    assert (first["metric"], second["metric"], first["convention"]) == ("ndcg@10", "ap", "concordant")
    assert first["left_out"] == {"old.run": 1, "new.run": 1, "best.run": 0}
    for output in (first, second):
        check_same(output, per_query(data, output["metric"], without=[3]), seed=4, correction="holm")
    assert [pair["against"] for pair in first["pairs"]] == ["old.run", "old.run", "new.run"]
    assert first["models"][0]["n_queries"] == N_QUERIES - 2  # nothing is relevant for query 0
    whole = answer(*trec, "-m", "ndcg@10", "--all-queries")[0]
    assert (whole["n_queries"], set(whole["left_out"].values())) == (N_QUERIES, {0})


def test_files_of_scores_are_compared_as_runs_are(letor, data):
    rows, files, *_ = letor
    arguments = ["--letor", rows, *(argument for file in files for argument in ("--scores", file))]
    (output,) = answer(*arguments, "-m", "ndcg@10", "--baseline", files[2], "--level", 0.01, "--power", 0.9)
    values = {f"{name}.txt": column for name, column in per_query(data, "ndcg@10").items()}
    check_same(output, values, baseline="best.run.txt", level=0.01, power=0.9)
    assert output["settings"]["baseline"] == "best.run.txt"


def test_a_convention_is_that_of_evaluate(trec, data):
    (output,) = answer(*trec, "-m", "map", "-c", "trec_eval", "--all-queries", "--confidence", 0.9)
    assert (output["metric"], output["convention"]) == ("ap", "trec_eval")
    values = per_query(data, "ap[trec_eval]")
    values["best.run"][3] = 0.0
    check_same(output, values, confidence=0.9)


@pytest.mark.parametrize(("name", "separator"), [("values.csv", ","), ("values.tsv", "\t")])
def test_values_of_evaluate_are_compared_as_the_rankings(trec, tmp_path, name, separator):
    table = tmp_path / name
    written = CliRunner().invoke(app, ["evaluate", *map(str, trec), "-m", "ap", "-m", "rr", "-o", str(table)])
    assert written.exit_code == 0
    rankings = answer(*trec, "-m", "ap", "-m", "rr")  # whose notes the table does not have
    assert answer("--values", table) == [{**ranking, "notes": []} for ranking in rankings]
    assert f"ranking{separator}convention" in table.read_text()
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    (output,) = answer("--values", packed, "-m", "rr")
    assert output["metric"] == "rr"


def test_values_may_come_in_several_files_and_without_a_convention(tmp_path):
    for name, values in {"a": (0.1, 0.5, ""), "b": (0.2, 0.9, 0.4)}.items():
        lines = [f"{name},my score,q{i},{value}\n" for i, value in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("ranking,metric,query,value\n" + "".join(lines))
    (output,) = answer("--values", tmp_path / "a.csv", "--values", tmp_path / "b.csv")
    check_same(output, {"a": [0.1, 0.5, np.nan], "b": [0.2, 0.9, 0.4]})
    assert (output["metric"], output["convention"], output["pairs"][0]["n_left_out"]) == ("my score", "", 1)
    assert "my score: means" in shown("--values", tmp_path / "a.csv", "--values", tmp_path / "b.csv")


def test_models_and_run_directories_score_the_rows(letor, tmp_path):
    rows, files, X, y, qid = letor
    weak = cc.LinearRanker(max_iter=50).fit(X * [1, 0, 0], y, qid=qid)
    strong = cc.LinearRanker(max_iter=50).fit(X, y, qid=qid)
    cc.save(weak, tmp_path / "weak.concordant")
    (tmp_path / "strong").mkdir()
    cc.save(strong, tmp_path / "strong" / "model.concordant")
    models = ["--model", tmp_path / "weak.concordant", "--model", tmp_path / "strong"]
    (output,) = answer("--letor", rows, *models, "--scores", files[0], "-m", "ap")
    ap = cc.metric("ap")
    values = {
        "old.run.txt": ap.per_query(y, X[:, 0], qid=qid),
        "weak.concordant": ap.per_query(y, weak.predict(X), qid=qid),
        "strong": ap.per_query(y, strong.predict(X), qid=qid),
    }
    check_same(output, values)
    assert "--letor" in refused(*models)
    assert "--letor" in refused("--letor", rows, *models, "--all-queries")
    (tmp_path / "empty").mkdir()
    assert "model.concordant" in refused(
        "--letor", rows, "--model", tmp_path / "empty", "--model", tmp_path / "strong"
    )


# --- what is shown and written


def test_tables_and_words(trec):
    text = shown(*trec, "-m", "ndcg@10", "--wilcoxon")
    (output,) = answer(*trec, "-m", "ndcg@10", "--wilcoxon")
    for pair in output["pairs"]:
        assert f"{pair['model']} - {pair['against']}" in text
        assert f"{pair['wins']}/{pair['ties']}/{pair['losses']}" in text
        assert pair["in_words"] in text
    assert "p Wilcoxon" in text
    assert "adjusted p: randomisation test, max_t over 3 pairs" in text
    assert "queries that are not in every ranking are left out: old.run 1, new.run 1" in text
    assert "1 query has no value in any ranking: left out" in text
    quiet = shown(*trec, "-m", "ndcg@10", "--quiet")
    assert "on average" not in quiet
    assert "detectable" in quiet
    assert all(line == line.rstrip() for line in text.splitlines())


def test_losses_are_called_so(trec):
    text = shown(*trec, "-m", "pd")
    assert "pd is a loss: lower is better" in text
    (output,) = answer(*trec, "-m", "pd")
    pair = output["pairs"][1]
    assert (pair["model"], pair["better"]) == ("best.run", "best.run")
    assert pair["difference"] < 0
    assert pair["wins"] > pair["losses"]
    assert pair["largest"][0]["difference"] < 0  # gains come first


def test_the_largest_gains_and_losses(trec, data):
    values = per_query(data, "ndcg@10", without=[3])
    (output,) = answer(*trec, "-m", "ndcg@10", "--top", 2)
    gaps = values["new.run"] - values["old.run"]
    largest = [row["difference"] for row in output["pairs"][0]["largest"]]
    ordered_gaps = np.sort(gaps[~np.isnan(gaps)])
    assert largest == pytest.approx([ordered_gaps[-1], ordered_gaps[-2], ordered_gaps[0], ordered_gaps[1]])
    assert "largest gains" in shown(*trec)
    assert "largest gains" not in shown(*trec, "--top", 0)


def test_many_pairs_get_no_sentences(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"m{i},ap,{q},{rng.random()}" for i in range(6) for q in range(9)]
    (tmp_path / "v.csv").write_text("\n".join(["ranking,metric,query,value", *lines]))
    text = shown("--values", tmp_path / "v.csv")
    assert "max_t over 15 pairs" in text
    assert "on average" not in text
    assert "largest gains" not in text
    assert "largest gains" in shown("--values", tmp_path / "v.csv", "--top", 1)
    assert "on average" in shown("--values", tmp_path / "v.csv", "--baseline", "m0")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_the_differences_of_every_query_are_written(trec, data, tmp_path, suffix):
    path = tmp_path / f"queries{suffix}"
    shown(*trec, "-m", "ndcg@10", "--baseline", "old.run", "--per-query", path)
    text = gzip.decompress(path.read_bytes()).decode() if suffix.endswith("gz") else path.read_text()
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if suffix == ".tsv" else ","))
    values = per_query(data, "ndcg@10", without=[3])
    ids = [str(q) for q in range(N_QUERIES) if q != 3]
    assert [row["query"] for row in rows] == ids * 2
    for row in rows:
        a, b = (values[row[side]][ids.index(row["query"])] for side in ("model", "against"))
        if np.isnan(a):
            assert (row["model_value"], row["difference"]) == ("", "")
        else:
            assert (float(row["model_value"]), float(row["difference"])) == pytest.approx((a, a - b))


def test_a_narrow_terminal_cuts_no_number(trec, monkeypatch):
    (expected,) = answer(*trec, "-m", "ap", "--wilcoxon")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the runner for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(*trec, "-m", "ap", "--wilcoxon", "--top", 1, "-q"))
    assert 70 < max(map(len, text.splitlines())) <= 80
    for pair in expected["pairs"]:
        low, high = pair["interval"]
        for cell in (f"{low:+.4f} to {high:+.4f} ", f" {pair['wins']}/{pair['ties']}/{pair['losses']}"):
            assert cell in text
        assert f" {pair['detectable']:.4f} " in text
    assert text.count("best.run") >= 7


# --- what is refused, and how


def test_help_has_examples_that_parse():
    result = call("--help")
    assert result.exit_code == 0
    options = set(re.findall(r"--[a-z-]+", result.stdout))
    for line in re.findall(r"\[cyan\](.*?)\[/cyan\]", EXAMPLES):
        program, command, *arguments = shlex.split(line)
        assert (program, command) == ("concordant", "compare-models")
        assert {argument for argument in arguments if argument.startswith("--")} <= options


def test_wrong_usage_is_refused_before_the_work(trec, tmp_path):
    qrels, runs = trec[:2], trec[2:]
    assert "two or more files" in refused(*qrels, *runs[:2])
    assert "is given twice" in refused(*qrels, *runs[:2], *runs)
    assert "Pass --qrels and --run" in refused(*runs)
    assert "Pass --qrels and --run" in refused()
    assert "--values holds measured values" in refused(*trec, "--values", tmp_path / "v.csv")
    assert "max_t" in refused(*trec, "--correction", "tukey")
    assert "level" in refused(*trec, "--level", 1.5)
    assert "n_flips" in refused(*trec, "--resamples", 0)
    assert "old.run" in refused(*trec, "--baseline", "none.run")
    assert "none.run" in refused(*qrels, *runs[:2], "--run", tmp_path / "none.run")
    assert ".csv or .tsv" in refused(*trec, "--per-query", tmp_path / "queries.txt")
    assert "overwrite" in refused(*trec, "--per-query", link(tmp_path / "old.csv", runs[1]))


def link(path, target):
    path.symlink_to(target)
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ranking,metric,query\n", "line 1: there is no column 'value'"),
        ("", "no column 'ranking'"),
        ("ranking,metric,query,value\na,ap,1,0.5\na,ap,2\n", "line 3: 3 cells do not fit the header"),
        ("ranking,metric,query,value\na,ap,1,0.5,7\n", "line 2: 5 cells"),
        ("ranking,metric,query,value\na,ap,1,high\n", "line 2: 'high' is not a value"),
        ("ranking,metric,query,value\na,ap,1,inf\n", "line 2: 'inf' is not a value"),
        ("ranking,metric,query,value\na,ap,1,1_0\n", "line 2: '1_0' is not a value"),
        ("ranking,metric,query,value\na,ap,1,1\na,ap,1,2\n", "line 3: 'a' has query '1' of ap twice"),
        ("ranking,metric,query,value\na,ap,1,1\nb,ap,2,1\n", "no query is in all of a, b"),
        ("ranking,metric,query,value\na,ap,1,1\n", "needs two rankings with ap, got only a"),
        ("ranking,metric,query,value\n", "has no"),
    ],
)
def test_malformed_values_are_named(tmp_path, text, problem):
    path = tmp_path / "values.csv"
    path.write_text(text)
    assert problem in refused("--values", path)


def test_an_unknown_metric_of_values_is_named(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("ranking,metric,query,value\na,ap,1,1\nb,ap,1,0\n")
    assert "ap" in refused("--values", path, "-m", "rr")
