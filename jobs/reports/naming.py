"""Names of runs and configurations: the same on the pages and at the terminal.

Plain text: escape before Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from core.config import FIELD_RULES, RunConfig, comparison_values, default_value, has_field
from core.config.fields import attribute_name, public_name
from core.corpora.derived import is_derived
from core.registry import FULL, reads_words
from core.store import Run, RunState
from core.wording import number, plural

UNREADABLE = "made by another version"
"""What stands for the name of a run whose description cannot be read."""

# Words for the fields that a name may need to tell two configurations apart.
_PLAIN = {"encoder_training", "encoder", "prior", "corpus"}
_SHORT = {
    "epochs": "epochs",
    "fraction": "of the data",
    "batch_size": "batch",
    "bilstm_hidden": "BiLSTM size",
    "vectors_training": "vectors",
    "clip_norm": "clipped at",
}
_PATHS = ("corpus", "encoder", "vectors", "context_encoder")
_FIRST = ("encoder", "encoder_training", "prior", "alignment", "fraction", "corpus")
"""The fields that a name begins with."""
_ALWAYS = {*_FIRST, "tasks", "epochs", "batch_size"}
"""The fields that a name has by their value even where that is the default."""
_CONDITIONAL = {public_name(name) for name, rule in FIELD_RULES.items() if rule.is_conditional}


_DATASET = re.compile(r"(?<![^:+])hub:(?:[^?+]*/)?([^?+/]+)")
_COMMIT = re.compile(r"(?<=[?&]revision=[0-9a-f]{7})[0-9a-f]{33}")


def corpus_name(config: RunConfig) -> str:
    """The corpus's name: of a folder or a dataset, its last part, also of one that the corpus is derived
    from; of a commit the first digits.
    """
    start, *options = _COMMIT.sub("", _DATASET.sub(r"\1", config.corpus)).split("?", 1)
    kind, base = start.split(":", 1) if is_derived(config.corpus) and ":" in start else ("", start)
    names = "+".join(PurePath(folder).name or folder for folder in base.split("+"))
    return "?".join([f"{kind}:{names}" if kind else names, *options])


def short_name(config: RunConfig) -> str:
    """`MRN λ 0.01`, `MTL`, `STL ner`."""
    name = config.paradigm.upper()
    if config.paradigm == "mrn":
        return f"{name} λ {number(config.lambda_)}"
    return " ".join((name, *config.tasks[:1])) if config.paradigm == "stl" else name


def run_name(run: Run) -> str:
    """`12 · MRN λ 0.01 · demo · seed 3`: a run by itself, away from others."""
    config = run.config
    if run.config_problem is not None:
        return f"{run.id} · {UNREADABLE}"
    return f"{run.id} · {short_name(config)} · {corpus_name(config)} · seed {config.seed}"


def run_names(runs: Sequence[Run]) -> list[str]:
    """Names of runs shown together, with what sets them apart: `12 · MRN λ 0.01 · exact · seed 3`."""
    parts = zip(runs, _paradigm_names([[run] for run in runs]), strict=True)
    return [f"{run.id} · {name} · seed {run.config.seed}" for run, name in parts]


def group_names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """Names of configurations that are shown together, no two alike: `MRN λ 0.01 · exact · 5 seeds`."""
    names = []
    for group, name in zip(groups, _paradigm_names(groups), strict=True):
        seeds = {run.config.seed for run in group}
        names.append(f"{name} · {plural(len(seeds), 'seed') if len(seeds) > 1 else f'seed {min(seeds)}'}")
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name} · run {group[0].id}"
        for group, name in zip(groups, names, strict=True)
    ]


def _paradigm_names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """`differing` of the groups' first runs. STL of one task names its task."""
    names = differing([group[0].config for group in groups])
    for place, group in enumerate(groups):
        tasks = {run.config.tasks for run in group}
        if group[0].config.paradigm == "stl" and len(tasks) == 1:
            names[place] = names[place].replace("STL", short_name(group[0].config), 1)
    return names


def encoder_title(name: str, training: str) -> str:
    """`minilm, frozen`; `roberta-base, fine-tuned`; `minilm, top:2`; what reads words is always trained:
    `sc-lstm`.
    """
    if reads_words(name):
        return name
    return f"{name}, {'fine-tuned' if training == FULL else training}"


def value_text(value: Any) -> str:
    """A field's value as a table of fields has it."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, int | float) else str(value)


def field_text(field: str, value: Any, parts: int = 1) -> str:
    """A field's value in few words: `λ 0.01`, `5% of the data`, `full`. Of a path the last `parts` show."""
    if field == "fraction":
        return f"{100 * float(value):g}% of the data"
    if field == "alignment":
        name, _, file = str(value).partition(":")
        return f"{name} {PurePath(file).stem}" if file else name
    if isinstance(value, list):
        value = ", ".join(number(item) if isinstance(item, float) else str(item) for item in value)
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = number(value)
    elif field in _PATHS and (PurePath(str(value)).is_absolute() or "encoder" not in field):
        value = "/".join(PurePath(str(value)).parts[-parts:]) or value
    return str(value) if field in _PLAIN else f"{_words(field)} {value}"


def field_texts(field: str, values: Sequence[Any]) -> list[str]:
    """A field's values in few words, no two different ones alike; empty for None."""
    different = len(set(map(repr, values)))
    for parts in (1, 2, 3, 4) if field in _PATHS else (1,):
        texts = ["" if value is None else field_text(field, value, parts) for value in values]
        if len(set(texts)) == different:
            return texts
    words = "" if field in (*_FIRST, *_PATHS, "lambda") else f"{_words(field)} "
    return ["" if value is None else f"{words}{value}" for value in values]


def _words(field: str) -> str:
    return _SHORT.get(field, field.replace("_", " "))


def differing(configs: Sequence[RunConfig]) -> list[str]:
    """A name for each configuration: its paradigm and whatever sets it apart from the others.

    Only what differs within a paradigm, or between paradigms that share the field, is named.
    """
    lambdas = {config.lambda_ for config in configs if config.paradigm == "mrn"}
    is_close = len(set(map(number, lambdas))) < len(lambdas)  # some would read the same, rounded
    parts = [
        [f"MRN λ {config.lambda_ if is_close else number(config.lambda_)}"]
        if config.paradigm == "mrn"
        else [config.paradigm.upper()]
        for config in configs
    ]
    for field, texts in fields_apart(configs):
        if field not in ("paradigm", "lambda"):  # every name has these
            for of_name, text in zip(parts, texts, strict=True):
                of_name += [text] if text else []
    return list(map(" · ".join, parts))


def fields_apart(configs: Sequence[RunConfig]) -> Iterator[tuple[str, list[str]]]:
    """Each field of which those configurations that have it have different values; and all values in few
    words, empty where it is unset or has the value that it takes by itself.
    """
    all_values = [comparison_values(config) for config in configs]
    for field in dict.fromkeys(_FIRST + tuple(name for values in all_values for name in values)):
        if field == "tasks":
            differs = len({config.tasks for config in configs if config.paradigm != "stl"}) > 1
        else:
            of_field = zip(configs, all_values, strict=True)
            different = {
                repr(values.get(field))
                for config, values in of_field
                if field == "columns" or has_field(config, field)
            }
            differs = len(different) > 1
        if differs:
            texts = field_texts(field, [values.get(field) for values in all_values])
            for place, config in enumerate(configs):
                by_itself = field not in _ALWAYS and is_default(config, field)
                if by_itself or (field == "encoder_training" and reads_words(config.encoder)):
                    texts[place] = ""
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
    """The fields, in words, in which two configurations differ although both have them: what else than the
    fields `compared` may cause a difference of their scores.

    What both have by default, as an encoder's own learning rate, follows from other fields and is not named.
    """
    values, other_values = comparison_values(a), comparison_values(b)
    return tuple(
        field.replace("_", " ")
        for field in values
        if field not in compared
        and field in other_values
        and values[field] != other_values[field]
        and has_field(a, field)
        and has_field(b, field)
        and not (field in _CONDITIONAL and is_default(a, field) and is_default(b, field))
    )


def is_default(config: RunConfig, field: str) -> bool:
    """Whether a field has the value that it takes by itself in such a run."""
    name = attribute_name(field)
    return bool(getattr(config, name) == default_value(config, name))


def survival_text(run: Run) -> str:
    """What a run that trains or waits would keep if its worker died; empty where there is nothing to say."""
    sentences = []
    if run.attempt > 1:
        sentences.append(f"Attempt {run.attempt}.")
    if run.saved_step:
        resumes = "it goes on from there" if run.state is RunState.QUEUED else "resuming goes on from there"
        sentences.append(f"State saved at step {run.saved_step:,}; {resumes}.")
    if run.retries:
        times = "once more" if run.retries == 1 else f"up to {run.retries:,} more times"
        sentences.append(f"Resumed by itself {times} if its worker dies.")
    return " ".join(sentences)
