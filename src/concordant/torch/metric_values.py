"""Values of the metrics of places: sums of gain times discount, average precision, the cascade user."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from concordant.metrics.additive import NDCG, Additive, Precision
from concordant.metrics.cascade import AP, RR, Cascade
from concordant.metrics.gains import ABOVE, BINARY, EXP2
from concordant.torch.lists import Lists
from concordant.torch.metric_blocks import cascade_blocks
from concordant.torch.metric_ranking import Ranking, counted, running_product
from concordant.torch.sweep import ranked

__all__ = ["Measured", "average_precision", "cascade", "gains", "places", "sums_of_gains"]


class Measured(NamedTuple):
    """The value of each query, and whether it is defined there."""

    values: Tensor
    defined: Tensor


def gains(kind: int, parameter: float, grades: Tensor) -> Tensor:
    """Gain of each grade, as `metrics.gains`."""
    if kind == BINARY:
        return (grades >= parameter).double()
    if kind == ABOVE:
        return (grades - parameter).clamp(min=0.0)
    return grades.exp2() - 1.0 if kind == EXP2 else grades


def places(k: int | None, lists: Lists) -> int:
    """Number of places that can count: k, or the longest list."""
    longest = max(lists.longest, 1)
    return longest if k is None else min(k, longest)


def discount_tables(metric: Additive, k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Discounts of the first k places, and their sums; kept, since copying them makes the device wait."""
    try:
        return kept_tables(metric, k, device)
    except TypeError:  # a caller's gain or discount that has no hash
        return tables(metric, k, device)


def tables(metric: Additive, k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Make them."""
    discounts = metric.discounts(k)
    sums = np.r_[0.0, discounts.cumsum()]
    return torch.from_numpy(discounts).to(device), torch.from_numpy(sums).to(device)


kept_tables = lru_cache(maxsize=32)(tables)


def sums_of_gains(metric: Additive, grades: Tensor, found: Ranking) -> Measured:
    """DCG, NDCG, precision, ERU: a block of ties shares its mean discount."""
    lists, gain = found.lists, gains(*metric.gain(), grades)
    k = places(metric.k, lists)
    discounts, cumulated = discount_tables(metric, k, grades.device)
    start, end = found.start.clamp(max=k), (found.start + found.size).clamp(max=k)
    mean = (cumulated[end] - cumulated[start]) / found.size
    share = torch.where(found.size == 1, discounts[start.clamp(max=k - 1)], mean)
    within = found.listed & (found.start < k)
    values = lists.sums(torch.where(within, gain[found.order] * share, 0.0))
    if not isinstance(metric, NDCG):
        return Measured(values / divisors(metric, lists), lists.sums((gain > 0).double()) > 0)
    place = found.place.clamp(max=k - 1)
    best = lists.sums(torch.where(found.place < k, gain[ranked(gain, lists)] * discounts[place], 0.0))
    values = torch.where(best > 0, values / best, 0.0)
    if metric.convention.short_list == "zero" and metric.k is not None:
        values = values.masked_fill(lists.sizes < metric.k, 0.0)
    return Measured(values, best > 0)


def divisors(metric: Additive, lists: Lists) -> Tensor | float:
    """What precision divides by; 1 for other metrics."""
    if not isinstance(metric, Precision):
        return 1.0
    most = float(metric.k or 1)
    short = metric.convention.precision_denominator == "min"
    return lists.sizes.double().clamp(1.0, most) if short else most


def average_precision(metric: AP, grades: Tensor, found: Ranking) -> Measured:
    """Expected precision at the relevant items (McSherry and Najork 2008), over the convention's divisor."""
    lists, rule = found.lists, metric.convention.ap_denominator
    relevant = grades >= metric.convention.relevant_from
    total = lists.sums(relevant.double())
    k = places(None if rule == "uncut" else metric.k, lists)
    before = counted(relevant[found.order])
    block = (before[found.last] - before[found.first]).double()  # relevant rows of the block
    above = (before[found.first] - before[lists.starts]).double()
    inside, size = (found.place - found.start).double(), found.size.double()
    others = inside * (block - 1.0) / (size - 1.0).clamp(min=1.0)
    terms = block / size * (above + 1.0 + others) / found.rank
    terms = torch.where(found.listed & (found.place < k), terms, 0.0)
    if rule == "found":
        return Measured(per_found(terms, block, above, found, k), total > 0)
    divisor = total.clamp(max=float(k)) if rule == "min" else total
    return Measured(lists.sums(terms) / divisor.clamp(min=1.0), total > 0)


def per_found(terms: Tensor, block: Tensor, above: Tensor, found: Ranking, k: int) -> Tensor:
    """Expected quotient of the precision sum and the number of relevant items found in the first k places.

    Only the block at the cut is open: of its relevant items a hypergeometric number falls into the slots
    left, and given that number their places are uniform. Row i of the block stands for i + 1 of them.
    """
    lists, size = found.lists, found.size.double()
    cut = lists.spread(lists.sums(found.listed.double()).clamp(max=float(k)))
    final = found.listed & (found.start < cut) & (found.start + size >= cut)
    slots, inside = cut - found.start, (found.place - found.start).double()
    open_rows = final & (inside < slots)
    harmonic = torch.where(open_rows, 1.0 / found.rank, 0.0)
    plain, rising = lists.spread(lists.sums(harmonic)), lists.spread(lists.sums(harmonic * inside))
    earlier = lists.spread(lists.sums(terms.masked_fill(final, 0.0)))

    def share(number: Tensor) -> Tensor:
        """Chance of finding this many in the slots, times the quotient."""
        possible = open_rows & (number <= block) & (slots - number <= size - block) & (number <= slots)
        chance = log_choose(block, number) + log_choose(size - block, slots - number)
        each = (above + 1.0) * plain + (number - 1.0) / (slots - 1.0).clamp(min=1.0) * rising
        quotient = (earlier + number / slots * each) / (above + number)
        return torch.where(
            possible & (above + number > 0), (chance - log_choose(size, slots)).exp() * quotient, 0.0
        )

    return lists.sums(share(inside + 1.0) + torch.where(inside == 0, share(torch.zeros_like(inside)), 0.0))


def log_choose(n: Tensor, k: Tensor) -> Tensor:
    """Logarithm of the binomial coefficient."""
    return torch.lgamma(n + 1.0) - torch.lgamma(k + 1.0) - torch.lgamma(n - k + 1.0)


def cascade(metric: Cascade, grades: Tensor, found: Ranking) -> Measured:
    """RR and ERR: mean of 1/place over where the user stops."""
    lists, k = found.lists, places(metric.k, found.lists)
    stop = stopping(metric, grades)
    ordered = stop[found.order].masked_fill(~found.listed, 0.0)
    reach = running_product(1.0 - ordered, lists.starts, lists.longest)[found.first]
    if isinstance(metric, RR):
        at_place = first_of_block(ordered, found)
    elif found.broken:
        at_place = ordered
    else:
        at_place = torch.where(found.size == 1, ordered, cascade_blocks(ordered, found, k))
    terms = torch.where(found.listed & (found.place < k), reach * at_place / found.rank, 0.0)
    return Measured(lists.sums(terms), lists.sums((stop > 0).double()) > 0)


def stopping(metric: Cascade, grades: Tensor) -> Tensor:
    """Probability that the user stops at each row."""
    kind, parameter, scale = metric.stopping(0.0)
    gain = gains(kind, parameter, grades)
    if kind == EXP2 and metric.convention.max_grade == "data":
        return gain * (-grades.max()).exp2()
    return gain * scale


def first_of_block(relevant: Tensor, found: Ranking) -> Tensor:
    """Probability that the first relevant row of a tied block stands at this row's place."""
    before = counted(relevant > 0)
    number = (before[found.last] - before[found.first]).double()
    left = (found.last - found.rows).double()  # rows of the block not yet seen
    none_before = running_product((1.0 - number / left).clamp(min=0.0), found.first, found.lists.longest)
    return none_before * (number / left).clamp(max=1.0)
