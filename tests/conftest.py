"""Fixtures shared by all tests."""

import os
import warnings
from pathlib import Path

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

# The first call compiles, or imports torch, and other work may take the cores: being slow is no failure.
PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("default", max_examples=100, **PATIENT)
hypothesis.settings.register_profile("brief", max_examples=20, **PATIENT)  # of `make test`
hypothesis.settings.register_profile("fast", max_examples=5, **PATIENT)  # of `make test-fast`
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


@pytest.fixture(scope="session")
def client():
    """A cluster of two workers within this process: started once, since that takes a second."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports in use, by tests beside this one
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        )
    with cluster, distributed.Client(cluster) as cluster_client:
        yield cluster_client
