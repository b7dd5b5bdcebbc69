"""Who may come in, where the laboratory demands a login: Streamlit's OpenID Connect, and a list of people.

A login is demanded as soon as `secrets.toml` has a section `[auth]` or a list of people is given. Whatever is
amiss then (a file that cannot be read, no list, no Authlib) keeps everybody out: a mistake must not open the
door.
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

_USER_COOKIE = "_streamlit_user"
_SHARED = frozenset(["redirect_uri", "cookie_secret", "expose_tokens", "client_kwargs"])


def demanded() -> bool:
    """Whether nobody may see or do anything here without a login."""
    return bool(_auth()) or _people() is not None or _unreadable() is not None


def admitted() -> bool:
    """Whether this visitor may use the pages; where not, the way in is drawn instead."""
    if not demanded():
        return True
    wrong = _misconfigured()
    if wrong is not None:
        title("MRN Lab", "This laboratory asks for a login.")
        problem(wrong)
        return False
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        _way_in()
        return False
    refusal = _refusal(user)
    if refusal is not None:
        title("MRN Lab", "This laboratory asks for a login.")
        problem(refusal)
        st.button("Log out", icon=":material/logout:", on_click=st.logout)
    return refusal is None


def account() -> None:
    """In the sidebar: who is logged in, and the way out."""
    if demanded():
        with st.sidebar:
            st.button("Log out", icon=":material/logout:", type="tertiary", on_click=st.logout, key="log_out")
            st.caption(f":material/person: {escape(st.user.to_dict().get('email', ''))}")


def has_logged_in(cookies: Mapping[str, str]) -> bool:
    """Whether a request with these cookies comes from somebody who may use the pages."""

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return None if value is None else decode_signed_value(get_cookie_secret(), name, value)

    stored = get_cookie_with_chunks(signed, _USER_COOKIE)
    if stored is None or _misconfigured() is not None:
        return False
    user = json.loads(stored)
    return bool(user.get("is_logged_in")) and _refusal(user) is None


def _way_in() -> None:
    title("MRN Lab", "This laboratory asks for a login.")
    auth = _auth()
    named = [name for name, value in auth.items() if name not in _SHARED and isinstance(value, Mapping)]
    for provider in named or [None]:
        st.button(
            f"Log in with {escape(provider)}" if provider else "Log in",
            type="primary",
            icon=":material/login:",
            on_click=st.login,
            args=(provider,),
            key=f"log_in_{provider}",
        )


def _refusal(user: Mapping[str, Any]) -> str | None:
    """Why somebody who has logged in may not come in; None where they may."""
    address = str(user.get("email") or "").strip().lower()
    # Some providers say it in a string.
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
    """The addresses and domains that may come in; None where none are given."""
    given = os.environ.get("MRNLAB_ALLOWED")
    listed = given.replace(",", " ").split() if given is not None else _secrets("mrnlab").get("allowed")
    return None if listed is None else tuple(str(one).strip().lower() for one in listed)


def _misconfigured() -> str | None:
    """What keeps everybody out, in a sentence; None where a login can work."""
    unreadable = _unreadable()
    if unreadable is not None:
        return f"{unreadable} cannot be read, so nobody can log in. Correct it and start the app again."
    if not _auth():
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
    """A secrets.toml that is there and cannot be used: Streamlit then goes on as if there were none."""
    there = [path for path in map(Path, st.get_option("secrets.files")) if path.exists()]
    return there[0] if there and not st.secrets.load_if_toml_exists() else None


def _auth() -> Mapping[str, Any]:
    return _secrets("auth")


def _secrets(section: str) -> Mapping[str, Any]:
    """That section of secrets.toml; empty where there is none."""
    if not st.secrets.load_if_toml_exists():
        return {}
    found = st.secrets.get(section, {})
    return found if isinstance(found, Mapping) else {}


# Who is answered at all: requests to the laboratory by its own name, from its own pages.
#
# A page of another site that a researcher has open can send requests to 127.0.0.1, and by DNS rebinding
# even
# read the answers; it cannot choose the Host and Origin that the browser sends with them
# (docs/security.md).


_log = logging.getLogger(__name__)

_HARMLESS = frozenset(["GET", "HEAD", "OPTIONS"])
# What hands out or takes in data outside of a page's own connection, on which main.py demands the login.
_BEHIND_LOGIN = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics", "/_stcore/agent/")


class OwnVisitors:
    """Refuses, before anything else sees them, requests with a foreign Host or from a foreign page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _visitor_refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, sentence = refusal
        _log.warning("Refused a request for %.200r: %s", scope["path"], sentence)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        else:
            await PlainTextResponse(sentence + "\n", status)(scope, receive, send)


def _visitor_refusal(scope: Scope) -> tuple[int, str] | None:
    """The status and the sentence of a refusal; None where the request is answered."""
    request = HTTPConnection(scope)
    host = request.headers.get("Host")
    if not is_host_allowed(host):
        return 421, (
            f"This laboratory is not known as {(host or 'nothing')[:100]!a}. Whoever started it can add a "
            "name with --server.allowedHosts."
        )
    changes = scope["type"] == "websocket" or scope["method"] not in _HARMLESS
    origin = request.headers.get("Origin")
    if changes and origin is not None and not _is_own(origin, host):
        return 403, (
            f"Pages from {origin[:100]!a} may not use this laboratory. Whoever started it can allow them "
            "with --server.corsAllowedOrigins."
        )
    behind_login = any(part in scope["path"] for part in _BEHIND_LOGIN)
    if behind_login and demanded() and not has_logged_in(request.cookies):
        return 401, "This laboratory asks for a login."
    return None


def _is_own(origin: str, host: str | None) -> bool:
    """Whether a page of that origin is ours: from the host that is asked, or one that was allowed."""
    return urlsplit(origin).netloc == host or origin in st.get_option("server.corsAllowedOrigins")
