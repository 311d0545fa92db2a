"""What an honest case is: a right program that looks wrong, and its twin, which is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_leasecheck.testkit.script import Script, parse_script


@dataclass(frozen=True, slots=True)
class Honest:
    """One honest program, and what catches its twin.

    `subject` is `module:Class` within this package; the text is a script, semicolons end a line.
    `requires` are the moments that tempt; `notes` are titles of notes that the honest one gets.
    `twin` says in which way the twin is wrong; it plays the same script unless it has `other`.
    `drained`: the script ends with a drain, so that everything must have come to its end.
    """

    name: str
    about: str
    subject: str
    text: str
    requires: tuple[str, ...]
    twin: str
    invariant: str
    title: str
    culprit: str = "A#1"
    notes: tuple[str, ...] = ()
    other: str = ""

    def script(self, *, guilty: bool = False) -> Script:
        """The script, of the honest program or of its twin."""
        text = self.other if guilty and self.other else self.text
        lines = (line.strip() for line in text.replace(";", "\n").splitlines())
        return parse_script("\n".join(line for line in lines if line) + "\n")

    @property
    def drained(self) -> bool:
        """Whether its script ends with a drain."""
        return "drain" in self.text.split()
