"""Results computed from recorded runs, each in a store of its own; the runs of the first two cards of Launch.

`python -m tests.claims.runs` trains the runs of the cards anew and writes their record.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from core.store import Store
from core.studies.analysis import Result
from core.studies.recorded import RECORDS
from core.studies.study import Method, Setting, Study, with_runs
from core.transfer.gains import Gains, gains_of
from dashboard.shared.presets import SCARCE, TRY_IT, LaunchPreset
from jobs.exchange.run_table import RunTable
from jobs.studies.progress import StudyRuns

CARDS_FILE = Path(__file__).parent / "data" / "cards.csv.gz"
_TARGETS = ("pos-a", "pos-b")


def _fields(preset: LaunchPreset, paradigm: str) -> Mapping[str, object]:
    """The fields that all runs of the card have, as of its first run of the paradigm without a prior."""
    run = next(run for run in preset.configs if run.paradigm == paradigm)
    names = (
        "corpus",
        "fraction",
        "encoder",
        "encoder_training",
        "epochs",
        "batch_size",
        "bilstm_hidden",
        "lr_bilstm",
    )
    values = {name: getattr(run, name) for name in names}
    return {name: value for name, value in values.items() if value is not None} | {"tasks": _TARGETS}


CARDS = Study(
    "cards",
    "The first two cards",
    "Does sharing help, and is it the relations?",
    (
        Setting("card-1", TRY_IT.title, "cards", _fields(TRY_IT, "mtl"), _TARGETS, ("stl", "mtl", "mrn")),
        Setting(
            "card-2",
            SCARCE.title,
            "cards",
            _fields(SCARCE, "mtl"),
            _TARGETS,
            ("mtl", "disjoint", "relations"),
        ),
    ),
    (
        Method("stl", "STL", ({"paradigm": "stl"},)),
        Method("mtl", "MTL", ({"paradigm": "mtl"},)),
        Method("mrn", "MRN", ({"paradigm": "mrn", "alignment": "exact"},)),
        Method(
            "disjoint",
            "MRN, disjoint",
            ({"paradigm": "mrn", "alignment": "disjoint", "learn": "task", "lambda": 0.003},),
        ),
        Method(
            "relations",
            "MRN, exact",
            ({"paradigm": "mrn", "alignment": "exact", "learn": "task", "lambda": 0.003},),
            base="disjoint",
        ),
    ),
    "mtl",
)
"""The runs of the cards as a study."""


@dataclass(frozen=True)
class Runs:
    """The runs of a study in a file, with the results that they have: what `Record` reads, computed."""

    definition: Study
    path: Path

    @cached_property
    def _computed(self) -> tuple[int, dict[str, Result]]:
        settings = [with_runs(self.definition, setting) for setting in self.definition.settings]
        with tempfile.TemporaryDirectory() as folder:
            store = Store.open(f"sqlite:///{folder}/runs.db")
            RunTable(self.path).restore(store)
            runs = StudyRuns(store, settings, may_read=False)
            done = runs.look().counts.done
            results = {result.setting.name: result for result in runs.results()}
            store.close()
        scored = {name: result for name, result in results.items() if any(o.scores for o in result.outcomes)}
        return done, scored

    @property
    def runs(self) -> int:
        """The number of finished runs of the study."""
        return self._computed[0]

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """The settings with scores."""
        return tuple(setting for setting in self.definition.settings if setting.name in self._computed[1])

    def result(self, setting: Setting) -> Result:
        """The result of a setting with scores."""
        return self._computed[1][setting.name]

    def gains(self, part: str) -> Gains:
        """The gains among the pairs of tasks of a part of a study of pairs."""
        alone: dict[str, Mapping[int, float]] = {}
        beside: dict[tuple[str, str], Mapping[int, float]] = {}
        for setting in self.settings:
            outcomes = {outcome.method.name: outcome.by_seed for outcome in self.result(setting).outcomes}
            if setting.part != part or not {"stl", "mtl"} <= outcomes.keys():
                continue
            for main, aux in (setting.targets, setting.targets[::-1]):
                if main in outcomes["stl"]:
                    alone[main], beside[main, aux] = outcomes["stl"][main], outcomes["mtl"].get(main, {})
        return gains_of(alone, beside, [task for task in self.definition.pairs if task in alone])


def computed_records() -> dict[str, Runs]:
    """Every published record, and that of the cards, by the name of its results."""
    records = {record.results_path.stem: Runs(record.definition, record.path) for record in RECORDS}
    return records | {"cards": Runs(CARDS, CARDS_FILE)}


def train_cards() -> None:
    """Trains the runs of the cards in a store of their own and writes their record."""
    from jobs.queue.submit import queue_runs
    from jobs.worker.supervisor import main as work

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/cards.db"
        store = Store.open(url)
        for preset in (TRY_IT, SCARCE):
            queue_runs(store, list(preset.configs), preset.title)
        os.environ.setdefault("MRNLAB_LINGER_S", "2")
        if work([], url):
            sys.exit("A worker failed.")
        CARDS_FILE.unlink(missing_ok=True)
        RunTable(CARDS_FILE).add(store, [run for run in store.runs() if run.finished_at])


if __name__ == "__main__":
    train_cards()
