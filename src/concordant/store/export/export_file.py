"""export: a model in the format of another library, written once golden rows have the same scores there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from concordant._base.files import COMPRESSED, PathLike, write_atomically
from concordant._base.validate import list_words
from concordant.exceptions import ExportError, ParameterError, UnknownNameError, show_value
from concordant.rankers.boosters import BOOSTERS
from concordant.store.export.elasticsearch import elasticsearch_draft
from concordant.store.export.export_sources import ExportSource, read_model
from concordant.store.export.golden import Draft, check_draft
from concordant.store.export.onnx import onnx_draft
from concordant.store.export.plain import plain_draft
from concordant.store.foreign import FOREIGN
from concordant.types import ArrayLike, FloatArray

# Boosted trees in the files that their libraries read.

SHOWN = 3  # categories of a feature, and features


def _native_draft(source: ExportSource, path: PathLike, library: str) -> Draft:
    """Return the trees in the format of the library; only those used for prediction."""
    if source.kind != "trees":
        problem = f"{type(source.last).__name__} has no trees, and format={library!r} holds trees only"
        raise ExportError(path, problem, "'json' and 'onnx' hold linear models and networks.")
    trees = source.last.trees_
    if trees.library != library:
        problem = f"the trees are of {trees.library}, and {library} cannot read them"
        raise ExportError(path, problem, f"take format={trees.library!r}, or fit with booster={library!r}.")

    suffix = ".json" if library == "xgboost" and _is_json(path) else SUFFIXES[library]

    def read(contents: bytes, rows: FloatArray) -> FloatArray:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trees").with_suffix(suffix)
            file.write_bytes(contents)
            model = READERS[library](BOOSTERS[library].library(), str(file))
            return BOOSTERS[library].scores(model, rows, trees)

    return Draft(serialize_trees(source.last.booster_, library, suffix), read, notes=_category_notes(source))


def _is_json(path: PathLike) -> bool:
    """True if the name of a file, without a compression suffix, ends in .json.

    >>> _is_json("trees.json.gz"), _is_json("trees.json.ubj")
    (True, False)
    """
    name = Path(path)
    return (Path(name.stem) if name.suffix in COMPRESSED else name).suffix.lower() == ".json"


def serialize_trees(model: Any, library: str, suffix: str) -> bytes:
    """Return the trees as bytes: XGBoost reads JSON or binary JSON depending on the suffix."""
    if library == "xgboost":
        return bytes(model.save_raw(suffix.removeprefix(".")))
    contents: bytes = FOREIGN[library].pack(model)["trees"].contents
    return contents


SUFFIXES = {"lightgbm": ".txt", "xgboost": ".ubj", "catboost": ".cbm"}
READERS: dict[str, Callable[[Any, str], Any]] = {  # as the person who serves it would
    "lightgbm": lambda library, file: library.Booster(model_file=file),
    "xgboost": lambda library, file: library.Booster(model_file=file),
    "catboost": lambda library, file: library.CatBoost().load_model(file),
}


def _category_notes(source: ExportSource) -> tuple[str, ...]:
    """Describe which features are codes, and of which categories; the file has the codes only."""
    notes = []
    for number, categories in list(source.last.encoding_.categories.items())[:SHOWN]:
        name = source.names[number] if source.names else f"number {number}"
        codes = ", ".join(f"{code} for {value!r}" for code, value in enumerate(categories[:SHOWN]))
        more = "; categories_ of the model lists all" if categories[SHOWN:] else ""
        absent = "-1" if source.last.trees_.library == "catboost" else "missing"
        notes.append(f"the feature {name} is given as codes, {codes}{more}; unknown ones are {absent}")
    return tuple(notes)


class Format(NamedTuple):
    """A file format: how it is drafted, what it is, its suffix and its options."""

    draft: Callable[..., Draft]
    about: str
    suffix: str = ""
    options: tuple[str, ...] = ()


SEARCH = Format(elasticsearch_draft, "linear weights or trees for the LTR plugins", "", ("features", "name"))
FORMATS: Mapping[str, Format] = {
    "onnx": Format(onnx_draft, "linear models and networks", ".onnx", ("features", "dtype")),
    "json": Format(plain_draft, "linear models, networks and ratings, with formulas", ".json", ("features",)),
    "elasticsearch": SEARCH,
    "opensearch": SEARCH,
    "lightgbm": Format(partial(_native_draft, library="lightgbm"), "LightGBM's own text", ".txt"),
    "xgboost": Format(
        partial(_native_draft, library="xgboost"), "XGBoost's own file, binary or JSON", ".ubj"
    ),
    "catboost": Format(partial(_native_draft, library="catboost"), "CatBoost's own file", ".cbm"),
}
DTYPES = ("float32", "float64")
UNPLACED = (
    "golden rows were made near 0, since the model does not know where its features lie: give rows of yours "
    "(golden), if features are far from 0"
)


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Attributes
    ----------
    path, format
        The file, and its format.
    n_golden
        Number of golden rows that were scored by the file and by the model.
    difference
        The largest difference of the two scores, relative to the size of the terms that the score sums.
    notes
        What the person who serves the model should know.
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
    """Write a fitted model in another format, completely, and only if it scores there as it does here.

    Before anything is written, the contents are read back (by ONNX Runtime, by the library of the trees, by
    the arithmetic that the plugins use, or that the file states), and golden rows are scored by them and by
    the model: rows at the scale of the features, each feature alone, zeros, and far values; for trees, also
    thresholds and missing values. Scalers of a `Pipeline` become part of the weights.

    Parameters
    ----------
    model
        A fitted ranker that scores rows, a linear `Comparer` (its rank score), a model of ratings, or a
        `sklearn.pipeline.Pipeline` of scalers and a linear or neural ranker.
    path
        The file to write; a suffix such as .gz compresses it.
    format
        One of `FORMATS`: "onnx", "json", "elasticsearch" or "opensearch" (a request for the learning-to-rank
        plugin), "lightgbm", "xgboost", "catboost". None: by the suffix, .onnx .json .txt .ubj .cbm.
    features
        Names of the features, if the model was fitted without names or with others.
    name
        Name of the model in the search engine; None: the name of the file.
    dtype
        Type of the inputs and outputs of ONNX: "float32" (the default), or "float64".
    golden
        Rows to check with, in place of synthetic ones: features, or data with `X` and `qid`.

    Raises
    ------
    ExportError
        If the format cannot hold the model, or scores would differ. Nothing is written.
    MissingExtraError
        If the library that reads the file back is not installed.

    Examples
    --------
    >>> import json, tempfile
    >>> import concordant as cc
    >>> data = cc.synthetic.grades(n_queries=20, n_features=2, seed=0)
    >>> model = cc.LinearRanker("ndcg").fit(data.X, data.y, qid=data.qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = export(model, folder + "/ranker.json", "elasticsearch", features=["bm25", "age"])
    ...     request = json.loads(done.path.read_text())["model"]
    >>> request["name"], request["model"]["type"], list(json.loads(request["model"]["definition"]))
    ('ranker', 'model/linear', ['bm25', 'age'])
    >>> done.n_golden, done.difference < 1e-6
    (266, True)
    """
    path = Path(path)
    format_name = _find_format(path, format)
    options = _read_options(format_name, path, features=features, name=name, dtype=dtype)
    source = read_model(model, path, features)
    draft = FORMATS[format_name].draft(source, path, **options)
    n_golden, difference = check_draft(source, draft, path, golden)
    if not n_golden:
        raise ExportError(path, "no golden row could be scored", "make the features smaller, and fit again.")
    with write_atomically(path) as stream:
        stream.write(draft.contents)
    blind = draft.single and golden is None and not source.has_feature_ranges
    notes = (*draft.notes, UNPLACED) if blind else draft.notes
    return Exported(path, format_name, n_golden, difference, notes)


def _find_format(path: Path, format_name: str | None) -> str:
    """Return the name of the format: the one passed, or by the suffix.

    >>> _find_format(Path("a.onnx.gz"), None), _find_format(Path("a.json"), "elasticsearch")
    ('onnx', 'elasticsearch')
    """
    if format_name is None:
        suffix = Path(path.stem if path.suffix in COMPRESSED else path.name).suffix.lower()
        names_by_suffix = {entry.suffix: name for name, entry in FORMATS.items() if entry.suffix}
        if suffix not in names_by_suffix:
            hint = f"name the format, one of {', '.join(FORMATS)}; "
            hint += f"or end in one of {' '.join(names_by_suffix)}."
            raise ExportError(path, f"no format has the suffix {suffix!r}", hint)
        return names_by_suffix[suffix]
    if not isinstance(format_name, str) or format_name not in FORMATS:
        raise UnknownNameError("format", format_name, FORMATS)
    return format_name


def _read_options(format_name: str, path: Path, **user_options: Any) -> dict[str, Any]:
    for option, value in user_options.items():
        if value is not None and option not in FORMATS[format_name].options:
            having = [name for name, entry in FORMATS.items() if option in entry.options]
            raise ParameterError.because(
                f"{option}={show_value(value)} has no effect on format {format_name!r}. It is for "
                f"{list_words(having)}."
            )
    options: dict[str, Any] = {}
    if "name" in FORMATS[format_name].options:
        model_name = user_options["name"]
        options["name"] = path.name.partition(".")[0] if model_name is None else model_name
        if not (isinstance(options["name"], str) and options["name"]):
            raise ParameterError("name", model_name, "a non-empty string")
    if "dtype" in FORMATS[format_name].options:
        options["dtype"] = _dtype_name(user_options["dtype"])
    return options


def _dtype_name(dtype: Any) -> str:
    """Return the name of a number type.

    >>> _dtype_name(None), _dtype_name(float), _dtype_name("float32")
    ('float32', 'float64', 'float32')
    """
    try:
        name = DTYPES[0] if dtype is None else np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ParameterError("dtype", dtype, list_words(map(repr, DTYPES)))
    return name
