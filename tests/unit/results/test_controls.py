"""Controls: runs in which the training labels of one task are permuted, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus, Sentence
from core.errors import ConfigError, MRNLabError
from core.results.naming import run_name, shortest_names
from core.results.relations import control_configs, controls_of, relation_tables
from core.results.samples import group_by_data
from core.store import Store
from tests.making import config, corpus_folder, finished, run_facts, snapshot


@pytest.fixture(scope="module")
def pair() -> tuple[Corpus, Corpus, Corpus]:
    """The demo corpus, and with the labels of ner and of pos permuted."""
    plain = RunConfig.build(corpus="demo", tasks="pos,ner", fraction=0.2, seed=3)
    return prepare(plain), prepare(plain.with_(permuted="ner")), prepare(plain.with_(permuted="pos"))


def counts(sentences: Iterable[Sentence], task: str) -> Counter[str]:
    return Counter(label for sentence in sentences for label in sentence.labels[task])


def spans(sentences: Iterable[Sentence]) -> Counter[tuple[str, ...]]:
    """The labels of each span, by how often they occur."""
    spans_seen: Counter[tuple[str, ...]] = Counter()
    for sentence in sentences:
        span: list[str] = []
        for label in (*sentence.labels["ner"], "O"):
            if span and not label.startswith("I-"):
                spans_seen[tuple(span)] += 1
                span = []
            if label != "O":
                span.append(label)
    return spans_seen


def test_labels_keep_their_frequencies_and_spans_their_length(pair: tuple[Corpus, ...]) -> None:
    plain, of_ner, of_pos = pair
    assert counts(of_ner.train, "ner") == counts(plain.train, "ner")
    assert spans(of_ner.train) == spans(plain.train)
    assert counts(of_pos.train, "pos") == counts(plain.train, "pos")


def test_the_permuted_labels_say_nothing_of_the_words(pair: tuple[Corpus, ...]) -> None:
    """Words at which a label stays are as many as frequencies alone make equal, within four deviations."""
    plain, *permuted = pair
    for task, corpus in zip(("ner", "pos"), permuted, strict=True):
        labels = [
            [label for sentence in of.train for label in sentence.labels[task]] for of in (plain, corpus)
        ]
        total = len(labels[0])
        same = sum(a == b for a, b in zip(*labels, strict=True)) / total
        expected = sum((count / total) ** 2 for count in Counter(labels[0]).values())
        # Sentences keep the lengths of their spans, so O stays a little more often than by chance.
        assert abs(same - expected) < 4 * (expected * (1 - expected) / total) ** 0.5 + 0.02


def test_nothing_else_changes(pair: tuple[Corpus, ...]) -> None:
    plain, of_ner, _ = pair
    assert counts(of_ner.train, "pos") == counts(plain.train, "pos")
    assert [s.labels["pos"] for s in of_ner.train] == [s.labels["pos"] for s in plain.train]
    assert list(of_ner.dev) == list(plain.dev)
    assert list(of_ner.test) == list(plain.test)
    assert of_ner.tasks == plain.tasks
    assert "A control" in " ".join(of_ner.notes)


def test_the_seed_draws_it(pair: tuple[Corpus, ...]) -> None:
    run = RunConfig.build(corpus="demo", tasks="pos,ner", fraction=0.2, seed=3, permuted="ner")
    assert list(prepare(run).train) == list(pair[1].train)
    assert list(prepare(run.with_(seed=4)).train) != list(pair[1].train)


def test_labels_of_texts_are_permuted_over_texts(tmp_path: Path) -> None:
    lines = "".join(f"text number {number},{'good' if number % 3 else 'bad'}\n" for number in range(60))
    files = {f"{split}.csv": f"text,label\n{lines}" for split in ("train", "dev", "test")}
    folder = corpus_folder(tmp_path / "mood", files)
    plain = RunConfig.build(corpus=folder, tasks="mood", paradigm="stl")
    before, after = prepare(plain), prepare(plain.with_(permuted="mood"))
    assert counts(before.train, "mood") == counts(after.train, "mood")
    assert list(before.train) != list(after.train)
    assert list(before.dev) == list(after.dev)


def test_what_was_planted_no_longer_holds() -> None:
    run = RunConfig.build(corpus="simulated:demo?task=pos&tasks=1&tokens=200&samples=200", tasks="pos,sim-1")
    assert prepare(run).planted is not None
    assert prepare(run.with_(permuted="sim-1")).planted is None


def test_a_task_that_the_run_does_not_learn_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be one of the run's tasks \(pos, ner\), not 'chunk'"):
        config(permuted="chunk")


def test_a_run_without_a_control_has_the_id_that_it_had() -> None:
    assert "permuted" not in config().to_json()
    assert config(permuted="ner").configuration_id != config().configuration_id


def test_names_and_tables_tell_controls_apart(store: Store) -> None:
    ids = store.add_runs([config(), config(permuted="ner"), config(permuted="pos")])
    runs = sorted(store.runs(ids), key=lambda run: run.id)
    assert run_name(runs[1]) == f"{ids[1]} · MRN control (ner permuted) λ=0.001 · demo · seed 1"
    names = shortest_names([run.config for run in runs])
    assert names == [
        "MRN λ=0.001",
        "MRN control (ner permuted) λ=0.001",
        "MRN control (pos permuted) λ=0.001",
    ]
    assert [group.name for group in group_by_data(runs)] == [
        "demo",
        "demo, ner permuted",
        "demo, pos permuted",
    ]


def learned(store: Store, seeds: Iterable[int], **values: object) -> list[int]:
    """Finished runs with relations."""
    return [
        finished(
            store,
            config(seed=seed, alignment="exact", **values),
            run_facts(alignment="exact", meet=((True, True), (True, True))),
            snapshot(3, seed=seed),
        )
        for seed in seeds
    ]


def test_controls_are_found_by_description(store: Store) -> None:
    runs = store.runs(learned(store, (1, 2, 3)))
    (newest,) = learned(store, (2,), permuted="ner")[-1:]
    learned(store, (2,), permuted="ner", epochs=9)  # of another configuration
    assert controls_of(store, runs)["ner"].keys() == {2}
    assert controls_of(store, runs)["ner"][2].id == newest
    wanted = control_configs(runs, ["ner"])
    assert sorted((each.seed, each.permuted) for each in wanted) == [(1, "ner"), (2, "ner"), (3, "ner")]


def test_tables_rest_on_controls_and_leave_them_out(store: Store) -> None:
    runs = learned(store, (1, 2, 3))
    (table,) = relation_tables(store)
    assert (
        table.basis
        == "Against ±0.1 over 3 seeds, corrected over all pairs tested; no controls with shuffled labels."
    )
    learned(store, (1, 2, 3), permuted="pos")
    (table,) = relation_tables(store)
    assert set(table.run_ids) == set(runs)
    assert "1 of 1 against controls too: pos permuted (3 seeds)" in table.basis
    assert table.verdicts.verdict[0, 1] == "undecided"  # it is what the control has
    assert [record["control"] for record in table.records] == [True]


def test_controls_are_of_mrn_runs_that_are_none(store: Store) -> None:
    mtl, control = (
        store.add_runs([config(**values)]) for values in ({"paradigm": "mtl"}, {"permuted": "ner"})
    )
    for ids, why in ((mtl, "only MRN runs learn relations"), (control, "is a control itself")):
        with pytest.raises(MRNLabError, match=why):
            control_configs(store.runs(ids), ["ner"])
    with pytest.raises(MRNLabError, match="has no task 'chunk' to permute"):
        control_configs(store.runs(store.add_runs([config()])), ["chunk"])
    with pytest.raises(MRNLabError, match="launch some with several seeds"):
        relation_tables(store)
