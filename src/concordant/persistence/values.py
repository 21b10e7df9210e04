"""Values of models as JSON and arrays, and back."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.exceptions import ConcordantError, ModelFileError
from concordant.persistence.kinds import Kind
from concordant.persistence.registry import PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["Packer", "Reader", "UnreadableError"]

FUNCTION = "use a kernel of the library by its name; with one of your own, keep the code and fit again."


class UnreadableError(Exception):
    """What is wrong with a file, said by those who do not know its name."""

    def __init__(
        self, problem: str, hint: str = "it is damaged, or was changed by hand: write it again."
    ) -> None:
        super().__init__(problem)
        self.hint = hint


class Packer:
    """Values become JSON; arrays become files, one each, however often they occur.

    Attributes
    ----------
    files
        Contents of each .npy file, by name.
    """

    def __init__(self, path: object) -> None:
        self.path = path
        self.files: dict[str, bytes] = {}
        self.names: dict[int, str] = {}

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
        if isinstance(value, list):
            return [self.packed(one, f"{where}.{place}") for place, one in enumerate(value)]
        if isinstance(value, dict):
            return {"values": {key: self.packed(one, f"{where}.{key}") for key, one in value.items()}}
        return self.packed_part(value, where)

    def packed_part(self, value: Any, where: str) -> Any:
        """Give the JSON of an object, field by field."""
        name = type(value).__name__
        if name not in PARTS or PARTS[name][0] is not type(value):
            if callable(value):
                raise ModelFileError(self.path, f"{where} is a function, which no file can hold", FUNCTION)
            raise ModelFileError(self.path, f"{where} is a {name}, which no file can hold")
        fields = {key: self.packed(getattr(value, key), f"{where}.{key}") for key in PARTS[name][1]}
        return {"part": name, "fields": fields}

    def stored(self, array: NDArray[Any], where: str) -> str:
        """Give the name of the file that holds the array."""
        if id(array) not in self.names:
            if array.dtype.kind not in "biufUSMm":
                raise ModelFileError(self.path, f"{where} has the type {array.dtype}, which no file can hold")
            stream, name = io.BytesIO(), f"{where}.npy"
            np.save(stream, array, allow_pickle=False)
            self.files[name], self.names[id(array)] = stream.getvalue(), name
        return self.names[id(array)]


class Reader:
    """JSON becomes values, each checked against what may stand there."""

    def __init__(self, archive: zipfile.ZipFile, digests: Mapping[str, str]) -> None:
        self.archive, self.digests = archive, digests
        self.arrays: dict[tuple[str, bool], NDArray[Any]] = {}

    def checked(self, value: Any, kind: Kind, where: str) -> Any:
        """Give a value of this kind."""
        found = self.value(value, where)
        if not kind.fits(found):
            raise UnreadableError(f"{where} is not {kind.what}")
        return found

    def scalar(self, value: Any, where: str) -> Any:
        """Give a parameter: a number, text, true, false or null."""
        found = self.value(value, where)
        if found is not None and not isinstance(found, (bool, int, float, str)):
            raise UnreadableError(f"the parameter {where} is neither a number nor text")
        return found

    def value(self, value: Any, where: str) -> Any:
        """Give what the JSON stands for."""
        if isinstance(value, list):
            return [self.value(one, f"{where}.{place}") for place, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        match value:
            case {"float": ("nan" | "inf" | "-inf") as text, **others} if not others:
                return float(text)
            case {"array": str() as name, "read_only": bool() as read_only, **others} if not others:
                return self.array(name, read_only=read_only)
            case {"values": dict() as values, **others} if not others:
                return {key: self.value(one, f"{where}.{key}") for key, one in values.items()}
            case {"part": str() as name, "fields": dict() as fields, **others} if (
                not others and name in PARTS
            ):
                return self.part(name, fields, where)
        raise UnreadableError(f"{where} is nothing that a model consists of")

    def part(self, name: str, fields: dict[str, Any], where: str) -> Any:
        """Give an object, made of its fields."""
        made, kinds = PARTS[name]
        if fields.keys() != kinds.keys():
            raise UnreadableError(f"{where} has not the fields of a {name}")
        given = {key: self.checked(value, kinds[key], f"{where}.{key}") for key, value in fields.items()}
        try:
            return made(**given)
        except ConcordantError as error:
            raise UnreadableError(f"{where} is wrong: {str(error).partition(chr(10))[0]}") from error

    def array(self, name: str, *, read_only: bool) -> NDArray[Any]:
        """Give an array of the file, its checksum compared; the same one for the same name."""
        if (name, read_only) not in self.arrays:
            contents = self.archive.read(name)
            if hashlib.sha256(contents).hexdigest() != self.digests[name]:
                raise UnreadableError(f"{name} does not have the checksum that was written with it")
            array = np.load(io.BytesIO(contents), allow_pickle=False)
            array.flags.writeable = not read_only
            self.arrays[name, read_only] = array
        return self.arrays[name, read_only]
