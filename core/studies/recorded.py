"""The published records of MRN Lab, which the package carries: runs of its own studies, and their results.

`data/NAME.csv.gz` has a row for each run, which can be added to any store. `data/NAME.json` has the results
of these runs, which a page reads instead: `python -m tests.unit.test_recorded_studies` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from core.evaluation.costs import Cost
from core.evaluation.statistics import MeanSD
from core.registry import FROZEN, FULL
from core.studies import Method, Setting, Study, load_study
from core.studies.analysis import Outcome, Result, with_differences
from core.studies.dissertation import BASE_SIZE
from core.transfer.gains import Gains, gains_of

_DATA = Path(__file__).parent / "data"
_DIGITS = 9  # with 6, the second decimal of a bound in points can differ from that of the runs


@dataclass(frozen=True)
class Record:
    """The recorded runs of a study, over its own encoders or another one."""

    study: str
    encoder: str | None = None
    encoder_training: str = FULL
    encoder_name: str = field(default="", compare=False)
    """The name of an encoder in a folder, in the names of the files."""

    @property
    def path(self) -> Path:
        """The table of the runs; records over one encoder share it."""
        name = "-".join(filter(None, (self.study, self.encoder_name or self.encoder)))
        return _DATA / f"{name}.csv.gz"

    @property
    def results_path(self) -> Path:
        """The file of the results."""
        name = self.path.name.removesuffix(".csv.gz")
        return _DATA / f"{name}{'-frozen' * (self.encoder_training == FROZEN)}.json"

    @cached_property
    def definition(self) -> Study:
        """The study over the encoder of the record."""
        return load_study(self.study, self.encoder, self.encoder_training)

    @cached_property
    def _document(self) -> Mapping[str, Any]:
        document: Mapping[str, Any] = json.loads(self.results_path.read_text("utf-8"))
        return document

    @property
    def runs(self) -> int:
        """The number of recorded runs."""
        return int(self._document["runs"])

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """The settings with recorded scores, in order."""
        return tuple(
            setting for setting in self.definition.settings if setting.name in self._document["settings"]
        )

    def result(self, setting: Setting) -> Result:
        """The result of a setting with recorded scores."""
        recorded = self._document["settings"][setting.name]
        outcomes = {
            name: _outcome(method, recorded.get(name))
            for name, method in self.definition.methods_in(setting).items()
        }
        done, planned = self._document["incomplete"].get(setting.name, (0, 0))
        return with_differences(self.definition, setting, outcomes, done, planned)

    def gains(self, part: str) -> Gains:
        """The gains among the pairs of tasks of a part of a study of pairs."""
        alone: dict[str, dict[int, float]] = {}
        beside: dict[tuple[str, str], dict[int, float]] = {}
        for setting in self.settings:
            by_method = self._document["settings"][setting.name]
            if setting.part != part or not {"stl", "mtl"} <= by_method.keys():
                continue
            single, joint = (by_method[name].get("by_seed", {}) for name in ("stl", "mtl"))
            for main, aux in (setting.targets, setting.targets[::-1]):
                if main in single:
                    alone[main] = _by_seed(single[main])
                    beside[main, aux] = _by_seed(joint.get(main, {}))
        return gains_of(alone, beside, [task for task in self.definition.pairs if task in alone])


RECORDS: Sequence[Record] = (
    Record("priors"),
    Record("regimes"),
    Record("new-task"),
    Record("dissertation", "minilm"),
    Record("dissertation", "minilm", FROZEN),
    Record("dissertation", f"/models/{BASE_SIZE}", encoder_name="mpnet"),
    Record("dissertation", f"/models/{BASE_SIZE}", FROZEN, encoder_name="mpnet"),
    Record("sc-lstm"),
    Record("transfer"),
    Record("simulator"),
    Record("tea"),
    Record("task-embeddings"),
    Record("balancing"),
)
"""All published records."""
PAIRS = "scarce-minilm"
"""The part of the study `transfer` that pages show."""
PAIRS_TITLE = "12 tasks in all pairs, 2,000 words each, a BiLSTM over frozen MiniLM"


def records_of(study: str) -> list[Record]:
    """The published records of a study."""
    return [record for record in RECORDS if record.study == study]


def results_document(runs: int, results: Iterable[Result]) -> dict[str, Any]:
    """The JSON document of results that `Record` reads, without settings that have no scores."""
    scored = [result for result in results if any(outcome.scores for outcome in result.outcomes)]
    return {
        "runs": runs,
        "incomplete": {
            result.setting.name: [result.done, result.planned] for result in scored if not result.is_complete
        },
        "settings": {
            result.setting.name: {
                outcome.method.name: _values(outcome, outcome.candidate)
                for outcome in result.outcomes
                if outcome.candidate is not None
            }
            for result in scored
        },
    }


def _values(outcome: Outcome, candidate: Mapping[str, Any]) -> dict[str, Any]:
    values = {
        "candidate": outcome.method.candidates.index(candidate),
        "dev": outcome.dev and [_rounded(figure) for figure in astuple(outcome.dev)],
        "by_seed": {
            target: {str(seed): _rounded(score) for seed, score in scores.items()}
            for target, scores in outcome.by_seed.items()
        },
        "cost": outcome.cost and [_rounded(figure) for figure in astuple(outcome.cost)],
        "score_names": dict(outcome.score_names),
        "failed": outcome.failed,
    }
    return {name: value for name, value in values.items() if value or name == "candidate"}


def _rounded(value: Any) -> Any:
    """The value as JSON has it, numbers with few digits."""
    if isinstance(value, tuple):
        return list(value)
    return round(value, _DIGITS) if isinstance(value, float) and math.isfinite(value) else value


def _outcome(method: Method, values: Mapping[str, Any] | None) -> Outcome:
    if values is None:
        return Outcome(method, None, None, {}, 0, {})
    cost = None
    if "cost" in values:
        parameters, trained, memory, seconds, devices, models = values["cost"]
        cost = Cost(parameters, trained, memory, seconds, tuple(devices), models)
    return Outcome(
        method,
        method.candidates[values["candidate"]],
        MeanSD(*values["dev"]) if "dev" in values else None,
        {target: _by_seed(scores) for target, scores in values.get("by_seed", {}).items()},
        values.get("failed", 0),
        {},
        cost=cost,
        score_names=values.get("score_names", {}),
    )


def _by_seed(scores: Mapping[str, float]) -> dict[int, float]:
    return {int(seed): score for seed, score in scores.items()}
