"""Solvers see an objective, and report how optimal they are."""

from concordant.solvers.bundle import bundle
from concordant.solvers.objective import LinearObjective, Objective
from concordant.solvers.smooth import lbfgs, newton
from concordant.solvers.solution import Solution, Step
from concordant.solvers.stochastic import sgd

__all__ = ["LinearObjective", "Objective", "Solution", "Step", "bundle", "lbfgs", "newton", "sgd"]
