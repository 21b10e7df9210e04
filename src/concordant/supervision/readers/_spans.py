"""Pieces of a byte buffer as an array of text."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.supervision.readers.text import Bytes
from concordant.types import IntArray

__all__ = ["texts"]

PADDING_ALLOWED = 4  # a fixed-width array may cost this many times the text before objects are cheaper


@kernel
def _gather(buffer: Bytes, spans: IntArray, out: Bytes) -> None:
    """Copy each span into its row of `out`."""
    for row in range(len(spans)):
        for at in range(spans[row, 0], spans[row, 1]):
            out[row, at - spans[row, 0]] = buffer[at]


def texts(buffer: Bytes, spans: IntArray) -> np.ndarray:
    """Text between `spans[i, 0]` and `spans[i, 1]`, one entry a row; not UTF-8: U+FFFD.

    Fixed-width text where that is compact, an array of objects where a few entries are very long.

    >>> texts(np.frombuffer(b"one,two", dtype=np.uint8), np.array([[0, 3], [4, 7]])).tolist()
    ['one', 'two']
    """
    lengths = spans[:, 1] - spans[:, 0]
    width = max(1, int(lengths.max(initial=0)))
    if width * len(spans) <= PADDING_ALLOWED * int(lengths.sum()) + (1 << 20):
        out = np.zeros((len(spans), width), dtype=np.uint8)
        _gather(buffer, spans, out)
        if not (out & 0x80).any():  # ASCII: numpy widens bytes to text by itself
            return out.view(f"S{width}")[:, 0].astype(f"U{width}")
    pieces = [buffer[start:stop].tobytes().decode("utf-8", "replace") for start, stop in spans.tolist()]
    longest = max(map(len, pieces), default=0)
    compact = longest * len(pieces) <= PADDING_ALLOWED * sum(map(len, pieces)) + (1 << 20)
    return np.array(pieces, dtype=np.str_ if compact else object)
