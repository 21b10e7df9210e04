"""TOML: read files with the position of errors, write values that read back unchanged."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concordant.exceptions import MalformedLineError, ParameterError

NONE = "none"  # TOML has no null
BARE = re.compile(r"[A-Za-z0-9_-]+")
PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
SPELLED = {"True": True, "False": False, "None": None, NONE: None}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; errors name the line."""
    contents = path.read_bytes()
    try:
        return tomllib.loads(contents.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise MalformedLineError(path, line, 0, "this is not UTF-8", "TOML is UTF-8 text.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        position = PLACE.search(str(error))
        last = contents.rstrip().count(b"\n") + 1
        line, column = (int(position[1]), int(position[2])) if position and position[1] else (last, 0)
        problem = PLACE.sub("", str(error)).rstrip(".")
        hint = 'a line is [section] or name = value; text stands in quotes, as in kind = "linear".'
        raise MalformedLineError(path, line, column, problem, hint) from error


def read_toml_setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Parse NAME=VALUE: a TOML value, or else text; none is None.

    >>> read_toml_setting("alpha=0.1"), read_toml_setting("hidden=[16, 8]"), read_toml_setting("f=none")
    (('alpha', 0.1), ('hidden', [16, 8]), ('f', None))
    """
    name, value = split_setting(text, option, "alpha=0.1")
    if value in SPELLED:
        return name, SPELLED[value]
    try:
        read = tomllib.loads(f"value = {value}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if value[0] in "\"'[{":
            raise ParameterError(option, text, f"NAME=VALUE with a TOML value ({error})") from error
        return name, plain_number(value)
    return name, read["value"] if read.keys() == {"value"} else value


def split_setting(text: str, option: str, example: str) -> tuple[str, str]:
    """Split NAME=VALUE into the name and the text of the value."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise ParameterError(option, text, f"NAME=VALUE, as in {example}")
    return name, value


def plain_number(text: str) -> float | str:
    """Parse numbers that Python reads and TOML or JSON do not (.5); return other text unchanged."""
    try:
        return float(text)
    except ValueError:
        return text


def toml_value(value: Any) -> str:
    """Format a value as TOML; None becomes the text "none".

    >>> print(toml_value({"a": [1, 2.5, True], "b c": None}))
    {a = [1, 2.5, true], "b c" = "none"}
    """
    if value is None:
        return toml_value(NONE)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{_toml_key(str(key))} = {toml_value(entry)}" for key, entry in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if BARE.fullmatch(name) else toml_value(name)


def toml_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Format sections, each a header and lines of name = value."""
    blocks = [
        "\n".join([f"[{name}]", *(f"{_toml_key(key)} = {toml_value(value)}" for key, value in lines.items())])
        for name, lines in sections.items()
    ]
    return "\n\n".join(blocks) + "\n"
