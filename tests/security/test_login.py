"""A laboratory behind a login: a real provider, a real server, a real browser; and what stays closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from core.store import Store
from dashboard import security
from tests.journeys.browser import browser_page
from tests.making import config
from tests.pages.conftest import APP, words
from tests.patience import PATIENCE_S
from tests.security.provider import CLIENT, SECRET, Provider, running_provider
from tests.serving import Server, free_port, running_server


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


_AUTH = {
    "redirect_uri": "http://localhost:8501/oauth2callback",
    "cookie_secret": "a-cookie-secret-that-is-long-enough-for-anyone",
    "client_id": CLIENT,
    "client_secret": SECRET,
    "server_metadata_url": "http://127.0.0.1:1/none",
}


def _write_secrets(folder: Path, text: str) -> None:
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    """Open to the network, as a laboratory's is, with one address and one domain on its list."""
    home = tmp_path_factory.mktemp("guarded")
    port = free_port()
    auth = {
        **_AUTH,
        "redirect_uri": f"http://localhost:{port}/oauth2callback",
        "server_metadata_url": provider.metadata,
    }
    _write_secrets(home, "\n".join(["[auth]", *(f'{name} = "{value}"' for name, value in auth.items())]))
    network = ("--server.address", "0.0.0.0")
    with running_server(home, *network, port=port, MRNLAB_ALLOWED="Ada@example.org") as running:
        yield running


@pytest.mark.slow
@pytest.mark.journey
def test_who_is_let_in(server: Server, provider: Provider) -> None:
    address = f"http://localhost:{server.port}"
    with browser_page() as (page, elsewhere, errors):
        log_in = page.get_by_role("button", name="Log in")
        page.goto(f"{address}/runs")
        expect(log_in).to_be_visible()
        # The menu, the sidebar and the store's name are for those inside.
        expect(page.get_by_text("runs.db")).to_have_count(0)
        expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)

        provider.user = {"email": "ada@example.org", "email_verified": True}
        log_in.click()
        expect(page.get_by_role("heading", level=1, name="Launch")).to_be_visible()
        expect(page.get_by_text("runs.db")).to_be_visible()
        assert page.request.get(f"{address}/_stcore/metrics").status == 200
        page.get_by_role("button", name="Log out").click()

        provider.user = {"email": "eve@example.org", "email_verified": True}
        log_in.click()
        expect(page.get_by_text("who is not on this laboratory's list")).to_be_visible()
        expect(page.get_by_text("runs.db")).to_have_count(0)
        assert page.request.get(f"{address}/_stcore/metrics").status == 401
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
    assert "ANYBODY" not in server.printed


@pytest.mark.parametrize(
    ("auth", "allowed", "sentence"),
    [
        (_AUTH, "ada@example.org", None),
        (_AUTH, None, "Nobody is on this laboratory's list"),
        (None, "ada@example.org", "no [auth] section in secrets.toml"),
    ],
)
def test_no_page_shows_anything_without_login(
    auth: dict[str, str] | None, allowed: str | None, sentence: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """main.py asks for the login before any page, and lets nobody in where the settings are wrong."""
    Store.open().add_runs([config()], sweep="secret")
    if allowed is not None:
        monkeypatch.setenv("MRNLAB_ALLOWED", allowed)
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    if auth is not None:
        app.secrets["auth"] = auth
    app.run()
    app.switch_page("runs/page.py")
    app.run()
    assert not app.exception
    assert [button.label for button in app.button] == ([] if sentence else ["Log in"])
    lines = words(app).strip().splitlines()
    assert lines[:2] == ["MRN Lab", "This laboratory asks for a login."]
    assert [sentence in line for line in lines[2:]] == [True] if sentence else lines[2:] == []
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


def test_a_secrets_file_that_cannot_be_read_opens_no_door(tmp_path: Path) -> None:
    _write_secrets(tmp_path, "[auth\nredirect_uri = ")
    with running_server(tmp_path) as server:
        assert server.ask("/_stcore/metrics")[0] == 401
