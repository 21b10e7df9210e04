"""An Optuna study kept in the run directory; optuna is imported here, when it is used.

What is tried next depends on the trials that are finished, and on nothing else: each trial has a sampler of
its own, seeded by their number. So a study that was killed goes on to the trials of one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.config_toml import toml_value
from concordant.cli.runs import STUDY
from concordant.cli.tune_search import Trial, fold_scores, mean
from concordant.cli.tune_space import Choices, Range, Space
from concordant.exceptions import MissingExtraError

if TYPE_CHECKING:
    from concordant.cli.config import Config
    from concordant.cli.train_fit import Begun
    from concordant.cli.tune_search import Split

__all__ = ["count_finished", "need_optuna", "study_trials"]

SCORES, SECONDS = "scores", "seconds"  # what is kept of a trial beside its parameters
LEAST = -1e300  # of a trial whose value is NaN, which Optuna would count as a failure and ask for again
UNPRUNED = 5  # the first trials, from which a median is known


def need_optuna() -> None:
    """Raise where optuna is not installed: before the data are read."""
    if find_spec("optuna") is None:
        raise MissingExtraError("optuna", "tune", "a search of anything but a linear ranker's penalty")


def study_trials(begun: Begun, splits: Sequence[Split], step: Callable[[Trial], object]) -> list[Trial]:
    """Give all trials, those of an interrupted study first; `step` is told of each."""
    tune = begun.config.tune
    if tune is None or tune.trials is None:
        return []
    study = opened(begun.folder.path / STUDY)
    trials = finished(study, tune.space)
    for one in trials:
        step(one)
    while len(trials) < tune.trials:
        asked = next_trial(study, begun.config, len(trials))
        tried(study, asked, begun.config, splits)
        trials = finished(study, tune.space)
        step(trials[-1])
    return trials


def count_finished(path: Path) -> int:
    """Give how many trials of a study have come to an end; 0 where there is none."""
    if not path.is_file():
        return 0
    need_optuna()
    return len(ended(opened(path)))


def opened(path: Path) -> Any:
    """Give the study of a file, or a new one; the trial in which it was killed is given up."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    mend(path)
    backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
    study = optuna.create_study(
        storage=JournalStorage(backend),
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED),
    )
    states = optuna.trial.TrialState
    for one in study.get_trials(deepcopy=False, states=(states.RUNNING, states.WAITING)):
        if one.state == states.WAITING:
            study.ask()
        study.tell(one.number, state=states.FAIL)
    return study


def mend(path: Path) -> None:
    """Remove what a killed process leaves: half a line, and its lock. The folder is ours alone (`held`)."""
    Path(f"{path}.lock").unlink(missing_ok=True)
    if path.is_file():
        contents = path.read_bytes()
        whole = contents.rfind(b"\n") + 1
        if whole < len(contents):
            with path.open("r+b") as stream:
                stream.truncate(whole)


def ended(study: Any) -> list[Any]:
    """Give what Optuna knows of the trials that have come to an end, in order."""
    from optuna.trial import TrialState

    states = (TrialState.COMPLETE, TrialState.PRUNED)
    return list(study.get_trials(deepcopy=False, states=states))


def finished(study: Any, space: Space) -> list[Trial]:
    """Give the trials that have come to an end, in order, from 0."""
    from optuna.trial import TrialState

    return [
        Trial(
            number,
            {name: chosen(space[name], one.params[name]) for name in space},
            tuple(one.user_attrs[SCORES]),
            one.state == TrialState.PRUNED,
            one.user_attrs[SECONDS],
        )
        for number, one in enumerate(ended(study))
    ]


def next_trial(study: Any, config: Config, number: int) -> Any:
    """Give the next trial: the first is at the configuration's parameters, where the space has them."""
    import numpy as np
    import optuna

    space = config.tune.space if config.tune is not None else {}
    seed = int(np.random.SeedSequence([config.seed, number]).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    given = config.parameters
    first = {name: kept(one, given[name]) for name, one in space.items() if given[name] in one}
    if number == 0 and first:
        study.enqueue_trial(first)
    return study.ask()


def kept(one: Range | Choices, value: Any) -> Any:
    """Give a value as the study keeps it: of choices the text."""
    return toml_value(value) if isinstance(one, Choices) else value


def chosen(one: Range | Choices, value: Any) -> Any:
    """Give the value that the study kept."""
    if isinstance(one, Range):
        return value
    return next(choice for choice in one.values if toml_value(choice) == value)


def suggested(trial: Any, space: Space) -> dict[str, Any]:
    """Give the parameters that a trial tries."""
    values: dict[str, Any] = {}
    for name, one in space.items():
        if isinstance(one, Choices):
            value = trial.suggest_categorical(name, [toml_value(choice) for choice in one.values])
        elif one.whole:
            value = trial.suggest_int(name, one.low, one.high, log=one.log)
        else:
            value = trial.suggest_float(name, one.low, one.high, log=one.log)
        values[name] = chosen(one, value)
    return values


def tried(study: Any, trial: Any, config: Config, splits: Sequence[Split]) -> None:
    """Score the parameters of a trial, fold by fold, and write down what came out."""
    from optuna.trial import TrialState

    tune, at = config.tune, time.perf_counter()
    prune = tune is not None and tune.prune
    at_these = config.chosen(suggested(trial, {} if tune is None else tune.space))
    scores: list[float] = []
    for fold, score in enumerate(fold_scores(at_these, splits)):
        scores.append(score)
        trial.report(mean(scores), fold)
        if prune and fold + 1 < len(splits) and trial.should_prune():
            break
    trial.set_user_attr(SCORES, scores)
    trial.set_user_attr(SECONDS, round(time.perf_counter() - at, 3))
    if len(scores) < len(splits):
        study.tell(trial, state=TrialState.PRUNED)
    else:
        study.tell(trial, value_of(scores))


def value_of(scores: Sequence[float]) -> float:
    """Give the mean; where the metric is undefined everywhere, less than any."""
    value = mean(scores)
    return LEAST if math.isnan(value) else value
