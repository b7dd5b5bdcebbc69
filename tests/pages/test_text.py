"""User text on a page is text: no Markdown, no HTML, no shortcodes. Numbers and times in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.evaluation.statistics import summary
from core.figures import plotly_text
from core.wording import ago, all_of, duration, number, percent, plural, points, signed_points, unsigned_zero
from dashboard.components.sentence import marks
from dashboard.text import coloured, escape, option
from jobs.reports.naming import corpus_name
from jobs.reports.parts import SIGNED, Entry, mean_entry

MEANT = re.compile(r"(?<!\\)[*_`~\[\]<>#|$!]")


def seen(text: str) -> str:
    """What one sees of escaped text."""
    return text.replace("\\", "").replace("\u2060", "")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "**bold**",
        "`code`",
        "[a](javascript:x)",
        "$x^2$",
        "# head",
        "a | b",
        ":red[x]",
    ],
)
def test_escape_leaves_no_markdown(text: str) -> None:
    escaped = escape(text)
    assert not MEANT.search(escaped)
    assert seen(escaped) == text


@pytest.mark.parametrize(
    "text", [":smile:", ":material/home:", "https://x.org", "www.x.org", "a@b.org", "a -> b"]
)
def test_escape_breaks_what_streamlit_makes_of_plain_text(text: str) -> None:
    """These are replaced after Markdown is read, so a backslash does not help: a joiner must stand inside."""
    assert "\u2060" in escape(text)
    assert seen(escape(text)) == text


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_escape_changes_nothing_one_can_see(text: str) -> None:
    plain = seen(text)
    assert seen(escape(plain)) == " ".join(plain.split())


def _table_of_tasks() -> None:
    from dashboard.shared.downloads import show_table
    from jobs.reports.parts import Sheet

    show_table(Sheet.of(("Task", "pos-b (accuracy)"), [("pos-a", "higher-or-not")], ""), alt="Scores")


def test_names_in_tables_and_chips_do_not_break_at_hyphens() -> None:
    frame = AppTest.from_function(_table_of_tasks).run().table[0].value
    texts = [*frame.index, *frame.columns, *frame.to_numpy().ravel(), coloured("pos-a", "#0072B2")]
    for text in texts:
        assert "-" in text
        assert all(after == "\u2060" for after in re.findall("-(.)", text)), text


def test_plotly_text_holds_no_tag_and_no_template() -> None:
    assert plotly_text("<b>%{x}</b>\n&") == "&lt;b>%\u2060{x}&lt;/b> &amp;"


def test_times_in_words() -> None:
    seconds = (None, float("nan"), 0.4, 40, 240, 7500, 7200)
    assert list(map(duration, seconds)) == ["–", "–", "under 1 s", "40 s", "4 min", "2 h 5 min", "2 h"]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert ago(None) == "never"
    assert ago(now - timedelta(seconds=2), now) == "just now"
    assert ago(now - timedelta(seconds=70), now) == "70 s ago"


def test_numbers_in_words() -> None:
    assert (number(2e-4), number(0.01), number(16), number(None)) == ("2e-4", "0.01", "16", "–")
    assert (percent(0.91666), percent(None), percent(float("nan"))) == ("91.67", "–", "–")
    assert (signed_points(0.0031), signed_points(-0.0031)) == ("+0.31", "−0.31")
    assert (plural(1, "run"), plural(1200, "run")) == ("1 run", "1,200 runs")
    assert (all_of([]), all_of(["a"]), all_of(["a", "b", "c"])) == ("", "a", "a, b and c")


def test_marks_of_spans() -> None:
    cells = marks(("B-PER", "I-PER", "O", "I-LOC"), "iob2")
    assert [(c.text, c.inside, c.start, c.end) for c in cells] == [
        ("PER", True, True, False),
        ("PER", True, False, True),
        ("", False, False, False),
        ("LOC", True, True, True),
    ]
    assert [cell.text for cell in marks(("NN", "<b>"), "plain")] == ["NN", "<b>"]


def test_names_are_choices_as_they_are_unless_they_have_a_meaning() -> None:
    for name in ("pos", "named_entities", "MRN 0.01", "MTL − STL", "4 seeds, frozen", "ner-2", "名詞"):
        assert option(name) == name
    marked = ("**a**", "_a_", "a _b_ c", "[a](b)", "<b>", "$x$", ":red[a]", "`a`")
    for name in (*marked, "www.a.b", "a@b.c", "a--b"):
        assert option(name) == escape(name) != name


def test_nothing_prints_a_negative_zero() -> None:
    tiny = -0.00001
    assert signed_points(tiny) == signed_points(-0.0) == "0.00"
    assert (str(points(tiny)), str(unsigned_zero(-0.04, 1)), unsigned_zero(-0.06, 1)) == ("0.0", "0.0", -0.06)
    assert [mean_entry(summary([-0.001, 0.0])).text, Entry(-tiny / 10, form=SIGNED).text] == ["0.00", "0.00"]


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        ("demo", "demo"),
        ("/some/where/mine", "mine"),
        ("demo?dev=3", "demo?dev=3"),
        ("apart:demo+/some/where/mine?tokens=2", "apart:demo+mine?tokens=2"),
        ("C:\\corpora\\mine", "C:\\corpora\\mine"),
        ("hub:/some/where/mine", "mine"),
        (f"hub:nyu-mll/glue?config=cola&revision={'0123456789' * 4}", "glue?config=cola&revision=0123456"),
        ("joined:hub:a/b?config=x+hub:c/d+demo&train=3", "joined:b?config=x+d+demo&train=3"),
    ],
)
def test_a_corpus_is_named_without_the_paths_of_its_folders(corpus: str, name: str) -> None:
    assert corpus_name(RunConfig.build(corpus=corpus, tasks="ner", paradigm="stl")) == name
