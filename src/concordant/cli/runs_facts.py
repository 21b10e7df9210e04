"""What is known of a run: its data files, versions and times, as `run.json` says them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import shlex
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.train_kinds import packages_of
from concordant.exceptions import ConcordantError

if TYPE_CHECKING:
    from concordant.cli.config import Config
    from concordant.cli.train_fit import RankingSet

__all__ = [
    "changed_files",
    "fingerprint",
    "first_facts",
    "last_facts",
    "read_facts",
    "read_json",
    "unlike_a_run",
    "versions_of",
]

PARTS = ("data", "model", "versions", "search")  # of the facts: tables, where they are
PIECE = 1 << 20  # bytes hashed together


def read_facts(path: Path) -> dict[str, Any]:
    """Give the facts of a file; refused where they are not what a run writes."""
    facts = read_json(path)
    tables = [facts.get(name, {}) for name in PARTS]
    if isinstance(facts.get("data"), dict):
        tables += facts["data"].values()
    if not all(isinstance(one, dict) for one in tables):
        raise unlike_a_run(path)
    return facts


def read_json(path: Path) -> dict[str, Any]:
    """Give the object of a JSON file of ours."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConcordantError(
            f"{path}: this is not JSON ({error}).\nHint: train again, with --overwrite."
        ) from error
    if not isinstance(value, dict):
        raise unlike_a_run(path)
    return value


def unlike_a_run(path: Path) -> ConcordantError:
    """Give the error of a file in which there is something else."""
    return ConcordantError(f"{path}: this is not what a run writes.\nHint: train again, with --overwrite.")


def fingerprint(path: Path) -> dict[str, Any]:
    """Give the SHA-256 and the size of a file; of a folder, those of its Parquet files, and of their list."""
    if path.is_dir():
        return folder_print(path)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
            size += len(piece)
    return {"path": str(path), "sha256": digest.hexdigest(), "bytes": size}


def folder_print(path: Path) -> dict[str, Any]:
    """Give what a folder of Parquet files holds."""
    from concordant.supervision.scans.parquet import parquet_files

    prints = [fingerprint(Path(file)) for file in parquet_files(path)]
    files = {Path(one["path"]).name: one["sha256"] for one in prints}
    digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return {
        "path": str(path),
        "sha256": digest,
        "bytes": sum(one["bytes"] for one in prints),
        "files": files,
    }


def changed_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the data files that are not what they were."""
    known = before.get("data", {})
    return [
        file
        for part, one in now.get("data", {}).items()
        if part in known and known[part].get("sha256") != one["sha256"]
        for file in changed_within(known[part], one)
    ]


def changed_within(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the file, or those files of a folder, that are not what they were."""
    old, new = then.get("files"), now.get("files")
    if not isinstance(old, dict) or new is None:
        return [now["path"]]
    names = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
    return [str(Path(now["path"], name)) for name in names]


def versions_of(config: Config) -> dict[str, str]:
    """Give the versions that the result may depend on."""
    import concordant

    others = {name: importlib.metadata.version(name) for name in packages_of(config.kind, config.parameters)}
    return {"concordant": str(concordant.__version__), "python": platform.python_version(), **others}


def first_facts(
    config: Config, prints: Mapping[str, dict[str, Any]], rows: Mapping[str, RankingSet], *, checkpoint: bool
) -> dict[str, Any]:
    """Give what is known of a run before it begins."""
    sizes = {
        part: {"rows": one.n_rows, "queries": one.n_queries, "features": one.n_features}
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
