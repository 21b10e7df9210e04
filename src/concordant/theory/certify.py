"""certify: the theorem, or the counterexample, for a metric and a surrogate.

>>> print(certify("ndcg@10", "pairwise"))
ndcg@10 on grades, pairwise, sort: proven. It is consistent for every distribution of the labels. ...

>>> table = matrix(metrics=["ap"], surrogates=["pairwise", "preorder", "plackett_luce", "pairs"])
>>> [(cell.surrogate, cell.status, cell.holds_under) for cell in table.cells]
[('pairwise', 'refuted', ('P_reinforce',)), ('preorder', 'refuted', ()),
 ('plackett_luce', 'misfit', ()), ('pairs', 'proven', ())]
>>> table.cells[2].reason
'plackett_luce reads full orders, and ap does not'
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from concordant._base.validate import check_counts, check_flag, check_whole, list_words
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.comparison import ranking_metric_error
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate
from concordant.theory.combination import Combination, combination, misfit
from concordant.theory.kinds import PairSquared, SurrogateLike, read_kind
from concordant.theory.spaces import SPACES

MOST_ITEMS = 5  # all labels and all orders are enumerated
DEFAULTS = {"n_items": 4, "highest": 2, "seed": 0}  # of the search


def certify(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    *,
    labels: str = "auto",
    search: bool = False,
    n_items: int = 4,
    budget: int | None = None,
    highest: int = 2,
    seed: int = 0,
) -> Certificate:
    """Look up what is proven of a metric, a surrogate and a decoder; on request, search for a counterexample.

    The answer is a row of the catalogue of theorems, and takes milliseconds. With `search=True`, or a
    `budget`, label distributions of 3 to `n_items` items are tried: on each the expected surrogate is
    minimised, decoded, and compared with the best of all orders. A distribution that fails is shrunk to few
    labels and small fractions, and verified in exact arithmetic. That takes seconds.

    Parameters
    ----------
    metric
        A metric, or its name.
    surrogate
        A surrogate, or its name: those of `concordant.surrogates.SURROGATES`, "listwise_hinge" (of this
        metric), or "pairs" (what `PairRanker` minimises); also with parameters, "pairwise(logistic)".
    decoder
        "auto": sorting for scores of items, the exact decoder for scores of pairs. For pairs also "diagonal"
        and "beam" (ap), "edge-deletion", "borda" and "insertion" (pd).
    labels
        The label space: "binary", "grades", "preferences", "permutations"; "auto": the first of these that
        the metric is meant for and the surrogate reads.
    search
        True: search for a counterexample. The parameters below set up the search.
    n_items
        Number of items of the largest queries tried, from 2 to 5.
    budget
        Distributions to try for each number of items (a sixth of them for losses with corners, whose
        minimisers are linear programs). A number starts the search, too; None: 3000.
    highest
        Highest grade tried, on grades.
    seed
        Seed of the random numbers.

    Examples
    --------
    >>> certify("ap", "pairwise")
    Certificate(ap on binary, pairwise, sort: refuted, holds under P_reinforce)
    >>> print(certify("rr", "squared", search=True, n_items=3, budget=500).counterexample)
    3 items, numbered from 1; the label is
      ...
    """
    candidate = combination(metric, surrogate, decoder, labels)
    check_flag("search", search)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MOST_ITEMS:
        raise ParameterError("n_items", n_items, f"an integer from 2 to {MOST_ITEMS}")
    if candidate.space == "grades" and highest < 2:
        raise ParameterError("highest", highest, "at least 2", hint="For grades 0 and 1 use labels='binary'.")
    check_whole("seed", seed, 0, math.inf)
    theorem = theorem_of(candidate)
    if not search and budget is None:
        _refuse_search_settings(n_items=n_items, highest=highest, seed=seed)
        return Certificate(candidate, theorem, theorem.status)
    from concordant.theory.search.attack import BUDGET, attack_theorem

    check_whole("budget", BUDGET if budget is None else budget, 1, also="None")
    setting = {"n_items": int(n_items), "highest": int(highest), "seed": int(seed)}
    return attack_theorem(candidate, theorem, budget=BUDGET if budget is None else int(budget), **setting)


def _refuse_search_settings(**settings: int) -> None:
    """Raise if a parameter of the search was set, and no search asked for."""
    for name, value in settings.items():
        if value != DEFAULTS[name]:
            text = (
                f"{name} was given, but nothing is searched. Pass search=True to look for a counterexample."
            )
            raise ParameterError.because(text)


# The matrix: the theorem for every metric with every surrogate, as data.

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
MATRIX_BUDGET = 1000  # distributions for each cell and number of items: the whole matrix takes minutes


@dataclass(frozen=True)
class Cell:
    """Certificate of a metric with a surrogate.

    Attributes
    ----------
    metric, surrogate
        Their names.
    spaces
        Label spaces with this answer; the first is tried first.
    certificate
        The certificate; None if the parts do not fit together.
    reason
        Why they do not fit; else empty.
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
        """Conditions under which the combination is consistent nevertheless."""
        return () if self.certificate is None else self.certificate.holds_under

    def tested(self, **setting: int) -> Cell:
        """Return the cell with a tested certificate, for the first of its label spaces."""
        if self.certificate is None:
            return self
        parts = self.certificate.combination
        from concordant.theory.search.attack import attack_theorem

        certificate = attack_theorem(parts, self.certificate.theorem, **setting)
        return dataclasses.replace(self, certificate=certificate)

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain values."""
        answer = {} if self.certificate is None else self.certificate.to_dict()
        names = {"metric": self.metric, "surrogate": self.surrogate}
        return answer | names | {"labels": list(self.spaces), "status": self.status, "reason": self.reason}


@dataclass(frozen=True)
class MatrixRow:
    """Answers for a metric on label spaces that have the same answers."""

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
        Cells, row by row.
    """

    surrogates: tuple[str, ...]
    cells: tuple[Cell, ...]

    def rows(self) -> Iterator[MatrixRow]:
        """Yield the rows: a metric has several if its answers depend on the labels."""
        width = len(self.surrogates)
        for first in range(0, len(self.cells), width):
            cells = self.cells[first : first + width]
            yield MatrixRow(cells[0].metric, cells[0].spaces, cells)

    def tested(
        self,
        *,
        n_items: int = 4,
        budget: int = MATRIX_BUDGET,
        highest: int = 2,
        seed: int = 0,
        tell: Callable[[Cell], object] | None = None,
    ) -> Matrix:
        """Return the matrix with every cell tested by a search; `tell` is called after each that fits."""
        cells = []
        for cell in self.cells:
            cells.append(cell.tested(n_items=n_items, budget=budget, highest=highest, seed=seed))
            if tell is not None and cell.certificate is not None:
                tell(cells[-1])
        return dataclasses.replace(self, cells=tuple(cells))

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as plain values."""
        return {"surrogates": list(self.surrogates), "cells": [cell.to_dict() for cell in self.cells]}


def matrix(
    metrics: Sequence[Metric | str] | None = None,
    surrogates: Sequence[str] | None = None,
    *,
    labels: str = "auto",
) -> Matrix:
    """Look up every metric with every surrogate in the catalogue.

    Parameters
    ----------
    metrics
        Metrics of rankings, or their names; None: `METRICS`.
    surrogates
        Names of surrogates, also with parameters, as in "pairwise(logistic)"; None: `SURROGATES`.
    labels
        A name of `theory.spaces.SPACES`: only metrics that read these labels; "auto": all labels that a
        metric reads, in the same row if the answers are the same.
    """
    if labels != "auto" and labels not in SPACES:
        raise UnknownNameError("label space", labels, SPACES)
    columns = tuple(SURROGATES if surrogates is None else surrogates)
    parsed_metrics = tuple(read_metric(name) for name in (METRICS if metrics is None else metrics))
    if not columns or not parsed_metrics:
        raise ParameterError(
            "surrogates" if parsed_metrics else "metrics", [], "a non-empty list or None for all"
        )
    for metric in parsed_metrics:
        if not metric.label_spaces:
            raise ranking_metric_error(metric)
    cells = tuple(
        cell for metric in parsed_metrics for row in _matrix_rows(metric, columns, labels) for cell in row
    )
    if not cells:
        raise ParameterError(
            "labels", labels, f"a label space that {list_words(map(str, parsed_metrics))} reads"
        )
    return Matrix(columns, cells)


def _matrix_rows(metric: Metric, surrogates: Sequence[str], labels: str) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each group of label spaces with the same answers."""
    spaces = [space for space in metric.label_spaces if labels in ("auto", space)]
    by_answer: dict[Any, list[tuple[Cell, ...]]] = {}
    for space in spaces:
        cells = tuple(_build_cell(metric, name, space) for name in surrogates)
        answer = tuple((cell.status, cell.holds_under) for cell in cells)
        by_answer.setdefault(answer, []).append(cells)
    for alike in by_answer.values():
        shared = tuple(cells[0].spaces[0] for cells in alike)
        yield tuple(dataclasses.replace(cell, spaces=shared) for cell in alike[0])


def _build_cell(metric: Metric, surrogate: str, space: str) -> Cell:
    kind = read_kind(surrogate, metric)
    combination = Combination(metric, space, kind, "auto" if isinstance(kind, PairSquared) else "sort")
    reason = misfit(combination)
    theorem = None if reason else theorem_of(combination)
    certificate = None if theorem is None else Certificate(combination, theorem, theorem.status)
    return Cell(str(metric), surrogate, (space,), certificate, reason)
