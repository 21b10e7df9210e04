"""What items are called: text or whole numbers, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from concordant.exceptions import LabelError, LengthMismatchError, ParameterError, UnknownNameError

__all__ = ["Item", "Lookup", "check_item", "check_names", "named", "sorted_items"]

Item = str | int
"""What an item is called."""


def check_item(item: Any, where: str) -> Item:
    """Give a text or a whole number, of Python's own type."""
    if isinstance(item, str):
        return str(item)
    if isinstance(item, Integral) and not isinstance(item, bool):
        return int(item)
    problem = f"{where} has the item {str(item)[:40]!r}, a {type(item).__name__}"
    hint = "items are text or whole numbers; a list inside an order is a tie; pass a matrix as a numpy array."
    raise LabelError(problem, hint)


def check_names(names: Iterable[Any]) -> tuple[Item, ...]:
    """Give names that are all different."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError("names", names, "a list of one name per item")
    found = tuple(check_item(name, "names") for name in names)
    if len(set(found)) < len(found):
        twice, _ = Counter(found).most_common(1)[0]
        raise LabelError(f"{twice!r} is the name of two items", "pass names= that are all different.")
    return found


def named(names: tuple[Item, ...] | None, known: Sequence[Item]) -> tuple[Item, ...]:
    """Give the names of items that the votes know by number; by default the names they bring along."""
    if names is None:
        return check_names(known)
    if len(names) != len(known):
        raise LengthMismatchError("names", len(names), len(known), "the matrix of votes")
    return names


def sorted_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """Give each item once, sorted: the ranking must not depend on who voted first."""
    texts, numbers = set[str](), set[int]()
    for item in items:
        texts.add(item) if isinstance(item, str) else numbers.add(item)
    if texts and numbers:
        problem = f"orders mix text and numbers: {min(texts)!r} and {min(numbers)}"
        raise LabelError(problem, "name every item in the same way.")
    return (*sorted(texts), *sorted(numbers))


class Lookup(dict[Item, int]):
    """The number of each item by its name; where no name is a number, also by that number.

    >>> Lookup(("tea", "milk"))["milk"], Lookup(("tea", "milk"))[1], Lookup((1, 0))[1]
    (1, 1, 0)
    """

    def __init__(self, names: Sequence[Item]) -> None:
        super().__init__({name: number for number, name in enumerate(names)})
        self.by_number = all(isinstance(name, str) for name in names)

    def __missing__(self, item: Item) -> int:
        if self.by_number and isinstance(item, int) and 0 <= item < len(self):
            return item
        raise UnknownNameError("item", item, map(str, self))
