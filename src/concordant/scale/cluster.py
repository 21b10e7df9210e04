"""Dask clusters: the client, waiting for workers' results, and worker processes on this machine."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

from concordant.exceptions import (
    ClusterError,
    ConcordantError,
    MissingExtraError,
    ParameterError,
    WorkerLostError,
)
from concordant.scale.parts import Job

# The client of a Dask cluster, and waiting for its workers' results.

LOOK, PATIENCE = 5.0, 60.0  # seconds between looks at the workers, and without workers before we give up
CHECKPOINT = "with checkpoint=FOLDER, the same fit resumes where it stopped, on any cluster."


def import_distributed() -> Any:
    """Import `distributed`."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("distributed", "dask", "a cluster") from error
    return distributed


def connected(address: str, timeout: float = 10.0) -> Any:
    """Connect to the scheduler at this address; raise ClusterError if it cannot be reached."""
    distributed = import_distributed()
    try:
        return distributed.Client(address, timeout=timeout)
    except (OSError, ValueError, TypeError) as error:
        hint = "start one by `dask scheduler` and `dask worker ADDRESS`, or use a local cluster."
        raise ClusterError(
            f"no scheduler answers at {address!r} ({' '.join(str(error).split())})", hint
        ) from error


def check_client(client: Any) -> Any:
    """Check the client (by default the current client) and its workers' versions; return the client."""
    distributed = import_distributed()
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            hint = "create one by client = distributed.Client(...), and pass it by fit(..., client=client)."
            raise ClusterError("Dask collections need a client, but there is none", hint) from error
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ParameterError("client", client, "a synchronous distributed.Client")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}", "make a new one: distributed.Client(address).")
    _refuse_strange(client)
    return client


def _refuse_strange(client: Any) -> None:
    """Raise if a worker lacks this library or has another version of it."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        with naming_faults():
            client.wait_for_workers(1, timeout=PATIENCE)
    client_version = installed_version()
    with naming_faults():
        versions = client.run(installed_version, on_error="return")
    for address, worker_version in versions.items():
        if worker_version != client_version and not isinstance(
            worker_version, OSError
        ):  # an OSError: the worker has just died
            installed = (
                f"concordant {worker_version}"
                if isinstance(worker_version, str)
                else f"no concordant ({worker_version})"
            )
            problem = f"worker {address} has {installed}, and this process has {client_version}"
            raise ClusterError(problem, "install the same version on every machine.")


def installed_version() -> str:
    """Return the library's version."""
    import concordant

    return str(concordant.__version__)


@contextmanager
def naming_faults() -> Iterator[None]:
    """Turn Dask's errors about a failing cluster into named errors; our own errors pass unchanged."""
    distributed = import_distributed()
    from distributed.client import ClosedClientError, FutureCancelledError, FuturesCancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except ConcordantError:
        raise
    except distributed.scheduler.KilledWorker as error:
        hint = "it may need more memory than a worker has: use more or larger ones, or smaller row groups."
        raise ClusterError(f"every worker that held a part died ({error})", hint) from error
    except ClosedClientError as error:
        raise ClusterError(f"the client was closed ({error})", CHECKPOINT) from error
    except (FutureCancelledError, FuturesCancelledError, CommClosedError) as error:
        raise ClusterError(f"the scheduler is gone ({' '.join(str(error).split())})", CHECKPOINT) from error
    except distributed.TimeoutError as error:
        raise ClusterError("the cluster has no worker", "start workers: `dask worker ADDRESS`.") from error


def gather_results(client: Any, futures: Any, needed: Collection[str] = ()) -> Any:
    """Wait for futures (a list or a dict) and return their results; if no worker is left, wait for new ones.

    Workers at the addresses `needed` are not waited for: losing one of them is an error.
    """
    tasks, seconds = list(futures.values() if isinstance(futures, dict) else futures), LOOK
    with naming_faults():
        while True:
            wait_for_futures(client, tasks, needed)
            for future in tasks:  # of several errors report the first part's, whichever came first
                if future.status == "error":
                    raise copy_task_error(future).with_traceback(future.traceback())
            fetched = partial(client.gather, futures, asynchronous=True)
            try:
                return client.sync(fetched, callback_timeout=seconds)
            except (
                import_distributed().TimeoutError
            ):  # its worker may have died since, and the task is not done any more
                seconds *= 2.0


def copy_task_error(future: Any) -> BaseException:
    """Copy the exception of a task, so that Dask does not keep it.

    A raised exception has a traceback, whose frames reference the futures of all parts: if the client kept
    the exception, workers would hold the parts of a refused fit as long as the client lives.
    """
    error: BaseException = future.exception()
    try:
        return copy(error)
    except Exception:  # noqa: BLE001  # its constructor takes other arguments than its `args`
        future.release()
        return error


def wait_for_futures(
    client: Any, futures: Sequence[Any], needed: Collection[str] = (), until: str = "ALL_COMPLETED"
) -> None:
    """Wait until all futures, or the first ("FIRST_COMPLETED"), are done; see `gather_results`."""
    distributed, without_workers = import_distributed(), 0.0
    while True:
        started = time.monotonic()
        try:
            with client.as_current():  # need not be the default client, and there may be no default
                distributed.wait(list(futures), timeout=LOOK, return_when=until)
        except distributed.TimeoutError:
            if client.status == "running" and (workers := addresses(client)):
                refuse_loss(needed, workers)
                without_workers = 0.0
                continue
            without_workers += time.monotonic() - started
            if without_workers >= PATIENCE:
                raise ClusterError(
                    f"the cluster has had no worker for {without_workers:.0f} s", CHECKPOINT
                ) from None
        else:
            return


def addresses(client: Any) -> list[str]:
    """Return the sorted addresses of the workers."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def wait_for_workers(client: Any, number: int, patience: float) -> int:
    """Wait up to `patience` seconds for `number` workers; return how many there are."""
    with suppress(import_distributed().TimeoutError):
        client.wait_for_workers(number, timeout=patience)
    return len(addresses(client))


def refuse_loss(needed: Collection[str], workers: Collection[str]) -> None:
    """Raise WorkerLostError if a needed worker is gone."""
    if lost := sorted(set(needed) - set(workers)):
        raise WorkerLostError(f"worker {lost[0]} is gone, and the fit cannot go on without it")


def submit_task(client: Any, function: Job, *args: Any, **options: Any) -> Any:
    """Submit a call and return its future; every call is a separate task, never shared with another fit."""
    with naming_faults():
        return client.submit(function, *args, pure=False, **options)


# A cluster of worker processes on this machine.


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Start single-threaded worker processes and yield their client; they end with the block.

    The workers are new interpreters, so a script must call this under `if __name__ == "__main__":`.
    """
    distributed = import_distributed()
    with uninterrupted():
        cluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port: None means 8787, and a warning if that is taken
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,  # what matters becomes an error; closing is noisy
            preload=__name__,
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


def dask_setup(worker: Any) -> None:
    """Discard what libraries such as LightGBM print on a worker; Dask calls this when a worker starts."""
    del worker
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block Ctrl-C until the block has run; threads and processes started in it never receive it.

    A terminal sends Ctrl-C to all processes, and workers would die with tracebacks: we end them ourselves.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # started later by multiprocessing, it would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
