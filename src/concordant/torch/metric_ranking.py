"""The rows of each query in the order of their scores, and the blocks in which scores are tied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from concordant.torch.lists import Lists
from concordant.torch.sweep import ranked

__all__ = ["Ranking", "counted", "ranking", "running_product", "runs"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows by falling score within each query, cut into blocks of tied rows.

    All but `order` describe sorted rows: those of a query stand where its rows stand in the flat data.

    Attributes
    ----------
    order
        Flat row of each sorted row.
    listed
        False for rows that are not in the ranking (score minus infinity); they stand last.
    first, last
        The block of each row: its first sorted row, and the one behind its last. Where the ties are broken,
        every row is a block of its own.
    broken
        Whether they are.
    """

    lists: Lists
    order: Tensor
    listed: Tensor
    first: Tensor
    last: Tensor
    broken: bool

    @cached_property
    def rows(self) -> Tensor:
        """Numbers of the sorted rows."""
        return torch.arange(self.lists.n_rows, device=self.order.device)

    @cached_property
    def place(self) -> Tensor:
        """Place of each row in its query, from 0."""
        return self.rows - self.lists.starts

    @cached_property
    def rank(self) -> Tensor:
        """Place from 1, in double precision."""
        return self.place.double() + 1.0

    @cached_property
    def start(self) -> Tensor:
        """Place at which the row's block starts."""
        return self.first - self.lists.starts

    @cached_property
    def size(self) -> Tensor:
        """Rows of the row's block."""
        return self.last - self.first

    def tied(self, k: int, *, listed_only: bool) -> Tensor:
        """Whether the order of tied rows can matter to the first k places, by query."""
        follows = (self.rows > self.first) & (self.place <= k)  # ties with the row before it
        return self.lists.sums((follows & self.listed if listed_only else follows).double()) > 0


def ranking(scores: Tensor, lists: Lists, *, broken: bool = False, key: Tensor | None = None) -> Ranking:
    """Sort the rows of each query by score, highest first; ties stay blocks unless `broken`.

    Broken ties stand by rising key, equal keys (and ties without one) in row order.
    """
    scores = scores + 0.0  # no minus zero: it ties with zero
    order = ranked(scores, lists) if key is None else by_key(scores, lists, key)
    ordered = scores[order]
    rows = torch.arange(lists.n_rows, device=scores.device)
    if broken:
        first, last = rows, rows + 1
    else:
        first, last = runs((ordered != ordered.roll(1)) | (rows == lists.starts))
    return Ranking(lists, order, ordered > -torch.inf, first, last, broken)


def by_key(scores: Tensor, lists: Lists, key: Tensor) -> Tensor:
    """Rows by falling score, tied ones by rising key."""
    before = ranked(-key, lists)
    return before[ranked(scores[before], lists)]


def runs(new: Tensor) -> tuple[Tensor, Tensor]:
    """First row of each row's run, and the row behind its last; `new` marks rows at which a run starts.

    >>> runs(torch.tensor([True, False, True]))
    (tensor([0, 0, 2]), tensor([2, 2, 3]))
    """
    numbers, rows = new.cumsum(0), torch.arange(len(new), device=new.device)
    slots = torch.full((len(new) + 2,), len(new), device=new.device)
    slots.scatter_(0, torch.where(new, numbers, 0), rows)  # slot 0 takes the rows at which none starts
    return slots[numbers], slots[numbers + 1]


def counted(marks: Tensor) -> Tensor:
    """How many of the first 0, 1, 2, ... rows are marked: whole numbers, so that differences are exact."""
    return torch.nn.functional.pad(marks.long().cumsum(0), (1, 0))


def running_product(values: Tensor, first: Tensor, longest: int) -> Tensor:
    """Product of the values before each row, from the first row of its run on.

    By doubling: products stay within a run, so that neither a 0 nor rounding reaches the next one.

    >>> running_product(torch.tensor([0.5, 0.5, 0.0, 3.0]), torch.tensor([0, 0, 0, 3]), 3).tolist()
    [1.0, 0.5, 0.25, 1.0]
    """
    rows = torch.arange(len(values), device=values.device)
    products = torch.where(rows > first, values.roll(1), 1.0)
    step = 1
    while step < longest:
        products = torch.where(rows - step >= first, products * products.roll(step), products)
        step *= 2
    return products
