"""Results: tables on the terminal, in Markdown and in JSON, with the machine they came from."""

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import rich
from rich.table import Table as Grid

from concordant._base.segments import n_threads

PACKAGES = (
    "concordant", "numpy", "numba", "scipy", "scikit-learn", "lightgbm", "xgboost", "catboost", "ranx",
    "pytrec_eval-terrier", "jax", "rax", "torch", "allRank", "highspy", "corankco", "pref_voting",
    "evalica", "choix",
)  # fmt: skip

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """One table: its title, what its numbers mean, its columns and rows."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)

    def add_text(self, *cells: Cell) -> None:
        """Add a row that says why there are no numbers: the cells that are left stay empty."""
        self.rows.append((*cells, *[None] * (len(self.columns) - len(cells))))

    def markdown(self) -> str:
        """GitHub's table, numbers to the right."""
        numeric = [all(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        lines = [self.columns, tuple("---:" if right else "---" for right in numeric), *self.rows]
        body = "\n".join("| " + " | ".join(_written(cell) for cell in line) + " |" for line in lines)
        return f"## {self.title}\n\n{self.note}\n\n{body}\n"

    def records(self) -> dict:
        """The same for machines."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "note": self.note, "rows": rows}


def _written(cell: Cell) -> str:
    """Three significant digits, no exponent between 0.001 and a million; nothing for None."""
    if cell is None:
        return ""
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else cell
    if cell == 0 or not 1e-3 <= abs(cell) < 1e6:
        return f"{cell:.3g}"
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:#.3g}"


def show(table: Table) -> None:
    """Print a table to the terminal."""
    grid = Grid(title=table.title, caption=table.note, title_justify="left", caption_justify="left")
    for column in table.columns:
        grid.add_column(column)
    for row in table.rows:
        grid.add_row(*map(_written, row))
    rich.print(grid)


def machine() -> dict:
    """Describe the machine and the packages; nothing names the host or its folders."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu_model(),
        "cores": n_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in PACKAGES},
    }


def _cpu_model() -> str:
    """The processor's own name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "unknown")


def installed(package: str) -> str:
    """Version of a package, or that it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load() -> list[float]:
    """Load average over 1, 5 and 15 minutes: above 0 before the start, others were running."""
    return [round(number, 2) for number in os.getloadavg()] if hasattr(os, "getloadavg") else []


def write(
    folder: Path,
    suite: str,
    tables: list[Table],
    about: dict,
    *,
    kind: str = "Benchmark",
    program: str = "benchmarks",
) -> Path:
    """Write `suite.md` and `suite.json`, results of `python -m program suite`; give the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    head = (
        f"# {kind}: {suite}\n\n"
        f"{about['date']}; {about['cpu']}, {about['cores']} cores, {about['system']}; "
        f"Python {about['python']}; {packages}.\n"
        f"Load average (1, 5, 15 minutes) before: {about['load_before']}, after: {about['load_after']}. "
        f"{'A quick run: its numbers mean nothing. ' if about['quick'] else ''}"
        f"Written by `python -m {program} {suite}`.\n"
    )
    path = folder / f"{suite}.md"
    path.write_text("\n".join([head, *(table.markdown() for table in tables)]), encoding="utf-8")
    record = {"suite": suite, "machine": about, "tables": [table.records() for table in tables]}
    (folder / f"{suite}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path
