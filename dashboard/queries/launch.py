"""The runs that a form makes, as the list beside it shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.store.records import Run
from core.store.states import RunState
from core.sweep import LISTED
from dashboard.queries.naming import field_text, kind_name
from jobs.cost import Cost

__all__ = ["PlanView", "PlannedRun", "plan_view"]

# Told by a run's name, or in a column of their own.
_NAMED = ("paradigm", "lambda", "seed")


@dataclass(frozen=True)
class PlannedRun:
    """One run: its name, the values that tell it from the others, its seed; the run of the store that is the
    same, if there is one, else the seconds it will take (None where that cannot be told).
    """

    name: str
    values: Mapping[str, str]
    seed: int
    there: Run | None
    seconds: float | None


@dataclass(frozen=True)
class PlanView:
    """The planned runs in order, and the fields in which they differ beside paradigm, λ and seed."""

    rows: tuple[PlannedRun, ...]
    fields: tuple[str, ...]

    @property
    def there(self) -> tuple[Run, ...]:
        """The runs of the store that are among them."""
        return tuple(row.there for row in self.rows if row.there is not None)

    @property
    def all_done(self) -> bool:
        """Whether all of them have succeeded already."""
        return all(row.there is not None and row.there.state is RunState.SUCCEEDED for row in self.rows)


def plan_view(
    configs: Sequence[RunConfig], same: Sequence[Run | None], new: Mapping[RunConfig, int], cost: Cost | None
) -> PlanView:
    """The list of these runs. `same` has for each the run that is used in its place; `new` the place of the
    others in `cost`.
    """
    fields = [name for name in LISTED if name not in _NAMED and _differs(name, configs)]
    rows = tuple(
        PlannedRun(
            kind_name(config),
            {name: _text(config, name) for name in fields},
            config.seed,
            there,
            _seconds(cost, new.get(config)),
        )
        for config, there in zip(configs, same, strict=True)
    )
    return PlanView(rows, tuple(fields))


def _seconds(cost: Cost | None, place: int | None) -> float | None:
    """What the new run at that place takes; the first one bears the start of a worker."""
    if cost is None or place is None:
        return None
    return cost.runs[place].seconds + (cost.first if place == 0 else 0.0)


def _differs(name: str, configs: Sequence[RunConfig]) -> bool:
    return len({getattr(one, name) for one in configs} - {None}) > 1


def _text(config: RunConfig, name: str) -> str:
    value = getattr(config, name)
    if value is None:
        return ""
    text = field_text(name, value)
    return text.removeprefix(name.replace("_", " ")).removesuffix("of the data").strip()
