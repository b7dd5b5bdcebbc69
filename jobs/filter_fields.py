"""The fields that a filter of runs can ask for: how each is read from a run, and what its values mean."""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from core.config import FIELD_HELP, RunConfig
from core.errors import MRNLabError
from core.lists import real_number
from core.plain_text import shortened
from core.store import ACTIVE, ENDED, Run, RunState

__all__ = [
    "ALIASES",
    "FIELDS",
    "FilterField",
    "NumberField",
    "Test",
    "TextField",
    "TimeField",
    "Value",
    "YesNoField",
]

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
