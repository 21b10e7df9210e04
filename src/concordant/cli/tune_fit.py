"""One search from its configuration to a finished run directory; `tune` and `rerun` share it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from concordant.cli.config import Config, differences
from concordant.cli.output import console, progress, write_rows
from concordant.cli.runs import BEST, MORE, STUDY, TRIALS, RunFolder, first_facts
from concordant.cli.runs_files import write_text
from concordant.cli.train_files import read_files
from concordant.cli.train_fit import Begun, Trained, complete, working_in
from concordant.cli.tune_search import Trial, best_of, path_trials, splits_of
from concordant.cli.tune_study import count_finished, need_optuna, study_trials
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.config_tune import Tune
    from concordant.cli.data_rows import FileRows

__all__ = ["Tuned", "tune_run"]

FOUND = "# The best that this search found. `concordant train --config` trains it.\n\n"


@dataclass(frozen=True, eq=False)
class Tuned:
    """A finished search: what was tried, the best of it, and the run that was trained with that."""

    tune: Tune
    trials: Sequence[Trial]
    best: Trial
    trained: Trained


def tune_run(config: Config, folder: RunFolder, *, overwrite: bool, checkpoint: bool, quiet: bool) -> Tuned:
    """Read, search, train with the best and write; an interrupted search of the same goes on where it was."""
    tune = config.tune
    if tune is None:
        raise ParameterError("config", None, "that of a search")
    folder.admit(overwrite=overwrite or extends(config, folder))
    refuse_bounds(config, tune)
    if tune.trials is not None:
        need_optuna()
    rows, prints = read_files(config, quiet=quiet)
    refuse_folds(tune, rows["train"].n_queries)
    with working_in(folder, quiet=quiet):
        # While files were read, another may have finished it.
        folder.admit(overwrite=overwrite or extends(config, folder))
        if not overwrite:
            refuse_fewer(tune, folder)
        facts = first_facts(config, prints, rows, checkpoint=checkpoint)
        begun = Begun(config, folder, facts, rows, time.perf_counter())
        resumed = folder.begin(config, begun.facts, overwrite=overwrite)
        with folder.restoring(resumed=resumed):
            return search_and_train(begun, tune, rows, resumed=resumed, checkpoint=checkpoint, quiet=quiet)


def search_and_train(
    begun: Begun, tune: Tune, rows: Mapping[str, FileRows], *, resumed: bool, checkpoint: bool, quiet: bool
) -> Tuned:
    """Search, train with the best and write."""
    trials = searched(begun, tune, rows, checkpoint=checkpoint, quiet=quiet)
    best = best_of(trials)
    chosen = begun.config.chosen(best.parameters)
    write_trials(begun.folder, tune, trials)
    write_text(begun.folder.path / BEST, chosen.text(FOUND))
    found: dict[str, Any] = {"trials": len(trials), "best": best.number, "value": best.value}
    found["parameters"] = dict(best.parameters)
    done = complete(begun, chosen, resumed=resumed, checkpoint=checkpoint, quiet=quiet, search=found)
    return Tuned(tune, trials, best, done)


def refuse_bounds(config: Config, tune: Tune) -> None:
    """Refuse what the ranker would not be made with, before any work."""
    config.ranker()
    for name, one in tune.space.items():
        for end in one.ends:
            config.chosen({name: end}).ranker()


def refuse_folds(tune: Tune, n_queries: int) -> None:
    """Refuse folds that could not all have a query."""
    if tune.folds is not None and tune.folds > n_queries:
        raise ParameterError(
            "--folds", tune.folds, f"at most the number of queries, {n_queries}: none is cut"
        )


def refuse_fewer(tune: Tune, folder: RunFolder) -> None:
    """Refuse fewer trials than are finished here: the run would not be what its configuration says."""
    n_finished = count_finished(folder.path / STUDY) if folder.state == "interrupted" else 0
    if n_finished > (tune.trials or 0):
        wanted = f"at least {n_finished}: as many are finished here; else --overwrite them"
        raise ParameterError("--trials", tune.trials, wanted)


def extends(config: Config, folder: RunFolder) -> bool:
    """Whether the folder has a finished study of the same with fewer trials."""
    if folder.state != "finished":
        return False
    before = folder.config()
    if before.tune is None or config.tune is None or before.tune.trials is None:
        return False
    return differences(before, config) == [MORE] and before.tune.trials < (config.tune.trials or 0)


def searched(
    begun: Begun, tune: Tune, rows: Mapping[str, FileRows], *, checkpoint: bool, quiet: bool
) -> Sequence[Trial]:
    """Give all trials, with a bar where somebody watches."""
    if tune.trials is None:
        return path_trials(
            begun, checkpoint=checkpoint, verbose=not quiet and console(stderr=True).is_terminal
        )
    with progress("Trial 1", total=tune.trials, quiet=quiet) as step:
        return study_trials(begun, splits_of(begun.config, rows), told(step, tune.trials))


def told(step: Callable[[str], None], total: int) -> Callable[[Trial], None]:
    """Give what moves the bar on, and says the best so far."""
    best = [float("-inf")]

    def one_more(trial: Trial) -> None:
        if not trial.pruned and trial.value > best[0]:
            best[0] = trial.value
        step(f"Trial {min(trial.number + 2, total)}; best so far {best[0]:.4f}")

    return one_more


def write_trials(folder: RunFolder, tune: Tune, trials: Sequence[Trial]) -> None:
    """Write one line a trial: number, state, value, parameters, the score on each fold, seconds."""
    from concordant.cli.config_toml import toml_value

    names, n_folds = list(tune.space), max(len(one.scores) for one in trials)
    folds = [f"fold {place}" for place in range(1, n_folds + 1)]
    rows = []
    for one in trials:
        plain = one.plain()
        values = {
            name: value if isinstance(value, int | float | str) else toml_value(value)
            for name, value in one.parameters.items()
        }
        rows.append(
            {**{key: plain.get(key) for key in ("trial", "state", "value", *folds, "seconds")}, **values}
        )
    write_rows(folder.path / TRIALS, ["trial", "state", "value", *names, *folds, "seconds"], rows)
