"""Arrays to a device and back; large ones through page-locked memory, several times as fast on a GPU."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.rankers.devices.losses import is_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from concordant.rankers.devices.losses import Tensor

__all__ = ["fetched", "moved"]

STAGED = 2**22  # numbers from which the way through locked memory is taken
STEP = 2**24  # numbers that are copied at a time


def moved(values: Any, device: Any) -> Tensor:
    """Give an array or a tensor on the device; not copied where it is there."""
    import torch

    if is_tensor(values):
        found: Tensor = values.to(device).contiguous()
        return found
    with warnings.catch_warnings():  # that an array is read-only: nothing is written to it
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        here = torch.from_numpy(np.ascontiguousarray(values))
    if torch.device(device).type == "cpu" or here.numel() < STAGED:
        return here.to(device)
    there = torch.empty(here.shape, dtype=here.dtype, device=device)
    sent(here.view(-1), there.view(-1))
    return there


def fetched(tensor: Tensor) -> Any:
    """Give a tensor's array; that of a tensor on the host is shared."""
    import torch

    if tensor.device.type == "cpu" or tensor.numel() < STAGED:
        return tensor.cpu().numpy()
    here = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    received(tensor.contiguous().view(-1), here.view(-1))
    return here.numpy()


def sent(here: Tensor, there: Tensor) -> None:
    """Fill a flat tensor on the device: one part is on its way while the next is locked."""
    for part, locked, done in parts(here, there.device):
        done.synchronize()  # the part before the last has left this memory
        own = locked[: part.stop - part.start]
        own.copy_(here[part])
        there[part].copy_(own, non_blocking=True)
        done.record()
    done.synchronize()


def received(there: Tensor, here: Tensor) -> None:
    """Fill a flat tensor on the host: one part is on its way while the last is copied."""
    waiting = None
    for part, locked, done in parts(here, there.device):
        own = locked[: part.stop - part.start]
        own.copy_(there[part], non_blocking=True)
        done.record()
        if waiting is not None:
            settle(here, *waiting)
        waiting = part, own, done
    if waiting is not None:
        settle(here, *waiting)


def settle(here: Tensor, part: slice, own: Tensor, done: Any) -> None:
    """Copy a part that has come."""
    done.synchronize()
    here[part].copy_(own)


def parts(here: Tensor, device: Any) -> Iterator[tuple[slice, Tensor, Any]]:
    """Parts of a flat tensor on the host, each with one of two pieces of locked memory and its event."""
    import torch

    kind: Any = {"dtype": here.dtype, "device": "cpu", "pin_memory": True}
    event: Any = torch.cuda.Event
    with torch.cuda.device(device):
        pieces = [(torch.empty(STEP, **kind), event()) for _ in range(2)]
        for number, start in enumerate(range(0, here.numel(), STEP)):
            locked, done = pieces[number % 2]
            yield slice(start, min(start + STEP, here.numel())), locked, done
