"""A cluster of worker processes on this machine."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from concordant.solvers.partitioned.cluster import library

__all__ = ["dask_setup", "local_cluster"]


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Give a client of single-threaded worker processes, which are started here and end with the block.

    They are new interpreters, so a script that calls this does so under `if __name__ == "__main__":`.
    """
    distributed = library()
    with uninterrupted():
        cluster = distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port: None is 8787, and a warning where that is taken
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,  # what matters becomes an error here; closing is noisy
            preload=__name__,
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


def dask_setup(worker: Any) -> None:
    """Keep what libraries print on a worker, as LightGBM does, out of our output; Dask calls this there."""
    del worker
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block has run; threads and processes that it starts never see one.

    A terminal tells all processes of Ctrl-C, and workers would die with tracebacks: we end them ourselves.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # where multiprocessing starts it later, it lets Ctrl-C in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
