"""Table of surrogates by name, for `surrogate("pairwise")`."""

from __future__ import annotations

from collections.abc import Mapping

from concordant.exceptions import UnknownNameError
from concordant.surrogates.listwise import PlackettLuce, Softmax
from concordant.surrogates.pairwise import Pairwise, Preorder
from concordant.surrogates.pointwise import Duchi, Squared
from concordant.surrogates.position_hinge import PositionHinge
from concordant.surrogates.surrogate import Surrogate

SURROGATES: Mapping[str, type[Surrogate]] = {
    kind.name: kind for kind in (Squared, Pairwise, Softmax, Duchi, PlackettLuce, Preorder, PositionHinge)
}
# Objectives of other libraries -> what to use instead.
_METRIC = "{0} minimises no loss of its own: name the metric ({1}) and leave surrogate='auto'."
_SAME = "use surrogate={1!r} in place of {0}."
ELSEWHERE: Mapping[str, str] = {
    name: text.format(name, instead)
    for text, instead, names in (
        (
            _METRIC,
            "metric='ndcg@10'",
            ("lambdarank", "lambdamart", "rank:ndcg", "yetirank", "yetirankpairwise"),
        ),
        (_METRIC, "metric='ap'", ("rank:map",)),
        (_SAME, "softmax", ("rank_xendcg", "xendcg", "listnet", "querysoftmax", "crossentropy")),
        (_SAME, "preorder", ("rank:pairwise", "ranknet", "pairlogit", "pairlogitpairwise", "ranksvm")),
        (_SAME, "squared", ("regression", "rmse", "queryrmse", "mse", "reg:squarederror")),
        (_SAME, "plackett_luce", ("listmle",)),
    )
    for name in names
}


def surrogate(name: str | Surrogate) -> Surrogate:
    """Return the surrogate of this name with its defaults; a `Surrogate` is returned unchanged.

    >>> surrogate("pairwise").margin.name
    'huber_hinge'
    """
    if isinstance(name, Surrogate):
        return name
    if not isinstance(name, str) or name not in SURROGATES:
        advice = ELSEWHERE.get(name.lower(), "") if isinstance(name, str) else ""
        raise UnknownNameError("surrogate", name, SURROGATES, advice)
    return SURROGATES[name]()
