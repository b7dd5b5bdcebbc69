"""What to know before many or large runs are launched."""

from __future__ import annotations

from collections.abc import Mapping

from core.store.states import RunState
from dashboard.text import plural, size
from jobs.cost import Cost
from jobs.disk import Disk

__all__ = ["launch_warnings"]

_HOUR_S = 3600
_WORTH_TELLING = 1e8  # bytes


def launch_warnings(
    spent: Cost, room: Disk, counts: Mapping[RunState, int], *, paused: bool = False, priority: int = 0
) -> list[str]:
    """Markdown of our own, the weightiest first. `paused`: the queue is; `priority` is that of the runs."""
    told = []
    if paused:
        told.append(":orange[:material/pause_circle: The queue is paused: they wait until it is resumed.]")
    if room.short:
        told.append(
            f":orange[:material/warning: The disk is short: these runs will keep about {size(room.needed)}, "
            f"and {size(room.free)} are free.] Delete runs that are no longer needed, or launch fewer."
        )
    if spent.seconds > _HOUR_S:
        told.append(
            ":orange[:material/hourglass_top: More than an hour in all.] They train in the background and "
            "can be stopped at any time. Fewer seeds, a smaller share or frozen features answer sooner."
        )
    if before := _before(counts):
        then = "; higher priorities start first" if priority else " before them"
        told.append(f":material/schedule: {before}{then}.")
    if not room.short and room.needed > _WORTH_TELLING:
        told.append(f":material/hard_drive: They will keep about {size(room.needed)} on disk.")
    return told


def _before(counts: Mapping[RunState, int]) -> str:
    training = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    waiting = counts[RunState.QUEUED]
    parts = [f"{plural(training, 'run trains', 'runs train')}"] if training else []
    parts += [f"{waiting:,} wait" + ("s" if waiting == 1 else "")] if waiting else []
    return (
        " and ".join(parts) if training else f"{plural(waiting, 'run waits', 'runs wait')}" if waiting else ""
    )
