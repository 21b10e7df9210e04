"""The objective of a linear ranker on a device: features stay there, weights come and go."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from concordant.rankers.devices.losses import working_on
from concordant.solvers.precondition import rows_from, sampled_queries
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.devices.losses import Tensor, Told

__all__ = ["DeviceObjective", "Kept", "pulled"]

Method = TypeVar("Method", bound=Callable[..., Any])

STEP = 0.5  # of scores of spread 1, on either side: how the gradient changes between shows the curvature


class Kept(NamedTuple):
    """Features as a device keeps them: X is rows * power + mean, up to what the loss does not see.

    Attributes
    ----------
    rows
        On the device, rows of each query adjacent.
    power
        Of two, by feature: 1 but where single precision would leave its range.
    mean
        0 but where the loss sees the level of scores.
    """

    rows: Tensor
    power: FloatArray
    mean: FloatArray


def there(method: Method) -> Method:
    """Run a method of an objective where its features are."""

    @wraps(method)
    def run(self: DeviceObjective, *given: Any) -> Any:
        with working_on(self.X.device):
            return method(self, *given)

    return run  # type: ignore[return-value]


class DeviceObjective:
    """What `LinearObjective` is, by torch: the mean loss at scores X @ w plus alpha/2 |w|^2.

    Scores and gradients have the precision of X; values are added up, and weights kept, in double precision.
    Each evaluation waits for the device once.

    Parameters
    ----------
    loss
        Scores to values of the queries and gradient of the rows.
    kept
        Features on the device.
    offsets
        Where each query starts.
    alpha, scale
        As of `LinearObjective`.
    level
        Whether the loss sees the level of a query's scores.
    unit
        What the loss is multiplied by: holds the 1/n_queries of the mean, which single precision would round.
    """

    sparse = False

    def __init__(
        self,
        loss: Told,
        kept: Kept,
        offsets: IntArray,
        alpha: float,
        scale: FloatArray,
        *,
        level: bool,
        unit: float = 1.0,
    ) -> None:
        self.loss, self.offsets, self.level, self.unit = loss, offsets, level, unit
        self.X, self.power, self.mean = kept
        self.alpha, self.scale, self.n_features, self.n_gradients = float(alpha), scale, len(scale), 0

    @there
    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Give the objective and its gradient."""
        import torch

        weights = w / self.scale
        there = torch.from_numpy(weights * self.power).to(self.X.device, self.X.dtype)
        values, rows = self.loss(self.X @ there + float(self.mean @ weights))
        sums = [part.sum(dtype=torch.float64)[None] for part in (values, rows)]
        found = self.unit * torch.cat([*sums, pulled(self.X, rows)]).cpu().numpy()  # the one wait
        self.n_gradients += 1
        value = float(found[0] + 0.5 * self.alpha * (w @ w))
        return value, (found[2:] * self.power + found[1] * self.mean) / self.scale + self.alpha * w

    @there
    def at_rest(self) -> float:
        """Give the objective at weights 0; X is not read."""
        return self.unit * float(self.loss(self.X.new_zeros(len(self.X)))[0].double().sum())

    @there
    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Rows of X of random whole queries, on the host, and where each query starts among them."""
        import torch

        queries, counts = sampled_queries(self.offsets, self.n_features, rng)
        rows = torch.from_numpy(rows_from(self.offsets[queries], counts)).to(self.X.device)
        found: FloatArray = self.X[rows].cpu().numpy() * self.power + self.mean
        return found, np.cumsum([0, *counts])

    @there
    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries.

        By differences of gradients at scores of spread 1: as hinges have it, whose curvature is at corners.
        """
        import torch

        source = torch.Generator(self.X.device).manual_seed(int(rng.integers(2**62)))
        shape: Any = {"generator": source, "device": self.X.device, "dtype": self.X.dtype}
        scores, vector = torch.randn((2, len(self.X)), **shape)

        def bend(direction: Tensor) -> float:
            ahead, behind = (self.loss(scores + side * direction)[1] for side in (STEP, -STEP))
            change = (ahead - behind) * direction
            return max(self.unit * float(change.sum(dtype=torch.float64)) / (2.0 * STEP), 0.0)

        return bend(vector), bend(torch.ones_like(vector)) if self.level else 0.0


def pulled(X: Tensor, rows: Tensor) -> Tensor:
    """X.T @ rows, as doubles; added up in the precision of X."""
    return (rows @ X).double()
