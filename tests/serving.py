"""The real app as a process, for tests that ask it as a browser, or an attacker, would."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]
APP = ROOT / "dashboard" / "app.py"


@dataclass(frozen=True)
class Server:
    """A running app: its process, its address, its port, and the folder that it was started in."""

    process: psutil.Process
    port: int
    home: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        return (self.home / "log").read_text(encoding="utf-8", errors="replace")

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET"
    ) -> tuple[int, str, Message]:
        """Status, text and headers of its answer."""
        request = Request(f"{self.address}{path}", headers=dict(headers or {}), method=method)
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_server(
    home: Path, *options: str, port: int | None = None, script: Path = APP, **variables: str
) -> Iterator[Server]:
    """The app, started in a folder that is not the project's, with no settings but these."""
    port = port or free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    environment.pop("MRNLAB_DB", None)
    environment |= {"MRNLAB_HOME": str(home), "HOME": str(home), "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    with (home / "log").open("wb") as log:
        started = subprocess.Popen(
            [*command, "--server.port", str(port), *options],
            cwd=home,
            env=environment,
            stdout=log,
            stderr=log,
        )
    server = Server(psutil.Process(started.pid), port, home)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                urlopen(f"{server.address}/_stcore/health", timeout=2).close()
                break
            except (URLError, ConnectionError, TimeoutError):
                alive = started.poll() is None and time.monotonic() < deadline
                assert alive, server.printed
                time.sleep(0.1)
        yield server
    finally:
        started.terminate()
        started.wait(timeout=PATIENCE_S)
