"""What `compare` reads: pairs by id or by features, and tables of items."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concordant.cli.compare_options import Columns
from concordant.exceptions import EmptyDataError, LabelError, NotNumericError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from concordant.types import FloatArray, IntArray

__all__ = ["ItemTable", "PairTable", "read_items", "read_pairs", "read_tables", "unknown_item", "words_of"]

MEANINGS = (
    "left, right and tie, -1, 1 and 0, 1-0, 1/2-1/2 and the like are known; --outcomes score reads 1, 0.5, "
    "0, --outcomes H=left,D=tie,A=right words of your own."
)
DOUBTFUL = (
    "no outcome is -1: 0 was read as a tie and 1 as the right's win; use --outcomes score, or "
    "--outcomes 1=left,0=right, if that is not meant"
)
NUMBERS = "choose columns of numbers by --features A,B,...; --model davidson, say, goes by ids alone."


@dataclass(frozen=True, eq=False)
class ItemTable:
    """Items by id, which is text here, with a row of features each."""

    name: str
    ids: list[str]
    features: tuple[str, ...]
    values: FloatArray

    def rows(self, ids: Sequence[Any], side: str, file: str) -> IntArray:
        """Give the row of each id; the first that is unknown is named."""
        import numpy as np

        place = {name: row for row, name in enumerate(self.ids)}
        found = [place.get(str(one), -1) for one in ids]
        if -1 in found:
            row = found.index(-1)
            raise unknown_item(str(ids[row]), f"row {row} of {file}, {side}", self.name, self.ids)
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs of one file; what it does not have is None.

    Attributes
    ----------
    name, n
        The file's name, and how many pairs it has.
    left, right
        Ids of both sides.
    outcome
        -1 the left won, 1 the right won, 0 a tie.
    pairs, features
        Features of both sides, (n, 2, p), and their names.
    time, weight
        One per pair.
    notes
        What a reader of the table should know.
    """

    name: str
    n: int
    left: NDArray[Any] | None
    right: NDArray[Any] | None
    outcome: IntArray | None
    pairs: FloatArray | None
    features: tuple[str, ...]
    time: NDArray[Any] | None
    weight: FloatArray | None
    notes: tuple[str, ...] = ()


def read_tables(
    file: Path,
    columns: Columns,
    items: Path | None,
    id_column: str | None,
    *,
    judged: bool,
    featured: bool = True,
) -> PairTable:
    """Read pairs, with the features of the items where there is a table of them."""
    table = None if items is None else read_items(items, id_column, columns.features)
    return read_pairs(file, columns, table, judged=judged, featured=featured)


def read_pairs(
    path: Path,
    columns: Columns,
    items: ItemTable | None,
    *,
    judged: bool,
    featured: bool = True,
    own_first: bool = False,
) -> PairTable:
    """Read a table of pairs.

    Parameters
    ----------
    items
        Where features come from; None, or with `own_first`: from columns that begin with the two prefixes.
    judged
        Whether outcomes are needed; else they are read where there are some.
    featured
        Whether features are read at all.
    """
    column, names = read_columns(path, columns.ids)
    check_named(path, names, columns, judged=judged, joined=items is not None and not own_first)
    pairs: FloatArray | None = None
    features: tuple[str, ...] = ()
    if featured and (items is None or own_first):
        pairs, features = read_features(column, names, columns)
    joined = items if pairs is None else None
    left, right = read_ids(column, names, columns, wanted=joined is not None)
    if left is None and pairs is None:
        raise nothing_to_learn(path, names, columns)
    told = judged or (columns.outcome or "outcome") in names
    outcome, notes = read_outcome(column, columns) if told else (None, ())
    if joined is not None and left is not None and right is not None:
        sides = ((left, "left"), (right, "right"))
        places = [joined.rows(ids.tolist(), side, path.name) for ids, side in sides]
        pairs, features = stacked(*(joined.values[rows] for rows in places)), joined.features
    time, weight = read_extras(column, columns)
    n_rows = len(column(names[0]))
    return PairTable(path.name, n_rows, left, right, outcome, pairs, features, time, weight, notes)


def read_columns(path: Path, ids: Sequence[str]) -> tuple[Callable[[str], Any], list[str]]:
    """Give the columns of a file and their names; one without rows is refused by its name."""
    from concordant.supervision.readers.tables import _columns, _read_arrow

    try:
        return _columns(_read_arrow(path, ids))
    except EmptyDataError as error:
        raise EmptyDataError(path.name) from error


def check_named(path: Path, names: Sequence[str], columns: Columns, *, judged: bool, joined: bool) -> None:
    """Refuse a table without a column that was named, or is needed; the message says by which option."""
    wanted = {"--left": columns.left, "--right": columns.right, "--time": columns.time}
    wanted |= {"--weight": columns.weight, "--outcome": columns.outcome}
    if joined:
        wanted |= dict(zip(("--left", "--right"), columns.sides(names), strict=True))
    if judged:
        wanted["--outcome"] = columns.outcome or "outcome"
    for option, name in wanted.items():
        if name is not None and name not in names:
            raise no_column(path, name, option, names)


def no_column(path: Path, name: str, option: str, names: Sequence[str]) -> LabelError:
    """Say which column is missing, and how another is named."""
    return LabelError(
        f"{path.name} has no column {name!r}", f"name it by {option}; it has {', '.join(names)}."
    )


def stacked(left: FloatArray, right: FloatArray) -> FloatArray:
    """Give both sides as (n, 2, p)."""
    import numpy as np

    return np.stack((left, right), axis=1)


def read_ids(
    column: Callable[[str], Any], names: Sequence[str], columns: Columns, *, wanted: bool
) -> tuple[NDArray[Any], NDArray[Any]] | tuple[None, None]:
    """Give the ids of both sides, alike in type; none where the table has none and none is needed."""
    import numpy as np

    from concordant.supervision.columns import check_ids, no_id
    from concordant.supervision.readers.tables import whole_ids

    sides = columns.sides(names)
    asked = wanted or columns.left is not None or columns.right is not None
    if not asked and not {*sides} <= {*names}:
        return None, None
    left, right = (check_ids(column(name), f"column {name!r}") for name in sides)
    for name, ids in zip(sides, (left, right), strict=True):
        if ids.dtype.kind == "U" and (ids == "").any():  # what CSV makes of an empty cell
            raise no_id(f"column {name!r}", int(np.argmax(ids == "")))
    if "U" in (left.dtype.kind, right.dtype.kind):
        both = whole_ids(np.concatenate((left.astype(np.str_), right.astype(np.str_))))
        left, right = both[: len(left)], both[len(left) :]
    return left, right


def read_outcome(column: Callable[[str], Any], columns: Columns) -> tuple[IntArray, tuple[str, ...]]:
    """Give -1, 0 or 1 of each row, and a note where they may have been meant otherwise."""
    import numpy as np
    import pyarrow as pa

    from concordant.supervision.readers.tables import read_comparisons

    name = columns.outcome or "outcome"
    values = column(name)
    rows = np.arange(len(values))
    table = pa.table([rows, rows, pa.array(values.tolist())], names=["left", "right", name])
    words = words_of(columns.outcomes)
    try:
        outcome: IntArray = read_comparisons(table, outcome=name, outcomes=words).outcome
    except LabelError as error:  # its hint is about arguments of a function
        raise LabelError(str(error).partition("\n")[0].removesuffix("."), MEANINGS) from error
    doubtful = words is None and {*outcome.tolist()} == {0, 1} and all_numbers(values)
    return outcome, (DOUBTFUL,) if doubtful else ()


def all_numbers(values: NDArray[Any]) -> bool:
    """Whether every value is a number, or reads as one."""
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def words_of(text: str | None) -> Any:
    """Give what outcomes mean: None, "score", or a mapping such as H=left,D=tie,A=right.

    >>> words_of("H=left, D=tie, A=right")
    {'H': -1, 'D': 0, 'A': 1}
    """
    from concordant.supervision.readers.tables import OUTCOMES

    if text is None or "=" not in text:
        return text
    meanings = {}
    for entry in text.split(","):
        word, _, meaning = (part.strip() for part in entry.partition("="))
        if not word or meaning.casefold() not in OUTCOMES:
            problem = f"--outcomes has {entry.strip()!r}, which is not WORD=left, WORD=tie or WORD=right"
            raise LabelError(problem, "write it like H=left,D=tie,A=right.")
        meanings[word] = OUTCOMES[meaning.casefold()]
    return meanings


def read_features(
    column: Callable[[str], Any], names: Sequence[str], columns: Columns
) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Give the features of both sides by the prefixes of their columns; both must have all."""
    from concordant.supervision.readers.pair_columns import pair_features

    prefixes, reserved = (columns.left_prefix, columns.right_prefix), columns.reserved(names)
    chosen = pair_features(names, prefixes, reserved, columns.features, "--features chooses which are used")
    if not chosen:
        return None, ()
    sides = (numbers(column, [prefix + name for name in chosen]) for prefix in prefixes)
    return stacked(*sides), chosen


def numbers(column: Callable[[str], Any], names: Sequence[str]) -> FloatArray:
    """Give columns of finite numbers as a matrix."""
    import numpy as np

    from concordant.supervision.readers.tables import _numbers

    found = []
    for name in names:
        try:
            found.append(_numbers(column(name), name))
        except NotNumericError as error:
            raise LabelError(no_numbers(column(name), name, error), NUMBERS) from error
    return np.stack(found, axis=1)


def no_numbers(values: NDArray[Any], name: str, error: NotNumericError) -> str:
    """Name the first value that is no number: in a column with text, all are text."""
    for row, value in enumerate(values.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"column {name!r} must be numeric, but row {row} is {value!r}"
    return str(error).partition("\n")[0].removesuffix(".")


def read_extras(column: Callable[[str], Any], columns: Columns) -> tuple[Any, Any]:
    """Give times and weights, where columns are named."""
    from concordant.evaluation.splits import check_time
    from concordant.supervision.columns import check_nonnegative

    time = None if columns.time is None else check_time(column(columns.time), f"column {columns.time!r}")
    if columns.weight is None:
        return time, None
    weight = check_nonnegative(column(columns.weight), f"column {columns.weight!r}", "pair")
    if not weight.any():
        raise LabelError(f"column {columns.weight!r} is 0 throughout", "a pair must count: name another.")
    return time, weight


def read_items(path: Path, id_column: str | None, features: Sequence[str] | None) -> ItemTable:
    """Read a table of items; every id once."""
    from concordant.supervision.columns import check_ids

    wanted = id_column or "id"
    column, names = read_columns(path, [wanted])
    if id_column is None and "id" not in names:
        wanted = names[0]
        column, names = read_columns(path, [wanted])
    if wanted not in names:
        raise no_column(path, wanted, "--id", names)
    ids = [str(one) for one in check_ids(column(wanted), f"column {wanted!r}").tolist()]
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            problem = f"{path.name}: rows {first[name]} and {row} both have the id {name!r}"
            raise LabelError(problem, "every item has one row.")
    chosen = [name for name in names if name != wanted] if features is None else list(features)
    if not chosen:
        raise LabelError(
            f"{path.name} has no column but {wanted!r}", "features of the items are its other columns."
        )
    return ItemTable(path.name, ids, tuple(chosen), numbers(column, chosen))


def unknown_item(name: str, where: str, known_to: str, known: Sequence[str]) -> LabelError:
    """Say which id is unknown, and what is like it."""
    close = difflib.get_close_matches(name, known, n=3)
    hint = (
        f"like it: {', '.join(close)}."
        if close
        else f"it has {len(known):,} items, as {', '.join(known[:3])}."
    )
    return LabelError(f"{where}: the item {name!r} is not in {known_to}", hint)


def nothing_to_learn(path: Path, names: Sequence[str], columns: Columns) -> LabelError:
    """Say what a table of pairs would have."""
    left, right = columns.sides(names)
    prefixes = columns.left_prefix, columns.right_prefix
    problem = (
        f"{path.name} has neither ids (columns {left!r} and {right!r}) nor features of both sides "
        f"({prefixes[0]}NAME and {prefixes[1]}NAME)"
    )
    return LabelError(
        problem, f"say which by --left and --right, or by the prefixes; it has {', '.join(names)}."
    )
