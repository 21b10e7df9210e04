"""Foundations of every package: input validation, files, segments of ragged data, progress bars."""
