"""Numbers, times and lists in words, for pages, log and terminal. JSON and CSV hold the plain values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

_LONG_NAME = 16
"""Names up to this many characters are short enough as they are."""
_BREAKS = "-_./: "
_WORDS = re.compile(r"[-_./: ]+|[^-_./: 0-9]+|[0-9]+")


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 run`, `2 runs`, `12,000 words`; `nouns` is a plural that does not only add an s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def plural_range(counts: Iterable[int], noun: str) -> str:
    """`3 seeds` where all counts are alike, else from the least to the most: `2 to 3 seeds`."""
    least, *_, most = sorted(([*counts] or [0]) * 2)
    return plural(most, noun) if least == most else f"{least} to {plural(most, noun)}"


def capitalised(words: str) -> str:
    """The words with a capital first letter, the others as they are: `all data` becomes `All data`."""
    return words[:1].upper() + words[1:]


def uncapitalised(words: str) -> str:
    """The words as within a sentence, where the first is no name: `two tag sets`, but `NER` and `BiLSTM`."""
    first, *rest = words.split(" ")
    return " ".join([first.lower() if first.istitle() else first, *rest])


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def in_words(count: int) -> str:
    """A number within a sentence: `five`, but `11`."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


def all_of(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def any_of(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def first_of(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def without_shared(names: Sequence[str]) -> dict[str, str]:
    """Short names by name: long names without the words that all of them begin or end with."""
    parts = [_WORDS.findall(name) for name in names]
    if len(set(names)) < 2 or max(map(len, names)) <= _LONG_NAME:
        return {name: name for name in names}
    start = _shared(parts)
    end = _shared([words[start:][::-1] for words in parts])
    cut = ["".join(words[start : len(words) - end]).strip(_BREAKS) for words in parts]
    return dict(zip(names, cut if all(cut) and len(set(cut)) == len(set(names)) else names, strict=True))


def _shared(parts: Sequence[Sequence[str]]) -> int:
    """The number of first words that all share; at least one word of each is left."""
    alike = (len(set(words)) == 1 for words in zip(*(words[:-1] for words in parts), strict=False))
    return len(list(itertools.takewhile(bool, alike)))


def which_runs(ids: Sequence[int]) -> str:
    """`run 4`, `3 runs: 4 to 6`, `2 runs: 4, 7`."""
    if len(ids) == 1:
        return f"run {ids[0]}"
    consecutive = ids == list(range(ids[0], ids[0] + len(ids)))
    return f"{len(ids)} runs: " + (f"{ids[0]} to {ids[-1]}" if consecutive else ", ".join(map(str, ids)))


def number(value: float | None) -> str:
    """A setting as a researcher writes it: 0.01, 2e-4, 16; a dash for None."""
    if value is None:
        return "–"
    if value != 0 and math.isfinite(value) and not 1e-3 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.4e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:g}"


UTC_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
"""How logs and histories write a moment of UTC."""


def percent(score: float | None) -> str:
    """A score in [0, 1] in percent with two decimals and no sign: `89.79`; a dash for None or NaN."""
    return "–" if score is None or math.isnan(score) else f"{100 * score:.2f}"


def points(difference: float) -> float:
    """A difference of two scores in percentage points, for a table with two decimals."""
    return unsigned_zero(100 * difference, 2)


def points_text(difference: float) -> str:
    """A difference of two scores in percentage points, with a sign only below zero: `0.31`, `−0.31`."""
    return f"{100 * difference:z.2f}".replace("-", "−")


def signed_points(difference: float) -> str:
    """A difference of two scores in percentage points: `+0.31`, `−0.31`; no sign on `0.00`."""
    text = points_text(difference)
    return text if text.startswith("−") or text == "0.00" else f"+{text}"


def spread_text(sd: float | None, digits: int = 2) -> str:
    """`± 0.31`; empty for None or NaN."""
    return "" if sd is None or math.isnan(sd) else f"± {sd:.{digits}f}"


def unsigned_zero(value: float, decimals: int) -> float:
    """The value, or 0.0 where it rounds to zero, so that a table does not print -0.00."""
    return value if round(value, decimals) else 0.0


def p_text(p: float | None) -> str:
    """A p-value with three decimals; empty for None."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_sentence(p: float | None) -> str:
    """`p = 0.005`, `p < 0.001`; empty for None."""
    return f"p {'= ' * (p >= 0.001)}{p_text(p)}" if p is not None else ""


def duration(seconds: float | None) -> str:
    """`under 1 s`, `40 s`, `4 min`, `2 h 5 min`, `4 days`; a dash for None or NaN."""
    # humanize says `2 hours` of 2 h 5 min, or `2 hours and 5 minutes`: less exact, or too long for a table.
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return _in_minutes(seconds)


def _in_minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours > 72:
        return f"{hours / 24:.0f} days"
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def about_time(seconds: float) -> str:
    """An estimated duration: `about 40 s`, `under 1 s`."""
    return duration(seconds) if seconds < 1 else f"about {duration(seconds)}"


def span(least: float, most: float) -> str:
    """Two durations in seconds as a range: `15 to 35 min`, `40 s to 2 min`; one if they read the same."""
    return _range(duration(least), duration(most))


def _range(first: str, last: str) -> str:
    if first == last:
        return first
    value, _, unit = first.partition(" ")
    return f"{value if unit == last.partition(' ')[2] else first} to {last}"


def size(number_of_bytes: float) -> str:
    """`40 kB`, `90 MB`, `1.2 GB`."""
    megabytes = number_of_bytes / 1e6
    if megabytes < 0.9995:
        return f"{number_of_bytes / 1000:.0f} kB"
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 999.5 else f"{megabytes:.0f} MB"


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """`just now`, `4 min ago`; `never` for None."""
    if moment is None:
        return "never"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "just now" if seconds < 5 else f"{duration(seconds)} ago"
