"""Where a network is computed, out of reach of what the caller has set in torch. Needs torch."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from concordant.exceptions import ParameterError
from concordant.rankers.devices.losses import torch_device, working_on

__all__ = ["is_mixed", "place_at_hand", "place_of", "undisturbed", "wake"]


def place_of(device: Any) -> torch.device:
    """Give the device of this name, with its number; "auto" is a GPU, if there is one.

    >>> place_of("cpu")
    device(type='cpu')
    """
    named = device
    if isinstance(device, str) and device == "auto":
        named = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch_device(named)
    except ParameterError:
        seen = f"torch {torch.__version__} sees {torch.cuda.device_count()} GPUs here"
        raise ParameterError("device", device, f"'auto', 'cpu', 'cuda' or 'cuda:0'; {seen}") from None
    if found.type == "cuda" and found.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return found


def place_at_hand(device: Any) -> torch.device:
    """Give the device of this name, or the CPU where it is a GPU that is not here.

    >>> place_at_hand("cuda:99")
    device(type='cpu')
    """
    try:
        return place_of(device)
    except ParameterError:
        if not re.fullmatch(r"cuda|(cuda:)?\d+", str(device)):
            raise
        return torch.device("cpu")


def is_mixed(amp: Any, device: torch.device) -> bool:
    """Whether layers are computed in bfloat16."""
    if isinstance(amp, str):
        return device.type == "cuda" and bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(amp)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Work on this device, with gradients and without the caller's inference_mode, no_grad and autocast."""
    with torch.inference_mode(mode=False), torch.enable_grad(), working_on(device):
        yield


def wake(device: torch.device) -> None:
    """Let torch make itself at home on a GPU: the first product of its other threads would warn."""
    if device.type == "cuda":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            one = torch.ones((1, 1), device=device, requires_grad=True)
            (one @ one).sum().backward()
