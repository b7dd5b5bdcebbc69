"""A trained tagger on disk: safetensors and JSON, never pickle.

A checkpoint folder holds `run.json` (what was trained, the tasks and their labels), `weights.safetensors`
(all that was trained on top of the transformer) and, where the transformer was trained too, `encoder/`,
a Transformers folder of its own. A frozen encoder is named, not copied.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from core.checkpoints.shared_storage import model_folder
from core.config import RunConfig
from core.encoding.batches import AT_ONCE, IGNORED, Batches
from core.encoding.encoded import EncodedText, encode
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.errors import ConfigError, MRNLabError
from core.models.device import ALL_THREADS
from core.models.encoders import (
    BiLSTM,
    CachedTransformer,
    Encoder,
    TrainedRows,
    Transformer,
    join_rows,
    load_transformer,
    shared_transformer,
    whole_vocabulary,
)
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger
from core.records import TaggedSentence, TaskFacts, WordTag

# A finished run as a tagger of free text.


_FEW_WORDS = (
    500  # so few are tagged as fast by one thread, and several models then do not wait for each other
)


class SavedTagger:
    """Tags sentences with every task of a finished run."""

    def __init__(
        self,
        config: RunConfig,
        tasks: Sequence[Mapping[str, Any]],
        model: MultiTaskTagger,
        tokenizer: SubwordTokenizer,
    ) -> None:
        self.config = config
        self._tasks = tasks
        self.model = model
        self.tokenizer = tokenizer

    @property
    def schemes(self) -> Mapping[str, str]:
        return {task["name"]: task["scheme"] for task in self._tasks}

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        return {task["name"]: task["labels"] for task in self._tasks}

    @torch.inference_mode()
    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word, with the `top` most probable labels of each."""
        words = [tuple(sentence) for sentence in sentences]
        text = encode(self._cased(words), self.tokenizer, self.config.max_length)
        number = len(text.firsts)
        # Probabilities and labels (N, top) of each task; never all labels' of a whole text.
        best = [
            (torch.zeros(number, kept), torch.zeros(number, kept, dtype=torch.int64))
            for kept in (min(top, len(task["labels"])) for task in self._tasks)
        ]
        batches = Batches(text, np.zeros((number, 0), dtype=np.int64), 1, self.tokenizer.pad)
        with _threads(1 if number <= _FEW_WORDS else ALL_THREADS):
            for batch in batches.by_length(AT_ONCE["cpu"]):
                logits = self.model(batch)
                for (shares, places), rows in zip(best, self.model.heads.slices, strict=True):
                    found = torch.softmax(logits[:, rows], dim=1).topk(shares.shape[1], dim=1)
                    shares[batch.words], places[batch.words] = found.values, found.indices
        by_task = {
            task["name"]: _word_tags(task["labels"], *own)
            for task, own in zip(self._tasks, best, strict=True)
        }
        starts = text.sentences.tolist()
        return [
            TaggedSentence(own, {task: tuple(tags[start:end]) for task, tags in by_task.items()})
            for own, start, end in zip(words, starts[:-1], starts[1:], strict=True)
        ]

    def _cased(self, sentences: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.config.truecase:
            return sentences
        # Imported here: it loads a large model, which only runs that used it need.
        from core.corpora.preparation import truecase
        from core.corpora.types import Sentence

        return [cased.tokens for cased in truecase([Sentence(words, {}) for words in sentences])]


def _word_tags(labels: Sequence[str], shares: torch.Tensor, places: torch.Tensor) -> list[WordTag]:
    """A task's answers, from the probabilities and numbers (N, top) of the best labels of N words."""
    names = np.asarray(labels, dtype=object)[places.T.numpy()].tolist()
    ranks = [list(zip(*rank, strict=True)) for rank in zip(names, shares.T.tolist(), strict=True)]
    return [WordTag(ranked[0][0], ranked[0][1], ranked) for ranked in zip(*ranks, strict=True)]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Computes with so many threads, and leaves their number as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_FORMAT = 1
_TRANSFORMER = ".inner."  # in the names of a transformer's own parameters


def save(
    folder: Path,
    config: RunConfig,
    tasks: Sequence[TaskFacts],
    tokenizer: SubwordTokenizer,
    model: MultiTaskTagger,
    weights: Mapping[str, torch.Tensor] | None = None,
) -> None:
    """Write a run's model into an empty folder.

    `weights`: what `own_weights` gave at an earlier moment, to be written instead of those of now.
    """
    own = own_weights(model) if weights is None else weights
    save_file({name: value.contiguous() for name, value in own.items()}, folder / "weights.safetensors")
    if config.encoder_training == "full":
        transformer = _transformer(model.encoder)
        with whole_vocabulary(transformer.inner):
            transformer.inner.save_pretrained(folder / "encoder")
        tokenizer.inner.save_pretrained(folder / "encoder")
    description = {
        "format": _FORMAT,
        "config": json.loads(config.to_json()),
        "tasks": [{"name": t.name, "scheme": t.scheme, "labels": t.labels} for t in tasks],
    }
    (folder / "run.json").write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


def own_weights(model: MultiTaskTagger) -> dict[str, torch.Tensor]:
    """The weights of all but the transformer, as they are in the model, not copied."""
    return {name: value for name, value in model.state_dict().items() if _TRANSFORMER not in name}


def saved_bytes(model: MultiTaskTagger) -> int:
    """About how many bytes `save` writes: the state of a model lacks the rows of a vocabulary not trained."""
    trained = [part for part in model.modules() if isinstance(part, TrainedRows)]
    left_out: int = sum(part.pretrained.nbytes - part.rows.nbytes for part in trained)
    kept: int = sum(value.nbytes for value in model.state_dict().values())
    return kept + left_out


def restore(folder: Path, model: MultiTaskTagger) -> None:
    """Put the weights saved in `folder` back into the model they came from."""
    trained = folder / "encoder"
    if trained.is_dir():
        saved = load_transformer(str(trained), half=False)
        inner = _transformer(model.encoder).inner
        join_rows(inner)
        inner.load_state_dict(saved.inner.state_dict())
    restore_own(model, load_file(folder / "weights.safetensors"))


def load(folder: Path) -> SavedTagger:
    """The tagger saved in `folder`, on the CPU. Raises MRNLabError where it is gone or damaged."""
    folder = model_folder(folder)
    try:
        description = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        config = RunConfig.stored(description["config"])
        tasks = description["tasks"]
        trained = folder / "encoder"
        source = str(trained) if trained.is_dir() else config.encoder
        encoder: Encoder
        encoder = load_transformer(source, half=False) if trained.is_dir() else shared_transformer(source)
        if config.bilstm_hidden is not None:
            encoder = BiLSTM(encoder, config.bilstm_hidden)
        sizes = [len(task["labels"]) for task in tasks]
        model = MultiTaskTagger(encoder, Heads(encoder.features, sizes, init="zeros", dropout=0.0))
        restore_own(model, load_file(folder / "weights.safetensors"))
        tokenizer = load_tokenizer(locate(source))
    except (FileNotFoundError, NotADirectoryError):
        raise MRNLabError(
            f"The checkpoint {folder.name} is not there any more. Train the run again to tag with it."
        ) from None
    except (KeyError, ValueError, RuntimeError, SafetensorError, ConfigError) as error:
        raise MRNLabError(
            f"The checkpoint {folder.name} is damaged ({error}). Train the run again."
        ) from error
    return SavedTagger(config, tasks, model.eval(), tokenizer)


def restore_own(model: MultiTaskTagger, state: Mapping[str, torch.Tensor]) -> None:
    """Put back all but the transformer's own weights. Raises ValueError where any is missing or too many."""
    missing, unexpected = model.load_state_dict(state, strict=False)
    odd = [name for name in missing if _TRANSFORMER not in name] + unexpected
    if odd:
        raise ValueError(f"weights do not fit the model: {', '.join(odd)}")


def _transformer(encoder: Encoder) -> Transformer:
    below = encoder.below if isinstance(encoder, BiLSTM) else encoder
    if not isinstance(below, Transformer):
        raise TypeError(f"a {type(below).__name__} holds no transformer")
    return below


# A trained tagger as Transformers folders: one per task, which `AutoModelForTokenClassification` loads.
#
# Of each task the encoder with its rows of the heads. Whether such a folder answers as the tagger does is
# not
# taken for granted: it is loaded again and asked.


_PROBE = ("Angela", "Merkel", "visited", "Boston", ",", "didn't", "she", "?")
_ALIKE = 1e-5


def save_task_folders(
    tagger: SavedTagger, folders: Mapping[str, Path], facts: Mapping[str, object]
) -> str | None:
    """Writes each named task's folder: config with labels, safetensors, tokenizer.

    `facts` go into each config under `mrnlab`, beside what a reader of sentences must know. Returns None, or
    a sentence on why Transformers has no class for this tagger; nothing is written then.
    """
    if tagger.config.bilstm_hidden is not None:
        return (
            "Transformers has no class for an encoder with a BiLSTM on top, so there is no folder per task; "
            "MRN Lab itself loads the model from `checkpoint`."
        )
    inner = _inner(tagger)
    try:
        for task, rows in zip(tagger.labels, tagger.model.heads.slices, strict=True):
            if task in folders:
                own = {**facts, **_facts(tagger, task)}
                _save(tagger, inner, tagger.labels[task], rows, folders[task], own)
                _check_alike(tagger, rows, folders[task])
    except _Unlike as error:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        return (
            f"Transformers has no class for token classification that computes what this run did over a "
            f"{inner.config.model_type} encoder ({error}), so there is no folder per task; MRN Lab itself "
            "loads the model from `checkpoint`."
        )
    return None


def save_encoder(tagger: SavedTagger, folder: Path) -> None:
    """Writes the tagger's transformer and tokenizer as a Transformers folder."""
    _inner(tagger).save_pretrained(folder)
    tagger.tokenizer.inner.save_pretrained(folder)


class _Unlike(Exception):
    """Why a class of Transformers is not this tagger."""


def _inner(tagger: SavedTagger) -> Any:
    """The Transformers model under the heads."""
    encoder: Any = tagger.model.encoder
    encoder = getattr(encoder, "below", encoder)
    if isinstance(encoder, CachedTransformer):
        encoder = encoder.transformer
    if not isinstance(encoder, Transformer):
        raise MRNLabError(f"A {type(encoder).__name__} holds no transformer to export.")
    return encoder.inner


def _facts(tagger: SavedTagger, task: str) -> dict[str, object]:
    config = tagger.config
    return {
        "task": task,
        "scheme": tagger.schemes[task],
        "max_length": config.max_length,
        "truecase": config.truecase,
        "label_of_word": "first subword",
    }


def _save(
    tagger: SavedTagger, inner: Any, labels: Any, rows: slice, folder: Path, facts: Mapping[str, object]
) -> None:
    from transformers import AutoModelForTokenClassification

    config = copy.deepcopy(inner.config)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.mrnlab = dict(facts)
    try:
        model = AutoModelForTokenClassification.from_config(config)
    except ValueError as error:
        raise _Unlike("it offers none") from error
    base = getattr(model, model.base_model_prefix)
    missing, _ = base.load_state_dict(inner.state_dict(), strict=False)
    if odd := [name for name in missing if "pooler" not in name]:
        raise _Unlike(f"it wants weights for {odd[0]}")
    classifier = _classifier(model)
    with torch.no_grad():
        classifier.weight.copy_(tagger.model.heads.weight[rows])
        classifier.bias.copy_(tagger.model.heads.bias[rows])
    model.eval().save_pretrained(folder)
    tokenizer = copy.deepcopy(tagger.tokenizer.inner)
    tokenizer.model_max_length = tagger.config.max_length
    tokenizer.save_pretrained(folder)


def _classifier(model: nn.Module) -> nn.Linear:
    """The one linear layer that such a model has on top of its encoder."""
    layers = [layer for layer in model.children() if isinstance(layer, nn.Linear)]
    if len(layers) != 1 or layers[0].bias is None:
        raise _Unlike("its classifier is not one linear layer")
    return layers[0]


@torch.inference_mode()
def _check_alike(tagger: SavedTagger, rows: slice, folder: Path) -> None:
    """Raises _Unlike where the folder, loaded, does not answer a sentence as the tagger does."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    text = encode([_PROBE], tagger.tokenizer, tagger.config.max_length)
    model = AutoModelForTokenClassification.from_pretrained(
        folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if text.windows == 1:
        read = tokenizer([list(_PROBE)], is_split_into_words=True)["input_ids"][0]
        if list(read) != text.ids.tolist():
            raise _Unlike("its tokenizer reads words differently")
    ours, batch = _logits(tagger, text)
    theirs = model(input_ids=batch.ids, attention_mask=batch.mask).logits
    theirs = theirs.reshape(-1, theirs.shape[-1])[batch.rows]
    difference = (theirs - ours[:, rows]).abs().max().item()
    if not difference <= _ALIKE * max(1.0, ours.abs().max().item()):
        raise _Unlike(f"its logits differ by {difference:.1g}")


def _logits(tagger: SavedTagger, text: EncodedText) -> tuple[Tensor, Any]:
    """All tasks' logits of a short text's words, and the one batch that it is."""
    blank = np.full((len(text.firsts), len(tagger.labels)), IGNORED, dtype=np.int64)
    (batch,) = Batches(text, blank, text.windows, tagger.tokenizer.pad).by_length()
    return tagger.model(batch), batch
