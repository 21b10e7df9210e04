"""Readers of graded sets, orders and annotations: files -> data."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import LabelError
from concordant.supervision.data import RankingData
from concordant.supervision.datasets.dataset import Annotations, Dataset, Options, OrderData
from concordant.supervision.labels import Permutations

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "read_crowd_ordinal",
    "read_crowd_relevance",
    "read_elections",
    "read_grouped",
    "read_letor_files",
    "read_sushi_orders",
    "read_sushi_scores",
    "table_of",
    "text_of",
]

ITEM_COLUMNS = [2, 3, 4, 5, 6, 7, 8]  # style .. frequency sold; 0 and 1 are id and name
USER_COLUMNS = list(range(1, 11))  # gender .. moved; 0 is the id
UNJUDGED = "B"


def read_letor_files(dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """LETOR text, several files as one; the width is fixed, so that splits agree."""
    from concordant.supervision.readers import read_letor

    data: RankingData = read_letor(
        paths, sparse=options.sparse, n_features=dataset.features, dtype=options.dtype
    )
    return data


def read_grouped(dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """LETOR text without query ids, each file followed by its file of group sizes."""
    from concordant.supervision.readers import read_letor

    data: RankingData = read_letor(
        paths[::2],
        sparse=options.sparse,
        n_features=dataset.features,
        dtype=options.dtype,
        group=paths[1::2],
    )
    return data


def read_sushi_scores(_dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """Users as queries: the 10 items each has scored; 7 columns of the item, then 10 of the user."""
    scored = np.loadtxt(io.StringIO(text_of(paths[0])), dtype=np.int64)
    items, users = (tab_separated(path) for path in paths[1:])
    user, item = np.nonzero(scored >= 0)
    parts = (items[item][:, ITEM_COLUMNS], users[user][:, USER_COLUMNS])
    X = np.concatenate(parts, axis=1).astype(options.dtype)
    return RankingData(X, scored[user, item].astype(np.float64), user, item)


def read_sushi_orders(_dataset: Dataset, paths: list[Path], _options: Options) -> OrderData:
    """One order per user, best first: rows stand in that order; item columns where the file is given."""
    order_file, *item_file = paths
    lines = np.loadtxt(io.StringIO(text_of(order_file)), dtype=np.int64, skiprows=1)
    orders = lines[:, 2:]
    n_users, n_items = orders.shape
    positions = Permutations(np.tile(np.arange(1, n_items + 1), n_users))
    qid, item = np.repeat(np.arange(n_users), n_items), orders.ravel()
    if not item_file:
        return OrderData(positions, qid, item)
    items = tab_separated(item_file[0])[:, ITEM_COLUMNS].astype(np.float64)
    return OrderData(positions, qid, item, items[item])


def read_crowd_ordinal(_dataset: Dataset, paths: list[Path], _options: Options) -> Annotations:
    """Grades by worker and item; what could not be judged is left out."""
    rows = tab_separated(paths[0])[1:]
    worker, item, grade = rows[rows[:, 2] != UNJUDGED].T
    return Annotations(item.astype(np.int64), worker.astype(np.int64), grade.astype(np.int64))


def read_crowd_relevance(_dataset: Dataset, paths: list[Path], _options: Options) -> Annotations:
    """Votes as `query_document`, worker, label (the last three columns), and the experts' grades."""
    votes = [line.split("\t")[-3:] for line in text_of(paths[0]).splitlines()]
    item, worker, grade = np.char.strip(np.array(votes)).T
    query: NDArray[Any] = np.array([name.partition("_")[0] for name in item.tolist()])
    lines = (line.split("\t") for line in text_of(paths[1]).splitlines()[1:])
    gold = {f"{topic}_{document}": int(truth) for _, topic, document, truth, *_ in lines if int(truth) >= 0}
    return Annotations(item, worker, grade.astype(np.int64), query, gold)


def read_elections(_dataset: Dataset, paths: list[Path], _options: Options) -> dict[str, Any]:
    """Every election of a PrefLib archive, by file name, as `read_preflib` gives it."""
    from concordant.supervision.readers.preflib import ORDERS, read_preflib
    from concordant.supervision.readers.text import open_binary

    with tempfile.TemporaryDirectory() as scratch:
        with open_binary(paths[0]) as stream, tarfile.open(fileobj=stream) as archive:
            archive.extractall(scratch, filter="data")
        # .toi sorts after .toc and replaces it: PrefLib adds completed copies of incomplete orders.
        files = {path.stem: path for path in sorted(Path(scratch).rglob("*")) if path.suffix in ORDERS}
        elections = {path.name: read_preflib(path) for path in files.values()}
    if not elections:
        raise LabelError(f"{paths[0]} holds no .soc, .soi, .toc or .toi file", "get the archive again.")
    return elections


def tab_separated(path: Path) -> NDArray[Any]:
    """Give the cells of a tab-separated file as text; lines that start with # are comments."""
    return np.loadtxt(io.StringIO(text_of(path)), dtype=str, delimiter="\t")


def text_of(path: Path) -> str:
    """Give the decompressed text of a file; only names, which nothing here reads, may not be UTF-8."""
    from concordant.supervision.readers.text import open_binary

    with open_binary(path) as stream:
        return stream.read().decode("utf-8", "replace")


def table_of(path: Path) -> Any:
    """Give a CSV file as a pyarrow table; "NA" is missing."""
    from pyarrow import csv

    from concordant.supervision.readers.text import open_binary

    with open_binary(path) as stream:
        return csv.read_csv(stream)
