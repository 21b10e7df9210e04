"""The table of datasets, from `datasets.toml`, and a reader for each format: files -> data."""

from __future__ import annotations

import io
import tarfile
import tempfile
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.data.datasets.dataset import Annotations, ComparisonData, Dataset, Options, OrderData
from concordant.data.io.tables import read_comparisons
from concordant.data.labels import Comparisons, Permutations, RankingData
from concordant.exceptions import LabelError, OutcomeWarning, SimilarNamesWarning
from concordant.types import BoolArray, FloatArray, IntArray

ITEM_COLUMNS = [2, 3, 4, 5, 6, 7, 8]  # style .. frequency sold; 0 and 1 are id and name
USER_COLUMNS = list(range(1, 11))  # gender .. moved; 0 is the id
UNJUDGED = "B"


def read_letor_files(dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """Read LETOR text, several files as one; the number of features is fixed, so that splits agree."""
    return _read_letor(dataset, paths, options)


def read_grouped(dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """Read LETOR text without query ids, each file followed by its file of group sizes."""
    return _read_letor(dataset, paths[::2], options, paths[1::2])


def _read_letor(
    dataset: Dataset, paths: list[Path], options: Options, group: list[Path] | None = None
) -> RankingData:
    from concordant.data.io import read_letor

    n_features, dtype = dataset.features, options.dtype
    return read_letor(paths, sparse=options.sparse, n_features=n_features, dtype=dtype, group=group)


def read_sushi_scores(_dataset: Dataset, paths: list[Path], options: Options) -> RankingData:
    """Read users as queries: 10 scored items each; 7 columns of the item, then 10 of the user."""
    scored = np.loadtxt(io.StringIO(_read_text(paths[0])), dtype=np.int64)
    items, users = (_read_tab_separated(path) for path in paths[1:])
    user, item = np.nonzero(scored >= 0)
    parts = (items[item][:, ITEM_COLUMNS], users[user][:, USER_COLUMNS])
    X = np.concatenate(parts, axis=1).astype(options.dtype)
    return RankingData(X, scored[user, item].astype(np.float64), user, item)


def read_sushi_orders(_dataset: Dataset, paths: list[Path], _options: Options) -> OrderData:
    """Read one order per user: rows are in that order, best first; with item columns if there is a file."""
    order_file, *item_file = paths
    lines = np.loadtxt(io.StringIO(_read_text(order_file)), dtype=np.int64, skiprows=1)
    orders = lines[:, 2:]
    n_users, n_items = orders.shape
    positions = Permutations(np.tile(np.arange(1, n_items + 1), n_users))
    qid, item = np.repeat(np.arange(n_users), n_items), orders.ravel()
    if not item_file:
        return OrderData(positions, qid, item)
    items = _read_tab_separated(item_file[0])[:, ITEM_COLUMNS].astype(np.float64)
    return OrderData(positions, qid, item, items[item])


def read_crowd_ordinal(_dataset: Dataset, paths: list[Path], _options: Options) -> Annotations:
    """Read grades by worker and item; unjudged items are dropped."""
    rows = _read_tab_separated(paths[0])[1:]
    worker, item, grade = rows[rows[:, 2] != UNJUDGED].T
    return Annotations(item.astype(np.int64), worker.astype(np.int64), grade.astype(np.int64))


def read_crowd_relevance(_dataset: Dataset, paths: list[Path], _options: Options) -> Annotations:
    """Read votes as `query_document`, worker, label (the last three columns), and the experts' grades."""
    votes = [line.split("\t")[-3:] for line in _read_text(paths[0]).splitlines()]
    item, worker, grade = np.char.strip(np.array(votes)).T
    query: NDArray[Any] = np.array([name.partition("_")[0] for name in item.tolist()])
    lines = (line.split("\t") for line in _read_text(paths[1]).splitlines()[1:])
    gold = {f"{topic}_{document}": int(truth) for _, topic, document, truth, *_ in lines if int(truth) >= 0}
    return Annotations(item, worker, grade.astype(np.int64), query, gold)


def read_elections(_dataset: Dataset, paths: list[Path], _options: Options) -> dict[str, Any]:
    """Read every election of a PrefLib archive by `read_preflib`, by file name."""
    from concordant._base.files import open_binary
    from concordant.data.io.preflib import ORDERS, read_preflib

    with tempfile.TemporaryDirectory() as scratch:
        with open_binary(paths[0]) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            archive.extractall(scratch, filter="data")
        # .toi sorts after .toc and replaces it: PrefLib adds completed copies of incomplete orders.
        files = {path.stem: path for path in sorted(Path(scratch).rglob("*")) if path.suffix in ORDERS}
        elections = {path.name: read_preflib(path) for path in files.values()}
    if not elections:
        raise LabelError(f"{paths[0]} holds no .soc, .soi, .toc or .toi file", "get the archive again.")
    return elections


def _read_tab_separated(path: Path) -> NDArray[Any]:
    """Read the cells of a tab-separated file as text; lines that start with # are comments."""
    return np.loadtxt(io.StringIO(_read_text(path)), dtype=str, delimiter="\t")


def _read_text(path: Path) -> str:
    """Read the decompressed text of a file; only names, which are not used here, may be invalid UTF-8."""
    from concordant._base.files import open_binary

    with open_binary(path) as stream:
        return stream.read().decode("utf-8", "replace")


def _read_csv(path: Path) -> Any:
    """Read a CSV file as a pyarrow table; "NA" is missing."""
    from pyarrow import csv

    from concordant._base.files import open_binary

    with open_binary(path) as stream:
        return csv.read_csv(stream)


# Readers of comparison sets: a table of contests -> comparisons with outcomes -1, 0, +1.


def read_chess(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read games, white on the left; features: rating before the game, and the first move."""
    games = _read_csv(paths[0])
    outcome = 1 - 2 * column(games, "white_score")
    return _chess_comparisons(games, outcome, "white_elo", "black_elo")


def read_worldcup(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read games, white on the left; features as for the other chess set."""
    games = _read_csv(paths[0])
    outcome = read_comparisons(games, left="white", right="black", outcome="result").outcome
    return _chess_comparisons(games, outcome, "whiteelo", "blackelo")


def _chess_comparisons(games: Any, outcome: NDArray[Any], white_elo: str, black_elo: str) -> ComparisonData:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimilarNamesWarning)  # the names are as published
        comparisons = Comparisons(column(games, "white"), column(games, "black"), outcome)
    elo = np.stack((column(games, white_elo), column(games, black_elo)), axis=1).astype(np.float64)
    pairs = np.stack((elo, np.tile([1.0, 0.0], (len(elo), 1))), axis=2)
    return ComparisonData(comparisons, pairs, ("elo", "white"), {"rows": games})


def read_football(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read matches, home team on the left; feature: plays at home (0 for both on neutral ground)."""
    matches, names = _read_csv(paths[0]), _read_csv(paths[1])
    outcome = np.sign(column(matches, "away_score") - column(matches, "home_score"))
    comparisons = Comparisons(column(matches, "home_team"), column(matches, "away_team"), outcome)
    pairs = _home_side(~column(matches, "neutral").astype(bool), side=0)
    return ComparisonData(comparisons, pairs, ("home",), {"rows": matches, "former_names": names})


def read_icehockey(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read games, visitor on the left; feature: plays on home ice."""
    games = _read_csv(paths[0])
    outcome = 1 - 2 * column(games, "result")
    comparisons = Comparisons(column(games, "visitor"), column(games, "opponent"), outcome)
    pairs = _home_side(column(games, "home.ice").astype(bool), side=1)
    return ComparisonData(comparisons, pairs, ("home",), {"rows": games})


def read_cems(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read comparisons of schools by students; missing comparisons are dropped."""
    choices, schools, students = (_read_csv(path) for path in paths)
    outcome = column(choices, "win2") - column(choices, "win1")  # NaN where missing
    is_answered = np.isfinite(outcome)
    answered = choices.filter(is_answered)
    comparisons = Comparisons(column(answered, "school1"), column(answered, "school2"), outcome[is_answered])
    return ComparisonData(comparisons, extras={"rows": answered, "schools": schools, "students": students})


def read_springall(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read counts as single comparisons; features: flavour and gel of the mixtures."""
    contests, mixtures = (_read_csv(path) for path in paths)
    counts = [column(contests, name) for name in ("win", "tie", "loss")]
    left, right = column(contests, "row"), column(contests, "col")
    comparisons = _repeat_contests(left.astype(np.int64), right.astype(np.int64), counts)
    names = ("flav", "gel")
    features = np.stack([column(mixtures, name) for name in names], axis=1)
    order = np.argsort(column(mixtures, "item"))  # comparisons number their items in ascending order
    extras = {"contests": contests, "mixtures": mixtures}
    return ComparisonData(comparisons, comparisons.pairs(features[order]), names, extras)


def read_pudding(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read counts of wins and ties between brands as single comparisons."""
    contests = _read_csv(paths[0])
    counts = [column(contests, name) for name in ("w_ij", "t_ij", "w_ji")]
    comparisons = _repeat_contests(column(contests, "i"), column(contests, "j"), counts)
    return ComparisonData(comparisons, extras={"contests": contests})


def read_votes(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read judgements between the answers of two models to the same prompt."""
    votes = _read_csv(paths[0])
    return ComparisonData(read_comparisons(votes, outcome="winner"), extras={"rows": votes})


def read_svmcompare(_dataset: Dataset, paths: list[Path], _options: Options) -> ComparisonData:
    """Read points of the plane: pair k compares items 2k and 2k + 1; "splits" has the published splits."""
    pool, splits = (_read_csv(path) for path in paths)
    number = np.arange(len(pool))
    comparisons = Comparisons(2 * number, 2 * number + 1, column(pool, "y"))
    names = ("x1", "x2")
    sides = [np.stack([column(pool, name) for name in side], axis=1) for side in (names, ("xp1", "xp2"))]
    return ComparisonData(comparisons, np.stack(sides, axis=1), names, {"rows": pool, "splits": splits})


def column(table: Any, name: str) -> NDArray[Any]:
    """Return a column of a pyarrow table; missing numbers are NaN."""
    values: NDArray[Any] = table[name].to_numpy()
    return values


def _home_side(at_home: NDArray[np.bool_], side: int) -> FloatArray:
    """Indicator of the side that plays at home, shape (n, 2, 1)."""
    pairs = np.zeros((len(at_home), 2, 1))
    pairs[:, side, 0] = at_home
    return pairs


def _repeat_contests(left: NDArray[Any], right: NDArray[Any], counts: list[NDArray[Any]]) -> Comparisons:
    """Repeat each contest as often as it was counted: left wins, then ties, then right wins."""
    times = np.concatenate(counts)
    outcome = np.repeat([-1, 0, 1], len(left))
    rows = np.repeat(np.tile(np.arange(len(left)), 3), times)
    return Comparisons(left[rows], right[rows], np.repeat(outcome, times))


# The sushi pairs of Support vector comparison machines, section 4.2.

FEATURES = (
    *("style", "major", "minor", "oily", "frequency eaten", "price", "frequency sold"),
    *("gender", "age", "time", "latitude until 15", "longitude until 15", "latitude now", "longitude now"),
)
N_SCORED = 10  # items of a user
SUSHI, PERSON, HOMES = slice(0, 7), slice(7, 10), (10, 13)  # columns of the scored set; homes are codes

# Latitude and longitude of the capital of each prefecture, by the code of sushi3.udata, to about a kilometre;
# the last code is a foreign country, which the paper took to be Berkeley.
PREFECTURES = np.array(
    [
        *((43.06, 141.35), (40.82, 140.74), (39.70, 141.15), (39.72, 140.10), (38.27, 140.87)),
        *((38.24, 140.36), (37.75, 140.47), (37.90, 139.02), (36.34, 140.45), (36.57, 139.88)),
        *((36.39, 139.06), (35.86, 139.65), (35.60, 140.12), (35.69, 139.69), (35.45, 139.64)),
        *((35.66, 138.57), (34.98, 138.38), (36.65, 138.18), (35.18, 136.91), (35.39, 136.72)),
        *((36.70, 137.21), (36.59, 136.63), (36.07, 136.22), (35.00, 135.87), (34.73, 136.51)),
        *((35.02, 135.76), (34.69, 135.52), (34.69, 135.83), (34.23, 135.17), (34.69, 135.18)),
        *((34.66, 133.93), (34.40, 132.46), (35.50, 134.24), (35.47, 133.05), (34.19, 131.47)),
        *((33.84, 132.77), (34.34, 134.04), (34.07, 134.56), (33.56, 133.53), (33.61, 130.42)),
        *((32.74, 129.87), (33.25, 130.30), (32.79, 130.74), (31.56, 130.56), (31.91, 131.42)),
        *((33.24, 131.61), (26.21, 127.68), (37.87, -122.27)),
    ]
)


def read_sushi_pairs(dataset: Dataset, paths: list[Path], options: Options) -> ComparisonData:
    """Read five pairs per user: repeatedly the two lowest-scored of the remaining items.

    Of items with equal scores the lower number comes first. The counts of the paper, 17,832 ties and 7,168
    differences, follow from pairing neighbours in the order of the scores, and hold as well where the scores
    are reversed (in the edition before 2016, 0 was the best); which items are paired, and which is better,
    does not. Here 4 is the best, and the better item is the one with the higher score.

    Seven features describe the sushi, seven the person. Those of the person are equal on both sides: they
    cancel in a linear model, and matter only to kernels.

    As published, the right item is never the worse one. Sides are drawn at random by `options.seed`; None
    leaves them as published. "rows" has the user and both scores.
    """
    from pyarrow import table

    scored = read_sushi_scores(dataset, paths, Options())
    low, high = _lowest_first(scored.y)
    turned = _draw_swaps(len(low), options.seed)
    left, right = np.where(turned, high, low), np.where(turned, low, high)
    score_left, score_right = (scored.y[rows].astype(np.int64) for rows in (left, right))
    item = np.asarray(scored.docid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutcomeWarning)  # as published: ties, and wins of the right
        comparisons = Comparisons(item[left], item[right], np.sign(score_right - score_left))
    features = _sushi_features(scored.X)
    rows = {"user": scored.qid[left], "score_left": score_left, "score_right": score_right}
    pairs = np.stack((features[left], features[right]), axis=1)
    return ComparisonData(comparisons, pairs, FEATURES, {"rows": table(rows)})


def _lowest_first(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows of both items of each pair, users in order; the lower-scored, or the earlier, first."""
    by_user = scores.reshape(-1, N_SCORED)
    order = np.argsort(by_user, axis=1, kind="stable")
    rows = (order + N_SCORED * np.arange(len(by_user))[:, None]).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _draw_swaps(n_pairs: int, seed: int | None) -> BoolArray:
    turned: BoolArray = np.random.default_rng(seed).random(n_pairs) < 0.5
    return turned & (seed is not None)


def _sushi_features(X: FloatArray) -> FloatArray:
    """Select the 14 columns of the paper: those of the sushi, and of the person with homes as coordinates."""
    homes = [PREFECTURES[X[:, column].astype(np.int64)] for column in HOMES]
    return np.concatenate((X[:, SUSHI], X[:, PERSON], *homes), axis=1)


def read_table(text: str) -> tuple[Dataset, ...]:
    """Read the table of datasets; readers are functions of this module."""
    content = tomllib.loads(text)

    def entry(row: dict[str, Any]) -> Dataset:
        layouts = tuple({split: tuple(files) for split, files in layout.items()} for layout in row["layouts"])
        checksums = content["checksums"][row["checksums"]] if "checksums" in row else {}
        reader = globals()[row.pop("reader")]
        row |= {"folders": tuple(row["folders"]), "layouts": layouts, "checksums": checksums}
        return Dataset(**row, read=reader)

    return tuple(map(entry, content["dataset"]))


DATASETS = read_table(Path(__file__).with_name("datasets.toml").read_text("utf-8"))
