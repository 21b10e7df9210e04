"""save and load: one zip of `manifest.json` and a file per array, each with its checksum."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from concordant._base.files import PathLike, open_binary, write_atomically
from concordant._base.light_sklearn import check_is_fitted
from concordant.exceptions import ConcordantError, MissingExtraError, ModelFileError
from concordant.metrics.metric import Metric
from concordant.store.registry import LEARNED, MODELS, UNSAVED
from concordant.store.value_kinds import SCALAR, WRITTEN_BY, UnreadableError, require, unique_dict
from concordant.store.values import Packer, Reader
from concordant.surrogates import Surrogate
from concordant.theory.kinds import format_surrogate

# A model file is a zip: equal contents give equal bytes, and it is unpacked within limits. Its manifest says
# in words and numbers what it holds; a checksum stands beside it.

MANIFEST = "manifest.json"
MAX_BYTES = 2**30  # of all contents together, unpacked
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # equal models give equal files
ENTRY = b"PK\x01\x02"  # begins each entry of a zip's directory
MARKS = b",", b"[", b"{", b'"'  # of JSON: there is at most one value more than marks
ROOM = "if you trust it, load(path, max_bytes=...) with more takes it: all limits grow with that one."
METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED  # these unpack no more bytes than asked for


def digest(contents: bytes) -> str:
    """Return the SHA-256."""
    return hashlib.sha256(contents).hexdigest()


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Zip these files."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), contents, zipfile.ZIP_DEFLATED)
    return result.getvalue()


def _too_large(size: str, max_bytes: int) -> tuple[str, str]:
    return f"it has {size} bytes, unpacked", f"load(path, max_bytes=...) takes more than {max_bytes:,}."


class _BoundedReader(io.BytesIO):
    """A zip in memory whose directory, which zipfile parses at once, may have at most `limit` bytes."""

    limit = 0

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self.limit:
            raise UnreadableError(f"its directory has {size:,} bytes", ROOM)
        return super().read(size)


def _unzip(contents: bytes, max_bytes: int) -> dict[str, bytes]:
    """Return the files of a zip by name. Stated sizes are checked before memory is taken for them."""
    n_entries = contents.count(ENTRY)  # at least as many as zipfile finds: each starts with it
    require(n_entries <= max(max_bytes // 2**14, 2**10), f"it has {n_entries:,} files", ROOM)
    stream = _BoundedReader(contents)
    stream.limit = max(max_bytes // 2**8, 2**18)
    with zipfile.ZipFile(stream) as archive:
        stream.limit = sys.maxsize
        entries = archive.infolist()
        require(len({entry.filename for entry in entries}) == len(entries), "two of its files have one name")
        unpacks = all(entry.compress_type in METHODS for entry in entries)
        require(unpacks, "one of its files is compressed in a way that no model file is")
        total = sum(entry.file_size for entry in entries)
        require(total <= max_bytes, *_too_large(f"{total:,}", max_bytes))
        manifest_size = max((entry.file_size for entry in entries if entry.filename == MANIFEST), default=0)
        most = max(max_bytes // 2**4, 2**20)
        require(manifest_size <= most, f"its manifest has {manifest_size:,} bytes", ROOM)
        files = {entry.filename: _read_entry(archive, entry) for entry in entries}
    n_marks = sum(map(files.get(MANIFEST, b"").count, MARKS))
    most = max(max_bytes // 2**8, 2**14)  # a name of a feature has three, an empty list two
    require(n_marks <= most, f"its manifest has {n_marks:,} of the signs {b' '.join(MARKS).decode()}", ROOM)
    return files


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:  # it unpacks no more bytes than asked for
        contents = stream.read(entry.file_size + 1)
    require(len(contents) == entry.file_size, f"{entry.filename} is of another size than it says")
    return contents


def _read_contents(path: PathLike, max_bytes: int) -> bytes:
    try:
        with open_binary(path) as stream:
            contents = stream.read(max_bytes + 1)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if getattr(error, "filename", None) is not None:  # missing or unreadable: the error says so itself
            raise
        problem = f"it cannot be decompressed ({error})"
        raise ModelFileError(path, problem, "copy or write it again.") from error
    if len(contents) > max_bytes:
        raise ModelFileError(path, *_too_large(f"more than {max_bytes:,}", max_bytes))
    return contents


@contextmanager
def _opened(path: PathLike, max_bytes: int) -> Iterator[dict[str, bytes]]:
    """Unzip a file; add its name to any error raised while its contents are read."""
    contents = _read_contents(path, max_bytes)
    try:
        yield _unzip(contents, max_bytes)
    except (MissingExtraError, ModelFileError):
        raise
    except UnreadableError as error:
        raise ModelFileError(path, str(error), error.hint) from error
    except Exception as error:  # zipfile, zlib, json, numpy and tree libraries raise errors of many kinds
        if not contents.startswith(b"PK"):
            raise ModelFileError(path, "this is not a model file", WRITTEN_BY) from error
        hint = "it is damaged or incomplete: copy or write it again."
        raise ModelFileError(path, f"the model cannot be read ({_first_line(error)})", hint) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].removesuffix(".") or type(error).__name__


STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
DEEPEST = 100  # json recurses, up to the interpreter's limit
FORMAT, SCHEMA, CHECKSUM = "concordant model", 2, "manifest.sha256"
CONTENT = ("class", "parameters", "feature_names", "fitted", "arrays")  # identify a model


def version() -> str:
    """Return the version of concordant."""
    import concordant

    return str(concordant.__version__)


def _pack_files(model: Any, path: object) -> dict[str, bytes]:
    packer = Packer(path)
    manifest = _build_manifest(model, packer)
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    return {MANIFEST: text, CHECKSUM: checksum_file(text), **packer.files}


def checksum_file(text: bytes) -> bytes:
    """Build the file by which `sha256sum --check` finds a changed manifest."""
    return f"{digest(text)}  {MANIFEST}\n".encode()


def _build_manifest(model: Any, packer: Packer) -> dict[str, Any]:
    name, attributes = type(model).__name__, vars(model)
    parameters = _stored_parameters(attributes.get(LEARNED, model.get_params(deep=False)))
    certificate = getattr(model, "certificate_", None)
    metric = None if certificate is None else certificate.claim.metric
    names = attributes.get("feature_names_in_")
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "library": version(),
        "versions": versions(getattr(getattr(model, "trees_", None), "library", None), name),
        "class": name,
        "parameters": {key: packer.pack(value, key) for key, value in parameters.items()},
        "feature_names": None if names is None else [str(feature) for feature in names],
        "metric": None if metric is None else str(metric),
        "convention": None if metric is None else _convention_fields(metric),
        "certificate": None if certificate is None else {**certificate.to_dict(), "text": str(certificate)},
        "fitted": {
            key: packer.pack(attributes[key], key) for key in MODELS[name].fitted if key in attributes
        },
        "arrays": {
            key: {"sha256": digest(contents), "bytes": len(contents)}
            for key, contents in packer.files.items()
        },
    }


def _stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a file stores: a device by its name, and no callbacks."""
    stored = {**parameters, **{name: value for name, value in UNSAVED.items() if name in parameters}}
    if type(stored.get("device")).__module__ == "torch":
        stored["device"] = str(stored["device"])
    return stored


def versions(booster: str | None, name: str) -> dict[str, str]:
    """Return the versions of the libraries that the model was fitted with."""
    used = {"numpy": "numpy", "scikit-learn": "sklearn"}
    used |= {booster: booster} if booster else {"torch": "torch"} if name == "NeuralRanker" else {}
    return {library: str(sys.modules[module].__version__) for library, module in used.items()}


def _convention_fields(metric: Metric) -> dict[str, Any]:
    fields = dataclasses.asdict(metric.convention)
    return {name: value if not callable(value) else repr(value) for name, value in fields.items()}


def _read_manifest(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Read the manifest; check that it is ours, not newer than this library, and of these very files."""
    require(MANIFEST in files, "this is no model file of concordant: it has no manifest", WRITTEN_BY)
    manifest: dict[str, Any] = _read_json(files[MANIFEST])
    _check_version(manifest)
    manifest_files = {MANIFEST} if manifest["schema"] == 1 else {MANIFEST, CHECKSUM}
    intact = CHECKSUM not in manifest_files or files.get(CHECKSUM) == checksum_file(files[MANIFEST])
    require(intact, "its manifest does not have the checksum that was written with it")
    _check_class(manifest)
    _check_unsaved(manifest["parameters"])
    arrays, others = manifest["arrays"].keys(), files.keys() - manifest_files
    require(arrays == others, "its files are not those that its manifest names")
    for name, recorded in manifest["arrays"].items():
        expected = {"sha256": recorded, "bytes": len(files[name])} if manifest["schema"] == 1 else recorded
        intact = expected == {"sha256": digest(files[name]), "bytes": len(files[name])}
        require(intact, f"{name} does not have the checksum that was written with it")
    return manifest


def _read_json(contents: bytes) -> Any:
    """Read JSON strictly, so that all readers agree: no NaN, no name twice in an object."""

    def refuse_constant(word: str) -> Any:
        raise UnreadableError(f"its manifest has {word}, which is not JSON")

    brackets = STRING.sub(b"", contents).translate(bytes.maketrans(b"[{]}", b"\1\1\xff\xff"), NO_BRACKETS)
    depth = np.cumsum(np.frombuffer(brackets, dtype=np.int8), dtype=np.int64).max(initial=0)
    require(depth <= DEEPEST, f"its manifest is nested more than {DEEPEST} deep")
    return json.loads(contents.decode(), parse_constant=refuse_constant, object_pairs_hook=unique_dict)


def _check_version(manifest: Any) -> None:
    is_ours = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    require(is_ours, "this is no model file of concordant", WRITTEN_BY)
    schema = manifest.get("schema")
    require(type(schema) is int and schema >= 1, "its version is unreadable")
    if schema > SCHEMA:
        problem = f"it was written by concordant {manifest.get('library')}, in format {schema}"
        raise UnreadableError(f"{problem}; this is {version()}, which knows {SCHEMA}", "upgrade concordant.")


def _check_class(manifest: dict[str, Any]) -> None:
    """Check the class, and that it has these parameters: another version may have others."""
    name = manifest["class"]
    if name not in MODELS:
        raise UnreadableError(f"it holds a {name!r}, which is no model", f"known: {', '.join(MODELS)}.")
    unknown = sorted(manifest["parameters"].keys() - MODELS[name].estimator().get_params(deep=False).keys())
    if unknown:
        listed = ", ".join(map(repr, unknown))
        problem = f"it was written by concordant {manifest.get('library')}, with {listed}"
        problem += f"; this is {version()}, whose {name} has no such parameter"
        raise UnreadableError(problem, "read it by the version that wrote it.")


def _check_unsaved(parameters: Mapping[str, Any]) -> None:
    """Check parameters that no file stores: a fit would write to the path of a stranger's checkpoint."""
    for name, default in UNSAVED.items():
        value = parameters.get(name, default)
        require(value == default, f"its parameter {name} is {value!r}: every file says {default!r}")


def _content_digest(manifest: Mapping[str, Any]) -> str:
    content = {name: manifest[name] for name in CONTENT}
    return digest(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def _to_json(value: Any) -> Any:
    """Convert a parameter to plain JSON values; objects become their text."""
    if isinstance(value, dict):
        return {str(key): _to_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(entry) for entry in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Surrogate):
        return format_surrogate(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _check_saveable(model: Any, path: object) -> None:
    name = type(model).__name__
    if name in MODELS and MODELS[name].estimator is type(model):
        return
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        hint = "save its last step, pipeline[-1], and keep the others apart; or use concordant.export."
    elif hasattr(model, "best_estimator_"):
        hint = "save its best_estimator_."
    else:
        hint = f"those it can are {', '.join(MODELS)}."
    raise ModelFileError(path, f"a {name} cannot be saved", hint)


DESCRIBED = ("class", "library", "schema", "versions", "feature_names", "metric", "convention", "certificate")


def save(model: Any, path: PathLike) -> None:
    """Write a fitted model to a file, completely or not at all. `load` reads it back.

    The file is a zip of `manifest.json` (format, version, class, parameters, names of features, metric and
    its convention, certificate, fitted numbers, the SHA-256 of each other file), the SHA-256 of that, the
    arrays as .npy, and boosted trees in their library's format. It holds data only, and is read back
    before it replaces an older file. Equal models give equal files.

    The parameters `callback` and `checkpoint` are loaded as None, and `verbose` as 0.

    Parameters
    ----------
    model
        A fitted estimator: a ranker, a `Comparer`, or a model of `concordant.comparisons.ratings`.
    path
        The file to write; a suffix such as .gz compresses it.

    Raises
    ------
    ModelFileError
        If the model is of another class, or has a function among its parameters: functions are not data.

    Examples
    --------
    >>> import tempfile
    >>> from concordant.comparisons.ratings import Elo
    >>> model = Elo().fit(["ann", "bob"], ["bob", "cat"], [-1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder + "/games.cmp")
    ...     again = load(folder + "/games.cmp")
    >>> again.update(["cat"], ["ann"], [-1]).ratings_.round(1).tolist()
    [1499.2, 1484.7, 1516.0]
    """
    _check_saveable(model, path)
    check_is_fitted(model)
    files = _pack_files(model, path)
    _check_readable(files, path)
    contents = zip_files(files)
    with write_atomically(path) as stream:
        stream.write(contents)


def load(path: PathLike, *, digest: str | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model written by `save`; it predicts the same, to the last bit.

    Nothing that the file says is run: classes are those of a fixed list, arrays are read without pickle, and
    every part is checked before it is used. Checksums find damage, not intent: whoever can write the file can
    change the model, and its checksums with it; `digest` finds that, too. Boosted trees are parsed by their
    library, after both were compared; for trees from a stranger, pass a digest that you trust.

    Parameters
    ----------
    path
        The file.
    digest
        The expected `digest_of` the model: any other is refused before the model is built. None: any model.
    max_bytes
        Largest total size of the unpacked contents. The number of files, and the sizes of the directory
        and the manifest, are limited in proportion (1 GiB: 65,536 files, 4 MiB, 64 MiB).

    Raises
    ------
    ModelFileError
        If it is damaged, of a newer version, too large, not the model of `digest`, or not a model file.
    MissingExtraError
        If it holds trees or a network of a library that is not installed.
    """
    with _opened(path, max_bytes) as files:
        return _read_model(files, digest)


def describe(path: PathLike, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Describe a model file without building the model: plain values, as in JSON.

    Keys: class, library (the version of concordant that wrote it), schema, versions (of other libraries),
    parameters, feature_names, metric, convention (field by field), certificate (as it was when written) and
    digest. What the model does not have is None.

    Parameters
    ----------
    path, max_bytes
        As for `load`.

    Examples
    --------
    >>> import tempfile
    >>> from concordant.comparisons.ratings import Elo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Elo().fit(["ann", "bob"], ["bob", "cat"], [-1, 0]), folder + "/games.cmp")
    ...     description = describe(folder + "/games.cmp")
    >>> description["class"], description["parameters"]["k"]
    ('Elo', 32.0)
    """
    with _opened(path, max_bytes) as files:
        manifest, reader = _read_manifest(files), Reader(files, native=False)
        stored = manifest["parameters"].items()
        parameters = {key: _to_json(reader.read_value(value, key)) for key, value in stored}
        description = {name: manifest.get(name) for name in DESCRIBED}
        return {**description, "parameters": parameters, "digest": _content_digest(manifest)}


def digest_of(path: PathLike, *, max_bytes: int = MAX_BYTES) -> str:
    """Return a SHA-256 of the model in a file: of its class, its parameters and all that was fitted.

    Two files have the same digest if they hold the same model, to the last bit; versions of libraries are not
    part of it (but trees are stored as their library writes them, which may include its version).

    Parameters
    ----------
    path, max_bytes
        As for `load`.
    """
    with _opened(path, max_bytes) as files:
        return _content_digest(_read_manifest(files))


def _check_readable(files: Mapping[str, bytes], path: PathLike) -> None:
    try:
        _read_model(files)
    except MissingExtraError:
        raise
    except Exception as error:
        hint = "parameters or parts of the model were changed after fit: fit it again."
        problem = f"the model could not be read back ({_first_line(error)})"
        raise ModelFileError(path, problem, hint) from error


def _read_model(files: Mapping[str, bytes], expected_digest: str | None = None) -> Any:
    manifest = _read_manifest(files)
    if expected_digest is not None and expected_digest != (actual_digest := _content_digest(manifest)):
        problem = f"its digest is {actual_digest}, not {expected_digest}"
        raise UnreadableError(problem, "the file holds another model than the one requested.")
    stored_model, reader = MODELS[manifest["class"]], Reader(files)
    parameters = {
        key: reader.read_checked(value, stored_model.parameters.get(key, SCALAR), f"the parameter {key}")
        for key, value in manifest["parameters"].items()
    }
    model = stored_model.estimator(**parameters)
    required, names = stored_model.fitted.keys() - stored_model.optional, manifest["fitted"].keys()
    complete = required <= names <= stored_model.fitted.keys()
    require(complete, f"its parts are not those of a {manifest['class']}")
    for name, value in manifest["fitted"].items():
        setattr(model, name, reader.read_checked(value, stored_model.fitted[name], name))
    require(reader.used == manifest["arrays"].keys(), "it has files that no part of the model is in")
    if stored_model.remembers:
        setattr(model, LEARNED, parameters)
    try:
        stored_model.check(model)
    except (ConcordantError, UnreadableError) as error:
        raise UnreadableError(f"its parts do not fit together: {_first_line(error)}") from error
    _set_feature_names(model, manifest["feature_names"])
    return model


def _set_feature_names(model: Any, names: Any) -> None:
    if names is None:
        return
    are_text = isinstance(names, list) and all(isinstance(name, str) for name in names)
    require(are_text, "the names of its features are no text")
    n_features = getattr(model, "n_features_in_", len(names))
    require(len(names) == n_features, f"it has {len(names)} names for {n_features} features")
    model.feature_names_in_ = np.array(names, dtype=object)
