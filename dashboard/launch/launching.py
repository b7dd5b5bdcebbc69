"""What the button of the form does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from core.config import RunConfig
from dashboard import actions, resources
from dashboard.selection import choose
from jobs.reuse import submit_missing

__all__ = ["launch_form"]


def launch_form(
    configs: Sequence[RunConfig], *, reuse: bool, priority: int, retries: int
) -> tuple[list[int], int]:
    """Queues the runs, with `reuse` only those that are not in the store already, and makes all the chosen
    ones. Returns their numbers and how many of them were there. Raises MRNLabError.
    """
    if not reuse:
        return actions.launch(configs, priority=priority, retries=retries), 0
    ids, used = submit_missing(
        resources.store(),
        configs,
        f"Launch, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        priority=priority,
        retries=retries,
    )
    choose(ids)
    return ids, len(used)
