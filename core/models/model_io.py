"""A trained tagger on disk: safetensors and JSON, never pickle.

A checkpoint folder holds `run.json` (what was trained, the tasks and their labels), `weights.safetensors`
(all that was trained on top of the transformer) and, where the transformer was trained too, `encoder/`,
a Transformers folder of its own. A frozen encoder is named, not copied.
"""

from __future__ import annotations

import copy
import json
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
from core.encoding.batches import AT_ONCE, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import SubwordTokenizer, Tokenizer, load_tokenizer
from core.errors import ConfigError, MRNLabError
from core.models.device import ALL_THREADS
from core.models.encoders import Encoder
from core.models.encoders.bilstm import BiLSTM
from core.models.encoders.fast_bert import TrainedRows, join_rows, whole_vocabulary
from core.models.encoders.frozen import CachedTransformer, shared_transformer
from core.models.encoders.transformer import Transformer, load_transformer
from core.models.encoders.word_inputs import WordInputs
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger, chains
from core.models.word_model import ContextReader, load_context, load_word_encoder, save_inventory
from core.records import TaggedSentence, TaskFacts, WordTag
from core.registry import reads_words

_FEW_WORDS = 500  # one thread is as fast for so few, and several models then do not wait for each other
_FORMAT = 1
_TRANSFORMER = ".inner."  # in the names of a transformer's own parameters


class SavedTagger:
    """A finished run as a tagger of sentences, with every task. `schemes` and `labels` are by task."""

    def __init__(
        self,
        config: RunConfig,
        tasks: Sequence[Mapping[str, Any]],
        model: MultiTaskTagger,
        tokenizer: Tokenizer,
        context: ContextReader | None = None,
    ) -> None:
        self.config, self.model, self.tokenizer, self.context = config, model, tokenizer, context
        self.schemes: Mapping[str, str] = {task["name"]: task["scheme"] for task in tasks}
        self.labels: Mapping[str, Sequence[str]] = {task["name"]: task["labels"] for task in tasks}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its answers should know, a sentence each."""
        inputs = [part for part in self.model.modules() if isinstance(part, WordInputs)]
        return tuple(part.note for part in inputs if part.note is not None)

    @torch.inference_mode()
    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word, with the `top` most probable labels of each."""
        words = [tuple(sentence) for sentence in sentences]
        cased = self._truecased(words)
        text = encode(cased, self.tokenizer, self.config.max_length)
        count = len(text.firsts)
        # Probabilities and label numbers (N, top) of each task; never all labels' of a whole text.
        best = [
            (torch.zeros(count, kept), torch.zeros(count, kept, dtype=torch.int64))
            for kept in (min(top, len(labels)) for labels in self.labels.values())
        ]
        batches = Batches(text, np.zeros((count, 0), dtype=np.int64), 1, self.tokenizer.pad)
        with _threads(1 if count <= _FEW_WORDS else ALL_THREADS):
            if self.context is not None:
                batches.context = self.context.read(cased, text)
            for batch in batches.by_length(AT_ONCE["cpu"]):
                logits = self.model(batch)
                chosen = self.model.best(logits, batch)
                of_tasks = self.model.probabilities(logits, batch)
                for task, ((probabilities, numbers), of_labels) in enumerate(
                    zip(best, of_tasks, strict=True)
                ):
                    # A CRF chooses a sequence: the label of a word need not be its most probable one.
                    first = torch.scatter_add(of_labels, 1, chosen[:, task, None], torch.ones(len(chosen), 1))
                    ranked = first.topk(probabilities.shape[1], dim=1).indices
                    numbers[batch.words] = ranked
                    probabilities[batch.words] = of_labels.gather(1, ranked)
        by_task = {
            task: _word_tags(labels, *highest)
            for (task, labels), highest in zip(self.labels.items(), best, strict=True)
        }
        starts = text.sentences.tolist()
        return [
            TaggedSentence(tokens, {task: tuple(tags[start:end]) for task, tags in by_task.items()})
            for tokens, start, end in zip(words, starts[:-1], starts[1:], strict=True)
        ]

    def _truecased(self, sentences: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.config.truecase:
            return sentences
        # Imported here: it loads a large model, which only runs that used it need.
        from core.corpora.preparation import truecase
        from core.corpora.types import Sentence

        return [cased.tokens for cased in truecase([Sentence(words, {}) for words in sentences])]


def _word_tags(labels: Sequence[str], probabilities: Tensor, numbers: Tensor) -> list[WordTag]:
    """A task's answers, from the probabilities and numbers (N, top) of the best labels of N words."""
    names = np.asarray(labels, dtype=object)[numbers.T.numpy()].tolist()
    ranks = [list(zip(*rank, strict=True)) for rank in zip(names, probabilities.T.tolist(), strict=True)]
    return [WordTag(ranked[0][0], ranked[0][1], ranked) for ranked in zip(*ranks, strict=True)]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Compute with so many threads, and leave their number as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def save(
    folder: Path,
    config: RunConfig,
    tasks: Sequence[TaskFacts],
    tokenizer: Tokenizer,
    model: MultiTaskTagger,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a run's model into an empty folder.

    `weights`: the result of `own_weights` at an earlier step, to be written instead of the current ones.
    """
    state = own_weights(model) if weights is None else weights
    save_file({name: value.contiguous() for name, value in state.items()}, folder / "weights.safetensors")
    save_inventory(folder, model)
    if isinstance(tokenizer, SubwordTokenizer) and config.encoder_training == "full":
        inner = _inner(model.encoder)
        with whole_vocabulary(inner):
            inner.save_pretrained(folder / "encoder")
        tokenizer.inner.save_pretrained(folder / "encoder")
    description = {
        "format": _FORMAT,
        "config": json.loads(config.to_json()),
        "tasks": [{"name": task.name, "scheme": task.scheme, "labels": task.labels} for task in tasks],
    }
    (folder / "run.json").write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


def own_weights(model: MultiTaskTagger) -> dict[str, Tensor]:
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
    if (folder / "encoder").is_dir():
        inner = _inner(model.encoder)
        join_rows(inner)
        inner.load_state_dict(load_transformer(str(folder / "encoder"), half=False).inner.state_dict())
    restore_own(model, load_file(folder / "weights.safetensors"))


def restore_own(model: MultiTaskTagger, state: Mapping[str, Tensor]) -> None:
    """Put back all but the transformer's own weights. Raises ValueError where any is missing or too many."""
    missing, unexpected = model.load_state_dict(state, strict=False)
    if wrong := [name for name in missing if _TRANSFORMER not in name] + unexpected:
        raise ValueError(f"weights do not fit the model: {', '.join(wrong)}")


def load(folder: Path) -> SavedTagger:
    """The tagger saved in `folder`, on the CPU. Raises MRNLabError where it is gone or damaged."""
    folder = model_folder(folder)
    try:
        description = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        config = RunConfig.stored(description["config"])
        tasks = description["tasks"]
        context = load_context(config, folder)
        encoder, tokenizer = _load_encoder(config, folder, context)
        sizes = [len(task["labels"]) for task in tasks]
        heads = Heads(encoder.features, sizes, init="zeros", dropout=0.0)
        model = MultiTaskTagger(
            encoder,
            heads,
            chains(config, [task["scheme"] for task in tasks], [task["labels"] for task in tasks]),
        )
        restore_own(model, load_file(folder / "weights.safetensors"))
    except (FileNotFoundError, NotADirectoryError):
        raise MRNLabError(
            f"The checkpoint {folder.name} is not there any more. Train the run again to tag with it."
        ) from None
    except (KeyError, ValueError, RuntimeError, SafetensorError, ConfigError) as error:
        raise MRNLabError(
            f"The checkpoint {folder.name} is damaged ({error}). Train the run again."
        ) from error
    return SavedTagger(config, tasks, model.eval(), tokenizer, context)


def _load_encoder(
    config: RunConfig, folder: Path, context: ContextReader | None
) -> tuple[Encoder, Tokenizer]:
    """The encoder of a checkpoint without the weights that were trained on top of a transformer, and what
    splits words for it.
    """
    if reads_words(config.encoder):
        return load_word_encoder(config, folder, 0 if context is None else context.transformer.features)
    trained = (folder / "encoder").is_dir()
    source = str(folder / "encoder") if trained else config.encoder
    encoder: Encoder = load_transformer(source, half=False) if trained else shared_transformer(source)
    if config.bilstm_hidden is not None:
        encoder = BiLSTM(encoder, config.bilstm_hidden)
    return encoder, load_tokenizer(locate(source))


def _inner(encoder: Encoder) -> Any:
    """The Transformers model of an encoder. Raises MRNLabError where there is none."""
    below = encoder.below if isinstance(encoder, BiLSTM) else encoder
    transformer = below.transformer if isinstance(below, CachedTransformer) else below
    if not isinstance(transformer, Transformer):
        raise MRNLabError(f"A {type(transformer).__name__} holds no transformer to export.")
    return transformer.inner


def _inner_tokenizer(tokenizer: Tokenizer) -> Any:
    """The tokenizer of Transformers. Raises MRNLabError where there is none."""
    if not isinstance(tokenizer, SubwordTokenizer):
        raise MRNLabError("An encoder that reads words has no tokenizer to export.")
    return tokenizer.inner


def save_encoder(tagger: SavedTagger, folder: Path) -> None:
    """Write the transformer that the tagger reads, as encoder or as context, and its tokenizer as a
    Transformers folder.
    """
    context = tagger.context
    encoder, tokenizer = (
        (tagger.model.encoder, tagger.tokenizer)
        if context is None
        else (context.transformer, context.tokenizer)
    )
    _inner(encoder).save_pretrained(folder)
    _inner_tokenizer(tokenizer).save_pretrained(folder)


def save_task_folders(
    tagger: SavedTagger, folders: Mapping[str, Path], facts: Mapping[str, object]
) -> str | None:
    """Write each named task as a folder that `AutoModelForTokenClassification` loads: the encoder with the
    task's rows of the heads, config with labels, tokenizer.

    `facts` go into each config under `mrnlab`, beside what a reader of sentences must know. Returns None, or
    a sentence on why Transformers has no class for this tagger; nothing is written then.
    """
    lacks = [
        what
        for what, is_there in (
            ("an encoder that reads words", reads_words(tagger.config.encoder)),
            ("a BiLSTM on top", tagger.config.bilstm_hidden is not None),
            ("a CRF", bool(tagger.model.chains)),
        )
        if is_there
    ]
    if lacks:
        return (
            f"Transformers has no class for token classification with {lacks[0]}, so there is no folder per "
            "task; MRN Lab itself loads the model from `checkpoint`."
        )
    inner = _inner(tagger.model.encoder)
    for task, rows in zip(tagger.labels, tagger.model.heads.slices, strict=True):
        if task in folders and (problem := _save_task(tagger, inner, task, rows, folders[task], facts)):
            return (
                "Transformers has no class for token classification that computes what this run did over a "
                f"{inner.config.model_type} encoder ({problem}), so there is no folder per task; MRN Lab "
                "itself loads the model from `checkpoint`."
            )
    return None


def _save_task(
    tagger: SavedTagger,
    inner: Any,
    task: str,
    rows: slice,
    folder: Path,
    facts: Mapping[str, object],
) -> str:
    """Why the class of Transformers does not compute what this tagger does; empty where it is written."""
    from transformers import AutoModelForTokenClassification

    config = copy.deepcopy(inner.config)
    config.id2label = dict(enumerate(tagger.labels[task]))
    config.label2id = {label: index for index, label in config.id2label.items()}
    config.mrnlab = {
        **facts,
        "task": task,
        "scheme": tagger.schemes[task],
        "max_length": tagger.config.max_length,
        "truecase": tagger.config.truecase,
        "label_of_word": "first subword",
    }
    try:
        model = AutoModelForTokenClassification.from_config(config)
    except ValueError:
        return "it offers none"
    missing, _ = getattr(model, model.base_model_prefix).load_state_dict(inner.state_dict(), strict=False)
    if wanted := [name for name in missing if "pooler" not in name]:
        return f"it wants weights for {wanted[0]}"
    above = [
        layer
        for name, layer in model.named_children()
        if name != model.base_model_prefix and list(layer.parameters())
    ]
    if len(above) != 1 or not isinstance(above[0], nn.Linear) or above[0].bias is None:
        return "its classifier is not one linear layer"
    with torch.no_grad():
        above[0].weight.copy_(tagger.model.heads.weight[rows])
        above[0].bias.copy_(tagger.model.heads.bias[rows])
    model.eval().save_pretrained(folder)
    tokenizer = copy.deepcopy(_inner_tokenizer(tagger.tokenizer))
    tokenizer.model_max_length = tagger.config.max_length
    tokenizer.save_pretrained(folder)
    return ""
