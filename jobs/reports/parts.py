"""The parts of a report as values: headings, paragraphs, lists, code, and tables of entries.

All texts are plain, and numbers are numbers: `jobs.reports.render` writes them in each format, and pages show
them by `dashboard.shared.downloads.show_table`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.evaluation.comparison import HIGHER, Comparison
from core.evaluation.costs import Cost
from core.evaluation.statistics import MeanSD
from core.studies.published import Published
from core.tasks.scores import percent_sign
from core.wording import duration, p_text

Form = str | Callable[[float], str]
"""The format of a number: a format of Python, or a function."""
SIGNED = "+z.2f"
"""The form of a difference in points."""


@dataclass(frozen=True)
class Entry:
    """A cell of a table: a plain text, or a number that each format writes in its own way.

    value      a text, or a number in `unit` (which is in the head of CSV files); NaN is undefined
    spread     (standard deviation,) or the two ends of an interval
    n          the number of seeds
    verdict    of a difference, where the table has no column for it
    is_quoted  a figure that others have published; `verdict` then compares ours with it
    step       of a verdict: how large its difference is in the table, 1 to 3, for a page that shades it
    """

    value: float | str
    spread: tuple[float, ...] = ()
    n: int | None = None
    unit: str = ""
    verdict: str = ""
    form: Form = "z.2f"
    bold: bool = False
    is_quoted: bool = False
    step: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the value is a number, which is aligned to the right."""
        return not isinstance(self.value, str)

    @property
    def is_defined(self) -> bool:
        """Whether the value is a text that is not empty, or a number that is not NaN."""
        return bool(self.value) if isinstance(self.value, str) else not math.isnan(self.value)

    @property
    def text(self) -> str:
        """The formatted value: `91.20`, `+0.31`; a dash where it is undefined."""
        return self.value if isinstance(self.value, str) else number_text(self.value, self.form)

    @property
    def spread_text(self) -> str:
        """The formatted spread, `± 0.31` or `[+0.10, +0.52]`; empty without one."""
        if len(self.spread) == 1:
            return f"± {number_text(self.spread[0], self._unsigned)}"
        return f"[{', '.join(number_text(end, self.form) for end in self.spread)}]" if self.spread else ""

    @property
    def csv_values(self) -> list[str]:
        """The value and the spread for programs; empty texts where they are undefined."""
        if isinstance(self.value, str):
            return [self.value]
        return [
            _csv_number(self.value, self.form),
            *(
                _csv_number(value, self._unsigned if len(self.spread) == 1 else self.form)
                for value in self.spread
            ),
        ]

    @property
    def _unsigned(self) -> Form:
        return self.form.lstrip("+") if isinstance(self.form, str) else self.form


def number_text(value: float | None, form: Form) -> str:
    """Formats a number with a typographic minus, and no sign on a zero; a dash for NaN and None."""
    if value is None or math.isnan(value):
        return "–"
    if not isinstance(form, str):
        return form(value)
    text = format(value, form).replace("-", "−")
    return text if text.strip("+0.") else text.lstrip("+")


def _csv_number(value: float, form: Form) -> str:
    """Formats a number for programs; empty for NaN."""
    if math.isnan(value):
        return ""
    return number_text(value, form.replace(",", "") if isinstance(form, str) else form).replace("−", "-")


Row = tuple[str, tuple[Entry | None, ...]]
"""The name of a row, and its cells; None is an empty cell."""


@dataclass(frozen=True)
class Block:
    """Rows that are grouped under a title, which may be empty."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Sheet:
    """A table ready to be written. `head` begins with the title of the rows, `bold` explains bold cells.

    `signature` is a line on what the figures depend on (`core.results.signature`), the end of the caption.

    `hides_n`: the caption has the number of seeds, which is the same everywhere. Verdicts are marks (bold,
    italic, colours), or text where `writes_verdicts`.
    """

    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    caption: str = ""
    bold: str = ""
    signature: str = ""
    hides_n: bool = False
    writes_verdicts: bool = False

    @classmethod
    def of(
        cls,
        head: Sequence[str],
        rows: Iterable[Sequence[Any]],
        caption: str = "",
        *,
        writes_verdicts: bool = False,
    ) -> Sheet:
        """Makes a table of one block; each row is a name, then entries, texts or None."""
        named = tuple(
            (name, tuple(Entry(cell) if isinstance(cell, str) else cell for cell in cells))
            for name, *cells in rows
        )
        return cls(tuple(head), (Block("", named),), caption, writes_verdicts=writes_verdicts)

    def captioned(self, mark: str = "Bold") -> str:
        """The caption, where a cell is bold with the meaning of `mark`, and the signature."""
        entries = [entry for block in self.blocks for _, row in block.rows for entry in row]
        marked = self.bold and any(entry is not None and entry.bold for entry in entries)
        texts = (self.caption, f"{mark}: {self.bold}" if marked else "", self.signature)
        return " ".join(filter(None, texts))


@dataclass(frozen=True)
class Heading:
    """The title of a section (level 2) or subsection (3), with `name` in brackets behind it."""

    title: str
    level: int = 2
    name: str = ""

    @property
    def text(self) -> str:
        """The title and the name."""
        return f"{self.title} ({self.name})" if self.name else self.title


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Commands or formulas to copy."""

    lines: tuple[str, ...]


Part = str | Heading | Items | Sheet | Code
"""A part of a report; a `str` is a paragraph."""


def mean_entry(
    values: MeanSD, digits: int = 2, scale: float = 1.0, *, bold: bool = False, unit: str = ""
) -> Entry:
    """An entry of mean ± standard deviation over seeds, and their number."""
    return Entry(
        scale * values.mean, spread_of(values.sd, scale), values.n, unit, form=f"z.{digits}f", bold=bold
    )


def spread_of(sd: float | None, scale: float = 1.0) -> tuple[float, ...]:
    """The spread of an Entry with this standard deviation; empty for None or NaN."""
    return () if sd is None or math.isnan(sd) else (scale * sd,)


def score_entry(scores: MeanSD | None, *score_names: str, bold: bool = False) -> Entry | None:
    """An entry of a score times 100, or of a mean over scores by these names."""
    sign = percent_sign(score_names)
    return None if scores is None else mean_entry(scores, scale=100, bold=bold, unit=sign)


def difference_entry(
    difference: Comparison | None, *, bold: bool = False, verdict: bool = False, seeds: bool = False
) -> Entry | None:
    """An entry of a difference in points, with its interval.

    With `bold` it is bold where the verdict is higher; with `verdict` it has the verdict, with `seeds` the
    number of seeds.
    """
    if difference is None:
        return None
    return Entry(
        100 * difference.mean,
        tuple(100 * end for end in difference.interval or ()),
        n=difference.seeds if seeds else None,
        unit="points",
        verdict=difference.verdict if verdict else "",
        form=SIGNED,
        bold=bold and difference.verdict == HIGHER,
    )


def p_entry(p: float | None) -> Entry | None:
    """An entry of a p-value; None for None."""
    return None if p is None else Entry(p, form=p_text)


COST_HEAD = ("parameters", "trained", "peak memory", "time per seed")
"""The columns of `cost_entries`."""


def cost_entries(cost: Cost | None) -> tuple[Entry, Entry, Entry, Entry]:
    """Entries of parameters, trained parameters, peak memory and time; undefined where unknown."""
    unknown = Entry(math.nan)
    if cost is None:
        return (unknown,) * 4
    kinds = ", ".join(cost.devices)
    memory = cost.memory and Entry(cost.memory / 2**30, form=lambda size: f"{size:.2f} GB ({kinds})")
    return (
        Entry(cost.parameters, form=_parameters),
        Entry(cost.trained, form=_parameters),
        memory or unknown,
        unknown if cost.seconds is None else Entry(cost.seconds, form=duration),
    )


def _parameters(count: float) -> str:
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count:,.0f}"


def published_entry(figure: Published | None, verdict: str = "") -> Entry | None:
    """An entry of a published figure with its spread and the verdict on ours."""
    if figure is None:
        return None
    return Entry(figure.mean, (figure.sd,), verdict=verdict, is_quoted=True)
