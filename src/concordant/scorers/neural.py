"""Scores by a network: transformed features through a perceptron of some layers. Needs torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.scorers.neural_transforms import tensor_of
from concordant.types import IntArray

__all__ = ["LIMIT", "Dropout", "NeuralScorer", "whole_queries"]

CHUNK = 2**15  # rows transformed at a time, in doubles
LIMIT = 1e30  # what transformed features are cut off at: float32 still has room for sums of products


class Dropout(nn.Module):
    """Sets a share of the numbers to 0 while training, and enlarges the others to keep the mean.

    Unlike torch's own it draws from a generator of the caller, so that fits in threads do not meet.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Give what is left of the numbers."""
        if not (self.training and self.share):
            return values
        kept = torch.empty_like(values).bernoulli_(1.0 - self.share, generator=generator)
        return values * kept * (1.0 / (1.0 - self.share))


class NeuralScorer(nn.Module):
    """Scores of items: transformed features through linear layers with rectifiers between them.

    Calling it with features gives scores; training calls `inputs` once and `scores` often.

    Parameters
    ----------
    transforms
        What is done with the features first; nothing of it is trained.
    n_features
        Columns of X.
    hidden
        Outputs of each hidden layer; () is a linear function.
    dropout
        Share of the hidden outputs that are set to 0 in training.
    context
        Whether an item is also described by how far each of its features is from the mean of its query.
    level
        Whether a bias is added to the scores. Losses that read only differences of scores would let it
        drift with rounding.
    rng
        Draws the first weights, the same on every device.

    Examples
    --------
    >>> from concordant.scorers.neural_transforms import Log1p
    >>> rng = np.random.default_rng(0)
    >>> scorer = NeuralScorer(nn.Sequential(Log1p()), 3, (4,), 0.0, context=False, rng=rng)
    >>> scorer(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(
        self,
        transforms: nn.Sequential,
        n_features: int,
        hidden: Sequence[int],
        dropout: float,
        *,
        context: bool,
        level: bool = True,
        rng: np.random.Generator,
    ) -> None:
        super().__init__()
        self.transforms, self.n_features, self.context, self.level = transforms, n_features, context, level
        widths = [n_features * (2 if context else 1), *hidden, 1]
        self.layers = nn.Sequential()
        for depth, (wide, narrow) in enumerate(itertools.pairwise(widths)):
            if depth:
                self.layers.append(nn.ReLU())
                self.layers.append(Dropout(dropout))
            self.layers.append(drawn_layer(wide, narrow, rng, bias=level or depth < len(hidden)))

    @property
    def shape(self) -> tuple[int, tuple[int, ...], bool, bool]:
        """Features, outputs of each hidden layer, whether it reads the context, and has a level."""
        return self.n_features, tuple(self.widths[1:-1]), self.context, self.level

    def drop(self, share: float) -> None:
        """Change the share of the hidden outputs that training sets to 0."""
        for layer in self.layers:
            if isinstance(layer, Dropout):
                layer.share = share

    @property
    def weights(self) -> list[Tensor]:
        """Weights of each layer, without the biases."""
        return [layer.weight for layer in self.layers if isinstance(layer, nn.Linear)]

    @property
    def widths(self) -> list[int]:
        """Inputs of the network, outputs of each hidden layer, and 1."""
        return [self.weights[0].shape[1], *(weight.shape[0] for weight in self.weights)]

    def inputs(
        self, X: Any, offsets: IntArray | None = None, *, device: Any = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Give what the layers read, rows of each query adjacent, at most `LIMIT` large before the context.

        Work is done in doubles, some rows at a time.

        Parameters
        ----------
        X
            Features: a tensor, a dense array or compressed rows.
        offsets
            Where each query begins, and last the number of rows; None: all rows are one query.
        device, dtype
            Of the result; None: those of the weights.
        """
        weight = self.weights[0]
        place, kind = device or weight.device, dtype or weight.dtype
        n_rows = int(X.shape[0])
        edges = np.array([0, n_rows]) if offsets is None else np.asarray(offsets)
        if not self.context:
            edges = np.r_[0:n_rows:CHUNK, n_rows]
        result = torch.empty((n_rows, self.widths[0]), device=place, dtype=kind)
        with torch.no_grad():
            for first, last in whole_queries(np.diff(edges), CHUNK):
                rows = slice(edges[first], edges[last])
                result[rows] = self.described(X[rows], edges[first : last + 1] - edges[first], place)
        return result

    def described(self, X: Any, offsets: IntArray, device: Any) -> Tensor:
        """Give the inputs of some whole queries, in doubles."""
        dense = X.toarray() if hasattr(X, "toarray") else X
        plain: Tensor = self.transforms.to(device)(tensor_of(dense).to(device).double())
        plain = plain.clamp(-LIMIT, LIMIT)
        return joined_by_context(plain, offsets) if self.context else plain

    def scores(self, inputs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Give one score per row of what `inputs` gave; training drops by the generator, else by torch's."""
        values = inputs
        for layer in self.layers:
            values = layer(values, generator) if isinstance(layer, Dropout) else layer(values)
        return values.squeeze(-1)

    def forward(self, X: Any, offsets: IntArray | None = None) -> Tensor:
        """Give one score per row."""
        return self.scores(self.inputs(X, offsets))


def drawn_layer(n_inputs: int, n_outputs: int, rng: np.random.Generator, *, bias: bool) -> nn.Linear:
    """Give a layer whose weights and biases are uniform, at most 1 / sqrt(n_inputs) large."""
    layer = nn.Linear(n_inputs, n_outputs, bias=bias, device="meta", dtype=torch.float32).to_empty(
        device="cpu"
    )
    most = 1.0 / math.sqrt(max(n_inputs, 1))
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(tensor_of(rng.uniform(-most, most, tuple(part.shape))))
    return layer


def joined_by_context(plain: Tensor, offsets: IntArray) -> Tensor:
    """Give the inputs, and beside them how far each is from its query's mean."""
    sizes = tensor_of(np.diff(offsets)).to(plain.device)
    means = torch.segment_reduce(plain, "mean", lengths=sizes, axis=0, unsafe=True)
    return torch.cat([plain, plain - means.repeat_interleave(sizes, 0, output_size=len(plain))], dim=1)


def whole_queries(sizes: IntArray, n_rows: int) -> Iterator[tuple[int, int]]:
    """Cut queries, in this order, into runs (first, last) of at most so many rows; longer ones stand alone.

    >>> list(whole_queries(np.array([2, 2, 0, 3, 9, 1]), 4))
    [(0, 3), (3, 4), (4, 5), (5, 6)]
    """
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        room = ends[first] - sizes[first] + n_rows
        last = max(int(np.searchsorted(ends, room, side="right")), first + 1)
        yield first, last
        first = last
