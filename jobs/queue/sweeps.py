"""A sweep: one description of many runs, which becomes runs, a link, and options of `mrnlab launch`."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from core.config import FIELD_HELP, FIELD_RULES, RunConfig, default_value, has_field
from core.config.fields import CONTEXT_FIELDS, comma_list
from core.config.sweep import LISTED, alternatives, check_number, expand
from core.config.task_groups import HINT, TASK_GROUPS, task_groups
from core.config.typed import format_values, parse_values, value_text
from core.corpora.catalogue.names import CATALOGUE, find_folder
from core.corpora.loading import auxiliary_tasks, tasks_of
from core.errors import FIELD, ConfigError, CorpusError
from core.plain_text import shortened

_T = TypeVar("_T")
WHOLE: tuple[str, ...] = tuple(
    name for name in FIELD_HELP if name not in (*LISTED, "corpus", "columns", "tasks")
)
"""The fields with one value for all runs of a sweep, since the value is a list."""
RANKED: tuple[str, ...] = tuple(
    sorted(
        (name for name, help_ in FIELD_HELP.items() if help_.view.rank),
        key=lambda name: FIELD_HELP[name].view.rank,
    )
)
"""The fields that a sweep varies slowest, the first slowest of all; in this order the form asks for them."""
LAUNCH_OPTIONS: tuple[str, ...] = tuple(
    name
    for name in ("corpus", "columns", "tasks", *RANKED, *(name for name in LISTED if name not in RANKED))
    if FIELD_HELP[name].view.option
)
"""The fields that are options of `mrnlab launch`, the first varies slowest; others are values of `--set`."""
_ALWAYS_NAMED = ("prior", "alignment")
"""The conditional fields that a sweep made from runs has even at their default."""


@dataclass(frozen=True)
class Sweep:
    """Many runs: every combination of the values in `lists`, on each corpus and group of tasks.

    corpus       one, or several by lists in braces (`corpora_of`)
    columns      the names of the corpus's columns, where it does not know them
    tasks        None for all that a corpus has
    task_groups  which of them are trained together: a text for `core.config.task_groups`
    lists        by field the values picked, or the text typed; the first varies slowest
    """

    corpus: str = ""
    columns: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    task_groups: str = "all"
    lists: Mapping[str, str | Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, configs: Sequence[RunConfig]) -> Sweep:
        """The sweep with the corpora, tasks and values of these runs, of which there is at least one.

        It makes exactly these runs where some text of task groups does. A conditional field that all runs
        have at its default is left out.
        """
        by_size = sorted(configs, key=lambda config: -len(config.tasks))
        unseeded = distinct(config.model_copy(update={"seed": 0}) for config in configs)
        lists: dict[str, Sequence[Any]] = {}
        for name in (*LISTED, *WHOLE):
            if values := _explicit(configs if name == "seed" else unseeded, name):
                lists[name] = values[0] if name in WHOLE else values
        first = configs[0]
        sweep = cls(
            _corpora_text(distinct(config.corpus for config in configs)),
            None if first.corpus in CATALOGUE else first.columns,
            distinct(task for config in by_size for task in config.tasks),
            lists=lists,
        )
        written = "; ".join(distinct(",".join(config.tasks) for config in by_size))
        grouped = (replace(sweep, task_groups=groups) for groups in ("all", "pairs", "subsets", written))
        return next((each for each in grouped if each._makes(frozenset(configs))), sweep)

    def _makes(self, configs: frozenset[RunConfig]) -> bool:
        try:
            return configs == frozenset(self.runs())
        except (ConfigError, CorpusError):
            return False

    def runs(self, preset: Mapping[str, Any] = MappingProxyType({})) -> list[RunConfig]:
        """The runs of `core.config.sweep.expand` on every corpus and every group of its tasks.

        Of several corpora each takes the named tasks that it has. The first corpus's runs come first. STL
        leaves out tasks that have no scores. The values of `preset` are defaults for fields that a run has.

        Raises ConfigError as `expand` does, and CorpusError where a corpus must be read and cannot be.
        """
        lists = {name: given_values(name, given) for name, given in self.lists.items() if name in LISTED}
        base: dict[str, Any] = {name: given for name, given in self.lists.items() if name not in LISTED}
        base |= {"columns": self.columns} if self.columns is not None else {}
        corpora = corpora_of(self.corpus)
        if not self.corpus or self.tasks == ():  # expand raises an error
            base |= {"corpus": self.corpus} if self.corpus else {}
            return expand(base if self.tasks is None else {**base, "tasks": self.tasks}, lists, preset)
        tasks = {corpora[0]: self.tasks or ()}
        if len(corpora) > 1 or self.tasks is None:
            tasks = {corpus: tasks_of(corpus, self.columns) for corpus in corpora}
        every = frozenset[str]().union(*tasks.values())
        runs: dict[RunConfig, None] = {}
        for corpus in corpora:
            made: list[RunConfig] = []
            elsewhere = every.difference(tasks[corpus])
            chosen = [task for task in self.tasks or tasks[corpus] if task not in elsewhere]
            auxiliary = auxiliary_tasks(corpus)
            groups = task_groups(self.task_groups, chosen, auxiliary, elsewhere)
            if len(groups) == len(corpora) == 1:
                made = expand({**base, "corpus": corpus, "tasks": groups[0]}, lists, preset)
            elif groups:
                made = expand({**base, "corpus": corpus}, {**lists, "tasks": groups}, preset)
            scored = [run for run in made if run.paradigm != "stl" or run.tasks[0] not in auxiliary]
            runs |= dict.fromkeys(scored or made)
            check_number(len(runs), {**lists, "corpus": corpora})
        if not runs:
            some = ", ".join(self.tasks or sorted(every))
            raise ConfigError(
                TASK_GROUPS, f"{FIELD}: '{shortened(self.task_groups)}' makes no group of {some}; {HINT}"
            )
        return list(runs)

    def query(self) -> dict[str, str]:
        """The sweep as parameters of a link to the form, without empty ones."""
        given: dict[str, str | Sequence[Any]] = {"corpus": self.corpus, "tasks": self.tasks or ()}
        given |= {"columns": self.columns or ""}
        given |= {TASK_GROUPS: "" if self.task_groups == "all" else self.task_groups, **self.lists}
        texts = {
            name: values if isinstance(values, str) else ",".join(map(value_text, values))
            for name, values in given.items()
        }
        return {name: text for name, text in texts.items() if text}

    def options(self) -> list[tuple[str, str]]:
        """The options of `mrnlab launch` that make the same runs, with values. Raises ConfigError."""
        fields: dict[str, Sequence[Any]] = {"corpus": [self.corpus], "tasks": self.tasks or ()}
        fields[TASK_GROUPS] = [] if self.task_groups == "all" else [self.task_groups]
        fields["columns"] = self.columns or ()
        options = []
        for name, given in {**fields, **self.lists}.items():
            values = given_values(name, given)
            text = format_values(name, values).replace(", ", ",")
            if name == "seed" and values != [0]:
                options.append(("--seeds", text))
            elif name in fields or name in LAUNCH_OPTIONS:
                options += [(f"--{name.replace('_', '-')}", text)] if values or name not in fields else []
            else:
                options.append(("--set", f"{name}={text}"))
        return options


def given_values(name: str, given: str | Sequence[Any]) -> list[Any]:
    """Picked values or typed text as values of that field. Raises ConfigError."""
    if not isinstance(given, str):
        return list(given)
    return comma_list(given) if name in WHOLE else parse_values(name, given)


def launch_command(config: RunConfig, tasks: Sequence[str], seeds: Sequence[int]) -> str:
    """The command that launches this configuration on these tasks, or reuses its runs."""
    context = {name: config.value(name) for name in (*CONTEXT_FIELDS, "alignment")}
    lists: dict[str, Sequence[Any]] = {"paradigm": [config.paradigm], "seed": seeds}
    lists |= {name: [value] for name, value in context.items() if value and name != "paradigm"}
    for name, value in config.values().items():
        is_set = config.value(name) != default_value(config, name)
        if is_set and name in (*LISTED, *WHOLE) and name not in lists and name not in context:
            lists[name] = value if isinstance(value, list | tuple) else [value]
    options = Sweep(config.corpus, config.columns, tuple(tasks), lists=lists).options()
    return shlex.join(["mrnlab", "launch", *itertools.chain.from_iterable(options), "--reuse"])


def corpora_of(text: str) -> list[str]:
    """The corpora that a text with lists in braces names: `simulated:demo?alpha={0.2|0.9}` is two.

    A folder with exactly that name is one corpus. Raises ConfigError.
    """
    if not {"{", "}"} & {*text} or find_folder(text) is not None:
        return [text]
    return alternatives(text, "corpus")


def _corpora_text(names: Sequence[str]) -> str:
    """The text that names these corpora, with the options that differ in braces."""
    heads = {name.partition("?")[0] for name in names}
    options = [[pair.partition("=")[::2] for pair in name.partition("?")[2].split("&")] for name in names]
    keys = {tuple(key for key, _ in pairs) for pairs in options}
    if len(names) == 1 or len(heads) > 1 or len(keys) > 1:
        return names[0]
    lists = []
    for pairs in zip(*options, strict=True):
        values = distinct(value for _, value in pairs)
        lists.append(f"{pairs[0][0]}={values[0] if len(values) == 1 else '{' + '|'.join(values) + '}'}")
    return f"{heads.pop()}?{'&'.join(lists)}"


def _explicit(configs: Iterable[RunConfig], name: str) -> tuple[Any, ...]:
    """The values of a field that a sweep must name; none where all its runs have the default."""
    values = {
        config: value
        for config in configs
        if has_field(config, name) and (value := _named_value(config, name)) is not None
    }
    may_be_left_out = FIELD_RULES[name].is_conditional and name not in _ALWAYS_NAMED
    if may_be_left_out and all(_has_default(config, name) for config in values):
        return ()
    return distinct(values.values())


def _named_value(config: RunConfig, name: str) -> Any:
    """The value by which a sweep makes this run, which may have the field unset for that value."""
    return config.lstm_layer_count if name == "lstm_layers" else config.value(name)


def _has_default(config: RunConfig, name: str) -> bool:
    """Whether the run would be the same without that field."""
    values = config.values()
    del values[name]
    try:
        return RunConfig.build(**values) == config
    except ConfigError:
        return False  # its default is not allowed, as ten times a large learning rate


def distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    """The values in their order, each once."""
    return tuple(dict.fromkeys(values))
