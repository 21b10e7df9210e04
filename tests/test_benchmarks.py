"""The benchmarks run and write their tables; how fast anything is, is never asserted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


SUITES = [
    "boosting",
    "certificates",
    "choice",
    "comparer",
    "decoders",
    "device",
    "kill_resume",
    "kill_workers",
    "limits",
    "maxmargin",
    "metrics",
    "neural",
    "out_of_core",
    "ratings",
    "reading",
    "robustness",
    "scaling",
    "significance",
    "startup",
    "surrogates",
    "torch_losses",
    "training",
    "tree_choice",
]


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


def test_an_unknown_suite_is_refused(tmp_path):
    done = run("metric", "--output", tmp_path)
    assert done.returncode == 2
    assert "unknown suite 'metric'" in done.stderr
