"""The suites: each has `run(quick=...)`, which returns its tables."""
