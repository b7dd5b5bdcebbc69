"""Foreign text (labels, words, names, notes) made harmless for a spreadsheet, a terminal or a report."""

from __future__ import annotations

import re
from urllib.parse import unquote

# What a spreadsheet takes for the beginning of a formula, at the beginning of a cell; and after what other
# programs, or the same one in another country, take for the end of one.
_MARKS = "=+\\-@＝＋－＠"
_BEGINNING = r"((?:^|[;\t\n])[^\S;\t\n]*)"
_FORMULA = re.compile(rf"{_BEGINNING}(?='*[{_MARKS}])")
_GUARDED = re.compile(rf"{_BEGINNING}'(?='*[{_MARKS}])")
# Numbers, and labels such as -LRB-, + or =: nothing here can call a function, follow a link or read a file,
# for which a formula needs brackets, quotation marks, a bar, a slash, a colon or an exclamation mark.
_HARMLESS = re.compile(r"[+\-]?[\d.,]+(e[+\-]?\d+)?%?|[=+\-@]?[\w.$%\-]*|[=+\-@]{1,3}", re.IGNORECASE)


def spreadsheet_cell(value: object) -> object:
    """The value with an apostrophe where a spreadsheet would run it as a formula.

    OWASP advises that apostrophe. Numbers, and labels that cannot do anything as formulas, stay as they are.
    A carriage return, which Python's csv leaves unquoted, becomes a space.
    """
    if not isinstance(value, str) or _HARMLESS.fullmatch(value):
        return value
    return _FORMULA.sub(r"\1'", value.replace("\r", " "))


def unguarded_cell(text: str) -> str:
    """The text that `spreadsheet_cell` was given, from its result."""
    bare = _GUARDED.sub(r"\1", text)
    return bare if spreadsheet_cell(bare) == text else text


# Control characters but for line ends and tabs, and those that turn the direction of writing around.
_CONTROLS = (*range(9), 11, 12, *range(14, 32), *range(127, 160))
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LONE_SURROGATES = range(0xD800, 0xE000)  # no encoding has them
_UNSEEN = {code: f"\\x{code:02x}" for code in _CONTROLS} | {
    code: f"\\u{code:04x}" for code in (*_TURNING, *_LONE_SURROGATES)
}


def terminal_text(text: str) -> str:
    r"""The text with characters that would command the terminal shown (`\x1b`) instead of obeyed.

    A carriage return is kept only as part of a line end: alone it would write over the line.
    """
    return text.translate(_UNSEEN).replace("\r\n", "\n").replace("\r", "\\x0d")


def shortened(text: str, most: int = 60) -> str:
    """The text as a sentence quotes it, on one line: of a long one the beginning and its length."""
    text = _without_url_passwords(text).replace("\n", "\\n")  # before a part of a password is cut off
    return text if len(text) <= most else f"{text[: most // 2]}… ({len(text):,} characters)"


_LONGEST_MESSAGE = 2000
# What is quoted, or a word: longer than any path, number or URL that is meant.
_LONG = re.compile(r"(?<=(?<!\w)')[^']{500,}(?='(?!\w))|(?!')\S{500,}")


def message_text(text: str) -> str:
    """A sentence for the researcher: without the passwords of URLs, long values in it shortened."""
    text = _LONG.sub(lambda value: shortened(value[0], 200), _without_url_passwords(text))
    if len(text) <= _LONGEST_MESSAGE:
        return text
    third = _LONGEST_MESSAGE // 3
    return f"{text[:third]}… ({len(text):,} characters) …{text[-third:]}"


# The password of a URL stands between its user's name and the last @; that of an option after its name.
# A path has one slash where the URL that was given as one has two.
_URL_PASSWORD = re.compile(r"(:/+[^\s:/@]*):(\S*)@")
_NAMED_PASSWORD = re.compile(
    r"(\w*(?:password|passwd|pwd|secret|token)\w*\s*=\s*)([^\s&'\",;)]+)", re.IGNORECASE
)


def without_passwords(text: str, *sources: str) -> str:
    """The text with every password shown as `***`.

    They are the passwords of URLs and options in it, and every repetition of one in a URL or an option of the
    `sources`.
    """
    for source in sources:
        for pattern in (_URL_PASSWORD, _NAMED_PASSWORD):
            for match in pattern.finditer(source):
                for secret in (match[2], unquote(match[2])):
                    text = text.replace(secret, "***") if secret else text
    text = _URL_PASSWORD.sub(r"\1:***@", text)
    return _NAMED_PASSWORD.sub(r"\1***", text)


_OF_URL = re.compile(r"://\S+")


def _without_url_passwords(text: str) -> str:
    """The text with every password of a URL shown as `***`.

    Options outside of URLs stay: `tokens=300` is part of a corpus's name.
    """
    text = _URL_PASSWORD.sub(r"\1:***@", text)
    return _OF_URL.sub(lambda rest: _NAMED_PASSWORD.sub(r"\1***", rest[0]), text)
