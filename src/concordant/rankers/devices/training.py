"""From checked labels and features to an objective on a device: what `training.compiled` does there."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import assert_all_finite, validate_data

from concordant._segments import cut_queries
from concordant.exceptions import NonFiniteError, ParameterError, ShapeError
from concordant.rankers.devices.losses import device_form, homogeneous, is_tensor, levelled, refuse_hollow
from concordant.rankers.devices.objective import DeviceObjective, Kept
from concordant.rankers.devices.transfer import fetched, moved
from concordant.rankers.training import Setting, spread_of
from concordant.supervision.check import naming_features, plain_features
from concordant.supervision.queries import Queries
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.devices.losses import Tensor, Told
    from concordant.torch.lists import Lists

__all__ = ["device_features", "on_device"]

PART_CELLS = 2**25  # of X that are worked on at a time: 256 MB in double precision
PIECE_ROWS = 1024  # that one thread of the device adds up
MODERATE = 32  # powers of two up to which a feature may lie off 1: products stay far within single precision


def device_features(model: Any, X: ArrayLike) -> Any:
    """Features as float32 or float64, a tensor or an array, their names and number noted by the model.

    Whether they are finite is seen on the device.
    """
    if hasattr(X, "tocsr"):
        wanted = "dense on a device (X.toarray(), if memory allows); device=None reads compressed rows"
        raise ParameterError("X", f"a sparse {type(X).__name__}", wanted)
    if not is_tensor(X):
        kinds = [np.float64, np.float32]
        with naming_features():
            given = plain_features(X)
            return validate_data(model, given, reset=True, dtype=kinds, order="C", ensure_all_finite=False)
    refuse_hollow(X)
    if X.is_complex():
        raise ParameterError("X", f"a tensor of {X.dtype}", "one of real numbers")
    if X.ndim != 2 or not X.numel():
        raise ShapeError("X", tuple(X.shape), "rows and columns, at least one of each")
    validate_data(model, X, reset=True, skip_check_array=True)
    found = X.detach()
    if not found.is_floating_point():
        return found.double()
    return found.float() if found.itemsize < 4 else found


def on_device(
    surrogate: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    shares: FloatArray,
    weights: FloatArray,
    *,
    fit_scale: bool,
    device: Any,
) -> Setting:
    """Move the features there, sort and measure them, and give what makes objectives of them."""
    from concordant.torch.lists import Lists

    surrogate.check_targets(labels)
    level, offsets = levelled(surrogate), queries.offsets
    rows = moved(X, device)
    if queries.moved is not None:
        rows = rows[moved(queries.moved, device)]
    lists = Lists.of(np.array(offsets), device)
    kept, inside, whole = measured(rows, lists, offsets, shares, level=level)
    labels, weights, unit = in_units(surrogate, labels, weights)
    told = device_form(surrogate)(moved(labels, device), moved(weights, device).to(rows.dtype), lists)
    check_rest(told, kept.rows, unit)
    n_rows = float(shares @ np.diff(offsets))
    scale = spread_of(inside, whole, n_rows) if fit_scale else np.ones(rows.shape[1])
    ordered = X if queries.moved is None and not is_tensor(X) else Fetched(X, queries)
    given = told, kept, offsets
    return Setting(
        ordered, scale, lambda alpha: DeviceObjective(*given, alpha, scale, level=level, unit=unit)
    )


def in_units(
    surrogate: Surrogate, labels: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Give labels and weights that single precision can hold, and what the loss is to be multiplied by."""
    if homogeneous(surrogate):
        labels, weights = np.ones_like(labels), labels * weights
    unit = float(weights.max(initial=0.0)) or 1.0
    return labels, weights / unit, unit


def check_rest(told: Told, X: Tensor, unit: float) -> None:
    """Refuse a loss that at weights 0 is beyond the precision of X, or whose slope is."""
    values, rows = told(X.new_zeros(len(X)))
    value = unit * float(values.double().sum() + rows.double().abs().sum())
    if not np.isfinite(value):
        wide = "" if X.itemsize > 4 else ", or give X as float64"
        raise NonFiniteError("the loss", value, "weights 0", 1, f"divide the labels or weights{wide}.")


class Measured(NamedTuple):
    """What the loss reads of X, and each feature's squares about the queries' means, and about 0."""

    kept: Kept
    inside: FloatArray
    whole: FloatArray


class Fetched:
    """Features of sorted rows that become an array when they are read: certificates do, training does not."""

    def __init__(self, X: Any, queries: Queries) -> None:
        self.X, self.queries, self.shape = X, queries, tuple(X.shape)

    @cached_property
    def rows(self) -> FloatArray:
        """The array."""
        found: FloatArray = self.queries.gather(fetched(self.X) if is_tensor(self.X) else self.X)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.rows, dtype=dtype, copy=copy)


def measured(X: Tensor, lists: Lists, offsets: IntArray, shares: FloatArray, *, level: bool) -> Measured:
    """Read X, less what single precision should not be spent on; queries count by their shares.

    Where only differences of scores count, each query's means are taken off, else those of all rows.
    """
    import torch

    kept, total = torch.empty_like(X), overall_mean(X, offsets) if level else X.new_zeros(()).double()
    sums = torch.zeros((2, X.shape[1]), dtype=torch.float64, device=X.device)
    most, counts = X.new_zeros(X.shape[1]), lists.spread(moved(shares, X.device))
    for first, last in parts(X, offsets):
        rows = slice(int(offsets[first]), int(offsets[last]))
        part, weights = X[rows], counts[rows]
        # From the first row on: of a feature that is constant in a query nothing is left, not even rounding.
        heads = X.index_select(0, lists.starts[rows])
        from_first = part - heads
        means = query_means(from_first, offsets[first : last + 1] - offsets[first])
        centred = from_first - means.index_select(0, lists.owner[rows] - first)
        kept[rows] = part.double() - total if level else centred
        most = torch.maximum(most, kept[rows].abs().amax(0))
        sums[0] += weights @ centred.double().square()
        sums[1] += weights @ part.double().square()
    inside, whole = sums.cpu().numpy()
    check_measures(X, inside, whole)
    return Measured(Kept(kept, moderated(kept, most), total.expand(X.shape[1]).cpu().numpy()), inside, whole)


def parts(X: Tensor, offsets: IntArray) -> list[tuple[int, int]]:
    """Whole queries to work on at a time, from and to; none without rows."""
    edges = pairwise(cut_queries(offsets, 1 + X.numel() // PART_CELLS).tolist())
    return [(first, last) for first, last in edges if offsets[first] < offsets[last]]


def overall_mean(X: Tensor, offsets: IntArray) -> Tensor:
    """Mean of each feature over all rows, in double precision."""
    import torch

    sums = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device)
    for first, last in parts(X, offsets):
        sums += X[int(offsets[first]) : int(offsets[last])].sum(0, dtype=torch.float64)
    return sums / len(X)


def moderated(kept: Tensor, most: Tensor) -> FloatArray:
    """Divide features that are far too large or small by a power of two, in place; gives the powers."""
    import torch

    exponents = torch.frexp(most.double()).exponent
    exponents = torch.where(exponents.abs() > MODERATE, exponents, 0)
    if exponents.any():
        half = exponents // 2  # the whole power may itself be beyond single precision
        for part in (half, exponents - half):
            kept *= torch.exp2(-part.double()).to(kept.dtype)
    powers: FloatArray = np.exp2(exponents.cpu().numpy().astype(np.float64))
    return powers


def query_means(X: Tensor, offsets: IntArray) -> Tensor:
    """Mean of each query's rows; long queries are cut into pieces, which are added up at the end."""
    import torch

    pieces = np.union1d(offsets, np.arange(0, int(offsets[-1]), PIECE_ROWS))
    groups = np.searchsorted(pieces, offsets)

    def added(rows: Tensor, edges: IntArray) -> Tensor:
        found: Tensor = torch.segment_reduce(
            rows, "sum", offsets=moved(edges, X.device), axis=0, initial=0, unsafe=True
        )
        return found

    sizes = moved(np.maximum(np.diff(offsets), 1), X.device)
    return added(added(X, pieces), groups) / sizes[:, None].to(X.dtype)


def check_measures(X: Tensor, inside: FloatArray, whole: FloatArray) -> None:
    """Refuse features that are not finite, in scikit-learn's words, or whose squares are not."""
    if (finite := np.isfinite(inside + whole)).all():
        return
    bad = ~X.isfinite().all(dim=1)
    if bad.any():
        assert_all_finite(X[int(bad.int().argmax())].cpu().numpy(), input_name="X")
    wide = "" if X.itemsize > 4 else ", or give it as float64"
    where = f"feature {int(np.argmin(finite))}"
    raise NonFiniteError("the sum of squares", np.inf, where, 1, f"rescale X{wide}.")
