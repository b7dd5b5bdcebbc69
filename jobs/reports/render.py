"""The tables of results, and one renderer per format for the parts of a report (`jobs.reports.parts`).

All texts of parts are plain: each format escapes them.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from core.evaluation.comparison import HIGHER, LOWER
from core.evaluation.costs import COST_NOTE
from core.plain_text import spreadsheet_cell, terminal_text
from core.results.comparisons import Difference
from core.results.naming import run_name
from core.results.signature import signature
from core.results.table import ResultRow, ResultTable
from core.store import RunWithFacts, StoredScore
from core.studies.published import CITATION, Published, matching
from core.tasks import kind_of
from core.tasks.scores import REPORT_NUMBERS, averages, report_rows, scale_text
from core.wording import without_shared
from jobs.reports.parts import (
    COST_HEAD,
    Block,
    Code,
    Entry,
    Heading,
    Items,
    Part,
    Sheet,
    cost_entries,
    difference_entry,
    p_entry,
    published_entry,
    score_entry,
)

_HIGHER = "higher than each other row"
BEST = f"{_HIGHER}: p over the seeds that both have, corrected for all pairs of rows (Holm)."
"""The meaning of a bold score where all pairs of rows are compared."""


def best(table: ResultTable) -> str:
    """The meaning of a bold score."""
    if table.baseline is None:
        return BEST
    return f"{higher(table)}: p over the seeds that both have, corrected for all rows (Holm)."


def higher(table: ResultTable) -> str:
    """What a bold score is higher than: `higher than MTL`."""
    return _HIGHER if table.baseline is None else f"higher than {table.row(table.baseline).name}"


def row_label(row: ResultRow, *, whole: bool = False) -> str:
    """The row's label (or name) with how it was chosen: `MRN (best of 5 on dev: MRN λ=0.3)`."""
    name = row.name if whole else row.label
    return f"{name} ({row.choice}: {row.chosen})" if row.choice else name


def score_sheet(table: ResultTable, setting: str, *, cost: bool = False) -> Sheet:
    """A table of configurations × tasks, with `cost` also the cost of each configuration.

    The number of seeds is in the caption where it is the same everywhere.
    """
    counts = {cell.summary.n for row in table.rows for cell in row.cells.values()}
    alike = len(counts) <= 1
    over = "mean ± standard deviation over seeds (their number)"
    if counts and alike:
        (count,) = counts
        over = "one seed" if count == 1 else f"mean ± standard deviation over {count} seeds"
    caption = f"{setting}, {table.split} split, {scale_text(table.scored_by.values())}: {over}."
    head = ["Configuration", *(f"{task} ({table.score_names[task]})" for task in table.tasks)]
    if cost:
        caption += f" {COST_NOTE}"
        head += [name.capitalize() for name in COST_HEAD]
    blocks = []
    for title, rows in table.blocks.items():
        lines = []
        for row in rows:
            scores = [
                score_entry(
                    row.cells[task].summary, table.scored_by[task], bold=(row.key, task) in table.bold
                )
                if task in row.cells
                else None
                for task in table.tasks
            ]
            costs = cost_entries(row.cost) if cost else ()
            lines.append((row_label(row), (*scores, *costs)))
        blocks.append(Block(title if len(table.blocks) > 1 else "", tuple(lines)))
    return Sheet(tuple(head), tuple(blocks), caption, best(table), signature(table), hides_n=alike)


def difference_sheet(
    differences: Sequence[Difference],
    table: ResultTable,
    baseline: str,
    setting: str,
    *,
    on_page: bool = False,
) -> Sheet:
    """A line per row and task; on a page by task under the names of rows, with remarks on verdicts.

    What would decide a difference has a column but on the page, which says it beside the button. Where some
    are not from the baseline, lines name both rows.
    """
    names_both = any(delta.base.key != baseline for delta in differences)
    tasks = without_shared(table.tasks) if on_page else {}
    needed = [None if on_page else delta.seeds_needed for delta in differences]
    lines = []
    for delta, seeds in zip(differences, needed, strict=True):
        remark = f" ({delta.remark})" if on_page and delta.remark else ""
        cells = (
            tasks.get(delta.task, delta.task),
            difference_entry(delta, bold=True),
            delta.verdict_text + remark,
            Entry(delta.seeds, form="d"),
            *([seeds.sentence if seeds else None] if any(needed) else []),
            *map(p_entry, (delta.p, delta.p_sentences)),
        )
        name = delta.row.name if on_page else row_label(delta.row, whole=True)
        lines.append((delta.title if names_both else name, *cells))
    compared = "differences shown" if table.baseline else "pairs of rows"
    from_base = "" if names_both else f" from {table.row(baseline).name}"
    sheet = Sheet.of(
        (
            *(
                "Compared" if names_both else "Configuration",
                "Task",
                "Difference, 95% interval",
                "Verdict",
                "Seeds",
            ),
            *(["To decide it"] if any(needed) else []),
            *("p seeds", "p sentences"),
        ),
        lines,
        f"{setting}, {table.split} sentences: differences{from_base} in points, paired by seed. "
        "p seeds: paired t-test over seeds; p sentences: approximate randomisation over sentences; "
        f"the first corrected for all {compared} on a task, the second for all differences shown (Holm).",
    )
    bold = "higher than the baseline by the corrected p over seeds."
    sheet = replace(sheet, bold=bold, signature=signature(table))
    return _under_names(sheet) if on_page else sheet


def _under_names(sheet: Sheet) -> Sheet:
    """The table with the name of neighbouring rows as their title, and their first cell as their name."""
    rows = [row for block in sheet.blocks for row in block.rows]
    blocks = tuple(
        Block(title, tuple((first.text if first else "", tuple(cells)) for _, (first, *cells) in of_title))
        for title, of_title in groupby(rows, lambda row: row[0])
    )
    return replace(sheet, head=sheet.head[1:], blocks=blocks)


def with_published(sheet: Sheet, table: ResultTable) -> Sheet:
    """Adds the dissertation's rows for the same training and scoring to the blocks of the sheet."""
    no_cost = (None,) * (len(sheet.head) - 1 - len(table.tasks))
    blocks = []
    for block, rows in zip(sheet.blocks, table.blocks.values(), strict=True):
        published: dict[str, dict[str, Published]] = {}
        for row in rows:
            for task, cell in matching(row.config).items():
                if task in row.cells:
                    name = f"{cell.paradigm.upper()}, published (table {cell.table})"
                    published.setdefault(name, {})[task] = cell
        quoted = [
            (name, (*(published_entry(cells.get(task)) for task in table.tasks), *no_cost))
            for name, cells in published.items()
        ]
        blocks.append(replace(block, rows=(*block.rows, *quoted)))
    if blocks == list(sheet.blocks):
        return sheet
    return replace(sheet, blocks=tuple(blocks), caption=f"{sheet.caption} Published: {CITATION}.")


NOT_ANNOTATED = " Dashes: not annotated, so undefined, and in no average."
"""The meaning of dashes in a report."""


def report_sheet(run: RunWithFacts, score: StoredScore) -> Sheet:
    """The scores of one task of one run by label, with averages, in percent."""
    kind = kind_of(run.task_facts, score.task, score.score_name)
    unit = "span type, as conlleval counts spans" if kind.has_spans else "label"
    return Sheet(
        (kind.row_title, "Precision", "Recall", "F1", "Support"),
        (
            Block(
                "", tuple((label, _report_entries(row)) for label, row in report_rows(score.report).items())
            ),
            Block(
                "", tuple((f"{name} average", _report_entries(row)) for name, row in averages(score).items())
            ),
        ),
        f"{score.task} of run {run_name(run)}, {score.split} {kind.examples}, in percent by {unit}."
        + NOT_ANNOTATED * any(not row["support"] for row in score.report.values()),
    )


def _report_entries(row: Mapping[str, float]) -> tuple[Entry, ...]:
    return (
        *(Entry(100 * row[number]) for number in REPORT_NUMBERS[:3]),
        Entry(row["support"], form=".0f"),
    )


REPORT_COLUMNS = ("run", "task", "split", "row", "label", *REPORT_NUMBERS)


def report_records(run: RunWithFacts, score: StoredScore) -> list[dict[str, object]]:
    """A record of REPORT_COLUMNS per label and average, scores in [0, 1], None where undefined.

    `row` is label, type or average.
    """
    title = kind_of(run.task_facts, score.task, score.score_name).row_title.lower()
    rows = [(title, label, row) for label, row in report_rows(score.report).items()]
    rows += [("average", name, row) for name, row in averages(score).items()]
    return [
        {"run": run.id, "task": score.task, "split": score.split, "row": name, "label": label}
        | {number: None if math.isnan(value) else value for number, value in row.items()}
        for name, label, row in rows
    ]


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, object]], delimiter: str = ",") -> str:
    """CSV with a header and a line per record; columns that a record lacks are empty."""
    return csv_lines(columns, ([record.get(column) for column in columns] for record in records), delimiter)


def csv_lines(head: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> str:
    """CSV of these rows, quoted where needed; no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows(map(spreadsheet_cell, row) for row in (head, *rows))
    return text.getvalue()


_SPREADS = {1: (" ±",), 2: (" low", " high")}


def sheet_csv(sheet: Sheet) -> str:
    """A table as CSV for programs, with units in the head and empty cells for missing values.

    Spreads, bounds of intervals, numbers of seeds and verdicts have their own columns.
    """
    rows = [row for block in sheet.blocks for row in block.rows]
    head, columns = [sheet.head[0]], [[name for name, _ in rows]]
    for index, name in enumerate(sheet.head[1:]):
        entries = [cells[index] or Entry("") for _, cells in rows]
        unit = next((entry.unit for entry in entries if entry.unit), "")
        head.append(f"{name} ({unit})" if unit else name)
        values = list(zip_longest(*(entry.csv_values for entry in entries), fillvalue=""))
        columns.append([*values[0]] if values else [])
        beside = dict(zip(_SPREADS.get(len(values) - 1, ()), values[1:], strict=False))
        beside[" n"] = tuple("" if entry.n is None else str(entry.n) for entry in entries)
        beside[" verdict"] = tuple(entry.verdict for entry in entries)
        for suffix, texts in beside.items():
            if any(texts):
                head.append(name + suffix)
                columns.append([*texts])
    return csv_lines(head, zip(*columns, strict=True))


def csv_files(name: str, parts: Iterable[Part]) -> Iterator[tuple[str, str]]:
    """Yields the tables of a report as CSV files, each with its name and text.

    A file is named after the headings above the table, or after the name in brackets of the last heading.
    """
    part = heading = ""
    used: Counter[str] = Counter()
    for each in parts:
        if isinstance(each, Sheet):
            stem = f"{name}-{heading}" if heading else name
            used[stem] += 1
            yield f"{stem}{f'-{used[stem]}' if used[stem] > 1 else ''}.csv", sheet_csv(each)
        elif isinstance(each, Heading):
            if each.level == 2:
                part = heading = _slug(each.title)
            else:
                heading = _slug(each.name) or f"{part}-{_slug(each.title)}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class Markup:
    """The marks of a format: plain text, bold, verdicts, published figures, missing values, n, spreads."""

    escape: Callable[[str], str]
    bold: str
    missing: str
    verdicts: Mapping[str, str]
    quoted: str = "{}"
    n: str = "({})"
    spread: str = "{}"


def cell_texts(sheet: Sheet, block: Block, markup: Markup) -> Iterator[list[str]]:
    """Yields the cells of each row as text, the name first."""
    for name, entries in block.rows:
        yield [markup.escape(name), *(_cell_text(sheet, entry, markup) for entry in entries)]


def _cell_text(sheet: Sheet, entry: Entry | None, markup: Markup) -> str:
    if entry is None:
        return markup.missing
    text, beside, mark = entry.text, entry.spread_text, markup.bold if entry.bold else "{}"
    if entry.is_quoted:
        text, beside, mark = f"{text} {beside}".rstrip(), "", markup.quoted
        text += f", ours {entry.verdict}" if entry.verdict else ""
    elif sheet.writes_verdicts:
        beside = f"{beside} {entry.verdict}".strip()
    else:
        mark = markup.verdicts.get(entry.verdict, mark)
    n = "" if entry.n is None or sheet.hides_n else markup.n.format(entry.n)
    marked = mark.format(markup.escape(text), step=entry.step, best=" best" * entry.bold) if text else ""
    spread = markup.spread.format(markup.escape(beside)) if beside else ""
    return " ".join(filter(None, (marked, spread, n)))


def right_aligned(sheet: Sheet) -> list[bool]:
    """For each column after the first whether at least half of its defined cells are numbers."""
    rows = [entries for block in sheet.blocks for _, entries in block.rows]
    right = []
    for column in zip(*rows, strict=True):
        defined = [entry for entry in column if entry is not None and entry.is_defined]
        right.append(2 * sum(entry.is_number for entry in defined) >= len(defined))
    return right or [True] * (len(sheet.head) - 1)


_EMPHASIS = {HIGHER: "**{}**", LOWER: "*{}*"}
_PLAIN = Markup(str, "{}*", "–", _EMPHASIS)


def aligned(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned by spaces, numbers to the right, text to the left, escaped for a terminal."""
    first, *cells = [
        ["" if cell is None else terminal_text(str(cell)).replace("\n", " ") for cell in row]
        for row in (head, *rows)
    ]
    columns = list(zip(first, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [bool(cells) and all(_is_number(cell) or not cell for cell in column[1:]) for column in columns]
    lines = []
    for row in (first, *cells):
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True


def plain(sheet: Sheet) -> str:
    """A table for a terminal, without its caption."""
    rows = [
        [f"{name} · {block.title}" if block.title else name, *cells]
        for block in sheet.blocks
        for name, *cells in cell_texts(sheet, block, _PLAIN)
    ]
    first = sheet.head[0]
    return aligned([first[:1].lower() + first[1:], *sheet.head[1:]], rows)


def markdown(part: Part) -> str:
    """A part of a report as Markdown, the caption of a table below it."""
    if isinstance(part, Code):
        code = terminal_text("\n".join(part.lines))
        # Longer than any fence in the code, which therefore cannot end the block.
        fence = "`" * max(3, *(len(marks) + 1 for marks in re.findall("`+", code)), 0)
        return f"{fence}\n{code}\n{fence}"
    if isinstance(part, Heading):
        name = f" ({_escaped(part.name)})" if part.name else ""
        return f"{'#' * part.level} {_escaped(part.title)}{name}"
    if isinstance(part, Items):
        return "\n".join(f"- {_block(line)}" for line in part.lines)
    if isinstance(part, str):
        return _block(part)

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rules = ["---:" if right else "---" for right in right_aligned(part)]
    lines = [line(map(_escaped, part.head)), line(["---", *rules])]
    for block in part.blocks:
        if block.title:
            lines.append(line([f"*{_escaped(block.title)}*", *("" for _ in part.head[1:])]))
        lines += [line(cells) for cells in cell_texts(part, block, _MARKDOWN)]
    return "\n".join([*lines, *(["", _block(part.captioned())] if part.caption else [])])


# The markup of Markdown and its dialects anywhere, and at the beginning of a block: quotations, lists, rules.
_MARKS = re.compile(r"[\\|*`<\[_$~#]|&(?=[#\w]+;)")
_BEGINNING = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=>|[+-](?:[\s-]|$)))")


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", on_one_line(text))


def _block(text: str) -> str:
    return _BEGINNING.sub(r"\1\\", _escaped(text))


def on_one_line(text: str) -> str:
    """The text without line ends, and with control characters escaped: LaTeX refuses them."""
    return terminal_text(" ".join(text.split()))


_MARKDOWN = Markup(_escaped, "**{}**", "–", _EMPHASIS)

# One pass over the characters, so that a replacement is not replaced again.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
        "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "−": "$-$", "λ": r"$\lambda$",
        "κ": r"$\kappa$", "×": r"$\times$", "→": r"$\rightarrow$", "–": "--", "·": r"$\cdot$",
    }
)  # fmt: skip


def tex(text: str) -> str:
    """Plain text as LaTeX on one line."""
    return on_one_line(text).translate(_LATEX)


_TEX = Markup(tex, r"\textbf{{{}}}", "--", {HIGHER: r"\textbf{{{}}}", LOWER: r"\emph{{{}}}"})

_LATEX_CODE = _LATEX | str.maketrans({"'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "–": "–"})


def _tex_code(text: str) -> str:
    """Code as LaTeX in typewriter letters; not verbatim, which the code could end."""
    code = terminal_text(text).expandtabs().translate(_LATEX_CODE)
    code = re.sub(r"([-,])(?=\1)", r"\1{}", code)  # some fonts make one mark of two
    return re.sub(r"(?<=[ \n]) ", r"\\ ", code).replace("\n", "\\\\{}\n")


def latex(part: Part) -> str:
    r"""A part of a report as LaTeX; tables need \usepackage{booktabs}."""
    if isinstance(part, Code):
        return "\n".join(
            [r"\begin{flushleft}\ttfamily", _tex_code("\n".join(part.lines)), r"\end{flushleft}"]
        )
    if isinstance(part, Heading):
        return rf"\{'sub' * (part.level - 1)}section*{{{tex(part.text)}}}"
    if isinstance(part, Items):
        return "\n".join(
            [r"\begin{itemize}", *(rf"  \item{{}} {tex(line)}" for line in part.lines), r"\end{itemize}"]
        )
    if isinstance(part, str):
        return tex(part)

    def row(cells: Iterable[str]) -> str:
        line = " & ".join(cells)
        # After a line end, these would be read as its options.
        return f"    {'{}' * line.startswith(('[', '*'))}{line} \\\\"

    columns = "".join("r" if right else "l" for right in right_aligned(part))
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        *([rf"  \caption{{{tex(part.captioned())}}}"] if part.caption else []),
        rf"  \begin{{tabular}}{{l{columns}}}",
        r"    \toprule",
        row(map(tex, part.head)),
    ]
    for block in part.blocks:
        lines.append(r"    \midrule")
        if block.title:
            lines.append(row([rf"\multicolumn{{{len(part.head)}}}{{l}}{{\emph{{{tex(block.title)}}}}}"]))
        lines += [row(cells) for cells in cell_texts(part, block, _TEX)]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}"])
