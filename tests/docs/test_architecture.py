"""docs/architecture.md: it names every room, and every file that it names is there."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "concordant"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = {path.parent.name for path in PACKAGE.glob("*/__init__.py*")}
FOLDERS = ["src/concordant", "tests", "studies", "benchmarks", "docs"]
FILES = [path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
CODE = re.compile(r"`([^`\s]+)`")


def table_rows(page):
    """Room -> files to begin with, of the table of rooms."""
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `")]
    return {CODE.search(room)[1]: CODE.findall(files) for room, _, files in rows}


def missing_files(page):
    """Paths in the prose that end no path of the repository; NAME stands for any name."""
    names = {name.rstrip("/") for name in CODE.findall(page) if re.search(r"\.(pyi?|md|toml)$", name)}
    named = {name for name in names if "NAME" not in name and not name.startswith("concordant.")}
    return sorted(name for name in named if not any(path.match(name) for path in FILES))


def rooms_without_row(page):
    return ROOMS - table_rows(page).keys()


def test_every_room_has_a_row():
    assert rooms_without_row(PAGE) == set()
    assert table_rows(PAGE).keys() <= ROOMS


def test_files_to_begin_with_are_in_their_rooms():
    for room, files in table_rows(PAGE).items():
        for name in files:
            assert (PACKAGE / room / name).is_file(), f"{room}/{name}"


def test_every_file_is_there():
    assert missing_files(PAGE) == []


def test_modules_in_the_prose_are_there():
    for name in re.findall(r"`((?:[a-z_]+\.){2,}[A-Z]\w+)`", PAGE):
        module, _, attribute = name.rpartition(".")
        source = (PACKAGE / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
        assert f"class {attribute}" in source, name


def test_the_checks_can_fail():
    assert "scale" in rooms_without_row(PAGE.replace("| `scale` |", "| `skale` |"))
    assert missing_files("see `metrics/nowhere.py`") == ["metrics/nowhere.py"]
