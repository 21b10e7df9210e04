"""Styles of the lines of a figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """Style of a method: consistent ones in cold colours and whole lines, the others warm and dashed.

    Markers of methods that coincide are of different sizes, large ones hollow, so that each can be seen.
    """

    colour: str
    dash: str
    marker: str
    size: int
