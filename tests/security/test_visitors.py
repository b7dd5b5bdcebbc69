"""Who is answered, and with what: a real server, asked by its own pages, by others and under other names."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import psutil
import pytest
from plotly.offline import get_plotlyjs_version
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from jobs.queue.doctor import is_local, reachable_dashboards
from tests.serving import ROOT, Server, running_server

_STREAM = "/_stcore/stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("elsewhere")) as running:
        yield running


def _connects(server: Server, *, origin: str, host: str | None = None) -> bool:
    """Whether a page's connection is taken from a browser that sends this Origin and this Host."""
    try:
        with (
            socket.create_connection(("127.0.0.1", server.port)) as connection,
            # The name in the address becomes the Host header.
            connect(
                f"ws://{host or f'127.0.0.1:{server.port}'}{_STREAM}",
                sock=connection,
                origin=Origin(origin),
                proxy=None,
            ),
        ):
            return True
    except InvalidStatus as refused:
        if refused.response.status_code != 403:
            raise
        return False


def test_a_page_of_ours_connects(server: Server) -> None:
    assert _connects(server, origin=f"http://127.0.0.1:{server.port}")
    assert _connects(server, host=f"localhost:{server.port}", origin=f"http://localhost:{server.port}")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:8888", "http://localhost", "null"]
)
def test_pages_of_other_sites_cannot_connect(server: Server, origin: str) -> None:
    assert not _connects(server, origin=origin)


def test_a_rebound_name_is_not_answered(server: Server) -> None:
    """DNS rebinding: the attacker's own name leads to this machine, so Host and Origin agree."""
    name = f"evil.example:{server.port}"
    assert not _connects(server, host=name, origin=f"http://{name}")
    for path in ("/", "/_stcore/health", "/_stcore/metrics"):
        status, words, _ = server.ask(path, {"Host": name})
        assert status == 421
        assert "not known as" in words
    assert server.ask("/_stcore/health", {"Host": f"[::1]:{server.port}"})[0] == 200


def test_other_sites_cannot_upload(server: Server) -> None:
    path = "/_stcore/upload_file/some-session/some-file"
    status, words, _ = server.ask(path, {"Origin": "https://evil.example"}, method="PUT")
    assert (status, "may not use this laboratory" in words) == (403, True)
    status, words, _ = server.ask(path, {"Origin": server.address}, method="PUT")
    assert (status, "XSRF" in words) == (403, True)


def test_other_sites_cannot_read_the_answers(server: Server) -> None:
    for path in ("/", "/_stcore/host-config", "/_stcore/metrics", "/_stcore/upload_file/a/b"):
        _, _, headers = server.ask(path, {"Origin": "https://evil.example"}, method="GET")
        assert headers.get("Access-Control-Allow-Origin") in (None, f"http://localhost:{server.port}")


def test_other_sites_cannot_frame_the_pages_and_pages_load_nothing_from_elsewhere(server: Server) -> None:
    _, _, headers = server.ask("/runs")
    policy = headers["Content-Security-Policy"]
    for rule in ("frame-ancestors 'self'", "default-src 'self'", "connect-src 'self'"):
        assert rule in policy
    assert not re.search(r"https?:|\*", policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_the_chart_library_is_asked_for_early_and_kept(server: Server) -> None:
    _, _, headers = server.ask("/tag")
    (named,) = re.findall(r"<(.+)>; rel=prefetch", headers["Link"])
    _, script, headers = server.ask(f"/{named}")
    assert "immutable" in headers["Cache-Control"]
    version = re.search(r"plotly\.js \(cartesian - minified\) v([\d.]+)", script)
    assert version is not None
    assert version[1] in named
    # Tests check figures with the Python package, and this script draws them.
    assert version[1].split(".")[0] == get_plotlyjs_version().split(".")[0]


def test_a_page_that_opens_with_a_chart_reads_the_chart_library_while_it_starts(server: Server) -> None:
    _, curves, headers = server.ask("/curves", {"Accept": "text/html"})
    (named,) = re.findall(r"<(.+)>; rel=prefetch", headers["Link"])
    definition, call = curves.index(f"const PLOTLY = '{named}'"), curves.index("loadPlotly().catch")
    assert definition < call < curves.index("</head>")
    _, tag, _ = server.ask("/tag", {"Accept": "text/html"})
    assert "loadPlotly().catch" not in tag


def test_our_rules_of_style_come_after_those_of_streamlit(server: Server) -> None:
    """It puts its own into the head; of two rules that weigh the same, the later one holds."""
    _, page, _ = server.ask("/tag", {"Accept": "text/html"})
    assert page.index("<body>") < page.index("stMainBlockContainer") < page.index("</body>")


def test_a_page_knows_where_it_connects_to(server: Server) -> None:
    """Else it asks beside itself first, and is told of an error."""
    _, page, _ = server.ask("/curves", {"Accept": "text/html", "Accept-Encoding": "gzip"})
    assert page.index("BACKEND_BASE_URL") < page.index("</head>")


def test_the_first_page_is_found_by_its_name(server: Server) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port)) as connection:
        connection.request("GET", "/launch?seed=1-2&clone=3")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Location"]) == (307, "./?seed=1-2&clone=3")


def test_only_this_machine_can_reach_it_and_it_gathers_no_statistics(server: Server) -> None:
    """Streamlit's script in the browser sends statistics unless it is told not to."""
    process = server.process
    listening = [socket for socket in process.net_connections("tcp") if socket.status == psutil.CONN_LISTEN]
    assert [socket.laddr.ip for socket in listening] == ["127.0.0.1"]
    assert "ANYBODY" not in server.printed
    assert process.pid not in reachable_dashboards()
    script = (
        "import sys; from streamlit import config; config._main_script_path = sys.argv[1];"
        "print(config.get_option('browser.gatherUsageStats'), config.get_option('server.address'))"
    )
    command = [sys.executable, "-c", script, str(ROOT / "dashboard" / "app.py")]
    settings = subprocess.run(
        command, cwd=process.cwd(), env=process.environ(), capture_output=True, text=True, check=True
    )
    assert settings.stdout.split() == ["False", "127.0.0.1"]


def test_no_page_can_be_driven_over_http(server: Server) -> None:
    """Streamlit's interface for programs stays off."""
    status, _, _ = server.ask("/_stcore/agent/interact", method="POST")
    assert status in (403, 404)


def test_a_server_on_the_network_without_login_says_so_loudly(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("open")
    names = ("--server.allowedHosts", "127.0.0.1", "--server.allowedHosts", "lab.example.org")
    with running_server(home, "--server.address", "0.0.0.0", *names) as server:
        assert "ANYBODY WHO CAN REACH THIS MACHINE CAN USE THIS LABORATORY" in server.printed
        assert reachable_dashboards()[server.process.pid] == [f"0.0.0.0:{server.port}"]
        # Even then it answers only to names that it was told.
        assert server.ask("/", {"Host": "lab.example.org"})[0] == 200
        assert server.ask("/", {"Host": "other.example.org"})[0] == 421


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("", False), (None, False), ("192.168.1.7", False), ("lab.example.org", False)],
)  # fmt: skip
def test_which_addresses_are_local(address: str | None, local: bool) -> None:
    assert is_local(address) is local
