"""Ramaswamy, Agarwal and Tewari (2013): scores of pairs and their decoders, for AP and PD."""
