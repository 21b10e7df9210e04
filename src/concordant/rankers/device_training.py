"""From checked labels and features to an objective on a device, a GPU or the CPU by torch's kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, wraps
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from concordant._base.light_sklearn import validate_data
from concordant._base.segments import cut_queries
from concordant.data.check import is_tensor, naming_features, plain_features, refuse_hollow, refuse_non_finite
from concordant.data.queries import Queries
from concordant.exceptions import NonFiniteError, ParameterError, ShapeError
from concordant.rankers.device_losses import device_form, reads_level, working_on
from concordant.rankers.training import ObjectiveSetting, spread_of
from concordant.solvers.precondition import rows_from, sampled_queries
from concordant.surrogates import Surrogate
from concordant.types import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from concordant.rankers.device_losses import BoundLoss, Tensor
    from concordant.torch.lists import Lists


# Arrays to a device and back; large arrays through page-locked memory, several times as fast on a GPU.

STAGED = 2**22  # size from which page-locked memory is used
COPY_SIZE = 2**24  # size of a chunk


def to_device(values: Any, device: Any) -> Tensor:
    """Move an array or a tensor to the device; a tensor that is there already is not copied."""
    import torch

    if is_tensor(values):
        return values.to(device).contiguous()
    with warnings.catch_warnings():  # about read-only arrays: nothing is written to them
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        here = torch.from_numpy(np.ascontiguousarray(values))
    if torch.device(device).type == "cpu" or here.numel() < STAGED:
        return here.to(device)
    there = torch.empty(here.shape, dtype=here.dtype, device=device)
    _send(here.view(-1), there.view(-1))
    return there


def to_array(tensor: Tensor) -> Any:
    """Return a tensor's array; a tensor on the host shares its memory."""
    import torch

    if tensor.device.type == "cpu" or tensor.numel() < STAGED:
        return tensor.cpu().numpy()
    here = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    _receive(tensor.contiguous().view(-1), here.view(-1))
    return here.numpy()


def _send(here: Tensor, there: Tensor) -> None:
    """Fill a flat tensor on the device: a chunk is transferred while the next is copied to locked memory."""
    for part, locked, done in _copy_chunks(here, there.device):
        done.synchronize()  # this buffer's previous chunk has been sent
        buffer = locked[: part.stop - part.start]
        buffer.copy_(here[part])
        there[part].copy_(buffer, non_blocking=True)
        done.record()
    done.synchronize()


def _receive(there: Tensor, here: Tensor) -> None:
    """Fill a flat tensor on the host: a chunk is transferred while the last is copied from locked memory."""
    waiting = None
    for part, locked, done in _copy_chunks(here, there.device):
        buffer = locked[: part.stop - part.start]
        buffer.copy_(there[part], non_blocking=True)
        done.record()
        if waiting is not None:
            _settle(here, *waiting)
        waiting = part, buffer, done
    if waiting is not None:
        _settle(here, *waiting)


def _settle(here: Tensor, part: slice, buffer: Tensor, done: Any) -> None:
    done.synchronize()
    here[part].copy_(buffer)


def _copy_chunks(here: Tensor, device: Any) -> Iterator[tuple[slice, Tensor, Any]]:
    """Cut a flat tensor on the host into chunks, each with one of two locked buffers and its event."""
    import torch

    kind: Any = {"dtype": here.dtype, "device": "cpu", "pin_memory": True}
    event: Any = torch.cuda.Event
    with torch.cuda.device(device):
        pieces = [(torch.empty(COPY_SIZE, **kind), event()) for _ in range(2)]
        for number, start in enumerate(range(0, here.numel(), COPY_SIZE)):
            locked, done = pieces[number % 2]
            yield slice(start, min(start + COPY_SIZE, here.numel())), locked, done


# The objective of a linear ranker on a device: features stay there, weights come and go.

Method = TypeVar("Method", bound=Callable[..., Any])

STEP = 0.5  # of scores of spread 1, on either side, for the curvature by differences of gradients


class _DeviceFeatures(NamedTuple):
    """Features as stored on a device: X is rows * power + mean, up to what the loss does not read."""

    rows: Tensor  # on the device, rows of each query adjacent
    power: FloatArray  # a power of two by feature: 1 unless single precision would overflow
    mean: FloatArray  # 0 unless the loss reads the level of scores


def _on_features_device(method: Method) -> Method:
    """Run a method of an objective on the device of its features."""

    @wraps(method)
    def run(self: _DeviceObjective, *arguments: Any) -> Any:
        with working_on(self.X.device):
            return method(self, *arguments)

    return run  # type: ignore[return-value]


class _DeviceObjective:
    """`LinearObjective` in torch: the mean loss at scores X @ w plus alpha/2 |w|^2.

    Scores and gradients have the precision of X; values are added up, and weights kept, in double precision.
    Each evaluation waits for the device once.

    Parameters
    ----------
    loss
        Function from scores to values of the queries and gradient of the rows.
    features
        Features on the device.
    offsets
        Where each query starts.
    alpha, scale
        As in `LinearObjective`.
    level
        True if the loss reads the level of a query's scores.
    unit
        Factor of the loss: it holds the 1/n_queries of the mean, which single precision would round.
    """

    sparse = False

    def __init__(
        self,
        loss: BoundLoss,
        features: _DeviceFeatures,
        offsets: IntArray,
        alpha: float,
        scale: FloatArray,
        *,
        level: bool,
        unit: float = 1.0,
    ) -> None:
        self.loss, self.offsets, self.level, self.unit = loss, offsets, level, unit
        self.X, self.power, self.mean = features
        self.alpha, self.scale, self.n_features, self.n_gradients = float(alpha), scale, len(scale), 0

    @_on_features_device
    def value_and_grad(self, w: FloatArray) -> tuple[float, FloatArray]:
        import torch

        weights = w / self.scale
        there = torch.from_numpy(weights * self.power).to(self.X.device, self.X.dtype)
        values, rows = self.loss(self.X @ there + float(self.mean @ weights))
        sums = [part.sum(dtype=torch.float64)[None] for part in (values, rows)]
        parts = torch.cat([*sums, _pull_gradient(self.X, rows)])
        sums_and_grad = self.unit * parts.cpu().numpy()  # the only wait
        value, level = sums_and_grad[:2]
        self.n_gradients += 1
        grad = (sums_and_grad[2:] * self.power + level * self.mean) / self.scale + self.alpha * w
        return float(value + 0.5 * self.alpha * (w @ w)), grad

    @_on_features_device
    def at_rest(self) -> float:
        """Evaluate the objective at weights 0; X is not read."""
        return self.unit * float(self.loss(self.X.new_zeros(len(self.X)))[0].double().sum())

    @_on_features_device
    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Rows of X of random whole queries, on the host, and where each query starts among them."""
        import torch

        queries, counts = sampled_queries(self.offsets, self.n_features, rng)
        rows = torch.from_numpy(rows_from(self.offsets[queries], counts)).to(self.X.device)
        sampled_rows: FloatArray = self.X[rows].cpu().numpy() * self.power + self.mean
        return sampled_rows, np.cumsum([0, *counts])

    @_on_features_device
    def curvatures(self, rng: np.random.Generator) -> tuple[float, float]:
        """Summed curvature of the loss in each score, and in the levels of whole queries.

        By differences of gradients at scores of spread 1, which suits hinges: their curvature is at corners.
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


def _pull_gradient(X: Tensor, rows: Tensor) -> Tensor:
    """X.T @ rows, as doubles; added up in the precision of X."""
    return (rows @ X).double()


PART_CELLS = 2**25  # cells of X per block: 256 MB in double precision
PIECE_ROWS = 1024  # rows that a thread of the device adds up
MODERATE = 32  # powers of two up to which a feature may lie off 1: products stay far within single precision


def device_features(model: Any, X: ArrayLike) -> Any:
    """Return features as float32 or float64, a tensor or an array; the model stores their names and number.

    That they are finite is checked later, on the device.
    """
    if hasattr(X, "tocsr"):
        raise ParameterError.because(
            f"X must be dense on a device, got a sparse {type(X).__name__}. Use device=None, or X.toarray()."
        )
    if not is_tensor(X):
        kinds = [np.float64, np.float32]
        with naming_features():
            features = plain_features(X)
            return validate_data(model, features, reset=True, dtype=kinds, order="C", ensure_all_finite=False)
    refuse_hollow(X)
    if X.is_complex():
        raise ParameterError.because(f"X must be a tensor of real numbers, got {X.dtype}.")
    if X.ndim != 2 or not X.numel():
        raise ShapeError("X", tuple(X.shape), "rows and columns, at least one of each")
    validate_data(model, X, reset=True, skip_check_array=True)
    values = X.detach()
    if not values.is_floating_point():
        return values.double()
    return values.float() if values.itemsize < 4 else values


def build_device_setting(
    surrogate: Surrogate,
    labels: FloatArray,
    X: Any,
    queries: Queries,
    shares: FloatArray,
    weights: FloatArray,
    *,
    fit_scale: bool,
    device: Any,
) -> ObjectiveSetting:
    """Move the features to the device, sort and measure them, and bind the loss."""
    from concordant.torch.lists import Lists

    surrogate.check_targets(labels)
    level, offsets = reads_level(surrogate), queries.offsets
    rows = to_device(X, device)
    if queries.moved is not None:
        rows = rows[to_device(queries.moved, device)]
    lists = Lists.from_offsets(np.array(offsets), device)
    device_rows, inside, whole = _measure_features(rows, lists, queries, shares, level=level)
    labels, weights, unit = _in_units(surrogate, labels, weights)
    loss = device_form(surrogate)(to_device(labels, device), to_device(weights, device).to(rows.dtype), lists)
    _check_rest(loss, device_rows.rows, unit)
    n_rows = float(shares @ np.diff(offsets))
    scale = spread_of(inside, whole, n_rows) if fit_scale else np.ones(rows.shape[1])
    ordered = X if queries.moved is None and not is_tensor(X) else _LazyFeatures(X, queries)
    arguments = loss, device_rows, offsets
    return ObjectiveSetting(
        ordered, scale, lambda alpha: _DeviceObjective(*arguments, alpha, scale, level=level, unit=unit)
    )


def _in_units(
    surrogate: Surrogate, labels: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Scale labels and weights to the range of single precision; return the unit of the loss, too."""
    if surrogate.weighs == "targets":
        labels, weights = np.ones_like(labels), labels * weights
    unit = float(weights.max(initial=0.0)) or 1.0
    return labels, weights / unit, unit


def _check_rest(loss: BoundLoss, X: Tensor, unit: float) -> None:
    """Raise if the loss or its slope at weights 0 overflows the precision of X."""
    values, rows = loss(X.new_zeros(len(X)))
    value = unit * float(values.double().sum() + rows.double().abs().sum())
    if not np.isfinite(value):
        wide = "" if X.itemsize > 4 else ", or give X as float64"
        raise NonFiniteError("the loss", value, "weights 0", 1, f"divide the labels or weights{wide}.")


class _DeviceSpread(NamedTuple):
    """Features as the loss reads them, and each feature's squares about the queries' means, and about 0."""

    features: _DeviceFeatures
    inside: FloatArray
    whole: FloatArray


class _LazyFeatures:
    """Features of sorted rows that become an array when they are read: by checkpoints, not by training."""

    def __init__(self, X: Any, queries: Queries) -> None:
        self.X, self.queries, self.shape = X, queries, tuple(X.shape)

    @cached_property
    def rows(self) -> FloatArray:
        return self.queries.gather(to_array(self.X) if is_tensor(self.X) else self.X)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.rows, dtype=dtype, copy=copy)


def _measure_features(
    X: Tensor, lists: Lists, queries: Queries, shares: FloatArray, *, level: bool
) -> _DeviceSpread:
    """Centre X, to save single precision's digits, and measure it; queries count by their shares.

    If only differences of scores count, the means of each query are subtracted, else those of all rows.
    """
    import torch

    offsets = queries.offsets
    centred_rows = torch.empty_like(X)
    total = _overall_mean(X, offsets) if level else X.new_zeros(()).double()
    sums = torch.zeros((2, X.shape[1]), dtype=torch.float64, device=X.device)
    most, counts = X.new_zeros(X.shape[1]), lists.spread(to_device(shares, X.device))
    for first, last in _row_blocks(X, offsets):
        rows = slice(int(offsets[first]), int(offsets[last]))
        part, weights = X[rows], counts[rows]
        # Relative to the query's first row: a feature that is constant in a query becomes exactly 0.
        heads = X.index_select(0, lists.starts[rows])
        from_first = part - heads
        means = _query_means(from_first, offsets[first : last + 1] - offsets[first])
        centred = from_first - means.index_select(0, lists.owner[rows] - first)
        centred_rows[rows] = part.double() - total if level else centred
        most = torch.maximum(most, centred_rows[rows].abs().amax(0))
        sums[0] += weights @ centred.double().square()
        sums[1] += weights @ part.double().square()
    inside, whole = sums.cpu().numpy()
    _check_measures(X, inside, whole, queries)
    power, mean = _rescale_extremes(centred_rows, most), total.expand(X.shape[1]).cpu().numpy()
    return _DeviceSpread(_DeviceFeatures(centred_rows, power, mean), inside, whole)


def _row_blocks(X: Tensor, offsets: IntArray) -> list[tuple[int, int]]:
    """Cut the rows into blocks of whole queries, from and to; none without rows."""
    edges = pairwise(cut_queries(offsets, 1 + X.numel() // PART_CELLS).tolist())
    return [(first, last) for first, last in edges if offsets[first] < offsets[last]]


def _overall_mean(X: Tensor, offsets: IntArray) -> Tensor:
    import torch

    sums = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device)
    for first, last in _row_blocks(X, offsets):
        sums += X[int(offsets[first]) : int(offsets[last])].sum(0, dtype=torch.float64)
    return sums / len(X)


def _rescale_extremes(features: Tensor, most: Tensor) -> FloatArray:
    """Divide features that are far too large or small by a power of two, in place; return the powers."""
    import torch

    exponents = torch.frexp(most.double()).exponent
    exponents = torch.where(exponents.abs() > MODERATE, exponents, 0)
    if exponents.any():
        half = exponents // 2  # the whole power may itself be beyond single precision
        for part in (half, exponents - half):
            features *= torch.exp2(-part.double()).to(features.dtype)
    powers: FloatArray = np.exp2(exponents.cpu().numpy().astype(np.float64))
    return powers


def _query_means(X: Tensor, offsets: IntArray) -> Tensor:
    """Mean of each query's rows; long queries are cut into pieces, which are added up at the end."""
    import torch

    pieces = np.union1d(offsets, np.arange(0, int(offsets[-1]), PIECE_ROWS))
    groups = np.searchsorted(pieces, offsets)

    def added(rows: Tensor, edges: IntArray) -> Tensor:
        sums: Tensor = torch.segment_reduce(
            rows, "sum", offsets=to_device(edges, X.device), axis=0, initial=0, unsafe=True
        )
        return sums

    sizes = to_device(np.maximum(np.diff(offsets), 1), X.device)
    return added(added(X, pieces), groups) / sizes[:, None].to(X.dtype)


def _check_measures(X: Tensor, inside: FloatArray, whole: FloatArray, queries: Queries) -> None:
    if (finite := np.isfinite(inside + whole)).all():
        return
    if not X.isfinite().all():
        refuse_non_finite(queries.scatter(X.cpu().numpy()), "X")
    wide = "" if X.itemsize > 4 else ", or give it as float64"
    where = f"feature {int(np.argmin(finite))}"
    raise NonFiniteError("the sum of squares", np.inf, where, 1, f"rescale X{wide}.")
