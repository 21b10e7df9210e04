"""`concordant aggregate`: one ranking for the votes of a file, with a proof or a gap."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.status import Status

from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    check_target,
    examples,
    new_table,
    plural,
    print_json,
    show,
    working,
)

if TYPE_CHECKING:
    from rich.table import Table

    from concordant import Aggregate

__all__ = ["EXAMPLES", "aggregate"]

EXAMPLES = examples(
    "concordant aggregate election.soc",
    "concordant aggregate ballots.toi --unranked last --top 10 --output ranking.csv",
    "concordant aggregate games.csv --left white --right black --outcomes score",
    "concordant aggregate election.soc --method borda --json",
)
COLUMNS = ("rank", "name", "borda", "wins", "ties", "losses", "margin")
LONG_CYCLE = 8


def aggregate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Votes: PrefLib (.soc .soi .toc .toi .wmd), or a table of comparisons (.csv .tsv .parquet "
            ".feather); text may be compressed.",
            show_default=False,
        ),
    ],
    *,
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="METHOD", help="kemeny, borda, edge-deletion or insertion."),
    ] = "kemeny",
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="S", help="Seconds after which kemeny stops proving.")
    ] = 60.0,
    unranked: Annotated[
        str,
        typer.Option(
            "--unranked",
            metavar="HOW",
            help="Items that an order leaves out: ignore (no preference) or last.",
        ),
    ] = "ignore",
    left: Annotated[
        str | None, typer.Option("--left", metavar="COL", help="Column of the left items. Default: left.")
    ] = None,
    right: Annotated[
        str | None, typer.Option("--right", metavar="COL", help="Column of the right items. Default: right.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", metavar="COL", help="Column of outcomes. Default: outcome.")
    ] = None,
    outcomes: Annotated[
        str | None,
        typer.Option("--outcomes", metavar="score", help="score: outcomes are chess scores, 1, 0.5 or 0."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, metavar="N", help="Show the best N only; --output writes all."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.csv", help="Write the ranking to this file."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """One ranking for many votes: Kemeny's, which overrules the fewest preferences, with proof or gap."""
    if output is not None:
        check_target(output)
    import concordant as cc
    from concordant.aggregation.votes import read_votes

    given = {"left": left, "right": right, "outcome": outcome, "outcomes": outcomes}
    votes = read_votes(file, **{name: value for name, value in given.items() if value is not None})
    with working(f"Ranking {COMPILING}", quiet=quiet) as status:
        result = cc.aggregate(
            votes, method=method, unranked=unranked, time_limit=time_limit, callback=teller(status)
        )
    if output is not None:
        write_csv(output, result)
    if as_json:
        print_json({"file": file.name, **counts(votes), **as_dict(result, top)})
    else:
        show(ranking_table(file.name, result, top), [] if quiet else remarks(votes, result, top))


def teller(status: object) -> Callable[[float, float], object] | None:
    """Give what shows the state of the search on the spinner; nothing where there is none."""
    if not isinstance(status, Status):
        return None
    from concordant.aggregation.result import told

    def tell(value: float, bound: float) -> None:
        gap = 100.0 * (value - bound) / value if value else 0.0
        status.update(f"Ranking: disagreement {told(value)}, at least {told(bound)}, gap {gap:.2g} %")

    return tell


def counts(votes: Any) -> dict[str, int]:
    """Count what the file holds, whichever kind it is."""
    from concordant import Comparisons
    from concordant.supervision.readers import Profile

    if isinstance(votes, Profile):
        return {"voters": int(votes.counts.sum()), "ballots": len(votes.ballots)}
    if isinstance(votes, Comparisons):
        return {"comparisons": len(votes), "tied": int((votes.outcome == 0).sum())}
    return {"edges": len(votes.weights)}


def as_dict(result: Aggregate, top: int | None) -> dict[str, Any]:
    """Give the result as plain values."""
    return {
        "items": len(result.items),
        "method": result.method,
        "disagreement": result.disagreement,
        "total": float(result.votes.sum()),
        "agreement": result.agreement,
        "proven": result.proven,
        "bound": result.decoded.bound,
        "gap": result.gap,
        "seconds": result.decoded.seconds,
        "condorcet_winner": result.condorcet_winner,
        "majority_cycle": result.majority_cycle,
        "ranking": result.table()[:top],
    }


def ranking_table(name: str, result: Aggregate, top: int | None) -> Table:
    """Give one row an item, best first."""
    from concordant.aggregation.result import told

    numeric = [column for column in COLUMNS if column != "name"]
    table = new_table(f"{name}: {result.method} ranking", *COLUMNS, numeric=numeric)
    for row in result.table()[:top]:
        weights = row | {"borda": told(row["borda"]), "margin": told(row["margin"])}
        table.add_row(*(str(weights[column]) for column in COLUMNS))
    return table


def remarks(votes: Any, result: Aggregate, top: int | None) -> list[str]:
    """Say what was counted, what the ranking overrules, how good it is, and why it is contested."""
    from concordant.aggregation.result import told

    items = plural(len(result.items), "item", "items")
    shown = f", the best {top} shown" if top is not None and top < len(result.items) else ""
    total = float(result.votes.sum())
    if not total:
        return [f"{said(votes)}; {items}{shown}", "no vote prefers any item to another: any order will do"]
    share = f"{100 * (1 - result.agreement):.1f} %"
    overruled = f"overrules {told(result.disagreement)} of {told(total)} preferences ({share})"
    return [
        f"{said(votes)}; {items}{shown}",
        f"the ranking {overruled}: {result.proof}, {result.decoded.seconds:.2f} s",
        *contested(result),
    ]


def said(votes: Any) -> str:
    """Give the counts of votes in words."""
    found = counts(votes)
    if "voters" in found:
        ballots = plural(found["ballots"], "different ballot", "different ballots")
        return f"{plural(found['voters'], 'voter', 'voters')} with {ballots}"
    if "comparisons" in found:
        tied = plural(found["tied"], "tie", "ties")
        return f"{plural(found['comparisons'], 'comparison', 'comparisons')} with {tied}"
    return plural(found["edges"], "edge", "edges")


def contested(result: Aggregate) -> list[str]:
    """Say who wins against all others, and which majorities contradict one another."""
    winner, cycle = result.condorcet_winner, result.majority_cycle
    lines = [
        f"Condorcet winner: {winner}, preferred to each other item by a majority"
        if winner is not None
        else "no Condorcet winner: no item is preferred to each other one by a majority"
    ]
    if cycle is None:
        return [*lines, "majorities form no cycle"]
    names = [*map(str, cycle[:LONG_CYCLE]), *["..."] * (len(cycle) > LONG_CYCLE), str(cycle[0])]
    return [*lines, f"majorities contradict one another: {' > '.join(names)}"]


def write_csv(path: Path, result: Aggregate) -> None:
    """Write one line an item, whole or not at all; the last one has no margin."""
    from concordant.supervision.readers.text import write_atomically

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows = result.table()
    writer.writerows([*rows[:-1], rows[-1] | {"margin": ""}])
    with write_atomically(path) as stream:
        stream.write(text.getvalue().encode())
