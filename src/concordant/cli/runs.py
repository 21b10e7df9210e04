"""Run directories: configuration, facts, metrics and model of one training, each written as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concordant.cli.config import HEAD, Config, differences, read_config, resolved
from concordant.cli.output import without_nan
from concordant.cli.runs_facts import (
    changed_files,
    fingerprint,
    first_facts,
    last_facts,
    read_facts,
    read_json,
    unlike_a_run,
    versions_of,
)
from concordant.cli.runs_files import (
    BEFORE,
    BEST,
    CHECKPOINT,
    CONFIG,
    FACTS,
    METRICS,
    MODEL,
    OURS,
    STUDY,
    TRIALS,
    WRITTEN,
    is_remnant,
    locked,
    move,
    refused,
    remove,
    sweep,
    write_bytes,
    write_text,
)
from concordant.exceptions import ClusterError, ConcordantError, ParameterError

__all__ = [
    "BEST",
    "CONFIG",
    "FACTS",
    "METRICS",
    "MORE",
    "OURS",
    "STUDY",
    "TRIALS",
    "RunFolder",
    "changed_files",
    "fingerprint",
    "first_facts",
    "last_facts",
    "read_json",
    "remove",
    "unlike_a_run",
    "versions_of",
]

MORE = "[tune] trials"  # in which a search may differ from what it goes on with


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
        return read_facts(file) if file.is_file() else {}

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

    def spare(self, file: Path | None) -> None:
        """Refuse to overwrite a run by a configuration of its own, which would be gone."""
        own = {(self.path / name).resolve() for name in OURS}
        if file is not None and self.state != "other" and file.resolve() in own:
            wanted = "a file that is not of the run which it would --overwrite; copy it first"
            raise ParameterError("--config", str(file), wanted)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out while the block runs; also a killed one lets go."""
        made = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with self.alone():
                self.mend()
                yield
        finally:
            if made:
                with suppress(OSError):  # it has something in it, as it should
                    self.path.rmdir()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse the folder where another process holds it."""
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
        for name in WRITTEN:
            remove(self.path / name)

    @property
    def before(self) -> Path:
        """Where the run lies that is being overwritten: whole, once its configuration is there."""
        return self.path / BEFORE

    def set_aside(self) -> None:
        """Keep what is there until `finish`; of several tries, what was there before the first."""
        if (self.before / CONFIG).is_file():
            self.clear()
            return
        self.before.mkdir(exist_ok=True)
        for name in WRITTEN:
            move(self.path / name, self.before / name)
        write_bytes(self.before / CONFIG, (self.path / CONFIG).read_bytes())

    def restore(self) -> None:
        """Give back the run that was to be overwritten, if there is one."""
        if (self.before / CONFIG).is_file():
            self.clear()
            (self.before / CONFIG).replace(self.path / CONFIG)
            self.mend()

    def mend(self) -> None:
        """Undo what a kill left half set aside; of a finished run, remove what was before it."""
        if not self.before.is_dir():
            return
        if self.state == "finished":
            self.forget()
        elif self.state == "interrupted" and not (self.before / CONFIG).is_file():
            for name in reversed(WRITTEN):
                move(self.before / name, self.path / name)
            self.forget()

    def forget(self) -> None:
        """Remove what was set aside."""
        if not self.before.is_dir():
            return
        for name in (*WRITTEN, CONFIG):
            remove(self.before / name)
        sweep(self.before)
        with suppress(OSError):  # it has something else in it
            self.before.rmdir()

    @contextmanager
    def restoring(self, *, resumed: bool) -> Iterator[None]:
        """Give back what was to be overwritten, should the block fail; bad input leaves no begun run."""
        try:
            yield
        except (OSError, MemoryError, ClusterError):  # of the machines: the same may yet succeed, and goes on
            raise
        except Exception as error:
            if isinstance(error.__cause__, OSError):
                raise
            if (self.before / CONFIG).is_file():
                self.restore()
            elif isinstance(error, ConcordantError) and not resumed:
                self.clear()
                remove(self.path / CONFIG)
            raise

    def begin(self, config: Config, facts: Mapping[str, Any], *, overwrite: bool = False) -> bool:
        """Write configuration and facts; whether the run was begun before. Another is refused or replaced."""
        self.path.mkdir(parents=True, exist_ok=True)
        begun = (self.path / CONFIG).is_file()
        if begun and overwrite and not self.goes_on(config, facts):
            self.set_aside()
            begun = False
        elif begun:
            changed = [one for one in self.changes(config, facts) if one != MORE]
            if changed:
                reason = f"an interrupted run that differs in {', '.join(changed[:5])}; --overwrite it"
                raise refused(self.path, f"{reason}, or name another folder")
        sweep(self.path)
        write_text(self.path / CONFIG, config.text())
        self.write(FACTS, facts)
        return begun

    def changes(self, config: Config, facts: Mapping[str, Any]) -> list[str]:
        """Name what this run would be another one in: settings and data files."""
        return [*differences(self.config(), config), *changed_files(self.facts(), facts)]

    def goes_on(self, config: Config, facts: Mapping[str, Any]) -> bool:
        """Whether the same run was interrupted here; what cannot be read does not go on."""
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
        remove(self.checkpoint)
        self.forget()
