"""Files that are almost right, put to readers: each is refused by name, or read soundly, and soon."""

import signal
from contextlib import contextmanager

import numpy as np

from tests.contracts.mutations import mutated
from tests.contracts.outcomes import BROKEN, REFUSED, Outcome, tried

SECONDS = 5  # that one small file may take


class TooLong(BaseException):  # no Exception: nothing may catch it on the way
    """A reader did not come back."""


@contextmanager
def limited(seconds=SECONDS):
    """Raise where it takes longer, if the system has signals."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_number, _frame):
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read_outcome(reader, path, contents, seconds=SECONDS):
    """What became of one file."""
    path.write_bytes(contents)
    try:
        with limited(seconds):
            outcome = tried(lambda: reader.read(path), sound=reader.sound)
    except TooLong:
        return Outcome(BROKEN, f"not read within {seconds} s")
    except MemoryError:
        return Outcome(BROKEN, "MemoryError")
    if (
        outcome.kind == BROKEN
        and outcome.message.startswith(("OSError", "BadGzipFile"))
        and str(path) in outcome.message
    ):
        return Outcome(REFUSED, outcome.message)  # a file that cannot be decompressed is named so
    return outcome


def fuzzed(reader, folder, seed, n):
    """Contents and outcome of n files, always the same ones for a seed."""
    rng = np.random.default_rng(seed)
    path = folder / f"file{reader.suffix}"
    for _ in range(n):
        start = reader.seeds[int(rng.integers(len(reader.seeds)))]
        contents = mutated(start, rng, reader.seeds)
        yield contents, read_outcome(reader, path, contents)
