"""`mrnlab export`: a finished run as a folder that stands alone, with a model card (README.md)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
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
from core.store import Run, RunState, Store
from core.store.snapshot_codec import decode
from core.store.transfer import RunRecord
from core.wording import duration, first_of
from jobs.naming import corpus_name, kind_name
from jobs.transfer.format import CHECKPOINT, FORMAT, RunFile, write_tables
from jobs.wording import description_lines

if TYPE_CHECKING:
    from core.models.model_io import SavedTagger

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
    checkpoint = _checkpoint_of(record.run)

    # Imported here: it loads torch, and a wrong number should be told at once.
    from core.models.model_io import load, save_encoder, save_task_folders

    tagger = load(checkpoint)
    known = list(tagger.labels)
    if unknown := [task for task in tasks or () if task not in known]:
        raise MRNLabError(f"Run {run_id} has no task '{unknown[0]}'; it has {', '.join(known)}.")
    folders = _folder_names([task for task in known if tasks is None or task in tasks])
    spec = ENCODERS.get(base_name(record.run.config.encoder))
    # A frozen encoder whose weights are part of every installation need not travel.
    is_packaged = spec is not None and spec.source.startswith("package:")
    carries_encoder = not (checkpoint / "encoder").is_dir() and not is_packaged
    no_folders_because: str | None = None

    def write(beside: Path) -> None:
        nonlocal no_folders_because, folders
        facts = {"run": run_id, "configuration_id": record.run.configuration_id}
        places = {task: beside / name for task, name in folders.items()}
        no_folders_because = save_task_folders(tagger, places, facts)
        if no_folders_because:
            folders = {}

        def write_checkpoint(target: Path) -> None:
            ignored = shutil.ignore_patterns("manifest.json")
            shutil.copytree(checkpoint, target, dirs_exist_ok=True, ignore=ignored)
            if carries_encoder:
                save_encoder(tagger, target / "encoder")

        seal(beside / CHECKPOINT, _about(checkpoint), 0, write_checkpoint)
        write_tables(record, beside)
        _write_relations(record, beside / "relations.safetensors")
        file = RunFile.of(record, datetime.now(UTC), folders, no_folders_because)
        (beside / "run.json").write_text(file.model_dump_json(indent=1), encoding="utf-8")
        (beside / "README.md").write_text(card(record, file, tagger.schemes), encoding="utf-8")

    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    weights = sum(weight.nbytes for weight in tagger.model.parameters())
    needs = size + (len(folders) + carries_encoder) * weights
    try:
        sealed = seal(folder, {"export": FORMAT, "run": run_id}, needs, write)
    except OSError as error:
        raise MRNLabError(f"{folder} cannot be written: {error.strerror}.") from error
    return Exported(folder, sealed.size, folders, no_folders_because)


def _check_place(folder: Path, force: bool) -> None:
    """Raises MRNLabError where something is there that must not go."""
    if folder.exists() and not folder.is_dir():
        raise MRNLabError(f"{folder} is a file; name a folder to export to.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not force:
        raise MRNLabError(f"{folder} is not empty; name another folder, or replace an export with --force.")
    if "export" not in _about(folder):
        raise MRNLabError(
            f"{folder} holds something that is not an export of MRN Lab, which --force does not replace; "
            "name another folder."
        )


def _checkpoint_of(run: Run) -> Path:
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


def _about(folder: Path) -> dict[str, object]:
    """What the writer of the sealed folder said of it; nothing where it is none, or of an earlier version."""
    try:
        return dict(opened(folder).about)
    except Damaged:
        return {}


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
    metadata = {
        "step": str(last.step),
        "tasks": json.dumps([task["name"] for task in record.run.facts.get("tasks", ())]),
        "labels": json.dumps(list(record.run.facts.get("label_names", ()))),
        "feature": "feature_diagonal · I + feature_factor · feature_factorᵀ",
    }
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, metadata)


_METRICS = {"f1_conll": "f1", "seqeval_f1": "f1", "accuracy": "accuracy"}
_SCORES = {
    "f1_conll": "the F1 of whole spans, as the conlleval script counts them",
    "accuracy": "the share of words with the right label",
    "seqeval_f1": "seqeval's F1 of labels that are no spans, as the dissertation's POS tables have it",
}
_PARADIGMS = {
    "stl": "for this one task alone",
    "mtl": "for all of these tasks at once, which share the encoder",
    "mrn": "for all of these tasks at once with a Multilinear Relationship Network, which also learns how tasks, "
    "labels and features relate",
}
_CARD = """\
---
{metadata}
---

# {title}

{opening}

## Scores

| Task | Score | dev | test | test words | test sentences |
|---|---|---|---|---|---|
{scores}

## Use

{use}

## Data

{data}

## Training

{training}

| Field | Value |
|---|---|
{fields}{note}

## Limits

{limits}

## Files

{files}

## Citation

```bibtex
@inproceedings{{long2017learning,
  title     = {{Learning Multiple Tasks with Multilinear Relationship Networks}},
  author    = {{Long, Mingsheng and Cao, Zhangjie and Wang, Jianmin and Yu, Philip S.}},
  booktitle = {{Advances in Neural Information Processing Systems}},
  volume    = {{30}},
  year      = {{2017}}
}}
```
"""
_OF_A_TASK = """\
Each task is a folder that Transformers loads by itself:

```python
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

folder = {folder!r}  # beside this file; task {task!r}
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForTokenClassification.from_pretrained(folder).eval()
words = "Angela Merkel visited Boston .".split()
inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
with torch.inference_mode():
    best = model(**inputs).logits[0].argmax(dim=1)
owners = inputs.word_ids()
for number, word in enumerate(words):  # a word's label is that of its first subword
    print(word, model.config.id2label[best[owners.index(number)].item()])
```

Tasks: {folders}.

All tasks at once, with sentences of any length:

"""
_OF_ALL_TASKS = """\
```python
from core.tagging import load_tagger  # pip install mrnlab

tagger = load_tagger("checkpoint")
(tagged,) = tagger.tag(["Angela Merkel visited Boston .".split()])
for task, tags in tagged.tags.items():
    print(task, [(word, tag.label) for word, tag in zip(tagged.tokens, tags)])
```

or `mrnlab import DIR`, after which it is a run like any other: curves, relations, comparisons."""


def card(record: RunRecord, file: RunFile, schemes: Mapping[str, str]) -> str:
    """The model card in the format of the Hugging Face Hub. Users' words are escaped.

    `schemes`: each task's kind of labels, `iob2` or `plain`.
    """
    run = record.run
    config = run.config
    how = "fine-tuned" if config.encoder_training == "full" else "frozen"
    fields = [
        f"| {_plain(field)} | {_plain(_without_folder(value) if field in ('encoder', 'corpus') else value)} |"
        for field, value in description_lines(config)
    ]
    return _CARD.format(
        metadata=_metadata(record).to_yaml(),
        title=_plain(_title(run)),
        opening=f"One encoder ({_code(_without_folder(config.encoder))}, {how}) with a linear layer per task, "
        f"trained {_PARADIGMS[config.paradigm]}. This is run {run.id} of a laboratory: one training with one "
        f"seed ({config.seed}).",
        scores=_scores(record),
        use=_use(file),
        data=_data(run),
        training=_training(run),
        fields="\n".join(fields),
        note=f"\n\nNote of its laboratory: {_plain(run.note)}" if run.note else "",
        limits=_limits(run, schemes),
        files=_files(record, file),
    )


def _plain(text: object) -> str:
    """User text on one line that neither Markdown nor HTML reads anything into."""
    one_line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#!|~$:@])", r"\\\1", one_line)


def _code(text: object) -> str:
    """User text in a code span, which no backtick of its own ends."""
    return f"`{' '.join(str(text).split()).replace('`', 'ˋ')}`"


def _list(*lines: str | None) -> str:
    return "\n".join(f"- {line}" for line in lines if line)


def _title(run: Run) -> str:
    return f"{', '.join(run.config.tasks)} on {corpus_name(run.config)} ({kind_name(run.config)})"


def _without_folder(name: str) -> str:
    """A corpus's or encoder's name; of a folder its last part, for the path is of one machine."""
    return Path(name).name if name.startswith(("/", "~")) or "\\" in name else name


def _metadata(record: RunRecord) -> ModelCardData:
    """What the Hub reads, with the scores on the test sentences."""
    config = record.run.config
    known = CATALOGUE.get(config.corpus)
    name = base_name(config.encoder)
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not Path(name).exists()
    encoder = ENCODERS[name].source if name in ENCODERS else name if on_hub else None
    return ModelCardData(
        # All corpora that the program knows by name are English; of others it knows nothing.
        language="en" if known else None,
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=["mrnlab", "token-classification", "multi-task-learning", config.paradigm],
        base_model="sentence-transformers/all-MiniLM-L6-v2" if name == "minilm" else encoder,
        datasets=[f"eriktks/{known.name}"] if known and known.needs_hub and known.columns else None,
        metrics=sorted({_METRICS.get(score.score_name, score.score_name) for score in record.scores}),
        model_name=_title(record.run),
        eval_results=[
            EvalResult(
                task_type="token-classification",
                task_name=score.task,
                dataset_type=corpus_name(config),
                dataset_name=corpus_name(config),
                dataset_config=score.task,  # results of one data set and configuration are put together
                dataset_split=score.split,
                metric_type=_METRICS.get(score.score_name, score.score_name),
                metric_name=f"{score.task} {score.score_name}",
                metric_value=round(score.score, 6),
            )
            for score in record.scores
            if score.split == "test"
        ],
    )


def _scores(record: RunRecord) -> str:
    by_split = {(score.split, score.task): score for score in record.scores}
    rows = []
    for task, name in {score.task: score.score_name for score in record.scores}.items():
        dev, test = by_split.get(("dev", task)), by_split.get(("test", task))
        shares = ["–" if score is None else f"{100 * score.score:.2f}%" for score in (dev, test)]
        words = "–" if test is None else f"{test.tokens:,}"
        sentences = len(record.predictions.get(("test", task), ((), ()))[0])
        rows.append(" | ".join((f"| {_plain(task)}", name, *shares, words, f"{sentences:,} |")))
    names = sorted({score.score_name for score in record.scores})
    notes = _list(
        *(f"{_code(name)} is {_SCORES.get(name, name)}." for name in names),
        "n = 1: one run. Its scores say nothing about how much other seeds would differ; `mrnlab results` gives "
        f"mean and standard deviation over the seeds of configuration {record.run.configuration_id}.",
        "The dev scores are those of the epoch that was chosen by them: they are a little too good.",
    )
    return "\n".join([*rows, "", notes])


def _use(file: RunFile) -> str:
    if not file.folders:
        return (f"{file.no_folders_because}\n\n" if file.no_folders_because else "") + _OF_ALL_TASKS
    task, folder = next(iter(file.folders.items()))
    folders = ", ".join(f"{_plain(task)} in {_code(name)}" for task, name in file.folders.items())
    return _OF_A_TASK.format(folder=folder, task=task, folders=folders) + _OF_ALL_TASKS


def _data(run: Run) -> str:
    config, facts = run.config, run.facts
    known = CATALOGUE.get(config.corpus)
    first = f"Corpus: {_code(corpus_name(config))}. {known.description if known else ''}".rstrip()
    drawn = f"Trained on {100 * config.fraction:g}% of its training sentences, drawn by the seed."
    held_out = "It has no development sentences of its own: some of the training ones were held out."
    notes = _list(
        drawn if config.fraction < 1 else None,
        *(
            f"{_plain(task['name'])}: {len(task['labels'])} labels; {task['train_sentences']:,} training "
            f"sentences, {task['train_tokens']:,} labelled words."
            for task in facts.get("tasks", ())
        ),
        held_out if facts.get("dev_from_train") else None,
        *map(_plain, facts.get("notes", ())),
    )
    return f"{first}\n\n{notes}"


def _training(run: Run) -> str:
    facts = run.facts
    versions = ", ".join(f"{name} {number}" for name, number in facts.get("versions", {}).items())
    if facts.get("selected_by", run.config.select_by) == "last":
        chosen = f"The last epoch is kept: {run.best_epoch}."
    else:
        chosen = f"Best epoch on the development sentences, by {run.config.select_by}: {run.best_epoch}."
    alignment = facts.get("alignment")
    return _list(
        f"On {facts.get('device', '?')}, {facts.get('precision', '?')}; "
        f"{'unknown time' if run.seconds is None else duration(run.seconds)}; "
        f"{run.total_steps or run.step:,} steps.",
        chosen,
        f"Versions: {versions or 'unknown'}.",
        f"Labels aligned: {alignment} ({_plain(facts.get('alignment_reason', ''))})." if alignment else None,
    )


def _limits(run: Run, schemes: Mapping[str, str]) -> str:
    config, facts = run.config, run.facts
    unseen = {
        task["name"]: sorted({label for labels in task.get("unseen", {}).values() for label in labels})
        for task in facts.get("tasks", ())
    }
    spans = [task for task, scheme in schemes.items() if scheme == "iob2"]
    return _list(
        "Words come split as the corpus splits them (punctuation marks are words of their own); a word's label "
        "is read at its first subword.",
        f"Sentences of more than {config.max_length} subwords are read in overlapping windows by MRN Lab. "
        "Transformers alone does not do that: cut them, or tag with `checkpoint`.",
        "Trained on truecased text: sentences all in capitals had their case restored. Transformers alone does "
        "not do that: such sentences must be truecased first."
        if config.truecase
        else None,
        "The scores were computed in bfloat16, as it trained; the weights are float32, so a label may differ "
        "here and there."
        if facts.get("precision") == "bf16"
        else None,
        *(
            f"{_plain(task)} cannot give labels that training never saw: {first_of([*map(_code, labels)], 12)}."
            for task, labels in unseen.items()
            if labels
        ),
        f"Labels of {first_of([*map(_code, spans)], 12)} are chosen word by word: an I- may follow no B-. It is "
        "then counted as the beginning of a span."
        if spans
        else None,
        "The corpus is made by a grammar: on real text this model was neither trained nor tested."
        if config.corpus.startswith("demo")
        else None,
        "No licence is claimed here: those of the encoder and of the corpus hold. The tables hold labels and "
        "numbers; no word of the corpus is among the files.",
    )


def _files(record: RunRecord, file: RunFile) -> str:
    relations = "the learned covariances at the last step, row names in its metadata"
    return _list(
        *(f"{_code(f'{name}/')}: {_plain(task)} for Transformers (safetensors)" for task, name in file.folders.items()),
        "`checkpoint/`: the run's own checkpoint (safetensors and JSON), all tasks at once",
        "`run.json`: description, facts, versions and history",
        "`metrics.parquet`, `scores.parquet`: its curves; its scores with a report per label",
        "`predictions.parquet`: gold and predicted labels of dev and test, sentence by sentence, no words",
        f"`relations.safetensors`: {relations}" if record.snapshots else None,
        "`snapshots.parquet`: all stored covariances, as the store packs them (for `mrnlab import`)",
        "`manifest.json`: size and SHA-256 of every file",
    )
