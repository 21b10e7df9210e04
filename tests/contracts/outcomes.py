"""What became of a call: refused by name, accepted with a sound result, or broken."""

import numbers
import re
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from concordant import ConcordantError

REFUSED, ACCEPTED, BROKEN = "refused", "accepted", "broken"


@dataclass(frozen=True)
class Outcome:
    """`kind` is one of the three; `message` the error's first line, or what is wrong with the result."""

    kind: str
    message: str


def tried(call, names="", sound=None):
    """Call, and judge: an error must be named, and its message match `names`; a result must be sound.

    Advice (UserWarning) is no fault; what numpy says of overflow and invalid values is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            result = call()
        except Exception as error:  # which one it is, is what is judged
            if isinstance(error, MemoryError) and not isinstance(error, ConcordantError):
                raise
            return judged(error, names)
    problem = (sound or unsound)(result)
    return Outcome(BROKEN, f"accepted, but {problem}") if problem else Outcome(ACCEPTED, "")


def judged(error, names=""):
    """Refused, if the error is one of ours, and speaks of what was wrong."""
    line = f"{type(error).__name__}: {str(error).strip()}"
    if not (isinstance(error, ConcordantError) and str(error)):
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(BROKEN, f"{line.partition(chr(10))[0]} (at {where.filename}:{where.lineno})")
    if names and not re.search(names, str(error)):
        return Outcome(BROKEN, f"the message does not match {names!r}: {line.partition(chr(10))[0]}")
    return Outcome(REFUSED, line.partition("\n")[0])


def unsound(result):
    """What is wrong with a result: a number that is none, anywhere in it; empty where nothing is."""
    if isinstance(result, np.ndarray):
        bad = result.dtype.kind in "fc" and not np.isfinite(result).all()
        return f"an array holds {result[~np.isfinite(result)][0]}" if bad else ""
    if isinstance(result, numbers.Real):
        return "" if np.isfinite(float(result)) else f"it is {result!r}"
    if isinstance(result, Mapping):
        parts = result.values()
    elif isinstance(result, (list, tuple)):
        parts = result
    elif is_dataclass(result) and not isinstance(result, type):
        parts = [getattr(result, part.name) for part in fields(result)]
    else:
        parts = ()
    return next(filter(None, map(unsound, parts)), "")
