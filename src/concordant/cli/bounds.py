"""`concordant bounds`: what n queries guarantee, by every version of a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import AsJson, Quiet, examples, new_table, number, print_json, show
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from concordant.theory.bounds import Bound

__all__ = ["EXAMPLES", "bounds"]

EXAMPLES = examples(
    "concordant bounds -n 1700 -m 40",
    "concordant bounds --kind pairwise -n 10000 -m 10 --per-pair --error plain",
    "concordant bounds --kind average_precision -n 1700 -m 40 --rel 5 --json",
    "concordant bounds --kind multipartite -n 1700 --levels 2,8,30",
)
SHAPES = {  # what says how the items of a query are labelled
    "pairwise": ("m",),
    "multipartite": ("levels",),
    "bipartite": ("rel", "nrel"),
    "listwise": ("m",),
    "average_precision": ("m", "rel"),
}
OPTIONS = {  # what else it reads
    "pairwise": ("reduction", "error"),
    "multipartite": ("reduction", "error"),
    "bipartite": ("reduction",),
    "listwise": ("levels", "mode", "temperature"),
    "average_precision": ("mode", "temperature"),
}
DEFAULTS = {"mode": "max", "temperature": 1.0, "reduction": "sum", "error": "margin"}


def bounds(
    *,
    n: Annotated[int, typer.Option("--n", "-n", metavar="N", help="Training queries.", show_default=False)],
    kind: Annotated[
        str, typer.Option("--kind", "-k", metavar="KIND", help=f"One of {', '.join(SHAPES)}.")
    ] = "listwise",
    m: Annotated[int | None, typer.Option("--m", "-m", metavar="M", help="Items of each query.")] = None,
    levels: Annotated[
        str | None,
        typer.Option("--levels", metavar="SIZES", help="Items on each level, best first, as in 2,8,30."),
    ] = None,
    rel: Annotated[
        int | None, typer.Option("--rel", metavar="N", help="Relevant items of each query.")
    ] = None,
    nrel: Annotated[
        int | None, typer.Option("--nrel", metavar="N", help="Other items of each query.")
    ] = None,
    B: Annotated[float, typer.Option("--B", metavar="X", help="Largest length of the weights.")] = 1.0,
    M: Annotated[float, typer.Option("--M", metavar="X", help="Largest length of an item's features.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", metavar="P", help="Probability of failure.")] = 0.05,
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="MODE", help="Listwise hinge of sharp and tight: max or softmax."),
    ] = "max",
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="Temperature of the soft-max.")
    ] = 1.0,
    error: Annotated[
        str, typer.Option("--error", metavar="ERROR", help="0-1 error of pairs: margin (weighted) or plain.")
    ] = "margin",
    per_pair: Annotated[
        bool, typer.Option("--per-pair", metavar="", help="Mean over the pairs of a query, not their sum.")
    ] = False,
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="X", help="Excess for which queries are counted.")
    ] = 0.1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What n queries guarantee: published, corrected, sharp and tight risk bounds side by side."""
    from concordant.surrogates.surrogate import check_choice
    from concordant.theory import bounds as theory

    check_choice("kind", kind, tuple(SHAPES))
    split = sizes(levels)
    items = sum(split) if kind == "listwise" and split and m is None else m
    given: dict[str, Any] = {"m": items, "levels": split, "rel": rel, "nrel": nrel, "mode": mode}
    given |= {"temperature": temperature, "reduction": "pairs" if per_pair else "sum", "error": error}
    arguments = read_by(kind, given)
    of_lists = kind in ("listwise", "average_precision")
    of: Callable[..., Bound] = getattr(theory, kind)
    versions = theory.LISTWISE_VERSIONS if of_lists else theory.PAIRWISE_VERSIONS
    found = [of(n=n, B=B, M=M, delta=delta, version=version, **arguments) for version in versions]
    if as_json:
        print_json({"kind": kind, "bounds": [as_dict(bound, epsilon) for bound in found]})
    else:
        show(bound_table(kind, found, epsilon), [] if quiet else remarks(found))


def sizes(levels: str | None) -> list[int] | None:
    """Read the sizes of levels.

    >>> sizes("2, 8,30")
    [2, 8, 30]
    """
    if levels is None:
        return None
    try:
        return [int(size) for size in levels.split(",")]
    except ValueError:
        raise ParameterError(
            "levels", levels, "whole numbers with commas between them, as in 2,8,30"
        ) from None


def read_by(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Give what this kind reads; refuse other options: they would be mistaken for having been heeded."""
    wanted = (*SHAPES[kind], *OPTIONS[kind])
    for name, value in given.items():
        option = "--per-pair" if name == "reduction" else f"--{name}"
        if name not in wanted and value != DEFAULTS.get(name):
            raise typer.BadParameter(f"{option} says nothing to --kind {kind}.")
        if name in SHAPES[kind] and value is None:
            raise typer.BadParameter(f"--kind {kind} needs {option}.")
    return {name: given[name] for name in wanted}


def as_dict(bound: Bound, epsilon: float) -> dict[str, Any]:
    """Give one bound as plain values; what is beyond any float is null, and log10 tells it."""
    terms = {
        term.name: {"value": term.value, "log10": term.log10, "meaning": term.meaning} for term in bound.parts
    }
    fields = ("version", "bounds", "empirical", "multiplier", "reduction", "largest")
    setting = ("n", "m", "B", "M", "delta", "excess", "log10", "vacuous", "refuted")
    queries = bound.queries_needed(epsilon)
    needed = {"epsilon": epsilon, "queries": queries if queries < 2**63 else None}
    needed["log10"] = math.log10(queries)
    plain = {name: getattr(bound, name) for name in (*fields, *setting)}
    return plain | {"terms": terms, "queries_needed": needed}


def bound_table(kind: str, found: Sequence[Bound], epsilon: float) -> Table:
    """Give one column a version, one row a number."""
    first, versions = found[0], [bound.version for bound in found]
    title = f"{kind}: {first.n:,} queries of {first.m} items, B = {first.B:g}, M = {first.M:g}, "
    table = new_table(title + f"probability {1 - first.delta:g}", "", *versions, numeric=versions)
    for name in first.terms:
        table.add_row(name, *(told(bound.terms[name].value, bound.terms[name].log10) for bound in found))
    table.add_row("excess", *(told(bound.excess, bound.log10) for bound in found), style="bold")
    table.add_row("log10", *(f"{bound.log10:.2f}" for bound in found))
    table.add_row("the empirical loss counts", *(f"{bound.multiplier:g} times" for bound in found))
    table.add_row("the bounded loss is at most", *(told(bound.largest) for bound in found))
    table.add_row("vacuous", *("yes" if bound.vacuous else "no" for bound in found))
    table.add_row(f"queries for {epsilon:g}", *(count(bound.queries_needed(epsilon)) for bound in found))
    return table


def told(value: float, log10: float = math.nan) -> str:
    """Give a value with four decimals, as a power of ten where it is huge.

    >>> told(0.25301), told(math.inf, 1133.69)
    ('0.2530', '10^1133.69')
    """
    return number(value) if value < 1e6 else f"10^{log10:.2f}"


def count(queries: int) -> str:
    """Give a number of queries, as a power of ten where it is huge.

    >>> count(10_883), count(10**90)
    ('10,883', '10^90.00')
    """
    return f"{queries:,}" if queries < 10**12 else f"10^{math.log10(queries):.2f}"


def remarks(found: Sequence[Bound]) -> list[str]:
    """Give what each version says, and what is wrong with it."""
    lines = []
    for bound in found:
        times = "" if bound.multiplier == 1.0 else f"{bound.multiplier:g} * "
        lines.append(f"{bound.version}: {bound.bounds} <= {times}{bound.empirical} + excess")
        lines += [f"  {bound.refuted}"] * bool(bound.refuted)
    return lines
