"""What is read of an encoder that others made: JSON and safetensors, never Python code and never a pickle.

Transformers itself asks at a terminal whether it may run a folder's own code, reads shards that an index
calls `.bin` as pickles, and fetches kernels that a config.json names (docs/security.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import EncoderError

__all__ = ["INDEX", "check_description", "check_folder", "check_index"]

INDEX = "model.safetensors.index.json"
"""The file that says which shard holds which weights."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
# The kinds of attention that torch itself computes; any other is a package or a kernel of the Hub.
_ATTENTION = (None, "sdpa", "eager", "flex_attention")


def check_folder(folder: Path, name: str) -> None:
    """Raises EncoderError where a local model folder could be loaded only by running code or a pickle."""
    if not any(folder.glob("*.safetensors")) and any(any(folder.glob(kind)) for kind in _PICKLES):
        raise EncoderError(
            f"The encoder {name} has its weights in a pickle, which can run code when it is read; it is not "
            "opened. Write it again as safetensors (model.save_pretrained(folder)), where you trust it."
        )
    check_index(folder / INDEX, name)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"The encoder's {folder / 'config.json'} cannot be read ({error}).") from error
    if not isinstance(config, dict):
        raise EncoderError(f"The encoder's {folder / 'config.json'} does not describe a model.")
    check_description(config, name)


def check_index(file: Path, name: str) -> None:
    """Raises EncoderError where an index names shards that are no safetensors beside it. None is no error."""
    if not file.is_file():
        return
    try:
        shards = json.loads(file.read_text(encoding="utf-8"))["weight_map"].values()
        odd = next((one for one in shards if Path(one).name != one or not one.endswith(".safetensors")), None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EncoderError(f"The encoder {name} has an index of weights that cannot be read.") from error
    if odd is not None:
        raise EncoderError(
            f"The encoder {name} has an index that names {str(odd)[:100]!a} for its weights; only "
            "safetensors beside it are read."
        )


def check_description(config: Mapping[str, Any], name: str) -> None:
    """Raises EncoderError where a config.json asks for kernels or packages of others."""
    asked = config.get("_attn_implementation") or config.get("attn_implementation")
    if asked not in _ATTENTION:
        raise EncoderError(
            f"The encoder {name} asks for the attention {str(asked)[:100]!a}, which is code from elsewhere; "
            "take that out of its config.json."
        )
    if config.get("quantization_config"):
        raise EncoderError(
            f"The encoder {name} is quantised, and cannot be trained here; use its original weights."
        )
