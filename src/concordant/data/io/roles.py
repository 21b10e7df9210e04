"""Roles of a table's columns: query ids, grades, features, weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.exceptions import LabelError, ParameterError, UnknownNameError
from concordant.types import IntArray

UNNAMED = re.compile(r"(Unnamed: [0-9]+)?")  # the name that files and pandas give to an unnamed column
GRADE_NAMES = ("grade", "y", "label", "relevance", "rel")


@dataclass(frozen=True)
class Roles:
    """Names of the columns that hold query ids, grades, features and, optionally, other data."""

    qid: str
    grade: str
    features: tuple[str, ...]
    docid: str | None = None
    sample_weight: str | None = None
    query_weight: str | None = None

    @classmethod
    def from_columns(
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
        """Assign roles to a table's columns; those passed as None are chosen by name, as in `from_frame`.

        Columns that are `hidden` are features only if they are named. A feature "a-b" that is no column
        stands for the columns from a to b, except those with another role.

        >>> Roles.from_columns(["qid", "y", "bm25", "age"]).features
        ('bm25', 'age')
        >>> Roles.from_columns(["f1", "qid", "f2", "y", "f3"], features=["f1-f2", "f3"]).features
        ('f1', 'f2', 'f3')
        """
        check_qid_column(qid)
        graded = [name for name in GRADE_NAMES if name in names]
        if grade is None and features is None and len(graded) > 1:
            problem = f"columns {graded[0]!r} and {graded[1]!r} may both be the grade"
            raise LabelError(problem, "choose one by grade= (--label); the other is then a feature.")
        grade = grade or next(iter(graded), GRADE_NAMES[0])
        docid = docid or ("docid" if "docid" in names else None)
        taken = (qid, grade, docid, sample_weight, query_weight, *hidden)
        if features is not None:
            features = expand_ranges([features] if isinstance(features, str) else features, names, taken)
        if features is None:
            features = [name for name in names if name not in taken]
            if unnamed := [name for name in features if UNNAMED.fullmatch(str(name))]:
                problem = f"a column is called {unnamed[0]!r}, as pandas calls row labels"
                hint = "write the table without its index, or choose columns by features= (--features)."
                raise LabelError(problem, hint)
        elif leaks := [name for name in features if name in (grade, sample_weight, query_weight)]:
            problem = f"column {leaks[0]!r} is a feature and a label or weight, too"
            raise LabelError(problem, "leave it out of features.")
        if twice := find_repeated(features):
            raise LabelError(f"feature {twice!r} is given twice", "give each column once in features.")
        return cls(qid, grade, tuple(features), docid, sample_weight, query_weight)

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weight columns."""
        return tuple(name for name in (self.sample_weight, self.query_weight) if name is not None)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numeric columns: all but ids."""
        return (self.grade, *self.weights, *self.features)

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the columns that are read, each once."""
        others = (self.qid, self.grade, self.docid, self.sample_weight, self.query_weight)
        return tuple(dict.fromkeys(name for name in (*others, *self.features) if name is not None))


def expand_ranges(requested: Iterable[str], names: Sequence[str], taken: Collection[Any] = ()) -> list[str]:
    """Replace each range "a-b" by the columns from a to b in the table, without those in `taken`.

    >>> expand_ranges(["f1-f3", "e-mail"], ["f1", "f2", "f3", "e-mail"], taken=["f2"])
    ['f1', 'f3', 'e-mail']
    """
    expanded: list[str] = []
    name_set = set(names)
    for text in requested:
        is_name = not isinstance(text, str) or text in name_set
        cuts = [] if is_name else [at for at, sign in enumerate(text) if sign == "-"]
        pairs = [(text[:at].strip(), text[at + 1 :].strip()) for at in cuts]
        ends = [(first, last) for first, last in pairs if first in name_set and last in name_set]
        if not ends:
            expanded.append(text)
            continue
        start, stop = (names.index(end) for end in ends[0])
        if len(ends) > 1 or start > stop:
            reason = (
                f"{ends[0][1]!r} stands before {ends[0][0]!r}" if start > stop else "it has several readings"
            )
            hint = "write FIRST-LAST, in the order of the table."
            raise LabelError(f"{text!r} is not a range of columns: {reason}", hint)
        columns = [name for name in names[start : stop + 1] if name not in taken]
        if not columns:
            raise LabelError(f"the range {text!r} holds no feature", "name a range of other columns.")
        expanded += columns
    return expanded


def check_qid_column(qid: str | None) -> None:
    """Raise if no query column is named: it would be read as a column called None."""
    if qid is None:
        raise ParameterError("qid", qid, "the name of a column")


def find_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice, or None.

    >>> find_repeated(["qid", "a", "b", "a"])
    'a'
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)


def find_index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow schema that hold a pandas index: row labels, not features."""
    metadata = schema.pandas_metadata or {}
    columns = metadata.get("index_columns", [])
    return [name for name in columns if isinstance(name, str)]  # a RangeIndex is stored as a dict


# Outcomes of comparisons as people write them.

LEFT_WINS = ("left", "first", "a", "win_a", "model_a", "white", "1-0", "-1")
TIES = ("tie", "draw", "both", "tie (bothbad)", "bothbad", "1/2-1/2", "\u00bd-\u00bd", "0")
RIGHT_WINS = ("right", "second", "b", "win_b", "model_b", "black", "0-1", "1", "+1")
OUTCOMES = dict.fromkeys(LEFT_WINS, -1) | dict.fromkeys(TIES, 0) | dict.fromkeys(RIGHT_WINS, 1)
SCORES = {"1": -1, "0.5": 0, "0": 1}
"""Chess scores of the left side: never assumed, since 1 and 0 mean "right is better" and "tie" otherwise."""


def outcome_signs(
    keys: Sequence[str], codes: NDArray[Any], name: str, meanings: Mapping[str, int]
) -> IntArray:
    """Return -1, 0 or 1 per row; `codes` are indices into `keys`.

    Raises
    ------
    LabelError
        At the first row, counted from 0, with an unknown outcome.
    """
    if unknown := [code for code, key in enumerate(keys) if key not in meanings]:
        row = int(np.flatnonzero(np.isin(codes, unknown))[0])
        hint = f'pass outcomes= (a mapping, or "score" for chess scores); known are {", ".join(meanings)}.'
        problem = f"column {name!r} has the unknown outcome {str(keys[codes[row]])!r} at row {row}"
        raise LabelError(problem, hint)
    signs: IntArray = np.array([meanings[key] for key in keys], dtype=np.int64)[codes]
    return signs


def normalize_outcome(value: object) -> str:
    """Normalise the spelling of an outcome: whole floats as integers, text in lower case and stripped."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip().casefold()


def parse_outcomes(outcomes: Mapping[Any, int] | str | None) -> dict[str, int]:
    """Return the meaning of each outcome, by its normalised spelling."""
    if outcomes is None:
        return OUTCOMES
    if isinstance(outcomes, str):
        if outcomes != "score":
            raise UnknownNameError("outcomes", outcomes, ["score"])
        return SCORES
    for value in outcomes.values():
        if value not in (-1, 0, 1):
            raise ParameterError("outcomes", value, "a mapping to -1 (left), 0 (tie) or 1 (right)")
    meanings: dict[str, int] = {}
    for name, value in outcomes.items():
        if meanings.setdefault(normalize_outcome(name), int(value)) != value:
            raise ParameterError.because(
                f"outcomes has {name!r} twice. Case and surrounding blanks are ignored."
            )
    return meanings


# Tables of pairs: the feature columns of the left item, and of the right.


def find_id_columns(names: Sequence[str], prefixes: Sequence[str]) -> tuple[str, str]:
    """Return the id columns of both sides: left and right, or else left_id and right_id.

    >>> find_id_columns(["left_id", "right_id", "outcome"], ["left_", "right_"])
    ('left_id', 'right_id')
    """
    left, right = (f"{prefix}id" for prefix in prefixes)
    prefixed = not {"left", "right"} <= {*names} and {left, right} <= {*names}
    return (left, right) if prefixed else ("left", "right")


def pair_features(
    names: Sequence[str],
    prefixes: Sequence[str],
    reserved: Collection[str] = (),
    features: Sequence[str] | None = None,
    also: str = "",
) -> tuple[str, ...]:
    """Return the item features for which both sides have a column; empty if a side has no columns.

    Parameters
    ----------
    names
        All columns of the table.
    prefixes
        Prefixes of the left and right columns.
    reserved
        Columns that are not features, whatever their prefix.
    features
        Features to use; None: all.
    also
        Further advice in the error message.

    Examples
    --------
    >>> pair_features(["left_age", "right_age", "outcome"], ["left_", "right_"])
    ('age',)
    """
    features_by_side: list[list[str]] = [
        [name.removeprefix(prefix) for name in names if name.startswith(prefix) and name not in reserved]
        for prefix in prefixes
    ]
    requested = tuple(features or dict.fromkeys(features_by_side[0] + features_by_side[1]))
    if not requested or not any(features_by_side) or (features is None and not all(features_by_side)):
        return ()
    for name in requested:
        for prefix, side_features in zip(prefixes, features_by_side, strict=True):
            if name not in side_features:
                other = prefixes[1] if prefix == prefixes[0] else prefixes[0]
                hint = f"each needs two, {prefix}{name} and {other}{name}"
                problem = f"the feature {name!r} has no column {prefix + name!r}"
                raise LabelError(problem, f"{hint}{also and '; ' + also}.")
    return requested
