"""Search for label distributions on which a combination fails, and for proofs that no targets could serve."""
