"""`concordant tune`."""
