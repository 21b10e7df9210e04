"""All commands alike: an example that parses, --json and --quiet, errors on standard error, exit statuses.

The checks walk the tree of commands: a new one is checked without being named here. Commands that do it all
wrong show that the checks can fail.
"""

import contextlib
import functools
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.cli.shared.output import (
    Display,
    TableResult,
    examples,
    expand_groups,
    in_flags,
    new_table,
    option,
    read_flags,
)
from concordant.exceptions import ParameterError
from studies.__main__ import app as studies
from tests.helpers.cli_calls import written_log


def tree(command, *names):
    """Every command with its names, groups too."""
    yield names, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from tree(inner, *names, name)


click_command = functools.cache(typer.main.get_command)
ROOT = click_command(app)
PROGRAMS = {app: "concordant", studies: "python -m studies"}  # how their commands begin
ALL = {
    program: {" ".join(names): command for names, command in tree(click_command(program))}
    for program in PROGRAMS
}
LEAVES = {
    program: [name for name, command in commands.items() if not hasattr(command, "commands")]
    for program, commands in ALL.items()
}
ELSEWHERE = {  # why their JSON is not asked for here
    app: {"demo": "tests/cli/test_programs.py trains it"},
    studies: dict.fromkeys(LEAVES[studies], "tests/studies run it"),
}


def each(names):
    """Program and name of commands, as parameters of a test."""
    return pytest.mark.parametrize(
        ("root", "name"),
        [
            pytest.param(program, name, id=name if program is app else f"studies {name}".strip())
            for program in PROGRAMS
            for name in names[program]
        ],
    )


def program_of(root):
    """How a command line of this program begins."""
    return PROGRAMS.get(root, "concordant")


def arguments_of(root, line):
    """The arguments of an example, without the program."""
    return shlex.split(line)[len(program_of(root).split()) :]


@functools.cache
def shown_help(root, name):
    """The help page as a wide terminal shows it, without colours."""
    wide = {"COLUMNS": "400", "TERMINAL_WIDTH": "400"}
    result = CliRunner(env=wide).invoke(root, [*name.split(), "--help"])
    assert result.exit_code == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def examples_of(root, name):
    """The examples of a help page."""
    text = shown_help(root, name).partition("Examples")[2]
    return [line.strip() for line in text.splitlines() if line.strip()]


def parsed(root, arguments):
    """Read arguments as the command line does; nothing is run."""
    command, parent = click_command(root), None
    try:
        while hasattr(command, "resolve_command"):
            parent = typer.Context(command, parent=parent)
            _, command, arguments = command.resolve_command(parent, list(arguments))
        return command.make_context(command.name, list(arguments), parent=parent)
    except typer.BadParameter.__base__ as error:  # wrong usage of any kind
        raise AssertionError(str(error)) from error


def check_examples(root, name):
    """There is one, of this command; each parses, and is shown as it was written, without emoji."""
    shown = examples_of(root, name)
    assert any(f"{line} ".startswith(f"{program_of(root)} {name} ".replace("  ", " ")) for line in shown), (
        shown
    )
    for line in shown:
        assert line.isascii(), line
        parsed(root, arguments_of(root, line))


def check_options(root, name):
    """--json and --quiet are there; every option and argument says what it is."""
    command = parsed(root, arguments_of(root, examples_of(root, name)[0])).command
    options = {word for param in command.params for word in param.opts}
    assert {"--json", "--quiet", "-q"} <= options
    for param in command.params:
        assert getattr(param, "help", None), param.name
        assert all(re.fullmatch(r"--[A-Za-z][a-z0-9-]*|-[A-Za-z]|[a-z_]+", word) for word in param.opts), (
            param.opts
        )
    for page in shown_help(root, name).splitlines():
        assert not re.search(r" , |\[/?cyan\]", page), page  # what markup leaves of text in brackets


def ended_by(root, name, error):
    """Status, standard output and error of a command that meets an error, called as in its example."""
    command = target = click_command(root)
    for part in name.split():
        target = target.commands[part]

    def fail(*_, **__):
        raise error

    callback, target.callback = target.callback, fail
    arguments, out, err = arguments_of(root, examples_of(root, name)[0]), io.StringIO(), io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            command.main(arguments, prog_name=program_of(root))
    finally:
        target.callback = callback
    return end.value.code, out.getvalue(), err.getvalue()


def check_statuses(root, name):
    """Bad input is 2 and a message on standard error, Ctrl-C is 130; standard output stays empty."""
    for error in (ParameterError("x", 1, "less"), FileNotFoundError(2, "No such file or directory", "a.txt")):
        status, printed, message = ended_by(root, name, error)
        assert (status, printed) == (2, "")
        assert message.startswith("error: ")
    assert ended_by(root, name, KeyboardInterrupt())[:2] == (130, "")


def check_usage(root, name):
    """A wrong option is 2, with a message on standard error."""
    result = CliRunner().invoke(root, [*name.split(), "--nosuchoption"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nosuchoption" in result.stderr


def check_json(root, arguments):
    """--json prints one document and nothing else; with --quiet, nothing on standard error either."""
    result = CliRunner().invoke(root, [*map(str, arguments), "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict | list)
    assert result.stderr == ""


@each(ALL)
def test_help_has_examples_that_parse(root, name):
    check_examples(root, name)


@each(LEAVES)
def test_options_are_alike(root, name):
    check_options(root, name)


@each(LEAVES)
def test_errors_and_interruptions_have_their_status(root, name):
    check_statuses(root, name)


@each(ALL)
def test_wrong_options_are_refused(root, name):
    check_usage(root, name)


# --- JSON


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Files of the names that `calls` uses."""
    folder = tmp_path_factory.mktemp("home")
    for seed, name in enumerate(("train", "test")):
        log = written_log(folder, name, 20, seed)
    (folder / "scores.txt").write_text("".join(f"{value}\n" for value in log.X[:, 1]))
    (folder / "votes.csv").write_text(
        "left,right,outcome\na,b,left\nb,c,left\nc,a,tie\nb,a,left\nc,b,left\na,c,left\n"
    )
    (folder / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n2 0 b 2\n")
    (folder / "one.run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n2 Q0 a 1 2 x\n2 Q0 b 2 1 x\n")
    (folder / "two.run").write_text("1 Q0 a 1 1 x\n1 Q0 b 2 2 x\n2 Q0 a 1 2 x\n2 Q0 b 2 3 x\n")
    for arguments in (
        ["train", "train.txt", "-o", "run"],
        ["compare", "fit", "votes.csv", "-o", "votes.cmp"],
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            assert CliRunner().invoke(app, [*arguments, "--json"]).exit_code == 0
    return folder


CALLS = {
    "train": "train.txt -o {new}",
    "tune": "train.txt --folds 2 --space alpha=[1,2] -o {new}",
    "rank": "run test.txt",
    "rerun": "run",
    "export": "run -o {new}.json",
    "evaluate": "--qrels qrels --run one.run",
    "compare-models": "--qrels qrels --run one.run --run two.run",
    "report": "run test.txt --baseline scores.txt -o {new}.html",
    "explain": "ap --qrels qrels --run one.run",
    "certify": "ndcg@10 pairwise",
    "bounds": "-n 100 -m 10",
    "aggregate": "votes.csv",
    "datasets": "",
    "convert": "train.txt -o {new}.parquet",
    "compare fit": "votes.csv --folds 0",
    "compare predict": "votes.cmp votes.csv",
    "compare rank": "votes.cmp",
}


def test_json_is_asked_of_every_command():
    assert set(CALLS) | set(ELSEWHERE[app]) == set(LEAVES[app])
    assert set(ELSEWHERE[studies]) == set(LEAVES[studies])


@pytest.mark.parametrize("name", CALLS)
def test_json_is_one_document(name, home, tmp_path, monkeypatch):
    monkeypatch.chdir(home)
    if name == "report":
        pytest.importorskip("plotly")
    check_json(app, [*name.split(), *shlex.split(CALLS[name].format(new=tmp_path / "new"))])


# --- a command that does everything wrong


def wrong_app():
    """A program of commands that are wrong in all that is checked."""
    wrong = typer.Typer(rich_markup_mode="rich")

    @wrong.command(epilog=examples("concordant loud --rate 1:100:2"))
    def loud(
        *,
        rate: Annotated[str, typer.Option("--rate", "--Bad_Rate", help="Bad.")] = "",
        as_json: Annotated[bool, typer.Option("--json", help="Print.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print.")] = False,
    ):
        del rate, quiet
        typer.echo("working")
        typer.echo("{}" if as_json else "")

    @wrong.command(epilog=examples("concordant bare"))
    def bare():
        typer.echo("done")

    @wrong.command(epilog=examples("concordant old --removed 3"))
    def old():
        typer.echo("done")

    return wrong


def test_the_checks_can_fail():
    wrong = wrong_app()
    for name in ("loud", "old"):
        with pytest.raises(AssertionError):
            check_examples(wrong, name)
    check_examples(wrong, "bare")
    for name in ("loud", "bare"):
        with pytest.raises(AssertionError):
            check_options(wrong, name)
    with pytest.raises(ParameterError):  # a traceback, in a shell
        check_statuses(wrong, "bare")
    with pytest.raises(json.JSONDecodeError):
        check_json(wrong, ["loud"])


# --- completion


def test_completion_knows_the_commands():
    asked = {"_CONCORDANT_COMPLETE": "complete_bash", "COMP_WORDS": "concordant re", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "concordant"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    assert set(done.stdout.split()) == {name for name in ROOT.commands if name.startswith("re")}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, shell))  # whatever shell runs the tests
    shown = CliRunner().invoke(app, ["--show-completion", shell], prog_name="concordant")
    assert shown.exit_code == 0
    assert "_CONCORDANT_COMPLETE" in shown.output
    assert cc.__version__ not in shown.output
    done = CliRunner().invoke(app, ["--install-completion", shell], prog_name="concordant")
    assert done.exit_code == 0, done.output
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_CONCORDANT_COMPLETE" in text for text in written)


# --- documentation


DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {app: DOCS / "command-line.md", studies: DOCS / "studies" / "index.md"}
SECTIONS = {
    program: dict(
        re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    for program, page in PAGES.items()
}


def undocumented(command, text):
    """Options of a command that its section does not name; those of all commands stand at the top."""
    words = [word for param in command.params for word in param.opts if word.startswith("--")]
    return [
        word
        for word in words
        if word not in ("--help", "--json", "--quiet") and not re.search(re.escape(word) + r"(?![\w-])", text)
    ]


@each(LEAVES)
def test_every_option_is_in_the_documentation(root, name):
    section = name.split()[0]
    assert section in SECTIONS[root]
    assert undocumented(ALL[root][name], SECTIONS[root][section]) == []


def test_an_option_without_a_word_is_noticed():
    assert "--trials" in undocumented(ALL[app]["tune"], SECTIONS[app]["train"] + "--trials-per-day")


def test_no_section_is_of_a_command_that_is_gone():
    for program in PROGRAMS:
        assert set(SECTIONS[program]) - {"Files"} == {name.split()[0] for name in LEAVES[program]}


def test_the_help_says_where_the_studies_are():
    pointer = "Reproductions of the papers and other studies: python -m studies, in the source repository."
    assert pointer in shown_help(app, "")


# ---------------------------------------------------------------- messages of the library


PYTHON = re.compile(r"\b(?!qid=)\w+=(?:['\"\[]|\.{3}|True|None)|\bcc\.|\bprint\(|\bnp\.|Ranker\(")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("export", "run", "-f", "elasticsearch", "-o", "x.json"), "--features A,B,... names them"),
        (("export", "run", "-f", "lightgbm", "-o", "x.txt"), "--format lightgbm holds trees only"),
        (
            ("export", "run", "-o", "x.onnx", "--dtype", "half"),
            "--dtype must be 'float32' or 'float64', got 'half'",
        ),
        (("evaluate", "--letor", "big.txt", "--scores", "s", "-m", "ndcg"), "'ndcg@10[gain=linear]'"),
        (("evaluate", "--letor", "five.txt", "--scores", "s", "-m", "err"), "'err[max_grade=5]'"),
        (
            ("train", "train.txt", "--model", "pairs", "--metric", "ndcg", "-o", "x"),
            "--model linear trains for",
        ),
        (("certify", "comparison_error"), "`concordant compare fit` trains"),
        (("train", "train.txt", "--metric", "ap", "-o", "ap"), "pass --set assume=P_reinforce"),
        (("train", "train.txt", "--metric", "ap", "-o", "ap"), "See `concordant certify 'ap'`"),
    ],
)
def test_messages_of_the_library_name_flags(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written_log(tmp_path, "train", 10, 0)
    for name, grade in (("big", 5000), ("five", 5)):
        (tmp_path / f"{name}.txt").write_text(f"{grade} qid:1 1:1\n0 qid:1 1:0\n")
    (tmp_path / "s").write_text("1\n0\n")
    rows = cc.read_letor("train.txt")
    cc.save(cc.LinearRanker().fit(rows.X, rows.y, qid=rows.qid), "run")
    stderr = CliRunner().invoke(app, list(arguments)).stderr
    assert words in stderr
    assert not PYTHON.search(stderr), stderr


def test_only_arguments_become_flags():
    """Not what stands in brackets or quotes, nor what the command has no flag for."""

    def command(*, dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE")] = ""): ...

    single = typer.Typer()
    single.command()(command)
    read_flags(typer.main.get_command(single))
    assert in_flags("take dtype='float64'") == "take --dtype float64"
    message = "See print(model.certificate_) and cc.certify('pd', model.surrogate_, labels='grades')."
    assert in_flags(message) == "See `concordant certify 'pd' --labels grades`."
    message = "See print(model.certificate_) and cc.certify('ap', 'pairs', 'diagonal')."
    assert in_flags(message) == "See `concordant certify 'ap' pairs --decoder diagonal`."
    for same in (
        "err[dtype='x']",
        "cc.f(x, dtype='float64')",
        "'dtype=1'",
        "booster='catboost'",
        "dtype=float",
        "parts/dtype=1/a.csv, line 2",
        "dtype=12/a.csv, line 2",
        "dtype=1.csv, line 2",
    ):
        assert in_flags(same) == same


def test_too_little_memory_is_no_traceback(monkeypatch, tmp_path):
    def refused(*_, **__):
        raise MemoryError("Unable to allocate 30.2 GiB")

    written_log(tmp_path, "train", 5, 0)
    monkeypatch.setattr(cc.LinearRanker, "fit", refused)
    done = CliRunner().invoke(app, ["train", str(tmp_path / "train.txt"), "-o", str(tmp_path / "run")])
    assert (done.exit_code, done.stderr) == (2, "error: not enough memory. Unable to allocate 30.2 GiB\n")


@dataclass(frozen=True)
class Paint:
    """A group of options."""

    colour: Annotated[str, option("--colour -c", "NAME", "Its colour.")]
    coats: Annotated[int, option("--coats", "N", "How many.", min=1)] = 2


def test_a_group_is_its_options_one_by_one():
    """The command gets the group filled in; what is shown obeys --json and --quiet."""

    def command(*, paint: Paint, display: Display):
        table = new_table("paint", *vars(paint), rows=[map(str, vars(paint).values())])
        display.notes(["wet"])
        display.present(TableResult(vars(paint), table, ["dry it"]))

    root = typer.Typer()
    root.command()(expand_groups(command))
    params = {param.name: (param.opts, param.required) for param in click_command(root).params}
    assert params["colour"] == (["--colour", "-c"], True)
    assert params["coats"] == (["--coats"], False)
    full, quiet = (CliRunner().invoke(root, ["-c", "red", *flags]) for flags in ([], ["-q"]))
    assert [line.split() for line in full.stdout.splitlines() if "─" not in line] == [
        ["paint"],
        ["colour", "coats"],
        ["red", "2"],
        ["dry", "it"],
        [],
    ]
    assert (full.stderr, quiet.stderr) == ("note: wet\n", "")
    assert quiet.stdout == full.stdout.replace("dry it\n", "")
    assert json.loads(CliRunner().invoke(root, ["-c", "red", "--json"]).stdout) == {
        "colour": "red",
        "coats": 2,
    }
    assert CliRunner().invoke(root, []).exit_code == 2
    assert CliRunner().invoke(root, ["-c", "red", "--coats", "0"]).exit_code == 2
