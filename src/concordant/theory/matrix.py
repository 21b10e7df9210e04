"""The matrix: what is known of every metric with every surrogate, as data.

>>> table = matrix(metrics=["ap"], surrogates=["pairwise", "preorder", "plackett_luce", "pairs"])
>>> [(cell.surrogate, cell.status, cell.holds_under) for cell in table.cells]
[('pairwise', 'refuted', ('P_reinforce',)), ('preorder', 'refuted', ()),
 ('plackett_luce', 'misfit', ()), ('pairs', 'proven', ())]
>>> table.cells[2].reason
'plackett_luce reads full orders, and ap does not'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate
from concordant.theory.certify import certify
from concordant.theory.combination import Combination, misfit
from concordant.theory.kinds import PairSquared, read_kind
from concordant.theory.spaces import SPACES, spaces_of

__all__ = ["BUDGET", "METRICS", "MISFIT", "SURROGATES", "Cell", "Matrix", "Row", "matrix"]

METRICS = (
    "dcg",
    "ndcg",
    "eru",
    "p@2",
    "auc",
    "wpd",
    "pd",
    "ap",
    "ap@2",
    "ap@1",
    "err",
    "err@1",
    "rr",
    "rr@1",
    "zero_one",
)
"""Metrics of rankings. Other cutoffs share a row: that of the cutoff here, else that of the uncut metric."""
SURROGATES = (
    "squared",
    "pairwise",
    "pairwise(logistic)",
    "softmax",
    "duchi",
    "pairwise(hinge)",
    "preorder",
    "position_hinge",
    "listwise_hinge",
    "plackett_luce",
    "pairs",
)
"""Surrogates, with the margins that change an answer."""
MISFIT = "misfit"  # status of parts that cannot be put together
BUDGET = 1000  # distributions for each cell and number of items: the whole matrix takes minutes


@dataclass(frozen=True)
class Cell:
    """What is known of one metric with one surrogate.

    Attributes
    ----------
    metric, surrogate
        Their names.
    spaces
        Label spaces for which the answer is this one, the one that is tried first.
    certificate
        What is known; None where the parts do not fit together.
    reason
        Why they do not; else empty.
    """

    metric: str
    surrogate: str
    spaces: tuple[str, ...]
    certificate: Certificate | None
    reason: str = ""

    @property
    def status(self) -> str:
        """A name of `theory.theorem.STATUSES`, or "misfit"."""
        return MISFIT if self.certificate is None else self.certificate.status

    @property
    def holds_under(self) -> tuple[str, ...]:
        """Conditions under which it is consistent all the same."""
        return () if self.certificate is None else self.certificate.holds_under

    def tested(self, *, n_items: int, budget: int, highest: int, seed: int) -> Cell:
        """Put it to the test, on the first of its label spaces."""
        if self.certificate is None:
            return self
        one = self.certificate.combination
        found = certify(
            one.metric,
            one.surrogate,
            one.decoder,
            labels=one.space,
            n_items=n_items,
            budget=budget,
            highest=highest,
            seed=seed,
        )
        return dataclasses.replace(self, certificate=found)

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        known = {} if self.certificate is None else self.certificate.to_dict()
        names = {"metric": self.metric, "surrogate": self.surrogate}
        return known | names | {"labels": list(self.spaces), "status": self.status, "reason": self.reason}


@dataclass(frozen=True)
class Row:
    """The answers of a metric on label spaces that give the same ones."""

    metric: str
    spaces: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Matrix:
    """Every metric with every surrogate; items are sorted, scores of pairs decoded exactly.

    Attributes
    ----------
    surrogates
        Names of the columns.
    cells
        Row by row.
    """

    surrogates: tuple[str, ...]
    cells: tuple[Cell, ...]

    def rows(self) -> Iterator[Row]:
        """Give the rows: a metric has several where its answers depend on the labels."""
        width = len(self.surrogates)
        for first in range(0, len(self.cells), width):
            cells = self.cells[first : first + width]
            yield Row(cells[0].metric, cells[0].spaces, cells)

    def tested(
        self,
        *,
        n_items: int = 4,
        budget: int = BUDGET,
        highest: int = 2,
        seed: int = 0,
        tell: Callable[[Cell], object] | None = None,
    ) -> Matrix:
        """Put every cell to the test, as `certify` does; `tell` is called after each that fits."""
        cells = []
        for cell in self.cells:
            cells.append(cell.tested(n_items=n_items, budget=budget, highest=highest, seed=seed))
            if tell is not None and cell.certificate is not None:
                tell(cells[-1])
        return dataclasses.replace(self, cells=tuple(cells))

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        return {"surrogates": list(self.surrogates), "cells": [cell.to_dict() for cell in self.cells]}


def matrix(
    metrics: Sequence[Metric | str] | None = None,
    surrogates: Sequence[str] | None = None,
    *,
    labels: str = "auto",
) -> Matrix:
    """Ask the catalogue about every metric with every surrogate.

    Parameters
    ----------
    metrics
        Metrics of rankings, or their names; None: `METRICS`.
    surrogates
        Names of surrogates, also with what they are given, as in "pairwise(logistic)"; None: `SURROGATES`.
    labels
        A name of `theory.spaces.SPACES`: metrics that read these labels only; "auto": all that a metric
        reads, in one row where the answers are the same.
    """
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    columns = tuple(SURROGATES if surrogates is None else surrogates)
    chosen = tuple(read_metric(one) for one in (METRICS if metrics is None else metrics))
    if not columns or not chosen:
        raise ParameterError("surrogates" if chosen else "metrics", [], "some, or None for all")
    for metric in chosen:
        if not spaces_of(metric):
            raise ParameterError("metric", str(metric), "one of rankings")
    cells = tuple(cell for metric in chosen for row in rows_of(metric, columns, labels) for cell in row)
    if not cells:
        raise ParameterError("labels", labels, f"read by {' or '.join(map(str, chosen))}")
    return Matrix(columns, cells)


def rows_of(metric: Metric, surrogates: Sequence[str], labels: str) -> Iterator[tuple[Cell, ...]]:
    """Give a row for each answer that label spaces give."""
    spaces = [space for space in spaces_of(metric) if labels in ("auto", space)]
    by_answer: dict[Any, list[tuple[Cell, ...]]] = {}
    for space in spaces:
        cells = tuple(cell_of(metric, name, space) for name in surrogates)
        answer = tuple((cell.status, cell.holds_under) for cell in cells)
        by_answer.setdefault(answer, []).append(cells)
    for alike in by_answer.values():
        shared = tuple(cells[0].spaces[0] for cells in alike)
        yield tuple(dataclasses.replace(cell, spaces=shared) for cell in alike[0])


def cell_of(metric: Metric, surrogate: str, space: str) -> Cell:
    """Ask about one combination."""
    kind = read_kind(surrogate, metric)
    one = Combination(metric, space, kind, "auto" if isinstance(kind, PairSquared) else "sort")
    reason = misfit(one)
    known = None if reason else from_catalogue(one)
    return Cell(str(metric), surrogate, (space,), known, reason)


def from_catalogue(one: Combination) -> Certificate:
    """Say what is known, untested."""
    theorem = theorem_of(one)
    return Certificate(one, theorem, theorem.status)
