"""Methods: configurations that differ only in what one searches over are candidates of one method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig, comparison_values, has_field
from core.evaluation.comparison import Comparison, compare, compare_rows
from core.results.choice import chosen_on_dev, dev_means
from core.results.naming import fields_apart, is_default
from core.results.samples import RESOLVED, alike_by
from core.results.table import ResultRow

NOT_SEARCHED = ("seed", "fraction", "dev_sentences")
"""The numbers that are not searched: they change the data, or tell samples apart."""
_LAYERS = "encoder_training"
"""`top:1` and `top:2` differ in a number, the layers that are trained; `frozen` and `full` are no numbers."""


@dataclass(frozen=True)
class Method:
    """The candidates of a method, and the one that dev chose.

    `chosen` is None where dev cannot compare the candidates. `dev` has the mean dev scores that were compared
    (`dev_means`), by the key of the candidate.
    """

    name: str
    candidates: tuple[ResultRow, ...]
    chosen: ResultRow | None
    dev: Mapping[str, float]


def method_key(config: RunConfig) -> tuple[tuple[str, str], ...]:
    """What the candidates of a method share: the fields of the run that are not searched, with their values.

    A number is searched, unless it is of NOT_SEARCHED; unset it has a default, which is a number too.
    """
    values = {
        field: str(value).partition(":")[0] if field == _LAYERS else value
        for field, value in comparison_values(config).items()
        if has_field(config, field) and not _is_searched(field, value)
    }
    return tuple(
        (field, repr(value))
        for field, value in values.items()
        if value is not None or not is_default(config, field)
    )


def _is_searched(field: str, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and field not in NOT_SEARCHED


def methods(rows: Iterable[ResultRow]) -> list[Method]:
    """The methods of the rows of a table, in the order of their first candidates.

    Of each the candidate with the highest mean dev score over the tasks and seeds that its candidates have in
    common is chosen. Rows for which `auto` chose differently are of different methods.
    """
    by_key: dict[Hashable, list[ResultRow]] = {}
    for row in rows:
        by_key.setdefault(method_key(row.config), []).append(row)
    groups = list(by_key.values())
    for condition in RESOLVED.values():
        groups = [
            same
            for group in groups
            for same in alike_by(group, lambda row, of=condition: of(row.conditions)).values()  # type: ignore[misc]
        ]
    return [_method(name, group) for name, group in zip(_names(groups), groups, strict=True)]


def _method(name: str, candidates: Sequence[ResultRow]) -> Method:
    by_key = {row.key: row for row in candidates}
    on_dev = {key: row.dev for key, row in by_key.items()}
    chosen = candidates[0].key if len(candidates) == 1 else chosen_on_dev(on_dev)
    return Method(name, tuple(candidates), None if chosen is None else by_key[chosen], dev_means(on_dev))


def _names(groups: Sequence[Sequence[ResultRow]]) -> list[str]:
    """Distinct names: the paradigm, and the fields that are not searched and differ between methods."""
    configs = [group[0].config for group in groups]
    parts = [[config.paradigm.upper()] for config in configs]
    keys = [dict(method_key(config)) for config in configs]
    differing = {field for key in keys for field in key if len({other.get(field) for other in keys}) > 1}
    for field, texts in fields_apart(configs):
        if field in differing and field != "paradigm":
            for part, text in zip(parts, texts, strict=True):
                part += [text] if text else []
    names = [" · ".join(part) for part in parts]
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name} (run {group[0].run_ids[0]})"
        for name, group in zip(names, groups, strict=True)
    ]


def compare_methods(
    compared: Sequence[Method], task: str, baseline: str | None = None
) -> dict[tuple[str, str], Comparison]:
    """The differences between the chosen candidates on a task, by the names of both methods.

    They are a family of tests: all pairs of methods, in both directions; or with a baseline each other method
    less that. Methods without a choice, or without a score on the task, are in none.
    """
    scores = {
        method.name: method.chosen.cells[task].by_seed
        for method in compared
        if method.chosen is not None and task in method.chosen.cells
    }
    if baseline is None:
        return compare_rows(scores)
    if baseline not in scores:
        return {}
    return compare(
        {(name, baseline): (of, scores[baseline]) for name, of in scores.items() if name != baseline}
    )
