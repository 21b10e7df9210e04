"""The benchmarks run and write their tables; how fast anything is, is never asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import SUITES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("suite", SUITES)
def test_a_quick_run_writes_its_tables(suite, tmp_path):
    done = run(suite, "--quick", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / f"{suite}.json").read_text())
    text = (tmp_path / f"{suite}.md").read_text()
    assert record["tables"]
    for table in record["tables"]:
        assert table["rows"]
        assert f"## {table['title']}" in text
    assert str(tmp_path) not in text


def test_every_module_loads():
    modules = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "benchmarks").rglob("*.py")]
    names = [".".join(path.parts) for path in modules if path.name != "__main__"]
    load = "[importlib.import_module(name) for name in sys.argv[1:]]"
    code = f"import importlib, sys, warnings; warnings.simplefilter('ignore'); {load}"
    assert len(names) > len(SUITES)
    subprocess.run([sys.executable, "-c", code, *names], cwd=ROOT, check=True)


def test_an_unknown_suite_is_refused(tmp_path):
    done = run("metric", "--output", tmp_path)
    assert done.returncode == 2
    assert "unknown suite 'metric'" in done.stderr
