"""A change of the source as data: lines after a line, or a new file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """Puts `text` behind the one place in a file that reads `after`; a new file, where `after` is empty."""

    path: str
    text: str
    after: str = ""

    def apply(self, root: Path) -> None:
        """Edits the file below `root`. Raises ValueError where `after` is not there exactly once."""
        file = root / self.path
        if not self.after:
            file.write_text(self.text, encoding="utf-8")
            return
        before = file.read_text(encoding="utf-8")
        if (times := before.count(self.after)) != 1:
            raise ValueError(f"{self.path} has {times} places that read {self.after!r}")
        file.write_text(before.replace(self.after, self.after + self.text), encoding="utf-8")


@dataclass(frozen=True)
class Recipe:
    """An example of a recipe of CONTRIBUTING.md: its heading, and the change that it asks for.

    `pins` are those of `tests/pins` that it might change, for pytest's `-k`; trained models take long.
    """

    heading: str
    edits: tuple[Edit, ...]
    pins: str = "not training and not on_models"
