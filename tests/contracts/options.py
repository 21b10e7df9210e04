"""The matrix of parameters: each parameter of each estimator x values that are mostly wrong."""

import math

import numpy as np
from sklearn.base import clone

from tests.contracts.fuzzing import TooLong, limited
from tests.contracts.models import ESTIMATORS, data_of, outputs
from tests.contracts.outcomes import ACCEPTED, BROKEN, Outcome, tried

PROBES = {
    "text": "no such thing",
    "no text": "",
    "an object": object(),
    "nan": math.nan,
    "inf": math.inf,
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "1e300": 1e300,
    "10**400": 10**400,
    "10**5000": 10**5000,
    "complex": 1j,
    "None": None,
    "a list": [],
    "a list of objects": [object()],
    "a dict": {"no such thing": 1},
    "an array": np.array([1.0, 2.0]),
    "a module": math,
}
NUMBERS = ("0", "0.5", "1e300")
ALLOWED = {  # parameter -> probes that it may take; all others must be refused, by a message with its name
    "C": ("0.5", "inf"),
    "advantage": ("-1", *NUMBERS),
    "alpha": NUMBERS,
    "alphas": ("an array",),
    "assume": ("None",),
    "c": NUMBERS,
    "calibration": ("0",),
    "callback": ("None",),
    "categorical_features": ("None", "a list"),
    "checkpoint": ("None", "text"),
    "coef0": NUMBERS,
    "colsample": ("0.5",),
    "deviation": NUMBERS,
    "device": ("None",),
    "dropout": ("0", "0.5"),
    "early_stopping": ("None",),
    "f": ("None",),
    "floor": NUMBERS,
    "gamma": NUMBERS,
    "hidden": ("a list",),
    "initial": ("-1", *NUMBERS),
    "k": NUMBERS,
    "l2": NUMBERS,
    "learning_rate": NUMBERS,
    "lift": ("0", "0.5", "1e300"),
    "max_depth": ("None",),
    "max_iter": ("None",),
    "max_leaf_nodes": ("None",),
    "monotonic_cst": ("None",),
    "n_jobs": ("-1", "None"),
    "nu": NUMBERS,
    "params": ("None",),
    "period": ("None", *NUMBERS),
    "random_state": ("0", "10**400", "10**5000", "None", "a list"),
    "scale": NUMBERS,
    "subsample": ("0.5",),
    "temperature": NUMBERS,
    "time_limit": NUMBERS,
    "tol": NUMBERS,
    "transforms": ("None", "a list"),
    "validation_fraction": ("0", "0.5"),
    "verbose": ("-1", "0", "10**400", "10**5000"),
    "weight_decay": NUMBERS,
}
PATTERNS = {  # parameter -> pattern of the message, where that is not its name
    "assume": "condition",
    "categorical_features": "feature",
    "params": "param|option",
    "transforms": "transform",
    "early_stopping": "early_stopping|validation_fraction",
    "checkpoint": "checkpoint|no such thing",
    "l2": "l2|lambda|float",
    "learning_rate": "learning_rate|shrink",
    "lift": "lift|float",
}


def fitted_with(name, option, probe):
    """What became of a fit of this estimator, one parameter of which is this probe."""
    data = data_of(name)

    def call():
        model = clone(ESTIMATORS[name]).set_params(**{option: PROBES[probe]})
        return outputs(model.fit(**data), data)

    try:
        with limited(10):
            outcome = tried(call, PATTERNS.get(option, option))
    except TooLong:
        return Outcome(BROKEN, "no end")
    if outcome.kind == ACCEPTED and probe not in ALLOWED.get(option, ()):
        return Outcome(BROKEN, "accepted")
    return outcome


def choices():
    """Every (estimator, parameter)."""
    for name, model in ESTIMATORS.items():
        yield from ((name, option) for option in model.get_params(deep=False))
