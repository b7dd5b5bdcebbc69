"""What a script draws last reaches the browser, also where the timer of a part comes as it ends."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, RuntimeConfig, SessionClient
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from core.config import RunConfig
from core.store import Store
from dashboard.shared import delivery
from tests.pages.conftest import APP
from tests.patience import PATIENCE_S


class Browser(SessionClient):
    """What a session was sent: headings, elements by part (`""` for the page), the parts with a timer."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.elements: Counter[str] = Counter()
        self.timed: list[str] = []
        self.is_running = False

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        match msg.WhichOneof("type"):
            case "auto_rerun":
                self.timed.append(msg.auto_rerun.fragment_id)
            case "session_status_changed":
                self.is_running = msg.session_status_changed.script_is_running
            case "delta":
                self.elements[msg.delta.fragment_id] += 1
                if msg.delta.new_element.WhichOneof("type") == "heading":
                    self.headings.append(msg.delta.new_element.heading.body)


class Tab:
    """A tab of a browser at the app, which runs in this thread's event loop."""

    def __init__(self, runtime: Runtime) -> None:
        self.browser = Browser()
        self._runtime = runtime
        self._session = runtime.connect_session(self.browser, user_info={})

    def ask(self, part: str = "") -> None:
        """Asks for the page or one of its parts."""
        message = BackMsg()
        message.rerun_script.fragment_id = part
        self._runtime.handle_backmsg(self._session, message)

    async def settled(self) -> None:
        """Ends when what was asked for is drawn."""
        async with asyncio.timeout(PATIENCE_S):
            while _scripts() or self.browser.is_running:
                await asyncio.sleep(0.01)


def _scripts() -> list[FrameType]:
    threads = [thread for thread in threading.enumerate() if thread.name == "ScriptRunner.scriptThread"]
    frames = sys._current_frames()
    return [frames[thread.ident] for thread in threads if thread.ident in frames]


def _calls(frame: FrameType | None) -> Iterator[object]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def starve() -> None:
    """Gives the server no time until the script has ended, or waits for the server."""
    waiting = delivery.until_taken.__code__
    while any(waiting not in _calls(frame) for frame in _scripts()):
        time.sleep(0.01)


@contextlib.asynccontextmanager
async def app(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tab]:
    """The app, opened in a tab that has heard of the first timer."""
    monkeypatch.setattr(Runtime, "_instance", None)
    monkeypatch.setattr(delivery, "_loop", asyncio.get_running_loop())
    media, uploads = MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/upload")
    runtime = Runtime(RuntimeConfig(str(APP), media_file_storage=media, uploaded_file_manager=uploads))
    await runtime.start()
    try:
        tab = Tab(runtime)
        tab.ask()
        async with asyncio.timeout(PATIENCE_S):
            while not tab.browser.timed:
                await asyncio.sleep(0.001)
        yield tab
    finally:
        runtime.stop()
        await runtime.stopped


@pytest.fixture(autouse=True)
def queued(laboratory: Path, workers: list[str]) -> None:
    """A run that stays queued, for which pages look every two seconds."""
    with contextlib.closing(Store.open()) as store:
        store.pause_queue()
        store.add_runs([RunConfig(corpus="demo", tasks=("pos",), paradigm="stl")])


def test_a_timer_as_the_page_ends_drops_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def headings() -> list[str]:
        async with app(monkeypatch) as tab:
            starve()
            tab.ask(tab.browser.timed[0])
            await tab.settled()
            return tab.browser.headings

    title, *parts, plan = asyncio.run(headings())
    assert title == "Launch"
    assert parts == ["Data", "Model", "Method", "Budget"]
    assert plan.startswith("This makes ")


def test_a_timer_as_a_part_ends_drops_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def elements() -> tuple[int, int]:
        async with app(monkeypatch) as tab:
            await tab.settled()
            browser = tab.browser
            part = next(part for part in browser.elements if part and part not in browser.timed)
            before = browser.elements[part]
            tab.ask(part)
            starve()
            tab.ask(browser.timed[0])
            await tab.settled()
            return before, browser.elements[part]

    before, after = asyncio.run(elements())
    assert after > before
