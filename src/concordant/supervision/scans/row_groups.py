"""RowGroups: row groups of a Parquet file that are read together, whatever their columns mean."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from platform import node
from typing import Any, Self

from concordant.exceptions import ConcordantError
from concordant.supervision.readers.tables import _validated, naming_damage

__all__ = ["RowGroups", "footer_of", "opened"]

# Columns of row groups whose pages this process has compared with their checksums, which takes as long as
# half of the reading: once is enough, since files that change have other stamps.
VERIFIED: set[tuple[object, ...]] = set()


@dataclass(frozen=True)
class RowGroups:
    """Row groups of a Parquet file, small and ready to be sent to another process.

    Attributes
    ----------
    path, shown
        The file, from the root, since other processes may work elsewhere; and as the caller named it.
    groups
        Number and rows of each row group.
    stamp
        Of the file's footer, as `Footer` has it.
    """

    path: str
    shown: str
    groups: tuple[tuple[int, int], ...]
    stamp: int

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
        self.refuse_gone()
        with naming_damage(self.name, ".parquet"):
            pages = (*stamped(self.path), self.groups, columns)
            file = opened(self.path, verify=pages not in VERIFIED)
            self.refuse_changed(file, columns)
            numbers = [number for number, _ in self.groups]
            found = _validated(file.read_row_groups(numbers, columns=list(columns)))
            VERIFIED.add(pages)
            return found

    def refuse_gone(self) -> None:
        """Refuse a file that is not, or not any more, on the machine that is to read it."""
        if not Path(self.path).exists():
            problem = f"{self.shown} is not there: {node()} has no {self.path}"
            hint = (
                "scan it again where it is; workers of a cluster read files themselves, under the same path."
            )
            raise ConcordantError(f"{problem}.\nHint: {hint}")

    def refuse_changed(self, file: Any, columns: tuple[str, ...]) -> None:
        """Refuse a file that is not the one that was scanned, as far as its footer tells."""
        seen = file.metadata.num_row_groups
        for number, rows in self.groups:
            found = file.metadata.row_group(number).num_rows if number < seen else None
            if found != rows:
                now = "is gone" if found is None else f"has {found} rows, and had {rows}"
                raise self.changed(f"row group {number} {now}")
        if lacking := sorted(set(columns) - set(file.schema_arrow.names)):
            raise self.changed(f"column {lacking[0]!r} is gone")
        if footer_of(self.path).stamp != self.stamp:
            raise self.changed("it has other contents")

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


def opened(path: str, *, verify: bool = True) -> Any:
    """Give the Parquet file, whose pages are compared with their checksums, where they have any."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, metadata=footer_of(path).metadata, page_checksum_verification=verify)


@dataclass(frozen=True)
class Footer:
    """What a Parquet file says of itself.

    Attributes
    ----------
    metadata
        As pyarrow has it.
    stamp
        CRC-32 of its bytes. Those of files that `write_parquet` wrote hold a sum of all contents. Others hold
        the places, the sizes and most often the extremes of the columns: values that were replaced by others
        of the same size between the same extremes are not seen.
    """

    metadata: Any
    stamp: int


def footer_of(path: str) -> Footer:
    """Give the footer of a file; it may be long, and is kept for the next time."""
    return read_footer(*stamped(path))


def stamped(path: str) -> tuple[str, int, int]:
    """Give the file with its size and the time of its last change, by which it is told from later ones."""
    found = Path(path).stat()
    return path, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=16)
def read_footer(path: str, _size: int, _changed: int) -> Footer:
    """Read the footer of a file."""
    from pyarrow.parquet import read_metadata

    with Path(path).open("rb") as stream:  # once: by its name it might be another file the next time
        metadata = read_metadata(stream)
        stream.seek(-8 - metadata.serialized_size, os.SEEK_END)  # its length and four letters follow
        return Footer(metadata, zlib.crc32(stream.read()))
