"""Synthetic sets of the shape of public ones: linear truth and noise, correlated features, skewed grades."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concordant.rankers.training import feature_scale


@dataclass(frozen=True)
class Shape:
    """Numbers of documents, features and queries, and how often each grade occurs."""

    name: str
    n_documents: int
    n_features: int
    n_queries: int
    grades: tuple[float, ...]

    def part(self, share: float) -> "Shape":
        """The same with fewer queries."""
        return Shape(
            self.name,
            int(self.n_documents * share),
            self.n_features,
            max(int(self.n_queries * share), 2),
            self.grades,
        )


MSLR = Shape("MSLR-WEB10K, one fold", 723_000, 136, 6_000, (0.521, 0.325, 0.133, 0.0135, 0.0075))
MQ2007 = Shape("MQ2007", 69_623, 46, 1_692, (0.741, 0.203, 0.056))


@dataclass(frozen=True)
class Set:
    """Rows of each query adjacent; `qid` ascends."""

    shape: Shape
    X: np.ndarray  # float32
    y: np.ndarray
    qid: np.ndarray
    offsets: np.ndarray

    @classmethod
    def random(cls, shape: Shape, seed: int = 0) -> "Set":
        """Features share some causes, a third is heavy-tailed; grades follow a linear score and noise."""
        rng = np.random.default_rng(seed)
        sizes = 1 + rng.multinomial(shape.n_documents - shape.n_queries, lengths(shape.n_queries, rng))
        causes = rng.standard_normal((max(shape.n_features // 4, 1), shape.n_features), dtype=np.float32)
        X = rng.standard_normal((shape.n_documents, shape.n_features), dtype=np.float32)
        X += rng.standard_normal((shape.n_documents, len(causes)), dtype=np.float32) @ causes
        truth = X @ rng.standard_normal(shape.n_features, dtype=np.float32)
        noisy = truth / truth.std() + rng.standard_normal(shape.n_documents)
        X[:, ::3] = np.exp(X[:, ::3] / X[:, ::3].std(axis=0))  # counts of words are far from normal
        X *= np.float32(10.0) ** rng.uniform(-1.0, 1.0, shape.n_features).astype(np.float32)
        y = np.searchsorted(np.quantile(noisy, np.cumsum(shape.grades)[:-1]), noisy)
        return cls(shape, X, y, np.repeat(np.arange(shape.n_queries), sizes), np.r_[0, sizes.cumsum()])

    def __str__(self) -> str:
        rows, columns = self.X.shape
        size = f"{rows:,} documents, {columns} features, {self.shape.n_queries:,} queries"
        return f"The shape of {self.shape.name}: {size}."

    @property
    def per_row(self) -> np.ndarray:
        """Weights of the mean over queries."""
        return np.full(len(self.y), 1.0 / self.shape.n_queries)

    @cached_property
    def spread(self) -> np.ndarray:
        """Spread of the features, by which LinearRanker divides them."""
        return feature_scale(self.X, self.offsets, np.full(self.shape.n_queries, 1.0 / self.shape.n_queries))


def lengths(n_queries: int, rng: np.random.Generator) -> np.ndarray:
    """Shares of the documents: most queries near the mean, few several times as long."""
    shares = rng.gamma(4.0, size=n_queries)
    return shares / shares.sum()
