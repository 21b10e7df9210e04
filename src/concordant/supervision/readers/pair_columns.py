"""Tables of pairs: which columns are the features of the left item, and which of the right."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from concordant.exceptions import LabelError

__all__ = ["id_columns", "pair_features"]


def id_columns(names: Sequence[str], prefixes: Sequence[str]) -> tuple[str, str]:
    """Give the columns of ids of both sides: left and right, or else left_id and right_id.

    >>> id_columns(["left_id", "right_id", "outcome"], ["left_", "right_"])
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
    """Give the features of items, of which both sides have a column; none where a side has no such column.

    Parameters
    ----------
    names
        All columns.
    prefixes
        How those of the left, and of the right, begin.
    reserved
        Columns that are no features, however they begin.
    features
        The wanted ones; None: all.
    also
        What else a message says to do.

    Examples
    --------
    >>> pair_features(["left_age", "right_age", "outcome"], ["left_", "right_"])
    ('age',)
    """
    found: list[list[str]] = [
        [name.removeprefix(prefix) for name in names if name.startswith(prefix) and name not in reserved]
        for prefix in prefixes
    ]
    chosen = tuple(features or dict.fromkeys(found[0] + found[1]))
    if not chosen or not any(found) or (features is None and not all(found)):
        return ()
    for name in chosen:
        for prefix, own in zip(prefixes, found, strict=True):
            if name not in own:
                other = prefixes[1] if prefix == prefixes[0] else prefixes[0]
                hint = f"each needs two, {prefix}{name} and {other}{name}"
                raise LabelError(
                    f"the feature {name!r} has no column {prefix + name!r}", f"{hint}{also and '; ' + also}."
                )
    return chosen
