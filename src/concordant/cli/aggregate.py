"""`concordant aggregate`: one ranking for the votes of a file, with a proof or a gap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.status import Status
from rich.table import Table

from concordant.cli.shared.output import (
    COMPILING,
    Display,
    argument,
    check_table,
    examples,
    new_table,
    option,
    plural,
    warning_messages,
    write_rows,
)

if TYPE_CHECKING:
    from concordant import Aggregate

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
        argument(
            "FILE",
            "Votes: PrefLib (.soc .soi .toc .toi .wmd), or a table of comparisons (.csv .tsv .parquet "
            ".feather); text may be compressed.",
        ),
    ],
    *,
    method: Annotated[
        str, option("--method -m", "METHOD", "kemeny, borda, edge-deletion or insertion.")
    ] = "kemeny",
    time_limit: Annotated[
        float, option("--time-limit", "S", "Seconds after which kemeny stops proving.")
    ] = 60.0,
    unranked: Annotated[
        str, option("--unranked", "HOW", "Items that an order leaves out: ignore (no preference) or last.")
    ] = "ignore",
    left: Annotated[str | None, option("--left", "COL", "Column of the left items. Default: left.")] = None,
    right: Annotated[
        str | None, option("--right", "COL", "Column of the right items. Default: right.")
    ] = None,
    outcome: Annotated[
        str | None, option("--outcome", "COL", "Column of outcomes. Default: outcome.")
    ] = None,
    outcomes: Annotated[
        str | None, option("--outcomes", "score", "score: outcomes are chess scores, 1, 0.5 or 0.")
    ] = None,
    top: Annotated[
        int | None, option("--top", "N", "Show the best N only; --output writes all.", min=1)
    ] = None,
    output: Annotated[
        Path | None, option("--output -o", "FILE.csv", "Write the ranking to this file.")
    ] = None,
    display: Display,
) -> None:
    """One ranking for many votes: Kemeny's, which overrules the fewest preferences, with proof or gap."""
    check_table(output, file)
    import concordant as cc
    from concordant.comparisons.aggregation.preference_matrix import read_votes

    column_options = {"left": left, "right": right, "outcome": outcome, "outcomes": outcomes}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        votes = read_votes(
            file, **{name: value for name, value in column_options.items() if value is not None}
        )
        with display.working(f"Ranking {COMPILING}") as status:
            result = cc.aggregate(
                votes, method=method, unranked=unranked, time_limit=time_limit, callback=teller(status)
            )
    display.notes(warning_messages(caught))
    ranking = AggregateRanking(file.name, votes, result, top)
    if output is not None:
        write_rows(output, COLUMNS, result.table())
    display.present(ranking)


def teller(status: object) -> Callable[[float, float], object] | None:
    """Return a callback that shows the state of the search on the spinner; None without a spinner."""
    if not isinstance(status, Status):
        return None
    from concordant.comparisons.aggregation.aggregate import format_weight

    def tell(value: float, bound: float) -> None:
        gap = 100.0 * (value - bound) / value if value else 0.0
        status.update(
            f"Ranking: disagreement {format_weight(value)}, at least {format_weight(bound)}, gap {gap:.2g} %"
        )

    return tell


@dataclass(frozen=True, eq=False)
class AggregateRanking:
    """The ranking of the votes of a file; `top`: how many items are shown, None for all."""

    file: str
    votes: Any
    result: Aggregate
    top: int | None

    def tables(self) -> Iterator[tuple[Table, list[str]]]:
        """Yield the table of items, best first."""
        from concordant.comparisons.aggregation.aggregate import format_weight

        numeric = [column for column in COLUMNS if column != "name"]
        table = new_table(f"{self.file}: {self.result.method} ranking", *COLUMNS, numeric=numeric)
        for row in self.result.table()[: self.top]:
            weights = row | {"borda": format_weight(row["borda"]), "margin": format_weight(row["margin"])}
            table.add_row(*(str(weights[column]) for column in COLUMNS))
        yield table, self._remarks()

    def to_dict(self) -> dict[str, Any]:
        """Return the ranking and what it overrules as plain values for JSON."""
        result = self.result
        return {
            "file": self.file,
            **_count_votes(self.votes),
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
            "ranking": result.table()[: self.top],
        }

    def _remarks(self) -> list[str]:
        """Describe what was counted, what the ranking overrules, how good it is, and why it is contested."""
        from concordant.comparisons.aggregation.aggregate import format_weight

        result, total = self.result, float(self.result.votes.sum())
        items = plural(len(result.items), "item", "items")
        is_cut = self.top is not None and self.top < len(result.items)
        shown = f", the best {self.top} shown" if is_cut else ""
        count_text = f"{_describe_votes(self.votes)}; {items}{shown}"
        if not total:
            return [count_text, "no vote prefers any item to another: any order will do"]
        overruled = f"overrules {format_weight(result.disagreement)} of {format_weight(total)} preferences"
        share = f"{100 * (1 - result.agreement):.1f} %"
        proof = f"the ranking {overruled} ({share}): {result.proof}, {result.decoded.seconds:.2f} s"
        return [count_text, proof, *_describe_majorities(result)]


def _count_votes(votes: Any) -> dict[str, int]:
    """Count what the file holds: voters and ballots, comparisons and ties, or edges."""
    from concordant import Comparisons
    from concordant.data.io import Profile

    if isinstance(votes, Profile):
        return {"voters": int(votes.counts.sum()), "ballots": len(votes.ballots)}
    if isinstance(votes, Comparisons):
        return {"comparisons": len(votes), "tied": int((votes.outcome == 0).sum())}
    return {"edges": len(votes.weights)}


def _describe_votes(votes: Any) -> str:
    totals = _count_votes(votes)
    if "voters" in totals:
        ballots = plural(totals["ballots"], "different ballot", "different ballots")
        return f"{plural(totals['voters'], 'voter', 'voters')} with {ballots}"
    if "comparisons" in totals:
        tied = plural(totals["tied"], "tie", "ties")
        return f"{plural(totals['comparisons'], 'comparison', 'comparisons')} with {tied}"
    return plural(totals["edges"], "edge", "edges")


def _describe_majorities(result: Aggregate) -> list[str]:
    """Name the Condorcet winner and the cycle of majorities, if there are such."""
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
