"""What is wrong with a model file, before its name is known."""

from __future__ import annotations

from typing import Any

__all__ = ["WRITTEN_BY", "UnreadableError", "once"]

WRITTEN_BY = "model files are written by concordant.save, `concordant train` and `concordant compare fit`."


class UnreadableError(Exception):
    """What is wrong with a file, said by those who do not know its name."""

    def __init__(
        self, problem: str, hint: str = "it is damaged, or was changed by hand: write it again."
    ) -> None:
        super().__init__(problem)
        self.hint = hint


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Give an object of JSON; refuse one with a name twice, of which each reader takes another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnreadableError("it has a name twice in one object")
    return found
