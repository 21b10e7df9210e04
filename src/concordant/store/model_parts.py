"""Parts of models: every stored class, its fields, and the values that they may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from concordant.data.check import OF_ITEMS, OF_QUERIES
from concordant.exceptions import ConcordantError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import METRICS
from concordant.metrics.parse import metric as read_metric
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.features import Encoding
from concordant.rankers.fitted_certificate import Descent, FittedCertificate, Optimality, Sample
from concordant.rankers.guarantee import Guarantee, look_up_guarantee
from concordant.solvers import Solution
from concordant.store.value_kinds import (
    FLAG,
    NUMBERED,
    PLAIN,
    REAL,
    TEXT,
    WHOLE,
    Kind,
    array,
    choice,
    either,
    optional,
    part,
    several,
    up_to,
)
from concordant.surrogates import (
    Duchi,
    ListwiseHinge,
    Margin,
    Pairwise,
    Penalty,
    PlackettLuce,
    PositionHinge,
    Preorder,
    Softmax,
    Squared,
)
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC
from concordant.surrogates.pointwise import PENALTIES
from concordant.theory.combination import DECODERS
from concordant.theory.kinds import PairSquared
from concordant.theory.spaces import SPACES

Entry = TypeVar("Entry")
VECTOR, MATRIX, CUBE = (array(np.float64, ndim) for ndim in (1, 2, 3))
CODES, MASK = array(np.int64, 1), array(np.bool_, 1)
NUMBERS = Kind("finite numbers", lambda value: VECTOR.fits(value) or CODES.fits(value))
METRIC = Kind("a metric", lambda value: type(value) in METRICS.values())
ITEMS = up_to(2**26)  # per query: certificates allocate that many
LOSSES = (Squared, Pairwise, Softmax, Duchi, PlackettLuce, Preorder, PositionHinge, ListwiseHinge)
LOSS = part(*LOSSES)


class LazyTable(Mapping[str, Entry]):
    """A table whose other entries are imported when a name is not in the first ones."""

    def __init__(self, first: Mapping[str, Entry], load_others: Callable[[], Mapping[str, Entry]]) -> None:
        self.first, self.load_others = first, cache(load_others)

    def __getitem__(self, name: str) -> Entry:
        return self.first[name] if name in self.first else self.load_others()[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.first
        yield from self.load_others()

    def __len__(self) -> int:
        return len(self.first) + len(self.load_others())


@dataclass(frozen=True)
class StoredClass:
    """A class whose objects can be stored in a file."""

    cls: type
    fields: Mapping[str, Kind]  # the stored fields, and the values that each may have
    build: Callable[..., Any]  # an object from these fields
    holds: Callable[[Any], bool] = lambda _: True  # False where user-supplied functions are not in the fields


FIELDS: Mapping[type, Mapping[str, Kind]] = {
    Margin: {
        "name": TEXT,
        "kind": choice(CLIP, LOGISTIC, EXPONENTIAL),
        **dict.fromkeys(("edge", "width", "scale", "flat_from", "lipschitz", "smoothness"), REAL),
        **dict.fromkeys(
            ("convex", "non_increasing", "differentiable", "favours_order", "falls_at_zero"), FLAG
        ),
    },
    Squared: {"centred": FLAG},
    Pairwise: {"margin": part(Margin), "normalize": FLAG},
    Softmax: {},
    Duchi: {"penalty": part(Penalty), "nu": REAL},
    PlackettLuce: {},
    Preorder: {"weighting": TEXT, "margin": part(Margin)},
    PositionHinge: {"reduction": TEXT},
    ListwiseHinge: {"metric": METRIC, "mode": TEXT, "temperature": REAL},
    PairSquared: {},
    Solution: {
        "w": VECTOR,
        **dict.fromkeys(("value", "gradient_norm", "excess", "gap"), REAL),
        **dict.fromkeys(("n_iter", "n_gradients"), WHOLE),
        "converged": FLAG,
        "stopped_by": TEXT,
    },
    Sample: {
        "space": choice(*SPACES),
        "n_queries": WHOLE,
        "n_items": ITEMS,
        "mass": optional(REAL),
        "weighted": either(FLAG, choice("", OF_QUERIES, OF_ITEMS)),
    },
    Optimality: {
        **dict.fromkeys(("value", "excess", "alpha"), REAL),
        "gap": optional(REAL),
        "converged": FLAG,
        "stopped_by": TEXT,
        "n_iter": WHOLE,
    },
    Descent: {
        "first": REAL,
        "value": REAL,
        "n_iter": WHOLE,
        "unit": TEXT,
        "stopped_by": TEXT,
        "chosen": FLAG,
    },
    FittedCertificate: {
        "claim": part(Guarantee),
        "sample": part(Sample),
        "optimality": part(Optimality, Descent),
    },
    Trees: {
        "library": TEXT,
        **dict.fromkeys(("n_estimators", "min_samples_leaf", "seed"), WHOLE),
        **dict.fromkeys(("max_leaf_nodes", "max_depth", "n_jobs"), optional(WHOLE)),
        **dict.fromkeys(("learning_rate", "l2", "subsample", "colsample"), REAL),
        "monotonic": several(choice(-1, 0, 1)),
        "categorical": several(WHOLE),
        "names": several(TEXT),
        "params": PLAIN,
    },
    Encoding: {"categories": NUMBERED},
}
CLAIM = {
    "metric": METRIC,
    "space": choice(*SPACES),
    "surrogate": part(*LOSSES, PairSquared),
    "decoder": choice(*DECODERS),
    "assumed": optional(TEXT),
    "n_items": ITEMS,
}


def _read_penalty(name: str) -> Penalty:
    return PENALTIES[name]


def _build_sample(
    space: str, n_queries: int, n_items: int, mass: float | None, weighted: bool | str
) -> Sample:
    """Build a sample; earlier versions wrote only that rows had weights, perhaps of items."""
    return Sample(space, n_queries, n_items, mass, OF_ITEMS if weighted is True else weighted or "")


def _build_certificate(claim: Guarantee, sample: Sample, optimality: Any) -> FittedCertificate:
    """Build a certificate whose claim knows of weights: a file has them in the sample."""
    return FittedCertificate(claim.under_weights(sample.weighted), sample, optimality)


RANKER_PARTS: Mapping[str, StoredClass] = {
    **{cls.__name__: StoredClass(cls, fields, cls) for cls, fields in FIELDS.items()},
    # The catalogue of theorems is looked up again: the version that loads a file decides.
    "Claim": StoredClass(Guarantee, CLAIM, look_up_guarantee),
    "Sample": StoredClass(Sample, FIELDS[Sample], _build_sample),
    "FittedCertificate": StoredClass(FittedCertificate, FIELDS[FittedCertificate], _build_certificate),
    "Penalty": StoredClass(
        Penalty, {"name": choice(*PENALTIES)}, _read_penalty, lambda v: v == PENALTIES.get(v.name)
    ),
}


def _splitter_parts() -> dict[str, StoredClass]:
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

    folds = {"n_splits": WHOLE, "shuffle": FLAG, "random_state": optional(WHOLE)}
    sizes = dict.fromkeys(("test_size", "train_size"), optional(REAL))
    shuffle_split = {"n_splits": WHOLE, **sizes, "random_state": optional(WHOLE)}
    splitters = {KFold: folds, GroupKFold: folds, GroupShuffleSplit: shuffle_split}
    return {cls.__name__: StoredClass(cls, fields, cls) for cls, fields in splitters.items()}


def _other_parts() -> dict[str, StoredClass]:
    from concordant.store.comparison_models import COMPARISON_PARTS

    return {**COMPARISON_PARTS, **_splitter_parts()}


PARTS: Mapping[str, StoredClass] = LazyTable(RANKER_PARTS, _other_parts)
SPLITTER = Kind(
    "a splitter of scikit-learn",
    lambda value: type(value) in {stored.cls for stored in _splitter_parts().values()},
)
STORED_NAMES: Mapping[type, str] = {Guarantee: "Claim"}  # names in files outlive renamed classes


def metric_text(metric: Metric) -> str | None:
    """Return the text that denotes a metric; None if there is none, since a gain may be a function."""
    try:
        return str(metric) if read_metric(str(metric)) == metric else None
    except ConcordantError:
        return None
