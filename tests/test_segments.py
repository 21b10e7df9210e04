"""The chunk driver and the kernel cache."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant
from concordant._segments import n_threads, run_chunks, segment_reduce, segment_sum


@given(sizes=st.lists(st.integers(0, 30_000), min_size=1, max_size=12), threads=st.integers(1, 4))
def test_every_query_is_covered_once(sizes, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORDANT_THREADS", str(threads))
        covered = np.zeros(len(sizes), dtype=int)

        def body(first, last):
            covered[first:last] += 1

        run_chunks(np.r_[0, np.cumsum(sizes)], body)
    assert (covered == 1).all()


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("CONCORDANT_THREADS", "2")

    def body(first, last):
        raise ZeroDivisionError(f"{first}:{last}")

    with pytest.raises(ZeroDivisionError):
        run_chunks(np.arange(0, 100_001, 1000), body)


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_threads_by_environment(monkeypatch, value, threads):
    monkeypatch.setenv("CONCORDANT_THREADS", value)
    assert n_threads() == threads or (threads is None and n_threads() >= 1)


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), min_size=1, max_size=8))
def test_segment_reductions(pieces):
    offsets = np.r_[0, np.cumsum([len(piece) for piece in pieces])]
    values = np.array([value for piece in pieces for value in piece])
    np.testing.assert_allclose(segment_sum(values, offsets), [sum(piece) for piece in pieces], atol=1e-6)
    lowest = segment_reduce(np.minimum, values, offsets)
    np.testing.assert_array_equal(lowest, [min(piece, default=0.0) for piece in pieces])


def test_a_cached_kernel_is_forgotten_when_a_kernel_it_calls_changes(tmp_path):
    """numba alone looks only at the kernel's own file and would go on with the old callee."""
    shutil.copytree(
        Path(concordant.__file__).parent,
        tmp_path / "concordant",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    code = "import concordant as cc; print(float(cc.metric('dcg')([1], [1.0])))"

    def run():
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    assert run() == 1.0
    head = tmp_path / "concordant" / "metrics" / "kernels" / "head.py"
    head.write_text(head.read_text().replace("float((1 << int(grade)) - 1)", "float((1 << int(grade)) + 41)"))
    assert run() == 43.0
