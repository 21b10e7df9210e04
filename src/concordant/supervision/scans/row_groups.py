"""RowGroups: row groups of a Parquet file that are read together, whatever their columns mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from concordant.exceptions import ConcordantError
from concordant.supervision.readers.tables import _validated, naming_damage

__all__ = ["RowGroups", "opened"]


@dataclass(frozen=True)
class RowGroups:
    """Row groups of a Parquet file, small and ready to be sent to another process.

    Attributes
    ----------
    path, shown
        The file, from the root, since other processes may work elsewhere; and as the caller named it.
    groups
        Number and rows of each row group.
    """

    path: str
    shown: str
    groups: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """Where the rows are."""
        first, last = self.groups[0][0], self.groups[-1][0]
        return f"{self.shown}, " + (
            f"row group {first}" if first == last else f"row groups {first} to {last}"
        )

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return sum(rows for _, rows in self.groups)

    def where(self, row: int) -> tuple[str, int]:
        """Give the row group in which a row that was read stands, and its number there."""
        starts = accumulate((rows for _, rows in self.groups), initial=0)
        place, start = max(
            (place, start)
            for place, start in zip(range(len(self.groups)), starts, strict=False)
            if start <= row
        )
        return f"{self.shown}, row group {self.groups[place][0]}", row - start

    def table(self, columns: tuple[str, ...]) -> Any:
        """Read columns as they are; a file that is not the one that was scanned is refused."""
        with naming_damage(self.shown, ".parquet"):
            file = opened(self.path)
            seen = file.metadata.num_row_groups
            for number, rows in self.groups:
                found = file.metadata.row_group(number).num_rows if number < seen else None
                if found != rows:
                    now = "is gone" if found is None else f"has {found} rows, and had {rows}"
                    raise self.changed(f"row group {number} {now}")
            if lacking := sorted(set(columns) - set(file.schema_arrow.names)):
                raise self.changed(f"column {lacking[0]!r} is gone")
            return _validated(
                file.read_row_groups([number for number, _ in self.groups], columns=list(columns))
            )

    def changed(self, problem: str) -> ConcordantError:
        """Say that the file is not the one that was scanned."""
        return ConcordantError(f"it changed since it was scanned: {problem}.\nHint: scan it again.")

    def alone(self, group: tuple[int, int]) -> Self:
        """Give one of the row groups."""
        return replace(self, groups=(group,))

    @contextmanager
    def located(self, job: str) -> Iterator[None]:
        """Errors name the row group, and count rows in it: what failed for several is tried for each."""
        try:
            yield
        except ConcordantError as error:
            if len(self.groups) > 1:
                for group in self.groups:
                    getattr(self.alone(group), job)()
            if not str(error).startswith(self.shown):
                error.args = (f"{self.name}: {error}",)
            raise


def opened(path: str) -> Any:
    """Give the Parquet file; its footer, which may be long, is kept for the next time."""
    from pyarrow.parquet import ParquetFile

    stamp = Path(path).stat()
    return ParquetFile(path, metadata=footer(path, stamp.st_size, stamp.st_mtime_ns))


@lru_cache(maxsize=16)
def footer(path: str, _size: int, _changed: int) -> Any:
    """Read what a Parquet file says of itself."""
    from pyarrow.parquet import read_metadata

    return read_metadata(path)
