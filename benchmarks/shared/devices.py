"""The device of a suite that runs on a GPU where there is one, and small and on the CPU elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.shared.shapes import MSLR, Set, Shape
from benchmarks.shared.tables import Table

if TYPE_CHECKING:
    import torch

WEB30K = Shape("MSLR-WEB30K", 3_770_000, 136, 31_000, MSLR.grades)


def without_torch(title: str) -> list[Table]:
    """The table of a suite that cannot run, if torch is not installed; else none."""
    if find_spec("torch") is not None:
        return []
    return [Table(title, "torch is not installed.", ("measured",), [("nothing",)])]


@dataclass(frozen=True)
class Device:
    """A GPU, or the CPU; small: too slow for the whole set."""

    device: "torch.device"
    quick: bool

    @classmethod
    def best(cls, *, quick: bool) -> "Device":
        """A GPU if there is one."""
        import torch

        return cls(torch.device("cuda" if torch.cuda.is_available() else "cpu"), quick)

    @property
    def small(self) -> bool:
        return self.quick or self.device.type == "cpu"

    def draw_set(self) -> Set:
        """The shape of MSLR-WEB30K, or a part of MSLR-WEB10K."""
        return Set.random(MSLR.part(0.002 if self.quick else 0.02) if self.small else WEB30K)

    def __str__(self) -> str:
        import torch

        is_gpu = self.device.type == "cuda"
        where = torch.cuda.get_device_name(self.device) if is_gpu else "the CPU: there is no GPU here"
        return f"On {where}; torch {torch.__version__}."


def waited(call: Callable[[], object]) -> Callable[[], None]:
    """The call, until the device is done."""
    import torch

    def done() -> None:
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return done
