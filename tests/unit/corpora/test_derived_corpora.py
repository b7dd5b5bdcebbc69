"""Corpora made from others by name: what each kind makes, every refusal, and a run of one from end to end."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqeval.metrics import f1_score

from core.config import RunConfig
from core.corpora import Corpus, load, loading, prepare
from core.corpora.catalogue.folders import read_folder
from core.corpora.loading import pinned_name
from core.errors import ConfigError, CorpusError
from core.recording.resolve import with_absolute_paths
from core.store import Store
from core.tagging import load_tagger
from core.training.evaluate import Predicted, Scorer
from core.training.setup import set_up
from jobs.queue.submit import check
from tests.making import corpus_folder, facts_of
from tests.tiny import tiny_bert
from tests.trained import train_runs
from tests.unit.derived import made, on

_FILES = ("train.conll", "dev.conll", "test.conll")
SIMULATED = "simulated:demo?task=ner&tasks=3&samples=400&tokens=200"


def size(sentences: list[tuple[str, ...]]) -> int:
    return sum(map(len, sentences))


def test_samples_of_each_joined_corpus_apart() -> None:
    corpus = made("demo?train=50&dev=20&test=10", "pos,ner")
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (50, 20, 10)
    assert "Uses 20 of 300 dev sentences, drawn with seed 1." in corpus.notes
    both = made("demo-both-pos?train=30&dev=5", "pos-a,pos-b", seed=3)
    assert (len(on(both, "pos-a")), len(on(both, "pos-b")), len(both.dev)) == (30, 30, 10)
    assert on(made("demo-both-pos?train=30&dev=5", "pos-b", seed=3), "pos-b") == on(both, "pos-b")


def test_a_joined_corpus_may_have_a_size_for_each_part() -> None:
    name = "joined:demo-pos-a+demo-pos-b?train={}&dev=5"
    tasks = "pos@demo-pos-a,pos@demo-pos-b"
    alike, apart = (made(name.format(train), tasks, seed=3) for train in ("30", "30,9"))
    assert [len(on(apart, task)) for task in tasks.split(",")] == [30, 9]
    assert on(made(name.format("30,9"), "pos@demo-pos-b", seed=3), "pos@demo-pos-b") == on(
        apart, "pos@demo-pos-b"
    )
    assert on(apart, "pos@demo-pos-a") == on(alike, "pos@demo-pos-a")
    assert set(on(apart, "pos@demo-pos-b")) <= set(on(alike, "pos@demo-pos-b"))
    whole = made(name.format("9000,9"), tasks, seed=3)
    assert [len(on(whole, task)) for task in tasks.split(",")] == [600, 9]


def test_sentences_are_dealt_evenly_or_by_a_budget_for_each_task() -> None:
    """That each has one task and is there once is a property of `apart`."""
    corpus = made("apart:demo", "pos,chunk,ner")
    assert [len(on(corpus, task)) for task in ("pos", "chunk", "ner")] == [400, 400, 400]
    assert set(corpus.dev[0].labels) == {"pos", "chunk", "ner"}
    assert corpus.dev == made("demo", "pos,chunk,ner").dev
    budgets = made("apart:demo?tokens=100,1000,300", "ner,pos,chunk")
    for task, budget in {"pos": 100, "chunk": 1000, "ner": 300}.items():
        words = on(budgets, task)
        assert size(words[:-1]) < budget <= size(words)


def test_a_joined_base_keeps_its_sentences() -> None:
    dealt_to_two = made("apart:demo?tasks=pos,ner", "ner,pos")
    assert {task for sentence in dealt_to_two.train for task in sentence.labels} == {"pos", "ner"}
    assert len(dealt_to_two.train) == len(made("demo", "pos,ner").train)
    with pytest.raises(CorpusError, match="no task 'chunk'; its tasks are"):
        made("apart:demo?tasks=pos,ner", "pos,chunk")
    with pytest.raises(CorpusError, match="The base has no task 'deprel'"):
        made("apart:demo?tasks=pos,deprel", "pos")
    whole, some = (made(f"apart:demo-both-pos{end}", "pos-a,pos-b") for end in ("", "?tokens=200"))
    assert len(on(whole, "pos-a")) == len(on(whole, "pos-b")) == 600
    assert set(on(some, "pos-a")) < set(on(whole, "pos-a"))
    assert on(made("apart:demo-both-pos?tokens=200", "pos-b"), "pos-b") == on(some, "pos-b")


def test_artificial_tasks_have_the_labels_of_the_real_one_on_training_sentences() -> None:
    corpus = made("simulated:demo?task=chunk&tasks=2&tokens=3000", "chunk,sim-1,sim-2")
    assert [task.scheme for task in corpus.tasks] == ["iob2", "plain", "plain"]
    assert [task.auxiliary for task in corpus.tasks] == [False, True, True]
    assert {frozenset(task.labels) for task in corpus.tasks} == {frozenset(load("demo").task("chunk").labels)}
    assert all(set(sentence.labels) == {"chunk"} for sentence in (*corpus.dev, *corpus.test))
    same = made("simulated:demo?tasks=2&tokens=200&sentences=same", "ner,sim-1,sim-2")
    assert all(set(sentence.labels) == {"ner", "sim-1", "sim-2"} for sentence in same.train)
    separate = made("simulated:demo?tasks=2&tokens=200&samples=300", "ner,sim-1,sim-2")
    assert on(same, "ner") == on(separate, "ner")


@pytest.mark.parametrize("task", ["ner", "pos"])
def test_the_last_tasks_have_their_label_names_permuted(task: str) -> None:
    """Another name for every label, the same for all words of a task, another in each task."""
    name = f"simulated:demo?task={task}&tasks=3&tokens=300&samples=300&alpha=0.6"
    tasks = f"{task},sim-1,sim-2,sim-3"
    plain, permuted = made(name, tasks, seed=4), made(f"{name}&permuted=2", tasks, seed=4)
    renamed: dict[str, set[tuple[str, str]]] = {sim: set() for sim in tasks.split(",")}
    for before, after in zip(plain.train, permuted.train, strict=True):
        assert before.tokens == after.tokens
        for sim, labels in before.labels.items():
            renamed[sim] |= set(zip(labels, after.labels[sim], strict=True))
    assert all(label == other for sim in (task, "sim-1") for label, other in renamed[sim])
    for sim in ("sim-2", "sim-3"):
        assert len(dict(renamed[sim])) == len({other for _, other in renamed[sim]}) == len(renamed[sim]) > 1
        assert all(label != other for label, other in renamed[sim])
    assert renamed["sim-2"] != renamed["sim-3"]
    assert plain.planted is not None
    assert permuted.planted is not None
    assert permuted.planted(tuple(tasks.split(","))) == plain.planted(tuple(tasks.split(",")))
    permuted_note = "The label names of sim-2 and sim-3 are permuted."
    assert [note.endswith(permuted_note) for note in permuted.notes].count(True) == 1
    assert made(f"{name}&permuted=2", tasks, seed=4).train == permuted.train


def test_no_task_changes_the_sentences_of_another() -> None:
    few = made("simulated:demo?tasks=1&samples=400&tokens=200", "ner,sim-1")
    many = made("simulated:demo?tasks=9&samples=400&tokens=2000", "ner,sim-1,sim-9")
    assert on(few, "sim-1") == on(many, "sim-1")
    assert on(few, "ner") == on(many, "ner")[: len(on(few, "ner"))]
    alone = made("simulated:demo?tasks=9&samples=400&tokens=2000", "ner")
    assert on(alone, "ner") == on(many, "ner")


def test_what_is_planted_is_told_of_the_runs_tasks() -> None:
    """Alphas are dealt to the artificial tasks in turn."""
    planted = made(f"{SIMULATED}&alpha=1,0.5", "ner,sim-1,sim-2,sim-3").planted
    assert planted is not None
    whole, some = planted(("ner", "sim-1", "sim-2", "sim-3")), planted(("sim-2", "ner"))
    assert whole is not None
    assert some is not None
    assert whole.alphas == (1.0, 1.0, 0.5, 1.0)
    assert whole.ami[0][1] == whole.ami[1][3] == 1.0
    assert whole.ami[0][2] == whole.ami[2][0] == some.ami[0][1] < 0.5
    assert (some.tasks, some.alphas) == (("sim-2", "ner"), (0.5, 1.0))
    assert planted(("ner",)) is None
    assert made("demo", "pos,ner").planted is None


def test_joined_corpora_keep_all_tasks_of_a_sentence_and_name_common_ones_after_the_corpus() -> None:
    names = [task.name for task in load("joined:demo+demo-pos-a+demo-both-pos").tasks]
    assert names == ["pos@demo", "chunk", "ner", "pos@demo-pos-a", "pos-a", "pos-b"]
    corpus = made("joined:demo+demo-pos-a", "pos@demo-pos-a,ner,pos@demo")
    assert {(sentence.part, *sorted(sentence.labels)) for sentence in corpus.train} == {
        ("demo", "ner", "pos@demo"),
        ("demo-pos-a", "pos@demo-pos-a"),
    }
    assert on(corpus, "ner") == on(load("demo"), "ner")
    assert len(corpus.train) == 1800
    assert len(made("joined:demo+demo-pos-a?dev=7", "chunk").dev) == 7


@pytest.fixture
def bases(tmp_path: Path) -> dict[str, str]:
    """Folders of texts, of pairs, and of words."""
    rows = "text\tlabel\n" + "".join(f"word{number} and more\t{number % 2}\n" for number in range(30))
    pairs = "text1\ttext2\tscore\n" + "".join(f"a{n}\tb {n}\t{n % 5}\n" for n in range(20))
    return {
        "texts": corpus_folder(tmp_path / "reviews", dict.fromkeys(("train.tsv", "test.tsv"), rows)),
        "pairs": corpus_folder(tmp_path / "similar", {f"{s}.tsv": pairs for s in ("train", "dev", "test")}),
        "words": folder(tmp_path / "words"),
    }


def test_texts_joined_with_words_all_stay_what_they_are(bases: dict[str, str]) -> None:
    name = f"joined:{bases['texts']}+{bases['pairs']}+{bases['words']}"
    corpus = load(name)
    schemes = {"reviews": "text", "similar": "score", "ner": "iob2", "pos": "plain"}
    assert {task.name: task.scheme for task in corpus.tasks} == schemes
    kinds = {(s.part, s.whole, s.second is not None) for s in corpus.train}
    assert kinds == {("reviews", True, False), ("similar", True, True), ("words", False, False)}
    run = made(name, "reviews,similar,ner", fraction=0.5)
    assert Counter(sentence.part for sentence in run.train) == {"reviews": 13, "similar": 10, "words": 10}
    assert run.task("similar").scale is not None


def test_samples_and_budgets_count_both_texts(bases: dict[str, str]) -> None:
    sample = load(f"{bases['pairs']}?train=7&test=3")
    assert (len(sample.train), len(sample.dev), len(sample.test)) == (7, 20, 3)
    apart = load(f"apart:{bases['texts']}+{bases['pairs']}?tokens=9")
    assert Counter(sentence.part for sentence in apart.train) == {"reviews": 3, "similar": 3}


def test_artificial_labels_are_for_words(bases: dict[str, str]) -> None:
    with pytest.raises(CorpusError, match="reviews labels whole texts, and artificial labels are drawn for"):
        load(f"simulated:{bases['texts']}?tasks=2")
    corpus = load(f"simulated:{bases['texts']}+{bases['words']}?task=ner&tasks=2")
    assert [task.name for task in corpus.tasks] == ["ner", "sim-1", "sim-2"]


def folder(path: Path) -> str:
    return corpus_folder(path, dict.fromkeys(_FILES, "Anna B-PER N\nsings O V\n\n" * 20))


def test_folders_may_have_such_names_and_are_named_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(load(folder(tmp_path / "apart:a+b?tokens=3")).train) == 20
    assert len(load(f"{folder(tmp_path / 'a+b')}?train=2").train) == 2
    folder(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert pinned_name("demo") == "demo"
    assert pinned_name("apart:mine?tokens=3&dev=2") == f"apart:{tmp_path}/mine?tokens=3&dev=2"
    config = RunConfig.build(corpus="joined:demo+mine", tasks="ner@demo,ner@mine")
    assert with_absolute_paths(config).corpus == f"joined:demo+{tmp_path}/mine"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other:demo", "There is no kind of corpus 'other'; the kinds are apart, simulated, joined."),
        ("apart:", "'apart:' names no corpus to derive from"),
        ("demo?tokens=3", "without a kind has no option 'tokens'; it has dev, test, train."),
        ("apart:demo?train=3", "kind apart has no option 'train'; it has dev, test, tokens, tasks."),
        ("demo?", "demo?: an option has no name; write ?key=value&key=value."),
        ("demo?dev=1&=2", "an option has no name"),
        ("demo?dev=1&dev=2", "dev is given twice"),
        ("demo?dev=0", "dev must be a whole number from 1 to 1,000,000,000, not '0'."),
        (
            "apart:demo?tokens=1,,2",
            "tokens must be whole numbers from 1 to 1,000,000,000, separated by commas",
        ),
        (
            "apart:demo?tokens=1,2",
            "tokens must be one number, or one for each task (pos, chunk, ner), not 2.",
        ),
        ("apart:demo?tokens=9000", "9,000 training words were asked for pos, and the sentences dealt to it "),
        ("simulated:demo?tasks=51", "tasks must be a whole number from 1 to 50, not '51'."),
        ("simulated:demo?alpha=1.1", "alpha must be numbers from 0 to 1, separated by commas, not '1.1'."),
        ("simulated:demo?sentences=none", "sentences must be one of own, same, not 'none'."),
        ("simulated:demo?task=", "task must be a name"),
        ("simulated:demo?task=srl", "has no task 'srl'; its tasks are pos, chunk, ner."),
        (
            "simulated:demo?tokens=900&samples=9000&tasks=2",
            "17,433 training words are annotated for ner, and more were asked for in whole sentences "
            "(900 for ner and 18,000 for 2 artificial tasks); ask for fewer.",
        ),
        ("simulated:demo?samples=4000&tasks=5", "(20,000 for 5 artificial tasks)"),
        ("simulated:demo?tokens=20000&sentences=same", "(20,000 for ner)"),
        ("simulated:demo?samples=5&sentences=same", "leave out samples"),
        (
            "simulated:demo?tasks=2&permuted=3",
            "the label names of 3 tasks cannot be permuted, for there are 2 artificial ones; ask for fewer.",
        ),
        ("simulated:demo?permuted=0", "permuted must be a whole number from 1 to 50, not '0'."),
        (
            "joined:demo-pos-a+demo-pos-b?train=1,2,3",
            "train must be one number, or one for each joined corpus (demo-pos-a, demo-pos-b), not 3.",
        ),
        ("demo?train=3,4", "train must be a whole number from 1 to 1,000,000,000, not '3,4'."),
        ("joined:demo+demo", "Two of the corpora to join are called demo"),
    ],
)
def test_refused_in_one_sentence(name: str, says: str) -> None:
    with pytest.raises(CorpusError) as raised:
        load(name)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_real_task_of_one_label_is_refused(tmp_path: Path) -> None:
    mine = corpus_folder(tmp_path / "mine", dict.fromkeys(_FILES, "Anna B-PER N\nsings O N\n\n" * 20))
    with pytest.raises(CorpusError, match="toy has 1 label, and artificial labels"):
        made(f"simulated:{mine}", "toy,sim-1", columns="tokens,ner,toy")
    with pytest.raises(CorpusError, match=r"has no task 'pos'; its tasks are ner, sim-1, sim-2, sim-3\."):
        made(SIMULATED, "pos,sim-1")


def test_auxiliary_tasks_alone_are_refused_before_they_are_queued() -> None:
    runs = [
        RunConfig.build(corpus=SIMULATED, tasks=tasks, paradigm="stl" if "," not in tasks else "mtl")
        for tasks in ("ner,sim-1", "ner", "sim-1")
    ]
    check(runs[:2])
    for refused in (lambda: check(runs), lambda: prepare(runs[2])):
        with pytest.raises(CorpusError, match="a run of sim-1 alone cannot be scored"):
            refused()


def test_a_corpus_is_read_once_for_many_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: list[Path] = []

    def noted(path: Path, *rest: Any) -> Corpus:
        read.append(path)
        return read_folder(path, *rest)

    monkeypatch.setattr(loading, "read_folder", noted)
    mine = folder(tmp_path / "mine")
    for seed in (1, 2):
        for name in (f"apart:{mine}", f"{mine}?dev=2", mine):
            made(name, "ner,pos", columns="tokens,ner,pos", seed=seed)
    assert read == [Path(mine)]


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    """Through the store: trained, scored on its real task alone, and able to tag with all of them."""
    tasks = ["ner", "sim-1", "sim-2", "sim-3"]
    config = RunConfig.build(
        corpus=f"{SIMULATED}&alpha=0.9,0.2&dev=20&test=20", tasks=tasks, paradigm="mrn", alignment="exact",
        encoder=str(tiny_bert(tmp_path / "encoder")), encoder_training="frozen", max_length=64, epochs=2,
    )  # fmt: skip
    with contextlib.closing(Store.open("sqlite://")) as store:
        (run_id,) = train_runs(store, [config])
        run = store.run(run_id)
        scored = {(score.split, score.task) for score in store.scores([run_id])}
        assert {key.task for key in store.metric_keys([run_id]) if key.name == "score"} == {"", "ner"}
    assert scored == {("dev", "ner"), ("test", "ner")}
    assert [task.auxiliary for task in run.task_facts] == [False, True, True, True]
    planted = facts_of(run).planted
    assert planted is not None
    assert (planted.tasks, planted.alphas, planted.ami[1][1]) == (tuple(tasks), (1.0, 0.9, 0.2, 0.9), 1.0)
    assert set(load_tagger(str(run.checkpoint)).tag([("EU", "rejects")])[0].tags) == set(tasks)


IO = "simulated:demo?task=ner&tasks=2&alpha=1&tokens=300&samples=200&scheme=io"


def io_labels(labels: Sequence[str]) -> list[str]:
    return [label.replace("B-", "I-") for label in labels]


def test_training_labels_in_io_and_the_others_in_iob2() -> None:
    config = RunConfig.build(corpus=IO, tasks="ner,sim-1", paradigm="mtl")
    corpus = prepare(config)
    real, artificial = corpus.tasks
    in_training = {label for s in corpus.train for labels in s.labels.values() for label in labels}
    assert in_training == set(real.labels) == set(artificial.labels)
    assert {label[:2] for label in in_training} == {"O", "I-"}
    assert {label[:2] for s in corpus.test for label in s.labels["ner"]} == {"O", "B-", "I-"}
    assert real.unseen == {}
    assert not [note for note in corpus.notes if "never" in note or "continue no span" in note]
    in_iob2 = prepare(config.with_(corpus=IO.removesuffix("&scheme=io")))
    assert corpus.test == in_iob2.test
    assert [s.tokens for s in corpus.train] == [s.tokens for s in in_iob2.train]
    # At α = 1 the artificial task is the real one, in its IO labels.
    of_artificial = next(s for s in corpus.train if "sim-1" in s.labels)
    same = next(s for s in made("demo", "ner").train if s.tokens == of_artificial.tokens)
    assert list(of_artificial.labels["sim-1"]) == io_labels(same.labels["ner"])


def test_a_run_on_io_labels_is_scored_as_seqeval_scores_it() -> None:
    config = RunConfig.build(corpus=IO, tasks="ner,sim-1", paradigm="mtl")
    run = set_up(config, prepare(config))
    facts, split = run.facts.tasks, run.splits["test"]
    gold = [list(sentence.labels["ner"]) for sentence in split.sentences]
    # Everything is right but what IO cannot tell apart: spans of one type that touch.
    predicted = [io_labels(labels) for labels in gold]
    flat = [facts[0].labels.index(label) for labels in predicted for label in labels]
    scorer = Scorer(config, "test", split, facts)
    result = scorer.result(Predicted(np.stack([flat, flat], axis=1), np.zeros(2)), 1)
    assert (result.predictions["ner"], result.gold["ner"]) == (predicted, gold)
    (score,) = result.scores
    assert score.score == score.secondary("f1_conll") == pytest.approx(f1_score(gold, predicted))


def test_io_needs_spans_and_no_rule_against_an_i_that_continues_nothing() -> None:
    with pytest.raises(CorpusError, match="pos has no spans"):
        prepare(RunConfig.build(corpus=IO.replace("task=ner", "task=pos"), tasks="pos", paradigm="stl"))
    with pytest.raises(ConfigError) as refused:
        prepare(RunConfig.build(corpus=IO, tasks="ner", paradigm="stl", head="crf_legal"))
    assert refused.value.field == "head"
