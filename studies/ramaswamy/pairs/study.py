"""Scores of pairs on data: the exact surrogates and decoders of AP and PD beside sorting by one score.

Ramaswamy, Agarwal and Tewari (2013), "Convex calibrated surrogates for low-rank loss matrices with
applications to subset ranking losses", prove and do not measure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from concordant import datasets
from concordant.exceptions import UnknownNameError
from concordant.metrics import AP, PD, Metric
from concordant.surrogates import ListwiseHinge, Pairwise, Preorder, Softmax, Squared
from concordant.types import FloatArray
from studies.buffoni import study as buffoni
from studies.ramaswamy.pairs.methods import SAME_FIT, LinearItems, Pairs
from studies.ramaswamy.pairs.results import FoldPoint, PairsResult
from studies.shared.linear_paths import decades

DATA = ("mq2007", "mq2008", "ohsumed")
METRICS: Mapping[str, Metric] = {"ap": AP(), "pd": PD()}
SORTED = {"auto": "", "diagonal": ", diagonal"}
ORDERED = {"auto": "", "edge-deletion": ", edge-deletion", "borda": ", borda"}
GROUPS = ("sum", "product", "absdiff")
METHODS: Mapping[str, tuple[LinearItems | Pairs, ...]] = {
    "ap": (
        LinearItems("squared", Squared()),
        LinearItems("softmax", Softmax()),
        LinearItems("pairwise", Pairwise()),
        LinearItems("AP hinge", ListwiseHinge(AP())),
        LinearItems("squared, squares", Squared(), squares=True),
        LinearItems("softmax, squares", Softmax(), squares=True),
        Pairs("pairs", GROUPS, SORTED),
        Pairs("pairs+context", (*GROUPS, "context"), SORTED),
    ),
    "pd": (
        LinearItems("squared", Squared()),
        LinearItems("pairwise", Pairwise()),
        LinearItems("preorder", Preorder()),
        LinearItems("preorder, squares", Preorder(), squares=True),
        Pairs("differences", ("difference",), {"auto": ""}),
        Pairs("pairs", ("difference", "signed_square"), ORDERED),
        Pairs("pairs+context", ("difference", "signed_square", "context"), ORDERED),
    ),
}
QUESTIONS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "ap": (
        ("decoder, same fit", "pairs", f"pairs, diagonal{SAME_FIT}"),
        ("decoder, same fit", "pairs+context", f"pairs+context, diagonal{SAME_FIT}"),
        ("decoder, own penalties", "pairs", "pairs, diagonal"),
        ("decoder, own penalties", "pairs+context", "pairs+context, diagonal"),
        ("squares", "squared, squares", "squared"),
        ("pairs for items", "pairs", "squared, squares"),
        ("pairs for items", "pairs+context", "squared, squares"),
        ("pairs for items", "pairs+context", "softmax, squares"),
        ("pairs for items", "pairs+context", "softmax"),
    ),
    "pd": (
        ("decoder, same fit", "pairs", f"pairs, edge-deletion{SAME_FIT}"),
        ("decoder, same fit", "pairs", f"pairs, borda{SAME_FIT}"),
        ("decoder, same fit", "pairs+context", f"pairs+context, edge-deletion{SAME_FIT}"),
        ("decoder, same fit", "pairs+context", f"pairs+context, borda{SAME_FIT}"),
        ("pair features", "pairs", "differences"),
        ("pair features", "pairs+context", "differences"),
        ("pairs for items", "pairs", "preorder"),
        ("pairs for items", "pairs+context", "preorder"),
    ),
}
GRIDS: Mapping[str, FloatArray] = {"linear": decades(4, -6), "pairs": decades(4, -4)}
QUICK_GRIDS: Mapping[str, FloatArray] = {"linear": decades(2, -4), "pairs": decades(1, -1)}


def reproduce(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    quick: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> PairsResult:
    """Train every method on every fold, choose penalties on validation queries, test and compare.

    Parameters
    ----------
    name
        "mq2007" (the full set, else the part of it that is called mq2007-partial), "mq2008" or "ohsumed".
    folder
        Folder of the datasets, as for `datasets.load`.
    quick
        The first fold and few penalties only.
    step
        Called with what comes next, once for each fold, metric and method.

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
    dataset, grids, points = _find_dataset(name, folder), QUICK_GRIDS if quick else GRIDS, list[FoldPoint]()
    n_folds = buffoni.folds_of(dataset, quick=quick)
    for number in range(1, n_folds + 1):
        fold = datasets.load(dataset, fold=number, folder=folder)
        for metric, methods in METHODS.items():
            for method in methods:
                step(f"fold {number}: {metric}, {method.name}")
                alphas = grids["pairs" if isinstance(method, Pairs) else "linear"]
                points += method.points(METRICS[metric], number, fold, alphas)
    first = [point for point in points if point.method == points[0].method and point.metric == "ap"]
    n_queries = sum(len(point.per_query["map"]) for point in first)
    return PairsResult(dataset, n_folds, n_queries, quick, grids, tuple(points), QUESTIONS)


def _find_dataset(name: str, folder: str | os.PathLike[str] | None) -> str:
    if name not in DATA:
        raise UnknownNameError("data", name, DATA)
    return buffoni.find_dataset(name, folder)[1]


def n_steps(name: str, *, folder: str | os.PathLike[str] | None = None, quick: bool = False) -> int:
    """Number of times that `reproduce` calls its `step`: once for each fold, metric and method.

    >>> n_steps("ohsumed", folder="/nowhere"), n_steps("ohsumed", folder="/nowhere", quick=True)
    (75, 15)
    """
    return buffoni.folds_of(_find_dataset(name, folder), quick=quick) * sum(map(len, METHODS.values()))
