"""How chosen runs differ: a sentence, and a table with a row a field and a column a configuration."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from core.config import FIELD_HELP, RunConfig, comparison_values, has_field
from core.corpora.assembly import TEXT_VERSION, has_later_tasks
from core.events import RunFacts
from core.results.naming import fields_apart, number_texts, shortest_names, value_text
from core.results.samples import by_configuration
from core.store.types import Run, RunWithFacts
from core.wording import all_of, plural, uncapitalised
from dashboard.theme import order_tasks


def distinct_texts(values: Sequence[Any], text: Callable[[Any], str]) -> list[str]:
    """The values as short texts, empty for None; whole where two different values would read the same."""
    texts = ["" if value is None else text(value) for value in values]
    if len(set(texts)) == len(set(map(repr, values))):
        return texts
    return ["" if value is None else str(value) for value in values]


def differences(runs: Sequence[RunWithFacts]) -> pd.DataFrame:
    """The fields and training facts in which these runs differ: a row for each, a column a configuration.

    The paradigm has none: the heads name it.
    ≠ marks what is not as in the first configuration that has the field. That one lacks it, because of its
    paradigm or encoder or because it has not begun, is no difference. Facts, which may depend on the seed,
    are compared seed by seed.
    """
    rows = list(by_configuration(runs).values())
    configs = [row[0].config for row in rows]
    texts = {}
    for field in filter("paradigm".__ne__, _differing_fields(configs)):
        values = [
            config.values().get(field) if field == "columns" or has_field(config, field) else None
            for config in configs
        ]
        are_numbers = {type(value) for value in values} <= {float, type(None)}
        texts[FIELD_HELP[field].label] = (
            number_texts(values) if are_numbers else distinct_texts(values, value_text)
        )
    seeds = [", ".join(map(str, sorted({run.config.seed for run in row}))) for row in rows]
    if len(set(seeds)) > 1:
        texts["Seeds"] = seeds
    marked = {}
    for name, row_texts in texts.items():
        first = next(filter(None, row_texts))
        marked[name] = ["≠ " * (text not in ("", first)) + (text or "–") for text in row_texts]
    facts = [[(run.config.seed, _facts_text(run)) for run in row] for row in rows]
    for fact in dict.fromkeys(fact for row in facts for _, of_run in row for fact in of_run):
        by_row = [_by_seed([(seed, of_run[fact]) for seed, of_run in row if fact in of_run]) for row in facts]
        first_known = next(filter(None, by_row))
        apart = [_differ(of_row, first_known) for of_row in by_row]
        repeated = any(len(values) > 1 for of_row in by_row for values in of_row.values())
        alone = len(rows) == 1 and len(set(itertools.chain(*by_row[0].values()))) > 1
        if any(apart) or repeated or alone:
            marked[fact] = [
                "≠ " * differs + (", ".join(dict.fromkeys(itertools.chain(*of_row.values()))) or "–")
                for of_row, differs in zip(by_row, apart, strict=True)
            ]
    frame = pd.DataFrame.from_dict(marked, orient="index", columns=shortest_names(configs), dtype=object)
    return frame.rename_axis("Field")


_BySeed = Mapping[int, Sequence[str]]


def _by_seed(values: Iterable[tuple[int, str]]) -> _BySeed:
    """The distinct values of a fact by seed, in order."""
    by_seed: dict[int, dict[str, None]] = defaultdict(dict)
    for seed, value in values:
        by_seed[seed][value] = None
    return {seed: list(of_seed) for seed, of_seed in sorted(by_seed.items())}


def _differ(row: _BySeed, first: _BySeed) -> bool:
    """Whether the values differ for a seed that both have; of no common seed, whether any value differs."""
    if common := row.keys() & first.keys():
        return any(set(row[seed]) != set(first[seed]) for seed in common)
    return bool(row) and set(itertools.chain(*row.values())) != set(itertools.chain(*first.values()))


def _differing_fields(configs: Sequence[RunConfig]) -> list[str]:
    """The fields in which these configurations differ, by name."""
    if fields := [field for field, _ in fields_apart(configs)]:
        return fields
    values = list(map(comparison_values, configs))  # the columns of a file that knows them
    return [name for name in FIELD_HELP if len({json.dumps(of_row.get(name)) for of_row in values}) > 1]


def _facts_text(run: RunWithFacts) -> dict[str, str]:
    """The facts of a training beyond its configuration; of one that has not begun only its machine."""
    facts = run.facts
    texts = {"Machine": run.owner.host} if run.owner is not None else {}
    if facts is None:
        return texts
    return {
        **texts,
        "Device used": facts.device,
        "Precision used": facts.precision,
        "Threads": str(facts.threads),
        **({"Text": _text(run.config, facts)} if facts.text_hash else {}),
        **({"Alignment used": facts.alignment} if facts.alignment else {}),
        **{f"Training words, {task.name}": f"{task.train_tokens:,}" for task in facts.tasks},
        **{f"{name} version": version for name, version in facts.versions.items()},
    }


_TWO_VERSIONS = (
    "Whether their text is the same is not known: earlier versions hashed it without deprel and features."
)


def _text(config: RunConfig, facts: RunFacts) -> str:
    """The first digits of the hash of the run's text, and what an earlier version left out of it."""
    text = facts.text_hash
    columns = [column.name for reading in facts.readings for column in reading.columns]
    is_older = not text.endswith(TEXT_VERSION) and has_later_tasks((*config.tasks, *columns))
    return text[:6] + ", of an earlier version: without labels of deprel and of features" * is_older


def difference_sentence(runs: Sequence[RunWithFacts]) -> str:
    """The differences of these runs in plain text: the seed only, or the fields; and their text."""
    by_corpus: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        by_corpus[run.config.corpus] |= {run.facts.text_hash} - {""} if run.facts else set()
    changed = ""
    if several := [hashes for hashes in by_corpus.values() if len(hashes) > 1]:
        is_text = any(len({text.endswith(TEXT_VERSION) for text in hashes}) == 1 for hashes in several)
        changed = " The text of the corpus is not the same." if is_text else f" {_TWO_VERSIONS}"
    return _described_difference(runs) + changed


def _described_difference(runs: Sequence[Run]) -> str:
    """What their descriptions have apart."""
    these = f"These {plural(len(runs), 'run')}"
    rows = list(by_configuration(runs).values())
    seeds = [frozenset(run.config.seed for run in row) for row in rows]
    if len(rows) == 1:
        tasks = order_tasks(run.config.tasks for run in runs)
        if runs[0].config.paradigm == "stl" and len(tasks) > 1:
            return f"{these} are STL runs of {all_of(tasks)} and otherwise differ only in the seed."
        if len(seeds[0]) == 1:
            return f"{these} have the same description and the same seed."
        repeated = "; some seeds are repeated" if len(seeds[0]) < len(runs) else ""
        return f"{these} differ only in the seed{repeated}."
    configs = [row[0].config for row in rows]
    fields = [uncapitalised(FIELD_HELP[name].label) for name in _differing_fields(configs)]
    seed = "the seeds are the same" if len(set(seeds)) == 1 else "the seeds are not the same"
    return f"{these} are {len(rows):,} configurations. They differ in {all_of(fields)}; {seed}."
