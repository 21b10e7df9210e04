"""What a comparison of rankers found: an entry for each ranker, one for each pair, and how it was asked."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from concordant._numbers import as_double
from concordant.evaluation.corrections import CORRECTIONS
from concordant.evaluation.significance import check_draws, check_share
from concordant.exceptions import ParameterError, UnknownNameError

__all__ = ["ComparisonSettings", "Interval", "ModelComparison", "ModelMean", "PairComparison"]

Interval = tuple[float, float]
SHARES = "level", "confidence", "power"


@dataclass(frozen=True)
class ModelMean:
    """One ranker on all queries where its metric is defined.

    Attributes
    ----------
    mean, interval
        Mean over those queries, and a bootstrap interval of it; NaN where there is none.
    n_queries
        How many they are.
    """

    model: str
    mean: float
    interval: Interval
    n_queries: int


@dataclass(frozen=True)
class PairComparison:
    """Two rankers on the queries where both are defined.

    Attributes
    ----------
    model, against
        Their names; every number is about `model` less `against`.
    difference, interval
        Mean difference, and a bootstrap interval of it, for this pair alone; NaN where there is none.
    n_queries, n_left_out
        Queries used, and those on which one of the two, or both, are undefined.
    t_test, permutation
        Two-sided p-values, as `paired` gives them.
    wilcoxon
        Two-sided p-value of the signed-rank test; NaN where it was not asked for.
    adjusted
        p-value of the randomisation test after the correction for several pairs.
    significant
        Whether `adjusted` is below the level.
    better
        Which of the two is better on average, significantly or not; None where neither is.
    effect, effect_interval
        Hedges' g of the paired differences, and an interval for what it estimates, exact for normal ones.
    wins, ties, losses
        Queries on which `model` is better, as good, and worse.
    detectable
        True difference that a t-test of these queries and this spread finds with the given power, before any
        correction; NaN without spread. Smaller ones are missed more often.
    queries_needed
        Queries of this spread that would show the observed difference with that power; None where there is
        none, or no spread. A plan, not a result: the observed difference is itself uncertain.
    """

    model: str
    against: str
    difference: float
    interval: Interval
    n_queries: int
    n_left_out: int
    t_test: float
    permutation: float
    wilcoxon: float
    adjusted: float
    significant: bool
    better: str | None
    effect: float
    effect_interval: Interval
    wins: int
    ties: int
    losses: int
    detectable: float
    queries_needed: int | None


@dataclass(frozen=True)
class ComparisonSettings:
    """How a comparison was asked for; the names are those of `compare`."""

    baseline: str | None
    level: float
    confidence: float
    correction: str
    n_flips: int
    n_boot: int
    power: float
    tie: float
    wilcoxon: bool
    seed: int
    greater_is_better: bool

    def __post_init__(self) -> None:
        if not 0.0 <= as_double(self.tie) < math.inf:
            raise ParameterError("tie", self.tie, "finite and >= 0")
        if not isinstance(self.correction, str) or self.correction not in CORRECTIONS:
            raise UnknownNameError("correction", self.correction, CORRECTIONS)
        check_draws(self.seed, n_flips=self.n_flips, n_boot=self.n_boot)
        for name in ("wilcoxon", "greater_is_better"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ParameterError(name, getattr(self, name), "True or False")
        self.make_plain()

    def make_plain(self) -> None:
        """Keep numbers of numpy as those of Python, which can be written down, and the baseline as text."""
        plain: dict[str, Any] = {name: check_share(getattr(self, name), name) for name in SHARES}
        plain |= {name: int(getattr(self, name)) for name in ("n_flips", "n_boot", "seed")}
        plain |= {name: bool(getattr(self, name)) for name in ("wilcoxon", "greater_is_better")}
        plain |= {"tie": float(self.tie), "baseline": None if self.baseline is None else str(self.baseline)}
        for name, value in plain.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """What `compare` found; printed, it is three tables.

    Attributes
    ----------
    models, pairs
        One entry for each ranker, and for each pair that was compared.
    n_queries
        Queries given, defined or not.
    settings
        How it was asked for.
    """

    models: tuple[ModelMean, ...]
    pairs: tuple[PairComparison, ...]
    n_queries: int
    settings: ComparisonSettings

    def to_dict(self) -> dict[str, Any]:
        """Give all numbers as plain values."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """Give each pair in plain words."""
        from concordant.evaluation.comparison_words import in_words

        return [in_words(pair, self) for pair in self.pairs]

    def __repr__(self) -> str:
        from concordant.evaluation.comparison_words import as_text

        return as_text(self)
