"""Tag: a sentence, with every task's labels."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from dashboard import resources
from dashboard.components import sentence
from dashboard.panels.tag_parts import answers_table, blocks, taggable, words_of
from dashboard.panels.try_it import try_it
from dashboard.queries.naming import run_name
from dashboard.selection import choose_runs
from dashboard.states import empty, problem, title

title("Tag", "Type a sentence and see every task's labels, with how sure the run is of each.")
store = resources.store()
offered = taggable(store)

if not offered:
    try_it("No finished run yet, so nothing to tag with. One click trains five.")
    st.stop()

names = {run.id: run_name(run) for run in offered}
runs = choose_runs(offered, names, key="tag_runs", label="Runs to ask", instead=[offered[0].id])
with st.form("tag", border=False):
    text = st.text_input(
        "Sentence",
        value=st.query_params.get("text", ""),
        max_chars=2000,
        placeholder="John Smith of the World Bank flew to Paris on Monday .",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        split = st.toggle(
            "Already split into words",
            value=st.query_params.get("split") == "yes",
            help="On: words stand between spaces. Off: punctuation is split off for you.",
        )
        asked = st.form_submit_button("Tag", type="primary", icon=":material/sell:")

if asked:
    st.query_params["text"], st.query_params["split"] = text, "yes" if split else "no"

words = words_of(text, split)
if not runs:
    st.caption("Choose at least one run.")
    st.stop()
if not words:
    empty(
        "A sentence, please",
        "Type or paste one above and press Tag. The first answer takes a few seconds while the "
        "run's checkpoint is loaded; after that it is at once.",
    )
    st.stop()

answers = []
for run in runs[:4]:
    try:
        tagger = resources.tagger(run.checkpoint or "")
        answers.append((run, tagger.schemes, tagger.tag([words])[0]))
    except MRNLabError as error:
        problem(f"Run {run.id}: {error}")
if len(runs) > 4:
    st.caption("The first four runs are asked.")

if answers:
    sentence(blocks(answers, resources.task_order()), key="tagged")
    st.caption(
        "Point at a label for the run's confidence and its next choices. "
        + ("Outlined: where a run differs from the first." if len(answers) > 1 else "")
    )
    with st.expander("Confidences and alternatives", icon=":material/table_rows:"):
        answers_table(answers)
