"""Filling the form from a preset, past runs or a link, and writing it as a link and as a command.

The link is written by hand instead of by `bind="query-params"`: bound widgets would leave a dozen parameters
on all other pages, and a key per corpus has no place in a link.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.config import OTHER, RunConfig
from core.config.task_groups import GROUPINGS, TASK_GROUPS
from core.config.typed import whole_number
from core.corpora import CATALOGUE
from core.corpora.catalogue.uploads import uploads
from core.corpora.loading import bases_of, derivation_of
from core.errors import ConfigError, CorpusError
from core.plain_text import shortened
from core.registry import BILSTM_SUFFIX, PREDICTED, has_bilstm, reads_words
from core.store import RunWithFacts, Store
from core.tasks import TaskKind
from dashboard.launch.draft import EXECUTION, FIELDS, START, Draft, cloned, draft_of, start_for
from dashboard.shared.selection import run_numbers
from jobs.queue.sweeps import WHOLE, corpora_of, given_values

OWN_DATA = "Your own data"
ALIGNMENT_FOLD = "launch_alignment_fold"
"""The key of the fold of the alignment, whether it is open."""
UPLOAD, FOLDER = "Upload files", "A folder on this machine"
OWN_HOW, OWN_FOLDER = "launch_own_how", "launch_own_folder"
UPLOADED = "launch_own_path"
"""The key of the widget that holds the folder of the chosen upload."""
MAPPING_KEPT = "launch_mapping_kept"
WRITTEN, GROUPS_WRITTEN = "written", "launch_groups_written"
"""The option for groups of tasks that are written out, and the key of the field that they are written in."""
_SOURCE = "launch_source"
_FITTED = "launch_fitted"
"""The corpus that the form was last fitted to, and what it held from then on, as `start_for` returned it."""

CLONE = "clone"
_SEEN = "launch_link"
"""The link last opened or written; the form that it stands for, None until that has been drawn; and what the
widgets held then.
"""
_MOST_NOTES = 10


def key_of(field: str) -> str:
    """The key of a field's widget."""
    return f"launch_{field}"


def tasks_key(corpus: str) -> str:
    """The key of the tasks' widget. One per corpus: the tasks of another one are another question."""
    return f"launch_tasks_{corpus}"


def columns_key(path: str) -> str:
    """The key of the widget for the names of a corpus's columns."""
    return f"launch_columns_{path}"


def fill(draft: Draft, runs: Sequence[int] = (), notes: Sequence[str] = ()) -> None:
    """Sets every widget from `draft`; fields that it does not set get their values in a fresh form.

    `runs` are those that it was cloned from, `notes` sentences on what could not be taken over.
    """
    state = st.session_state
    for name, given in {**START, **draft.lists}.items():
        state[key_of(name)] = given if isinstance(given, str) else list(given)
    for name in EXECUTION:
        state[key_of(name)] = getattr(draft, name)
    # A mapping is the option of that name, and its file apart.
    alignments = [alignment.partition(":") for alignment in state[key_of("alignment")]]
    state[key_of("alignment")] = [name for name, _, _ in alignments]
    for file in (file for _, _, file in alignments if file):
        state[MAPPING_KEPT] = file
    state.pop(ALIGNMENT_FOLD, None)
    if draft.corpus in CATALOGUE:
        state[key_of("corpus")] = draft.corpus
    else:
        # One derived from the catalogue stands among the corpora, and can be edited as a name of one's own.
        state[key_of("corpus")] = draft.corpus if _is_of_catalogue(draft.corpus) else OWN_DATA
        is_upload = draft.corpus in map(str, uploads())
        state[OWN_HOW] = UPLOAD if is_upload else FOLDER
        state[UPLOADED if is_upload else OWN_FOLDER] = draft.corpus
        state[columns_key(draft.corpus)] = ", ".join(draft.columns or ())
    named = draft.task_groups in GROUPINGS
    state[key_of(TASK_GROUPS)] = draft.task_groups if named else WRITTEN
    state[GROUPS_WRITTEN] = "" if named else draft.task_groups
    state.pop(tasks_key(draft.corpus), None)
    if draft.tasks:
        state[tasks_key(draft.corpus)] = list(draft.tasks)
    state[_SOURCE] = tuple(runs), tuple(notes)
    state[_FITTED] = draft.corpus, {}


def _is_of_catalogue(corpus: str) -> bool:
    """Whether the name is that of one corpus which is derived from the catalogue's alone."""
    try:
        is_single = corpora_of(corpus) == [corpus] and derivation_of(corpus) is not None
        return is_single and all(base in CATALOGUE for base in bases_of(corpus))
    except (ConfigError, CorpusError):  # shown where the name is read
        return False


def fill_in_pairs() -> None:
    """Sets the form to train each of its tasks alone and every two of them together, with five seeds.

    With a BiLSTM: over a frozen encoder alone, tasks share no trained weight.
    """
    values = {"paradigm": ["stl", "mtl"], "encoder": [f"minilm{BILSTM_SUFFIX}"], "seed": "1-5"}
    for name, given in {**values, TASK_GROUPS: "pairs"}.items():
        st.session_state[key_of(name)] = given


def fit_to(corpus: str, kinds: Sequence[TaskKind]) -> None:
    """Sets the unchanged fields for a newly chosen corpus with tasks of these kinds, by `start_for`.
    To be called before the widgets of these fields.
    """
    state = st.session_state
    fitted, before = state.get(_FITTED, ("", {}))
    if not kinds or corpus == fitted or PREDICTED in state[key_of("prior")]:  # that adds one task to a run
        return
    now = start_for(kinds)
    for name in before | now:
        if tuple(state[key_of(name)]) == before.get(name, START[name]):
            state[key_of(name)] = list(now.get(name, START[name]))
    state[_FITTED] = corpus, now


def fresh() -> None:
    """The form as on the first visit."""
    fill(Draft(corpus="demo"))


def use_own_data() -> None:
    """The form with the data question open for an upload, the rest as it is."""
    st.session_state[key_of("corpus")] = OWN_DATA
    st.session_state[OWN_HOW] = UPLOAD
    st.session_state.pop(_SOURCE, None)


def add_bilstm() -> None:
    """The form with a BiLSTM over each of its transformers, which MTL then shares."""
    encoders = st.session_state[key_of("encoder")]
    names = (
        encoder if reads_words(encoder) or has_bilstm(encoder) else f"{encoder}{BILSTM_SUFFIX}"
        for encoder in encoders
    )
    st.session_state[key_of("encoder")] = list(dict.fromkeys(names))


def use_minilm() -> None:
    """The form with MiniLM in place of its transformers, over which the BiLSTMs stay."""
    encoders = st.session_state[key_of("encoder")]
    names = (
        encoder if reads_words(encoder) else f"minilm{BILSTM_SUFFIX if has_bilstm(encoder) else ''}"
        for encoder in encoders
    )
    st.session_state[key_of("encoder")] = list(dict.fromkeys(names))


def filled_from() -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The runs that the form was last filled in from, and sentences on fields that were not copied."""
    source: tuple[tuple[int, ...], tuple[str, ...]] = st.session_state.get(_SOURCE, ((), ()))
    return source


def added_to(store: Store) -> RunWithFacts | None:
    """The run that the form adds a task to, by its number; None where it makes other runs."""
    state = st.session_state
    adds = (state[key_of("paradigm")], state[key_of("prior")]) == (["mrn"], [PREDICTED])
    number = whole_number(state[key_of("added_to")]) if adds else None
    return None if number is None else next(iter(store.runs_with_facts([number])), None)


def open_link(store: Store) -> None:
    """Fill the form in from the page's address, once per link. To be called before the widgets.

    An edit sent before the browser has the address of the edit before it brings an older address along. It is
    no new link, and the form stays as edited.
    """
    link = _link()
    seen, _, widgets = st.session_state.get(_SEEN, (None, None, {}))
    now = _widgets()
    edited = any(now[key] != widgets[key] for key in now.keys() & widgets.keys())
    if seen is not None and (not link or link == seen or edited):
        return
    st.session_state[_SEEN] = link, None, {}
    if not link:
        return
    draft, notes = draft_of(link)
    runs: tuple[int, ...] = ()
    if CLONE in link:
        named = {name: draft.lists[name] for name in draft.lists if name in link}
        draft, runs, missing = _clone(store, link[CLONE])
        draft = replace(draft, lists={**draft.lists, **named})
        notes = missing + notes
    fill(draft, runs, notes)


def _clone(store: Store, numbers: str) -> tuple[Draft, tuple[int, ...], tuple[str, ...]]:
    """The form of the runs with these ids, `12,13`; which of them it has, and sentences on the others."""
    ids = run_numbers(numbers)
    stored = {run.id: run for run in store.runs(ids=ids)}
    runs = [stored[run_id] for run_id in ids if run_id in stored]
    no_numbers = [part for part in map(str.strip, numbers.split(",")) if part and not run_numbers(part)]
    missing = [*(str(run_id) for run_id in ids if run_id not in stored), *no_numbers]
    notes = [f"There is no run {shortened(part)}." for part in missing[:_MOST_NOTES]]
    notes += [f"The description of run {run.id} can no longer be read." for run in runs if run.config_problem]
    notes += [
        f"Run {run.id} has imported predictions of {run.config.system}, with no training to repeat."
        for run in runs
        if run.config.paradigm == OTHER
    ]
    readable = [run for run in runs if run.config_problem is None and run.config.paradigm != OTHER]
    draft, differing = cloned([run.config for run in readable]) if readable else (Draft(corpus="demo"), ())
    return draft, tuple(run.id for run in readable), (*notes, *differing)


def write_link(draft: Draft) -> None:
    """Put the form into the page's address once it is edited. To be called after the widgets."""
    form, link = draft.query(), _link()
    seen, seen_form, _ = st.session_state[_SEEN]
    if link != seen or seen_form not in (None, form):
        others = {name: st.query_params.get_all(name) for name in st.query_params if name not in link}
        st.query_params.from_dict({**others, **form})
        link = form
    st.session_state[_SEEN] = link, form, _widgets()


def _widgets() -> dict[str, str]:
    """The values of the form's widgets, by key."""
    return {
        str(key): str(value)
        for key, value in st.session_state.items()
        if str(key).startswith(key_of("")) and key != _SEEN
    }


def _link() -> dict[str, str]:
    return {name: st.query_params[name] for name in (*FIELDS, CLONE) if name in st.query_params}


# The defaults of `mrnlab launch`.
_COMMAND_START = {
    **START,
    "paradigm": ("mrn",),
    "encoder": ("minilm",),
    "encoder_training": ("full",),
    "seed": "1",
}


def command(draft: Draft, runs: Sequence[RunConfig], queued: Sequence[RunConfig], *, reuse: bool) -> str:
    """The command that makes the runs of this form, one option a line.

    `queued` are the same runs with absolute paths, by which the command means the same in any folder.
    """
    absolute = {
        (name, getattr(run, name)): getattr(whole, name)
        for run, whole in zip(runs, queued, strict=True)
        for name in ("corpus", "encoder", "alignment", "vectors", "context_encoder")
    }
    corpus = absolute.get(("corpus", draft.corpus), draft.corpus)
    head, mark, lists = corpus.partition("?")
    if corpora_of(draft.corpus) != [draft.corpus] and "{" not in head:
        corpus = queued[0].corpus.partition("?")[0] + mark + lists
    used, lists = draft.used(), {}
    for name, given in used.lists.items():
        values = given_values(name, given)
        if name in WHOLE or values != given_values(name, _COMMAND_START[name]):
            lists[name] = [absolute.get((name, value), value) for value in values]
    options = [
        *replace(used, corpus=corpus, lists=lists).options(),
        *((f"--{name}", str(number)) for name in EXECUTION if (number := getattr(draft, name))),
    ]
    lines = [f"{option} {shlex.quote(value)}" for option, value in options]
    return " \\\n  ".join(["mrnlab launch", *lines, *(["--reuse"] if reuse else [])])
