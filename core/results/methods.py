"""Methods: configurations that differ only in what one searches over are candidates of one method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from core.config import RunConfig, comparison_values, has_field
from core.results.choice import DevScores, chosen_on_dev, dev_means
from core.results.naming import fields_apart, is_default, paradigm_name
from core.results.samples import RESOLVED, alike_by
from core.results.table import ResultRow, ResultTable
from core.store import Conditions

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


class Configured(Protocol):
    """What has a configuration, and the conditions of its runs: a row of a table, a line of Runs."""

    @property
    def config(self) -> RunConfig:
        """The description of one of its runs."""

    @property
    def conditions(self) -> Conditions:
        """What its scores depend on beside the description."""

    @property
    def dev(self) -> DevScores:
        """The dev scores by task and seed."""


_Configured = TypeVar("_Configured", bound=Configured)


def by_candidates(rows: Iterable[_Configured]) -> list[list[_Configured]]:
    """The candidates of each method, in the order of the first ones.

    Rows for which `auto` chose differently are of different methods.
    """
    by_key: dict[Hashable, list[_Configured]] = {}
    for row in rows:
        by_key.setdefault(method_key(row.config), []).append(row)
    groups = list(by_key.values())
    for condition in RESOLVED.values():
        groups = [
            same
            for group in groups
            for same in alike_by(group, lambda row, read=condition: read(row.conditions)).values()  # type: ignore[misc]
        ]
    return groups


def chosen_candidates(candidates: Sequence[_Configured]) -> Sequence[_Configured]:
    """The candidate of a method that dev chose; all of them where dev cannot compare them."""
    if len(candidates) == 1:
        return candidates
    chosen = chosen_on_dev({place: candidate.dev for place, candidate in enumerate(candidates)})
    return candidates if chosen is None else [candidates[chosen]]


def methods(rows: Iterable[ResultRow]) -> list[Method]:
    """The methods of the rows of a table, in the order of their first candidates.

    Of each the candidate with the highest mean dev score over the tasks and seeds that its candidates have in
    common is chosen.
    """
    groups = by_candidates(rows)
    return [_method(name, group) for name, group in zip(_names(groups), groups, strict=True)]


def _method(name: str, candidates: Sequence[ResultRow]) -> Method:
    chosen = chosen_candidates(candidates)
    on_dev = dev_means({row.key: row.dev for row in candidates})
    return Method(name, tuple(candidates), chosen[0] if len(chosen) == 1 else None, on_dev)


def _names(groups: Sequence[Sequence[ResultRow]]) -> list[str]:
    """Distinct names: the paradigm, and the fields that are not searched and differ between methods."""
    configs = [group[0].config for group in groups]
    parts = [[paradigm_name(config)] for config in configs]
    keys = [dict(method_key(config)) for config in configs]
    differing = {field for key in keys for field in key if len({other.get(field) for other in keys}) > 1}
    for field, texts in fields_apart(configs):
        if field in differing and field != "paradigm":
            for part, text in zip(parts, texts, strict=True):
                name = text.partition(":")[0] if field == _LAYERS else text
                part += [name] if name else []
    names = [" · ".join(part) for part in parts]
    for condition in RESOLVED.values():
        taken = Counter(names)
        chosen = [next(filter(None, (condition(row.conditions) for row in group)), "") for group in groups]
        names = [
            f"{name} · {value}" if taken[name] > 1 and value else name
            for name, value in zip(names, chosen, strict=True)
        ]
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name} (run {group[0].run_ids[0]})"
        for name, group in zip(names, groups, strict=True)
    ]


def by_method(table: ResultTable) -> ResultTable:
    """The table with a row a method: that of the candidate which dev chose, with its candidates.

    Of several candidates the row has the name of the method. The candidates of a method for which dev cannot
    choose have a row each, and a note. Comparisons are between the rows of this table, so choose a `baseline`
    by `asking` afterwards. A row of it has the key of its candidate.
    """
    of_table = methods(table.rows)
    rows: list[ResultRow] = []
    for method in of_table:
        if method.chosen is None:
            rows += [replace(row, method=row.name) for row in method.candidates]
        else:
            row = replace(method.chosen, method=method.name, candidates=method.candidates)
            rows.append(replace(row, dev_means=method.dev))
    place = {row.key: index for index, row in enumerate(table.rows)}
    rows.sort(key=lambda row: min(place[of.key] for of in row.tried))
    notes = [_not_chosen(method) for method in of_table if method.chosen is None]
    if table.split == "dev" and any(row.choice for row in rows):
        notes.append(_CHOSEN_HERE)
    return replace(table, rows=tuple(_relabelled(rows)), notes=(*table.notes, *notes), baseline=None)


_CHOSEN_HERE = (
    "Dev chose among the candidates of a method, so the best one's dev score is higher than on other text: "
    "compare methods on test."
)


def _not_chosen(method: Method) -> str:
    return (
        f"Dev cannot choose among the {len(method.candidates)} configurations of {method.name}, "
        "which have no dev scores of a task and seed in common: each has a row."
    )


def _relabelled(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows; those with a choice have the names of their methods."""
    blocks: dict[str, list[ResultRow]] = {}
    for row in rows:
        blocks.setdefault(row.block, []).append(row)
    labels: dict[str, str] = {}
    for block in blocks.values():
        # A block has one encoder, which the names in it need not tell, or tells it in each name.
        names = _names([row.tried for row in block])
        of_block = [name if row.choice else row.label for row, name in zip(block, names, strict=True)]
        is_distinct = len(set(of_block)) == len(block)
        labels |= zip((row.key for row in block), of_block if is_distinct else names, strict=True)
    return [
        replace(
            row,
            label=labels[row.key],
            name=labels[row.key] if row.name == row.label else f"{labels[row.key]} · {row.block}",
        )
        for row in rows
    ]
