"""The parts of Streamlit's front end, and the chart library, that a browser reads while a page starts.

Streamlit reads its scripts part by part, each when a page first draws it: the browser then waits, and
draws the page again. A part that is missing here is read then, as ever.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import streamlit as st

_STATIC = Path(st.__file__).parent / "static"
_EVERYWHERE = ("Html", "PageLink", "Progress", "Button", "BidiComponent")
PARTS = {
    "launch": ("ButtonGroup", "Selectbox", "Multiselect", "TextInput"),
    "runs": ("TextInput", "Selectbox", "Pagination"),
    "run": ("Metric", "ButtonGroup", "DataFrame"),
    "curves": ("Multiselect", "ButtonGroup", "DownloadButton"),
    "compare": ("Multiselect", "ButtonGroup", "Selectbox", "NumberInput", "Checkbox"),
    "relations": ("Multiselect", "ButtonGroup", "Selectbox"),
    "tag": ("Multiselect", "ButtonGroup", "TextArea", "Checkbox"),
}
"""By page as its address names it, the parts that it opens with, beside those of every page."""
_WITH_CHART = ("curves",)
"""The pages that open with a chart."""


@functools.lru_cache(maxsize=32)
def links(page: str) -> str:
    """The tags that have a browser read the scripts of this page's parts, without those of an empty page, and
    the chart library.
    """
    chunks = _chunks()
    keys = {chunk["name"]: key for key, chunk in chunks.items() if "name" in chunk}
    # The first page has the app's own address.
    names = (*_EVERYWHERE, *PARTS.get(page or "launch", ()))
    wanted = [key for name in names if name in keys for key in _with_imports(keys[name])]
    empty = _with_imports("index.html")
    files = dict.fromkeys(chunks[key]["file"] for key in wanted if key not in empty)
    tags = [f'<link rel="modulepreload" crossorigin href="./{file}">' for file in files]
    return "".join([*tags, *["<script>loadPlotly().catch(() => {})</script>"] * (page in _WITH_CHART)])


@functools.cache
def _chunks() -> dict[str, dict[str, Any]]:
    """Streamlit's scripts, as its build lists them; none where a version has no such list."""
    manifest = _STATIC / "manifest.json"
    listed: dict[str, dict[str, Any]] = (
        json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
    )
    return listed


def _with_imports(key: str) -> dict[str, None]:
    """The script and all that it imports, in the order read."""
    chunks, seen, waiting = _chunks(), dict[str, None](), [key]
    while waiting:
        if (key := waiting.pop()) not in seen:
            seen[key] = None
            waiting += chunks.get(key, {}).get("imports", ())
    return seen
