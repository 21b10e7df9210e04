"""A Dask cluster: its client, and waiting for what its workers do."""

from __future__ import annotations

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
from concordant.solvers.partitioned.parts import Job

__all__ = [
    "addresses",
    "checked_client",
    "connected",
    "gathered",
    "is_collection",
    "library",
    "naming_faults",
    "refuse_loss",
    "returned",
    "submitted",
    "waited",
]

LOOK, PATIENCE = 5.0, 60.0  # seconds between looks at the workers, and without any before it is given up
CHECKPOINT = "with checkpoint=FOLDER the same fit goes on where it was, on any cluster."


def is_collection(value: Any) -> bool:
    """Whether this is a collection of Dask's, which need not be installed."""
    return hasattr(value, "__dask_graph__")


def library() -> Any:
    """Import `distributed`."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("distributed", "dask", "a cluster") from error
    return distributed


def connected(address: str, timeout: float = 10.0) -> Any:
    """Give a client of the scheduler at this address; one that cannot be reached is a named error."""
    distributed = library()
    try:
        return distributed.Client(address, timeout=timeout)
    except (OSError, ValueError, TypeError) as error:
        hint = "start one by `dask scheduler` and `dask worker ADDRESS`, or use a local cluster."
        raise ClusterError(
            f"no scheduler answers at {address!r} ({' '.join(str(error).split())})", hint
        ) from error


def checked_client(client: Any) -> Any:
    """Give a client that can be used, the current one if none is given; its workers have this version."""
    distributed = library()
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            hint = "make one first: client = distributed.Client(...), and pass it: fit(..., client=client)."
            raise ClusterError("Dask collections need a client, and there is none", hint) from error
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ParameterError("client", client, "a distributed.Client, not an asynchronous one")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}", "make a new one: distributed.Client(address).")
    refuse_strange(client)
    return client


def refuse_strange(client: Any) -> None:
    """Refuse workers that lack this library, or have another version of it."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        with naming_faults():
            client.wait_for_workers(1, timeout=PATIENCE)
    own = version()
    with naming_faults():
        found = client.run(version, on_error="return")
    for address, seen in found.items():
        if seen != own and not isinstance(seen, OSError):  # such a worker has just died
            said = f"concordant {seen}" if isinstance(seen, str) else f"no concordant ({seen})"
            problem = f"worker {address} has {said}, and this process has {own}"
            raise ClusterError(problem, "install the same version on every machine.")


def version() -> str:
    """Give the library's version."""
    import concordant

    return str(concordant.__version__)


@contextmanager
def naming_faults() -> Iterator[None]:
    """What Dask says of a cluster that fails becomes a named error; ours come through as they are."""
    distributed = library()
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


def gathered(client: Any, futures: Any, needed: Collection[str] = ()) -> Any:
    """Wait for futures, a list or a dict; what they are. Where no worker is left, one is waited for a while.

    Workers at the addresses `needed` are not: without one of them it is given up.
    """
    tasks, seconds = list(futures.values() if isinstance(futures, dict) else futures), LOOK
    with naming_faults():
        while True:
            waited(client, tasks, needed)
            for future in tasks:  # of several faults the first part's, whichever was found first
                if future.status == "error":
                    raise own_error(future).with_traceback(future.traceback())
            fetched = partial(client.gather, futures, asynchronous=True)
            try:
                return client.sync(fetched, callback_timeout=seconds)
            except library().TimeoutError:  # its worker may have died since: then it is not done any more
                seconds *= 2.0


def own_error(future: Any) -> BaseException:
    """Give what a task raised, as an error that Dask does not keep.

    What is raised gets a traceback, that has frames, and these have the futures of all parts: if the client
    had it, workers would hold the parts of a refused fit as long as the client is there.
    """
    error: BaseException = future.exception()
    try:
        return copy(error)
    except Exception:  # noqa: BLE001  # it wants other arguments than it says it was made of
        future.release()
        return error


def waited(
    client: Any, futures: Sequence[Any], needed: Collection[str] = (), until: str = "ALL_COMPLETED"
) -> None:
    """Wait until all futures, or the first ("FIRST_COMPLETED"), are done; as `gathered` does."""
    distributed, alone = library(), 0.0
    while True:
        begun = time.monotonic()
        try:
            with client.as_current():  # which need not be the default one, nor need there be one
                distributed.wait(list(futures), timeout=LOOK, return_when=until)
        except distributed.TimeoutError:
            if client.status == "running" and (workers := addresses(client)):
                refuse_loss(needed, workers)
                alone = 0.0
                continue
            alone += time.monotonic() - begun
            if alone >= PATIENCE:
                raise ClusterError(f"no worker is left, for {alone:.0f} s", CHECKPOINT) from None
        else:
            return


def addresses(client: Any) -> list[str]:
    """Give the addresses of the workers, in order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def returned(client: Any, number: int, patience: float) -> int:
    """Wait until there are so many workers again, for a while; how many there are."""
    with suppress(library().TimeoutError):
        client.wait_for_workers(number, timeout=patience)
    return len(addresses(client))


def refuse_loss(needed: Collection[str], workers: Collection[str]) -> None:
    """Refuse to go on where a worker is gone that is needed."""
    if lost := sorted(set(needed) - set(workers)):
        raise WorkerLostError(f"worker {lost[0]} is gone, and the fit cannot go on without it")


def submitted(client: Any, function: Job, *given: Any, **how: Any) -> Any:
    """Give the future of a call; each is a task of its own: no other fit's is taken for it."""
    with naming_faults():
        return client.submit(function, *given, pure=False, **how)
