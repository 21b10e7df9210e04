"""What turns scores into a ranking."""

from concordant.decoders.sorting import positions

__all__ = ["positions"]
