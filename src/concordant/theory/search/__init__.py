"""Looks for label distributions on which a combination fails, and for proofs that none could serve."""
