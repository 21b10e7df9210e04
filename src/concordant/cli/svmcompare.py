"""`concordant reproduce svmcompare`: the figures of "Support vector comparison machines", run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from concordant.cli import svmcompare_results as results
from concordant.cli.output import (
    AsJson,
    DataFolder,
    Quiet,
    check_target,
    examples,
    print_json,
    progress,
    show,
    write_rows,
)

__all__ = ["EXAMPLES", "svmcompare"]

EXAMPLES = examples(
    "concordant reproduce svmcompare --figure 4",
    "concordant reproduce svmcompare --figure 4 --data l2 --seeds 20 --csv l2.csv",
    "concordant reproduce svmcompare --figure 3 --html patterns.html",
    "concordant reproduce svmcompare --figure 5 --quick --json",
)
QUICK_SIZES, QUICK_SHARES, QUICK_PAIRS, QUICK_SEEDS = (50, 100), (0.1, 0.5, 0.9), 50, 2
QUICK_SETS, QUICK_GAMES = 5, 400  # of figures 2 and 6


@dataclass(frozen=True)
class Settings:
    """What was asked for; empty or none: what the paper did."""

    data: tuple[str, ...]
    sizes: tuple[int, ...]
    seeds: int | None
    folder: Path | None
    quick: bool
    quiet: bool


def svmcompare(
    *,
    figure: Annotated[
        int, typer.Option("--figure", min=1, max=6, metavar="N", help="Which figure.", show_default=False)
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME",
            help="l2, l1, linf or sushi, for figures 3 to 5; repeat for several. Default: as in the paper.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            "--size",
            min=4,
            metavar="N",
            help="Pairs of each set, for figures 1 and 3 to 5; of figure 4 repeat for several. "
            "Default: as in the paper.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, metavar="N", help="Splits, or sets. Default: 4.", show_default=False),
    ] = None,
    folder: DataFolder = None,
    quick: Annotated[
        bool, typer.Option("--quick", metavar="", help="A look: few, small sets. Not for reporting.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE.html", help="Draw the figure to this file.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Also write all numbers to this file, as CSV."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Comparison machines against ranking machines: Figures 1 to 6 of Venuto et al., thresholds put right."""
    settings = Settings(tuple(dict.fromkeys(data or ())), tuple(size or ()), seeds, folder, quick, quiet)
    check_settings(figure, settings)
    check_files(html, csv)
    report = FIGURES[figure](settings)
    if html is not None:
        report.draw(html)
    if csv is not None:
        write_rows(csv, list(report.rows[0]), report.rows)
    if as_json:
        print_json({"figure": figure, "quick": quick, **report.plain})
        return
    less = quick and figure != 1  # nothing to leave out there
    look = ["a look, not a result: without --quick it is the experiment"] if less else []
    for table, remarks in report.tables:
        show(table, [] if quiet else [*remarks, *look])


def check_settings(figure: int, settings: Settings) -> None:
    """Refuse options that the figure does not know."""
    if settings.data and figure not in (3, 4, 5):
        raise typer.BadParameter(f"--data goes with figures 3, 4 and 5, not with figure {figure}.")
    if settings.sizes and figure in (2, 6):
        raise typer.BadParameter(f"--size goes with figures 1 and 3 to 5, not with figure {figure}.")
    if len(settings.sizes) > 1 and figure != 4:
        raise typer.BadParameter("several --size go with figure 4 only.")
    if settings.seeds and figure in (1, 6):
        raise typer.BadParameter(f"--seeds goes with figures 2 to 5, not with figure {figure}.")
    if figure == 3 and (len(settings.data) > 1 or "sushi" in settings.data):
        raise typer.BadParameter("figure 3 draws one of l2, l1 and linf.")


def check_files(html: Path | None, csv: Path | None) -> None:
    """Refuse, before the work, files that cannot be written or a plot that cannot be drawn."""
    for path in (html, csv):
        if path is not None:
            check_target(path)
    if html is not None:
        from concordant.evaluation.condition_plots import check_page
        from concordant.evaluation.plots import need_plotly

        need_plotly()
        check_page(html)


def geometry(settings: Settings) -> results.Report:
    """Figure 1."""
    from concordant.evaluation.reproduction import svmcompare_patterns

    (n,) = settings.sizes or (30,)
    return results.geometry_report(svmcompare_patterns.geometry(n=n))


def margins(settings: Settings) -> results.Report:
    """Figure 2."""
    from concordant.evaluation.reproduction import svmcompare_margins

    n_sets = settings.seeds or (QUICK_SETS if settings.quick else svmcompare_margins.SETS)
    with progress("Starting", total=n_sets, quiet=settings.quiet) as step:
        found = svmcompare_margins.study(n_sets=n_sets, step=step)
    return results.margins_report(found)


def patterns(settings: Settings) -> results.Report:
    """Figure 3."""
    from concordant.evaluation.reproduction import svmcompare_patterns

    (data,), (n,) = settings.data or ("l1",), settings.sizes or (100,)
    seeds = settings.seeds or (1 if settings.quick else 4)
    with progress("Starting", total=seeds, quiet=settings.quiet) as step:
        found = svmcompare_patterns.patterns(data, n=n, seeds=seeds, folder=settings.folder, step=step)
    return results.patterns_report(found)


def errors(settings: Settings) -> results.Report:
    """Figure 4."""
    from concordant.evaluation.reproduction import svmcompare
    from concordant.evaluation.reproduction.svmcompare_data import DATA

    data, seeds = settings.data or DATA, seeds_of(settings)
    sizes = settings.sizes or (QUICK_SIZES if settings.quick else svmcompare.SIZES)
    with progress("Starting", total=len(data) * len(sizes) * seeds, quiet=settings.quiet) as step:
        found = svmcompare.errors(data, sizes=sizes, seeds=seeds, folder=settings.folder, step=step)
    return results.errors_report(found)


def areas(settings: Settings) -> results.Report:
    """Figure 5."""
    from concordant.evaluation.reproduction import svmcompare
    from concordant.evaluation.reproduction.svmcompare_data import DATA

    data, seeds = settings.data or DATA, seeds_of(settings)
    (n,) = settings.sizes or ((QUICK_PAIRS if settings.quick else svmcompare.PAIRS),)
    shares = QUICK_SHARES if settings.quick else svmcompare.SHARES
    with progress("Starting", total=len(data) * len(shares) * seeds, quiet=settings.quiet) as step:
        found = svmcompare.areas(data, shares=shares, n=n, seeds=seeds, folder=settings.folder, step=step)
    return results.areas_report(found)


def chess(settings: Settings) -> results.Report:
    """Figure 6."""
    from concordant.cli.svmcompare_chess import chess_report
    from concordant.evaluation.reproduction import svmcompare_chess

    years = svmcompare_chess.YEARS[:1] if settings.quick else svmcompare_chess.YEARS
    games = QUICK_GAMES if settings.quick else None
    with progress("Starting", total=len(years), quiet=settings.quiet) as step:
        found = svmcompare_chess.study(folder=settings.folder, years=years, max_games=games, step=step)
    return chess_report(found)


def seeds_of(settings: Settings) -> int:
    """Give how many splits."""
    return settings.seeds or (QUICK_SEEDS if settings.quick else 4)


FIGURES: Mapping[int, Callable[[Settings], results.Report]] = {
    1: geometry,
    2: margins,
    3: patterns,
    4: errors,
    5: areas,
    6: chess,
}
