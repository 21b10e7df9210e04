"""Risk bounds of linear rankers: how far the risk can exceed the mean loss on n training queries.

>>> bound = listwise(n=1700, m=40, B=1, M=1, delta=0.05, version="sharp")
>>> round(bound.excess, 4), bound.vacuous
(0.253, False)
"""

from concordant.theory.bounds.bound import Bound, Term
from concordant.theory.bounds.empirical import EmpiricalBound, empirical
from concordant.theory.bounds.hinge_bounds import (
    MODES,
    VERSIONS,
    average_precision,
    bipartite,
    listwise,
    multipartite,
    pairwise,
)
from concordant.theory.bounds.hinges import kappa

__all__ = [
    "MODES", "VERSIONS",
    "Bound", "EmpiricalBound", "Term",
    "average_precision", "bipartite", "empirical", "kappa", "listwise", "multipartite", "pairwise",
]  # fmt: skip
