"""A trained tagger on disk: safetensors and JSON, never pickle.

A checkpoint folder holds `run.json` (what was trained, the tasks and their labels), `weights.safetensors`
(all that was trained on top of the transformer, with its last layers where those alone were trained) and,
where the whole transformer was trained, `encoder/`, a Transformers folder of its own. An encoder that was
not trained in full is named, not copied; an export puts it into `encoder/` as trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints.shared_storage import model_folder
from core.config import RunConfig
from core.encoding.tokenizer import SubwordTokenizer, Tokenizer, load_tokenizer
from core.errors import ConfigError, MRNLabError
from core.events import TaskFacts
from core.models.encoders import Encoder
from core.models.encoders.bilstm import BiLSTM
from core.models.encoders.fast_bert import TrainedRows, join_rows, whole_vocabulary
from core.models.encoders.frozen import CachedTransformer, shared_transformer
from core.models.encoders.partial import TopLayers, load_top
from core.models.encoders.task_embedding import TaskEmbeddedTransformer, embed_tasks
from core.models.encoders.transformer import Transformer, load_transformer
from core.models.saved_tagger import SavedTagger
from core.models.sources import locate
from core.models.tagger import HeadTask, MultiTaskTagger, make_tagger
from core.models.trained_heads import TrainedHeads
from core.models.word_model import ContextReader, load_context, load_word_encoder, save_inventory
from core.registry import FULL, reads_words

_FORMAT = 1
_TRANSFORMER = ".inner."  # in the names of a transformer's own parameters


def save(
    folder: Path,
    config: RunConfig,
    tasks: Sequence[TaskFacts],
    tokenizer: Tokenizer,
    model: MultiTaskTagger,
    weights: Mapping[str, Tensor] | None = None,
    before: TrainedHeads | None = None,
) -> None:
    """Write a run's model into an empty folder.

    `weights`: the result of `own_weights` at an earlier step, to be written instead of the current ones.
    `before`: the trained heads that this run's is added to; the folder then has all of them.
    """
    state = own_weights(model) if weights is None else weights
    if before is not None:
        state = before.joined(state)
    save_file({name: value.contiguous() for name, value in state.items()}, folder / "weights.safetensors")
    save_inventory(folder, model)
    if isinstance(tokenizer, SubwordTokenizer) and config.encoder_training == FULL:
        inner = inner_of(model.encoder)
        with whole_vocabulary(inner):
            inner.save_pretrained(folder / "encoder")
        tokenizer.inner.save_pretrained(folder / "encoder")
    description = {
        "format": _FORMAT,
        "config": json.loads(config.to_json()),
        "tasks": [*(before.tasks if before else ()), *map(_described, tasks)],
        "pooling": model.pooled_by,
    }
    (folder / "run.json").write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


def _described(task: TaskFacts) -> dict[str, Any]:
    described = {"name": task.name, "scheme": task.scheme, "labels": task.labels}
    return described | ({} if task.scale is None else {"scale": task.scale})


def own_weights(model: MultiTaskTagger) -> dict[str, Tensor]:
    """The weights of all but the transformer, as they are in the model, not copied."""
    return {name: value for name, value in model.state_dict().items() if _is_own(name)}


def _is_own(name: str) -> bool:
    return _TRANSFORMER not in name


def saved_bytes(model: MultiTaskTagger) -> int:
    """About how many bytes `save` writes: the state of a model lacks the rows of a vocabulary not trained."""
    trained = [part for part in model.modules() if isinstance(part, TrainedRows)]
    left_out: int = sum(part.pretrained.nbytes - part.rows.nbytes for part in trained)
    kept: int = sum(value.nbytes for value in model.state_dict().values())
    return kept + left_out


def restore(folder: Path, model: MultiTaskTagger, before: TrainedHeads | None = None) -> None:
    """Load the weights saved in `folder` into the model they came from, with the heads it was added to."""
    if (folder / "encoder").is_dir():
        inner = inner_of(model.encoder)
        join_rows(inner)
        inner.load_state_dict(load_transformer(str(folder / "encoder"), half=False).inner.state_dict())
    state = load_file(folder / "weights.safetensors")
    restore_own(model, state if before is None else before.parted(state))


def restore_own(model: MultiTaskTagger, state: Mapping[str, Tensor]) -> None:
    """Put back the weights of `own_weights`.

    Raises ValueError where any is missing, or too many: a transformer may be shared with other models.
    """
    if foreign := [name for name in state if not _is_own(name)]:
        raise ValueError(f"weights of the encoder do not belong there: {foreign[0]}")
    missing, unexpected = model.load_state_dict(state, strict=False)
    if wrong := [name for name in missing if _is_own(name)] + unexpected:
        raise ValueError(f"weights do not fit the model: {', '.join(wrong)}")


def load(folder: Path) -> SavedTagger:
    """The tagger saved in `folder`, on the CPU. Raises MRNLabError where it is gone or damaged."""
    folder = model_folder(folder)
    try:
        description = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        config = RunConfig.from_stored(description["config"])
        tasks = description["tasks"]
        context = load_context(config, folder)
        weights = load_file(folder / "weights.safetensors")
        encoder, tokenizer = _load_encoder(config, folder, context, len(tasks))
        head_tasks = [
            HeadTask(task["scheme"], task["labels"], task.get("scale") and tuple(task["scale"]))
            for task in tasks
        ]
        model = make_tagger(encoder, config, head_tasks, pooled_by=description.get("pooling", "cls"))
        restore_own(model, weights)
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
    config: RunConfig, folder: Path, context: ContextReader | None, tasks: int
) -> tuple[Encoder, Tokenizer]:
    """The encoder of a checkpoint for this number of tasks, without its `weights`, and its tokenizers."""
    if reads_words(config.encoder):
        return load_word_encoder(config, folder, 0 if context is None else context.transformer.features)
    has_folder = (folder / "encoder").is_dir()
    source = str(folder / "encoder") if has_folder else config.encoder
    encoder: Encoder
    if config.top_layer_count:
        encoder = load_top(source, config.top_layer_count)
    elif has_folder:
        encoder = embed_tasks(load_transformer(source, half=False), tasks, config.task_embedding)
    else:
        encoder = shared_transformer(source)
    if config.bilstm_hidden is not None:
        encoder = BiLSTM(encoder, config.bilstm_hidden)
    return encoder, load_tokenizer(locate(source))


def inner_of(encoder: Encoder) -> Any:
    """The Transformers model of an encoder. Raises MRNLabError where there is none."""
    below = encoder.below if isinstance(encoder, BiLSTM) else encoder
    if isinstance(below, TopLayers):
        return below.whole()
    wraps = CachedTransformer | TaskEmbeddedTransformer
    transformer = below.transformer if isinstance(below, wraps) else below
    if not isinstance(transformer, Transformer):
        raise MRNLabError(f"A {type(transformer).__name__} holds no transformer to export.")
    return transformer.inner


def inner_tokenizer(tokenizer: Tokenizer) -> Any:
    """The tokenizer of Transformers. Raises MRNLabError where there is none."""
    if not isinstance(tokenizer, SubwordTokenizer):
        raise MRNLabError("An encoder that reads words has no tokenizer to export.")
    return tokenizer.inner


def save_encoder(tagger: SavedTagger, folder: Path) -> None:
    """Write the tagger's transformer (encoder or context) and its tokenizer as a Transformers folder."""
    context = tagger.context
    encoder, tokenizer = (
        (tagger.model.encoder, tagger.tokenizer)
        if context is None
        else (context.transformer, context.tokenizer)
    )
    inner_of(encoder).save_pretrained(folder)
    inner_tokenizer(tokenizer).save_pretrained(folder)
