"""Nothing that is read can run: pickles and code beside what is read; a look at our source."""

from __future__ import annotations

import ast
import importlib
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders.frozen import FeatureTables
from core.models.encoders.transformer import LazyTransformer, load_transformer
from tests.security.hostile import Payload
from tests.tiny import tiny_bert

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "encoder")


def _changed(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_what_lies_beside_an_encoder_is_not_opened(encoder: Path, evil: bytes, code: str) -> None:
    pickles = ("pytorch_model", "optimizer", "training_args", "adapter_model", "rng_state")
    for name in (f"{stem}{ending}" for stem in pickles for ending in (".bin", ".pt", ".pth")):
        (encoder / name).write_bytes(evil)
    (encoder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "x"}')
    _changed(encoder / "config.json", auto_map={"AutoModel": "modeling_evil.Evil"})
    _changed(
        encoder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["tok_evil.Evil", "tok_evil.Evil"]}
    )
    (encoder / "modeling_evil.py").write_text(code)
    (encoder / "tok_evil.py").write_text(code)
    assert load_transformer(str(encoder), half=False).features == 16
    assert load_tokenizer(str(encoder)).pad == 0


@pytest.mark.parametrize("kind", ["pickle", "array of objects"])
def test_hostile_caches_are_made_anew(
    kind: str, encoder: Path, tmp_path: Path, evil: bytes, marker: Path
) -> None:
    tokenizer = load_tokenizer(str(encoder))
    text, key = encode_cached([("EU", "rejects")], tokenizer, 32, tmp_path)

    def tables() -> FeatureTables:
        source = LazyTransformer(str(encoder), half=False, device=torch.device("cpu"))
        return FeatureTables(source, 0, tmp_path, torch.device("cpu"))

    assert tables().compute(text, key, for_training=True)
    (encoded,), (features,) = tmp_path.glob("*.npz"), tmp_path.glob("*.npy")
    objects = np.array([Payload(marker)], dtype=object)
    if kind == "pickle":
        encoded.write_bytes(evil)
        features.write_bytes(evil)
    else:
        with encoded.open("wb") as file:
            np.savez(file, ids=objects, offsets=objects, firsts=objects, words=objects, sentences=objects)
        with features.open("wb") as file:
            np.save(file, objects)
    again, _ = encode_cached([("EU", "rejects")], tokenizer, 32, tmp_path)
    assert np.array_equal(again.ids, text.ids)
    assert not tables().has(text, key, for_training=True)


def test_the_truecasers_data_may_name_two_classes(evil: bytes) -> None:
    truecasing = importlib.import_module("core.corpora.preparation")
    unpickler = truecasing._TwoNamesUnpickler
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        unpickler(io.BytesIO(evil)).load()
    # Neither by a path through an allowed class.
    dotted = b"\x80\x04\x8c\x10nltk.probability\x8c\x13FreqDist.__init__.x\x93."
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        unpickler(io.BytesIO(dotted)).load()
    assert unpickler(io.BytesIO(pickle.dumps({"a": {1}}, protocol=3))).load() == {"a": {1}}


# Ruff's rules S102 to S608 (pyproject.toml) refuse the rest. The exception is the unpickler of two names.
_UNPICKLERS = {"pickle", "joblib", "dill", "cloudpickle", "marshal", "shelve", "yaml"}
_FORBIDDEN = {"torch.load", "__import__", "compile", "np.fromregex", "shutil.unpack_archive", "tarfile.open"}
_REQUIRED = {
    "np.load": {"allow_pickle": "False"},
    "from_pretrained": {"trust_remote_code": "False"},
    "AutoModel.from_pretrained": {"use_safetensors": "True"},
}


def _dangers(source: str) -> list[str]:
    """The imports and calls of that source that could run what is read."""
    dangers = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            dangers += [name for name in modules if name.partition(".")[0] in _UNPICKLERS]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            options = {option.arg: ast.unparse(option.value) for option in node.keywords}
            if name in _FORBIDDEN or options.get("trust_remote_code", "False") != "False":
                dangers.append(name)
            for function, required in _REQUIRED.items():
                if f".{name}".endswith(f".{function}") and not required.items() <= options.items():
                    dangers.append(f"{name} without {required}")
    return dangers


def test_our_source_loads_nothing_that_could_run() -> None:
    bad = (
        "import joblib\ntorch.load(f)\nnp.load(f)\nAutoModel.from_pretrained(x)\nget(x, trust_remote_code=x)"
    )
    assert len(_dangers(bad)) == 6
    sources = [path for part in ("core", "jobs", "dashboard") for path in (ROOT / part).rglob("*.py")]
    assert len(sources) > 150
    dangers = {path.name: dangers for path in sources if (dangers := _dangers(path.read_text("utf-8")))}
    assert dangers == {"preparation.py": ["pickle"]}
