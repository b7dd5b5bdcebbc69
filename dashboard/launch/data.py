"""The data question of the form: a corpus of the catalogue, an upload, or a folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import chain
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.config.fields import comma_list
from core.corpora import CATALOGUE, CorpusSummary, Task, save_upload, summarise
from core.corpora.assembly import SPLITS
from core.corpora.catalogue.hub import HubName, is_hub
from core.corpora.catalogue.names import find_folder, is_local, offered
from core.corpora.catalogue.uploads import MOST_MEGABYTES, delete_upload, uploads
from core.corpora.derived import RECIPES
from core.corpora.loading import bases_of, derivation_of, proposed_columns, tasks_of
from core.corpora.readers.files import split_of
from core.corpora.reading import guessed
from core.corpora.summary import found_columns
from core.corpora.types import Sentence, Split
from core.errors import ConfigError, CorpusError
from core.store import Store
from core.store.types import ACTIVE, Run
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
    OWN,
    OWN_FOLDER,
    OWN_HOW,
    UPLOAD,
    UPLOADED,
    columns_key,
    fresh,
    key_of,
    use_own_data,
)
from dashboard.launch.charts import numbers_by_split, spread_chart
from dashboard.launch.samples import SAMPLES, zipped
from dashboard.shared import actions, resources
from dashboard.shared.downloads import data_table
from dashboard.shared.newcomers import fold
from dashboard.shared.readings import show_reading
from dashboard.shared.states import show_note
from dashboard.text import coloured, escape
from jobs.queue.control import Answer
from jobs.queue.sweeps import corpora_of

_SAMPLE_WORDS = 80
GREY = "#8A939B"
_SAVED, _STORED = "launch_own_saved", "launch_own_stored"
_LABELS_HEIGHT = 246
_UPLOADS_HEIGHT = 220
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
            names = [*offered(), OWN]
            chosen = st.session_state.get(key_of("corpus"), OWN)
            names += [chosen] * (chosen not in names)  # derived from others, by a link
            name = st.selectbox("Corpus", names, key=key_of("corpus"), persist_state="session")
        st.button("Use my data", icon=":material/upload_file:", help=_OWN_HELP, on_click=use_own_data)
        st.button(
            "Start over", icon=":material/restart_alt:", type="tertiary", on_click=fresh, key="launch_fresh"
        )
    if name == OWN:
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
        path = _uploaded() if how == UPLOAD else _folder()
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
            columns, is_guess = _columns(path)
            return _summarised(path, columns, (), is_guess=is_guess)
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


def _uploaded() -> str | None:
    """The folder of the files in the field, or of an earlier upload. Raises CorpusError."""
    name = st.text_input("Name", value="my-corpus", key="launch_own_name", persist_state="session")
    files = st.file_uploader(
        "Files named train, dev and test: CoNLL columns, CoNLL-U, lists of words or spans as JSON, "
        "JSONL or Parquet, or texts as TSV, CSV or JSONL",
        accept_multiple_files=True,
        max_upload_size=MOST_MEGABYTES,
        key="launch_own_files",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Sample files:", width="content")
        for kind, samples in SAMPLES.items():
            st.download_button(
                kind,
                zipped(samples),
                file_name=f"{kind.lower().replace(' ', '-')}.zip",
                mime="application/zip",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
                key=f"launch_samples_{kind}",
            )
    refused = _keep_upload(name, files) if files else None
    path = _earlier_upload()
    if refused is not None:
        raise refused
    return path


def _keep_upload(name: str, files: Sequence[UploadedFile]) -> CorpusError | None:
    """Keeps new files and chooses them; why not, where they are no corpus.

    What is left of kept files, or another name of them, is kept only on a click.
    """
    splits = {file.name: _asked_split(file) for file in files if split_of(file.name) is None}
    given = {(name, file.file_id, splits.get(file.name)) for file in files}
    kept: set[tuple[str, str, Split | None]] = st.session_state.get(_SAVED, set())
    if given == kept:
        return None
    if unknown := [file for file, split in splits.items() if split is None]:
        return CorpusError(
            f"Cannot tell whether {unknown[0]} is train, dev or test. Rename it or choose its split."
        )
    is_old = {given_file[1:] for given_file in given} <= {kept_file[1:] for kept_file in kept}
    if is_old and not st.button(
        f"Keep {plural(len(files), 'file')} as {escape(name)}", key="launch_own_keep"
    ):
        return None
    chosen = {file: split for file, split in splits.items() if split is not None}
    before = uploads()
    try:
        saved = save_upload({file.name: file.getvalue() for file in files}, name, chosen)
    except CorpusError as error:
        return error
    st.session_state[_SAVED] = given
    st.session_state[UPLOADED] = str(saved)
    _replace(saved if saved not in before else None)
    return None


def _replace(stored: Path | None) -> None:
    """Remembers the upload that this reader has just stored, and deletes the one before if no run uses it.

    Files are stored to be read, but kept for good only once a run is launched on them.
    """
    former: Path | None = st.session_state.get(_STORED)
    st.session_state[_STORED] = stored
    if former is None or former == stored or former not in uploads():
        return
    runs = resources.store().runs(archived=None)
    if not any(str(former) in run.config.corpus for run in runs):
        delete_upload(former)


def _asked_split(file: UploadedFile) -> Split | None:
    return st.selectbox(
        f"Split of {escape(file.name)}",
        SPLITS,
        index=None,
        placeholder="train, dev or test",
        key=f"launch_own_split_{file.file_id}",
    )


def _earlier_upload() -> str | None:
    """The folder of the upload that is chosen in their list; None while none is."""
    kept = {str(path): uploaded for path, uploaded in uploads().items()}
    if st.session_state.get(UPLOADED) not in kept:
        st.session_state[UPLOADED] = None
    if not kept:
        return None
    stored = resources.store().runs(archived=None)
    users = {path: [run for run in stored if path in run.config.corpus] for path in kept}
    with st.container(height=_UPLOADS_HEIGHT if len(kept) > 4 else "content", gap="xsmall"):
        path: str | None = st.radio(
            "Uploaded corpora",
            list(kept),
            index=None,
            format_func=lambda path: escape(Path(path).name),
            captions=[
                f"{_sentences(path)} · {uploaded.astimezone(UTC):%d %b %Y, %H:%M} UTC · used by "
                f"{plural(len(users[path]), 'run') if users[path] else 'no run'}"
                for path, uploaded in kept.items()
            ],
            key=UPLOADED,
            persist_state="session",
        )
    if path is not None:
        _deletion(Path(path), users[path])
    return path


@st.cache_data(max_entries=256, show_spinner=False)
def _sentences(path: str) -> str:
    """How many sentences, texts or pairs an upload has, which never changes."""
    try:
        proposal = proposed_columns(path)
        summary = summarise(path, None if proposal is None else proposal.columns)  # as it is chosen
    except CorpusError:
        return "cannot be read"
    return f"{sum(split.sentences for split in summary.splits.values()):,} {examples_of(summary)}"


def _deletion(path: Path, users: Sequence[Run]) -> None:
    """Draws a button that names the data deleted, and the consequence for runs trained on it."""
    with st.popover(
        "Delete this upload", icon=":material/delete:", key="launch_own_delete", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        active = sum(run.state in ACTIVE for run in users)
        st.markdown(f"Delete **{escape(path.name)}** permanently.")
        if active:
            st.caption(f"{plural(active, 'run')} on it queued or in progress. Stop them first.")
        elif users:
            st.caption(
                f"{plural(len(users), 'run')} on it keep their scores and models. They cannot be resumed or "
                "repeated, and their test sentences can no longer be shown."
            )
        st.button(
            "Delete these files",
            icon=":material/delete:",
            disabled=bool(active),
            on_click=actions.perform,
            args=(_delete, path),
        )


def _delete(_store: Store, path: Path) -> list[Answer]:
    delete_upload(path)
    return [Answer(0, True, f"{path.name} was deleted.")]


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
    with suppress(CorpusError):  # which is told below
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


def _columns(path: str) -> tuple[tuple[str, ...] | None, bool]:
    """The columns of CoNLL files, proposed from their content and confirmed by the reader; of others None.
    Also whether they are still as they were guessed.
    """
    proposal = proposed_columns(path)
    if proposal is None:
        return None, False
    st.session_state.setdefault(columns_key(path), ", ".join(proposal.columns))
    text = st.text_input(
        "Columns, from left to right",
        placeholder=f"guessed from their content: {', '.join(proposal.columns)}",
        key=columns_key(path),
        persist_state="session",
        help="One of them is tokens. Columns starting with \\_ are ignored.",
    )
    names = _names(text)
    data_table(
        [dict(zip(map(str, range(1, len(row) + 1)), row, strict=True)) for row in proposal.sample[:6]],
        column_config={
            str(place): st.column_config.TextColumn(name.replace("_", " ").strip() or str(place))
            for place, name in enumerate((names or proposal.columns)[: len(proposal.columns)], 1)
        },
        alt="First words of the training file, column by column",
    )
    return names or None, proposal.guessed and names in ((), proposal.columns)


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
    st.caption(f"{all_of(sizes)} {examples_of(summary)}, {words:,} words.")
    readings = summary.readings if name not in CATALOGUE else ()
    shown = set().union(*(show_reading(guessed(read) if is_guess else read) for read in readings))
    for note in summary.notes:
        if note not in shown:
            show_note(escape(note))
    return ChosenData(name, columns, tuple(task.name for task in summary.tasks), summary, None)


def examples_of(summary: CorpusSummary) -> str:
    """The kinds of examples of the corpus, in the plural: `sentences`, `texts and pairs`."""
    return all_of(list(dict.fromkeys(KINDS[task.scheme].examples for task in summary.tasks)))


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
        noun = examples_of(summary).removesuffix("s") if " " not in examples_of(summary) else "example"
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
    said = [
        Said(short[task.name], sample.labels[task.name][0], colour.get(task.name, GREY))
        for task in summary.tasks
        if task.name in sample.labels
    ]
    return TextBlock(sample.tokens, sample.second, said)


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
