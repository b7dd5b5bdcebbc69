"""Submission, preflight, estimates, which engine places runs, and runs that are there already."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import Corpus, prepare
from core.corpora.assembly import older_text_hash
from core.corpora.loading import read
from core.errors import ConfigError, CorpusError, DeviceError, EncoderError, MRNLabError
from core.models.device import choose_device
from core.store import RunState, Store
from jobs.engines import ENGINES, _engine, default_engine, sqlite_problem
from jobs.queue import submit as submission
from jobs.queue.estimates import eta
from jobs.queue.submit import check, same_runs, submit
from jobs.worker.devices import gpu_count
from tests.making import (
    Clock,
    NoWorkers,
    claimed,
    config,
    conll_config,
    conll_folder,
    corpus_folder,
    finished,
    run_facts,
    step_metrics,
)


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
    assert {config.tasks for config in read} == {("ner", "toy")}
    assert [config.fraction for config in read] == [1.0, 0.5]


def test_notes_are_told_once(corpus: Path) -> None:
    with (corpus / "test.conll").open("a") as file:
        file.write("Mars B-PLANET X\nis O Y\n\n")
    notes = check([conll_config(corpus, paradigm="mrn", seed=seed) for seed in (1, 2)])
    assert len(set(notes)) == len(notes)
    assert notes[0].startswith(
        "The alignment of ner, toy is cooccurrence: auto chose it for the whole corpus"
    )
    (finding,) = [note for note in notes if "B-PLANET" in note]
    assert "in test" in finding
    assert any("Trains on 10 of 20" in note for note in check([conll_config(corpus, fraction=0.5)]))


class TestDevices:
    @pytest.fixture(autouse=True)
    def no_gpu(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        monkeypatch.setattr("jobs.worker.devices._GPU_PATHS", ())
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
    ids, _ = submit(store, configs, "two", engine=engine, show_notes=notes.extend)
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
        (run_id,), _ = submit(store, [config], engine=NoWorkers(), show_notes=notes.extend)
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


@pytest.mark.parametrize("name", ["", *ENGINES])
def test_each_engine_is_found_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ENGINE", name)
    assert default_engine().name == (name or "local")
    assert default_engine() is default_engine()


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
    assert "2 machines of the Ray cluster" in (sqlite_problem("sqlite:////shared/runs.db", 2, "Ray") or "")


def reused(store: Store, *configs: RunConfig) -> list[int | None]:
    runs = same_runs(store, configs)
    return [runs[wanted].id if wanted in runs else None for wanted in configs]


@pytest.mark.parametrize("state", list(RunState))
def test_only_runs_that_need_not_be_trained_again(store: Store, state: RunState) -> None:
    run_id = claimed(store, state)
    reusable = state in (RunState.SUCCEEDED, RunState.RUNNING, RunState.QUEUED)
    expected = [run_id if reusable else None, None, None]
    assert reused(store, config(), config(seed=2), config(epochs=6)) == expected
    if state is RunState.SUCCEEDED:
        store.archive([run_id])
        assert reused(store, config()) == [None]


def test_a_finished_run_counts_before_one_in_training_and_that_before_one_that_waits(store: Store) -> None:
    done = claimed(store, RunState.SUCCEEDED)
    newer = claimed(store, RunState.SUCCEEDED)
    training = claimed(store)
    claimed(store, RunState.QUEUED)
    assert done < newer < training
    assert reused(store, config()) == [newer]
    store.delete_runs([done, newer])
    assert reused(store, config()) == [training]


def test_only_what_is_missing_is_queued_in_the_order_asked_for(store: Store) -> None:
    second = claimed(store, RunState.SUCCEEDED, seed=2)
    waiting = claimed(store, RunState.QUEUED, seed=4)
    wanted = [config(seed=seed) for seed in (1, 2, 3, 4)]
    ids, used = submit(store, wanted, "again", reuse=True, engine=NoWorkers())
    assert set(used) == {second, waiting}
    assert [store.run(run_id).config.seed for run_id in ids] == [1, 2, 3, 4]
    assert (ids[1], ids[3]) == (second, waiting)
    assert len(store.runs()) == 4
    assert submit(store, wanted, reuse=True, engine=NoWorkers()) == (ids, ids)
    assert len(store.runs()) == 4


def test_a_launch_at_the_same_time_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another queues the same while ours are checked, which takes as long as a corpus is read."""
    wanted = [config(seed=seed) for seed in (1, 2, 3)]
    others: list[int] = []

    def check_meanwhile(runs: Sequence[RunConfig]) -> tuple[str, ...]:
        monkeypatch.setattr(submission, "check", check)
        others.extend(submit(store, wanted[:2], reuse=True, engine=NoWorkers())[0])
        return check(runs)

    monkeypatch.setattr(submission, "check", check_meanwhile)
    ids, used = submit(store, wanted, reuse=True, engine=NoWorkers())
    assert (ids[:2], used) == (others, others)
    assert len(store.runs()) == 3


def test_a_run_that_fails_meanwhile_is_checked_and_queued_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, wanted = claimed(store), [config(), config(seed=2)]
    lots: list[list[int]] = []

    def check_meanwhile(runs: Sequence[RunConfig]) -> tuple[str, ...]:
        lots.append([run.seed for run in runs])
        if store.state(trained) is RunState.RUNNING:
            store.finish(trained, RunState.FAILED)
        return check(runs)

    monkeypatch.setattr(submission, "check", check_meanwhile)
    assert submit(store, wanted, reuse=True, engine=NoWorkers())[1] == []
    assert lots == [[2], [1]]
    assert len(store.runs()) == 3


def finished_on(store: Store, wanted: RunConfig, **facts: Any) -> int:
    """A run of that description, trained here with these facts."""
    return finished(store, wanted, run_facts(**facts))


def test_a_run_on_other_text_is_not_used(store: Store, tmp_path: Path) -> None:
    folder = conll_folder(tmp_path / "corpus")
    wanted = conll_config(folder)
    run_id = finished_on(store, wanted, text_hash=read(wanted.corpus, wanted.columns).text_hash)
    assert reused(store, wanted) == [run_id]
    train = folder / "train.conll"
    train.write_text(train.read_text().replace("B-ORG", "B-LOC", 1))
    assert reused(store, wanted) == [None]
    ids, used = submit(store, [wanted], reuse=True, engine=NoWorkers())
    assert (used, len(store.runs())) == ([], 2)
    assert ids != [run_id]


def test_a_run_on_labels_that_were_corrected_is_not_used(store: Store, tmp_path: Path) -> None:
    """A hash of an earlier version leaves them out, so that a run with one is not used either."""
    conllu = "".join(f"{n}\tw{n}\t_\tX\t_\tCase=Nom\t0\t{rel}\t_\t_\n\n" for n, rel in ((1, "a"), (1, "b")))
    folder = corpus_folder(
        tmp_path / "ud", dict.fromkeys(("train.conllu", "dev.conllu", "test.conllu"), conllu)
    )
    wanted = RunConfig.build(corpus=str(folder), tasks="deprel", paradigm="stl")
    corpus = read(str(folder))
    finished_on(store, wanted, text_hash=older_text_hash(corpus))
    assert reused(store, wanted) == [None]
    now = finished_on(store, wanted, text_hash=corpus.text_hash)
    assert reused(store, wanted) == [now]
    for number, (old, new) in enumerate((("\tb\t", "\ta\t"), ("Nom", "Acc"))):
        test = Path(folder) / "test.conllu"
        test.write_text(conllu.replace(old, new))
        os.utime(test, ns=(1, number + 1))
        assert reused(store, wanted) == [None]


def test_a_run_whose_text_is_not_known_is_used(store: Store, tmp_path: Path) -> None:
    """Runs of older versions tell no text; nor does a corpus that can no longer be read."""
    folder = conll_folder(tmp_path / "corpus")
    wanted = conll_config(folder)
    old = finished_on(store, wanted)
    assert reused(store, wanted) == [old]
    newer = finished_on(store, wanted, text_hash="abc")
    assert reused(store, wanted) == [old]
    (folder / "train.conll").unlink()
    assert reused(store, wanted) == [newer]


def test_a_run_in_another_precision_than_auto_gives_now_is_not_used(store: Store) -> None:
    """The newest run shows what `auto` comes to; where the precision is named there is nothing to ask."""
    half = finished_on(store, config(), precision="bf16")
    named = finished_on(store, config(precision="bf16"), precision="bf16")
    assert reused(store, config(), config(precision="bf16")) == [half, named]
    single = finished_on(store, config(seed=2), precision="fp32")
    configs = (config(), config(seed=2), config(precision="bf16"))
    assert reused(store, *configs) == [None, single, named]


def test_a_run_whose_alignment_auto_would_choose_otherwise_now_is_not_used(store: Store) -> None:
    """Its tasks are annotated on the same words and share no label names."""
    finished_on(store, config(), alignment="exact")
    named = finished_on(store, config(alignment="exact"), alignment="exact")
    assert reused(store, config(), config(alignment="exact")) == [None, named]
    same = finished_on(store, config(), alignment="cooccurrence")
    assert reused(store, config()) == [same]


def test_where_one_cannot_be_trained_none_is_queued(store: Store) -> None:
    claimed(store, RunState.SUCCEEDED)
    with pytest.raises(CorpusError):
        submit(store, [config(), config(tasks=("pos", "height"))], reuse=True, engine=NoWorkers())
    assert len(store.runs()) == 1
