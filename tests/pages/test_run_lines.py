"""The tables of runs as lines: grouped, sorted, in pages, with exact means; and what sets runs apart."""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.config import FIELD_HELP, RunConfig, applicable_fields, comparison_key
from core.corpora.reading import ColumnReading, Reading
from core.events import RunFacts
from core.results.filter import parse_filter
from core.results.naming import group_names, run_names
from core.results.samples import by_configuration
from core.store import RunState, Store
from dashboard.curves.numbers import configurations
from dashboard.runs import views
from dashboard.runs.columns import FIELDS_SHOWN, columns_of
from dashboard.runs.differences import difference_sentence, differences
from dashboard.runs.views import PAGE, Line, Page, page_of, sorts
from tests.making import claimed, config, run_facts, split_result
from tests.making import finished as finished_run
from tests.pages.filled_store import TASKS, Filled

_IN_COLUMNS = {field for fields in FIELDS_SHOWN.values() for field in fields}


@pytest.fixture
def memory() -> Iterator[Store]:
    """A store in memory."""
    with contextlib.closing(Store.open("sqlite://")) as store:
        yield store


def page(store: Store, *, grouped: bool = True, sort: str = "new", number: int = 1) -> Page:
    return page_of(store, store.runs(), grouped=grouped, sort=sort, page=number, tasks=TASKS)


def mean(line: Line, split: str, task: str) -> float | None:
    """The score of a line, None where it has none."""
    score = line.scores.get((split, task))
    return None if score is None else score.mean


def test_a_configuration_is_the_mean_of_its_seeds(filled: Filled) -> None:
    store = Store.open()
    line = next(line for line in page(store).lines if filled.mrn[0] in line.run_ids)
    ended = [run.id for run in store.runs(line.run_ids) if run.state is RunState.SUCCEEDED]
    ner = [score.score for score in store.scores(ended, "test") if score.task == "ner"]
    summary = line.scores["test", "ner"]
    assert (summary.mean, summary.sd) == pytest.approx((statistics.fmean(ner), statistics.stdev(ner)))
    assert summary.n == len(ended) < len(line.run_ids)  # one is live, one waits
    assert line.scores["dev", "pos"].n == len(ended)
    assert dict(line.states)[RunState.SUCCEEDED] == len(ended)
    assert line.run is None
    live = next(line for line in page(store, grouped=False).lines if line.run == filled.live[0])
    assert mean(live, "dev", "ner") is not None  # its last epoch's
    assert live.done == pytest.approx(260 / 600)
    assert mean(live, "test", "ner") is None


def test_stl_of_all_tasks_is_one_line(finished: Filled) -> None:
    (stl,) = (line for line in page(Store.open()).lines if line.config.paradigm == "stl")
    assert (len(stl.run_ids), stl.counted, stl.seeds) == (9, 9, 3)
    assert {(task, stl.scores["test", task].n) for task in TASKS} == {(task, 3) for task in TASKS}


def test_a_corpus_has_a_table_of_its_own_tasks(memory: Store) -> None:
    common = {"encoder": "bert-base-cased", "epochs": 3}
    memory.add_runs([config(paradigm="mtl", **common), config(**common, fraction=0.05)])
    memory.add_runs([config(corpus=f"/{place}/ud", tasks=("upos", "xpos"), **common) for place in "ab"])
    memory.add_runs([config(paradigm="mtl", encoder="sc-lstm")])
    whole, first, second, demo = page(memory).tables
    # Two are called ud, and demo was trained on two shares.
    assert [table.corpus for table in (first, second, demo)] == ["/b/ud", "/a/ud", "demo · 5% of the data"]
    assert (first.tasks, demo.tasks) == (("upos", "xpos"), ("pos", "ner"))
    # Scores on a share have a table of their own; names of one share need not have it.
    assert (whole.corpus, len(whole.lines)) == ("demo · 100% of the data", 2)
    assert demo.shared == ("pos, ner", "bert-base-cased, fine-tuned", "3 epochs")
    assert first.shared == ("upos, xpos", "bert-base-cased, fine-tuned", "3 epochs")
    assert [line.name for line in demo.lines] == ["MRN λ=0.001"]
    assert [line.name for line in whole.lines] == ["MTL · sc-lstm", "MTL · bert-base-cased"]
    assert len(set(whole.names(_IN_COLUMNS))) == 1


def test_a_table_is_told_from_its_neighbour(memory: Store) -> None:
    memory.add_runs([config(), config(corpus="demo?dev=50", epochs=7)])
    sampled, whole = page(memory).tables
    assert (sampled.corpus, whole.corpus) == ("demo · 50 dev sentences", "demo")
    assert sampled.apart == {"7 epochs"}
    memory.add_runs([config(corpus="/other/corpus")])
    alone = page(memory).tables[0]
    assert alone.apart == set()


def test_what_is_launched_together_is_in_the_order_of_paradigms(memory: Store) -> None:
    """Each sweep is newer than the one before; and a table tells which relations its runs learn."""
    for sweep, base in (("a", {"epochs": 3}), ("b", {"epochs": 4})):
        kinds = ({"paradigm": "stl", "tasks": ("ner",)}, {"learn": ("task",)}, {"paradigm": "mtl"})
        memory.add_runs([config(**base | kind) for kind in kinds], sweep=sweep)
    (table,) = page(memory).tables
    shown = [(line.config.epochs, line.config.paradigm) for line in table.lines]
    assert shown == [(epochs, paradigm) for epochs in (4, 3) for paradigm in ("stl", "mtl", "mrn")]
    assert "relations" not in " ".join(table.shared)
    memory.add_runs([config(corpus="/other")])
    shared = {table.corpus: table.shared for table in page(memory).tables}
    assert "relations of tasks, labels and features" in shared["other"]
    assert "relations of tasks" in shared["demo"]


def _changed(field: str, base: RunConfig) -> RunConfig | None:
    """The configuration with another value of one field; None where the field cannot be changed alone."""
    value = base.value(field)
    options = [part.strip() for part in FIELD_HELP[field].range.split("|") if part.strip().isidentifier()]
    others: dict[str, Any] = {
        "corpus": "/elsewhere/demo",
        "columns": "tokens,pos,ner",
        "tasks": ("ner", "pos"),
        "encoder": "/models/minilm",
        "prior": "map",
        "alignment": "mapping:/b/labels.csv",
        "learn": "task",
        "device": "cuda:1",
        "dev_sentences": 0,
        "batch_tokens": 512,
        "vectors": "/elsewhere/vectors.txt",
        "task_order": ("ner", "pos"),
        "task_weights": (1.0, 0.5),
        "clip_norm": 5.0,
    }
    if field in others:
        other = others[field]
    elif isinstance(value, bool):
        other = not value
    elif isinstance(value, float):
        other = value * (1 - 1e-9)  # reads the same when it is rounded
    elif isinstance(value, int):
        other = value + 1
    else:
        other = next((option for option in options if option != value), None)
    return None if other is None else base.with_(**{field: other})


@pytest.mark.parametrize(
    "base",
    [
        config(alignment="mapping:/a/labels.csv"),
        config(encoder="minilm+bilstm"),
        config(encoder_training="frozen", batch_size=4),
        config(paradigm="mtl"),
        config(paradigm="mtl", encoder="lstm-d", task_order=("pos", "ner"), task_weights=(1, 2), patience=3),
        config(paradigm="stl", tasks=("ner",)),
    ],
)
def test_configurations_that_differ_never_read_the_same(
    base: RunConfig, monkeypatch: pytest.MonkeyPatch, memory: Store
) -> None:
    """Whatever field it is in; STL's that differ in the task alone are one line, as on Compare."""
    fields = applicable_fields(base.paradigm, base.encoder, base.encoder_training, base.prior)
    unchanged = {"seed", "paradigm", "tasks" if base.paradigm == "stl" else ""}
    changed = [_changed(field, base) for field in sorted(fields - unchanged)]
    configs = [base, *(config for config in changed if config is not None)]
    configs += [config(paradigm="mtl", seed=base.seed)] if base.paradigm == "mrn" else []
    assert len(configs) > 24
    monkeypatch.setattr(views, "PAGE", len(configs))
    memory.add_runs(configs)
    shown = [(table.corpus, table.shared, line.name) for table in page(memory).tables for line in table.lines]
    assert len(set(shown)) == len(shown) == len(set(map(comparison_key, configs)))
    beside: list[tuple[Any, ...]] = []  # what a reader sees of the names of lines with their columns
    for table in page(memory).tables:
        of_columns = {head: column.texts for head, column in columns_of(table, "test", ()).items()}
        told = [of_columns[head] for head, fields in FIELDS_SHOWN.items() if fields]
        heads = [(table.corpus, table.shared)] * len(table.lines)
        beside += zip(heads, table.names(_IN_COLUMNS), *told, strict=True)
    assert len(set(beside)) == len(shown)
    runs = memory.runs()
    groups = list(by_configuration(runs).values())
    chips, legend = group_names(groups), {each.name for each in configurations(runs).values()}
    run_chips = {name.partition(" · ")[2] for name in run_names([group[0] for group in groups])}
    assert len(set(chips)) == len(legend) == len(run_chips) == len(groups)
    assert not any("run " in name for name in (*chips, *legend))  # what differs is named, not the run


def test_the_best_is_marked_among_lines_on_the_same_share(memory: Store) -> None:
    for values, scores in (
        ({"lambda": 0.1}, (0.7, 0.701, 0.703)),
        ({"lambda": 0.2}, (0.8, 0.802, 0.803)),
        ({"fraction": 0.5}, (0.9, 0.901, 0.903)),
    ):
        for seed, score in enumerate(scores):
            run_id = claimed(memory, RunState.SUCCEEDED, seed=seed, **values)
            memory.add_result(run_id, split_result("test", score))
    half, table = page(memory).tables
    best = [table.lines[place].config.lambda_ for place in table.best("test", "pos")]
    assert best == [0.2]
    assert half.best("test", "pos") == set()  # nothing stands beside the one on half of the data
    assert table.best("dev", "pos") == set()
    # A higher mean alone is not marked.
    for seed in range(3):
        run_id = claimed(memory, RunState.SUCCEEDED, seed=seed, **{"lambda": 0.3})
        memory.add_result(run_id, split_result("test", 0.7 + 0.12 * seed))
    table, _ = page(memory).tables
    assert table.best("test", "pos") == set()
    assert table.split("dev") == "test"  # there are no scores on dev


def test_pages_hold_every_run_once_in_any_order(memory: Store) -> None:
    rates = [0.001 + 0.001 * place for place in range(30)]
    memory.add_runs([config(seed=seed, **{"lambda": rate}) for rate in rates for seed in (1, 2)])
    for score in (0.4, 0.8):
        memory.add_result(claimed(memory, RunState.SUCCEEDED, epochs=9), split_result("dev", score))
    for grouped, sort in itertools.product((True, False), sorts(TASKS)):
        first = page(memory, grouped=grouped, sort=sort)
        assert (first.runs, first.configurations, first.pages) == (62, 31, 2)
        assert len(first.lines) == (PAGE if grouped else 2 * PAGE)
        second = page(memory, grouped=grouped, sort=sort, number=2)
        listed = [run_id for line in (*first.lines, *second.lines) for run_id in line.run_ids]
        assert sorted(listed) == list(range(1, 63)), (grouped, sort)
    assert page(memory, number=99) == page(memory, number=2)


def test_orders(finished: Filled) -> None:
    store = Store.open()
    ids = sorted((line.run or 0 for line in page(store, grouped=False).lines), reverse=True)
    assert [line.run for line in page(store, grouped=False).lines] == ids
    assert [line.run for line in page(store, grouped=False, sort="old").lines] == ids[::-1]
    for split in ("dev", "test"):
        scored = [mean(line, split, "ner") for line in page(store, sort=f"{split}-ner").lines]
        known = [score for score in scored if score is not None]
        assert known == sorted(known, reverse=True)
    store.add_runs([config(lambda_=0.5)])
    assert mean(page(store, sort="test-ner").lines[-1], "test", "ner") is None  # those without come last
    by_lambda = page(store, sort="lambda").lines
    strengths = [line.config.lambda_ or 9.0 for line in by_lambda]
    assert strengths == sorted(strengths)


def test_only_the_runs_shown_have_their_scores_read(
    finished: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open()
    read_ids: list[int] = []
    read = store.scores

    def noted(ids: Sequence[int], **more: Any) -> Any:
        read_ids.extend(ids)
        return read(ids, **more)

    monkeypatch.setattr(store, "scores", noted)
    page_of(store, store.runs()[:5], grouped=False, sort="dev-pos", page=1)
    assert sorted(read_ids) == sorted(run.id for run in store.runs(limit=5))


class TestDifferences:
    def test_seeds(self, finished: Filled) -> None:
        runs = [run for run in Store.open().runs_with_facts(finished.mrn) if run.config.lambda_ == 0.1]
        assert difference_sentence(runs) == "These 3 runs differ only in the seed."
        assert differences(runs).empty

    def test_a_column_a_configuration_with_every_field_that_the_sentence_names(self, memory: Store) -> None:
        """However many runs come before the one that differs."""
        exact, disjoint = config(alignment="exact"), config(alignment="disjoint")
        memory.add_runs([exact.with_(seed=seed) for seed in range(9)] + [disjoint.with_(seed=9)])
        runs = memory.runs_with_facts()[::-1]
        assert difference_sentence(runs) == (
            "These 10 runs are 2 configurations. They differ in alignment; the seeds are not the same."
        )
        frame = differences(runs)
        assert list(frame.columns) == ["MRN λ=0.001 · exact", "MRN λ=0.001 · disjoint"]
        assert list(frame.loc["Alignment"]) == ["exact", "≠ disjoint"]
        assert list(frame.loc["Seeds"]) == ["0, 1, 2, 3, 4, 5, 6, 7, 8", "≠ 9"]

    def test_numbers_that_stand_together_are_written_alike(self, memory: Store) -> None:
        memory.add_runs([config(**{"lambda": value}) for value in (0.001, 0.0003)])
        assert list(differences(memory.runs_with_facts()).loc["λ"]) == ["0.0003", "≠ 0.001"]
        (table,) = page(memory).tables
        assert list(columns_of(table, "test", ())["λ"].texts) == ["0.0003", "0.001"]

    def test_what_a_paradigm_lacks_is_no_other_difference(self, finished: Filled) -> None:
        store = Store.open()
        runs = store.runs_with_facts()
        mtl = next(run for run in runs if run.config.paradigm == "mtl" and run.config.seed == 1)
        weak, strong = store.runs_with_facts(finished.mrn[:2])[::-1]
        assert "They differ in paradigm; the seeds are the same." in difference_sentence([weak, mtl])
        assert differences([weak, mtl]).empty  # the names have the paradigm
        frame = differences([weak, strong, mtl])
        assert list(frame.loc["λ"]) == ["0.01", "≠ 0.1", "–"]

    def test_facts_of_the_training(self, memory: Store) -> None:
        ids = [claimed(memory, seed=1), claimed(memory, seed=1)]
        memory.set_facts(ids[0], run_facts(device="cpu", versions={"torch": "2.12.0"}))
        memory.set_facts(ids[1], run_facts(device="cuda:0", versions={"torch": "2.13.0"}))
        runs = memory.runs_with_facts(ids)[::-1]
        assert "the same description and the same seed." in difference_sentence(runs)
        frame = differences(runs)
        assert dict(zip(frame.index, map(tuple, frame.to_numpy()), strict=True)) == {
            "Device used": ("cpu, cuda:0",),
            "torch version": ("2.12.0, 2.13.0",),
        }

    @pytest.mark.parametrize("begun", [(1, 2), (1,), ()])
    def test_facts_are_compared_seed_by_seed(self, memory: Store, begun: Sequence[int]) -> None:
        """A draw of 5% has other words with each seed: that fewer seeds have begun is no difference."""
        words = {1: 400, 2: 410}

        def facts(seed: int, more: int = 0) -> RunFacts:
            (pos, ner) = run_facts().tasks
            return run_facts(tasks=(replace(pos, train_tokens=words[seed] + more), ner))

        first = [(claimed(memory, seed=seed), seed) for seed in words]
        second = [(claimed(memory, seed=seed, dropout=0.3), seed) for seed in words]
        for run_id, seed in (*first, *(of for of in second if of[1] in begun)):
            memory.set_facts(run_id, facts(seed))
        ids = [run_id for run_id, _ in (*first, *second)]
        assert list(differences(memory.runs_with_facts(ids)[::-1]).index) == ["Dropout"]
        memory.set_facts(second[0][0], facts(1, more=7))
        frame = differences(memory.runs_with_facts(ids)[::-1])
        ours, theirs = map(str, frame.loc["Training words, pos"])
        assert ours == "400, 410"
        assert str(theirs).startswith("≠ 407")

    def test_the_text(self, memory: Store) -> None:
        ids = [claimed(memory, seed=1), claimed(memory, seed=1)]
        for run_id, text in zip(ids, ("aaaaaaaa", "bbbbbbbb"), strict=True):
            memory.set_facts(run_id, run_facts(text_hash=text))
        runs = memory.runs_with_facts(ids)[::-1]
        same = "These 2 runs have the same description and the same seed."
        assert difference_sentence(runs) == f"{same} The text of the corpus is not the same."
        assert list(differences(runs).loc["Text"]) == ["aaaaaa, bbbbbb"]

    def test_the_text_by_an_earlier_version(self, memory: Store) -> None:
        reading = Reading("ud", {}, "", (ColumnReading("deprel", "labels"),))
        ids = [claimed(memory, seed=1), claimed(memory, seed=1)]
        for run_id, text in zip(ids, ("aaaaaaaa", "bbbbbbbb-2"), strict=True):
            memory.set_facts(run_id, run_facts(text_hash=text, readings=(reading,)))
        runs = memory.runs_with_facts(ids)[::-1]
        assert difference_sentence(runs).endswith("hashed it without deprel and features.")
        (texts,) = differences(runs).loc["Text"]
        assert texts == "aaaaaa, of an earlier version: without labels of deprel and of features, bbbbbb"


def scored(
    seed: int,
    score: float,
    *,
    paradigm: str = "mrn",
    lambda_: float | None = None,
    prior: str | None = None,
    **facts: Any,
) -> None:
    """A run that succeeded with these dev and test scores."""
    results = [split_result(split, score) for split in ("dev", "test")]
    fields = {name: value for name, value in (("lambda_", lambda_), ("prior", prior)) if value is not None}
    run = config(seed=seed, paradigm=paradigm, **fields)
    finished_run(Store.open(), run, run_facts(**facts), *results)


@pytest.mark.usefixtures("laboratory")
class TestSeeds:
    def test_a_seed_that_was_run_again_counts_once(self) -> None:
        """With the same seed twice there is one seed and no spread; the newest that succeeded counts."""
        scored(1, 0.5)
        scored(1, 0.7)
        claimed(Store.open(), RunState.FAILED)
        (line,) = page(Store.open()).lines
        assert (line.seeds, len(line.run_ids)) == (1, 3)
        for split in ("test", "dev"):
            score = line.scores[split, "pos"]
            assert (score.sd, score.n) == (None, 1)
            assert score.mean == pytest.approx(0.7)

    def test_seeds_on_other_text_or_in_another_precision_have_a_line_each(self) -> None:
        scored(1, 0.5, text_hash="a")
        scored(2, 0.6, text_hash="b", precision="bf16")
        scored(3, 0.7, text_hash="b")
        scored(4, 0.9, text_hash="b")
        waiting = Store.open().add_runs([config(seed=5)])
        (table,) = page(Store.open()).tables
        means = {
            line.name.partition(" · ")[2]: (
                round(line.scores["test", "pos"].mean, 4),
                line.scores["test", "pos"].n,
            )
            for line in table.lines
        }
        assert means == {"text b, fp32": (0.8, 2), "text b, bf16": (0.6, 1), "text a, fp32": (0.5, 1)}
        assert waiting[0] in table.lines[0].run_ids  # it is no line of its own

    def test_a_run_that_did_not_record_its_text_is_apart(self) -> None:
        """It may have seen either text."""
        scored(1, 0.5, text_hash="a")
        scored(2, 0.6, text_hash="b")
        scored(3, 0.8)
        names = [line.name.partition(" · ")[2] for line in page(Store.open()).lines]
        assert names == ["text not recorded", "text b", "text a"]

    def test_what_is_bold_is_compared_on_its_text(self) -> None:
        """The corpus changed between the two configurations: they stand in one table, and do not compare."""
        for seed, (mtl, mrn) in enumerate([(0.7, 0.9), (0.701, 0.902), (0.702, 0.903)]):
            scored(seed, mtl, text_hash="a", paradigm="mtl")
            scored(seed, mrn, text_hash="b")
        (table,) = page(Store.open()).tables
        assert [line.name for line in table.lines] == ["MRN λ=0.001 · text b", "MTL · text a"]
        assert table.best("test", "pos") == set()
        for seed in range(3):
            scored(seed, 0.8 + seed / 1000, text_hash="b", paradigm="mtl")
        (table,) = page(Store.open()).tables
        assert {table.lines[place].name for place in table.best("test", "pos")} == {"MRN λ=0.001 · text b"}

    def test_what_is_bold_is_higher_than_lines_on_other_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(views, "PAGE", 2)
        methods: list[dict[str, Any]] = [{"prior": name} for name in ("paper", "map", "relational")]
        for value, fields in zip((0.9, 0.7, 0.71, 0.8), [*methods, {"paradigm": "mtl"}], strict=True):
            for seed in range(3):
                scored(seed, value * (1 + seed / 500), **fields)
        best = []
        for number in (1, 2):
            (table,) = page(Store.open(), number=number).tables
            best.append([table.lines[place].config.prior for place in table.best("test", "pos")])
        assert best == [[], ["paper"]]
        monkeypatch.setattr(views, "MOST_TESTED", 3)
        (table,) = page(Store.open(), number=2).tables
        assert not table.best("test", "pos")  # too many to test on every look

    def test_of_a_method_the_candidate_that_dev_chose_is_bold(self) -> None:
        """Three λ are not compared with each other, which would leave each undecided beside the next best."""
        for value, fields in (
            (0.5, {"paradigm": "mtl"}),
            (0.7, {"lambda_": 0.1}),
            (0.701, {"lambda_": 0.2}),
            (0.6, {"lambda_": 0.3}),
        ):
            for seed in range(3):
                scored(seed, value * (1 + seed / 500), **fields)
        (table,) = page(Store.open()).tables
        assert [table.lines[place].config.lambda_ for place in table.best("test", "pos")] == [0.2]

    def test_a_failed_run_counts_in_no_mean(self) -> None:
        """Its scores were stored before it failed. Its own line has them."""
        scored(1, 0.5)
        store = Store.open()
        failed = claimed(store, seed=2)
        store.add_result(failed, split_result("test", 0.9))
        store.finish(failed, RunState.FAILED)
        (line,) = page(store).lines
        assert line.scores["test", "pos"].n == 1
        assert mean(line, "test", "pos") == pytest.approx(0.5)
        own = page(store, grouped=False).lines
        assert [mean(line, "test", "pos") for line in own] == pytest.approx([0.9, 0.5])
        scored(1, 0.6, paradigm="mtl")
        assert [mean(line, "test", "pos") for line in page(store, sort="test-pos").lines] == [0.6, 0.5]

    def test_the_filter_and_the_order_have_the_means_of_the_table(self) -> None:
        """A repeated seed, another text and a failed run: each line is found and placed by what it shows."""
        for seed in (1, 2):
            scored(seed, 0.4, text_hash="a")
            scored(seed, 0.6, text_hash="a", paradigm="mtl")
            scored(seed, 0.8, text_hash="b")
        scored(2, 0.7, text_hash="b")
        store = Store.open()
        failed = claimed(store, seed=3)
        store.set_facts(failed, run_facts(text_hash="b"))
        store.add_result(failed, split_result("test", 0.1))
        store.finish(failed, RunState.FAILED)
        shown = [(line.name, mean(line, "test", "pos")) for line in page(store, sort="test-pos").lines]
        expected = {"MRN λ=0.001 · text b": 0.75, "MTL · text a": 0.6, "MRN λ=0.001 · text a": 0.4}
        assert dict(shown) == pytest.approx(expected)
        assert [name for name, _ in shown] == list(expected)
        for bound in (30, 45, 65, 74.9, 75.1):
            wanted = parse_filter(f"pos>{bound}", store=store)
            found = [run for run in store.runs() if wanted.matches(run)]
            lines = page_of(store, found, grouped=True, sort="new", page=1).lines
            runs = sorted(run_id for line in lines for run_id in line.run_ids)
            above = [line for line in page(store).lines if 100 * (mean(line, "test", "pos") or 0) > bound]
            assert runs == sorted(run_id for line in above for run_id in line.run_ids)
