"""A run of BERT starts without Transformers and torch's compiler, and computes what it did with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from core.encoding.tokenizer import load_tokenizer
from core.models.encoders.bert import Bert, read_bert
from core.models.encoders.transformer import load_transformer
from core.models.sources import locate
from tests.tiny import tiny_bert, tiny_roberta

ROOT = Path(__file__).resolve().parents[2]
_FIRST_STEP = """
import sys
from core.config import RunConfig
from core.corpora import prepare
from core.training.setup import set_up
from core.training.trainer import train_step
values = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl", "encoder_training": "full"}
config = RunConfig.build(**values, fraction=0.02)
run = set_up(config, prepare(config))
run.model.train()
train_step(run, next(run.epoch(skip=0)))
run.schedule.step()
print([name for name in ("transformers", "torch._dynamo", "pandas", "streamlit") if name in sys.modules])
"""


def test_the_first_step_needs_neither_transformers_nor_the_compiler(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _FIRST_STEP],
        capture_output=True, text=True, cwd=ROOT, check=True, env=os.environ | {"MRNLAB_HOME": str(tmp_path)},
    )  # fmt: skip
    assert told.stdout.split() == ["[]"]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("types", [False, True])
def test_it_computes_what_transformers_does_bit_for_bit(training: bool, types: bool) -> None:
    source = locate("minilm")
    random = torch.get_rng_state()
    ours = load_transformer(source, half=False).inner
    assert torch.equal(random, torch.get_rng_state()), "a run's random numbers begin where they did"
    theirs = AutoModel.from_pretrained(source, dtype=torch.float32, add_pooling_layer=False)
    assert isinstance(ours, Bert)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ids = torch.randint(5, 30_000, (3, 11))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    given = {"token_type_ids": (ids % 2)} if types else {}
    # Its dropout draws other numbers than torch's.
    for model in (ours, theirs):
        model.train(training)
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
    read, expected = (model(ids, mask, **given).last_hidden_state for model in (ours, theirs))
    assert torch.equal(read[mask.bool()], expected[mask.bool()])


def test_the_packaged_tokenizer_is_that_of_transformers() -> None:
    tokenizer = load_tokenizer(locate("minilm"))
    theirs = AutoTokenizer.from_pretrained(locate("minilm"))
    assert [*tokenizer.prefix, *tokenizer.suffix] == theirs("")["input_ids"]
    assert tokenizer.backend.to_str() == theirs.backend_tokenizer.to_str()
    words = ["Hello", "wörld", "\u200b", "EU", "x" * 300, "naïve", "日本", "", " "]
    pairs = theirs(["Hello"], ["EU"], is_split_into_words=True)
    ids = [tokenizer.split([word]).ids.tolist() for word in ("Hello", "EU")]
    framed = [*tokenizer.prefix, *ids[0], *tokenizer.between, *ids[1], *tokenizer.suffix]
    assert framed == pairs["input_ids"]
    assert any(pairs["token_type_ids"]) == tokenizer.has_types
    assert (tokenizer.pad, tokenizer.unknown) == (theirs.pad_token_id, theirs.unk_token_id)
    assert tokenizer.split(words).counts.tolist() == [
        max(1, len(theirs(word, add_special_tokens=False)["input_ids"])) for word in words
    ]
    assert tokenizer.inner.vocab_size == theirs.vocab_size


def test_what_it_saves_transformers_loads(tmp_path: Path) -> None:
    ours = read_bert(tiny_bert(tmp_path / "one"))
    assert ours is not None
    ours.save_pretrained(tmp_path / "saved")
    theirs, report = AutoModel.from_pretrained(
        tmp_path / "saved", add_pooling_layer=False, output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    again = read_bert(tmp_path / "saved")
    assert again is not None
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, ours.state_dict()[name])
        assert torch.equal(value, again.state_dict()[name])


@pytest.mark.parametrize("change", [{"is_decoder": True}, {"hidden_act": "relu"}, {"vocab_size": 999}])
def test_what_it_does_not_compute_is_left_to_transformers(tmp_path: Path, change: dict[str, object]) -> None:
    folder = tiny_bert(tmp_path / "one")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    assert read_bert(folder) is None
    assert read_bert(tiny_roberta(tmp_path / "two")) is None
    assert read_bert(tmp_path / "nowhere") is None
