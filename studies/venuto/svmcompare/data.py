"""The pairs of "Support vector comparison machines": pools, and their training, validation and test sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from concordant import datasets, synthetic
from concordant._internals import data_folder, existing, homes
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import FloatArray, IntArray

DATA = ("l2", "l1", "linf", "sushi")
SIMULATED = ("l1", "linf")
PARTS = ("train", "validation", "test")
PUBLISHED = "svmcompare-l2"
POOL = 10_000  # pairs of a simulated pool, as many as the published one has
Paper = Mapping[tuple[int, str], tuple[float, float]]
"""(n, method) -> the mean and the standard deviation that the paper's Figure 4 shows."""


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of points, shape (n, 2, p), and their outcomes."""

    points: FloatArray
    y: IntArray


@dataclass(frozen=True, eq=False)
class Split:
    """Three sets of the same size, disjoint, with the same number of ties.

    Attributes
    ----------
    train, validation, test
        The pairs.
    truth
        "validation", "test" -> true differences r(right) - r(left), up to 1 for ties; empty for real data.
    """

    train: LabelledPairs
    validation: LabelledPairs
    test: LabelledPairs
    truth: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Pool:
    """All pairs of one kind.

    Attributes
    ----------
    name
        One of `DATA`.
    pairs
        The pairs.
    norm
        Which squared norm the true ranking function is; none for real data.
    published
        (n, seed) -> rows of the training, validation and test sets that the paper used, half of them ties.
    """

    name: str
    pairs: LabelledPairs
    norm: str | None
    published: Mapping[tuple[int, int], tuple[IntArray, ...]]

    def split(self, n: int, tie_share: float = 0.5, seed: int = 1) -> Split:
        """Draw sets of n pairs, `round(tie_share * n)` of them ties; or return the paper's own."""
        published_rows = self.published.get((n, seed)) if tie_share == 0.5 else None
        rows = published_rows or self.drawn(n, tie_share, seed)
        train, validation, test = (
            LabelledPairs(self.pairs.points[part_rows], self.pairs.y[part_rows]) for part_rows in rows
        )
        if self.norm is None:
            return Split(train, validation, test, {})
        truth = {"validation": self.gap(validation.points), "test": self.gap(test.points)}
        return Split(train, validation, test, truth)

    def drawn(self, n: int, tie_share: float, seed: int) -> tuple[IntArray, ...]:
        """Draw rows without replacement, ties and others apart."""
        rng = np.random.default_rng([seed, n, round(1000 * tie_share)])
        n_ties, tie = round(tie_share * n), self.pairs.y == 0
        rows = []
        for kind, count in ((np.flatnonzero(tie), n_ties), (np.flatnonzero(~tie), n - n_ties)):
            if 3 * count > len(kind):
                raise ParameterError.because(
                    f"n={n} is too large: the {self.name} pool has {len(kind):,} ties or differences for "
                    "three sets."
                )
            rows.append(rng.permutation(kind)[: 3 * count].reshape(3, count))
        return tuple(np.concatenate(rows, axis=1))

    def gap(self, points: FloatArray) -> FloatArray:
        """True r(right) - r(left)."""
        from concordant._internals import difference

        return difference(points, str(self.norm))


def load(name: str, *, folder: str | os.PathLike[str] | None = None, seed: int = 1) -> Pool:
    """Return a pool: l2 as published, sushi from its files, others simulated, one for each seed.

    Without `folder`, l2 is simulated too where the published pool is not on this machine.

    Raises
    ------
    UnknownNameError
        If the paper has no pairs of this name.
    DatasetNotFoundError
        If files are missing; the message says where to get them.

    Examples
    --------
    >>> pool = load("l1")
    >>> split = pool.split(100)
    >>> pool.pairs.points.shape, len(split.train.y), int((split.test.y == 0).sum())
    ((10000, 2, 2), 100, 50)
    """
    if name not in DATA:
        raise UnknownNameError("data", name, DATA)
    if not is_simulated(name, folder):
        return _load_published(folder) if name == "l2" else sushi(folder)
    return simulated_pool(name, seed)


def simulated_pool(norm: str, seed: int) -> Pool:
    """Draw a pool as large as the published one."""
    drawn = synthetic.comparisons(POOL, norm, seed=seed)
    return Pool(norm, LabelledPairs(drawn.pairs, drawn.y), norm, {})


def is_simulated(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Return whether a pool is drawn: l2 only where no folder was named and none has the published pairs."""
    absent = folder is None and not datasets.is_present(datasets.get(PUBLISHED))
    return name in SIMULATED or (name == "l2" and absent)


def _load_published(folder: str | os.PathLike[str] | None) -> Pool:
    """Load the pool of the paper's own l2 panel, with its splits."""
    data = datasets.load(PUBLISHED, folder=folder)
    splits = data.extras["splits"]
    row_of = {number: row for row, number in enumerate(data.extras["rows"]["id"].to_pylist())}
    rows: dict[tuple[int, int], dict[str, list[int]]] = {}
    for n, seed, part, number in zip(
        *(splits[key].to_pylist() for key in ("n", "seed", "set", "id")), strict=True
    ):
        rows.setdefault((n, seed), {name: [] for name in PARTS})[part].append(row_of[number])
    published_rows = {
        cell: tuple(np.array(numbers[part]) for part in PARTS) for cell, numbers in rows.items()
    }
    return Pool("l2", LabelledPairs(data.pairs, data.comparisons.outcome), "l2", published_rows)


def sushi(folder: str | os.PathLike[str] | None) -> Pool:
    """Load five pairs of sushi a person, the sides mixed."""
    data = datasets.load("sushi-pairs", folder=folder)
    return Pool("sushi", LabelledPairs(data.pairs, data.comparisons.outcome), None, {})


def published_values(folder: str | os.PathLike[str] | None = None) -> Paper:
    """Read the plotted values of the paper's l2 panel, which lie beside the pool; empty where they do not."""
    import csv

    places = homes(datasets.get(PUBLISHED), data_folder(folder))
    path = next(filter(None, (existing(home / "paper_figure4_l2.csv") for home in places)), None)
    if path is None:
        return {}
    from concordant._internals import open_binary

    with open_binary(path) as stream:
        rows = list(csv.DictReader(stream.read().decode().splitlines()))
    return {
        (int(row["n"]), row["model"]): (float(row["mean_test_error"]), float(row["sd_test_error"]))
        for row in rows
    }
