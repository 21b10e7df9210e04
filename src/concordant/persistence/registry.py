"""What model files can hold: every estimator, its parameters, and what fitting leaves on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from concordant.comparer import Comparer
from concordant.comparer.calibration import OutcomeCurve
from concordant.comparer.machine import Machine
from concordant.comparer.scaling import Scaling
from concordant.comparer.stream import Stream
from concordant.persistence.foreign import foreign_of
from concordant.persistence.kinds import (
    FLAG,
    PLAIN,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    by_name,
    either,
    many,
    maybe,
    part,
    several,
)
from concordant.persistence.parts import CODES, LOSS, MATRIX, METRIC, SPLITTER, VECTOR
from concordant.persistence.ranker_soundness import (
    linear_problem,
    network_problem,
    pair_problem,
    tree_problem,
)
from concordant.persistence.soundness import comparer_problem, sequential_problem, strength_problem
from concordant.rankers import (
    BoostedRanker,
    LinearRanker,
    LinearRankerCV,
    MaxMarginRanker,
    NeuralRanker,
    PairRanker,
)
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding
from concordant.rankers.certificate import FittedCertificate, Sample
from concordant.ratings import BradleyTerry, Davidson, Elo, Glicko, RaoKupper
from concordant.ratings.counts import Counts
from concordant.ratings.sequential import Played, State
from concordant.ratings.votes import Items
from concordant.solvers import Solution

__all__ = ["LEARNED", "MODELS", "UNSAVED", "Model"]

UNSAVED = {"callback": None, "checkpoint": None, "verbose": 0}  # parameters that come back so


@dataclass(frozen=True)
class Model:
    """A kind of model that files can hold.

    Attributes
    ----------
    made
        Its class; the parameters are those of its constructor.
    fitted
        What fitting leaves on it.
    optional
        Which of these may be absent.
    problem
        What a loaded one's parts contradict one another in; empty where they fit together.
    remembers
        Whether it keeps the parameters that it was fitted with.
    parameters
        What parameters may be that are neither numbers nor text.
    derived
        What fitting leaves on it and follows from the rest.
    """

    made: Any
    fitted: Mapping[str, Kind]
    problem: Callable[[Any], str]
    optional: frozenset[str] = frozenset()
    remembers: bool = False
    parameters: Mapping[str, Kind] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


COMPARER = {
    "n_features_in_": WHOLE,
    "classes_": CODES,
    "scaling_": part(Scaling),
    "machine_": part(Machine),
    "curve_": maybe(part(OutcomeCurve)),
    "stream_": part(Stream),
}
STRENGTHS = {
    "known_": part(Items),
    "counts_": part(Counts),
    "ratings_": VECTOR,
    "x_": VECTOR,
    **dict.fromkeys(("advantage_", "log_tie_", "value_"), REAL),
    "n_iter_": WHOLE,
}
SEQUENTIAL = {
    "known_": part(Items),
    "state_": part(State),
    "history_": many(part(Played)),
    "ratings_": VECTOR,
    "clock_": TEXT,
    "latest_": REAL,
    "tie_": REAL,
}


def foreign(*names: str) -> Kind:
    """Give the models of these libraries."""
    return Kind(f"a model of {' or '.join(names)}", lambda value: foreign_of(value) in names)


RANKER = dict.fromkeys(("n_features_in_", "n_queries_", "n_informative_"), WHOLE)
CERTIFIED = {**RANKER, "surrogate_": LOSS, "certificate_": part(FittedCertificate)}
LINEAR = {**CERTIFIED, "coef_": VECTOR, "scale_": VECTOR, "solution_": part(Solution), "n_iter_": WHOLE}
PATH = {**LINEAR, "alphas_": VECTOR, "scores_": MATRIX, "alpha_": REAL, "best_score_": REAL}
PAIRS = {
    **RANKER,
    **dict.fromkeys(("coef_", "scale_", "diagonal_coef_"), VECTOR),
    **dict.fromkeys(("intercept_", "diagonal_intercept_", "alpha_"), REAL),
    "pair_features_": many(TEXT),
    "groups_": several(TEXT),
    "symmetric_": FLAG,
    "metric_": METRIC,
    "sample_": part(Sample),
    "solution_": part(Solution),
}
TREES = {
    **CERTIFIED,
    "booster_": foreign("lightgbm", "xgboost", "catboost"),
    "trees_": part(Trees),
    "encoding_": part(Encoding),
    **dict.fromkeys(("n_estimators_", "best_iteration_"), WHOLE),
    "history_": VECTOR,
    "stopped_by_": TEXT,
}
NETWORK = {
    **CERTIFIED,
    "scorer_": foreign("network"),
    "history_": by_name(many(REAL)),
    **dict.fromkeys(("best_epoch_", "n_iter_"), WHOLE),
    "stopped_by_": TEXT,
}
BASIS = {"basis_": lambda model: model.certificate_.condition}

GIVEN = {"metric": either(TEXT, METRIC), "surrogate": either(TEXT, LOSS)}
FOLDS = either(WHOLE, SPLITTER, PLAIN)

LEARNED = "learned_"  # the parameters at the last fit: those that a file holds
MODELS: Mapping[str, Model] = {
    "Comparer": Model(Comparer, COMPARER, comparer_problem, frozenset({"stream_"})),
    **{
        one.__name__: Model(one, STRENGTHS, strength_problem, remembers=True)
        for one in (BradleyTerry, Davidson, RaoKupper)
    },
    **{one.__name__: Model(one, SEQUENTIAL, sequential_problem, remembers=True) for one in (Elo, Glicko)},
    "LinearRanker": Model(LinearRanker, LINEAR, linear_problem, parameters=GIVEN, derived=BASIS),
    "LinearRankerCV": Model(
        LinearRankerCV,
        PATH,
        linear_problem,
        parameters={**GIVEN, "alphas": PLAIN, "cv": FOLDS},
        derived=BASIS,
    ),
    "MaxMarginRanker": Model(
        MaxMarginRanker,
        LINEAR,
        linear_problem,
        parameters={**GIVEN, "loss": either(TEXT, LOSS)},
        derived=BASIS,
    ),
    "PairRanker": Model(PairRanker, PAIRS, pair_problem, parameters={**GIVEN, "features": PLAIN}),
    "BoostedRanker": Model(
        BoostedRanker,
        TREES,
        tree_problem,
        parameters={**GIVEN, **dict.fromkeys(("params", "monotonic_cst", "categorical_features"), PLAIN)},
        derived=BASIS,
    ),
    "NeuralRanker": Model(
        NeuralRanker,
        NETWORK,
        network_problem,
        parameters={**GIVEN, "hidden": PLAIN, "transforms": PLAIN},
        derived=BASIS,
    ),
}
