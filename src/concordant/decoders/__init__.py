"""Decoders: algorithms that turn scores into a ranking."""

from concordant.decoders.average_precision import average_precision, reinforced
from concordant.decoders.decoded import Decoded
from concordant.decoders.feedback_arc import feedback_arc
from concordant.decoders.sorting import positions, sort, top

__all__ = ["Decoded", "average_precision", "feedback_arc", "positions", "reinforced", "sort", "top"]
