"""The peers, each called as its users do."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from benchmarks.shared.timing import watched

Data = TypeVar("Data")
Peer = TypeVar("Peer")


def build_installed(builders: Iterable[Callable[[Data], Peer]], data: Data) -> tuple[list[Peer], list[str]]:
    """Peers that are installed, with what they need, and the names of those that are not."""
    peers, absent = [], []
    for builder in watched(builders, "building what the peers need"):
        try:
            peers.append(builder(data))
        except ImportError:
            absent.append(builder.__name__)
    return peers, absent
