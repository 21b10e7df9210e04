"""Networks: fitted feature transforms, and a perceptron that scores items. Needs torch."""

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


# Feature transforms before the network: fitted once, kept as buffers. Needs torch.

N_QUANTILES = 1000
# A spread below this share of the values is rounding.
ROUNDING = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-13}


class Log1p(nn.Module):
    """sign(x) log(1 + abs(x)): the identity near 0, then ever flatter."""

    @classmethod
    def from_rows(cls, rows: FloatArray) -> Log1p:
        """Return the transform; nothing is fitted."""
        del rows
        return cls()

    def forward(self, X: Tensor) -> Tensor:
        """Return the transformed features."""
        return X.sign() * X.abs().log1p()


class Standard(nn.Module):
    """(x - mean) / spread; a feature that was constant in training becomes 0."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: FloatArray, spread: FloatArray) -> None:
        super().__init__()
        self.register_buffer("mean", as_tensor(mean))
        self.register_buffer("spread", as_tensor(spread))

    @classmethod
    def from_rows(cls, rows: FloatArray) -> Standard:
        """Fit mean and standard deviation; the spread of a constant feature is set to infinity."""
        mean, spread, most = moments(rows)
        spread = spread * most
        return cls(mean * most, np.where(spread >= np.finfo(np.float64).tiny, spread, np.inf))

    def forward(self, X: Tensor) -> Tensor:
        """Return the transformed features."""
        return (X - self.mean) / self.spread


class Quantile(nn.Module):
    """Share of the training rows that lie below, from 0 to 1, interpolated linearly between landmarks.

    Tied values get the middle of their shares, but the smallest value 0 and the largest 1, as in
    `sklearn.preprocessing.QuantileTransformer` with a uniform output.
    """

    landmarks: Tensor

    def __init__(self, landmarks: FloatArray) -> None:
        super().__init__()
        self.register_buffer("landmarks", as_tensor(landmarks))

    @classmethod
    def from_rows(cls, rows: FloatArray) -> Quantile:
        """Fit the landmarks."""
        quantiles = np.linspace(0.0, len(rows) - 1.0, min(N_QUANTILES, len(rows))).round(9)  # ties stay ties
        below = quantiles.astype(np.int64)
        ordered = np.sort(rows, axis=0)
        left, right = ordered[below], ordered[np.minimum(below + 1, len(rows) - 1)]
        landmarks = left + (quantiles - below)[:, None] * (right - left)
        return cls(np.ascontiguousarray(landmarks.T))

    def forward(self, X: Tensor) -> Tensor:
        """Return the transformed features."""
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
    """Return the names of transforms, in the order in which they are applied.

    >>> check_transforms("log1p"), check_transforms(None), check_transforms(("log1p", "standard"))
    (('log1p',), (), ('log1p', 'standard'))
    """
    names = () if transforms is None else (transforms,) if isinstance(transforms, str) else transforms
    if not isinstance(names, (tuple, list)):
        raise ParameterError("transforms", transforms, f"None or some of {', '.join(map(repr, TRANSFORMS))}")
    for name in names:
        if not isinstance(name, str) or name not in TRANSFORMS:
            raise UnknownNameError("transform", name, TRANSFORMS)
    return tuple(names)


def fitted_transforms(names: Sequence[str], rows: NDArray[Any]) -> nn.Sequential:
    """Fit each transform to the rows as transformed by the previous ones.

    A feature whose variation is within the rounding of its type counts as constant.
    """
    transforms = nn.Sequential()
    transformed = np.array(rows, dtype=np.float64)
    constant = moments(transformed)[1] <= ROUNDING.get(np.asarray(rows).dtype, ROUNDING[transformed.dtype])
    transformed[:, constant] = transformed[0, constant]
    for name in names:
        transform = TRANSFORMS[name].from_rows(transformed)
        transformed = transform(as_tensor(transformed)).numpy()
        transforms.append(transform)
    return transforms


def moments(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and deviation of each feature as shares of its largest absolute value, and that value.

    Squares of shares neither overflow nor vanish, and squares about the first row are 0 for a constant.
    """
    most = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
    first = rows[0] / most
    apart = rows / most - first
    return first + apart.mean(axis=0), apart.std(axis=0), most


def as_tensor(values: Any) -> Tensor:
    """Return a tensor on the host; memory is shared if it is writable, since torch warns otherwise."""
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


# The scoring network: transformed features through a multilayer perceptron. Needs torch.

CHUNK = 2**15  # rows transformed at a time, in doubles
LIMIT = 1e30  # transformed features are clipped here: float32 still has room for sums of products


class Dropout(nn.Module):
    """Sets a share of the values to 0 while training, and scales the others up to keep the mean.

    Unlike torch's module it draws from the caller's generator, so that fits in threads are independent.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return the values with some of them dropped."""
        if not (self.training and self.share):
            return values
        mask = torch.empty_like(values).bernoulli_(1.0 - self.share, generator=generator)
        return values * mask * (1.0 / (1.0 - self.share))


class NeuralScorer(nn.Module):
    """Scores items: transformed features through linear layers with rectifiers between them.

    Calling the module with features returns scores; training calls `inputs` once and `scores` often.

    Parameters
    ----------
    transforms
        Transforms of the features, which are not trained.
    n_features
        Number of columns of X.
    hidden
        Number of outputs of each hidden layer; () is a linear function.
    dropout
        Share of the hidden outputs that are set to 0 in training.
    context
        True if inputs include the difference of each feature from its query's mean.
    level
        True if a bias is added to the scores. With losses that read only score differences it would drift by
        rounding.
    rng
        Generator of the initial weights, which are the same on every device.

    Examples
    --------
    >>> from concordant.rankers.networks.network import Log1p
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
            self.layers.append(_drawn_layer(wide, narrow, rng, bias=level or depth < len(hidden)))

    @property
    def shape(self) -> tuple[int, tuple[int, ...], bool, bool]:
        """Number of features, outputs of each hidden layer, context and level."""
        return self.n_features, tuple(self.widths[1:-1]), self.context, self.level

    def set_dropout(self, share: float) -> None:
        """Change the share of the hidden outputs that training sets to 0."""
        for layer in self.layers:
            if isinstance(layer, Dropout):
                layer.share = share

    @property
    def weights(self) -> list[Tensor]:
        """Weights of each layer, without biases."""
        return [layer.weight for layer in self.layers if isinstance(layer, nn.Linear)]

    @property
    def widths(self) -> list[int]:
        """Number of inputs of the network, outputs of each hidden layer, and 1."""
        return [self.weights[0].shape[1], *(weight.shape[0] for weight in self.weights)]

    def inputs(
        self, X: Any, offsets: IntArray | None = None, *, device: Any = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Return the inputs of the layers, clipped to `LIMIT` before adding the context.

        Computed in double precision, some rows at a time.

        Parameters
        ----------
        X
            Features: a tensor, a dense array or a CSR matrix.
        offsets
            Row offsets of the queries; None: all rows are one query.
        device, dtype
            Device and type of the result; None: those of the weights.
        """
        weight = self.weights[0]
        target, kind = device or weight.device, dtype or weight.dtype
        n_rows = int(X.shape[0])
        edges = np.array([0, n_rows]) if offsets is None else np.asarray(offsets)
        if not self.context:
            edges = np.r_[0:n_rows:CHUNK, n_rows]
        result = torch.empty((n_rows, self.widths[0]), device=target, dtype=kind)
        with torch.no_grad():
            for first, last in whole_queries(np.diff(edges), CHUNK):
                rows = slice(edges[first], edges[last])
                result[rows] = self.transform_rows(X[rows], edges[first : last + 1] - edges[first], target)
        return result

    def transform_rows(self, X: Any, offsets: IntArray, device: Any) -> Tensor:
        """Return the inputs of some whole queries, in double precision."""
        dense = X.toarray() if hasattr(X, "toarray") else X
        plain: Tensor = self.transforms.to(device)(as_tensor(dense).to(device).double())
        plain = plain.clamp(-LIMIT, LIMIT)
        return _append_context(plain, offsets) if self.context else plain

    def scores(self, inputs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return a score per row of `inputs`; dropout draws from the generator, by default torch's."""
        values = inputs
        for layer in self.layers:
            values = layer(values, generator) if isinstance(layer, Dropout) else layer(values)
        return values.squeeze(-1)

    def forward(self, X: Any, offsets: IntArray | None = None) -> Tensor:
        """Return a score per row."""
        return self.scores(self.inputs(X, offsets))


def _drawn_layer(n_inputs: int, n_outputs: int, rng: np.random.Generator, *, bias: bool) -> nn.Linear:
    """Return a layer with weights and biases uniform in +-1 / sqrt(n_inputs)."""
    layer = nn.Linear(n_inputs, n_outputs, bias=bias, device="meta", dtype=torch.float32)
    layer = layer.to_empty(device="cpu")
    most = 1.0 / math.sqrt(max(n_inputs, 1))
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(as_tensor(rng.uniform(-most, most, tuple(part.shape))))
    return layer


def _append_context(plain: Tensor, offsets: IntArray) -> Tensor:
    sizes = as_tensor(np.diff(offsets)).to(plain.device)
    means = torch.segment_reduce(plain, "mean", lengths=sizes, axis=0, unsafe=True)
    return torch.cat([plain, plain - means.repeat_interleave(sizes, 0, output_size=len(plain))], dim=1)


def whole_queries(sizes: IntArray, n_rows: int) -> Iterator[tuple[int, int]]:
    """Cut queries, in this order, into runs (first, last) of at most `n_rows` rows; longer queries are alone.

    >>> list(whole_queries(np.array([2, 2, 0, 3, 9, 1]), 4))
    [(0, 3), (3, 4), (4, 5), (5, 6)]
    """
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        room = ends[first] - sizes[first] + n_rows
        last = max(int(np.searchsorted(ends, room, side="right")), first + 1)
        yield first, last
        first = last
