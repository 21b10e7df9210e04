"""export: a model as a file of another format, written once golden rows have the same scores there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from concordant.exceptions import ExportError, ParameterError, UnknownNameError
from concordant.exporting.elasticsearch import elasticsearch_draft
from concordant.exporting.golden import Draft, check_draft
from concordant.exporting.native import native_draft
from concordant.exporting.onnx import onnx_draft
from concordant.exporting.plain import plain_draft
from concordant.exporting.sources import Source, read_model
from concordant.supervision.readers.text import COMPRESSED, PathLike, write_atomically
from concordant.types import ArrayLike

__all__ = ["FORMATS", "Exported", "Format", "export"]


class Format(NamedTuple):
    """A kind of file: how it is drafted, what it is, the suffix that names it, and which options it has."""

    draft: Callable[..., Draft]
    about: str
    suffix: str = ""
    options: tuple[str, ...] = ()


def native(library: str) -> Callable[[Source, PathLike], Draft]:
    """Give the drafts of a library of trees."""
    return lambda source, path: native_draft(source, path, library)


SEARCH = Format(elasticsearch_draft, "linear weights or trees for the LTR plugins", "", ("features", "name"))
FORMATS: Mapping[str, Format] = {
    "onnx": Format(onnx_draft, "linear models and networks", ".onnx", ("features", "dtype")),
    "json": Format(plain_draft, "linear models, networks and ratings, with formulas", ".json", ("features",)),
    "elasticsearch": SEARCH,
    "opensearch": SEARCH,
    "lightgbm": Format(native("lightgbm"), "LightGBM's own text", ".txt"),
    "xgboost": Format(native("xgboost"), "XGBoost's own file, binary or JSON", ".ubj"),
    "catboost": Format(native("catboost"), "CatBoost's own file", ".cbm"),
}
DTYPES = ("float32", "float64")
UNPLACED = (
    "golden rows were made near 0, since the model does not know where its features lie: give rows of yours "
    "(golden), if features are far from 0"
)


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    path, format
        The file, and its format.
    n_golden
        Golden rows that were scored by the file and by the model.
    difference
        The largest difference of the two scores, as a share of what the score is a sum of.
    notes
        What whoever serves it should know.
    """

    path: Path
    format: str
    n_golden: int
    difference: float
    notes: tuple[str, ...] = ()


def export(
    model: Any,
    path: PathLike,
    format: str | None = None,  # noqa: A002  what it is called everywhere
    *,
    features: ArrayLike = None,
    name: str | None = None,
    dtype: str | None = None,
    golden: Any = None,
) -> Exported:
    """Write a fitted model in a format that others read; whole, and only if it scores there as it does here.

    Before anything is written, the contents are read back (by ONNX Runtime, by the trees' own library, by the
    arithmetic that the plugins do, or that the file states), and golden rows are scored by them and by the
    model: rows at the scale of the features, each feature alone, zeros, far ones; of trees the thresholds and
    missing values. Scalers of a `Pipeline` become part of the weights.

    Parameters
    ----------
    model
        A fitted ranker that scores rows, a linear `Comparer` (its rank score), a model of ratings, or a
        `sklearn.pipeline.Pipeline` of scalers and a linear or neural ranker.
    path
        Where to; a suffix such as .gz compresses it.
    format
        One of `FORMATS`: "onnx", "json", "elasticsearch" or "opensearch" (a request for the learning-to-rank
        plugin), "lightgbm", "xgboost", "catboost". None: by the suffix, .onnx .json .txt .ubj .cbm.
    features
        Names of the features, where the model was fitted without, or has others.
    name
        Of the model, for the search engine; None: that of the file.
    dtype
        Of what ONNX is given and gives: "float32" (also by None), or "float64".
    golden
        Rows to check by, in place of made ones: features, or data with `X` and `qid`.

    Raises
    ------
    ExportError
        If the format has no place for the model, or scores would differ. Nothing is written.
    MissingExtraError
        If the library is not installed that reads the file back.

    Examples
    --------
    >>> import json, tempfile
    >>> import concordant as cc
    >>> data = cc.synthetic.grades(n_queries=20, n_features=2, seed=0)
    >>> model = cc.LinearRanker("ndcg").fit(data.X, data.y, qid=data.qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = export(model, folder + "/ranker.json", "elasticsearch", features=["bm25", "age"])
    ...     told = json.loads(done.path.read_text())["model"]
    >>> told["name"], told["model"]["type"], list(json.loads(told["model"]["definition"]))
    ('ranker', 'model/linear', ['bm25', 'age'])
    >>> done.n_golden, done.difference < 1e-6
    (266, True)
    """
    path = Path(path)
    chosen = format_of(path, format)
    options = chosen_options(chosen, path, features=features, name=name, dtype=dtype)
    source = read_model(model, path, features)
    draft = FORMATS[chosen].draft(source, path, **options)
    n_golden, difference = check_draft(source, draft, path, golden)
    if not n_golden:
        raise ExportError(path, "no golden row could be scored", "make the features smaller, and fit again.")
    with write_atomically(path) as stream:
        stream.write(draft.contents)
    blind = draft.single and golden is None and not source.placed
    return Exported(path, chosen, n_golden, difference, (*draft.notes, UNPLACED) if blind else draft.notes)


def format_of(path: Path, given: str | None) -> str:
    """Give the name of a format: the one given, or by the suffix.

    >>> format_of(Path("a.onnx.gz"), None), format_of(Path("a.json"), "elasticsearch")
    ('onnx', 'elasticsearch')
    """
    if given is None:
        suffix = Path(path.stem if path.suffix in COMPRESSED else path.name).suffix.lower()
        known = {one.suffix: name for name, one in FORMATS.items() if one.suffix}
        if suffix not in known:
            hint = f"name the format, one of {', '.join(FORMATS)}; or end in one of {' '.join(known)}."
            raise ExportError(path, f"no format goes by the suffix {suffix!r}", hint)
        return known[suffix]
    if not isinstance(given, str) or given not in FORMATS:
        raise UnknownNameError("format", given, FORMATS)
    return given


def chosen_options(chosen: str, path: Path, **given: Any) -> dict[str, Any]:
    """Give the options that a format has; refuse those that it has not."""
    for option, value in given.items():
        if value is not None and option not in FORMATS[chosen].options:
            having = [name for name, one in FORMATS.items() if option in one.options]
            raise ParameterError(option, value, f"left out of {chosen!r}; {', '.join(having)} read it")
    options: dict[str, Any] = {}
    if "name" in FORMATS[chosen].options:
        options["name"] = path.name.partition(".")[0] if given["name"] is None else given["name"]
        if not (isinstance(options["name"], str) and options["name"]):
            raise ParameterError("name", given["name"], "a text that is not empty")
    if "dtype" in FORMATS[chosen].options:
        options["dtype"] = name_of_dtype(given["dtype"])
    return options


def name_of_dtype(given: Any) -> str:
    """Give the name of a type of numbers, however it is told.

    >>> name_of_dtype(None), name_of_dtype(float), name_of_dtype("float32")
    ('float32', 'float64', 'float32')
    """
    try:
        name = DTYPES[0] if given is None else np.dtype(given).name
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ParameterError("dtype", given, f"one of {', '.join(DTYPES)}")
    return name
