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
PREORDER, LINEAR, TREES, BEST = "linear, preorder", "linear", "boosted trees", "best possible"
MISSING = "the boosted ranker was left out: pip install lightgbm"
STEPS = 6
WORDS = (
    f"{METRIC}: expected over the intents of held-out sessions; regret: how far below the best order of each",
    "preorder compares results of different grades, as RankNet and SVMrank do: it learns what most pairs say",
    "a linear score cannot use what is the same for a whole query; trees can",
)


@dataclass(frozen=True)
class Judged:
    """A ranker of the demo: what it is worth on held-out sessions, and what is guaranteed of it."""

    ranker: str
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
    """Train three rankers on a search log of known truth: value, exact regret, certificate; and a report."""
    import concordant as cc

    check_target(report)
    with progress("Drawing the search log", quiet=quiet, total=STEPS) as step:
        log = cc.synthetic.search_log(queries, seed=2 * seed)
        test = cc.synthetic.search_log(max(queries // 4, 50), seed=2 * seed + 1)
        models = fitted(log, step)
        step(f"Exact regret {COMPILING}")
        rows = judged(models, test)
        step("Writing the report")
        written = write_report(models, test, report)
    if as_json:
        print_json({"metric": METRIC, "rankers": [vars(row) for row in rows], "report": written})
        return
    notes = [*WORDS, *([] if TREES in models else [MISSING])]
    show(table_of(rows, log, test), [] if quiet else notes)
    if not quiet:
        typer.echo(f"report: {written}" if written else "no report: pip install plotly")


def fitted(log: Synthetic, step: Callable[[str], None]) -> dict[str, Any]:
    """Train each ranker; without LightGBM there are no trees."""
    import warnings
    from importlib.util import find_spec

    import concordant as cc

    wanted: dict[str, Any] = {
        PREORDER: cc.LinearRanker(METRIC, "preorder"),
        LINEAR: cc.LinearRanker(METRIC),
        TREES: cc.BoostedRanker(METRIC, n_estimators=150),
    }
    if find_spec("lightgbm") is None:
        del wanted[TREES]
    for name, model in wanted.items():
        step(f"Training: {name} {COMPILING}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cc.GuaranteeWarning)  # the table says it
            model.fit(log.table, log.y, qid=log.qid)
    return wanted


def judged(models: dict[str, Any], test: Synthetic) -> list[Judged]:
    """Give what each ranker is worth, and the best that there is."""
    from concordant.theory import regret

    def row(name: str, scores: FloatArray, status: str, certificate: str) -> Judged:
        value, lost = (
            float(function(METRIC, test.distribution, scores).mean())
            for function in (regret.expected, regret.regret)
        )
        return Judged(name, value, lost, status, certificate)

    rows = [
        row(name, model.predict(test.table), model.certificate_.status, model.certificate_.paragraph())
        for name, model in models.items()
    ]
    return [*rows, row(BEST, regret.bayes(METRIC, test.distribution).scores, "", "")]


def table_of(rows: list[Judged], log: Synthetic, test: Synthetic) -> Table:
    """Give one row a ranker."""
    sizes = (f"{one.distribution.queries.n_queries:,} sessions" for one in (log, test))
    title = "A search log of known truth: trained on {}, judged on {}".format(*sizes)
    columns = (METRIC, "regret")
    table = new_table(title, "ranker", *columns, "certificate", numeric=columns)
    for one in rows:
        told = one.status and f"{one.status}: {SAID[one.status]}"
        table.add_row(one.ranker, number(one.value), number(one.regret), told)
    return table


SAID = {
    "proven": "with enough data and features, the best order",
    "conditional": "the best order, under a condition",
    "refuted": "a wrong order, on some labels, however many the data",
    "open": "not known",
}


def write_report(models: dict[str, Any], test: Synthetic, path: Path) -> str | None:
    """Write the report of the last ranker against the first; None without plotly."""
    from importlib.util import find_spec

    import concordant as cc

    if find_spec("plotly") is None:
        return None
    first, *_, last = models
    page = cc.report(
        models[last],
        test.table,
        test.y,
        qid=test.qid,
        baseline=models[first],
        metrics=[METRIC, "ap", "rr"],
        title=f"{last} against {first}, on a search log of known truth",
    )
    page.write(path)
    return str(path)
