"""Tables to paste: what LaTeX would choke on, what Markdown would misread, and CSV that reads back."""

from __future__ import annotations

import csv
import io
import math

import pytest

from core.evaluation.comparison import HIGHER, LOWER
from jobs.reports.parts import SIGNED, Block, Entry, Sheet
from jobs.reports.render import csv_text, latex, markdown, sheet_csv

NASTY = r"50% _a_ & b$ #1 {x} ~^\end | *b* <i> `c` [d](e) λ ± −"


def sheet(name: str = NASTY, bold: bool = True) -> Sheet:
    row = (name, (Entry(91.2, (0.1,), bold=bold), None))
    return Sheet(("Configuration", "ner (F1)", name), (Block("", (row,)), Block(name, (row,))), name)


def test_latex_is_a_booktabs_table() -> None:
    lines = latex(sheet("MRN λ 0.01")).splitlines()
    assert [line.strip() for line in lines] == [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\caption{MRN $\lambda$ 0.01}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"Configuration & ner (F1) & MRN $\lambda$ 0.01 \\",
        r"\midrule",
        r"MRN $\lambda$ 0.01 & \textbf{91.20} $\pm$ 0.10 & -- \\",
        r"\midrule",
        r"\multicolumn{3}{l}{\emph{MRN $\lambda$ 0.01}} \\",
        r"MRN $\lambda$ 0.01 & \textbf{91.20} $\pm$ 0.10 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_csv_reads_back() -> None:
    records: list[dict[str, object]] = [{"name": NASTY, "mean": 0.5}, {"name": 'a, "b"\nc', "mean": None}]
    read = list(csv.DictReader(io.StringIO(csv_text(["name", "mean"], records))))
    assert [row["name"] for row in read] == [NASTY, 'a, "b"\nc']
    assert [row["mean"] for row in read] == ["0.5", ""]


@pytest.mark.parametrize(
    ("entry", "in_markdown", "in_csv"),
    [
        (Entry(91.2, (0.1,), 5, "%"), "91.20 ± 0.10 (5)", {"x (%)": "91.20", "x ±": "0.10", "x n": "5"}),
        (Entry(90.0, (0.1,), verdict="above", is_quoted=True), "90.00 ± 0.10, ours above",
         {"x": "90.00", "x ±": "0.10", "x verdict": "above"}),
        (Entry(-0.314, (-1.0, 0.001), unit="points", verdict=LOWER, form=SIGNED), r"*−0.31* \[−1.00, 0.00]",
         {"x (points)": "-0.31", "x low": "-1.00", "x high": "0.00", "x verdict": LOWER}),
        (Entry(1.2, verdict=HIGHER, form=SIGNED), "**+1.20**", {"x": "+1.20", "x verdict": HIGHER}),
        (Entry(math.nan, unit="%"), "–", {"x (%)": ""}),
        (Entry(16490, form=","), "16,490", {"x": "16490"}),
        (Entry("− 5 [1, 2] lower"), r"− 5 \[1, 2] lower", {"x": "− 5 [1, 2] lower"}),
        (None, "–", {"x": ""}),
    ],
)  # fmt: skip
def test_an_entry_is_written_by_each_format(
    entry: Entry | None, in_markdown: str, in_csv: dict[str, str]
) -> None:
    made = Sheet.of(("name", "x"), [("a", entry)])
    assert markdown(made).splitlines()[-1] == f"| a | {in_markdown} |"
    assert list(csv.DictReader(io.StringIO(sheet_csv(made)))) == [{"name": "a"} | in_csv]


def test_verdicts_are_written_where_the_table_says_so() -> None:
    entry = Entry(1.2, (0.4, 2.0), verdict=HIGHER, form=SIGNED)
    assert r"| +1.20 \[+0.40, +2.00] higher |" in markdown(
        Sheet.of(("name", "x"), [("a", entry)], writes_verdicts=True)
    )
