"""Losses and metrics for torch: ragged, padded and nested lists, CPU and GPU, without n x n memory."""

from importlib.util import find_spec

from concordant.exceptions import MissingExtraError

if find_spec("torch") is None:
    raise MissingExtraError("torch", "torch", "concordant.torch")

from concordant.torch import functional
from concordant.torch.lists import Lists
from concordant.torch.losses import OrderPreservingLoss, PositionHingeLoss, SoftmaxLoss, SquaredLoss
from concordant.torch.metrics import DeviceMetric, metric
from concordant.torch.pair_squared import PairSquaredLoss

__all__ = [
    "DeviceMetric", "Lists", "OrderPreservingLoss", "PairSquaredLoss", "PositionHingeLoss", "SoftmaxLoss",
    "SquaredLoss", "functional", "metric",
]  # fmt: skip
