"""Something that can be called, with sound arguments and what each of them is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

OF_GRADES = r"\by\b|grade|label"


@dataclass(frozen=True, eq=False)
class Subject:
    """Something that can be called.

    Attributes
    ----------
    name
        What it is called in a report.
    call
        Takes the arguments by keyword and gives a result that can be judged.
    arguments
        Sound values of the arguments.
    roles
        What each argument is: a key of `DEFECTS`.
    elsewhere
        Arguments that stand in for sound ones while another is damaged: as sound, and harder to go back from.
    patterns
        Pattern that an error about an argument matches; where absent, the argument's own name.
    """

    name: str
    call: Callable[..., Any]
    arguments: Mapping[str, Any]
    roles: Mapping[str, str]
    patterns: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, Any] = field(default_factory=dict)
