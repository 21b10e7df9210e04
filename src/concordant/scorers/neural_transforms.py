"""What is done with features before a network reads them: fitted once, kept as buffers. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import FloatArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "TRANSFORMS",
    "Log1p",
    "Quantile",
    "Standard",
    "check_transforms",
    "fitted_transforms",
    "tensor_of",
]

N_QUANTILES = 1000
# A spread below this share of the numbers is rounding.
ROUNDING = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-13}


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
    """(x - mean) / spread; a feature that was constant becomes 0, whatever it is later."""

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: FloatArray, spread: FloatArray) -> None:
        super().__init__()
        self.register_buffer("mean", tensor_of(mean))
        self.register_buffer("spread", tensor_of(spread))

    @classmethod
    def fitted(cls, rows: FloatArray) -> Standard:
        """Take mean and standard deviation of these rows; that of a constant feature is infinite."""
        mean, spread, most = moments(rows)
        spread = spread * most
        return cls(mean * most, np.where(spread >= np.finfo(np.float64).tiny, spread, np.inf))

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
        self.register_buffer("landmarks", tensor_of(landmarks))

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
    """Fit each transform to the rows as the ones before leave them.

    A feature that varies by no more than the rounding of its type counts as constant.
    """
    transforms = nn.Sequential()
    current = np.array(rows, dtype=np.float64)
    constant = moments(current)[1] <= ROUNDING.get(np.asarray(rows).dtype, ROUNDING[current.dtype])
    current[:, constant] = current[0, constant]
    for name in names:
        one = TRANSFORMS[name].fitted(current)
        current = one(tensor_of(current)).numpy()
        transforms.append(one)
    return transforms


def moments(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give mean and deviation of each feature as shares of its largest size, and that.

    Squares of shares neither overflow nor vanish, and those about the first row are 0 for a constant.
    """
    most = np.maximum(np.abs(rows).max(axis=0), np.finfo(np.float64).tiny)
    first = rows[0] / most
    apart = rows / most - first
    return first + apart.mean(axis=0), apart.std(axis=0), most


def tensor_of(values: Any) -> Tensor:
    """Give a tensor on the host, sharing memory where that may be written to: torch warns of other arrays."""
    if isinstance(values, Tensor):
        return values
    found = np.asarray(values)
    return torch.from_numpy(found if found.flags.writeable else found.copy())
