"""Words in large type with one lane per task: spans as coloured underlines, other labels in
small capitals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from dashboard.components.assets import read_asset

__all__ = ["Lane", "Mark", "SentenceBlock", "sentence"]

_mount = st.components.v2.component(
    "mrnlab_sentence",
    html='<div id="root"></div>',
    css=read_asset("sentence.css"),
    js=read_asset("sentence.js"),
)


@dataclass(frozen=True)
class Mark:
    """One word's place in a lane: its text, its hover, whether a span covers, opens or closes here."""

    text: str
    title: str
    inside: bool = False
    start: bool = False
    end: bool = False
    differs: bool = False


@dataclass(frozen=True)
class Lane:
    """One task: `kind` is `spans` or `plain`, with a mark per word."""

    task: str
    colour: str
    kind: str
    cells: tuple[Mark, ...]


@dataclass(frozen=True)
class SentenceBlock:
    """A sentence as one run (or the corpus) labels it. `names` writes the tasks beside their lanes."""

    tokens: tuple[str, ...]
    lanes: tuple[Lane, ...]
    title: str = ""
    names: bool = True


def sentence(blocks: Sequence[SentenceBlock], *, key: str, small: bool = False) -> None:
    """Draw the blocks one under the other. The browser builds them from text, never from HTML."""
    _mount(key=key, data={"blocks": [asdict(block) for block in blocks], "small": small})
