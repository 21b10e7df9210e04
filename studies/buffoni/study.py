"""Tables 1 and 2 of Buffoni, Calauzènes, Gallinari and Usunier (2011): preorder and consistent losses.

"Learning scoring functions with order-preserving losses and standardized supervision": linear rankers trained
by pairwise losses, with and without heuristic weights, on MQ2007 and on the set of Yahoo's challenge.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from concordant import datasets
from concordant.evaluation import Comparison, against_best
from concordant.exceptions import UnknownNameError
from concordant.metrics import Metric
from concordant.surrogates import Pairwise, Preorder, Softmax, Squared, huber_hinge
from concordant.types import FloatArray
from studies.buffoni.published import DATA, Data, Published, conventions_of, metrics_of
from studies.shared.linear_paths import LinearMethod, PenaltyChoice, choose, decades, fit_path

# The paper: "a differentiable version of the hinge loss (see Chapelle (2007))", the same for all.
MARGIN = huber_hinge(0.5)
TABLES: Mapping[str, tuple[LinearMethod, ...]] = {
    "Table 1": (
        LinearMethod("preorder", "ndcg", Preorder("unit", margin=MARGIN)),
        LinearMethod("consistent-dcg", "dcg", Pairwise(MARGIN)),
        LinearMethod("consistent-ndcg", "ndcg", Pairwise(MARGIN)),
    ),
    "Table 2": (
        LinearMethod("preorder-norm", "ndcg", Preorder("pairs", margin=MARGIN)),
        LinearMethod("preorder-norm+dcg", "ndcg", Preorder("gain", margin=MARGIN)),
        LinearMethod("consistent-norm+dcg", "dcg", Pairwise(MARGIN, normalize=True)),
    ),
    "beyond the paper": (
        LinearMethod("softmax", "ndcg", Softmax()),
        LinearMethod("squared", "ndcg", Squared(centred=True)),
    ),
}
METHODS = tuple(method for table in TABLES.values() for method in table)

GRID = decades(6, -8, steps=2)  # at both ends the rankings hardly change any more
QUICK_GRID = decades(1, -4)


@dataclass(frozen=True, eq=False)
class Cell:
    """One method and one metric.

    Attributes
    ----------
    method, metric
        Their names.
    per_query
        Value on each test query, fold after fold; NaN where skipped.
    folds
        What was chosen in each fold.
    comparison
        The mean over all test queries, and the test against the best method of this metric.
    published
        The paper's figure, or None.
    """

    method: str
    metric: str
    per_query: FloatArray
    folds: tuple[PenaltyChoice, ...]
    comparison: Comparison
    published: Published | None = None


@dataclass(frozen=True, eq=False)
class BuffoniResult:
    """All methods and metrics on one set.

    Attributes
    ----------
    data
        Name of the dataset that was read.
    n_folds, n_queries
        Folds, and test queries over all of them.
    scaled, quick
        Whether features were scaled, and whether only a look was asked for.
    shares
        The grid of penalties, as shares of the loss at w = 0.
    metrics
        Name -> metric, with its convention.
    conventions
        The same in words, where names leave something open.
    cells
        Metric by metric, methods in the order of `METHODS`.
    """

    data: str
    n_folds: int
    n_queries: int
    scaled: bool
    quick: bool
    shares: FloatArray
    metrics: Mapping[str, Metric]
    conventions: Mapping[str, str]
    cells: tuple[Cell, ...]

    def column(self, metric: str) -> dict[str, Cell]:
        """Cells of one metric, by method."""
        return {cell.method: cell for cell in self.cells if cell.metric == metric}

    def agreement(self, metric: str) -> float:
        """Kendall's tau between our order of the paper's methods and the paper's; NaN without its figures."""
        from scipy.stats import kendalltau

        pairs = [
            (cell.comparison.mean, cell.published.value)
            for cell in self.column(metric).values()
            if cell.published
        ]
        return float(kendalltau(*zip(*pairs, strict=True)).statistic) if pairs else float("nan")

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences between these numbers and the paper's."""
        notes = []
        if self.data == "mq2007-partial":
            notes.append("85 % of the documents of MQ2007: compare the order of methods, not levels")
        taus = {metric: self.agreement(metric) for metric in self.metrics}
        agreements = ", ".join(f"{metric} {tau:.2f}" for metric, tau in taus.items() if not math.isnan(tau))
        if agreements:
            notes.append(f"Kendall's tau between our order of the paper's methods and its own: {agreements}")
        if self.quick:
            notes.append("one fold and few penalties: a look, not a result")
        return tuple(notes)


def reproduce(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    scaled: bool | None = None,
    quick: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> BuffoniResult:
    """Train every method on every fold, choose penalties on validation queries, test and compare.

    Parameters
    ----------
    name
        "mq2007" (the full set, else the part of it that is called mq2007-partial), "mq2008", "ohsumed" or
        "yahoo" (one split).
    folder
        Folder of the datasets, as for `datasets.load`.
    scaled
        Whether the penalty sees features divided by their spread within queries; None: as the set has it.
    quick
        The first fold and a coarse grid only.
    step
        Called with what comes next, once for each fold and method.

    Returns
    -------
    Reproduction
        For each method and metric the mean over the test queries of all folds, the penalties chosen, and the
        test against the best method.

    Raises
    ------
    UnknownNameError
        If no set of the experiment has this name.
    DatasetNotFoundError
        If its files are missing; the message says where to get them.

    Examples
    --------
    >>> reproduce("mq2009")
    Traceback (most recent call last):
    concordant.exceptions.UnknownNameError: unknown data 'mq2009'. Did you mean 'mq2008'?
    ...
    """
    source, dataset = find_dataset(name, folder)
    metrics = metrics_of(source)
    scaled = source.scaled if scaled is None else scaled
    shares = QUICK_GRID if quick else GRID
    n_folds = folds_of(dataset, quick=quick)
    choices: dict[tuple[str, str], list[PenaltyChoice]] = {}
    for number in range(1, n_folds + 1):
        fold: datasets.Fold = datasets.load(dataset, fold=number, folder=folder, dtype=source.dtype)
        for method in METHODS:
            step(f"fold {number}: {method.name}")
            path = fit_path(method, fold.train, shares, scaled=scaled)
            for metric, choice in choose(path, fold, metrics).items():
                choices.setdefault((metric, method.name), []).append(choice)
    cells = tuple(cell for metric in metrics for cell in _cells(metric, choices, source))
    return BuffoniResult(
        data=dataset,
        n_folds=n_folds,
        n_queries=len(cells[0].per_query),
        scaled=scaled,
        quick=quick,
        shares=shares,
        metrics=metrics,
        conventions=conventions_of(source),
        cells=cells,
    )


def find_dataset(name: str, folder: str | os.PathLike[str] | None) -> tuple[Data, str]:
    """Return a set of the experiment, and the first of its datasets on this machine, else the first."""
    if name not in DATA:
        raise UnknownNameError("data", name, DATA)
    here = datasets.available(folder)
    names = DATA[name].names
    return DATA[name], next((dataset for dataset in names if dataset in here), names[0])


def folds_of(dataset: str, *, quick: bool) -> int:
    """Folds that are run; a set with one split has one."""
    return 1 if quick else datasets.get(dataset).folds


def n_steps(name: str, *, folder: str | os.PathLike[str] | None = None, quick: bool = False) -> int:
    """Number of times that `reproduce` calls its `step`: once for each fold and method.

    >>> n_steps("ohsumed", folder="/nowhere"), n_steps("yahoo", folder="/nowhere")
    (40, 8)
    """
    return folds_of(find_dataset(name, folder)[1], quick=quick) * len(METHODS)


def _cells(metric: str, choices: Mapping[tuple[str, str], list[PenaltyChoice]], source: Data) -> list[Cell]:
    """Pool the folds of each method, and compare the methods."""
    folds_by_method = {method: folds for (name, method), folds in choices.items() if name == metric}
    pooled = {
        method: np.concatenate([fold.per_query for fold in folds])
        for method, folds in folds_by_method.items()
    }
    compared = against_best(pooled)
    return [
        Cell(
            method,
            metric,
            pooled[method],
            tuple(folds),
            compared[method],
            source.published.get(method, {}).get(metric),
        )
        for method, folds in folds_by_method.items()
    ]
