"""Methods of `pairs`: linear rankers and pair rankers, along penalties, and decoded in several ways."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant import LinearRanker, MaxMarginRanker, PairRanker, Queries, RankingData, datasets
from concordant._internals import PairSums, n_threads
from concordant.decoders import Decoded, average_precision, feedback_arc
from concordant.exceptions import EmptyDataError
from concordant.metrics import Metric
from concordant.surrogates import ListwiseHinge, Surrogate
from concordant.types import FloatArray
from studies.ramaswamy.pairs.results import FoldPoint
from studies.shared.linear_paths import TOLERANCE, PartScores, fit_along, score_part

WIDTH = 50  # of the beam on validation queries: some seconds less a penalty, and hardly another MAP
TIME_LIMIT = 20.0  # seconds for the proof of one order of pd; none takes that long unless the machine is busy
GAP = 1e-6  # at which max-margin fits end, as a share of the objective at weights 0
SAME_FIT = " of the same fit"  # added to the name of a decoder at a penalty that another one chose


@dataclass(frozen=True)
class LinearItems:
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

    def points(
        self, metric: Metric, number: int, fold: datasets.Fold, alphas: FloatArray
    ) -> Iterator[FoldPoint]:
        """Fit along the penalties, and test at the best."""
        fold = _add_squares(fold) if self.squares else fold
        started = time.perf_counter()
        models = fit_along(self.ranker(metric), fold.train, Queries.from_ids(fold.train.qid), alphas)
        coefs = np.stack([model.coef_ for model in models])
        seconds = time.perf_counter() - started
        validation = score_part(fold.validation, coefs)
        best = _best_penalty(validation, metric)
        tested = _measure(metric, score_part(fold.test, coefs[[best]]))
        yield FoldPoint(
            metric.name, self.name, number, *_penalty_facts(validation, metric, best, alphas), tested, seconds
        )

    def ranker(self, metric: Metric) -> LinearRanker:
        """Return the ranker; its penalty sees features divided by their spread within queries."""
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

    def points(
        self, metric: Metric, number: int, fold: datasets.Fold, alphas: FloatArray
    ) -> Iterator[FoldPoint]:
        """Fit along the penalties; test each decoder at its own best one, then at that of the first."""
        started = time.perf_counter()
        models = fits(Summed(metric, features=self.features), fold.train, alphas)
        seconds = time.perf_counter() - started
        validation = self.order_validation(models, fold.validation)
        best = {decoder: _best_penalty(part_scores, metric) for decoder, part_scores in validation.items()}
        first, *others = self.decoders
        same = [(decoder, best[first], SAME_FIT) for decoder in others]
        for decoder, number_of, more in [
            *((name_of_decoder, best[name_of_decoder], "") for name_of_decoder in self.decoders),
            *same,
        ]:
            orders = _decode(_pair_scores(models[number_of], fold.test), decoder, metric)
            tested = _measure(metric, _order_scores(fold.test, [orders]))
            name, where = (
                self.name + self.decoders[decoder] + more,
                _penalty_facts(validation[decoder], metric, number_of, alphas),
            )
            point = FoldPoint(metric.name, name, number, *where, tested, seconds)
            yield replace(point, decoded=tuple(orders), has_own_penalty=not more)

    def order_validation(
        self, models: Sequence[PairRanker], data: RankingData | None
    ) -> dict[str, PartScores]:
        """Order the validation queries at each penalty, by each decoder."""
        if data is None:
            raise EmptyDataError("the validation part")
        orders: dict[str, list[list[Decoded]]] = {decoder: [] for decoder in self.decoders}
        for model in models:
            matrices = _pair_scores(model, data)
            for decoder, decoded_orders in orders.items():
                decoded_orders.append(_decode(matrices, decoder, model.metric, width=WIDTH))
        return {decoder: _order_scores(data, decoded_orders) for decoder, decoded_orders in orders.items()}


class Summed(PairRanker):
    """Pair ranker for several penalties on the same data: pairs are added up in the first fit only."""

    sums_: PairSums

    def sum_pairs(self, *arguments: Any) -> PairSums:
        """Sum the pairs, or return the sums of the first fit."""
        if not hasattr(self, "sums_"):
            self.sums_ = super().sum_pairs(*arguments)
        return self.sums_


def fits(model: Summed, train: RankingData, alphas: FloatArray) -> list[PairRanker]:
    """Fit at each penalty."""
    queries = Queries.from_ids(train.qid)
    return [
        copy.copy(model.set_params(alpha=float(alpha)).fit(train.X, train.y, qid=queries)) for alpha in alphas
    ]


def _pair_scores(model: PairRanker, data: RankingData) -> list[FloatArray]:
    """Pair scores of each query, ascending ids."""
    return model.predict_pairs(data.X, qid=data.qid)


def _decode(
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

    def order_query(u: FloatArray) -> Decoded:
        if metric.name == "ap":
            return average_precision(u, method=decoder, width=width)
        return feedback_arc(np.maximum(u, 0.0), method=decoder, time_limit=TIME_LIMIT)

    pool = ThreadPoolExecutor(n_threads())
    try:
        return list(pool.map(order_query, matrices))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the queries that are left


def _order_scores(data: RankingData, orders: Sequence[Sequence[Decoded]]) -> PartScores:
    """Scores that sort the queries as decoded, one row per element of `orders`."""
    queries = Queries.from_ids(data.qid)
    places = [queries.scatter(np.concatenate([order.positions for order in decoded])) for decoded in orders]
    return PartScores(queries, data.y, -np.stack(places).astype(np.float64))


def _best_penalty(part: PartScores, metric: Metric) -> int:
    """Number of the best penalty, the first of equals."""
    means = np.array([float(metric(part.y, scores, qid=part.queries)) for scores in part.scores])
    return int(np.argmax(np.nan_to_num(means if metric.greater_is_better else -means, nan=-np.inf)))


def _penalty_facts(
    part: PartScores, metric: Metric, best: int, alphas: FloatArray
) -> tuple[float, bool, float]:
    """Penalty, whether it is at an end of the grid, and the mean over the validation queries."""
    mean = float(metric(part.y, part.scores[best], qid=part.queries))
    return float(alphas[best]), best in (0, len(alphas) - 1), mean


def _measure(metric: Metric, tested: PartScores) -> dict[str, FloatArray]:
    """Columns of a table: value on each test query."""
    values = tested.per_query(metric, 0)
    if metric.name == "ap":
        return {"map": values}
    pairs = metric.per_query(tested.y, -tested.y, qid=tested.queries)  # upside down, every pair is wrong
    return {"pd": values, "share": values / pairs}


def _add_squares(fold: datasets.Fold) -> datasets.Fold:
    def wider(data: RankingData) -> RankingData:
        return replace(data, X=np.hstack((data.X, np.square(data.X))))

    return datasets.Fold(
        wider(fold.train), None if fold.validation is None else wider(fold.validation), wider(fold.test)
    )
