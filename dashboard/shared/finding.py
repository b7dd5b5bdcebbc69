"""The configurations that a filter finds, each with its seeds: what a page offers to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from core.config import kind_key
from core.store.records import Run
from jobs.naming import corpus_name, differing


@dataclass(frozen=True)
class Found:
    """A configuration with its runs, newest first. The STL runs of all tasks are one, as in comparisons."""

    name: str
    corpus: str
    run_ids: tuple[int, ...]
    seeds: int
    newest: datetime


def find(runs: Iterable[Run], matches: Callable[[Run], bool], most: int) -> tuple[list[Found], int]:
    """The configurations of the runs that match, at most `most` of them, in the order in which the runs
    come; and how many there are in all.
    """
    groups: dict[str, list[Run]] = {}
    keys: dict[str, str] = {}
    for run in runs:
        if matches(run):
            # A configuration's key is asked once; its runs are told apart by their hash.
            key = keys.setdefault(run.configuration_id, "") or kind_key(run.config)
            keys[run.configuration_id] = key
            groups.setdefault(key, []).append(run)
    shown = list(groups.values())[:most]
    names = differing([group[0].config for group in shown])
    return [
        Found(
            name,
            corpus_name(group[0].config),
            tuple(run.id for run in group),
            len({run.config.seed for run in group}),
            max(run.created_at for run in group),
        )
        for name, group in zip(names, shown, strict=True)
    ], len(groups)
