"""Formulas in CSV files and commands to terminals, in labels, words, names and notes."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.corpora.types import Sentence
from core.errors import FIELD, ConfigError, MRNLabError
from core.mrn.alignments.mapping import parse_mapping, template
from core.paths import log_path
from core.plain_text import shortened, spreadsheet_cell, terminal_text, unguarded_cell
from core.tagging import TextAnswer, tab_separated, text_table
from jobs.cli.app import app
from jobs.reports.render import csv_text
from tests.pages.filled_store import Filled
from tests.security.hostile import COMMANDS, FORMULAS

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
    """A store whose labels, tasks, notes and launches hold escape sequences, as the verbs tell it."""
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
