"""`concordant rerun`: a run trained again from its own configuration, and compared with itself."""

from __future__ import annotations

import csv
import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import AsJson, Quiet, examples, new_table, note, number, print_json, show
from concordant.cli.place import HERE, LocalWorkers, Memory, Place, Scheduler
from concordant.exceptions import ConcordantError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.config import Config
    from concordant.cli.runs import RunFolder
    from concordant.cli.train_fit import Trained

__all__ = ["EXAMPLES", "rerun"]

EXAMPLES = examples(
    "concordant rerun runs/linear",
    "concordant rerun runs/linear -o runs/again --json",
    "concordant rerun runs/path --best",
    "concordant rerun runs/cluster --memory 2GiB",
)
NAMES = ("ranking", "metric", "convention")  # of a value
DIFFERENT = 1  # the exit status where the result is another one


def rerun(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run directory.", show_default=False)],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="NEW", help="Keep the new run in this folder. Default: nowhere."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Where the data files lie now, by their names."),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", metavar="", help="Of a search: train its best only.")
    ] = False,
    scheduler: Scheduler = None,
    local_cluster: LocalWorkers = None,
    memory: Memory = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train or tune again and compare: exit status 0 if all is the same to the last bit, 1 if not.

    Of a search every trial is made again; --best only trains what it found. Data that have changed since are
    refused (2).
    """
    from concordant.cli.runs import RunFolder

    old, place = RunFolder(run), Place.of(scheduler, local_cluster, memory)
    config = found_in(best_of(old) if best else old.config(), folder)
    if not old.facts().get("finished"):
        hint = "the command that began it goes on."
        raise ConcordantError(f"{run} is not finished: there is nothing to compare with.\nHint: {hint}")
    place = Place.like(old.facts()) if place == HERE else place
    place.admit(config)
    check_data(old, config)
    if output is not None:
        told = again(old, config, RunFolder(output), place, quiet=quiet or as_json)
    else:
        with tempfile.TemporaryDirectory(prefix="concordant-") as home:
            told = again(old, config, RunFolder(Path(home, "run")), place, quiet=quiet or as_json)
    if as_json:
        print_json({"run": str(run), "output": None if output is None else str(output), **told})
    else:
        show_comparison(told, quiet=quiet)
    if not told["same"]:
        raise typer.Exit(DIFFERENT)


def best_of(old: RunFolder) -> Config:
    """Give the configuration of what a search found."""
    from concordant.cli.config import read_config, resolved
    from concordant.cli.runs import BEST

    if not (old.path / BEST).is_file():
        raise ParameterError("--best", True, f"left out: {old.path} is not a run of `concordant tune`")
    return resolved(read_config(old.path / BEST))


def found_in(config: Config, folder: Path | None) -> Config:
    """Give the same run, its files looked for in another folder."""
    if folder is None:
        return config
    home = Path(os.path.abspath(folder))  # noqa: PTH100
    held = None if config.validation is None else home / config.validation.name
    tests = tuple(home / path.name for path in config.test)
    return dataclasses.replace(config, train=home / config.train.name, validation=held, test=tests)


def check_data(old: RunFolder, config: Config) -> None:
    """Refuse files that are not those of the run, before any work."""
    from concordant.cli.runs import changed_files, fingerprint

    prints = {part: fingerprint(path) for part, path in config.files.items()}
    changed = changed_files(old.facts(), {"data": prints})
    if changed:
        hint = "restore it, name the folder of the old one by --folder, or train anew."
        raise ConcordantError(f"{changed[0]} is not what it was when {old.path} was trained.\nHint: {hint}")


def again(old: RunFolder, config: Config, new: RunFolder, place: Place, *, quiet: bool) -> dict[str, Any]:
    """Train again, and give what is the same and what is not."""
    from concordant.cli.runs import METRICS
    from concordant.cli.train_fit import train_run
    from concordant.cli.tune_fit import tune_run

    before, facts = values_of(old.path / METRICS), old.facts()
    tried = [] if config.tune is None else trials_of(old)  # refused before any work
    kept = facts.get("checkpoint", True)  # of trees the file says whether they were grown in parts
    if config.tune is None:
        done = train_run(config, new, overwrite=False, checkpoint=kept, quiet=quiet, place=place)
        search = {}
    else:
        done = tune_run(config, new, overwrite=False, checkpoint=kept, quiet=quiet).trained
        search = {"search": same_search(tried, trials_of(new))}
    told = {
        "model": compared_digests(facts, done.facts),
        "metrics": compared(before, done),
        **search,
        "versions": changed_versions(facts, done),
        "seconds": done.facts["seconds"],
    }
    parts = [told["model"], *search.values(), *told["metrics"]]
    return {"same": all(one["same"] for one in parts), **told}


def compared_digests(before: dict[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Give the digests of both models."""
    then = before.get("model", {}).get("digest")
    return {"same": then == now["model"]["digest"], "before": then, "now": now["model"]["digest"]}


def trials_of(folder: RunFolder) -> list[dict[str, Any]]:
    """Give the trials of a search, but for the seconds they took."""
    from concordant.cli.runs import TRIALS, unlike_a_run

    path = folder.path / TRIALS
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return [{**row, "seconds": None} for row in csv.DictReader(stream)]
    except FileNotFoundError as error:
        hint = "restore it, or compare what was found only, with --best."
        raise ConcordantError(f"{path} is missing: the search cannot be compared.\nHint: {hint}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise unlike_a_run(path) from error


def same_search(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the trials."""
    return {"same": before == now, "before": len(before), "now": len(now)}


def values_of(path: Path) -> dict[tuple[str, ...], float | None]:
    """Give the values that a run wrote down; a file that has none is refused."""
    from concordant.cli.runs import read_json, unlike_a_run

    try:
        return {tuple(one[key] for key in NAMES): one["value"] for one in read_json(path)["results"]}
    except (KeyError, TypeError) as error:
        raise unlike_a_run(path) from error


def compared(before: Mapping[tuple[str, ...], float | None], done: Trained) -> list[dict[str, Any]]:
    """Give each metric then and now; equal means to the last bit."""
    rows = []
    for one in done.metrics()["results"]:
        name = tuple(one[key] for key in NAMES)
        then, now = before.get(name), one["value"] if one["value"] == one["value"] else None
        rows.append({**dict(zip(NAMES, name, strict=True)), "before": then, "now": now, "same": then == now})
    return rows


def changed_versions(facts: dict[str, Any], done: Trained) -> dict[str, list[str | None]]:
    """Give what was installed then and is another now."""
    then, now = facts.get("versions", {}), done.facts["versions"]
    then, now = then | {"platform": facts.get("platform")}, now | {"platform": done.facts["platform"]}
    return {
        name: [then.get(name), now.get(name)] for name in {**then, **now} if then.get(name) != now.get(name)
    }


def show_comparison(told: dict[str, Any], *, quiet: bool) -> None:
    """Print what is the same."""
    table = new_table("trained again", "data", "metric", "before", "now", "", numeric=("before", "now"))
    for one in told["metrics"]:
        values = [number(float("nan") if one[key] is None else one[key]) for key in ("before", "now")]
        table.add_row(one["ranking"], one["metric"], *values, word(one["same"]))
    table.add_row(
        "model", "", *(str(told["model"][key])[:8] for key in ("before", "now")), word(told["model"]["same"])
    )
    if "search" in told:
        counts = (f"{told['search'][key]} trials" for key in ("before", "now"))
        table.add_row("search", "", *counts, word(told["search"]["same"]))
    show(table)
    for name, (then, now) in ({} if quiet else told["versions"]).items():
        note(f"{name} was {then or 'not there'}, and is {now or 'not there'}")


def word(same: bool) -> str:
    """Say it."""
    return "same" if same else "different"
