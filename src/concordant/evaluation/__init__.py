"""What was measured, and how sure one can be of it: paired tests, and the experiments of papers run again."""

from concordant.evaluation.significance import Comparison, Paired, against_best, holm, paired

__all__ = ["Comparison", "Paired", "against_best", "holm", "paired"]
