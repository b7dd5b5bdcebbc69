"""Access control: a login (Streamlit's OpenID Connect), and the check of Host and Origin.

A login is demanded as soon as `secrets.toml` has a section `[auth]` or a list of people is given. Any mistake
in these settings (an unreadable file, no list, no Authlib) keeps everybody out.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from dashboard.shared.states import problem, title
from dashboard.text import escape

_log = logging.getLogger(__name__)

# The settings in [auth] that belong to no provider.
_SHARED = frozenset(["redirect_uri", "cookie_secret", "expose_tokens", "client_kwargs"])
_SAFE_METHODS = frozenset(["GET", "HEAD", "OPTIONS"])
# Paths that hand out or take in data outside of a page's connection, on which main.py demands the login.
_BEHIND_LOGIN = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics", "/_stcore/agent/")


def demanded() -> bool:
    """Whether a login is needed to see or do anything."""
    return bool(_secrets("auth")) or _people() is not None or _unreadable() is not None


def admitted() -> bool:
    """Whether this visitor may use the pages; if not, the login or the reason is drawn instead."""
    if not demanded():
        return True
    user = st.user.to_dict()
    wrong = _misconfigured()
    logged_in = wrong is None and bool(user.get("is_logged_in"))
    reason = refusal(user) if logged_in else wrong
    if logged_in and reason is None:
        return True
    title("MRN Lab", "This laboratory asks for a login.")
    if reason is None:
        _login_buttons()
    else:
        problem(reason)
        if logged_in:
            st.button("Log out", icon=":material/logout:", on_click=st.logout)
    return False


def account() -> None:
    """Draws the user and the button to log out, in the sidebar."""
    if demanded():
        with st.sidebar:
            st.button("Log out", icon=":material/logout:", type="tertiary", on_click=st.logout, key="log_out")
            st.caption(f":material/person: {escape(st.user.to_dict().get('email', ''))}")


def _login_buttons() -> None:
    """A button for each provider of [auth], or one if it is not divided into providers."""
    settings = _secrets("auth")
    providers = [name for name in settings if name not in _SHARED and isinstance(settings[name], Mapping)]
    for provider in providers or (None,):
        st.button(
            f"Log in with {escape(provider)}" if provider else "Log in",
            type="primary",
            icon=":material/login:",
            on_click=st.login,
            args=(provider,),
            key=f"log_in_{provider}",
        )


def refusal(user: Mapping[str, Any]) -> str | None:
    """Why this logged-in user may not come in; None if they may."""
    address = str(user.get("email") or "").strip().lower()
    # Some providers send "false" as a string.
    if str(user.get("email_verified", True)).lower() == "false":
        return f"The address {address} has not been verified by its provider. Verify it there, then log in."
    people = _people() or ()
    domain = address.rpartition("@")[2]
    if "*" in people or (domain and {address, domain, f"@{domain}"} & set(people)):
        return None
    return (
        f"You are logged in as {address or 'somebody without an e-mail address'}, who is not on this "
        "laboratory's list. Ask whoever runs it to add you."
    )


def _people() -> tuple[str, ...] | None:
    """The addresses and domains that may come in; None if no list is given."""
    variable = os.environ.get("MRNLAB_ALLOWED")
    listed = _secrets("mrnlab").get("allowed") if variable is None else variable.replace(",", " ").split()
    return None if listed is None else tuple(str(entry).strip().lower() for entry in listed)


def _misconfigured() -> str | None:
    """Why nobody can log in, in a sentence; None if the settings are complete."""
    unreadable = _unreadable()
    if unreadable is not None:
        return f"{unreadable} cannot be read, so nobody can log in. Correct it and start the app again."
    if not _secrets("auth"):
        return (
            "There is a list of people who may come in, but no [auth] section in secrets.toml to log in "
            "by. Add it (docs/security.md) and start the app again."
        )
    if not _people():
        return (
            "Nobody is on this laboratory's list. Set MRNLAB_ALLOWED to the addresses or domains that may "
            "come in (ada@example.org, example.org), or to * for all whom the provider lets in."
        )
    if importlib.util.find_spec("authlib") is None:
        return "Logging in needs the Python package Authlib: pip install 'mrnlab[login]'."
    return None


def _unreadable() -> Path | None:
    """An existing secrets.toml that Streamlit cannot parse, and would treat as absent."""
    files = [path for path in map(Path, st.get_option("secrets.files")) if path.exists()]
    return files[0] if files and not st.secrets.load_if_toml_exists() else None


def _secrets(section: str) -> Mapping[str, Any]:
    """A section of secrets.toml; empty if there is none."""
    if not st.secrets.load_if_toml_exists():
        return {}
    values = st.secrets.get(section, {})
    return values if isinstance(values, Mapping) else {}


def _has_logged_in(cookies: Mapping[str, str]) -> bool:
    """Whether these cookies hold the signed login of an admitted user."""

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return None if value is None else decode_signed_value(get_cookie_secret(), name, value)

    stored = get_cookie_with_chunks(signed, "_streamlit_user")
    if stored is None or _misconfigured() is not None:
        return False
    user = json.loads(stored)
    return bool(user.get("is_logged_in")) and refusal(user) is None


class OwnVisitors:
    """ASGI middleware: refuses requests with a foreign Host or Origin, and data without a login.

    A page of another site that a researcher has open can send requests to 127.0.0.1, and by DNS rebinding
    even read the answers; it cannot choose the Host and Origin that the browser sends (docs/security.md).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _request_refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, sentence = refusal
        _log.warning("Refused a request for %.200r: %s", scope["path"], sentence)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        else:
            await PlainTextResponse(sentence + "\n", status)(scope, receive, send)


def _request_refusal(scope: Scope) -> tuple[int, str] | None:
    """The status and the sentence of a refusal; None if the request is answered."""
    request = HTTPConnection(scope)
    host, origin = request.headers.get("Host"), request.headers.get("Origin")
    if not is_host_allowed(host):
        return 421, (
            f"This laboratory is not known as {(host or 'nothing')[:100]!a}. Whoever started it can add a "
            "name with --server.allowedHosts."
        )
    changes = scope["type"] == "websocket" or scope["method"] not in _SAFE_METHODS
    is_own = origin is None or urlsplit(origin).netloc == host
    if changes and not is_own and origin not in st.get_option("server.corsAllowedOrigins"):
        return 403, (
            f"Pages from {(origin or '')[:100]!a} may not use this laboratory. Whoever started it can allow "
            "them with --server.corsAllowedOrigins."
        )
    behind_login = any(part in scope["path"] for part in _BEHIND_LOGIN)
    if behind_login and demanded() and not _has_logged_in(request.cookies):
        return 401, "This laboratory asks for a login."
    return None
