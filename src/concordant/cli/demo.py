"""`concordant demo`: rankers on labels of known distribution, exact regret, and how far presets disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from concordant.cli.consistency import regret_tables
from concordant.cli.explain import reasons
from concordant.cli.output import COMPILING, Quiet, examples, new_table, number, progress, show

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.metrics import Explanation
    from concordant.supervision.synthetic import Synthetic
    from concordant.types import FloatArray

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = examples("concordant demo", "concordant demo --queries 2000 --seed 7")
# Each has a standardization, so that the best ranking is known exactly; and they share one kernel: on a new
# installation most of the time goes into compiling it.
METRICS = ("ndcg@10", "dcg@10", "p@5")
MAIN = METRICS[0]
FITTED, CONSTANT = f"linear for {MAIN}", "constant"
REGRET = "regret: how far below the best that any ranking can reach, given how the labels are drawn"
COIN = (
    "ndcg regret: with more queries, comparing grades (preorder) becomes surer of a wrong order",
    "`concordant certify ndcg preorder --search` finds such labels, and checks them in exact arithmetic",
)
SIZES = (10, 100, 1000)
N_ITEMS = (2, 30)  # some queries shorter than the cutoff, some without a relevant item: there tools differ


def demo(
    *,
    queries: Annotated[int, typer.Option(min=1, max=20_000, metavar="N", help="Queries to draw.")] = 500,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Equal seeds give equal tables.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Show in seconds what it is about: rankers judged by exact regret, and why tools disagree."""
    import concordant as cc
    from concordant.evaluation import consistency

    with progress("Drawing a synthetic set", quiet=quiet, total=len(METRICS) + 10) as step:
        toy = cc.synthetic.grades(n_queries=queries, n_items=N_ITEMS, seed=seed)
        step(f"Training a ranker for each metric {COMPILING}")
        scores = scorers(toy)
        table = regret_table(toy, scores, step)
        coin = consistency.run([consistency.exhibited()], sizes=SIZES, n_seeds=5, step=step)
        step(f"{MAIN} under every preset")
        told = {
            name: cc.metrics.explain(MAIN, toy.y, scores[name], qid=toy.qid) for name in (FITTED, CONSTANT)
        }
    show(table, [] if quiet else [REGRET])
    show(regret_tables(coin)[0], [] if quiet else list(COIN))
    show(preset_table(told), [] if quiet else spread(told))


def scorers(toy: Synthetic) -> dict[str, FloatArray]:
    """Give scores for every item: the best possible, a ranker trained for each metric, none at all."""
    import numpy as np

    import concordant as cc
    from concordant.theory import regret

    best = regret.bayes(MAIN, toy.distribution).scores
    fitted = {
        f"linear for {metric}": cc.LinearRanker(metric=metric).fit(toy.X, toy.y, qid=toy.qid)
        for metric in METRICS
    }
    return {
        f"best for {MAIN}": best,
        **{name: model.predict(toy.X) for name, model in fitted.items()},
        CONSTANT: np.zeros(len(best)),
    }


def regret_table(toy: Synthetic, scores: Mapping[str, FloatArray], step: Callable[[str], None]) -> Table:
    """Give one row a scorer: the expected value of each metric, and the regret."""
    from concordant.theory import regret

    columns: list[list[str]] = []
    for metric in METRICS:
        step(f"Expected {metric}, and the best possible")
        for function in (regret.expected, regret.regret):
            means = (function(metric, toy.distribution, one).mean() for one in scores.values())
            columns.append([number(mean) for mean in means])
    size = f"{len(toy.X):,} items, {toy.distribution.queries.n_queries:,} queries"
    heads = [head for metric in METRICS for head in (metric, "regret")]
    table = new_table(f"Expected value and exact regret: {size}", "scorer", *heads, numeric=heads)
    for row in zip(scores, *columns, strict=True):
        table.add_row(*row)
    return table


def preset_table(told: Mapping[str, Explanation]) -> Table:
    """Give one row a preset: the value of each scorer, and what moves that of the constant one."""
    table = new_table(
        f"{MAIN} on the labels drawn, under each preset",
        "preset",
        *told,
        f"what moves the {CONSTANT} scorer",
        numeric=told,
    )
    columns = ([number(row.value) for row in explanation.rows] for explanation in told.values())
    presets = [row.preset for row in told[CONSTANT].rows]
    for row in zip(presets, *columns, reasons(told[CONSTANT]), strict=True):
        table.add_row(*row)
    return table


def spread(told: Mapping[str, Explanation]) -> list[str]:
    """Say how far apart the presets are."""
    lines = []
    for name, explanation in told.items():
        values = [float(row.value) for row in explanation.rows]
        lines.append(f"{name}: the same scores are worth {min(values):.4f} to {max(values):.4f}")
    return lines
