"""The zip of a model file: the same for the same contents, and unpacked within limits."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from concordant.exceptions import MissingExtraError, ModelFileError
from concordant.persistence.refusal import WRITTEN_BY, UnreadableError
from concordant.supervision.readers.text import PathLike, open_binary

__all__ = [
    "MANIFEST",
    "MAX_BYTES",
    "canonical",
    "digest",
    "everything",
    "named_errors",
    "said",
    "unpacked",
    "zipped",
]

MANIFEST = "manifest.json"
MAX_BYTES = 2**30  # of all contents together, unpacked
MAX_MANIFEST = 2**26  # of the manifest, unpacked
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # equal models give equal files
METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED  # which unpack no more than they are asked for


def digest(contents: bytes) -> str:
    """Give the SHA-256."""
    return hashlib.sha256(contents).hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Give a zip of these files."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), contents, zipfile.ZIP_DEFLATED)
    return result.getvalue()


def everything(path: PathLike, max_bytes: int) -> bytes:
    """Give the bytes of the file, decompressed by its suffix."""
    try:
        with open_binary(path) as stream:
            contents = stream.read(max_bytes + 1)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if getattr(error, "filename", None) is not None:  # not there, or not to be read: says so itself
            raise
        problem = f"it cannot be decompressed ({error})"
        raise ModelFileError(path, problem, "copy or write it again.") from error
    if len(contents) > max_bytes:
        raise ModelFileError(path, *too_large(f"more than {max_bytes:,}", max_bytes))
    return contents


def too_large(told: str, max_bytes: int) -> tuple[str, str]:
    """Say that there is no room, and how to make some."""
    return f"it has {told} bytes, unpacked", f"load(path, max_bytes=...) takes more than {max_bytes:,}."


def unpacked(contents: bytes, max_bytes: int) -> dict[str, bytes]:
    """Give the files of a zip by name; what they say of their sizes is looked at before room is made."""
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        entries = archive.infolist()
        if len({one.filename for one in entries}) < len(entries):
            raise UnreadableError("two of its files have one name")
        if any(one.compress_type not in METHODS for one in entries):
            raise UnreadableError("one of its files is compressed in a way that no model file is")
        total = sum(one.file_size for one in entries)
        if total > max_bytes:
            raise UnreadableError(*too_large(f"{total:,}", max_bytes))
        large = any(one.filename == MANIFEST and one.file_size > MAX_MANIFEST for one in entries)
        if large:
            raise UnreadableError(f"its manifest has more than {MAX_MANIFEST:,} bytes")
        return {one.filename: read(archive, one) for one in entries}


def read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Give the contents of a file, of the size it says."""
    with archive.open(entry) as stream:  # asked for so many bytes, it unpacks no more
        contents = stream.read(entry.file_size + 1)
    if len(contents) != entry.file_size:
        raise UnreadableError(f"{entry.filename} is of another size than it says")
    return contents


@contextmanager
def named_errors(path: PathLike, contents: bytes) -> Iterator[None]:
    """Let whatever is raised on the contents of a file name the file."""
    try:
        yield
    except (MissingExtraError, ModelFileError):
        raise
    except UnreadableError as error:
        raise ModelFileError(path, str(error), error.hint) from error
    except Exception as error:  # zipfile, zlib, json, numpy and the libraries of trees: each raises its own
        if not contents.startswith(b"PK"):
            raise ModelFileError(path, "this is no model file", WRITTEN_BY) from error
        hint = "it is damaged or incomplete: copy or write it again."
        raise ModelFileError(path, f"the model cannot be read ({said(error)})", hint) from error


def said(error: Exception) -> str:
    """Give the first line of what an error says."""
    return str(error).partition("\n")[0].removesuffix(".") or type(error).__name__


def canonical(value: Any) -> bytes:
    """Give the one way in which equal JSON values are written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
