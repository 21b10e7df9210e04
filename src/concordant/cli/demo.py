"""`concordant demo`: three rankers on a search log of known truth, and a report on the best of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from concordant.cli.shared.output import (
    COMPILING,
    Display,
    TableResult,
    check_target,
    examples,
    new_table,
    number,
    option,
    progress,
)

if TYPE_CHECKING:
    from concordant.data.synthetic.graded_queries import Synthetic
    from concordant.types import FloatArray

EXAMPLES = examples("concordant demo", "concordant demo --queries 5000 --seed 7 --report truth.html")
METRIC = "ndcg@10"
LINEAR, TREES, BEST = "linear", "boosted trees", "best possible"
MISSING = "the boosted rankers were left out: pip install lightgbm"
ROUNDS, PATIENCE = 300, 30  # trees at most; trees without progress on the other sessions
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
class DemoRanker:
    """A ranker of the demo: its value on held-out sessions, and its guarantee."""

    ranker: str
    loss: str
    value: float
    regret: float
    status: str
    certificate: str


def demo(
    *,
    queries: Annotated[int, option("--queries", "N", "Sessions to train on.", min=50, max=100_000)] = 2000,
    seed: Annotated[int, option("--seed", "N", "Equal seeds give equal tables.", min=0)] = 0,
    report: Annotated[Path, option("--report", "FILE", "Where the HTML report goes.")] = Path(
        "concordant-demo.html"
    ),
    display: Display,
) -> None:
    """Train rankers on a search log of known truth: value, exact regret, certificate; and a report."""
    import concordant as cc
    from concordant.evaluation.outcome_plots import check_page

    check_target(report)
    check_page(report)
    with progress("Drawing the search log", quiet=display.quiet, total=STEPS) as step:
        sizes = (queries, max(queries // 4, 50), max(queries // 4, 50))
        logs = [cc.synthetic.search_log(size, seed=3 * seed + number) for number, size in enumerate(sizes)]
        models = _fit_rankers(logs[0], logs[1], step)
        step(f"Exact regret {COMPILING}")
        rows = _judge_rankers(models, logs[2])
        step("Report, and fits to parts of the log")
        written = write_report(models, logs[0], logs[2], report)
    values = {"metric": METRIC, "rankers": [vars(row) for row in rows], "report": written}
    remarks = [*WORDS, *([] if len(models) > 2 else [MISSING])]
    table = _ranker_table(rows, logs[0], logs[2])
    display.present(TableResult(values, table, remarks))
    if not display.is_bare:
        typer.echo(f"report: {written}" if written else "no report: pip install 'concordant[report]'")


def _fit_rankers(
    log: Synthetic, others: Synthetic, step: Callable[[str], None]
) -> dict[tuple[str, str], Any]:
    """Fit each ranker, keyed by name and loss; trees stop early by other sessions and need lightgbm."""
    import warnings
    from importlib.util import find_spec

    import concordant as cc

    # One thread: the log is small, and threads that wait for a busy core would take most of the time.
    trees = {"n_estimators": ROUNDS, "early_stopping": PATIENCE, "n_jobs": 1}
    stopping = {"eval_set": (others.table, others.y, others.qid)}
    kinds = {LINEAR: (cc.LinearRanker, {}, {}), TREES: (cc.BoostedRanker, trees, stopping)}
    if find_spec("lightgbm") is None:
        del kinds[TREES]
    models: dict[tuple[str, str], Any] = {}
    for name, (ranker, parameters, fit_options) in kinds.items():
        for loss, kind in (("preorder", "preorder"), ("auto", "consistent")):
            step(f"{name}, {kind} {COMPILING}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cc.GuaranteeWarning)  # the table states it
                model = ranker(METRIC, loss, **parameters).fit(log.table, log.y, qid=log.qid, **fit_options)
            models[name, str(model.surrogate_.name)] = model
    return models


def _judge_rankers(models: dict[tuple[str, str], Any], test: Synthetic) -> list[DemoRanker]:
    from concordant.theory import regret

    def row(name: str, loss: str, scores: FloatArray, *certificate: str) -> DemoRanker:
        value, lost = (
            float(function(METRIC, test.distribution, scores).mean())
            for function in (regret.expected, regret.regret)
        )
        return DemoRanker(name, loss, value, lost, *certificate)

    rows = [
        row(*name, model.predict(test.table), model.certificate_.status, str(model.certificate_))
        for name, model in models.items()
    ]
    return [*rows, row(BEST, "", regret.bayes(METRIC, test.distribution).scores, "", "")]


def _ranker_table(rows: list[DemoRanker], log: Synthetic, test: Synthetic) -> Table:
    sizes = (f"{sessions.distribution.queries.n_queries:,} sessions" for sessions in (log, test))
    title = "A search log of known truth: trained on {}, judged on {}".format(*sizes)
    columns = (METRIC, "regret")
    table = new_table(title, "ranker", "loss", *columns, "certificate", numeric=columns)
    for row in rows:
        guarantee = row.status and f"{row.status}: {SAID[row.status]}"
        table.add_row(row.ranker, row.loss, number(row.value), number(row.regret), guarantee)
    return table


def write_report(
    models: dict[tuple[str, str], Any], log: Synthetic, test: Synthetic, path: Path
) -> str | None:
    """Write the report of the last ranker against the first; return None without plotly and jinja2."""
    from importlib.util import find_spec

    import concordant as cc

    if find_spec("plotly") is None or find_spec("jinja2") is None:
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
