"""Ragged lists on a device: a flat tensor of rows, and the offsets that cut it into queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from concordant.exceptions import ParameterError

# Running sums within each list, in a fixed order: equal bits from run to run.

SHORT = {torch.float32: 16_384, torch.float64: 8_192}
"""Items up to which, on a GPU, comparing every pair is faster than sorting (`benchmarks`)."""


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def kernels_serve(tensor: Tensor) -> bool:
    """True if Triton kernels can read this tensor."""
    return tensor.is_cuda and _has_triton()


def is_short(scores: Tensor, longest: int) -> bool:
    """True if comparing every pair, a tile at a time, is fastest on the device of the scores."""
    return kernels_serve(scores) and longest <= SHORT.get(scores.dtype, 0)


def running_sum(values: Tensor, lists: Lists) -> Tensor:
    """Return running sums within each list, for one sequence (n_rows) or several (k, n_rows).

    >>> running_sum(torch.tensor([1.0, 2.0, 4.0]), Lists.from_offsets([0, 2, 3])).tolist()
    [1.0, 3.0, 4.0]
    """
    if kernels_serve(values):
        from concordant.torch.triton_sweeps import running_sums

        return running_sums(values, lists.offsets)
    if lists.n_queries == 1 or values.numel() == 0:
        return values.cumsum(-1)
    sums = torch.empty_like(values)
    for part in lists.rounds:  # no sum carries the digits of another list
        part.put(part.table(values).cumsum(-1), sums)  # entries after a list's last row are arbitrary
    return sums


class ListTable(NamedTuple):
    """Lists of similar sizes as a table (lists, positions); at most twice as many entries as rows.

    Attributes
    ----------
    Row of each entry, and whether the entry holds a row (otherwise row 0 is a placeholder).
    kept
        Flat indices of the entries with rows; None: the table holds all rows, in order.
    """

    rows: Tensor
    there: Tensor
    slots: Tensor | None

    def table(self, values: Tensor) -> Tensor:
        """Arrange the last dimension of values as a table; entries without a row are arbitrary."""
        if self.slots is None:
            return values.unflatten(-1, self.rows.shape)
        return values.index_select(-1, self.rows.flatten()).unflatten(-1, self.rows.shape)

    def put(self, table: Tensor, values: Tensor) -> None:
        """Fill rows of the last dimension from a table."""
        flat = table.flatten(-2)
        if self.slots is None:
            values.copy_(flat)
        else:
            rows = self.rows.flatten().index_select(0, self.slots)
            values.index_copy_(-1, rows, flat.index_select(-1, self.slots))


def to_device(numbers: Any, device: torch.device | str | None) -> Tensor:
    """Move numbers to the device; with None, a tensor keeps its device, whatever torch's default is."""
    if device is None and isinstance(numbers, Tensor):
        return numbers
    return torch.as_tensor(numbers, device=device)


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows grouped by query: query `q` owns rows `offsets[q]:offsets[q + 1]`; lists may be empty.

    Build it once per data set or batch: `longest` and `n_rows` are plain numbers, so that losses need not
    wait for the device to read them.

    Attributes
    ----------
    offsets
        int64, one more than there are queries, on the device of the rows.
    longest
        Rows of the longest list (an upper bound is enough).
    n_rows
        Total number of rows.

    Examples
    --------
    >>> lists = Lists.from_offsets([0, 2, 2, 3])
    >>> lists.n_queries, lists.n_rows, lists.longest, lists.owner.tolist()
    (3, 3, 2, [0, 0, 2])
    >>> lists.sums(torch.tensor([1.0, 2.0, 4.0])).tolist()
    [3.0, 0.0, 4.0]
    """

    offsets: Tensor
    longest: int
    n_rows: int

    @classmethod
    def from_offsets(
        cls, offsets: Tensor | Sequence[int] | Any, device: torch.device | str | None = None
    ) -> Lists:
        """Build from checked offsets (a tensor, an array, a list), on their device or another."""
        edges = to_device(offsets, device)
        whole = edges.ndim == 1 and edges.numel() > 0 and not edges.is_floating_point()
        host = edges.detach().to("cpu", torch.int64) if whole else edges
        if not (whole and edges.dtype != torch.bool and int(host[0]) == 0 and bool((host.diff() >= 0).all())):
            raise ParameterError("offsets", offsets, "non-decreasing integers that start at 0")
        longest = int(host.diff().max()) if len(host) > 1 else 0
        return cls(edges.detach().to(torch.int64).contiguous(), longest, int(host[-1]))

    @classmethod
    def from_sizes(
        cls, sizes: Tensor | Sequence[int] | Any, device: torch.device | str | None = None
    ) -> Lists:
        """Build from the number of rows of each list.

        >>> Lists.from_sizes([2, 0, 1]).offsets.tolist()
        [0, 2, 2, 3]
        """
        counts = to_device(sizes, device)
        if counts.ndim != 1 or (counts.is_floating_point() and counts.numel()):
            raise ParameterError("sizes", sizes, "integers >= 0")
        return cls.from_offsets(torch.nn.functional.pad(counts.to(torch.int64).cumsum(0), (1, 0)))

    @classmethod
    def single(cls, n_rows: int, device: torch.device | str | None = None) -> Lists:
        """Treat all rows as a single list."""
        return cls(torch.tensor([0, n_rows], dtype=torch.int64, device=device), n_rows, n_rows)

    @property
    def n_queries(self) -> int:
        """Number of lists, including empty ones."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Tensor:
        """Number of rows of each list."""
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
        """End of each row's query: the row after its last one."""
        return self.spread(self.offsets[1:])

    @property
    def rounds(self) -> list[ListTable]:
        """Lists of similar sizes as tables: one per doubling of the size. Waits for the device."""
        if self.n_rows == self.n_queries * self.longest and self.longest:  # equal sizes: not cached
            rows = torch.arange(self.n_rows, device=self.offsets.device).reshape(self.n_queries, -1)
            return [ListTable(rows, torch.ones_like(rows, dtype=torch.bool), None)]
        return self.mixed_rounds

    @cached_property
    def mixed_rounds(self) -> list[ListTable]:
        """Tables for lists of unequal sizes, one per doubling of the size."""
        sizes, tables = self.sizes.cpu(), []
        doublings = torch.frexp(sizes.double()).exponent
        for doubling in sorted(set(doublings[sizes > 0].tolist())):
            members = (doublings == doubling).nonzero().flatten().to(self.offsets.device)
            positions = torch.arange(int(sizes[doublings == doubling].max()), device=self.offsets.device)
            there = positions < self.sizes[members, None]
            rows = torch.where(there, self.offsets[members, None] + positions, 0)
            tables.append(ListTable(rows, there, there.flatten().nonzero().flatten()))
        return tables

    def spread(self, per_query: Tensor) -> Tensor:
        """Repeat each query's number for its rows."""
        if self.n_queries == 1:
            return per_query.expand(self.n_rows)
        return torch.repeat_interleave(per_query, self.sizes, output_size=self.n_rows)

    def sums(self, values: Tensor) -> Tensor:
        """Sum each query's values; 0 for an empty query. Equal bits from run to run."""
        return self.reduced(values, "sum")

    def highest(self, values: Tensor) -> Tensor:
        """Return the highest value of each query; minus infinity for an empty query."""
        return self.reduced(values, "max")

    def lowest(self, values: Tensor) -> Tensor:
        """Return the lowest value of each query; infinity for an empty query."""
        return self.reduced(values, "min")

    def reduced(self, values: Tensor, how: str) -> Tensor:
        """Reduce each query's values by "sum", "max" or "min"."""
        if not values.is_floating_point():
            values = values.to(torch.float64)
        if self.n_queries == 1 and self.n_rows:
            whole = values.sum(0) if how == "sum" else values.amax(0) if how == "max" else values.amin(0)
            return whole[None]
        return torch.segment_reduce(values, how, offsets=self.offsets, unsafe=True)

    def to(self, device: torch.device | str) -> Lists:
        """Return the same lists on another device."""
        moved = self.offsets.to(device)
        return self if moved is self.offsets else Lists(moved, self.longest, self.n_rows)
