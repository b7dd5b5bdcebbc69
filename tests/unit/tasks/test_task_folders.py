"""Tasks on whole texts and pairs as folders for Transformers' own class for sequences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from core.models.model_io import load
from core.models.saved_tagger import SavedTagger
from core.models.task_folders import save_task_folders
from core.store import Store
from core.tagging import load_tagger
from jobs.exchange import export_run, import_run
from tests.tiny import tiny_bert, tiny_roberta
from tests.toys import TEXT_TASKS, config, text_corpus
from tests.trained import copy_text_taggers, train_toy
from tests.unit.transformers_alone import FAMILY

TEXTS = [
    ("EU rejects", "German lamb ."),
    ("lamb", "EU " * 40),  # cut where the run cuts it
    ("call to boycott British lamb .", "call to boycott EU"),
]
ERROR = 1e-6
"""Of probabilities, and of numbers as a share of the scale. Measured: 6e-8 and 1e-7."""


def trained(encoder: Path, folder: Path, **changes: Any) -> SavedTagger:
    """A run on words, texts and pairs, which are read together."""
    values = {"tasks": ("pos", *TEXT_TASKS), "paradigm": "mtl", "pair_encoding": "together", "pooling": "cls"}
    run = config(str(encoder), **values | {"epochs": 1} | changes)
    return load(train_toy(run, text_corpus(tasks=run.tasks), folder).checkpoint)


def alone(folder: Path, texts: tuple[str, ...]) -> torch.Tensor:
    """The logits of Transformers' own class, from the folder alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits: torch.Tensor = model(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits[0]
    return logits


@pytest.mark.parametrize("make", [tiny_bert, tiny_roberta])
@pytest.mark.parametrize("task_embedding", ["none", "input", "attention", "projected"])
def test_a_folder_answers_as_the_run(
    make: Callable[[Path], Path], task_embedding: str, tmp_path: Path
) -> None:
    tagger = trained(make(tmp_path / "encoder"), tmp_path / "run", task_embedding=task_embedding)
    folders = {task: tmp_path / task for task in ("pos", *TEXT_TASKS)}
    assert save_task_folders(tagger, folders, {"run": 12}) is None
    assert json.loads((folders["pos"] / "config.json").read_text())["architectures"] == [
        f"{'Bert' if make is tiny_bert else 'Roberta'}ForTokenClassification"
    ]
    for (first, second), answers in zip(TEXTS, tagger.answer(TEXTS), strict=True):
        shares = dict(answers["mood"].probabilities)
        expected = torch.tensor([shares[label] for label in tagger.labels["mood"]])
        given = alone(folders["mood"], (first,)).softmax(dim=0)
        torch.testing.assert_close(given, expected, rtol=0, atol=ERROR)
        shares = dict(answers["same"].probabilities)
        expected = torch.tensor([shares[label] for label in tagger.labels["same"]])
        given = alone(folders["same"], (first, second)).softmax(dim=0)
        torch.testing.assert_close(given, expected, rtol=0, atol=ERROR)
        low, high = tagger.scales["alike"]
        number = alone(folders["alike"], (first, second)).item()
        assert number == pytest.approx(float(answers["alike"].value), abs=ERROR * (high - low))
    exported = json.loads((folders["alike"] / "config.json").read_text())
    assert exported["problem_type"] == "regression"
    assert exported["mrnlab"]["reads"] == "pair"
    assert exported["id2label"] == {"0": "score"}


@pytest.mark.parametrize(
    ("changes", "missing", "why"),
    [
        ({"pooling": "mean"}, TEXT_TASKS, "pooling=cls is exported), so mood, same and alike have no folder"),
        ({"pair_encoding": "apart"}, ("same", "alike"), "pair_encoding=together is exported"),
        ({"head": "crf"}, ("pos",), "token classification with a CRF, so pos has no folder"),
    ],
)
def test_what_has_no_class_is_said_and_the_others_are_written(
    changes: dict[str, Any], missing: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    tagger = trained(tiny_bert(tmp_path / "encoder"), tmp_path / "run", **changes)
    folders = {task: tmp_path / task for task in ("pos", *TEXT_TASKS)}
    reason = save_task_folders(tagger, folders, {})
    assert reason is not None
    assert why in reason
    assert {task for task, folder in folders.items() if not folder.exists()} == set(missing)


def test_a_head_with_another_activation_is_found_out(tmp_path: Path) -> None:
    """ELECTRA's class has gelu in place of tanh."""
    encoder = tiny_bert(tmp_path / "encoder")
    AutoModel.from_config(FAMILY["electra"]).save_pretrained(encoder)
    tagger = trained(encoder, tmp_path / "run")
    reason = save_task_folders(tagger, {"mood": tmp_path / "mood", "pos": tmp_path / "pos"}, {})
    assert reason is not None
    assert (
        "electra encoder (its logits are not linear in the encoder's states), so mood has no folder" in reason
    )
    assert (tmp_path / "pos" / "model.safetensors").exists()


def test_the_card_says_what_to_feed(
    shared_folder: Path, laboratory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_text_taggers(shared_folder, laboratory)
    store = Store.open()
    made = export_run(store, 1, tmp_path / "mixed")
    assert made.folders.keys() == {"ner", *TEXT_TASKS}
    card = ModelCard.load(made.folder / "README.md")
    assert card.data.to_dict()["pipeline_tag"] == "token-classification"
    types = {result.task_name: (result.task_type, result.metric_type) for result in card.data.eval_results}
    assert types["alike"] == ("text-classification", "pearsonr")
    assert types["ner"] == ("token-classification", "f1")
    assert "- mood in `mood`: one text; a label for the whole" in card.text
    assert "- alike in `alike`: two texts; a number for the pair" in card.text
    assert "numbers from 0 to 5" in card.text
    assert "12 pairs" in card.text
    examples = card.text.split("```python\n")[1:]
    assert len(examples) == 4
    monkeypatch.chdir(made.folder)
    for example in examples:
        exec(example.split("```")[0], {})

    before = load_tagger(str(store.run(1).checkpoint)).answer(TEXTS)
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "elsewhere"))
    other = Store.open()
    taken = other.run(import_run(other, made.folder).run_id)
    assert load_tagger(str(taken.checkpoint)).answer(TEXTS) == before
    other.close()
    monkeypatch.setenv("MRNLAB_HOME", str(laboratory))

    apart = export_run(store, 3, tmp_path / "apart")
    store.close()
    assert apart.folders == {}
    text = ModelCard.load(apart.folder / "README.md").text
    assert "reads the texts of a pair apart (pair_encoding=together is exported), so there is no" in text
    (example,) = text.split("```python\n")[1:]
    assert "AutoModel" not in example
    monkeypatch.chdir(apart.folder)
    exec(example.split("```")[0], {})
