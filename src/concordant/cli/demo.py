"""`concordant demo`: three rankers on a search log whose truth is known, and a report of the best of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    new_table,
    number,
    print_json,
    progress,
    show,
)

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.supervision.synthetic import Synthetic
    from concordant.types import FloatArray

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = examples("concordant demo", "concordant demo --queries 5000 --seed 7 --report truth.html")
METRIC = "ndcg@10"
LINEAR, TREES, BEST = "linear", "boosted trees", "best possible"
MISSING = "the boosted rankers were left out: pip install lightgbm"
ROUNDS, PATIENCE = 300, 30  # trees at most, and without progress on other sessions
STEPS = 7
WORDS = (
    f"{METRIC}: expected over the intents of unseen sessions; regret: how far below the best order of each",
    "preorder compares results of different grades, as RankNet and SVMrank do: it learns what most pairs say",
    "a linear score cannot use what is the same for a whole query, and no loss can mend that; trees can",
)
SAID = {
    "proven": "with enough data and features, the best order",
    "conditional": "the best order, under a condition",
    "refuted": "a wrong order, on some labels, however many the data",
    "open": "not known",
}


@dataclass(frozen=True)
class Judged:
    """A ranker of the demo: what it is worth on held-out sessions, and what is guaranteed of it."""

    ranker: str
    loss: str
    value: float
    regret: float
    status: str
    certificate: str


def demo(
    *,
    queries: Annotated[
        int, typer.Option(min=50, max=100_000, metavar="N", help="Sessions to train on.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Equal seeds give equal tables.")] = 0,
    report: Annotated[
        Path, typer.Option("--report", metavar="FILE", help="Where the HTML report goes.")
    ] = Path("concordant-demo.html"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train rankers on a search log of known truth: value, exact regret, certificate; and a report."""
    import concordant as cc
    from concordant.evaluation.condition_plots import check_page

    check_target(report)
    check_page(report)
    with progress("Drawing the search log", quiet=quiet, total=STEPS) as step:
        sizes = (queries, max(queries // 4, 50), max(queries // 4, 50))
        logs = [cc.synthetic.search_log(size, seed=3 * seed + place) for place, size in enumerate(sizes)]
        models = fitted(logs[0], logs[1], step)
        step(f"Exact regret {COMPILING}")
        rows = judged(models, logs[2])
        step("Report, and fits to parts of the log")
        written = write_report(models, logs[0], logs[2], report)
    if as_json:
        print_json({"metric": METRIC, "rankers": [vars(row) for row in rows], "report": written})
        return
    notes = [*WORDS, *([] if len(models) > 2 else [MISSING])]
    show(table_of(rows, logs[0], logs[2]), [] if quiet else notes)
    if not quiet:
        typer.echo(f"report: {written}" if written else "no report: pip install plotly")


def fitted(log: Synthetic, others: Synthetic, step: Callable[[str], None]) -> dict[tuple[str, str], Any]:
    """Train each ranker, by its name and loss; the trees stop by other sessions, or are not there."""
    import warnings
    from importlib.util import find_spec

    import concordant as cc

    # One thread: the log is small, and threads that wait for a busy core would take most of the time.
    trees = {"n_estimators": ROUNDS, "early_stopping": PATIENCE, "n_jobs": 1}
    held = {"eval_set": (others.table, others.y, others.qid)}
    kinds = {LINEAR: (cc.LinearRanker, {}, {}), TREES: (cc.BoostedRanker, trees, held)}
    if find_spec("lightgbm") is None:
        del kinds[TREES]
    models: dict[tuple[str, str], Any] = {}
    for name, (ranker, parameters, given) in kinds.items():
        for loss, kind in (("preorder", "preorder"), ("auto", "consistent")):
            step(f"{name}, {kind} {COMPILING}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cc.GuaranteeWarning)  # the table says it
                model = ranker(METRIC, loss, **parameters).fit(log.table, log.y, qid=log.qid, **given)
            models[name, str(model.surrogate_.name)] = model
    return models


def judged(models: dict[tuple[str, str], Any], test: Synthetic) -> list[Judged]:
    """Give what each ranker is worth, and the best that there is."""
    from concordant.theory import regret

    def row(name: str, loss: str, scores: FloatArray, *known: str) -> Judged:
        value, lost = (
            float(function(METRIC, test.distribution, scores).mean())
            for function in (regret.expected, regret.regret)
        )
        return Judged(name, loss, value, lost, *known)

    rows = [
        row(*name, model.predict(test.table), model.certificate_.status, model.certificate_.paragraph())
        for name, model in models.items()
    ]
    return [*rows, row(BEST, "", regret.bayes(METRIC, test.distribution).scores, "", "")]


def table_of(rows: list[Judged], log: Synthetic, test: Synthetic) -> Table:
    """Give one row a ranker."""
    sizes = (f"{one.distribution.queries.n_queries:,} sessions" for one in (log, test))
    title = "A search log of known truth: trained on {}, judged on {}".format(*sizes)
    columns = (METRIC, "regret")
    table = new_table(title, "ranker", "loss", *columns, "certificate", numeric=columns)
    for one in rows:
        told = one.status and f"{one.status}: {SAID[one.status]}"
        table.add_row(one.ranker, one.loss, number(one.value), number(one.regret), told)
    return table


def write_report(
    models: dict[tuple[str, str], Any], log: Synthetic, test: Synthetic, path: Path
) -> str | None:
    """Write the report of the last ranker against the first; None without plotly."""
    from importlib.util import find_spec

    import concordant as cc

    if find_spec("plotly") is None:
        return None
    first, *_, last = models
    name, other = (f"{kind} ({loss})" for kind, loss in (last, first))
    page = cc.report(
        models[last],
        test.table,
        test.y,
        qid=test.qid,
        baseline=models[first],
        metrics=[METRIC, "ap", "rr"],
        title="A search log of known truth",
        name=name,
        baseline_name=other,
        learning_curve=(log.table, log.y, log.qid),
    )
    page.write(path)
    return str(path)
