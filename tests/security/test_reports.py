"""Foreign markup, formulas and commands to terminals in reports, tables and messages: they stay text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from core.config import RunConfig
from core.corpora.types import Sentence
from core.errors import FIELD, ConfigError, MRNLabError
from core.events import SplitResult
from core.mrn.alignments.mapping import parse_mapping, template
from core.paths import log_path
from core.plain_text import shortened, spreadsheet_cell, terminal_text, unguarded_cell
from core.results.samples import group_by_data
from core.results.table import tabulate
from core.store import Store
from core.studies.dissertation import STUDY
from core.tagging import TextAnswer, tab_separated, text_table
from core.transfer.features import Features
from core.transfer.gains import measured_gains
from core.transfer.predictors import CROSS_VALIDATION, LEFT_OUT, Judgement, Measure
from jobs.cli.app import app
from jobs.cli.output import print_report
from jobs.reports.appendix import appendix
from jobs.reports.parts import Block, Code, Entry, Heading, Items, Part, Sheet
from jobs.reports.render import csv_files, csv_text, latex, markdown, report_sheet, score_sheet
from jobs.reports.transfer import PairGroup
from jobs.studies.evidence import Evidence
from jobs.studies.pairs import pairs_report
from jobs.studies.report import report
from tests import making
from tests.making import run_facts, task_score
from tests.pages.filled_store import Filled
from tests.security.hostile import COMMANDS, FORMULAS, MARKUP
from tests.studying import PRINTED, result

HARMLESS = "plain"
HOSTILE = [
    r"\end{verbatim}\input{/etc/passwd}", r"\end{flushleft}\write18{id}", r"^^5cinput{x} %&$#_{}~",
    "```\n# Title\n<script>x</script>\n```", "~~~~", "`````` `x`", "a\n```\n\n## b\n\n- c", "# Title #",
    "[1ex]", "*[2cm]", "> quoted", "- item", "1. item", "12) item", "---", "+ item",
    "| cell | cell |\n|---|---|",
    "<!-- hidden", "&lt;b&gt; &#60;", "![picture](https://evil.example/p.png)", "**bold** _x_ $x$ ~~y~~",
    "x\r```\r# Title", "two  spaces", "''--,,``?`", "\u202egnp", MARKUP, *FORMULAS,
]  # fmt: skip


def finished(store: Store, text: str, **values: Any) -> int:
    """A run whose corpus, task, labels, device and versions have this text as their name."""
    facts = run_facts(
        device=text, hardware=text, versions={text: text}, sizes={text: (1, 2), "test": (3, 4)}, notes=(text,)
    )
    tasks = (replace(facts.tasks[0], name=text, labels=(text, "VB")), facts.tasks[1])
    labels = {text: {"precision": 1.0, "recall": 0.5, "f1": 0.5, "support": 2}}
    scores = (task_score(text, 0.5, report=labels), task_score("ner", 0.5))
    results = [SplitResult(split, 1, scores, {}, {}) for split in ("dev", "test")]
    run = making.config(corpus=text, tasks=(text, "ner"), **values)
    return making.finished(store, run, replace(facts, tasks=tasks), *results)


def appendix_of(store: Store, text: str) -> Iterable[Part]:
    return appendix(store, [finished(store, text, encoder="./" + text.replace("+", "x")) for _ in "a"])


def results_of(store: Store, text: str) -> Iterable[Part]:
    runs = [store.run(finished(store, text))]
    scores, conditions = store.scores([runs[0].id]), store.conditions(runs)
    for group, of_group in group_by_data(runs, conditions).items():
        yield score_sheet(tabulate(of_group, scores, "test", conditions=conditions), group.name)
    for score in store.scores([runs[0].id], "test"):
        yield report_sheet(runs[0], score)


def pairs_of(_store: Store, text: str) -> Iterable[Part]:
    def run(paradigm: str, *tasks: str) -> RunConfig:
        return RunConfig.build(corpus=text, tasks=tasks, paradigm=paradigm, seed=1)

    scored = [(run("stl", text), {text: 0.5}), (run("stl", "ner"), {"ner": 0.5})]
    gains = measured_gains([*scored, (run("mtl", text, "ner"), {text: 0.6, "ner": 0.4})])
    half = Measure(0.5, 0.1)
    judged = tuple(
        Judgement(text, scheme, 2, 1, half, half, half, half, 0.5, 1.0)
        for scheme in (CROSS_VALIDATION, LEFT_OUT)
    )
    known = Evidence({text: Features({}, (text,))}, {}, (), judged, {}, (), None)
    return pairs_report(text, PairGroup("", scored[0][0], gains, {}, {}), known, {"ner": text})


def study_of(_store: Store, text: str) -> Iterable[Part]:
    study = replace(STUDY, protocol=text)
    found = result(study, "table1", scores=PRINTED)
    methods = [replace(each, method=replace(each.method, title=text)) for each in found.outcomes[:1]]
    return report(
        study,
        [
            replace(
                found, setting=replace(found.setting, title=text), outcomes=(*methods, *found.outcomes[1:])
            )
        ],
    )


def every_part(text: str) -> list[Part]:
    """A report of each kind of part."""
    row = (text, (Entry(text, (0.1,), 3, bold=True), Entry(1.0), None))
    sheet = Sheet((text, text, text, "ner"), (Block("", (row,)), Block(text, (row,))), text, text)
    return [Heading(text), text, Heading(text, 3, text), Items((text, text)), sheet, Code((text, text))]


REPORTS: dict[str, Callable[[Store, str], Iterable[Part]]] = {
    "appendix": appendix_of,
    "results": results_of,
    "transfer": pairs_of,
    "study": study_of,
}


@pytest.fixture
def store(laboratory: Path) -> Store:
    return Store.open()


def in_markdown(parts: Iterable[Part]) -> list[Any]:
    """The blocks and what is in them, without the words."""
    blocks = (
        MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse("\n\n".join(map(markdown, parts)))
    )
    return [(block.type, [each.type for each in block.children or ()]) for block in blocks]


# What stands for marks that LaTeX would obey.
_SHOWN = re.compile(
    r"\\text(?:backslash|ascii(?:tilde|circum|grave)|less|greater|bar|quotesingle)\{\}|\\[&%$#_{}]|\$-\$|(?<=[-,])\{\}"
)


def in_latex(parts: Iterable[Part]) -> list[str]:
    """All that LaTeX obeys."""
    written = "\n\n".join(map(latex, parts)).replace(r"% \usepackage{booktabs}", "")
    assert not re.search(r"\\\\\s*[\[*]", written)  # an option of the end of a line
    # Lines and spaces of code, then marks.
    bare = _SHOWN.sub("x", written.replace("\\\\{}\n", " ").replace("\\ ", " "))
    # What stands first in a row is shielded from the end of the row before.
    bare = re.sub(r"^    \{\}(?=[\[*])", "    ", bare, flags=re.MULTILINE)
    return re.findall(r"\\(?:begin|end)\{[a-z]+\}|\\[a-zA-Z]+\*?|\\.|[{}$&#%^~_]", bare)


def in_csv(parts: Iterable[Part]) -> list[list[int]]:
    """The shape of the tables, none of whose cells may be a formula."""
    tables = [list(csv.reader(io.StringIO(text, newline=""))) for _, text in csv_files("study", parts)]
    for cell in (cell for table in tables for row in table for cell in row):
        assert cell not in FORMULAS
    return [[len(row) for row in table] for table in tables]


FORMATS: dict[str, Callable[[Iterable[Part]], Any]] = {
    "markdown": in_markdown,
    "latex": in_latex,
    "csv": in_csv,
}


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("format_", FORMATS)
def test_a_part_is_built_alike_whatever_its_texts_are(format_: str, text: str) -> None:
    assert FORMATS[format_](every_part(text)) == FORMATS[format_](every_part(HARMLESS))


@pytest.mark.parametrize("text", ["\\end{verbatim}\\input{/etc/passwd}", "```\n# Title\n| cell |\n", MARKUP])
@pytest.mark.parametrize("of", REPORTS)
def test_a_report_is_built_alike_whatever_the_names_are(
    store: Store, of: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = list(REPORTS[of](store, text))
    store.delete_runs([run.id for run in store.runs()])
    plain = list(REPORTS[of](store, HARMLESS))
    for built in FORMATS.values():
        assert built(parts) == built(plain)
    print_report(parts)
    assert not [mark for mark in capsys.readouterr().out if mark != "\n" and not mark.isprintable()]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_texts_and_code_as_they_are(text: str) -> None:
    parse = MarkdownIt("commonmark").enable("table").parse
    (_, paragraph, _) = parse(markdown(text))
    shown = "".join(each.content for each in paragraph.children or ())
    assert shown == terminal_text(" ".join(text.split()))
    (block,) = parse(markdown(Code((text,))))
    assert block.content == terminal_text(text) + "\n"


LABELS = [
    *("-LRB-", "O", "B-PER", "=A", "-1.5", "1e-05", "-1e+05"),
    *("-", "+", "=", "--", "$", "''", "``", ":", "#"),
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(csv_text(["label"], [{"label": text}]), newline=""))
    cell = row["label"]
    assert cell != text
    assert unguarded_cell(cell) == text
    assert csv_text(["label"], [{"label": "\r=WEBSERVICE(A1)"}]) == "label\n '=WEBSERVICE(A1)\n"
    # Wherever a spreadsheet lets a cell begin, it begins with an apostrophe.
    signs = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
    assert not [part for part in cell.replace("\t", ";").split(";") if part.lstrip().startswith(signs)]


@pytest.mark.parametrize("value", [*LABELS, -1.5, 3, None, True])
def test_labels_of_corpora_and_numbers_stay_as_they_are(value: object) -> None:
    assert spreadsheet_cell(value) is value


@given(st.text(alphabet="=+-@'a1;\t(|! \"", max_size=12))
def test_a_guarded_cell_can_be_read_back(text: str) -> None:
    assert unguarded_cell(str(spreadsheet_cell(text))) == text


@given(st.lists(st.sampled_from([*FORMULAS[:5], *LABELS, "'=HYPERLINK(A1)"]), min_size=1, unique=True))
def test_a_mapping_of_hostile_labels_comes_back_from_its_template(labels: list[str]) -> None:
    read = parse_mapping(template([("=cmd|'x'!A0", labels)]).encode(), "mapping.csv")
    assert [(row.task, row.label, row.general) for row in read.rows] == [
        ("=cmd|'x'!A0", label, label) for label in labels
    ]


def test_no_answered_file_holds_a_formula() -> None:
    formula = "=cmd|1!A0"
    text = Sentence((formula,), {"mood": (formula,)}, whole=True)
    answer = {"mood": TextAnswer(formula, ((formula, 0.5),))}
    header, row, _ = tab_separated(text_table([text], [answer], confidence=True)).split("\n")
    assert header == "text\tmood_gold\tmood\tmood_confidence"
    assert row == f"'{formula}\t'{formula}\t'{formula}\t0.5000"
    assert {unguarded_cell(cell) for cell in row.split("\t")} == {formula, "0.5000"}


def test_a_terminal_is_not_commanded() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x00\x08\rover \u202egnp.exe"
    assert terminal_text(hostile) == r"\x1b]0;owned\x07\x1b[2J\x9b31mred\x00\x08\x0dover \u202egnp.exe"
    assert terminal_text("naïve\tλ → 名\nnext\r\n") == "naïve\tλ → 名\nnext\n"
    assert not [mark for mark in terminal_text("".join(map(chr, range(256)))) if _commands(mark)]


def _commands(mark: str) -> bool:
    return mark not in "\n\t" and (ord(mark) < 32 or 127 <= ord(mark) < 160)


def test_no_verb_commands_the_terminal(hostile_store: Filled) -> None:
    """A store whose labels, tasks, notes and sweeps hold escape sequences, as the verbs tell it."""
    run = str(hostile_store.mrn[0])
    log_path(hostile_store.mrn[0]).write_text(f"a line {COMMANDS}\n")
    printed = ""
    for verb in (["runs"], ["show", run, "--log", "3"], ["results"], ["relations", run, "--numbers"]):
        done = CliRunner().invoke(app, verb, color=True)  # without colours, Typer would take sequences out
        assert done.exit_code == 0, done.output
        assert not [mark for mark in done.output if _commands(mark)]
        printed += done.output
    assert r"\x1b]0;owned\x07\x9b2J" in printed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:PW@host/db?sslpassword=PW", "postgresql://me:***@host/db?sslpassword=***"),
        ("There is no corpus 'apart:/data/a?tokens=300'.", "There is no corpus 'apart:/data/a?tokens=300'."),
        (f"'{'9' * 6000}' is no number.", f"'{'9' * 100}… (6,000 characters)' is no number."),
        (f"no '{'ab, ' * 900}'; name one.", f"no '{'ab, ' * 25}… (3,600 characters)'; name one."),
    ],
)
def test_a_message_has_no_password_and_no_long_value(text: str, shown: str) -> None:
    assert str(MRNLabError(text)) == shown
    assert ConfigError("corpus", f"{FIELD}: {text}").sentence("Corpus") == f"Corpus: {shown}"
    assert len(str(MRNLabError("word " * 5000))) < 2000
    assert "hunter2" not in shortened(f"postgresql+psycopg://mrnlab:hunter2@{'h' * 60}/db")
