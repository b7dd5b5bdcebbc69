"""Submission, preflight, estimates, and which engine places runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import Corpus, prepare
from core.errors import ConfigError, CorpusError, DeviceError, EncoderError, MRNLabError
from core.models.device import choose_device
from core.store import RunState, Store
from jobs.engines import ENGINES, _engine, default_engine, sqlite_problem
from jobs.engines.local import gpu_count
from jobs.queue import submit as submission
from jobs.queue.estimates import eta
from jobs.queue.submit import check, submit
from tests.making import Clock, NoWorkers, claimed, conll_config, step_metrics


def test_each_share_of_a_corpus_is_read_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[RunConfig] = []

    def note(config: RunConfig) -> Corpus:
        read.append(config)
        return prepare(config)

    monkeypatch.setattr(submission, "prepare", note)
    check(
        [
            conll_config(corpus, seed=1),
            conll_config(corpus, seed=2, truecase=True),
            conll_config(corpus, paradigm="stl", tasks="toy"),
            conll_config(corpus, paradigm="mtl"),
            conll_config(corpus, fraction=0.5),
        ]
    )
    assert [(config.tasks, config.fraction) for config in read] == [
        (("ner", "toy"), 1.0),
        (("ner", "toy"), 0.5),
    ]


def test_notes_are_told_once(corpus: Path) -> None:
    with (corpus / "test.conll").open("a") as file:
        file.write("Mars B-PLANET X\nis O Y\n\n")
    notes = check([conll_config(corpus, paradigm="mrn", seed=seed) for seed in (1, 2)])
    assert len(set(notes)) == len(notes)
    assert notes[0].startswith(
        "The alignment of ner, toy is cooccurrence: auto chose it for the whole corpus"
    )
    (finding,) = [note for note in notes if "B-PLANET" in note]
    assert "test split" in finding
    assert any("Trains on 10 of 20" in note for note in check([conll_config(corpus, fraction=0.5)]))


class TestDevices:
    @pytest.fixture(autouse=True)
    def no_gpu(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        monkeypatch.setattr("jobs.engines.local._GPU_PLACES", ())
        gpu_count.cache_clear()
        yield
        gpu_count.cache_clear()

    @pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:3"])
    def test_one_that_is_not_here_is_refused_before_it_is_queued(
        self, store: Store, corpus: Path, device: str
    ) -> None:
        with pytest.raises(ConfigError, match=f"device: {device} is not on this machine, which has no GPU"):
            submit(store, [conll_config(corpus, device=device)], engine=NoWorkers())
        assert store.runs() == []
        check([conll_config(corpus, device="cpu"), conll_config(corpus)])

    def test_another_scheduler_places_runs_elsewhere(
        self, corpus: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.queue.submit.default_engine", lambda: SimpleNamespace(name="slurm"))
        check([conll_config(corpus, device="cuda")])

    def test_a_run_that_meets_it_fails_with_that_cause(self) -> None:
        with pytest.raises(DeviceError) as failed:
            choose_device("cuda:99")
        assert failed.value.device == "cuda:99"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"corpus": "nowhere"}, CorpusError),
        ({"tasks": "ner,height"}, CorpusError),
        ({"encoder": "no-such/encoder"}, EncoderError),
        ({"max_length": 513}, ConfigError),
    ],
)
def test_all_or_none(store: Store, corpus: Path, changes: dict[str, Any], error: type[Exception]) -> None:
    engine = NoWorkers()
    with pytest.raises(error):
        submit(store, [conll_config(corpus), conll_config(corpus, **changes)], engine=engine)
    assert store.runs() == []
    assert engine.asked == 0


def test_what_is_queued(store: Store, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    engine, notes = NoWorkers(), list[str]()
    configs = [conll_config(Path("corpus")), conll_config(corpus, fraction=0.5)]
    ids = submit(store, configs, "two", engine=engine, tell=notes.append)
    assert [store.run(run_id).config.corpus for run_id in ids] == [str(corpus)] * 2
    assert {run.sweep for run in store.runs()} == {"two"}
    assert engine.asked == 1
    assert any("Trains on 10 of 20" in note for note in notes)


def test_a_mapping_is_kept_as_it_was(
    store: Store, corpus: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = corpus.parent / "labels.csv"
    file.write_text("task,label,general\nner,B-ORG,thing\ntoy,X,thing\n")
    monkeypatch.chdir(corpus.parent)
    notes: list[str] = []

    def submitted(config: RunConfig) -> RunConfig:
        (run_id,) = submit(store, [config], engine=NoWorkers(), tell=notes.append)
        return store.run(run_id).config

    run = submitted(conll_config(corpus, alignment="mapping:labels.csv"))
    assert any("2 labels of this run, which keep general rows" in note for note in notes)
    same = submitted(conll_config(corpus, alignment=f"mapping:{file}", seed=2))
    assert run.configuration_id == same.configuration_id
    file.write_text("task,label,general\nner,B-ORG,other\ntoy,X,other\n")
    changed = submitted(conll_config(corpus, alignment="mapping:labels.csv"))
    assert changed.configuration_id != run.configuration_id
    kept = Path(str(run.alignment).removeprefix("mapping:"))
    assert kept.parent == laboratory / "uploads" / "mappings"
    assert "thing" in kept.read_text()
    assert submitted(run) == run  # a run's description can be submitted again as it stands


def test_eta(store: Store, clock: Clock) -> None:
    run_id = claimed(store)

    def left() -> dict[int, float]:
        return eta(store, [store.run(run_id)])

    assert left() == {}
    clock.now += 3600  # the start takes an hour, which the steps to come do not
    store.set_progress(run_id, 10, 1.0, 40)
    assert left() == {}
    store.add_metrics(run_id, [step_metrics(step) for step in range(1, 11)])
    assert left() == {run_id: pytest.approx(10 * 0.5 / 10 * 30)}
    store.finish(run_id, RunState.SUCCEEDED)
    assert left() == {}


def test_this_machine_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRNLAB_ENGINE", raising=False)
    assert default_engine().name == "local"
    assert default_engine() is default_engine()


@pytest.mark.parametrize("name", ENGINES)
def test_each_is_found_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ENGINE", name)
    assert default_engine().name == name


def test_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ENGINE", "kubernetes")
    sentence = r"^There is no engine 'kubernetes'; MRNLAB_ENGINE can be local, ray, slurm\.$"
    with pytest.raises(MRNLabError, match=sentence):
        default_engine()


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_extra_that_is_not_installed(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there
    monkeypatch.delitem(sys.modules, f"jobs.engines.{name}", raising=False)
    sentence = rf"^The engine '{name}' needs the package {package}: pip install 'mrnlab\[{name}\]'\.$"
    with pytest.raises(MRNLabError, match=sentence):
        _engine.__wrapped__(name)


def test_a_file_serves_one_machine() -> None:
    assert sqlite_problem("sqlite:////shared/runs.db", 1, "Ray") is None
    assert sqlite_problem("postgresql://there/lab", 2, "Ray") is None
    problem = sqlite_problem("sqlite:////shared/runs.db", 2, "Ray")
    assert problem is not None
    assert problem.startswith("The store is an SQLite file, which the 2 machines of the Ray cluster cannot")
