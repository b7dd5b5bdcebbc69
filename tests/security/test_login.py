"""A laboratory behind a login: a real provider, a real server, a real browser; and what stays closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from dashboard import security
from tests.journeys.browser import browser_page
from tests.pages.conftest import APP, words
from tests.patience import PATIENCE_S
from tests.security.provider import CLIENT, SECRET, Provider, running_provider
from tests.serving import Server, free_port, running_server


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


def _secrets(folder: Path, port: int, provider: Provider) -> None:
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        f"""
[auth]
redirect_uri = "http://localhost:{port}/oauth2callback"
cookie_secret = "a-cookie-secret-that-is-long-enough-for-anyone"
client_id = "{CLIENT}"
client_secret = "{SECRET}"
server_metadata_url = "{provider.metadata}"
"""
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    """Open to the network, as a laboratory's is, with one address and one domain on its list."""
    home = tmp_path_factory.mktemp("guarded")
    port = free_port()
    _secrets(home, port, provider)
    with running_server(
        home,
        "--server.address",
        "0.0.0.0",
        port=port,
        MRNLAB_ALLOWED="Ada@example.org, lab.example.net",
    ) as running:
        yield running


def _come_in(page: Page, server: Server, provider: Provider, **claims: object) -> None:
    provider.user = claims
    page.context.clear_cookies()
    page.goto(f"http://localhost:{server.port}/runs")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"http://localhost:{server.port}/")


@pytest.mark.journey
def test_who_is_let_in(server: Server, provider: Provider) -> None:
    with browser_page() as (page, elsewhere, errors):
        page.goto(f"http://localhost:{server.port}/runs")
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        # The menu, the sidebar and the store's name are for those inside.
        expect(page.get_by_text("runs.db")).to_have_count(0)
        expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)

        _come_in(page, server, provider, email="ada@example.org", email_verified=True)
        expect(page.get_by_role("heading", level=1, name="Launch")).to_be_visible()
        expect(page.get_by_text("runs.db")).to_be_visible()
        assert page.request.get(f"http://localhost:{server.port}/_stcore/metrics").status == 200
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("button", name="Log in")).to_be_visible()

        _come_in(page, server, provider, email="eve@example.org", email_verified=True)
        expect(page.get_by_text("who is not on this laboratory's list")).to_be_visible()
        expect(page.get_by_text("runs.db")).to_have_count(0)
        assert page.request.get(f"http://localhost:{server.port}/_stcore/metrics").status == 401
        assert not elsewhere
        assert not errors


def test_nothing_is_handed_out_or_taken_in_without_login(server: Server) -> None:
    for path in ("/media/some-file.csv", "/_stcore/metrics", "/_stcore/agent/interact"):
        assert server.ask(path)[0] == 401
    upload = "/_stcore/upload_file/session/file"
    assert server.ask(upload, {"Origin": server.address}, method="PUT")[0] == 401
    forged = {"Cookie": '_streamlit_user="eyJlbWFpbCI6ICJhZGFAZXhhbXBsZS5vcmcifQ.forged.signature"'}
    assert server.ask("/_stcore/metrics", forged)[0] == 401
    assert server.ask("/_stcore/health")[0] == 200


def test_a_login_needs_no_warning(server: Server) -> None:
    assert "ANYBODY" not in server.printed


_AUTH = {
    "redirect_uri": "http://localhost:8501/oauth2callback",
    "cookie_secret": "a-cookie-secret-that-is-long-enough-for-anyone",
    "client_id": CLIENT,
    "client_secret": SECRET,
    "server_metadata_url": "http://127.0.0.1:1/none",
}


def _open(page: str, auth: dict[str, str] | None) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    if auth is not None:
        app.secrets["auth"] = auth
    app.run()
    app.switch_page(f"{page}/page.py")
    return app.run()


@pytest.mark.usefixtures("hostile_store", "workers")
@pytest.mark.parametrize("page", ["launch", "compare"])  # main.py asks for the login, before any page
def test_no_page_shows_anything_without_login(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ALLOWED", "ada@example.org")
    app = _open(page, _AUTH)
    assert not app.exception
    assert [one.label for one in app.button] == ["Log in"]
    assert words(app).strip().splitlines() == ["MRN Lab", "This laboratory asks for a login."]
    assert not app.sidebar.children
    assert not app.dataframe


@pytest.mark.parametrize(
    ("user", "refusal"),
    [
        ({"email": "Ada@Example.org", "email_verified": True}, None),
        ({"email": "bob@lab.example.net"}, None),
        ({"email": "ada@example.org", "email_verified": False}, "has not been verified"),
        ({"email": "ada@example.org", "email_verified": "false"}, "has not been verified"),
        ({"email": "eve@example.org"}, "not on this laboratory's list"),
        ({}, "somebody without an e-mail address"),
    ],
)
def test_whom_the_list_lets_in(
    user: dict[str, object], refusal: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRNLAB_ALLOWED", "ada@example.org, lab.example.net")
    sentence = security.refusal(user)
    assert sentence is None if refusal is None else refusal in (sentence or "")


@pytest.mark.usefixtures("workers")
def test_a_mistake_in_the_settings_opens_no_door(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _open("runs", _AUTH)
    assert "Nobody is on this laboratory's list" in words(app)
    monkeypatch.setenv("MRNLAB_ALLOWED", "ada@example.org")
    app = _open("runs", None)
    assert "no [auth] section in secrets.toml" in words(app)


def test_a_secrets_file_that_cannot_be_read_opens_no_door(tmp_path: Path) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_text("[auth\nredirect_uri = ")
    with running_server(tmp_path) as server:
        assert server.ask("/_stcore/metrics")[0] == 401
