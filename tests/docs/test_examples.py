"""The examples run as a user runs them, on little data."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
TRAINER = ("datasets", "accelerate")  # what the trainer needs besides


def output_of(script, *options):
    """What the script prints."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    command = [sys.executable, str(ROOT / "examples" / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=settings, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cross_encoder():
    printed = output_of("cross_encoder.py", "--queries", "24", "--epochs", "1")
    assert "NDCG@10 of 12 test queries" in printed
    for loss in ("OrderPreservingLoss", "pointwise regression"):
        before, after = map(float, re.search(rf"{loss}\D*(0\.\d+)\D*(0\.\d+)", printed).groups())
        assert 0 < before < 1
        assert 0 < after < 1


@pytest.mark.parametrize("options", [[], ["--plain"]])
def test_sentence_transformers_loss(options):
    missing = [
        name for name in ("sentence_transformers", *([] if options else TRAINER)) if not find_spec(name)
    ]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    few = ["--queries", "24", "--epochs", "1", "--device", "cpu"]
    printed = output_of("sentence_transformers_loss.py", *few, *options)
    before, after = map(float, re.search(r"(0\.\d+) before, (0\.\d+) after", printed).groups())
    assert 0 < before < 1
    assert 0 < after < 1
