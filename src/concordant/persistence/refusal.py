"""What is wrong with a model file, before its name is known."""

from __future__ import annotations

__all__ = ["WRITTEN_BY", "UnreadableError"]

WRITTEN_BY = "model files are written by concordant.save, `concordant train` and `concordant compare fit`."


class UnreadableError(Exception):
    """What is wrong with a file, said by those who do not know its name."""

    def __init__(
        self, problem: str, hint: str = "it is damaged, or was changed by hand: write it again."
    ) -> None:
        super().__init__(problem)
        self.hint = hint
