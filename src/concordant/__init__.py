"""Learning to rank with guarantees."""

__version__ = "0.1.0"
