"""mrnlab advise: its runs really trained, at a small size, and judged by made-up evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from core.corpora import prepare
from core.store import RunState, Store
from core.studies.transfer import STUDY
from core.training.trainer import train
from core.transfer.prediction import EVEN, HELPS, HURTS, NO_EVIDENCE, lessons
from jobs.cli import advise as verb
from jobs.reports import advise
from tests.studying import Workers
from tests.unit.cli.conftest import Laboratory
from tests.unit.test_prediction import evidence, planted

DEMO = ("pos", "chunk", "ner")
CALL = ("advise", "--corpus", "demo", "--tasks", ",".join(DEMO))


def trained(store: Store, ids: Sequence[int]) -> None:
    """Trains the runs that wait in this process."""
    engine = Workers(at_once=30, train=train, prepare=prepare)
    while any(run.state is RunState.QUEUED for run in store.runs(ids, with_facts=False)):
        engine.ensure_workers(store)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study's recipe with few words and epochs, trained in this process."""
    monkeypatch.setattr(verb, "wait_for_runs", trained)
    settings = [setting for setting in STUDY.settings if setting.part == advise.PART]
    few = tuple(replace(each, base={**each.base, "epochs": 6, "bilstm_hidden": 8}) for each in settings)
    monkeypatch.setattr(advise, "STUDY", replace(STUDY, settings=few))
    monkeypatch.setattr(advise, "_WORDS", 150)
    monkeypatch.setattr(advise, "_SAMPLES", "dev=10&test=10")
    monkeypatch.setattr(advise, "_SWEEP_SEEDS", 2)
    monkeypatch.setattr(advise, "_MEASURED_EVERY", 2)


def test_advice_is_given_again_and_settled(
    lab: Laboratory, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advise, "packaged", lambda part: lessons(evidence(planted)))
    document = lab.json(*CALL)
    (run,) = lab.store.runs()
    assert document["runs"] == [run.id]
    assert (run.config.tasks, run.config.paradigm, run.sweep) == (DEMO, "mtl", "advise demo")
    assert run.config.affinity_every is not None
    assert document["speaks"]
    pairs = {(pair["main"], pair["aux"]): pair for pair in document["pairs"]}
    assert set(pairs) == set(permutations(DEMO, 2))
    verdicts = {HELPS: 1, HURTS: -1, EVEN: 0}
    for (main, aux), pair in pairs.items():
        sign = 1 if pair["probability"] > 0.5 else -1
        assert verdicts[pair["advice"]] in (0, sign)
        assert pair["cosine"] == pairs[aux, main]["cosine"]
        assert pair["measured"] is None

    assert lab.json(*CALL) == document
    assert [known.id for known in lab.store.runs()] == [run.id]

    # The sweep that settles it measures the gains.
    assert document["sweep"].keys() == {"command", "runs", "new", "seconds"}
    assert document["sweep"]["runs"] == document["sweep"]["new"] == 2 * (3 + 3)
    sweep = lab.json(*shlex.split(document["sweep"]["command"])[1:])
    assert len(sweep["runs"]) == document["sweep"]["runs"]
    trained(lab.store, [run["id"] for run in sweep["runs"]])
    settled = lab.json(*CALL)
    for pair in settled["pairs"]:
        assert pair["measured"]["seeds"] == 2
        assert pair["measured"]["low"] <= pair["measured"]["gain"] <= pair["measured"]["high"]
    text = lab.answer(*CALL)
    assert "Measured already: 6 of 6 pairs." in text
    assert "points [" in text


def test_random_evidence_gives_no_advice(
    lab: Laboratory, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_study = lessons(evidence(lambda cosine, draw: float(draw.normal())))
    monkeypatch.setattr(advise, "packaged", lambda part: random_study)
    lines = lab.answer(*CALL).splitlines()
    rows = [line for line in lines if NO_EVIDENCE in line and line.split()[0] in DEMO]
    assert len(rows) == 6
    text = " ".join(lines)
    assert "No evidence for 6 of 6 pairs." in text
    assert "So there is no evidence for any pair." in text
    assert "mrnlab launch --task-groups pairs" in text


def test_what_cannot_be_asked(lab: Laboratory, tmp_path: Path) -> None:
    assert "name two or more" in lab.refusal("advise", "--corpus", "demo", "--tasks", "pos")
    assert "has no task 'srl'" in lab.refusal("advise", "--corpus", "demo", "--tasks", "pos,srl")
    folder = tmp_path / "moods"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.tsv").write_text("text\tmood\ttopic\nA warm film .\tgood\tfilm\n")
    texts = ("advise", "--corpus", str(folder), "--tasks", "mood,topic")
    assert "mood and topic read whole texts" in lab.refusal(*texts)
    derived = ("advise", "--corpus", "demo?train=100", "--tasks", "pos,ner")
    assert "is derived already" in lab.refusal(*derived)
