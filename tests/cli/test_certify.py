"""`concordant certify` and the matrix: the library's answers, whole at every width, and named errors."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app, certify
from concordant.cli.certify import matrix_table, remarks
from concordant.exceptions import ConcordantError, ParameterError, UnknownNameError
from concordant.metrics.parse import METRICS
from concordant.surrogates import Duchi, ListwiseHinge, Pairwise, PositionHinge, Preorder, Squared
from concordant.theory import certify as certify_module
from concordant.theory.kinds import KINDS, format_surrogate, read_kind
from concordant.theory.theorem import STATUSES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def call(*arguments):
    return CliRunner().invoke(app, ["certify", *map(str, arguments)])


def shown(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments):
    return json.loads(shown(*arguments, "--json"))


@pytest.fixture(scope="module")
def matrix():
    return certify_module.matrix()


def find_cell(matrix, metric, surrogate, space):
    (cell,) = [
        cell
        for cell in matrix.cells
        if (cell.metric, cell.surrogate) == (metric, surrogate) and space in cell.spaces
    ]
    return cell


# --- one combination


@pytest.mark.parametrize(
    ("metric", "surrogate", "status"),
    [("ndcg@10", "pairwise", "proven"), ("ap", "softmax", "refuted"), ("ap", "pairs", "proven")],
)
def test_the_answer_is_the_librarys(metric, surrogate, status):
    expected = cc.certify(metric, surrogate)
    assert expected.status == status
    assert answer(metric, surrogate) == json.loads(expected.to_json())
    text = shown(metric, surrogate)
    assert str(expected.combination) in text
    assert expected.theorem.statement in text
    assert expected.theorem.reference in text
    assert all(condition in text for condition in expected.holds_under)
    assert expected.transfer is None or expected.transfer.statement in text
    assert "--search" in text
    assert "--search" not in shown(metric, surrogate, "--quiet")


def test_options_reach_the_library():
    options = ("pd", "pairs", "--decoder", "borda", "--labels", "grades", "--no-search")
    assert answer(*options) == cc.certify("pd", "pairs", "borda", labels="grades").to_dict()
    searched = answer("rr", "squared", "--labels", "grades", "--search", "--items", 3, "--budget", 90,
                      "--highest", 3, "--seed", 5)  # fmt: skip
    expected = cc.certify("rr", "squared", labels="grades", n_items=3, budget=90, highest=3, seed=5).to_dict()
    assert searched == json.loads(json.dumps(expected))
    assert searched["tried"]["seed"] == 5


@pytest.mark.slow
def test_a_search_prints_what_can_be_checked_by_hand():
    expected = cc.certify("ap", Pairwise("logistic"), budget=300)
    text = shown("ap", "pairwise(logistic)", "--search", "--budget", 300)
    assert "\n".join(expected.counterexample.lines()) in text
    assert "Lost: " in text
    assert "has no standardization" in text
    assert f"{expected.tried.distributions:,} label distributions" in text


def test_a_proven_one_is_attacked():
    text = shown("ndcg", "squared", "--search", "--budget", 100, "--items", 3)
    assert "proven" in text
    assert "label distributions of 3 items" in text
    assert "Counterexample" not in text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nothing", "pairwise"), "unknown metric 'nothing'"),
        (("ap", "pairwse"), "Did you mean 'pairwise'?"),
        (("ap", "pairwise(hing)"), "unknown margin 'hing'"),
        (("ap", "pairwise("), "got 'pairwise('."),
        (("ap", "plackett_luce"), "plackett_luce reads full orders"),
        (("ap", "pairs", "--decoder", "borda"), "borda does not decode"),
        (("ap", "pairs", "--decoder", "nothing"), "unknown decoder"),
        (("ap", "pairwise", "--labels", "nothing"), "unknown label space"),
        (("comparison_auc", "pairwise"), "not rankings"),
        (("--matrix", "comparison_auc"), "not rankings"),
        (
            ("--matrix", "zero_one", "--labels", "grades"),
            "--labels must be a label space that zero_one reads, got 'grades'.",
        ),
        (("--matrix", "--labels", "nothing"), "unknown label space"),
        (("--matrix", "ap", "pairwise"), "Leave SURROGATE out"),
        (("--matrix", "--decoder", "borda"), "--decoder has no effect"),
        (("ap", "pairwise", "--seed", 9), "--seed needs --search"),
        (("ap", "pairwise", "--items", 3), "--items needs --search"),
        (("ap", "pairwise", "--search", "--items", 6), "--items"),
        (("ap", "pairwise", "--search", "--budget", 0), "--budget"),
    ],
)
def test_bad_input_is_a_message(arguments, problem):
    result = call(*arguments)
    assert result.exit_code == 2
    assert problem in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
    assert "Traceback" not in result.output
    assert result.stdout == ""


# --- the matrix as data


def test_every_metric_surrogate_and_space_has_one_cell(matrix):
    assert {name.partition("@")[0] for name in certify_module.METRICS} == {
        name for name, kind in METRICS.items() if "comparison" not in name
    }
    assert {name.partition("(")[0] for name in certify_module.SURROGATES} == set(KINDS)
    for name in certify_module.METRICS:
        for space in cc.metrics.metric(name).label_spaces:
            for surrogate in certify_module.SURROGATES:
                cell = find_cell(matrix, name, surrogate, space)
                assert cell.status in (*STATUSES, certify_module.MISFIT)
                assert (cell.status == certify_module.MISFIT) == bool(cell.reason)


def test_cells_are_what_certify_says(matrix):
    for cell in matrix.cells:
        kind = read_kind(cell.surrogate, cell.metric)
        for space in cell.spaces:
            if cell.certificate is None:
                with pytest.raises(ConcordantError):
                    cc.certify(cell.metric, kind, labels=space)
            else:
                certificate = cc.certify(cell.metric, kind, labels=space)
                assert (certificate.status, certificate.holds_under) == (cell.status, cell.holds_under)


@pytest.mark.parametrize("cutoff", [2, 3, 10])
def test_other_cutoffs_share_a_row(matrix, cutoff):
    listed = {name.partition("@")[0] for name in certify_module.METRICS if name.endswith("@2")}
    for name in {name.partition("@")[0] for name in certify_module.METRICS}:
        try:
            metric = cc.metrics.metric(f"{name}@{cutoff}")
        except ParameterError:
            continue
        row = f"{name}@2" if name in listed else name
        for cell in certify_module.matrix([metric]).cells:
            shared = find_cell(matrix, row, cell.surrogate, cell.spaces[0])
            assert (cell.status, cell.holds_under) == (shared.status, shared.holds_under), cell


def test_rows_and_plain_values(matrix):
    rows = list(matrix.rows())
    assert [cell for row in rows for cell in row.cells] == list(matrix.cells)
    assert all(tuple(cell.surrogate for cell in row.cells) == matrix.surrogates for row in rows)
    assert [row.spaces for row in rows if row.metric == "pd"] == [("preferences",), ("binary",), ("grades",)]
    plain = json.loads(json.dumps(matrix.to_dict()))
    assert plain == answer("--matrix")
    assert {cell["status"] for cell in plain["cells"]} == {"proven", "refuted", "misfit"}


def test_a_choice_of_rows_and_columns():
    small = certify_module.matrix(["ap", "zero_one"], ["pairwise(exponential)", "pairs"], labels="grades")
    assert [(cell.metric, cell.surrogate, cell.spaces) for cell in small.cells] == [
        ("ap", "pairwise(exponential)", ("grades",)),
        ("ap", "pairs", ("grades",)),
    ]
    for wrong in ({"metrics": []}, {"surrogates": []}, {"surrogates": ["nothing"]}, {"labels": "nothing"}):
        with pytest.raises(ConcordantError):
            certify_module.matrix(**wrong)


@pytest.fixture(scope="module")
def tested():
    cells = []
    small = certify_module.matrix(["ap", "zero_one"], ["squared", "preorder", "plackett_luce", "pairs"])
    return small.tested(n_items=3, budget=100, tell=cells.append), cells


def test_testing_the_matrix(tested):
    matrix, cells = tested
    assert cells == [cell for cell in matrix.cells if cell.certificate is not None]
    assert [cell.certificate.counterexample is not None for cell in cells] == [
        cell.status == "refuted" for cell in cells
    ]
    assert all(cell.certificate.counterexample.verify() for cell in cells if cell.status == "refuted")
    assert {cell.metric for cell in cells if cell.status == "proven"} == {"ap"}
    with pytest.raises(ParameterError):
        matrix.tested(n_items=9)


# --- the matrix as a table


def printed(matrix, width):
    screen = Console(width=width, file=io.StringIO(), color_system=None, markup=False)
    screen.print(matrix_table(matrix, width))
    return screen.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 119, 120, 200, 1000])
def test_no_width_cuts_a_word(matrix, width):
    text = printed(matrix, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    table = text[: text.index("\nproven   It is")]
    marks = certify.number_conditions(matrix)
    for word in ("proven", "refuted"):
        count = sum(certify.answer_word(cell, marks) == word for cell in matrix.cells)
        assert len(re.findall(rf"(?<![\w]){word}(?![\w])", table)) == count
    for mark in marks.values():
        assert table.count(mark) == sum(certify.answer_word(cell, marks) == mark for cell in matrix.cells)
    assert len(re.findall(r"^metric", table, re.MULTILINE)) == {80: 2, 119: 1, 120: 1, 200: 1, 1000: 1}.get(
        width, 3
    )


def test_colours_add_to_words(matrix):
    styles = {}
    marks = certify.number_conditions(matrix)
    for cell in matrix.cells:
        text = certify.cell_text(cell, marks)
        styles.setdefault(str(text.style), set()).add(text.plain)
    assert styles == {
        "green": {"proven"},
        "red": {"refuted"},
        "yellow": set(marks.values()),
        "dim": {"-"},
    }


def test_a_file_gets_the_whole_matrix(matrix):
    text = shown("--matrix")
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert len(re.findall("^metric", text, re.MULTILINE)) == 1
    for name in certify_module.METRICS:
        assert re.search(rf"^{name} ", text, re.MULTILINE)
    for condition in ("P_reinforce", "low_noise", "order_preserving"):
        assert condition in text
    assert list(remarks(matrix))[-1] in text
    assert text == shown()
    assert "Why:" not in shown("--quiet")


@pytest.mark.slow
def test_searched_cells_show_the_evidence(tested):
    text = printed(tested[0], 100)
    lost = {certify.evidence(cell) for cell in tested[1] if cell.status == "refuted"}
    assert all(loss.startswith("-") and loss in text for loss in lost)
    assert re.search(r"0/\d+", text)
    assert any("counterexample loses" in remark for remark in remarks(tested[0]))


def test_a_loss_that_is_not_verified_is_no_silence(tested):
    cell = next(cell for cell in tested[1] if cell.status == "proven")
    tried = replace(cell.certificate.tried, worst=0.25)
    doubtful = replace(cell, certificate=replace(cell.certificate, tried=tried))
    assert certify.evidence(doubtful) == "?0.25"


@pytest.mark.slow
def test_the_matrix_is_searched():
    cells = answer("--matrix", "rr@1", "--search", "--items", 3, "--budget", 60, "--labels", "binary")[
        "cells"
    ]
    for cell in cells:
        if cell["status"] != "misfit":
            assert cell["tried"]["n_items"] == [3]
            assert (cell["counterexample"] is None) == (cell["status"] == "proven")


def test_an_open_or_conditional_cell_has_words_of_its_own(matrix):
    cell = find_cell(matrix, "ap", "pairwise", "binary")
    maybe = replace(cell, certificate=replace(cell.certificate, status="conditional"))
    unknown = find_cell(matrix, "err", "pairwise", "binary")
    unknown = replace(unknown, certificate=replace(unknown.certificate, status="open"))
    text = printed(certify_module.Matrix(("pairwise",), (cell, maybe, unknown)), 200)
    assert "if 1  Refuted in general; consistent under P_reinforce" in text
    assert "if 2  Unknown in general; consistent under P_reinforce" in text
    assert "open  Neither a proof" in text


# --- surrogates as text


@pytest.mark.parametrize(
    "surrogate",
    [
        Squared(centred=False),
        Pairwise(),
        Pairwise("logistic"),
        Pairwise("huber_hinge(0.25)", normalize=True),
        Preorder("gain", "hinge"),
        Preorder("pairs"),
        Preorder(margin="exponential"),
        Duchi("cosh", nu=2.5),
        Duchi(nu=1e-3),
        PositionHinge("all_pairs"),
        ListwiseHinge(cc.metrics.metric("ndcg@10")),
        ListwiseHinge(cc.metrics.metric("eru(v=1,w=5)"), "softmax"),
        ListwiseHinge(cc.metrics.metric("ndcg@3[trec_eval,gain=exp2]"), "softmax"),
        cc.theory.combination.PairSquared(),
    ],
    ids=format_surrogate,
)
def test_surrogates_are_read_as_they_are_written(surrogate):
    read = read_kind(format_surrogate(surrogate), "dcg")
    assert read == surrogate
    assert format_surrogate(read) == format_surrogate(surrogate)


def test_text_in_other_words():
    assert read_kind(" preorder( weighting=gain , margin=hinge )", "dcg") == Preorder("gain", "hinge")
    assert read_kind("pairwise()", "dcg") == Pairwise()
    assert read_kind("listwise_hinge(mode=sum,temperature=0.5)", "ap").metric == cc.metrics.metric("ap")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ParameterError),
        ("pairwise)", ParameterError),
        ("pairwise(logistic,hinge)", ParameterError),
        ("pairwise(normalize=2)", ParameterError),
        ("duchi(nu=many)", ParameterError),
        ("preorder(heavy)", ParameterError),
        ("softmax(1)", ParameterError),
        ("pairs(1)", ParameterError),
        ("triple(1)", UnknownNameError),
        ("duchi(sine)", UnknownNameError),
        (None, UnknownNameError),
    ],
)
def test_bad_text_is_named(text, error):
    with pytest.raises(error):
        read_kind(text, "dcg")


# --- documentation


def test_the_output_in_the_documentation():
    page = (DOCS / "command-line.md").read_text()
    output = re.search(r"\$ concordant certify ndcg@10 pairwise\n(.*?)```", page, re.DOTALL)[1]
    assert shown("ndcg@10", "pairwise").strip() == output.strip()


def test_the_figure_in_the_documentation(matrix):
    drawn = (DOCS / "certificates-matrix.svg").read_text()
    words = re.findall(r">(proven|refuted|if&#160;\d)(?:&#160;)*<", drawn)
    marks = certify.number_conditions(matrix)
    cells = [certify.answer_word(cell, marks) for cell in matrix.cells if cell.certificate is not None]
    assert sorted(word.replace("&#160;", " ") for word in words) == sorted(
        [*cells, "proven", "refuted", *marks.values()]
    )
