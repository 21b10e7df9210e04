"""`concordant certify`: what is guaranteed of a metric and a surrogate, or the counterexample."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from concordant.cli.shared.output import (
    COMPILING,
    Display,
    TableResult,
    argument,
    console,
    examples,
    option,
    progress,
    switch,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from concordant.theory.certificate import Certificate
    from concordant.theory.certify import Cell, Matrix, MatrixRow


# The table of `concordant certify --matrix`: a word and a colour for every metric and surrogate.

Marks: TypeAlias = dict[tuple[str, tuple[str, ...]], str]  # of status and conditions
TITLE = "What is known of each metric with each surrogate"
COLOURS = {"proven": "green", "conditional": "cyan", "refuted": "red", "open": "magenta", "misfit": "dim"}
UNDER = "yellow"  # refuted, but for a condition
GAPS = (1, 2)  # between columns: the wider one where it costs no further table
SHORT = 6  # letters of a fraction that is shown as it is
LOST = 1e-6  # a larger regret, not verified, is shown as a doubt


def matrix_table(matrix: Matrix, width: int) -> Table:
    """Build the matrix and its legend; surrogates that do not fit beside the others stand below them."""
    marks = number_conditions(matrix)
    page = Table.grid()
    page.title = Text(TITLE)
    page.add_row("")
    dense, airy = (blocks(matrix, marks, width, gap) for gap in GAPS)
    gap, shares = (GAPS[1], airy) if len(airy) == len(dense) else (GAPS[0], dense)
    for columns in shares:
        page.add_row(_block(matrix, marks, columns, gap))
        page.add_row("")
    page.add_row(legend(matrix, marks))
    return page


def _answer_style(status: str, holds_under: Sequence[str]) -> str:
    return UNDER if status == "refuted" and holds_under else COLOURS[status]


def number_conditions(matrix: Matrix) -> Marks:
    """Number the conditions in the order of their appearance."""
    keys = dict.fromkeys((cell.status, cell.holds_under) for cell in matrix.cells if cell.holds_under)
    return {key: f"if {number}" for number, key in enumerate(keys, start=1)}


def answer_word(cell: Cell, marks: Marks) -> str:
    """Return the answer in one word, or the number of its conditions."""
    return "-" if cell.certificate is None else marks.get((cell.status, cell.holds_under), cell.status)


def evidence(cell: Cell) -> str | None:
    """Format the regret of the counterexample, else how often the answer was tested; None if it was not.

    A regret that was observed but not verified in exact arithmetic has a question mark.
    """
    from concordant.theory.exact.enclosure import low

    if cell.certificate is None or cell.certificate.tried is None:
        return None
    counterexample, tried = cell.certificate.counterexample, cell.certificate.tried
    if counterexample is not None:
        lost = low(counterexample.regret)
        return f"-{lost}" if len(str(lost)) <= SHORT else f"-{float(lost):.2g}"
    return f"0/{tried.distributions:,}" if tried.worst < LOST else f"?{tried.worst:.2g}"


def cell_text(cell: Cell, marks: Marks) -> Text:
    """Build the text of a cell: the coloured answer with the evidence below it."""
    evidence_text = evidence(cell)
    answer = Text(answer_word(cell, marks), style=_answer_style(cell.status, cell.holds_under))
    return answer if evidence_text is None else Text("\n").join([answer, Text(evidence_text, style="dim")])


def _heading(surrogate: str) -> str:
    """Break the name of a surrogate into short lines.

    >>> _heading("plackett_luce").split(), _heading("pairwise(hinge)").split()
    (['plackett', '_luce'], ['pairwise', '(hinge)'])
    """
    return surrogate.replace("_", "\n_").replace("(", "\n(")


def _row_names(row: MatrixRow) -> tuple[str, str]:
    """Return the metric and its label spaces, the one that is tried first in front."""
    return row.metric, "/".join(row.spaces)


def blocks(matrix: Matrix, marks: Marks, width: int, gap: int) -> list[list[int]]:
    """Distribute the columns over as few tables as fit the width, about equally."""
    rows = list(matrix.rows())
    names = [*map(_row_names, rows), ("metric", "labels")]
    left = sum(max(_longest_line(pair[side]) for pair in names) + gap for side in (0, 1))
    sizes = [
        max(
            _longest_line(_heading(name)),
            *(_longest_line(cell_text(row.cells[column], marks).plain) for row in rows),
        )
        + gap
        for column, name in enumerate(matrix.surrogates)
    ]
    for count in range(1, len(sizes) + 1):
        shares = [list(share) for share in _split_evenly(len(sizes), count)]
        if all(left + sum(sizes[column] for column in share) - gap <= width for share in shares):
            break
    return shares


def _split_evenly(total: int, count: int) -> Iterator[range]:
    """Split a range into parts whose lengths differ by at most 1.

    >>> list(_split_evenly(5, 2))
    [range(0, 3), range(3, 5)]
    """
    short, longer = divmod(total, count)
    first = 0
    for part in range(count):
        last = first + short + (part < longer)
        yield range(first, last)
        first = last


def _longest_line(text: str) -> int:
    return max(map(len, text.split("\n")))


def _block(matrix: Matrix, marks: Marks, columns: Sequence[int], gap: int) -> RenderableType:
    """Build a table of some columns of the matrix."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for name in ("metric", "labels", *(_heading(matrix.surrogates[column]) for column in columns)):
        table.add_column(Text(name), no_wrap=True, vertical="top")
    for row in matrix.rows():
        names = (Text(name) for name in _row_names(row))
        table.add_row(*names, *(cell_text(row.cells[column], marks) for column in columns))
    return table


def legend(matrix: Matrix, marks: Marks) -> RenderableType:
    """Build the table that explains the words of the matrix."""
    from concordant.theory.certify import MISFIT
    from concordant.theory.theorem import STATUSES

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    used = {cell.status for cell in matrix.cells if not cell.holds_under}
    for status, meaning in STATUSES.items():
        if status in used:
            table.add_row(Text(status, style=COLOURS[status]), Text(meaning))
    for (status, names), mark in marks.items():
        table.add_row(
            Text(mark, style=_answer_style(status, names)), Text(_describe_conditions(status, names))
        )
    if MISFIT in used:
        table.add_row(Text("-", style=COLOURS[MISFIT]), Text("The parts do not fit together."))
    table.add_row("")
    return table


def _describe_conditions(status: str, names: Sequence[str]) -> str:
    """Describe the conditions under which an answer changes to consistent."""
    from concordant.theory.catalogue import MEANINGS

    conditions = "; or under ".join(f"{name}: {MEANINGS[name]}" for name in names)
    beyond = "Refuted" if status == "refuted" else "Unknown"
    return f"{beyond} in general; consistent under {conditions}."


def remarks(matrix: Matrix) -> Iterator[str]:
    """Describe what the matrix leaves out, what was tested, and where the reasons are."""
    yield "Items are sorted by their scores; scores of pairs are decoded exactly."
    if len({cell.metric for cell in matrix.cells}) > 1:
        yield "Two grades (binary) have a row of their own only where they have an answer of their own."
        yield "Other cutoffs share a row: ndcg@10 that of ndcg, p@10 that of p@2, ap@10 that of ap@2."
    searches = [
        cell.certificate.tried for cell in matrix.cells if cell.certificate and cell.certificate.tried
    ]
    if searches:
        items = max(max(tried.n_items) for tried in searches)
        yield (
            "Below each: -x is what a counterexample loses, verified in exact arithmetic; 0/n means that "
            "nothing was lost on any of n label distributions; ?x is a loss that was not verified. Tried: up "
            f"to {items} items, seed {searches[0].seed}, the first labels of a row."
        )
    yield "Why: concordant certify METRIC SURROGATE; with --search, the counterexample."


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
    metric: Annotated[str | None, argument("METRIC", "Metric such as ndcg@10 or ap.")] = None,
    surrogate: Annotated[
        str | None,
        argument(
            "SURROGATE", "Surrogate such as pairwise, 'pairwise(logistic)' (with the quotes), or pairs."
        ),
    ] = None,
    *,
    matrix: Annotated[
        bool, switch("--matrix", "Show every metric (or METRIC) with every surrogate.")
    ] = False,
    search: Annotated[
        bool,
        switch(
            "--search/--no-search",
            "Try label distributions, and look for a counterexample (takes seconds); --budget does, too.",
        ),
    ] = False,
    decoder: Annotated[
        str,
        option(
            "--decoder",
            "NAME",
            "auto: sort, and the best order of pairs. Of pairs: diagonal, beam (ap), edge-deletion, borda, "
            "insertion (pd).",
        ),
    ] = "auto",
    labels: Annotated[
        str, option("--labels", "SPACE", "What labels are: binary, grades, preferences or permutations.")
    ] = "auto",
    items: Annotated[int, option("--items", "N", "Items of the largest queries tried.", min=2, max=5)] = 4,
    budget: Annotated[
        int | None,
        option(
            "--budget",
            "N",
            "Label distributions to try, for each number of items. Default: 3000; 1000 for each cell of the "
            "matrix.",
            min=1,
        ),
    ] = None,
    highest: Annotated[
        int, option("--highest", "N", "Highest grade tried, where labels are grades.", min=1)
    ] = 2,
    seed: Annotated[int, option("--seed", "N", "Of the random numbers.", min=0)] = 0,
    display: Display,
) -> None:
    """What is guaranteed: the theorem for a metric and a surrogate, its condition, or the counterexample."""
    is_matrix = matrix or surrogate is None
    if matrix and surrogate is not None:
        raise typer.BadParameter("--matrix shows every surrogate. Leave SURROGATE out.")
    if is_matrix and decoder != "auto":
        raise typer.BadParameter("--decoder has no effect with --matrix. Name a surrogate instead.")
    search_settings = _search_settings(search=search, items=items, highest=highest, seed=seed, budget=budget)
    if is_matrix:
        answers = _certify_matrix(metric, labels, search_settings, display)
        table = matrix_table(answers, console().width)
        display.present(TableResult(answers.to_dict(), table, list(remarks(answers))))
        return
    certificate = _certify_pair(str(metric), str(surrogate), decoder, labels, search_settings, display)
    hints = [] if certificate.tried is not None else [HINTS[certificate.status]]
    display.present(TableResult(certificate.to_dict(), _certificate_table(certificate), hints))
    for title, text in () if display.as_json else _proofs(certificate):
        console().print(Text(title, style="bold"))
        console().print(Text(f"{text}\n"))


def _search_settings(*, search: bool, **options: Any) -> dict[str, Any] | None:
    """Return the settings of the search; without a search, raise if one of them was set."""
    if not search and options["budget"] is None:
        for name, value in options.items():
            if value != DEFAULTS[name]:
                raise typer.BadParameter(f"--{name} needs --search.")
        return None
    settings = {"n_items": options.pop("items"), **options}
    return {name: value for name, value in settings.items() if value is not None}


def _certify_pair(
    metric: str,
    surrogate: str,
    decoder: str,
    labels: str,
    search_settings: dict[str, Any] | None,
    display: Display,
) -> Certificate:
    import concordant as cc
    from concordant.theory.kinds import read_kind

    kind = read_kind(surrogate, metric)
    if search_settings is None:
        return cc.certify(metric, kind, decoder, labels=labels)
    with display.working(f"Trying label distributions {COMPILING}"):
        return cc.certify(metric, kind, decoder, labels=labels, search=True, **search_settings)


def _certify_matrix(
    metric: str | None, labels: str, search_settings: dict[str, Any] | None, display: Display
) -> Matrix:
    from concordant.theory.certify import matrix

    untested = matrix(None if metric is None else [metric], labels=labels)
    if search_settings is None:
        return untested
    total = sum(cell.certificate is not None for cell in untested.cells)
    done = itertools.count(1)
    with progress(f"Trying label distributions {COMPILING}", total=total, quiet=display.quiet) as tell:

        def report_cell(cell: Cell) -> None:
            tell(f"{next(done)} of {total} tried: {cell.metric}, {cell.surrogate} {cell.status}")

        return untested.tested(**search_settings, tell=report_cell)


def _certificate_table(certificate: Certificate) -> Table:
    """Build a table of the names and values of a certificate, line by line."""
    table = Table.grid(padding=(0, 2))
    table.title = Text(str(certificate.combination))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _certificate_lines(certificate):
        is_status = name == certificate.status
        style = _answer_style(certificate.status, certificate.holds_under) if is_status else "dim"
        table.add_row(Text(name, style=style), Text(value))
    return table


def _proofs(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Yield titles and texts: the counterexample, and the proof that no standardization exists."""
    if certificate.counterexample is not None:
        yield "Counterexample, verified in exact arithmetic", "\n".join(certificate.counterexample.lines())
    if certificate.impossibility is not None:
        proof = certificate.impossibility
        yield "No standardization, proven by machine", "\n".join((*proof.premises(), *proof.argument()))


def _certificate_lines(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a certificate, line by line."""
    from concordant.theory.catalogue import meaning_of
    from concordant.theory.theorem import PREDICATES, STATUSES

    theorem, transfer = certificate.theorem, certificate.transfer
    yield certificate.status, STATUSES[certificate.status]
    for name in certificate.holds_under:
        yield "holds under", f"{name}: {meaning_of(name, certificate.combination.metric)}"
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
