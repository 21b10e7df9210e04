"""One order of many: the ranking that overrules the least of what people prefer."""

from concordant.aggregation.methods import aggregate
from concordant.aggregation.result import Aggregate

__all__ = ["Aggregate", "aggregate"]
