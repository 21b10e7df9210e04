"""`concordant demo`: a set with a known label distribution, exact regret, and how far presets disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.explain import reasons
from concordant.cli.output import Quiet, console, examples, new_table, notes, number, progress

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.metrics import Explanation
    from concordant.supervision.synthetic import Synthetic
    from concordant.types import FloatArray

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = examples("concordant demo", "concordant demo --queries 2000 --seed 7")
METRICS = ("ndcg@10", "p@5", "auc")  # each has a standardization, so that the best ranking is known exactly
MAIN = METRICS[0]
FITTED, CONSTANT = "least squares", "constant"
N_ITEMS = (2, 30)  # some queries shorter than the cutoff, some without a relevant item: there tools differ


def demo(
    *,
    queries: Annotated[int, typer.Option(min=1, max=20_000, help="Queries to draw.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal tables.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Show in seconds what it is about: exact regret on known labels, and why tools disagree."""
    import concordant as cc

    with progress("Drawing a synthetic set", quiet=quiet, total=len(METRICS) + 3) as step:
        toy = cc.synthetic.grades(n_queries=queries, n_items=N_ITEMS, seed=seed)
        step("Fitting scorers")
        scores = scorers(toy, seed)
        table = new_table(
            f"Expected value and exact regret: {len(toy.X):,} items, {queries:,} queries",
            "scorer",
            *(name for metric in METRICS for name in (metric, "regret")),
            numeric=(*METRICS, "regret"),
        )
        columns: list[list[str]] = []
        for metric in METRICS:
            step(f"Expected {metric} and its best possible value")
            columns += value_and_regret(metric, toy, scores)
        step(f"{MAIN} under every preset")
        told = {
            name: cc.metrics.explain(MAIN, toy.y, scores[name], qid=toy.qid) for name in (FITTED, CONSTANT)
        }
    for row in zip(scores, *columns, strict=True):
        table.add_row(*row)
    console().print(table)
    if not quiet:
        notes(["regret: how far below the best that any ranking can reach, given how labels are drawn"])
    console().print(preset_table(told))
    if not quiet:
        notes(spread(told))


def scorers(toy: Synthetic, seed: int) -> dict[str, FloatArray]:
    """Give scores for every item, from the best possible to none at all."""
    import numpy as np

    import concordant as cc
    from concordant.theory import regret

    best = regret.bayes(MAIN, toy.distribution).scores
    noise = np.random.default_rng(seed).normal(scale=best.std(), size=len(best))
    weights = np.linalg.lstsq(toy.X, cc.metric(MAIN).targets(toy.y, qid=toy.qid))[0]
    return {
        f"best for {MAIN}": best,
        "best + noise": best + noise,
        FITTED: toy.X @ weights,
        "one feature": toy.X[:, 0],
        CONSTANT: np.zeros(len(best)),
    }


def value_and_regret(metric: str, toy: Synthetic, scores: Mapping[str, FloatArray]) -> list[list[str]]:
    """Give two columns: the expected value of each scorer, and its regret."""
    from concordant.theory import regret

    values = [regret.expected(metric, toy.distribution, one).mean() for one in scores.values()]
    gaps = [regret.regret(metric, toy.distribution, one).mean() for one in scores.values()]
    return [[number(value) for value in column] for column in (values, gaps)]


def preset_table(told: Mapping[str, Explanation]) -> Table:
    """Give one row a preset: the value of each scorer, and what moves that of the constant one."""
    table = new_table(
        f"{MAIN} on the labels drawn, as ten tools define it",
        "preset",
        *told,
        f"what moves the {CONSTANT} scorer",
        numeric=told,
    )
    for rows in zip(*(explanation.rows for explanation in told.values()), strict=True):
        table.add_row(rows[0].preset, *(number(row.value) for row in rows), reasons(rows[-1]))
    return table


def spread(told: Mapping[str, Explanation]) -> list[str]:
    """Say how far apart the presets are."""
    lines = []
    for name, explanation in told.items():
        values = [float(row.value) for row in explanation.rows]
        lines.append(f"{name}: the same scores are worth {min(values):.4f} to {max(values):.4f}")
    return lines
