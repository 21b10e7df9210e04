"""Values of models as JSON and files, and back."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from concordant.exceptions import ConcordantError, MissingExtraError, ModelFileError
from concordant.metrics.metric import Metric
from concordant.metrics.parse import metric as read_metric
from concordant.persistence.foreign import FOREIGN, Blob, foreign_of
from concordant.persistence.kinds import Kind
from concordant.persistence.parts import PARTS, text_of
from concordant.persistence.refusal import UnreadableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Packer", "Reader"]

FUNCTION = "use what the library has by its name; with code of your own, keep it and fit again."
OTHER = "set_params gives the model another one before it is saved: predictions do not read it."
FORMS: Mapping[tuple[str, ...], tuple[str, tuple[type, ...]]] = {  # keys of an object -> what reads it
    ("float",): ("number", (str,)),
    ("tuple",): ("several", (list,)),
    ("values",): ("by_name", (dict,)),
    ("items",): ("pairs", (list,)),
    ("metric",): ("metric", (str,)),
    ("bytes",): ("contents", (str,)),
    ("array", "read_only"): ("array", (str, bool)),
    ("fields", "part"): ("part", (dict, str)),
    ("fields", "foreign"): ("foreign", (dict, str)),
}
KEPT = "biufUSMm"  # kinds of arrays that are numbers, text or times and nothing else
LONGEST = 2**31  # of one axis
ODD = re.compile(r"[^A-Za-z0-9_.-]+")


class Packer:
    """Values become JSON; arrays and models of other libraries become files, one each.

    Attributes
    ----------
    files
        Contents of each file, by name.
    """

    def __init__(self, path: object) -> None:
        self.path = path
        self.files: dict[str, bytes] = {}
        self.names: dict[int, tuple[str, NDArray[Any]]] = {}  # with the array, or its id would be given anew

    def packed(self, value: Any, where: str) -> Any:
        """Give the JSON of a value; `where` says what it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            return {"array": self.stored(value, where), "read_only": not value.flags.writeable}
        if isinstance(value, list) or type(value) is tuple:
            several = [self.packed(one, f"{where}.{place}") for place, one in enumerate(value)]
            return several if isinstance(value, list) else {"tuple": several}
        if isinstance(value, dict):
            return self.packed_dict(value, where)
        return self.packed_object(value, where)

    def packed_dict(self, value: dict[Any, Any], where: str) -> Any:
        """Give the JSON of a dictionary: keys that are no text stand beside their values."""
        if all(type(key) is str for key in value):
            return {"values": {key: self.packed(one, f"{where}.{key}") for key, one in value.items()}}
        pairs = [[self.packed(key, where), self.packed(one, f"{where}.{key}")] for key, one in value.items()]
        return {"items": pairs}

    def packed_object(self, value: Any, where: str) -> Any:
        """Give the JSON of an object: a metric by its text, a part field by field."""
        if isinstance(value, Blob):
            name = self.free_name(where, value.suffix)
            self.files[name] = value.contents
            return {"bytes": name}
        if isinstance(value, Metric) and (text := text_of(value)) is not None:
            return {"metric": text}
        if (foreign := foreign_of(value)) is not None:
            fields = FOREIGN[foreign].packed(value)
            return {
                "foreign": foreign,
                "fields": {key: self.packed(one, f"{where}.{key}") for key, one in fields.items()},
            }
        name = type(value).__name__
        known = PARTS.get(name)
        if known is None or known.of is not type(value) or not known.holds(value):
            raise self.refusal(value, where)
        fields = {key: self.packed(getattr(value, key), f"{where}.{key}") for key in known.fields}
        return {"part": name, "fields": fields}

    def refusal(self, value: Any, where: str) -> ModelFileError:
        """Say that no file can hold this."""
        if isinstance(value, Metric):
            problem = f"{where} is {value}, whose text does not tell all of it: no file can hold it"
            return ModelFileError(self.path, problem, FUNCTION)
        if callable(value):
            return ModelFileError(self.path, f"{where} is a function, which no file can hold", FUNCTION)
        return ModelFileError(
            self.path, f"{where} is a {type(value).__name__}, which no file can hold", OTHER
        )

    def stored(self, array: NDArray[Any], where: str) -> str:
        """Give the name of the file that holds the array."""
        if id(array) not in self.names:
            if array.dtype.kind not in KEPT:
                raise ModelFileError(self.path, f"{where} has the type {array.dtype}, which no file can hold")
            stream, name = io.BytesIO(), self.free_name(where, ".npy")
            np.save(stream, array, allow_pickle=False)
            self.files[name], self.names[id(array)] = stream.getvalue(), (name, array)
        return self.names[id(array)][0]

    def free_name(self, where: str, suffix: str) -> str:
        """Give a name for a file, of few letters whatever the caller's words are."""
        name = ODD.sub("_", where)[:100].strip(".")
        return next(
            one
            for number in range(len(self.files) + 1)
            if (one := f"{name}{f'-{number}' if number else ''}{suffix}") not in self.files
        )


class Reader:
    """JSON becomes values, each checked against what may stand there.

    Parameters
    ----------
    files
        Contents by name, their checksums compared.
    native
        Whether models of other libraries may occur, which these libraries parse.
    """

    def __init__(self, files: Mapping[str, bytes], *, native: bool = True) -> None:
        self.files, self.native = files, native
        self.used: set[str] = set()
        self.arrays: dict[tuple[str, bool], NDArray[Any]] = {}

    def checked(self, value: Any, kind: Kind, where: str) -> Any:
        """Give a value of this kind."""
        found = self.value(value, where)
        if not kind.fits(found):
            raise UnreadableError(f"{where} is not {kind.what}")
        return found

    def value(self, value: Any, where: str) -> Any:
        """Give what the JSON stands for."""
        if isinstance(value, list):
            return [self.value(one, f"{where}.{place}") for place, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        keys = tuple(sorted(value))
        method, kinds = FORMS.get(keys, ("", ()))
        if not method or any(type(value[key]) is not kind for key, kind in zip(keys, kinds, strict=True)):
            raise UnreadableError(f"{where} is nothing that a model consists of")
        return getattr(self, method)(where, *(value[key] for key in keys))

    def number(self, where: str, text: str) -> float:
        """Give a number that JSON has no word for."""
        if text not in ("nan", "inf", "-inf"):
            raise UnreadableError(f"{where} is no number")
        return float(text)

    def several(self, where: str, values: list[Any]) -> tuple[Any, ...]:
        """Give a tuple."""
        return tuple(self.value(values, where))

    def by_name(self, where: str, values: dict[str, Any]) -> dict[str, Any]:
        """Give a dictionary."""
        return {key: self.value(one, f"{where}.{key}") for key, one in values.items()}

    def pairs(self, where: str, pairs: list[Any]) -> dict[Any, Any]:
        """Give a dictionary whose keys are no text."""
        return {self.value(key, where): self.value(one, where) for key, one in pairs}

    def metric(self, where: str, text: str) -> Metric:
        """Give the metric that is written so."""
        with named(where):
            return read_metric(text)

    def part(self, where: str, fields: dict[str, Any], name: str) -> Any:
        """Give an object of a class of ours."""
        return self.object(where, PARTS, name, fields)

    def foreign(self, where: str, fields: dict[str, Any], name: str) -> Any:
        """Give an object of another library's class."""
        if not self.native:
            raise UnreadableError(f"{where} is a model of another library, which is not asked for here")
        return self.object(where, FOREIGN, name, fields)

    def object(self, where: str, table: Mapping[str, Any], name: str, fields: dict[str, Any]) -> Any:
        """Give an object, made of its fields."""
        if name not in table or fields.keys() != table[name].fields.keys():
            raise UnreadableError(f"{where} has not the fields of a {name}")
        kinds = table[name].fields
        given = {key: self.checked(one, kinds[key], f"{where}.{key}") for key, one in fields.items()}
        with named(where):
            return table[name].made(**given)

    def contents(self, where: str, name: str) -> bytes:
        """Give a file as it is."""
        if name not in self.files:
            raise UnreadableError(f"{where} is in no file")
        self.used.add(name)
        return self.files[name]

    def array(self, where: str, name: str, read_only: bool) -> NDArray[Any]:
        """Give an array of the file; the same one for the same name."""
        if (name, read_only) not in self.arrays:
            contents = self.contents(where, name)
            check_size(name, contents)
            array = np.load(io.BytesIO(contents), allow_pickle=False)
            array.flags.writeable = not read_only
            self.arrays[name, read_only] = array
        return self.arrays[name, read_only]


@contextmanager
def named(where: str) -> Iterator[None]:
    """Let errors of the library name the place in the file."""
    try:
        yield
    except MissingExtraError:
        raise
    except ConcordantError as error:
        raise UnreadableError(f"{where} is wrong: {str(error).partition(chr(10))[0]}") from error


def check_size(name: str, contents: bytes) -> None:
    """Refuse an array of another kind or size than its bytes are, before room is made for it."""
    stream = io.BytesIO(contents)
    major, _ = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.kind not in KEPT or not dtype.itemsize:  # entries of no bytes: any number of them fits in a file
        raise UnreadableError(f"{name} has the type {dtype}, which no file can hold")
    if math.prod(shape) * dtype.itemsize != len(contents) - stream.tell():
        raise UnreadableError(f"{name} is of another size than it says")
    if max(shape, default=0) > LONGEST:  # beside an axis of 0
        raise UnreadableError(f"{name} has an axis of {max(shape):,}")
