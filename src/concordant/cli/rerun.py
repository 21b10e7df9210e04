"""`concordant rerun`: a run trained again from its own configuration, and compared with itself."""

from __future__ import annotations

import csv
import dataclasses
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from concordant.cli.shared.compute_target import IN_MEMORY, ComputeTarget, LocalWorkers, Memory, Scheduler
from concordant.cli.shared.output import (
    Display,
    TableResult,
    argument,
    examples,
    new_table,
    number,
    option,
    switch,
)
from concordant.exceptions import ConcordantError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.runs.config import Config
    from concordant.cli.runs.run_folder import RunFolder
    from concordant.cli.train.train_fit import TrainedRun

EXAMPLES = examples(
    "concordant rerun runs/linear",
    "concordant rerun runs/linear -o runs/again --json",
    "concordant rerun runs/path --best",
    "concordant rerun runs/cluster --memory 2GiB",
)
NAMES = ("ranking", "metric", "convention")  # key of a value
DIFFERENT = 1  # the exit status where the result is another one


def rerun(
    run: Annotated[Path, argument("RUN", "A finished run directory.")],
    *,
    output: Annotated[
        Path | None, option("--output -o", "NEW", "Keep the new run in this folder. Default: nowhere.")
    ] = None,
    folder: Annotated[
        Path | None, option("--folder", "FOLDER", "Where the data files lie now, by their names.")
    ] = None,
    best: Annotated[bool, switch("--best", "Of a search: train its best only.")] = False,
    scheduler: Scheduler = None,
    local_cluster: LocalWorkers = None,
    memory: Memory = None,
    display: Display,
) -> None:
    """Train or tune again and compare: exit status 0 if all is the same to the last bit, 1 if not.

    Of a search every trial is made again; --best only trains what it found. Data that have changed since are
    refused (2).
    """
    from concordant.cli.runs.run_folder import RunFolder

    old, target = RunFolder(run), ComputeTarget.from_options(scheduler, local_cluster, memory)
    config = _relocate_files(_best_config(old) if best else old.config(), folder)
    if not old.facts().get("finished"):
        hint = "the command that began it goes on."
        raise ConcordantError(f"{run} is not finished: there is nothing to compare with.\nHint: {hint}")
    target = ComputeTarget.from_facts(old.facts()) if target == IN_MEMORY else target
    target.admit(config)
    _check_data(old, config)
    _check_model(old)
    with ExitStack() as stack:
        path = output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="concordant-")), "run")
        comparison = _run_again(old, config, RunFolder(path), target, quiet=display.is_bare)
    values = {"run": str(run), "output": None if output is None else str(output), **comparison}
    display.present(TableResult(values, _comparison_table(comparison)))
    if not display.as_json:
        versions = comparison["versions"].items()
        changes = ((name, then or "not there", now or "not there") for name, (then, now) in versions)
        display.notes(f"{name} was {then}, and is {now}" for name, then, now in changes)
    if not comparison["same"]:
        raise typer.Exit(DIFFERENT)


def _best_config(old: RunFolder) -> Config:
    """Read the configuration of the best trial of a search."""
    from concordant.cli.runs.config import read_config, resolve_config
    from concordant.cli.runs.run_folder import BEST

    if not (old.path / BEST).is_file():
        raise ParameterError.because(f"--best needs a run of `concordant tune`, and {old.path} is not one.")
    return resolve_config(read_config(old.path / BEST))


def _relocate_files(config: Config, folder: Path | None) -> Config:
    if folder is None:
        return config
    home = Path(os.path.abspath(folder))  # noqa: PTH100
    validation = None if config.validation is None else home / config.validation.name
    tests = tuple(home / path.name for path in config.test)
    return dataclasses.replace(config, train=home / config.train.name, validation=validation, test=tests)


def _check_data(old: RunFolder, config: Config) -> None:
    """Raise before the work if a data file has changed since the run."""
    from concordant.cli.runs.run_folder import changed_files, fingerprint

    prints = {part: fingerprint(path) for part, path in config.files.items()}
    changed = changed_files(old.facts(), {"data": prints})
    if changed:
        hint = "restore it, name the folder of the old one by --folder, or train anew."
        raise ConcordantError(f"{changed[0]} is not what it was when {old.path} was trained.\nHint: {hint}")


def _check_model(old: RunFolder) -> None:
    """Raise if the folder holds another model than the run made."""
    from concordant import digest_of
    from concordant.cli.shared.row_options import MODEL

    path = old.path / MODEL
    if path.is_file() and digest_of(path) != old.digest():
        hint = "restore it, or train anew."
        raise ConcordantError(f"{path} is not the model that {old.path} was finished with.\nHint: {hint}")


def _run_again(
    old: RunFolder, config: Config, new: RunFolder, target: ComputeTarget, *, quiet: bool
) -> dict[str, Any]:
    """Train again, and compare model, metrics, search and versions."""
    from concordant.cli.runs.run_folder import METRICS
    from concordant.cli.train.train_fit import train_run
    from concordant.cli.tune.tune_fit import tune_run

    before, facts = _read_values(old.path / METRICS), old.facts()
    tried = [] if config.tune is None else _read_trials(old)  # refused before any work
    checkpoint = facts.get("checkpoint", True)  # the model file records whether trees were grown in parts
    if config.tune is None:
        done = train_run(config, new, overwrite=False, checkpoint=checkpoint, quiet=quiet, target=target)
        search = {}
    else:
        done = tune_run(config, new, overwrite=False, checkpoint=checkpoint, quiet=quiet).trained
        again = _read_trials(new)
        search = {"search": {"same": tried == again, "before": len(tried), "now": len(again)}}
    digest = done.facts["model"]["digest"]
    comparison = {
        "model": {"same": digest == old.digest(), "before": old.digest(), "now": digest},
        "metrics": _compare_metrics(before, done),
        **search,
        "versions": _changed_versions(facts, done),
        "seconds": done.facts["seconds"],
    }
    parts = [comparison["model"], *search.values(), *comparison["metrics"]]
    return {"same": all(part["same"] for part in parts), **comparison}


def _read_trials(folder: RunFolder) -> list[dict[str, Any]]:
    """Read the trials of a search, without the seconds they took."""
    from concordant.cli.runs.run_folder import TRIALS, damaged_run_error

    path = folder.path / TRIALS
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return [{**row, "seconds": None} for row in csv.DictReader(stream)]
    except FileNotFoundError as error:
        hint = "restore it, or compare what was found only, with --best."
        raise ConcordantError(f"{path} is missing: the search cannot be compared.\nHint: {hint}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged_run_error(path) from error


def _read_values(path: Path) -> dict[tuple[str, ...], float | None]:
    from concordant.cli.runs.run_folder import damaged_run_error, read_json

    try:
        return {tuple(result[key] for key in NAMES): result["value"] for result in read_json(path)["results"]}
    except (KeyError, TypeError) as error:
        raise damaged_run_error(path) from error


def _compare_metrics(
    before: Mapping[tuple[str, ...], float | None], done: TrainedRun
) -> list[dict[str, Any]]:
    """Return each metric before and now; equal means to the last bit."""
    rows = []
    for result in done.metrics()["results"]:
        name = tuple(result[key] for key in NAMES)
        then, now = before.get(name), result["value"] if result["value"] == result["value"] else None
        rows.append({**dict(zip(NAMES, name, strict=True)), "before": then, "now": now, "same": then == now})
    return rows


def _changed_versions(facts: dict[str, Any], done: TrainedRun) -> dict[str, list[str | None]]:
    then, now = facts.get("versions", {}), done.facts["versions"]
    then, now = then | {"platform": facts.get("platform")}, now | {"platform": done.facts["platform"]}
    return {
        name: [then.get(name), now.get(name)] for name in {**then, **now} if then.get(name) != now.get(name)
    }


def _comparison_table(comparison: dict[str, Any]) -> Table:
    """Build the table of the comparison: a row per metric, the digests, and the trials of a search."""
    table = new_table("trained again", "data", "metric", "before", "now", "", numeric=("before", "now"))
    for row in comparison["metrics"]:
        values = [number(float("nan") if row[key] is None else row[key]) for key in ("before", "now")]
        table.add_row(row["ranking"], row["metric"], *values, _same_word(row))
    digests = (str(comparison["model"][key])[:8] for key in ("before", "now"))
    table.add_row("model", "", *digests, _same_word(comparison["model"]))
    if "search" in comparison:
        counts = (f"{comparison['search'][key]} trials" for key in ("before", "now"))
        table.add_row("search", "", *counts, _same_word(comparison["search"]))
    return table


def _same_word(part: Mapping[str, Any]) -> str:
    return "same" if part["same"] else "different"
