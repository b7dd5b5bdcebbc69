"""Names of runs and configurations: the same on the pages and at the terminal.

Plain text: escape before Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_
from pathlib import PurePath
from typing import Any

from core.config import (
    FIELD_HELP,
    FIELD_RULES,
    RunConfig,
    comparison_key,
    comparison_values,
    default_value,
    fields_of,
    has_field,
)
from core.corpora.derived import is_derived
from core.registry import FULL, MODES, UNKNOWN_ENCODER, reads_words
from core.store import Run, RunState
from core.tasks.scores import PEARSON
from core.wording import all_of, number, plural, without_shared

LAMBDA = "λ="
"""Stands before the strength of the prior in a name."""
UNREADABLE = "made by another version"
"""The name of a run whose description cannot be read."""

_PATHS = tuple(field for field, help_ in FIELD_HELP.items() if help_.view.path)
_FIRST = ("encoder", "encoder_training", "prior", "alignment", "fraction", "corpus")
"""The fields that a name begins with."""
_SETTINGS = ("fraction", "encoder", "encoder_training")
"""The fields that names have wherever configurations differ in them."""
_ALWAYS = {*_FIRST, "tasks", "epochs", "batch_size"}
"""The fields that a name shows even at their default."""
_LEAST_DECIMAL = 1e-5
"""From here on a λ is written in decimals beside others that are."""
_FEW_TASKS = 3
"""More tasks are counted, or named by those that are missing."""
_CONDITIONAL = {name for name, rule in FIELD_RULES.items() if rule.is_conditional}

SCORE_NAMES: Mapping[str, str] = {
    "f1_conll": "F1",
    "accuracy": "accuracy",
    "seqeval_f1": "seqeval F1",
    PEARSON: "Pearson × 100",
}
"""The title of a score, by its name in the store."""

_DATASET = re.compile(r"(?<![^:+])hub:(?:[^?+]*/)?([^?+/]+)")
_COMMIT = re.compile(r"(?<=[?&]revision=[0-9a-f]{7})[0-9a-f]{33}")


def corpus_name(corpus: str, hidden: Collection[str] = ()) -> str:
    """The corpus's name, as `demo (dev=50)`: the last part of a folder or dataset, and its options.

    Commits are shortened to their first digits. `hidden` options are left out.
    """
    start, _, query = _COMMIT.sub("", _DATASET.sub(r"\1", corpus)).partition("?")
    options = [option for option in query.split("&") if option and option.partition("=")[0] not in hidden]
    kind, base = start.split(":", 1) if is_derived(corpus) and ":" in start else ("", start)
    names = "+".join(PurePath(folder).name or folder for folder in base.split("+"))
    name = f"{kind}:{names}" if kind else names
    return f"{name} ({', '.join(options)})" if options else name


def short_name(config: RunConfig) -> str:
    """A short name of a configuration: `MRN λ=0.01`, `MTL`, `STL ner`."""
    name = paradigm_name(config)
    if config.paradigm == "mrn":
        return f"{name} {LAMBDA}{number(config.lambda_)}"
    return " ".join((name, *config.tasks[:1])) if config.paradigm == "stl" else name


def paradigm_name(config: RunConfig) -> str:
    """`STL`, `MTL` or `MRN`; of a control `MRN control (ner permuted)`; else the other system's name.

    No run is named without saying that it is a control.
    """
    name = config.system or config.paradigm.upper()
    return name if config.permuted is None else f"{name} control ({config.permuted} permuted)"


def run_name(run: Run) -> str:
    """The name of a single run: `12 · MRN λ=0.01 · demo · seed 3`."""
    config = run.config
    if run.config_problem is not None:
        return f"{run.id} · {UNREADABLE}"
    return f"{run.id} · {short_name(config)} · {corpus_name(config.corpus)} · seed {config.seed}"


def run_names(runs: Sequence[Run], elsewhere: Collection[str] = ()) -> list[str]:
    """Names of runs shown together, with the fields that differ: `12 · MRN λ=0.01 · seed 3`.

    Without fields that are shown `elsewhere`.
    """
    parts = zip(runs, _paradigm_names([[run] for run in runs], elsewhere), strict=True)
    return [f"{run.id} · {name} · seed {run.config.seed}" for run, name in parts]


def group_names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Distinct names of configurations shown together: `MRN λ=0.01 · exact · 5 seeds`."""
    names = []
    for group, name in zip(groups, _paradigm_names(groups), strict=True):
        seeds = {run.config.seed for run in group}
        names.append(f"{name} · {plural(len(seeds), 'seed') if len(seeds) > 1 else f'seed {min(seeds)}'}")
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name} · run {group[0].id}"
        for group, name in zip(groups, names, strict=True)
    ]


def configuration_titles(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Distinct names of configurations without their seeds: `MRN λ=0.01 · exact`."""
    titles = _paradigm_names(groups)
    taken = Counter(titles)
    return [
        title if taken[title] == 1 else f"{title} · run {group[0].id}"
        for group, title in zip(groups, titles, strict=True)
    ]


def _paradigm_names(groups: Sequence[Sequence[Run]], elsewhere: Collection[str] = ()) -> list[str]:
    """`shortest_names` of the groups' first runs; STL of one task names its task."""
    names = shortest_names([group[0].config for group in groups], elsewhere)
    for index, group in enumerate(groups):
        tasks = {run.config.tasks for run in group}
        if group[0].config.paradigm == "stl" and len(tasks) == 1:
            names[index] = names[index].replace("STL", short_name(group[0].config), 1)
    return names


def encoder_title(name: str, training: str) -> str:
    """`minilm, frozen`, `roberta-base, fine-tuned` or, for encoders over words, `sc-lstm`."""
    if reads_words(name) or name == UNKNOWN_ENCODER:
        return name
    return f"{name}, {'fine-tuned' if training == FULL else training}"


def value_text(value: Any) -> str:
    """Formats a field's value for a table of fields."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, int | float) else str(value)


def field_text(field: str, value: Any, parts: int = 1) -> str:
    """Formats a field's value: `λ 0.01`, `5% of the data`, `8 epochs`; of a path the last `parts`."""
    if field == "fraction":
        return f"{100 * float(value):g}% of the data"
    if field == "alignment":
        name, _, file = str(value).partition(":")
        return _mapping_text(str(value), file) if file else name
    if field == "learn":
        modes = [mode for mode in MODES if mode in value]
        return f"relations of {all_of([f'{mode}s' for mode in modes])}" if modes else "no relations learned"
    if counted := _counted(field):
        return plural(value, counted)
    if isinstance(value, list):
        value = ", ".join(number(item) if isinstance(item, float) else str(item) for item in value)
    elif isinstance(value, bool | float):
        value = value_text(value)
    elif field in _PATHS and (PurePath(str(value)).is_absolute() or "encoder" not in field):
        value = "/".join(PurePath(str(value)).parts[-parts:]) or value
    return f"{_label(field)} {value}".lstrip()


def _mapping_text(alignment: str, file: str) -> str:
    """`without chunk–ner` of a mapping that cuts a link; of others the name of the file."""
    from core.mrn.alignments.cut import cut_of  # pages import this module, and few runs have a mapping

    cut = cut_of(alignment)
    return f"mapping {PurePath(file).stem}" if cut is None else f"without {cut}"


def field_texts(field: str, values: Sequence[Any]) -> list[str]:
    """Formats a field's values so that different ones have different texts; empty for None."""
    different = len(set(map(repr, values)))
    if field == "tasks":
        return _task_texts([value or () for value in values])
    for parts in (1, 2, 3, 4) if field in _PATHS else (1,):
        texts = ["" if value is None else field_text(field, value, parts) for value in values]
        if len(set(texts)) == different:
            return texts
    label = "" if field in (*_FIRST, *_PATHS, "lambda") else f"{_label(field)} "
    return ["" if value is None else f"{label}{value}" for value in values]


def _task_texts(lists: Sequence[Sequence[str]]) -> list[str]:
    """Short texts of lists of tasks: `ner, pos`, `all but ner`, `12 tasks`; all names if need be."""
    every = list(dict.fromkeys(task for tasks in lists for task in tasks))
    short = without_shared(every)

    def text(tasks: Sequence[str]) -> str:
        if len(tasks) <= _FEW_TASKS:
            return ", ".join(short[task] for task in tasks)
        missing = [short[task] for task in every if task not in tasks]
        if 0 < len(missing) <= _FEW_TASKS:
            return f"all but {all_of(missing)}"
        return plural(len(tasks), "task")

    texts = list(map(text, lists))
    if len(set(texts)) == len(set(map(tuple, lists))):
        return texts
    return [", ".join(short[task] for task in tasks) for tasks in lists]


def _counted(field: str) -> str:
    return FIELD_HELP[field].view.counted if field in FIELD_HELP else ""


def _label(field: str) -> str:
    short = FIELD_HELP[field].view.short if field in FIELD_HELP else None
    return field.replace("_", " ") if short is None else short


def shortest_names(configs: Sequence[RunConfig], elsewhere: Collection[str] = ()) -> list[str]:
    """The shortest distinct names of configurations: `MTL`, `MRN λ=0.01`, `MRN λ=0.1 · exact`.

    A name has the paradigm, MRN's λ, the share of the data, the encoder and its training where these differ,
    and only those other values without which it would also fit another configuration of its paradigm. A
    default λ follows from other fields, so it tells no two configurations apart. Configurations of one row
    of a comparison have the same name. The share, the encoder and its training are left out where they are
    `elsewhere`: beside the names, in columns of their own.
    """
    by_key = dict(zip(map(comparison_key, configs), configs, strict=True))
    always = dict(zip(by_key, _always_named(list(by_key.values()), elsewhere), strict=True))
    by_paradigm: dict[str, dict[str, RunConfig]] = {}
    for key, config in by_key.items():
        by_paradigm.setdefault(paradigm_name(config), {})[key] = config
    names: dict[str, str] = {}
    for paradigm, of_paradigm in by_paradigm.items():
        parts = _distinguishing(list(of_paradigm.values()))
        starts = _with_lambda(paradigm, [config.lambda_ for config in of_paradigm.values()])
        for key, start, texts in zip(of_paradigm, starts, parts, strict=True):
            names[key] = " · ".join([start, *filter(None, always[key]), *texts])
    return [names[comparison_key(config)] for config in configs]


def _always_named(configs: Sequence[RunConfig], elsewhere: Collection[str]) -> list[tuple[str, ...]]:
    """For each configuration the texts of the share, the encoder and its training that differ.

    Empty for the training of encoders over words, and for what is not known of other systems. Paradigms over
    other encoders do not compare, so each name tells its own.
    """
    columns = []
    for field in filter(lambda field: field not in elsewhere, _SETTINGS):
        values = [config.values()[field] if has_field(config, field) else None for config in configs]
        if len({value for value in values if value is not None}) > 1:
            columns.append(field_texts(field, values))
    return list(zip(*columns, strict=True)) if columns else [()] * len(configs)


def _with_lambda(paradigm: str, lambdas: Sequence[float | None]) -> list[str]:
    """`MRN λ=0.01` for each λ; `MTL` where there is none."""
    return [f"{paradigm} {LAMBDA}{text}" if text else paradigm for text in number_texts(lambdas)]


def number_texts(values: Sequence[float | None]) -> list[str]:
    """Numbers that stand together: unrounded where two would read the same, 0.0003 beside 0.001."""
    is_close = len(set(map(number, values))) < len(set(values))
    texts = ["" if value is None else str(value) if is_close else number(value) for value in values]
    if len({"e" in text for text in texts}) > 1 and min(filter(None, values), default=0) >= _LEAST_DECIMAL:
        texts = [format(Decimal(text), "f") if text else "" for text in texts]
    return texts


def _distinguishing(configs: Sequence[RunConfig]) -> list[list[str]]:
    """For each configuration of a paradigm the fewest texts that it needs beside λ and settings."""
    lambdas = ["default" if is_default(config, "lambda") else config.lambda_ for config in configs]
    starts = [
        f"{value} {config.fraction} {config.encoder} {config.encoder_training}"
        for value, config in zip(lambdas, configs, strict=True)
    ]
    given = ("paradigm", "system", "lambda", *_SETTINGS)
    columns = [texts for field, texts in fields_apart(configs) if field not in given]
    distinct = len(set(zip(starts, *columns, strict=True)))
    # Fields that the other fields make superfluous go, the last ones first.
    for column in reversed(columns):
        others = [other for other in columns if other is not column]
        if len(set(zip(starts, *others, strict=True))) == distinct:
            columns = others
    rows = [list(enumerate(row)) for row in zip(starts, *columns, strict=True)]
    having: dict[tuple[int, str], int] = Counter()
    """By column and text, the configurations that have it, as bits."""
    for index, row in enumerate(rows):
        for part in row:
            having[part] += 1 << index
    return [_needed([part for part in row if part[1]], having) for row in rows]


def _needed(parts: Sequence[tuple[int, str]], having: Mapping[tuple[int, str], int]) -> list[str]:
    """The texts of a row, after its first, without which the row would fit more configurations."""

    def fitting(some: Iterable[tuple[int, str]]) -> int:
        return reduce(and_, (having[part] for part in some))

    fits = fitting(parts)
    for part in parts[:0:-1]:
        others = [other for other in parts if other is not part]
        parts = others if fitting(others) == fits else parts
    return [text for _, text in parts[1:]]


def fields_apart(configs: Sequence[RunConfig]) -> Iterator[tuple[str, list[str]]]:
    """Yields each field in which configurations that have it differ, with the texts of all values.

    A text is empty where the field is unset or has its default.
    """
    all_values = [comparison_values(config) for config in configs]
    all_fields = [fields_of(config) | {"columns"} for config in configs]
    for field in dict.fromkeys(_FIRST + tuple(name for values in all_values for name in values)):
        if field == "tasks":
            differs = len({config.tasks for config in configs if config.paradigm in ("mtl", "mrn")}) > 1
        else:
            different = {
                repr(values.get(field))
                for fields, values in zip(all_fields, all_values, strict=True)
                if field in fields
            }
            differs = len(different) > 1
        if differs:
            texts = field_texts(field, [values.get(field) for values in all_values])
            for index, config in enumerate(configs):
                has_default = field not in _ALWAYS and is_default(config, field)
                if has_default or (field == "encoder_training" and reads_words(config.encoder)):
                    texts[index] = ""
            yield field, texts


def settings_text(config: RunConfig) -> str:
    """The encoder and the non-default settings: `sc-lstm · BiLSTM size 64`."""
    named = {"corpus", "columns", "tasks", "paradigm", "encoder", "encoder_training", "lambda", "seed"}
    values = config.values().items()
    parts = [
        field_text(field, value)
        for field, value in values
        if value is not None and field not in named and not is_default(config, field)
    ]
    encoder = field_text("encoder", config.encoder)
    return " · ".join([encoder_title(encoder, config.encoder_training), *parts])


def confounds(a: RunConfig, b: RunConfig, compared: Sequence[str] = ("paradigm",)) -> tuple[str, ...]:
    """The fields, by public name, except `compared`, that may cause a difference between two scores.

    They are the fields that both have with different values. Defaults of both, as an encoder's own learning
    rate, follow from other fields and are left out.
    """
    values, other_values = comparison_values(a), comparison_values(b)
    return tuple(
        field
        for field in values
        if field not in compared
        and field in other_values
        and values[field] != other_values[field]
        and has_field(a, field)
        and has_field(b, field)
        and not (field in _CONDITIONAL and is_default(a, field) and is_default(b, field))
    )


def is_default(config: RunConfig, field: str) -> bool:
    """Whether a field has its default in a run of this kind."""
    return bool(config.value(field) == default_value(config, field))


def survival_text(run: Run) -> str:
    """Describes the attempts, saved state and retries of a run that trains or waits; may be empty."""
    sentences = []
    if run.attempt > 1:
        sentences.append(f"Attempt {run.attempt}.")
    if run.saved_step:
        resumes = "it goes on from there" if run.state is RunState.QUEUED else "resuming goes on from there"
        sentences.append(f"State saved at step {run.saved_step:,}; {resumes}.")
    if run.retries:
        times = "once more" if run.retries == 1 else f"up to {run.retries:,} more times"
        sentences.append(f"Resumed automatically {times} if its worker dies.")
    return " ".join(sentences)
