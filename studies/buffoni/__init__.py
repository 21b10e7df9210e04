"""Buffoni, Calauzènes, Gallinari and Usunier (2011): preorder against consistent losses, Tables 1 and 2."""
