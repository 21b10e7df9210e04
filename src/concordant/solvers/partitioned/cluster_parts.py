"""Parts held in memory by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import count
from typing import Any, Self, cast

from concordant.solvers.partitioned.cluster import gathered, naming_faults, submitted
from concordant.solvers.partitioned.held import HeldPart, done, prepared
from concordant.solvers.partitioned.parts import Job, Parts, Prepare, StreamedParts
from concordant.solvers.partitioned.tree import FAN, Merge, Tree, added
from concordant.supervision.scans.scan import Part
from concordant.types import FloatArray

__all__ = ["ClusterParts", "anew"]

ALL = slice(None)
TURNS = 4  # parts for each thread between two writings, so that few wait for the slowest


class ClusterParts:
    """Parts that workers keep in memory; one that is lost with its worker is read and prepared elsewhere.

    Each gradient sends the weights to where the parts are; sums of eight, of eights of these, and so on are
    taken there. They have the same bits on any number of workers.

    Parameters
    ----------
    client
        Of the cluster.
    parts
        What is read there; or, with `rows`, only what its pieces are called.
    prepare, own
        As of `StreamedParts`.
    rows
        Futures of the parts' rows, where workers have them already.
    places
        Address of the worker that each part must be held by; if one is lost, that is the end. None: any.
    """

    def __init__(
        self,
        client: Any,
        parts: Sequence[Part],
        prepare: Prepare[Any],
        own: Sequence[Any],
        rows: Sequence[Any] | None = None,
        places: Sequence[str] | None = None,
    ) -> None:
        self.client, self.needed = client, frozenset(places or ())
        read: Sequence[Any] = [None] * len(parts) if rows is None else rows
        self.places: Sequence[str | None] = [None] * len(parts) if places is None else places
        self.held = [
            self.submitted(prepared, prepare, *given, place=place)
            for *given, place in zip(parts, read, own, self.places, strict=True)
        ]

    @property
    def n_parts(self) -> int:
        """How many there are."""
        return len(self.held)

    def submitted(self, function: Job, *given: Any, priority: int = 0, place: str | None = None) -> Any:
        """Give the future of a call."""
        return submitted(self.client, function, *given, priority=priority, workers=place)

    def begun(self, job: Job, *given: Any, some: slice = ALL) -> list[Any]:
        """Begin the job on every part, or on some of them, where they are."""
        parts = zip(self.held[some], self.places[some], strict=True)
        return [self.submitted(done, job, held, *given, place=place) for held, place in parts]

    def made(self, job: Job, *given: Any) -> Self:
        """Give the parts as the job makes them, each where it was."""
        found = copy(self)
        found.held = self.begun(job, *given)
        return found

    def again(self, prepare: Prepare[Any], own: Sequence[Any]) -> Self:
        """Give the parts as prepared in another way, of the rows that workers have."""
        found = copy(self)
        given = zip(self.held, own, self.places, strict=True)
        found.held = [self.submitted(prepared_again, *held, prepare, place=place) for *held, place in given]
        return found

    def shared(self, value: Any) -> Any:
        """Send it to one worker, from which others have it; a lost one is sent again."""
        return self.submitted(same, value)

    def each(self, job: Job, *given: Any) -> list[Any]:
        """Do the job on every part, where it is; what it gives, in their order."""
        found: list[Any] = gathered(self.client, self.begun(job, *given), self.needed)
        return found

    def total(self, job: Job, *given: Any) -> FloatArray:
        """Add up what the job gives, by a tree of tasks; one array comes back."""
        total: FloatArray = self.merged(Tree(added), job, *given)
        return total

    def merged(self, tree: Tree, job: Job, *given: Any) -> Any:
        """Merge what the job gives, by a tree of tasks; some parts at a time, if that is written down."""
        while tree.done < self.n_parts:
            level = tree.level(self.highest(kept=tree.kept is not None))
            some = slice(tree.done, min(tree.done + FAN**level, self.n_parts))
            tree.add(self.subtree(tree.merge, some, job, *given), level, some.stop - some.start)
        return tree.whole()

    def subtree(self, merge: Merge, some: slice, job: Job, *given: Any) -> Any:
        """Merge by eights, the eights by eights, and so on; at once, so that few results wait for it."""
        futures, height = self.begun(job, *given, some=some), 0
        while len(futures) > 1:
            height += 1
            groups = [futures[start : start + FAN] for start in range(0, len(futures), FAN)]
            futures = [self.submitted(merge, *group, priority=height) for group in groups]
        return gathered(self.client, futures, self.needed)[0]

    def highest(self, *, kept: bool) -> int:
        """Level at which all parts are one, or those that are worked on between two writings."""
        enough = self.n_parts
        if kept:
            with naming_faults():
                enough = min(enough, TURNS * sum(self.client.nthreads().values()))
        return next(level for level in count() if FAN**level >= enough)


def same(value: Any) -> Any:
    """Give a value back."""
    return value


def prepared_again(held: HeldPart, own: Any, prepare: Prepare[Any]) -> HeldPart:
    """Prepare a part in another way; on a worker."""
    _, part, _ = held.recipe
    return HeldPart(prepare, part, held.rows, own)


def anew(parts: Parts, prepare: Prepare[Any], own: Sequence[Any]) -> Parts:
    """Give parts as prepared in another way: read so from now on, or made so by workers that have them."""
    if isinstance(parts, ClusterParts):
        return parts.again(prepare, own)
    return StreamedParts(cast("StreamedParts[Any]", parts).parts, prepare, own)
