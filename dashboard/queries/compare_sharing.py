"""What sharing did: MTL − STL and MRN − MTL per task, encoder by encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.config import trains_heads_alone
from dashboard.queries.compare import ABOVE, BELOW, CLOSE, Pair, answers, corrected, steps
from dashboard.queries.naming import confounds
from dashboard.text import all_of, signed_points
from jobs.results import ResultRow, ResultTable

__all__ = ["Delta", "Sharing", "Step", "sharing", "sharing_sentence"]


@dataclass(frozen=True)
class Delta:
    """The change on one task, in points with its interval; `told` in words. The verdict is the corrected one
    of `dashboard.queries.compare.verdict`.
    """

    task: str
    points: float
    low: float | None
    high: float | None
    verdict: str
    told: str

    @property
    def shown(self) -> bool:
        """Whether the verdict is that there is a change."""
        return self.verdict in (ABOVE, BELOW, CLOSE)


@dataclass(frozen=True)
class Step:
    """From one paradigm to the next: `MTL − STL`, with the two rows compared and the changes per task."""

    title: str
    a: ResultRow
    b: ResultRow
    deltas: tuple[Delta, ...]

    @property
    def confounds(self) -> tuple[str, ...]:
        """In what else than the paradigm the two differ."""
        return confounds(self.a.config, self.b.config)


@dataclass(frozen=True)
class Sharing:
    """The steps over one encoder."""

    block: str
    steps: tuple[Step, ...]

    @property
    def shares_nothing(self) -> bool:
        """Whether MTL shares nothing that is trained: the encoder is frozen, with nothing on top."""
        return any(
            step.a.config.paradigm == "mtl" and trains_heads_alone(step.a.config) for step in self.steps
        )


def sharing(table: ResultTable, baseline: str) -> list[Sharing]:
    """For each encoder the steps from STL to MTL to MRN that its rows allow; of several the most alike.

    `baseline` is the page's, whose differences verdicts are corrected for too.
    """
    found = []
    p_values = corrected(table, baseline)
    for block, pairs in steps(table).items():
        taken = tuple(_step(table, p_values, *pair) for pair in pairs)
        if any(step.deltas for step in taken):
            found.append(Sharing(block, taken))
    return found


def _step(table: ResultTable, p_values: Mapping[Pair, float], a: ResultRow, b: ResultRow) -> Step:
    deltas = []
    for one in answers(table, a.key, b.key, p_values):
        paired = one.difference
        if paired is None:
            continue
        low, high = (paired.low, paired.high) if paired.sd else (None, None)
        deltas.append(
            Delta(
                one.task,
                100 * paired.mean,
                None if low is None else 100 * low,
                None if high is None else 100 * high,
                one.verdict,
                one.sentence,
            )
        )
    title = f"{a.config.paradigm.upper()} − {b.config.paradigm.upper()}"
    return Step(title, a, b, tuple(deltas))


def sharing_sentence(found: Sharing, quoted: Callable[[str], str] = str) -> str:
    """What each step did, in one sentence. `quoted` writes tasks, which come from users."""
    return "; ".join(f"{step.title} {_did(step.deltas, quoted)}" for step in found.steps if step.deltas) + "."


def _did(deltas: Sequence[Delta], quoted: Callable[[str], str]) -> str:
    parts = []
    for kind, word in ((ABOVE, "raises"), (BELOW, "lowers")):
        told = [
            f"{quoted(one.task)} ({signed_points(one.points / 100)})" for one in deltas if one.verdict == kind
        ]
        if told:
            parts.append(f"{word} {all_of(told)}")
    return " and ".join(parts) if parts else "shows no difference"
