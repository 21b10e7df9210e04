"""Features on a common scale: their means and deviations, over both sides of the training pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Scaling", "means", "squares"]

STEADY = 1e-12  # deviations below this share of a feature's size are rounding: the feature is constant


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is subtracted from each feature and what it is divided by; constant features are dropped.

    Attributes
    ----------
    mean, deviation
        Of the features that are kept.
    kept
        Which those are.
    """

    mean: FloatArray
    deviation: FloatArray
    kept: BoolArray

    @classmethod
    def of(cls, pairs: FloatArray, weight: FloatArray) -> Scaling:
        """Measure the training pairs; a pair of weight 2 counts as two.

        >>> scaling = Scaling.of(np.array([[[0.0, 7.0], [4.0, 7.0]]]), np.ones(1))
        >>> scaling.mean.tolist(), scaling.deviation.tolist(), scaling.kept.tolist()
        ([2.0], [2.0], [True, False])
        """
        share = weight / (2.0 * weight.sum())
        mean = means(pairs, share)
        return cls.from_moments(mean, squares(pairs, share, mean))

    @classmethod
    def from_moments(cls, mean: FloatArray, square: FloatArray) -> Scaling:
        """Keep the features that vary, given the means of all and of their squares about them."""
        deviation = np.sqrt(square)
        kept = deviation > STEADY * np.abs(mean)
        return cls(mean[kept], deviation[kept], kept)

    def __call__(self, items: FloatArray) -> FloatArray:
        """Scale items; the last axis holds the features."""
        scaled: FloatArray = (items[..., self.kept] - self.mean) / self.deviation
        return scaled

    def differences(self, pairs: FloatArray, y: IntArray) -> FloatArray:
        """Give scaled right - left, turned so that right is better."""
        turned = pairs[:, 1] - pairs[:, 0]
        turned = turned if self.kept.all() else turned[:, self.kept]
        turned *= np.where(y < 0, -1.0, 1.0)[:, None] / self.deviation
        return turned


def means(pairs: FloatArray, share: FloatArray) -> FloatArray:
    """Sum of the features of both sides, times the share of each pair."""
    mean: FloatArray = share @ pairs.sum(axis=1)
    return mean


def squares(pairs: FloatArray, share: FloatArray, mean: FloatArray) -> FloatArray:
    """Sum of the squares of both sides about the mean, times the share of each pair."""
    square = np.zeros(pairs.shape[2])
    for side in (0, 1):
        centred = pairs[:, side] - mean
        square += np.einsum("i,ij,ij->j", share, centred, centred)
    return square
