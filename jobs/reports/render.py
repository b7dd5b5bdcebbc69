"""Tables as text to paste: LaTeX for a paper, Markdown for a note, CSV for whatever comes next."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.evaluation.costs import COST_NOTE, Cost
from core.plain_text import spreadsheet_cell
from core.store import Run, StoredScore
from core.studies.published import CITATION, Published, matching
from core.tasks import kind_of
from core.tasks.scores import REPORT_NUMBERS, averages
from jobs.reports.naming import COST_HEAD, cost_cells, run_name
from jobs.reports.table import ResultCell, ResultTable

BEST = "higher than each other row: p over the seeds that both have, corrected for all pairs of rows (Holm)."
"""What a bold score means."""


@dataclass(frozen=True)
class Entry:
    """A cell: its text, bold or not, and what stands beside it, never bold. Plain text."""

    text: str
    beside: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Block:
    """Rows that stand together under a title, which may be empty. A row is its name and its entries."""

    title: str
    rows: tuple[tuple[str, tuple[Entry | None, ...]], ...]


@dataclass(frozen=True)
class Sheet:
    """A table ready to be written. `head` begins with what the rows are, `bold` says what bold marks."""

    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    caption: str
    bold: str = ""

    def captioned(self, mark: str = "Bold") -> str:
        """The caption. Where a cell is bold it ends with what `mark` means."""
        marked = any(
            entry is not None and entry.bold
            for block in self.blocks
            for _, entries in block.rows
            for entry in entries
        )
        return f"{self.caption} {mark}: {self.bold}" if marked and self.bold else self.caption


def score_sheet(table: ResultTable, setting: str, *, cost: bool = False) -> Sheet:
    """Configurations × tasks, and what each costs where that is asked for.

    The number of seeds stands in the caption where it is the same everywhere.
    """
    counts = {cell.summary.n for row in table.rows for cell in row.cells.values()}
    alike = len(counts) == 1
    over = "mean ± standard deviation over seeds (their number)"
    if alike:
        (count,) = counts
        over = "one seed" if count == 1 else f"mean ± standard deviation over {count} seeds"
    caption = f"{setting}, {table.split} split, in percent: {over}."
    head = ["Configuration", *(f"{task} ({table.score_names[task]})" for task in table.tasks)]
    if cost:
        caption += f" {COST_NOTE}"
        head += [name.capitalize() for name in COST_HEAD]
    blocks = []
    for title, rows in table.blocks.items():
        entries = []
        for row in rows:
            scores = [
                _entry(row.cells.get(task), alike, bold=(row.key, task) in table.bold) for task in table.tasks
            ]
            costs = [Entry(text) for text in cost_cells(row.cost)] if cost else []
            entries.append((row.label, (*scores, *costs)))
        blocks.append(Block(title if len(table.blocks) > 1 else "", tuple(entries)))
    return Sheet(tuple(head), tuple(blocks), caption, BEST)


def _entry(cell: ResultCell | None, alike: bool, *, bold: bool) -> Entry | None:
    if cell is None:
        return None
    mean = cell.summary
    beside = [] if mean.sd is None else [f"± {100 * mean.sd:.2f}"]
    if not alike:
        beside.append(f"({mean.n})")
    return Entry(f"{100 * mean.mean:.2f}", " ".join(beside), bold)


def published_rows(table: ResultTable) -> dict[str, dict[str, dict[str, Published]]]:
    """The dissertation's rows for what was trained and scored as there: block → name → task → figure."""
    by_block: dict[str, dict[str, dict[str, Published]]] = {}
    for block, rows in table.blocks.items():
        for row in rows:
            for task, cell in matching(row.config).items():
                if task in row.cells:
                    name = f"{cell.paradigm.upper()}, published (table {cell.table})"
                    by_block.setdefault(block, {}).setdefault(name, {})[task] = cell
    return by_block


def with_published(sheet: Sheet, table: ResultTable) -> Sheet:
    """This sheet of the table with the published rows at the end of each block, if there are any."""
    others = published_rows(table)
    if not others:
        return sheet
    blocks = []
    for block, title in zip(sheet.blocks, table.blocks, strict=True):
        rows = [
            (name, tuple(_published_entry(cells.get(task)) for task in table.tasks))
            for name, cells in others.get(title, {}).items()
        ]
        missing = (None,) * (len(sheet.head) - 1 - len(table.tasks))  # the columns of the cost
        blocks.append(replace(block, rows=(*block.rows, *((name, cells + missing) for name, cells in rows))))
    return replace(sheet, blocks=tuple(blocks), caption=f"{sheet.caption} Published: {CITATION}.")


def _published_entry(cell: Published | None) -> Entry | None:
    return None if cell is None else Entry(f"{cell.mean:.2f}", f"± {cell.sd:.2f}")


SCORE_COLUMNS = (
    "corpus", "fraction", "configuration", "encoder", "encoder_training", "task", "split", "score_name",
    "mean", "sd", "n", "low", "high", "best", "precision", "text", "runs",
)  # fmt: skip

COST_COLUMNS = ("models", "parameters", "trained_parameters", "peak_memory", "devices", "seconds")
"""What a configuration costs: its models' weights, bytes, the kinds of device, seconds per seed."""


def score_records(table: ResultTable, *, cost: bool = False) -> list[dict[str, object]]:
    """A record of SCORE_COLUMNS per configuration and task, scores in [0, 1]; with COST_COLUMNS on demand."""
    records = []
    for row in table.rows:
        for task in table.tasks:
            if task not in row.cells:
                continue
            cell = row.cells[task]
            record = {
                "corpus": row.config.corpus,
                "fraction": row.config.fraction,
                "configuration": row.name,
                "encoder": row.config.encoder,
                "encoder_training": row.config.encoder_training,
                "task": task,
                "split": table.split,
                "score_name": table.scored_by[task],
                **dataclasses.asdict(cell.summary),
                "best": (row.key, task) in table.bold,
                "precision": row.conditions.precision,
                "text": row.conditions.text,
                "runs": " ".join(map(str, cell.run_ids.values())),
            }
            records.append(record | (_cost_record(row.cost) if cost else {}))
    return records


def _cost_record(cost: Cost | None) -> dict[str, object]:
    if cost is None:
        return dict.fromkeys(COST_COLUMNS)
    values = (cost.models, cost.parameters, cost.trained, cost.memory, " ".join(cost.devices), cost.seconds)
    return dict(zip(COST_COLUMNS, values, strict=True))


def report_sheet(run: Run, score: StoredScore) -> Sheet:
    """One run's labels of one task, and their averages, in percent. Support counts what is annotated."""
    kind = kind_of(run.facts, score.task, score.score_name)
    of = "span type, as conlleval counts spans" if kind.has_spans else "label"
    return Sheet(
        (kind.row_title, "Precision", "Recall", "F1", "Support"),
        (
            Block("", tuple((label, _report_entries(row)) for label, row in score.report.items())),
            Block(
                "", tuple((f"{name} average", _report_entries(row)) for name, row in averages(score).items())
            ),
        ),
        f"{score.task} of run {run_name(run)}, {score.split} {kind.examples}, in percent by {of}.",
    )


def _report_entries(row: Mapping[str, float]) -> tuple[Entry, ...]:
    return (
        *(Entry(f"{100 * row[number]:.2f}") for number in REPORT_NUMBERS[:3]),
        Entry(f"{row['support']:.0f}"),
    )


REPORT_COLUMNS = ("run", "task", "split", "row", "label", *REPORT_NUMBERS)


def report_records(run: Run, score: StoredScore) -> list[dict[str, object]]:
    """A record of REPORT_COLUMNS per label and average, scores in [0, 1]. `row` is label, type or average."""
    title = kind_of(run.facts, score.task, score.score_name).row_title.lower()
    rows = [(title, label, row) for label, row in score.report.items()]
    rows += [("average", name, row) for name, row in averages(score).items()]
    return [
        {"run": run.id, "task": score.task, "split": score.split, "row": name, "label": label, **row}
        for name, label, row in rows
    ]


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, object]], delimiter: str = ",") -> str:
    """Values separated by commas, quoted where they must be, no cell a formula: a header, a line per record.

    Columns that a record lacks stay empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(map(spreadsheet_cell, columns))
    writer.writerows([spreadsheet_cell(record.get(column)) for column in columns] for record in records)
    return text.getvalue()


def markdown(sheet: Sheet) -> str:
    """A table as GitHub and most editors read it, the caption below."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [line(map(_escaped, sheet.head)), line(["---", *("---:" for _ in sheet.head[1:])])]
    for block in sheet.blocks:
        if block.title:
            lines.append(line([f"*{_escaped(block.title)}*", *("" for _ in sheet.head[1:])]))
        lines += [line(cells) for cells in cell_texts(block, _escaped, "**{}**", "–")]
    return "\n".join([*lines, "", _escaped(sheet.captioned())])


def cell_texts(block: Block, escape: Callable[[str], str], bold: str, missing: str) -> Iterator[list[str]]:
    """The cells of each row as text, its name first."""
    for name, entries in block.rows:
        cells = [escape(name)]
        for entry in entries:
            if entry is None:
                cells.append(missing)
                continue
            text = escape(entry.text)
            cells.append(f"{bold.format(text) if entry.bold else text} {escape(entry.beside)}".rstrip())
        yield cells


def _escaped(text: str) -> str:
    return "".join(f"\\{mark}" if mark in "\\|*`<[_$~" else mark for mark in " ".join(text.split()))


# One pass over the characters, so that what one replacement brings is not replaced again.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
        "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "−": "$-$", "λ": r"$\lambda$",
        "κ": r"$\kappa$", "×": r"$\times$", "→": r"$\rightarrow$", "–": "--", "·": r"$\cdot$",
    }
)  # fmt: skip


def latex(sheet: Sheet) -> str:
    r"""A table environment with booktabs' rules: needs \usepackage{booktabs}."""

    def row(cells: Iterable[str]) -> str:
        line = " & ".join(cells)
        # After the line before, these would be read as its options.
        return f"    {'{}' * line.startswith(('[', '*'))}{line} \\\\"

    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{tex(sheet.captioned())}}}",
        rf"  \begin{{tabular}}{{l{'r' * (len(sheet.head) - 1)}}}",
        r"    \toprule",
        row(map(tex, sheet.head)),
    ]
    for block in sheet.blocks:
        lines.append(r"    \midrule")
        if block.title:
            lines.append(row([rf"\multicolumn{{{len(sheet.head)}}}{{l}}{{\emph{{{tex(block.title)}}}}}"]))
        lines += [row(cells) for cells in cell_texts(block, tex, r"\textbf{{{}}}", "--")]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}"])


def tex(text: str) -> str:
    """Plain text as LaTeX on one line."""
    return " ".join(text.split()).translate(_LATEX)
