"""Checkpoints: the progress of a fit, as plain numbers and JSON under checksums; reading runs no code."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from concordant._base.files import write_atomically
from concordant.exceptions import ModelFileError, ParameterError
from concordant.types import FloatArray

JOURNAL, SNAPSHOT = "checkpoint.journal", "checkpoint.npz"
MAGIC, ABOUT = b"concordant checkpoint 1 ", "about"
ANEW = "delete it, or name another folder, to start over."
AT_ONCE = "a finished fit is continued in a new folder: " + ANEW


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder, and the identity of the fit that is written to it; files of other fits raise."""

    folder: Path  # holds the files of a single fit
    parameters: Mapping[str, str]  # as texts by name
    data: str  # digest of the arrays
    start: str = ""  # digest of the weights of a warm start; empty: no warm start

    @property
    def facts(self) -> dict[str, Any]:
        """Identity of the fit, written into each file."""
        identity = {"parameters": dict(self.parameters), "data": self.data, "start": self.start}
        return {"version": version(), **identity}

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Create the folder, and lock other fits out of it while the context is open.

        `name` is the file that the fit writes. A folder that cannot be written to, that another fit is
        writing to, or that holds another kind of fit, raises before any work.
        """
        with named_errors(self.folder / name, "made or written to"):
            self.folder.mkdir(parents=True, exist_ok=True)
        with _lock_folder(self.folder):
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
        """Remove temporary files of writes that were killed."""
        for stem, suffix in ((Path(name).stem, Path(name).suffix), (f".{name}", ".probe")):
            for path in self.folder.glob(f".{stem}.{'[0-9a-f]' * 8}.tmp{suffix}"):
                path.unlink()

    def check(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Raise if a file belongs to another fit."""
        then = facts.get("parameters")
        if not isinstance(then, dict) or not {"version", "data", "start"} <= facts.keys():
            raise ModelFileError(path, "it does not identify its fit", ANEW)
        if facts["version"] != version():
            mismatch = f"it was written by concordant {facts['version']}, and this is {version()}"
            raise ModelFileError(path, mismatch, f"finish the fit with that version; or {ANEW}")
        for name in (*self.parameters, *(then.keys() - self.parameters.keys())):
            if then.get(name) != self.parameters.get(name):
                mismatch = f"it was written with {name}={then.get(name)}, not {self.parameters.get(name)}"
                raise ModelFileError(path, mismatch, ANEW)
        if facts["data"] != self.data:
            raise ModelFileError(path, "it was written for other data", ANEW)
        if facts["start"] != self.start:
            mismatch = "it belongs to a training that started from other weights than this warm start"
            raise ModelFileError(path, mismatch, AT_ONCE)


@contextmanager
def named_errors(path: Path, done: str) -> Iterator[None]:
    """Turn file system errors into errors that name the checkpoint file."""
    try:
        yield
    except OSError as error:
        hint = "name a folder that can be written to, with room in it."
        raise ModelFileError(path, f"it cannot be {done} ({error})", hint) from error


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder exclusively, where the system has locks; they end with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with named_errors(folder, "opened"):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                hint = "wait for it or end it; two fits need two folders."
                raise ModelFileError(folder, "another fit is writing to it", hint) from error
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Snapshot:
    """The file of a fit whose state is replaced as a whole."""

    checkpoint: Checkpoint

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.checkpoint.folder / SNAPSHOT

    def lock(self) -> AbstractContextManager[None]:
        """Lock other fits out of the folder while the context is open."""
        return self.checkpoint.lock(SNAPSHOT)

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
        """Return facts and arrays, if the file is whole and belongs to this fit; None if there is no file."""
        if not self.path.exists():
            return None
        arrays = self.arrays()
        try:
            facts: dict[str, Any] = json.loads(arrays.pop(ABOUT).tobytes())
        except (KeyError, ValueError) as error:
            raise ModelFileError(self.path, "it does not identify its fit", ANEW) from error
        self.checkpoint.check(self.path, facts if isinstance(facts, dict) else {})
        return facts, arrays

    def arrays(self) -> dict[str, Any]:
        """Read the arrays, and check the file's checksum."""
        with named_errors(self.path, "read"):
            head, _, contents = self.path.read_bytes().partition(b"\n")
        if not head.startswith(MAGIC):
            raise ModelFileError(self.path, "this version cannot read it as a checkpoint", ANEW)
        if head != MAGIC + hashlib.sha256(contents).hexdigest().encode():
            raise ModelFileError(self.path, "its checksum is wrong: it is damaged or incomplete", ANEW)
        try:
            with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
                return dict(archive)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise ModelFileError(self.path, f"its arrays cannot be read ({error})", ANEW) from error


def version() -> str:
    """Return the library's version: other versions may take other steps."""
    import concordant

    return str(concordant.__version__)


def check_folder(folder: Any) -> Path:
    """Return the user's checkpoint folder as a path.

    >>> check_folder("runs/first").name
    'first'
    """
    try:
        if not isinstance(folder, (str, Path)) or not str(folder) or b"\0" in os.fsencode(folder):
            raise ParameterError("checkpoint", folder, "a folder or None")
        return Path(folder).expanduser()
    except (RuntimeError, UnicodeError) as error:  # ~nobody; a name that the file system cannot hold
        raise ParameterError("checkpoint", folder, f"a folder or None ({error})") from error


def parameter_text(value: Any) -> str:
    """Write a parameter as text that is the same in every process; a function by its name.

    >>> parameter_text(np.float64(0.5)), parameter_text(np.int64(3)), parameter_text(np.mean)
    ('0.5', '3', 'numpy.mean')
    >>> parameter_text(partial(np.mean, axis=0))
    'partial(numpy.mean, axis=0)'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, partial):
        arguments = [parameter_text(argument) for argument in (value.func, *value.args)]
        arguments += [f"{name}={parameter_text(argument)}" for name, argument in value.keywords.items()]
        return f"partial({', '.join(arguments)})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    text = repr(value)
    if callable(value) and " at 0x" in text:  # an address, which differs between processes
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return text


def digest(*values: Any) -> str:
    """Hash arrays, compressed rows, labels and None, in this order."""
    hasher = hashlib.blake2b(digest_size=16)
    for value in values:
        for array in _component_arrays(value):
            hasher.update(f"{array.dtype.str}{array.shape}".encode())
            hasher.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def _component_arrays(value: Any) -> list[Any]:
    if hasattr(value, "indptr"):
        return [value.indptr, value.indices, value.data]
    if isinstance(value, (np.ndarray, type(None))):
        return [np.asarray(value).astype("U") if value is None or value.dtype == object else value]
    if hasattr(value, "__dict__"):  # Grades, Preferences, Permutations
        return [array for attribute in vars(value).values() for array in _component_arrays(attribute)]
    return [np.asarray(value)]


# Journal: results of a solver's expensive steps, one after the other, in a file that only grows.
#
# A solver that is called again with the same arguments takes the same steps in the same order. Their results
# are read from the journal, without reading the data, until it ends; from there on they are computed and
# appended. The solver's internal state (such as that of scipy's L-BFGS) need not be stored. Each record has a
# checksum. A record that was cut off, by a kill while it was written, is dropped and computed again.

Numbers = Sequence[Any]
"""Numbers and arrays of them, which are kept as doubles."""

JOURNAL_MAGIC = b"concordant journal 1\n"
LENGTH, CHECKSUM = struct.Struct("<Q"), 16
HEAD = LENGTH.size + CHECKSUM
STRANGE = "its steps differ from those of this fit: other library versions or another machine wrote it"


class Journal:
    """The records of a solver, read first and then appended to; a context in which the file is open.

    Parameters
    ----------
    checkpoint
        Folder and identity of the fit.
    part
        Name of a fit within this one; empty: the whole fit, or the results of its parts.
    """

    def __init__(self, checkpoint: Checkpoint, part: str = "") -> None:
        self.checkpoint, self.part = checkpoint, part
        self.path: Path = checkpoint.folder / (f"{part}.journal" if part else JOURNAL)
        self.stream: BinaryIO | None = None
        self.resources = ExitStack()  # the open file, and the folder's lock
        self.size, self.ended = 0, False

    def __enter__(self) -> Self:
        with ExitStack() as resources:
            if not self.part:
                resources.enter_context(self.checkpoint.lock(JOURNAL))
            with named_errors(self.path, "opened"):
                self.stream = resources.enter_context(self.path.open("a+b", buffering=0))
            self.begin(self.stream)
            self.resources = resources.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stream = None
        self.resources.close()

    def begin(self, stream: BinaryIO) -> None:
        """Check that the journal belongs to this fit; start a new one, or one cut off in its first record."""
        with named_errors(self.path, "read"):
            self.size = os.fstat(stream.fileno()).st_size
            stream.seek(0)
            magic = stream.read(len(JOURNAL_MAGIC))
        if not JOURNAL_MAGIC.startswith(magic):
            raise ModelFileError(self.path, "this version cannot read it as a journal", ANEW)
        facts = {**self.checkpoint.facts, "part": self.part}
        record = self.read() if magic == JOURNAL_MAGIC else None
        if record is None:
            with named_errors(self.path, "written"):
                stream.truncate(0)
                if not self.part:
                    self.clear()
            self.add(JOURNAL_MAGIC + frame_record(json.dumps(facts).encode() + b"\n"))
            self.ended = True
            return
        self.checkpoint.check(self.path, record[0])
        if record[0].get("part") != self.part:
            raise ModelFileError(self.path, "it belongs to another part of the fit", ANEW)

    def read(self) -> tuple[dict[str, Any], bytes] | None:
        """Return the next record, facts and numbers; None if there is no complete one: it is then cut off."""
        stream = self.open_stream()
        if self.ended:
            return None
        with named_errors(self.path, "read"):
            start = stream.tell()
            head = stream.read(HEAD)
            (length,) = LENGTH.unpack(head[: LENGTH.size]) if len(head) == HEAD else (0,)
            if len(head) < HEAD or length > self.size - start - HEAD:
                stream.truncate(start)
                self.ended = True
                return None
            payload = stream.read(length)
        if checksum(head[: LENGTH.size], payload) != head[LENGTH.size :]:
            raise ModelFileError(self.path, "a checksum in it is wrong: it is damaged", ANEW)
        facts, _, numbers = payload.partition(b"\n")
        with suppress(ValueError):
            parsed = json.loads(facts)
            if isinstance(parsed, dict):
                return parsed, numbers
        raise ModelFileError(self.path, "a record in it cannot be read", ANEW)

    def recall(self, step: str) -> list[FloatArray] | None:
        """Return the result of a step, as doubles, if the journal has it; None: it is yet to be computed."""
        if (record := self.read()) is None:
            return None
        facts, numbers = record
        if facts.get("step") != step:
            raise ModelFileError(self.path, STRANGE, ANEW)
        try:
            values = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
            cuts = np.cumsum([math.prod(shape) for shape in facts["shapes"]])[:-1]
            parts = np.split(values, cuts)
            return [part.reshape(shape) for part, shape in zip(parts, facts["shapes"], strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(self.path, "a record in it cannot be read", ANEW) from error

    def append(self, step: str, result: Numbers) -> None:
        """Write the result of a step."""
        parts = [np.asarray(part, dtype="<f8") for part in result]
        facts = {"step": step, "shapes": [part.shape for part in parts]}
        numbers = b"".join(map(np.ndarray.tobytes, parts))
        self.add(frame_record(json.dumps(facts).encode() + b"\n" + numbers))

    def add(self, record: bytes) -> None:
        """Write at the end, at once."""
        stream = self.open_stream()
        with named_errors(self.path, "written"):
            done = 0
            while done < len(record):  # mostly once: a write may stop short, where the disk is nearly full
                done += stream.write(record[done:]) or 0

    def open_stream(self) -> BinaryIO:
        """Return the open file; raise if it is not open."""
        if self.stream is None:
            raise ModelFileError(self.path, "it is not open")
        return self.stream

    def clear(self) -> None:
        """Remove the journals of parts: they belong to an abandoned fit if the whole is started again."""
        for path in self.checkpoint.folder.glob("*.journal"):
            if path == self.path or not path.is_file():
                continue
            with path.open("rb") as stream:
                ours = stream.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC
            if ours:
                path.unlink()

    def within(self, part: str) -> Journal:
        """Return the journal, not yet open, of a fit within this fit."""
        return Journal(self.checkpoint, part)

    def forget(self, part: str) -> None:
        """Remove the journal of a fit within this fit, once its result has been written."""
        with named_errors(self.path, "cleared"):
            self.within(part).path.unlink(missing_ok=True)


def recall_or_run(
    journal: Journal | None, kind: str, inputs: Numbers, work: Callable[[], Numbers]
) -> tuple[list[Any], bool]:
    """Return the result of a step, and True if it came from the journal; else compute and append it.

    Without a journal nothing is written.
    """
    if journal is None:
        return list(work()), False
    step = step_key(kind, inputs)  # before the work, which may change its inputs
    if (stored := journal.recall(step)) is not None:
        return list(stored), True
    result = work()
    journal.append(step, result)
    return list(result), False


def step_key(kind: str, inputs: Numbers) -> str:
    """Identify a step: its kind, and a digest of its inputs."""
    return f"{kind} {digest(*(np.asarray(number, dtype='<f8') for number in inputs))}"


def frame_record(payload: bytes) -> bytes:
    """Prepend length and checksum to a record."""
    length = LENGTH.pack(len(payload))
    return length + checksum(length, payload) + payload


def checksum(length: bytes, payload: bytes) -> bytes:
    """Checksum of a record."""
    hasher = hashlib.blake2b(length, digest_size=CHECKSUM)
    hasher.update(payload)
    return hasher.digest()
