"""The manifest of a model file: what it holds, in words and numbers; a checksum stands beside it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

from concordant.exceptions import ModelFileError
from concordant.metrics.metric import Metric
from concordant.persistence.archive import MANIFEST, canonical, digest
from concordant.persistence.refusal import WRITTEN_BY, UnreadableError, once
from concordant.persistence.registry import LEARNED, MODELS, UNSAVED
from concordant.persistence.values import Packer
from concordant.surrogates import Surrogate
from concordant.theory.kinds import described

__all__ = [
    "SCHEMA",
    "check_saveable",
    "checked_manifest",
    "checksum_of",
    "content_digest",
    "files_of",
    "readable",
    "version",
]

FORMAT, SCHEMA, CHECKSUM = "concordant model", 2, "manifest.sha256"
CONTENT = ("class", "parameters", "feature_names", "fitted", "arrays")  # what makes a model what it is


def version() -> str:
    """Give the library's version."""
    import concordant

    return str(concordant.__version__)


def files_of(model: Any, path: object) -> dict[str, bytes]:
    """Give the files that hold a model, the manifest and its checksum first."""
    packer = Packer(path)
    manifest = manifest_of(model, packer)
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    return {MANIFEST: text, CHECKSUM: checksum_of(text), **packer.files}


def checksum_of(text: bytes) -> bytes:
    """Give the contents of the file by which `sha256sum --check` finds a changed manifest."""
    return f"{digest(text)}  {MANIFEST}\n".encode()


def manifest_of(model: Any, packer: Packer) -> dict[str, Any]:
    """Give the manifest; the packer has the files."""
    name, given = type(model).__name__, vars(model)
    parameters = kept_parameters(given.get(LEARNED, model.get_params(deep=False)))
    certificate = getattr(model, "certificate_", None)
    metric = None if certificate is None else certificate.claim.metric
    names = given.get("feature_names_in_")
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "library": version(),
        "versions": versions(getattr(getattr(model, "trees_", None), "library", None), name),
        "class": name,
        "parameters": {key: packer.packed(value, key) for key, value in parameters.items()},
        "feature_names": None if names is None else [str(one) for one in names],
        "metric": None if metric is None else str(metric),
        "convention": None if metric is None else convention_of(metric),
        "certificate": None if certificate is None else {**certificate.to_dict(), "text": str(certificate)},
        "fitted": {key: packer.packed(given[key], key) for key in MODELS[name].fitted if key in given},
        "arrays": {
            key: {"sha256": digest(contents), "bytes": len(contents)}
            for key, contents in packer.files.items()
        },
    }


def kept_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give the parameters as a file keeps them: of a device its name, and no callbacks."""
    kept = {**parameters, **{name: value for name, value in UNSAVED.items() if name in parameters}}
    if type(kept.get("device")).__module__ == "torch":
        kept["device"] = str(kept["device"])
    return kept


def versions(booster: str | None, name: str) -> dict[str, str]:
    """Give the versions of the libraries that the model was made by."""
    used = {"numpy": "numpy", "scikit-learn": "sklearn"}
    used |= {booster: booster} if booster else {"torch": "torch"} if name == "NeuralRanker" else {}
    return {one: str(sys.modules[module].__version__) for one, module in used.items()}


def convention_of(metric: Metric) -> dict[str, Any]:
    """Give the convention, field by field."""
    fields = dataclasses.asdict(metric.convention)
    return {name: value if not callable(value) else repr(value) for name, value in fields.items()}


def checked_manifest(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Give the manifest, if it is ours, not newer than this library, and of these very files."""
    if MANIFEST not in files:
        raise UnreadableError("this is no model file of concordant: it has no manifest", WRITTEN_BY)
    manifest: dict[str, Any] = read_json(files[MANIFEST])
    check_version(manifest)
    own = {MANIFEST} if manifest["schema"] == 1 else {MANIFEST, CHECKSUM}
    if CHECKSUM in own and files.get(CHECKSUM) != checksum_of(files[MANIFEST]):
        raise UnreadableError("its manifest does not have the checksum that was written with it")
    check_class(manifest)
    check_unsaved(manifest["parameters"])
    if manifest["arrays"].keys() != files.keys() - own:
        raise UnreadableError("its files are not those that its manifest names")
    for name, told in manifest["arrays"].items():
        expected = {"sha256": told, "bytes": len(files[name])} if manifest["schema"] == 1 else told
        if expected != {"sha256": digest(files[name]), "bytes": len(files[name])}:
            raise UnreadableError(f"{name} does not have the checksum that was written with it")
    return manifest


def read_json(contents: bytes) -> Any:
    """Read what every reader of JSON reads alike: no NaN, no name twice in an object."""

    def refused(word: str) -> Any:
        raise UnreadableError(f"its manifest has {word}, which is no JSON")

    return json.loads(contents.decode(), parse_constant=refused, object_pairs_hook=once)


def check_version(manifest: Any) -> None:
    """Refuse what is not ours, and what is newer."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnreadableError("this is no model file of concordant", WRITTEN_BY)
    if type(manifest.get("schema")) is not int or manifest["schema"] < 1:
        raise UnreadableError("its version is unreadable")
    if manifest["schema"] > SCHEMA:
        problem = f"it was written by concordant {manifest.get('library')}, in format {manifest['schema']}"
        raise UnreadableError(f"{problem}; this is {version()}, which knows {SCHEMA}", "upgrade concordant.")


def check_class(manifest: dict[str, Any]) -> None:
    """Refuse classes that are no models, and parameters that the class does not have: another version may."""
    name = manifest["class"]
    if name not in MODELS:
        raise UnreadableError(f"it holds a {name!r}, which is no model", f"known: {', '.join(MODELS)}.")
    unknown = sorted(manifest["parameters"].keys() - MODELS[name].made().get_params(deep=False).keys())
    if unknown:
        told = f"it was written by concordant {manifest.get('library')}, with {', '.join(map(repr, unknown))}"
        problem = f"{told}; this is {version()}, whose {name} has no such parameter"
        raise UnreadableError(problem, "read it by the version that wrote it.")


def check_unsaved(parameters: Mapping[str, Any]) -> None:
    """Refuse what no file says: a fit would write to the path of a stranger's checkpoint."""
    for name, kept in UNSAVED.items():
        if parameters.get(name, kept) != kept:
            raise UnreadableError(f"its parameter {name} is {parameters[name]!r}: every file says {kept!r}")


def content_digest(manifest: Mapping[str, Any]) -> str:
    """Give the SHA-256 of what makes a model what it is."""
    return digest(canonical({name: manifest[name] for name in CONTENT}))


def readable(value: Any) -> Any:
    """Give a parameter as JSON has it: objects by their text."""
    if isinstance(value, dict):
        return {str(key): readable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(one) for one in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Surrogate):
        return described(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def check_saveable(model: Any, path: object) -> None:
    """Refuse what is no model of ours."""
    name = type(model).__name__
    if name in MODELS and MODELS[name].made is type(model):
        return
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        hint = "save its last step, pipeline[-1], and keep the others apart; or use concordant.export."
    elif hasattr(model, "best_estimator_"):
        hint = "save its best_estimator_."
    else:
        hint = f"those it can are {', '.join(MODELS)}."
    raise ModelFileError(path, f"no file can hold a {name}", hint)
