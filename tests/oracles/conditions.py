"""Conditions on distributions of labels, on matrices of expectations and on votes: typed naively."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from tests.oracles.aggregation import majority_cycles
from tests.oracles.standardization import net_weights

# ---------------------------------------------------------------- conditions on a distribution of labels


def mean_over(labels, probs, number_of):
    return sum(p * number_of(label) for label, p in zip(labels, probs, strict=True))


def reinforces(labels, probs, most=math.inf):
    """P_reinforce: u_ii >= u_jj implies u_ii >= u_jj + sum over the other g of (u_jg - u_ig)_+."""
    n = len(labels[0])

    def u(i, j):
        return mean_over(labels, probs, lambda y: y[i] * y[j] / (min(sum(y), most) or 1))

    return all(
        u(i, i) >= u(j, j) + sum(max(u(j, g) - u(i, g), 0) for g in range(n) if g not in (i, j))
        for i, j in itertools.permutations(range(n), 2)
        if u(i, i) >= u(j, j)
    )


def mean_nets(graphs, probs):
    """d[i, j] = E[a_ij - a_ji]."""
    pairs = itertools.permutations(range(len(graphs[0])), 2)
    return {(i, j): mean_over(graphs, probs, lambda a: a[i][j] - a[j][i]) for i, j in pairs}  # noqa: B023


def has_low_noise(graphs, probs):
    """d_ik > 0 and d_kj > 0 imply d_ij >= d_ik + d_kj."""
    d = mean_nets(graphs, probs)
    triples = itertools.permutations(range(len(graphs[0])), 3)
    paths = [(i, k, j) for i, k, j in triples if d[i, k] > 0 and d[k, j] > 0]
    return all(d[i, j] >= d[i, k] + d[k, j] for i, k, j in paths)


def follows(f, graphs, probs):
    """P_f: d_ij > 0 implies E f_i > E f_j."""
    d = mean_nets(graphs, probs)
    values = [mean_over(graphs, probs, lambda a: f(a)[i]) for i in range(len(graphs[0]))]  # noqa: B023
    return all(values[i] > values[j] for (i, j), net in d.items() if net > 0)


def preserves_order(labels, probs):
    """For some order of the items, each two neighbours i, j in it are as in Definition 5 of paper 1."""
    n = len(labels[0])
    chance = dict.fromkeys(itertools.permutations(range(1, n + 1)), 0)
    for label, p in zip(labels, probs, strict=True):
        chance[tuple(label)] += p

    def is_preserved(i, j):
        for positions, p in chance.items():
            swapped = list(positions)
            swapped[i], swapped[j] = positions[j], positions[i]
            other = chance[tuple(swapped)]
            if positions[i] < positions[j] and not (p > other or p == other == 0):
                return False
        return True

    chains = itertools.permutations(range(n))
    return any(all(is_preserved(i, j) for i, j in itertools.pairwise(chain)) for chain in chains)


def mixtures_of(n_labels, rng):
    """Every label alone, every two in several shares, and three at a time."""
    rows = list(np.eye(n_labels))
    for (a, b), share in itertools.product(itertools.permutations(range(n_labels), 2), (1, 2, 5, 20)):
        rows.append(np.eye(n_labels)[a] + share * np.eye(n_labels)[b])
    for _ in range(1500):
        row = np.zeros(n_labels)
        row[rng.choice(n_labels, 3, replace=False)] = rng.integers(1, 13, 3)
        rows.append(row)
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def may_be_standardized(value, labels, mixtures, *, greater=True):
    """True if item scores r(label) exist whose means, under these mixtures, contradict no best order.

    If every best order of a mixture places i before j, then E r_i > E r_j. These are linear inequalities in
    the numbers r(label); where they have no solution, no standardization exists.
    """
    n, shape = len(labels[0]), (len(labels), len(labels[0]))
    orders = list(itertools.permutations(range(n)))
    values = np.array([[value(label, list(order)) or 0.0 for order in orders] for label in labels])
    before = np.array([[[o.index(i) < o.index(j) for j in range(n)] for i in range(n)] for o in orders])
    means = mixtures @ (values if greater else -values)
    rows = []
    for probs, mean in zip(mixtures, means, strict=True):
        always = before[mean >= mean.max() - 1e-9].all(axis=0)
        for i, j in np.argwhere(always):
            difference = np.zeros(shape)
            difference[:, i], difference[:, j] = probs, -probs
            rows.append(difference.ravel())
    solution = linprog(np.zeros(math.prod(shape)), -np.array(rows), -np.ones(len(rows)), bounds=(None, None))
    return {0: True, 2: False}[solution.status]


# ---------------------------------------------------------------- conditions on matrices of expectations


def shared_relevance_means(labels, probs):
    """u[i][j] = E[y_i y_j / sum(y)] of binary labels; exact where the probabilities are fractions."""
    items = range(len(labels[0]))
    return [
        [mean_over(labels, probs, lambda y: Fraction(y[i] * y[j], sum(y) or 1)) for j in items]  # noqa: B023
        for i in items
    ]


def matrix_reinforces(u):
    """P_reinforce, read off the matrix u."""
    n = len(u)
    return all(
        u[i][i] - u[j][j] >= sum(max(u[j][g] - u[i][g], 0) for g in range(n) if g not in (i, j))
        for i, j in itertools.permutations(range(n), 2)
        if u[i][i] >= u[j][j]
    )


def has_no_cycle(d):
    """No two or more items, each with d > 0 towards the next and the last towards the first."""
    edges = [(i, j, d[i][j]) for i, j in itertools.permutations(range(len(d)), 2) if d[i][j] > 0]
    lengths = range(2, len(d) + 1)
    return not any(cycle for length in lengths for cycle in majority_cycles(range(len(d)), edges, length))


def with_positive_part(d):
    """One graph whose net weights are d: for the conditions that read graphs."""
    return [[max(number, 0) for number in row] for row in d]


# ---------------------------------------------------------------- conditions on votes


def vote_graph(levels):
    """a[i][j] = 1 where an item has the larger number; nothing where one of the two is None."""
    is_graded = [level is not None for level in levels]
    n = len(levels)
    return [
        [int(is_graded[i] and is_graded[j] and levels[i] > levels[j]) for j in range(n)] for i in range(n)
    ]


def vote_condition(name, votes, counts, f=net_weights):
    """True if a condition holds on votes, each the number of annotators who gave it; exact.

    Votes are numbers per item (None: not judged); of "order_preserving" they are places, of "P_reinforce" 0
    and 1.
    """
    total = sum(counts)
    probs = [Fraction(count, total) for count in counts]
    if name == "P_reinforce":
        return matrix_reinforces(shared_relevance_means(votes, probs))
    if name == "order_preserving":
        return preserves_order(votes, probs)
    graphs = [vote_graph(vote) for vote in votes]
    if name == "P_f":
        return follows(f, graphs, probs)
    if name == "low_noise":
        return has_low_noise(graphs, probs)
    d, items = mean_nets(graphs, probs), range(len(votes[0]))
    return has_no_cycle([[d.get((i, j), 0) for j in items] for i in items])


def proportion_interval(successes, total, z, added=0.0):
    """Share plus and minus z standard errors, after adding trials of which half succeed."""
    trials = total + added
    share = (successes + added / 2) / trials
    half = z * math.sqrt(share * (1 - share) / trials)
    return share - half, share + half


def every_sign(lower, upper):
    """All choices of a number from each interval that matter to its sign: its ends, and 0 where it has it."""
    choices = [
        sorted({low, high} | ({0} if low <= 0 <= high else set()))
        for low, high in zip(lower, upper, strict=True)
    ]
    return itertools.product(*choices)


def long_cycle(edges, n):
    """True if three or more items stand on a cycle."""
    orders = (order for size in range(3, n + 1) for order in itertools.permutations(range(n), size))
    return any(
        all(edges[i][j] for i, j in zip(order, (*order[1:], order[0]), strict=True)) for order in orders
    )
