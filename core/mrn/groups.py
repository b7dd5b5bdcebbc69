"""Which tasks an alignment lets be related, from a run's stored facts. Needs no torch.

Two tasks meet where both have weights in a general row. Between tasks that meet neither directly nor through
others, Ω_task and the blocks of Ω_label are exactly zero for ever: scatters of rows that never meet are zero
there when the covariances are, and the covariances begin as the identity. Tasks that meet only through a
third can be related.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["task_groups"]


def task_groups(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The tasks in groups: relations can be learned within a group, and are zero between groups.

    In the order of the tasks; one group where all tasks can be related.
    """
    names = [task["name"] for task in facts.get("tasks", ())]
    if not facts.get("meet"):  # a run of a version that told only whether all tasks are apart
        return tuple((name,) for name in names) if "task" in facts.get("impossible", ()) else (tuple(names),)
    reach = np.asarray(facts["meet"], dtype=bool)
    for _ in names:
        reach = reach @ reach
    # A group is told by its first task, which all of its tasks reach.
    first = reach.argmax(axis=1)
    return tuple(
        tuple(name for name, of in zip(names, first, strict=True) if of == group)
        for group in dict.fromkeys(first.tolist())
    )
