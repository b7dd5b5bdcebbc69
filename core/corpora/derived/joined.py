"""Several corpora as one. Any kind's bases are joined when they are read; this one does nothing more."""

from __future__ import annotations

from core.corpora.derived.kind import Kind, same_tasks
from core.corpora.derived.sampled import sampled
from core.corpora.derived.values import SAMPLES

__all__ = ["JOINED"]

JOINED = Kind(
    name="joined",
    description="All tasks of several corpora (A+B), each on its own sentences; a task that several have is "
    "named task@corpus.",
    options=SAMPLES,
    tasks=same_tasks,
    derive=sampled,
)
