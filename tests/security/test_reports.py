"""Every report, in every format, with foreign markup in every text that is not ours: it stays text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from core.config import RunConfig
from core.plain_text import terminal_text
from core.records import SplitResult
from core.store import RunState, Store
from core.studies.dissertation import STUDY
from core.transfer.features import Features
from core.transfer.gains import measured_gains
from core.transfer.predictors import CROSS_VALIDATION, LEFT_OUT, Judgement, Measure
from jobs.cli.output import print_report
from jobs.reports.appendix import appendix
from jobs.reports.parts import Block, Code, Entry, Heading, Items, Part, Sheet
from jobs.reports.render import csv_files, latex, markdown, report_sheet, score_sheet
from jobs.reports.table import settings, tabulate
from jobs.reports.transfer import PairGroup
from jobs.studies.evidence import Evidence
from jobs.studies.pairs import pairs_report
from jobs.studies.report import report
from tests.making import OWNER, claimed, run_facts, task_score
from tests.security.hostile import FORMULAS, MARKUP
from tests.unit.test_dissertation import PRINTED, result

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
    run_id = claimed(store, corpus=text, tasks=(text, "ner"), **values)
    facts = run_facts(
        device=text, hardware=text, versions={text: text}, sizes={text: (1, 2), "test": (3, 4)}, notes=(text,)
    )
    tasks = (replace(facts.tasks[0], name=text, labels=(text, "VB")), facts.tasks[1])
    store.set_facts(run_id, replace(facts, tasks=tasks))
    for split in ("dev", "test"):
        labels = {text: {"precision": 1.0, "recall": 0.5, "f1": 0.5, "support": 2}}
        scores = (task_score(text, 0.5, report=labels), task_score("ner", 0.5))
        store.add_result(run_id, SplitResult(split, 1, scores, {}, {}))
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
    return run_id


def appendix_of(store: Store, text: str) -> Iterable[Part]:
    return appendix(store, [finished(store, text, encoder="./" + text.replace("+", "x")) for _ in "a"])


def results_of(store: Store, text: str) -> Iterable[Part]:
    runs = [store.run(finished(store, text))]
    scores, conditions = store.scores([runs[0].id]), store.conditions(runs)
    for setting, of_setting in settings(runs, conditions).items():
        yield score_sheet(tabulate(of_setting, scores, "test", conditions=conditions), setting.name)
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
    return pairs_report(text, PairGroup("", scored[0][0], gains, {}), known, {"ner": text})


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
