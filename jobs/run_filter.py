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
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from core.config import FIELD_HELP, RunConfig
from core.config.sweep import real_number, whole_number
from core.errors import MRNLabError
from core.plain_text import shortened
from core.store import ACTIVE, ENDED, Run, RunState

# The fields that a filter of runs can ask for: how each is read from a run, and what its values mean.


Test = Callable[[Run], bool]

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0")
_SPANS = {"min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(rf"([0-9]+(?:\.[0-9]+)?)({'|'.join(_SPANS)})")


@dataclass(frozen=True)
class Value:
    """One value as it was written. A quoted one is taken as it stands: its stars are no wildcards."""

    text: str
    quoted: bool = False

    @property
    def is_anything(self) -> bool:
        """Whether it asks only that there is a value."""
        return self.text == "*" and not self.quoted


@dataclass(frozen=True)
class FilterField(ABC):
    """A field by its public name, with what the help says of it. `read` gives its value for a run."""

    name: str
    description: str
    read: Callable[[Run], Any]

    @abstractmethod
    def test(self, comparison: str, values: Sequence[Value], now: datetime) -> Test:
        """What a run must be for `name comparison values`: `:` (any of the values), `<`, `<=`, `>` or `>=`.

        Raises MRNLabError that says which values there can be.
        """

    def _only_equal(self, comparison: str) -> None:
        if comparison != ":":
            raise MRNLabError(f"{self.name} has no order; write {self.name}:value.")


@dataclass(frozen=True)
class TextField(FilterField):
    """Words, any of which may match in whole (`within`: in part), whatever their case; `*` is a wildcard."""

    choices: Mapping[str, tuple[str, ...]] | None = None
    """What can be asked for, with the texts that it stands for; None where anything can."""
    within: bool = False

    def test(self, comparison: str, values: Sequence[Value], now: datetime) -> Test:
        self._only_equal(comparison)
        tests = [self._one(value) for value in values]

        def test(run: Run) -> bool:
            texts = [str(text).casefold() for text in self.read(run)]
            return any(one(text) for one in tests for text in texts)

        return test

    def _one(self, value: Value) -> Callable[[str], bool]:
        """Whether a text, in lower case, is what the value asks for."""
        wanted = value.text.casefold()
        if "*" in wanted and not value.quoted:
            parts = wanted.split("*")
            return partial(_follow, ["", *parts, ""] if self.within else parts)
        if self.choices is None:
            return (lambda text: wanted in text) if self.within else wanted.__eq__
        if wanted not in self.choices:
            raise MRNLabError(
                f"{self.name} is one of {', '.join(self.choices)}, not '{shortened(value.text)}'."
            )
        return self.choices[wanted].__contains__


def _follow(parts: Sequence[str], text: str) -> bool:
    """Whether the text is these parts in their order with anything between them.

    Each part is taken where it is found first; a regular expression tries all places, which may take years.
    """
    first, *middle, last = parts
    at, end = len(first), len(text) - len(last)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in middle:
        if (found := text.find(part, at, end)) < 0:
            return False
        at = found + len(part)
    return True


@dataclass(frozen=True)
class NumberField(FilterField):
    """A number, None where a run has none; then only a negated question is answered with yes."""

    def test(self, comparison: str, values: Sequence[Value], now: datetime) -> Test:
        if comparison in _ORDERS:
            compare, bound = _ORDERS[comparison], self._number(values[0])
            return lambda run: _is_number(value := self.read(run)) and compare(value, bound)
        wanted = {self._number(value) for value in values if not value.is_anything}
        if len(wanted) < len(values) and any(value.is_anything for value in values):
            return lambda run: _is_number(self.read(run))
        return lambda run: _is_number(value := self.read(run)) and value in wanted

    def _number(self, value: Value) -> float:
        number = real_number(value.text)
        if number is None:
            raise MRNLabError(f"{self.name} is a number, not '{shortened(value.text)}'.")
        return number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class YesNoField(FilterField):
    """Yes or no."""

    def test(self, comparison: str, values: Sequence[Value], now: datetime) -> Test:
        self._only_equal(comparison)
        wanted = {answer for value in values for answer in self._answers(value)}
        return lambda run: self.read(run) in wanted

    def _answers(self, value: Value) -> tuple[bool, ...]:
        if value.is_anything:
            return (True, False)
        text = value.text.lower()
        if text not in (*_YES, *_NO):
            raise MRNLabError(f"{self.name} is yes or no, not '{value.text}'.")
        return (text in _YES,)


@dataclass(frozen=True)
class TimeField(FilterField):
    """A moment, compared with a day (`>2026-11-01`, this machine's time) or by its age (`<2h`)."""

    def test(self, comparison: str, values: Sequence[Value], now: datetime) -> Test:
        tests = [self._one(comparison, value, now) for value in values]
        return lambda run: (moment := self.read(run)) is not None and any(test(moment) for test in tests)

    def _one(self, comparison: str, value: Value, now: datetime) -> Callable[[datetime], bool]:
        if value.is_anything and comparison == ":":
            return lambda _: True
        if (span := _SPAN.fullmatch(value.text)) and comparison in _ORDERS:
            seconds, compare = float(span[1]) * _SPANS[span[2]], _ORDERS[comparison]
            return lambda moment: compare((now - moment).total_seconds(), seconds)
        try:
            day = datetime.fromisoformat(value.text)
            day = day.astimezone() if day.tzinfo is None else day
            following = day + timedelta(days=1)
        except (ValueError, OverflowError, OSError):
            raise MRNLabError(
                f"{self.name} takes a day such as {self.name}>2026-11-01, or an age such as "
                f"{self.name}<2h (min, h, d, w), not '{shortened(value.text)}'."
            ) from None
        if comparison in _ORDERS:
            compare = _ORDERS[comparison]
            return lambda moment: compare(moment, day)
        return lambda moment: day <= moment < following


def _config_field(name: str, attribute: str, annotation: Any) -> FilterField:
    """The field of a run's description, by the type of its values."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType] or [annotation]
    kind = annotation if get_origin(annotation) in (Literal, tuple) else kinds[0]
    description = FIELD_HELP[name].description

    def value(run: Run) -> Any:
        return getattr(run.config, attribute, None)

    if kind is bool:
        return YesNoField(name, description, value)
    if kind in (int, float):
        return NumberField(name, description, value)
    if get_origin(kind) is tuple:
        return TextField(name, description, lambda run: value(run) or ())
    if get_origin(kind) is Literal:
        choices = {choice: (choice,) for choice in get_args(kind)}
        return TextField(name, description, lambda run: (value(run),), choices)
    if name == "corpus":  # a folder also by its last part
        return TextField(name, description, lambda run: (value(run), PurePath(str(value(run))).name))
    return TextField(name, description, lambda run: () if value(run) is None else (value(run),))


_STATES = {state.value: (state.value,) for state in RunState} | {
    "stopping": (RunState.CANCELLING.value,),
    "active": tuple(state.value for state in sorted(ACTIVE)),
    "ended": tuple(state.value for state in sorted(ENDED)),
}


def _given(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def _created(run: Run) -> datetime:
    return run.created_at


_OWN: tuple[FilterField, ...] = (
    NumberField("run", "The number of the run.", lambda run: run.id),
    TextField("state", f"Where it is: {', '.join(_STATES)}.", lambda run: (run.state.value,), _STATES),
    TextField("tag", "A tag it has; tag:* any.", lambda run: run.tags),
    TextField("note", "Words in its note; note:* any.", lambda run: _given(run.note), within=True),
    YesNoField("archived", "Archived or not; unsaid, archived runs are left out.", lambda run: run.archived),
    TimeField("created", "When it was queued: after a day >2026-11-01, by age <2h.", _created),
    TimeField("ended", "When it ended, as created.", lambda run: run.finished_at),
    NumberField(
        "minutes",
        "Wall-clock minutes of training, so far or in all.",
        lambda run: None if run.seconds is None else run.seconds / 60,
    ),
    NumberField("priority", "What it waits with: higher ones start first.", lambda run: run.priority),
    TextField("sweep", "Words in the name of its launch.", lambda run: _given(run.sweep), within=True),
    TextField(
        "error",
        "Words in what made it fail.",
        lambda run: _given(f"{run.error.type} {run.error.message}" if run.error else None),
        within=True,
    ),
)  # fmt: skip

FIELDS: Mapping[str, FilterField] = {
    field.name: field
    for field in (
        *_OWN,
        *(
            _config_field(
                "lambda" if name == "lambda_" else name, name, RunConfig.model_fields[name].annotation
            )
            for name in RunConfig.model_fields
        ),
    )
}

ALIASES: Mapping[str, str] = {
    "id": "run",
    "status": "state",
    "tags": "tag",
    "task": "tasks",
    "launch": "sweep",
    **{help_.symbol: name for name, help_ in FIELD_HELP.items() if help_.symbol},
}
"""Other names of fields."""


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
