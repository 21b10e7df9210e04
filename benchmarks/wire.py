"""Bytes that the processes of a cluster write to one another, counted where they are written."""

from collections import Counter
from typing import Any

__all__ = ["KINDS", "counted", "moved"]

KINDS = (
    "client to scheduler",
    "scheduler to workers",
    "worker to worker",
    "workers to scheduler",
    "scheduler to client",
)
COUNTS: Counter[tuple[str, str]] = Counter()  # own address, other address -> bytes


def count() -> None:
    """From now on count what this process writes."""
    from distributed.comm.tcp import TCP

    if hasattr(TCP.write, "plain"):
        return
    plain = TCP.write

    async def write(comm: Any, *given: Any, **named: Any) -> int:
        size = await plain(comm, *given, **named)
        COUNTS[comm.local_address, comm.peer_address] += size
        return size

    write.plain = plain  # type: ignore[attr-defined]
    TCP.write = write


def so_far() -> dict[tuple[str, str], int]:
    """What this process wrote."""
    return dict(COUNTS)


def counted(client: Any) -> None:
    """Count in all processes of the cluster, whose scheduler is in this one."""
    count()
    client.run(count)


def moved(client: Any) -> dict[str, int]:
    """Bytes of each of `KINDS` so far."""
    scheduler = client.scheduler.address
    clients = {own for own, other in so_far() if other == scheduler}  # workers are in other processes
    found = dict.fromkeys(KINDS, 0)
    for (own, other), size in so_far().items():
        if other == scheduler:
            found["client to scheduler"] += size
        elif own == scheduler:
            found["scheduler to client" if other in clients else "scheduler to workers"] += size
    for counts in client.run(so_far).values():
        for (_, other), size in counts.items():
            found["workers to scheduler" if other == scheduler else "worker to worker"] += size
    return found
