"""Words on the page: user text made safe for Markdown, numbers and times put in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

# What Streamlit turns into something else after Markdown has been read, where a backslash no longer helps:
# :shortcodes: and :material/icons:, typographic arrows, bare web and mail addresses. A word joiner, which
# has no width, keeps each apart.
_SHORTCODE = re.compile(r":(?=[\w+\-/]+:)")
_ARROW = re.compile(r"([<>\-=~])(?=[\-<>=])")
_ADDRESS = re.compile(r"(https?:|www(?=\.)|@)", re.IGNORECASE)
_JOINER = "\u2060"


# Names in which no Markdown can be, and what would be some all the same.
_PLAIN = re.compile(r"[^\W_](?:[\w .,·−–/-]*[^\W_])?")
_MARKED = re.compile(r"(?<![^\W_])_|_(?![^\W_])|--|www\.", re.IGNORECASE)


def escape(text: object) -> str:
    """User text as it stands, safe inside any Markdown that Streamlit renders.

    Line breaks become spaces, since a label or a sentence is one line.
    """
    one_line = " ".join(str(text).split())
    for pattern in (_ADDRESS, _SHORTCODE):
        one_line = pattern.sub(lambda match: match.group(0) + _JOINER, one_line)
    one_line = _ARROW.sub(lambda match: match.group(1) + _JOINER, one_line)
    return _PUNCTUATION.sub(r"\\\1", one_line)


def option(text: object) -> str:
    """User text as one of the choices of `st.segmented_control` or `st.pills`, which are read as Markdown.

    As it stands where Markdown finds nothing in it, since a choice is also what the page's address holds.
    """
    as_it_is = str(text)
    return as_it_is if _PLAIN.fullmatch(as_it_is) and not _MARKED.search(as_it_is) else escape(as_it_is)


def plotly_text(text: object) -> str:
    """User text inside a figure: Plotly reads a few HTML tags and `%{…}`, so neither may survive."""
    return " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace("%{", "%\u2060{")


def plural(number_of: int, noun: str, nouns: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{number_of:,} {noun if number_of == 1 else nouns or noun + 's'}"


def all_of(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def count(value: int) -> str:
    """A whole number with separators of thousands."""
    return f"{value:,}"


def percent(share: float | None) -> str:
    """A score in [0, 1] in percent with two decimals; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.2f}"


def points(share: float) -> float:
    """A difference of two scores in points, for a table with two decimals."""
    return unsigned_zero(100 * share, 2)


def unsigned_zero(value: float, decimals: int) -> float:
    """The value, or 0.0 where so many decimals show nothing of it: a table would print -0.00."""
    return value if round(value, decimals) else 0.0


def duration(seconds: float | None) -> str:
    """A time span in words: `40 s`, `4 min`, `2 h 5 min`."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def span(least: float, most: float) -> str:
    """Two times as a range in words: `15 to 35 min`, `40 s to 2 min`; one where they read the same."""
    first, last = duration(least), duration(most)
    if first == last:
        return first
    first_number, _, first_unit = first.partition(" ")
    _, _, last_unit = last.partition(" ")
    return f"{first_number if first_unit == last_unit else first} to {last}"


def size(number_of: float) -> str:
    """So many bytes in words: `40 kB`, `90 MB`, `1.2 GB`."""
    megabytes = number_of / 1e6
    if megabytes < 0.9995:
        return f"{number_of / 1000:.0f} kB"
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 999.5 else f"{megabytes:.0f} MB"


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago that was, in words."""
    if moment is None:
        return "never"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "just now" if seconds < 5 else f"{duration(seconds)} ago"
