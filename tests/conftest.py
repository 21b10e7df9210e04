"""Fixtures shared by all tests."""

import os
from pathlib import Path

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

hypothesis.settings.register_profile("default", deadline=None, max_examples=100)  # the first call compiles
hypothesis.settings.register_profile("brief", deadline=None, max_examples=20)  # of a second interpreter
hypothesis.settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Workers share the cores: on small matrices, waiting for a second thread would take most of the time."""
    import scipy.linalg  # noqa: F401  # which brings a BLAS of its own

    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data sets; their terms forbid shipping them, so tests skip where they are absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CONCORDANT_DATA", beside))
    if not (folder / "mq2008").is_dir():
        pytest.skip(f"real data sets are not at {folder} (set CONCORDANT_DATA)")
    return folder
