"""Which runs count as samples of one distribution: one run a seed, under the same conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter

from core.store import Conditions, Run, RunState

__all__ = ["RESOLVED", "UNKNOWN", "alike", "one_per_seed"]

UNKNOWN = Conditions()
"""What is known of a run that has not begun, or was trained before conditions were stored."""

_Of = Callable[[Conditions], str | None]

RESOLVED: Mapping[str, _Of] = {name: attrgetter(name) for name in ("precision", "alignment")}
"""By field, what `auto` stood for in a run."""


def alike(runs: Sequence[Run], conditions: Mapping[int, Conditions], of: _Of) -> dict[str | None, list[Run]]:
    """The runs by one of their conditions (`of`), in the order of the runs.

    Runs of which it is unknown stand with the others as long as these agree, and apart where they differ: an
    old run then may be of either kind.
    """
    values = {run.id: of(conditions.get(run.id, UNKNOWN)) for run in runs}
    known = {value for value in values.values() if value is not None}
    if len(known) < 2:
        return {next(iter(known), None): list(runs)} if runs else {}
    groups: dict[str | None, list[Run]] = {}
    for run in runs:
        groups.setdefault(values[run.id], []).append(run)
    return groups


def one_per_seed(runs: Collection[Run], conditions: Mapping[int, Conditions] | None = None) -> list[Run]:
    """The runs that make a mean over seeds, in the order given: the same seed again is no further sample.

    Of each configuration (`configuration_id`) those runs count that share all `Conditions` with its newest
    run that succeeded; of each seed the newest of them that succeeded. Where none has, the newest counts.
    """
    known = conditions or {}
    configurations: dict[str, list[Run]] = {}
    for run in runs:
        configurations.setdefault(run.configuration_id, []).append(run)
    kept: set[int] = set()
    for same in configurations.values():
        newest = max(same, key=_rank)
        for of in (_text, *RESOLVED.values()):
            same = next(group for group in alike(same, known, of).values() if newest in group)
        by_seed = {run.config.seed: run.id for run in sorted(same, key=_rank)}
        kept.update(by_seed.values())
    return [run for run in runs if run.id in kept]


def _text(conditions: Conditions) -> str | None:
    return conditions.text


def _rank(run: Run) -> tuple[bool, int]:
    return run.state is RunState.SUCCEEDED, run.id
