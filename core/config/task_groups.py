"""Groups of tasks that a sweep trains together, read from texts like `pairs` or `ner,pos; ner,chunk`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations

from core.config.fields import comma_list
from core.config.sweep import MOST_RUNS
from core.errors import FIELD, ConfigError
from core.plain_text import shortened
from core.wording import any_of

GROUPINGS: Mapping[str, str] = {
    "all": "all tasks together",
    "each": "each task alone",
    "pairs": "every pair of tasks",
    "subsets": "every two or more of the tasks",
}
"""The groups that have a name, each with its description."""

HINT = f"write {any_of(list(GROUPINGS))}, or groups such as ner,pos; ner,chunk."
"""The accepted forms of groups, as the end of a sentence."""

TASK_GROUPS = "task_groups"
"""The field that errors name, the parameter of a link, and with a hyphen the option of the command line."""


def task_groups(
    text: str, tasks: Sequence[str], auxiliary: Collection[str] = (), elsewhere: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """The groups of tasks that `text` names, each once, with members in the order of `tasks`.

    `text` has names of GROUPINGS and groups of tasks, separated by semicolons: `each; ner,pos; ner,chunk`.
    A group of `auxiliary` tasks alone cannot be scored and is only made where it is written out. `elsewhere`
    are tasks that other corpora of the sweep have: a group with one of them is left out.

    Raises ConfigError where `text` names a task that is not known, or makes too many groups.
    """
    groups: dict[tuple[str, ...], None] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        groups |= dict.fromkeys(_groups_of(part, tasks, frozenset(auxiliary), elsewhere))
    return list(groups)


def _groups_of(
    part: str, tasks: Sequence[str], auxiliary: frozenset[str], elsewhere: Collection[str]
) -> Iterator[tuple[str, ...]]:
    if part == "all":
        yield tuple(tasks)
    elif part in GROUPINGS:
        least, most = {"each": (1, 1), "pairs": (2, 2), "subsets": (2, len(tasks))}[part]
        if part == "subsets" and 2 ** len(tasks) > MOST_RUNS:
            raise ConfigError(
                TASK_GROUPS, f"{FIELD}: {len(tasks)} tasks have more than {MOST_RUNS:,} subsets; name fewer."
            )
        sizes = (combinations(tasks, size) for size in range(least, most + 1))
        yield from (group for group in chain.from_iterable(sizes) if not auxiliary.issuperset(group))
    else:
        named = set(comma_list(part))
        if unknown := named.difference(tasks, elsewhere):
            raise ConfigError(
                TASK_GROUPS,
                f"{FIELD}: '{shortened(min(unknown))}' is not one of the tasks {', '.join(tasks)}; {HINT}",
            )
        if named and named.isdisjoint(elsewhere):
            yield tuple(task for task in tasks if task in named)
