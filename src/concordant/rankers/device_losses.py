"""Surrogates in torch, for rankers that train on a device: a GPU, or the CPU by torch's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from concordant._base.segments import allow_forks
from concordant._base.validate import list_words
from concordant.exceptions import MissingExtraError, ParameterError, show_value
from concordant.surrogates import Duchi, Pairwise, PositionHinge, Softmax, Squared, Surrogate
from concordant.surrogates.pointwise import PENALTIES, Penalty

if TYPE_CHECKING:
    import torch

    from concordant.torch.lists import Lists

    Tensor: TypeAlias = torch.Tensor
    Outcome: TypeAlias = tuple[Tensor, Tensor]
    BoundLoss: TypeAlias = Callable[[Tensor], Outcome]
    Form: TypeAlias = Callable[[Tensor, Tensor, Lists], BoundLoss]


def torch_device(device: Any) -> torch.device:
    """Return the device of this name; raise if torch is missing or cannot compute there."""
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", f"device={show_value(device)}")
    import torch

    try:
        parsed_device = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise ParameterError("device", device, "None, 'cpu', 'cuda', 'cuda:0' or a torch.device") from error
    if parsed_device.type not in ("cpu", "cuda"):
        raise ParameterError("device", device, "'cpu' or 'cuda'")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if parsed_device.type == "cuda" and not 0 <= (parsed_device.index or 0) < n_devices:
        hint = f"torch {torch.__version__} sees {n_devices} CUDA devices."
        raise ParameterError("device", str(device), "'cpu', None or a CUDA device that exists", hint=hint)
    allow_forks("torch")
    return parsed_device


@contextmanager
def working_on(device: torch.device) -> Iterator[None]:
    """Compute on this device, at full precision: kernels start there, autocast is off."""
    import torch

    current = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with current, torch.autocast(device.type, enabled=False):
        yield


def device_loss(surrogate: Surrogate) -> Callable[[Tensor, Tensor, Tensor, Lists], Outcome]:
    """Return the torch form of a surrogate: (scores, labels, weights, lists) -> (values, grad).

    A value per query and a gradient entry per row, as those of `surrogate.bind(labels, offsets, weights)`;
    no autograd. Labels are what the surrogate reads (targets, or grades), weights one number >= 0 per row, of
    the scores' precision; nothing is checked. If the same labels are used again, `device_form` prepares
    them only once.
    """
    form = device_form(surrogate)
    return lambda scores, labels, weights, lists: form(labels, weights, lists)(scores)


def device_form(surrogate: Surrogate) -> Form:
    """Return `device_loss` in two steps: (labels, weights, lists), then scores."""
    if type(surrogate) not in FORMS:
        names = list_words(sorted(kind.name for kind in FORMS))
        raise ParameterError("surrogate", surrogate, f"{names} on a device", hint="device=None takes all.")
    if isinstance(surrogate, Duchi):
        _penalty_name(surrogate)  # raises for a user's penalty
    return partial(FORMS[type(surrogate)], surrogate)


def reads_level(surrogate: Surrogate) -> bool:
    """True if the level of a query's scores matters, not only their differences."""
    return isinstance(surrogate, Duchi) or (isinstance(surrogate, Squared) and not surrogate.centred)


def _pairwise_form(surrogate: Pairwise, labels: Tensor, weights: Tensor, lists: Lists) -> BoundLoss:
    """Weight each pair by the target of its better item."""
    from concordant.torch import functional

    scaled = labels.double() * weights
    if surrogate.normalize:
        sizes = lists.sizes.double()
        scaled = scaled / lists.spread((sizes * (sizes - 1.0)).clamp(min=1.0))
    scaled = scaled.to(weights.dtype)
    return lambda scores: functional.pairwise(scores, scaled, lists, margin=surrogate.shape)


def _softmax_form(_: Softmax, labels: Tensor, weights: Tensor, lists: Lists) -> BoundLoss:
    from concordant.torch import functional

    scaled = (labels.double() * weights).to(weights.dtype)
    return lambda scores: functional.softmax(scores, scaled, lists)


def _squared_form(surrogate: Squared, labels: Tensor, weights: Tensor, lists: Lists) -> BoundLoss:
    from concordant.torch import functional

    return lambda scores: functional.squared(scores, labels, weights, lists, centred=surrogate.centred)


def _position_form(surrogate: PositionHinge, labels: Tensor, weights: Tensor, lists: Lists) -> BoundLoss:
    from concordant.torch import functional

    how = surrogate.reduction
    return lambda scores: functional.position_hinge(scores, labels, weights, lists, reduction=how)


def _duchi_form(surrogate: Duchi, labels: Tensor, weights: Tensor, lists: Lists) -> BoundLoss:
    """Weight each item's term; a term may be infinite, and is left out where its weight is 0."""
    value, slope = PENALTY_FORMS[_penalty_name(surrogate)]
    nu, nothing = float(surrogate.nu), weights <= 0.0

    def loss(z: Tensor) -> Outcome:
        terms = weights * (nu * value(z) - labels * z)
        grad = weights * (nu * slope(z) - labels)
        values = lists.sums(terms.masked_fill(nothing, 0.0))
        return values.to(z.dtype), grad.masked_fill(nothing, 0.0).to(z.dtype)

    return loss


def _penalty_name(surrogate: Duchi) -> str:
    """Return the name of a built-in penalty; raise for a user's penalty, which reads numpy arrays."""
    penalty: Penalty | str = surrogate.penalty
    for name, builtin in PENALTIES.items():
        if penalty == builtin:
            return name
    raise ParameterError("penalty", penalty, f"{list_words(map(repr, PENALTIES))} on a device")


PENALTY_FORMS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "square": (lambda z: z * z, lambda z: 2.0 * z),
    "cosh": (lambda z: z.cosh(), lambda z: z.sinh()),
    "quartic": (lambda z: z * z + z**4, lambda z: 2.0 * z + 4.0 * z**3),
}
FORMS: Mapping[type[Surrogate], Callable[..., BoundLoss]] = {
    Pairwise: _pairwise_form,
    Softmax: _softmax_form,
    Squared: _squared_form,
    PositionHinge: _position_form,
    Duchi: _duchi_form,
}
