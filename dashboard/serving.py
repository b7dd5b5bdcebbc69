"""The server of the pages: its start, and the headers of its answers."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import MRNLabError
from core.figures import Chart
from core.paths import set_umask
from dashboard import preload, security
from dashboard.components import charts
from dashboard.components.charts import plotly_url
from dashboard.shared import delivery
from jobs.queue.doctor import exposure_warning, is_local

_log = logging.getLogger(__name__)

# The names of these files tell their version.
_KEPT = "/app/static/"
_FOREVER = "public, max-age=31536000, immutable"
# Pages load nothing from other machines.
_OWN_ONLY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob:; "
    "object-src 'none'; frame-ancestors 'self'"
)


@asynccontextmanager
async def ready(_app: st.App) -> AsyncIterator[None]:
    """At the start warns if others can use it without a login, and imports libraries in a thread."""
    gc.set_threshold(100_000, 20, 50)  # Python looks for garbage as modules are imported: 2.2 s, or 1.7 s so
    set_umask()
    delivery.serve(asyncio.get_running_loop())
    address = st.get_option("server.address")
    if not is_local(address) and not security.demanded():
        _log.warning("%s", exposure_warning(address))
    threading.Thread(target=_get_ready, name="getting ready", daemon=True).start()
    yield


def modules_of_pages() -> list[str]:
    """The modules of all pages, without their scripts, which draw when they are imported."""
    folders = sorted(script.parent for script in Path(__file__).parent.glob("*/page.py"))
    return [
        f"dashboard.{folder.name}.{path.stem}"
        for folder in folders
        for path in sorted(folder.glob("[!_]*.py"))
        if not path.stem.endswith("page")
    ]


def _get_ready() -> None:
    from dashboard.shared import (
        resources,
    )  # what is cached there needs Streamlit's runtime, which is here now

    for name in modules_of_pages():
        importlib.import_module(name)
    charts.themed_json(Chart(1).figure())  # Plotly's first figure takes a fifth of a second
    try:
        resources.task_order()
    except MRNLabError as error:
        _log.warning("%s", error)  # the pages say it too
    # Streamlit collects garbage after every run of a page: 0.4 s, unless the modules and the descriptions of
    # 10,000 runs are frozen.
    gc.collect()
    gc.freeze()


def first_page(request: Request) -> RedirectResponse:
    """Redirects `/launch` with its query to the first page, which has no name in Streamlit.

    A second page that switched to the first left a blank page where a fragment of the former reran late.
    """
    return RedirectResponse(f"./?{request.url.query}".rstrip("?"))


# Where a page connects to, as hosts of Streamlit's apps tell it. Without it a page first asks whether it is
# an app of its own, at `/curves/_stcore/health`: 0.1 s. And the names of tables, the way past the sidebar,
# the chart library.
_HEAD = (
    "<script>window.__streamlit = { BACKEND_BASE_URL: new URL('.', location.href).href };"
    f"const PLOTLY = '{plotly_url()}';"
    f"{''.join(map(charts.read_asset, ('tables.js', 'skip.js', 'plotly.js')))}</script>"
)
# Behind Streamlit's own rules, which it puts into the head.
_SHEET = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_STYLE = f"<style>{charts.read_asset('skip.css')}{_SHEET}</style>"


class Headers:
    """ASGI middleware that adds the Content-Security-Policy and caching headers to the answers.
    A page also gets the addresses that it may connect to, its scripts and style, names of its tables, and a
    button to skip to its answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = False
        page = scope["path"].rpartition("/")[2] if scope["type"] == "http" else ""

        async def tell(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _OWN_ONLY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
                is_page = headers.get("Content-Type", "").startswith("text/html")
                if is_page:
                    del headers["Content-Length"]
                    # In the cache before the first page with a chart is opened.
                    headers["Link"] = f"<{plotly_url()}>; rel=prefetch"
                if scope["path"].startswith(_KEPT) and message["status"] == 200:
                    headers["Cache-Control"] = _FOREVER
            elif is_page and message["type"] == "http.response.body":
                for end, addition in (("</head>", _HEAD + preload.links(page)), ("</body>", _STYLE)):
                    message["body"] = message["body"].replace(end.encode(), f"{addition}{end}".encode())
            await send(message)

        if scope["type"] == "http":
            accepted = MutableHeaders(scope=scope)
            if "text/html" in accepted.get("Accept", ""):
                del accepted["Accept-Encoding"]  # a page is changed on its way
        await self._app(scope, receive, tell if scope["type"] == "http" else send)
