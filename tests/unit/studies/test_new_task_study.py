"""Studies whose runs are added to base runs: what is made and when, and a small one really trained."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import prepare
from core.errors import ConfigError
from core.recording.resolve import resolve_base_run
from core.registry import BY_CONFIGURATION, PREDICTED
from core.store import RunState, Store
from core.studies import Method, Setting, Study
from core.studies.new_task import STUDY
from core.studies.study import DevByRun, SettingRuns, next_runs, planned_runs, with_runs
from core.training.trainer import train
from jobs.exchange.run_table import RunTable
from jobs.queue.submit import submit
from jobs.studies.follow import follow
from jobs.studies.progress import StudyRuns, settings_with_runs
from tests.making import NoWorkers, facts_of
from tests.studying import Workers, finished
from tests.trained import toy_config, train_runs

METHODS = (
    Method("alone", "Alone", ({"paradigm": "stl"},)),
    Method("ridge", "Ridge", ({"prior": PREDICTED, "alignment": "disjoint"},)),
    Method("predicted", "Predicted", tuple({"prior": PREDICTED, "lambda": value} for value in (0.01, 1.0))),
)


def _study(home: Path) -> Study:
    """POS of the toy corpus, added to its NER, in two settings with one base."""
    made = toy_config(home)
    names = ("corpus", "columns", "tasks", "encoder", "max_length")
    base = {name: getattr(made, name) for name in names} | {"encoder_training": "frozen", "epochs": 2}
    settings = tuple(
        Setting(
            f"of-{fraction}",
            "POS added to NER",
            "one",
            base | {"fraction": fraction},
            ("pos",),
            ("alone", "ridge", "predicted"),
            added_to={"paradigm": "stl", "fraction": 1.0},
        )
        for fraction in (0.2, 0.5)
    )
    return Study("added", "Added", "Does it pay?", settings, METHODS, "ridge", (1,), (1, 2))


def _follow(store: Store, settings: list[SettingRuns]) -> list[str]:
    lines: list[str] = []
    engine = Workers(at_once=30, train=train, prepare=prepare)
    assert follow(store, settings, lines.append, engine=engine, sleep=lambda _: None), lines
    return lines


def _scored(*runs: RunConfig) -> DevByRun:
    return DevByRun({run: dict.fromkeys(run.tasks, 0.5) for run in runs})


def test_runs_wait_for_their_base_which_settings_share(laboratory: Path) -> None:
    made = _study(laboratory)
    few, more = (with_runs(made, setting) for setting in made.settings)
    assert few.bases == more.bases
    bases = list(few.bases.values())
    assert {run.tasks for run in bases} == {("ner",)}
    first = next_runs(few, DevByRun({}), ())
    assert set(bases) < set(first)
    assert all(run.added_to is None for run in first)
    one = [run for run in first if run != bases[1]]
    then = [run for run in next_runs(few, _scored(*one), ()) if run != bases[1]]
    assert {run.seed for run in then} == {bases[0].seed}
    assert not next_runs(few, _scored(*one, *then), [bases[1]])  # the other seed's base has failed


def test_a_run_is_described_by_the_configuration_that_it_is_added_to(laboratory: Path) -> None:
    made = _study(laboratory)
    setting = made.settings[0]
    setting_runs = with_runs(made, setting)
    added = [run for run in setting_runs.runs() if run.added_to is not None]
    assert {run.added_to for run in added} == {BY_CONFIGURATION + setting_runs.bases[1].configuration_id}
    longer = with_runs(made, replace(setting, added_to={**setting.added_to, "epochs": 3}))
    assert not {run.configuration_id for run in added} & {run.configuration_id for run in longer.runs()}


def test_a_base_that_no_run_needs_is_not_planned(laboratory: Path) -> None:
    """As where all other runs come from a record."""
    made = _study(laboratory)
    setting_runs = with_runs(made, made.settings[0])
    others = [run for run in setting_runs.runs() if run not in setting_runs.bases.values()]
    assert not [plan for plan in planned_runs(setting_runs, _scored(*others), ()) if plan.stage == "base"]
    some = planned_runs(setting_runs, _scored(*(run for run in others if run.seed == 1)), ())
    assert {plan.config.seed for plan in some if plan.stage == "base"} == {2}


def test_a_small_study_from_end_to_end(laboratory: Path, store: Store, tmp_path: Path) -> None:
    made = _study(laboratory)
    settings = settings_with_runs(made, made.settings)
    _follow(store, settings)
    runs = store.runs(states={RunState.SUCCEEDED})
    bases = set(settings[0].bases.values())
    assert len([run for run in runs if run.config in bases]) == len(bases) == 2
    of_a_setting = 2 + 2 + 3  # Alone, Ridge and Predicted, which one seed searches
    assert len(runs) == 2 + 2 * of_a_setting
    added = [run for run in runs if run.config.added_to is not None]
    assert {facts_of(store.run(run.id)).related for run in added} == {("ner", "pos")}
    for result in StudyRuns(store, settings).results():
        for method in ("alone", "predicted"):
            assert result.outcome(method).differences["pos"].paired is not None

    table = RunTable(tmp_path / "added.csv")
    lost = next(run for run in added if run.config.fraction == 0.5 and run.config.seed == 2)
    table.add(store, [run for run in runs if run.id != lost.id])
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'other.db'}")) as other:
        restored = table.restore(other)
        assert StudyRuns(other, settings[:1]).look().counts.total == 2 + 2 + 3
        _follow(other, settings)
        again = [run.config for run in other.runs() if run.id > restored]
        assert again == [lost.config, settings[0].bases[2]]  # the newest first


def test_a_run_is_refused_whose_base_has_no_weights_here(laboratory: Path, store: Store) -> None:
    made = _study(laboratory)
    setting_runs = settings_with_runs(made, made.settings)[0]
    (run,) = setting_runs.candidates["ridge"][0].runs[1]
    finished(store, setting_runs.bases[1])  # as one from a record
    with pytest.raises(ConfigError, match="with seed 1 has finished here with its weights; train it first"):
        submit(store, [run], engine=NoWorkers())
    (base,) = train_runs(store, [setting_runs.bases[1]])
    assert resolve_base_run(store, run).added_to == store.run(base).checkpoint
    assert submit(store, [run], engine=NoWorkers()) == ([base + 1], [])


def test_pooled_has_the_same_new_sentences_and_those_of_the_base() -> None:
    corpora, few = "joined:demo-pos-a+demo-pos-b", "&dev=3&test=4"
    pooled = {method.name: method for method in STUDY.methods}["pooled"]
    (fields,) = pooled.among({"corpus": f"{corpora}?train=5{few}"}).candidates
    assert fields["corpus"] == f"{corpora}?train=5,400{few}"
    small, tasks = fields["corpus"].replace("400", "9"), ("pos@demo-pos-a", "pos@demo-pos-b")
    together = prepare(RunConfig.build(corpus=small, tasks=tasks, paradigm="mtl")).train
    for task, size in zip(tasks, (5, 9), strict=True):
        alone = RunConfig.build(corpus=f"{corpora}?train={size}{few}", tasks=(task,), paradigm="stl")
        assert prepare(alone).train == tuple(made for made in together if task in made.labels)
