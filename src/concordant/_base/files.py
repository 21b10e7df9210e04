"""Files as bytes: read plain or compressed by suffix, within the available memory, and written atomically."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import math
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from concordant.exceptions import MalformedLineError, OutOfMemoryError, ParameterError

Bytes = NDArray[np.uint8]
PathLike = str | os.PathLike[str]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPRESSED_BLOCK = 1 << 16  # bytes read from a compressed file at once
PIECE = 1 << 22  # names of streams that are already open, even if the stream is a file
STREAMS = "/dev/std", "/dev/fd/", "/proc/"  # bytes that are not worth a query of the available memory
SMALL = 1 << 26  # bytes that are not worth asking the system for
FULL_DISK = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO
CGROUPS = Path("/sys/fs/cgroup")
COUNTED_AT_ONCE = 1 << 20  # bytes whose line ends are counted together: the mask stays in cache


def _open_zstd(path: Path, mode: str) -> Any:
    from pyarrow import input_stream, output_stream

    opener = input_stream if mode == "rb" else output_stream
    try:
        return opener(os.fspath(path), compression="zstd")
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error  # like `open`


class _GzipWriter(gzip.GzipFile):
    """Gzip writer that stores neither file name nor time, so that equal contents give equal files."""

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


class _StreamReader(io.RawIOBase):
    """Reader of all streams in a file that raises on trailing bytes instead of dropping them silently.

    `lzma.open` and `bz2.open` stop without an error at a damaged following stream. Only .xz allows padding
    after a stream: zeros, a multiple of four.
    """

    def __init__(
        self, file: BinaryIO, first: Any, following: Callable[[], Any], *, padding: bytes = b""
    ) -> None:
        self._file, self._stream, self._following, self._padding = file, first, following, padding

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read_some(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self._read_some(-1), b""))

    def close(self) -> None:
        self._file.close()
        super().close()

    def _read_some(self, size: int) -> bytes:
        """Read at most `size` bytes (-1: any number); empty only at the end of the file."""
        while True:
            if not self._stream.eof:
                block = self._file.read(COMPRESSED_BLOCK) if self._stream.needs_input else b""
                if self._stream.needs_input and not block:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            elif block := self._skip_padding():
                self._stream = self._following()
            else:
                return b""
            if data := self._stream.decompress(block, size):
                return cast("bytes", data)

    def _skip_padding(self) -> bytes:
        """Return the first bytes of the next stream; empty at the end of the file."""
        padded, block = 0, self._stream.unused_data or self._file.read(COMPRESSED_BLOCK)
        while block and not (rest := block.lstrip(self._padding) if self._padding else block):
            padded, block = padded + len(block), self._file.read(COMPRESSED_BLOCK)
        rest = rest if block else b""
        if (padded + len(block) - len(rest)) % 4:
            raise lzma.LZMAError("what follows a stream is neither a stream nor padding")
        return rest


def _open_xz(path: Path, mode: str) -> Any:
    if mode != "rb":
        return lzma.open(path, mode)
    first = lzma.LZMADecompressor()  # .lzma too, an older format of one stream
    following = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ)
    return io.BufferedReader(_StreamReader(path.open("rb"), first, following, padding=b"\0"))


def _open_bz2(path: Path, mode: str) -> Any:
    if mode != "rb":
        return bz2.open(path, mode)
    return io.BufferedReader(_StreamReader(path.open("rb"), bz2.BZ2Decompressor(), bz2.BZ2Decompressor))


COMPRESSED: dict[str, Callable[[Path, str], Any]] = {
    ".gz": _open_gzip,
    ".xz": _open_xz,
    ".bz2": _open_bz2,
    ".zst": _open_zstd,
}


def list_paths(path: PathLike | Iterable[PathLike], name: str = "path") -> list[str]:
    """Return the paths of one file or of several; raise if `path` is neither.

    >>> list_paths(Path("a.txt")), list_paths(["a.txt", "b.txt"])
    (['a.txt'], ['a.txt', 'b.txt'])
    """
    paths: list[Any] = [path]
    table = isinstance(path, Mapping) or hasattr(path, "columns")  # its columns are not files
    if isinstance(path, Iterable) and not table and not isinstance(path, str | os.PathLike):
        paths = list(path)
    if other := [file_path for file_path in paths if not isinstance(file_path, str | os.PathLike)]:
        raise ParameterError.because(
            f"{name} must be a file name or a list of file names, got {type(other[0]).__name__}."
        )
    return [os.fspath(file_path) for file_path in paths]


def open_binary(path: PathLike, mode: str = "rb") -> BinaryIO:
    """Open a file for reading or writing bytes, with the compression that its suffix names."""
    path = Path(path)
    return cast("BinaryIO", COMPRESSED.get(path.suffix, open)(path, mode))


def _read_all(path: PathLike) -> bytearray:
    """Read and decompress a whole file; a damaged archive raises an `OSError` that names it."""
    contents = bytearray()
    with naming_archive(path), naming_memory(path), open_binary(path) as stream:
        while piece := stream.read(PIECE):
            room = available_memory() if contents else len(piece)
            if room < len(piece) + len(contents) // 8:  # the buffer grows by an eighth
                sizes = (size / 2**30 for size in (len(contents), room))
                problem = "the first {:,.1f} GiB of its contents leave {:,.1f} GiB of memory"
                raise OutOfMemoryError(path, problem.format(*sizes))
            contents += piece
    return contents


@contextmanager
def naming_archive(path: PathLike) -> Iterator[None]:
    """Convert errors from reading a damaged archive to an `OSError` that names the file."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "filename", None) is not None:  # missing or unreadable: names the file
            raise
        raise OSError(f"{os.fspath(path)}: cannot be decompressed ({error})") from error


def read_buffer(path: PathLike) -> Bytes:
    """Read a file as bytes, with a line end appended and the byte order mark removed.

    A plain file is read directly into the array. Memory mapping would avoid that copy, but would kill the
    process if another program truncated the file.
    """
    if Path(path).suffix not in COMPRESSED and Path(path).is_file():  # a pipe has no size
        with naming_memory(path), Path(path).open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            require_memory(path, size)
            buffer = np.empty(size + 1, dtype=np.uint8)
            filled = 0
            while got := stream.readinto(buffer[filled:-1].data):
                filled += got
        buffer = buffer[: filled + 1]
    else:
        contents = _read_all(path)
        contents += b"\n"
        buffer = np.frombuffer(contents, dtype=np.uint8)
    if not (buffer[: min(len(buffer) - 1, COUNTED_AT_ONCE)] == ord("\n")).any() and has_only_cr(buffer[:-1]):
        raise MalformedLineError(path, 1, 0, "lines end with CR only", "convert the line ends to LF.")
    buffer[-1] = ord("\n")
    return buffer[3:] if buffer[:3].tobytes() == BYTE_ORDER_MARK else buffer


def has_only_cr(text: Bytes) -> bool:
    """True if all line ends are lone CRs, as on old Macs, and there is at least one."""
    return bool((text == ord("\r")).any() and not (text == ord("\n")).any())


def read_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield line numbers (from 1) and lines without their ends; raise if the file is not UTF-8."""
    buffer = read_buffer(path)
    text = decode(path, buffer, 0, len(buffer))
    return enumerate((line.removesuffix("\r") for line in text[:-1].split("\n")), start=1)


def locate(buffer: Bytes, offset: int) -> tuple[int, int]:
    r"""Return the line and column of a byte, both counted from 1.

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


def decode(path: PathLike, buffer: Bytes, start: int, stop: int, lines: int = 0) -> str:
    """Decode the bytes `start:stop`; errors count the `lines` before them."""
    try:
        return buffer[start:stop].tobytes().decode()
    except UnicodeDecodeError as error:
        line, column = locate(buffer, start + error.start)
        problem = f"byte {buffer[start + error.start]:#04x} is not UTF-8"
        hint = "convert the file, for example by iconv -f latin1 -t utf-8."
        raise MalformedLineError(path, lines + line, column, problem, hint) from error


def read_float(text: str) -> float:
    """Parse a number like `float`, but raise ValueError on underscores and non-ASCII digits.

    >>> read_float(" 1e3 ")
    1000.0
    """
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


@contextmanager
def write_atomically(path: PathLike) -> Iterator[BinaryIO]:
    """Open a binary stream that replaces the file `path` when it closes, or leaves it untouched on error.

    A replaced file keeps its mode, and its owner if the system allows it. Links are followed; pipes and
    devices are written to directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_atomically(folder + "/a.txt.gz") as stream:
    ...         _ = stream.write(b"one line")
    ...     list(read_lines(folder + "/a.txt.gz"))
    [(1, 'one line')]
    """
    requested, target = Path(path), Path(os.path.realpath(path))  # resolves links, including dangling ones
    try:
        old = requested.stat()
    except FileNotFoundError:
        old = None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.fspath(requested).startswith(STREAMS) or not (old is None or stat.S_ISREG(old.st_mode)):
        with open_binary(requested, "ab") as stream:  # a pipe or a device cannot be replaced by a file
            yield stream
        return
    # The same suffix selects the same compression; the same folder makes the move atomic.
    temporary = target.with_name(f".{requested.stem}.{secrets.token_hex(4)}.tmp{requested.suffix}")
    try:
        with _naming(requested):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            os.close(os.open(temporary, flags, 0o666 if old is None else 0o600))
        with _naming(requested, FULL_DISK), open_binary(temporary, "wb") as stream:
            yield stream
        if old is not None:
            _keep_access(temporary, old)
        with _naming(requested):
            temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path, codes: Collection[int] = ()) -> Iterator[None]:
    """Make file system errors name this file instead of the temporary one beside it.

    With `codes`, only such errors that name no file: others are of the caller.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or (codes and (error.errno not in codes or error.filename)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _keep_access(path: Path, old: os.stat_result) -> None:
    """Copy the mode of another file, and its owner and group if the system allows it."""
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError, AttributeError):  # Windows has neither owner nor group
            os.chown(path, owner, group)
    path.chmod(stat.S_IMODE(old.st_mode))


def require_memory(name: object, size: float) -> None:
    """Raise `OutOfMemoryError` if fewer than `size` bytes are available."""
    if size > SMALL and size > (room := available_memory()):
        problem = f"it takes {size / 2**30:,.1f} GiB of memory, and {room / 2**30:,.1f} GiB are available"
        raise OutOfMemoryError(name, problem)


@contextmanager
def naming_memory(name: object) -> Iterator[None]:
    """Convert a `MemoryError` raised inside to an `OutOfMemoryError` with this name."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        problem = f"memory ran out ({str(error) or 'no allocation was possible'})"
        raise OutOfMemoryError(name, problem) from error


def available_memory() -> float:
    """Available memory in bytes: the least of `ulimit -v`, the control group limits and free system memory.

    Infinite if nothing is known, as outside of Linux. Memory used by other processes of a control group is
    not subtracted: most of it is cache, which the system frees when needed.
    """
    rooms = [math.inf]
    with suppress(OSError, ImportError, ValueError, KeyError):
        import resource

        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        virtual, resident = (int(number) * os.sysconf("SC_PAGE_SIZE") for number in pages[:2])
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        rooms += [] if limit == resource.RLIM_INFINITY else [limit - virtual]
        rooms += [limit - resident for limit in _group_limits()]
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {name: int(text.split()[0]) for name, text in (line.split(":") for line in lines)}
        rooms.append(1024 * (kilobytes["MemAvailable"] + kilobytes["SwapFree"]))
    return max(0, min(rooms))


def _group_limits() -> Iterator[int]:
    """Yield the memory limits of the control groups (v1 and v2) of this process."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, file = (CGROUPS / "memory", "memory.limit_in_bytes") if controllers else (CGROUPS, "memory.max")
        group = root / name.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root):
                with suppress(OSError, ValueError):  # missing file, or "max"
                    yield int((folder / file).read_text(encoding="ascii"))
