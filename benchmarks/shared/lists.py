"""Lists of scores and grades, and calls of a loss on ever other ones."""

from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np

from concordant.surrogates import Surrogate
from concordant.surrogates.surrogate import Loss


def drawn(n_lists: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores that know a little about the grades, the grades, and offsets."""
    rng = np.random.default_rng(seed)
    y = rng.choice(5, n_lists * n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(np.float64)
    return rng.standard_normal(n_lists * n) + 0.3 * y, y, np.arange(n_lists + 1) * n


def different(n: int, y: np.ndarray) -> Iterator[np.ndarray]:
    """Ever other scores, so many that the processor's branch prediction cannot learn them."""
    rng = np.random.default_rng(1)
    return cycle([rng.standard_normal(n) + 0.3 * y for _ in range(max(2, min(64, 4_000_000 // n)))])


def moving(n: int, y: np.ndarray) -> Iterator[np.ndarray]:
    """Scores that move a little, as in optimisation."""
    rng = np.random.default_rng(2)
    start = rng.standard_normal(n) + 0.3 * y
    steps = 1e-3 * rng.standard_normal((max(2, min(64, 4_000_000 // n)), n))
    return cycle(list(start + steps))


def asked(loss: Loss, scores: Iterator[np.ndarray]) -> Callable[[], object]:
    """A call of the bound loss on the next scores."""
    return lambda: loss.value_and_grad(next(scores))


def renewed(surrogate: Surrogate, y: np.ndarray, scores: Iterator[np.ndarray]) -> Callable[[], object]:
    """A call that binds the loss, too."""
    offsets = np.array([0, len(y)])
    return lambda: surrogate.bind(y, offsets).value_and_grad(next(scores))
