"""Bradley and Terry's model, and the two classical ones with ties of their own."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ParameterError
from concordant.ratings.counts import Counts
from concordant.ratings.forms import DAVIDSON, RAO_KUPPER, Form
from concordant.ratings.likelihood import FARTHEST
from concordant.ratings.strength import StrengthModel

__all__ = ["BradleyTerry", "Davidson", "RaoKupper"]


class BradleyTerry(StrengthModel):
    """Strengths p with P(i beats j) = p_i / (p_i + p_j).

    Parameters
    ----------
    ties
        What a tie is: "half", half a win for each side, or "drop", nothing.
    alpha
        Precision of a normal prior on log-strengths and advantage; 0 gives the most likely ratings, which
        must then be finite: every item beat every other, if through others, or a `NotConnectedError` says
        who did not.
    advantage
        Whether the left side's strength has a factor of its own, as White in chess.
    tol
        Change of ratings by a further Newton step, by estimate, at which the search ends.
    max_iter
        Most steps.

    Attributes
    ----------
    items_, ratings_, counts_, components_
        Names of the items, their log-strengths, the votes by pair, and who is connected.
    advantage_, value_, n_iter_
        Log of the left side's factor; the log-likelihood, less alpha's penalty; Newton steps.

    Examples
    --------
    >>> model = BradleyTerry().fit(["a", "a", "b"], ["b", "b", "a"], [-1, -1, -1])
    >>> model.items_.tolist(), model.ratings_.round(3).tolist()  # half of log(2)
    (['a', 'b'], [0.347, -0.347])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.667, 0.0, 0.333]]
    """

    def __init__(
        self,
        *,
        ties: str = "half",
        alpha: float = 0.0,
        advantage: bool = False,
        tol: float = 1e-10,
        max_iter: int = 200,
    ) -> None:
        self.ties = ties
        self.alpha = alpha
        self.advantage = advantage
        self.tol = tol
        self.max_iter = max_iter

    def checked(self) -> None:
        """Refuse parameters outside their range."""
        super().checked()
        if not (isinstance(self.ties, str) and self.ties in ("half", "drop")):
            raise ParameterError("ties", self.ties, "half or drop")

    def counted(self, counts: Counts) -> Counts:
        """Ties as half wins, or gone."""
        cells = np.zeros_like(counts.cells)
        half = 0.5 * counts.cells[:, 1] if self.ties == "half" else 0.0
        for side in (0, 2):
            np.add(counts.cells[:, side], half, out=cells[:, side])
        return counts.with_cells(cells)


class Davidson(StrengthModel):
    """Strengths p with win, tie and loss in the proportions p_i : nu sqrt(p_i p_j) : p_j.

    Davidson (1970). The ratings order the items as the number of wins and half ties does where everyone
    meets everyone equally often.

    Parameters
    ----------
    alpha, advantage, tol, max_iter
        As of `BradleyTerry`. With alpha = 0 some circle of votes must also hold more wins than ties (two
        items that beat each other do), or `NoFiniteRatingsError` is raised.

    Attributes
    ----------
    items_, ratings_, counts_, components_, advantage_, value_, n_iter_
        As of `BradleyTerry`.
    nu_
        How frequent ties are: between equals, nu / (2 + nu) of the votes. 0 where there are none; infinite
        where there is nothing else (with alpha > 0).

    Examples
    --------
    >>> model = Davidson().fit(["a"] * 4, ["b"] * 4, [-1, -1, 0, 1])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.5, 0.25, 0.25]]
    """

    form: ClassVar[Form] = DAVIDSON

    def __init__(
        self, *, alpha: float = 0.0, advantage: bool = False, tol: float = 1e-10, max_iter: int = 200
    ) -> None:
        self.alpha = alpha
        self.advantage = advantage
        self.tol = tol
        self.max_iter = max_iter

    @property
    def nu_(self) -> float:
        """The tie parameter."""
        check_is_fitted(self, "ratings_")
        return natural(self.log_tie_)


class RaoKupper(StrengthModel):
    """Strengths p with P(i beats j) = p_i / (p_i + theta p_j), and a tie otherwise.

    Rao and Kupper (1967): the better side of a logistic contest wins only if it leads by log(theta).

    Parameters
    ----------
    alpha, advantage, tol, max_iter
        As of `Davidson`.

    Attributes
    ----------
    items_, ratings_, counts_, components_, advantage_, value_, n_iter_
        As of `BradleyTerry`.
    theta_
        The threshold, >= 1: 1 where there are no ties; infinite where there is nothing else (with
        alpha > 0).

    Examples
    --------
    >>> model = RaoKupper().fit(["a"] * 4, ["b"] * 4, [-1, -1, 0, 1])
    >>> model.predict_proba("a", "b").round(3).tolist()
    [[0.5, 0.25, 0.25]]
    """

    form: ClassVar[Form] = RAO_KUPPER

    def __init__(
        self, *, alpha: float = 0.0, advantage: bool = False, tol: float = 1e-10, max_iter: int = 200
    ) -> None:
        self.alpha = alpha
        self.advantage = advantage
        self.tol = tol
        self.max_iter = max_iter

    @property
    def theta_(self) -> float:
        """The tie parameter."""
        check_is_fitted(self, "ratings_")
        return natural(self.log_tie_)


def natural(log_tie: float) -> float:
    """Give the tie parameter itself; what stands for infinity becomes it."""
    return math.inf if log_tie >= FARTHEST else float(np.exp(log_tie))
