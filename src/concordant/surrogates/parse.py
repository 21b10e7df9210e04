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


def surrogate(name: str | Surrogate) -> Surrogate:
    """Return the surrogate of this name with its defaults; a `Surrogate` is returned unchanged.

    >>> surrogate("pairwise").margin.name
    'huber_hinge'
    """
    if isinstance(name, Surrogate):
        return name
    if not isinstance(name, str) or name not in SURROGATES:
        raise UnknownNameError("surrogate", name, SURROGATES)
    return SURROGATES[name]()
