"""Train a ranker from a configuration to a finished run directory; for `train`, `tune` and `rerun`."""

from __future__ import annotations

import hashlib
import inspect
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rich.table import Table

from concordant.cli.runs.config import Config
from concordant.cli.runs.run_folder import METRICS, RunFolder, fingerprint, first_facts, last_facts
from concordant.cli.shared.compute_target import IN_MEMORY, UNBOUNDED, ComputeTarget
from concordant.cli.shared.evaluation_tables import EvaluatedRankings, MetricResult
from concordant.cli.shared.file_rows import FileRows, features_for, pad_features, padding_notes
from concordant.cli.shared.judged_rankings import JudgedRanking
from concordant.cli.shared.output import (
    console,
    new_table,
    note,
    plural,
    warning_messages,
    working,
    written_as,
)
from concordant.cli.shared.row_options import (
    MODEL,
    TABLES,
    ColumnNames,
    naming_table,
    read_rows,
    refuse_names,
    refuse_unnamed,
)
from concordant.cli.train.train_options import defaults_of
from concordant.exceptions import ClusterError, LabelError, ParameterError, ShapeError

if TYPE_CHECKING:
    from concordant.scale.scan.letor_scan import LetorPart
    from concordant.scale.scan.scan import Scan
    from concordant.types import FloatArray


# The data files of a run, read whole.

FOLDER_HINT = "For a folder of Parquet files, use `concordant train` with --memory SIZE or on a cluster."


def read_files(config: Config, *, quiet: bool) -> tuple[dict[str, FileRows], dict[str, dict[str, Any]]]:
    """Read and fingerprint each data file; raise if they do not go together."""
    rows: dict[str, FileRows] = {}
    prints: dict[str, dict[str, Any]] = {}
    for part, path in config.files.items():
        with working(f"Reading {path.name}", quiet=quiet):
            refuse_pipe(path)
            if path.is_dir():
                raise ParameterError("DATA", str(path), "a file", hint=FOLDER_HINT)
            rows[part] = read_rows(path, _columns_like(rows.get("train"), config.columns, path))
            prints[part] = fingerprint(path)
        if part == "train" and not quiet:
            _note_features(path, rows[part].features)
    return _compatible_rows(rows), prints


def _columns_like(train: FileRows | None, columns: ColumnNames, path: Path) -> ColumnNames:
    """Return the columns to read: where some are excluded, other tables are read as the training set is."""
    if train is None or train.features is None or columns.exclude is None or written_as(path) not in TABLES:
        return columns
    return replace(columns, features=train.features, exclude=None)


SHOWN = 8  # names of features in a note
WEIGHTS = ("weight", "weights", "sample_weight", "query_weight")


def _note_features(path: Path, names: Sequence[str] | None) -> None:
    """Print which columns of a table are the features; LETOR text has no names."""
    if names is None:
        return
    listed = [*names[: SHOWN - 2], "...", names[-1]] if len(names) > SHOWN else names
    note(f"{path.name}: {plural(len(names), 'feature', 'features')}: {', '.join(listed)}")
    for name in names:
        if name in WEIGHTS:
            note(f"column {name!r} is read as a feature, not as weights; --exclude {name} leaves it out")


def refuse_pipe(path: Path) -> None:
    """Raise for a file that can be read only once, which cannot be fingerprinted and read again."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ParameterError(
            "DATA", str(path), "a regular file, not a pipe", hint="`concordant rerun` reads it again."
        )


def _compatible_rows(rows: Mapping[str, FileRows]) -> dict[str, FileRows]:
    """Widen LETOR text to the widest file, and check that all files have the features of the training set."""
    train = rows["train"]
    if train.features is None:
        widest = max(part.X.shape[1] for part in rows.values() if part.features is None)
        if widest > train.X.shape[1]:
            more = widest - train.X.shape[1]
            train = replace(train, X=pad_features(train.X, widest), n_filled=more)
    stand_in = FeatureSpec(train)
    for part in rows.values():
        features_for(stand_in, part)
    return {**rows, "train": train}


class FeatureSpec:
    """The features that a model fitted to these rows would require, under the names that estimators use."""

    def __init__(self, rows: FileRows) -> None:
        self.n_features_in_ = rows.X.shape[1]
        self.feature_names_in_ = rows.features


# The data files of a run that are not read whole: part by part, or by the workers of a cluster.

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class FileParts:
    """Queries of a file or folder that are read in parts; `client`: of the cluster that reads them."""

    scan: Scan
    path: Path
    client: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.scan.n_rows

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.scan.n_queries

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.scan.n_features

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `fit`."""
        return (self.scan,), {} if self.client is None else {"client": self.client}

    def measure_model(
        self, model: Any, name: str, metrics: Sequence[str], *, quiet: bool
    ) -> list[MetricResult]:
        """Measure a model on these queries; `name` is their name in tables."""
        import concordant as cc

        index = self.scan.index
        ranking = JudgedRanking(name, None, None, cc.Queries(index.offsets, index.ids[index.order]))
        values = self.evaluate_model(model, f"Measuring {name}", metrics, quiet=quiet)
        return [
            MetricResult(ranking, cc.metric(metric), values[metric], values.per_query[str(cc.metric(metric))])
            for metric in metrics
        ]

    def evaluate_model(self, model: Any, title: str, metrics: Sequence[str], *, quiet: bool) -> Any:
        """Evaluate a model on all parts, with a progress bar if they are read here."""
        import concordant as cc

        barred = self.client is None and not quiet and console(stderr=True).is_terminal
        with working(title, quiet=quiet or barred):
            return cc.evaluate(model, self.scan, metrics=metrics, client=self.client, verbose=int(barred))


def _scan_files(
    config: Config, target: ComputeTarget, client: Any, *, quiet: bool
) -> tuple[dict[str, FileParts], dict[str, dict[str, Any]]]:
    """Scan and fingerprint each file; all rows but those of the training set are checked.

    Those of the training set are checked by the fit, before its first step.
    """
    rows: dict[str, FileParts] = {}
    prints: dict[str, dict[str, Any]] = {}
    memory = UNBOUNDED if target.memory is None else target.memory
    for part, path in config.files.items():
        with working(f"Scanning {path.name}", quiet=quiet):
            refuse_pipe(path)
            rows[part] = FileParts(_scan_file(path, config.columns, memory, rows), path, client)
            prints[part] = fingerprint(path)
        if part == "train" and not quiet:
            _note_features(path, rows[part].scan.feature_names)
    rows = _compatible_parts(rows)
    for part, file_parts in rows.items():
        if part != "train":
            file_parts.evaluate_model(
                _zero_scores, f"Checking {file_parts.path.name}", config.metrics, quiet=quiet
            )
    return rows, prints


def _zero_scores(X: Any) -> FloatArray:
    """Return score 0 for all rows: a model with which evaluation checks the rows."""
    return np.zeros(len(X))


def _compatible_parts(rows: Mapping[str, FileParts]) -> dict[str, FileParts]:
    """Widen LETOR text to the widest file, and check that all files have the features of the training set."""
    train, width = rows["train"].scan, rows["train"].n_features
    if train.feature_names is None:
        width = max(parts.n_features for parts in rows.values() if parts.scan.feature_names is None)
    for parts in rows.values():
        text = parts.scan.feature_names is None
        if parts.n_features > width or (parts.n_features < width and not text):
            expected = f"{plural(width, 'feature', 'features')}, as the training set has"
            raise ShapeError(str(parts.path), (parts.n_rows, parts.n_features), expected)
    return {
        name: replace(parts, scan=_widen_scan(parts.scan, width, train.feature_names))
        for name, parts in rows.items()
    }


def _widen_scan(scan: Scan, n_features: int, names: tuple[str, ...] | None) -> Scan:
    """Set the number of features of a scan of text; those of tables agree already."""
    if scan.feature_names is not None:
        return scan
    parts = tuple(replace(cast("LetorPart", part), n_features=n_features) for part in scan.parts)
    return replace(scan, parts=parts, n_features=n_features, feature_names=names)


def _scan_file(path: Path, columns: ColumnNames, memory: int, others: Mapping[str, FileParts]) -> Scan:
    """Scan a file; of Parquet the features that the training set has."""
    from concordant._base.files import COMPRESSED

    suffix = written_as(path)
    parquet = path.is_dir() or suffix in PARQUET
    if path.suffix in COMPRESSED or (suffix in TABLES and not parquet):
        raise ParameterError(
            "DATA",
            str(path),
            "Parquet or uncompressed LETOR text to be read in parts",
            hint=f"`concordant convert {path.name}` writes such a file.",
        )
    if not parquet:
        import concordant as cc

        refuse_names(path, columns)
        scan: Scan = cc.scan_letor(path, memory=memory)
        return scan
    if others and (columns.features is None or columns.exclude is not None):
        columns = replace(columns, features=others["train"].scan.feature_names, exclude=None)
    return _parquet_scan(path, columns, memory)


def _parquet_scan(path: Path, columns: ColumnNames, memory: int) -> Scan:
    """Scan a Parquet file, or a folder of them; errors name the options that correct them."""
    import concordant as cc
    from concordant.data.io.roles import GRADE_NAMES, find_index_columns
    from concordant.scale.scan.parquet import parquet_files, read_schema

    with naming_table(path):
        for file in parquet_files(path)[:1]:
            schema = read_schema(file)
            names = schema.names
            refuse_unnamed(
                names, columns, columns.label or next((name for name in GRADE_NAMES if name in names), None)
            )
            if columns.features is not None or columns.exclude is not None:
                features = columns.roles(names, find_index_columns(schema)).features
                columns = replace(columns, features=features)
            if lacking := [name for name in columns.features or () if name not in names]:
                hint = (
                    f"its columns are {', '.join(names)}; rename them, or name others by --features A,B,..."
                )
                raise LabelError(f"no column {lacking[0]!r}, which is a feature", hint)
        scan: Scan = cc.scan_parquet(
            path,
            qid=columns.qid or "qid",
            grade=columns.label,
            features=columns.features,
            docid=columns.docid,
            memory=memory,
        )
    return scan


RankingSet = FileRows | FileParts  # queries to train on or to measure on: in memory, or in parts


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A finished run.

    Attributes
    ----------
    folder, config, facts
        The run directory, its configuration, and its facts.
    model, rows, results
        The fitted ranker, the data files, and the metrics on them.
    notes
        Warnings of the fit, and what was left out of it.
    resumed
        True if an interrupted run was resumed.
    """

    folder: RunFolder
    config: Config
    facts: Mapping[str, Any]
    model: Any
    rows: Mapping[str, RankingSet]
    results: list[MetricResult]
    notes: list[str]
    resumed: bool

    def metrics(self) -> dict[str, Any]:
        """Return the measured values as plain values."""
        return EvaluatedRankings(self.results).to_dict()

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of the data files, titled by the ranker, and those of the metrics."""
        title = f"{self.config.kind} for {self.config.metric}{_changed_parameters(self.config)}"
        table = new_table(title, "data", "rows", "queries", "features", "file")
        for part, facts in self.facts["data"].items():
            counts = (f"{facts[key]:,}" for key in ("rows", "queries", "features"))
            table.add_row(part, *counts, self.config.files[part].name)
        for column in table.columns[1:4]:
            column.justify = "right"
        yield table, []
        yield from EvaluatedRankings(self.results).tables()

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values for JSON."""
        return {
            "run": str(self.folder.path),
            "resumed": self.resumed,
            "config": self.config.sections(),
            **self.facts,
            **self.metrics(),
            "certificate": self.model.certificate_.to_dict(),
        }


def _changed_parameters(config: Config) -> str:
    defaults = defaults_of(config.kind)
    settings = [
        f"{key}={format_parameter(value)}"
        for key, value in config.parameters.items()
        if value != defaults[key]
    ]
    return f" ({', '.join(settings)})" if settings else ""


def format_parameter(value: Any) -> str:
    """Format a parameter in few digits.

    >>> format_parameter(0.0316227766), format_parameter(31), format_parameter((16, 8))
    ('0.03162', '31', '(16, 8)')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def train_run(
    config: Config,
    folder: RunFolder,
    *,
    overwrite: bool,
    checkpoint: bool,
    quiet: bool,
    target: ComputeTarget = IN_MEMORY,
) -> TrainedRun:
    """Read, fit, measure and write; an interrupted run of the same configuration is resumed."""
    folder.admit(overwrite=overwrite)
    config.ranker()  # raises for wrong parameters before the work
    target.admit(config)
    checkpoint = checkpoint and not (target.is_cluster and config.kind == "boosted")  # LightGBM starts over
    with target.client(quiet=quiet) as client:
        rows: Mapping[str, RankingSet]
        if target.in_parts:
            rows, prints = _scan_files(config, target, client, quiet=quiet)
        else:
            rows, prints = read_files(config, quiet=quiet)
        with locked_folder(folder, quiet=quiet):
            folder.admit(overwrite=overwrite)  # while files were read, another may have finished it
            facts = first_facts(config, prints, rows, checkpoint=checkpoint) | target.facts(client)
            with begin_run(config, folder, facts, rows, overwrite=overwrite, quiet=quiet) as begun:
                return complete(begun, config)


@dataclass(frozen=True, eq=False)
class StartedRun:
    """A run whose folder and facts are written; `at` by `time.perf_counter`."""

    config: Config
    folder: RunFolder
    facts: Mapping[str, Any]
    rows: Mapping[str, RankingSet]
    at: float
    resumed: bool
    quiet: bool

    @property
    def checkpoint(self) -> bool:
        """True if the run keeps what it needs to be resumed."""
        return bool(self.facts["checkpoint"])


@contextmanager
def begin_run(
    config: Config,
    folder: RunFolder,
    facts: Mapping[str, Any],
    rows: Mapping[str, RankingSet],
    *,
    overwrite: bool,
    quiet: bool,
) -> Iterator[StartedRun]:
    """Write configuration and facts, and restore an overwritten run if the block fails."""
    started = time.perf_counter()
    resumed = folder.begin(config, facts, overwrite=overwrite)
    with folder.restoring(resumed=resumed):
        yield StartedRun(config, folder, facts, rows, started, resumed, quiet)


def complete(begun: StartedRun, config: Config, **more: Any) -> TrainedRun:
    """Fit, measure and write the rest; `config` is that of the model, `more` are facts of its search."""
    folder, rows, model = begun.folder, begun.rows, config.ranker()
    if begun.checkpoint and "checkpoint" in model.get_params(deep=False):
        # A resumed search may find another best trial, to which the checkpoint of this fit does not belong.
        # Nor can a fit in memory be resumed in parts, which are summed up in another order.
        contents = config.text() + "place" * ("place" in begun.facts)
        model.set_params(checkpoint=folder.checkpoint / hashlib.sha256(contents.encode()).hexdigest()[:12])
    notes = fit_rows(model, rows["train"], rows.get("validation"), quiet=begun.quiet)
    if not model.n_informative_ or (config.kind == "pairs" and not _ranks_differ(config, rows["train"])):
        raise _nothing_learned_error(config, rows["train"])
    results = [
        result
        for part in rows
        for result in rows[part].measure_model(model, part, config.metrics, quiet=begun.quiet)
    ]
    digest = write_model(model, folder.path / MODEL)
    filled = [
        line for part in rows.values() if isinstance(part, FileRows) for line in padding_notes(model, part)
    ]
    notes = [*filled, *_left_out_notes(model, rows["train"]), *notes]
    done = TrainedRun(folder, config, begun.facts, model, rows, results, notes, begun.resumed)
    folder.write(METRICS, done.metrics())
    facts = last_facts(begun.facts, begun.at, model={"digest": digest}, notes=notes, **more)
    folder.finish(facts)
    return replace(done, facts=facts)


def fit_rows(
    model: Any, train: RankingSet, validation: RankingSet | None = None, *, quiet: bool = True
) -> list[str]:
    """Fit a model, with held-out rows if it takes them, and return its warnings.

    Ctrl-C raises where it ended the fit early: half a model is no run, and the checkpoint goes on.
    """
    fit_parameters = inspect.signature(type(model).fit).parameters
    extra: dict[str, Any] = {}
    if isinstance(train, FileRows) and isinstance(validation, FileRows) and "eval_set" in fit_parameters:
        extra["eval_set"] = (features_for(FeatureSpec(train), validation), validation.y, validation.qid)
    arguments, named = train.arguments()
    if not quiet and console(stderr=True).is_terminal:
        model.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*arguments, **named, **extra)
    model.set_params(verbose=0)
    notes = warning_messages(caught)
    solution = getattr(model, "solution_", None)
    reasons = getattr(model, "stopped_by_", None), getattr(solution, "stopped_by", None)
    if "interrupt" in reasons or any("was interrupted" in line for line in notes):
        raise KeyboardInterrupt
    return notes


@contextmanager
def locked_folder(folder: RunFolder, *, quiet: bool) -> Iterator[None]:
    """Lock the folder while the block runs; if interrupted or the cluster fails, say how to resume."""
    with folder.hold():
        try:
            yield
        except KeyboardInterrupt:
            if not quiet:
                note(f"interrupted; run the same command again to continue in {folder.path}")
            raise
        except ClusterError:
            if not quiet:
                note(f"run the same command again, on any cluster, to continue in {folder.path}")
            raise


def write_model(model: Any, path: Path) -> str:
    """Write the model file and return its digest."""
    import concordant as cc
    from concordant.store import digest_of

    cc.save(model, path)
    return digest_of(path)


def _nothing_learned_error(config: Config, train: RankingSet) -> LabelError:
    """Build the error for a training set in which no query tells the ranker anything, with the reason."""
    import concordant as cc

    problem = f"nothing can be learned from {train.path}: "
    is_text = isinstance(train, FileRows) and train.features is None
    hint = f"check the labels and the query ids{'' if is_text else ': --label COL and --qid COL name them'}."
    if not isinstance(train, FileRows):
        return LabelError(f"{problem}no query has labels that differ", hint)
    low, high = float(train.y.min()), float(train.y.max())
    if low == high:
        return LabelError(f"{problem}every label is {low:g}", hint)
    if not _labels_differ(train):
        return LabelError(f"{problem}labels differ between queries, but within none", hint)
    problem += f"no query has labels that differ for {config.metric}; labels lie between {low:g} and {high:g}"
    return LabelError(problem, f"{cc.metric(config.metric).label_problem(train.y) or hint}")


def _labels_differ(train: FileRows) -> bool:
    """True if the labels of some query differ."""
    from concordant.data.queries import Queries

    queries = Queries.from_ids(train.qid)
    y = np.asarray(train.y)[queries.order]
    return any((y[start:stop] != y[start]).any() for start, stop in pairwise(queries.offsets.tolist()))


def _ranks_differ(config: Config, train: RankingSet) -> bool:
    """True if the metric tells labels of some query apart; assumed of rows that are not in memory."""
    import concordant as cc

    if not isinstance(train, FileRows):
        return True
    return _labels_differ(train) and not cc.metric(config.metric).label_problem(train.y)


def _left_out_notes(model: Any, train: RankingSet) -> list[str]:
    """State which queries have no effect, and which were held out."""
    n_given, n_used = train.n_queries, int(model.n_queries_)
    lines = []
    if n_given == 1:
        lines.append(f"all rows of {train.path.name} are one query: if it has several, ids are missing")
    if n_used < n_given:
        held_out = plural(n_given - n_used, "query was", "queries were")
        lines.append(f"{held_out} held out of the training set, for early stopping")
    idle = n_used - int(model.n_informative_)
    if idle:
        lines.append(f"{plural(idle, 'query teaches', 'queries teach')} nothing: no labels that differ")
    return lines
