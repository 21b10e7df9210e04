"""What trees are grown for, under its old address."""

from concordant.rankers.boosters.plan import Plan

__all__ = ["Plan"]
