"""Numbers as a person reads them, in the log and at the terminal. JSON and CSV keep shares in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence

from core.config import RunConfig
from core.evaluation.costs import Cost
from core.evaluation.statistics import MeanSD
from core.store import Run, RunState

COST_HEAD = ("parameters", "trained", "peak memory", "time per seed")
"""The columns of `cost_told`."""


def percent(share: float) -> str:
    """A score in [0, 1] in percent with two decimals: `89.79%`."""
    return f"{100 * share:.2f}%"


def signed_points(share: float) -> str:
    """A difference of two scores in percentage points with its sign; one that rounds to zero has none."""
    points = f"{100 * share:+z.2f}".replace("-", "−")
    return "0.00" if points == "+0.00" else points


def number(value: float | None) -> str:
    """A setting as a researcher writes it: 0.01, 2e-4, 16."""
    if value is None:
        return "–"
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e5):
        mantissa, exponent = f"{value:.4e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:g}"


def correlation_told(learned: MeanSD | None) -> str:
    """A correlation over seeds, `0.76 ± 0.03`; empty where there is none."""
    if learned is None:
        return ""
    spread = "" if learned.sd is None else f" ± {learned.sd:.2f}"
    return f"{learned.mean:z.2f}{spread}".replace("-", "−")


def p_told(p: float | None) -> str:
    """A p-value with three decimals; empty where there is none."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def cost_told(cost: Cost | None) -> tuple[str, str, str, str]:
    """Parameters, those trained, peak memory and time of a configuration; a dash for what is not known."""
    if cost is None:
        return "–", "–", "–", "–"
    memory = "–" if cost.memory is None else f"{cost.memory / 2**30:.2f} GB ({', '.join(cost.devices)})"
    return _parameters(cost.parameters), _parameters(cost.trained), memory, seconds_told(cost.seconds)


def _parameters(number_of: int) -> str:
    return f"{number_of / 1e6:.1f}M" if number_of >= 1e6 else f"{number_of:,}"


def seconds_told(seconds: float | None) -> str:
    """A span of time as people say it; empty where there is none."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def description_lines(config: RunConfig) -> list[tuple[str, str]]:
    """Field and value of all that a run's description sets, lists with commas."""
    values = config.values()
    return [
        (field, ",".join(map(str, value)) if isinstance(value, list) else str(value))
        for field, value in values.items()
        if value is not None
    ]


def runs_told(ids: Sequence[int]) -> str:
    """These runs in words, such as `3 runs: 4 to 6`."""
    if len(ids) == 1:
        return f"run {ids[0]}"
    together = ids == list(range(ids[0], ids[0] + len(ids)))
    return f"{len(ids)} runs: " + (f"{ids[0]} to {ids[-1]}" if together else ", ".join(map(str, ids)))


def survival_told(run: Run) -> str:
    """What a run that trains or waits would keep if its worker died; empty where there is nothing to say."""
    told = []
    if run.attempt > 1:
        told.append(f"Attempt {run.attempt}.")
    if run.saved_step:
        resumes = "it goes on from there" if run.state is RunState.QUEUED else "resuming goes on from there"
        told.append(f"State saved at step {run.saved_step:,}; {resumes}.")
    if run.retries:
        times = "once more" if run.retries == 1 else f"up to {run.retries:,} more times"
        told.append(f"Resumed by itself {times} if its worker dies.")
    return " ".join(told)
