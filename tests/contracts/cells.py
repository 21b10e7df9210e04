"""The matrix: each subject x each argument x each defect of it."""

from dataclasses import dataclass
from typing import Any

from tests.contracts.defects import DEFECTS
from tests.contracts.outcomes import tried
from tests.contracts.subjects import subjects


@dataclass(frozen=True, eq=False)
class Cell:
    """One argument of one subject, damaged in one way."""

    subject: Any
    argument: str
    defect: str

    @property
    def name(self):
        return f"{self.subject.name} {self.argument} {self.defect}"

    def outcome(self):
        """Call it."""
        sound_arguments = self.subject.arguments
        damaged = DEFECTS[self.subject.roles[self.argument]][self.defect](sound_arguments[self.argument])
        arguments = {**sound_arguments, **self.subject.elsewhere, self.argument: damaged}
        words = self.subject.patterns.get(self.argument, self.argument)
        return tried(lambda: self.subject.call(**arguments), words)


def cells():
    """All of them, subject by subject."""
    for subject in subjects():
        for argument, role in subject.roles.items():
            for defect in DEFECTS[role]:
                yield Cell(subject, argument, defect)
