"""The parts of a report as HTML: the same cells as in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED
from jobs.reports.parts import Code, Heading, Items, Part, Sheet
from jobs.reports.render import Markup, cell_texts, on_one_line, right_aligned


def html_text(text: object) -> str:
    """Plain text as HTML on one line: nothing in it is a tag, an entity or the end of an attribute."""
    return escape(on_one_line(str(text)))


MARKUP = Markup(
    html_text,
    "<b>{}</b>",
    "–",
    {
        HIGHER: '<b class="higher">{}</b>',
        LOWER: '<b class="lower">{}</b>',
        UNDECIDED: '<span class="quiet">{}</span>',
    },
    '<span class="quiet">{}</span>',
    "<small>({})</small>",
    '<span class="spread">{}</span>',
)


def html(part: Part, *, name: str = "", level: int = 1) -> str:
    """A part of a report as HTML. `name` is of a table, by which `mrnlab verify` finds it.

    Headings are `level` levels lower than they are by themselves.
    """
    if isinstance(part, Code):
        return f"<pre><code>{escape(chr(10).join(map(on_one_line, part.lines)))}</code></pre>"
    if isinstance(part, Heading):
        tag = f"h{part.level + level}"
        return f"<{tag}>{html_text(part.text)}</{tag}>"
    if isinstance(part, Items):
        return f"<ul>{''.join(f'<li>{html_text(line)}</li>' for line in part.lines)}</ul>"
    if isinstance(part, str):
        return f"<p>{html_text(part)}</p>"
    named = f' data-table="{html_text(name)}"' * bool(name)
    label = f"Table: {html_text(part.head[0])}"
    caption = html_text(part.captioned())
    return (
        f'<figure class="table">{table_html(part, label, named)}<figcaption>{caption}</figcaption></figure>'
    )


def table_html(sheet: Sheet, label: str, attributes: str = "", markup: Markup = MARKUP) -> str:
    """The table without its caption, in an element that scrolls. `label` is HTML that says what it shows."""
    right = [False, *right_aligned(sheet)]

    def row(cells: Iterable[str], tags: Iterable[str]) -> str:
        written = (
            f"<{tag}{' class=right' * aligned}>{cell}</{tag.partition(' ')[0]}>"
            for cell, tag, aligned in zip(cells, tags, right, strict=True)
        )
        return f"<tr>{''.join(written)}</tr>"

    columns = len(sheet.head)
    head = row(map(markup.escape, sheet.head), ["th scope=col"] * columns)
    body = []
    for block in sheet.blocks:
        if block.title:
            title = markup.escape(block.title)
            body.append(f'<tr><th scope=colgroup colspan="{columns}" class="block">{title}</th></tr>')
        tags = ["th scope=row", *["td"] * (columns - 1)]
        body += [row(cells, tags) for cells in cell_texts(sheet, block, markup)]
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{label}"><table{attributes}>'
        f"<thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>"
    )
