"""Short names for runs and configurations, in the order a researcher thinks: the same on the pages and at the
terminal. Plain text: escape before Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from core.config import RunConfig, kind_values
from core.registry import parse_alignment
from core.store.records import Run
from core.wording import number

# Words for the fields that a name may need to tell two configurations apart.
_PLAIN = {"encoder_training", "encoder", "prior"}
_SHORT = {"lambda": "λ", "epochs": "epochs", "fraction": "of the data", "batch_size": "batch"}


_UNSET_IS_A_VALUE = ("batch_tokens", "dev_sentences")
"""Fields that all runs have, and that mean something unset: batches by sentences, a tenth held out."""


def corpus_name(config: RunConfig) -> str:
    """The corpus's name: of a folder, its last part."""
    return PurePath(config.corpus).name or config.corpus


def kind_name(config: RunConfig) -> str:
    """`MRN λ 0.01`, `MTL`, `STL ner`."""
    name = config.paradigm.upper()
    if config.paradigm == "mrn":
        return f"{name} λ {number(config.lambda_)}"
    return f"{name} {config.tasks[0]}" if config.paradigm == "stl" else name


def run_name(run: Run) -> str:
    """`12 · MRN λ 0.01 · demo · seed 3`."""
    return f"{run.id} · {kind_name(run.config)} · {corpus_name(run.config)} · seed {run.config.seed}"


def field_text(field: str, value: Any) -> str:
    """A field's value in few words: `λ 0.01`, `5% of the data`, `full`."""
    if field == "fraction":
        return f"{100 * float(value):g}% of the data"
    if field == "corpus":
        return PurePath(str(value)).name
    if field == "alignment":
        name, file = parse_alignment(str(value))
        return f"{name} {PurePath(file).stem}" if file else name
    if isinstance(value, list):
        value = "+".join(map(str, value))
    text = number(value) if isinstance(value, float) else str(value)
    return text if field in _PLAIN else f"{_SHORT.get(field, field.replace('_', ' '))} {text}"


def differing(configs: Sequence[RunConfig]) -> list[str]:
    """A name for each configuration: its paradigm and whatever sets it apart from the others.

    Only what differs within a paradigm, or between paradigms that share the field, is named.
    """
    all_values = [kind_values(config) for config in configs]
    shown = [field for field in _fields(all_values) if _differs(field, configs, all_values)]
    names = []
    for config, values in zip(configs, all_values, strict=True):
        parts = [config.paradigm.upper()]
        if config.paradigm == "mrn" and "lambda" not in shown:
            parts[0] += f" λ {number(config.lambda_)}"
        parts += [field_text(field, values[field]) for field in shown if values.get(field) is not None]
        names.append(" · ".join(parts))
    return names


def confounds(a: RunConfig, b: RunConfig) -> tuple[str, ...]:
    """The fields, in words, in which two configurations differ although both have them: what else than the
    paradigm may cause a difference of their scores.
    """
    values, other_values = kind_values(a), kind_values(b)
    return tuple(
        field.replace("_", " ")
        for field in values
        if field != "paradigm"
        and (field in _UNSET_IS_A_VALUE or None not in (values[field], other_values.get(field)))
        and values[field] != other_values.get(field)
    )


def _fields(all_values: Sequence[Mapping[str, Any]]) -> list[str]:
    first = ("lambda", "encoder", "encoder_training", "prior", "alignment", "fraction", "corpus")
    rest = [field for values in all_values for field in values if field not in first]
    return [field for field in dict.fromkeys((*first, *rest)) if field not in ("paradigm", "columns")]


def _differs(field: str, configs: Sequence[RunConfig], all_values: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two configurations have different values in this field where both have one at all."""
    if field == "tasks":
        return len({c.tasks for c in configs if c.paradigm != "stl"}) > 1
    seen = {json.dumps(values.get(field)) for values in all_values}
    if field not in _UNSET_IS_A_VALUE:
        seen.discard(json.dumps(None))
    return len(seen) > 1
