"""Conversion of the values of models to JSON and files, and back."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from concordant.exceptions import ConcordantError, MissingExtraError, ModelFileError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.store.foreign import FOREIGN, Blob, foreign_kind
from concordant.store.model_parts import PARTS, STORED_NAMES, metric_text
from concordant.store.value_kinds import Kind, UnreadableError, require

FUNCTION = "use what the library has by its name; with code of your own, keep it and fit again."
OTHER = "set_params gives the model another one before it is saved: predictions do not read it."
# Keys of a JSON object -> the method that reads it, and the types of its values.
FORMS: Mapping[tuple[str, ...], tuple[str, tuple[type, ...]]] = {
    ("float",): ("_read_number", (str,)),
    ("tuple",): ("_read_several", (list,)),
    ("values",): ("_read_by_name", (dict,)),
    ("items",): ("_read_pairs", (list,)),
    ("metric",): ("_read_metric", (str,)),
    ("bytes",): ("_read_contents", (str,)),
    ("array", "read_only"): ("_read_array", (str, bool)),
    ("fields", "part"): ("_read_part", (dict, str)),
    ("fields", "foreign"): ("_read_foreign", (dict, str)),
}
STORED_DTYPES = "biufUSMm"  # kinds of arrays that are numbers, text or times and nothing else
LONGEST = 2**31  # of one axis
ODD = re.compile(r"[^A-Za-z0-9_.-]+")


class Packer:
    """Writer of values as JSON; arrays and models of other libraries become one file each."""

    def __init__(self, path: object) -> None:
        self.path = path
        self.files: dict[str, bytes] = {}  # contents by name
        self.names: dict[int, tuple[str, NDArray[Any]]] = {}  # with the array, or its id could be reused

    def pack(self, value: Any, where: str) -> Any:
        """Convert a value to JSON; `where` names the value in errors and files."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._store_array(value, where), "read_only": not value.flags.writeable}
        if isinstance(value, list) or type(value) is tuple:
            several = [self.pack(entry, f"{where}.{index}") for index, entry in enumerate(value)]
            return several if isinstance(value, list) else {"tuple": several}
        if isinstance(value, dict):
            return self._pack_dict(value, where)
        return self._pack_object(value, where)

    def _pack_dict(self, value: dict[Any, Any], where: str) -> Any:
        """Convert a dictionary to JSON: keys that are not text are stored beside their values."""
        if all(type(key) is str for key in value):
            return {"values": {key: self.pack(entry, f"{where}.{key}") for key, entry in value.items()}}
        pairs = [[self.pack(key, where), self.pack(entry, f"{where}.{key}")] for key, entry in value.items()]
        return {"items": pairs}

    def _pack_object(self, value: Any, where: str) -> Any:
        if isinstance(value, Blob):
            name = self._free_name(where, value.suffix)
            self.files[name] = value.contents
            return {"bytes": name}
        if isinstance(value, Metric) and (text := metric_text(value)) is not None:
            return {"metric": text}
        if (foreign := foreign_kind(value)) is not None:
            parts = FOREIGN[foreign].pack(value)
            packed = {key: self.pack(entry, f"{where}.{key}") for key, entry in parts.items()}
            return {"foreign": foreign, "fields": packed}
        name = STORED_NAMES.get(type(value), type(value).__name__)
        stored_class = PARTS.get(name)
        if stored_class is None or stored_class.cls is not type(value) or not stored_class.holds(value):
            raise self._refusal(value, where)
        fields = {key: self.pack(getattr(value, key), f"{where}.{key}") for key in stored_class.fields}
        return {"part": name, "fields": fields}

    def _refusal(self, value: Any, where: str) -> ModelFileError:
        if isinstance(value, Metric):
            problem = f"{where} is {value}, whose text does not define it completely, so it cannot be saved"
            return ModelFileError(self.path, problem, FUNCTION)
        if callable(value):
            return ModelFileError(self.path, f"{where} is a function, which cannot be saved", FUNCTION)
        problem = f"{where} is a {type(value).__name__}, which cannot be saved"
        return ModelFileError(self.path, problem, OTHER)

    def _store_array(self, array: NDArray[Any], where: str) -> str:
        """Add the array to the files, unless it is there already; return the name of its file."""
        if id(array) not in self.names:
            if array.dtype.kind not in STORED_DTYPES:
                raise ModelFileError(self.path, f"{where} has the type {array.dtype}, which cannot be saved")
            stream, name = io.BytesIO(), self._free_name(where, ".npy")
            np.save(stream, array, allow_pickle=False)
            self.files[name], self.names[id(array)] = stream.getvalue(), (name, array)
        return self.names[id(array)][0]

    def _free_name(self, where: str, suffix: str) -> str:
        name = ODD.sub("_", where)[:100].strip(".")
        candidate, number = name + suffix, 0
        while candidate in self.files:
            number += 1
            candidate = f"{name}-{number}{suffix}"
        return candidate


class Reader:
    """Reader of values from JSON, each checked against the kind that is expected."""

    def __init__(self, files: Mapping[str, bytes], *, native: bool = True) -> None:
        self.files = files  # contents by name, after their checksums were compared
        self.native = native  # allows models of other libraries, which these libraries parse
        self.used: set[str] = set()
        self.arrays: dict[tuple[str, bool], NDArray[Any]] = {}

    def read_checked(self, value: Any, kind: Kind, where: str) -> Any:
        """Read a value and check its kind."""
        parsed = self.read_value(value, where)
        if not kind.fits(parsed):
            raise UnreadableError(f"{where} is not {kind.what}")
        return parsed

    def read_value(self, value: Any, where: str) -> Any:
        """Read the value that the JSON stands for."""
        if isinstance(value, list):
            return [self.read_value(entry, f"{where}.{index}") for index, entry in enumerate(value)]
        if not isinstance(value, dict):
            return value
        keys = tuple(sorted(value))
        method, kinds = FORMS.get(keys, ("", ()))
        if not method or any(type(value[key]) is not kind for key, kind in zip(keys, kinds, strict=True)):
            raise UnreadableError(f"{where} is not a known part of a model")
        return getattr(self, method)(where, *(value[key] for key in keys))

    def _read_number(self, where: str, text: str) -> float:
        """Read a number that JSON has no word for."""
        require(text in ("nan", "inf", "-inf"), f"{where} is no number")
        return float(text)

    def _read_several(self, where: str, values: list[Any]) -> tuple[Any, ...]:
        return tuple(self.read_value(values, where))

    def _read_by_name(self, where: str, values: dict[str, Any]) -> dict[str, Any]:
        return {key: self.read_value(entry, f"{where}.{key}") for key, entry in values.items()}

    def _read_pairs(self, where: str, pairs: list[Any]) -> dict[Any, Any]:
        """Read a dictionary whose keys are not text."""
        return {self.read_value(key, where): self.read_value(entry, where) for key, entry in pairs}

    def _read_metric(self, where: str, text: str) -> Metric:
        with _naming_location(where):
            return read_metric(text)

    def _read_part(self, where: str, fields: dict[str, Any], name: str) -> Any:
        return self._build_object(where, PARTS, name, fields)

    def _read_foreign(self, where: str, fields: dict[str, Any], name: str) -> Any:
        require(self.native, f"{where} is a model of another library, which is not asked for here")
        return self._build_object(where, FOREIGN, name, fields)

    def _build_object(self, where: str, table: Mapping[str, Any], name: str, fields: dict[str, Any]) -> Any:
        fits = name in table and fields.keys() == table[name].fields.keys()
        require(fits, f"{where} has not the fields of a {name}")
        kinds = table[name].fields
        values = {key: self.read_checked(fields[key], kinds[key], f"{where}.{key}") for key in fields}
        with _naming_location(where):
            return table[name].build(**values)

    def _read_contents(self, where: str, name: str) -> bytes:
        require(name in self.files, f"{where} is in no file")
        self.used.add(name)
        return self.files[name]

    def _read_array(self, where: str, name: str, read_only: bool) -> NDArray[Any]:
        """Read an array; the same name gives the same array."""
        if (name, read_only) not in self.arrays:
            contents = self._read_contents(where, name)
            _check_size(name, contents)
            array = np.load(io.BytesIO(contents), allow_pickle=False)
            array.flags.writeable = not read_only
            self.arrays[name, read_only] = array
        return self.arrays[name, read_only]


@contextmanager
def _naming_location(where: str) -> Iterator[None]:
    """Add the location in the file to errors of the library."""
    try:
        yield
    except MissingExtraError:
        raise
    except ConcordantError as error:
        raise UnreadableError(f"{where} is wrong: {str(error).partition(chr(10))[0]}") from error


def _check_size(name: str, contents: bytes) -> None:
    """Check the type and size that an array states against its bytes, before memory is taken for it."""
    stream = io.BytesIO(contents)
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    # Any number of entries of 0 bytes fits in a file.
    if dtype.kind not in STORED_DTYPES or not dtype.itemsize:
        raise UnreadableError(f"{name} has the type {dtype}, which cannot be saved")
    size = len(contents) - stream.tell()
    require(math.prod(shape) * dtype.itemsize == size, f"{name} is of another size than it says")
    longest = max(shape, default=0)  # beside an axis of 0
    require(longest <= LONGEST, f"{name} has an axis of {longest:,}")
