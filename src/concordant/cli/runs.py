"""Run directories: configuration, facts, metrics and model of one training, each written as a whole."""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.config import HEAD, Config, differences, read_config, resolved
from concordant.cli.data import CONFIG, MODEL
from concordant.cli.output import without_nan
from concordant.cli.train_kinds import packages_of
from concordant.exceptions import ConcordantError

if TYPE_CHECKING:
    from concordant.cli.data_rows import FileRows

__all__ = [
    "BEST",
    "CONFIG",
    "FACTS",
    "METRICS",
    "STUDY",
    "TRIALS",
    "RunFolder",
    "changed_files",
    "fingerprint",
    "first_facts",
    "last_facts",
    "read_json",
    "remove",
    "versions_of",
]

FACTS, METRICS, CHECKPOINT = "run.json", "metrics.json", "checkpoint"
STUDY, TRIALS, BEST = "study.log", "trials.csv", "best.toml"  # of `tune`
OURS = (CONFIG, FACTS, METRICS, MODEL, CHECKPOINT, STUDY, TRIALS, BEST)
MORE = "[tune] trials"  # in which a search may differ from what it goes on with
PIECE = 1 << 20  # bytes hashed together


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    It is new (absent or empty), interrupted (it has a configuration, and no end), finished (its facts say
    when), or other: whatever is not ours is never touched.
    """

    path: Path

    @property
    def state(self) -> str:
        """One of "new", "interrupted", "finished" and "other"."""
        if not self.path.is_dir():
            return "other" if self.path.exists() or self.path.is_symlink() else "new"
        names = {one.name for one in self.path.iterdir() if not is_remnant(one)}
        if not names:
            return "new"
        if CONFIG not in names or not (self.path / CONFIG).read_bytes().startswith(HEAD.encode()):
            return "other"  # or it has a configuration that a user wrote
        try:
            return "finished" if self.facts().get("finished") else "interrupted"
        except ConcordantError:  # damaged facts say nothing: they are read again where they matter
            return "interrupted"

    @property
    def checkpoint(self) -> Path:
        """Where a long fit is kept while it runs."""
        return self.path / CHECKPOINT

    def facts(self) -> dict[str, Any]:
        """Give what is known of the run; nothing where it was interrupted before that."""
        file = self.path / FACTS
        return read_json(file) if file.is_file() else {}

    def config(self) -> Config:
        """Give the configuration."""
        if not (self.path / CONFIG).is_file():
            hint = f"a run of `concordant train -o RUN` has {CONFIG}, {FACTS}, {METRICS} and {MODEL}."
            raise ConcordantError(f"{self.path} is no run directory: it has no {CONFIG}.\nHint: {hint}")
        sections = read_config(self.path / CONFIG)
        return resolved(sections, tuned="tune" in sections)

    def admit(self, *, overwrite: bool) -> None:
        """Refuse a folder in which no run has a place, before any work."""
        state = self.state
        if state == "other":
            raise refused(self.path, "this is not a run directory, and not empty; name another")
        if state == "finished" and not overwrite:
            raise refused(self.path, "this run is finished; name another folder, or --overwrite it")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out while the block runs; also a killed one lets go."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # Windows: two runs in one folder are the user's to avoid
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            if not locked(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                raise refused(self.path, "another process is at work here; wait, or name another")
            yield
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Remove what a run has written, the facts first: without them it is not finished."""
        for name in (FACTS, *(one for one in OURS if one not in (FACTS, CONFIG)), CONFIG):
            remove(self.path / name)

    def begin(self, config: Config, facts: Mapping[str, Any], *, overwrite: bool = False) -> bool:
        """Write configuration and facts; whether the run was begun before. Of another run: refused."""
        self.path.mkdir(parents=True, exist_ok=True)
        if overwrite:
            self.clear()
        begun = (self.path / CONFIG).is_file()
        if begun:
            changed = [one for one in differences(self.config(), config) if one != MORE]
            changed = changed or changed_files(self.facts(), facts)
            if changed:
                reason = f"an interrupted run that differs in {', '.join(changed[:5])}; --overwrite it"
                raise refused(self.path, f"{reason}, or name another folder")
        for one in self.path.iterdir():
            if is_remnant(one):
                one.unlink()
        write_text(self.path / CONFIG, config.text())
        self.write(FACTS, facts)
        return begun

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write values as JSON, whole or not at all."""
        write_text(self.path / name, json.dumps(without_nan(dict(value)), indent=2, allow_nan=False) + "\n")

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write that it is done, and remove what was kept for an interruption."""
        self.write(FACTS, facts)
        remove(self.checkpoint)


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


def refused(path: Path, reason: str) -> FileExistsError:
    """Give the error that names a folder and why it is not used."""
    return FileExistsError(errno.EEXIST, reason, str(path))


def is_remnant(path: Path) -> bool:
    """Whether this is what a killed write leaves."""
    return path.name.startswith(".") and ".tmp" in path.name


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    from concordant.supervision.readers.text import write_atomically

    with write_atomically(path) as stream:
        stream.write(text.encode())


def read_json(path: Path) -> dict[str, Any]:
    """Give the object of a JSON file of ours."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConcordantError(
            f"{path}: this is not JSON ({error}).\nHint: train again, with --overwrite."
        ) from error
    if not isinstance(value, dict):
        raise ConcordantError(f"{path}: this is not what a run writes.\nHint: train again, with --overwrite.")
    return value


def fingerprint(path: Path) -> dict[str, Any]:
    """Give the SHA-256 and the size of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
            size += len(piece)
    return {"path": str(path), "sha256": digest.hexdigest(), "bytes": size}


def changed_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the data files that are not what they were."""
    known = before.get("data", {})
    return [
        one["path"]
        for part, one in now.get("data", {}).items()
        if part in known and known[part].get("sha256") != one["sha256"]
    ]


def versions_of(config: Config) -> dict[str, str]:
    """Give the versions that the result may depend on."""
    import concordant

    others = {name: importlib.metadata.version(name) for name in packages_of(config.kind, config.parameters)}
    return {"concordant": str(concordant.__version__), "python": platform.python_version(), **others}


def first_facts(
    config: Config, prints: Mapping[str, dict[str, Any]], rows: Mapping[str, FileRows], *, checkpoint: bool
) -> dict[str, Any]:
    """Give what is known of a run before it begins."""
    sizes = {
        part: {"rows": one.X.shape[0], "queries": one.n_queries, "features": one.X.shape[1]}
        for part, one in rows.items()
    }
    return {
        "command": shlex.join(["concordant", *sys.argv[1:]]),
        "versions": versions_of(config),
        "platform": platform.platform(),
        "seed": config.seed,
        "checkpoint": checkpoint,
        "data": {part: {**prints[part], **sizes[part]} for part in rows},
        "started": now(),
        "finished": None,
        "seconds": None,
    }


def last_facts(facts: Mapping[str, Any], begun: float, **more: Any) -> dict[str, Any]:
    """Give what is known of a run at its end; `begun` by `time.perf_counter`."""
    return {**facts, "finished": now(), "seconds": round(time.perf_counter() - begun, 3), **more}


def now() -> str:
    """Give the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
