"""Tests mirror the package; `oracles` by chapter, `contracts` for what all of a kind must keep, `helpers`."""
