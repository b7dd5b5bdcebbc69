"""`mrnlab export`: a finished run as a self-contained folder with a model card (README.md)."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from huggingface_hub import EvalResult, ModelCardData

from core.checkpoints.sealed import MANIFEST, seal
from core.corpora.catalogue.hub import HubName, is_hub
from core.corpora.catalogue.names import CATALOGUE
from core.corpora.loading import bases_of
from core.errors import MRNLabError
from core.models.word_vectors import GLOVE
from core.paths import given_path, own_checkpoint
from core.registry import ENCODERS, reads_words
from core.results.naming import corpus_name, short_name
from core.results.table import undefined_notes
from core.store import Run, RunState, RunWithFacts, Store
from core.store.exchange import RunRecord
from core.tasks import KINDS, tasks_reading
from core.tasks.scores import PEARSON, score_text
from core.wording import duration, first_of, plural
from jobs.exchange.format import CHECKPOINT, FORMAT, RunFile, write_tables

_TAKEN = ("checkpoint", "readme.md", "manifest.json", "run.json")


@dataclass(frozen=True)
class Exported:
    """The result of an export: folder, bytes, Transformers folders by task, and why others have none."""

    folder: Path
    size: int
    folders: dict[str, str]
    no_folders_because: str | None


def export_run(store: Store, run_id: int, folder: Path, tasks: Sequence[str] | None = None) -> Exported:
    """Writes a successful run to `folder`, which is new or empty, completely or not at all.

    `tasks` get a Transformers folder each (by default all tasks of the run). Raises MRNLabError.
    """
    folder = given_path(folder).resolve()
    if folder.exists() and not folder.is_dir():
        raise MRNLabError(f"{folder} is a file; name a folder to export to.")
    if folder.is_dir() and any(folder.iterdir()):
        raise MRNLabError(f"{folder} is not empty; name another folder.")
    record = store.record(run_id)
    checkpoint = check_exportable(record.run)

    # Imported here: it loads torch, and a wrong number should be reported at once.
    from core.models.model_io import load, save_encoder
    from core.models.task_folders import save_task_folders

    tagger = load(checkpoint)
    trained = list(tagger.labels)
    if unknown := [task for task in tasks or () if task not in trained]:
        raise MRNLabError(f"Run {run_id} has no task '{unknown[0]}'; it has {', '.join(trained)}.")
    folders = folder_names([task for task in trained if tasks is None or task in tasks])
    transformer = record.run.config.transformer
    spec = ENCODERS.get(transformer or "")
    # A frozen encoder whose weights are part of every installation is not exported.
    is_packaged = spec is not None and spec.source.startswith("package:")
    is_carried = (checkpoint / "encoder").is_dir() or transformer is None
    carries_encoder = not is_carried and not is_packaged
    no_folders_because: str | None = None

    def write(beside: Path) -> None:
        nonlocal no_folders_because, folders
        facts = {"run": run_id, "configuration_id": record.run.configuration_id}
        paths = {task: beside / name for task, name in folders.items()}
        no_folders_because = save_task_folders(tagger, paths, facts)
        folders = {task: name for task, name in folders.items() if paths[task].is_dir()}

        # The checkpoint's manifest would lack the encoder; that of the export lists all files.
        shutil.copytree(checkpoint, beside / CHECKPOINT, ignore=shutil.ignore_patterns(MANIFEST))
        if carries_encoder:
            save_encoder(tagger, beside / CHECKPOINT / "encoder")
        write_tables(record, beside)
        file = RunFile.of(record, datetime.now(UTC), folders, no_folders_because)
        (beside / "run.json").write_text(file.model_dump_json(indent=1), encoding="utf-8")
        (beside / "README.md").write_text(_card(record, file, tagger.schemes), encoding="utf-8")

    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    encoder = tagger.model if tagger.context is None else tagger.context.transformer
    weights = sum(weight.nbytes for weight in encoder.parameters())
    needs = size + (len(folders) + carries_encoder) * weights
    try:
        sealed = seal(folder, {"export": FORMAT, "run": run_id}, needs, write)
    except OSError as error:
        raise MRNLabError(f"{folder} cannot be written: {error.strerror}.") from error
    return Exported(folder, sealed.size, folders, no_folders_because)


def export_zip(store: Store, run_id: int) -> bytes:
    """The folder of `export_run` as a zip file. Raises MRNLabError."""
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / f"mrnlab-run-{run_id}"
        export_run(store, run_id, folder)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:  # stored: weights hardly get smaller
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                archive.write(path, path.relative_to(aside))
        return file.getvalue()


def check_exportable(run: Run) -> Path:
    """The checkpoint. Raises MRNLabError where the run has not succeeded or it is gone."""
    if run.state is not RunState.SUCCEEDED:
        raise MRNLabError(f"Run {run.id} is {run.state.word}; only a run that has succeeded can be exported.")
    checkpoint = None if run.checkpoint is None else own_checkpoint(run.checkpoint)
    if checkpoint is None or not checkpoint.is_dir():
        raise MRNLabError(
            f"The checkpoint of run {run.id} is not there any more, so its model cannot be exported."
        )
    return checkpoint


def folder_names(tasks: Iterable[str]) -> dict[str, str]:
    """A distinct folder name for each task that every file system accepts."""
    names: dict[str, str] = {}
    taken = set(_TAKEN)
    for task in tasks:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip(".-")[:100] or "task"
        while name.lower() in taken:
            name += "-2"
        taken.add(name.lower())
        names[task] = name
    return names


_METRICS = {"f1_conll": "f1", "seqeval_f1": "f1", "accuracy": "accuracy", PEARSON: "pearsonr"}
_MOST_NAMES = 12


def _card(record: RunRecord, file: RunFile, schemes: Mapping[str, str]) -> str:
    """The model card in the format of the Hugging Face Hub, with users' text escaped.

    `schemes` are the kinds of the tasks.
    """
    run = record.run
    environment = jinja2.Environment(undefined=jinja2.ChainableUndefined, keep_trailing_newline=True)
    environment.filters |= {
        "plain": _plain,
        "code": _code,
        "python": repr,
        "without_folder": _without_folder,
        "some": lambda names: first_of([_code(name) for name in names], _MOST_NAMES),
    }
    template = environment.from_string(Path(__file__).with_name("card.md.jinja").read_text(encoding="utf-8"))
    catalogued = CATALOGUE.get(run.config.corpus)
    return template.render(
        metadata=_metadata(record, file, schemes).to_yaml(),
        title=_title(run),
        run=run,
        config=run.config,
        facts=file.facts,
        file=file,
        scores=_scores(record, schemes),
        undefined=undefined_notes(record.scores),
        kinds={task: KINDS[scheme] for task, scheme in schemes.items()},
        reads_words_tasks=bool(tasks_reading(schemes, "words")),
        reads_texts=bool(tasks_reading(schemes, "sentence", "text", "pair")),
        reads_pairs=bool(tasks_reading(schemes, "pair")),
        word_folders=_some(file.folders, tasks_reading(schemes, "words")),
        text_folders=_some(file.folders, tasks_reading(schemes, "sentence", "text", "pair")),
        score_names=sorted({score.score_name for score in record.scores}),
        corpus=corpus_name(run.config.corpus),
        corpus_description=catalogued.description if catalogued else "",
        took="unknown time" if run.seconds is None else duration(run.seconds),
        fields=run.description_lines,
        unseen={task.name: sorted(set().union(*task.unseen.values())) for task in run.task_facts},
        over_words=reads_words(run.config.encoder),
        vectors_are_packaged=run.config.vectors == GLOVE,
        span_tasks=[task for task, scheme in schemes.items() if KINDS[scheme].has_spans],
    )


def _some(folders: Mapping[str, str], tasks: Collection[str]) -> dict[str, str]:
    return {task: folder for task, folder in folders.items() if task in tasks}


def _plain(text: object) -> str:
    """User text on one line, escaped for Markdown and HTML."""
    one_line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#!|~$:@])", r"\\\1", one_line)


def _code(text: object) -> str:
    """User text in a code span, with its backticks replaced."""
    return f"`{' '.join(str(text).split()).replace('`', 'ˋ')}`"


def _without_folder(name: str) -> str:
    """A corpus's or encoder's name; of a folder its last part, since paths belong to a machine."""
    return Path(name).name if name.startswith(("/", "~")) or "\\" in name else name


def _title(run: Run) -> str:
    return f"{', '.join(run.config.tasks)} on {corpus_name(run.config.corpus)} ({short_name(run.config)})"


def _scores(record: RunRecord, schemes: Mapping[str, str]) -> list[dict[str, Any]]:
    by_split = {(score.split, score.task): score for score in record.scores}
    rows = []
    for task, name in {score.task: score.score_name for score in record.scores}.items():
        saved = _saved_name(record.run, task)
        kind = KINDS[schemes[saved]]
        dev, test = by_split.get(("dev", task)), by_split.get(("test", task))
        sentences, _ = record.predictions.get(("test", task), ((), ()))
        row: dict[str, Any] = {"task": saved, "name": name, "sentences": f"{len(sentences):,}"}
        row["dev"], row["test"] = (
            "–" if score is None else score_text(score.score, name) for score in (dev, test)
        )
        rows.append(row | {"over": "–" if test is None else plural(test.tokens, kind.item)})
    return rows


def _saved_name(run: RunWithFacts, task: str) -> str:
    """The task's name in the model, which may include the corpus for a task added to a run."""
    related = run.facts.related if run.facts else ()
    return task if run.config.added_to is None or not related else related[-1]


def _task_type(schemes: Mapping[str, str], *tasks: str) -> str:
    """The Hub's type of tasks: of words where one of these reads words, else of texts."""
    words = any(KINDS[schemes[task]].reads == "words" for task in tasks)
    return "token-classification" if words else "text-classification"


def _datasets(corpus: str) -> list[str]:
    bases = bases_of(corpus)
    repositories = [CATALOGUE[base].repository for base in bases if base in CATALOGUE]
    named = [HubName.read(base) for base in bases if is_hub(base)]
    return [*filter(None, repositories), *(name.source for name in named if name.folder is None)]


def _metadata(record: RunRecord, file: RunFile, schemes: Mapping[str, str]) -> ModelCardData:
    config = record.run.config
    catalogued = CATALOGUE.get(config.corpus)
    name = config.transformer or ""
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not Path(name).exists()
    encoder = ENCODERS[name].source if name in ENCODERS else name if on_hub else None
    return ModelCardData(
        # All corpora of the catalogue are English; the language of others is unknown.
        language="en" if catalogued else None,
        library_name="transformers" if file.folders else None,
        pipeline_tag=_task_type(schemes, *(file.folders or schemes)),
        tags=[
            "mrnlab",
            *dict.fromkeys(_task_type(schemes, task) for task in schemes),
            "multi-task-learning",
            config.paradigm,
        ],
        base_model="sentence-transformers/all-MiniLM-L6-v2" if name == "minilm" else encoder,
        datasets=_datasets(config.corpus) or None,
        metrics=sorted({_METRICS.get(score.score_name, score.score_name) for score in record.scores}),
        model_name=_title(record.run),
        eval_results=[
            EvalResult(
                task_type=_task_type(schemes, _saved_name(record.run, score.task)),
                task_name=_saved_name(record.run, score.task),
                dataset_type=corpus_name(config.corpus),
                dataset_name=corpus_name(config.corpus),
                dataset_config=score.task,  # the Hub merges results of one data set and configuration
                dataset_split=score.split,
                metric_type=_METRICS.get(score.score_name, score.score_name),
                metric_name=f"{score.task} {score.score_name}",
                metric_value=round(score.score, 6),
            )
            for score in record.scores
            if score.split == "test" and score.is_defined
        ],
    )
