"""Scores by a network: input transforms, kept as buffers, and a perceptron of some layers. Needs torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "TRANSFORMS",
    "Log1p",
    "NeuralScorer",
    "Quantile",
    "Standard",
    "check_transforms",
    "fitted_transforms",
    "tensor_of",
    "whole_queries",
]

ROUNDING = 1e-7  # a spread below this share of the numbers is rounding: of float32 features, too
N_QUANTILES = 1000
CHUNK = 2**15  # rows transformed at a time, in doubles


class Log1p(nn.Module):
    """sign(x) log(1 + abs(x)): near 0 the identity, then ever flatter."""

    @classmethod
    def fitted(cls, rows: FloatArray) -> Log1p:
        """Give the transform; it learns nothing."""
        del rows
        return cls()

    def forward(self, X: Tensor) -> Tensor:
        """Give the transformed features."""
        return X.sign() * X.abs().log1p()


class Standard(nn.Module):
    """(x - mean) / spread; a feature that is constant becomes 0."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: FloatArray, spread: FloatArray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("spread", torch.as_tensor(spread))

    @classmethod
    def fitted(cls, rows: FloatArray) -> Standard:
        """Take mean and standard deviation of these rows."""
        most = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
        shares = rows / most  # whose squares neither overflow nor vanish
        mean, spread = shares.mean(axis=0), shares.std(axis=0)
        return cls(mean * most, np.where(spread > ROUNDING, spread, 1.0) * most)

    def forward(self, X: Tensor) -> Tensor:
        """Give the transformed features."""
        return (X - self.mean) / self.spread


class Quantile(nn.Module):
    """The share of the training rows that lie below, from 0 to 1; between landmarks by a straight line.

    Values that many rows have get the middle of their shares, but the least one 0 and the largest 1: as
    `sklearn.preprocessing.QuantileTransformer` with a uniform output.
    """

    landmarks: Tensor

    def __init__(self, landmarks: FloatArray) -> None:
        super().__init__()
        self.register_buffer("landmarks", torch.as_tensor(landmarks))

    @classmethod
    def fitted(cls, rows: FloatArray) -> Quantile:
        """Take the landmarks from these rows."""
        places = np.linspace(0.0, len(rows) - 1.0, min(N_QUANTILES, len(rows))).round(9)  # ties stay ties
        below = places.astype(np.int64)
        ordered = np.sort(rows, axis=0)
        left, right = ordered[below], ordered[np.minimum(below + 1, len(rows) - 1)]
        landmarks = left + (places - below)[:, None] * (right - left)
        return cls(np.ascontiguousarray(landmarks.T))

    def forward(self, X: Tensor) -> Tensor:
        """Give the transformed features."""
        values, marks = X.to(self.landmarks).T.contiguous(), self.landmarks
        last = marks.shape[1] - 1
        below = torch.searchsorted(marks, values)
        until = torch.searchsorted(marks, values, right=True)
        left = (below - 1).clamp(0, last)
        right = below.clamp(0, last)
        gap = marks.gather(1, right) - marks.gather(1, left)
        way = (values - marks.gather(1, left)) / torch.where(gap > 0, gap, 1.0)
        shares = torch.where(until > below, (below + until - 1).to(values) / 2, left + way) / max(last, 1)
        shares = torch.where(values <= marks[:, :1], 0.0, torch.where(values >= marks[:, -1:], 1.0, shares))
        return shares.T.to(X.dtype)


TRANSFORMS: dict[str, Any] = {"log1p": Log1p, "quantile": Quantile, "standard": Standard}


def check_transforms(transforms: Any) -> tuple[str, ...]:
    """Give the names of transforms, in the order in which they are applied.

    >>> check_transforms("log1p"), check_transforms(None), check_transforms(("log1p", "standard"))
    (('log1p',), (), ('log1p', 'standard'))
    """
    names = () if transforms is None else (transforms,) if isinstance(transforms, str) else transforms
    if not isinstance(names, (tuple, list)):
        raise ParameterError("transforms", transforms, f"None, one or several of {', '.join(TRANSFORMS)}")
    for name in names:
        if not isinstance(name, str) or name not in TRANSFORMS:
            raise UnknownNameError("transform", name, TRANSFORMS)
    return tuple(names)


def fitted_transforms(names: Sequence[str], rows: NDArray[Any]) -> nn.Sequential:
    """Fit each transform to the rows as the ones before leave them."""
    transforms = nn.Sequential()
    current = np.asarray(rows, dtype=np.float64)
    for name in names:
        one = TRANSFORMS[name].fitted(current)
        current = one(tensor_of(current)).numpy()
        transforms.append(one)
    return transforms


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
                self.layers.append(nn.Dropout(dropout))
            self.layers.append(drawn_layer(wide, narrow, rng, bias=level or depth < len(hidden)))

    @property
    def shape(self) -> tuple[int, tuple[int, ...], bool, bool]:
        """Features, outputs of each hidden layer, whether it reads the context, and has a level."""
        return self.n_features, tuple(self.widths[1:-1]), self.context, self.level

    def drop(self, share: float) -> None:
        """Change the share of the hidden outputs that training sets to 0."""
        for layer in self.layers:
            if isinstance(layer, nn.Dropout):
                layer.p = share

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
        """Give what the layers read, rows of each query adjacent; work is done in doubles, some rows a time.

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
        return joined_by_context(plain, offsets) if self.context else plain

    def scores(self, inputs: Tensor) -> Tensor:
        """Give one score per row of what `inputs` gave."""
        scores: Tensor = self.layers(inputs).squeeze(-1)
        return scores

    def forward(self, X: Any, offsets: IntArray | None = None) -> Tensor:
        """Give one score per row."""
        return self.scores(self.inputs(X, offsets))


def tensor_of(values: Any) -> Tensor:
    """Give a tensor, sharing memory where that may be written to: torch warns of other arrays."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        return torch.as_tensor(values.copy())
    return torch.as_tensor(values)


def drawn_layer(n_inputs: int, n_outputs: int, rng: np.random.Generator, *, bias: bool) -> nn.Linear:
    """Give a layer whose weights and biases are uniform, at most 1 / sqrt(n_inputs) large."""
    layer = nn.Linear(n_inputs, n_outputs, bias=bias, device="meta").to_empty(device="cpu")
    most = 1.0 / math.sqrt(max(n_inputs, 1))
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(torch.as_tensor(rng.uniform(-most, most, tuple(part.shape))))
    return layer


def joined_by_context(plain: Tensor, offsets: IntArray) -> Tensor:
    """Give the inputs, and beside them how far each is from its query's mean."""
    sizes = torch.as_tensor(np.diff(offsets), device=plain.device)
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
