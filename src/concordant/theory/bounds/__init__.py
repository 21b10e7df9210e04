"""How far the risk of a linear ranker can be above what it lost on n training queries.

>>> bound = listwise(n=1700, m=40, B=1, M=1, delta=0.05, version="sharp")
>>> round(bound.excess, 4), bound.vacuous
(0.253, False)
"""

from concordant.theory.bounds.bound import Bound, Term
from concordant.theory.bounds.empirical import empirical
from concordant.theory.bounds.fitted import EmpiricalBound
from concordant.theory.bounds.lipschitz import kappa
from concordant.theory.bounds.listwise import LISTWISE_VERSIONS, MODES, average_precision, listwise
from concordant.theory.bounds.pairwise import PAIRWISE_VERSIONS, bipartite, multipartite, pairwise

__all__ = [
    "LISTWISE_VERSIONS", "MODES", "PAIRWISE_VERSIONS",
    "Bound", "EmpiricalBound", "Term",
    "average_precision", "bipartite", "empirical", "kappa", "listwise", "multipartite", "pairwise",
]  # fmt: skip
