"""A trained tagger on disk: safetensors and JSON, never pickle.

A checkpoint folder holds `run.json` (what was trained, the tasks and their labels), `weights.safetensors`
(all that was trained on top of the transformer) and, where the transformer was trained too, `encoder/`,
a Transformers folder of its own. A frozen encoder is named, not copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from core.checkpoints.shared import model_folder
from core.config import RunConfig
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.errors import ConfigError, MRNLabError
from core.models.encoders import (
    BiLSTM,
    Encoder,
    TrainedRows,
    Transformer,
    join_rows,
    load_transformer,
    shared_transformer,
    whole_vocabulary,
)
from core.models.heads import Heads
from core.models.saved_tagger import SavedTagger
from core.models.sources import locate
from core.models.tagger import MultiTaskTagger
from core.training.events import TaskFacts

__all__ = ["load", "own_weights", "restore", "restore_own", "save", "saved_bytes"]

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
