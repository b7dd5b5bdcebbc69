"""STL, MTL and MRN explained and drawn: the weights that tasks share, and the links of their heads."""

from __future__ import annotations

from itertools import pairwise

import streamlit as st

from core.config import PARADIGMS
from dashboard.theme import PARADIGM_NAMES, TASK_COLOURS

WORDS = {
    "stl": ("Single-task learning", "An encoder and a head for each task, a run per task: the baseline."),
    "mtl": ("Multi-task learning", "One encoder for all tasks and a head for each: tasks share the encoder."),
    "mrn": (
        "Multilinear relationship network",
        "MTL with a prior Ω on the heads, which learns how tasks, labels and features relate.",
    ),
}
_LEFT, _WIDTH = (4, 50, 96), 40  # of the tasks' columns
_TOGETHER = 330  # px of a picture and its sentence
_GREY = "#7F8A93"  # reads on the light and on the dark page


def paradigms() -> None:
    """Draws the picture, name and description of each paradigm, in a row if there is room."""
    with st.container(horizontal=True, gap="medium"):
        for paradigm in PARADIGMS:
            name, text = WORDS[paradigm]
            with st.container(horizontal=True, wrap=False, gap="small", width=_TOGETHER):
                st.image(picture(paradigm), width=140, alt=f"{PARADIGM_NAMES[paradigm]}: {text}")
                with st.container(gap=None):
                    st.markdown(f"**{PARADIGM_NAMES[paradigm]}**")
                    st.caption(f"{name}. {text}")


def picture(paradigm: str) -> str:
    """Three tasks' heads over their encoders, or over the one they share; under MRN joined by the prior."""
    parts = []
    for left, colour in zip(_LEFT, TASK_COLOURS, strict=False):
        middle = left + _WIDTH / 2
        parts.append(f'<path d="M{middle} 42V56"/>')
        parts.append(f'<rect x="{left}" y="24" width="{_WIDTH}" height="18" rx="3" fill="{colour}"/>')
        parts.append(_text(middle, 36, "head", "#000" if colour == "#E69F00" else "#FFF"))
        if paradigm == "stl":
            parts.append(_encoder(left, _WIDTH))
    if paradigm != "stl":
        parts.append(_encoder(_LEFT[0], _LEFT[-1] + _WIDTH - _LEFT[0]))
    if paradigm == "mrn":
        for a, b in pairwise(_LEFT):
            parts.append(f'<path d="M{a + 24} 24C{a + 24} 9 {b + 16} 9 {b + 16} 24"/>')
            parts.append(_text((a + b + _WIDTH) / 2, 9, "Ω"))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 140 82" width="140" height="82" fill="none" '
        f'stroke="{_GREY}" stroke-width="1.2">{"".join(parts)}</svg>'
    )


def _encoder(left: float, width: float) -> str:
    place = f'x="{left}" y="56" width="{width}" height="22" rx="3"'
    return f'<rect {place} fill="{_GREY}" fill-opacity="0.12"/>' + _text(left + width / 2, 70, "encoder")


def _text(x: float, y: float, text: str, colour: str = _GREY) -> str:
    look = f'font-family="system-ui, sans-serif" font-size="9" text-anchor="middle" fill="{colour}"'
    return f'<text x="{x}" y="{y}" {look} stroke="none">{text}</text>'
