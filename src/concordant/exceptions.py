"""Every error raised on bad input: what was wrong, what was seen, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Self

__all__ = [
    "ChecksumError",
    "ClusterError",
    "ConcordantError",
    "DatasetNotFoundError",
    "EmptyDataError",
    "ExportError",
    "FeaturesError",
    "GradeError",
    "GuaranteeWarning",
    "LabelError",
    "LengthMismatchError",
    "LibraryError",
    "MalformedLineError",
    "MissingExtraError",
    "ModelFileError",
    "NoFiniteRatingsError",
    "NoRegretBoundError",
    "NoStandardizationError",
    "NonFiniteError",
    "NotConnectedError",
    "NotMeasuredError",
    "NotNumericError",
    "NotSeparableError",
    "ParameterError",
    "RowError",
    "ShapeError",
    "UnknownNameError",
]


LONGEST = 200  # characters of a value in a message


class ConcordantError(ValueError):
    """Base of every error raised on bad input."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt from the finished message: the arguments of the subclasses are gone by then.
        return rebuilt, (type(self), self.args, self.__dict__)


def rebuilt(
    kind: type[ConcordantError], args: tuple[object, ...], state: dict[str, object]
) -> ConcordantError:
    """Give an error back from another process."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def shown(value: object) -> str:
    """Text of what was seen, whatever it is; long ones are cut.

    >>> shown(0.5), shown("a" * 1000)[-6:], shown(10**5000)
    ('0.5', 'aaa...', '<int>')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # such as a whole number too long to be written out
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


class RowError(ConcordantError):
    """An error about one row of the data; it can name the row's query too."""

    row: int | None = None

    def at(self, row: int) -> Self:
        """Give the error, knowing its row as the caller counts rows."""
        self.row = row
        return self

    def in_query(self, query: object) -> None:
        """Add the query to the row in the message."""
        text = str(self).replace(f"row {self.row}", f"row {self.row} (query {query!r})", 1)
        self.args = (text,)

    def within(self, place: str, row: int) -> None:
        """Count the row, from 0, in a piece of the data, such as a row group of a file, and name that."""
        text = str(self).replace(f"row {self.row}", f"row {row}", 1)
        self.args, self.row = (f"{place}: {text}",), row


class LengthMismatchError(ConcordantError):
    """Two arrays that describe the same rows differ in length."""

    def __init__(self, name: str, got: int, expected: int, reference: str = "X") -> None:
        super().__init__(
            f"{name} has {got} entries, {reference} has {expected} rows.\n"
            f"Hint: pass one {name} per row; a group-size list becomes ids by np.repeat."
        )


class ShapeError(ConcordantError):
    """An array has the wrong number of dimensions or columns."""

    def __init__(self, name: str, got: tuple[int, ...], expected: str) -> None:
        super().__init__(f"{name} has shape {got}; expected {expected}.")


class EmptyDataError(ConcordantError):
    """There are no rows at all."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} has no rows.\nHint: check the path, the filter or the split that produced it."
        )


class NotNumericError(RowError):
    """Text or objects stand where numbers belong."""

    def __init__(self, name: str, seen: str) -> None:
        super().__init__(
            f"{name} must be numeric, but {seen}.\n"
            "Hint: convert labels to numbers (e.g. by a mapping) before passing them; ids may be text, "
            "grades, scores and weights may not."
        )


class FeaturesError(ConcordantError, TypeError):
    """Features are no table of numbers, or not the table that was fitted.

    Also a `TypeError`, which scikit-learn asks for where an entry is no number at all.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} cannot be read as features: {problem}")


class NonFiniteError(RowError):
    """A NaN or an infinity stands where a finite number belongs."""

    def __init__(self, name: str, value: float, where: str, count: int, hint: str = "") -> None:
        hint = hint or "impute or drop these rows before ranking."
        super().__init__(f"{name} is {value} at {where} ({count} such value(s) in all).\nHint: {hint}")


class GradeError(RowError):
    """A grade lies outside what the metric can use."""

    def __init__(self, value: float, where: str, problem: str, hint: str) -> None:
        super().__init__(f"grade {value:g} at {where} {problem}.\nHint: {hint}")


class LabelError(ConcordantError):
    """Preferences, permutations or comparisons that contradict their own definition."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}.\nHint: {hint}")


class NotSeparableError(ConcordantError):
    """No linear ranking function tells the ties from the other pairs.

    Attributes
    ----------
    margin
        The largest margin there is: 0 or less, up to rounding.
    conflict
        Rows of pairs that no linear ranking function separates, all others left out.
    """

    def __init__(self, n_pairs: int, margin: float, conflict: Sequence[int]) -> None:
        self.margin, self.conflict = margin, tuple(conflict)
        named = ", ".join(map(str, self.conflict[:5])) + (", ..." if len(self.conflict) > 5 else "")
        super().__init__(
            f"no linear ranking function separates the {n_pairs} pairs: the largest margin is {margin:.3g}, "
            f"and {len(self.conflict)} of them (rows {named}) already contradict one another.\n"
            "Hint: allow errors by a soft margin (a finite C), take a kernel, or look at those pairs."
        )


class ParameterError(ConcordantError):
    """A parameter lies outside its range."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name}={shown(value)} is not allowed; {name} must be {allowed}.")


class UnknownNameError(ConcordantError):
    """A name is in no table; the message lists the table."""

    def __init__(self, kind: str, name: object, allowed: Iterable[str]) -> None:
        names = sorted(allowed)
        text = name[:LONGEST] if isinstance(name, str) else ""
        close = difflib.get_close_matches(text, names, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(
            f"unknown {kind} {shown(name)}.{guess}\nHint: the known ones are {', '.join(names)}."
        )


class NotMeasuredError(UnknownNameError, KeyError):
    """A metric is asked for that was not measured.

    Also a `KeyError`, which mappings raise, so that `in` and `get` can tell.
    """

    __str__ = Exception.__str__  # a KeyError would quote the message

    def __init__(self, name: object, measured: Iterable[str]) -> None:
        super().__init__("metric of this evaluation", name, measured)


class NoStandardizationError(ConcordantError):
    """No function of the labels alone has an optimal expectation for this metric.

    Attributes
    ----------
    alternatives
        What to do instead.
    """

    def __init__(self, metric: str, theorem: str, alternatives: str) -> None:
        self.alternatives = alternatives
        super().__init__(f"{metric} has no standardization: {theorem}.\nHint: {alternatives}")


class NoRegretBoundError(ConcordantError):
    """No theorem bounds the regret of this metric by that of this surrogate."""

    def __init__(self, metric: str, surrogate: str, why: str) -> None:
        super().__init__(
            f"no regret bound is proven for {metric} by {surrogate} ({why}).\n"
            "Hint: `transfer` is None where there is none; concordant.theory.transfer lists what is proven."
        )


class NoFiniteRatingsError(ConcordantError):
    """The votes make some rating, advantage or tie parameter infinite."""

    def __init__(self, problem: str) -> None:
        hint = "alpha > 0 (such as 0.1) gives finite ratings, drawn together; more votes may settle it."
        super().__init__(f"{problem}.\nHint: {hint}")


class NotConnectedError(NoFiniteRatingsError):
    """The votes do not compare all items: some group never lost to, or never met, the others.

    Attributes
    ----------
    components
        Names of the items by strongly connected component, largest first.
    """

    def __init__(self, components: list[list[Any]]) -> None:
        self.components = components
        sizes = [f" and {len(part) - 1} more" if part[1:] else "" for part in components]
        shown = [f"{part[0]!r}{others}" for part, others in zip(components, sizes, strict=True)]
        named = "; ".join([*shown[:4], *(["..."] if shown[4:] else [])])
        super().__init__(
            f"the votes leave {len(components)} components ({named}), and between any two the wins go one "
            "way, or there are none: ratings would be infinitely far apart"
        )


class GuaranteeWarning(UserWarning):
    """Training goes on, but that it optimises the metric rests on a condition, or on nothing.

    Given once a fit, before the work, unless the combination of metric, labels, surrogate and decoder is
    proven to be consistent, or the condition that it needs was assumed. `certificate_` of the fitted ranker
    says more, and `concordant.certify` shows a counterexample. For baselines, trained on purpose:
    `warnings.simplefilter("ignore", GuaranteeWarning)`.
    """


class MalformedLineError(ConcordantError):
    """A line of a text file does not follow its format.

    Attributes
    ----------
    path, line, column
        Where: `line` and `column` count from 1; column 0 means the line as a whole.
    """

    def __init__(self, path: object, line: int, column: int, problem: str, hint: str = "") -> None:
        self.path, self.line, self.column = str(path), line, column
        place = f"{path}, line {line}" + (f", column {column}" if column else "")
        super().__init__(f"{place}: {problem}." + (f"\nHint: {hint}" if hint else ""))


class MissingExtraError(ConcordantError):
    """A package is not installed that only some commands need."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed.\n"
            f"Hint: pip install 'concordant[{extra}]' (or {package} alone)."
        )


class ClusterError(ConcordantError):
    """A cluster cannot be reached, or cannot do what is asked of it."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}.\nHint: {hint}")


class WorkerLostError(ClusterError):
    """A worker of a cluster is gone, and what was done together with it cannot go on without it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "call fit again: the parts are then shared out to the workers there are.")


class ModelFileError(ConcordantError):
    """A file holds no model that can be used, or a model cannot be written to one.

    Attributes
    ----------
    path
        The file.
    """

    def __init__(self, path: object, problem: str, hint: str = "") -> None:
        self.path = str(path)
        super().__init__(f"{path}: {problem}." + (f"\nHint: {hint}" if hint else ""))


class ExportError(ConcordantError):
    """A model has no form in a format, or what was written does not score as the model does.

    Attributes
    ----------
    path
        The file, of which nothing was written.
    """

    def __init__(self, path: object, problem: str, hint: str) -> None:
        self.path = str(path)
        super().__init__(f"{path}: {problem}.\nHint: {hint}")


class LibraryError(ConcordantError):
    """A library that does the work refused it; the message has its words."""

    def __init__(self, library: str, problem: str) -> None:
        super().__init__(
            f"{library} refused: {problem.strip()}\n"
            "Hint: it reads most numbers in single precision (up to 3e38), and checks `params` itself."
        )


class DatasetNotFoundError(ConcordantError):
    """A named dataset is not on this machine; the message says where to get it."""

    def __init__(self, name: str, missing: str, folder: str, source: str, licence: str) -> None:
        super().__init__(
            f"dataset {name!r}: {missing} not found under {folder}.\n"
            f"Hint: get it from {source} (terms: {licence}) and unpack it there, "
            "or point CONCORDANT_DATA at the folder that holds it."
        )


class ChecksumError(ConcordantError):
    """A file is not the one this library knows."""

    def __init__(self, path: object, got: str, expected: str) -> None:
        super().__init__(
            f"{path}: the contents have SHA-256 {got}, expected {expected}.\n"
            "Hint: the file is damaged or another edition (line ends count); get it again, or load it with "
            "verify=False."
        )
