"""Ragged lists on a device: one flat tensor of rows, and the offsets that cut it into queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from concordant.exceptions import ParameterError

__all__ = ["Lists", "Round"]


class Round(NamedTuple):
    """Lists of similar sizes as a table (lists, places); at most twice as many places as rows.

    Attributes
    ----------
    rows, there
        Row at each place, and whether there is one (else row 0 stands in).
    kept
        Numbers of those places, counted through the table; None: it holds all rows, in order.
    """

    rows: Tensor
    there: Tensor
    kept: Tensor | None

    def table(self, values: Tensor) -> Tensor:
        """Give rows of the last dimension as a table; what stands where there is none has no meaning."""
        if self.kept is None:
            return values.unflatten(-1, self.rows.shape)
        return values.index_select(-1, self.rows.flatten()).unflatten(-1, self.rows.shape)

    def put(self, table: Tensor, values: Tensor) -> None:
        """Fill rows of the last dimension from a table."""
        flat = table.flatten(-2)
        if self.kept is None:
            values.copy_(flat)
        else:
            rows = self.rows.flatten().index_select(0, self.kept)
            values.index_copy_(-1, rows, flat.index_select(-1, self.kept))


def on(numbers: Any, device: torch.device | str | None) -> Tensor:
    """Give a tensor on the device; without one a tensor stays where it is, whatever torch's default is."""
    if device is None and isinstance(numbers, Tensor):
        return numbers
    return torch.as_tensor(numbers, device=device)


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows grouped by query: query `q` owns rows `offsets[q]:offsets[q + 1]`; lists may be empty.

    Build it once per data set or batch: `longest` and `n_rows` are plain numbers, so that no loss has to
    wait for the device to learn them.

    Attributes
    ----------
    offsets
        int64, one more than there are queries, on the device of the rows.
    longest
        Rows of the longest list (an upper bound will do).
    n_rows
        Rows in all.

    Examples
    --------
    >>> lists = Lists.of([0, 2, 2, 3])
    >>> lists.n_queries, lists.n_rows, lists.longest, lists.owner.tolist()
    (3, 3, 2, [0, 0, 2])
    >>> lists.sums(torch.tensor([1.0, 2.0, 4.0])).tolist()
    [3.0, 0.0, 4.0]
    """

    offsets: Tensor
    longest: int
    n_rows: int

    @classmethod
    def of(cls, offsets: Tensor | Sequence[int] | Any, device: torch.device | str | None = None) -> Lists:
        """Read offsets (a tensor, an array, a list), checked; the device is theirs unless named."""
        edges = on(offsets, device)
        whole = edges.ndim == 1 and edges.numel() > 0 and not edges.is_floating_point()
        host = edges.detach().to("cpu", torch.int64) if whole else edges
        if not (whole and edges.dtype != torch.bool and int(host[0]) == 0 and bool((host.diff() >= 0).all())):
            raise ParameterError("offsets", offsets, "whole numbers from 0 on that never fall")
        longest = int(host.diff().max()) if len(host) > 1 else 0
        return cls(edges.detach().to(torch.int64).contiguous(), longest, int(host[-1]))

    @classmethod
    def from_sizes(
        cls, sizes: Tensor | Sequence[int] | Any, device: torch.device | str | None = None
    ) -> Lists:
        """Read the number of rows of each list.

        >>> Lists.from_sizes([2, 0, 1]).offsets.tolist()
        [0, 2, 2, 3]
        """
        counts = on(sizes, device)
        if counts.ndim != 1 or (counts.is_floating_point() and counts.numel()):
            raise ParameterError("sizes", sizes, "whole numbers >= 0")
        return cls.of(torch.nn.functional.pad(counts.to(torch.int64).cumsum(0), (1, 0)))

    @classmethod
    def one(cls, n_rows: int, device: torch.device | str | None = None) -> Lists:
        """All rows are one list."""
        return cls(torch.tensor([0, n_rows], dtype=torch.int64, device=device), n_rows, n_rows)

    @property
    def n_queries(self) -> int:
        """Lists, empty ones too."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Tensor:
        """Rows of each list."""
        return self.offsets.diff()

    @cached_property
    def owner(self) -> Tensor:
        """Query of each row."""
        return self.spread(torch.arange(self.n_queries, device=self.offsets.device))

    @cached_property
    def starts(self) -> Tensor:
        """First row of each row's query."""
        return self.spread(self.offsets[:-1])

    @cached_property
    def ends(self) -> Tensor:
        """Row behind the last one of each row's query."""
        return self.spread(self.offsets[1:])

    @property
    def rounds(self) -> list[Round]:
        """Lists of similar sizes as tables: one per doubling of the size. Waits for the device."""
        if self.n_rows == self.n_queries * self.longest and self.longest:  # all of one size: not kept
            rows = torch.arange(self.n_rows, device=self.offsets.device).reshape(self.n_queries, -1)
            return [Round(rows, torch.ones_like(rows, dtype=torch.bool), None)]
        return self.mixed_rounds

    @cached_property
    def mixed_rounds(self) -> list[Round]:
        """Rounds of lists of more than one size."""
        sizes, tables = self.sizes.cpu(), []
        doublings = torch.frexp(sizes.double()).exponent
        for number in sorted(set(doublings[sizes > 0].tolist())):
            chosen = (doublings == number).nonzero().flatten().to(self.offsets.device)
            places = torch.arange(int(sizes[doublings == number].max()), device=self.offsets.device)
            there = places < self.sizes[chosen, None]
            rows = torch.where(there, self.offsets[chosen, None] + places, 0)
            tables.append(Round(rows, there, there.flatten().nonzero().flatten()))
        return tables

    def spread(self, per_query: Tensor) -> Tensor:
        """Give each row its query's number."""
        if self.n_queries == 1:
            return per_query.expand(self.n_rows)
        return torch.repeat_interleave(per_query, self.sizes, output_size=self.n_rows)

    def sums(self, values: Tensor) -> Tensor:
        """Sum of each query's values; 0 for an empty query. Equal bits from run to run."""
        return self.reduced(values, "sum")

    def highest(self, values: Tensor) -> Tensor:
        """Highest value of each query; minus infinity for an empty query."""
        return self.reduced(values, "max")

    def lowest(self, values: Tensor) -> Tensor:
        """Lowest value of each query; infinity for an empty query."""
        return self.reduced(values, "min")

    def reduced(self, values: Tensor, how: str) -> Tensor:
        """Reduce each query's values."""
        if not values.is_floating_point():
            values = values.to(torch.float64)
        if self.n_queries == 1 and self.n_rows:
            whole = values.sum(0) if how == "sum" else values.amax(0) if how == "max" else values.amin(0)
            return whole[None]
        return torch.segment_reduce(values, how, offsets=self.offsets, unsafe=True)

    def to(self, device: torch.device | str) -> Lists:
        """Give the same lists on another device."""
        moved = self.offsets.to(device)
        return self if moved is self.offsets else Lists(moved, self.longest, self.n_rows)
