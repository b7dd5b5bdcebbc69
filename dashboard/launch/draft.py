"""The form as data, without Streamlit: its fields, the runs it makes, clones of past runs, links."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.config import FIELD_HELP, LEARNABLE, PARADIGMS, RunConfig, applicable_fields
from core.config.fields import CONDITIONS
from core.config.sweep import LISTED, expand, is_number, number_typed, numbers, seeds, seeds_typed
from core.corpora import CATALOGUE
from core.errors import ConfigError
from core.registry import ALIGNMENTS, BILSTM_SUFFIX, ENCODERS, PRIORS
from core.wording import all_of, plural
from jobs.control import MOST_RETRIES, PRIORITIES

# What the form asks in its own place, in the order a researcher thinks; all other fields are rare.
_FIRST = ("encoder", "encoder_training", "paradigm", "prior", "alignment", "lambda", "fraction")
_ASKED = (*_FIRST, "seed", "epochs")
RARE: tuple[str, ...] = tuple(name for name in (*LISTED, "learn") if name not in _ASKED)
"""The fields under *More settings*."""
NEEDED: tuple[str, ...] = tuple(name for name in _ASKED if name != "lambda")
"""The fields that must have a value where they are asked; the others take their default."""
OPEN: tuple[str, ...] = ("encoder",)
"""The fields whose options are only the known ones: another one may be typed."""

EXECUTION: Mapping[str, tuple[int, int]] = {"priority": PRIORITIES, "retries": (0, MOST_RETRIES)}
"""What is asked of how runs wait and come back: the least and the most. Each starts at 0."""


def option_of(value: bool | float | str) -> str:
    """A field's value as the form has it: as an option, or as one types it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else number_typed(value)


def _options(field: str) -> tuple[str, ...]:
    if FIELD_HELP[field].unit == "yes or no":
        return ("no", "yes")
    return tuple(option.strip() for option in FIELD_HELP[field].range.split("|"))


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "encoder": tuple(name + suffix for name in ENCODERS for suffix in ("", BILSTM_SUFFIX)),
    "paradigm": PARADIGMS,
    "prior": tuple(PRIORS),
    "alignment": tuple(ALIGNMENTS),
    "learn": LEARNABLE,
    **{
        field: _options(field)
        for field in LISTED
        if field != "paradigm" and ("|" in FIELD_HELP[field].range or FIELD_HELP[field].unit == "yes or no")
    },
}
"""The fields of which values are picked, and what they are picked from. Of the others they are typed."""


def _start(field: str) -> str | tuple[str, ...]:
    default: Any = RunConfig.model_fields["lambda_" if field == "lambda" else field].default
    text = "" if default is None else option_of(default)
    return text if field not in OPTIONS else (text,) if text else ()


START: Mapping[str, str | tuple[str, ...]] = {
    **{field: _start(field) for field in (*LISTED, "learn")},
    # Quick and telling on any machine: heads over frozen features, three seeds.
    "encoder_training": ("frozen",),
    "seed": "1-3",
    "prior": (next(iter(PRIORS)),),
    "alignment": (next(iter(ALIGNMENTS)),),
}
"""By field, what a fresh form holds: what is picked, or the text that is typed."""


# The first varies slowest, so that what one compares stands together; seeds vary fastest.
_ORDER = (*_FIRST, *(name for name in LISTED if name not in _FIRST))

_ONLY_MRN = ("prior", "alignment")
_KINDS = {"encoder_training": "kind of training"}


@dataclass(frozen=True)
class Draft:
    """The form as it stands.

    `lists` has the fields that are asked: of each the values picked, or the text typed. An empty one takes
    its default.
    """

    corpus: str = ""
    columns: tuple[str, ...] | None = None
    tasks: tuple[str, ...] = ()
    lists: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    learn: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    """By field, what is wrong with files that cannot be read or used."""
    priority: int = 0
    retries: int = 0
    """How the runs wait and come back, not what they are: `core.store.Store.add_runs`."""


@dataclass(frozen=True)
class Plan:
    """The runs to launch, or the field that is wrong and a sentence on it."""

    configs: tuple[RunConfig, ...] = ()
    field: str | None = None
    error: str | None = None


def plan(draft: Draft) -> Plan:
    """Every run of the sweep: each combination of the values once, STL once per task."""
    for name, sentence in draft.problems.items():
        return Plan(field=name, error=sentence)
    try:
        _chosen(draft)
        base = {
            "corpus": draft.corpus,
            "columns": draft.columns,
            "tasks": draft.tasks,
            **({"learn": draft.learn} if draft.learn else {}),
        }
        configs = expand(base, lists_of(draft))
    except ConfigError as error:
        return Plan(field=error.field, error=str(error))
    return Plan(configs=tuple(configs))


def applicable(
    encoders: Iterable[str], trainings: Iterable[str], paradigms: Iterable[str], priors: Iterable[str]
) -> frozenset[str]:
    """The fields that at least one run of these kinds has."""
    kinds = itertools.product(paradigms, encoders, trainings, tuple(priors) or (None,))
    return frozenset[str]().union(*(applicable_fields(*kind) for kind in kinds))


def lists_of(draft: Draft) -> dict[str, list[Any]]:
    """The values of each field that has any and that a run of this form has, in the order in which runs vary.

    Raises ConfigError.
    """
    kinds = (draft.lists.get(name, ()) for name in ("encoder", "encoder_training", "paradigm", "prior"))
    asked = applicable(*kinds) & draft.lists.keys()
    fields = {name: values_of(name, draft.lists[name]) for name in _ORDER if name in asked}
    return {name: values for name, values in fields.items() if values}


def values_of(name: str, given: str | tuple[str, ...]) -> list[Any]:
    """What is picked or typed, as values of that field. Raises ConfigError."""
    if not isinstance(given, str):
        return list(given)
    if not given.strip():
        return []
    if name == "seed":
        return seeds(given)
    if is_number(name):
        return numbers(given, name)
    return [part.strip() for part in given.split(",") if part.strip()]


def _chosen(draft: Draft) -> None:
    if not draft.corpus:
        raise ConfigError("corpus", "Choose a corpus, or upload one.")
    if not draft.tasks:
        raise ConfigError("tasks", "Choose at least one task.")
    for name in NEEDED:
        given = draft.lists.get(name, "")
        if name in _ONLY_MRN and "mrn" not in draft.lists.get("paradigm", ()):
            continue
        if isinstance(given, str) and not given.strip():
            raise ConfigError(name, "Write at least one number.")
        if not given:
            raise ConfigError(name, f"Choose at least one {_KINDS.get(name, name)}.")


_CONDITIONAL = {condition.field for condition in CONDITIONS}


def cloned(configs: Sequence[RunConfig]) -> tuple[Draft, tuple[str, ...]]:
    """The form that makes these runs, and what of them it cannot say, a sentence each.

    There must be one at least. A conditional field that all runs have at its default stays empty.
    """
    first = configs[0]
    sentences = []
    columns = first.columns
    if columns is not None and first.corpus in CATALOGUE:
        columns = None
        sentences.append(f"The names of the columns are left away: {first.corpus} knows its own.")
    learn = _explicit(configs, "learn")
    mapped = _distinct(one.alignment for one in configs if one.alignment and ":" in one.alignment)
    draft = Draft(
        corpus=first.corpus,
        columns=columns,
        tasks=_tasks(configs),
        lists={name: _listed(configs, name) for name in LISTED},
        learn=tuple(learn[0]) if learn else (),
    )
    if len(mapped) > 1:
        kept = [name for name in draft.lists["alignment"] if name not in mapped[1:]]
        draft = replace(draft, lists={**draft.lists, "alignment": tuple(kept)})
    several = {
        "corpus": _distinct(one.corpus for one in configs),
        "names of columns": _distinct(one.columns for one in configs),
        "tasks": _distinct(frozenset(one.tasks) for one in configs if one.paradigm != "stl"),
        "covariances to learn": learn,
        "mapping of labels": mapped,
    }
    if differing := [name for name, values in several.items() if len(values) > 1]:
        sentences.append(
            f"These runs differ in {all_of(differing)}, of which the form holds one: that of the first run."
        )
    return draft, (*sentences, *_difference(draft, configs))


def _difference(draft: Draft, configs: Sequence[RunConfig]) -> list[str]:
    """How the runs that the form makes differ from those that were asked for."""
    made, asked = set(plan(draft).configs), set(configs)
    sentences = []
    if missing := asked - made:
        are = plural(len(missing), "of these runs is", "of these runs are")
        sentences.append(f"{are} not among those it makes.")
    if extra := made - asked:
        more = plural(len(extra), "more run")
        sentences.append(f"The form makes every combination of these values, so {more} than these.")
    return sentences


def _tasks(configs: Sequence[RunConfig]) -> tuple[str, ...]:
    """The tasks of the largest run, then those that only others have."""
    ordered = sorted(configs, key=lambda one: -len(one.tasks))
    return tuple(dict.fromkeys(task for one in ordered for task in one.tasks))


def _listed(configs: Sequence[RunConfig], name: str) -> str | tuple[str, ...]:
    values = _explicit(configs, name)
    if name == "seed":
        return seeds_typed(values)
    if name in OPTIONS:
        known = OPTIONS[name]
        places = {option: place for place, option in enumerate(known)}
        return tuple(sorted(map(option_of, values), key=lambda option: places.get(option, len(known))))
    return ", ".join(map(option_of, sorted(values)))


def _explicit(configs: Sequence[RunConfig], name: str) -> list[Any]:
    """The values of a field that the form must name: none where every run has its default."""
    attribute = "lambda_" if name == "lambda" else name
    having = [one for one in configs if getattr(one, attribute) is not None]
    # What MRN runs are asked in any case is named in any case.
    may_stay_empty = attribute in _CONDITIONAL and name not in ("prior", "alignment")
    if may_stay_empty and all(_has_default(one, attribute) for one in having):
        return []
    return _distinct(getattr(one, attribute) for one in having)


def _has_default(config: RunConfig, attribute: str) -> bool:
    """Whether the run would be the same, had that field not been set."""
    values = config.values()
    del values["lambda" if attribute == "lambda_" else attribute]
    try:
        return RunConfig.build(**values) == config
    except ConfigError:
        return False  # its default is no possible value: ten times a large rate, say


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


FIELDS: tuple[str, ...] = ("corpus", "columns", "tasks", *START, *EXECUTION)
"""The parameters of a link, named as the fields of a run; and how the runs wait and come back."""

# Always in the link, so that it still makes the same runs when the form starts otherwise one day.
_ALWAYS = ("encoder", "encoder_training", "paradigm", "epochs", "seed")


def query_of(draft: Draft) -> dict[str, str]:
    """The parameters that a link needs for this form."""
    lists = {
        name: given
        for name, given in {**draft.lists, "learn": draft.learn}.items()
        if name in _ALWAYS or given != START[name]
    }
    told = {"corpus": draft.corpus, "columns": draft.columns or "", "tasks": draft.tasks, **lists}
    query = {name: given if isinstance(given, str) else ",".join(given) for name, given in told.items()}
    query |= {name: str(number) for name in EXECUTION if (number := getattr(draft, name))}
    return {name: text for name, text in query.items() if text}


def draft_of(query: Mapping[str, str]) -> tuple[Draft, tuple[str, ...]]:
    """The form that a link describes, and a sentence for each value that the form does not have.

    What the link does not name is as in a fresh form; without tasks, all that the corpus has.
    """
    sentences = []
    lists: dict[str, str | tuple[str, ...]] = {}
    for name, start in START.items():
        text = query.get(name)
        if text is None:
            lists[name] = start
        elif name in OPTIONS:
            picked = _names(text)
            lists[name] = tuple(one for one in picked if _offered(name, one))
            if strange := [one for one in picked if not _offered(name, one)]:
                sentences.append(f"The link asks for {name} {', '.join(strange)}, which does not exist.")
        else:
            lists[name] = text
    learn = lists.pop("learn")
    numbers: dict[str, Any] = {}
    for name, (least, most) in EXECUTION.items():
        text = query.get(name, "0")
        asked = int(text) if re.fullmatch(r"[+-]?\d{1,6}", text) else None
        numbers[name] = min(most, max(least, asked or 0))
        if asked != numbers[name]:
            sentences.append(f"The link asks for {name} {text}; it is a whole number from {least} to {most}.")
    return (
        Draft(
            corpus=query.get("corpus", "demo"),
            columns=_names(query["columns"]) if query.get("columns") else None,
            tasks=_names(query.get("tasks", "")),
            lists=lists,
            learn=tuple(learn),
            **numbers,
        ),
        tuple(sentences),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _offered(name: str, value: str) -> bool:
    return name in OPEN or value.partition(":")[0] in OPTIONS[name]
