"""The pages of jobs that survive: a paused queue, drained machines, runs that wait, were lost, found no
memory; a store that is locked or gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.recording.owner import hostname
from core.store import RunState, Store
from dashboard.shared import resources
from dashboard.shared.run_views import why_it_waits
from tests.making import OWNER, config
from tests.pages.conftest import Open, listed, page_names, press
from tests.pages.conftest import words as prose
from tests.pages.filled_queue import DRAINED, ELSEWHERE, REASON, Queue, fill_queue
from tests.pages.filled_store import Filled
from tests.several import held

HERE = hostname()


@pytest.fixture
def store(laboratory: Path) -> Iterator[Store]:
    opened = Store.open()
    yield opened
    opened.close()


@pytest.fixture
def queue(store: Store) -> Queue:
    return fill_queue(store)


def words(app: AppTest) -> str:
    """The page's prose without its marks of weight; what is some seconds old, as of now."""
    progress = "\n".join(str(bar.proto.text) for bar in app.get("progress")).replace("\\", "")
    text = f"{prose(app)}\n{progress}".replace("**", "")
    return re.sub(r"was (paused|drained) \d+ (s|min) ago", r"was \1 just now", text)


def buttons(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def test_a_paused_queue_is_seen_on_every_page_and_goes_on_at_a_press(
    open_page: Open, store: Store, workers: list[str]
) -> None:
    banner = "The queue was paused just now. No run starts until it is resumed."
    store.pause_queue()
    app = open_page("runs")
    assert banner in words(app)  # before there is any run
    assert "Try it" in buttons(app)
    press(app, "Resume queue")
    store.add_runs([config(seed=seed) for seed in range(3)])
    app.run()
    assert "Priority" not in app.multiselect(key="columns").options
    assert "Run 1 is next. No worker is alive: one starts within seconds" in words(app)
    press(app, "Pause queue")
    assert store.paused_since() is not None
    assert banner in words(app)
    assert "Pause queue" not in buttons(app)
    launch = open_page("launch")
    assert banner in words(launch)
    assert "The queue is paused: they wait until it is resumed." in words(launch)  # beside the button
    for page in ("curves", "tag"):
        assert "The queue is paused" in words(open_page(page))
    asked = len(workers)
    press(launch, "Resume queue")
    assert store.paused_since() is None
    assert len(workers) > asked
    assert "The queue is paused" not in words(launch)
    assert "The queue was paused" not in words(open_page("runs"))


def test_machines_are_drained_and_take_runs_again(open_page: Open, store: Store, queue: Queue) -> None:
    app = open_page("runs")
    shown = words(app)
    assert f"{DRAINED} was drained just now and takes no runs." in shown
    assert f"{HERE}, this machine" in shown
    assert "1 in progress in 1 slot, for" in shown
    assert ELSEWHERE.host in shown
    for host in (ELSEWHERE.host, HERE):
        app.button(key=f"Drain_{host}").click().run()
        assert host in store.drained()
        assert f"{host} was drained just now and takes no runs." in words(app)
    assert f"{HERE} was drained" in words(open_page("launch"))
    for host in (HERE, DRAINED, ELSEWHERE.host):
        app.button(key=f"Take runs again_{host}").click().run()
    assert store.drained() == {}
    assert "was drained" not in words(app)


def test_chosen_runs_are_stopped_with_their_number(open_page: Open, store: Store, queue: Queue) -> None:
    first, second, third, *_ = queue.waiting
    press(open_page("runs", run=f"{queue.here},{first},{second}"), "Stop 3 runs")
    assert store.state(first) is store.state(second) is RunState.CANCELLED
    assert store.state(queue.here) is RunState.CANCELLING
    assert store.state(third) is RunState.QUEUED
    open_page("runs", run=str(third)).button(key="stop").click().run()
    assert store.state(third) is RunState.CANCELLED


def test_priorities_of_chosen_runs(open_page: Open, store: Store, queue: Queue) -> None:
    chosen = queue.waiting[:2]
    app = open_page("runs", run=",".join(map(str, chosen)))
    (number,) = (field for field in app.number_input if field.label == "Priority of 2 queued runs")
    number.set_value(5).run()
    assert [store.run(run).priority for run in chosen] == [5, 5]
    app.multiselect(key="columns").set_value(["Priority"]).run()
    assert list(listed(app)["Priority"])[:2] == [5, 5]  # of a configuration the highest
    each = listed(open_page("runs", filter="priority>3", order="Each run"))
    assert [int(name.partition(" ")[0]) for name in each["Name"]] == sorted(chosen, reverse=True)


def test_a_run_that_waits_says_why(open_page: Open, store: Store, queue: Queue) -> None:
    def reason(run_id: int) -> str:
        return why_it_waits(store, store.run(run_id))

    first = queue.waiting[0]
    assert f"It waits: {REASON}." in words(open_page("run", id=str(queue.with_reason)))
    # Two of priority 3 go before it, and nothing else.
    assert reason(first) == "It waits for a free worker, and 2 runs before it."
    store.set_priority(queue.waiting, 0)
    assert reason(first) == "It starts when a worker is free."
    store.request_stop(queue.here)
    store.finish(queue.here, RunState.CANCELLED)
    store.finish(queue.elsewhere, RunState.FAILED)
    assert reason(first).startswith("No worker is alive: one starts within seconds")
    store.drain(HERE)
    assert reason(first) == "Every machine is drained: it starts when one takes runs again."
    store.pause_queue()
    assert reason(first) == "The queue is paused: it starts when the queue is resumed."


def test_what_a_run_would_keep_is_told(open_page: Open, store: Store, queue: Queue) -> None:
    kept = "State saved at step 120; resuming goes on from there. Resumed automatically up to 2 more times"
    assert kept in words(open_page("run", id=str(queue.here)))
    app = press(open_page("run", id=str(queue.saved_and_lost)), "Resume from step 120")
    again = "Attempt 4. State saved at step 120; it goes on from there."
    assert again in words(app)
    assert store.run(queue.saved_and_lost).retries == 0


def test_what_happened_comes_with_the_next_step(open_page: Open, store: Store, queue: Queue) -> None:
    lost = words(open_page("run", id=str(queue.saved_and_lost)))
    assert "Its state is saved at step 120.\n\n- Resume it: it goes on from step 120." in lost
    ended = words(open_page("run", id=str(queue.stopped)))
    assert "Its worker was told to end. It can be resumed from step 120. Resume it: it goes on" in ended
    app = open_page("run", id=str(queue.saved_and_failed))
    assert press(app, "Clone with batch_size 8").text_input(key="launch_batch_size").value == "8"
    (run,) = store.add_runs([config()])
    assert store.claim(OWNER, run_id=run, engine_job="slurm 4711_3") is not None
    assert "slurm 4711_3" in words(open_page("run", id=str(run)))


@pytest.mark.parametrize("page", ["launch", "runs", "relations"])
def test_a_locked_store_is_told_and_the_page_comes_back(
    page: str, open_page: Open, filled: Filled, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PATIENCE_S", 0.2)
    app = open_page(page, run=str(filled.mrn[0]))
    shown = words(app)
    with held(laboratory / "runs.db"):
        app.run()
        text = words(app)
        assert "is busy: another program has held it for 0.2 s; try again when it is done." in text
        assert "This page comes back by itself as soon as the store can be read." in text
    app.run()
    assert "is busy" not in words(app)
    assert words(app).splitlines()[:3] == shown.splitlines()[:3]


def test_an_action_in_a_locked_store_is_a_sentence(
    open_page: Open, store: Store, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PATIENCE_S", 0.2)
    store.add_runs([config()])
    app = open_page("runs", run="1")
    with held(laboratory / "runs.db"):
        press(app, "Pause queue")
        assert any("is busy" in toast.value for toast in app.toast) or "is busy" in words(app)
    app.run()
    assert store.paused_since() is None


@pytest.mark.parametrize("page", page_names())
def test_a_file_that_is_no_store_is_a_sentence(page: str, open_page: Open, laboratory: Path) -> None:
    (laboratory / "runs.db").write_bytes(b"something else " * 300)
    text = words(open_page(page))
    assert "is not a store of MRN Lab; name another file, or move this one away." in text
    assert "Traceback" not in text


def test_a_laboratory_that_is_not_there_is_made_and_one_that_goes_is_a_sentence(
    open_page: Open, filled: Filled, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("runs", order="Each run")
    (laboratory / "runs.db").write_bytes(b"something else " * 30_000)
    assert "is not a store of MRN Lab" in words(app.run())
    (laboratory / "runs.db").unlink()
    app.run()
    assert "was deleted or replaced while the store was open" in words(app)
    assert not (laboratory / "runs.db").exists()
    monkeypatch.setenv("MRNLAB_HOME", str(laboratory / "new" / "one"))
    assert "cannot be opened" not in words(open_page("runs"))
    assert (laboratory / "new" / "one" / "runs.db").is_file()
    monkeypatch.setenv("MRNLAB_DB", "sqlite:///:memory:")
    assert "name a file: sqlite:///runs.db" in words(open_page("runs"))
