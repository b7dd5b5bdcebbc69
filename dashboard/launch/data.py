"""The data question of the form: a corpus of the catalogue, an upload, or a folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd
import streamlit as st

from core.config.fields import comma_list
from core.corpora import CATALOGUE, CorpusSummary, Task, summarise
from core.corpora.catalogue.hub import HubName, is_hub
from core.corpora.catalogue.names import find_folder, is_local, offered
from core.corpora.derived import RECIPES
from core.corpora.loading import bases_of, derivation_of, proposed_columns, tasks_of
from core.corpora.readers.conll_names import ColumnProposal
from core.corpora.reading import guessed
from core.corpora.summary import found_columns
from core.corpora.types import Sentence, Split
from core.errors import ConfigError, CorpusError
from core.tasks import KINDS, TaskKind
from core.wording import all_of, capitalised, plural, without_shared
from dashboard.components.charts import chart
from dashboard.components.sentence import (
    Lane,
    Said,
    SentenceBlock,
    TextBlock,
    lane_kind,
    marks,
    sentence,
    texts,
)
from dashboard.launch.address import (
    FOLDER,
    OWN_DATA,
    OWN_FOLDER,
    OWN_HOW,
    UPLOAD,
    columns_key,
    key_of,
    use_own_data,
)
from dashboard.launch.charts import numbers_by_split, spread_chart
from dashboard.launch.uploads import uploaded
from dashboard.shared.downloads import data_table
from dashboard.shared.newcomers import fold
from dashboard.shared.readings import show_reading
from dashboard.shared.states import show_note
from dashboard.text import coloured, escape
from jobs.queue.sweeps import corpora_of

_SAMPLE_WORDS = 80
GREY = "#8A939B"
_LABELS_HEIGHT = 246
_OWN_HELP = "CoNLL, lists of words, spans of annotation tools, texts and pairs. Nothing leaves this machine."


@dataclass(frozen=True)
class ChosenData:
    """The corpus with its columns (CoNLL files only) and tasks, and its summary or the reason for none.
    If `corpus` names several, the tasks of all and the summary of one.
    """

    corpus: str
    columns: tuple[str, ...] | None
    tasks: tuple[str, ...]
    summary: CorpusSummary | None
    error: str | None

    @property
    def kinds(self) -> tuple[TaskKind, ...]:
        """The kinds of its tasks; for a corpus not read yet, the kinds in the catalogue."""
        if self.summary is not None:
            return tuple(KINDS[task.scheme] for task in self.summary.tasks)
        layout = CATALOGUE[self.corpus].hub_texts if self.corpus in CATALOGUE else None
        return () if layout is None else (KINDS[layout.scheme],)


def choose_data() -> ChosenData:
    """The widgets of the data question."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width="stretch"):
            names = [*offered(), OWN_DATA]
            chosen = st.session_state.get(key_of("corpus"), OWN_DATA)
            names += [chosen] * (chosen not in names)  # derived from others, by a link
            name = st.selectbox("Corpus", names, key=key_of("corpus"), persist_state="session")
        st.button("Use my data", icon=":material/upload_file:", help=_OWN_HELP, on_click=use_own_data)
    if name == OWN_DATA:
        return _own()
    if name not in CATALOGUE:
        return _named(name)
    spec = CATALOGUE[name]
    st.caption(escape(spec.description))
    if not is_local(name):
        st.caption(
            f"Comes from the Hugging Face Hub, or from {_folders(spec.hub_folders)} under `MRNLAB_DATA`."
        )
        if not st.toggle(
            "Look inside", key=f"launch_look_{name}", help="Reads the corpus, over the network if need be."
        ):
            return ChosenData(name, None, spec.tasks, None, None)
    return _summarised(name, None, spec.tasks)


def _folders(names: Sequence[str]) -> str:
    quoted = all_of([f"`{name}`" for name in names])
    return f"the folders {quoted}" if len(names) > 1 else f"a folder {quoted}"


def _own() -> ChosenData:
    st.session_state.setdefault(OWN_HOW, UPLOAD)
    how = st.segmented_control(
        "Where is it",
        [UPLOAD, FOLDER],
        required=True,
        key=OWN_HOW,
        persist_state="session",
        label_visibility="collapsed",
    )
    try:
        path = uploaded() if how == UPLOAD else _folder()
    except CorpusError as error:
        return ChosenData("", None, (), None, str(error))
    return ChosenData("", None, (), None, None) if path is None else _named(path)


def _named(path: str) -> ChosenData:
    """The corpus, or the corpora, of that name, which is none of the catalogue."""
    try:
        corpora = corpora_of(path)
        if corpora == [path] and is_hub(path) and derivation_of(path) is None:
            return _summarised(_with_columns(path), None, ())
        if corpora == [path] and derivation_of(path) is None:
            columns, proposal = _columns(path)
            is_guess = proposal is not None and proposal.guessed and columns in (None, proposal.columns)
            data = _summarised(path, columns, (), is_guess=is_guess)
            if data.error and proposal is not None:
                _first_words(proposal, columns)
            return data
        bases = {base for corpus in corpora for base in bases_of(corpus)}
        columns = _columns_of_bases(path, bases)
        tasks = {corpus: tasks_of(corpus, columns) for corpus in corpora}
    except (ConfigError, CorpusError) as error:
        sentence = error.sentence("Corpus") if isinstance(error, ConfigError) else str(error)
        return ChosenData(path, None, (), None, sentence)
    shown = max(corpora, key=lambda corpus: len(tasks[corpus]))
    data = _summarised(shown, columns, ())
    if data.error:
        return replace(data, corpus=path)
    if len(corpora) > 1:
        st.caption(f"Shown: {escape(shown)}, one of {len(corpora):,} corpora.")
    every = tuple(dict.fromkeys(chain.from_iterable(tasks.values())))
    return replace(data, corpus=path, tasks=every)


def _folder() -> str | None:
    path = st.text_input(
        "Folder, dataset of the Hub, or corpus derived from others",
        placeholder="/path/to/a/folder with train, dev and test files",
        help="\n\n".join(
            f"**{escape(recipe.name)}:** {escape(recipe.description)}"
            for recipe in RECIPES.values()
            if recipe.name
        ),
        key=OWN_FOLDER,
        persist_state="session",
    )
    st.caption(
        "A dataset is `hub:OWNER/NAME`, such as `hub:nyu-mll/glue?config=cola`. A corpus can be derived from "
        "others, such as `demo?train=100`, `joined:sst+sts`, "
        "`apart:demo?tokens=300` or `simulated:conll2003?task=ner&tasks=5`. Braces hold a list: "
        "`tasks={1|5}`."
    )
    return path.strip() or None


def _columns_of_bases(path: str, bases: Collection[str]) -> tuple[str, ...] | None:
    """The columns of the folders that a corpus is derived from; asked only where there are CoNLL files."""
    folders = [find_folder(base) for base in bases if base not in CATALOGUE and not is_hub(base)]
    if not any(folder is not None and proposed_columns(str(folder)) is not None for folder in folders):
        return None
    text = st.text_input(
        "Columns of its files, from left to right",
        placeholder="guessed from their content",
        key=columns_key(path),
        persist_state="session",
    )
    return _names(text) or None


def _with_columns(dataset: str) -> str:
    """The name of a dataset with the columns to read, as they are found and may be changed here."""
    asked = HubName.read(dataset)
    columns = asked.columns
    with suppress(CorpusError):  # which is shown below
        columns = columns or found_columns(dataset)
    st.session_state.setdefault(columns_key(dataset), ", ".join(columns))
    text = st.text_input(
        "Columns to read",
        placeholder=f"as found: {', '.join(columns)}" if columns else "",
        key=columns_key(dataset),
        persist_state="session",
        help="COLUMN, or COLUMN:NAME, where NAME is tokens, text, text1, text2, score or the name of a task.",
    )
    names = _names(text)
    return dataset if names in ((), columns) else str(replace(asked, columns=names))


def _names(text: str) -> tuple[str, ...]:
    return tuple(comma_list(text))


def _columns(path: str) -> tuple[tuple[str, ...] | None, ColumnProposal | None]:
    """The columns of CoNLL files as the reader names them, and as they were proposed; of others None."""
    proposal = proposed_columns(path)
    if proposal is None:
        return None, None
    st.session_state.setdefault(columns_key(path), ", ".join(proposal.columns))
    text = st.text_input(
        "Columns, from left to right",
        placeholder=f"guessed from their content: {', '.join(proposal.columns)}",
        key=columns_key(path),
        persist_state="session",
        help="One of them is tokens. Columns starting with \\_ are ignored.",
    )
    return _names(text) or None, proposal


def _first_words(proposal: ColumnProposal, names: tuple[str, ...] | None) -> None:
    """Draws the first words of the training file, by which its columns can be named."""
    data_table(
        [dict(zip(map(str, range(1, len(row) + 1)), row, strict=True)) for row in proposal.sample[:6]],
        column_config={
            str(place): st.column_config.TextColumn(name.replace("_", " ").strip() or str(place))
            for place, name in enumerate((names or proposal.columns)[: len(proposal.columns)], 1)
        },
        alt="First words of the training file, column by column",
    )


def _summarised(
    name: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...], *, is_guess: bool = False
) -> ChosenData:
    try:
        with st.spinner("Reading the corpus"):
            summary = summarise(name, columns)
    except CorpusError as error:
        return ChosenData(name, columns, tasks, None, str(error))
    sizes = [f"{size.sentences:,} {split}" for split, size in summary.splits.items()]
    words = sum(size.tokens for size in summary.splits.values())
    st.caption(f"{all_of(sizes)} {summary.examples}, {words:,} words.")
    readings = summary.readings if name not in CATALOGUE else ()
    shown = set().union(*(show_reading(guessed(read) if is_guess else read) for read in readings))
    for note in summary.notes:
        if note not in shown:
            show_note(escape(note))
    return ChosenData(name, columns, tuple(task.name for task in summary.tasks), summary, None)


def show_data(summary: CorpusSummary, colour: Mapping[str, str]) -> None:
    """Draws an example for each group of tasks annotated together, with all its labels.
    A fold has the other examples, and the counts of labels.
    """
    first: dict[frozenset[str], Sentence] = {}
    others = [
        sample
        for sample in summary.samples
        if first.setdefault(frozenset(sample.labels), sample) is not sample
    ]
    with st.container(gap="xsmall"):
        _draw(list(first.values()), summary, colour, key="launch_sample")

        def more() -> None:
            _draw(others, summary, colour, key="launch_samples")
            show_labels(summary, colour)

        numbers = any(KINDS[task.scheme].is_number for task in summary.tasks)
        counts = "how labels and numbers are distributed" if numbers else "how often each label occurs"
        noun = summary.examples.removesuffix("s") if " " not in summary.examples else "example"
        more_of = f"{plural(len(others), f'more {noun}')} and " if others else ""
        label = more_of + counts
        fold(more, key="launch_more_data", label=capitalised(label))


def _draw(
    samples: Sequence[Sentence], summary: CorpusSummary, colour: Mapping[str, str], *, key: str
) -> None:
    """Draws sentences with a lane for each task, then texts and pairs with their labels."""
    of_words = [_lanes(sample, summary, colour) for sample in samples if not sample.whole]
    if of_words:
        sentence(of_words, key=key, small=True, most_words=_SAMPLE_WORDS)
    whole = [sample for sample in samples if sample.whole]
    texts([_text(sample, summary, colour) for sample in whole], most_words=_SAMPLE_WORDS)


def _lanes(sample: Sentence, summary: CorpusSummary, colour: Mapping[str, str]) -> SentenceBlock:
    """A lane for each task on words; the labels of the sentence as a whole are said under it."""
    tasks = [task for task in summary.tasks if task.name in sample.labels]
    lanes = [
        Lane(
            task.name,
            colour.get(task.name, GREY),
            lane_kind(task.scheme),
            marks(sample.labels[task.name], task.scheme),
        )
        for task in tasks
        if not sample.is_of_text(task.name)
    ]
    whole = [f"{task.name}: {sample.labels[task.name][0]}" for task in tasks if sample.is_of_text(task.name)]
    return SentenceBlock(sample.tokens, tuple(lanes), ", ".join(whole))


def _text(sample: Sentence, summary: CorpusSummary, colour: Mapping[str, str]) -> TextBlock:
    short = without_shared([task.name for task in summary.tasks])
    labels = [
        Said(short[task.name], sample.labels[task.name][0], colour.get(task.name, GREY))
        for task in summary.tasks
        if task.name in sample.labels
    ]
    return TextBlock(sample.tokens, sample.second, labels)


def show_labels(summary: CorpusSummary, colour: Mapping[str, str]) -> None:
    """Draws a tab for each task: the counts of its labels by split, or the distribution of its numbers."""
    short = without_shared([task.name for task in summary.tasks])
    names = [coloured(short[task.name], colour[task.name]) for task in summary.tasks]
    for tab, task in zip(st.tabs(names), summary.tasks, strict=True):
        if KINDS[task.scheme].is_number:
            with tab:
                _numbers(task, summary.counts[task.name], colour.get(task.name, GREY))
            continue
        frame = label_counts(task, summary.counts[task.name])
        numbers = st.column_config.NumberColumn(format="localized")
        most = max([1, *frame["Train"]])
        bars = st.column_config.ProgressColumn("Train", format="localized", max_value=most)
        with tab:
            data_table(
                frame,
                most=6,
                tall=_LABELS_HEIGHT,
                column_config={"Train": bars, "Dev": numbers, "Test": numbers},
                key=f"launch_labels_{task.name}",
                alt=f"Counts of the labels of {task.name} by split",
            )


def _numbers(task: Task, counted: Mapping[Split, Mapping[str, int]], colour: str) -> None:
    numbers = numbers_by_split(counted)
    chart(
        spread_chart(numbers, colour),
        key=f"launch_numbers_{task.name}",
        revision=task.name,
        still=True,
        alt=f"Distribution of the numbers of {task.name}",
    )
    items = KINDS[task.scheme].items
    lines = [
        f"{split.capitalize()}: {len(values):,} {items}, from {values.min():g} to {values.max():g}, "
        f"mean {values.mean():.2f}, SD {values.std():.2f}."
        for split, values in numbers.items()
    ]
    st.caption("  \n".join(lines))


def label_counts(task: Task, counted: Mapping[Split, Mapping[str, int]]) -> pd.DataFrame:
    """A row per label (per type of span for IOB2) with its words or spans in each split.
    The most frequent in training comes first.
    """
    splits = [split.capitalize() for split in counted]
    counts = pd.DataFrame(counted).fillna(0).astype(int).set_axis(splits, axis="columns")
    name = "Label"
    if KINDS[task.scheme].has_spans:
        # A span counts once, where it begins.
        counts = counts[counts.index.str.startswith("B-")].rename(index=lambda label: label[2:])
        name = "Type of spans"
    counts = counts.sort_index().sort_values(splits, ascending=False, kind="stable")
    return counts.rename_axis(name).reset_index()
