"""Runs, costs and correlations in words."""

from __future__ import annotations

from core.config import RunConfig
from core.evaluation.costs import Cost
from core.evaluation.statistics import MeanSD
from core.store import Run, RunState
from core.wording import duration

COST_HEAD = ("parameters", "trained", "peak memory", "time per seed")
"""The columns of `cost_told`."""


def correlation_told(learned: MeanSD | None) -> str:
    """A correlation over seeds, `0.76 ± 0.03`; empty where there is none."""
    if learned is None:
        return ""
    spread = "" if learned.sd is None else f" ± {learned.sd:.2f}"
    return f"{learned.mean:z.2f}{spread}".replace("-", "−")


def cost_told(cost: Cost | None) -> tuple[str, str, str, str]:
    """Parameters, those trained, peak memory and time of a configuration; a dash for what is not known."""
    if cost is None:
        return "–", "–", "–", "–"
    memory = "–" if cost.memory is None else f"{cost.memory / 2**30:.2f} GB ({', '.join(cost.devices)})"
    return _parameters(cost.parameters), _parameters(cost.trained), memory, duration(cost.seconds)


def _parameters(number_of: int) -> str:
    return f"{number_of / 1e6:.1f}M" if number_of >= 1e6 else f"{number_of:,}"


def description_lines(config: RunConfig) -> list[tuple[str, str]]:
    """Field and value of all that a run's description sets, lists with commas."""
    values = config.values()
    return [
        (field, ",".join(map(str, value)) if isinstance(value, list) else str(value))
        for field, value in values.items()
        if value is not None
    ]


def survival_told(run: Run) -> str:
    """What a run that trains or waits would keep if its worker died; empty where there is nothing to say."""
    sentences = []
    if run.attempt > 1:
        sentences.append(f"Attempt {run.attempt}.")
    if run.saved_step:
        resumes = "it goes on from there" if run.state is RunState.QUEUED else "resuming goes on from there"
        sentences.append(f"State saved at step {run.saved_step:,}; {resumes}.")
    if run.retries:
        times = "once more" if run.retries == 1 else f"up to {run.retries:,} more times"
        sentences.append(f"Resumed by itself {times} if its worker dies.")
    return " ".join(sentences)
