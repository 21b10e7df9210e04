"""Values of the metrics of pairs: by halving the levels of gain, without a table of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from concordant.metrics.pairwise import AUC, Discordance
from concordant.torch.lists import Lists
from concordant.torch.metric_ranking import Ranking, counted, runs
from concordant.torch.metric_values import Measured, gains
from concordant.torch.sweep import ranked

__all__ = ["discordance"]


def discordance(metric: Discordance, grades: Tensor, found: Ranking) -> Measured:
    """PD, WPD: weight of the pairs that stand wrong; AUC: share of those that stand right."""
    lists = found.lists
    if isinstance(metric, AUC):
        gain = gains(*metric.gain(), grades)
        positive = lists.sums(gain)
        pairs = positive * (lists.sizes - positive)
        wrong = wrong_pairs(gain.long(), None, found, n_bits=1)
        return Measured(1.0 - wrong / pairs.clamp(min=1.0), pairs > 0)
    levels, table = levels_of(grades, lists)
    table = gains(*metric.gain(), table)  # once for each level: equal grades must have equal gains
    gain = table[lists.starts + levels]
    several = lists.lowest(gain) < lists.highest(gain)
    n_bits = int(levels.max()).bit_length()  # as many rounds as the levels need
    return Measured(wrong_pairs(levels, table if metric.weighted else None, found, n_bits), several)


def levels_of(grades: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Rank of each row's grade among the different ones of its query, 0 lowest; and the grades by level.

    The grade of a query's level stands in the query's rows, at the place of the level.
    """
    order = ranked(-grades, lists)
    ordered, rows = grades[order], torch.arange(lists.n_rows, device=grades.device)
    number = counted((ordered != ordered.roll(1)) & (rows > lists.starts))[1:]
    number = number - number[lists.starts]
    levels, table = torch.empty_like(number), torch.zeros_like(grades)
    levels[order] = number
    table[lists.starts + number] = ordered
    return levels, table


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows by group, in each group by falling score; a group holds the levels that agree in the high bits.

    `block` numbers the blocks of tied scores; `start` and `end` are the rows of the own group.
    """

    levels: Tensor
    block: Tensor
    start: Tensor
    end: Tensor

    def halved(self, bit: int, ones: Tensor) -> Groups:
        """Split each group by this bit of the level, lower half first, without changing the order in it."""
        upper, rows = self.upper(bit), torch.arange(len(self.levels), device=self.levels.device)
        seen = ones[:-1] - ones[self.start]
        middle = self.end - (ones[self.end] - ones[self.start])
        target = torch.where(upper, middle + seen, rows - seen)
        start, end = torch.where(upper, middle, self.start), torch.where(upper, self.end, middle)
        moved = [torch.empty_like(part) for part in (self.levels, self.block, start, end)]
        for new, part in zip(moved, (self.levels, self.block, start, end), strict=True):
            new[target] = part
        return Groups(*moved)

    def upper(self, bit: int) -> Tensor:
        """Rows of the upper half."""
        return ((self.levels >> bit) & 1).bool()


def wrong_pairs(levels: Tensor, table: Tensor | None, found: Ranking, n_bits: int) -> Tensor:
    """Weight of the pairs of unequal level that stand wrong, ties half, by query.

    A pair weighs 1, or with a table the difference of its gains. Two levels part at one bit; there the pair
    is counted, in the group of rows whose higher bits agree. Gains are taken from the lowest of the upper
    half, so that all terms are >= 0 and nothing cancels. O(n) for each bit.
    """
    lists = found.lists
    groups = Groups(levels[found.order], found.first, lists.starts, lists.ends)
    wrong = torch.zeros(lists.n_queries, dtype=torch.float64, device=levels.device)
    for bit in reversed(range(n_bits)):
        upper = groups.upper(bit)
        ones = counted(upper)
        first, last = runs((groups.block != groups.block.roll(1)) | (found.rows == groups.start))
        # Half of what a tie could make it at least, half of what it could at most.
        seen = ones[first] + ones[last] - 2 * ones[groups.start]
        lower_above = 0.5 * (first + last - 2 * groups.start - seen).double()
        if table is None:
            terms = torch.where(upper, lower_above, 0.0)
        else:
            upper_below = 0.5 * (2 * ones[groups.end] - ones[first] - ones[last]).double()
            lowest = ((groups.levels >> bit) | 1) << bit
            pivot = table[(lists.starts + lowest).clamp(max=lists.n_rows - 1)]
            beyond = (table[lists.starts + groups.levels] - pivot).abs()
            terms = beyond * torch.where(upper, lower_above, upper_below)
        wrong += lists.sums(terms)
        groups = groups.halved(bit, ones)
    return wrong
