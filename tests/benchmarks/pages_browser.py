"""What a page costs in a real browser: the time until it stands, bytes, the browser's work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from playwright.sync_api import BrowserContext

__all__ = ["Cost", "Tab"]

_LOOK_MS = 30_000


@dataclass(frozen=True)
class Cost:
    """What happened between two moments. `messages_kb` came over the page's own connection, `files_kb` else.

    `server_ms` is from the browser's first message to the last answer, `busy_ms` the time in which the page's
    only thread did something.
    """

    seconds: float
    messages_kb: float
    files_kb: float
    server_ms: float
    busy_ms: float


class Tab:
    """A new tab of a browser, its traffic counted."""

    def __init__(self, context: BrowserContext) -> None:
        self.page = context.new_page()
        self._session = context.new_cdp_session(self.page)
        self._session.send("Network.enable")
        self._session.send("Performance.enable")
        self._session.on("Network.webSocketFrameSent", self._sent)
        self._session.on("Network.webSocketFrameReceived", self._received)
        self._session.on("Network.dataReceived", self._loaded)
        self._messages = self._files = 0
        self._asked: float | None = None
        self._answered = 0.0
        self._began = self._busy = 0.0
        self.begin()

    def __enter__(self) -> Tab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.page.close()

    def begin(self) -> None:
        """Counts from now on."""
        self._messages = self._files = 0
        self._asked, self._answered = None, 0.0
        self._busy = self._busy_s()
        self._began = time.perf_counter()

    def cost(self, seconds: float | None = None) -> Cost:
        """What it cost since `begin`, which lasted until now or as long as is said."""
        taken = time.perf_counter() - self._began if seconds is None else seconds
        waited = self._answered - self._asked if self._asked and self._answered else 0.0
        busy = self._busy_s() - self._busy
        return Cost(taken, self._messages / 1e3, self._files / 1e3, 1e3 * waited, 1e3 * busy)

    def open(self, address: str, mark: str) -> Cost:
        """Opens a page; the cost until what `mark` selects is to be seen, and of what came shortly after."""
        self.begin()
        self.page.goto(address, wait_until="commit")
        self.page.locator(mark).first.wait_for(timeout=_LOOK_MS)
        seconds = time.perf_counter() - self._began
        self.page.wait_for_timeout(400)
        return self.cost(seconds)

    def _busy_s(self) -> float:
        told = self._session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in told if one["name"] == "TaskDuration")

    def _sent(self, event: Mapping[str, Any]) -> None:
        self._asked = self._asked or event["timestamp"]

    def _received(self, event: Mapping[str, Any]) -> None:
        # Streamlit's messages are binary, which the browser tells in base64: four characters for three bytes.
        self._messages += len(event["response"]["payloadData"]) * 3 // 4
        self._answered = event["timestamp"]

    def _loaded(self, event: Mapping[str, Any]) -> None:
        self._files += event["encodedDataLength"]
