"""One training from its configuration to a finished run directory; `train`, `tune` and `rerun` share it."""

from __future__ import annotations

import hashlib
import inspect
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from concordant.cli.config import Config
from concordant.cli.data import MODEL, read_rows
from concordant.cli.data_rows import FileRows, features_for, given_features, padded, scores_of
from concordant.cli.inputs import Ranking
from concordant.cli.output import COMPILING, console, note, plural, working
from concordant.cli.results import Result, as_dict, measure
from concordant.cli.runs import METRICS, RunFolder, fingerprint, first_facts, last_facts
from concordant.exceptions import ParameterError

__all__ = [
    "Begun",
    "Trained",
    "complete",
    "fit_rows",
    "read_files",
    "refuse_interrupted",
    "train_run",
    "working_in",
]


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
    rows: Mapping[str, FileRows]
    results: list[Result]
    notes: list[str]
    resumed: bool

    def metrics(self) -> dict[str, Any]:
        """Give the numbers as plain values."""
        rankings = list({id(one.ranking): one.ranking for one in self.results}.values())
        return as_dict(rankings, self.results, per_query=False)


def train_run(
    config: Config, folder: RunFolder, *, overwrite: bool, checkpoint: bool, quiet: bool
) -> Trained:
    """Read, fit, measure and write; an interrupted run of the same goes on where it was."""
    folder.admit(overwrite=overwrite)
    config.ranker()  # refuses wrong parameters before any work
    rows, prints = read_files(config, quiet=quiet)
    with working_in(folder, quiet=quiet):
        folder.admit(overwrite=overwrite)  # while files were read, another may have finished it
        facts = first_facts(config, prints, rows, checkpoint=checkpoint)
        begun = Begun(config, folder, facts, rows, time.perf_counter())
        resumed = folder.begin(config, begun.facts, overwrite=overwrite)
        with folder.restoring():
            return complete(begun, config, resumed=resumed, checkpoint=checkpoint, quiet=quiet)


@dataclass(frozen=True, eq=False)
class Begun:
    """A run whose folder says what it will be; `at` by `time.perf_counter`."""

    config: Config
    folder: RunFolder
    facts: Mapping[str, Any]
    rows: Mapping[str, FileRows]
    at: float


def complete(
    begun: Begun, config: Config, *, resumed: bool, checkpoint: bool, quiet: bool, **more: Any
) -> Trained:
    """Fit, measure and write the rest; `config` is that of the model, `more` are facts of its search."""
    folder, rows, model = begun.folder, begun.rows, config.ranker()
    if checkpoint and "checkpoint" in model.get_params(deep=False):
        # A search that goes on may find something else: then what is kept of this fit is not of that.
        own = hashlib.sha256(config.text().encode()).hexdigest()[:12]
        model.set_params(checkpoint=folder.checkpoint / own)
    notes = fit_rows(model, rows["train"], rows.get("validation"), quiet=quiet)
    refuse_interrupted(model, notes)
    results = measured(model, rows, config.metrics, quiet=quiet)
    digest = write_model(model, folder.path / MODEL)
    notes = [*left_out(model, rows["train"]), *notes]
    done = Trained(folder, config, begun.facts, model, rows, results, notes, resumed)
    folder.write(METRICS, done.metrics())
    facts = last_facts(begun.facts, begun.at, model={"digest": digest}, notes=notes, **more)
    folder.finish(facts)
    return replace(done, facts=facts)


def read_files(config: Config, *, quiet: bool) -> tuple[dict[str, FileRows], dict[str, dict[str, Any]]]:
    """Give the rows and the fingerprint of each file; sets that do not go together are refused."""
    rows: dict[str, FileRows] = {}
    prints: dict[str, dict[str, Any]] = {}
    for part, path in config.files.items():
        with working(f"Reading {path.name}", quiet=quiet):
            refuse_pipe(path)
            rows[part] = read_rows(path, config.columns)
            prints[part] = fingerprint(path)
    return together(rows), prints


def refuse_pipe(path: Path) -> None:
    """Refuse what can be read once only: neither its fingerprint nor the run could be made again."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ParameterError(
            "DATA", str(path), "a file that can be read again, since a run is made again by it"
        )


def together(rows: Mapping[str, FileRows]) -> dict[str, FileRows]:
    """Give all sets the features of the training set; of LETOR text, those of the widest."""
    train = rows["train"]
    if train.features is None:
        widest = max(one.X.shape[1] for one in rows.values() if one.features is None)
        if widest > train.X.shape[1]:
            train = FileRows(padded(train.X, widest), train.y, train.qid, train.docid, train.path)
    stand_in = StandIn(train)
    for one in rows.values():
        features_for(stand_in, one)
    return {**rows, "train": train}


class StandIn:
    """What a model fitted to these rows would ask of others."""

    def __init__(self, rows: FileRows) -> None:
        self.n_features_in_ = rows.X.shape[1]
        self.feature_names_in_ = rows.features


def fit_rows(model: Any, train: FileRows, held: FileRows | None = None, *, quiet: bool = True) -> list[str]:
    """Fit to the rows, told of held-out ones where the ranker asks for them; give what it warned of."""
    asked = inspect.signature(type(model).fit).parameters
    name = next((one for one in ("validation", "eval_set") if one in asked), None)
    extra: dict[str, Any] = {}
    if held is not None and name is not None:
        extra[name] = (features_for(StandIn(train), held), held.y, held.qid)
    if not quiet and console(stderr=True).is_terminal:
        model.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(given_features(train), train.y, qid=train.qid, **extra)
    model.set_params(verbose=0)
    return heard(caught)


def heard(caught: list[warnings.WarningMessage]) -> list[str]:
    """Give what was warned of, each once."""
    return list(dict.fromkeys(str(one.message).partition("\n")[0] for one in caught))


@contextmanager
def working_in(folder: RunFolder, *, quiet: bool) -> Iterator[None]:
    """Keep others out while the block runs; where Ctrl-C ends it, say how it goes on."""
    with folder.held():
        try:
            yield
        except KeyboardInterrupt:
            if not quiet:
                note(f"interrupted; the same command goes on with {folder.path}")
            raise


def refuse_interrupted(model: Any, notes: list[str]) -> None:
    """Raise where Ctrl-C ended the fit: half a model is no run, and the checkpoint goes on."""
    reasons = (
        getattr(model, "stopped_by_", None),
        getattr(getattr(model, "solution_", None), "stopped_by", None),
    )
    if "interrupt" in reasons or any(line.startswith("interrupted") for line in notes):
        raise KeyboardInterrupt


def measured(
    model: Any, rows: Mapping[str, FileRows], metrics: tuple[str, ...], *, quiet: bool
) -> list[Result]:
    """Give what the model is worth on each set."""
    import concordant as cc

    results = []
    for part, one in rows.items():
        with working(f"Measuring {part} {COMPILING}", quiet=quiet):
            scores = scores_of(model, one)
            ranking = Ranking(part, one.y, scores, cc.Queries.from_ids(one.qid), one.docid)
            results += [measure(ranking, cc.metric(name)) for name in metrics]
    return results


def write_model(model: Any, path: Path) -> str:
    """Write the model file; give the digest of what it holds."""
    import concordant as cc
    from concordant.persistence import digest_of

    cc.save(model, path)
    return digest_of(path)


def left_out(model: Any, train: FileRows) -> list[str]:
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
