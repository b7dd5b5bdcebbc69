"""Tables on a page, as files, and as text to paste; the report on its runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from core.errors import MRNLabError
from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER
from core.paths import database_url
from core.plain_text import spreadsheet_cell
from core.report import ReportAsked, make_report
from dashboard.components.charts import component
from dashboard.shared.states import show_warning
from dashboard.text import escape
from jobs.reports import html
from jobs.reports.parts import Form, Sheet, number_text
from jobs.reports.render import csv_text, latex, markdown

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

_NO_FORMS: Mapping[str, Form] = {}
_NO_HOVERS: Mapping[str, str] = {}
_JOINER = "\u2060"  # of no width; no line breaks at it
_MARKUP = replace(
    html.MARKUP,
    escape=lambda text: html.html_text(text).replace("-", f"-{_JOINER}"),
    missing="",
    verdicts={
        **html.MARKUP.verdicts,
        EQUIVALENT: "≈ {}",
        **{word: f'<b class="{word} step-{{step}}{{best}}">{{}}</b>' for word in (HIGHER, LOWER)},
    },
)


def show_table(
    sheet: Sheet, *, alt: str, dots: Sequence[str] = (), hovers: Mapping[str, str] = _NO_HOVERS
) -> None:
    """Draws the table without its caption, the number of seeds small after each score.
    `dots` are the colours of the rows, from the first on, drawn before their names. `hovers` are texts under
    the pointer, by the names of rows and columns; a row may have more in brackets after its name.

    As HTML: of `st.table` each cell is Markdown that the browser reads, a tenth of a second for a table.
    """
    table = html.table_html(sheet, html.html_text(alt), markup=_MARKUP)
    for colour in dots:
        table = table.replace("<th scope=row>", f'<th scope=row class=dot style="--dot:{colour}">', 1)
    for name, text in hovers.items():
        start = rf"<th scope=(?:row|col)[^>]*(?=>{re.escape(_MARKUP.escape(name))}(?: \(|<))"
        title = html.html_text(text).replace("\\", r"\\")
        table = re.sub(start, rf'\g<0> title="{title}"', table)
    st.html(f'<div class="sheet" style="--columns:{len(sheet.head) - 1}">{table}</div>')


def data_table(
    frame: Any,
    *,
    alt: str,
    most: int | None = None,
    tall: int = 420,
    forms: Mapping[str, Form] = _NO_FORMS,
    **look: Any,
) -> Any:
    """A table to sort and search: as high as its rows, with more than `most` of them `tall` pixels.
    `forms` are those of columns that are `written`.
    """
    height = tall if most is not None and len(frame) > most else "content"
    usual = {"hide_index": True, "height": height, "placeholder": "–", "alt": alt}
    return st.dataframe(written(frame, forms) if forms else frame, **usual | look)


def written(frame: pd.DataFrame, forms: Mapping[str, Form]) -> Styler:
    """The table with the numbers of these columns written as in reports: real minus, no sign on zero."""
    known: dict[Any, Any] = {
        name: partial(number_text, form=form) for name, form in forms.items() if name in frame
    }
    return frame.style.format(known)


def csv_button(data: str | Callable[[], str], name: str, **look: Any) -> None:
    """Saves this text of comma-separated values under that name."""
    st.download_button(
        "CSV", data, f"{name}.csv", "text/csv", icon=":material/download:", on_click="ignore", **look
    )


def csv_file(frame: pd.DataFrame) -> str:
    """The table as comma-separated values that a spreadsheet opens without taking a cell for a formula."""
    text_columns = frame.select_dtypes(exclude=["number", "bool", "datetime"])
    guarded = frame.assign(
        **{name: text_columns[name].map(spreadsheet_cell) for name in text_columns.columns}
    )
    return guarded.rename(columns=spreadsheet_cell).to_csv(index=False)


_ICON = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{}" /></svg>'
_SHEETS = _ICON.format("M15 3H3v14h2V5h10zm6 4H7v14h14zm-2 12H9V9h10z")
_ARROW = _ICON.format("M7 10l5 5 5-5z")
# Streamlit's own copy button is that of a block of code.
_mount_copy = component(
    "copy",
    "picture.js",
    html=f"""
<div class="copy">
  <button type="button" class="main">{_SHEETS}<span class="said" aria-live="polite">Copy</span></button>
  <button type="button" class="more" aria-label="Other formats" aria-haspopup="menu">{_ARROW}</button>
  <div class="menu" popover role="menu"></div>
</div>
""",
)


_CHAIN = _ICON.format(
    "M3.9 12a3.1 3.1 0 0 1 3.1-3.1h4V7H7a5 5 0 0 0 0 10h4v-1.9H7A3.1 3.1 0 0 1 3.9 12zM8 13h8v-2H8z"
    "m9-6h-4v1.9h4a3.1 3.1 0 0 1 0 6.2h-4V17h4a5 5 0 0 0 0-10z"
)
_mount_link = component(
    "link",
    "picture.js",
    style="copy",
    html=f"""
<div class="copy">
  <button type="button" class="alone">{_CHAIN}<span class="said" aria-live="polite">Copy link</span></button>
</div>
""",
)


def copy_link() -> None:
    """Draws a button that copies the address of the page with all that the reader has chosen."""
    _mount_link(key="copy_link", data={}, width="content")


def copy_table(
    sheet: Sheet, columns: Sequence[str], records: Iterable[Mapping[str, object]], *, key: str
) -> None:
    """Draws a button that copies the table as LaTeX, and a menu of other formats.
    The text is that of `mrnlab results --format`.
    """
    rows, name = list(records), f"mrnlab-{key}"
    formats = [
        {"name": "LaTeX", "text": latex(sheet), "file": f"{name}.tex"},
        {"name": "Markdown", "text": markdown(sheet)},
        {"name": "CSV", "text": csv_text(columns, rows), "file": f"{name}.csv"},
        {"name": "TSV", "text": csv_text(columns, rows, delimiter="\t")},
    ]
    _mount_copy(key=f"{key}_copy", data={"formats": formats}, width="content")


_READY = "report_ready"


def report_button(run_ids: Sequence[int], split: str) -> None:
    """Draws the button: the first click makes the report, the second saves it."""
    asked = ReportAsked(database_url(), tuple(sorted(run_ids)), split)
    ready = st.session_state.get(_READY)
    if ready is None or ready[0] != asked:
        if not st.button(
            "Report",
            icon=":material/description:",
            key="make_report",
            help="One HTML file that opens anywhere: answer, scores, relations, sentences, commands.",
        ):
            return
        try:
            with st.spinner("Making the report"):
                ready = st.session_state[_READY] = asked, make_report(asked).html
        except MRNLabError as error:
            show_warning(escape(str(error)))
            return
    st.download_button(
        "Save report",
        ready[1],
        "report.html",
        "text/html",
        icon=":material/download:",
        on_click="ignore",
        key="save_report",
    )
