"""`concordant bounds`: what n queries guarantee, by every version of a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from concordant.cli.shared.output import Display, TableResult, examples, new_table, number, option, switch
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.theory.bounds import Bound

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
    n: Annotated[int, option("--n -n", "N", "Training queries.")],
    kind: Annotated[str, option("--kind -k", "KIND", f"One of {', '.join(SHAPES)}.")] = "listwise",
    m: Annotated[int | None, option("--m -m", "M", "Items of each query.")] = None,
    levels: Annotated[
        str | None, option("--levels", "SIZES", "Items on each level, best first, as in 2,8,30.")
    ] = None,
    rel: Annotated[int | None, option("--rel", "N", "Relevant items of each query.")] = None,
    nrel: Annotated[int | None, option("--nrel", "N", "Other items of each query.")] = None,
    B: Annotated[float, option("--B", "X", "Largest length of the weights.")] = 1.0,
    M: Annotated[float, option("--M", "X", "Largest length of an item's features.")] = 1.0,
    delta: Annotated[float, option("--delta", "P", "Probability of failure.")] = 0.05,
    mode: Annotated[
        str, option("--mode", "MODE", "Listwise hinge of sharp and tight: max or softmax.")
    ] = "max",
    temperature: Annotated[float, option("--temperature", "T", "Temperature of the soft-max.")] = 1.0,
    error: Annotated[
        str, option("--error", "ERROR", "0-1 error of pairs: margin (weighted) or plain.")
    ] = "margin",
    per_pair: Annotated[bool, switch("--per-pair", "Mean over the pairs of a query, not their sum.")] = False,
    epsilon: Annotated[float, option("--epsilon", "X", "Excess for which queries are counted.")] = 0.1,
    display: Display,
) -> None:
    """What n queries guarantee: published, corrected, sharp and tight risk bounds side by side."""
    from concordant._base.validate import check_choice
    from concordant.theory import bounds as theory

    check_choice("kind", kind, tuple(SHAPES))
    split = _read_sizes(levels)
    items = sum(split) if kind == "listwise" and split and m is None else m
    options: dict[str, Any] = {"m": items, "levels": split, "rel": rel, "nrel": nrel, "mode": mode}
    options |= {"temperature": temperature, "reduction": "pairs" if per_pair else "sum", "error": error}
    arguments = _select_arguments(kind, options)
    bound_function: Callable[..., Bound] = getattr(theory, kind)
    version_bounds = [
        bound_function(n=n, B=B, M=M, delta=delta, version=version, **arguments)
        for version in theory.VERSIONS
    ]
    values = {"kind": kind, "bounds": [_plain_bound(bound, epsilon) for bound in version_bounds]}
    remarks = [line for bound in version_bounds for line in _bound_remarks(bound)]
    table = _bound_table(kind, version_bounds, epsilon)
    display.present(TableResult(values, table, remarks))


def _read_sizes(levels: str | None) -> list[int] | None:
    """Read the number of items on each level.

    >>> _read_sizes("2, 8,30")
    [2, 8, 30]
    """
    if levels is None:
        return None
    try:
        return [int(size) for size in levels.split(",")]
    except ValueError:
        raise ParameterError("levels", levels, "integers separated by commas, as in 2,8,30") from None


def _select_arguments(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a kind of bound reads; raise if another option was set."""
    option_names = (*SHAPES[kind], *OPTIONS[kind])
    for name, value in options.items():
        option = "--per-pair" if name == "reduction" else f"--{name}"
        if name not in option_names and value != DEFAULTS.get(name):
            raise typer.BadParameter(f"{option} has no effect with --kind {kind}.")
        if name in SHAPES[kind] and value is None:
            raise typer.BadParameter(f"--kind {kind} needs {option}.")
    return {name: options[name] for name in option_names}


def _plain_bound(bound: Bound, epsilon: float) -> dict[str, Any]:
    """Return a bound as plain values for JSON; values beyond floats are null, and log10 holds them."""
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


def _bound_remarks(bound: Bound) -> list[str]:
    """State the inequality of a version, and what refutes it."""
    times = "" if bound.multiplier == 1.0 else f"{bound.multiplier:g} * "
    inequality = f"{bound.version}: {bound.bounds} <= {times}{bound.empirical} + excess"
    return [inequality, *[f"  {bound.refuted}"] * bool(bound.refuted)]


def _bound_table(kind: str, bounds: Sequence[Bound], epsilon: float) -> Table:
    first, versions = bounds[0], [bound.version for bound in bounds]
    title = f"{kind}: {first.n:,} queries of {first.m} items, B = {first.B:g}, M = {first.M:g}, "
    table = new_table(title + f"probability {1 - first.delta:g}", "", *versions, numeric=versions)

    def add(name: str, text: Callable[[Bound], str], style: str = "") -> None:
        table.add_row(name, *map(text, bounds), style=style)

    for name in first.terms:
        terms = [bound.terms[name] for bound in bounds]
        table.add_row(name, *(format_value(term.value, term.log10) for term in terms))
    add("excess", lambda bound: format_value(bound.excess, bound.log10), "bold")
    add("log10", lambda bound: f"{bound.log10:.2f}")
    add("the empirical loss counts", lambda bound: f"{bound.multiplier:g} times")
    add("the bounded loss is at most", lambda bound: format_value(bound.largest))
    add("vacuous", lambda bound: "yes" if bound.vacuous else "no")
    add(f"queries for {epsilon:g}", lambda bound: _format_queries(bound.queries_needed(epsilon)))
    return table


def format_value(value: float, log10: float = math.nan) -> str:
    """Format a value with four decimals, or as a power of ten where it is huge.

    >>> format_value(0.25301), format_value(math.inf, 1133.69)
    ('0.2530', '10^1133.69')
    """
    return number(value) if value < 1e6 else f"10^{log10:.2f}"


def _format_queries(queries: int) -> str:
    """Format a number of queries, as a power of ten where it is huge.

    >>> _format_queries(10_883), _format_queries(10**90)
    ('10,883', '10^90.00')
    """
    return f"{queries:,}" if queries < 10**12 else f"10^{math.log10(queries):.2f}"
