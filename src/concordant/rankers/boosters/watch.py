"""Watch: told of each round of boosting; keeps the scores, and says when to end."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from concordant.rankers.progress import is_wanted, shown
from concordant.types import FloatArray

__all__ = ["Round", "Watch", "followed", "interruptible"]


@dataclass(frozen=True)
class Round:
    """What a callback is told after each round.

    Attributes
    ----------
    n_trees
        Trees so far.
    score
        The metric on the held-out queries, as `score` gives it; None without such queries.
    best_iteration
        Trees that would be kept by early stopping.
    """

    n_trees: int
    score: float | None
    best_iteration: int


@dataclass
class Watch:
    """Told of each round; a true answer ends the growing.

    Attributes
    ----------
    evaluate
        The score of held-out rows; None: there are none.
    patience
        Rounds without a better score after which the work ends; None: never.
    callbacks
        Asked after each round.
    done
        Trees of an earlier fit, none of which is taken back.
    random
        Whether a round that finds no split may be followed by one that does.
    history
        The score at each number of trees; NaN where it was not taken.
    losses
        Summed training loss at numbers of trees, where the library asks for its gradient.
    trained
        Scores of the training rows after the last round, where the library gives them.
    stopped_by
        "limit", "early_stopping", "no_split", "callback" or "interrupt".
    pause
        Trees at which the library is to stop for now; None: nowhere.
    failure
        What a callback raised, for the caller of the library to raise: not all of them let it through.
    """

    evaluate: Callable[[FloatArray], float] | None = None
    patience: int | None = None
    callbacks: tuple[Callable[[Round], object], ...] = ()
    done: int = 0
    random: bool = False
    history: list[float] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    trained: FloatArray | None = None
    stopped_by: str = "limit"
    pause: int | None = None
    interrupted: bool = False
    latest: float | None = None
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.history = [*self.history[: self.done], *[math.nan] * (self.done - len(self.history))]
        self.peak = self.done if self.done and math.isfinite(self.history[-1]) else 0

    @property
    def best(self) -> int:
        """The first number of trees with the best score; the last number where there are no scores."""
        return self.peak or len(self.history)

    def score(self, scores: FloatArray) -> float:
        """Take the scores of the held-out rows after a round, before it is told of."""
        if self.evaluate is not None:
            self.latest = self.evaluate(scores)
        return math.nan if self.latest is None else self.latest

    def note(self, score: float) -> None:
        """Add one tree more, and see whether its score is the best."""
        self.history.append(score)
        if math.isfinite(score) and not (self.peak and score <= self.history[self.peak - 1]):
            self.peak = len(self.history)

    def rewind(self, history: Sequence[float]) -> None:
        """Stand where a training stood that had these scores; those of an earlier fit are among them."""
        self.history, self.peak = self.history[: self.done], min(self.peak, self.done)
        for score in history[self.done :]:
            self.note(score)
        self.latest = self.history[-1] if self.history and self.evaluate is not None else None

    def told(self, n_trees: int) -> bool:
        """Note a round; give whether to end."""
        grown = n_trees > len(self.history)
        if grown:
            self.note(math.nan if self.latest is None else self.latest)
        try:
            answers = [one(Round(n_trees, self.latest, self.best)) for one in self.callbacks]
        except KeyboardInterrupt:
            self.interrupted, answers = True, []
        except Exception as error:  # noqa: BLE001  whatever it is, it is the caller's
            self.failure, answers = error, [True]
        if self.interrupted:
            self.stopped_by = "interrupt"
        elif any(answers):
            self.stopped_by = "callback"
        elif self.patience is not None and n_trees - self.best >= self.patience:
            self.stopped_by = "early_stopping"
        elif not (grown or self.random):
            self.stopped_by = "no_split"
        return self.stopped_by != "limit" or n_trees == self.pause


@contextmanager
def interruptible(watch: Watch) -> Iterator[None]:
    """Make Ctrl-C end the work after the round, in every library; a second one ends it at once."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is None or threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's, or another program's
        return

    def noted(number: int, frame: Any) -> None:
        del number, frame
        watch.interrupted = True
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, noted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def followed(title: str, total: int, verbose: int) -> Iterator[tuple[Callable[[Round], object], ...]]:
    """Give the callback of a progress bar; none where it is not wanted."""
    if not is_wanted(verbose):
        yield ()
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    told_column = TextColumn("{task.fields[told]}")
    with shown(TextColumn("{task.description}"), BarColumn(), told_column, TimeElapsedColumn()) as bar:
        task = bar.add_task(title, total=total, told="")

        def moved(step: Round) -> None:
            score = "" if step.score is None else f", {step.score:.4f} (best at {step.best_iteration})"
            bar.update(task, completed=step.n_trees, told=f"{step.n_trees} trees{score}")

        yield (moved,)
