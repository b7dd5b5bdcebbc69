"""User text made safe for Markdown and Plotly."""

from __future__ import annotations

import re

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

# What Streamlit turns into something else after Markdown has been read, where a backslash no longer helps:
# :shortcodes: and :material/icons:, typographic arrows, bare web and mail addresses. A word joiner, which
# has no width, keeps each apart.
_SHORTCODE = re.compile(r":(?=[\w+\-/]+:)")
_ARROW = re.compile(r"([<>\-=~])(?=[\-<>=])")
_ADDRESS = re.compile(r"(https?:|www(?=\.)|@)", re.IGNORECASE)
_JOINER = "\u2060"
# Between two escaped backticks: characters, escaped or not, but no third one.
_CODE = re.compile(r"\\`((?:\\[^`]|[^\\])+)\\`")


# Names in which no Markdown can be, and what would be some all the same.
_PLAIN = re.compile(r"[^\W_](?:[\w .,·=−–/-]*[^\W_])?")
_MARKED = re.compile(r"(?<![^\W_])_|_(?![^\W_])|--|www\.", re.IGNORECASE)


def escape(text: object) -> str:
    """User text made safe inside any Markdown that Streamlit renders.

    Line breaks become spaces, since a label or a sentence is one line.
    """
    one_line = " ".join(str(text).split())
    for pattern in (_ADDRESS, _SHORTCODE):
        one_line = pattern.sub(lambda match: match.group(0) + _JOINER, one_line)
    one_line = _ARROW.sub(lambda match: match.group(1) + _JOINER, one_line)
    return _PUNCTUATION.sub(r"\\\1", one_line)


def with_code(text: object) -> str:
    """A sentence of ours as by `escape`, in which what stands between backticks stays code."""
    return _CODE.sub(lambda match: f"`{_as_typed(match[1])}`", escape(text))


def _as_typed(escaped: str) -> str:
    return re.sub(r"\\(.)", r"\1", escaped).replace(_JOINER, "")


def unbroken(text: object) -> str:
    """User text as by `escape`, in which no line breaks at a hyphen: a name in a table or a chip."""
    return escape(text).replace("-", f"-{_JOINER}")


def coloured(task: str, colour: str) -> str:
    """The task's name after a dot of its colour, as Markdown."""
    return f':color[●]{{foreground="{colour}"}} {unbroken(task)}'


def option(text: object) -> str:
    """User text as one of the choices of `st.segmented_control` or `st.pills`, which are read as Markdown.

    As it stands where Markdown finds nothing in it, since a choice is also what the page's address holds.
    """
    as_it_is = str(text)
    return as_it_is if _PLAIN.fullmatch(as_it_is) and not _MARKED.search(as_it_is) else escape(as_it_is)
