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
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import concordant as cc
from cli_calls import written_log
from concordant.cli import app
from concordant.cli.output import examples
from concordant.exceptions import ParameterError


def tree(command, *names):
    """Every command with its names, groups too."""
    yield names, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from tree(inner, *names, name)


made = functools.cache(typer.main.get_command)
ROOT = made(app)
ALL = {" ".join(names): command for names, command in tree(ROOT)}
LEAVES = [name for name, command in ALL.items() if not hasattr(command, "commands")]
ELSEWHERE = {  # why their JSON is not asked for here
    "demo": "tests/test_cli.py trains it",
    **{
        name: "tests/test_reproduce*.py and the like run it"
        for name in LEAVES
        if name.startswith("reproduce ")
    },
}


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
    command, parent = made(root), None
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
    assert any(f"{line} ".startswith(f"concordant {name} ".replace("  ", " ")) for line in shown), shown
    for line in shown:
        assert line.isascii(), line
        parsed(root, shlex.split(line)[1:])


def check_options(root, name):
    """--json and --quiet are there; every option and argument says what it is."""
    command = parsed(root, shlex.split(examples_of(root, name)[0])[1:]).command
    options = {word for one in command.params for word in one.opts}
    assert {"--json", "--quiet", "-q"} <= options
    for one in command.params:
        assert getattr(one, "help", None), one.name
        assert all(re.fullmatch(r"--[A-Za-z][a-z0-9-]*|-[A-Za-z]|[a-z_]+", word) for word in one.opts), (
            one.opts
        )
    for page in shown_help(root, name).splitlines():
        assert not re.search(r" , |\[/?cyan\]", page), page  # what markup leaves of text in brackets


def ended_by(root, name, error):
    """Status, standard output and error of a command that meets an error, called as in its example."""
    command = found = made(root)
    for part in name.split():
        found = found.commands[part]

    def fail(*_, **__):
        raise error

    callback, found.callback = found.callback, fail
    arguments, out, err = shlex.split(examples_of(root, name)[0])[1:], io.StringIO(), io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            command.main(arguments, prog_name="concordant")
    finally:
        found.callback = callback
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


@pytest.mark.parametrize("name", ALL)
def test_help_has_examples_that_parse(name):
    check_examples(app, name)


@pytest.mark.parametrize("name", LEAVES)
def test_options_are_alike(name):
    check_options(app, name)


@pytest.mark.parametrize("name", LEAVES)
def test_errors_and_interruptions_have_their_status(name):
    check_statuses(app, name)


@pytest.mark.parametrize("name", ALL)
def test_wrong_options_are_refused(name):
    check_usage(app, name)


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
    assert set(CALLS) | set(ELSEWHERE) == set(LEAVES)


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


PAGE = (Path(__file__).resolve().parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def undocumented(name, sections):
    """Options of a command that its section does not name; those of all commands stand at the top."""
    words = [word for one in ALL[name].params for word in one.opts if word.startswith("--")]
    text = sections.get(name.split()[0], "")
    return [
        word
        for word in words
        if word not in ("--help", "--json", "--quiet") and not re.search(re.escape(word) + r"(?![\w-])", text)
    ]


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_is_in_the_documentation(name):
    assert name.split()[0] in SECTIONS
    assert undocumented(name, SECTIONS) == []


def test_an_option_without_a_word_is_noticed():
    assert "--trials" in undocumented("tune", {"tune": SECTIONS["train"] + "--trials-per-day"})


def test_no_section_is_of_a_command_that_is_gone():
    assert set(SECTIONS) - {"Files"} == {name.split()[0] for name in LEAVES}
