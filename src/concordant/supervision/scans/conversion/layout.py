"""Layout: which columns are written, and in which type; rows of any table, checked, in that form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ConcordantError, LabelError, ParameterError, RowError
from concordant.supervision.columns import check_grades, check_nonnegative, refuse
from concordant.supervision.readers.roles import Roles
from concordant.supervision.readers.tables import _columns, _document_ids, _query_ids
from concordant.supervision.scans.sizes import UNKNOWN_DOCID, row_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Chunk", "Layout", "checked_dtype"]

DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a source: a table, where they are (for messages), and how many rows come before there."""

    frame: Any
    place: str = ""
    start: int = 0

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors name the place, and count rows from its beginning."""
        try:
            yield
        except RowError as error:
            if error.row is None:
                self.put_before(error)
            else:
                error.within(self.place, error.row + self.start)
                error.args = (str(error).removeprefix(": "),)  # rows of a frame need no place
            raise
        except ConcordantError as error:
            self.put_before(error)
            raise

    def put_before(self, error: ConcordantError) -> None:
        """Say where rows are counted from, if not from the beginning."""
        place = f"{self.place} from row {self.start} on".strip() if self.start else self.place
        if place:
            error.args = (f"{place}: {error}",)


@dataclass(frozen=True)
class Layout:
    """What is written of each row.

    Attributes
    ----------
    roles
        Names of the columns, here and in the source.
    dtype
        Of features: "float32" or "float64".
    rounds
        Whether the caller asked for this type, so that features may be rounded to it.
    docid_bytes
        Memory that a document id takes, about; None: unknown.
    """

    roles: Roles
    dtype: str
    rounds: bool = False
    docid_bytes: int | None = None

    @property
    def feature_bytes(self) -> int:
        """Memory that the features of a row take."""
        return max(1, len(self.roles.features)) * np.dtype(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Memory that a row takes while it is worked on."""
        roles = self.roles
        documents = UNKNOWN_DOCID if self.docid_bytes is None else self.docid_bytes
        size = row_bytes(len(roles.features), self.dtype, len(roles.weights))
        return size + (0 if roles.docid is None else documents)

    def ids(self, chunk: Chunk) -> NDArray[Any]:
        """Give the ids of the rows."""
        with chunk.located():
            return _query_ids(_columns(chunk.frame)[0](self.roles.qid), self.roles.qid)

    def table(self, chunk: Chunk) -> Any:
        """Give the rows as they are written; a bad one is refused."""
        import pyarrow as pa

        with chunk.located():
            column, names = _columns(chunk.frame)
            if lacking := [name for name in self.roles.named if name not in names]:
                hint = f"all pieces have the same columns; it has {', '.join(names)}."
                raise LabelError(f"there is no column {lacking[0]!r}", hint)
            others = self.others(column)
            features = {name: self.numbers(column(name), name) for name in self.roles.features}
        return pa.table({**others, **{name: pa.array(values) for name, values in features.items()}})

    def others(self, column: Any) -> dict[str, Any]:
        """Give all columns but features: ids first."""
        import pyarrow as pa

        roles = self.roles
        ids = _query_ids(column(roles.qid), roles.qid)
        found = {roles.qid: ids, roles.grade: check_grades(column(roles.grade), f"column {roles.grade!r}")}
        if roles.docid is not None:
            found[roles.docid] = _document_ids(column(roles.docid), roles.docid)
        for name in roles.weights:
            found[name] = check_nonnegative(column(name), f"column {name!r}", "row")
        return {name: pa.array(values) for name, values in found.items()}

    def numbers(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """Give a feature in the type that is written."""
        from concordant.supervision.scans.parquet_part import finite

        exact = finite(values, name)
        with np.errstate(over="ignore"):
            rounded = np.ascontiguousarray(exact, dtype=self.dtype)
        lost = ~np.isfinite(rounded) if self.rounds else rounded != exact
        if rounded is not exact and lost.any():
            hint = "single precision does not hold it: give dtype='float64'"
            refuse(
                lost, exact, f"column {name!r}", hint + ("." if self.rounds else ", or 'float32' to round.")
            )
        return rounded


def checked_dtype(dtype: Any) -> str | None:
    """Give the name of the type that is asked for, if any is."""
    if dtype is None:
        return None
    names = [name for name in DTYPES if dtype in (name, getattr(np, name), np.dtype(name))]
    if not names:
        raise ParameterError("dtype", dtype, "float32, float64 or None")
    return names[0]
