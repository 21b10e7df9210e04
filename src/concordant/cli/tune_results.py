"""What `tune` found: as a table, as remarks, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from concordant.cli.output import new_table, number, plural
from concordant.cli.train_results import spelled
from concordant.cli.tune_space import Range

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.cli.tune_fit import Tuned

__all__ = ["plain_trials", "remarks", "trial_table"]

SHOWN = 10  # trials of a study; all are in the file


def trial_table(done: Tuned) -> Table:
    """Give the path, or the best trials of a study; the best one in bold."""
    names, metric = list(done.tune.space), done.trained.config.metric
    shown = list(done.trials)
    if done.tune.trials is not None:
        shown = sorted(shown, key=lambda one: (one.pruned, -one.value, one.number))[:SHOWN]
    many = plural(len(done.trials), "trial", "trials")
    judged = "validation" if done.tune.folds is None else plural(done.tune.folds, "fold", "folds")
    title = f"{metric} on {judged}: " + (
        many if len(shown) == len(done.trials) else f"{len(shown)} of {many}"
    )
    columns = ["trial", metric, "least", "most"]
    table = new_table(title, *columns[:1], *names, *columns[1:], numeric=[*columns, *names])
    for one in shown:
        style = "bold" if one is done.best else ""
        spread = [number(min(one.scores)), number(max(one.scores))]
        values = [spelled(one.parameters[name]) for name in names]
        words = [str(one.number), *values, "pruned" if one.pruned else number(one.value), *spread]
        table.add_row(*(Text(word, style=style) for word in words))
    return table


def remarks(done: Tuned) -> list[str]:
    """Say what a reader should know of the search."""
    chosen = ", ".join(f"{name}={spelled(done.best.parameters[name])}" for name in done.tune.space)
    lines = [f"best is trial {done.best.number}, {chosen}: the model below is fitted with it to all queries"]
    lines += [
        f"the best {name}, {spelled(done.best.parameters[name])}, is at the end of what was tried "
        f"({one.plain()}): --space widens it"
        for name, one in done.tune.space.items()
        if isinstance(one, Range) and done.best.parameters[name] in (one.low, one.high)
    ]
    pruned = sum(one.pruned for one in done.trials)
    if pruned:
        lines.append(f"{plural(pruned, 'trial was', 'trials were')} ended before the last fold")
    return lines


def plain_trials(done: Tuned) -> dict[str, Any]:
    """Give all trials and the best as plain values."""
    return {"best": done.best.plain(), "trials": [one.plain() for one in done.trials]}
