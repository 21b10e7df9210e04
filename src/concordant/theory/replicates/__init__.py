"""Conditions on data: several annotators per query, and whether what they say satisfies a noise condition.

>>> votes = 45 * [[0, 1, 2]] + 15 * [[1, 2, 0]]  # all rank item 1 above item 2
>>> people = Replicates.from_orders(votes)
>>> for condition in ("P_DAG", "P_f", "low_noise"):
...     print(check(people, condition).queries[0])
0: holds (3 items, 60 annotators, support 1.00)
0: undecided (3 items, 60 annotators, support 0.91)
0: fails (3 items, 60 annotators, support 0.00, shown by items 0, 1, 2)
"""

from concordant.theory.replicates.calibration import Calibration, calibrate
from concordant.theory.replicates.checking import check
from concordant.theory.replicates.replicated import Replicates
from concordant.theory.replicates.report import ConditionReport, QueryCheck

__all__ = ["Calibration", "ConditionReport", "QueryCheck", "Replicates", "calibrate", "check"]
