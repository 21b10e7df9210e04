"""Compiled losses of one query each, with chunks over queries; importing them imports numba.

`double` compares every pair in a vectorised loop, `long` sorts and sweeps: which is faster depends on the
length of the list.
"""
