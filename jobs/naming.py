"""Names of runs and configurations, their costs and correlations in words: the same on the pages and at the
terminal. Plain text: escape before Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from core.config import RunConfig, comparison_values
from core.evaluation.costs import Cost
from core.evaluation.statistics import MeanSD
from core.registry import parse_alignment
from core.store import Run, RunState
from core.wording import duration, number

# Words for the fields that a name may need to tell two configurations apart.
_PLAIN = {"encoder_training", "encoder", "prior"}
_SHORT = {"epochs": "epochs", "fraction": "of the data", "batch_size": "batch"}


_UNSET_IS_A_VALUE = ("batch_tokens", "dev_sentences")
"""Fields that all runs have, and that mean something unset: batches by sentences, a tenth held out."""


def corpus_name(config: RunConfig) -> str:
    """The corpus's name: of a folder, its last part."""
    return PurePath(config.corpus).name or config.corpus


def short_name(config: RunConfig) -> str:
    """`MRN λ 0.01`, `MTL`, `STL ner`."""
    name = config.paradigm.upper()
    if config.paradigm == "mrn":
        return f"{name} λ {number(config.lambda_)}"
    return f"{name} {config.tasks[0]}" if config.paradigm == "stl" else name


def run_name(run: Run) -> str:
    """`12 · MRN λ 0.01 · demo · seed 3`."""
    return f"{run.id} · {short_name(run.config)} · {corpus_name(run.config)} · seed {run.config.seed}"


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
    all_values = [comparison_values(config) for config in configs]
    shown = [field for field in _fields(all_values) if _differs(field, configs, all_values)]
    names = []
    for config, values in zip(configs, all_values, strict=True):
        parts = [short_name(config) if config.paradigm == "mrn" else config.paradigm.upper()]
        parts += [field_text(field, values[field]) for field in shown if values.get(field) is not None]
        names.append(" · ".join(parts))
    return names


def confounds(a: RunConfig, b: RunConfig) -> tuple[str, ...]:
    """The fields, in words, in which two configurations differ although both have them: what else than the
    paradigm may cause a difference of their scores.
    """
    values, other_values = comparison_values(a), comparison_values(b)
    return tuple(
        field.replace("_", " ")
        for field in values
        if field != "paradigm"
        and (field in _UNSET_IS_A_VALUE or None not in (values[field], other_values.get(field)))
        and values[field] != other_values.get(field)
    )


def _fields(all_values: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields that may set configurations apart, but for λ and the paradigm, which every name has."""
    first = ("encoder", "encoder_training", "prior", "alignment", "fraction", "corpus")
    rest = [field for values in all_values for field in values if field not in first]
    return [
        field for field in dict.fromkeys((*first, *rest)) if field not in ("paradigm", "lambda", "columns")
    ]


def _differs(field: str, configs: Sequence[RunConfig], all_values: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two configurations have different values in this field where both have one at all."""
    if field == "tasks":
        return len({c.tasks for c in configs if c.paradigm != "stl"}) > 1
    seen = {json.dumps(values.get(field)) for values in all_values}
    if field not in _UNSET_IS_A_VALUE:
        seen.discard(json.dumps(None))
    return len(seen) > 1


COST_HEAD = ("parameters", "trained", "peak memory", "time per seed")
"""The columns of `cost_told`."""


def correlation_text(learned: MeanSD | None) -> str:
    """A correlation over seeds, `0.76 ± 0.03`; empty where there is none."""
    if learned is None:
        return ""
    spread = "" if learned.sd is None else f" ± {learned.sd:.2f}"
    return f"{learned.mean:z.2f}{spread}".replace("-", "−")


def cost_cells(cost: Cost | None) -> tuple[str, str, str, str]:
    """Parameters, those trained, peak memory and time of a configuration; a dash for what is not known."""
    if cost is None:
        return "–", "–", "–", "–"
    memory = "–" if cost.memory is None else f"{cost.memory / 2**30:.2f} GB ({', '.join(cost.devices)})"
    return _parameters(cost.parameters), _parameters(cost.trained), memory, duration(cost.seconds)


def _parameters(number_of: int) -> str:
    return f"{number_of / 1e6:.1f}M" if number_of >= 1e6 else f"{number_of:,}"


def description_lines(config: RunConfig) -> list[tuple[str, str]]:
    """Field and value of all that a run's description sets, lists with commas."""
    values = config.values()
    return [
        (field, ",".join(map(str, value)) if isinstance(value, list) else str(value))
        for field, value in values.items()
        if value is not None
    ]


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
