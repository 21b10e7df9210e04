"""Metrics on the device: the values of `concordant.metric`, without a transfer to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant._base.validate import check_scores, list_words
from concordant.data.labels import Grades, Permutations, Preferences
from concordant.exceptions import ConcordantError, EmptyDataError, LabelError, ParameterError, ShapeError
from concordant.metrics.additive import Additive
from concordant.metrics.cascade import AP, Cascade
from concordant.metrics.convention import Convention
from concordant.metrics.graded import GradedMetric
from concordant.metrics.metric import Metric, check_weights
from concordant.metrics.pair_metrics import Discordance
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.torch.layouts import ScoredLists, as_numbers, read_layout
from concordant.torch.lists import Lists
from concordant.torch.metric_values import (
    QueryValues,
    RankedLists,
    additive_values,
    average_precision,
    cascade,
    discordance,
    n_positions,
    rank_lists,
)
from concordant.torch.ops import lists_on_mask, resolve_lists


def metric(
    spec: str | Metric, *, convention: str | Convention | None = None, validate: bool = True
) -> DeviceMetric:
    """Read a metric of grades from its name, for evaluation on the tensors' device.

    Parameters
    ----------
    spec
        As for `concordant.metric`: dcg, ndcg, p, wta, ap, rr, err, eru, auc, pd or wpd, with its cutoff.
    convention
        A preset, changed fields, or a `Convention`.
    validate
        Raise on NaN scores, bad grades and bad weights. That reads a few numbers back from the device, once
        per call; without it such input gives a meaningless value.

    Examples
    --------
    >>> ndcg = metric("ndcg@3")
    >>> ndcg(torch.tensor([0.1, 0.9, 0.5, 0.5, 0.2]), torch.tensor([3, 0, 1, 2, 0]))
    tensor(0.2408, dtype=torch.float64)
    >>> scores, y = torch.tensor([[0.3, 0.1], [0.2, 0.4]]), torch.tensor([[0, 2], [0, 0]])
    >>> ndcg.per_query(scores, y)  # a query without a relevant item is skipped
    tensor([0.6309,    nan], dtype=torch.float64)
    """
    return DeviceMetric(read_metric(spec, convention=convention), validate=validate)


class DeviceMetric(nn.Module):
    """Metric of `concordant.metrics`, evaluated on the tensors' device; it has no parameters.

    Values are in double precision whatever the type of the scores: a metric depends only on their order. Time
    is O(n log n) and memory O(n), except for ERR with ties in expectation, where a tied block of b rows takes
    b sequential steps. Not differentiable.

    Parameters
    ----------
    metric
        A metric of grades.
    validate
        See `concordant.torch.metric`.
    """

    def __init__(self, metric: Metric, *, validate: bool = True) -> None:
        super().__init__()
        if not isinstance(metric, GradedMetric):
            names = sorted(name for name, kind in METRICS.items() if issubclass(kind, GradedMetric))
            raise ParameterError("metric", str(metric), f"{list_words(names)}")
        self.metric, self.validate = metric, validate

    def forward(
        self,
        scores: Tensor,
        y: Tensor,
        *,
        offsets: Any = None,
        mask: Tensor | None = None,
        query_weight: Tensor | None = None,
        docid: Tensor | None = None,
    ) -> Tensor:
        """Mean over the queries on which the metric is defined, as a 0-dimensional tensor.

        Parameters
        ----------
        scores
            Higher is better; minus infinity marks a row that is not in the ranking. Flat with `offsets`
            (query q owns rows `offsets[q]:offsets[q + 1]`; None: all rows are a single query), padded to
            (queries, rows) with a `mask` of the rows that exist, or a nested tensor.
        y
            Grades, in the same layout.
        offsets
            Offsets, or `Lists`, which skip the checks.
        mask
            True where a padded row exists.
        query_weight
            One weight >= 0 per query; the mean is divided by the sum over the queries that count.
        docid
            Whole numbers in the same layout, for the tie rule `id_descending`; default: the row number.
        """
        values, weights = self.measure_queries(scores, y, offsets, mask, query_weight, docid)
        return average(values, weights, skip=self.metric.empty_rule == "skip")

    def per_query(
        self,
        scores: Tensor,
        y: Tensor,
        *,
        offsets: Any = None,
        mask: Tensor | None = None,
        docid: Tensor | None = None,
    ) -> Tensor:
        """Return one value per query; NaN if the convention skips it. Parameters as for the mean."""
        return self.measure_queries(scores, y, offsets, mask, None, docid)[0]

    @torch.no_grad()
    def measure_queries(
        self,
        scores: Tensor,
        y: Tensor,
        offsets: Any,
        mask: Tensor | None,
        query_weight: Tensor | None,
        docid: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Check the input; return the values of the queries, and the weights."""
        if isinstance(y, (Preferences, Permutations)):
            raise LabelError(f"on the device {self.metric} reads grades", "pass a tensor of grades.")
        flat, grades, lists = _flatten(read_layout(scores, y, offsets, mask))
        ids = None if docid is None else _flatten(_read_ids(scores, docid, offsets, mask))[1]
        if lists.n_rows == 0:
            raise EmptyDataError("y")
        grades = grades.double()
        flat = flat if flat.is_floating_point() else flat.double()
        weights = query_weight
        if weights is not None:
            weights = as_numbers(weights, "query_weight", flat.device, torch.float64)
        if self.validate:
            _refuse_bad(self.metric, flat, grades, weights, lists)
        if callable(self.metric.convention.gain):
            usable = self.metric.usable(Grades.passing(grades.cpu().numpy()))
            grades = torch.as_tensor(np.array(usable.values), device=grades.device)
        ranking = self.ranking(flat, grades, lists, ids)
        return self.fill_undefined(measure(self.metric, grades, ranking)), weights

    def ranking(self, scores: Tensor, grades: Tensor, lists: Lists, ids: Tensor | None) -> RankedLists:
        """Rank the rows by score, with ties according to the convention."""
        rule = self.metric.convention.ties
        if rule == "random":
            return rank_lists(scores, lists, broken=True, key=_random_key(self.metric, scores, grades, lists))
        if rule in ("expected", "input"):
            return rank_lists(scores, lists, broken=rule == "input")
        if rule == "id_descending":
            key = -(torch.arange(lists.n_rows, device=scores.device) if ids is None else ids)
        else:
            key = grades if rule == "worst" else -grades
        return rank_lists(scores, lists, broken=True, key=key)

    def fill_undefined(self, measured: QueryValues) -> Tensor:
        """Apply the convention's rule to queries on which the metric is undefined."""
        rule = self.metric.empty_rule
        if isinstance(rule, str):
            return torch.where(measured.defined, measured.values, torch.nan)
        return (
            torch.where(measured.defined, measured.values, rule)
            if self.metric.normalised
            else measured.values
        )

    def extra_repr(self) -> str:
        """Describe the metric."""
        return repr(str(self.metric))


def measure(metric: GradedMetric, grades: Tensor, ranking: RankedLists) -> QueryValues:
    """Return the value of each query of a ranking."""
    if isinstance(metric, Additive):
        return additive_values(metric, grades, ranking)
    if isinstance(metric, AP):
        return average_precision(metric, grades, ranking)
    if isinstance(metric, Cascade):
        return cascade(metric, grades, ranking)
    if isinstance(metric, Discordance):
        return discordance(metric, grades, ranking)
    raise ParameterError("metric", str(metric), "a built-in metric")


def average(values: Tensor, weights: Tensor | None, *, skip: bool) -> Tensor:
    """Return the weighted mean without skipped (NaN) queries; NaN if all are skipped."""
    shares = torch.ones_like(values) if weights is None else weights
    if skip:
        left_out = values.isnan()
        values, shares = values.masked_fill(left_out, 0.0), shares.masked_fill(left_out, 0.0)
    shares = shares / shares.max()  # so that neither huge nor tiny weights leave the range of doubles
    return (shares * values).sum() / shares.sum()


def _read_ids(scores: Tensor, docid: Tensor, offsets: Any, mask: Tensor | None) -> ScoredLists:
    if not getattr(docid, "is_nested", False):
        docid = as_numbers(docid, "docid", scores.device)
    if docid.is_floating_point() or docid.is_complex():
        raise ParameterError.because(f"docid must be a tensor of integers, got {docid.dtype}.")
    if not scores.is_nested and docid.shape != scores.shape:
        raise ShapeError("docid", tuple(docid.shape), f"{tuple(scores.shape)}, as scores has")
    return read_layout(scores, docid.to(torch.int64), offsets, mask)  # no unsigned id is negative


def _random_key(metric: GradedMetric, scores: Tensor, grades: Tensor, lists: Lists) -> Tensor:
    """Draw the numbers by which `concordant.metric` breaks ties at random, for tied queries only."""
    ranking = rank_lists(scores, lists)
    pairs, uncut = isinstance(metric, Discordance), metric.convention.ap_denominator == "uncut"
    k = n_positions(None if pairs or (uncut and isinstance(metric, AP)) else metric.k, lists)
    tied = ranking.has_ties(k, listed_only=not pairs)
    if isinstance(metric, (AP, Cascade)):
        tied = tied & measure(metric, grades, ranking).defined
    drawn = lists.spread(tied)
    numbers = np.random.default_rng(metric.convention.seed).random(int(drawn.sum()))
    key = torch.zeros_like(grades)
    key[drawn] = torch.from_numpy(numbers).to(grades.device)
    return key


def _refuse_bad(
    metric: GradedMetric, scores: Tensor, grades: Tensor, weights: Tensor | None, lists: Lists
) -> None:
    """Raise the errors of `concordant.metric` for such input, with a single small read from the device."""
    parts = [scores.max().double(), grades.min(), grades.max()]  # NaN if there is one
    if weights is not None:
        if weights.shape != (lists.n_queries,):
            check_weights(weights.cpu().numpy(), lists.n_queries)
        parts += [weights.min(), weights.max()]
    top, lowest, highest, *bounds = torch.stack(parts).tolist()
    if not (top < np.inf and lowest >= 0 and _usable(metric, highest)):
        labels = Grades.passing(grades.cpu().numpy())
        check_scores(scores.double().cpu().numpy(), len(labels))
        metric.usable(labels)
    if weights is not None and not (bounds[0] >= 0 and 0 < bounds[1] < np.inf):
        check_weights(weights.cpu().numpy(), lists.n_queries)


def _usable(metric: GradedMetric, highest: float) -> bool:
    """True if the metric can use grades up to this one."""
    try:
        metric.usable(Grades.passing([highest]))
    except ConcordantError:
        return False
    return True


def _flatten(batch: ScoredLists) -> tuple[Tensor, Tensor, Lists]:
    """Flatten scores and labels, without masked rows, and return their lists."""
    scores, labels = batch.scores.reshape(-1), batch.labels.reshape(-1)
    if batch.mask is None:
        return scores, labels, resolve_lists(batch.scores, batch.offsets, None, batch.longest)[0]
    lists, rows = lists_on_mask(batch.mask)
    return scores[rows], labels[rows], lists
