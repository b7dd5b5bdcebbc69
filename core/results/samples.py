"""Which runs count: those that can be read, on one text, one a seed; the runs by data and configuration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import TypeVar

from core.config import OTHER, comparison_key
from core.corpora.assembly import TEXT_VERSION
from core.results.naming import (
    SCORE_NAMES,
    UNREADABLE,
    corpus_name,
    field_text,
)
from core.store import Conditions, Run, RunState
from core.wording import which_runs

UNKNOWN = Conditions()
"""The conditions of a run that has not begun, or was trained before conditions were stored."""

RunT = TypeVar("RunT", bound=Run)
_Condition = Callable[[Conditions], str | None]

TEXT: _Condition = attrgetter("text")
RESOLVED: Mapping[str, _Condition] = {name: attrgetter(name) for name in ("precision", "alignment")}
"""By field, the value that was chosen for `auto` in a run."""


_Item = TypeVar("_Item")


def alike_by(
    items: Iterable[_Item], condition: Callable[[_Item], str | None]
) -> dict[str | None, list[_Item]]:
    """The items by a condition, in their order.

    Those without it are grouped with the others where these agree, and apart where they differ.
    """
    every = list(items)
    values = list(map(condition, every))
    distinct = set(values) - {None}
    if len(distinct) < 2:
        return {next(iter(distinct), None): every} if every else {}
    groups: dict[str | None, list[_Item]] = {}
    for value, item in zip(values, every, strict=True):
        groups.setdefault(value, []).append(item)
    return groups


def alike(
    runs: Sequence[Run], conditions: Mapping[int, Conditions], condition: _Condition
) -> dict[str | None, list[Run]]:
    """The runs by one of their conditions, as `alike_by`."""
    return alike_by(runs, lambda run: condition(conditions.get(run.id, UNKNOWN)))


def readable(
    runs: Iterable[RunT], conditions: Mapping[int, Conditions] | None = None
) -> tuple[list[RunT], str]:
    """The runs that can be compared, and a sentence on the others, empty where there are none.

    The description or the facts of the others cannot be read; `conditions` (`Store.conditions`) have the
    problems of facts that were not loaded.
    """
    conditions = conditions or {}
    every = list(runs)
    kept = [run for run in every if not (run.problem or conditions.get(run.id, UNKNOWN).problem)]
    others = {run.id for run in every} - {run.id for run in kept}
    if not others:
        return kept, ""
    which = which_runs(sorted(others))
    return kept, f"Left out: {which}, {UNREADABLE} or damaged; the run's page and `mrnlab show` say why."


def one_per_seed(runs: Collection[Run], conditions: Mapping[int, Conditions] | None = None) -> list[Run]:
    """The runs that make a mean over seeds, in their order: a repeated seed is no further sample.

    Of each configuration (`configuration_id`) only runs count that share all `Conditions` with its newest
    successful run, and of each seed the newest successful one of them. Where none has succeeded, the newest
    counts.
    """
    conditions = conditions or {}
    configurations: dict[str, list[Run]] = {}
    for run in runs:
        configurations.setdefault(run.configuration_id, []).append(run)
    kept: set[int] = set()
    for same in configurations.values():
        newest = max(same, key=_rank)
        for condition in (TEXT, *RESOLVED.values()):
            same = next(group for group in alike(same, conditions, condition).values() if newest in group)
        by_seed = {run.config.seed: run.id for run in sorted(same, key=_rank)}
        kept.update(by_seed.values())
    return [run for run in runs if run.id in kept]


def _rank(run: Run) -> tuple[bool, int]:
    return run.state is RunState.SUCCEEDED, run.id


_stl_keys: dict[str, str] = {}
"""A cache by `configuration_id` of STL: with thousands of runs, computing the keys dominates."""


def by_configuration(runs: Iterable[RunT]) -> dict[str, list[RunT]]:
    """The runs by configuration, in their order.

    STL runs of all tasks are one configuration, and so are those of a system trained elsewhere. Runs whose
    description cannot be read are apart.
    """
    groups: dict[str, list[RunT]] = defaultdict(list)
    for run in runs:
        key = run.configuration_id
        if run.config_problem is not None:
            key = f"unreadable {key}"
        elif run.config.paradigm in ("stl", OTHER):
            if key not in _stl_keys:
                _stl_keys[key] = comparison_key(run.config)
            key = _stl_keys[key]
        groups[key].append(run)
    return groups


@dataclass(frozen=True)
class DataGroup:
    """The name of the data that the runs of a table share.

    `note` explains why the runs of a corpus are in several tables, or which texts are not known.
    """

    name: str
    note: str = ""


def group_by_data(
    runs: Iterable[Run], conditions: Mapping[int, Conditions] | None = None
) -> dict[DataGroup, list[Run]]:
    """The runs by the data that must not be mixed in one table, in the order of the runs.

    `conditions` (`Store.conditions`) have the text of each run. Runs with an unknown text are grouped with
    the others of their corpus where these agree.
    """
    conditions = conditions or {}
    by_corpus: dict[str, list[Run]] = defaultdict(list)
    groups: dict[tuple[str, float, str, str | None], list[Run]] = defaultdict(list)
    for run in runs:
        by_corpus[run.config.corpus].append(run)
        groups[_data_key(run)].append(run)
    texts = {corpus: alike(same, conditions, TEXT) for corpus, same in by_corpus.items()}
    names = {run_id: name for by_text in texts.values() for run_id, name in _named_texts(by_text).items()}
    shares = Counter(corpus for corpus, _ in {key[:2] for key in groups})
    ways = Counter(key[:2] for key in {key[:3] for key in groups})
    named: list[tuple[DataGroup, str, list[Run]]] = []
    for (corpus, fraction, pos_score, permuted), same in groups.items():
        parts = [corpus_name(same[0].config.corpus)]
        if fraction < 1 or shares[corpus] > 1:
            parts.append(field_text("fraction", fraction))
        if ways[corpus, fraction] > 1:
            parts.append(f"POS by {SCORE_NAMES.get(pos_score, pos_score)}")
        if permuted is not None:
            parts.append(f"{permuted} permuted")
        note = _text_note(same, texts[corpus], conditions)
        by_name: dict[str, list[Run]] = defaultdict(list)
        for run in same:
            by_name[names[run.id]].append(run)
        named += [
            (DataGroup(", ".join(filter(None, (*parts, name))), note), corpus, of_text)
            for name, of_text in by_name.items()
        ]
    taken = Counter(group.name for group, _, _ in named)
    by_data: dict[DataGroup, list[Run]] = defaultdict(list)
    for group, corpus, group_runs in named:
        # Two folders of one name are distinguished by their whole paths.
        is_unique = taken[group.name] == 1
        name = group.name if is_unique else f"{group.name} ({corpus})"
        by_data[DataGroup(name, group.note)] += group_runs
    return dict(by_data)


def _data_key(run: Run) -> tuple[str, float, str, str | None]:
    # Before shares in percent were read exactly, 1.1% was stored as the float next to 0.011.
    config = run.config
    return config.corpus, round(config.fraction, 12), config.pos_score, config.permuted


def _text_name(text: str | None) -> str:
    return "text not recorded" if text is None else f"text {text[:6]}"


def _named_texts(texts: Mapping[str | None, Sequence[Run]]) -> dict[int, str]:
    """The text of each run of a corpus by name (`alike`); empty where the corpus has one text."""
    return {
        run.id: _text_name(text) if len(texts) > 1 else "" for text, runs in texts.items() for run in runs
    }


def _text_note(
    runs: Sequence[Run], texts: Mapping[str | None, Sequence[Run]], conditions: Mapping[int, Conditions]
) -> str:
    """Explains why runs of one corpus are in several tables, or which of these are assumed to share a text.

    `texts` has all runs of the corpus by text.
    """
    if len(texts) > 1:
        ids = {text: sorted(run.id for run in of_text) for text, of_text in texts.items()}
        parts = [f"{_text_name(text)} in {which_runs(run_ids)}" for text, run_ids in ids.items()]
        start = "The corpus changed between runs"
        if len({text.endswith(TEXT_VERSION) for text in texts if text is not None}) > 1:
            start = "Earlier versions hashed a text without deprel and features, or the corpus changed"
        return f"{start}, so there is a table for each text: {'; '.join(parts)}."
    unknown = sorted(run.id for run in runs if conditions.get(run.id, UNKNOWN).text is None)
    if None in texts or not unknown:
        return ""
    return f"We assume that {which_runs(unknown)} used the same text as the others: it was not recorded."


def condition_texts(runs: Sequence[Run], conditions: Mapping[int, Conditions]) -> dict[int, str]:
    """By run the choices for `auto` in which runs of one description differ; empty without any."""
    texts: dict[int, list[str]] = {run.id: [] for run in runs}
    for name, condition in RESOLVED.items():
        groups = alike(runs, conditions, condition)
        for value, group in groups.items() if len(groups) > 1 else ():
            for run in group:
                texts[run.id].append(value or f"{name} not recorded")
    return {run_id: ", ".join(parts) for run_id, parts in texts.items()}


def text_names(runs: Iterable[Run], conditions: Mapping[int, Conditions]) -> dict[int, str]:
    """The text of each run for which a text is decided; empty where its corpus has one text.

    Of successful runs it is the text of `group_by_data`. Another run has the text that it recorded, and none
    without.
    """
    by_corpus: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_corpus[run.config.corpus].append(run)
    names: dict[int, str] = {}
    for same in by_corpus.values():
        succeeded = [run for run in same if run.state is RunState.SUCCEEDED]
        groups = alike(succeeded, conditions, TEXT)
        texts = {run.id: text for text, group in groups.items() for run in group}
        for run in same:
            if run.id not in texts and (text := conditions.get(run.id, UNKNOWN).text):
                texts[run.id] = text
        distinct = set(texts.values()) - ({None} if len(groups) == 1 else set())
        names |= {run_id: _text_name(text) if len(distinct) > 1 else "" for run_id, text in texts.items()}
    return names


def older_texts(runs: Collection[Run], conditions: Mapping[int, Conditions]) -> dict[int, str]:
    """The text (`text_names`) of each run that is not on the newest text of its corpus."""
    names = text_names(runs, conditions)
    newest: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: -run.id):
        if run.id in names:
            newest.setdefault(run.config.corpus, names[run.id])
    return {
        run.id: names[run.id]
        for run in runs
        if run.id in names and names[run.id] != newest[run.config.corpus]
    }


def common_conditions(conditions: Sequence[Conditions]) -> Conditions:
    """The conditions of runs that agree in them, where any of them recorded one."""
    text, precision, alignment = (
        next(filter(None, map(condition, conditions)), None) for condition in (TEXT, *RESOLVED.values())
    )
    return Conditions(text, precision, alignment)


def by_conditions(
    runs: Sequence[Run], conditions: Mapping[int, Conditions], texts: Mapping[int, str]
) -> dict[str, list[Run]]:
    """The runs of one configuration, grouped by their text (`text_names`) and the choices for `auto`.

    The keys name the text, and the choices that differ. A run without a text belongs to the newest that has
    succeeded.
    """
    if len(runs) == 1:
        return {texts.get(runs[0].id, ""): list(runs)}
    decided = [run for run in runs if run.id in texts]
    resolved = condition_texts(decided, conditions)
    names = {run.id: ", ".join(filter(None, (texts[run.id], resolved[run.id]))) for run in decided}
    newest = names[max(decided, key=_rank).id] if decided else ""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(names.get(run.id, newest), []).append(run)
    return groups


def means_by_run(
    runs: Iterable[Run], conditions: Mapping[int, Conditions], scores: Mapping[int, float]
) -> dict[int, float]:
    """For each run the mean score of its row in the table of runs, where it has one."""
    kept, _ = readable(runs, conditions)
    texts = text_names(kept, conditions)
    means: dict[int, float] = {}
    for same in by_configuration(kept).values():
        for row in by_conditions(same, conditions, texts).values():
            # STL's tasks share a row, but only one of them has the score.
            if of := [scores[run.id] for run in succeeded_one_per_seed(row, conditions) if run.id in scores]:
                means |= dict.fromkeys((run.id for run in row), fmean(of))
    return means


def succeeded_one_per_seed(runs: Collection[Run], conditions: Mapping[int, Conditions]) -> list[Run]:
    """The successful ones of the runs that make a mean (`one_per_seed`): their scores count."""
    return [run for run in one_per_seed(runs, conditions) if run.state is RunState.SUCCEEDED]
