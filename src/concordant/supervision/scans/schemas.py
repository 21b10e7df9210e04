"""What files of tables have in common: roles of their columns, and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concordant.exceptions import LabelError, NotNumericError, UnknownNameError
from concordant.supervision.readers.roles import Roles, index_columns, repeated
from concordant.supervision.readers.tables import naming_damage

__all__ = ["common_dtype", "number_type", "other_columns", "refuse_repeated", "same_roles"]


def refuse_repeated(file: str, schema: Any) -> None:
    """Refuse a file with two columns of one name, or with names that cannot be read."""
    with naming_damage(file, "a table"):
        names = schema.names
    if (name := repeated(names)) is not None:
        raise LabelError(f"{file}: two columns are called {name!r}", "rename or drop one of them.")


def same_roles(files: Mapping[str, Any], wanted: dict[str, Any]) -> Roles:
    """Give the roles of the columns, which all files must have."""
    if not files:
        return Roles("", "", ())
    for file, schema in files.items():
        refuse_repeated(file, schema)
    first = next(iter(files))
    roles = Roles.of(files[first].names, hidden=index_columns(files[first]), **wanted)
    for file, schema in files.items():
        if unknown := [name for name in roles.named if name not in schema.names]:
            if file == first:
                raise UnknownNameError("column", unknown[0], schema.names)
            raise other_columns(file, unknown[0], first)
        more = {*schema.names}.difference(files[first].names, index_columns(schema))
        if wanted["features"] is None and more:
            raise other_columns(first, min(more), file)
    if not roles.features:
        raise LabelError(
            f"{first}: no column is left for features", f"it has {', '.join(files[first].names)}."
        )
    return roles


def other_columns(file: str, name: str, other: str) -> LabelError:
    """Say which file lacks what."""
    hint = "files that are read together have the same columns; or name features= that all have."
    return LabelError(f"{file} has no column {name!r}, and {other} has one", hint)


def common_dtype(files: Mapping[str, Any], roles: Roles) -> str:
    """Give the type of X; what is no number is refused before anything is read."""
    from pyarrow import types

    exact = (
        types.is_float32,
        types.is_float16,
        types.is_int8,
        types.is_int16,
        types.is_uint8,
        types.is_uint16,
    )
    single = True
    for file, schema in files.items():
        for name in roles.numbers:
            kind = number_type(file, schema, name)
            narrow = types.is_boolean(kind) or any(is_exact(kind) for is_exact in exact)
            single = single and (narrow or name not in roles.features)
    return "float32" if single else "float64"


def number_type(file: str, schema: Any, name: str) -> Any:
    """Give the type of a column of numbers; another is refused."""
    from pyarrow import types

    kind = schema.field(name).type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if not (number or types.is_boolean(kind) or types.is_null(kind)):
        raise NotNumericError(f"{file}: column {name!r}", f"it holds {kind}")
    return kind
