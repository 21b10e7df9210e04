"""Scores of pairs and exact decoders on public data, beside linear rankers."""
