"""Per-query kernels of the metrics; importing them imports numba, so metrics do it at their first call.

A list is read through its *head*: the rows that can stand in the first k places under some order compatible
with the scores, best first. `strict` says that rows of equal score keep their order; otherwise a block of
equal scores stands for the mean over its orders. A score of -inf is "not in the ranking": never in the head.
"""
