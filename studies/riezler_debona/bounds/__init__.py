"""Risk bounds, and the steps of their proofs, on problems of known risk."""
