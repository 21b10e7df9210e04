"""Surrogates in torch, for rankers that train on a device: a GPU, or the CPU by torch's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from concordant.exceptions import MissingExtraError, ParameterError
from concordant.surrogates import Duchi, Pairwise, PositionHinge, Softmax, Squared, Surrogate
from concordant.surrogates.pointwise import PENALTIES, Penalty

if TYPE_CHECKING:
    import torch

    from concordant.torch.lists import Lists

    Tensor: TypeAlias = torch.Tensor
    Outcome: TypeAlias = tuple[Tensor, Tensor]
    Told: TypeAlias = Callable[[Tensor], Outcome]
    Form: TypeAlias = Callable[[Tensor, Tensor, Lists], Told]

__all__ = [
    "device_form", "device_loss", "homogeneous", "levelled", "on_host", "refuse_hollow", "torch_device",
    "working_on",
]  # fmt: skip


def torch_device(device: Any) -> torch.device:
    """Give the device of this name, if torch is installed and can compute there."""
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", f"device={device!r}")
    import torch

    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise ParameterError("device", device, "None, 'cpu', 'cuda', 'cuda:0' or a torch.device") from error
    if found.type not in ("cpu", "cuda"):
        raise ParameterError("device", device, "'cpu' or 'cuda': not all others have float64, for sums")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found.type == "cuda" and not 0 <= (found.index or 0) < n_devices:
        seen = f"torch {torch.__version__} sees {n_devices} CUDA devices here"
        raise ParameterError("device", str(device), f"'cpu' or None: {seen}")
    return found


@contextmanager
def working_on(device: torch.device) -> Iterator[None]:
    """Compute on this device, at the precision that is written: kernels start there, autocast is off."""
    import torch

    current = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with current, torch.autocast(device.type, enabled=False):
        yield


def on_host(values: Any) -> Any:
    """Give a tensor as a numpy array, and everything else back; numpy has no bfloat16: float32 then."""
    if not is_tensor(values):
        return values
    refuse_hollow(values)
    here = values.detach().cpu()
    return (here.float() if here.is_floating_point() and here.itemsize < 4 else here).numpy()


def refuse_hollow(tensor: Any) -> None:
    """Refuse tensors that do not hold one number after the other."""
    kind = str(tensor.layout).removeprefix("torch.")
    seen = "meta" if tensor.is_meta else "nested" if tensor.is_nested else kind
    if seen != "strided":
        raise ParameterError("tensor", seen, "dense, and hold its numbers (sparse ones have .to_dense())")


def is_tensor(values: Any) -> bool:
    """Tell whether it is a tensor, without importing torch."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach")


def device_loss(surrogate: Surrogate) -> Callable[[Tensor, Tensor, Tensor, Lists], Outcome]:
    """Give the torch form of a surrogate: (scores, labels, weights, lists) -> (values, grad).

    One value per query, one gradient entry per row, as those of `surrogate.bind(labels, offsets, weights)`;
    no autograd. Labels are what the surrogate reads (targets, or grades), weights one number >= 0 per row, of
    the scores' precision; nothing is checked. Where the same labels are used again, `device_form` prepares
    them once.
    """
    form = device_form(surrogate)
    return lambda scores, labels, weights, lists: form(labels, weights, lists)(scores)


def device_form(surrogate: Surrogate) -> Form:
    """Give what `device_loss` gives, in two steps: (labels, weights, lists), then scores."""
    if type(surrogate) not in FORMS:
        known = ", ".join(sorted(kind.name for kind in FORMS))
        raise ParameterError("surrogate", surrogate, f"one of {known} on a device; device=None takes all")
    form: Form = FORMS[type(surrogate)](surrogate)
    return form


def levelled(surrogate: Surrogate) -> bool:
    """Whether the level of a query's scores counts, not only their differences."""
    return isinstance(surrogate, Duchi) or (isinstance(surrogate, Squared) and not surrogate.centred)


def homogeneous(surrogate: Surrogate) -> bool:
    """Whether the loss sees targets and weights by their product alone, and grows as that does."""
    return isinstance(surrogate, (Pairwise, Softmax))


def pairwise_form(surrogate: Pairwise) -> Form:
    """Weigh each pair by the target of its better item."""
    from concordant.torch import functional

    def told(labels: Tensor, weights: Tensor, lists: Lists) -> Told:
        scaled = labels.double() * weights
        if surrogate.normalize:
            sizes = lists.sizes.double()
            scaled = scaled / lists.spread((sizes * (sizes - 1.0)).clamp(min=1.0))
        scaled = scaled.to(weights.dtype)
        return lambda scores: functional.pairwise(scores, scaled, lists, margin=surrogate.shape)

    return told


def softmax_form(_: Softmax) -> Form:
    """Weigh each item's term by its target."""
    from concordant.torch import functional

    def told(labels: Tensor, weights: Tensor, lists: Lists) -> Told:
        scaled = (labels.double() * weights).to(weights.dtype)
        return lambda scores: functional.softmax(scores, scaled, lists)

    return told


def squared_form(surrogate: Squared) -> Form:
    """Weigh each square."""
    from concordant.torch import functional

    def told(labels: Tensor, weights: Tensor, lists: Lists) -> Told:
        return lambda scores: functional.squared(scores, labels, weights, lists, centred=surrogate.centred)

    return told


def position_form(surrogate: PositionHinge) -> Form:
    """Read the grades."""
    from concordant.torch import functional

    def told(labels: Tensor, weights: Tensor, lists: Lists) -> Told:
        how = surrogate.reduction
        return lambda scores: functional.position_hinge(scores, labels, weights, lists, reduction=how)

    return told


def duchi_form(surrogate: Duchi) -> Form:
    """Weigh each item's term; a term may be infinite, and counts nothing where its weight is 0."""
    value, slope = PENALTY_FORMS[penalty_name(surrogate)]
    nu = float(surrogate.nu)

    def told(labels: Tensor, weights: Tensor, lists: Lists) -> Told:
        def loss(z: Tensor) -> Outcome:
            terms = weights * (nu * value(z) - labels * z)
            grad = weights * (nu * slope(z) - labels)
            nothing = weights <= 0.0
            values = lists.sums(terms.masked_fill(nothing, 0.0))
            return values.to(z.dtype), grad.masked_fill(nothing, 0.0).to(z.dtype)

        return loss

    return told


def penalty_name(surrogate: Duchi) -> str:
    """Give the name of the penalty, if it is one of ours: a caller's reads numpy arrays."""
    penalty: Penalty | str = surrogate.penalty
    for name, known in PENALTIES.items():
        if penalty == known:
            return name
    raise ParameterError("penalty", penalty, f"one of {', '.join(PENALTIES)} on a device")


PENALTY_FORMS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "square": (lambda z: z * z, lambda z: 2.0 * z),
    "cosh": (lambda z: z.cosh(), lambda z: z.sinh()),
    "quartic": (lambda z: z * z + z**4, lambda z: 2.0 * z + 4.0 * z**3),
}
FORMS: Mapping[type[Surrogate], Callable[[Any], Any]] = {
    Pairwise: pairwise_form,
    Softmax: softmax_form,
    Squared: squared_form,
    PositionHinge: position_form,
    Duchi: duchi_form,
}
