"""Report of `studies bounds`: one table, and plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from concordant._internals import new_table, number
from studies.shared.output import add_blocks

if TYPE_CHECKING:
    from rich.table import Table

    from studies.riezler_debona.bounds.sampling import Check
    from studies.riezler_debona.bounds.study import Simulation
    from studies.shared.output import RemarkedTable

REMARKS = (
    "R_n and E sup are means over the draws; sup(R - Rhat), over all w, is its {level:g} quantile",
    "above: draws above the bound",
    "slack: bound / measured; broken: a mean 4 standard errors above, or more than {share:g} of the draws",
    "wrong: constants known to be wrong, to be caught; the rest must hold",
)


@dataclass(frozen=True, eq=False)
class BoundsReport:
    """Every inequality beside what was measured."""

    result: Simulation

    def tables(self) -> Iterator[RemarkedTable]:
        """Yield one table: a row for each inequality, a block for each loss."""
        yield self.checks(), self.remarks()

    def checks(self) -> Table:
        """One row for each inequality; the name of a loss stands in its first row only."""
        result = self.result
        title = f"{result.draws:,} draws of {result.n:,} queries, B = M = 1, delta = {result.delta:g}"
        numeric = ("measured", "bound", "slack", "above")
        table = new_table(title, "loss", "inequality", *numeric, "verdict", numeric=numeric)
        losses = [check.loss for check in result.checks]
        heads = (loss if loss != before else "" for before, loss in zip(["", *losses], losses, strict=False))
        rows = zip(losses, heads, result.checks, strict=True)
        add_blocks(table, ((loss, [head, *_cells(check)]) for loss, head, check in rows))
        return table

    def remarks(self) -> list[str]:
        """Explain the columns, and count what is broken and caught."""
        checks, delta = self.result.checks, self.result.delta
        broken = sum(check.broken for check in checks if not check.wrong)
        wrong = [check for check in checks if check.wrong]
        caught = sum(check.broken for check in wrong)
        lines = [line.format(level=1 - delta, share=delta) for line in REMARKS]
        missed = "; draw more samples (1,000 catch all)" * (caught < len(wrong))
        return [*lines, f"{broken} bounds broken; {caught} of {len(wrong)} wrong constants caught{missed}"]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        checks = [asdict(check) | {"slack": check.slack} for check in self.result.checks]
        return asdict(self.result) | {"checks": checks, "as_expected": self.result.as_expected}


def _cells(check: Check) -> tuple[str, ...]:
    above = "" if check.exceeded is None else f"{check.exceeded:,}"
    slack = "-" if math.isnan(check.slack) else f"{check.slack:.2f}"
    return check.inequality, number(check.measured), number(check.bound), slack, above, _verdict(check)


def _verdict(check: Check) -> str:
    """State what the measurements show, and whether that is expected."""
    if check.wrong:
        return "broken: wrong, caught" if check.broken else "wrong, NOT caught"
    return "BROKEN" if check.broken else "holds"
