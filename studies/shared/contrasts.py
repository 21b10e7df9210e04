"""Paired tests of several contrasts together: Holm's correction, and their p-values in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from rich.text import Text

from concordant._internals import number

if TYPE_CHECKING:
    from concordant.evaluation import Paired

LEVEL = 0.05
TESTS = ("p, t-test", "p, sign flips", "p, Holm")  # columns of tables


class Contrast(Protocol):
    """A paired test, and the p-value of its t-test after correction; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def test(self) -> Paired:
        """Mean difference and p-values."""

    @property
    def adjusted(self) -> float:
        """p-value after correction."""


AnyContrast = TypeVar("AnyContrast", bound=Contrast)


def correct_jointly(contrasts: Sequence[AnyContrast]) -> list[AnyContrast]:
    """Set `adjusted` by Holm's correction over these contrasts."""
    from concordant.evaluation import holm

    if not contrasts:
        return []
    adjusted = holm([contrast.test.t_test for contrast in contrasts]).tolist()
    return [replace(contrast, adjusted=p) for contrast, p in zip(contrasts, adjusted, strict=True)]


def p_cells(contrast: Contrast) -> list[str | Text]:
    """Cells of the columns `TESTS`; the corrected p-value is bold where it is significant."""
    style = "bold" if contrast.adjusted < LEVEL else ""
    test = contrast.test
    return [number(test.t_test), number(test.permutation), Text(number(contrast.adjusted), style=style)]
