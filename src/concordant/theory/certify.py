"""certify: the theorem, or the counterexample, for a metric and a surrogate.

>>> print(certify("ndcg@10", "pairwise", budget=0))
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
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant._base.validate import check_counts, check_whole, list_words
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.comparison import ranking_metric_error
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.theory.catalogue import theorem_of
from concordant.theory.certificate import Certificate, Tried
from concordant.theory.combination import Combination, combination, misfit
from concordant.theory.kinds import PairSquared, SurrogateLike, read_kind
from concordant.theory.search.counterexample import Counterexample, find_counterexample
from concordant.theory.search.hunt import Finding, hunt
from concordant.theory.search.impossibility import impossibility
from concordant.theory.search.proof import Impossibility
from concordant.theory.search.trial import Trial
from concordant.theory.spaces import SPACES, every_label
from concordant.theory.theorem import Theorem

MOST_ITEMS = 5  # all labels and all orders are enumerated
BUDGET = 3000
SLOWER = 6  # by which the budget is divided where each minimiser is a linear program


def certify(
    metric: Metric | str,
    surrogate: SurrogateLike | str,
    decoder: str = "auto",
    *,
    labels: str = "auto",
    n_items: int = 4,
    budget: int = BUDGET,
    highest: int = 2,
    seed: int = 0,
) -> Certificate:
    """Certify a metric, a surrogate and a decoder: look up the theorem, and search for counterexamples.

    The theorem comes from the catalogue. Then label distributions of 3 to `n_items` items are tried: on each
    the expected surrogate is minimised, decoded, and compared with the best of all orders. A distribution
    that fails is shrunk to few labels and small fractions, and verified in exact arithmetic.

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
    n_items
        Number of items of the largest queries tried, from 2 to 5.
    budget
        Distributions to try for each number of items (a sixth of them for losses with corners, whose
        minimisers are linear programs); 0: only the catalogue is consulted.
    highest
        Highest grade tried, on grades.
    seed
        Seed of the random numbers.

    Examples
    --------
    >>> print(certify("rr", "squared", n_items=3, budget=500).counterexample)
    3 items, numbered from 1; the label is
      ...
    >>> certify("ap", "pairwise", budget=0)
    Certificate(ap on binary, pairwise, sort: refuted, holds under P_reinforce)
    """
    candidate = combination(metric, surrogate, decoder, labels)
    check_counts(n_items=n_items, highest=highest)
    if not 2 <= n_items <= MOST_ITEMS:
        raise ParameterError("n_items", n_items, f"an integer from 2 to {MOST_ITEMS}")
    if candidate.space == "grades" and highest < 2:
        raise ParameterError("highest", highest, "at least 2", hint="For grades 0 and 1 use labels='binary'.")
    check_whole("budget", budget, 0)
    check_whole("seed", seed, 0, math.inf)
    if budget:
        every_label(candidate.space, n_items, highest)  # raises if there are too many, before any work
    how = {"n_items": int(n_items), "budget": int(budget), "highest": int(highest), "seed": int(seed)}
    return put_to_the_test(candidate, theorem_of(candidate), **how)


def put_to_the_test(
    combination: Combination, theorem: Theorem, *, n_items: int, budget: int, highest: int = 2, seed: int = 0
) -> Certificate:
    """Test a theorem on distributions; a counterexample refutes it, whatever its status.

    If there is regret that cannot be shown exactly, a proven theorem becomes open.
    """
    if budget == 0:
        return Certificate(combination, theorem, theorem.status)
    counterexample, tried = _search_counterexample(combination, n_items, budget, highest, seed)
    unsure = counterexample is None and tried.worst > 0.0 and theorem.status != "refuted"
    status = "open" if unsure else theorem.status if counterexample is None else "refuted"
    proof = _no_standardization(combination, theorem, n_items, highest)
    return Certificate(combination, theorem, status, tried, counterexample, proof)


def _search_counterexample(
    combination: Combination, n_items: int, budget: int, highest: int, seed: int
) -> tuple[Counterexample | None, Tried]:
    """Search for a counterexample, with few items first."""
    rng, findings = np.random.default_rng(seed), []
    sizes = range(min(3, n_items), n_items + 1)
    counterexample = None
    with one_blas_thread():
        for size in sizes:
            trial = Trial(combination, size, highest)
            if not trial.spread:
                findings.append(Finding(0, 0.0, 0))
                continue
            findings.append(hunt(trial, budget if trial.quick else 1 + budget // SLOWER, rng))
            counterexample = find_counterexample(trial, findings[-1])
            if counterexample is not None:
                break
    total = functools.reduce(Finding.merge, findings)
    sizes_tried = tuple(sizes)[: len(findings)]
    return counterexample, Tried(sizes_tried, total.tried, total.worst, total.unsettled, seed)


def _no_standardization(
    combination: Combination, theorem: Theorem, n_items: int, highest: int
) -> Impossibility | None:
    """Prove that no function of the labels would serve, if the theorem says so."""
    if theorem.status != "refuted" or combination.surrogate.reads != "targets" or combination.standardized:
        return None
    return impossibility(combination.metric, combination.space, n_items=min(n_items, 4), highest=highest)


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

    def tested(self, **search: int) -> Cell:
        """Return the cell with a tested certificate, for the first of its label spaces."""
        if self.certificate is None:
            return self
        parts = self.certificate.combination
        certificate = certify(parts.metric, parts.surrogate, parts.decoder, labels=parts.space, **search)
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
        """Return the matrix with every cell tested by `certify`; `tell` is called after each that fits."""
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
