"""`concordant train`."""
