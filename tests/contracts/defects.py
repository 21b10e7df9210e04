"""What may be wrong with an argument, by what the argument is."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

NAN, INF = float("nan"), float("inf")


def with_value(value):
    """Put a value in the middle of a copy."""

    def damaged(array):
        changed = np.array(array, dtype=np.result_type(array, np.float64))
        changed[tuple(size // 2 for size in changed.shape)] = value
        return changed

    return damaged


def with_object(value):
    """Put any object in the middle of a copy."""

    def damaged(array):
        changed = np.array(array).astype(object)
        changed[tuple(size // 2 for size in changed.shape)] = value
        return changed

    return damaged


def masked(array):
    """Mask one entry."""
    mask = np.zeros(np.shape(array), dtype=bool)
    mask[tuple(size // 2 for size in mask.shape)] = True
    return np.ma.array(np.array(array), mask=mask)


def dates(array):
    """Dates in the place of numbers."""
    return np.arange(np.size(array)).astype("datetime64[D]").reshape(np.shape(array))


def frozen(array):
    """A copy that nobody may write to."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


# Of any array: its form is wrong.
FORMS = {
    "empty": lambda array: np.asarray(array)[:0],
    "one row fewer": lambda array: np.asarray(array)[:-1],
    "one row more": lambda array: np.concatenate((array, np.asarray(array)[:1])),
    "an axis more": lambda array: np.stack((array, array), axis=-1),
    "no axis": lambda _: np.float64(1.0),
    "a dict": lambda array: dict(enumerate(np.asarray(array).tolist())),
    "a generator": lambda array: (row for row in np.asarray(array).tolist()),
    "an object": lambda _: object(),
    "text alone": lambda _: "no such thing",
    "ragged": lambda array: [[1.0], [1.0, 2.0]] * (len(array) // 2),
}
# Of numbers: what stands in it is none.
VALUES = {
    "nan": with_value(NAN),
    "inf": with_value(INF),
    "-inf": with_value(-INF),
    "text": with_object("many"),
    "none": with_object(None),
    "an empty list": with_object([]),
    "complex": lambda array: np.asarray(array) + 1j,
    "masked": masked,
    "dates": dates,
    "all text": lambda array: np.asarray(array).astype(str),
    "bytes": lambda array: np.asarray(array).astype("S"),
    "signalling nan": with_object(Decimal("sNaN")),
    "a number without end": with_object(10**400),
}
NUMBERS = {**FORMS, **VALUES}

# Sound, if unusual: where an argument takes numbers, it takes these.
UNUSUAL = {
    "float32": lambda array: np.asarray(array).astype(np.float32),
    "lists": lambda array: np.asarray(array).tolist(),
    "column-major": np.asfortranarray,
    "backwards": lambda array: np.asarray(array)[::-1].copy()[::-1],
    "read-only": frozen,
    "a mask of nothing": lambda array: np.ma.array(np.array(array)),
    "decimals": np.vectorize(lambda number: Decimal(float(number)), otypes=[object]),
    "other bytes": lambda array: np.asarray(array).astype(np.asarray(array).dtype.newbyteorder()),
}


def spans(array):
    """Spans of time in the place of numbers."""
    return np.arange(np.size(array)).astype("timedelta64[us]").reshape(np.shape(array))


def named(array):
    """Columns by name."""
    return {f"f{number}": column for number, column in enumerate(np.asarray(array).T)}


# Features that are no numbers by what stands in columns or objects, not by the type of an array.
WORDS = {
    "text as objects": lambda array: np.asarray(array).astype(str).astype(object),
    "bytes as objects": lambda array: np.asarray(array).astype("S").astype(object),
    "one text among objects": with_object("1.5"),
    "dates as objects": with_object(np.datetime64("2020-01-01")),
    "pandas, text": lambda array: pd.DataFrame(array).astype(str),
    "pandas, dates": lambda array: pd.DataFrame(dates(array).astype("datetime64[us]")),
    "pandas, spans": lambda array: pd.DataFrame(array).assign(last=spans(array)[:, 0]).iloc[:, 1:],
    "pandas, categories of text": lambda array: pd.DataFrame(array).astype(str).astype("category"),
    "polars, text": lambda array: pl.DataFrame(named(array)).cast(pl.String),
    "polars, dates": lambda array: pl.DataFrame(named(dates(array))),
    "pyarrow, text": lambda array: pl.DataFrame(named(array)).cast(pl.String).to_arrow(),
    "pyarrow, spans": lambda array: pa.table(named(spans(array))),
}

DEFECTS = {
    "features": {
        **NUMBERS,
        "too large": with_value(1e300),
        "no features": lambda array: np.asarray(array)[:, :0],
        "one axis": lambda array: np.asarray(array)[:, 0],
    },
    "pairs": {
        **NUMBERS,
        "too large": with_value(1e300),
        "no features": lambda array: np.asarray(array)[:, :, :0],
        "two axes": lambda array: np.asarray(array)[:, 0],
        "one axis": lambda array: np.asarray(array)[:, 0, 0],
        "three sides": lambda array: np.concatenate((array, np.asarray(array)[:, :1]), axis=1),
    },
    "grades": {**NUMBERS, "negative": with_value(-1.0), "huge": with_value(5000.0)},
    "outcome": {
        **NUMBERS,
        "two": with_value(2.0),
        "half": with_value(0.5),
        "flags": lambda array: np.asarray(array) > 0,
    },
    "scores": NUMBERS,
    "weights": {
        **NUMBERS,
        "negative": with_value(-1.0),
        "all zero": lambda array: np.zeros(np.shape(array)),
    },
    "ids": {
        **FORMS,
        "nan": with_value(NAN),
        "none": with_object(None),
        "text among numbers": with_object("many"),
        "an empty list": with_object([]),
        "a tuple": with_object((1, 2)),
        "complex": lambda array: np.arange(len(array)) + 1j,
        "masked": masked,
        "not a time": lambda array: np.full(len(array), np.datetime64("NaT")),
        "too large for a double": lambda array: np.full(len(array), 1e300),
    },
    "times": {
        **FORMS,
        "nan": with_value(NAN),
        "inf": with_value(INF),
        "text": with_object("many"),
        "none": with_object(None),
        "an empty list": with_object([]),
        "complex": lambda array: np.asarray(array) + 1j,
        "masked": masked,
        "not a time": lambda array: np.full(len(array), np.datetime64("NaT")),
    },
    "square": {
        **NUMBERS,
        "one axis": lambda array: np.asarray(array)[0],
        "one column fewer": lambda array: np.asarray(array)[:, :-1],
    },
    "orders": {
        **NUMBERS,
        "one axis": lambda array: np.asarray(array)[0],
        "one column fewer": lambda array: np.asarray(array)[:, :-1],
    },
    "probabilities": {**NUMBERS, "negative": with_value(-0.5), "above one": with_value(7.0)},
}
