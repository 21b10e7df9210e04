"""Values of graded metrics on the device: gains and discounts, average precision, cascade, pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from concordant.metrics.additive import NDCG, Additive, Precision
from concordant.metrics.cascade import AP, RR, Cascade
from concordant.metrics.convention import EXP2
from concordant.metrics.pair_metrics import AUC, Discordance
from concordant.torch.lists import Lists
from concordant.torch.targets import discount_tables, gains
from concordant.torch.torch_sweep import rank_levels, sort_rows

# The rows of each query in order of their scores, and the blocks of tied scores.


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Rows by decreasing score within each query, cut into blocks of tied rows.

    All fields but `order` describe sorted rows; each query's sorted rows occupy the same slots as its flat
    rows.

    Attributes
    ----------
    order
        Flat row of each sorted row.
    listed
        False for rows that are not in the ranking (score minus infinity), which come last.
    first, last
        The block of each row: its first sorted row, and the row after its last. If ties are broken, every row
        is a block.
    broken
        True if ties are broken.
    """

    lists: Lists
    order: Tensor
    listed: Tensor
    first: Tensor
    last: Tensor
    broken: bool

    @cached_property
    def rows(self) -> Tensor:
        """Indices of the sorted rows."""
        return torch.arange(self.lists.n_rows, device=self.order.device)

    @cached_property
    def position(self) -> Tensor:
        """Position of each row in its query, from 0."""
        return self.rows - self.lists.starts

    @cached_property
    def rank(self) -> Tensor:
        """Position from 1, in double precision."""
        return self.position.double() + 1.0

    @cached_property
    def start(self) -> Tensor:
        """Position at which the row's block starts."""
        return self.first - self.lists.starts

    @cached_property
    def size(self) -> Tensor:
        """Number of rows in the row's block."""
        return self.last - self.first

    def has_ties(self, k: int, *, listed_only: bool) -> Tensor:
        """True for queries in which the order of tied rows can affect the first k positions."""
        follows = (self.rows > self.first) & (self.position <= k)  # ties with the row before it
        return self.lists.sums((follows & self.listed if listed_only else follows).double()) > 0


def rank_lists(
    scores: Tensor, lists: Lists, *, broken: bool = False, key: Tensor | None = None
) -> RankedLists:
    """Sort the rows of each query by score, highest first; ties stay blocks unless `broken`.

    Broken ties are sorted by increasing key, equal keys (and ties without a key) by row.
    """
    scores = scores + 0.0  # maps minus zero to zero, with which it ties
    order = sort_rows(scores, lists) if key is None else _by_key(scores, lists, key)
    ordered = scores[order]
    rows = torch.arange(lists.n_rows, device=scores.device)
    if broken:
        first, last = rows, rows + 1
    else:
        first, last = _run_bounds((ordered != ordered.roll(1)) | (rows == lists.starts))
    return RankedLists(lists, order, ordered > -torch.inf, first, last, broken)


def _by_key(scores: Tensor, lists: Lists, key: Tensor) -> Tensor:
    """Sort rows by decreasing score, ties by increasing key."""
    before = sort_rows(-key, lists)
    return before[sort_rows(scores[before], lists)]


def _run_bounds(new: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first row of each row's run, and the row after its last; `new` marks the starts of runs.

    >>> _run_bounds(torch.tensor([True, False, True]))
    (tensor([0, 0, 2]), tensor([2, 2, 3]))
    """
    numbers, rows = new.cumsum(0), torch.arange(len(new), device=new.device)
    slots = torch.full((len(new) + 2,), len(new), device=new.device)
    slots.scatter_(0, torch.where(new, numbers, 0), rows)  # slot 0 takes the rows at which no run starts
    return slots[numbers], slots[numbers + 1]


def _prefix_counts(marks: Tensor) -> Tensor:
    """Count the marked rows among the first 0, 1, 2, ...: integers, so that differences are exact."""
    return torch.nn.functional.pad(marks.long().cumsum(0), (1, 0))


def _running_product(values: Tensor, first: Tensor, longest: int) -> Tensor:
    """Return the product of the values before each row, from the first row of its run on.

    By doubling: products stay within a run, so that neither a 0 nor rounding reaches the next run.

    >>> _running_product(torch.tensor([0.5, 0.5, 0.0, 3.0]), torch.tensor([0, 0, 0, 3]), 3).tolist()
    [1.0, 0.5, 0.25, 1.0]
    """
    rows = torch.arange(len(values), device=values.device)
    products = torch.where(rows > first, values.roll(1), 1.0)
    step = 1
    while step < longest:
        products = torch.where(rows - step >= first, products * products.roll(step), products)
        step *= 2
    return products


# The cascade user in blocks of tied rows: elementary symmetric means by dynamic programming.


def _cascade_blocks(stop: Tensor, ranking: RankedLists, k: int) -> Tensor:
    """Return the probability that a user who reached the block stops at this row's position in it.

    The mean is over the orders of the block; rows outside of tied blocks get 0. Blocks of similar size are
    processed together, so that padding at most doubles the memory. A block of b rows takes b steps, each
    linear in the number of positions that count.
    """
    chance = torch.zeros_like(stop)
    head = ranking.listed & (ranking.size > 1) & (ranking.first == ranking.rows) & (ranking.start < k)
    firsts = head.nonzero()[:, 0]
    sizes = ranking.size[firsts]
    classes = torch.frexp((sizes - 1).double()).exponent  # 2; 3, 4; 5 to 8; ...
    for level in torch.bincount(classes).nonzero().flatten().tolist():
        in_class = classes == level
        _fill_chances(chance, stop, firsts[in_class], sizes[in_class], 2**level, k)
    return chance


def _fill_chances(chance: Tensor, stop: Tensor, firsts: Tensor, sizes: Tensor, width: int, k: int) -> None:
    """Write the chances of blocks with at most `width` rows."""
    inside = torch.arange(width, device=stop.device)
    is_member = inside < sizes[:, None]
    rows = (firsts[:, None] + inside).clamp(max=len(stop) - 1)
    passing = 1.0 - stop[rows]
    depth = min(width, k)
    means = _passing_means(passing, sizes, depth)
    stops = torch.zeros_like(passing)
    stops[:, :depth] = means[:, :-1] - means[:, 1:]
    chance[rows[is_member]] = stops[is_member]


def _passing_means(passing: Tensor, sizes: Tensor, depth: int) -> Tensor:
    """Return the mean over j-subsets of each block of the product of `passing`, for j = 0 to depth.

    That is the probability of passing the first j rows of a random order. Rows are added in turn; every term
    is non-negative, so nothing cancels.

    >>> _passing_means(torch.tensor([[0.5, 0.0, 1.0]]), torch.tensor([2]), 2)
    tensor([[1.0000, 0.2500, 0.0000]])
    """
    numbers = torch.arange(depth + 1, device=passing.device, dtype=passing.dtype)
    means = torch.zeros(len(passing), depth + 1, device=passing.device, dtype=passing.dtype)
    means[:, 0] = 1.0
    for t in range(1, passing.shape[1] + 1):
        share = numbers / t  # share of the j-subsets of t rows that contain the last row
        moved = means * (1.0 - share).clamp(min=0.0)
        moved[:, 1:] += means[:, :-1] * share[1:].clamp(max=1.0) * passing[:, t - 1, None]
        means = torch.where((t <= sizes)[:, None], moved, means)
    return means


class QueryValues(NamedTuple):
    """Value of each query, and True where it is defined."""

    values: Tensor
    defined: Tensor


def n_positions(k: int | None, lists: Lists) -> int:
    """Return the number of positions that can count: k, or the longest list."""
    longest = max(lists.longest, 1)
    return longest if k is None else min(k, longest)


def additive_values(metric: Additive, grades: Tensor, ranking: RankedLists) -> QueryValues:
    """Return DCG, NDCG, precision or ERU: rows of a tied block share its mean discount."""
    lists, gain = ranking.lists, gains(*metric.gain(), grades)
    k = n_positions(metric.k, lists)
    discounts, cumulated = discount_tables(metric, k, grades.device)
    start, end = ranking.start.clamp(max=k), (ranking.start + ranking.size).clamp(max=k)
    mean = (cumulated[end] - cumulated[start]) / ranking.size
    share = torch.where(ranking.size == 1, discounts[start.clamp(max=k - 1)], mean)
    within = ranking.listed & (ranking.start < k)
    values = lists.sums(torch.where(within, gain[ranking.order] * share, 0.0))
    if not isinstance(metric, NDCG):
        return QueryValues(values / _divisors(metric, lists), lists.sums((gain > 0).double()) > 0)
    position = ranking.position.clamp(max=k - 1)
    best = lists.sums(
        torch.where(ranking.position < k, gain[sort_rows(gain, lists)] * discounts[position], 0.0)
    )
    values = torch.where(best > 0, values / best, 0.0)
    if metric.convention.short_list == "zero" and metric.k is not None:
        values = values.masked_fill(lists.sizes < metric.k, 0.0)
    return QueryValues(values, best > 0)


def _divisors(metric: Additive, lists: Lists) -> Tensor | float:
    """Return the divisor of precision; 1 for other metrics."""
    if not isinstance(metric, Precision):
        return 1.0
    most = float(metric.k or 1)
    short = metric.convention.precision_denominator == "min"
    return lists.sizes.double().clamp(1.0, most) if short else most


def average_precision(metric: AP, grades: Tensor, ranking: RankedLists) -> QueryValues:
    """Return the expected precision at the relevant items (McSherry and Najork 2008) over the divisor."""
    lists, rule = ranking.lists, metric.convention.ap_denominator
    relevant = grades >= metric.convention.relevant_from
    total = lists.sums(relevant.double())
    k = n_positions(None if rule == "uncut" else metric.k, lists)
    before = _prefix_counts(relevant[ranking.order])
    block = (before[ranking.last] - before[ranking.first]).double()  # relevant rows of the block
    above = (before[ranking.first] - before[lists.starts]).double()
    inside, size = (ranking.position - ranking.start).double(), ranking.size.double()
    others = inside * (block - 1.0) / (size - 1.0).clamp(min=1.0)
    terms = block / size * (above + 1.0 + others) / ranking.rank
    terms = torch.where(ranking.listed & (ranking.position < k), terms, 0.0)
    if rule == "found":
        return QueryValues(_precision_per_found_item(terms, block, above, ranking, k), total > 0)
    divisor = total.clamp(max=float(k)) if rule == "min" else total
    return QueryValues(lists.sums(terms) / divisor.clamp(min=1.0), total > 0)


def _precision_per_found_item(
    terms: Tensor, block: Tensor, above: Tensor, ranking: RankedLists, k: int
) -> Tensor:
    """Return the expected quotient of the precision sum and the number of relevant items in the first k.

    Only the block at the cut is random: of its relevant items a hypergeometric number falls into the
    remaining slots, and given that number their positions are uniform. Row i of the block represents i + 1 of
    them.
    """
    lists, size = ranking.lists, ranking.size.double()
    cut = lists.spread(lists.sums(ranking.listed.double()).clamp(max=float(k)))
    final = ranking.listed & (ranking.start < cut) & (ranking.start + size >= cut)
    slots, inside = cut - ranking.start, (ranking.position - ranking.start).double()
    open_rows = final & (inside < slots)
    harmonic = torch.where(open_rows, 1.0 / ranking.rank, 0.0)
    plain, rising = lists.spread(lists.sums(harmonic)), lists.spread(lists.sums(harmonic * inside))
    earlier = lists.spread(lists.sums(terms.masked_fill(final, 0.0)))

    def share(number: Tensor) -> Tensor:
        """Return the probability of finding this many in the slots, times the quotient."""
        possible = open_rows & (number <= block) & (slots - number <= size - block) & (number <= slots)
        chance = _log_choose(block, number) + _log_choose(size - block, slots - number)
        each = (above + 1.0) * plain + (number - 1.0) / (slots - 1.0).clamp(min=1.0) * rising
        quotient = (earlier + number / slots * each) / (above + number)
        return torch.where(
            possible & (above + number > 0), (chance - _log_choose(size, slots)).exp() * quotient, 0.0
        )

    return lists.sums(share(inside + 1.0) + torch.where(inside == 0, share(torch.zeros_like(inside)), 0.0))


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1.0) - torch.lgamma(k + 1.0) - torch.lgamma(n - k + 1.0)


def cascade(metric: Cascade, grades: Tensor, ranking: RankedLists) -> QueryValues:
    """Return RR or ERR: mean of 1/position over where the user stops."""
    lists, k = ranking.lists, n_positions(metric.k, ranking.lists)
    stop = stop_probabilities(metric, grades)
    ordered = stop[ranking.order].masked_fill(~ranking.listed, 0.0)
    reach = _running_product(1.0 - ordered, lists.starts, lists.longest)[ranking.first]
    if isinstance(metric, RR):
        at_place = _first_in_block(ordered, ranking)
    elif ranking.broken:
        at_place = ordered
    else:
        at_place = torch.where(ranking.size == 1, ordered, _cascade_blocks(ordered, ranking, k))
    terms = torch.where(ranking.listed & (ranking.position < k), reach * at_place / ranking.rank, 0.0)
    return QueryValues(lists.sums(terms), lists.sums((stop > 0).double()) > 0)


def stop_probabilities(metric: Cascade, grades: Tensor) -> Tensor:
    """Return the probability that the user stops at each row."""
    kind, parameter, scale = metric.stopping(0.0)
    gain = gains(kind, parameter, grades)
    if kind == EXP2 and metric.convention.max_grade == "data":
        return gain * (-grades.max()).exp2()
    return gain * scale


def _first_in_block(relevant: Tensor, ranking: RankedLists) -> Tensor:
    """Return the probability that the first relevant row of a tied block has this row's position."""
    before = _prefix_counts(relevant > 0)
    number = (before[ranking.last] - before[ranking.first]).double()
    left = (ranking.last - ranking.rows).double()  # rows of the block from this one on
    none_before = _running_product((1.0 - number / left).clamp(min=0.0), ranking.first, ranking.lists.longest)
    return none_before * (number / left).clamp(max=1.0)


# Values of the metrics of pairs, by halving the levels of gain, without a table of pairs.


def discordance(metric: Discordance, grades: Tensor, ranking: RankedLists) -> QueryValues:
    """Return PD or WPD: weight of the pairs in wrong order; AUC: share of those in right order."""
    lists = ranking.lists
    if isinstance(metric, AUC):
        gain = gains(*metric.gain(), grades)
        positive = lists.sums(gain)
        pairs = positive * (lists.sizes - positive)
        wrong = _wrong_pairs(gain.long(), None, ranking, n_bits=1)
        return QueryValues(1.0 - wrong / pairs.clamp(min=1.0), pairs > 0)
    levels, table = rank_levels(grades, lists)
    table = gains(*metric.gain(), table)  # by level, as equal grades must have equal gains
    gain = table[lists.starts + levels]
    several = lists.lowest(gain) < lists.highest(gain)
    n_bits = int(levels.max()).bit_length()  # as many rounds as the levels need
    return QueryValues(_wrong_pairs(levels, table if metric.weighted else None, ranking, n_bits), several)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows by group, sorted by decreasing score; a group holds the levels that agree in the high bits.

    `block` numbers the blocks of tied scores; `start` and `end` delimit the row's group.
    """

    levels: Tensor
    block: Tensor
    start: Tensor
    end: Tensor

    def halve(self, bit: int, ones: Tensor) -> Groups:
        """Split each group stably by this bit of the level, lower half first."""
        upper, rows = self.upper(bit), torch.arange(len(self.levels), device=self.levels.device)
        ones_above = ones[:-1] - ones[self.start]
        middle = self.end - (ones[self.end] - ones[self.start])
        target = torch.where(upper, middle + ones_above, rows - ones_above)
        start, end = torch.where(upper, middle, self.start), torch.where(upper, self.end, middle)
        split_parts = [torch.empty_like(part) for part in (self.levels, self.block, start, end)]
        for new, part in zip(split_parts, (self.levels, self.block, start, end), strict=True):
            new[target] = part
        return Groups(*split_parts)

    def upper(self, bit: int) -> Tensor:
        """Return a mask of the rows in the upper half."""
        return ((self.levels >> bit) & 1).bool()


def _wrong_pairs(levels: Tensor, table: Tensor | None, ranking: RankedLists, n_bits: int) -> Tensor:
    """Return the weight of pairs of unequal level in wrong order, ties half, by query.

    A pair weighs 1, or with a table the difference of its gains. Two levels first differ at some bit; there
    the pair is counted, in the group of rows whose higher bits agree. Gains are relative to the lowest of the
    upper half, so that all terms are >= 0 and nothing cancels. O(n) for each bit.
    """
    lists = ranking.lists
    groups = Groups(levels[ranking.order], ranking.first, lists.starts, lists.ends)
    wrong = torch.zeros(lists.n_queries, dtype=torch.float64, device=levels.device)
    for bit in reversed(range(n_bits)):
        upper = groups.upper(bit)
        ones = _prefix_counts(upper)
        first, last = _run_bounds((groups.block != groups.block.roll(1)) | (ranking.rows == groups.start))
        # The mean of the counts with ties broken for and against the row.
        ones_above = ones[first] + ones[last] - 2 * ones[groups.start]
        lower_above = 0.5 * (first + last - 2 * groups.start - ones_above).double()
        if table is None:
            terms = torch.where(upper, lower_above, 0.0)
        else:
            upper_below = 0.5 * (2 * ones[groups.end] - ones[first] - ones[last]).double()
            lowest = ((groups.levels >> bit) | 1) << bit
            pivot = table[(lists.starts + lowest).clamp(max=lists.n_rows - 1)]
            beyond = (table[lists.starts + groups.levels] - pivot).abs()
            terms = beyond * torch.where(upper, lower_above, upper_below)
        wrong += lists.sums(terms)
        groups = groups.halve(bit, ones)
    return wrong
