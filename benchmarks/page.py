"""`python -m benchmarks.page` writes docs/benchmarks.md from the results that are there.

The first tables have a sentence a row (headlines.toml); their numbers are looked up in the JSON of the
suites. Below them stand the tables of all suites as they were written.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
TARGET = HERE.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

How many times longer the peer takes, in the same run on the same machine. This page is written by
`python -m benchmarks.page` from the files in `benchmarks/results`, which `make bench` writes; each suite by
itself: `python -m benchmarks SUITE`. Nothing here is asserted by a test: numbers depend on the machine, which
stands with each suite, as does the load before and after.

```text
make bench
python -m benchmarks metrics
python -m benchmarks.page
```

| what is timed, ours against | the peer takes | suite |
|---|---:|---|
"""

MIDDLE = """
Below 1x the peer is faster. How long things take, without a peer:

| what is timed | takes | suite |
|---|---:|---|
"""

FOOT = """
What else is to be known:

- Goals that were set before, and whether they were reached, stand in the tables: most are, not all.
- Matrices of pure noise are not solved with proof beyond 30 items, and one election of 242 alternatives was
  not within a minute.
- The speed of a loss says nothing of how well it ranks: see [boosted trees on data](studies/boosting.md) and
  [reproduction](studies/buffoni.md), where most differences may be chance, and some are against us.
"""


@dataclass(frozen=True)
class Headline:
    """A sentence, and where its number is: a column of the rows of a table that match."""

    about: str
    suite: str
    table: str
    column: str
    where: dict = field(default_factory=dict)
    inverse: bool = False
    unit: str = "x"

    def values(self) -> list[float]:
        """The numbers, lowest first; a row that is not there is an error."""
        record = json.loads((RESULTS / f"{self.suite}.json").read_text(encoding="utf-8"))
        rows = [row for table in record["tables"] if table["title"] == self.table for row in table["rows"]]
        matching = [
            row for row in rows if all(row[key] in _several(want) for key, want in self.where.items())
        ]
        numbers = [_number(row[self.column]) for row in matching if row[self.column] is not None]
        if not numbers:
            raise LookupError(self)
        return sorted(1 / value if self.inverse else value for value in numbers)

    def line(self) -> str:
        """The row of the page."""
        numbers = self.values()
        low, high = _written(numbers[0]), _written(numbers[-1])
        if low == high:
            span = f"{low}{self.unit}"
        else:
            span = f"{low}x to {high}x" if self.unit == "x" else f"{low} to {high}{self.unit}"
        return f"| {self.about} | {span} | [{_named(self.suite)}](#{_anchor(self.suite)}) |"


def _headlines(group: str) -> list[Headline]:
    """The rows of one table, `peers` or `times`."""
    with (HERE / "headlines.toml").open("rb") as file:
        return [Headline(**row) for row in tomllib.load(file)[group]]


def _several(want: object) -> list:
    """One value or many, as many."""
    return want if isinstance(want, list) else [want]


def _number(cell: float | str) -> float:
    """A number, or the one that a text begins with: the median of "19.6 (3.6 to 33.1)"."""
    return float(cell.split(" (")[0]) if isinstance(cell, str) else cell


def _written(value: float) -> str:
    """Two digits, or whole numbers."""
    if isinstance(value, int) or value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 1 else f"{value:.1f}"


def _named(suite: str) -> str:
    """Name of a suite in headings; results of another machine have its name behind them."""
    folder, _, name = suite.rpartition("/")
    return f"{name}, {folder.upper()}" if folder else name


def _anchor(suite: str) -> str:
    """Anchor of a suite's heading."""
    return "suite-" + suite.replace("/", "-").replace("_", "-")


def page() -> str:
    """The whole page."""
    paths = sorted(RESULTS.glob("*.md")) + sorted(RESULTS.glob("*/*.md"))
    peers, times = (
        "\n".join(headline.line() for headline in _headlines(group)) for group in ("peers", "times")
    )
    return "\n".join([HEAD + peers, MIDDLE + times, FOOT, *(_section(path) for path in paths)])


def _section(path: Path) -> str:
    """A suite's own page, its headings one level down."""
    suite = path.relative_to(RESULTS).with_suffix("").as_posix()
    _, _, text = path.read_text(encoding="utf-8").partition("\n")
    text = re.sub(r"^## ", "### ", text.strip(), flags=re.MULTILINE)
    return f"({_anchor(suite)})=\n## {_named(suite)}\n\n{text}\n"


def write() -> None:
    """Write the page where the documentation reads it."""
    TARGET.write_text(page(), encoding="utf-8")
    print("written:", TARGET.relative_to(HERE.parent))


if __name__ == "__main__":
    write()
