"""Errors and warnings: what was wrong, what was passed, what to do."""

from __future__ import annotations

import difflib
import math
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
    "LabelWarning",
    "LengthMismatchError",
    "LibraryError",
    "MalformedLineError",
    "MissingExtraError",
    "ModelFileError",
    "NoFiniteRatingsError",
    "NoRegretBoundError",
    "NoStandardizationError",
    "NonFiniteError",
    "NonFiniteFeaturesError",
    "NotConnectedError",
    "NotMeasuredError",
    "NotNumericError",
    "NotSeparableError",
    "OutOfMemoryError",
    "OutcomeWarning",
    "ParameterError",
    "QueryWarning",
    "RowError",
    "ShapeError",
    "SimilarNamesWarning",
    "UnexpectedArgumentError",
    "UnknownNameError",
]

LONGEST = 200  # characters of a value in a message


class ConcordantError(ValueError):
    """Base of every error raised on bad input."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt from the finished message: the subclasses' constructor arguments are no longer known.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[ConcordantError], args: tuple[object, ...], state: dict[str, object]
) -> ConcordantError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def show_value(value: object) -> str:
    """Return the repr of any value, truncated if long.

    >>> show_value(0.5), show_value("a" * 1000)[-6:], show_value(10**5000)
    ('0.5', 'aaa...', '<int>')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # such as a whole number too long to be written out
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


class RowError(ConcordantError):
    """Error about a row of the data; can name the row's query too."""

    row: int | None = None

    def at(self, row: int) -> Self:
        """Set the row, as the caller counts rows, and return the error."""
        self.row = row
        return self

    def in_query(self, query: object) -> None:
        """Add the query to the row in the message."""
        text = str(self).replace(f"row {self.row}", f"row {self.row} (query {query!r})", 1)
        self.args = (text,)

    def within(self, part_name: str, row: int) -> None:
        """Renumber the row, from 0, within a part of the data such as a row group, and name that part."""
        text = str(self).replace(f"row {self.row}", f"row {row}", 1)
        self.args, self.row = (f"{part_name}: {text}",), row


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
        hint = "check the path, the filter or the split that produced it."
        super().__init__(f"{name} has no rows.\nHint: {hint}")


class NotNumericError(RowError):
    """Text or objects stand where numbers belong."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"{name} must be numeric, but {problem}.\n"
            "Hint: convert labels to numbers (e.g. by a mapping) before passing them; ids may be text, "
            "grades, scores and weights may not."
        )


class FeaturesError(ConcordantError, TypeError):
    """Features are not a table of numbers, or not the table that was fitted.

    Also a `TypeError`, which scikit-learn asks for where an entry is no number at all.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} cannot be read as features: {problem}")


class NonFiniteError(RowError):
    """A NaN or an infinity stands where a finite number belongs."""

    def __init__(self, name: str, value: float, where: str, count: int, hint: str = "") -> None:
        hint = hint or "impute or drop these rows before ranking."
        super().__init__(f"{name} is {value} at {where} ({count} such value(s) in all).\nHint: {hint}")


class NonFiniteFeaturesError(NonFiniteError, FeaturesError):
    """A NaN or an infinity stands among the features."""

    def __init__(self, name: str, value: float, where: str, count: int, hint: str) -> None:
        value_text = "NaN" if math.isnan(value) else f"{value}"
        text = f"{name} contains {value_text} at {where} ({count} such value(s) in all).\nHint: {hint}"
        ConcordantError.__init__(self, text)


class GradeError(RowError):
    """A grade lies outside what the metric can use."""

    def __init__(self, value: float, where: str, problem: str, hint: str) -> None:
        super().__init__(f"grade {value:g} at {where} {problem}.\nHint: {hint}")


class LabelError(ConcordantError):
    """Preferences, permutations or comparisons that contradict their definition."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}.\nHint: {hint}")


class NotSeparableError(ConcordantError):
    """No linear ranking function separates the ties from the other pairs.

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
    """A parameter has a wrong value, or one that does not fit the other parameters.

    >>> print(ParameterError("C", -1, "positive", hint="Use C=inf for a hard margin."))
    C must be positive, got -1. Use C=inf for a hard margin.
    >>> print(ParameterError.because("client was given, but X is an in-memory array."))
    client was given, but X is an in-memory array.
    """

    def __init__(self, name: str, value: object, allowed: str, *, hint: str = "") -> None:
        super().__init__(f"{name} must be {allowed}, got {show_value(value)}." + f" {hint}" * bool(hint))

    @classmethod
    def because(cls, problem: str) -> Self:
        """Build an error from free sentences, such as for parameters that do not fit together."""
        error = cls.__new__(cls)
        error.args = (problem,)
        return error


class UnexpectedArgumentError(ConcordantError, TypeError):
    """A call has a keyword argument, or `set_params` a parameter, that does not exist; also a `TypeError`."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(f"{problem}.\nHint: {hint}")


class UnknownNameError(ConcordantError):
    """A name is not in a table; the message lists the table, after advice if there is any."""

    def __init__(self, kind: str, name: object, allowed: Iterable[str], advice: str = "") -> None:
        names = sorted(map(str, allowed))
        text = name[:LONGEST] if isinstance(name, str) else ""
        close = difflib.get_close_matches(text, names, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        hint = f"{advice} The known ones are" if advice else "the known ones are"
        super().__init__(f"unknown {kind} {show_value(name)}.{guess}\nHint: {hint} {', '.join(names)}.")


class NotMeasuredError(UnknownNameError, KeyError):
    """The requested metric was not measured.

    Also a `KeyError`, which mappings raise, so that `in` and `get` work.
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


class NoRiskBoundError(ConcordantError):
    """No bound is known for the risk of this ranker."""

    def __init__(self, why: str) -> None:
        super().__init__(f"there is no risk bound: {why}.\nHint: measure the ranker on held-out queries.")


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
        sizes = [f" and {len(group) - 1} more" if group[1:] else "" for group in components]
        group_texts = [f"{group[0]!r}{others}" for group, others in zip(components, sizes, strict=True)]
        listing = "; ".join([*group_texts[:4], *(["..."] if group_texts[4:] else [])])
        super().__init__(
            f"the votes leave {len(components)} components ({listing}), and between any two the wins go one "
            "way, or there are none: ratings would be infinitely far apart"
        )


class GuaranteeWarning(UserWarning):
    """Training continues, but whether it optimises the metric depends on a condition, or is unproven.

    Raised once per fit, before training, unless the combination of metric, labels, surrogate and decoder is
    proven to be consistent, or the condition that it needs was assumed. `certificate_` of the fitted ranker
    says more, and `concordant.certify` shows a counterexample. For baselines that are trained on purpose:
    `warnings.simplefilter("ignore", GuaranteeWarning)`.
    """


class OutcomeWarning(UserWarning):
    """Outcomes are 0 and 1, never -1: read as ties and wins of the right, perhaps meant as losses and wins.

    Silenced by `warnings.simplefilter("ignore", concordant.exceptions.OutcomeWarning)`.
    """


class LabelWarning(UserWarning):
    """No label, or every label, counts as relevant to the metric, which then tells no rankings apart.

    The message names a metric that does. Silenced by
    `warnings.simplefilter("ignore", concordant.exceptions.LabelWarning)`.
    """


class QueryWarning(UserWarning):
    """Rows of many queries are ranked as one list, or folds cut queries.

    The message has the line that fixes it. Silenced by
    `warnings.simplefilter("ignore", concordant.exceptions.QueryWarning)`.
    """


class SimilarNamesWarning(UserWarning):
    """Names of items differ by case or blanks only, and count as different items.

    Silenced by `warnings.simplefilter("ignore", concordant.exceptions.SimilarNamesWarning)`.
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
        location = f"{path}, line {line}" + (f", column {column}" if column else "")
        super().__init__(f"{location}: {problem}." + (f"\nHint: {hint}" if hint else ""))


class MissingExtraError(ConcordantError):
    """A package that only some commands need is not installed."""

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
    """A cluster worker is gone, and work that depended on it cannot continue."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "call fit again: the parts are then shared out to the workers there are.")


class ModelFileError(ConcordantError):
    """A file does not hold a usable model, or a model cannot be written to a file.

    Attributes
    ----------
    path
        The file.
    """

    def __init__(self, path: object, problem: str, hint: str = "") -> None:
        self.path = str(path)
        super().__init__(f"{path}: {problem}." + (f"\nHint: {hint}" if hint else ""))


class ExportError(ConcordantError):
    """A model cannot be represented in a format, or the written file scores differently from the model.

    Attributes
    ----------
    path
        The file, which was not written.
    """

    def __init__(self, path: object, problem: str, hint: str) -> None:
        self.path = str(path)
        super().__init__(f"{path}: {problem}.\nHint: {hint}")


class LibraryError(ConcordantError):
    """A library that does the work raised an error; the message quotes it."""

    def __init__(self, library: str, problem: str) -> None:
        super().__init__(
            f"{library} refused: {problem.strip()}\n"
            "Hint: it reads most numbers in single precision (up to 3e38) and checks `params` itself."
        )


class OutOfMemoryError(ConcordantError, MemoryError):
    """Data take more memory than this process may have. Also a `MemoryError`."""

    def __init__(self, name: object, problem: str) -> None:
        super().__init__(
            f"{name}: {problem}.\n"
            "Hint: concordant.scan_parquet and scan_letor read a file part by part. write_parquet converts "
            "other files."
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
    """The checksum of a dataset file differs from the expected one."""

    def __init__(self, path: object, got: str, expected: str) -> None:
        super().__init__(
            f"{path}: the contents have SHA-256 {got}, expected {expected}.\n"
            "Hint: the file is damaged or another edition (line ends count); get it again, or load it with "
            "verify=False."
        )
