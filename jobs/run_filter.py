"""Runs found by text and by field: `paradigm:mrn lambda<0.1 -status:failed "to check"`.

    filter  := term*                         all of them must hold
    term    := ["-"] (word | condition)      a minus turns it round
    condition := field (":" | "=" | "!=") value ("," value)* | field ("<" | "<=" | ">" | ">=") value
    word, value := "in quotes" | without spaces

A word is looked for in the paradigm, λ, tasks, corpus, encoder, tags and note, whatever its case; one of
digits is also a run's number. Of the values of a condition one must hold; `*` is a wildcard but in quotes,
where a backslash takes away the meaning of the next character.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import MRNLabError
from core.lists import whole_number
from core.store import Run
from jobs.filter_fields import ALIASES, FIELDS, Test, Value

__all__ = ["FilterError", "RunFilter", "parse_filter", "quoted"]

_FIELD = re.compile(r"([^\W\d]\w*)(<=|>=|!=|[:=<>])")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_LONE_OPERATOR = re.compile(r"<=|>=|!=|[:=<>]")


class FilterError(MRNLabError):
    """A filter that cannot be read. `position` is where, counted from 0."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"Character {position + 1}: {message}")
        self.position = position


@dataclass(frozen=True)
class RunFilter:
    """What runs must be. Terms: the field that each asks for (None: a word) and its test."""

    terms: tuple[tuple[str | None, Test], ...] = ()

    def matches(self, run: Run) -> bool:
        """Whether all terms hold for the run."""
        return all(test(run) for _, test in self.terms)

    @property
    def fields(self) -> frozenset[str]:
        """The fields asked for."""
        return frozenset(field for field, _ in self.terms if field is not None)

    @property
    def archived(self) -> bool | None:
        """What `Store.runs` is to be asked for: archived runs only where the filter speaks of them."""
        return None if "archived" in self.fields else False


def quoted(text: str) -> str:
    """The text as one word or value of a filter that means just that text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_filter(text: str, now: datetime | None = None) -> RunFilter:
    """The filter that the text describes; the empty one lets every run through.

    `now` is what ages are counted from (default: this moment). Raises FilterError, which says what is wrong,
    where, and what there could be.
    """
    return RunFilter(tuple(_Reader(text, now or datetime.now(UTC)).terms()))


class _Reader:
    """Reads a filter from left to right."""

    def __init__(self, text: str, now: datetime) -> None:
        self._text, self._now, self._at = text, now, 0

    def terms(self) -> list[tuple[str | None, Test]]:
        terms = []
        while self._skip_spaces():
            terms.append(self._term())
            if self._at < len(self._text) and not self._text[self._at].isspace():
                raise FilterError(self._at, "after the closing quote must come a space.")
        return terms

    def _skip_spaces(self) -> bool:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text)

    def _term(self) -> tuple[str | None, Test]:
        negated = self._text[self._at] == "-"
        self._at += negated
        field, test = self._condition() if _FIELD.match(self._text, self._at) else (None, self._word())
        return field, (lambda run: not test(run)) if negated else test

    def _condition(self) -> tuple[str, Test]:
        start = self._at
        match = _FIELD.match(self._text, start)
        assert match is not None
        name, comparison = match.groups()
        field = FIELDS.get(ALIASES.get(name.lower(), name.lower()))
        if field is None:
            raise FilterError(start, _no_field(name))
        self._at = match.end()
        values = [self._value(name + comparison)]
        while comparison in (":", "=", "!=") and self._text[self._at : self._at + 1] == ",":
            self._at += 1
            values.append(self._value(name + comparison))
        try:
            test = field.test(":" if comparison in ("=", "!=") else comparison, values, self._now)
        except MRNLabError as error:
            raise FilterError(start, str(error)) from None
        return field.name, (lambda run: not test(run)) if comparison == "!=" else test

    def _value(self, before: str) -> Value:
        value = self._quoted() or self._bare(r"[^\s,]+")
        if value is None:
            raise FilterError(self._at, f"{before} needs a value, without a space between.")
        return value

    def _word(self) -> Test:
        start = self._at
        value = self._quoted() or self._bare(r"\S+")
        if value is None:
            raise FilterError(start, "a minus needs a word or field right after it.")
        if not value.quoted:
            if _LONE_OPERATOR.match(value.text):
                raise FilterError(
                    start, "write fields without spaces, lambda<0.1 say, or put text in quotes."
                )
            if value.text in ("AND", "OR", "NOT"):
                raise FilterError(
                    start,
                    "terms are joined by a space, and all must hold; for one of several values write "
                    "paradigm:mrn,mtl, and for not a minus, -status:failed.",
                )
        wanted = value.text.casefold()
        number = whole_number(wanted)
        return lambda run: run.id == number or wanted in _searched(run)

    def _quoted(self) -> Value | None:
        if self._text[self._at : self._at + 1] != '"':
            return None
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            raise FilterError(self._at, "this quote is not closed.")
        self._at = match.end()
        return Value(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL), quoted=True)

    def _bare(self, pattern: str) -> Value | None:
        match = re.compile(pattern).match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return Value(match[0])


def _searched(run: Run) -> str:
    """What words are looked for in, a line for each kind of thing."""
    config = run.config
    strength = "" if config.lambda_ is None else f" λ {config.lambda_:g}"
    lines = (f"{config.paradigm}{strength}", " ".join(config.tasks), config.corpus, config.encoder)
    return "\n".join((*lines, *run.tags, run.note)).casefold()


def _no_field(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), [*FIELDS, *ALIASES], n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return (
        f"there is no field '{name}'.{hint} Fields are {', '.join(FIELDS)}; text with such signs in quotes."
    )
