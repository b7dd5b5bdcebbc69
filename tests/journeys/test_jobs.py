"""Jobs that survive, in a real browser: the queue is paused and goes on, the store is locked and comes back,
a worker is killed and its run is resumed to its end.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from core.metrics import TOTAL
from core.store import MetricKey, Run, RunState, Store
from tests.journeys.browser import picture, running_app
from tests.making import config
from tests.several import held
from tests.supervised import wait_for
from tests.tiny import tiny_bert
from tests.trained import toy_corpus

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_EPOCHS = 30  # long enough that the worker is killed before the run ends
_STEPS = _EPOCHS * 8  # 64 sentences, 8 in a batch


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A laboratory whose trainings save their state often."""
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path))
    monkeypatch.setenv("MRNLAB_SLOTS", "1")
    monkeypatch.setenv("MRNLAB_CHECKPOINT_S", "0.2")
    toy_corpus(tmp_path / "toy")
    tiny_bert(tmp_path / "encoder")
    return tmp_path


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """With a run that was stopped long ago."""
    with contextlib.closing(Store.open()) as opened:
        opened.request_stops(opened.add_runs([config()]))
        yield opened


@pytest.fixture
def address(home: Path, store: Store) -> Iterator[str]:
    with running_app(home) as running:
        yield running


def test_a_run_outlives_a_pause_a_locked_store_and_its_worker(
    page: Page, address: str, home: Path, store: Store
) -> None:
    page.goto(f"{address}/runs")
    _press(page, "Pause queue")
    _see(page, "The queue was paused")

    run_id = _launch(page, address, home, store)
    page.goto(f"{address}/run?id={run_id}")
    _see(page, "The queue is paused: it starts when the queue is resumed.")
    picture(page, "jobs-paused")

    page.goto(f"{address}/runs?run={run_id}")
    expect(page.get_by_role("table", name="Configurations on").first).to_be_visible()
    with held(home / "runs.db"):
        _see(page, "What is shown is what was known before")
        expect(page.get_by_role("table", name="Configurations on").first).to_be_visible()
        picture(page, "jobs-locked")
    expect(page.get_by_text("What is shown is what was known before")).to_have_count(0)

    _press(page, "Resume queue")
    # The press reaches the server only while this page stays open.
    expect(page.get_by_text("The queue was paused")).to_have_count(0)
    page.goto(f"{address}/run?id={run_id}")
    training = _await(store, run_id, lambda run: run.saved_step is not None)
    assert training.state is RunState.RUNNING
    assert training.owner is not None
    os.kill(training.owner.pid, signal.SIGKILL)
    _see(page, "Lost: the worker process was killed.")
    lost = store.run(run_id)
    assert lost.saved_step is not None
    _see(page, f"Resume it: it goes on from step {lost.saved_step}.")
    picture(page, "jobs-lost")

    _press(page, f"Resume from step {lost.saved_step}")
    done = _await(store, run_id, lambda run: run.state is RunState.SUCCEEDED)
    assert done.attempt == 2
    (losses,) = store.metrics([run_id], MetricKey(TOTAL, "train", "loss"))
    assert list(losses.step) == list(range(1, _STEPS + 1))
    _see(page, "its weights were kept")
    picture(page, "jobs-resumed")


def test_what_is_typed_stays_while_a_run_trains(page: Page, address: str, home: Path, store: Store) -> None:
    """Pages update while the reader types, key by key."""
    page.goto(f"{address}/runs")
    _press(page, "Pause queue")
    _see(page, "The queue was paused")
    run_id = _launch(page, address, home, store, epochs=_EPOCHS * 20)
    page.goto(f"{address}/runs")
    _press(page, "Resume queue")
    begun = _await(store, run_id, lambda run: run.state is RunState.RUNNING and bool(run.step))
    for place, label in (("runs", "Filter"), ("launch", "λ, strength of the prior")):
        page.goto(f"{address}/{place}")
        field = page.get_by_label(label, exact=True)
        field.click()
        field.fill("")
        field.press_sequentially(text := "0.001, 0.002, 0.003", delay=250)
        expect(field).to_have_value(text)
        field.press("Enter")
        expect(field).to_have_value(text)
        begun, before = store.run(run_id), begun
        assert begun.state is RunState.RUNNING
        assert begun.step > before.step
    store.request_stops([run_id])
    _await(store, run_id, lambda run: run.state is RunState.CANCELLED)


def _launch(page: Page, address: str, home: Path, store: Store, epochs: int = _EPOCHS) -> int:
    """Launches one run in the browser; its number."""
    form = {
        "corpus": home / "toy", "columns": "tokens,pos,ner", "tasks": "pos,ner", "encoder": home / "encoder",
        "encoder_training": "full", "paradigm": "mtl", "epochs": epochs, "seed": 1, "batch_size": 8,
        "max_length": 32, "lr_encoder": 0.01, "lr_heads": 0.05,
    }  # fmt: skip
    page.goto(f"{address}/launch?{urlencode(form)}")
    _see(page, "No run starts until it is resumed.")
    _press(page, re.compile("^Launch 1 run"))
    _see(page, "1 run queued")
    return store.runs(limit=1)[0].id


def _press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_test_id("stMain").get_by_role("button", name=name).click()


def _see(page: Page, words: str) -> None:
    expect(page.get_by_text(words).first).to_be_visible()


def _await(store: Store, run_id: int, so: Callable[[Run], bool]) -> Run:
    wait_for(lambda: so(store.run(run_id)))
    return store.run(run_id)
