"""Checkpoints: what a fit has found so far, plain numbers and JSON under checksums; reading runs no code."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from concordant.exceptions import ModelFileError, ParameterError
from concordant.supervision.readers.text import write_atomically

__all__ = ["ANEW", "JOURNAL", "SNAPSHOT", "Checkpoint", "Snapshot", "checked_folder", "digest", "spelled"]

JOURNAL, SNAPSHOT = "checkpoint.journal", "checkpoint.npz"
MAGIC, ABOUT = b"concordant checkpoint 1 ", "about"
ANEW = "delete it, or name another folder, to begin anew."
AT_ONCE = "a finished fit is continued in a new folder: " + ANEW


@dataclass(frozen=True)
class Checkpoint:
    """A folder, and the fit that is written to it.

    Attributes
    ----------
    folder
        It holds the files of one fit.
    parameters, data, start
        What the fit is of: texts by name, and digests of the arrays and of the weights of a warm start
        (empty: of none). Files of others are refused.
    """

    folder: Path
    parameters: Mapping[str, str]
    data: str
    start: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What the files say they are of."""
        of = {"parameters": dict(self.parameters), "data": self.data, "start": self.start}
        return {"version": version(), **of}

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Make the folder, and keep other fits out of it meanwhile.

        `name` is the file that the fit will be in. A folder that cannot be written to, that another fit is
        writing to, or that holds another kind of fit, is refused before any work.
        """
        with named_errors(self.folder / name, "made or written to"):
            self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            with named_errors(self.folder / name, "made or written to"):
                with write_atomically(self.folder / f".{name}.probe") as stream:
                    stream.write(MAGIC)
                (self.folder / f".{name}.probe").unlink()
                self.sweep(name)
            for other in {JOURNAL, SNAPSHOT} - {name}:
                if (self.folder / other).exists():
                    raise ModelFileError(self.folder / other, "it was written by another kind of fit", ANEW)
            yield

    def sweep(self, name: str) -> None:
        """Remove what writes left that were killed."""
        for stem, suffix in ((Path(name).stem, Path(name).suffix), (f".{name}", ".probe")):
            for path in self.folder.glob(f".{stem}.{'[0-9a-f]' * 8}.tmp{suffix}"):
                path.unlink()

    def check(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Refuse a file of another fit."""
        then = facts.get("parameters")
        if not isinstance(then, dict) or not {"version", "data", "start"} <= facts.keys():
            raise ModelFileError(path, "it does not say what it is of", ANEW)
        if facts["version"] != version():
            seen = f"it was written by concordant {facts['version']}, and this is {version()}"
            raise ModelFileError(path, seen, f"finish the fit with that version; or {ANEW}")
        for name in (*self.parameters, *(then.keys() - self.parameters.keys())):
            if then.get(name) != self.parameters.get(name):
                seen = f"it was written with {name}={then.get(name)}, not {self.parameters.get(name)}"
                raise ModelFileError(path, seen, ANEW)
        if facts["data"] != self.data:
            raise ModelFileError(path, "it was written for other data", ANEW)
        if facts["start"] != self.start:
            began = "it is of a training that began with other weights than this warm start"
            raise ModelFileError(path, began, AT_ONCE)


@contextmanager
def named_errors(path: Path, done: str) -> Iterator[None]:
    """Let errors of the file system name the checkpoint."""
    try:
        yield
    except OSError as error:
        hint = "name a folder that can be written to, with room in it."
        raise ModelFileError(path, f"it cannot be {done} ({error})", hint) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let nobody else have the folder, where the system has locks; those of a process end with it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with named_errors(folder, "opened"):
        place = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                hint = "wait for it or end it; two fits need two folders."
                raise ModelFileError(folder, "another fit is writing to it", hint) from error
        yield
    finally:
        os.close(place)


@dataclass(frozen=True)
class Snapshot:
    """The one file of a fit whose state is replaced as a whole.

    Attributes
    ----------
    checkpoint
        Of the fit.
    """

    checkpoint: Checkpoint

    @property
    def path(self) -> Path:
        """The file."""
        return self.checkpoint.folder / SNAPSHOT

    def held(self) -> AbstractContextManager[None]:
        """Keep other fits out meanwhile."""
        return self.checkpoint.held(SNAPSHOT)

    def write(self, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Replace the file: facts that JSON can hold, and arrays by name."""
        about = json.dumps({**self.checkpoint.facts, **facts}).encode()
        contents = io.BytesIO()
        np.savez(contents, allow_pickle=False, **arrays, **{ABOUT: np.frombuffer(about, dtype=np.uint8)})
        head = MAGIC + hashlib.sha256(contents.getbuffer()).hexdigest().encode() + b"\n"
        with named_errors(self.path, "written"), write_atomically(self.path) as stream:
            stream.write(head)
            stream.write(contents.getbuffer())
            stream.flush()
            os.fsync(stream.fileno())  # else a power failure may leave the new name, and no contents

    def read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Give facts and arrays, if the file is whole and of this fit; None where there is none."""
        if not self.path.exists():
            return None
        arrays = self.arrays()
        try:
            facts: dict[str, Any] = json.loads(arrays.pop(ABOUT).tobytes())
        except (KeyError, ValueError) as error:
            raise ModelFileError(self.path, "it does not say what it is of", ANEW) from error
        self.checkpoint.check(self.path, facts if isinstance(facts, dict) else {})
        return facts, arrays

    def arrays(self) -> dict[str, Any]:
        """Read the file, if its checksum is right."""
        with named_errors(self.path, "read"):
            head, _, contents = self.path.read_bytes().partition(b"\n")
        if not head.startswith(MAGIC):
            raise ModelFileError(self.path, "this is no checkpoint that this version reads", ANEW)
        if head != MAGIC + hashlib.sha256(contents).hexdigest().encode():
            raise ModelFileError(self.path, "its checksum is wrong: it is damaged or incomplete", ANEW)
        try:
            with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
                return dict(archive)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise ModelFileError(self.path, f"its arrays cannot be read ({error})", ANEW) from error


def version() -> str:
    """Give the library's version: another one may step otherwise."""
    import concordant

    return str(concordant.__version__)


def checked_folder(given: Any) -> Path | None:
    """Give the folder that a caller names; None: no checkpoint is wanted.

    >>> checked_folder(None) is None, checked_folder("runs/first").name
    (True, 'first')
    """
    if given is None:
        return None
    try:
        if not isinstance(given, (str, Path)) or not str(given) or b"\0" in os.fsencode(given):
            raise ParameterError("checkpoint", given, "a folder, or None")
        return Path(given).expanduser()
    except (RuntimeError, UnicodeError) as error:  # ~nobody; a name that the file system cannot hold
        raise ParameterError("checkpoint", given, f"a folder, or None ({error})") from error


def spelled(value: Any) -> str:
    """Give a parameter as text, in one spelling, the same in every process; of a function its name.

    >>> spelled(np.float64(0.5)), spelled(np.int64(3)), spelled(np.mean)
    ('0.5', '3', 'numpy.mean')
    >>> spelled(partial(np.mean, axis=0))
    'partial(numpy.mean, axis=0)'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, partial):
        given = [spelled(one) for one in (value.func, *value.args)]
        given += [f"{name}={spelled(one)}" for name, one in value.keywords.items()]
        return f"partial({', '.join(given)})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    text = repr(value)
    if callable(value) and " at 0x" in text:  # an address, which is another one next time
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return text


def digest(*values: Any) -> str:
    """Give a digest of arrays, compressed rows, labels and None, in this order."""
    found = hashlib.blake2b(digest_size=16)
    for value in values:
        for part in parts_of(value):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def parts_of(value: Any) -> list[Any]:
    """Give the arrays that make up a value."""
    if hasattr(value, "indptr"):
        return [value.indptr, value.indices, value.data]
    if isinstance(value, (np.ndarray, type(None))):
        return [np.asarray(value).astype("U") if value is None or value.dtype == object else value]
    if hasattr(value, "__dict__"):  # Grades, Preferences, Permutations
        return [part for one in vars(value).values() for part in parts_of(one)]
    return [np.asarray(value)]
