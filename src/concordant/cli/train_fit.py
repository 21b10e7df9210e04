"""One training from its configuration to a finished run directory; `train`, `tune` and `rerun` share it."""

from __future__ import annotations

import hashlib
import inspect
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from concordant.cli.config import Config
from concordant.cli.data import MODEL
from concordant.cli.data_rows import FileRows, features_for
from concordant.cli.output import console, note, plural
from concordant.cli.place import HERE, Place
from concordant.cli.results import Result, as_dict
from concordant.cli.runs import METRICS, RunFolder, first_facts, last_facts
from concordant.cli.train_files import StandIn, read_files
from concordant.cli.train_parts import scan_files
from concordant.exceptions import ClusterError

__all__ = [
    "Begun",
    "RankingSet",
    "Trained",
    "complete",
    "fit_rows",
    "refuse_interrupted",
    "train_run",
    "working_in",
]


class RankingSet(Protocol):
    """Queries to train on or to measure on: `FileRows` in memory, or `FileParts`."""

    @property
    def path(self) -> Path:
        """Where they are."""

    @property
    def n_rows(self) -> int:
        """Rows."""

    @property
    def n_queries(self) -> int:
        """Queries."""

    @property
    def n_features(self) -> int:
        """Features of a row."""

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give what `fit` is called with."""

    def judged(self, model: Any, name: str, metrics: Sequence[str], *, quiet: bool) -> list[Result]:
        """Give what a model is worth on them."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run.

    Attributes
    ----------
    folder, config, facts
        Where it is, what it was made of, what is known of it.
    model, rows, results
        The fitted ranker, the files it was trained and measured on, and what it is worth there.
    notes
        What a reader should know: warnings of the fit, and what was left out of it.
    resumed
        Whether it was begun before, and went on.
    """

    folder: RunFolder
    config: Config
    facts: Mapping[str, Any]
    model: Any
    rows: Mapping[str, RankingSet]
    results: list[Result]
    notes: list[str]
    resumed: bool

    def metrics(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        rankings = list({id(one.ranking): one.ranking for one in self.results}.values())
        return as_dict(rankings, self.results, per_query=False)


def train_run(
    config: Config, folder: RunFolder, *, overwrite: bool, checkpoint: bool, quiet: bool, place: Place = HERE
) -> Trained:
    """Read, fit, measure and write; an interrupted run of the same goes on where it was."""
    folder.admit(overwrite=overwrite)
    config.ranker()  # refuses wrong parameters before any work
    place.admit(config)
    checkpoint = checkpoint and not (place.is_cluster and config.kind == "boosted")  # LightGBM begins anew
    with place.client(quiet=quiet) as client:
        rows: Mapping[str, RankingSet]
        if place.in_parts:
            rows, prints = scan_files(config, place, client, quiet=quiet)
        else:
            rows, prints = read_files(config, quiet=quiet)
        with working_in(folder, quiet=quiet):
            folder.admit(overwrite=overwrite)  # while files were read, another may have finished it
            facts = first_facts(config, prints, rows, checkpoint=checkpoint) | place.facts(client)
            begun = Begun(config, folder, facts, rows, time.perf_counter())
            resumed = folder.begin(config, begun.facts, overwrite=overwrite)
            with folder.restoring(resumed=resumed):
                return complete(begun, config, resumed=resumed, checkpoint=checkpoint, quiet=quiet)


@dataclass(frozen=True, eq=False)
class Begun:
    """A run whose folder says what it will be; `at` by `time.perf_counter`."""

    config: Config
    folder: RunFolder
    facts: Mapping[str, Any]
    rows: Mapping[str, RankingSet]
    at: float


def complete(
    begun: Begun, config: Config, *, resumed: bool, checkpoint: bool, quiet: bool, **more: Any
) -> Trained:
    """Fit, measure and write the rest; `config` is that of the model, `more` are facts of its search."""
    folder, rows, model = begun.folder, begun.rows, config.ranker()
    if checkpoint and "checkpoint" in model.get_params(deep=False):
        # A search that goes on may find something else: then what is kept of this fit is not of that.
        # Nor does a fit in memory go on in parts, which are summed up in another order.
        own = hashlib.sha256((config.text() + "place" * ("place" in begun.facts)).encode()).hexdigest()[:12]
        model.set_params(checkpoint=folder.checkpoint / own)
    notes = fit_rows(model, rows["train"], rows.get("validation"), quiet=quiet)
    refuse_interrupted(model, notes)
    results = [one for part in rows for one in rows[part].judged(model, part, config.metrics, quiet=quiet)]
    digest = write_model(model, folder.path / MODEL)
    notes = [*left_out(model, rows["train"]), *notes]
    done = Trained(folder, config, begun.facts, model, rows, results, notes, resumed)
    folder.write(METRICS, done.metrics())
    facts = last_facts(begun.facts, begun.at, model={"digest": digest}, notes=notes, **more)
    folder.finish(facts)
    return replace(done, facts=facts)


def fit_rows(
    model: Any, train: RankingSet, held: RankingSet | None = None, *, quiet: bool = True
) -> list[str]:
    """Fit to the rows, told of held-out ones where the ranker asks for them; give what it warned of."""
    asked = inspect.signature(type(model).fit).parameters
    name = next((one for one in ("validation", "eval_set") if one in asked), None)
    extra: dict[str, Any] = {}
    if isinstance(train, FileRows) and isinstance(held, FileRows) and name is not None:
        extra[name] = (features_for(StandIn(train), held), held.y, held.qid)
    given, named = train.arguments()
    if not quiet and console(stderr=True).is_terminal:
        model.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*given, **named, **extra)
    model.set_params(verbose=0)
    return heard(caught)


def heard(caught: list[warnings.WarningMessage]) -> list[str]:
    """Give what was warned of, each once."""
    return list(dict.fromkeys(str(one.message).partition("\n")[0] for one in caught))


@contextmanager
def working_in(folder: RunFolder, *, quiet: bool) -> Iterator[None]:
    """Keep others out while the block runs; where Ctrl-C or its cluster ends it, say how it goes on."""
    with folder.held():
        try:
            yield
        except KeyboardInterrupt:
            if not quiet:
                note(f"interrupted; the same command goes on with {folder.path}")
            raise
        except ClusterError:
            if not quiet:
                note(f"the same command goes on with {folder.path}, on any cluster")
            raise


def refuse_interrupted(model: Any, notes: list[str]) -> None:
    """Raise where Ctrl-C ended the fit: half a model is no run, and the checkpoint goes on."""
    reasons = (
        getattr(model, "stopped_by_", None),
        getattr(getattr(model, "solution_", None), "stopped_by", None),
    )
    if "interrupt" in reasons or any(line.startswith("interrupted") for line in notes):
        raise KeyboardInterrupt


def write_model(model: Any, path: Path) -> str:
    """Write the model file; give the digest of what it holds."""
    import concordant as cc
    from concordant.persistence import digest_of

    cc.save(model, path)
    return digest_of(path)


def left_out(model: Any, train: RankingSet) -> list[str]:
    """Say which queries taught nothing, and which were held out."""
    n_given, n_used = train.n_queries, int(model.n_queries_)
    lines = []
    if n_given == 1:
        lines.append(f"all rows of {train.path.name} are one query: if it has several, ids are missing")
    if n_used < n_given:
        held = plural(n_given - n_used, "query was", "queries were")
        lines.append(f"{held} held out of the training set, for early stopping")
    idle = n_used - int(model.n_informative_)
    if idle:
        lines.append(f"{plural(idle, 'query teaches', 'queries teach')} nothing: no labels that differ")
    return lines
