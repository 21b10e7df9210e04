"""save and load: one zip of `manifest.json` and a file per array, each with its checksum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.exceptions import ConcordantError, MissingExtraError, ModelFileError
from concordant.persistence.archive import (
    MAX_BYTES,
    everything,
    named_errors,
    said,
    unpacked,
    zipped,
)
from concordant.persistence.kinds import SCALAR
from concordant.persistence.manifest import (
    check_saveable,
    checked_manifest,
    content_digest,
    files_of,
    readable,
)
from concordant.persistence.refusal import UnreadableError
from concordant.persistence.registry import LEARNED, MODELS
from concordant.persistence.values import Reader
from concordant.supervision.readers.text import PathLike, write_atomically

__all__ = ["describe", "digest_of", "load", "save"]

TOLD = ("class", "library", "schema", "versions", "feature_names", "metric", "convention", "certificate")


def save(model: Any, path: PathLike) -> None:
    """Write a fitted model to a file; whole, or not at all. `load` gives it back.

    The file is a zip of `manifest.json` (format, version, class, parameters, names of features, metric and
    its convention, certificate, fitted numbers, the SHA-256 of each other file), the SHA-256 of that, the
    arrays as .npy, and boosted trees in their library's own format. It holds data only, and is read back
    before it takes its place. Equal models give equal files.

    Of the parameters, `callback` and `checkpoint` come back as None and `verbose` as 0.

    Parameters
    ----------
    model
        A fitted estimator: a ranker, a `Comparer`, or a model of `concordant.ratings`.
    path
        Where to; a suffix such as .gz compresses it.

    Raises
    ------
    ModelFileError
        If the model is of another class, or has a function among its parameters: functions are not data.

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
    check_saveable(model, path)
    check_is_fitted(model)
    files = files_of(model, path)
    check_readable(files, path)
    contents = zipped(files)
    with write_atomically(path) as stream:
        stream.write(contents)


def load(path: PathLike, *, digest: str | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Give the model of a file by `save`; it predicts the same, to the last bit.

    Nothing that the file says is run: classes are those of a fixed list, arrays are read without pickle, and
    every part is checked before it is used. Checksums find damage, not intent: whoever can write the file can
    change the model, and its checksums with it; `digest` finds that, too. Boosted trees are parsed by their
    own library, after both were compared; of a stranger's trees, ask for a digest that you trust.

    Parameters
    ----------
    path
        The file.
    digest
        What `digest_of` gave for the model that is wanted: another one is refused before anything is made of
        it. None: any model.
    max_bytes
        Refuse a file whose contents, unpacked, are more than that.

    Raises
    ------
    ModelFileError
        If it is damaged, of a newer version, too large, another model than `digest` says, or none at all.
    MissingExtraError
        If it holds trees or a network of a library that is not installed.
    """
    contents = everything(path, max_bytes)
    with named_errors(path, contents):
        return read_model(unpacked(contents, max_bytes), digest)


def describe(path: PathLike, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Say what a model file holds, without making the model: plain values, as JSON has them.

    Keys: class, library (the version of concordant that wrote it), schema, versions (of other libraries),
    parameters, feature_names, metric, convention (field by field), certificate (as it was when written) and
    digest. What the model has none of is None.

    Parameters
    ----------
    path, max_bytes
        As for `load`.

    Examples
    --------
    >>> import tempfile
    >>> from concordant.ratings import Elo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Elo().fit(["ann", "bob"], ["bob", "cat"], [-1, 0]), folder + "/games.cmp")
    ...     told = describe(folder + "/games.cmp")
    >>> told["class"], told["parameters"]["k"]
    ('Elo', 32.0)
    """
    contents = everything(path, max_bytes)
    with named_errors(path, contents):
        files = unpacked(contents, max_bytes)
        manifest, reader = checked_manifest(files), Reader(files, native=False)
        parameters = {
            key: readable(reader.value(value, key)) for key, value in manifest["parameters"].items()
        }
        told = {name: manifest.get(name) for name in TOLD}
        return {**told, "parameters": parameters, "digest": content_digest(manifest)}


def digest_of(path: PathLike, *, max_bytes: int = MAX_BYTES) -> str:
    """Give a SHA-256 of the model in a file: of its class, its parameters and all that was fitted.

    Two files have the same one where they hold the same model, to the last bit; versions of libraries are not
    part of it (but trees are kept as their library writes them, which may name its own version).

    Parameters
    ----------
    path, max_bytes
        As for `load`.
    """
    contents = everything(path, max_bytes)
    with named_errors(path, contents):
        return content_digest(checked_manifest(unpacked(contents, max_bytes)))


def check_readable(files: Mapping[str, bytes], path: PathLike) -> None:
    """Refuse to write what could not be read."""
    try:
        read_model(files)
    except MissingExtraError:
        raise
    except Exception as error:
        hint = "parameters or parts of the model were changed after fit: fit it again."
        raise ModelFileError(path, f"the model could not be read back ({said(error)})", hint) from error


def read_model(files: Mapping[str, bytes], wanted: str | None = None) -> Any:
    """Give the model, every part of it checked."""
    manifest = checked_manifest(files)
    if wanted is not None and wanted != (found := content_digest(manifest)):
        raise UnreadableError(
            f"its digest is {found}, not {wanted}", "it holds another model than was asked for."
        )
    known, reader = MODELS[manifest["class"]], Reader(files)
    parameters = {
        key: reader.checked(value, known.parameters.get(key, SCALAR), f"the parameter {key}")
        for key, value in manifest["parameters"].items()
    }
    model = known.made(**parameters)
    required = known.fitted.keys() - known.optional
    if not required <= manifest["fitted"].keys() <= known.fitted.keys():
        raise UnreadableError(f"its parts are not those of a {manifest['class']}")
    for name, value in manifest["fitted"].items():
        setattr(model, name, reader.checked(value, known.fitted[name], name))
    if reader.used != manifest["arrays"].keys():
        raise UnreadableError("it has files that no part of the model is in")
    for name, derived in known.derived.items():
        setattr(model, name, derived(model))
    if known.remembers:
        setattr(model, LEARNED, parameters)
    check_together(model, known.problem)
    give_names(model, manifest["feature_names"])
    return model


def check_together(model: Any, problem: Any) -> None:
    """Refuse parts that do not fit together."""
    try:
        found = problem(model)
    except ConcordantError as error:
        found = said(error)
    if found:
        raise UnreadableError(f"its parts do not fit together: {found}")


def give_names(model: Any, names: Any) -> None:
    """Set the names of features, where the file has them."""
    if names is None:
        return
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise UnreadableError("the names of its features are no text")
    if len(names) != getattr(model, "n_features_in_", len(names)):
        raise UnreadableError(f"it has {len(names)} names for {model.n_features_in_} features")
    model.feature_names_in_ = np.array(names, dtype=object)
