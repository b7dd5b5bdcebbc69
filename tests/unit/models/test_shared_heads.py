"""`heads=shared`: labels of a name are one row for all tasks with it, as one head trained on all words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

from core.config import RunConfig
from core.models import model_io
from core.models.tagger import Heads, HeadTask, make_tagger
from core.models.task_folders import save_task_folders
from core.store import Store
from jobs.queue.submit import check
from tests.tiny import tiny_bert
from tests.trained import train_runs

CORPUS = "simulated:demo?task=ner&tasks=2&tokens=300&samples=200&dev=20&test=20"


def config(**values: Any) -> RunConfig:
    return RunConfig.build(**{"corpus": CORPUS, "tasks": "ner,sim-1,sim-2", "paradigm": "mtl"} | values)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


def test_tasks_of_the_same_labels_train_one_head_on_all_words() -> None:
    """Logits, loss and gradients are those of a linear layer on the words of both tasks."""
    torch.manual_seed(1)
    shared = Heads(5, [3, 3], init="default", dropout=0.0, rows=[0, 1, 2, 0, 1, 2])
    single = torch.nn.Linear(5, 3)
    single.load_state_dict({"weight": shared.weight.detach(), "bias": shared.bias.detach()})
    words, labels = torch.randn(10, 5), torch.randint(0, 3, (10,))
    logits = shared(words)
    assert torch.equal(logits, single(words).repeat(1, 2))
    # The first four words are of the first task, the others of the second.
    (cross_entropy(logits[:4, :3], labels[:4]) + cross_entropy(logits[4:, 3:], labels[4:])).backward()
    cross_entropy(single(words), labels).backward()
    torch.testing.assert_close(shared.weight.grad, single.weight.grad)
    torch.testing.assert_close(shared.bias.grad, single.bias.grad)


def test_words_of_each_task_read_the_same_rows() -> None:
    """Encoders with a representation of each word for each task: (T, n, D)."""
    shared = Heads(5, [2, 3], init="default", dropout=0.0, rows=[0, 1, 1, 2, 0])
    words = torch.randn(2, 4, 5)
    logits = shared(words)
    for task, rows in enumerate(([0, 1], [1, 2, 0])):
        expected = torch.nn.functional.linear(words[task], shared.weight[rows], shared.bias[rows])
        torch.testing.assert_close(logits[:, shared.slices[task]], expected)


def test_rows_are_those_of_names(tmp_path: Path) -> None:
    tasks = [HeadTask("iob2", ("O", "B-PER")), HeadTask("plain", ("B-PER", "NN", "O"))]
    encoder: Any = torch.nn.Module()
    encoder.features = 4
    heads = make_tagger(encoder, config(heads="shared"), tasks, init="default").heads
    assert heads.rows is not None
    assert heads.rows.tolist() == [0, 1, 1, 2, 0]
    assert heads.weight.shape == (3, 4)
    assert heads.weight_and_bias(1)[0].tolist() == heads.weight[[1, 2, 0]].tolist()
    assert set(heads.state_dict()) == {"weight", "bias"}


def test_a_run_is_saved_tags_and_has_folders_with_rows_of_their_own(store: Store, tmp_path: Path) -> None:
    encoder = str(tiny_bert(tmp_path / "encoder"))
    run_config = config(heads="shared", encoder=encoder, max_length=64, epochs=1, head_init="default")
    check([run_config])
    (run_id,) = train_runs(store, [run_config])
    tagger = model_io.load(Path(str(store.run(run_id).checkpoint)))
    assert set(tagger.tag([("EU", "rejects")])[0].tags) == set(tagger.labels)
    labels = [label for names in tagger.labels.values() for label in names]
    assert len(tagger.model.heads.weight) == len(set(labels)) < len(labels)

    folders = {task: tmp_path / "out" / task for task in tagger.labels}
    assert save_task_folders(tagger, folders, {}) is None
    for place, folder in enumerate(folders.values()):
        head = AutoModelForTokenClassification.from_pretrained(folder).classifier
        weight, bias = tagger.model.heads.weight_and_bias(place)
        assert torch.equal(head.weight, weight)
        assert torch.equal(head.bias, bias)
