"""A client for libraries that work on a Dask cluster by themselves: it waits for no worker that is gone."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from concordant.exceptions import ClusterError
from concordant.solvers.partitioned import cluster
from concordant.solvers.partitioned.cluster import (
    addresses,
    gathered,
    library,
    naming_faults,
    refuse_loss,
    waited,
)

__all__ = ["Attended", "announced", "heard", "is_abandoned", "own_threads"]

GRACE, SOON = 10.0, 0.1  # seconds until who does not leave a fit is started anew; and between two looks
MOMENT = 2.0  # seconds within which errors of one failure come in
ABANDONED: set[str] = set()  # fits that this worker is to leave


class Attended:
    """A client as `lightgbm.dask` uses it: parts stay where they are, in their order; waiting has an end.

    LightGBM would number the workers, and put the parts of each together, in an order that chance decides.

    Parameters
    ----------
    client
        What does the work.
    places
        Address of the worker that has each part.
    around
        `around(task, *given, **named)` does a task of the library's, on a worker.
    is_echo
        Whether an error may say no more than that another worker failed.
    """

    def __init__(
        self,
        client: Any,
        places: Sequence[str],
        around: Callable[..., Any],
        is_echo: Callable[[BaseException], bool],
    ) -> None:
        self.client, self.places, self.needed = client, places, frozenset(places)
        self.around, self.is_echo = around, is_echo
        self.parts: list[Any] = []
        self.tasks: list[Any] = []
        self.lost: frozenset[str] = frozenset()
        self.machines = ""  # ends of the links between the workers: "host:port,host:port"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def compute(self, parts: Sequence[Any]) -> list[Any]:
        """Begin with each part at its place, and wait for them."""
        pairs = zip(parts, self.places, strict=True)
        self.parts = [self.client.compute(part, workers=[place]) for part, place in pairs]
        waited(self.client, self.parts, self.needed)
        for future in self.parts:
            if future.status == "error":
                future.result()
        return self.parts

    def who_has(self, futures: Sequence[Any]) -> dict[Any, list[str]]:
        """Give the place of each part, in their order."""
        refuse_loss(self.needed, addresses(self.client))
        return {future.key: [place] for future, place in zip(futures, self.places, strict=True)}

    def submit(self, *given: Any, **named: Any) -> Any:
        """Begin a task, and remember it."""
        self.machines = named.get("machines", self.machines)
        self.tasks.append(self.client.submit(self.around, *given, **named))
        return self.tasks[-1]

    def gather(self, futures: Any) -> Any:
        """Wait for tasks that wait for one another: the first that fails is the end."""
        pending = list(futures.values()) if isinstance(futures, dict) else list(futures)
        while pending:
            waited(self.client, pending, self.needed, "FIRST_COMPLETED")
            if any(one.status not in ("pending", "finished") for one in pending):
                return self.client.gather([self.cause(pending)])
            pending = [one for one in pending if one.status == "pending"]
        return gathered(self.client, futures, self.needed)

    def cause(self, tasks: Sequence[Any]) -> Any:
        """Give the task whose failure made others fail; their errors may be here first, so wait a moment."""
        until = time.monotonic() + MOMENT
        while True:
            failed = [one for one in tasks if one.status not in ("pending", "finished")]
            causes = [one for one in failed if one.status != "error" or not self.is_echo(one.exception())]
            if causes or len(failed) == len(tasks) or time.monotonic() > until:
                return (causes or failed)[0]
            time.sleep(SOON)

    @contextmanager
    def fitting(self, fit: str) -> Iterator[None]:
        """Where a fit of this name fails, or is interrupted, make the workers leave it."""
        over = Event()
        attending = Thread(target=self.attend, args=(over,), name="concordant-attend", daemon=True)
        attending.start()
        try:
            with naming_faults(), self.client.as_current():
                yield
        except BaseException as error:
            with suppress(Exception):  # the first error is the one to tell
                self.leave(fit)
            if self.lost and isinstance(error, ClusterError):  # which says that tasks were cancelled
                refuse_loss(self.lost, ())
            raise
        finally:
            over.set()
            attending.join()

    def attend(self, over: Event) -> None:
        """Cancel everything where a worker is lost: the library may wait by itself, and then for ever."""
        while not (self.lost or over.wait(cluster.LOOK)):
            with suppress(Exception):  # of a cluster that is gone: others tell
                self.lost = self.needed - set(addresses(self.client))
                if self.lost:
                    self.client.cancel([*self.parts, *self.tasks], force=True)

    def leave(self, fit: str) -> None:
        """Make the workers leave a fit; who cannot, since he waits for a link to be made, is started anew."""
        keys, busy = {task.key for task in self.tasks}, sorted(self.needed & set(addresses(self.client)))
        self.client.cancel(self.tasks)
        until = time.monotonic() + GRACE
        while busy and time.monotonic() < until:
            found = self.client.run(abandon, fit, self.machines, keys, workers=busy, on_error="return")
            busy = [address for address, working in found.items() if working]
            time.sleep(SOON)
        if busy:
            self.client.restart_workers(busy, raise_for_error=False)


def abandon(fit: str, machines: str, keys: set[Any], dask_worker: Any) -> bool:
    """Leave a fit, on a worker; whether it still works on one of these tasks."""
    ABANDONED.add(fit)
    cut_links({(host, int(port)) for host, port in (one.split(":") for one in machines.split(",") if one)})
    return not keys.isdisjoint(dask_worker.active_keys)


def is_abandoned(fit: str) -> bool:
    """Whether this worker is to leave a fit."""
    return fit in ABANDONED


def cut_links(ends: set[tuple[str, int]]) -> int:
    """Make this process's connections from and to these addresses fail at their next use; how many.

    Who waits at one is woken by the shutdown. A library that takes its end for a pause, and tries again, then
    finds no socket there. The numbers of the files stay taken, for the library to close.
    """
    links = [number for number in open_sockets() if ends & ends_of(number)]  # before any is cut
    for number in links:
        with suppress(OSError), linked(number) as link:
            link.shutdown(socket.SHUT_RDWR)
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), number)
    return len(links)


def open_sockets() -> list[int]:
    """Give the numbers of those of this process's open files that are sockets, where the system tells."""
    found, table = [], Path("/dev/fd")
    for number in [int(one.name) for one in table.iterdir()] if table.exists() else []:
        with suppress(OSError):  # of the table itself, which is closed now
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                found.append(number)
    return found


def ends_of(number: int) -> set[Any]:
    """Give both addresses of a connection; nothing of other sockets."""
    with suppress(OSError), linked(number) as link:
        return {link.getsockname(), link.getpeername()}
    return set()


def linked(number: int) -> socket.socket:
    """Give an open socket as an object; it stays open when that is closed."""
    return socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)


def own_threads() -> int:
    """Give the number of threads of the worker that this is called on."""
    return int(library().get_worker().state.nthreads)


def announced(topic: str, message: Any, address: str) -> None:
    """Say something to the client that listens, if this is the worker at that address."""
    worker = library().get_worker()
    if worker.address == address:
        worker.log_event(topic, message)


@contextmanager
def heard(client: Any, topic: str, told: Callable[[Any], object]) -> Iterator[None]:
    """Hear what workers say."""
    client.subscribe_topic(topic, lambda event: told(event[1]))
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)
