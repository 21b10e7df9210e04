"""What a certificate keeps of a fit: how well the problem was solved, and on what data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concordant.solvers import Solution

__all__ = ["Descent", "Optimality", "Sample"]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
# Who ended the work, by `stopped_by`.
ENDINGS = {"interrupt": "Ctrl-C", "callback": "the callback", "no_split": "the lack of a further split"}


@dataclass(frozen=True)
class Optimality:
    """How well the training problem was solved.

    Attributes
    ----------
    value
        The objective: mean loss plus penalty.
    excess
        How far it is above its optimum, by estimate.
    gap
        How far at most; None where the solver cannot say (no penalty, or a loss with corners and another
        solver than "bundle").
    converged, stopped_by, n_iter
        Whether the tolerance was met, what ended the work, and after how many iterations.
    alpha
        The penalty.
    """

    value: float
    excess: float
    gap: float | None
    converged: bool
    stopped_by: str
    n_iter: int
    alpha: float

    @classmethod
    def of(cls, solution: Solution, alpha: float, *, certified: bool) -> Optimality:
        """Read a solution; `certified`: its gap is a bound, where it is finite."""
        gap = float(solution.gap) if certified and math.isfinite(solution.gap) else None
        end = bool(solution.converged), solution.stopped_by, int(solution.n_iter)
        return cls(float(solution.value), float(solution.excess), gap, *end, float(alpha))

    def __str__(self) -> str:
        near = f"by estimate {self.excess:.1e} above its optimum"
        if self.gap is not None and self.gap <= ROUNDING * abs(self.value):
            near = "at its optimum, up to rounding"
        elif self.gap is not None and self.gap <= self.excess:
            near = f"at most {self.gap:.1e} above its optimum"
        elif self.gap is not None:
            near += f", and at most {self.gap:.1e}"
        text = f"Here alpha is {self.alpha:g}, and the objective, {self.value:.6g}, is {near}"
        return text if self.converged else f"{text}; {self.ending}"

    @property
    def ending(self) -> str:
        """Say what kept the work from its tolerance."""
        if self.stopped_by == "precision":
            corner = ", or a corner of the loss," if self.gap is None else ""
            return f"rounding{corner} kept the solver from getting closer"
        return f"{ENDINGS.get(self.stopped_by, self.stopped_by)} ended the work before its tolerance"


@dataclass(frozen=True)
class Descent:
    """How far the training loss fell, where nobody can say how far it could.

    Attributes
    ----------
    first, value
        Mean training loss before the work, of trees at scores 0, of a network at the weights it began with;
        and at the end.
    n_iter
        Trees, or epochs, that were kept.
    unit
        "trees" or "epochs".
    stopped_by
        "limit" (their number), "early_stopping", "no_split" (no leaf could be cut), "callback", "interrupt"
        or "divergence" (the loss or a weight was no finite number).
    chosen
        Whether their number was chosen on validation queries, whatever ended the work.
    """

    first: float
    value: float
    n_iter: int
    unit: str
    stopped_by: str
    chosen: bool = False

    def __str__(self) -> str:
        chosen = self.chosen or self.stopped_by == "early_stopping"
        by = ["chosen on validation queries"] if chosen else []
        if self.stopped_by not in ("limit", "early_stopping"):
            by += [f"{ENDINGS.get(self.stopped_by, self.stopped_by)} ended the work"]
        text = f"Here {self.n_iter} {self.unit} ({'; '.join(by or ['their number was set'])})"
        took = f"took the mean training loss from {self.first:.6g} to {self.value:.6g}"
        return f"{text} {took}; its least value is not known"


@dataclass(frozen=True)
class Sample:
    """What a certificate keeps of the training data.

    Attributes
    ----------
    space
        What the labels are: a name of `theory.spaces.SPACES`.
    n_queries, n_items
        Queries, and items of the longest.
    mass
        Mean over queries of the sum of the targets; None where the loss is told something else.
    weighted
        Whether labels counted by `sample_weight`.
    """

    space: str
    n_queries: int
    n_items: int
    mass: float | None
    weighted: bool
