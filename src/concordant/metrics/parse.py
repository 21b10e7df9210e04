"""Names of metrics: one table, read by `metric("ndcg@10[lightgbm]")`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from concordant.exceptions import ParameterError, UnknownNameError
from concordant.metrics.additive import DCG, ERU, NDCG, Precision
from concordant.metrics.cascade import AP, ERR, RR
from concordant.metrics.comparison import ComparisonAUC, ComparisonError
from concordant.metrics.convention import Convention, convention
from concordant.metrics.graded import GradedMetric
from concordant.metrics.metric import Metric
from concordant.metrics.order_metric import ZeroOne
from concordant.metrics.pair_metrics import AUC, PD, WPD

METRICS: Mapping[str, type[Metric]] = {
    kind.name: kind
    for kind in (
        DCG,
        NDCG,
        ERR,
        AP,
        Precision,
        RR,
        ERU,
        PD,
        WPD,
        AUC,
        ZeroOne,
        ComparisonError,
        ComparisonAUC,
    )
}
ALIASES: Mapping[str, str] = {"map": "ap", "mrr": "rr", "precision": "p", "wta": "p@1"}

FORM = re.compile(
    r"(?P<name>[a-z_]+)\s*(?:\((?P<arguments>[^()]*)\))?\s*(?:@(?P<k>[^\[]*))?\s*(?:\[(?P<convention>.*)\])?",
)


def metric(spec: str | Metric, *, convention: str | Convention | None = None) -> Metric:
    """Read a metric from its name: `name(parameter=value)@k[convention]`.

    Parameters
    ----------
    spec
        A name of the table (dcg ndcg err ap p rr eru pd wpd auc zero_one comparison_error comparison_auc;
        aliases map, mrr, precision, wta), with a cutoff where it applies; a `Metric` is returned unchanged.
    convention
        A preset such as `"lightgbm"`, changed fields (`"trec_eval,gain=exp2"`), or a `Convention`.

    Examples
    --------
    >>> metric("ndcg@10")
    metric('ndcg@10')
    >>> metric("map") == metric("ap")
    True
    >>> metric("ndcg@3", convention="lightgbm")([3, 0, 1, 2, 0], [0.1, 0.9, 0.5, 0.5, 0.2])
    ndcg@3[lightgbm] = 0.226869 over 1 of 1 queries
    """
    if isinstance(spec, Metric):
        return (
            spec if convention is None else dataclasses.replace(spec, convention=read_convention(convention))
        )
    match = FORM.fullmatch(spec.strip().lower()) if isinstance(spec, str) else None
    if match is None:
        raise ParameterError(
            "metric", spec, "written as name(parameter=value)@k[convention], such as 'ndcg@10'"
        )
    name, places = match["name"], match["k"]
    name, _, fixed = ALIASES.get(name, name).partition("@")
    if name not in METRICS:
        raise UnknownNameError("metric", name, [*METRICS, *ALIASES])
    parameters = _read_arguments(METRICS[name], match["arguments"] or "")
    if fixed and places is not None:
        raise ParameterError(
            "metric", spec, f"written without a cutoff, as {match['name']} means {name}@{fixed}"
        )
    if fixed or places is not None:
        parameters["k"] = _read_cutoff(name, spec, fixed or places)
    if convention is not None and match["convention"]:
        raise ParameterError.because(
            f"convention={str(convention)!r} was given, but {spec!r} has one already. Leave one out."
        )
    style = convention if convention is not None else match["convention"] or "concordant"
    return METRICS[name](convention=read_convention(style), **parameters)


read_convention = convention  # `metric` has a parameter of that name


def _read_cutoff(name: str, spec: object, text: str) -> int:
    if not issubclass(METRICS[name], GradedMetric):
        raise ParameterError("metric", spec, f"written without a cutoff, as {name} reads the whole list")
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16 and int(digits) >= 1):
        raise ParameterError("k", text, "an integer >= 1")
    return int(text)


def _read_arguments(metric_class: type[Metric], text: str) -> dict[str, Any]:
    """Read `v=1,w=5` into the parameters of the metric."""
    defaults = {
        f.name: f.default for f in dataclasses.fields(metric_class) if f.name not in ("k", "convention")
    }
    parameters: dict[str, Any] = {}
    for pair in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = (piece.strip() for piece in pair.partition("="))
        if name not in defaults:
            raise UnknownNameError(f"parameter of {metric_class.name}", name, defaults)
        if name in parameters:
            raise ParameterError.because(f"{name} is given twice in {metric_class.name}({text}).")
        parameters[name] = value if isinstance(defaults[name], str) else _read_number(name, value)
    return parameters


def _read_number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(name, text, "a number") from None
