"""save and load: one zip with `manifest.json` and an .npy file per array, each with its checksum."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ConcordantError, ModelFileError
from concordant.persistence.registry import LEARNED, MODELS
from concordant.persistence.values import Packer, Reader, UnreadableError
from concordant.supervision.readers.text import PathLike, open_binary, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load", "save"]

FORMAT, SCHEMA, MANIFEST = "concordant model", 1, "manifest.json"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # equal models give equal files
DAMAGED = (  # what zipfile, zlib, json and numpy raise on bytes that are not theirs
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,  # RecursionError and NotImplementedError too
    SyntaxError,
    TypeError,
    ValueError,
)


def save(model: Any, path: PathLike) -> None:
    """Write a fitted model to a file; whole, or not at all. `load` gives it back.

    The file is a zip of `manifest.json` (format, version, class, parameters, fitted numbers, and the SHA-256
    of each array) and the arrays as .npy. It holds data only. Names of features are kept where the model has
    `feature_names_in_`. Equal models give equal files.

    Parameters
    ----------
    model
        A fitted `Comparer`, or a model of `concordant.ratings`.
    path
        Where to.

    Raises
    ------
    ModelFileError
        If the model is of another class, or has a function as its kernel: functions are not data.

    Examples
    --------
    >>> import tempfile
    >>> from concordant.ratings import Elo
    >>> model = Elo().fit(["ann", "bob"], ["bob", "cat"], [-1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder + "/games.cmp")
    ...     again = load(folder + "/games.cmp")
    >>> again.update(["cat"], ["ann"], [-1]).ratings_.round(1).tolist()
    [1499.2, 1484.7, 1516.0]
    """
    name = type(model).__name__
    if name not in MODELS or MODELS[name].made is not type(model):
        raise ModelFileError(path, f"no file can hold a {name}", f"those it can are {', '.join(MODELS)}.")
    check_is_fitted(model)
    packer = Packer(path)
    given = vars(model)
    parameters = given.get(LEARNED, model.get_params(deep=False))
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "library": version(),
        "class": name,
        "parameters": {key: packer.packed(value, key) for key, value in parameters.items()},
        "feature_names": [str(one) for one in given["feature_names_in_"]]
        if "feature_names_in_" in given
        else None,
        "fitted": {key: packer.packed(given[key], key) for key in MODELS[name].fitted if key in given},
        "arrays": {key: digest(contents) for key, contents in packer.files.items()},
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    with write_atomically(path) as stream:
        stream.write(zipped({MANIFEST: text, **packer.files}))


def load(path: PathLike) -> Any:
    """Give the model of a file by `save`; it predicts the same, to the last bit.

    Nothing that the file says is run: classes are those of a fixed list, arrays are read without pickle, and
    every part is checked before it is used. Checksums find damage, not intent: whoever can write the file can
    change the model.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ModelFileError
        If it is damaged, of a newer version, or no model at all.
    """
    contents = everything(path)
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            return read_model(archive)
    except UnreadableError as error:
        raise ModelFileError(path, str(error), error.hint) from error
    except DAMAGED as error:
        if not contents.startswith(b"PK"):
            hint = "model files are written by concordant.save or `concordant compare fit --output`."
            raise ModelFileError(path, "this is no model file", hint) from error
        told = str(error).partition("\n")[0] or type(error).__name__
        hint = "it is damaged or incomplete: copy or write it again."
        raise ModelFileError(path, f"the model cannot be read ({told})", hint) from error


def version() -> str:
    """Give the library's version."""
    import concordant

    return str(concordant.__version__)


def digest(contents: bytes) -> str:
    """Give the SHA-256."""
    return hashlib.sha256(contents).hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Give a zip of these files."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), contents, zipfile.ZIP_DEFLATED)
    return result.getvalue()


def everything(path: PathLike) -> bytes:
    """Give the bytes of the file."""
    try:
        with open_binary(path) as stream:
            return stream.read()
    except (EOFError, zlib.error, OSError) as error:
        if getattr(error, "filename", None) is not None:  # not there, or not to be read: says so itself
            raise
        raise ModelFileError(
            path, f"it cannot be decompressed ({error})", "copy or write it again."
        ) from error


def read_model(archive: zipfile.ZipFile) -> Any:
    """Give the model, every part of it checked."""
    manifest = json.loads(archive.read(MANIFEST))
    check_manifest(manifest)
    known = MODELS[manifest["class"]]
    reader = Reader(archive, manifest["arrays"])
    check_parameters(manifest)
    parameters = {key: reader.scalar(value, key) for key, value in manifest["parameters"].items()}
    model = known.made(**parameters)
    required = known.fitted.keys() - known.optional
    if not required <= manifest["fitted"].keys() <= known.fitted.keys():
        raise UnreadableError(f"its parts are not those of a {manifest['class']}")
    for name, value in manifest["fitted"].items():
        setattr(model, name, reader.checked(value, known.fitted[name], name))
    if known.remembers:
        setattr(model, LEARNED, parameters)
    try:
        problem = known.problem(model)
    except ConcordantError as error:
        problem = str(error).partition("\n")[0].removesuffix(".")
    if problem:
        raise UnreadableError(f"its parts do not fit together: {problem}")
    give_names(model, manifest["feature_names"])
    return model


def check_manifest(manifest: Any) -> None:
    """Refuse what is not ours, and what is newer."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnreadableError("this is no model file of concordant")
    if type(manifest.get("schema")) is not int or manifest["schema"] < 1:
        raise UnreadableError("its version is unreadable")
    if manifest["schema"] > SCHEMA:
        problem = f"it was written by concordant {manifest.get('library')}, in format {manifest['schema']}"
        raise UnreadableError(f"{problem}; this is {version()}, which knows {SCHEMA}", "upgrade concordant.")
    if manifest["class"] not in MODELS:
        raise UnreadableError(
            f"it holds a {manifest['class']!r}, which is no model", f"known: {', '.join(MODELS)}."
        )


def check_parameters(manifest: dict[str, Any]) -> None:
    """Refuse parameters that the class does not have: another version may."""
    name = manifest["class"]
    unknown = sorted(manifest["parameters"].keys() - MODELS[name].made().get_params(deep=False).keys())
    if unknown:
        told = f"it was written by concordant {manifest.get('library')}, with {', '.join(map(repr, unknown))}"
        problem = f"{told}; this is {version()}, whose {name} has no such parameter"
        raise UnreadableError(problem, "read it by the version that wrote it.")


def give_names(model: Any, names: Any) -> None:
    """Set the names of features, where the file has them."""
    import numpy as np

    if names is None:
        return
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise UnreadableError("the names of its features are no text")
    if len(names) != getattr(model, "n_features_in_", len(names)):
        raise UnreadableError(f"it has {len(names)} names for {model.n_features_in_} features")
    model.feature_names_in_ = np.array(names, dtype=object)
