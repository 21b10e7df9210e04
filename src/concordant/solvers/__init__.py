"""Solvers see an objective, and report how optimal they are."""

from concordant.solvers.bundle import bundle
from concordant.solvers.objective import LinearObjective, Objective
from concordant.solvers.smooth_solvers import lbfgs, newton, sgd
from concordant.solvers.solution import Solution, Step

__all__ = ["LinearObjective", "Objective", "Solution", "Step", "bundle", "lbfgs", "newton", "sgd"]
