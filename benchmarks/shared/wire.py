"""Bytes that the processes of a cluster write to one another, counted where they are written."""

from collections import Counter
from typing import Any

KINDS = (
    "client to scheduler",
    "scheduler to workers",
    "worker to worker",
    "workers to scheduler",
    "scheduler to client",
)
COUNTS: Counter[tuple[str, str]] = Counter()  # own address, other address -> bytes


def _count() -> None:
    """From now on count what this process writes."""
    from distributed.comm.tcp import TCP

    if hasattr(TCP.write, "plain"):
        return
    plain = TCP.write

    async def write(comm: Any, *arguments: Any, **named: Any) -> int:
        size = await plain(comm, *arguments, **named)
        COUNTS[comm.local_address, comm.peer_address] += size
        return size

    write.plain = plain  # type: ignore[attr-defined]
    TCP.write = write


def _so_far() -> dict[tuple[str, str], int]:
    """Bytes that this process has written."""
    return dict(COUNTS)


def count_on_cluster(client: Any) -> None:
    """Count in all processes of the cluster, whose scheduler is in this one."""
    _count()
    client.run(_count)


def moved(client: Any) -> dict[str, int]:
    """Bytes of each of `KINDS` so far."""
    scheduler = client.scheduler.address
    clients = {local for local, other in _so_far() if other == scheduler}  # workers are in other processes
    totals = dict.fromkeys(KINDS, 0)
    for (local, other), size in _so_far().items():
        if other == scheduler:
            totals["client to scheduler"] += size
        elif local == scheduler:
            totals["scheduler to client" if other in clients else "scheduler to workers"] += size
    for counts in client.run(_so_far).values():
        for (_, other), size in counts.items():
            totals["workers to scheduler" if other == scheduler else "worker to worker"] += size
    return totals
