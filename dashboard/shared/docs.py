"""The docs as a page: a file of docs/ or a section of it, `/docs?file=pages.md&section=launch`."""

from __future__ import annotations

import functools
import posixpath
import re
import sys
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

_OF_CLONE = Path(__file__).resolve().parents[2] / "docs"
FOLDER = _OF_CLONE if _OF_CLONE.is_dir() else Path(sys.prefix) / "share" / "mrnlab" / "docs"
"""Those of the clone, else those that were installed with the package."""
_START, _OF_PAGES = "README.md", "pages.md"
_HEADING = re.compile(r"^```[\s\S]*?^```|^(#+) (.*)$", re.MULTILINE)
"""A heading with its level, or a block of code, in which # begins a comment."""
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


@functools.cache
def files() -> dict[str, Path]:
    """The files of the docs by their paths in the folder; none where the installation has no clone."""
    return {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.md"))}


def docs_link(page: str) -> str:
    """Markdown links to the section on a page and to the terms of all pages; empty without docs of it."""
    has_section = _OF_PAGES in files() and section(_OF_PAGES, page.lower())
    return _with_terms(_address(_OF_PAGES, page.lower())) if has_section else ""


def file_link(file: str) -> str:
    """Markdown links to a file of the docs and to the terms of all pages; empty without that file."""
    return _with_terms(_address(file)) if file in files() else ""


def _with_terms(address: str) -> str:
    return f"[Docs]({address}) · [Terms]({_address(_OF_PAGES, 'terms')})"


@functools.cache
def section(file: str, anchor: str) -> str:
    """The heading of that anchor with the text under it; empty where the file has none."""
    text = files()[file].read_text(encoding="utf-8")
    headings = [heading for heading in _HEADING.finditer(text) if heading[1]]
    for place, heading in enumerate(headings):
        if anchor_of(heading[2]) == anchor:
            following = (other for other in headings[place + 1 :] if len(other[1]) <= len(heading[1]))
            end = next(following, None)
            return text[heading.start() : end and end.start()]
    return ""


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def with_links(text: str, file: str) -> str:
    """The text of a file without pictures, its links to other files leading to this page."""

    def followed(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), link[2])) if link[2] else file
        return f"[{link[1]}]({_address(target, link[3])})" if target in files() else link[1]

    return _LINK.sub(followed, _PICTURE.sub("", text))


def _address(file: str, anchor: str | None = None) -> str:
    """The address of this page, relative to any page."""
    return f"docs?{urlencode({'file': file} | ({'section': anchor} if anchor else {}))}"


def show() -> None:
    """Draws the file, or the section, that the page's address names."""
    file = st.query_params.get("file", _START)
    if file not in files():
        file = _START
    if file not in files():
        st.caption("The docs are in the folder docs of a clone of MRN Lab.")
        return
    part = section(file, st.query_params.get("section", ""))
    links = [f"[All docs]({_address(_START)})"] + [f"[{file}]({_address(file)})"] * bool(part)
    st.markdown(" · ".join(links))
    st.markdown(with_links(part or files()[file].read_text(encoding="utf-8"), file))
