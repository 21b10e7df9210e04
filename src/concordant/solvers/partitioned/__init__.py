"""The same objectives and solvers over data in parts, which are read from disk or held by a cluster."""
