"""Comparison machines against ratings on chess games: Figure 6."""
