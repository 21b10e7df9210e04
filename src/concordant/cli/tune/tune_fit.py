"""Search and train from a configuration to a finished run directory; for `tune` and `rerun`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from concordant.cli.runs.config import Config, differences
from concordant.cli.runs.run_folder import BEST, MORE, STUDY, TRIALS, RunFolder, first_facts, write_text
from concordant.cli.runs.toml_files import toml_value
from concordant.cli.shared.file_rows import FileRows, score_rows
from concordant.cli.shared.output import new_table, number, plural, progress, write_rows
from concordant.cli.train.train_fit import (
    StartedRun,
    TrainedRun,
    begin_run,
    complete,
    fit_rows,
    format_parameter,
    locked_folder,
    read_files,
)
from concordant.cli.tune.tune_space import Choices, Range, Space
from concordant.exceptions import ConcordantError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from concordant.cli.runs.config import Tune


# The search: trials, each scored on held-out queries, and the best of them.

PATH = 15  # penalties of a path
Split = tuple[FileRows, FileRows]


@dataclass(frozen=True)
class TuneTrial:
    """Parameters that were tried, and their score on each fold; a pruned trial lacks some folds.

    Attributes
    ----------
    value
        Mean over folds of the metric that is trained for, losses negated: higher is better.
    seconds
        Duration; None if trials share their work.
    """

    number: int
    parameters: Mapping[str, Any] = field(hash=False)
    scores: tuple[float, ...]
    pruned: bool = False
    seconds: float | None = None

    @property
    def value(self) -> float:
        """Mean over the folds on which the metric is defined."""
        return mean(self.scores)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "trial": self.number,
            "value": self.value,
            "state": "pruned" if self.pruned else "done",
            **{f"fold {fold}": score for fold, score in enumerate(self.scores, start=1)},
            "parameters": dict(self.parameters),
            "seconds": self.seconds,
        }


def mean(scores: Sequence[float]) -> float:
    """Return the mean of the defined scores, NaN if there are none."""
    defined = [score for score in scores if not math.isnan(score)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _best_trial(trials: Sequence[TuneTrial]) -> TuneTrial:
    """Return the first of the best trials that were scored on all folds."""
    whole = [trial for trial in trials if not trial.pruned and not math.isnan(trial.value)]
    if not whole:
        raise ConcordantError(
            "the metric is undefined on all held-out queries: no trial is better than another.\n"
            "Hint: a query counts where its labels differ; give more queries, or another metric."
        )
    return max(whole, key=lambda trial: (trial.value, -trial.number))


def _make_splits(tune: Tune, rows: Mapping[str, FileRows]) -> list[Split]:
    """Return the rows to fit and to judge: folds of whole queries, or training and validation set."""
    from concordant.rankers.folds import FitRows, row_splits

    train = rows["train"]
    if tune.folds is None:
        return [(train, rows["validation"])]
    splits = row_splits(tune.folds, FitRows(train.X, train.y, train.qid))
    return [(_select_rows(train, fitted), _select_rows(train, judged)) for fitted, judged in splits]


def _select_rows(rows: FileRows, selection: Any) -> FileRows:
    docid = None if rows.docid is None else rows.docid[selection]
    return FileRows(
        rows.X[selection], rows.y[selection], rows.qid[selection], docid, rows.path, rows.features
    )


def _fold_scores(config: Config, splits: Sequence[Split]) -> Iterator[float]:
    """Yield the score of the parameters on each fold; the rows that decide are never fitted to."""
    import concordant as cc
    from concordant.rankers.base import mean_score

    for fitted, judged in splits:
        model = config.ranker()
        fit_rows(model, fitted, judged if len(splits) == 1 else None)
        yield mean_score(cc.metric(config.metric), judged.y, score_rows(model, judged), judged.qid)


def _path_trials(begun: StartedRun, tune: Tune) -> list[TuneTrial]:
    """Fit the path of a linear ranker from the largest penalty down, each fit starting at the last one."""
    from concordant import LinearRankerCV

    config, rows, alpha = begun.config, begun.rows, tune.space["alpha"]
    alphas = alpha.points(PATH) if isinstance(alpha, Range) else alpha.values
    shared = {name: value for name, value in config.parameters.items() if name != "alpha"}
    model = LinearRankerCV(
        metric=config.metric, alphas=alphas, cv=tune.folds, random_state=config.seed, **shared
    )
    if begun.checkpoint:
        model.set_params(checkpoint=begun.folder.checkpoint / "path")
    fit_rows(model, rows["train"], rows.get("validation"), quiet=begun.quiet)
    return [
        TuneTrial(number, {"alpha": float(tried)}, tuple(scores.tolist()))
        for number, (tried, scores) in enumerate(zip(model.alphas_, model.scores_, strict=True))
    ]


# An Optuna study kept in the run directory; optuna is imported here, when it is used.
#
# The next trial depends only on the finished trials: each trial has a new sampler, seeded by their number. So
# a study that was killed continues with the trials of one that was not.

SCORES, SECONDS = "scores", "seconds"  # attributes of a trial in the study
LEAST = -1e300  # of a trial whose value is NaN, which Optuna would count as a failure and ask for again
UNPRUNED = 5  # the first trials, which set the median


def _need_optuna() -> None:
    """Raise if optuna is not installed, before the data are read."""
    if find_spec("optuna") is None:
        raise MissingExtraError("optuna", "tune", "a search of anything but a linear ranker's penalty")


def _study_trials(
    begun: StartedRun, tune: Tune, splits: Sequence[Split], step: Callable[[TuneTrial], object]
) -> list[TuneTrial]:
    """Run the study and return all trials, those of an interrupted study first; `step` gets each."""
    study = _open_study(begun.folder.path / STUDY)
    trials = _finished_trials(study, tune.space)
    for finished in trials:
        step(finished)
    while len(trials) < (tune.trials or 0):
        trial = _next_trial(study, begun.config, tune.space, len(trials))
        _run_trial(study, trial, begun.config, tune, splits)
        trials = _finished_trials(study, tune.space)
        step(trials[-1])
    return trials


def _count_finished(path: Path) -> int:
    """Count the finished trials of a study; 0 if there is none."""
    if not path.is_file():
        return 0
    _need_optuna()
    return len(_ended_trials(_open_study(path)))


def _open_study(path: Path) -> Any:
    """Open the study of a file, or create one; the trial in which it was killed is marked as failed."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    _mend_journal(path)
    backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
    study = optuna.create_study(
        storage=JournalStorage(backend),
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED),
    )
    states = optuna.trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING, states.WAITING)):
        if trial.state == states.WAITING:
            study.ask()
        study.tell(trial.number, state=states.FAIL)
    return study


def _mend_journal(path: Path) -> None:
    """Remove what a killed process leaves: half a line, and its lock. `RunFolder.hold` keeps others out."""
    Path(f"{path}.lock").unlink(missing_ok=True)
    if path.is_file():
        contents = path.read_bytes()
        whole = contents.rfind(b"\n") + 1
        if whole < len(contents):
            with path.open("r+b") as stream:
                stream.truncate(whole)


def _ended_trials(study: Any) -> list[Any]:
    """Return Optuna's records of the finished trials, in order."""
    from optuna.trial import TrialState

    states = (TrialState.COMPLETE, TrialState.PRUNED)
    return list(study.get_trials(deepcopy=False, states=states))


def _finished_trials(study: Any, space: Space) -> list[TuneTrial]:
    """Return the finished trials, numbered from 0."""
    from optuna.trial import TrialState

    return [
        TuneTrial(
            number,
            {name: _restore_value(space[name], trial.params[name]) for name in space},
            tuple(trial.user_attrs[SCORES]),
            trial.state == TrialState.PRUNED,
            trial.user_attrs[SECONDS],
        )
        for number, trial in enumerate(_ended_trials(study))
    ]


def _next_trial(study: Any, config: Config, space: Space, number: int) -> Any:
    """Ask for the next trial; the first one has the configured parameters, if the space contains them."""
    import numpy as np
    import optuna

    seed = int(np.random.SeedSequence([config.seed, number]).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    first = {
        name: toml_value(value) if isinstance(candidates, Choices) else value
        for name, candidates in space.items()
        if (value := config.parameters[name]) in candidates
    }
    if number == 0 and first:
        study.enqueue_trial(first)
    return study.ask()


def _restore_value(candidates: Range | Choices, value: Any) -> Any:
    """Return a value as it was before the study stored it: choices are stored as text."""
    if isinstance(candidates, Range):
        return value
    return next(choice for choice in candidates.values if toml_value(choice) == value)


def _suggest_parameters(trial: Any, space: Space) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, candidates in space.items():
        if isinstance(candidates, Choices):
            value = trial.suggest_categorical(name, [toml_value(choice) for choice in candidates.values])
        elif candidates.whole:
            value = trial.suggest_int(name, candidates.low, candidates.high, log=candidates.log)
        else:
            value = trial.suggest_float(name, candidates.low, candidates.high, log=candidates.log)
        values[name] = _restore_value(candidates, value)
    return values


def _run_trial(study: Any, trial: Any, config: Config, tune: Tune, splits: Sequence[Split]) -> None:
    """Score the parameters of a trial, fold by fold, and store the scores."""
    from optuna.trial import TrialState

    started = time.perf_counter()
    trial_config = config.with_parameters(_suggest_parameters(trial, tune.space))
    scores: list[float] = []
    for fold, score in enumerate(_fold_scores(trial_config, splits)):
        scores.append(score)
        trial.report(mean(scores), fold)
        if tune.prune and fold + 1 < len(splits) and trial.should_prune():
            break
    trial.set_user_attr(SCORES, scores)
    trial.set_user_attr(SECONDS, round(time.perf_counter() - started, 3))
    if len(scores) < len(splits):
        study.tell(trial, state=TrialState.PRUNED)
        return
    value = mean(scores)
    study.tell(trial, LEAST if math.isnan(value) else value)


# The search with the run that it finds.

SHOWN = 10  # trials of a study; all are in the file
FOUND = "# The best that this search found. `concordant train --config` trains it.\n\n"


@dataclass(frozen=True, eq=False)
class TunedRun:
    """A finished search: its trials, the best of them, and the run that was trained with that."""

    tune: Tune
    trials: Sequence[TuneTrial]
    best: TuneTrial
    trained: TrainedRun

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of the path, or of the best trials of a study; the best one is bold."""
        names, metric = list(self.tune.space), self.trained.config.metric
        shown = list(self.trials)
        if self.tune.trials is not None:
            shown = sorted(shown, key=lambda trial: (trial.pruned, -trial.value, trial.number))[:SHOWN]
        many = plural(len(self.trials), "trial", "trials")
        judged = "validation" if self.tune.folds is None else plural(self.tune.folds, "fold", "folds")
        trials_text = many if len(shown) == len(self.trials) else f"{len(shown)} of {many}"
        columns = ["trial", metric, "least", "most"]
        table = new_table(
            f"{metric} on {judged}: {trials_text}", "trial", *names, *columns[1:], numeric=[*columns, *names]
        )
        for trial in shown:
            style = "bold" if trial is self.best else ""
            spread = [number(min(trial.scores)), number(max(trial.scores))]
            values = [format_parameter(trial.parameters[name]) for name in names]
            words = [str(trial.number), *values, "pruned" if trial.pruned else number(trial.value), *spread]
            table.add_row(*(Text(word, style=style) for word in words))
        yield table, []

    def to_dict(self) -> dict[str, Any]:
        """Return the run, all trials and the best as plain values for JSON."""
        trials = [trial.plain() for trial in self.trials]
        return {**self.trained.to_dict(), "best": self.best.plain(), "trials": trials}

    def remarks(self) -> list[str]:
        """State the best parameters, those at the end of their range, and how many trials were pruned."""
        best = {name: format_parameter(self.best.parameters[name]) for name in self.tune.space}
        values = ", ".join(f"{name}={text}" for name, text in best.items())
        lines = [
            f"best is trial {self.best.number}, {values}: the model below is fitted with it to all queries"
        ]
        lines += [
            f"the best {name}, {best[name]}, is at the end of what was tried ({candidates.plain()}): --space "
            "widens it"
            for name, candidates in self.tune.space.items()
            if isinstance(candidates, Range)
            and self.best.parameters[name] in (candidates.low, candidates.high)
        ]
        pruned = sum(trial.pruned for trial in self.trials)
        if pruned:
            lines.append(f"{plural(pruned, 'trial was', 'trials were')} ended before the last fold")
        return lines


def tune_run(
    config: Config, folder: RunFolder, *, overwrite: bool, checkpoint: bool, quiet: bool
) -> TunedRun:
    """Read, search, train with the best and write; an interrupted search of the same is resumed."""
    tune = config.tune
    if tune is None:
        raise ParameterError.because("The configuration has no [tune] section.")
    folder.admit(overwrite=overwrite or _extends(config, folder))
    _refuse_bounds(config, tune)
    if tune.trials is not None:
        _need_optuna()
    rows, prints = read_files(config, quiet=quiet)
    n_queries = rows["train"].n_queries
    if tune.folds is not None and tune.folds > n_queries:
        raise ParameterError("--folds", tune.folds, f"at most the number of queries, {n_queries}")
    with locked_folder(folder, quiet=quiet):
        # While files were read, another may have finished it.
        folder.admit(overwrite=overwrite or _extends(config, folder))
        if not overwrite:
            _refuse_fewer(tune, folder)
        facts = first_facts(config, prints, rows, checkpoint=checkpoint)
        with begin_run(config, folder, facts, rows, overwrite=overwrite, quiet=quiet) as begun:
            trials = _run_search(begun, tune, rows)
            best = _best_trial(trials)
            best_config = config.with_parameters(best.parameters)
            _write_trials(folder, tune, trials)
            write_text(folder.path / BEST, best_config.text(FOUND))
            summary = {"trials": len(trials), "best": best.number, "value": best.value}
            trained = complete(begun, best_config, search=summary | {"parameters": dict(best.parameters)})
            return TunedRun(tune, trials, best, trained)


def _refuse_bounds(config: Config, tune: Tune) -> None:
    """Raise before the work if the ranker does not take the bounds of the space."""
    config.ranker()
    for name, values in tune.space.items():
        for end in values.ends:
            config.with_parameters({name: end}).ranker()


def _refuse_fewer(tune: Tune, folder: RunFolder) -> None:
    """Raise for fewer trials than are finished here: the run would contradict its configuration."""
    n_finished = _count_finished(folder.path / STUDY) if folder.state == "interrupted" else 0
    if n_finished > (tune.trials or 0):
        hint = f"The run has {n_finished} finished trials already. --overwrite deletes them."
        raise ParameterError("--trials", tune.trials, f"at least {n_finished}", hint=hint)


def _extends(config: Config, folder: RunFolder) -> bool:
    """True if the folder has a finished study that differs only in having fewer trials."""
    if folder.state != "finished":
        return False
    before = folder.config()
    if before.tune is None or config.tune is None or before.tune.trials is None:
        return False
    return differences(before, config) == [MORE] and before.tune.trials < (config.tune.trials or 0)


def _run_search(begun: StartedRun, tune: Tune, rows: Mapping[str, FileRows]) -> Sequence[TuneTrial]:
    if tune.trials is None:
        return _path_trials(begun, tune)
    with progress("Trial 1", total=tune.trials, quiet=begun.quiet) as step:
        return _study_trials(begun, tune, _make_splits(tune, rows), _report_progress(step, tune.trials))


def _report_progress(step: Callable[[str], None], total: int) -> Callable[[TuneTrial], None]:
    """Return a callback that moves the bar and shows the best value so far."""
    best = [float("-inf")]

    def report_trial(trial: TuneTrial) -> None:
        if not trial.pruned and trial.value > best[0]:
            best[0] = trial.value
        step(f"Trial {min(trial.number + 2, total)}; best so far {best[0]:.4f}")

    return report_trial


def _write_trials(folder: RunFolder, tune: Tune, trials: Sequence[TuneTrial]) -> None:
    """Write one line per trial: number, state, value, parameters, the score on each fold, seconds."""
    names, n_folds = list(tune.space), max(len(trial.scores) for trial in trials)
    folds = [f"fold {fold}" for fold in range(1, n_folds + 1)]
    rows = []
    for trial in trials:
        plain = trial.plain()
        values = {
            name: value if isinstance(value, int | float | str) else toml_value(value)
            for name, value in trial.parameters.items()
        }
        rows.append(
            {**{key: plain.get(key) for key in ("trial", "state", "value", *folds, "seconds")}, **values}
        )
    write_rows(folder.path / TRIALS, ["trial", "state", "value", *names, *folds, "seconds"], rows)
