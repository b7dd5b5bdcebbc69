"""Who is answered at all: requests to the laboratory by its own name, from its own pages.

A page of another site that a researcher has open can send requests to 127.0.0.1, and by DNS rebinding even
read the answers; it cannot choose the Host and Origin that the browser sends with them (docs/security.md).
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from dashboard import login

__all__ = ["OwnVisitors"]

_log = logging.getLogger(__name__)

_HARMLESS = frozenset(["GET", "HEAD", "OPTIONS"])
# What hands out or takes in data outside of a page's own connection, on which main.py demands the login.
_BEHIND_LOGIN = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics", "/_stcore/agent/")


class OwnVisitors:
    """Refuses, before anything else sees them, requests with a foreign Host or from a foreign page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, sentence = refusal
        _log.warning("Refused a request for %.200r: %s", scope["path"], sentence)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        else:
            await PlainTextResponse(sentence + "\n", status)(scope, receive, send)


def _refusal(scope: Scope) -> tuple[int, str] | None:
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
    if behind_login and login.demanded() and not login.has_logged_in(request.cookies):
        return 401, "This laboratory asks for a login."
    return None


def _is_own(origin: str, host: str | None) -> bool:
    """Whether a page of that origin is ours: from the host that is asked, or one that was allowed."""
    return urlsplit(origin).netloc == host or origin in st.get_option("server.corsAllowedOrigins")
