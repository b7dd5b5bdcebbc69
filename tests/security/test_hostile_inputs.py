"""Hostile input is refused in a sentence, and nothing that is read, by us or beside it, can run."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.corpora import assembly, load, save_upload
from core.corpora.catalogue import uploads
from core.corpora.catalogue.folders import detect_columns, read_folder
from core.corpora.catalogue.names import read_hub
from core.corpora.readers import lines as readers
from core.corpora.readers.conll import read_table
from core.corpora.readers.given import read_given
from core.corpora.readers.lines import read_lines
from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.errors import ConfigError, CorpusError, EncoderError, MRNLabError
from core.models import model_io
from core.models.encoders.frozen import FeatureTables
from core.models.encoders.transformer import LazyTransformer, load_transformer
from core.models.sources import check_available
from core.mrn.alignments.mapping import MOST_BYTES, parse_mapping, read_mapping
from core.transfer.features import read_loss_log
from tests.security.hostile import Payload
from tests.tiny import tiny_bert


@dataclass(frozen=True)
class Inputs:
    """Makes hostile inputs in a folder."""

    folder: Path
    evil: bytes
    """A pickle that makes a folder when it is loaded."""
    code: str
    """Python that makes it when it is imported."""
    patch: pytest.MonkeyPatch

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def of_size(self, name: str, size: int) -> Path:
        """A file that takes no disk."""
        path = self.file(name, "")
        os.truncate(path, size)
        return path

    def pipe(self, name: str) -> Path:
        """It would be read for ever."""
        os.mkfifo(self.folder / name)
        return self.folder / name

    def empty(self) -> Path:
        """A folder without a file."""
        (self.folder / "empty").mkdir()
        return self.folder / "empty"

    def corpus(self, train: str | bytes, test: str | bytes) -> Path:
        """A folder with these CoNLL files."""
        self.file("corpus/train.conll", train)
        return self.file("corpus/test.conll", test).parent

    def encoder(self, **described: object) -> Path:
        """A harmless one, but for these values of its config.json."""
        folder = tiny_bert(self.folder / "encoder")
        config = folder / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | described))
        return folder


Read = Callable[[Inputs], object]


def _many_lines(made: Inputs) -> object:
    made.patch.setattr(readers, "MOST_LINES", 9)
    return read_lines(made.file("a.conll", "a N\n" * 10))


def _large_upload(made: Inputs) -> object:
    made.patch.setattr(uploads, "MOST_MEGABYTES", 1)
    return save_upload({"train.conll": b"a N\n" * 300_000, "test.conll": b"a N\n"}, "large")


def _many_labels(made: Inputs) -> object:
    rows = "\n".join(f"w L{number}\n" for number in range(assembly.MOST_LABELS + 1))
    return read_folder(made.corpus(rows, "w L1\n"), ("tokens", "pos"))


def _text_files(made: Inputs) -> object:
    for split in ("train", "test"):
        folder = made.file(f"notes/{split}.txt", "some words\n").parent
    return load(f"hub:{folder}")


def _card_of_files_elsewhere(made: Inputs) -> object:
    secret = made.file("secret.csv", "text,label\na b,x\nc d,y\n")
    lines = ["---", "configs:", "- config_name: default", f"  data_files: {secret}", "---"]
    (made.empty() / "README.md").write_text("\n".join(lines))
    return load(f"hub:{made.folder / 'empty'}")


def _saved_dataset(made: Inputs) -> Path:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"text": ["a b", "c d"], "label": ["x", "y"]})
    datasets.DatasetDict(train=table, test=table).save_to_disk(made.folder / "saved")
    return made.folder / "saved"


def _dataset_of_files_elsewhere(made: Inputs) -> object:
    state = _saved_dataset(made) / "train" / "state.json"
    described = json.loads(state.read_text())
    described["_data_files"][0]["filename"] = "../../secret.arrow"
    state.write_text(json.dumps(described))
    return load(f"hub:{made.folder / 'saved'}")


def _dataset_outside_of_the_named_folders(made: Inputs) -> object:
    folder = _saved_dataset(made)
    made.patch.setenv("MRNLAB_DATA_ROOTS", str(made.folder / "allowed"))
    return load(f"hub:{folder}")


def _script_of_a_repositorys_name(made: Inputs) -> object:
    """Where a folder of that name happens to stand."""
    made.file("eriktks/conll2003/conll2003.py", made.code)
    made.patch.chdir(made.folder)
    made.patch.setattr("core.corpora.catalogue.names.look_up_hub", lambda: None)
    return read_hub("conll2003", "eriktks/conll2003")


def _pickled_weights(made: Inputs) -> Path:
    folder = made.encoder()
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(made.evil)
    return folder


def _torch_file(made: Inputs) -> Path:
    file = _pickled_weights(made) / "pytorch_model.bin"
    torch.save({"weights": [1]}, file)
    with file.open("ab") as weights:
        weights.write(made.evil)
    return file.parent


def _sharded(shard: str) -> Callable[[Inputs], Path]:
    """An index of weights that names that shard."""

    def make(made: Inputs) -> Path:
        folder = made.encoder()
        (folder / "model.safetensors").rename(folder / "other.safetensors")
        (folder / "shard.bin").write_bytes(made.evil)
        index = {"metadata": {"total_size": 1}, "weight_map": {"embeddings.word_embeddings.weight": shard}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    return make


def _code_of_its_own(made: Inputs) -> Path:
    classes = {"AutoConfig": "configuration_evil.Evil", "AutoModel": "modeling_evil.Evil"}
    for name in ("configuration_evil", "modeling_evil"):
        made.file(f"encoder/{name}.py", made.code)
    return made.encoder(model_type="evil", auto_map=classes)


def _replaced(name: str) -> Callable[[Inputs], Path]:
    """An encoder with a pickle in place of that file."""

    def make(made: Inputs) -> Path:
        (made.encoder() / name).write_bytes(made.evil)
        return made.folder / "encoder"

    return make


def _value(read: Callable[[Any], object], value: object) -> Read:
    return lambda made: read(value)


def _encoder(make: Callable[[Inputs], Path]) -> Read:
    return lambda made: load_transformer(str(make(made)), half=False)


def _checkpoint(name: str) -> Read:
    """A checkpoint with a pickle in place of that file."""

    def read(made: Inputs) -> object:
        described: dict[str, Any] = {"tasks": ["pos"], "paradigm": "stl", "encoder": str(made.encoder())}
        tasks = [{"name": "pos", "scheme": "plain", "labels": ["N"]}]
        made.file("7/run.json", json.dumps({"format": 1, "config": described, "tasks": tasks}))
        return model_io.load(made.file(f"7/{name}", made.evil).parent)

    return read


LONG = "x" * (readers.MOST_CHARACTERS + 1)
NO_FILE, IN_A_PICKLE, BESIDE_IT = "is not a file", "has its weights in a pickle", "only safetensors beside it"
NO_CORPUS, NO_ENCODER = "There is no corpus", "is neither one of"
NO_FOLDERS = {
    "long": ("a" * 5000, NO_CORPUS, NO_ENCODER),
    "zero": ("a\0b", "lies outside", NO_ENCODER),
    "nobody's": ("~nobody-here/x", NO_CORPUS, NO_ENCODER),
    "surrogate": ("\ud800", NO_CORPUS, NO_ENCODER),
    "slashes": ("/" * 300, "has no train file", "is not an encoder"),
}

INPUTS: dict[str, tuple[type[MRNLabError], str, Read]] = {
    "long line": (CorpusError, "line 2: has 100,001 characters",
        lambda made: read_lines(made.file("a.conll", f"a N\n{LONG}\n"))),
    "long line to tag": (CorpusError, r"mine\.txt, line 1: has 100,001 characters",
        lambda made: read_given(LONG.encode(), "mine.txt", {})),
    "long line of a log": (CorpusError, "line 1: has 100,001 characters",
        lambda made: read_loss_log(made.file("losses.txt", LONG))),
    "many columns": (CorpusError, "line 1: has 201 columns",
        lambda made: read_table(made.file("a.conll", " ".join("a" * 201)))),
    "many lines": (CorpusError, "has 10 lines and the most is 9", _many_lines),
    "many bytes": (CorpusError, "holds 2,000 MB",
        lambda made: read_lines(made.of_size("huge.conll", readers.MOST_BYTES + 1))),
    "many labels": (CorpusError, "has 10,001 different labels", _many_labels),
    "large upload": (CorpusError, "the most is 1 MB", _large_upload),
    "large mapping": (ConfigError, "the most is 5 MB",
        lambda made: read_mapping(made.of_size("m.csv", MOST_BYTES + 1))),
    "cell without end": (ConfigError, "not proper CSV",
        lambda made: read_mapping(made.file("m.csv", '"' + "a" * 200_000))),
    "device": (CorpusError, NO_FILE, _value(read_lines, Path("/dev/zero"))),
    "device as mapping": (ConfigError, NO_FILE, _value(read_mapping, Path("/dev/zero"))),
    "pipe": (CorpusError, NO_FILE, lambda made: read_lines(made.pipe("train.conll"))),
    "pipe as log": (CorpusError, NO_FILE, lambda made: read_loss_log(made.pipe("losses.txt"))),
    "pipe as table": (CorpusError, NO_FILE, lambda made: detect_columns(made.pipe("train.tsv"))),
    **{f"{kind} name of a corpus": (CorpusError, sentence, _value(load, name))
        for kind, (name, sentence, _) in NO_FOLDERS.items()},
    **{f"{kind} name of an encoder": (EncoderError, sentence, _value(check_available, name))
        for kind, (name, _, sentence) in NO_FOLDERS.items()},
    "script of a dataset": (CorpusError, r"is a script \(mine.py\).*revision=refs/convert/parquet",
        lambda made: load(f"hub:{made.file('mine/mine.py', made.code).parent}")),
    "script of a corpus": (MRNLabError, r"scripts are never run|is not on this machine",
        _script_of_a_repositorys_name),
    "other files of a dataset": (
        CorpusError, "holds files of the kind text; those of parquet, arrow, csv and json", _text_files),
    "empty dataset": (CorpusError, "cannot be read",
        lambda made: load(f"hub:{made.empty()}")),
    "card of files elsewhere": (CorpusError, "names a file outside of it", _card_of_files_elsewhere),
    "dataset of files elsewhere": (CorpusError, "names a file outside of its folder",
        _dataset_of_files_elsewhere),
    "dataset elsewhere": (CorpusError, "neither a folder here nor", _dataset_outside_of_the_named_folders),
    "pickled corpus": (CorpusError, "is not UTF-8",
        lambda made: read_folder(made.corpus(made.evil, made.evil))),
    "pickled mapping": (ConfigError, "is not UTF-8",
        lambda made: parse_mapping(made.evil, "mapping.csv")),
    "pickled weights": (EncoderError, IN_A_PICKLE, _encoder(_pickled_weights)),
    "torch file": (EncoderError, IN_A_PICKLE, _encoder(_torch_file)),
    "safetensors that are none": (EncoderError, "cannot be loaded", _encoder(_replaced("model.safetensors"))),
    "pickled description": (EncoderError, "cannot be read", _encoder(_replaced("config.json"))),
    "pickled shard": (EncoderError, BESIDE_IT, _encoder(_sharded("shard.bin"))),
    "shard elsewhere": (EncoderError, BESIDE_IT, _encoder(_sharded("../other/model.safetensors"))),
    "code of its own": (EncoderError, "comes with Python code of its own", _encoder(_code_of_its_own)),
    "kernels of others": (EncoderError, "code from elsewhere",
        _encoder(lambda made: made.encoder(_attn_implementation="kernels-community/evil"))),
    "quantised": (EncoderError, "is quantised",
        _encoder(lambda made: made.encoder(quantization_config={"quant_method": "bitsandbytes"}))),
    "pickled tokenizer": (EncoderError, "cannot be loaded",
        lambda made: load_tokenizer(str(_replaced("tokenizer.json")(made)))),
    "pickled heads": (MRNLabError, "damaged", _checkpoint("weights.safetensors")),
    "pickled run": (MRNLabError, "damaged", _checkpoint("run.json")),
}  # fmt: skip
"""What is read, the error, and what its sentence holds."""


@pytest.mark.parametrize("name", INPUTS)
def test_it_is_refused_in_a_sentence(
    name: str, tmp_path: Path, evil: bytes, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, sentence, read = INPUTS[name]
    with pytest.raises(error, match=sentence) as refused:
        read(Inputs(tmp_path, evil, code, monkeypatch))
    assert "\n" not in str(refused.value)


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
_FORBIDDEN = {
    "torch.load",
    "__import__",
    "compile",
    "np.fromregex",
    "shutil.unpack_archive",
    "tarfile.open",
    "yaml.load",
}
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
    # Of YAML only the loader of plain values.
    assert dangers == {"preparation.py": ["pickle"], "copies.py": ["yaml", "yaml"]}
