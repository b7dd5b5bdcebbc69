"""What a report draws by the pages' scripts: each thing is data in the file, and its place in the text."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

from core.errors import MRNLabError
from core.figures import Figure
from dashboard.components.charts import themed_json
from jobs.reports.html import html_text

_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}|light-dark\(#[0-9A-Fa-f]{6},#[0-9A-Fa-f]{6}\)")


class NotThere(MRNLabError):
    """A part that a report cannot have; the message says why."""


@dataclass
class Placed:
    """The things that scripts draw, in the order of their places."""

    things: list[dict[str, Any]] = field(default_factory=list)

    def place(self, component: str, data: dict[str, Any], numbers: bytes = b"", *, height: int = 0) -> str:
        """The place of a thing of that component as HTML; `numbers` are what a player's matrices hold."""
        encoded = base64.b64encode(numbers).decode() if numbers else None
        self.things.append({"component": component, "data": data, "numbers": encoded})
        room = f' style="min-height:{height}px"' if height else ""
        return f'<div class="drawn {component}" id="drawn-{len(self.things) - 1}"{room}></div>'

    def chart(self, figure: Figure, alt: str) -> str:
        """The place of a chart; `alt` says in a sentence what is shown."""
        data = {
            "figure": themed_json(figure),
            "height": figure.layout.height,
            "revision": "report",
            "alt": " ".join(alt.split()),
            "still": True,
            "filename": "chart",
            "zoom": None,
            "window": None,
            "save": None,
        }
        return self.place("chart", data, height=figure.layout.height)


def reader() -> MarkdownIt:
    """Markdown without raw HTML, which is shown as it is written, and without pictures."""
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def markdown_html(text: str) -> str:
    """The researcher's Markdown as HTML, its headings below those of the report."""
    parsed = reader()
    tokens = parsed.parse(text)
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return f'<div class="text">{parsed.renderer.render(tokens, parsed.options, {})}</div>'


def caption(text: str) -> str:
    """Small print."""
    return f'<p class="quiet">{html_text(text)}</p>'


def key(name: str, colour: str) -> str:
    """The name of what a chart draws in that colour, a hex number or one for each theme."""
    safe = colour if _COLOUR.fullmatch(colour) else "currentColor"
    return f'<li><i style="background:{safe}"></i>{html_text(name)}</li>'
