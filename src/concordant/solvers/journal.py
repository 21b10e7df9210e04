"""Journal: results of a solver's expensive steps, one after the other, in a file that only grows.

A solver that is called again as before asks the same questions in the same order. It is given the answers
from the journal, without a look at the data, until they end; from there on it works, and writes down. What
it keeps inside (as scipy's L-BFGS does) need not be known. Each record has a checksum. One that was cut off,
by a kill while it was written, is dropped and found anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from concordant.exceptions import ModelFileError
from concordant.solvers.checkpoint import ANEW, JOURNAL, Checkpoint, digest, named_errors
from concordant.types import FloatArray

__all__ = ["Journal", "Numbers", "asked", "recalled"]

Numbers = Sequence[Any]
"""Numbers and arrays of them, which are kept as doubles."""

MAGIC = b"concordant journal 1\n"
LENGTH, CHECKSUM = struct.Struct("<Q"), 16
HEAD = LENGTH.size + CHECKSUM
STRANGE = "its steps are not those of this fit: other versions of libraries, or another machine, wrote it"


class Journal:
    """The records of one solver, which are read first and then added to; a context in which the file is open.

    Parameters
    ----------
    checkpoint
        Of the fit.
    part
        Which of the fits within it; empty: the whole, or what its parts have found.
    """

    def __init__(self, checkpoint: Checkpoint, part: str = "") -> None:
        self.checkpoint, self.part = checkpoint, part
        self.path: Path = checkpoint.folder / (f"{part}.journal" if part else JOURNAL)
        self.stream: BinaryIO | None = None
        self.kept = ExitStack()  # the file, and the folder's lock
        self.size, self.ended = 0, False

    def __enter__(self) -> Self:
        with ExitStack() as kept:
            if not self.part:
                kept.enter_context(self.checkpoint.held(JOURNAL))
            with named_errors(self.path, "opened"):
                self.stream = kept.enter_context(self.path.open("a+b", buffering=0))
            self.begin(self.stream)
            self.kept = kept.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stream = None
        self.kept.close()

    def begin(self, stream: BinaryIO) -> None:
        """Read what the journal is of; a new one, or one cut off before it says, is begun."""
        with named_errors(self.path, "read"):
            self.size = os.fstat(stream.fileno()).st_size
            stream.seek(0)
            magic = stream.read(len(MAGIC))
        if not MAGIC.startswith(magic):
            raise ModelFileError(self.path, "this is no journal that this version reads", ANEW)
        facts = {**self.checkpoint.facts, "part": self.part}
        found = self.read() if magic == MAGIC else None
        if found is None:
            with named_errors(self.path, "written"):
                stream.truncate(0)
                if not self.part:
                    self.clear()
            self.add(MAGIC + framed(json.dumps(facts).encode() + b"\n"))
            self.ended = True
            return
        self.checkpoint.check(self.path, found[0])
        if found[0].get("part") != self.part:
            raise ModelFileError(self.path, "it is of another part of the fit", ANEW)

    def read(self) -> tuple[dict[str, Any], bytes] | None:
        """Give the next record: facts and numbers. None where none is whole: the rest is then cut off."""
        stream = self.opened()
        if self.ended:
            return None
        with named_errors(self.path, "read"):
            start = stream.tell()
            head = stream.read(HEAD)
            (length,) = LENGTH.unpack(head[: LENGTH.size]) if len(head) == HEAD else (0,)
            if len(head) < HEAD or length > self.size - start - HEAD:
                stream.truncate(start)
                self.ended = True
                return None
            payload = stream.read(length)
        if checksum(head[: LENGTH.size], payload) != head[LENGTH.size :]:
            raise ModelFileError(self.path, "a checksum in it is wrong: it is damaged", ANEW)
        facts, _, numbers = payload.partition(b"\n")
        with suppress(ValueError):
            found = json.loads(facts)
            if isinstance(found, dict):
                return found, numbers
        raise ModelFileError(self.path, "a record in it cannot be read", ANEW)

    def recall(self, step: str) -> list[FloatArray] | None:
        """Give the result of a step, as doubles, where the journal has it; None: it is to be found now."""
        if (found := self.read()) is None:
            return None
        facts, numbers = found
        if facts.get("step") != step:
            raise ModelFileError(self.path, STRANGE, ANEW)
        try:
            values = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
            cuts = np.cumsum([math.prod(shape) for shape in facts["shapes"]])[:-1]
            parts = np.split(values, cuts)
            return [part.reshape(shape) for part, shape in zip(parts, facts["shapes"], strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(self.path, "a record in it cannot be read", ANEW) from error

    def append(self, step: str, result: Numbers) -> None:
        """Write the result of a step down."""
        parts = [np.asarray(part, dtype="<f8") for part in result]
        facts = {"step": step, "shapes": [part.shape for part in parts]}
        self.add(framed(b"\n".join((json.dumps(facts).encode(), b"".join(map(np.ndarray.tobytes, parts))))))

    def add(self, record: bytes) -> None:
        """Write at the end, at once."""
        stream = self.opened()
        with named_errors(self.path, "written"):
            done = 0
            while done < len(record):  # mostly once: a write may stop short, where the disk is nearly full
                done += stream.write(record[done:]) or 0

    def opened(self) -> BinaryIO:
        """The file, which must be open."""
        if self.stream is None:
            raise ModelFileError(self.path, "it is not open")
        return self.stream

    def clear(self) -> None:
        """Remove journals of parts: where the whole is begun, they are of a fit that nobody goes on with."""
        for path in self.checkpoint.folder.glob("*.journal"):
            if path == self.path or not path.is_file():
                continue
            with path.open("rb") as stream:
                ours = stream.read(len(MAGIC)) == MAGIC
            if ours:
                path.unlink()

    def within(self, part: str) -> Journal:
        """Give the journal of a fit within this one, which is still to be opened."""
        return Journal(self.checkpoint, part)

    def forget(self, part: str) -> None:
        """Remove the journal of a fit within this one, whose result has been written down."""
        with named_errors(self.path, "cleared"):
            self.within(part).path.unlink(missing_ok=True)


def recalled(
    journal: Journal | None, kind: str, given: Numbers, work: Callable[[], Numbers]
) -> tuple[list[Any], bool]:
    """Give the result of a step, and whether it was recalled: else it was found now, and written down.

    Without a journal nothing is written, and the result is what the work gives.
    """
    if journal is None:
        return list(work()), False
    step = asked(kind, given)  # before the work, which may change what it is given
    if (found := journal.recall(step)) is not None:
        return list(found), True
    result = work()
    journal.append(step, result)
    return list(result), False


def asked(kind: str, given: Numbers) -> str:
    """Give what tells a step from others: its kind, and a digest of what it was given."""
    return f"{kind} {digest(*(np.asarray(part, dtype='<f8') for part in given))}"


def framed(payload: bytes) -> bytes:
    """Put length and checksum before a record."""
    length = LENGTH.pack(len(payload))
    return length + checksum(length, payload) + payload


def checksum(length: bytes, payload: bytes) -> bytes:
    """Of a record."""
    found = hashlib.blake2b(length, digest_size=CHECKSUM)
    found.update(payload)
    return found.digest()
