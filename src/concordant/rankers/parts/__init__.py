"""Rankers trained on data in parts: scans of files, and collections of a Dask cluster."""
