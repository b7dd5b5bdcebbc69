"""The server: who can reach it, what it sends, what it tells browsers; started for real, from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from urllib.request import urlopen

import psutil
import pytest
from plotly.offline import get_plotlyjs_version

from tests.patience import PATIENCE_S
from tests.serving import ROOT, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[psutil.Process, str]]:
    """The app, started in a folder that is not the project's and has no settings of its own."""
    with running_server(tmp_path_factory.mktemp("elsewhere")) as running:
        yield running.process, running.address


def _answer(address: str) -> tuple[bytes, Message]:
    with urlopen(address, timeout=PATIENCE_S) as answer:
        return answer.read(), answer.headers


def test_only_this_machine_can_reach_it(server: tuple[psutil.Process, str]) -> None:
    process, _ = server
    listening = [one.laddr.ip for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"]


def test_it_gathers_no_statistics(server: tuple[psutil.Process, str]) -> None:
    """What Streamlit's script in the browser is told; it sends statistics unless this says no."""
    process, _ = server
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from streamlit import config; config._main_script_path = sys.argv[1];"
            "print(config.get_option('browser.gatherUsageStats'), config.get_option('server.address'))",
            str(ROOT / "dashboard" / "app.py"),
        ],
        cwd=process.cwd(),
        env=process.environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["False", "127.0.0.1"]


def test_pages_may_load_nothing_from_elsewhere(server: tuple[psutil.Process, str]) -> None:
    _, address = server
    _, headers = _answer(f"{address}/curves")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "connect-src 'self'" in policy
    assert not re.search(r"https?:|\*", policy)


def test_the_chart_library_is_asked_for_early_and_kept(server: tuple[psutil.Process, str]) -> None:
    _, address = server
    _, headers = _answer(f"{address}/tag")
    (named,) = re.findall(r"<(.+)>; rel=prefetch", headers["Link"])
    script, headers = _answer(f"{address}/{named}")
    assert "immutable" in headers["Cache-Control"]
    version = re.search(rb"plotly\.js \(cartesian - minified\) v([\d.]+)", script)
    assert version is not None
    assert version[1].decode() in named
    # Figures are made by the Python package, and drawn by this script.
    assert version[1].decode().split(".")[0] == get_plotlyjs_version().split(".")[0]
