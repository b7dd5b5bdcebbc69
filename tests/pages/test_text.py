"""What pages share: user text that stays text, names of configurations, and the runs chosen as chips."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.evaluation.statistics import summary
from core.figures import plotly_text
from core.results.naming import confounds, corpus_name, field_texts, shortest_names
from core.store import RunState, Store
from core.wording import (
    ago,
    all_of,
    duration,
    number,
    percent,
    plural,
    points,
    signed_points,
    unsigned_zero,
    without_shared,
)
from dashboard.components.sentence import marks
from dashboard.shared import resources, run_views
from dashboard.shared.downloads import written
from dashboard.text import coloured, escape, option, with_code
from dashboard.theme import TASK_COLOURS
from jobs.reports.parts import SIGNED, Entry, mean_entry
from tests.pages.conftest import (
    words,
)
from tests.pages.filled_store import TASKS, Filled
from tests.patience import PATIENCE_S

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Call `mrnlab doctor --fix`.", r"Call `mrnlab doctor --fix`\."),
        ("`a_b` and *c* and `d`", r"`a_b` and \*c\* and `d`"),
        ("one ` alone", r"one \` alone"),
        ("`` empty", r"\`\` empty"),
    ],
)
def test_code_in_our_sentences_stays_code(text: str, shown: str) -> None:
    assert with_code(text) == shown


@given(st.text())
def test_what_stands_beside_code_is_no_markdown(text: str) -> None:
    assert not MEANT.search(re.sub(r"(?<!\\)`[^`]+`", "", with_code(text)))


def test_names_in_tables_and_chips_do_not_break_at_hyphens() -> None:
    (drawn,) = AppTest.from_function(_table_of_tasks).run().get("html")
    texts = [*re.findall(">([^<]*-[^<]*)<", drawn.proto.body), coloured("pos-a", "#0072B2")]
    assert len(texts) == len(("pos-b (accuracy)", "pos-a", "higher-or-not", "coloured"))
    for text in texts:
        assert "-" in text
        assert all(after == "\u2060" for after in re.findall("-(.)", text)), text


def _table_of_tags() -> None:
    from dashboard.shared.downloads import show_table
    from jobs.reports.parts import Block, Sheet

    tag = '"><img src=x onerror=alert(1)>&lt;'
    sheet = Sheet.of((tag, tag), [(tag, tag)])
    show_table(Sheet(sheet.head, (Block(tag, sheet.blocks[0].rows),)), alt=tag)
    show_table(sheet, alt=tag)


def test_names_in_tables_are_no_html() -> None:
    drawn = AppTest.from_function(_table_of_tags).run().get("html")
    for body in (part.proto.body for part in drawn):
        assert body.count("&lt;img src=x onerror=alert(1)&gt;&amp;lt;") in (5, 6)
        assert set(re.findall("</?([a-z]+)", body)) <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert [body.count("<table") for body in (part.proto.body for part in drawn)] == [1, 1]


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
    numbers = (2e-4, 0.01, 16, -1.5e5, None, math.inf)
    assert list(map(number, numbers)) == ["2e-4", "0.01", "16", "-1.5e5", "–", "inf"]
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
    for name in ("pos", "named_entities", "MRN λ=0.01", "MTL − STL", "4 seeds, frozen", "ner-2", "名詞"):
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
        ("demo?dev=3", "demo (dev=3)"),
        ("apart:demo+/some/where/mine?tokens=2", "apart:demo+mine (tokens=2)"),
        ("C:\\corpora\\mine", "C:\\corpora\\mine"),
        ("hub:/some/where/mine", "mine"),
        (f"hub:nyu-mll/glue?config=cola&revision={'0123456789' * 4}", "glue (config=cola, revision=0123456)"),
        ("joined:hub:a/b?config=x+hub:c/d+demo&train=3", "joined:b (config=x+d+demo, train=3)"),
    ],
)
def test_a_corpus_is_named_without_the_paths_of_its_folders(corpus: str, name: str) -> None:
    assert corpus_name(corpus) == name


X, Y = "morphological_feature", "universal_dependencies"


def config(paradigm: str = "mrn", seed: int = 1, **more: object) -> RunConfig:
    tasks = more.pop("tasks", ("pos",) if paradigm == "stl" else TASKS)
    return RunConfig.build(corpus="demo", paradigm=paradigm, seed=seed, tasks=tasks, **more)


# Names


def test_names_have_what_differs_and_nothing_else() -> None:
    weak, strong = config("mrn", lambda_=0.01), config("mrn", lambda_=0.1)
    assert shortest_names([weak, config("mtl")]) == ["MRN λ=0.01", "MTL"]
    assert shortest_names([weak, strong]) == ["MRN λ=0.01", "MRN λ=0.1"]
    # Both λ are defaults, of one training and of another: their names are no sweep.
    frozen = config("mrn", encoder_training="frozen")
    assert shortest_names([weak, frozen]) == ["MRN λ=0.01 · full", "MRN λ=0.003 · frozen"]
    stl, mtl = config("stl", encoder_training="frozen"), config("mtl")
    assert shortest_names([stl, frozen]) == ["STL", "MRN λ=0.003"]
    plain = config("mtl", encoder_training="frozen")
    assert shortest_names([stl, mtl, plain, plain.with_(precision="fp32"), frozen]) == [
        "STL · frozen",
        "MTL · full",
        "MTL · frozen",
        "MTL · frozen · precision fp32",
        "MRN λ=0.003 · frozen",
    ]
    sweep = [config("mrn", lambda_=value) for value in (0.0003, 0.001, 0.03)]
    assert shortest_names(sweep) == ["MRN λ=0.0003", "MRN λ=0.001", "MRN λ=0.03"]
    shares = shortest_names([config("mtl"), config("mtl", fraction=0.05)])
    assert shares == ["MTL · 100% of the data", "MTL · 5% of the data"]
    plain, budget = config("mtl"), config("mtl", batch_tokens=512)
    assert shortest_names([plain, budget]) == ["MTL", "MTL · batch tokens 512"]
    assert confounds(config("mrn"), budget) == confounds(budget, config("mrn")) == ("batch_tokens",)
    assert confounds(config("mrn"), plain) == ()
    stack = config("mtl", encoder="lstm-d")
    ordered = stack.with_(task_order=("ner", "chunk", "pos"))
    assert shortest_names([stack, ordered]) == ["MTL", "MTL · task order ner, chunk, pos"]
    vectors = [stack.with_(vectors=f"/a/{folder}/vectors.txt") for folder in ("one", "two")]
    assert shortest_names(vectors) == ["MTL · vectors one/vectors.txt", "MTL · vectors two/vectors.txt"]
    long = stack.with_(vectors=f"/{'folder/' * 30}glove.txt")
    assert shortest_names([stack, long]) == ["MTL", "MTL · vectors glove.txt"]
    for other in (ordered, *vectors, stack.with_(head="crf"), stack.with_(capitals=False)):
        assert len(confounds(stack, other)) == 1


@pytest.mark.parametrize(
    ("lists", "names"),
    [
        (["pos,ner", "ner,pos", "ner"], ["pos, ner", "ner, pos", "ner"]),
        (["a,b,c,d", "a,b,c,d,e"], ["all but e", "5 tasks"]),
        (["a,b,c,d", "a,b,c,e"], ["all but e", "all but d"]),
        (["a,b,c,d", "b,a,c,d"], ["a, b, c, d", "b, a, c, d"]),
        ([f"{X}-case-{Y},{X}-mood-{Y}", f"{X}-case-{Y}"], ["case, mood", "case"]),
    ],
)
def test_lists_of_tasks_have_short_texts(lists: list[str], names: list[str]) -> None:
    assert field_texts("tasks", [tasks.split(",") for tasks in lists]) == names


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["pos", "pos-en"], ["pos", "pos-en"]),
        ([f"{X}-case-{Y}", f"{X}-mood-{Y}"], ["case", "mood"]),
        ([X, f"{X}-case"], ["feature", "feature-case"]),
        (["morphologicalfeature1", "morphologicalfeature2"], ["1", "2"]),
        (["a" * 30, "b" * 30], ["a" * 30, "b" * 30]),
        ([X], [X]),
        ([], []),
    ],
)
def test_long_names_lose_what_all_share(names: list[str], short: list[str]) -> None:
    assert without_shared(names) == dict(zip(names, short, strict=True))


def test_what_follows_from_the_encoder_is_no_difference_of_its_own() -> None:
    """Each encoder has its learning rate; one that is set to something else is named."""
    words, transformer = config("mtl", encoder="sc-lstm"), config("mtl", encoder="minilm")
    assert confounds(words, transformer) == ("encoder",)
    assert confounds(words, transformer, ("paradigm", "encoder")) == ()
    faster = transformer.with_(lr_encoder=1e-3)
    assert confounds(words, faster, ("paradigm", "encoder")) == ("lr_encoder",)


@pytest.mark.usefixtures("laboratory")
def test_colours_of_a_corpus_depend_on_no_other_corpus_and_outlive_its_runs() -> None:
    store = Store.open()
    store.add_runs([config("mtl").with_(corpus="other", tasks=("a", "ner", "b"))])
    given = resources.task_colours(TASKS)
    assert [given[task] for task in ("pos", "ner", "chunk")] == list(TASK_COLOURS[:3])
    ids = store.add_runs([config("mtl", tasks=TASKS[::-1])])
    store.delete_runs(ids)
    assert resources.task_colours() == given


# Runs


def test_what_patience_ended(filled: Filled) -> None:
    run = replace(
        Store.open().run(filled.live[0]), state=RunState.SUCCEEDED, step=120, total_steps=400, epoch=12.0
    )
    assert run_views.ended_early(run) == "epoch 12 of 8"
    assert run_views.ended_early(replace(run, step=400)) == ""
    assert run_views.ended_early(replace(run, state=RunState.CANCELLED)) == ""
    assert run_views.fraction_done(run) == 1.0


def test_progress(filled: Filled) -> None:
    store = Store.open()
    live, waiting = store.run(filled.live[0]), store.run(filled.queued[1])
    # 340 steps at 0.035 s
    assert run_views.progress_text(store, live) == "Step 260 of 600, epoch 4 of 8, 12 s left"
    store.pause_queue()
    paused = "The queue is paused: it starts when the queue is resumed."
    assert run_views.progress_text(store, waiting) == paused


def test_tasks_keep_their_colour_as_runs_are_added(finished: Filled) -> None:
    store = Store.open()
    before = run_views.tasks_in_order(store.runs())
    store.add_runs([config("stl", tasks=("upos",)), config("mtl", tasks=("ner", "upos"))])
    after = run_views.tasks_in_order(store.runs())
    assert before == list(TASKS)
    assert after[: len(before)] == before


def test_log_tail_is_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {i}\n" for i in range(5000)), encoding="utf-8")
    tail = run_views.log_tail(str(path))
    assert tail.endswith("line 4999\n")
    assert tail.startswith("line ")
    assert len(tail) <= 16_384
    assert run_views.log_tail(None) == run_views.log_tail(str(tmp_path / "none")) == ""


# The runs chosen, as chips


def _page() -> None:
    import streamlit as st

    from dashboard.shared.run_picker import pick_runs

    picked = pick_runs(key="x", suitable=lambda run: run.config.paradigm == "mrn")
    st.markdown("nothing" if picked is None else f"picked {[run.id for run in picked]}")


def _open(**query: str) -> AppTest:
    app = AppTest.from_function(_page, default_timeout=PATIENCE_S)
    app.query_params.update(query)
    return app.run()


def test_without_a_suitable_run_nothing_is_drawn(laboratory: Path) -> None:
    app = _open()
    assert words(app) == "nothing"
    assert not app.multiselect


def test_the_links_runs_are_picked_and_unsuitable_ones_left_out(finished: Filled) -> None:
    stl = next(run for run in finished.finished if run not in finished.mrn)
    first, second = finished.mrn[:2]
    app = _open(run=f"{second},{stl},{first}")
    assert words(app) == f"picked {[second, first]}"


def test_a_link_to_runs_that_are_gone_says_so_and_shows_no_others(finished: Filled) -> None:
    first, second = finished.mrn[:2]
    Store.open().delete_runs([first])
    app = _open(run=str(first))
    assert [warning.value for warning in app.warning] == [f"Run {first} was deleted."]
    assert "picked []" in words(app)
    app = _open(run=f"{first},99999,{second}")
    assert [warning.value for warning in app.warning] == [
        f"Run {first} was deleted. There is no run 99999 in this store."
    ]
    assert f"picked [{second}]" in words(app)
    app.multiselect(key="x").set_value([str(finished.mrn[2])]).run()
    assert not app.warning


def test_a_chip_stands_for_the_chosen_seeds_of_a_configuration(finished: Filled) -> None:
    store = Store.open()
    configuration = store.run(finished.mrn[0]).config
    first, second, third = store.add_runs([configuration.with_(epochs=77, seed=seed) for seed in (1, 2, 3)])
    (other,) = store.add_runs([configuration.with_(epochs=78)])
    app = _open(run=f"{second},{other},{first}")
    (chips,) = app.multiselect
    assert chips.value == [f"{second},{first}", str(other)]
    assert chips.options[:2] == ["MRN λ=0.01 · 77 epochs · 2 seeds", "MRN λ=0.01 · 78 epochs · seed 1"]
    app.multiselect(key="x").set_value([str(other), f"{third},{second},{first}"]).run()
    assert words(app) == f"picked {[other, third, second, first]}"
    assert app.query_params["run"] == f"{other},{third},{second},{first}"


def test_an_archived_run_is_offered_to_nobody_but_a_link_to_it_is_good(finished: Filled) -> None:
    run = finished.mrn[0]
    Store.open().archive([run])
    (chips,) = _open(run=str(finished.mrn[1])).multiselect
    assert not any(str(run) in option.split(",") for option in chips.value)
    assert words(_open(run=str(run))) == f"picked {[run]}"


def test_numbers_of_a_table_have_a_real_minus_and_no_sign_on_zero() -> None:
    frame = pd.DataFrame({"Label": ["a", "b", "c"], "Difference": [-1.234, -0.001, math.nan]})
    lines = written(frame, {"Difference": SIGNED, "p": SIGNED}).hide().to_string().splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["−1.23", "0.00", "–"]
