"""Input of `compare`: pairs by id or by features, and tables of items."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.shared.output import argument, option
from concordant.exceptions import EmptyDataError, LabelError, NotNumericError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from concordant.types import FloatArray, IntArray


# Options of `compare`: the tables, and the names of their columns.

_column = partial(option, panel="Columns of the tables")
PairsFile = Annotated[
    Path, argument("PAIRS", "Table of pairs, one a row: .csv .tsv .parquet .feather; text may be compressed.")
]
ModelFile = Annotated[Path, argument("MODEL", "Model that `compare fit` wrote.")]
ItemsFile = Annotated[
    Path | None, option("--items", "TABLE", "Table of items: a column of ids, the others features.")
]


LeftColumn = Annotated[
    str | None, _column("--left", "COL", "Ids of the left items. Default: left, or left_id.")
]
RightColumn = Annotated[
    str | None, _column("--right", "COL", "Ids of the right items. Default: right, or right_id.")
]
OutcomeColumn = Annotated[
    str | None,
    _column("--outcome", "COL", "Who won: left, right or tie, -1, 1 or 0, and the like. Default: outcome."),
]
OutcomeWords = Annotated[
    str | None,
    _column(
        "--outcomes", "HOW", "score: 1, 0.5, 0 are the left's score. Or your words: H=left,D=tie,A=right."
    ),
]
TimeColumn = Annotated[
    str | None,
    _column("--time", "COL", "Dates or numbers: ratings follow them, and later pairs are held out."),
]
WeightColumn = Annotated[str | None, _column("--weight", "COL", "How often each pair counts. Default: once.")]
FeatureList = Annotated[
    str | None, _column("--features", "A,B,...", "Features to use. Default: all; they must be numbers.")
]
LeftPrefix = Annotated[
    str,
    _column(
        "--left-prefix",
        "TEXT",
        "How columns of the left item's features begin. Default: left_.",
        show_default=False,
    ),
]
RightPrefix = Annotated[
    str,
    _column(
        "--right-prefix",
        "TEXT",
        "How columns of the right item's features begin. Default: right_.",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None, _column("--id", "COL", "Ids in the table of items. Default: id, else the first column.")
]


@dataclass(frozen=True)
class PairOptions:
    """Options that name the columns of pairs, for a model that knows its features."""

    left: LeftColumn = None
    right: RightColumn = None
    outcome: OutcomeColumn = None
    outcomes: OutcomeWords = None
    weight: WeightColumn = None
    left_prefix: LeftPrefix = "left_"
    right_prefix: RightPrefix = "right_"
    id_column: IdColumn = None


@dataclass(frozen=True)
class TrainingPairOptions:
    """Options that name the columns of pairs to fit a model to."""

    left: LeftColumn = None
    right: RightColumn = None
    outcome: OutcomeColumn = None
    outcomes: OutcomeWords = None
    time: TimeColumn = None
    weight: WeightColumn = None
    features: FeatureList = None
    left_prefix: LeftPrefix = "left_"
    right_prefix: RightPrefix = "right_"
    id_column: IdColumn = None


@dataclass(frozen=True)
class PairColumnNames:
    """Names of the columns; None: the default name, if there is such a column."""

    left: str | None = None
    right: str | None = None
    outcome: str | None = None
    outcomes: str | None = None
    time: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    left_prefix: str = "left_"
    right_prefix: str = "right_"

    @classmethod
    def from_options(
        cls, options: PairOptions | TrainingPairOptions, features: tuple[str, ...] | None
    ) -> PairColumnNames:
        """Build the names from the options, and those of the features."""
        named = {**vars(options), "features": features}
        del named["id_column"]
        return cls(**named)

    @property
    def prefix_options(self) -> dict[str, str | None]:
        """The prefixes by their options; None for the defaults."""
        left, right = self.left_prefix, self.right_prefix
        return {
            "--left-prefix": None if left == "left_" else left,
            "--right-prefix": None if right == "right_" else right,
        }

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the columns that may hold ids."""
        defaults = "left", "right", f"{self.left_prefix}id", f"{self.right_prefix}id"
        return *filter(None, (self.left, self.right)), *defaults

    def sides(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the names of both id columns: as given, else left and right, else left_id and right_id."""
        from concordant.data.io.roles import find_id_columns

        default = find_id_columns(names, (self.left_prefix, self.right_prefix))
        return self.left or default[0], self.right or default[1]

    def reserved(self, names: Sequence[str]) -> set[str]:
        """Return the names of the columns that are not features."""
        return {*self.sides(names), self.outcome or "outcome", *filter(None, (self.time, self.weight))}


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
    """Items with their ids, as text, and a row of features each."""

    name: str
    ids: list[str]
    features: tuple[str, ...]
    values: FloatArray

    def rows(self, ids: Sequence[Any], side: str, file: str) -> IntArray:
        """Return the row number of each id; raise for the first unknown one."""
        import numpy as np

        row_by_id = {name: row for row, name in enumerate(self.ids)}
        rows = [row_by_id.get(str(item_id), -1) for item_id in ids]
        if -1 in rows:
            row = rows.index(-1)
            raise unknown_item(str(ids[row]), f"row {row} of {file}, {side}", self.name, self.ids)
        return np.array(rows, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs of one file; missing columns are None.

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
        Remarks on how the table was read.
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


def refuse_options(options: Mapping[str, object], allowed: str) -> None:
    """Raise if an option was given that has no effect here."""
    for name, value in options.items():
        if value is not None:
            raise ParameterError.because(f"{name} works only {allowed}. Leave it out (got {value}).")


def read_tables(
    file: Path,
    columns: PairColumnNames,
    items: Path | None,
    id_column: str | None,
    *,
    judged: bool,
    featured: bool = True,
) -> PairTable:
    """Read pairs, and the features of their items if there is a table of items."""
    table = None if items is None else read_items(items, id_column, columns.features)
    return read_pairs(file, columns, table, judged=judged, featured=featured)


def read_pairs(
    path: Path,
    columns: PairColumnNames,
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
        Source of the features. If None, or if `own_first` and the pairs have features, they are read from the
        columns that begin with the two prefixes.
    judged
        True if outcomes are required; else they are read if present.
    featured
        True if features are read.
    """
    column, names = _read_columns(path, columns.ids)
    _check_named(path, names, columns, judged=judged, needs_ids=items is not None and not own_first)
    pairs: FloatArray | None = None
    features: tuple[str, ...] = ()
    if featured and (items is None or own_first):
        pairs, features = _read_features(column, names, columns)
    feature_items = items if pairs is None else None
    left, right = _read_ids(column, names, columns, required=feature_items is not None)
    if left is None and pairs is None:
        raise _nothing_to_learn(path, names, columns)
    has_outcome = judged or (columns.outcome or "outcome") in names
    outcome, notes = _read_outcome(column, columns) if has_outcome else (None, ())
    if feature_items is not None and left is not None and right is not None:
        sides = ((left, "left"), (right, "right"))
        places = [feature_items.rows(ids.tolist(), side, path.name) for ids, side in sides]
        pairs, features = (
            _stack_sides(*(feature_items.values[rows] for rows in places)),
            feature_items.features,
        )
    time, weight = _read_extras(column, columns)
    n_rows = len(column(names[0]))
    return PairTable(path.name, n_rows, left, right, outcome, pairs, features, time, weight, notes)


def _read_columns(path: Path, ids: Sequence[str]) -> tuple[Callable[[str], Any], list[str]]:
    """Read a file; return a function from name to column, and the names. EmptyDataError names the file."""
    from concordant.data.io.tables import _read_arrow, open_columns

    try:
        return open_columns(_read_arrow(path, ids))
    except EmptyDataError as error:
        raise EmptyDataError(path.name) from error


def _check_named(
    path: Path, names: Sequence[str], columns: PairColumnNames, *, judged: bool, needs_ids: bool
) -> None:
    """Raise if a column is missing that was named or is needed; the message names its option."""
    required = {"--left": columns.left, "--right": columns.right, "--time": columns.time}
    required |= {"--weight": columns.weight, "--outcome": columns.outcome}
    if needs_ids:
        required |= dict(zip(("--left", "--right"), columns.sides(names), strict=True))
    if judged:
        required["--outcome"] = columns.outcome or "outcome"
    for flag, name in required.items():
        if name is not None and name not in names:
            raise _no_column(path, name, flag, names)


def _no_column(path: Path, name: str, flag: str, names: Sequence[str]) -> LabelError:
    return LabelError(f"{path.name} has no column {name!r}", f"name it by {flag}; it has {', '.join(names)}.")


def _stack_sides(left: FloatArray, right: FloatArray) -> FloatArray:
    """Stack the features of both sides to shape (n, 2, p)."""
    import numpy as np

    return np.stack((left, right), axis=1)


def _read_ids(
    column: Callable[[str], Any], names: Sequence[str], columns: PairColumnNames, *, required: bool
) -> tuple[NDArray[Any], NDArray[Any]] | tuple[None, None]:
    """Read the ids of both sides, in one type; (None, None) if there are none and none are required."""
    import numpy as np

    from concordant._base.validate import check_ids, missing_id_error
    from concordant.data.io.tables import to_integer_ids

    sides = columns.sides(names)
    expected = required or columns.left is not None or columns.right is not None
    if not expected and not {*sides} <= {*names}:
        return None, None
    left, right = (check_ids(column(name), f"column {name!r}") for name in sides)
    for name, ids in zip(sides, (left, right), strict=True):
        if ids.dtype.kind == "U" and (ids == "").any():  # an empty cell of CSV
            raise missing_id_error(f"column {name!r}", int(np.argmax(ids == "")))
    if "U" in (left.dtype.kind, right.dtype.kind):
        both = to_integer_ids(np.concatenate((left.astype(np.str_), right.astype(np.str_))))
        left, right = both[: len(left)], both[len(left) :]
    return left, right


def _read_outcome(column: Callable[[str], Any], columns: PairColumnNames) -> tuple[IntArray, tuple[str, ...]]:
    """Read the outcomes as -1, 0 or 1, with a note where another reading is likely."""
    import numpy as np
    import pyarrow as pa

    from concordant.data.io.roles import OUTCOMES
    from concordant.data.io.tables import read_comparisons

    name = columns.outcome or "outcome"
    values = column(name)
    rows = np.arange(len(values))
    table = pa.table([rows, rows, pa.array(values.tolist())], names=["left", "right", name])
    words = read_outcome_words(columns.outcomes)
    try:
        outcome: IntArray = read_comparisons(table, outcome=name, outcomes=words or OUTCOMES).outcome
    except LabelError as error:  # its hint speaks of function arguments
        raise LabelError(str(error).partition("\n")[0].removesuffix("."), MEANINGS) from error
    doubtful = words is None and {*outcome.tolist()} == {0, 1} and _all_numbers(values)
    return outcome, (DOUBTFUL,) if doubtful else ()


def _all_numbers(values: NDArray[Any]) -> bool:
    """True if every value is a number or parses as one."""
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def read_outcome_words(text: str | None) -> Any:
    """Parse the meaning of outcomes: None, "score", or a mapping such as H=left,D=tie,A=right.

    >>> read_outcome_words("H=left, D=tie, A=right")
    {'H': -1, 'D': 0, 'A': 1}
    """
    from concordant.data.io.roles import OUTCOMES

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


def _read_features(
    column: Callable[[str], Any], names: Sequence[str], columns: PairColumnNames
) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Read the features of both sides by the prefixes of their columns; both sides must have all."""
    from concordant.data.io.roles import pair_features

    prefixes, reserved = (columns.left_prefix, columns.right_prefix), columns.reserved(names)
    feature_names = pair_features(
        names, prefixes, reserved, columns.features, "--features chooses which are used"
    )
    if not feature_names:
        return None, ()
    sides = (read_numbers(column, [prefix + name for name in feature_names]) for prefix in prefixes)
    return _stack_sides(*sides), feature_names


def read_numbers(column: Callable[[str], Any], names: Sequence[str]) -> FloatArray:
    """Read columns of finite numbers as a matrix."""
    import numpy as np

    from concordant.data.io.tables import check_finite_column

    vectors = []
    for name in names:
        try:
            vectors.append(check_finite_column(column(name), name))
        except NotNumericError as error:
            raise LabelError(_no_numbers(column(name), name, error), NUMBERS) from error
    return np.stack(vectors, axis=1)


def _no_numbers(values: NDArray[Any], name: str, error: NotNumericError) -> str:
    """Describe the first value that is not a number; a column with any text is all text."""
    for row, value in enumerate(values.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"column {name!r} must be numeric, but row {row} is {value!r}"
    return str(error).partition("\n")[0].removesuffix(".")


def _read_extras(column: Callable[[str], Any], columns: PairColumnNames) -> tuple[Any, Any]:
    from concordant._base.validate import EXACT, check_nonnegative
    from concordant.data.times import FINER, check_time

    time = None if columns.time is None else check_time(column(columns.time), f"column {columns.time!r}")
    if time is not None and time.dtype.kind == "f" and (large := abs(time) >= EXACT).any():
        row = int(large.argmax())  # text and whole numbers were rounded when the file was read
        problem = f"column {columns.time!r} is {time[row]:.17g} at row {row}, and doubles round such numbers"
        raise LabelError(problem, FINER)
    if columns.weight is None:
        return time, None
    weight = check_nonnegative(column(columns.weight), f"column {columns.weight!r}", "pair")
    if not weight.any():
        raise LabelError(
            f"column {columns.weight!r} is 0 in every row", "at least one pair needs a positive weight."
        )
    return time, weight


def read_items(path: Path, id_column: str | None, features: Sequence[str] | None) -> ItemTable:
    """Read a table of items with unique ids."""
    from concordant._base.validate import check_ids

    id_name = id_column or "id"
    column, names = _read_columns(path, [id_name])
    if id_column is None and "id" not in names:
        id_name = names[0]
        column, names = _read_columns(path, [id_name])
    if id_name not in names:
        raise _no_column(path, id_name, "--id", names)
    ids = [str(item_id) for item_id in check_ids(column(id_name), f"column {id_name!r}").tolist()]
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if first.setdefault(name, row) != row:
            problem = f"{path.name}: rows {first[name]} and {row} both have the id {name!r}"
            raise LabelError(problem, "every item has one row.")
    feature_names = [name for name in names if name != id_name] if features is None else list(features)
    if not feature_names:
        raise LabelError(
            f"{path.name} has only the column {id_name!r}", "add the features of the items as columns."
        )
    return ItemTable(path.name, ids, tuple(feature_names), read_numbers(column, feature_names))


def unknown_item(name: str, where: str, known_to: str, item_names: Sequence[str]) -> LabelError:
    """Return the error for an unknown id, with similar ids as the hint."""
    close = difflib.get_close_matches(name, item_names, n=3)
    hint = (
        f"like it: {', '.join(close)}."
        if close
        else f"it has {len(item_names):,} items, as {', '.join(item_names[:3])}."
    )
    return LabelError(f"{where}: the item {name!r} is not in {known_to}", hint)


def _nothing_to_learn(path: Path, names: Sequence[str], columns: PairColumnNames) -> LabelError:
    left, right = columns.sides(names)
    prefixes = columns.left_prefix, columns.right_prefix
    problem = (
        f"{path.name} has neither ids (columns {left!r} and {right!r}) nor features of both sides "
        f"({prefixes[0]}NAME and {prefixes[1]}NAME)"
    )
    return LabelError(
        problem, f"say which by --left and --right, or by the prefixes; it has {', '.join(names)}."
    )
