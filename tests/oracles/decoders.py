"""Decoders of pair matrices: definitions, typed naively."""

import functools
import itertools

import numpy as np


@functools.cache
def order_places(n):
    """The places of the items in every order, one order a row."""
    return np.array(list(itertools.permutations(range(1, n + 1))), dtype=np.float64).reshape(-1, n)


def pair_precisions(u, places):
    """Sum over i >= j of u[i][j] / max(place of i, place of j), for each row of places."""
    n = len(u)
    terms = (u[i][j] / np.maximum(places[:, i], places[:, j]) for i in range(n) for j in range(n) if i >= j)
    return sum(terms, np.zeros(len(places)))


def pair_disagreements(u, places):
    """Sum of u[i][j] over the pairs with i placed after j, for each row of places."""
    n = len(u)
    terms = (u[i][j] * (places[:, i] > places[:, j]) for i in range(n) for j in range(n) if i != j)
    return sum(terms, np.zeros(len(places)))


def forward_order(n, edges):
    """The topological order that takes the smallest free item first; None if the edges form a cycle."""
    order, left = [], set(range(n))
    while left:
        free = [i for i in sorted(left) if not any(tail in left and head == i for tail, head in edges)]
        if not free:
            return None
        order.append(free[0])
        left.remove(free[0])
    return order


def edge_deletion(u):
    """Algorithm 1 of Ramaswamy et al. (2013), edge by edge; equal weights by (i, j)."""
    n = len(u)
    weights = {(i, j): u[i][j] - u[j][i] for i in range(n) for j in range(n) if u[i][j] > u[j][i]}
    edges = sorted(weights, key=lambda edge: (weights[edge], edge))
    while (order := forward_order(n, edges)) is None:
        del edges[0]
    return order


def insertions(order):
    """All orders that differ in the place of one item."""
    for start, end in itertools.product(range(len(order)), repeat=2):
        moved = [item for position, item in enumerate(order) if position != start]
        moved.insert(end, order[start])
        yield moved
