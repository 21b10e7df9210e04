"""Kinds of surrogates: of items and of pairs, by name; "pairwise(logistic)" is read as it is written.

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
from concordant.surrogates.orders import ListwiseHinge
from concordant.surrogates.parse import SURROGATES
from concordant.surrogates.surrogate import Surrogate

__all__ = ["KINDS", "PairSquared", "SurrogateLike", "described", "read_kind"]


@dataclass(frozen=True)
class PairSquared:
    """Squared loss on scores of pairs, which `PairRanker` minimises: the low-rank surrogate of ap and pd.

    Of ap the sum over i >= j of (u_ij - y_i y_j / sum(y))^2, of pd that over i < j of
    (u_ij - a_ij + a_ji)^2. Its minimiser is the expected target of each pair.

    References
    ----------
    Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices.
    """

    name: ClassVar[str] = "pairs"
    reads: ClassVar[str] = "pairs"

    def __repr__(self) -> str:
        return "PairSquared()"


SurrogateLike: TypeAlias = Surrogate | PairSquared
ITEM_KINDS: Mapping[str, type[Surrogate]] = {**SURROGATES, ListwiseHinge.name: ListwiseHinge}
KINDS = (*ITEM_KINDS, PairSquared.name)
"""Names of the surrogates, those of items and that of pairs."""


def described(surrogate: SurrogateLike) -> str:
    """Give the name of a surrogate, with what differs from its defaults.

    >>> from concordant.surrogates import Pairwise, Preorder
    >>> described(Pairwise()), described(Pairwise("logistic")), described(Preorder("gain", "hinge"))
    ('pairwise', 'pairwise(logistic)', 'preorder(gain,hinge)')
    """
    own = [written(name, value) for name, value in changed(surrogate).items()]
    return surrogate.name + (f"({','.join(own)})" if own else "")


def changed(surrogate: SurrogateLike) -> dict[str, Any]:
    """Give the parameters that differ from their defaults; all of a class that needs some of them."""
    try:
        usual = vars(type(surrogate)())
    except (TypeError, ParameterError):  # a listwise hinge needs a metric, a caller's class anything
        usual = {"mode": "max", "temperature": 1.0}
    return {
        name: value for name, value in vars(surrogate).items() if name not in usual or value != usual[name]
    }


def written(name: str, value: Any) -> str:
    """Write a parameter: numbers by name, what has a name of its own by that."""
    if isinstance(value, Metric):
        return str(value)
    return f"{name}={value}" if isinstance(value, (int, float)) else str(getattr(value, "name", value))


def read_kind(surrogate: SurrogateLike | str, metric: Metric | str) -> SurrogateLike:
    """Give the surrogate itself, or the one that is written so: a name, with what it is given.

    Words are margins, penalties, weightings and so on; the rest is written name=value, as `described` does.
    "listwise_hinge" is that of the metric, unless it names its own; "pairs" is `PairSquared`.

    >>> read_kind("preorder(gain,hinge)", "dcg")
    Preorder(weighting='gain', margin=margin('hinge'))
    >>> read_kind("listwise_hinge(ap,sum)", "ndcg").metric
    metric('ap')
    """
    if isinstance(surrogate, (Surrogate, PairSquared)):
        return surrogate
    found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", surrogate) if isinstance(surrogate, str) else None
    if isinstance(surrogate, str) and found is None:
        raise ParameterError("surrogate", surrogate, "written name(words), as in 'pairwise(logistic)'")
    name = surrogate if found is None else found[1]
    if name not in KINDS:
        raise UnknownNameError("surrogate", name, KINDS)
    inside = "" if found is None else (found[2] or "").strip()
    if name == PairSquared.name:
        if inside:
            raise ParameterError("surrogate", surrogate, f"{name}, which takes no parameters")
        return PairSquared()
    kind: Any = ITEM_KINDS[name]
    given = parameters(kind, inside) if inside else {}
    if kind is ListwiseHinge:
        given["metric"] = read_metric(given.get("metric", metric))
    read: SurrogateLike = kind(**given)
    return read


def parameters(kind: type[Surrogate], inside: str) -> dict[str, Any]:
    """Give each word to the parameter it is for: margins to the margin, others in turn."""
    fields = {one.name: one.default for one in dataclasses.fields(kind)}
    words = [name for name, default in fields.items() if not isinstance(default, (bool, float))]
    given: dict[str, Any] = {}
    for piece in re.split(r",(?![^(\[]*[)\]])", inside):  # commas within brackets stay
        name, equals, value = (part.strip() for part in piece.partition("="))
        if equals and name in fields:
            given[name] = read_value(name, value, fields[name])
        else:
            given[place_of(piece.strip(), [word for word in words if word not in given], kind)] = (
                piece.strip()
            )
    return given


def place_of(word: str, free: Sequence[str], kind: type[Surrogate]) -> str:
    """Give the parameter that a word is for."""
    if "margin" in free and word.partition("(")[0] in MARGINS:
        return "margin"
    if not free:
        raise ParameterError("surrogate", f"{kind.name}(...{word})", "given no more than it takes")
    return free[0]


def read_value(name: str, value: str, default: object) -> Any:
    """Read the value of a parameter, by the kind of its default."""
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
