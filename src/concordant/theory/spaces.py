"""Label spaces: the possible labels of a query, and the spaces that each metric reads.

>>> len(every_label("binary", 3)), len(every_label("preferences", 3)), len(every_label("permutations", 3))
(8, 25, 6)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping

import numpy as np

from concordant.data.labels import Permutations, Preferences
from concordant.data.queries import Queries
from concordant.data.synthetic.distribution import Label
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.theory import lowrank

SPACES: Mapping[str, str] = {
    "binary": "grades 0 and 1",
    "grades": "grades from 0 on",
    "preferences": "graphs of preferences without a cycle, each pair one way, the other way or not at all",
    "permutations": "full orders",
}
MAX_LABELS = 5000  # a search looks at all of them


def space_of(label: Label) -> str:
    """Return the space of a label.

    >>> space_of(np.array([1.0, 0.0])), space_of(Permutations([2, 1]))
    ('binary', 'permutations')
    """
    if isinstance(label, Preferences):
        return "preferences"
    if isinstance(label, Permutations):
        return "permutations"
    return "binary" if np.isin(label, (0.0, 1.0)).all() else "grades"


def every_label(space: str, n_items: int, highest: int = 2) -> list[Label]:
    """List all labels of a query; grades are whole numbers from 0 to `highest`, preferences weigh 1."""
    if space not in SPACES:
        raise UnknownNameError("label space", space, SPACES)
    if space == "permutations":
        return [Permutations.from_orders([order]) for order in itertools.permutations(range(n_items))]
    if space == "preferences":
        return list(_every_graph(n_items))
    return list(lowrank.every_label(n_items, 1 + (1 if space == "binary" else highest)))


@functools.cache
def _every_graph(n_items: int) -> tuple[Label, ...]:
    """List all acyclic graphs of preferences: each pair one way, the other way or not at all."""
    pairs = list(itertools.combinations(range(n_items), 2))
    if 3 ** len(pairs) > MAX_LABELS:
        raise ParameterError("n_items", n_items, f"small enough for at most {MAX_LABELS:,} labels")
    graphs: list[Label] = []
    single = Queries.from_sizes([n_items])
    for choice in itertools.product((0, 1, -1), repeat=len(pairs)):
        edges = [(i, j) if way > 0 else (j, i) for (i, j), way in zip(pairs, choice, strict=True) if way]
        graph = Preferences([a for a, _ in edges], [b for _, b in edges], n_items)
        if not graph.cyclic(single).any():
            graphs.append(graph)
    return tuple(graphs)


def format_label(label: Label) -> str:
    """Write a label for a person; items are counted from 1.

    >>> format_label(np.array([2.0, 0.0])), format_label(Permutations([2, 1, 3]))
    ('(2,0)', '2>1>3')
    >>> format_label(Preferences([0, 1], [1, 2], 3, [1.0, 2.0]))
    '1>2 2>3(2)'
    """
    if isinstance(label, Permutations):
        return ">".join(str(item + 1) for item in np.argsort(label.positions))
    if isinstance(label, Preferences):
        edges = sorted(zip(label.better, label.worse, label.weights, strict=True))
        text = " ".join(f"{i + 1}>{j + 1}" + ("" if w == 1 else f"({w:g})") for i, j, w in edges)
        return text or "no preference"
    return f"({','.join(f'{grade:g}' for grade in label)})"
