"""Methods of `pairs`: linear rankers and pair rankers, along penalties, and decoded in several ways."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._segments import n_threads
from concordant.decoders import Decoded, average_precision, feedback_arc
from concordant.evaluation.reproduction.linear_paths import TOLERANCE, Held, along, held_out
from concordant.evaluation.reproduction.pairs_points import Point
from concordant.exceptions import EmptyDataError
from concordant.metrics import Metric
from concordant.rankers import LinearRanker, MaxMarginRanker, PairRanker
from concordant.rankers.pair_sums import PairSums
from concordant.supervision.data import RankingData
from concordant.supervision.datasets import Fold
from concordant.supervision.queries import Queries
from concordant.surrogates import ListwiseHinge, Surrogate
from concordant.types import FloatArray

__all__ = ["SAME_FIT", "TIME_LIMIT", "WIDTH", "Linear", "Pairs", "Summed", "decode"]

WIDTH = 50  # of the beam on validation queries: some seconds less a penalty, and hardly another MAP
TIME_LIMIT = 20.0  # seconds for the proof of one order of pd; none takes that long unless the machine is busy
GAP = 1e-6  # at which max-margin fits end, as a share of the objective at weights 0
SAME_FIT = " of the same fit"  # added to the name of a decoder at a penalty that another one chose


@dataclass(frozen=True)
class Linear:
    """A linear ranker: items are sorted by one score each.

    Attributes
    ----------
    name
        How it is called in tables.
    surrogate
        The loss.
    squares
        Whether the squares of features are features too, as of the diagonal of pair scores.
    """

    name: str
    surrogate: Surrogate
    squares: bool = False

    def points(self, metric: Metric, number: int, fold: Fold, alphas: FloatArray) -> Iterator[Point]:
        """Fit along the penalties, and test at the best."""
        fold = with_squares(fold) if self.squares else fold
        started = time.perf_counter()
        models = along(self.ranker(metric), fold.train, Queries.from_ids(fold.train.qid), alphas)
        coefs = np.stack([model.coef_ for model in models])
        seconds = time.perf_counter() - started
        held = held_out(fold.validation, coefs)
        best = chosen(held, metric)
        tested = measured(metric, held_out(fold.test, coefs[[best]]))
        yield Point(metric.name, self.name, number, *at(held, metric, best, alphas), tested, seconds)

    def ranker(self, metric: Metric) -> LinearRanker:
        """Give the ranker; its penalty sees features divided by their spread within queries."""
        if isinstance(self.surrogate, ListwiseHinge):
            return MaxMarginRanker(metric, self.surrogate, tol=GAP)
        condition = "P_reinforce" if metric.name == "ap" else None
        return LinearRanker(metric, self.surrogate, assume=condition, tol=TOLERANCE)


@dataclass(frozen=True)
class Pairs:
    """A pair ranker, and ways to decode it.

    Attributes
    ----------
    name
        How it is called in tables.
    features
        Groups of pair features, or "auto".
    decoders
        Decoder -> what it adds to the name. The others also decode the fit that the first one chose.
    """

    name: str
    features: str | tuple[str, ...]
    decoders: Mapping[str, str]

    def points(self, metric: Metric, number: int, fold: Fold, alphas: FloatArray) -> Iterator[Point]:
        """Fit along the penalties; test each decoder at its own best one, then at that of the first."""
        started = time.perf_counter()
        models = fits(Summed(metric, features=self.features), fold.train, alphas)
        seconds = time.perf_counter() - started
        held = self.held(models, fold.validation)
        best = {decoder: chosen(own, metric) for decoder, own in held.items()}
        first, *others = self.decoders
        same = [(decoder, best[first], SAME_FIT) for decoder in others]
        for decoder, number_of, more in [*((one, best[one], "") for one in self.decoders), *same]:
            found = decode(pair_scores(models[number_of], fold.test), decoder, metric)
            tested = measured(metric, in_order(fold.test, [found]))
            name, where = (
                self.name + self.decoders[decoder] + more,
                at(held[decoder], metric, number_of, alphas),
            )
            told = Point(metric.name, name, number, *where, tested, seconds)
            yield replace(told, decoded=tuple(found), own=not more)

    def held(self, models: Sequence[PairRanker], data: RankingData | None) -> dict[str, Held]:
        """Order the validation queries at each penalty, by each decoder."""
        if data is None:
            raise EmptyDataError("the validation part")
        orders: dict[str, list[list[Decoded]]] = {decoder: [] for decoder in self.decoders}
        for model in models:
            matrices = pair_scores(model, data)
            for decoder, found in orders.items():
                found.append(decode(matrices, decoder, model.metric, width=WIDTH))
        return {decoder: in_order(data, found) for decoder, found in orders.items()}


class Summed(PairRanker):
    """Pair ranker for several penalties on the same data: pairs are added up in the first fit only."""

    sums_: PairSums

    def summed(self, *given: Any) -> PairSums:
        """Give the sums."""
        if not hasattr(self, "sums_"):
            self.sums_ = super().summed(*given)
        return self.sums_


def fits(model: Summed, train: RankingData, alphas: FloatArray) -> list[PairRanker]:
    """Fit at each penalty."""
    queries = Queries.from_ids(train.qid)
    return [
        copy.copy(model.set_params(alpha=float(alpha)).fit(train.X, train.y, qid=queries)) for alpha in alphas
    ]


def pair_scores(model: PairRanker, data: RankingData) -> list[FloatArray]:
    """Pair scores of each query, ascending ids."""
    return model.predict_pairs(data.X, qid=data.qid)


def decode(
    matrices: Sequence[FloatArray], decoder: str, metric: Metric, *, width: int | None = None
) -> list[Decoded]:
    """Order each query by its pair scores, some queries at a time.

    Parameters
    ----------
    matrices
        Pair scores of each query.
    decoder
        A method of the metric's decoder.
    metric
        "ap" or "pd".
    width
        Of the beam of "ap".
    """

    def one(u: FloatArray) -> Decoded:
        if metric.name == "ap":
            return average_precision(u, method=decoder, width=width)
        return feedback_arc(np.maximum(u, 0.0), method=decoder, time_limit=TIME_LIMIT)

    pool = ThreadPoolExecutor(n_threads())
    try:
        return list(pool.map(one, matrices))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the queries that are left


def in_order(data: RankingData, orders: Sequence[Sequence[Decoded]]) -> Held:
    """Give scores by which queries are sorted as decoded, one row an element of `orders`."""
    queries = Queries.from_ids(data.qid)
    places = [queries.scatter(np.concatenate([one.positions for one in found])) for found in orders]
    return Held(queries, data.y, -np.stack(places).astype(np.float64))


def chosen(held: Held, metric: Metric) -> int:
    """Give the number of the best penalty, the first of equals."""
    means = np.array([float(metric(held.y, scores, qid=held.queries)) for scores in held.scores])
    return int(np.argmax(np.nan_to_num(means if metric.greater_is_better else -means, nan=-np.inf)))


def at(held: Held, metric: Metric, best: int, alphas: FloatArray) -> tuple[float, bool, float]:
    """Give the penalty, whether it is at an end of the grid, and the mean over the validation queries."""
    mean = float(metric(held.y, held.scores[best], qid=held.queries))
    return float(alphas[best]), best in (0, len(alphas) - 1), mean


def measured(metric: Metric, tested: Held) -> dict[str, FloatArray]:
    """Give the columns of a table: value on each test query."""
    values = tested.per_query(metric, 0)
    if metric.name == "ap":
        return {"map": values}
    pairs = metric.per_query(tested.y, -tested.y, qid=tested.queries)  # upside down, every pair is wrong
    return {"pd": values, "share": values / pairs}


def with_squares(fold: Fold) -> Fold:
    """Give the fold with the squares of its features as further features."""

    def wider(data: RankingData) -> RankingData:
        return replace(data, X=np.hstack((data.X, np.square(data.X))))

    return Fold(
        wider(fold.train), None if fold.validation is None else wider(fold.validation), wider(fold.test)
    )
