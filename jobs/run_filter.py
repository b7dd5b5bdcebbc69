"""Runs found by text and by field: `paradigm:mrn lambda<0.1 -status:failed "to check"`.

    filter    := term*                       all of them must hold
    term      := ["-"] (word | condition)    a minus negates
    condition := field (":" | "=" | "!=") value ("," value)* | field ("<" | "<=" | ">" | ">=") value
    word, value := "in quotes" | without spaces

A word is looked for in the paradigm, λ, tasks, corpus, encoder and tags, whatever its case; one of
digits is also a run's number. Of the values of a condition one must hold; `*` is a wildcard but in quotes,
where a backslash takes away the meaning of the next character.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from core.config import FIELD_HELP, RunConfig
from core.config.sweep import real_number, whole_number
from core.errors import MRNLabError
from core.plain_text import shortened
from core.store import ACTIVE, ENDED, Run, RunState

Test = Callable[[Run], bool]
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ANSWERS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_SECONDS = {"min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(rf"([0-9]+(?:\.[0-9]+)?)({'|'.join(_SECONDS)})")
_FIELD = re.compile(r"([^\W\d]\w*)(<=|>=|!=|[:=<>])")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_LONE_OPERATOR = re.compile(r"<=|>=|!=|[:=<>]")


class Value(NamedTuple):
    """One value as it was written. A quoted one is taken as it stands: its stars are no wildcards."""

    text: str
    quoted: bool

    @property
    def has_wildcard(self) -> bool:
        return "*" in self.text and not self.quoted


@dataclass(frozen=True)
class FilterField:
    """A field by its public name. `read` gives its value for a run, None where the run has none.

    Of "text" and "words" `read` gives a tuple, or nothing: a value must be equal to one of it, or be in one.
    `choices` are the texts that can be asked for, with those that each stands for.
    """

    name: str
    kind: Literal["text", "words", "number", "flag", "time"]
    description: str
    read: Callable[[Run], Any]
    choices: Mapping[str, tuple[str, ...]] | None = None

    def matcher(self, comparison: str, value: Value, now: datetime) -> Callable[[Any], bool]:
        """Whether a run's value is what `name comparison value` asks for: `:`, `<`, `<=`, `>` or `>=`.

        Raises MRNLabError that says which values there can be.
        """
        if self.kind in ("text", "words", "flag") and comparison != ":":
            raise MRNLabError(f"{self.name} has no order; write {self.name}:value.")
        if self.kind in ("text", "words"):
            fits = self._text_matcher(value)
            return lambda texts: any(fits(str(text).casefold()) for text in texts or ())
        if comparison == ":" and value == ("*", False):
            return lambda known: known is not None
        if self.kind == "time":
            return self._time_matcher(comparison, value.text, now)
        if self.kind == "flag":
            if value.text.lower() not in _ANSWERS:
                raise MRNLabError(f"{self.name} is yes or no, not '{value.text}'.")
            answer = _ANSWERS[value.text.lower()]
            return lambda known: known is answer
        number = real_number(value.text)
        if number is None:
            raise MRNLabError(f"{self.name} is a number, not '{shortened(value.text)}'.")
        compare: Callable[[Any, Any], bool] = _ORDERS.get(comparison, operator.eq)
        return lambda known: isinstance(known, int | float) and compare(known, number)

    def _text_matcher(self, value: Value) -> Callable[[str], bool]:
        wanted = value.text.casefold()
        if value.has_wildcard:
            parts = wanted.split("*")
            return partial(_contains_in_order, ["", *parts, ""] if self.kind == "words" else parts)
        if self.choices is None:
            return (lambda text: wanted in text) if self.kind == "words" else (lambda text: wanted == text)
        if wanted not in self.choices:
            choices = ", ".join(self.choices)
            raise MRNLabError(f"{self.name} is one of {choices}, not '{shortened(value.text)}'.")
        stands_for = self.choices[wanted]
        return lambda text: text in stands_for

    def _time_matcher(self, comparison: str, text: str, now: datetime) -> Callable[[datetime | None], bool]:
        """A moment, compared with a day (`>2026-11-01`, this machine's time) or by its age (`<2h`)."""
        if (age := _AGE.fullmatch(text)) and comparison in _ORDERS:
            seconds, compare = float(age[1]) * _SECONDS[age[2]], _ORDERS[comparison]
            return lambda moment: moment is not None and compare((now - moment).total_seconds(), seconds)
        try:
            day = datetime.fromisoformat(text)
            day = day.astimezone() if day.tzinfo is None else day
            following = day + timedelta(days=1)
        except (ValueError, OverflowError, OSError):
            raise MRNLabError(
                f"{self.name} takes a day such as {self.name}>2026-11-01, or an age such as "
                f"{self.name}<2h (min, h, d, w), not '{shortened(text)}'."
            ) from None
        if comparison in _ORDERS:
            compare = _ORDERS[comparison]
            return lambda moment: moment is not None and compare(moment, day)
        return lambda moment: moment is not None and day <= moment < following


def _contains_in_order(parts: list[str], text: str) -> bool:
    """Whether the text is these parts in their order with anything between them.

    Each part is taken where it is found first; a regular expression tries all places, which may take years.
    """
    first, *middle, last = parts
    at, end = len(first), len(text) - len(last)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in middle:
        place = text.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return True


_STATES = {state.value: (state.value,) for state in RunState} | {
    "stopping": (RunState.CANCELLING.value,),
    "active": tuple(state.value for state in sorted(ACTIVE)),
    "ended": tuple(state.value for state in sorted(ENDED)),
}


def _config_field(name: str) -> FilterField:
    """The field of a run's description, by the type of its values."""
    annotation = RunConfig.model_fields[name].annotation
    public = "lambda" if name == "lambda_" else name
    description = FIELD_HELP[public].description
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType] or [annotation]
    kind = annotation if get_origin(annotation) in (Literal, tuple) else kinds[0]

    def read(run: Run) -> Any:
        return getattr(run.config, name, None)  # a description of another version may lack it

    if kind is bool:
        return FilterField(public, "flag", description, read)
    if kind in (int, float):
        return FilterField(public, "number", description, read)
    if get_origin(kind) is tuple:
        return FilterField(public, "text", description, read)
    choices = {choice: (choice,) for choice in get_args(kind)} if get_origin(kind) is Literal else None
    if name == "corpus":  # a folder also by its last part
        return FilterField(
            public, "text", description, lambda run: (read(run), PurePath(str(read(run))).name)
        )
    return FilterField(public, "text", description, lambda run: read(run) and (read(run),), choices)


# fmt: off
_OWN: tuple[FilterField, ...] = (
    FilterField("run", "number", "The number of the run.", lambda run: run.id),
    FilterField("state", "text", f"Where it is: {', '.join(_STATES)}.", lambda run: (run.state,), _STATES),
    FilterField("tag", "text", "A tag it has; tag:* any.", lambda run: run.tags),
    FilterField("archived", "flag", "Archived or not; unsaid, archived runs are left out.",
                lambda run: run.archived),
    FilterField("created", "time", "When it was queued: after a day >2026-11-01, by age <2h.",
                lambda run: run.created_at),
    FilterField("ended", "time", "When it ended, as created.", lambda run: run.finished_at),
    FilterField("minutes", "number", "Wall-clock minutes of training, so far or in all.",
                lambda run: None if run.seconds is None else run.seconds / 60),
    FilterField("priority", "number", "What it waits with: higher ones start first.",
                lambda run: run.priority),
    FilterField("sweep", "words", "Words in the name of its launch.", lambda run: run.sweep and (run.sweep,)),
    FilterField("error", "words", "Words in what made it fail.",
                lambda run: run.error and (f"{run.error.type} {run.error.message}",)),
)
# fmt: on
FIELDS: Mapping[str, FilterField] = {
    field.name: field for field in (*_OWN, *map(_config_field, RunConfig.model_fields))
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
    def archived(self) -> bool | None:
        """What `Store.runs` is to be asked for: archived runs only where the filter speaks of them."""
        return None if any(field == "archived" for field, _ in self.terms) else False


def quoted(text: str) -> str:
    """The text as one word or value of a filter that means just that text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_filter(text: str, now: datetime | None = None) -> RunFilter:
    """The filter that the text describes; the empty one lets every run through.

    `now` is what ages are counted from (default: this moment). Raises FilterError, which says what is wrong,
    where, and what there could be.
    """
    moment = now or datetime.now(UTC)
    terms: list[tuple[str | None, Test]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        negated = text[at] == "-"
        at += negated
        field: str | None = None
        if match := _FIELD.match(text, at):
            field, test, at = _condition(text, match, moment)
        else:
            test, at = _word(text, at)
        if at < len(text) and not text[at].isspace():
            raise FilterError(at, "after the closing quote must come a space.")
        terms.append((field, _negated(test) if negated else test))
    return RunFilter(tuple(terms))


def _negated(test: Test) -> Test:
    return lambda run: not test(run)


def _condition(text: str, match: re.Match[str], now: datetime) -> tuple[str, Test, int]:
    """The field, the test and the end of the condition whose field and operator matched."""
    name, comparison = match.groups()
    field = FIELDS.get(ALIASES.get(name.lower(), name.lower()))
    if field is None:
        close = difflib.get_close_matches(name.lower(), [*FIELDS, *ALIASES], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise FilterError(
            match.start(),
            f"there is no field '{name}'.{hint} Fields are {', '.join(FIELDS)}; text with such signs in "
            "quotes.",
        )
    missing = f"{match[0]} needs a value, without a space between."
    value, at = _value(text, match.end(), r"[^\s,]+", missing)
    values = [value]
    while comparison in (":", "=", "!=") and text[at : at + 1] == ",":
        value, at = _value(text, at + 1, r"[^\s,]+", missing)
        values.append(value)
    try:
        order = comparison if comparison in _ORDERS else ":"
        matchers = [field.matcher(order, value, now) for value in values]
    except MRNLabError as error:
        raise FilterError(match.start(), str(error)) from None

    def test(run: Run) -> bool:
        known = field.read(run)
        return any(matches(known) for matches in matchers)

    return field.name, _negated(test) if comparison == "!=" else test, at


def _word(text: str, start: int) -> tuple[Test, int]:
    value, at = _value(text, start, r"\S+", "a minus needs a word or field right after it.")
    if not value.quoted and _LONE_OPERATOR.match(value.text):
        raise FilterError(start, "write fields without spaces, lambda<0.1 say, or put text in quotes.")
    if not value.quoted and value.text in ("AND", "OR", "NOT"):
        raise FilterError(
            start,
            "terms are joined by a space, and all must hold; for one of several values write "
            "paradigm:mrn,mtl, and for not a minus, -status:failed.",
        )
    wanted = value.text.casefold()
    number = whole_number(wanted)
    return lambda run: run.id == number or wanted in _searched(run), at


def _value(text: str, at: int, pattern: str, missing: str) -> tuple[Value, int]:
    """The value that begins there, and its end."""
    if text[at : at + 1] == '"':
        match = _QUOTED.match(text, at)
        if match is None:
            raise FilterError(at, "this quote is not closed.")
        return Value(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL), True), match.end()
    match = re.compile(pattern).match(text, at)
    if match is None:
        raise FilterError(at, missing)
    return Value(match[0], False), match.end()


def _searched(run: Run) -> str:
    """What words are looked for in, a line for each kind of thing."""
    config = run.config
    lambda_ = "" if config.lambda_ is None else f" λ {config.lambda_:g}"
    lines = (f"{config.paradigm}{lambda_}", " ".join(config.tasks), config.corpus, config.encoder)
    return "\n".join((*lines, *run.tags)).casefold()
