"""How often the states of a condition are wrong, on labels whose distribution is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.metrics.conditions import Family
from concordant.metrics.metric import Metric
from concordant.supervision.synthetic.distribution import LabelDistribution
from concordant.supervision.synthetic.items import check_counts
from concordant.theory.conditions import holds_on
from concordant.theory.replicates.checking import check
from concordant.theory.replicates.replicated import Replicates
from concordant.types import BoolArray

__all__ = ["Calibration", "calibrate"]

SIZES = (5, 20, 100, 500)


@dataclass(frozen=True)
class Calibration:
    """What was stated of queries with so many annotators, as shares of all checks.

    Attributes
    ----------
    n_annotators
        Annotators of each query.
    true
        Where the condition holds on the distribution itself.
    holds, fails
        What `check` stated.
    wrong
        It stated the contrary of the truth.
    naive_holds, naive_fails, naive_wrong
        The same, had the share of the resamples on which the condition holds been taken for a probability:
        "holds" from `confidence` on, "fails" from 1 - `confidence` down.
    """

    n_annotators: int
    true: float
    holds: float
    fails: float
    wrong: float
    naive_holds: float
    naive_fails: float
    naive_wrong: float


def calibrate(
    distribution: LabelDistribution,
    condition: str,
    *,
    metric: Metric | str | None = None,
    f: Family | None = None,
    margin: float = 0.0,
    largest: float | None = None,
    largest_f: float | None = None,
    sizes: Iterable[int] = SIZES,
    n_samples: int = 1,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    step: Callable[[str], None] = lambda _: None,
) -> list[Calibration]:
    """Draw annotators from a known distribution, check, and compare with the truth.

    Parameters
    ----------
    distribution, condition, metric, f, margin
        As for `theory.conditions.holds_on`.
    largest, largest_f
        As for `check`.
    sizes
        Numbers of annotators.
    n_samples
        How often all queries are drawn.
    n_bootstrap, confidence, seed
        As for `check`.
    step
        Called with each number of annotators.

    Examples
    --------
    >>> company = LabelDistribution(([1, 1, 0], [1, 0, 0], [0, 0, 1]), [[0.5, 0.2, 0.3]], queries=["q"] * 3)
    >>> (row,) = calibrate(company, "P_reinforce", sizes=[5], n_samples=50)
    >>> row.true, row.wrong, row.naive_wrong
    (0.0, 0.0, 0.18)
    """
    check_counts(n_samples=n_samples)
    read: Any = {"metric": metric, "f": f, "margin": margin}
    true, found = holds_on(distribution, condition, **read), []
    for size in sizes:
        step(f"{size:,} annotators")
        checks = [
            check(
                Replicates.sample(distribution, size, seed=number),
                condition,
                n_bootstrap=n_bootstrap,
                confidence=confidence,
                seed=number,
                largest=largest,
                largest_f=largest_f,
                **read,
            )
            for number in range(seed, seed + n_samples)
        ]
        states = np.array([[one.state for one in report.queries] for report in checks])
        support = np.array([[one.support for one in report.queries] for report in checks])
        stated = judged(states == "holds", states == "fails", true)
        naive = judged(support >= confidence, support <= 1.0 - confidence, true)
        found.append(Calibration(size, float(true.mean()), *stated, *naive))
    return found


def judged(holds: BoolArray, fails: BoolArray, true: BoolArray) -> tuple[float, float, float]:
    """Give the shares that are said to hold and to fail, and of the wrong ones."""
    return float(holds.mean()), float(fails.mean()), float((holds & ~true | fails & true).mean())
