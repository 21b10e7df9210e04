"""Pairs in parts, for tests: scans of parts in memory, and holders of parts that remember nothing."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from concordant.comparisons.machines.machine_part import MarginPart
from concordant.scale.parts import tree_sum
from concordant.scale.scan.pair_scan import PairRows, PairScan
from tests.helpers.parted import moved

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
    """Build a scan that is cut at these rows; two equal cuts leave an empty part."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    rows = zip(*(np.split(array, cuts) for array in (pairs, y, weight)), strict=True)
    parts = tuple(MemoryPairs(number, PairRows(*columns)) for number, columns in enumerate(rows))
    return PairScan(parts, tuple(f"x{k}" for k in range(pairs.shape[2])), 2**40)


class Rows(MarginPart):
    """A part of a problem of which nothing is asked but its rows."""

    def __init__(self, number, rows):
        super().__init__(number)
        self.rows = rows

    def make(self, problem_spec):  # noqa: ARG002
        return self.rows


class Only:
    """The only problem there is."""

    key = "only"


sent = partial(moved, writeable=True)


class Held:
    """Parts held by one that forgets: before each job a part is loaded anew, the last part first."""

    def __init__(self, parts, *, forgets=False):
        self.parts, self.forgets, self.jobs = parts, forgets, []

    @property
    def n_parts(self):
        return len(self.parts)

    def each(self, job, *arguments):
        self.jobs.append(job.__name__)
        if not self.forgets:
            return [job(part, *arguments) for part in self.parts]
        results = [sent(job(sent(part), *sent(arguments))) for part in reversed(self.parts)]
        return results[::-1]

    def total(self, job, *arguments):
        return tree_sum(self.each(job, *arguments))


class Losing(Held):
    """Loses the last part of each sum."""

    def total(self, job, *arguments):
        return tree_sum(self.each(job, *arguments)[:-1])
