"""`concordant rank` and `report`: the scores of the library, row by row, as a TREC run, as a page."""

import gzip
import json
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from tests.helpers.cli_calls import answer, call, mean, refusal, written_log
from tests.helpers.doc_blocks import PAGES, blocks_of


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for seed, name in enumerate(("train", "test")):
        written_log(folder, name, 30 - 10 * seed, seed)
    answer("train", folder / "train.txt", "--test", folder / "test.txt", "-o", folder / "linear")
    answer("train", folder / "train.txt", "--model", "pairs", "-o", folder / "pairs")
    columns = ["--qid", "query", "--features", "match,price,words"]
    table = folder / "test.parquet"
    answer("train", folder / "train.parquet", "--test", table, *columns, "-o", folder / "named")
    return folder


def model_of(run):
    return cc.load(run / "model.concordant")


# --- rank


def test_scores_are_those_of_the_model(home, tmp_path):
    rows = cc.read_letor(home / "test.txt")
    expected = model_of(home / "linear").predict(rows.X)
    printed = call("rank", home / "linear", home / "test.txt")
    assert np.array_equal([float(line) for line in printed.stdout.splitlines()], expected)
    call("rank", home / "linear" / "model.concordant", home / "test.txt", "-o", tmp_path / "scores.txt")
    assert (tmp_path / "scores.txt").read_text() == printed.stdout
    output = answer("rank", home / "linear", home / "test.txt")
    assert output["scores"] == expected.tolist()
    assert output["n_queries"] == rows.n_queries


def test_what_is_ranked_is_evaluated_as_the_run_was(home, tmp_path):
    answer("rank", home / "linear", home / "test.txt", "-o", tmp_path / "scores.txt")
    by_scores = answer("evaluate", "--letor", home / "test.txt", "--scores", tmp_path / "scores.txt")
    by_model = answer("evaluate", "--letor", home / "test.txt", "--model", home / "linear")
    rows = json.loads((home / "linear" / "metrics.json").read_text())["results"]
    expected = {row["metric"]: row["value"] for row in rows if row["ranking"] == "test"}
    for output in (by_scores, by_model):
        assert {row["metric"]: row["value"] for row in output["results"]} == expected


def test_a_run_is_read_back_in_the_order_of_the_scores(home, tmp_path):
    rows = cc.read_letor(home / "test.txt")
    scores = model_of(home / "linear").predict(rows.X)
    result = call(
        "rank", home / "linear", home / "test.txt", "--trec", "--tag", "mine", "-o", tmp_path / "run"
    )
    assert "named by number" in result.stderr
    run = cc.read_run(tmp_path / "run")
    by_name = {
        str(row): (str(qid), score) for row, (qid, score) in enumerate(zip(rows.qid, scores, strict=True), 1)
    }
    assert {
        doc: (str(qid), score) for doc, qid, score in zip(run.docid, run.qid, run.score, strict=True)
    } == by_name
    places = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    for qid in np.unique(rows.qid):
        query_lines = [line for line in places if line[0] == str(qid)]
        assert [int(line[3]) for line in query_lines] == list(range(1, len(query_lines) + 1))
        assert [float(line[4]) for line in query_lines] == sorted(
            (float(line[4]) for line in query_lines), reverse=True
        )
        assert {line[5] for line in query_lines} == {"mine"}


def test_depth_keeps_the_best_and_breaks_ties_as_trec_eval_does(home, tmp_path):
    lines = [
        f"1 qid:{qid} 1:{value} # docid = d{doc}" for qid in (1, 2) for doc, value in enumerate((3, 3, 9, 3))
    ]
    (tmp_path / "ties.txt").write_text("\n".join(lines) + "\n")
    result = call("rank", home / "linear", tmp_path / "ties.txt", "--trec", "--depth", 2, "-q")
    whole = call("rank", home / "linear", tmp_path / "ties.txt", "--trec", "-q")
    best_lines = [line.split()[:4] for line in result.stdout.splitlines()]
    everything = [line.split()[:4] for line in whole.stdout.splitlines()]
    assert best_lines == [line for line in everything if int(line[3]) <= 2]
    output = answer("rank", home / "linear", tmp_path / "ties.txt", "--trec", "--depth", 2)
    assert [item["docid"] for item in output["queries"]["1"]] == [
        line[2] for line in best_lines if line[0] == "1"
    ]


def test_features_are_found_by_name(home, tmp_path):
    model, table = model_of(home / "named"), pq.read_table(home / "test.parquet")
    expected = model.predict(table.select(["match", "price", "words"]))
    shuffled = table.select(["words", "url", "grade", "match", "query", "price"])
    pq.write_table(shuffled, tmp_path / "other.parquet")
    assert answer("rank", home / "named", tmp_path / "other.parquet")["scores"] == expected.tolist()
    pq.write_table(table.drop_columns(["grade"]), tmp_path / "unjudged.parquet")
    assert answer("rank", home / "named", tmp_path / "unjudged.parquet")["scores"] == expected.tolist()
    output = answer("rank", home / "named", home / "test.parquet", "--trec", "--docid", "url", "--depth", 1)
    best = {qid: ranked[0]["docid"] for qid, ranked in output["queries"].items()}
    for qid, doc in best.items():
        query_rows = [row for row, name in enumerate(table["query"].to_pylist()) if name == qid]
        assert expected[int(doc[1:])] == max(expected[query_rows])
    pq.write_table(table.drop_columns(["price"]), tmp_path / "less.parquet")
    assert "price" in refusal("rank", home / "named", tmp_path / "less.parquet")
    renamed = table.rename_columns(["q" if name == "query" else name for name in table.column_names])
    pq.write_table(renamed, tmp_path / "renamed.parquet")
    assert answer("rank", home / "named", tmp_path / "renamed.parquet", "--qid", "q")["n_rows"] == len(
        expected
    )
    assert "query" in refusal("rank", home / "named", tmp_path / "renamed.parquet")


def test_features_that_letor_leaves_out_are_0(home, tmp_path):
    (tmp_path / "short.txt").write_text("0 qid:1 1:1 2:1\n0 qid:1 1:2\n")
    result = call("rank", home / "linear", tmp_path / "short.txt")
    model = model_of(home / "linear")
    expected = model.predict(np.array([[1.0, 1, 0, 0, 0, 0, 0], [2.0, 0, 0, 0, 0, 0, 0]]))
    assert [float(line) for line in result.stdout.splitlines()] == expected.tolist()
    assert "5 last features" in result.stderr
    judged = ("evaluate", "--letor", tmp_path / "short.txt", "--model", home / "linear")
    assert "5 last features of the model are in no row" in call(*judged).stdout
    assert answer(*judged)["rankings"][0]["n_filled"] == 5
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n2\n")
    compared = ("compare-models", *judged[1:], "--scores", scores, "-m", "dcg")
    note = "linear: 5 last features of the model are in no row"
    assert note in " ".join(call(*compared).stdout.split())
    assert answer(*compared)["comparisons"][0]["notes"][0].startswith(note)
    full = answer("evaluate", "--letor", home / "test.txt", "--model", home / "linear")
    assert full["rankings"][0]["n_filled"] == 0


def test_pair_rankers_give_places(home):
    rows = cc.read_letor(home / "test.txt")
    result = call("rank", home / "pairs", home / "test.txt")
    scores = np.array([float(line) for line in result.stdout.splitlines()])
    assert "places in the query" in result.stderr
    for qid in np.unique(rows.qid):
        in_query = rows.qid == qid
        order = model_of(home / "pairs").rank(rows.X[in_query])
        assert np.array_equal(
            np.argsort(-scores[in_query], kind="stable"), np.argsort(np.asarray(order), kind="stable")
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nosuch", "test.txt"], "nosuch: No such file"),
        (["test.txt", "test.txt"], "test.txt"),
        ([".", "test.txt"], "there is no model.concordant"),
        (["linear", "nosuch.txt"], "nosuch.txt: No such file"),
        (["linear", "wide.txt"], "expected 7 features"),
        (["linear", "empty.txt"], "empty.txt has no rows"),
        (["linear", "wrong.txt"], "wrong.txt, line 1"),
        (["linear", "test.txt", "--depth", "2"], "needs --trec"),
        (["linear", "test.txt", "--tag", "x"], "needs --trec"),
        (["linear", "test.txt", "--trec", "--tag", "a b"], "tag"),
        (["linear", "test.txt", "-o", "test.txt"], "it would overwrite"),
        (["linear", "test.txt", "-o", "nowhere/x"], "nowhere: No such file"),
        (["linear", "test.txt", "--qid", "q"], "no columns of names"),
        (["named", "test.txt"], "expected 3 features"),
    ],
)
def test_what_cannot_be_ranked_is_said(home, monkeypatch, options, words):
    monkeypatch.chdir(home)
    (home / "wide.txt").write_text("1 qid:1 99:1\n")
    (home / "empty.txt").write_text("")
    (home / "wrong.txt").write_text("one qid:1 1:1\n")
    before = (home / "test.txt").read_bytes()
    assert words in refusal("rank", *options)
    assert (home / "test.txt").read_bytes() == before


def test_models_of_pairs_of_items_do_not_rank_rows(home, tmp_path):
    from concordant.comparisons.ratings import Elo

    cc.save(Elo().fit(["a", "b"], ["b", "c"], [1, -1]), tmp_path / "games.cmp")
    assert "`concordant compare` reads such models" in refusal(
        "rank", tmp_path / "games.cmp", home / "test.txt"
    )


# --- report


@pytest.fixture
def page(tmp_path):
    pytest.importorskip("plotly")
    return tmp_path / "page.html"


def test_a_report_is_that_of_the_library(home, page):
    output = answer("report", home / "linear", home / "test.txt", "-o", page)
    rows, model = cc.read_letor(home / "test.txt"), model_of(home / "linear")
    expected = cc.report(model, rows.X, rows.y, qid=rows.qid).to_dict()
    assert output["metrics"] == expected["metrics"]
    assert output["certificate"] == expected["certificate"]
    assert output["judged"]["model"] == "linear (LinearRanker)"
    assert output["weights"]["names"] == list(expected["weights"]["names"])
    explained = model.explain_pair(rows.X[0], rows.X[1])
    assert set(output["weights"]["names"]) == set(explained.features)
    assert "column 0 (LETOR 1)" in explained.features
    assert page.read_text().lower().startswith("<!doctype html>")


def test_intervals_are_those_of_compare_models(home, page):
    """By default as many resamples, of the same seed: one pair of rankings has one interval."""
    rows = ["--metric", "ndcg@5", "--metric", "pd"]
    output = answer(
        "report", home / "linear", home / "test.txt", "--baseline", home / "pairs", *rows, "-o", page
    )
    models = ["--model", home / "pairs", "--model", home / "linear"]
    compared = answer("compare-models", "--letor", home / "test.txt", *models, *rows)["comparisons"]
    for row, other in zip(output["metrics"], compared, strict=True):
        (pair,), means = other["pairs"], [*other["models"], other["pairs"][0]]
        for name, expected in zip(("baseline", "model", "difference"), means, strict=True):
            assert [row[name]["low"], row[name]["high"]] == pytest.approx(expected["interval"], rel=1e-9)
        assert row["p_value"] == pair["permutation"]


def test_a_run_knows_its_test_file_and_columns(home, page):
    shown = call("report", home / "named", "--baseline", home / "linear", "-o", page)
    assert shown.exit_code == 2, "the baseline reads seven features, and four of them are not in the run"
    output = answer("report", home / "named", "-o", page)
    table = pq.read_table(home / "test.parquet")
    scores = model_of(home / "named").predict(table.select(["match", "price", "words"]))
    expected = mean(
        "ndcg@10", table["grade"].to_numpy(), scores, table["query"].to_numpy(zero_copy_only=False)
    )
    assert output["metrics"][0]["model"]["value"] == pytest.approx(expected, abs=1e-12)
    assert "Name the test file" in refusal("report", home / "pairs", "-o", page)


def test_models_may_be_compressed_and_pipes_are_refused(home, page, tmp_path):
    packed = tmp_path / "linear.concordant.gz"
    packed.write_bytes(gzip.compress((home / "linear" / "model.concordant").read_bytes()))
    output = answer("report", packed, home / "test.txt", "-o", page)
    assert output["metrics"] == answer("report", home / "linear", home / "test.txt", "-o", page)["metrics"]
    os.mkfifo(tmp_path / "pipe")
    for arguments in ([tmp_path / "pipe", home / "test.txt"], [home / "linear", tmp_path / "pipe"]):
        assert "not a pipe" in refusal("report", *arguments, "-o", page)


def test_golden_rows_are_read_by_the_columns_of_the_run(home, tmp_path):
    output = answer("export", home / "named", "-o", tmp_path / "a.json", "--golden", home / "test.parquet")
    assert output["n_golden"] == pq.read_table(home / "test.parquet").num_rows


@pytest.fixture
def own_names(home, tmp_path):
    """The test rows as a table whose columns have other names, one of them text; and scores."""
    table = pq.read_table(home / "test.parquet")
    names = ["judgement" if name == "grade" else name for name in table.column_names]
    titled = table.rename_columns(names).append_column("title", pa.array(["x"] * len(table)))
    pq.write_table(titled, tmp_path / "own.parquet")
    answer("rank", home / "named", home / "test.parquet", "-o", tmp_path / "scores.txt")
    return tmp_path / "own.parquet", tmp_path / "scores.txt"


def test_scores_are_judged_by_tables_of_any_names(home, own_names):
    table, scores = own_names
    columns = ["--label", "judgement", "--qid", "query"]
    arguments = ["--letor", table, "--scores", scores, *columns]
    plain = ["--letor", home / "test.txt", "--scores", scores]
    values = [
        [row["value"] for row in answer("evaluate", *source, "-m", "ndcg@5", "-m", "ap")["results"]]
        for source in (arguments, plain)
    ]
    assert values[0] == pytest.approx(values[1])
    assert answer("explain", "ndcg@5", *arguments)[0]["rows"][0]["value"] == pytest.approx(values[0][0])
    both = answer("compare-models", *arguments, "--model", home / "named", "-m", "ap")
    assert both["comparisons"][0]["models"][1]["mean"] == pytest.approx(values[0][1])


def test_columns_that_nobody_named_are_asked_for(own_names, tmp_path):
    table, scores = own_names
    for command in (
        ["train", table, "-o", tmp_path / "run"],
        ["evaluate", "--letor", table, "--scores", scores],
    ):
        words = refusal(*command)
        assert "no column of grades (looked for grade, y," in words
        assert "--label COL" in words
        assert "--qid COL" in refusal(*command, "--label", "judgement")
    trec = ["evaluate", "--qrels", scores, "--run", scores, "--qid", "query"]
    assert "need --letor" in refusal(*trec)


def test_what_is_not_there_is_said(home, page):
    assert "No such file" in refusal("report", home / "nothing", "-o", page)


def test_baselines_are_models_or_scores(home, page, tmp_path):
    rows = cc.read_letor(home / "test.txt")
    pairs = answer("rank", home / "pairs", home / "test.txt", "-o", tmp_path / "pairs.txt")["scores"]
    by_model = answer("report", home / "linear", "--baseline", home / "pairs", "-m", "ap", "-o", page)
    by_scores = answer(
        "report", home / "linear", "--baseline", tmp_path / "pairs.txt", "-m", "ap", "-o", page
    )
    assert by_model["metrics"] == by_scores["metrics"]
    assert by_model["metrics"][0]["baseline"]["value"] == pytest.approx(
        mean("ap", rows.y, pairs, rows.qid), abs=1e-12
    )
    output = answer(
        "report", tmp_path / "pairs.txt", home / "test.txt", "-c", "trec_eval", "-m", "ap", "-o", page
    )
    assert output["certificate"] is None
    assert output["conventions"]["name"] == "trec_eval"


def test_the_table_and_the_place_of_the_page_are_shown(home, page):
    shown = call("report", home / "linear", "-o", page, "--title", "A search")
    assert shown.exit_code == 0
    assert f"report: {page}" in shown.stdout
    assert "A search" in page.read_text()
    assert str(page) not in call("report", home / "linear", "-o", page, "--quiet").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["linear", "-o", "page.pdf"], "ends in .html"),
        (["linear", "-o", "nowhere/page.html"], "nowhere: No such file"),
        (["linear", "test.txt", "-o", "page.html", "--baseline", "few.txt"], "1 score, but test.txt has"),
        (["few.txt", "test.txt", "-o", "page.html"], "1 score, but test.txt has"),
        (["few.txt", "-o", "page.html"], "Name the test file"),
        (["linear", "-o", "page.html", "-m", "ndgc"], "unknown metric"),
        (["linear", "-o", "page.html", "--baseline", "test.txt"], "is not a score"),
        (["cut.concordant", "test.txt", "-o", "page.html"], "cut.concordant"),
        (["few.txt", "test.txt", "-o", "page.html", "--learning-curve", "train.txt"], "1 score"),
    ],
)
def test_what_cannot_be_reported_is_said(home, monkeypatch, options, words):
    pytest.importorskip("plotly")
    monkeypatch.chdir(home)
    (home / "few.txt").write_text("1\n")
    (home / "cut.concordant").write_bytes((home / "linear" / "model.concordant").read_bytes()[:99])
    assert words in refusal("report", *options)
    assert not (home / "page.html").exists()


def test_a_table_without_rows(home, tmp_path):
    pq.write_table(
        pa.table(
            {
                "qid": pa.array([], pa.int64()),
                "grade": pa.array([], pa.int64()),
                "a": pa.array([], pa.float64()),
            }
        ),
        tmp_path / "none.parquet",
    )
    assert "no rows" in refusal("train", tmp_path / "none.parquet", "-o", tmp_path / "run")
    assert "no rows" in refusal("rank", home / "linear", tmp_path / "none.parquet")


def test_the_commands_for_users_of_svmrank_run(tmp_path, monkeypatch):
    """Those of the page, one after another: each finds what the one before it wrote."""
    blocks = blocks_of("migration.md", PAGES["migration.md"].read_text(encoding="utf-8"))
    (block,) = (candidate for candidate in blocks if "train.dat" in candidate.body)
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train.dat", "test.dat")):
        log = cc.synthetic.search_log(8, (4, 8), seed=seed)
        cc.write_letor(name, log.X, log.y, log.qid)
    for line in block.body.splitlines():
        program, *arguments = line.split()
        assert program == "concordant"
        result = call(*arguments)
        assert result.exit_code == 0, result.output
    assert re.search(r"ndcg@10 +0\.\d{4}", result.stdout)
