"""Reports as one HTML file: what is asked for, checked here, and made of the pages in a process of its own.

The library and the command line do not import the pages, so `python -m dashboard.report` makes the file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.errors import ConfigError, MRNLabError
from core.plain_text import shortened

PARTS: Mapping[str, str] = {
    "answer": "Answer",
    "table": "Scores",
    "forest": "Differences",
    "against": "Score against a setting",
    "curves": "Training",
    "where": "Where the difference comes from",
    "errors": "Kinds of errors",
    "relations": "Learned relations",
    "sentences": "Test sentences",
    "configuration": "Configuration, cost and how to repeat it",
    "appendix": "Reproducibility appendix",
}
"""The parts of a report in their order, with their titles."""
MOST_TEXT = 200_000
"""The most characters of the researcher's text."""
_PLACE = re.compile(r"^@([a-z]+)[ \t]*$", re.MULTILINE)
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class ReportAsked:
    """A report on these runs of the store at `url`. Raises ConfigError, which names the field.

    `text` is Markdown; a line `@table` in it puts what follows before that part, which else stands after the
    answer. `parts` are those of PARTS.
    """

    url: str
    runs: tuple[int, ...]
    split: str = "test"
    title: str = ""
    text: str = ""
    parts: tuple[str, ...] = tuple(PARTS)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ConfigError("runs", "runs: a report needs the numbers of finished runs.")
        if self.split not in ("dev", "test"):
            raise ConfigError("split", f"split: '{shortened(self.split)}' is not one of dev, test.")
        if not self.parts:
            raise ConfigError("parts", f"parts: name at least one of {', '.join(PARTS)}.")
        for field, names in (("parts", self.parts), ("text", self.places[1::2])):
            if unknown := [name for name in names if name not in PARTS]:
                mark = "@" * (field == "text")
                raise ConfigError(
                    field,
                    f"{field}: '{mark}{shortened(unknown[0])}' is no part of a report; parts are "
                    f"{', '.join(PARTS)}.",
                )
        if len(self.text) > MOST_TEXT:
            raise ConfigError(
                "text", f"text: {len(self.text):,} characters are more than {MOST_TEXT:,}; shorten it."
            )

    @property
    def places(self) -> list[str]:
        """The text in pieces: the first, then by turns the name of a part and the piece before it."""
        return _PLACE.split(self.text)


@dataclass(frozen=True)
class Report:
    """A report: the text of its file, and why parts that were asked for are not there."""

    html: str
    missing: Mapping[str, str]


def make_report(asked: ReportAsked) -> Report:
    """The report, made in a process of its own. Raises MRNLabError where nothing can be reported."""
    done = subprocess.run(
        [sys.executable, "-m", "dashboard.report"],
        input=json.dumps(asdict(asked)),
        capture_output=True,
        encoding="utf-8",
        cwd=_ROOT,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"The process that makes reports ended with {done.returncode}.\n{done.stderr}")
    answer = json.loads(done.stdout)
    if "problem" in answer:
        raise MRNLabError(answer["problem"])
    return Report(answer["html"], answer["missing"])
