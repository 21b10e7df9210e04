"""Venuto, Hocking, Sphanurattana and Sugiyama, "Support vector comparison machines": the figures."""
