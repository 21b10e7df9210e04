"""Noise conditions: the expectations they read, and the predicates."""
