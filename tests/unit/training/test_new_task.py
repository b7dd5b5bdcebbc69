"""A task added to a finished run: what its head begins at and is drawn to, and that the others stay."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence, Task
from core.errors import ConfigError
from core.events import Snapshot
from core.models.trained_heads import trained_heads
from core.mrn.alignments import LabelCounts, align
from core.mrn.new_task import PredictedPrior, fit_weights, links, soft_counts
from core.mrn.priors import PriorSettings
from core.mrn.priors.tensor_normal import initial_variance
from core.recording.resolve import with_absolute_paths
from core.store import Store
from core.tagging import load_tagger
from core.training.setup import TrainingRun, set_up
from jobs.exchange.export import export_run
from jobs.exchange.import_ import import_run
from tests.toys import config as toy_config
from tests.toys import corpus, sentences
from tests.trained import toy_config as made_config
from tests.trained import train_runs
from tests.unit.cut_trainings import Laboratory, cut_at_every_state

T, C, D = 3, 4, 2


def _some_covariance(seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(T + 1, T + 3))
    scatter = root @ root.T
    scale = np.sqrt(np.diagonal(scatter))
    return np.asarray(scatter / np.outer(scale, scale))


@pytest.mark.parametrize("seed", range(3))
def test_the_prior_is_the_conditional_of_the_joint_gaussian(seed: int) -> None:
    """Against the dense Gaussian of all heads: M and v of the weights b = Ω_TT^-1 ω, and the penalty."""
    rng, covariance = np.random.default_rng(seed), _some_covariance(seed)
    heads = rng.normal(size=(T, C, D + 1))
    dense, known = np.kron(covariance, np.eye(C * (D + 1))), T * C * (D + 1)
    gain = dense[known:, :known] @ np.linalg.inv(dense[:known, :known])
    mean, left = gain @ heads.ravel(), dense[known:, known:] - gain @ dense[:known, known:]
    row = covariance[-1, :-1]
    weights = np.linalg.solve(covariance[:-1, :-1], row)
    np.testing.assert_allclose(np.einsum("t,tcd->cd", weights, heads).ravel(), mean, atol=1e-10)
    np.testing.assert_allclose((1 - row @ weights) * np.eye(len(left)), left, atol=1e-10)

    counts = soft_counts(("a", "new"), (("x",), tuple("wxyz")), [np.zeros((C, 1))], np.ones(C))
    head = torch.from_numpy(rng.normal(size=(C, D + 1)))
    bias = head[:, -1].clone().requires_grad_()
    lambda_, tokens, scale = 0.3, 50.0, initial_variance(D)
    settings = PriorSettings(D, lambda_ / float(1 - row @ weights), tokens, learn=("task",))
    aligned = align("exact", counts)
    prior = PredictedPrior(torch.from_numpy(mean).view(C, D + 1), bias, torch.zeros(1, D), aligned, settings)
    penalty = prior.penalty(head[:, :-1])
    off = head.numpy().ravel() - mean
    energy = off @ np.linalg.solve(scale * left, off) / 2
    torch.testing.assert_close(penalty.item(), lambda_ / tokens * energy, atol=1e-10, rtol=1e-10)
    penalty.backward()
    assert bias.grad is not None
    assert bias.grad.abs().min() > 0


def test_weights_are_those_that_make_the_labels_most_probable() -> None:
    """Newton's answer has no gradient, in automatic differentiation's view; few words leave it near 1/T."""
    torch.manual_seed(0)
    logits = [3 * torch.randn(400, C, dtype=torch.float64) for _ in range(T)]
    truth = torch.tensor([0.9, 0.3, -0.2], dtype=torch.float64)
    labels = torch.distributions.Categorical(
        logits=torch.einsum("t,tnc->nc", truth, torch.stack(logits))
    ).sample()
    weights = fit_weights(logits, labels).requires_grad_()
    mixed = torch.einsum("t,tnc->nc", weights, torch.stack(logits))
    loss = torch.nn.functional.cross_entropy(mixed, labels, reduction="sum")
    (loss + 15 * (weights - 1 / T).square().sum()).backward()
    torch.testing.assert_close(weights.grad, torch.zeros(T, dtype=torch.float64), atol=1e-6, rtol=0)
    assert (weights - truth).abs().max() < 0.15
    few = fit_weights([each[:2] for each in logits], labels[:2])
    assert (few - 1 / T).abs().max() < 0.3


def test_links_follow_the_alignment() -> None:
    labels = (("N", "V"), ("NN", "NNS", "VB"), ("N", "V", "X"))
    together = [np.array([[9.0, 1], [0, 5], [0, 0]]), np.array([[6.0, 4, 0], [0, 0, 5], [0, 0, 0]])]
    counts = soft_counts(("upos", "xpos", "new"), labels, together, np.array([10.0, 5, 0]))
    by_name = links(align("exact", counts), counts)
    np.testing.assert_allclose(by_name[0], [[1, 0], [0, 1], [0, 0]], atol=1e-12)
    assert not by_name[1].any()
    assert not np.any(links(align("disjoint", counts), counts)[0])
    by_words = links(align("cooccurrence", counts), counts)
    for link in by_words:
        np.testing.assert_allclose(link.sum(axis=1), 1)
    assert by_words[1][0].argmax() == 0
    assert by_words[1][1].argmax() == 2


def test_a_mapping_links_one_label_to_several(tmp_path: Path) -> None:
    rows = ["task,label,general", "old,NN,N", "old,NNS,N", "old,VB,V", "new,noun,N", "new,verb,V"]
    (tmp_path / "map.csv").write_text("\n".join(rows))
    labels = (("NN", "NNS", "VB"), ("noun", "verb"))
    counts = soft_counts(("old", "new"), labels, [np.zeros((2, 3))], np.ones(2))
    (link,) = links(align(f"mapping:{tmp_path / 'map.csv'}", counts), counts)
    np.testing.assert_allclose(link, [[1, 1, 0], [0, 0, 1]], atol=1e-12)


def test_soft_counts_are_counts_where_heads_are_sure() -> None:
    """Probabilities of 0 and 1 count as the labels of a corpus that is annotated for both tasks."""
    numbers = np.random.default_rng(4).integers(0, 3, (50, 2))
    gold = LabelCounts.from_words(("old", "new"), (tuple("abc"), tuple("xyz")), numbers)
    soft = soft_counts(gold.names, gold.labels, [gold.together[3:, :3]], np.diagonal(gold.together)[3:])
    np.testing.assert_array_equal(soft.together, gold.together)


NEW = {"encoder_training": "frozen", "paradigm": "mrn", "tasks": "tag", "lr_heads": 0.05, "batch_size": 8}


def _new_corpus(count: int = 20, names: Mapping[str, str] = MappingProxyType({})) -> Corpus:
    """The toy's POS as another task, its labels called by other names where `names` has them."""

    def renamed(made: list[Sentence]) -> tuple[Sentence, ...]:
        return tuple(
            Sentence(s.tokens, {"tag": tuple(names.get(label, label) for label in s.labels["pos"])})
            for s in made
        )

    labels = tuple(sorted(names.get(label, label) for label in (".", "J", "N", "T", "V")))
    return Corpus(
        "other",
        (Task("tag", "plain", labels, inventory=labels),),
        renamed(sentences(count, 7)),
        renamed(sentences(8, 8)),
        renamed(sentences(12, 9)),
    )


@pytest.fixture(scope="module")
def trained(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of both toy tasks over a frozen encoder."""
    folder = tmp_path_factory.mktemp("trained") / "1"
    config = toy_config(encoder, encoder_training="frozen", paradigm="mrn", epochs=30)
    assert not Laboratory(config, folder, corpus()).attempt().stopped
    return folder


def _config(encoder: str, trained: Path, **changes: Any) -> RunConfig:
    return toy_config(encoder, **NEW | {"added_to": str(trained)} | changes)


def _ready(config: RunConfig, data: Corpus) -> TrainingRun:
    run = set_up(config, data)
    run.compute_features(lambda _event: None, lambda: False)
    return run


def test_the_head_begins_at_what_the_trained_heads_predict(encoder: str, trained: Path) -> None:
    run = _ready(_config(encoder, trained, alignment="exact"), _new_corpus())
    state = load_file(trained / "weights.safetensors")
    head, before = run.model.heads.weight.detach(), state["heads.weight"][:5]  # pos alone has these labels
    share = float(head.flatten() @ before.flatten() / before.square().sum())
    assert 0.5 < share < 3
    torch.testing.assert_close(head, share * before)
    torch.testing.assert_close(run.model.heads.bias.detach(), share * state["heads.bias"][:5])
    assert run.prior.penalty(run.model.heads.weight).item() == 0
    assert run.facts.related == ("pos", "ner", "tag")
    assert run.facts.meet == ((True, False, True), (False, True, False), (True, False, True))
    assert run.facts.notes[-1] == f"The head begins at {share:.2f} of pos, and is drawn there."


def test_tasks_with_the_same_label_names_are_linked_by_them(encoder: str, trained: Path) -> None:
    run = _ready(_config(encoder, trained), _new_corpus())
    assert run.facts.alignment == "cooccurrence"
    assert run.facts.alignment_reason == (
        "auto links the labels of pos by label name and those of ner by what the heads say of the training "
        "words"
    )


def test_labels_of_other_names_are_linked_by_the_words(encoder: str, trained: Path) -> None:
    names = {"N": "noun", "V": "verb", "J": "adjective", "T": "to", ".": "stop"}
    run = _ready(_config(encoder, trained), _new_corpus(names=names))
    assert run.facts.alignment == "cooccurrence"
    split = run.use_split("test")
    batch = next(split.batches.by_length())
    with torch.no_grad():
        best = run.model.best(run.model.eval()(batch), batch)[:, 0]
    assert (best == batch.labels[:, 0]).float().mean() > 0.75  # not a step was made


def test_an_added_run_tags_with_all_tasks_and_leaves_the_old_heads(
    encoder: str, trained: Path, tmp_path: Path
) -> None:
    laboratory = Laboratory(_config(encoder, trained, alignment="exact"), tmp_path / "2", _new_corpus())
    laboratory.attempt()
    before, after = (load_file(each / "weights.safetensors") for each in (trained, tmp_path / "2"))
    for name in ("heads.weight", "heads.bias"):
        assert torch.equal(after[name][: len(before[name])], before[name])
        assert len(after[name]) == len(before[name]) + 5
    words = [sentence.tokens for sentence in sentences(5, 11)]
    old, new = load_tagger(trained).tag(words), load_tagger(tmp_path / "2").tag(words)
    for by_old, by_new in zip(old, new, strict=True):
        assert list(by_new.tags) == ["pos", "ner", "tag"]
        assert [tag.label for tag in by_new.tags["pos"]] == [tag.label for tag in by_old.tags["pos"]]
        assert [tag.label for tag in by_new.tags["ner"]] == [tag.label for tag in by_old.tags["ner"]]
    (last,) = laboratory.record.snapshots.values()
    assert last.relations.task.shape == (3, 3)
    related = last.relations.correlation("task")
    assert related[0, 2] > 0.5
    assert related[1, 2] == 0  # no label name in common


def test_a_task_is_added_to_a_run_that_one_was_added_to(encoder: str, trained: Path, tmp_path: Path) -> None:
    """The second has the name of the first: it is called by its corpus too."""
    train_into = [Laboratory(_config(encoder, trained), tmp_path / "2", _new_corpus())]
    train_into.append(Laboratory(_config(encoder, tmp_path / "2"), tmp_path / "3", _new_corpus()))
    for laboratory in train_into:
        laboratory.attempt()
    assert list(load_tagger(tmp_path / "3").labels) == ["pos", "ner", "tag", "tag@other"]
    facts = _ready(_config(encoder, tmp_path / "2"), _new_corpus()).facts
    assert facts.related[-1] == "tag@other"
    assert facts.tasks[0].name == "tag"


def test_an_added_run_goes_on_from_every_state(encoder: str, trained: Path, tmp_path: Path) -> None:
    config = _config(encoder, trained, epochs=5, dropout=0.3)
    whole, _, cuts = cut_at_every_state(config, _new_corpus(), tmp_path, every=3)
    assert cuts > 2
    assert isinstance(whole.record.snapshots[15], Snapshot)


def test_training_learns_what_the_prediction_lacks(encoder: str, trained: Path, tmp_path: Path) -> None:
    """Two labels change places: the head begins wrong and ends right."""
    data = _new_corpus(names={"N": "V", "V": "N"}, count=60)
    results = {}
    for epochs, lambda_ in ((1, 1e3), (40, 1e-5)):
        folder = tmp_path / str(epochs)
        changes = {"epochs": epochs, "lambda": lambda_, "dropout": 0.0}
        laboratory = Laboratory(_config(encoder, trained, **changes), folder, data)
        laboratory.attempt()
        results[epochs] = laboratory.record.results["test"].scores[0].score
    assert results[1] < 0.7
    assert results[40] > 0.95


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"added_to": "/nowhere/7"}, "added_to", "is no finished run"),
        ({"max_length": 16}, "max_length", "must be 32 here, as in the run"),
        ({"head": "crf"}, "head", "must be linear here, as in the run"),
    ],
)
def test_what_does_not_fit_the_run_is_refused(
    encoder: str, trained: Path, changes: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        trained_heads(_config(encoder, trained, **changes))
    assert refused.value.field == field


def test_runs_that_a_task_cannot_be_added_to(encoder: str, trained: Path, tmp_path: Path) -> None:
    stored = json.loads((trained / "run.json").read_text())
    for name, changes, words in (
        ("tuned", {"encoder_training": "full"}, "trained more than heads"),
        ("crf", {"head": "crf"}, "linear heads"),
        ("shared", {"paradigm": "mtl", "heads": "shared"}, "one a task"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        config = RunConfig.from_stored(stored["config"]).with_(**changes)
        (folder / "run.json").write_text(json.dumps(stored | {"config": json.loads(config.to_json())}))
        with pytest.raises(ConfigError, match=words):
            trained_heads(_config(encoder, folder))


def test_an_added_run_is_exported_and_imported(
    laboratory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tasks are called pos: the added one has its corpus's name too, as a folder and in the card."""
    frozen = {"encoder_training": "frozen", "lr_encoder": None, "tasks": "pos", "epochs": 2}
    first = made_config(laboratory, paradigm="stl", **frozen)
    with contextlib.closing(Store.open()) as store:
        (base,) = train_runs(store, [first])
        second = made_config(laboratory, paradigm="mrn", added_to=str(base), **frozen)
        (added,) = train_runs(store, [with_absolute_paths(second)])
        made = export_run(store, added, tmp_path / "out")
    assert set(made.folders) == {"pos", "pos@toy"}
    assert "pos@toy" in (made.folder / "README.md").read_text()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "elsewhere"))
    with contextlib.closing(Store.open()) as store:
        run = store.run(import_run(store, made.folder).run_id)
        assert list(load_tagger(str(run.checkpoint)).labels) == ["pos", "pos@toy"]
        assert store.relations(run.id)[1].task.shape == (2, 2)
