"""Spill: rows on disk, in a file without a name, which is gone with the process that made it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Spill"]


class Spill:
    """Tables that are written one after the other, and then read in that order.

    Parameters
    ----------
    folder
        Whose disk is used: that of the result, which has room for about as much.
    """

    def __init__(self, folder: Path) -> None:
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # who makes a spill closes it
        self.writer: Any = None

    def close(self) -> None:
        """Give the file up."""
        self.writer = None
        self.file.close()

    def write(self, table: Any) -> None:
        """Write some rows."""
        from pyarrow import ipc

        if self.writer is None:
            self.writer = ipc.new_stream(self.file, table.schema)
        self.writer.write_table(table)

    def tables(self) -> Iterator[Any]:
        """Give the rows, as many at a time as were written at a time."""
        import pyarrow as pa

        if self.writer is None:
            return
        self.writer.close()
        self.file.seek(0)
        with pa.ipc.open_stream(self.file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])
