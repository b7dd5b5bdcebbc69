"""The form as data, without Streamlit: its fields, the runs it makes, clones of past runs, links."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.config import (
    FIELD_HELP,
    FIELD_RULES,
    PARADIGMS,
    RunConfig,
    applicable_fields,
    field_label,
    public_name,
    with_defaults,
)
from core.config.fields import CONTEXT_FIELDS, NOTHING, comma_list
from core.config.sweep import LISTED
from core.config.task_groups import TASK_GROUPS
from core.config.typed import format_values, share_typed, value_text, whole_number
from core.errors import ConfigError, CorpusError
from core.plain_text import shortened
from core.registry import (
    ALIGNMENTS,
    BILSTM_SUFFIX,
    ENCODER_TRAININGS,
    ENCODERS,
    MODES,
    PREDICTED,
    PRIORS,
    WORD_ENCODERS,
)
from core.tasks import TaskKind
from core.wording import plural
from jobs.queue.control import MOST_RETRIES, PRIORITIES
from jobs.queue.sweeps import RANKED, WHOLE, Sweep, distinct, given_values

# The first varies slowest, so that what one compares stands together; seeds vary fastest.
_ORDER = (*RANKED, *(name for name in LISTED if name not in RANKED))


def _rare() -> Mapping[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {help_.group: () for help_ in FIELD_HELP.values()}
    for name, help_ in FIELD_HELP.items():
        if name in (*LISTED, *WHOLE) and not help_.view.prominent:
            groups[help_.group] = (*groups[help_.group], name)
    return groups


RARE: Mapping[str, tuple[str, ...]] = _rare()
"""The fields under *More settings*, by group."""
SELDOM: tuple[str, ...] = tuple(name for name, help_ in FIELD_HELP.items() if help_.view.seldom)
"""Fields that only the study of simulated tasks sets: the form asks for them where they have a value."""
NEEDED: tuple[str, ...] = tuple(
    name for name in _ORDER if FIELD_HELP[name].view.prominent and name != "lambda"
)
"""The fields that must have a value where they are asked; the others take their default."""
OPEN: tuple[str, ...] = tuple(name for name, help_ in FIELD_HELP.items() if help_.view.open)
"""The fields whose options are only the known ones: another one may be typed."""

EXECUTION: Mapping[str, tuple[int, int]] = {"priority": PRIORITIES, "retries": (0, MOST_RETRIES)}
"""What is asked of how runs wait and come back: the least and the most. Each starts at 0."""


def _options(field: str) -> tuple[str, ...]:
    if FIELD_HELP[field].unit == "yes or no":
        return ("no", "yes")
    return tuple(option.strip() for option in FIELD_HELP[field].range.split("|"))


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "encoder": (*(name + end for name in ENCODERS for end in ("", BILSTM_SUFFIX)), *WORD_ENCODERS),
    "encoder_training": tuple(ENCODER_TRAININGS),
    "paradigm": PARADIGMS,
    "prior": (*PRIORS, PREDICTED),
    "alignment": tuple(ALIGNMENTS),
    "learn": (*MODES, NOTHING),
    **{
        field: _options(field)
        for field in LISTED
        if field not in ("encoder_training", "paradigm")
        and ("|" in FIELD_HELP[field].range or FIELD_HELP[field].unit == "yes or no")
    },
}
"""The fields of which values are picked, and what they are picked from. Of the others they are typed."""


def format_in_form(field: str, values: Sequence[Any]) -> str:
    """The text of a list of a field's values as the form has it: shares of the data in percent."""
    return ", ".join(map(share_typed, values)) if field == "fraction" else format_values(field, values)


def _start(field: str) -> str | tuple[str, ...]:
    default, rule = FIELD_HELP[field].default, FIELD_RULES[field]
    if field in OPTIONS and rule.is_conditional:
        trainings = OPTIONS["encoder_training"]
        kinds = itertools.product(("mrn",), ("minilm",), trainings, PRIORS)
        defaults = {rule.default_of(dict(zip(CONTEXT_FIELDS, kind, strict=True))) for kind in kinds}
        # Of several none is picked, and a caption has them.
        default = defaults.pop() if len(defaults) == 1 else None
    text = "" if default is None else format_in_form(field, [default])
    return text if field not in OPTIONS else (text,) if text else ()


START: Mapping[str, str | tuple[str, ...]] = {
    **{field: _start(field) for field in (*LISTED, *WHOLE)},
    # Does sharing help? Over frozen features, which is quick, the tasks share a BiLSTM; three seeds.
    "paradigm": PARADIGMS,
    "encoder": (f"minilm{BILSTM_SUFFIX}",),
    "encoder_training": ("frozen",),
    "seed": "1-3",
}
"""By field, what a fresh form holds: what is picked, or the text that is typed."""


def start_for(kinds: Sequence[TaskKind]) -> dict[str, tuple[str, ...]]:
    """The values by field that a fresh form has instead of START for tasks of these kinds.
    START makes runs that cannot train there.
    """
    if len(kinds) == 1:
        whole = {"encoder_training": ("full",)} if kinds[0].is_number else {}
        return {"paradigm": ("stl",), **whole}
    related = [kind for kind in kinds if kind.reads != "pair"]
    return {"pair_encoding": ("together",)} if kinds and len(related) < 2 else {}


@dataclass(frozen=True)
class Draft(Sweep):
    """The form's values: a sweep that may be unfinished. A field with an empty list takes its default."""

    tasks: tuple[str, ...] = ()
    lists: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """By field, what is wrong with files that cannot be read or used."""
    reads: frozenset[str] | None = None
    """What the tasks read (`core.tasks.TaskKind.reads`); None where that is unknown."""
    notes: tuple[str, ...] = ()
    """What the form says of the corpus."""
    priority: int = 0
    retries: int = 0
    """Priority and automatic resumes; not part of the config."""

    def used(self) -> Sweep:
        """The sweep without the fields that are empty or that no run of this form has. Raises ConfigError."""
        names = applicable(self.lists, self.reads)
        given = {name: self.lists[name] for name in (*_ORDER, *WHOLE) if name in names and name in self.lists}
        lists = {name: values for name, values in given.items() if given_values(name, values)}
        return Sweep(self.corpus, self.columns, self.tasks, self.task_groups, lists)

    def query(self) -> dict[str, str]:
        """The parameters that a link needs for this form."""
        always = applicable(self.lists) & {*_ALWAYS}
        lists = {name: value for name, value in self.lists.items() if name in always or value != START[name]}
        execution = {name: str(number) for name in EXECUTION if (number := getattr(self, name))}
        return Sweep(self.corpus, self.columns, self.tasks, self.task_groups, lists).query() | execution


@dataclass(frozen=True)
class Plan:
    """The runs to launch, or by field a sentence on its error, and on what is still to be chosen."""

    configs: tuple[RunConfig, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    missing: Collection[str] = ()
    """The fields among `problems` in which nothing was entered yet."""


def plan(draft: Draft) -> Plan:
    """Every run of the sweep: each combination of the values once, STL once per task."""
    problems = {**_missing(draft), **draft.problems}
    for name in applicable(draft.lists, draft.reads) & draft.lists.keys() & {*_ORDER} - problems.keys():
        try:
            given_values(name, draft.lists[name])
        except ConfigError as error:
            problems[name] = form_sentence(error)
    configs: list[RunConfig] = []
    # Without the fields that are wrong, until nothing else is.
    while not configs and not {"corpus", "tasks", TASK_GROUPS} & problems.keys():
        good = {name: given for name, given in draft.lists.items() if name not in problems}
        try:
            configs = replace(draft, lists=good).used().runs()
        except ConfigError as error:
            if error.field in problems:
                break
            problems[error.field] = form_sentence(error)
        except CorpusError as error:
            problems["corpus"] = str(error)
    if problems:
        order = ("corpus", "columns", "tasks", TASK_GROUPS, *_ORDER)
        in_order = {name: problems[name] for name in order if name in problems}
        unchosen = {"corpus", "tasks"} & (_missing(draft).keys() - draft.problems.keys())
        return Plan(problems={**in_order, **problems}, missing=unchosen)
    return Plan(configs=tuple(configs))


def form_sentence(error: ConfigError) -> str:
    """The sentence of an error with the form's label of the field."""
    return error.sentence(field_label(error.field))


def applicable(
    lists: Mapping[str, str | tuple[str, ...]], reads: frozenset[str] | None = None
) -> frozenset[str]:
    """The fields that at least one of the runs has, given the input of its tasks (None: unknown).
    A field not chosen yet counts as in a fresh form.
    """
    fields = frozenset[str]().union(*(applicable_fields(*kind) for kind in _kinds(lists)))
    if reads is None:
        return fields
    unread = {
        name for name, help_ in FIELD_HELP.items() if help_.view.reads and reads.isdisjoint(help_.view.reads)
    }
    if "apart" not in (lists.get("pair_encoding") or START["pair_encoding"]):
        unread.add("pair_heads")  # what reads both texts at once has heads as any other
    return fields - unread


def _kinds(lists: Mapping[str, str | tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    """Every combination of the values that decide which fields a run has, in the order of CONTEXT_FIELDS."""
    return itertools.product(*(lists.get(name) or START[name] for name in CONTEXT_FIELDS))


def automatic(lists: Mapping[str, str | tuple[str, ...]]) -> dict[str, tuple[Any, ...]]:
    """By field that only some runs have: the values that these runs take where the form names none."""
    values: dict[str, dict[Any, None]] = {}
    for kind in _kinds(lists):
        has = applicable_fields(*kind)
        context = {name: value for name, value in zip(CONTEXT_FIELDS, kind, strict=True) if name in has}
        for name, value in with_defaults(context).items():
            if name not in CONTEXT_FIELDS and value is not None:
                values.setdefault(public_name(name), {})[value] = None
    return {name: tuple(given) for name, given in values.items()}


def _missing(draft: Draft) -> dict[str, str]:
    missing = {}
    used = applicable(draft.lists, draft.reads)
    if not draft.corpus:
        missing["corpus"] = "Corpus: upload files, or name a folder."
    elif not draft.tasks and "corpus" not in draft.problems:
        adds_task = (draft.lists.get("paradigm"), draft.lists.get("prior")) == (("mrn",), (PREDICTED,))
        more = ". You can add another afterwards." if adds_task else " or more."
        missing["tasks"] = f"Tasks: choose one{more}"
    for name in NEEDED:
        given = draft.lists.get(name, "")
        if name not in used or (given.strip() if isinstance(given, str) else given):
            continue
        missing[name] = (
            f"{field_label(name)}: {'choose one or more' if name in OPTIONS else 'write a number'}."
        )
    return missing


def cloned(configs: Sequence[RunConfig]) -> tuple[Draft, tuple[str, ...]]:
    """The form that makes these runs (one at least), and a sentence where it makes others.

    A field at its default, or that no run has, is as in a fresh form.
    """
    sweep = Sweep.of(configs)
    # The form holds one file of a mapping.
    files = [name for name in sweep.lists.get("alignment", ()) if ":" in name]
    named = {
        name: _in_form(name, [value for value in values if value not in files[1:]])
        for name, values in sweep.lists.items()
    }
    draft = Draft(sweep.corpus, sweep.columns, sweep.tasks or (), sweep.task_groups, {**START, **named})
    made, given = set(plan(draft).configs), set(configs)
    if made == given:
        return draft, ()
    return draft, (
        "The form holds one corpus with its tasks, and makes every combination of the values: "
        f"{len(made & given)} of the {plural(len(given), 'cloned run')}, and {len(made - given)} others.",
    )


def _in_form(name: str, values: Sequence[Any]) -> str | tuple[str, ...]:
    if name in WHOLE:
        return tuple(map(value_text, values)) if name in OPTIONS else format_values(name, values)
    if name not in OPTIONS:
        return format_in_form(name, sorted(values))
    places = {option: place for place, option in enumerate(OPTIONS[name])}
    return tuple(sorted(map(value_text, values), key=lambda option: places.get(option, len(places))))


FIELDS: tuple[str, ...] = ("corpus", "columns", "tasks", TASK_GROUPS, *START, *EXECUTION)
"""The parameters of a link, named as the fields of a run; and how the runs wait and come back."""

# Always in the link, so that it still makes the same runs when the form starts otherwise one day.
_ALWAYS = ("encoder", "encoder_training", "paradigm", "epochs", "seed")


def draft_of(query: Mapping[str, str]) -> tuple[Draft, tuple[str, ...]]:
    """The form that a link describes, and a sentence for each value that the form cannot hold.

    What the link does not name is as in a fresh form; without tasks, all that the corpus has.
    """
    refused = []
    lists = dict(START)
    for name in filter(query.__contains__, START):
        lists[name] = query[name]
        if name in OPTIONS:
            picked = _names(query[name])
            lists[name] = tuple(value for value in picked if _offered(name, value))
            refused += [f"{name} {value}" for value in picked if not _offered(name, value)]
    execution: dict[str, Any] = {}
    for name, (least, most) in EXECUTION.items():
        text = query.get(name, "0")
        number = whole_number(text)
        execution[name] = number if number is not None and least <= number <= most else 0
        if number != execution[name]:
            refused.append(f"{name} {text}")
    draft = Draft(
        corpus=query.get("corpus", "demo"),
        columns=_names(query.get("columns", "")) or None,
        tasks=_names(query.get("tasks", "")),
        task_groups=query.get(TASK_GROUPS, "all"),
        lists=lists,
        **execution,
    )
    return draft, tuple(
        f"The link asks for {shortened(value)}, which this form does not offer." for value in refused
    )


def _names(text: str) -> tuple[str, ...]:
    return distinct(comma_list(text))


def _offered(name: str, value: str) -> bool:
    return name in OPEN or value.partition(":")[0] in OPTIONS[name]
