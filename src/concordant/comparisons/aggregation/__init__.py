"""One order of many: the ranking that overrules the least of what people prefer."""

from concordant.comparisons.aggregation.aggregate import Aggregate, aggregate

__all__ = ["Aggregate", "aggregate"]
