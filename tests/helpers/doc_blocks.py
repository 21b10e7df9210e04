"""The fenced blocks of a page, and how each kind is run or checked: `read` does so from top to bottom.

Blocks of `>>>` are doctests: pytest runs them by itself. A block after a paragraph that ends in the name of a
file is that file. A line `$ command` is run and what it prints compared: `...` stands for anything, seconds
are not compared. Commands without a `$` are parsed as the shell and the command line would. Plain Python is
run, and what it prints compared with the block of text that follows at once. TOML is parsed.
"""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import typer
from typer.testing import CliRunner

from concordant.cli import app
from studies.__main__ import app as studies

ROOT = Path(__file__).resolve().parents[2]
BOOKS = [ROOT / "docs", ROOT / "docs" / "studies"]
PAGES = {  # name, as seen from docs/
    "README.md": ROOT / "README.md",
    **{path.relative_to(BOOKS[0]).as_posix(): path for book in BOOKS for path in sorted(book.glob("*.md"))},
}
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w.-]+\.\w+)`\W*$")  # the end of a paragraph
SECONDS = re.compile(r"\b\d+(?:\.\d+)? s\b")
READERS = ("cat", "head", "ls")  # what a session may call besides our programs
SHOWN = {"concordant", "make", "pip", "git", "python"}  # commands that are parsed


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    body: str
    before: str  # the text between the last block and this one

    @property
    def first(self):
        return next((line for line in self.body.splitlines() if line.strip()), "")

    @property
    def is_doctest(self):
        return ">>> " in self.body

    @property
    def is_directive(self):
        return self.language.startswith("{")

    @property
    def is_session(self):
        return self.first.startswith("$ ")

    @property
    def is_python(self):
        return self.language == "python" and not self.is_doctest

    @property
    def file(self):
        named = FILE.search(self.before.strip())
        return named[1] if named and not self.is_session else None

    @property
    def follows_at_once(self):
        """True if nothing stands before it but a block: if that is Python, this is what it prints."""
        return not self.before.strip() and self.language == "text" and not self.is_session

    def __str__(self):
        return f"{self.page}, line {self.line}: {self.first!r}"


def blocks_of(page, text):
    """The fenced blocks of a page, in order."""
    fences = list(FENCE.finditer(text))
    ends = [0, *(fence.end() for fence in fences)]
    return [
        Block(
            page,
            text.count("\n", 0, fence.start()) + 1,
            fence[2].strip(),
            fence[3],
            text[end : fence.start()],
        )
        for fence, end in zip(fences, ends, strict=False)
    ]


def same(expected, printed):
    """True if a command printed what the page says."""
    texts = [
        "\n".join(line.rstrip() for line in SECONDS.sub("0 s", text).strip().splitlines()) + "\n"
        for text in (expected, printed)
    ]
    return doctest.OutputChecker().check_output(*texts, doctest.ELLIPSIS)


def program_of(arguments):
    """Split a command into one of our programs and its arguments; the program is None if it is another's."""
    match arguments:
        case ["concordant", *rest]:
            return app, rest
        case ["python", "-m", "studies", *rest]:
            return studies, rest
    return None, arguments


def run_session(block):
    """Run each `$ command` of the block, and compare what follows it."""
    for part in filter(str.strip, re.split(r"^\$ ", block.body, flags=re.MULTILINE)):
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        arguments = shlex.split(command, comments=True)
        program, rest = program_of(arguments)
        if program is not None:
            result = CliRunner().invoke(program, rest)
            status, printed = result.exit_code, result.output
            assert result.exception is None or isinstance(result.exception, SystemExit), (
                f"{block}: {command}\n{result.exception!r}"
            )
        else:
            assert arguments[0] in READERS, f"{block}: {command}"
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            status, printed = done.returncode, done.stdout
        assert status in (0, 2), f"{block}: {command}\n{printed}"
        assert same(expected, printed), f"{block}: {command}\nexpected\n{expected}\nprinted\n{printed}"


def run_python(block, names, expected):
    """Run plain Python; compare what it prints."""
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
        exec(compile(block.body, str(block), "exec"), names)  # noqa: S102  # the repository's own pages
    printed = stdout.getvalue()
    assert same(expected, printed), f"{block}\nexpected\n{expected}\nprinted\n{printed}"


def parse_command(line, folder):
    """Check a command that is only shown: it exists, and so do its options, targets and extras."""
    arguments = shlex.split(line, comments=True)
    match arguments:
        case ["concordant", *_] | ["python", "-m", "studies", *_]:
            parse_arguments(*program_of(arguments), folder)
        case ["make", *targets]:
            rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            assert {target for target in targets if "=" not in target} <= set(rules), line
        case ["pip", *_]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            named = re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*?)\]", line)))
            assert set(named) <= set(project["optional-dependencies"]), line
        case ["python", "-m", module, *_]:
            path = ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").exists(), line
        case ["python", script, *_]:
            assert (ROOT / script).exists(), line
        case ["git", *_] | []:
            pass
        case _:
            raise AssertionError(line)


def parse_arguments(program, arguments, folder):
    """Read arguments as the command line does, without running anything; files that are named exist."""
    for argument in arguments:
        if re.fullmatch(r"[\w./-]+\.\w+", argument) and not (folder / argument).exists():
            (folder / argument).parent.mkdir(parents=True, exist_ok=True)
            (folder / argument).touch()
    command, parent = typer.main.get_command(program), None
    try:
        while hasattr(command, "resolve_command"):
            parent = typer.Context(command, parent=parent)
            _, command, arguments = command.resolve_command(parent, arguments)
        command.make_context(command.name, list(arguments), parent=parent)
    except Exception as error:  # wrong usage, as typer or click name it
        raise AssertionError(f"{arguments}: {error}") from error


def commands_of(block):
    """The lines of a block that holds commands alone, or None."""
    lines = [line for line in block.body.replace("\\\n", " ").splitlines() if line.strip()]
    words = {line.split()[0] for line in lines if not line.startswith("#")}
    return lines if words <= SHOWN else None


def check_block(block, expected, names, folder):
    """Run or check one block; say so if that cannot be done."""
    if block.is_session:
        run_session(block)
    elif block.file:
        (folder / block.file).write_text(block.body, encoding="utf-8")
    elif block.is_python:
        run_python(block, names, expected)
    elif lines := commands_of(block):
        for part in (part for line in lines for part in line.split("&&")):
            if not part.strip().startswith(("#", "cd ")):
                parse_command(part, folder)
    else:
        raise AssertionError(f"{block} is not run, and not listed in NOT_RUN")
    if block.language == "toml":
        tomllib.loads(block.body)


def read(blocks, folder):
    """Check all blocks of a page, in order."""
    names = {}
    printed = None  # the block that was compared with what the Python above it prints
    for block, following in pairwise([*blocks, None]):
        if block is printed or block.is_directive or block.is_doctest:
            continue
        printed = following if block.is_python and following and following.follows_at_once else None
        check_block(block, printed.body if printed else "", names, folder)
