"""`python -m studies svmcompare`: the figures of "Support vector comparison machines", run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from concordant._internals import AsJson, DataFolder, Quiet, check_target, examples, note, progress
from studies.shared.output import CsvFile, present, write_csv
from studies.venuto.svmcompare.report import (
    AreasReport,
    ErrorsReport,
    FigureReport,
    GeometryReport,
    MarginsReport,
    PatternsReport,
)

EXAMPLES = examples(
    "python -m studies svmcompare --figure 4",
    "python -m studies svmcompare --figure 4 --data l2 --seeds 20 --csv l2.csv",
    "python -m studies svmcompare --figure 3 --html patterns.html",
    "python -m studies svmcompare --figure 5 --quick --json",
)
QUICK_SIZES, QUICK_SHARES, QUICK_PAIRS, QUICK_SEEDS = (50, 100), (0.1, 0.5, 0.9), 50, 2
QUICK_SETS, QUICK_GAMES = 5, 400  # of figures 2 and 6


@dataclass(frozen=True)
class Settings:
    """Settings of the command line; where empty or None, those of the paper."""

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
    csv: CsvFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Comparison machines against ranking machines: Figures 1 to 6 of Venuto et al., thresholds put right."""
    settings = Settings(tuple(dict.fromkeys(data or ())), tuple(size or ()), seeds, folder, quick, quiet)
    _check_options(figure, settings)
    _check_files(html, csv)
    report = FIGURES[figure](settings)
    if html is not None:
        report.draw(html)
    if csv is not None:
        write_csv(csv, report)
    less = quick and figure != 1  # nothing to leave out there
    remarks = ["a look, not a result: without --quick it is the experiment"] if less else []
    present(
        report, as_json=as_json, quiet=quiet, settings={"figure": figure, "quick": quick}, remarks=remarks
    )


def _check_options(figure: int, settings: Settings) -> None:
    """Raise if the figure does not have an option."""
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


def _check_files(html: Path | None, csv: Path | None) -> None:
    """Raise before the work if a file cannot be written or a plot cannot be drawn."""
    for path in (html, csv):
        if path is not None:
            check_target(path)
    if html is not None:
        from concordant._internals import check_page, need_plotly

        need_plotly()
        check_page(html)


def _geometry(settings: Settings) -> FigureReport:
    """Figure 1."""
    from studies.venuto.svmcompare import patterns

    (n,) = settings.sizes or (30,)
    return GeometryReport(patterns.geometry(n=n))


def _margins(settings: Settings) -> FigureReport:
    """Figure 2."""
    from studies.venuto.svmcompare import margins

    n_sets = settings.seeds or (QUICK_SETS if settings.quick else margins.SETS)
    with progress("Starting", total=n_sets, quiet=settings.quiet) as step:
        result = margins.study(n_sets=n_sets, step=step)
    return MarginsReport(result)


def _patterns(settings: Settings) -> FigureReport:
    """Figure 3."""
    from studies.venuto.svmcompare import patterns

    (data,), (n,) = _available_data(settings) if settings.data else ("l1",), settings.sizes or (100,)
    seeds = settings.seeds or (1 if settings.quick else 4)
    with progress("Starting", total=seeds, quiet=settings.quiet) as step:
        result = patterns.patterns(data, n=n, seeds=seeds, folder=settings.folder, step=step)
    return PatternsReport(result)


def _errors(settings: Settings) -> FigureReport:
    """Figure 4."""
    from studies.venuto.svmcompare import study

    data, seeds = _available_data(settings), _n_seeds(settings)
    sizes = settings.sizes or (QUICK_SIZES if settings.quick else study.SIZES)
    with progress("Starting", total=len(data) * len(sizes) * seeds, quiet=settings.quiet) as step:
        result = study.errors(data, sizes=sizes, seeds=seeds, folder=settings.folder, step=step)
    return ErrorsReport(result)


def _areas(settings: Settings) -> FigureReport:
    """Figure 5."""
    from studies.venuto.svmcompare import study

    data, seeds = _available_data(settings), _n_seeds(settings)
    (n,) = settings.sizes or ((QUICK_PAIRS if settings.quick else study.PAIRS),)
    shares = QUICK_SHARES if settings.quick else study.SHARES
    with progress("Starting", total=len(data) * len(shares) * seeds, quiet=settings.quiet) as step:
        result = study.areas(data, shares=shares, n=n, seeds=seeds, folder=settings.folder, step=step)
    return AreasReport(result)


def _chess(settings: Settings) -> FigureReport:
    """Figure 6."""
    from studies.venuto.chess import study
    from studies.venuto.chess.data import YEARS
    from studies.venuto.chess.report import ChessReport

    years = YEARS[:1] if settings.quick else YEARS
    games = QUICK_GAMES if settings.quick else None
    with progress("Starting", total=len(years), quiet=settings.quiet) as step:
        result = study.study(folder=settings.folder, years=years, max_games=games, step=step)
    return ChessReport(result)


def _available_data(settings: Settings) -> tuple[str, ...]:
    """Return the data asked for, else those of the paper that are here or can be simulated."""
    from concordant import datasets
    from studies.venuto.svmcompare.data import DATA, is_simulated

    data, notes = settings.data or DATA, []
    if "l2" in data and is_simulated("l2", settings.folder):
        notes.append("l2 is simulated, as l1 is: the paper's own pairs (dataset svmcompare-l2) are not here.")
    no_sushi = settings.folder is None and not datasets.is_present(datasets.get("sushi-pairs"))
    if not settings.data and no_sushi:
        data = tuple(name for name in DATA if name != "sushi")
        notes.append("sushi is left out: its files are not here; see `concordant datasets sushi-pairs`.")
    for text in [] if settings.quiet else notes:
        note(text)
    return data


def _n_seeds(settings: Settings) -> int:
    return settings.seeds or (QUICK_SEEDS if settings.quick else 4)


FIGURES: Mapping[int, Callable[[Settings], FigureReport]] = {
    1: _geometry,
    2: _margins,
    3: _patterns,
    4: _errors,
    5: _areas,
    6: _chess,
}
