"""The command line: its numbers are the library's, its errors are messages, its output survives a pipe."""

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.cli.shared import output

COMMANDS = ("evaluate", "explain", "datasets", "bounds", "certify", "demo")
TREC_EVAL = {"ndcg@10": "ndcg_cut_10", "ap": "map", "rr": "recip_rank", "p@10": "P_10"}


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    """The JSON of a command that must succeed."""
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def shell(*arguments, **options):
    command = [sys.executable, "-m", "concordant", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def trec(tmp_path):
    """Judgements and a run with ties, unjudged, missing and negative documents, and queries in one only."""
    rng = np.random.default_rng(0)
    qrels, run = tmp_path / "test.qrels", tmp_path / "bm25.run"
    judged, scored = [], []
    for qid in range(8, 30):
        for doc in range(rng.integers(1, 25)):
            if qid != 29 and (doc == 0 or rng.random() < 0.8):
                judged.append(f"{qid} 0 d{doc} {rng.integers(-1, 4)}")
            if qid != 8 and (doc == 0 or rng.random() < 0.8):
                scored.append(f"{qid} Q0 d{doc} 0 {rng.integers(0, 5) / 4} tag")
    qrels.write_text("\n".join(judged))
    run.write_text("\n".join(scored))
    return qrels, run


@pytest.fixture
def letor(tmp_path):
    rng = np.random.default_rng(1)
    y, qid = rng.integers(0, 3, 60), np.repeat(np.arange(12), 5)
    y[:5] = 0
    scores = rng.integers(0, 4, 60) / 2
    rows, numbers = tmp_path / "test.txt", tmp_path / "model.txt"
    rows.write_text("".join(f"{grade} qid:{query} 1:0.5\n" for grade, query in zip(y, qid, strict=True)))
    numbers.write_text("".join(f"{score}\n" for score in scores))
    return rows, numbers, y, scores, qid


def from_trec_eval(qrels, run):
    """Values per query, from the real tool."""
    judged, scored = {}, {}
    for line in qrels.read_text().splitlines():
        qid, _, doc, grade = line.split()
        judged.setdefault(qid, {})[doc] = int(grade)
    for line in run.read_text().splitlines():
        qid, _, doc, _, score, _ = line.split()
        scored.setdefault(qid, {})[doc] = float(score)
    tool = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "map", "recip_rank", "P.10"})
    return tool.evaluate(scored), len(judged)


# --- evaluate


def test_trec_values_are_those_of_trec_eval(trec):
    qrels, run = trec
    real, _ = from_trec_eval(qrels, run)
    output = answer("evaluate", "--qrels", qrels, "--run", run, "-c", "trec_eval", "--per-query")
    assert [row["metric"] for row in output["results"]] == list(TREC_EVAL)
    for row in output["results"]:
        name = TREC_EVAL[row["metric"]]
        expected = {qid: values[name] for qid, values in real.items()}
        assert row["per_query"] == pytest.approx(expected, abs=1e-12)
        assert row["value"] == pytest.approx(np.mean(list(expected.values())), abs=1e-12)
        assert (row["n_queries"], row["n_skipped"], row["convention"]) == (len(real), 0, "trec_eval")


def test_all_queries_count_as_zero(trec):
    qrels, run = trec
    real, n_judged = from_trec_eval(qrels, run)
    output = answer("evaluate", "--qrels", qrels, "--run", run, "-c", "trec_eval", "--all-queries")
    assert n_judged == len(real) + 1
    for row in output["results"]:
        total = sum(values[TREC_EVAL[row["metric"]]] for values in real.values())
        assert row["value"] == pytest.approx(total / n_judged, abs=1e-12)


def test_counts_are_those_of_the_join(trec):
    qrels, run = trec
    judged = cc.join(cc.read_qrels(qrels), cc.read_run(run))
    (ranking,) = answer("evaluate", "--qrels", qrels, "--run", run)["rankings"]
    assert ranking == {
        "name": "bm25.run",
        "n_rows": len(judged.y),
        "n_queries": len(np.unique(judged.qid)),
        "n_absent": 1,
        "n_dropped": judged.n_dropped,
        "n_unjudged": judged.n_unjudged,
        "n_missing": judged.n_missing,
        "n_negative": judged.n_negative,
    }
    shown = call("evaluate", "--qrels", qrels, "--run", run).stdout
    assert f"{judged.n_unjudged} retrieved documents were not judged" in shown
    assert f"{judged.n_missing} judged documents were not retrieved" in shown
    assert f"{judged.n_negative} negative grades count as 0" in shown
    assert "1 judged query is not in the run" in shown
    assert "not judged" not in call("evaluate", "--qrels", qrels, "--run", run, "--quiet").stdout


def test_letor_values_are_those_of_the_library(letor):
    rows, numbers, y, scores, qid = letor
    styles = ("lightgbm", "concordant,gain=linear")
    options = [word for style in styles for word in ("-c", style)]
    output = answer("evaluate", "--letor", rows, "--scores", numbers, "-m", "ndcg@3", "-m", "map", *options)
    assert (output["metrics"], output["conventions"]) == (["ndcg@3", "ap"], list(styles))
    for row in output["results"]:
        value = cc.metric(row["metric"], convention=row["convention"])(y, scores, qid=qid)
        assert (row["value"], row["n_queries"], row["n_skipped"]) == (
            float(value),
            value.n_queries,
            value.n_skipped,
        )


def test_table_shows_value_counts_and_convention(letor):
    rows, numbers, y, scores, qid = letor
    shown = call("evaluate", "--letor", rows, "--scores", numbers, "-m", "ndcg@3").stdout
    value = cc.metric("ndcg@3")(y, scores, qid=qid)
    assert value.n_skipped >= 1
    assert shown.splitlines()[0] == "convention: concordant"
    n_counted = value.n_queries - value.n_skipped
    assert ["ndcg@3", f"{value:.4f}", str(n_counted), str(value.n_skipped)] in map(
        str.split, shown.splitlines()
    )
    assert "skipped (empty=skip)" in shown


def test_several_rankings_stand_together(letor, tmp_path):
    rows, numbers, *_ = letor
    (tmp_path / "other[b].txt").write_text("0\n" * 60)
    shown = call(
        "evaluate", "--letor", rows, "--scores", numbers, "--scores", tmp_path / "other[b].txt", "-m", "ap"
    ).stdout
    lines = [line.split()[:2] for line in shown.splitlines()]
    assert lines.index(["ap", "model.txt"]) + 1 == [line[:1] for line in lines].index(["other[b].txt"])


def test_rankings_of_one_name_keep_their_paths(letor, tmp_path):
    rows, numbers, *_ = letor
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "model.txt"
    other.write_text("0\n" * 60)
    output = answer("evaluate", "--letor", rows, "--scores", numbers, "--scores", other)
    assert [ranking["name"] for ranking in output["rankings"]] == [str(numbers), str(other)]


def test_queries_come_in_the_order_of_their_numbers(trec):
    shown = call("evaluate", "--qrels", trec[0], "--run", trec[1], "--per-query", "-m", "ap").stdout
    ids = [line.split()[0] for line in shown.splitlines() if line[:1].isdigit() and len(line.split()) == 2]
    assert ids == [str(number) for number in range(9, 29)]
    assert "mean" in shown


def test_skipped_queries_are_null_in_json_and_empty_in_csv(letor, tmp_path):
    rows, numbers, y, scores, qid = letor
    output = answer(
        "evaluate", "--letor", rows, "--scores", numbers, "-m", "ap", "--per-query", "-o", tmp_path / "q.csv"
    )
    expected = cc.metric("ap").per_query(y, scores, qid=qid)
    values = [None if np.isnan(value) else value for value in expected]
    assert values[0] is None
    assert list(output["results"][0]["per_query"].values()) == values
    with (tmp_path / "q.csv").open() as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["value"]) if row["value"] else None for row in written] == values
    assert written[1]["query"] == "1"
    assert (written[0]["ranking"], written[0]["metric"], written[0]["convention"]) == (
        "model.txt",
        "ap",
        "concordant",
    )


def test_a_mean_over_nothing_is_null(tmp_path):
    (tmp_path / "rows").write_text("0 qid:1 1:1\n")
    (tmp_path / "scores").write_text("1\n")
    output = answer("evaluate", "--letor", tmp_path / "rows", "--scores", tmp_path / "scores", "-m", "ap")
    assert output["results"][0]["value"] is None
    shown = call("evaluate", "--letor", tmp_path / "rows", "--scores", tmp_path / "scores", "-m", "ap").stdout
    assert ["ap", "-", "0", "1"] in map(str.split, shown.splitlines())


def test_minus_infinity_is_not_in_the_ranking(letor):
    rows, numbers, y, scores, qid = letor
    numbers.write_text("-inf\n" + "".join(f"{score}\n" for score in scores[1:]))
    output = answer("evaluate", "--letor", rows, "--scores", numbers, "-m", "ap")
    assert output["results"][0]["value"] == float(cc.metric("ap")(y, np.r_[-np.inf, scores[1:]], qid=qid))
    numbers.write_text("-1e400\n" + "".join(f"{score}\n" for score in scores[1:]))  # which a double is not
    refused = call("evaluate", "--letor", rows, "--scores", numbers)
    assert refused.exit_code == 2
    assert "'-1e400' is not a score" in refused.stderr


# --- explain


def test_explain_is_that_of_the_library(letor):
    rows, numbers, y, scores, qid = letor
    (output,) = answer("explain", "ndcg@3", "--letor", rows, "--scores", numbers, "-c", "sklearn")
    expected = cc.metrics.explain(cc.metric("ndcg@3", convention="sklearn"), y, scores, qid=qid)
    assert output == {"ranking": "model.txt", "metric": "ndcg@3[sklearn]", "rows": expected.to_dicts()}
    shown = call("explain", "ndcg@3[sklearn]", "--letor", rows, "--scores", numbers).stdout
    for row in expected.rows[1:]:
        assert [row.preset, f"{row.value:.4f}", *row.reason.split()] in map(str.split, shown.splitlines())


def test_explain_breaks_ties_by_document(trec):
    qrels, run = trec
    real, _ = from_trec_eval(qrels, run)
    (output,) = answer("explain", "ndcg@10", "--qrels", qrels, "--run", run)
    values = {row["preset"]: row["value"] for row in output["rows"]}
    expected = np.mean([values_of_query["ndcg_cut_10"] for values_of_query in real.values()])
    assert values["trec_eval"] == pytest.approx(expected, abs=1e-12)


# --- datasets


def test_datasets_are_those_of_the_table(tmp_path):
    assert answer("datasets", "--folder", tmp_path) == cc.datasets.table(tmp_path)
    shown = call("datasets", "--folder", tmp_path).stdout
    assert all(name in shown for name in cc.datasets.names())
    assert str(tmp_path) in shown


def test_one_dataset_in_detail(tmp_path):
    output = answer("datasets", "mq2008", "--folder", tmp_path)
    entry = cc.datasets.get("mq2008")
    assert (output["source"], output["licence"], output["present"]) == (entry.source, entry.licence, False)
    assert output["folders"] == [str(tmp_path / home) for home in entry.folders]
    assert output["files"][0] == ["Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt"]
    shown = call("datasets", "mq2008", "--folder", tmp_path).stdout
    assert entry.source in shown
    assert output["folders"][0] in shown


def test_a_dataset_that_is_here(tmp_path):
    folder = tmp_path / "paired-ties-classic"
    folder.mkdir()
    (folder / "pudding.csv").write_text("")
    assert answer("datasets", "pudding", "--folder", tmp_path)["present"] is True


# --- demo


def test_demo_ranks_the_rankers_and_writes_a_report(tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    page = tmp_path / "demo.html"
    result = answer("demo", "--queries", 400, "--report", page)
    regrets = {(row["ranker"], row["loss"]): row["regret"] for row in result["rankers"]}
    assert list(regrets) == [
        *itertools.product(("linear", "boosted trees"), ("preorder", "softmax")),
        ("best possible", ""),
    ]
    assert regrets["linear", "preorder"] > regrets["linear", "softmax"]
    assert regrets["boosted trees", "preorder"] > regrets["boosted trees", "softmax"]
    assert regrets["linear", "softmax"] > regrets["boosted trees", "softmax"] > 0.0
    assert regrets["best possible", ""] == 0.0
    best = result["rankers"][-1]["value"]
    for row in result["rankers"]:
        assert row["value"] + row["regret"] == pytest.approx(best)
    assert [row["status"] for row in result["rankers"]] == ["refuted", "proven", "refuted", "proven", ""]
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert 'id="plot-learning-1"' in text  # by trees, and by sessions
    demo_result = call("demo", "--queries", 400, "--report", page)
    assert all(f"{regret:.4f}" in demo_result.stdout for regret in regrets.values())
    assert str(page) in demo_result.stdout
    assert page.read_text() == text


def test_a_quiet_demo_prints_its_table_only(tmp_path):
    pytest.importorskip("plotly")
    text = call("demo", "--queries", 50, "--quiet", "--report", tmp_path / "demo.html").stdout
    assert "best possible" in text
    assert "report" not in text
    assert (tmp_path / "demo.html").exists()


def test_demo_does_without_optional_libraries(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    text = call("demo", "--queries", 50, "--report", tmp_path / "demo.html").stdout
    assert "pip install lightgbm" in text
    assert "pip install 'concordant[report]'" in text


def test_demo_refuses_a_report_that_cannot_be_written(tmp_path):
    assert call("demo", "--report", tmp_path).exit_code == 2
    assert call("demo", "--report", tmp_path / "demo.pdf").exit_code == 2
    assert call("demo", "--report", tmp_path / "none" / "demo.html").exit_code == 2


# --- errors


BAD_SCORES = [
    ("1\n\n2\n", 2, "the line is blank"),
    ("# scores\n1\n", 1, "'# scores' is not a score"),
    ("1\nnan\n", 2, "'nan' is not a score"),
    ("1\n2 3\n", 2, "'2 3' is not a score"),
    ("1_0\n", 1, "'1_0' is not a score"),
    ("\u0661\n", 1, "'\u0661' is not a score"),
    ("inf\n", 1, "'inf' is not a score"),
    ("1\n9007199254740993\n", 2, "9007199254740993 has more digits than a double holds"),
    ("0" * 5000 + "9007199254740993\n", 1, "0000"),
    ("1\n2\n", 2, "2 scores, but"),
    ("", 0, "0 scores, but"),
]


@pytest.mark.parametrize(("text", "line", "words"), BAD_SCORES)
def test_bad_scores_name_the_line(letor, tmp_path, text, line, words):
    bad = tmp_path / "bad.txt"
    bad.write_text(text)
    result = call("evaluate", "--letor", letor[0], "--scores", bad, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"error: {bad}, line {line}: {words}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-m", "ndgc@10"], "unknown metric 'ndgc'. Did you mean 'ndcg'?"),
        (["-m", "ndcg@x"], "k must be an integer >= 1, got 'x'."),
        (["-c", "lightgmb"], "unknown convention 'lightgmb'. Did you mean 'lightgbm'?"),
        (["-c", "gain=cubic"], "got 'cubic'."),
        (["-m", "zero_one"], "zero_one reads Permutations"),
        (["-o", "/nowhere/at/all.csv"], "No such file or directory"),
        (["-m", "ndcg@10[rax]", "-c", "rax"], "Leave out the brackets"),
        (["--all-queries"], "--all-queries needs --qrels"),
        (["--qrels", "x"], "Pass --qrels and --run, or --letor and --scores"),
    ],
)
def test_wrong_options_end_with_a_message(letor, options, words):
    result = call("evaluate", "--letor", letor[0], "--scores", letor[1], *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_missing_files_and_malformed_lines(trec, tmp_path):
    qrels, run = trec
    result = call("evaluate", "--qrels", tmp_path / "nosuch", "--run", run)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {tmp_path / 'nosuch'}: No such file or directory" in result.stderr
    result = call("explain", "ap", "--qrels", qrels, "--run", qrels)
    assert result.exit_code == 2
    assert f"error: {qrels}, line 1, column 1: expected 6 columns, got 4" in result.stderr
    assert call("evaluate", "--qrels", tmp_path, "--run", run).exit_code == 2  # a folder


def test_queries_that_never_meet(trec, tmp_path):
    other = tmp_path / "other.run"
    other.write_text("q1 Q0 d1 1 0.5 tag\n")
    result = call("evaluate", "--qrels", trec[0], "--run", other)
    assert result.exit_code == 2
    assert "no query of other.run has judgements" in result.stderr
    assert "'q1'" in result.stderr


def test_unknown_dataset_and_command():
    assert "Did you mean 'mq2008'" in call("datasets", "mq208").stderr
    assert call("datasets", "mq208").exit_code == 2
    assert call("evalaute").exit_code == 2


def test_interrupt_is_130(letor, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("concordant.cli.shared.judged_rankings._read_scored", stop)
    assert call("evaluate", "--letor", letor[0], "--scores", letor[1]).exit_code == 130


# --- help, version, start, pipes


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Examples" in result.stdout
    assert f"concordant {command}" in result.stdout.partition("Examples")[2]


@pytest.mark.slow
@pytest.mark.usefixtures("letor")
def test_examples_of_the_help_are_understood(trec, tmp_path, monkeypatch):
    """Each example runs, on files of the names it uses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dense.run").write_bytes(trec[1].read_bytes())
    for run in ("runs/linear", "runs/boosted"):
        answer("train", "test.txt", "-o", run)
    for command in COMMANDS[:-1]:
        text = call(command, "--help").stdout.partition("Examples")[2]
        lines = [line.split() for line in text.splitlines() if line.strip()]
        assert lines
        for line in lines:
            result = call(*line[1:])
            assert result.exit_code == 0, (line, result.output)
    assert (tmp_path / "per-query.csv").exists()


def test_no_arguments_show_the_commands():
    shown = call().output
    assert all(command in shown for command in COMMANDS)


def test_version():
    assert call("--version").stdout == f"concordant {cc.__version__}\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom concordant.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit as end:\n    status = end.code\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'pyarrow', 'scipy', 'narwhals'} & set(sys.modules)\n"
        "sys.exit(f'{status} {heavy}' if status or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout


@pytest.mark.parametrize(("options", "is_shown"), [([], True), (["--quiet"], False), (["--json"], False)])
def test_a_terminal_shows_at_once_that_a_command_starts(monkeypatch, options, is_shown):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes the runner for a terminal
    done = call("certify", "ndcg", "squared", *options)
    assert done.exit_code == 0, done.output
    assert ("Starting" in done.stderr) is is_shown
    assert "Starting" not in done.stdout
    assert not output.STARTING, "the spinner has ended"


def test_a_spinner_ends_before_anything_is_shown(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with output.starting([]):
        assert output.STARTING
        output.console()
        assert not output.STARTING


def test_a_pipe_shows_no_start(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    assert call("certify", "ndcg", "squared").stderr == ""


@pytest.mark.slow
def test_a_pipe_gets_whole_lines_without_colours(trec, tmp_path):
    long = tmp_path / ("a" * 150 + ".run")
    long.write_bytes(trec[1].read_bytes())
    environment = {
        key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "TTY_COMPATIBLE")
    }
    done = shell(
        "evaluate", "--qrels", trec[0], "--run", long, "--run", trec[1], env=environment | {"COLUMNS": "40"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert any(line.startswith("ndcg@10  aaa") and ".run  0." in line for line in done.stdout.splitlines())
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_errors_of_a_real_process(trec):
    done = shell("evaluate", "--qrels", trec[0], "--run", trec[1], "-m", "nothing", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown metric 'nothing'.")
    assert "\x1b" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_ctrl_c_ends_a_real_process(trec, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "concordant", "evaluate", "--qrels", pipe, "--run", trec[1]]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        pipe.open("wb"),  # opens when the command starts to read
    ):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in errors


def redirected(redirection, *arguments):
    """A command of a real process under `sh`, with this redirection of its standard output."""
    command = f'exec "$@" {redirection}'
    arguments = [sys.executable, "-m", "concordant", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", command, "sh", *arguments], stderr=subprocess.PIPE, text=True, check=False
    )


@pytest.mark.skipif(os.name != "posix", reason="needs sh and /dev/full")
@pytest.mark.parametrize("arguments", [("certify", "ndcg"), ("certify", "ndcg", "--json"), ("--help",)])
@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
def test_output_that_is_lost_is_an_error(redirection, arguments):
    if redirection == "> /dev/full" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = redirected(redirection, *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")


@pytest.mark.skipif(os.name != "posix", reason="needs sh")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_is_an_error(unbuffered, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    limited = "ulimit -f 1; trap '' XFSZ; exec \"$@\" > out.json"  # 512 or 1,024 bytes, then EFBIG
    command = [sys.executable, "-m", "concordant", "certify", "--matrix", "--json"]
    done = subprocess.run(
        ["sh", "-c", limited, "sh", *command], stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
def test_a_reader_that_leaves_ends_the_command_quietly():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "concordant", "certify", "ndcg", "--json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_any_encoding_of_the_terminal_will_do(tmp_path):
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = shell("certify", "ndcg", "pairwise", env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Calauz\\xe8nes" in done.stdout
    data = cc.synthetic.grades(n_queries=2, n_items=2, seed=0)
    cc.write_letor(tmp_path / "rows.txt", data.X, data.y, data.qid, docid=["café", "b", "c", "d"])
    cc.save(cc.LinearRanker("dcg").fit(data.X, data.y, qid=data.qid), tmp_path / "model")
    command = [
        sys.executable,
        "-m",
        "concordant",
        "rank",
        tmp_path / "model",
        tmp_path / "rows.txt",
        "--trec",
    ]
    done = subprocess.run(command, capture_output=True, check=True, env=ascii_only)
    assert "café" in done.stdout.decode()  # a run is UTF-8, as a file or through a pipe
