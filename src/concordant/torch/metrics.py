"""Metrics on the device: the values of `concordant.metric`, without a trip to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.exceptions import ConcordantError, EmptyDataError, LabelError, ParameterError, ShapeError
from concordant.metrics.additive import Additive
from concordant.metrics.cascade import AP, Cascade
from concordant.metrics.convention import Convention
from concordant.metrics.graded import GradedMetric
from concordant.metrics.metric import Metric, check_weights
from concordant.metrics.pairwise import Discordance
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.supervision.columns import check_scores
from concordant.supervision.labels import Grades, Permutations, Preferences
from concordant.torch.inputs import Given, as_numbers, read
from concordant.torch.lists import Lists
from concordant.torch.metric_pairs import discordance
from concordant.torch.metric_ranking import Ranking, ranking
from concordant.torch.metric_values import Measured, average_precision, cascade, places, sums_of_gains
from concordant.torch.ops import lists_of

__all__ = ["DeviceMetric", "metric"]


def metric(
    spec: str | Metric, *, convention: str | Convention | None = None, validate: bool = True
) -> DeviceMetric:
    """Read a metric of grades from its name, to be evaluated where the tensors are.

    Parameters
    ----------
    spec
        As for `concordant.metric`: dcg, ndcg, p, wta, ap, rr, err, eru, auc, pd or wpd, with its cutoff.
    convention
        A preset, changed fields, or a `Convention`.
    validate
        Refuse NaN scores, bad grades and bad weights. That reads a few numbers back from the device, once a
        call; without it such input gives a meaningless value.

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
    """A metric of `concordant.metrics`, evaluated where the tensors are; it has no parameters.

    Values are double precision whatever the scores are: a metric depends on their order alone. Time is
    O(n log n) and memory O(n), but for ERR with ties in expectation, where a tied block of b rows takes b
    steps one after the other. No gradient passes.

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
            known = ", ".join(
                sorted(name for name, kind in METRICS.items() if issubclass(kind, GradedMetric))
            )
            raise ParameterError("metric", str(metric), f"a metric of grades: {known}")
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
        """Mean over the queries on which the metric is defined, as a tensor of no dimension.

        Parameters
        ----------
        scores
            High is better; minus infinity marks a row that is not in the ranking. One row after the other
            with `offsets` (query q owns rows `offsets[q]:offsets[q + 1]`; None: all are one query), padded
            to (queries, places) with a `mask` of the rows that exist, or a nested tensor.
        y
            Grades, in the same layout.
        offsets
            Offsets, or `Lists`, which need not be checked again.
        mask
            True where a padded row exists.
        query_weight
            One weight >= 0 per query; the mean divides by their sum over the queries that count.
        docid
            Whole numbers in the same layout, for the tie rule `id_descending`; default: the row.
        """
        values, weights = self.measured(scores, y, offsets, mask, query_weight, docid)
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
        """One value per query; NaN where the convention skips the query. Parameters as for the mean."""
        return self.measured(scores, y, offsets, mask, None, docid)[0]

    @torch.no_grad()
    def measured(
        self,
        scores: Tensor,
        y: Tensor,
        offsets: Any,
        mask: Tensor | None,
        query_weight: Tensor | None,
        docid: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Values of the queries, and the weights, checked."""
        if isinstance(y, (Preferences, Permutations)):
            raise LabelError(f"on the device {self.metric} reads grades", "pass a tensor of grades.")
        flat, grades, lists = flattened(read(scores, y, offsets, mask))
        ids = None if docid is None else flattened(read_ids(scores, docid, offsets, mask))[1]
        if lists.n_rows == 0:
            raise EmptyDataError("y")
        grades = grades.double()
        flat = flat if flat.is_floating_point() else flat.double()
        weights = query_weight
        if weights is not None:
            weights = as_numbers(weights, "query_weight", flat.device, torch.float64)
        if self.validate:
            refuse_bad(self.metric, flat, grades, weights, lists)
        if callable(self.metric.convention.gain):
            usable = self.metric.usable(Grades.passing(grades.cpu().numpy()))
            grades = torch.as_tensor(np.array(usable.values), device=grades.device)
        found = self.ranking(flat, grades, lists, ids)
        return self.fill(measure(self.metric, grades, found)), weights

    def ranking(self, scores: Tensor, grades: Tensor, lists: Lists, ids: Tensor | None) -> Ranking:
        """Order the rows by score, ties as the convention has them."""
        rule = self.metric.convention.ties
        if rule == "random":
            return ranking(scores, lists, broken=True, key=random_key(self.metric, scores, grades, lists))
        if rule in ("expected", "input"):
            return ranking(scores, lists, broken=rule == "input")
        if rule == "id_descending":
            key = -(torch.arange(lists.n_rows, device=scores.device) if ids is None else ids)
        else:
            key = grades if rule == "worst" else -grades
        return ranking(scores, lists, broken=True, key=key)

    def fill(self, found: Measured) -> Tensor:
        """Apply the convention's rule to the queries on which the metric is undefined."""
        rule = self.metric.empty_rule
        if isinstance(rule, str):
            return torch.where(found.defined, found.values, torch.nan)
        return torch.where(found.defined, found.values, rule) if self.metric.normalised else found.values

    def extra_repr(self) -> str:
        """Show the metric's text."""
        return repr(str(self.metric))


def measure(metric: GradedMetric, grades: Tensor, found: Ranking) -> Measured:
    """Value of each query of a ranking."""
    if isinstance(metric, Additive):
        return sums_of_gains(metric, grades, found)
    if isinstance(metric, AP):
        return average_precision(metric, grades, found)
    if isinstance(metric, Cascade):
        return cascade(metric, grades, found)
    if isinstance(metric, Discordance):
        return discordance(metric, grades, found)
    raise ParameterError("metric", str(metric), "a metric of the library")


def average(values: Tensor, weights: Tensor | None, *, skip: bool) -> Tensor:
    """Weighted mean; queries that are skipped (NaN) are left out. NaN where none is left."""
    shares = torch.ones_like(values) if weights is None else weights
    if skip:
        left_out = values.isnan()
        values, shares = values.masked_fill(left_out, 0.0), shares.masked_fill(left_out, 0.0)
    shares = shares / shares.max()  # so that neither huge nor tiny weights leave the range of doubles
    return (shares * values).sum() / shares.sum()


def read_ids(scores: Tensor, docid: Tensor, offsets: Any, mask: Tensor | None) -> Given:
    """Document ids, which stand as the scores do."""
    if not getattr(docid, "is_nested", False):
        docid = as_numbers(docid, "docid", scores.device)
    if docid.is_floating_point() or docid.is_complex():
        raise ParameterError("docid", docid.dtype, "whole numbers")
    if not scores.is_nested and docid.shape != scores.shape:
        raise ShapeError("docid", tuple(docid.shape), f"{tuple(scores.shape)}, as scores has")
    return read(scores, docid.to(torch.int64), offsets, mask)  # of unsigned ones none is negative


def random_key(metric: GradedMetric, scores: Tensor, grades: Tensor, lists: Lists) -> Tensor:
    """The numbers by which `concordant.metric` breaks ties at random: it draws for the tied queries alone."""
    found = ranking(scores, lists)
    pairs, uncut = isinstance(metric, Discordance), metric.convention.ap_denominator == "uncut"
    k = places(None if pairs or (uncut and isinstance(metric, AP)) else metric.k, lists)
    tied = found.tied(k, listed_only=not pairs)
    if isinstance(metric, (AP, Cascade)):
        tied = tied & measure(metric, grades, found).defined
    drawn = lists.spread(tied)
    numbers = np.random.default_rng(metric.convention.seed).random(int(drawn.sum()))
    key = torch.zeros_like(grades)
    key[drawn] = torch.from_numpy(numbers).to(grades.device)
    return key


def refuse_bad(
    metric: GradedMetric, scores: Tensor, grades: Tensor, weights: Tensor | None, lists: Lists
) -> None:
    """Raise the error that `concordant.metric` raises on such input; one small read from the device."""
    parts = [scores.max().double(), grades.min(), grades.max()]  # NaN if there is one
    if weights is not None:
        if weights.shape != (lists.n_queries,):
            check_weights(weights.cpu().numpy(), lists.n_queries)
        parts += [weights.min(), weights.max()]
    top, lowest, highest, *bounds = torch.stack(parts).tolist()
    if not (top < np.inf and lowest >= 0 and usable(metric, highest)):
        labels = Grades.passing(grades.cpu().numpy())
        check_scores(scores.double().cpu().numpy(), len(labels))
        metric.usable(labels)
    if weights is not None and not (bounds[0] >= 0 and 0 < bounds[1] < np.inf):
        check_weights(weights.cpu().numpy(), lists.n_queries)


def usable(metric: GradedMetric, highest: float) -> bool:
    """Whether the metric can use grades up to this one."""
    try:
        metric.usable(Grades.passing([highest]))
    except ConcordantError:
        return False
    return True


def flattened(given: Given) -> tuple[Tensor, Tensor, Lists]:
    """Scores and labels one after the other, without the rows that a mask leaves out; and their lists."""
    scores, labels = given.scores.reshape(-1), given.labels.reshape(-1)
    if given.mask is None:
        return scores, labels, lists_of(given.scores, given.offsets, None, given.longest)[0]
    rows = given.mask.flatten().nonzero().flatten()
    return scores[rows], labels[rows], Lists.from_sizes(given.mask.sum(1))
