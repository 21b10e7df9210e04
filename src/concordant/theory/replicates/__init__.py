"""Conditions on data: replicated supervision, and whether its votes satisfy a noise condition.

>>> votes = 45 * [[0, 1, 2]] + 15 * [[1, 2, 0]]  # all rank item 1 above item 2
>>> people = Replicates.from_orders(votes)
>>> for condition in ("P_DAG", "P_f", "low_noise"):
...     print(check(people, condition).queries[0])
0: holds (3 items, 60 annotators, support 1.00)
0: undecided (3 items, 60 annotators, support 0.91)
0: fails (3 items, 60 annotators, support 0.00, shown by items 0, 1, 2)
"""

from concordant.theory.replicates.condition_check import ConditionErrors, calibrate, check
from concordant.theory.replicates.condition_report import ConditionReport, QueryCheck
from concordant.theory.replicates.replicated import Replicates

__all__ = ["ConditionErrors", "ConditionReport", "QueryCheck", "Replicates", "calibrate", "check"]
