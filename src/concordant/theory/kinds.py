"""Kinds of surrogates, of items and of pairs, by name; "pairwise(logistic)" is read and written.

>>> read_kind("pairwise(huber_hinge(0.25))", "dcg").shape.flat_from
1.25
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.surrogates.margins import MARGINS
from concordant.surrogates.order_hinge import ListwiseHinge
from concordant.surrogates.parse import SURROGATES
from concordant.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class PairSquared:
    """Squared loss on scores of pairs, which `PairRanker` minimises: the low-rank surrogate of ap and pd.

    For ap it is the sum over i >= j of (u_ij - y_i y_j / sum(y))^2, for pd the sum over i < j of
    (u_ij - a_ij + a_ji)^2. Its minimiser is the expected target of each pair.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices.
    """

    name: ClassVar[str] = "pairs"
    reads: ClassVar[str] = "pairs"
    weighs: ClassVar[str] = "terms"

    def __repr__(self) -> str:
        return "PairSquared()"


SurrogateLike: TypeAlias = Surrogate | PairSquared
ITEM_KINDS: Mapping[str, type[Surrogate]] = {**SURROGATES, ListwiseHinge.name: ListwiseHinge}
KINDS = (*ITEM_KINDS, PairSquared.name)
"""Names of the surrogates, those of items and that of pairs."""


def format_surrogate(surrogate: SurrogateLike) -> str:
    """Write the name of a surrogate, with the parameters that differ from their defaults.

    >>> from concordant.surrogates import Pairwise, Preorder
    >>> format_surrogate(Pairwise()), format_surrogate(Pairwise("logistic"))
    ('pairwise', 'pairwise(logistic)')
    >>> format_surrogate(Preorder("gain", "hinge"))
    'preorder(gain,hinge)'
    """
    parameter_texts = [
        _format_parameter(name, value) for name, value in _changed_parameters(surrogate).items()
    ]
    return surrogate.name + (f"({','.join(parameter_texts)})" if parameter_texts else "")


def _changed_parameters(surrogate: SurrogateLike) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, and those without a default."""
    try:
        usual = vars(type(surrogate)())
    except (TypeError, ParameterError):  # a listwise hinge needs a metric, a user's class anything
        usual = {"mode": "max", "temperature": 1.0}
    return {
        name: value for name, value in vars(surrogate).items() if name not in usual or value != usual[name]
    }


def _format_parameter(name: str, value: Any) -> str:
    """Write a parameter: numbers as name=value, objects that have a name as that name."""
    if isinstance(value, Metric):
        return str(value)
    return f"{name}={value}" if isinstance(value, (int, float)) else str(getattr(value, "name", value))


def read_kind(surrogate: SurrogateLike | str, metric: Metric | str) -> SurrogateLike:
    """Return the surrogate itself, or parse a name with parameters.

    Words are margins, penalties, weightings and so on; other parameters are written name=value, as by
    `format_surrogate`.
    "listwise_hinge" has the metric passed, unless it names another; "pairs" is `PairSquared`.

    >>> read_kind("preorder(gain,hinge)", "dcg")
    Preorder(weighting='gain', margin=margin('hinge'))
    >>> read_kind("listwise_hinge(ap,sum)", "ndcg").metric
    metric('ap')
    """
    if isinstance(surrogate, (Surrogate, PairSquared)):
        return surrogate
    match = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", surrogate) if isinstance(surrogate, str) else None
    if isinstance(surrogate, str) and match is None:
        raise ParameterError("surrogate", surrogate, "written as name(words), such as 'pairwise(logistic)'")
    name = surrogate if match is None else match[1]
    if name not in KINDS:
        raise UnknownNameError("surrogate", name, KINDS)
    inside = "" if match is None else (match[2] or "").strip()
    if name == PairSquared.name:
        if inside:
            raise ParameterError("surrogate", surrogate, f"{name} without parameters")
        return PairSquared()
    kind: Any = ITEM_KINDS[name]
    keywords = _parse_parameters(kind, inside) if inside else {}
    if kind is ListwiseHinge:
        keywords["metric"] = read_metric(keywords.get("metric", metric))
    read: SurrogateLike = kind(**keywords)
    return read


def _parse_parameters(kind: type[Surrogate], inside: str) -> dict[str, Any]:
    """Parse the text in parentheses: margins go to the margin, other words to the parameters in turn."""
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    words = [name for name, default in fields.items() if not isinstance(default, (bool, float))]
    keywords: dict[str, Any] = {}
    for piece in re.split(r",(?![^(\[]*[)\]])", inside):  # commas within brackets stay
        name, equals, value = (part.strip() for part in piece.partition("="))
        if equals and name in fields:
            keywords[name] = _read_value(name, value, fields[name])
        else:
            keywords[
                _match_parameter(piece.strip(), [word for word in words if word not in keywords], kind)
            ] = piece.strip()
    return keywords


def _match_parameter(word: str, free: Sequence[str], kind: type[Surrogate]) -> str:
    if "margin" in free and word.partition("(")[0] in MARGINS:
        return "margin"
    if not free:
        raise ParameterError.because(f"surrogate {kind.name} has no parameter left for {word!r}.")
    return free[0]


def _read_value(name: str, value: str, default: object) -> Any:
    if isinstance(default, bool):
        if value not in ("True", "False"):
            raise ParameterError(name, value, "True or False")
        return value == "True"
    if not isinstance(default, float):
        return value
    try:
        return float(value)
    except ValueError:
        raise ParameterError(name, value, "a number") from None
