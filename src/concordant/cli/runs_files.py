"""The files that a run is made of: what they are called, how they are written, moved and removed."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

from concordant.cli.data import CONFIG, MODEL

__all__ = [
    "BEFORE",
    "BEST",
    "CHECKPOINT",
    "CONFIG",
    "FACTS",
    "METRICS",
    "MODEL",
    "OURS",
    "STUDY",
    "TRIALS",
    "WRITTEN",
    "is_remnant",
    "locked",
    "move",
    "refused",
    "remove",
    "sweep",
    "write_bytes",
    "write_text",
]

FACTS, METRICS, CHECKPOINT = "run.json", "metrics.json", "checkpoint"
STUDY, TRIALS, BEST = "study.log", "trials.csv", "best.toml"  # of `tune`
OURS = (CONFIG, FACTS, METRICS, MODEL, CHECKPOINT, STUDY, TRIALS, BEST)
BEFORE = ".concordant-before"  # the run that is being overwritten, until the new one is finished
WRITTEN = (FACTS, *(one for one in OURS if one not in (FACTS, CONFIG)))  # under a configuration, which stays


def locked(handle: int, operation: int) -> bool:
    """Whether a folder is ours now; on file systems without locks it is, as nobody can tell."""
    import fcntl

    try:
        fcntl.flock(handle, operation)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move(path: Path, to: Path) -> None:
    """Move a file or a folder within a file system, if it is there."""
    if path.exists() or path.is_symlink():
        path.replace(to)


def refused(path: Path, reason: str) -> FileExistsError:
    """Give the error that names a folder and why it is not used."""
    return FileExistsError(errno.EEXIST, reason, str(path))


def is_remnant(path: Path) -> bool:
    """Whether this is what a killed write of ours leaves: the name that `write_atomically` gives."""
    written = (Path(name) for name in OURS)
    return path.is_file() and any(
        re.fullmatch(rf"\.{re.escape(one.stem)}\.[0-9a-f]{{8}}\.tmp{re.escape(one.suffix)}", path.name)
        for one in written
    )


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, contents: bytes) -> None:
    """Write a file, whole or not at all."""
    from concordant.supervision.readers.text import write_atomically

    with write_atomically(path) as stream:
        stream.write(contents)


def sweep(folder: Path) -> None:
    """Remove what killed writes have left."""
    for one in folder.glob(".*"):
        if is_remnant(one):
            one.unlink()
