"""Tag: sentences, texts and pairs with every task's answers, of configurations side by side."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from core.tagging import text_of
from core.wording import plural, size
from dashboard.components.sentence import SentenceBlock, sentence
from dashboard.shared import resources
from dashboard.shared.live import live, rerun_when
from dashboard.shared.newcomers import try_it
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import chosen
from dashboard.shared.states import empty, end_page, problem, show_note, title
from dashboard.tag.answers import show_answers
from dashboard.tag.controls import (
    FILE,
    TEXT,
    bounded,
    input_kind,
    nothing_yet,
    placed_words,
    test_sentence,
    text,
)
from dashboard.tag.files import tag_file
from dashboard.tag.models import MOST_BYTES, answers, models, pending, reads_of, what_is_awaited
from dashboard.tag.seeds import (
    MOST_CONFIGURATIONS,
    MOST_SEEDS,
    asked_systems,
    configurations,
    repeats_sentence,
)
from dashboard.tag.views import has_model, without_model
from dashboard.text import escape

_LOOK_S = 1.0

title(
    "Tag",
    "Enter a text to see every task's answer, and where configurations disagree.",
)


def nothing_to_ask() -> None:
    """Draws the reason why no run can be asked, and the next step; the page goes on once one can."""
    runs = resources.store().runs()
    if reasons := without_model(runs):
        link = {"page": "runs/page.py", "label": "Runs", "icon": ":material/list_alt:"}
        empty("No model yet", "  \n".join(reasons), **link)
        known = resources.store().counts()
        rerun_when(lambda: resources.store().counts() != known)
    else:
        try_it("There is no trained model to tag with yet.")


picked = pick_runs(key="tag_runs", suitable=has_model, label="Models")
if picked is None:
    nothing_to_ask()
    end_page()
for reason in without_model(resources.store().runs(chosen())):
    show_note(reason)
shown = configurations(picked, resources.store().conditions(picked))
if not shown:
    st.caption("Choose at least one model.")
    end_page()
if repeats := repeats_sentence(picked, shown):
    show_note(repeats)
if len(shown) > MOST_CONFIGURATIONS:
    st.caption(f"The first {MOST_CONFIGURATIONS} of {len(shown)} configurations are shown.")
    shown = shown[:MOST_CONFIGURATIONS]
if (most := max(len(configuration.seeds) for configuration in shown)) > MOST_SEEDS:
    st.caption(f"Of up to {most} seeds of a configuration the first {MOST_SEEDS} are asked.")
systems, first = asked_systems(shown), picked[0]
checkpoints = {checkpoint: None for system in systems.values() for checkpoint in system.checkpoints}
kept = models().prepare(checkpoints)  # in the background, while the reader types
if kept < len(checkpoints):
    show_note(
        f"{kept} of {plural(len(checkpoints), 'model')} fit into the "
        f"{size(MOST_BYTES)} that Tag keeps loaded. The others are loaded again for each new text."
    )
reads = reads_of(shown)
kind = input_kind()


def ask() -> None:
    """Draws the input and its answers; typing runs only this part of the page again."""
    waited = pending()
    typed = text(reads) if kind == TEXT else test_sentence(systems, first)
    if not typed:
        nothing_yet(kind, shown[0].seeds[0], reads)
        return
    sentences = bounded(typed)
    words = tuple(asked.tokens for asked in sentences if not asked.whole)
    texts = tuple(text_of(asked) for asked in sentences if asked.whole)
    given = answers(shown, words, texts, patient=not waited)
    for reason in given.problems:
        problem(reason)
    if pending():
        if not waited:
            st.rerun()  # from now on this part draws itself again as answers come
        st.caption(f":material/progress_activity: {escape(what_is_awaited(given))}")
    if not given.answers and words:  # what is asked about, until the first model answers
        sentence([SentenceBlock(tokens, ()) for tokens in words], key="tagged")
    if given.answers:
        configs = {of.who: of.config for of in shown}
        show_answers(configs, sentences, given.answers, placed_words(kind, words))


if kind != FILE:
    live(ask, lambda: _LOOK_S if pending() else None, key="ask")
else:
    try:
        tag_file(systems)
    except MRNLabError as error:
        problem(str(error))
