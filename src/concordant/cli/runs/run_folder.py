"""Run directories: configuration, facts, metrics and model of one training, each written as a whole."""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.runs.config import HEAD, Config, differences, read_config, resolve_config
from concordant.cli.shared.output import without_nan
from concordant.cli.shared.row_options import CONFIG, MODEL
from concordant.cli.train.train_options import packages_of
from concordant.exceptions import ClusterError, ConcordantError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.train.train_fit import RankingSet


# The files of a run: their names, and how they are written, moved and removed.

FACTS, METRICS, CHECKPOINT = "run.json", "metrics.json", "checkpoint"
STUDY, TRIALS, BEST = "study.log", "trials.csv", "best.toml"  # of `tune`
OURS = (CONFIG, FACTS, METRICS, MODEL, CHECKPOINT, STUDY, TRIALS, BEST)
BEFORE = ".concordant-before"  # the run that is being overwritten, until the new one is finished
WRITTEN = (FACTS, *(name for name in OURS if name not in (FACTS, CONFIG)))  # all but the configuration


def _try_lock(handle: int, operation: int) -> bool:
    """True if the folder is locked by us now, or on a file system without locks."""
    import fcntl

    try:
        fcntl.flock(handle, operation)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move(path: Path, to: Path) -> None:
    """Move a file or a folder within a file system, if it is there."""
    if path.exists() or path.is_symlink():
        path.replace(to)


def _folder_error(path: Path, reason: str) -> FileExistsError:
    """Return the error that names a folder and why it is not used."""
    return FileExistsError(errno.EEXIST, reason, str(path))


def _is_remnant(path: Path) -> bool:
    """True if a killed `write_atomically` has left this file."""
    targets = (Path(name) for name in OURS)
    return path.is_file() and any(
        re.fullmatch(rf"\.{re.escape(target.stem)}\.[0-9a-f]{{8}}\.tmp{re.escape(target.suffix)}", path.name)
        for target in targets
    )


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, contents: bytes) -> None:
    """Write a file, whole or not at all."""
    from concordant._base.files import write_atomically

    with write_atomically(path) as stream:
        stream.write(contents)


def sweep(folder: Path) -> None:
    """Remove what killed writes have left."""
    for file in folder.glob(".*"):
        if _is_remnant(file):
            file.unlink()


# The facts of a run in `run.json`: data files, versions and times.

PARTS = ("data", "model", "versions", "search")  # facts that must be tables if present


def _read_facts(path: Path) -> dict[str, Any]:
    """Read the facts of a run; raise if the file is not what a run writes."""
    facts = read_json(path)
    tables = [facts.get(name, {}) for name in PARTS]
    if isinstance(facts.get("data"), dict):
        tables += facts["data"].values()
    if not all(isinstance(table, dict) for table in tables):
        raise damaged_run_error(path)
    return facts


def read_json(path: Path) -> dict[str, Any]:
    """Read the object of a JSON file of a run."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConcordantError(
            f"{path}: the file is not JSON ({error}).\nHint: train again, with --overwrite."
        ) from error
    if not isinstance(value, dict):
        raise damaged_run_error(path)
    return value


def damaged_run_error(path: Path) -> ConcordantError:
    """Return the error for a file that is not what a run writes."""
    return ConcordantError(
        f"{path}: the file was not written by a run.\nHint: train again, with --overwrite."
    )


def fingerprint(path: Path) -> dict[str, Any]:
    """Return the SHA-256 and the size of a file; of a folder, of each Parquet file and of their list."""
    if path.is_dir():
        return _folder_print(path)
    with path.open("rb") as stream:
        digest, size = hashlib.file_digest(stream, "sha256"), stream.tell()
    return {"path": str(path), "sha256": digest.hexdigest(), "bytes": size}


def _folder_print(path: Path) -> dict[str, Any]:
    from concordant.scale.scan.parquet import parquet_files

    prints = [fingerprint(Path(file)) for file in parquet_files(path)]
    files = {Path(file_print["path"]).name: file_print["sha256"] for file_print in prints}
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return {
        "path": str(path),
        "sha256": digest,
        "bytes": sum(file_print["bytes"] for file_print in prints),
        "files": files,
    }


def changed_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List the data files that have changed."""
    old_data = before.get("data", {})
    return [
        file
        for part, facts in now.get("data", {}).items()
        if part in old_data and old_data[part].get("sha256") != facts["sha256"]
        for file in _changed_within(old_data[part], facts)
    ]


def _changed_within(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    old, new = then.get("files"), now.get("files")
    if not isinstance(old, dict) or new is None:
        return [now["path"]]
    names = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
    return [str(Path(now["path"], name)) for name in names]


def _dependency_versions(config: Config) -> dict[str, str]:
    import concordant

    others = {name: importlib.metadata.version(name) for name in packages_of(config.kind, config.parameters)}
    return {"concordant": str(concordant.__version__), "python": platform.python_version(), **others}


def first_facts(
    config: Config, prints: Mapping[str, dict[str, Any]], rows: Mapping[str, RankingSet], *, checkpoint: bool
) -> dict[str, Any]:
    """Return the facts of a run before it begins."""
    sizes = {
        part: {"rows": row_set.n_rows, "queries": row_set.n_queries, "features": row_set.n_features}
        for part, row_set in rows.items()
    }
    return {
        "command": shlex.join(["concordant", *sys.argv[1:]]),
        "versions": _dependency_versions(config),
        "platform": platform.platform(),
        "seed": config.seed,
        "checkpoint": checkpoint,
        "data": {part: {**prints[part], **sizes[part]} for part in rows},
        "started": now(),
        "finished": None,
        "seconds": None,
    }


def last_facts(facts: Mapping[str, Any], begun: float, **more: Any) -> dict[str, Any]:
    """Return the facts of a run at its end; `begun` by `time.perf_counter`."""
    return {**facts, "finished": now(), "seconds": round(time.perf_counter() - begun, 3), **more}


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


MORE = "[tune] trials"  # in which a resumed search may differ


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    Its state is "new" (absent or empty), "interrupted" (it has a configuration, but no end), "finished" (its
    facts have the time), or "other": files that no run wrote are never touched.
    """

    path: Path

    @property
    def state(self) -> str:
        """One of "new", "interrupted", "finished" and "other"."""
        if not self.path.is_dir():
            return "other" if self.path.exists() or self.path.is_symlink() else "new"
        names = {entry.name for entry in self.path.iterdir() if not _is_remnant(entry)}
        if not names:
            return "new"
        if CONFIG not in names or not (self.path / CONFIG).read_bytes().startswith(HEAD.encode()):
            return "other"  # or the configuration was written by a user
        try:
            return "finished" if self.facts().get("finished") else "interrupted"
        except ConcordantError:  # damaged facts are reported where they are read
            return "interrupted"

    @property
    def checkpoint(self) -> Path:
        """Path of the checkpoint of a long fit."""
        return self.path / CHECKPOINT

    def facts(self) -> dict[str, Any]:
        """Read the facts of the run; empty if it was interrupted before they were written."""
        file = self.path / FACTS
        return _read_facts(file) if file.is_file() else {}

    def digest(self) -> str | None:
        """Return the digest of the model that the run was finished with; None if it is not finished."""
        digest: str | None = self.facts().get("model", {}).get("digest")
        return digest

    def config(self) -> Config:
        """Read the configuration."""
        if not (self.path / CONFIG).is_file():
            hint = f"a run of `concordant train -o RUN` has {CONFIG}, {FACTS}, {METRICS} and {MODEL}."
            raise ConcordantError(f"{self.path} is not a run directory: it has no {CONFIG}.\nHint: {hint}")
        sections = read_config(self.path / CONFIG)
        return resolve_config(sections, tuned="tune" in sections)

    def admit(self, *, overwrite: bool) -> None:
        """Raise before the work if the folder cannot take a run."""
        state = self.state
        if state == "other":
            raise _folder_error(self.path, "this is not a run directory, and not empty; name another")
        if state == "finished" and not overwrite:
            raise _folder_error(self.path, "this run is finished; name another folder, or --overwrite it")

    def spare(self, file: Path | None) -> None:
        """Raise if the run that would be overwritten contains the configuration file."""
        run_files = {(self.path / name).resolve() for name in OURS}
        if file is not None and self.state != "other" and file.resolve() in run_files:
            problem = (
                f"--overwrite would delete {str(file)!r}, which --config reads. Copy it elsewhere first."
            )
            raise ParameterError.because(problem)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder while the block runs; a killed process releases it too."""
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with self.lock():
                self.mend()
                yield
        finally:
            if is_new:
                with suppress(OSError):  # it is not empty, as it should be
                    self.path.rmdir()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Raise if another process holds the folder; else lock it while the block runs."""
        try:
            import fcntl
        except ImportError:  # Windows: the user must not start two runs in one folder
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            if not _try_lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                raise _folder_error(self.path, "another process is at work here; wait, or name another")
            yield
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Remove what a run has written, the facts first: without them it is not finished."""
        for name in WRITTEN:
            _remove(self.path / name)

    @property
    def before(self) -> Path:
        """Path of the run that is being overwritten: complete once its configuration is there."""
        return self.path / BEFORE

    def set_aside(self) -> None:
        """Move the run aside until `finish`; after several attempts the run before the first one is kept."""
        if (self.before / CONFIG).is_file():
            self.clear()
            return
        self.before.mkdir(exist_ok=True)
        for name in WRITTEN:
            move(self.path / name, self.before / name)
        write_bytes(self.before / CONFIG, (self.path / CONFIG).read_bytes())

    def restore(self) -> None:
        """Move the run back that was to be overwritten, if there is one."""
        if (self.before / CONFIG).is_file():
            self.clear()
            (self.before / CONFIG).replace(self.path / CONFIG)
            self.mend()

    def mend(self) -> None:
        """Undo a move that a kill interrupted; of a finished run, remove what was there before."""
        if not self.before.is_dir():
            return
        if self.state == "finished":
            self.forget()
        elif self.state == "interrupted" and not (self.before / CONFIG).is_file():
            for name in reversed(WRITTEN):
                move(self.before / name, self.path / name)
            self.forget()

    def forget(self) -> None:
        """Remove the run that was set aside."""
        if not self.before.is_dir():
            return
        for name in (*WRITTEN, CONFIG):
            _remove(self.before / name)
        sweep(self.before)
        with suppress(OSError):  # it holds other files
            self.before.rmdir()

    @contextmanager
    def restoring(self, *, resumed: bool) -> Iterator[None]:
        """Restore the overwritten run if the block fails; bad input leaves no begun run behind."""
        try:
            yield
        except (
            OSError,
            MemoryError,
            ClusterError,
        ):  # of the machine: the same run may succeed later, and is resumed
            raise
        except Exception as error:
            if isinstance(error.__cause__, OSError):
                raise
            if (self.before / CONFIG).is_file():
                self.restore()
            elif isinstance(error, ConcordantError) and not resumed:
                self.clear()
                _remove(self.path / CONFIG)
            raise

    def begin(self, config: Config, facts: Mapping[str, Any], *, overwrite: bool = False) -> bool:
        """Write configuration and facts; return True if the run is resumed. Raise for another run."""
        self.path.mkdir(parents=True, exist_ok=True)
        begun = (self.path / CONFIG).is_file()
        if begun and overwrite and not self.can_resume(config, facts):
            self.set_aside()
            begun = False
        elif begun:
            changed = [name for name in self.changes(config, facts) if name != MORE]
            if changed:
                reason = f"an interrupted run that differs in {', '.join(changed[:5])}; --overwrite it"
                raise _folder_error(self.path, f"{reason}, or name another folder")
        sweep(self.path)
        write_text(self.path / CONFIG, config.text())
        self.write(FACTS, facts)
        return begun

    def changes(self, config: Config, facts: Mapping[str, Any]) -> list[str]:
        """List the settings and data files in which this run would differ."""
        return [*differences(self.config(), config), *changed_files(self.facts(), facts)]

    def can_resume(self, config: Config, facts: Mapping[str, Any]) -> bool:
        """True if the same run was interrupted here; False if the folder cannot be read."""
        try:
            return self.state == "interrupted" and not self.changes(config, facts)
        except ConcordantError:
            return False

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write values as JSON, whole or not at all."""
        write_text(self.path / name, json.dumps(without_nan(dict(value)), indent=2, allow_nan=False) + "\n")

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write that it is done, and remove what was kept for an interruption."""
        self.write(FACTS, facts)
        _remove(self.checkpoint)
        self.forget()
