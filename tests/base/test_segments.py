"""The chunk driver and the kernel cache."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant
from concordant._base.segments import n_threads, run_chunks, segment_reduce, segment_sum


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


def copy_package(folder):
    """Install the package there, with nothing compiled."""
    source = Path(concordant.__file__).parent
    shutil.copytree(source, folder / "concordant", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.slow
def test_a_cached_kernel_is_forgotten_when_a_kernel_it_calls_changes(tmp_path):
    """numba alone looks only at the kernel's own file and would go on with the old callee."""
    copy_package(tmp_path)
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
    kernels = tmp_path / "concordant" / "metrics" / "list_kernels.py"
    kernels.write_text(
        kernels.read_text().replace("float((1 << int(grade)) - 1)", "float((1 << int(grade)) + 41)")
    )
    assert run() == 43.0


HIGHEST = """
import numpy as np
from concordant.metrics.list_kernels import highest
print(highest(np.ones(2)))
"""
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def run_uncached(folder, *prefix, **environment):
    """Call a kernel of the package in this folder: what is printed, and the lines on standard error."""
    done = subprocess.run(
        [*prefix, sys.executable, "-W", "error", "-c", HIGHEST],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "HOME": "/dev/null/home", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


def test_without_a_cache_folder_kernels_compile_after_one_notice(tmp_path):
    """A file named as the cache folder keeps even root from writing there."""
    copy_package(tmp_path)
    for module in (tmp_path / "concordant").rglob("*.py"):
        (module.parent / "__pycache__").touch()
    printed, (notice,) = run_uncached(tmp_path)
    assert printed == "1.0\n"
    assert "NUMBA_CACHE_DIR" in notice
    assert run_uncached(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == ("1.0\n", [])


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="only root can become another user",
)
def test_another_user_runs_a_read_only_installation():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        if subprocess.run(
            [*NOBODY, sys.executable, "-c", "import numba"], cwd=folder, check=False
        ).returncode:
            pytest.skip("another user cannot read this Python")
        copy_package(folder)
        printed, (notice,) = run_uncached(folder, *NOBODY)
        assert printed == "1.0\n"
        assert "NUMBA_CACHE_DIR" in notice
        (folder / "here").mkdir(mode=0o777)
        (folder / "here").chmod(0o777)
        code = f"import os; os.chdir('here'); {HIGHEST}"
        unknown = ("setpriv", "--reuid=54321", "--regid=54321", "--clear-groups")
        command = [*unknown, sys.executable, "-c", code]
        subprocess.run(command, cwd=folder, env={"PYTHONPATH": name}, check=True, capture_output=True)
        assert list((folder / "here").iterdir()) == []  # numba would make a folder named "~"


def test_a_full_or_damaged_cache_is_no_error(tmp_path, monkeypatch, caplog):
    from numba.core.caching import IndexDataCacheFile

    from concordant._base.segments import kernel, log_uncached

    def fill_disk(*_):
        raise OSError(28, "No space left on device")

    def double(x):
        return 2.0 * x

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    log_uncached.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "save", fill_disk)
        assert [kernel(double)(2.0), kernel(double)(3.0)] == [4.0, 6.0]
    (record,) = caplog.records
    assert "No space left" in record.getMessage()
    assert kernel(double)(2.0) == 4.0
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(index.read_bytes()[:10])
    assert kernel(double)(2.0) == 4.0
    repaired = kernel(double)
    assert repaired(2.0) == 4.0
    assert sum(repaired.stats.cache_hits.values()) == 1
