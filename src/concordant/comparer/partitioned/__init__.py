"""Comparers trained on pairs in parts: scans of files, and arrays of a Dask cluster."""
