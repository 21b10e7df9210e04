"""Roles: which column of a table is what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from concordant.exceptions import ParameterError

__all__ = ["GRADE_NAMES", "Roles", "check_named", "index_columns", "repeated"]

GRADE_NAMES = ("grade", "y", "label", "relevance", "rel")


@dataclass(frozen=True)
class Roles:
    """Names of the columns that hold query ids, grades, features and, where there are any, the others."""

    qid: str
    grade: str
    features: tuple[str, ...]
    docid: str | None = None
    sample_weight: str | None = None
    query_weight: str | None = None

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        qid: str = "qid",
        grade: str | None = None,
        features: Sequence[str] | None = None,
        docid: str | None = None,
        sample_weight: str | None = None,
        query_weight: str | None = None,
        hidden: Collection[str] = (),
    ) -> Roles:
        """Give the roles of a table's columns; what is None is chosen by name, as `from_frame` says.

        Columns that are `hidden` are features only where they are named.

        >>> Roles.of(["qid", "y", "bm25", "age"]).features
        ('bm25', 'age')
        """
        check_named(qid)
        grade = grade or next((name for name in GRADE_NAMES if name in names), GRADE_NAMES[0])
        docid = docid or ("docid" if "docid" in names else None)
        if features is None:
            taken = (qid, grade, docid, sample_weight, query_weight, *hidden)
            features = [name for name in names if name not in taken]
        return cls(qid, grade, tuple(features), docid, sample_weight, query_weight)

    @property
    def weights(self) -> tuple[str, ...]:
        """The columns of weights."""
        return tuple(name for name in (self.sample_weight, self.query_weight) if name is not None)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers: all but ids."""
        return (self.grade, *self.weights, *self.features)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        others = (self.qid, self.grade, self.docid, self.sample_weight, self.query_weight)
        return tuple(dict.fromkeys(name for name in (*others, *self.features) if name is not None))


def check_named(qid: str | None) -> None:
    """Refuse queries without a column, which would be read as one that is called None."""
    if qid is None:
        raise ParameterError("qid", qid, "the name of a column")


def repeated(names: Iterable[str]) -> str | None:
    """Give the first name that comes twice, if one does.

    >>> repeated(["qid", "a", "b", "a"])
    'a'
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)


def index_columns(schema: Any) -> list[str]:
    """Give the columns of an Arrow schema that pandas kept of a frame's index: row labels, not features."""
    told = schema.pandas_metadata or {}
    return [name for name in told.get("index_columns", []) if isinstance(name, str)]  # else a range
