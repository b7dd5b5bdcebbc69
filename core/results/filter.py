"""Runs found by text, by field and by score: `paradigm:mrn lambda<0.1 ner>60 -status:failed "to check"`.

    filter    := term*                       all of them must hold
    term      := ["-"] (word | condition)    a minus negates
    condition := field operator value ("," value)*    one of the values must hold
    operator  := ":" | "=" | "!=" | "<" | "<=" | ">" | ">="
    word, value := "in quotes" | without spaces

A word is searched in the paradigm, λ, tasks, corpus, encoder and keywords, whatever its case; a whole number
is also compared with the run's id. A `*` at the end of an unquoted value stands for any rest. The name of a
task is a field too: the mean test score of the run's configuration in percent, after `dev.` its dev score.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from core.config import FIELD_HELP
from core.config.typed import real_number, whole_number
from core.errors import MRNLabError
from core.plain_text import shortened
from core.results.samples import means_by_run
from core.store import ACTIVE, ENDED, Run, RunState, Store

Test = Callable[[Any], bool]
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    ":": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLAGS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_SECONDS = {"min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(rf"([0-9]+(?:\.[0-9]+)?)({'|'.join(_SECONDS)})")
_TERM = re.compile(r'(-?)(?:([^\W\d][\w.-]*)(<=|>=|!=|[:=<>]))?((?:"[^"]*"|[^\s"])*)(?=\s|$)')
_COMMA = re.compile(r',(?=[^"]*(?:"[^"]*"[^"]*)*$)')  # but those in quotes


class Value(NamedTuple):
    """The text of a value; `is_prefix` where it was written with a `*` at its end."""

    text: str
    is_prefix: bool

    @classmethod
    def parse(cls, written: str) -> Value:
        """Parses a value as typed; in quotes a `*` is part of the text."""
        if '"' in written:
            return cls(written.replace('"', ""), False)
        return cls(written.removesuffix("*"), written.endswith("*"))


@dataclass(frozen=True)
class FilterField:
    """A field by its public name. `read` returns its value for a run, None where the run has none.

    With kind "text" a value must equal the text (or one of a tuple of texts), with kind "words" be contained.
    `choices` are the allowed values, each with the texts that it matches.
    """

    name: str
    kind: Literal["text", "words", "number", "flag", "time"]
    description: str
    read: Callable[[Run], Any]
    choices: Mapping[str, tuple[str, ...]] | None = None

    def matcher(self, comparison: str, value: Value, now: datetime) -> Test:
        """A test of a run's value against `value`, by one of `:`, `<`, `<=`, `>` and `>=`.

        Raises MRNLabError with the allowed values.
        """
        if self.kind in ("text", "words", "flag") and comparison != ":":
            raise MRNLabError(f"{self.name} has no order; write {self.name}:value.")
        if self.kind in ("text", "words"):
            matches = self._text_matcher(value)
            return lambda stored: any(matches(text) for text in _texts(stored))
        if comparison == ":" and value == ("", True):
            return lambda stored: stored is not None
        if value.is_prefix:
            raise MRNLabError(
                f"{self.name} takes no '*' after a value; {self.name}:* finds runs that have one."
            )
        if self.kind == "time":
            return self._time_matcher(comparison, value.text, now)
        if self.kind == "flag":
            if value.text.lower() not in _FLAGS:
                raise MRNLabError(f"{self.name} is yes or no, not '{value.text}'.")
            return lambda stored: stored is _FLAGS[value.text.lower()]
        number = real_number(value.text)
        if number is None:
            raise MRNLabError(f"{self.name} is a number, not '{shortened(value.text)}'.")
        return lambda stored: stored is not None and _COMPARE[comparison](stored, number)

    def _text_matcher(self, value: Value) -> Callable[[str], bool]:
        wanted = value.text.casefold()
        if self.kind == "words":
            return lambda text: wanted in text
        if value.is_prefix:
            return lambda text: text.startswith(wanted)
        if self.choices is None:
            return lambda text: text == wanted
        wanted = _STORED_WORDS.get(wanted, wanted)
        if wanted not in self.choices:
            choices = ", ".join(self.choices)
            raise MRNLabError(f"{self.name} is one of {choices}, not '{shortened(value.text)}'.")
        return lambda text: text in (self.choices or {})[wanted]

    def _time_matcher(self, comparison: str, text: str, now: datetime) -> Test:
        """A test of a time against a day (`>2026-11-01`, local time zone) or its age (`<2h`)."""
        compare = _COMPARE[comparison]
        if (age := _AGE.fullmatch(text)) and comparison != ":":
            seconds = float(age[1]) * _SECONDS[age[2]]
            return lambda stored: stored is not None and compare((now - stored).total_seconds(), seconds)
        try:
            written = datetime.fromisoformat(text)
            # By the calendar: the day on which clocks change has 23 or 25 hours.
            day, next_day = (
                moment.astimezone() if moment.tzinfo is None else moment
                for moment in (written, written + timedelta(days=1))
            )
        except (ValueError, OverflowError, OSError):
            raise MRNLabError(
                f"{self.name} takes a day such as {self.name}>2026-11-01, or an age such as "
                f"{self.name}<2h (min, h, d, w), not '{shortened(text)}'."
            ) from None
        if comparison == ":":
            return lambda stored: stored is not None and day <= stored < next_day
        return lambda stored: stored is not None and compare(stored, day)


def _texts(stored: Any) -> list[str]:
    values = stored if isinstance(stored, tuple) else (stored,)
    return [str(value).casefold() for value in values if value is not None]


_STORED_WORDS = {state.value: state.word for state in RunState}
"""The names of states in the store and in older links, which are accepted too."""
_STATES = {state.word: (state.value,) for state in RunState} | {
    "active": tuple(state.value for state in sorted(ACTIVE)),
    "ended": tuple(state.value for state in sorted(ENDED)),
}


def _config_field(name: str) -> FilterField:
    """The field of a run's description, by the type of its values."""
    annotation = FIELD_HELP[name].annotation
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(type_ for type_ in get_args(annotation) if type_ is not NoneType)
    kind: Any = {bool: "flag", int: "number", float: "number"}.get(annotation, "text")
    is_choice = get_origin(annotation) is Literal
    choices = {choice: (choice,) for choice in get_args(annotation)} if is_choice else None

    def read(run: Run) -> Any:
        value = run.config.value(name)
        return (value, PurePath(str(value)).name) if name == "corpus" else value

    return FilterField(name, kind, FIELD_HELP[name].description, read, choices)


# fmt: off
_RUN_FIELDS: tuple[FilterField, ...] = (
    FilterField("run", "number", "The number of the run.", lambda run: run.id),
    FilterField("state", "text", f"Where it is: {', '.join(_STATES)}.", lambda run: run.state, _STATES),
    FilterField("keyword", "text", "A keyword it has; keyword:* any.", lambda run: run.keywords),
    FilterField("archived", "flag", "Archived or not; without it, archived runs are left out.",
                lambda run: run.archived),
    FilterField("created", "time", "When it was queued: after a day >2026-11-01, by age <2h.",
                lambda run: run.created_at),
    FilterField("ended", "time", "When it ended, as created.", lambda run: run.finished_at),
    FilterField("minutes", "number", "Wall-clock minutes of training, so far or in all.",
                lambda run: None if run.seconds is None else run.seconds / 60),
    FilterField("priority", "number", "Its priority: higher ones start first.",
                lambda run: run.priority),
    FilterField("sweep", "words", "Words in the name of its sweep.", lambda run: run.sweep),
    FilterField("error", "words", "Words in its error.",
                lambda run: run.error and f"{run.error.type} {run.error.message}"),
)
# fmt: on
FIELDS: Mapping[str, FilterField] = {
    field.name: field for field in (*_RUN_FIELDS, *map(_config_field, FIELD_HELP))
}
ALIASES: Mapping[str, str] = {
    "id": "run",
    "status": "state",
    "keywords": "keyword",
    "tag": "keyword",  # as older links and scripts have it
    "tags": "keyword",
    "task": "tasks",
    "launch": "sweep",
    **{help_.symbol: name for name, help_ in FIELD_HELP.items() if help_.symbol},
}
"""Other names of the fields."""


class FilterError(MRNLabError):
    """A filter that cannot be read at `position`, counted from 0."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"Character {position + 1}: {message}")
        self.position = position


@dataclass(frozen=True)
class RunFilter:
    """A filter of runs: for each term its field (None: a word) and its test."""

    terms: tuple[tuple[str | None, Test], ...] = ()

    def matches(self, run: Run) -> bool:
        """Whether all terms hold for the run."""
        return all(test(run) for _, test in self.terms)

    @property
    def archived(self) -> bool | None:
        """The `archived` argument for `Store.runs`: None (all runs) where the filter has that field."""
        return None if any(field == "archived" for field, _ in self.terms) else False


def parse_filter(text: str, now: datetime | None = None, store: Store | None = None) -> RunFilter:
    """Parses a filter; the empty text matches every run.

    Ages are counted from `now`, scores are read from the `store`. Raises FilterError with the position, the
    problem and the allowed values.
    """
    terms = []
    start = len(text) - len(text.lstrip())
    while start < len(text):
        term = _TERM.match(text, start)
        if term is None:
            raise FilterError(start, "a quote in this term is not closed.")
        try:
            terms.append(_parse_term(term, now or datetime.now(UTC), store))
        except MRNLabError as error:
            raise FilterError(start, str(error)) from None
        rest = text[term.end() :]
        start = len(text) - len(rest.lstrip())
    return RunFilter(tuple(terms))


def _parse_term(term: re.Match[str], now: datetime, store: Store | None) -> tuple[str | None, Test]:
    """The name of the field (None: a word) and the test. Raises MRNLabError."""
    minus, name, comparison, body = term.groups()
    if name is None:
        return None, _word_test(body, negated=bool(minus))
    field = FIELDS.get(ALIASES.get(name.lower(), name.lower())) or _score_field(name, store)
    values = [Value.parse(written) for written in _COMMA.split(body)]
    if Value("", False) in values and '"' not in body:
        raise MRNLabError(f"{name}{comparison} needs a value, without a space between.")
    order = comparison if comparison in _COMPARE else ":"
    matchers = [field.matcher(order, value, now) for value in values]
    negated = bool(minus) != (comparison == "!=")
    return field.name, lambda run: any(matches(field.read(run)) for matches in matchers) is not negated


def _score_field(name: str, store: Store | None) -> FilterField:
    """The field of a task's mean score over the runs of a line on Runs, in percent.

    It is the mean (`means_by_run`), not the run's own score, so that a line is found with all its seeds or
    with none: the mean of the seeds above a bound would be too high. Raises MRNLabError that names all fields
    and tasks where there is no task of that name.
    """
    split, _, task = name.rpartition(".")
    tasks = store.scored_tasks() if store is not None else []
    if task not in tasks or split not in ("", "dev", "test"):
        close = difflib.get_close_matches(name, [*tasks, *FIELDS, *ALIASES], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        scored = f" Tasks with scores are {', '.join(tasks)}." if tasks else ""
        fields = ", ".join(FIELDS)
        raise MRNLabError(
            f"there is no field '{name}'.{hint}{scored} Fields are {fields}; put text with these signs in "
            "quotes."
        )
    means: dict[int, float] = {}
    if store is not None:
        scores = store.mean_scores(split or "test", task)
        for archived in (False, True):  # archived runs are apart
            runs = store.runs(archived=archived)
            means |= means_by_run(runs, store.conditions(runs), scores)

    def read(run: Run) -> float | None:
        mean = means.get(run.id)
        return None if mean is None else 100 * mean

    return FilterField(name, "number", "", read)


def _word_test(body: str, *, negated: bool) -> Test:
    if not body:
        raise MRNLabError("a minus needs a word or field right after it.")
    if body[0] in ":=<>!":
        raise MRNLabError(
            f"cannot read '{body}': write a field without spaces (lambda<0.1); quote words that contain "
            "symbols."
        )
    wanted = body.replace('"', "").casefold()
    number = whole_number(wanted)
    return lambda run: (run.id == number or wanted in _searched(run)) is not negated


def _searched(run: Run) -> str:
    """The text in which words are searched, a line per part of the description."""
    config = run.config
    lambda_ = "" if config.lambda_ is None else f" λ {config.lambda_:g}"
    lines = (f"{config.paradigm}{lambda_}", " ".join(config.tasks), config.corpus, config.encoder)
    return "\n".join((*lines, *run.keywords)).casefold()
