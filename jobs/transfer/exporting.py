"""`mrnlab export`: a finished run as a folder that stands alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from huggingface_hub import EvalResult, ModelCardData
from safetensors.numpy import save_file

from core.checkpoints.sealed import Damaged, opened, seal
from core.corpora.catalogue import CATALOGUE
from core.errors import MRNLabError
from core.paths import given_path, own_checkpoint
from core.registry import ENCODERS, base_name
from core.store import Run, RunState, Store, StoredScore
from core.store.snapshot_codec import decode
from core.store.transfer import RunRecord
from core.wording import duration, percent
from jobs.naming import corpus_name, kind_name
from jobs.transfer.format import FORMAT, RunFile, write_tables
from jobs.wording import description_lines

if TYPE_CHECKING:
    from core.models.model_io import SavedTagger


# The model card of an exported run: README.md in the format of the Hugging Face Hub.


_METRIC = {"f1_conll": "f1", "seqeval_f1": "f1", "accuracy": "accuracy"}
_SCORE = {
    "f1_conll": "the F1 of whole spans, as the conlleval script counts them",
    "accuracy": "the share of words with the right label",
    "seqeval_f1": "seqeval's F1 of labels that are no spans, as the dissertation's POS tables have it",
}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_MOST_UNSEEN = 12

_CITATION = """\
@inproceedings{long2017learning,
  title     = {Learning Multiple Tasks with Multilinear Relationship Networks},
  author    = {Long, Mingsheng and Cao, Zhangjie and Wang, Jianmin and Yu, Philip S.},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {30},
  year      = {2017}
}"""


def card(record: RunRecord, file: RunFile, schemes: Mapping[str, str]) -> str:
    """The card. `schemes`: each task's kind of labels, `iob2` or `plain`. Users' words are escaped."""
    run = record.run
    parts = [
        _front_matter(record),
        f"# {_plain(_name(run))}",
        _opening(run),
        _section("Scores", _scores(record)),
        _section("Use", _use(run, file)),
        _section("Data", _data(record)),
        _section("Training", _training(run)),
        _section("Limits", _limits(record, file, schemes)),
        _section("Files", _files(record, file)),
        _section("Citation", ["```bibtex", _CITATION, "```"]),
    ]
    return "\n\n".join(parts) + "\n"


def _plain(text: object) -> str:
    """User text on one line that neither Markdown nor HTML reads anything into."""
    one_line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#!|~$:@])", r"\\\1", one_line)


def _code(text: object) -> str:
    """User text in a code span, which no backtick of its own ends."""
    return f"`{' '.join(str(text).split()).replace('`', 'ˋ')}`"


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines])


def _name(run: Run) -> str:
    return f"{', '.join(run.config.tasks)} on {corpus_name(run.config)} ({kind_name(run.config)})"


def _front_matter(record: RunRecord) -> str:
    """What the Hub reads: YAML with the scores on the test sentences."""
    config = record.run.config
    results = [
        EvalResult(
            task_type="token-classification",
            task_name=score.task,
            dataset_type=corpus_name(config),
            dataset_name=corpus_name(config),
            dataset_config=score.task,  # results of one data set and configuration are put together
            dataset_split=score.split,
            metric_type=_METRIC.get(score.score_name, score.score_name),
            metric_name=f"{score.task} {score.score_name}",
            metric_value=round(score.score, 6),
        )
        for score in record.scores
        if score.split == "test"
    ]
    known = CATALOGUE.get(config.corpus)
    data = ModelCardData(
        # All corpora that the program knows by name are English; of others it knows nothing.
        language="en" if known else None,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=["mrnlab", "token-classification", "multi-task-learning", config.paradigm],
        base_model=_hub_id(config.encoder),
        datasets=[f"eriktks/{known.name}"] if known and known.needs_hub and known.columns else None,
        metrics=sorted({_METRIC.get(score.score_name, score.score_name) for score in record.scores}),
        model_name=_name(record.run),
        eval_results=results,
    )
    return f"---\n{data.to_yaml()}\n---"


def _hub_id(encoder: str) -> str | None:
    """The encoder's name on the Hub, where it has one."""
    name = base_name(encoder)
    if name == "minilm":
        return _MINILM
    if name in ENCODERS:
        return ENCODERS[name].source
    return name if _HUB_ID.fullmatch(name) and not Path(name).exists() else None


def _opening(run: Run) -> str:
    config = run.config
    how = {
        "stl": "for this one task alone",
        "mtl": "for all of these tasks at once, which share the encoder",
        "mrn": "for all of these tasks at once with a Multilinear Relationship Network, which also learns "
        "how tasks, labels and features relate",
    }[config.paradigm]
    encoder = "fine-tuned" if config.encoder_training == "full" else "frozen"
    return (
        f"One encoder ({_code(_shown_encoder(config.encoder))}, {encoder}) with a linear layer per task, "
        f"trained {how}. This is run {run.id} of a laboratory: one training with one seed ({config.seed})."
    )


def _shown_encoder(encoder: str) -> str:
    """An encoder's name; of a folder its last part, for the path is of one machine."""
    return Path(encoder).name if encoder.startswith(("/", "~")) or "\\" in encoder else encoder


def _scores(record: RunRecord) -> Iterator[str]:
    by_task: dict[str, dict[str, StoredScore]] = {}
    for score in record.scores:
        by_task.setdefault(score.task, {})[score.split] = score
    yield "| Task | Score | dev | test | test words | test sentences |"
    yield "|---|---|---|---|---|---|"
    for task, splits in by_task.items():
        any_ = next(iter(splits.values()))
        dev, test = (f"{percent(splits[name].score)}%" if name in splits else "–" for name in ("dev", "test"))
        words = f"{splits['test'].tokens:,}" if "test" in splits else "–"
        sentences = len(record.predictions.get(("test", task), ((), ()))[0])
        yield f"| {_plain(task)} | {any_.score_name} | {dev} | {test} | {words} | {sentences:,} |"
    yield ""
    for name in sorted({score.score_name for score in record.scores}):
        yield f"- {_code(name)} is {_SCORE.get(name, name)}."
    yield (
        "- n = 1: one run. Its scores say nothing about how much other seeds would differ; "
        f"`mrnlab results` gives mean and standard deviation over the seeds of configuration "
        f"{record.run.configuration_id}."
    )
    yield "- The dev scores are those of the epoch that was chosen by them: they are a little too good."


def _use(run: Run, file: RunFile) -> Iterator[str]:
    if file.no_folders_because:
        yield file.no_folders_because
        yield ""
    if not file.folders:
        yield from _own_example()
        return
    yield "Each task is a folder that Transformers loads by itself:"
    yield ""
    task, folder = next(iter(file.folders.items()))
    yield "```python"
    yield "import torch"
    yield "from transformers import AutoModelForTokenClassification, AutoTokenizer"
    yield ""
    yield f"folder = {folder!r}  # beside this file; task {task!r}"
    yield "tokenizer = AutoTokenizer.from_pretrained(folder)"
    yield "model = AutoModelForTokenClassification.from_pretrained(folder).eval()"
    yield 'words = "Angela Merkel visited Boston .".split()'
    yield 'inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")'
    yield "with torch.inference_mode():"
    yield "    best = model(**inputs).logits[0].argmax(dim=1)"
    yield "owners = inputs.word_ids()"
    yield "for number, word in enumerate(words):  # a word's label is that of its first subword"
    yield "    print(word, model.config.id2label[best[owners.index(number)].item()])"
    yield "```"
    yield ""
    others = [f"{_plain(task)} in {_code(folder)}" for task, folder in file.folders.items()]
    yield f"Tasks: {', '.join(others)}."
    yield ""
    yield "All tasks at once, with sentences of any length:"
    yield ""
    yield from _own_example()


def _own_example() -> Iterator[str]:
    yield "```python"
    yield "from core.tagging import load_tagger  # pip install mrnlab"
    yield ""
    yield 'tagger = load_tagger("checkpoint")'
    yield '(tagged,) = tagger.tag(["Angela Merkel visited Boston .".split()])'
    yield "for task, tags in tagged.tags.items():"
    yield "    print(task, [(word, tag.label) for word, tag in zip(tagged.tokens, tags)])"
    yield "```"
    yield ""
    yield "or `mrnlab import DIR`, after which it is a run like any other: curves, relations, comparisons."


def _data(record: RunRecord) -> Iterator[str]:
    config, facts = record.run.config, record.run.facts
    known = CATALOGUE.get(config.corpus)
    yield f"Corpus: {_code(corpus_name(config))}. {known.description if known else ''}".rstrip()
    yield ""
    if config.fraction < 1:
        yield f"- Trained on {100 * config.fraction:g}% of its training sentences, drawn by the seed."
    for task in facts.get("tasks", ()):
        size = f"{task['train_sentences']:,} training sentences, {task['train_tokens']:,} labelled words"
        yield f"- {_plain(task['name'])}: {len(task['labels'])} labels; {size}."
    if facts.get("dev_from_train"):
        yield "- It has no development sentences of its own: some of the training ones were held out."
    for note in facts.get("notes", ()):
        yield f"- {_plain(note)}"


def _training(run: Run) -> Iterator[str]:
    facts = run.facts
    versions = ", ".join(f"{name} {number}" for name, number in facts.get("versions", {}).items())
    where = f"{facts.get('device', '?')}, {facts.get('precision', '?')}"
    took = "unknown time" if run.seconds is None else duration(run.seconds)
    yield f"- On {where}; {took}; {run.total_steps or run.step:,} steps."
    if run.facts.get("selected_by", run.config.select_by) == "last":
        yield f"- The last epoch is kept: {run.best_epoch}."
    else:
        yield f"- Best epoch on the development sentences, by {run.config.select_by}: {run.best_epoch}."
    yield f"- Versions: {versions or 'unknown'}."
    if facts.get("alignment"):
        yield f"- Labels aligned: {facts['alignment']} ({_plain(facts.get('alignment_reason', ''))})."
    yield ""
    yield "| Field | Value |"
    yield "|---|---|"
    for field, value in description_lines(run.config):
        shown = _shown_encoder(value) if field in ("encoder", "corpus") else value
        yield f"| {_plain(field)} | {_plain(shown)} |"
    if run.note:
        yield ""
        yield f"Note of its laboratory: {_plain(run.note)}"


def _limits(record: RunRecord, file: RunFile, schemes: Mapping[str, str]) -> Iterator[str]:
    run = record.run
    config, facts = run.config, run.facts
    yield (
        "- Words come split as the corpus splits them (punctuation marks are words of their own); a word's "
        "label is read at its first subword."
    )
    yield (
        f"- Sentences of more than {config.max_length} subwords are read in overlapping windows by MRN Lab. "
        "Transformers alone does not do that: cut them, or tag with `checkpoint`."
    )
    if config.truecase:
        yield (
            "- Trained on truecased text: sentences all in capitals had their case restored. Transformers "
            "alone does not do that: such sentences must be truecased first."
        )
    if facts.get("precision") == "bf16":
        yield (
            "- The scores were computed in bfloat16, as it trained; the weights are float32, so a label may "
            "differ here and there."
        )
    for task in facts.get("tasks", ()):
        if unseen := sorted({label for labels in task.get("unseen", {}).values() for label in labels}):
            yield f"- {_plain(task['name'])} cannot give labels that training never saw: {_few(unseen)}."
    if spans := [task for task, scheme in schemes.items() if scheme == "iob2"]:
        yield (
            f"- Labels of {_few(spans)} are chosen word by word: an I- may follow no B-. It is then counted "
            "as the beginning of a span."
        )
    if config.corpus.startswith("demo"):
        yield "- The corpus is made by a grammar: on real text this model was neither trained nor tested."
    yield (
        "- No licence is claimed here: those of the encoder and of the corpus hold. The tables hold labels "
        "and numbers; no word of the corpus is among the files."
    )


def _few(names: Sequence[str]) -> str:
    told = ", ".join(_code(name) for name in names[:_MOST_UNSEEN])
    return told if len(names) <= _MOST_UNSEEN else f"{told} and {len(names) - _MOST_UNSEEN} more"


def _files(record: RunRecord, file: RunFile) -> Iterator[str]:
    for task, folder in file.folders.items():
        yield f"- {_code(folder + '/')}: {_plain(task)} for Transformers (safetensors)"
    yield "- `checkpoint/`: the run's own checkpoint (safetensors and JSON), all tasks at once"
    yield "- `run.json`: description, facts, versions and history"
    yield "- `metrics.parquet`, `scores.parquet`: its curves; its scores with a report per label"
    yield "- `predictions.parquet`: gold and predicted labels of dev and test, sentence by sentence, no words"
    if record.snapshots:
        yield "- `relations.safetensors`: the learned covariances at the last step, row names in its metadata"
    yield "- `snapshots.parquet`: all stored covariances, as the store packs them (for `mrnlab import`)"
    yield "- `manifest.json`: size and SHA-256 of every file"


CHECKPOINT = "checkpoint"
"""The folder of an export that holds the run's own checkpoint."""

_TAKEN = ("checkpoint", "readme.md", "manifest.json", "run.json")


@dataclass(frozen=True)
class Exported:
    """What was written: where, how much, the folder of each task, or a sentence on why there are none."""

    folder: Path
    size: int
    folders: dict[str, str]
    no_folders_because: str | None


def export_run(
    store: Store, run_id: int, folder: Path, tasks: Sequence[str] | None = None, *, force: bool = False
) -> Exported:
    """Writes a run that succeeded to `folder`, beside first and then renamed: whole or not there.

    `tasks`: those that get a Transformers folder (all of the run by default). `force`: an earlier export that
    is there is replaced. Raises MRNLabError, and leaves what is there as it is.
    """
    folder = given_path(folder).resolve()
    _check_place(folder, force)
    record = store.record(run_id)
    checkpoint = _checkpoint_of(record)

    # Imported here: it loads torch, and a wrong number should be told at once.
    from core.models.model_io import load, save_encoder, save_task_folders

    tagger = load(checkpoint)
    known = list(tagger.labels)
    if unknown := [task for task in tasks or () if task not in known]:
        raise MRNLabError(f"Run {run_id} has no task '{unknown[0]}'; it has {', '.join(known)}.")
    folders = _folder_names([task for task in known if tasks is None or task in tasks])
    carries_encoder = not (checkpoint / "encoder").is_dir() and not _comes_with_program(record)
    copies = len(folders) + carries_encoder
    because: str | None = None

    def write(beside: Path) -> None:
        nonlocal because
        facts = {"run": run_id, "configuration_id": record.run.configuration_id}
        places = {task: beside / name for task, name in folders.items()}
        because = save_task_folders(tagger, places, facts)
        own = beside / CHECKPOINT
        about = _about(checkpoint)

        def write_checkpoint(target: Path) -> None:
            shutil.copytree(
                checkpoint, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json")
            )
            if carries_encoder:
                save_encoder(tagger, target / "encoder")

        seal(own, about, 0, write_checkpoint)
        write_tables(record, beside)
        _write_relations(record, beside / "relations.safetensors")
        file = RunFile.of(record, datetime.now(UTC), {} if because else folders, because)
        (beside / "run.json").write_text(file.model_dump_json(indent=1), encoding="utf-8")
        (beside / "README.md").write_text(card(record, file, tagger.schemes), encoding="utf-8")

    try:
        sealed = seal(folder, {"export": FORMAT, "run": run_id}, _needs(checkpoint, tagger, copies), write)
    except OSError as error:
        raise MRNLabError(f"{folder} cannot be written: {error.strerror}.") from error
    return Exported(folder, sealed.size, {} if because else folders, because)


def _check_place(folder: Path, force: bool) -> None:
    """Raises MRNLabError where something is there that must not go."""
    if folder.exists() and not folder.is_dir():
        raise MRNLabError(f"{folder} is a file; name a folder to export to.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not force:
        raise MRNLabError(f"{folder} is not empty; name another folder, or replace an export with --force.")
    try:
        if "export" in opened(folder).about:
            return
    except Damaged:
        pass
    raise MRNLabError(
        f"{folder} holds something that is not an export of MRN Lab, which --force does not replace; name "
        "another folder."
    )


def _checkpoint_of(record: RunRecord) -> Path:
    run = record.run
    if run.state is not RunState.SUCCEEDED:
        raise MRNLabError(f"Run {run.id} is {run.state}; only a run that has succeeded can be exported.")
    if run.config_problem is not None:
        raise MRNLabError(f"Run {run.id} cannot be exported: {run.config_problem}")
    checkpoint = None if run.checkpoint is None else own_checkpoint(run.checkpoint)
    if checkpoint is None or not checkpoint.is_dir():
        raise MRNLabError(
            f"The checkpoint of run {run.id} is not there any more, so its model cannot be exported."
        )
    return checkpoint


def _about(checkpoint: Path) -> dict[str, object]:
    """What the writer of the checkpoint said of it; nothing where an earlier version wrote it."""
    try:
        return dict(opened(checkpoint).about)
    except Damaged:
        return {}


def _comes_with_program(record: RunRecord) -> bool:
    """Whether the encoder's weights are part of every installation, so that a frozen one need not travel."""
    spec = ENCODERS.get(base_name(record.run.config.encoder))
    return spec is not None and spec.source.startswith("package:")


def _folder_names(tasks: Iterable[str]) -> dict[str, str]:
    """A folder name for each task that every file system takes, none twice."""
    names: dict[str, str] = {}
    taken = set(_TAKEN)
    for task in tasks:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip(".-")[:100] or "task"
        name, again = plain, 2
        while name.lower() in taken:
            name, again = f"{plain}-{again}", again + 1
        taken.add(name.lower())
        names[task] = name
    return names


def _needs(checkpoint: Path, tagger: SavedTagger, copies: int) -> int:
    """About how many bytes the export takes: the checkpoint, and the encoder so many times more."""
    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    return size + copies * sum(weight.nbytes for weight in tagger.model.parameters())


def _write_relations(record: RunRecord, path: Path) -> None:
    """The covariances of the last snapshot, as arrays; no file for a run that learns none."""
    if not record.snapshots:
        return
    last = record.snapshots[-1]
    relations = decode(vars(last))
    arrays = {
        "task": relations.task,
        "label": relations.label,
        "feature_factor": relations.feature_factor,
        "feature_diagonal": np.asarray([relations.feature_diagonal]),
    }
    told = {
        "step": str(last.step),
        "tasks": json.dumps([task["name"] for task in record.run.facts.get("tasks", ())]),
        "labels": json.dumps(list(record.run.facts.get("label_names", ()))),
        "feature": "feature_diagonal · I + feature_factor · feature_factorᵀ",
    }
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, told)
