"""TOML: files read with the place of what is wrong, values written so that they read back as themselves."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concordant.exceptions import MalformedLineError, ParameterError

__all__ = ["NONE", "read_setting", "read_toml", "toml_text", "toml_value"]

NONE = "none"  # TOML has no null
BARE = re.compile(r"[A-Za-z0-9_-]+")
PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
SPELLED = {"True": True, "False": False, "None": None, NONE: None}


def read_toml(path: Path) -> dict[str, Any]:
    """Give what a TOML file says, or the line on which it says nothing."""
    contents = path.read_bytes()
    try:
        return tomllib.loads(contents.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise MalformedLineError(path, line, 0, "this is not UTF-8", "TOML is UTF-8 text.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = PLACE.search(str(error))
        last = contents.rstrip().count(b"\n") + 1
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (last, 0)
        problem = PLACE.sub("", str(error)).rstrip(".")
        hint = 'a line is [section] or name = value; text stands in quotes, as in kind = "linear".'
        raise MalformedLineError(path, line, column, problem, hint) from error


def read_setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Give the name and the value of NAME=VALUE: a TOML value, or else text; none is None.

    >>> read_setting("alpha=0.1"), read_setting("surrogate=squared"), read_setting("hidden=[16, 8]")
    (('alpha', 0.1), ('surrogate', 'squared'), ('hidden', [16, 8]))
    """
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign and value):
        raise ParameterError(option, text, "NAME=VALUE, as in alpha=0.1")
    if value in SPELLED:
        return name, SPELLED[value]
    try:
        read = tomllib.loads(f"value = {value}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if value[0] in "\"'[{":
            raise ParameterError(option, text, f"NAME=VALUE with a TOML value ({error})") from error
        return name, plain_number(value)
    return name, read["value"] if read.keys() == {"value"} else value


def plain_number(text: str) -> float | str:
    """Give the number that a text is for Python, though not for TOML (.5), else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def toml_value(value: Any) -> str:
    """Give a value as TOML; None is the text "none".

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
            "{" + ", ".join(f"{toml_key(str(key))} = {toml_value(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """Give a key, in quotes where it needs them."""
    return name if BARE.fullmatch(name) else toml_value(name)


def toml_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Give a file of sections, each a few lines of name = value."""
    blocks = [
        "\n".join([f"[{name}]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in lines.items())])
        for name, lines in sections.items()
    ]
    return "\n\n".join(blocks) + "\n"
