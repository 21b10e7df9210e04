"""Comparison machines against ranking machines: Figures 1 to 5, and the command for all six."""
