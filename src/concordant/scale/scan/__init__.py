"""Scans: sets of queries or pairs on disk, read part by part."""
