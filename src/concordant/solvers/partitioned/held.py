"""A part in the memory of a worker; when it is moved, what it was made of is, and it is made again."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np

from concordant._segments import one_kernel_thread
from concordant.solvers.partitioned.parts import Job, Prepare
from concordant.supervision.scans.scan import Part

__all__ = ["HeldPart", "done", "prepared"]


class HeldPart:
    """What jobs work on, and what it was made of.

    Arrays that come from another process may be read-only, and lie where numbers do not begin: kernels would
    be compiled anew for them, and sums come out otherwise. So a part that is moved is made again.

    Parameters
    ----------
    prepare, part, own
        As of `Parts`.
    rows
        Of the part; None: they are read here.
    """

    def __init__(self, prepare: Prepare[Any], part: Part, rows: Any, own: Any) -> None:
        self.recipe, self.rows = (prepare, part, settled(own)), settled(rows)
        given = part.read() if rows is None else self.rows
        with one_kernel_thread():
            self.value = prepare(part, given, self.recipe[2])

    def __reduce__(self) -> tuple[Any, ...]:
        prepare, part, own = self.recipe
        return HeldPart, (prepare, part, self.rows, own)

    def __sizeof__(self) -> int:
        # By which Dask decides what moves to what: it does not look inside.
        return sys.getsizeof(self.value)


def settled(value: Any) -> Any:
    """Give a value whose arrays lie where numbers begin, itself if they do.

    >>> crooked = np.frombuffer(bytes(9), dtype=np.uint8)[1:].view(np.float64)
    >>> crooked.flags.aligned, settled({"w": crooked})["w"].flags.aligned
    (False, True)
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    parts = value.values() if isinstance(value, dict) else vars(value).values() if is_record(value) else ()
    if all(settled(part) is part for part in parts):
        return value
    return pickle.loads(pickle.dumps(value, protocol=4))  # noqa: S301  in one piece, made a line ago


def is_record(value: Any) -> bool:
    """Whether it is an object with fields of its own."""
    return hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value)


def prepared(prepare: Prepare[Any], part: Part, rows: Any, own: Any) -> HeldPart:
    """Read a part, unless its rows are given, and prepare it; on a worker."""
    return HeldPart(prepare, part, rows, own)


def done(job: Job, held: Any, *given: Any) -> Any:
    """Do a job on one part; on a worker, which has a thread for each task."""
    value = held.value if isinstance(held, HeldPart) else held
    with one_kernel_thread():
        return job(value, *(settled(one) if isinstance(one, np.ndarray) else one for one in given))
