"""`concordant certify`: what is guaranteed of a metric and a surrogate, or the counterexample."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from concordant.cli.certify_matrix import show_matrix, style_of
from concordant.cli.output import (
    COMPILING,
    AsJson,
    Quiet,
    console,
    examples,
    print_json,
    progress,
    show,
    working,
)

if TYPE_CHECKING:
    from concordant.theory.certificate import Certificate
    from concordant.theory.matrix import Cell, Matrix

__all__ = ["EXAMPLES", "certify"]

EXAMPLES = examples(
    "concordant certify ndcg@10 pairwise",
    "concordant certify ap squared --search",
    "concordant certify pd pairs --decoder borda --labels preferences --json",
    "concordant certify --matrix",
)
DEFAULTS = {"items": 4, "highest": 2, "seed": 0, "budget": None}  # of the search
HINTS = {
    "proven": "--search puts it to the test",
    "conditional": "--search looks for a counterexample",
    "refuted": "--search finds a counterexample, to check by hand",
    "open": "--search looks for a counterexample",
}


def certify(
    metric: Annotated[
        str | None,
        typer.Argument(metavar="METRIC", help="Metric such as ndcg@10 or ap.", show_default=False),
    ] = None,
    surrogate: Annotated[
        str | None,
        typer.Argument(
            metavar="SURROGATE",
            help="Surrogate such as pairwise, 'pairwise(logistic)' (with the quotes), or pairs.",
            show_default=False,
        ),
    ] = None,
    *,
    matrix: Annotated[
        bool, typer.Option("--matrix", metavar="", help="Show every metric (or METRIC) with every surrogate.")
    ] = False,
    search: Annotated[
        bool,
        typer.Option(
            "--search/--no-search", metavar="", help="Try label distributions, and look for a counterexample."
        ),
    ] = False,
    decoder: Annotated[
        str,
        typer.Option(
            "--decoder",
            metavar="NAME",
            help="auto: sort, and the best order of pairs. Of pairs: diagonal, beam (ap), edge-deletion, "
            "borda, insertion (pd).",
        ),
    ] = "auto",
    labels: Annotated[
        str,
        typer.Option(
            "--labels", metavar="SPACE", help="What labels are: binary, grades, preferences or permutations."
        ),
    ] = "auto",
    items: Annotated[
        int, typer.Option("--items", min=2, max=5, metavar="N", help="Items of the largest queries tried.")
    ] = 4,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            metavar="N",
            help="Label distributions to try, for each number of items. Default: 3000; 1000 for each cell of "
            "the matrix.",
            show_default=False,
        ),
    ] = None,
    highest: Annotated[
        int,
        typer.Option("--highest", min=1, metavar="N", help="Highest grade tried, where labels are grades."),
    ] = 2,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the random numbers.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What is guaranteed: the theorem for a metric and a surrogate, its condition, or the counterexample."""
    whole = matrix or surrogate is None
    if matrix and surrogate is not None:
        raise typer.BadParameter("--matrix shows every surrogate: leave SURROGATE out.")
    if whole and decoder != "auto":
        raise typer.BadParameter("--decoder says nothing to --matrix: name a surrogate.")
    how = searching(search=search, items=items, highest=highest, seed=seed, budget=budget)
    if whole:
        answer(show_matrix, known_matrix(metric, labels, how, quiet=quiet), as_json=as_json, quiet=quiet)
    else:
        one = known_certificate(str(metric), str(surrogate), decoder, labels, how, quiet=quiet)
        answer(show_certificate, one, as_json=as_json, quiet=quiet)


def answer(show_it: Callable[..., None], known: Any, *, as_json: bool, quiet: bool) -> None:
    """Print what is known, as JSON or for people."""
    if as_json:
        print_json(known.to_dict())
    else:
        show_it(known, quiet=quiet)


def searching(*, search: bool, **given: Any) -> dict[str, Any] | None:
    """Give what a search is told; without one, refuse options that only it reads."""
    if not search:
        for name, value in given.items():
            if value != DEFAULTS[name]:
                raise typer.BadParameter(f"--{name} says nothing without --search.")
        return None
    told = {"n_items": given.pop("items"), **given}
    return {name: value for name, value in told.items() if value is not None}


def known_certificate(
    metric: str, surrogate: str, decoder: str, labels: str, how: dict[str, Any] | None, *, quiet: bool
) -> Certificate:
    """Ask about one combination."""
    import concordant as cc
    from concordant.theory.kinds import read_kind

    kind = read_kind(surrogate, metric)
    if how is None:
        return cc.certify(metric, kind, decoder, labels=labels, budget=0)
    with working(f"Trying label distributions {COMPILING}", quiet=quiet):
        return cc.certify(metric, kind, decoder, labels=labels, **how)


def known_matrix(metric: str | None, labels: str, how: dict[str, Any] | None, *, quiet: bool) -> Matrix:
    """Ask about every combination."""
    from concordant.theory.matrix import matrix

    known = matrix(None if metric is None else [metric], labels=labels)
    if how is None:
        return known
    total = sum(cell.certificate is not None for cell in known.cells)
    done = itertools.count(1)
    with progress(f"Trying label distributions {COMPILING}", total=total, quiet=quiet) as tell:

        def told(cell: Cell) -> None:
            tell(f"{next(done)} of {total} tried: {cell.metric}, {cell.surrogate} {cell.status}")

        return known.tested(**how, tell=told)


def show_certificate(certificate: Certificate, *, quiet: bool = False) -> None:
    """Print what is known, line by line, then the counterexample and the proof."""
    table = Table.grid(padding=(0, 2))
    table.title = Text(str(certificate.combination))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines(certificate):
        style = style_of(certificate.status, certificate.holds_under) if name == certificate.status else "dim"
        table.add_row(Text(name, style=style), Text(value))
    show(table, [] if quiet or certificate.tried is not None else [HINTS[certificate.status]])
    for title, text in proofs(certificate):
        console().print(Text(title, style="bold"))
        console().print(Text(f"{text}\n"))


def proofs(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Give the counterexample, and the proof that no function of the labels would serve."""
    if certificate.counterexample is not None:
        yield "Counterexample, verified in exact arithmetic", "\n".join(certificate.counterexample.lines())
    if certificate.impossibility is not None:
        proof = certificate.impossibility
        yield "No standardization, proven by machine", "\n".join((*proof.premises(), *proof.argument()))


def lines(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Give names and values of what is known."""
    from concordant.theory.catalogue import MEANINGS
    from concordant.theory.theorem import PREDICATES, STATUSES

    theorem, transfer = certificate.theorem, certificate.transfer
    yield certificate.status, STATUSES[certificate.status]
    for name in certificate.holds_under:
        yield "holds under", f"{name}: {MEANINGS[name]}"
    yield "theorem", theorem.statement
    for number, name in enumerate(name for name in theorem.hypotheses if name != "known"):
        yield "" if number else "since", PREDICATES[name].text
    yield "reference", theorem.reference
    if transfer is not None:
        yield "transfer", transfer.statement
    if certificate.tried is not None:
        yield "tried", str(certificate.tried).removeprefix("Tried: ").rstrip(".")
        for text in certificate.reservations(certificate.tried):
            yield "", text
