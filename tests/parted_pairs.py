"""Pairs in parts, for tests: scans of parts in memory, and holders of parts that remember nothing."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from concordant.solvers.partitioned.margin_part import MarginPart
from concordant.solvers.partitioned.tree import tree_sum
from concordant.supervision.scans.pairs import PairRows, PairScan
from parted import moved

READS = []  # numbers of parts, in the order of reading


@dataclass(eq=False)
class MemoryPairs:
    """Pairs that are there already; readings are noted."""

    number: int
    rows: PairRows

    @property
    def name(self):
        return f"part {self.number}"

    @property
    def n_rows(self):
        return len(self.rows.y)

    @property
    def nbytes(self):
        return self.rows.pairs.nbytes

    def where(self, row):
        return self.name, row

    def read(self):
        READS.append(self.number)
        return self.rows


def pair_scan(pairs, y, weight=None, cuts=()):
    """Give a scan that is cut at these rows; two equal cuts leave an empty part."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    rows = zip(*(np.split(one, cuts) for one in (pairs, y, weight)), strict=True)
    parts = tuple(MemoryPairs(number, PairRows(*own)) for number, own in enumerate(rows))
    return PairScan(parts, tuple(f"x{k}" for k in range(pairs.shape[2])), 2**40)


class Rows(MarginPart):
    """A part of a problem of which nothing is asked but its rows."""

    def __init__(self, number, rows):
        super().__init__(number)
        self.rows = rows

    def make(self, which):  # noqa: ARG002
        return self.rows


class Only:
    """The only problem there is."""

    key = "only"


sent = partial(moved, writeable=True)


class Held:
    """Parts held by one that forgets: before each job a part is loaded anew, the last part first."""

    def __init__(self, held, *, forgets=False):
        self.held, self.forgets, self.jobs = held, forgets, []

    @property
    def n_parts(self):
        return len(self.held)

    def each(self, job, *given):
        self.jobs.append(job.__name__)
        if not self.forgets:
            return [job(held, *given) for held in self.held]
        found = [sent(job(sent(held), *sent(given))) for held in reversed(self.held)]
        return found[::-1]

    def total(self, job, *given):
        return tree_sum(self.each(job, *given))


class Losing(Held):
    """Loses the last part of each sum."""

    def total(self, job, *given):
        return tree_sum(self.each(job, *given)[:-1])
