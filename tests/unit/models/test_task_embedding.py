"""Task embeddings compute what is written out by hand, packed and padded, and are saved with the model."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForTokenClassification,
    BertConfig,
    DebertaV2Config,
    ElectraConfig,
    GPT2Config,
    PreTrainedConfig,
    RobertaConfig,
)

from core.config import RunConfig
from core.encoding.batches import Batch
from core.encoding.tokenizer import load_tokenizer
from core.errors import ConfigError, EncoderError
from core.events import TaskFacts
from core.models import model_io
from core.models.encoders import parts_of, shared_weights
from core.models.encoders.fast_bert import train_rows
from core.models.encoders.task_embedding import (
    TaskEmbeddedTransformer,
    cosine_similarities,
    embed_tasks,
    task_vectors,
)
from core.models.encoders.transformer import Transformer, load_transformer
from core.models.tagger import Heads, MultiTaskTagger
from core.models.task_folders import save_task_folders
from core.training.setup import set_up
from tests.tiny import tiny_bert
from tests.toys import config, corpus
from tests.unit.transformers_alone import MODERN, SIZES, batch, gradients

INJECTIONS = ("input", "attention", "projected", "elu", "tanh", "selu")
TASKS = 3
LAYERS = 2
FAMILY: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZES | {"num_hidden_layers": LAYERS}),
    "roberta": RobertaConfig(**SIZES | {"num_hidden_layers": LAYERS}, pad_token_id=1),
    "electra": ElectraConfig(**SIZES | {"num_hidden_layers": LAYERS}, embedding_size=8),
}
LENGTHS = (5, 1, 9, 3, 9, 5)
OF_WINDOWS = (0, 2, 1, 0, 2, 1)


def transformer(config: PreTrainedConfig, *, half: bool = False) -> Transformer:
    """In float64, with weights far from their small start."""
    torch.manual_seed(0)
    inner = AutoModel.from_config(config).to(torch.float32 if half else torch.float64)
    with torch.no_grad():
        for weight in inner.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return Transformer(inner.train(), half=half)


def embedded(config: PreTrainedConfig, injection: str) -> TaskEmbeddedTransformer:
    """With vectors and matrices that matter."""
    model = TaskEmbeddedTransformer(transformer(config), TASKS, injection).double()
    with torch.no_grad():
        model.task_vectors.normal_()
        for matrix in (*model.projections.parameters(), *model.outputs.parameters()):
            matrix.add_(0.3 * torch.randn_like(matrix))
    return model


def mixed(pad: int) -> Batch:
    """Windows of different lengths and tasks."""
    return dataclasses.replace(batch(LENGTHS, pad), tasks=torch.tensor(OF_WINDOWS))


def by_hand(model: TaskEmbeddedTransformer, ids: Sequence[int], task: int) -> Tensor:
    """The states (l, D) of one window, as the paper writes them: no batch, no padding, no hooks."""
    inner: Any = model.transformer.inner
    of_embeddings = inner.embeddings
    first = 2 if inner.config.model_type == "roberta" else 0
    rows = []
    for place, subword in enumerate(ids):
        row = of_embeddings.word_embeddings.weight[subword]
        row = row + of_embeddings.position_embeddings.weight[first + place]
        row = of_embeddings.LayerNorm(row + of_embeddings.token_type_embeddings.weight[0])
        rows.append(row + model.task_vectors[task] if model.injection == "input" else row)
    if hasattr(inner, "embeddings_project"):
        rows = [inner.embeddings_project(row) for row in rows]
    for number, layer in enumerate(inner.encoder.layer):
        read = {
            name: [
                told(model, 3 * number + part, products.weight @ row + products.bias, task) for row in rows
            ]
            for part, name in enumerate(("query", "key", "value"))
            for products in [getattr(layer.attention.self, name)]
        }
        rows = [attended(layer, query, read["key"], read["value"], row)
                for query, row in zip(read["query"], rows, strict=True)]  # fmt: skip
    return torch.stack(rows)


def told(model: TaskEmbeddedTransformer, place: int, row: Tensor, task: int) -> Tensor:
    """A query, key or value with what tells it the task."""
    if model.injection == "input":
        return row
    if model.injection == "attention":
        return row + model.task_vectors[task, place]
    projection: Any = model.projections[place]
    row = row + projection.weight @ model.task_vectors[task]
    if model.injection == "projected":
        return row
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "tanh": lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
        "elu": lambda x: torch.where(x > 0, x, x.exp() - 1),
        "selu": lambda x: scale * torch.where(x > 0, x, alpha * (x.exp() - 1)),
    }
    output: Any = model.outputs[place]
    product: Tensor = output.weight @ functions[model.injection](row)
    return product


def attended(layer: Any, query: Tensor, keys: list[Tensor], values: list[Tensor], row: Tensor) -> Tensor:
    heads, size = SIZES["num_attention_heads"], len(query) // SIZES["num_attention_heads"]
    parts = []
    for head in range(heads):
        of_head = slice(head * size, (head + 1) * size)
        scores = torch.stack([query[of_head] @ key[of_head] / size**0.5 for key in keys]).softmax(dim=0)
        parts.append(sum(score * value[of_head] for score, value in zip(scores, values, strict=True)))
    output = layer.attention.output
    row = output.LayerNorm(output.dense(torch.cat(parts)) + row)
    inner = nn.functional.gelu(layer.intermediate.dense(row))
    result: Tensor = layer.output.LayerNorm(layer.output.dense(inner) + row)
    return result


@pytest.mark.parametrize("injection", INJECTIONS)
@pytest.mark.parametrize("name", FAMILY)
def test_states_and_gradients_are_those_by_hand_packed_and_padded(
    name: str, injection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = FAMILY[name]
    model, given = embedded(config, injection), mixed(config.pad_token_id)
    windows = zip(given.ids.tolist(), LENGTHS, OF_WINDOWS, strict=True)
    expected = torch.cat([by_hand(model, ids[:length], task) for ids, length, task in windows])
    real = torch.full((given.ids.numel(),), -1).index_put((given.real,), torch.arange(len(given.real)))
    cases: list[tuple[Callable[[], Tensor], Tensor]] = [
        (lambda: model(given).flatten(0, 1)[given.real], expected),
        (lambda: model.words(given), expected[real[given.rows]]),
    ]
    for states_of, right in cases:
        towards = torch.randn_like(right)
        (right * towards).sum().backward(retain_graph=True)
        theirs = gradients(model)
        for is_packed in (True, False):  # padded as on a GPU
            with monkeypatch.context() as patch:
                if not is_packed:
                    patch.setattr(Transformer, "computes_packed", lambda _self, _batch: False)
                states = states_of()
            assert states.dtype == torch.float32
            torch.testing.assert_close(states.double(), right, rtol=0, atol=1e-6)
            (states * towards.float()).sum().backward()
            ours = gradients(model)
            assert ours.keys() == theirs.keys()
            assert {"task_vectors"} <= ours.keys()
            for weight, gradient in theirs.items():
                torch.testing.assert_close(ours[weight], gradient, rtol=1e-6, atol=1e-6, msg=weight)


@pytest.mark.parametrize("injection", INJECTIONS)
def test_new_weights_train_with_the_encoder_all_but_those_of_keys(injection: str) -> None:
    """A vector that all keys of a window share adds the same to all scores of a query: no softmax sees it."""
    model = TaskEmbeddedTransformer(transformer(FAMILY["bert"]), TASKS, injection).double()
    tagger = MultiTaskTagger(model, Heads(16, [2, 2], init="default", dropout=0.0))
    of_embeddings = {f"encoder.{name}" for name, _ in model.named_parameters() if ".inner." not in name}
    assert of_embeddings | {"heads.weight", "heads.bias"} == model_io.own_weights(tagger).keys()
    assert {parts_of(tagger)[weight] for weight in model.parameters()} == {"encoder"}
    model.words(mixed(0)).square().sum().backward()
    weights: list[Any] = [layer.weight for layer in (*model.projections, *model.outputs)]
    vectors = model.task_vectors.grad
    assert vectors is not None
    grown = [weight.grad.abs().max() > 1e-6 for weight in weights]
    if injection == "attention":
        grown = [part > 1e-6 for part in vectors.abs().amax(dim=(0, 2))]
    else:
        assert (vectors.abs().amax(dim=1) > 1e-6).all()
    seen = [True, injection not in ("attention", "projected"), True] * LAYERS
    repeated = {"input": 0, "attention": 1, "projected": 1}.get(injection, 2)
    assert grown == seen * repeated


@pytest.mark.parametrize("name", FAMILY)
def test_added_weights_are_counted(name: str) -> None:
    config = FAMILY[name]
    width = 8 if name == "electra" else 16
    vectors, places = TASKS * 16, 3 * LAYERS
    expected = {
        "input": TASKS * width,
        "attention": vectors * places,
        "projected": vectors + places * 16 * 16,
        **dict.fromkeys(("elu", "tanh", "selu"), vectors + 2 * places * 16 * 16),
    }
    for injection, count in expected.items():
        plain = transformer(config)
        before = sum(weight.numel() for weight in plain.parameters())
        model = embed_tasks(plain, TASKS, injection)
        assert isinstance(model, TaskEmbeddedTransformer)
        assert model.added_parameters == count
        assert sum(weight.numel() for weight in model.parameters()) == before + count
        assert model.note == f"Task embeddings ({injection}) add {count:,} weights."


@pytest.mark.parametrize("injection", ["input", "attention", "projected"])
def test_at_the_start_states_are_nearly_those_without(injection: str) -> None:
    """And other tasks have other states from the first step on."""
    plain, given = transformer(FAMILY["bert"]), mixed(0)
    before = plain.words(given)
    model = TaskEmbeddedTransformer(plain, TASKS, injection).double()
    others = dataclasses.replace(given, tasks=(torch.tensor(OF_WINDOWS) + 1) % TASKS)
    change, by_task = (model.words(given) - before).abs(), (model.words(given) - model.words(others)).abs()
    assert 0 < change.mean() < 0.1 * before.abs().mean()
    assert 0 < by_task.mean() < 0.1 * before.abs().mean()


@pytest.mark.parametrize("injection", INJECTIONS)
def test_bfloat16_is_near_float32(injection: str) -> None:
    exact = embedded(FAMILY["bert"], injection).float()
    rounded = copy.deepcopy(exact)
    rounded.transformer.half_precision = True
    given = mixed(0)
    expected, states = exact.words(given), rounded.words(given)
    assert states.dtype == torch.float32
    assert 0 < (states - expected).abs().mean() < 0.03 * expected.abs().mean()
    states.square().sum().backward()
    assert all(weight.grad is not None for weight in rounded.projections.parameters())


def test_a_batch_without_tasks_is_refused() -> None:
    with pytest.raises(ValueError, match="must say the task of each window"):
        embedded(FAMILY["bert"], "input").words(batch(LENGTHS, 0))


@pytest.mark.parametrize("config", [MODERN, DebertaV2Config(**SIZES)], ids=["modernbert", "deberta"])
def test_other_layouts_have_task_embeddings_at_the_input_alone(config: PreTrainedConfig) -> None:
    plain, given = transformer(config), mixed(0)
    sentence = f"laid out as BERT's, which an encoder of type {config.model_type} does not have. "
    with pytest.raises(EncoderError, match=sentence + "Set task_embedding to input"):
        TaskEmbeddedTransformer(plain, TASKS, "attention")
    inner: Any = plain.inner
    inner.eval()
    model = embedded(config, "input")
    model.eval()
    # Window by window, with the vector as a part of the bias of the LayerNorm that ends the embeddings.
    norm = [part for part in inner.embeddings.modules() if isinstance(part, nn.LayerNorm)][-1]
    states = model(given)
    for window, (length, task) in enumerate(zip(LENGTHS, OF_WINDOWS, strict=True)):
        bias = 0 if norm.bias is None else norm.bias.detach()
        with torch.no_grad():
            moved = copy.deepcopy(inner)
            last = [part for part in moved.embeddings.modules() if isinstance(part, nn.LayerNorm)][-1]
            last.bias = nn.Parameter(bias + model.task_vectors[task])
            ids = given.ids[window : window + 1, :length]
            expected = moved(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        torch.testing.assert_close(states[window, :length].double(), expected, rtol=0, atol=1e-6)
    assert model.folds == (norm.bias is not None)


def test_an_encoder_without_embeddings_has_none() -> None:
    config = GPT2Config(vocab_size=60, n_embd=16, n_layer=1, n_head=2, n_positions=16)
    with pytest.raises(EncoderError, match="No task embeddings fit an encoder of type gpt2"):
        TaskEmbeddedTransformer(transformer(config), TASKS, "input")


def test_vectors_and_their_cosines() -> None:
    model = embedded(FAMILY["bert"], "attention")
    tagger = MultiTaskTagger(model, Heads(16, [2, 2], init="zeros", dropout=0.0))
    vectors = task_vectors(tagger)
    assert vectors is not None
    assert vectors.shape == (TASKS, 2 * LAYERS * 16)
    assert torch.equal(vectors[1, 16:32], model.task_vectors[1, 2])  # task 1, the values of the first layer
    assert torch.equal(vectors[1, 32:48], model.task_vectors[1, 3])  # the queries of the second
    cosines = cosine_similarities(torch.tensor([[3.0, 4.0], [-4.0, 3.0], [6.0, 8.0], [0.0, 0.0]]))
    expected = [[1.0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    torch.testing.assert_close(cosines, torch.tensor(expected))
    plain = MultiTaskTagger(model.transformer, Heads(16, [2, 2], init="zeros", dropout=0.0))
    assert task_vectors(plain) is None


FACTS = tuple(
    TaskFacts(name, "plain", labels, "accuracy", 1, 1, {}, {})
    for name, labels in (("pos", ("NN", "VB", "DT")), ("ner", ("O", "PER")))
)


def tagger_of(folder: str, injection: str) -> MultiTaskTagger:
    """As a run makes it: rows of the vocabulary that occur are trained."""
    plain = load_transformer(folder, half=False)
    train_rows(plain.inner, np.array([0, 2, 3, 5, 6, 7]))
    encoder = embed_tasks(plain, len(FACTS), injection)
    tagger = MultiTaskTagger(encoder, Heads(encoder.features, [3, 2], init="default", dropout=0.0)).eval()
    with torch.no_grad():
        for weight in tagger.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return tagger


def windows(task: int) -> Batch:
    ids = torch.tensor([[2, 5, 6, 3], [2, 7, 5, 3]])
    given = batch((4, 4), 0)
    return dataclasses.replace(given, ids=ids, tasks=torch.full((2,), task))


@pytest.mark.parametrize("injection", INJECTIONS)
def test_saved_loaded_and_restored(injection: str, tmp_path: Path) -> None:
    folder = str(tiny_bert(tmp_path / "bert"))
    config = RunConfig.build(
        corpus="demo", tasks="pos,ner", paradigm="mtl", encoder=folder, task_embedding=injection
    )
    tagger = tagger_of(folder, injection)
    tokenizer = load_tokenizer(folder)
    kept = tmp_path / "kept"
    kept.mkdir()
    with torch.no_grad():
        expected = [tagger(windows(task)) for task in (0, 1)]
    assert (expected[0] - expected[1]).abs().max() > 1e-3
    model_io.save(kept, config, FACTS, tokenizer, tagger)
    loaded = model_io.load(kept)
    assert loaded.config == config
    for task in (0, 1):
        with torch.inference_mode():
            assert torch.equal(loaded.model(windows(task)), expected[task])
    other = tagger_of(folder, injection)
    model_io.restore(kept, other)
    with torch.no_grad():
        torch.testing.assert_close(other(windows(1)), expected[1])

    folders = {"ner": tmp_path / "ner"}
    problem = save_task_folders(loaded, folders, {})
    if injection in ("elu", "tanh", "selu"):
        assert problem is not None
        assert "task embeddings that are no part of a bias" in problem
        assert not folders["ner"].exists()
        return
    assert problem is None
    alone = AutoModelForTokenClassification.from_pretrained(folders["ner"]).eval()
    given = windows(1)
    with torch.no_grad():
        logits = alone(input_ids=given.ids, attention_mask=given.mask).logits.flatten(0, 1)[given.rows]
    torch.testing.assert_close(logits, expected[1][:, 3:], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"task_embedding": "attention"},
        {"task_embedding": "none"},
        {"encoder_training": "frozen"},
        {"paradigm": "stl", "tasks": "pos"},
    ],
    ids=lambda changes: ",".join(changes.values()),
)
def test_only_a_run_with_task_embeddings_reads_for_each_task(encoder: str, changes: dict[str, Any]) -> None:
    run = set_up(config(encoder, **{"paradigm": "mtl"} | changes), corpus())
    given = next(run.epoch(0))
    if changes != {"task_embedding": "attention"}:
        assert given.tasks is None
        return
    assert given.tasks is not None
    assert given.tasks.bincount().tolist() == [len(given.ids) / 2] * 2
    assert any(note.startswith("Task embeddings (attention) add ") for note in run.facts.notes)
    encoder_weights = [weight for weight, part in parts_of(run.model).items() if part == "encoder"]
    (vectors,) = (weight for name, weight in run.model.named_parameters() if "task_vectors" in name)
    shared = shared_weights(run.model)
    assert len(shared) == len(encoder_weights) - 1
    assert not any(weight is vectors for weight in shared)


@pytest.mark.parametrize(
    "changes",
    [
        {"paradigm": "stl", "tasks": "pos"},
        {"encoder_training": "frozen"},
        {"encoder": "minilm+bilstm"},
        {"encoder": "bilstm"},
    ],
    ids=lambda changes: ",".join(changes.values()),
)
def test_refused_where_no_transformer_is_shared_and_trained(changes: dict[str, Any]) -> None:
    base = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl", "encoder": "minilm"}
    with pytest.raises(ConfigError, match="task_embedding must be left unset here: task embeddings"):
        RunConfig.build(**base | changes, task_embedding="input")
    assert RunConfig.build(**base | changes).task_embedding is None
    usual = RunConfig.build(**base)
    assert usual.task_embedding == "none"
    assert "task_embedding" not in usual.to_json()
    assert RunConfig.from_json(usual.to_json()) == usual
    embedded_run = usual.with_(task_embedding="tanh")
    assert embedded_run.configuration_id != usual.configuration_id
    assert embedded_run.with_(**changes).task_embedding is None
