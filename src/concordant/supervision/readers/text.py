"""Text files as bytes: opened plain or compressed by suffix, located by line, written atomically."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from concordant.exceptions import MalformedLineError, ParameterError

__all__ = [
    "COMPRESSED",
    "Bytes",
    "PathLike",
    "locate",
    "open_binary",
    "paths_of",
    "read_buffer",
    "read_lines",
    "write_atomically",
]

Bytes = NDArray[np.uint8]
PathLike = str | os.PathLike[str]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COUNTED_AT_ONCE = 1 << 20  # bytes whose line ends are counted together: the mask stays in cache


def _open_zstd(path: Path, mode: str) -> Any:
    from pyarrow import input_stream, output_stream

    opener = input_stream if mode == "rb" else output_stream
    try:
        return opener(os.fspath(path), compression="zstd")
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error  # as `open` says it


class _GzipWriter(gzip.GzipFile):
    """Without the name and the time that gzip keeps: equal contents give equal files."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        super().__init__("", "wb", fileobj=self._file, mtime=0)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._file.close()


def _open_gzip(path: Path, mode: str) -> Any:
    return gzip.open(path) if mode == "rb" else _GzipWriter(path)


COMPRESSED: dict[str, Callable[[Path, str], Any]] = {
    ".gz": _open_gzip,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": _open_zstd,
}


def paths_of(path: PathLike | Iterable[PathLike], name: str = "path") -> list[str]:
    """Give the files that are meant, one or several; what names none is refused.

    >>> paths_of(Path("a.txt")), paths_of(["a.txt", "b.txt"])
    (['a.txt'], ['a.txt', 'b.txt'])
    """
    found: list[Any] = [path]
    table = isinstance(path, Mapping) or hasattr(path, "columns")  # whose columns are no files
    if isinstance(path, Iterable) and not table and not isinstance(path, str | os.PathLike):
        found = list(path)
    if other := [one for one in found if not isinstance(one, str | os.PathLike)]:
        raise ParameterError(name, type(other[0]).__name__, "the name of a file, or names of several")
    return [os.fspath(one) for one in found]


def open_binary(path: PathLike, mode: str = "rb") -> BinaryIO:
    """Open a file for reading or writing bytes, through the compression its suffix names."""
    path = Path(path)
    return cast("BinaryIO", COMPRESSED.get(path.suffix, open)(path, mode))


def _read_all(path: PathLike) -> bytes:
    """Whole contents, decompressed; a damaged archive is an `OSError` that names the file."""
    with naming_archive(path):
        if Path(path).suffix == ".gz":  # at once: half again as fast as the stream
            return gzip.decompress(Path(path).read_bytes())
        with open_binary(path) as stream:
            return stream.read()


@contextmanager
def naming_archive(path: PathLike) -> Iterator[None]:
    """A damaged archive that is read inside is an `OSError` that names the file."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "filename", None) is not None:  # not there, or not to be read: says so itself
            raise
        raise OSError(f"{os.fspath(path)}: cannot be decompressed ({error})") from error


def read_buffer(path: PathLike) -> Bytes:
    """Bytes of a file with a line end added, and without a byte order mark.

    A plain file is read straight into the array: memory mapping would save that copy, but a file cut short
    by another program would then kill the process.
    """
    if Path(path).suffix not in COMPRESSED and Path(path).is_file():  # not a pipe, which has no size
        with Path(path).open("rb", buffering=0) as stream:
            buffer = np.empty(os.fstat(stream.fileno()).st_size + 1, dtype=np.uint8)
            filled = 0
            while got := stream.readinto(buffer[filled:-1].data):
                filled += got
        buffer = buffer[: filled + 1]
    else:
        contents = _read_all(path)
        buffer = np.empty(len(contents) + 1, dtype=np.uint8)
        buffer[:-1] = np.frombuffer(contents, dtype=np.uint8)
    if not (buffer[: min(len(buffer) - 1, COUNTED_AT_ONCE)] == ord("\n")).any() and only_cr(buffer[:-1]):
        raise MalformedLineError(path, 1, 0, "lines end in CR alone", "convert the line ends to LF.")
    buffer[-1] = ord("\n")
    return buffer[3:] if buffer[:3].tobytes() == BYTE_ORDER_MARK else buffer


def only_cr(text: Bytes) -> bool:
    """Whether there are line ends, and all are those of old Macs."""
    return bool((text == ord("\r")).any() and not (text == ord("\n")).any())


def read_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their ends; bytes that are not UTF-8 become U+FFFD."""
    text = read_buffer(path).tobytes().decode("utf-8", "replace")
    return enumerate((line.removesuffix("\r") for line in text[:-1].split("\n")), start=1)


def locate(buffer: Bytes, offset: int) -> tuple[int, int]:
    r"""Line and column of a byte, both from 1.

    >>> locate(np.frombuffer(b"ab\ncd\n", dtype=np.uint8), 4)
    (2, 2)
    """
    line = 1
    for start in range(0, offset, COUNTED_AT_ONCE):
        line += int(np.count_nonzero(buffer[start : min(offset, start + COUNTED_AT_ONCE)] == ord("\n")))
    start = offset
    while start > 0 and buffer[start - 1] != ord("\n"):
        start -= 1
    return line, len(buffer[start:offset].tobytes().decode("utf-8", "replace")) + 1


@contextmanager
def write_atomically(path: PathLike) -> Iterator[BinaryIO]:
    """Give a binary stream that becomes the file `path` at the end, whole, or leaves it as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_atomically(folder + "/a.txt.gz") as stream:
    ...         _ = stream.write(b"one line")
    ...     list(read_lines(folder + "/a.txt.gz"))
    [(1, 'one line')]
    """
    path = Path(path)
    # The same suffix, so that the same compression is chosen; the same folder, so that the move is atomic.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.tmp{path.suffix}")
    try:
        with open_binary(temporary, "wb") as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
