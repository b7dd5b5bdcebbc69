"""Nothing that is read can run: hostile pickles and code wherever a file is read; a look at our source."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from core.corpora.catalogue import read_hub
from core.corpora.folder import read_folder
from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.errors import EncoderError, MRNLabError
from core.models.encoders.frozen import FeatureTables
from core.models.encoders.transformer import LazyTransformer, load_transformer
from core.models.model_io import load
from core.mrn.alignments.mapping import parse_mapping
from tests.tiny import tiny_bert

ROOT = Path(__file__).resolve().parents[2]


class _Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """The folder that a payload would make; it must not be there when the test ends."""
    folder = tmp_path / "executed"
    yield folder
    assert not folder.exists(), "a payload was executed"


@pytest.fixture
def evil(marker: Path) -> bytes:
    """A pickle that does harm; that it would is tried first."""
    pickled = pickle.dumps(_Payload(marker), protocol=2)
    pickle.loads(pickled)
    marker.rmdir()
    return pickled


@pytest.fixture
def code(marker: Path) -> str:
    """Python that does harm when it is imported."""
    return f"import os\nos.mkdir({str(marker)!r})\n"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "encoder")


def _changed(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def _spoil(kind: str, folder: Path, evil: bytes, code: str) -> str:
    """Make an encoder of that kind out of a harmless one; the words with which it is refused."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    match kind:
        case "only a pickle":
            weights.unlink()
            (folder / "pytorch_model.bin").write_bytes(evil)
            return "has its weights in a pickle"
        case "a torch file":
            weights.unlink()
            torch.save({"weights": [1]}, folder / "pytorch_model.bin")
            with (folder / "pytorch_model.bin").open("ab") as file:
                file.write(evil)
            return "has its weights in a pickle"
        case "safetensors that are none":
            weights.write_bytes(evil)
            return "cannot be loaded"
        case "shard.bin" | "../other/model.safetensors":  # what an index names
            weights.rename(folder / "other.safetensors")
            (folder / "shard.bin").write_bytes(evil)
            index = {"metadata": {"total_size": 1}, "weight_map": {"embeddings.word_embeddings.weight": kind}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
            return "only safetensors beside it are read"
        case "code of its own":
            classes = {"AutoConfig": "configuration_evil.Evil", "AutoModel": "modeling_evil.Evil"}
            _changed(config, model_type="evil", auto_map=classes)
            for name in ("configuration_evil", "modeling_evil"):
                (folder / f"{name}.py").write_text(code)
            return "comes with Python code of its own"
        case "kernels of others":
            _changed(config, _attn_implementation="kernels-community/evil")
            return "code from elsewhere"
        case "quantised":
            _changed(config, quantization_config={"quant_method": "bitsandbytes"})
            return "is quantised"
    config.write_bytes(evil)
    return "cannot be read"


@pytest.mark.parametrize(
    "kind",
    ["only a pickle", "a torch file", "safetensors that are none", "shard.bin", "../other/model.safetensors",
     "code of its own", "kernels of others", "quantised", "a pickled description"],
)  # fmt: skip
def test_a_hostile_encoder_is_refused_in_a_sentence(kind: str, encoder: Path, evil: bytes, code: str) -> None:
    words = _spoil(kind, encoder, evil, code)
    with pytest.raises(EncoderError, match=words):
        load_transformer(str(encoder), half=False)


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


def test_a_hostile_tokenizer_is_refused_in_a_sentence(encoder: Path, evil: bytes) -> None:
    (encoder / "tokenizer.json").write_bytes(evil)
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_tokenizer(str(encoder))


@pytest.mark.parametrize("file", ["weights.safetensors", "run.json"])
def test_a_hostile_checkpoint_is_refused_in_a_sentence(file: str, encoder: Path, evil: bytes) -> None:
    folder = encoder.parent / "7"
    folder.mkdir()
    described = {"config": {"tasks": ["pos"], "paradigm": "stl", "encoder": str(encoder)}}
    tasks = [{"name": "pos", "scheme": "plain", "labels": ["N"]}]
    (folder / "run.json").write_text(json.dumps({"format": 1, **described, "tasks": tasks}))
    (folder / file).write_bytes(evil)
    with pytest.raises(MRNLabError, match="damaged"):
        load(folder)


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
    objects = np.array([_Payload(marker)], dtype=object)
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


def test_hostile_uploads_are_refused_in_a_sentence(tmp_path: Path, evil: bytes) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.conll").write_bytes(evil)
    with pytest.raises(MRNLabError):
        read_folder(tmp_path)
    with pytest.raises(MRNLabError):
        parse_mapping(evil, "mapping.csv")


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


def test_a_script_in_place_of_a_corpus_is_not_run(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the repository's name, where one happens to stand."""
    folder = tmp_path / "eriktks" / "conll2003"
    folder.mkdir(parents=True)
    (folder / "conll2003.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("core.corpora.catalogue.look_up_hub", lambda: None)
    with pytest.raises(MRNLabError, match=r"scripts are never run|is not on this machine"):
        read_hub("conll2003", "eriktks/conll2003")


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
