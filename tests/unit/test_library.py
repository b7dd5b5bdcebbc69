"""`import core` as a notebook uses it: trained for real, on the toy corpus and on the pages' own examples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import core
from core.corpora import load
from core.errors import ConfigError, CorpusError, MRNLabError, RunNotFound, StoreError, TrainingError
from core.events import Event
from core.metrics import StepMetrics
from core.recording.foreground import train_here
from core.store import RunState
from jobs.worker.reaper import reap
from tests.making import claimed, facts_of, finished, run_facts, split_result
from tests.making import config as run_config
from tests.trained import LEARNED, toy_config, train_runs
from tests.unit.conftest import error_of

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_import_brings_nothing_along_and_every_name_is_there() -> None:
    script = "import core, sys; print(sorted(name for name in sys.modules if name.startswith('core')))"
    script += "; print([name for name in ('pydantic', 'numpy', 'pandas', 'torch') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert printed.stdout.split("\n")[:2] == ["['core']", "[]"]
    for name in core.__all__:
        assert getattr(core, name) is not None
        assert name in dir(core)
    with pytest.raises(AttributeError, match="no attribute 'launch'"):
        core.launch  # type: ignore[attr-defined]  # noqa: B018


def test_a_description_has_all_tasks_unless_told() -> None:
    assert core.describe("demo").tasks == ("pos", "chunk", "ner")
    config = core.describe("demo", tasks="pos,ner", lambda_=0.5)
    assert (config.tasks, config.lambda_) == (("pos", "ner"), 0.5)


def _words(sentences: int) -> pd.DataFrame:
    tokens, tags = [["EU", "rejects", "lamb"], ["Bo", "ran"]], [["B-ORG", "O", "O"], ["B-PER", "O"]]
    half = sentences // 2
    return pd.DataFrame({"tokens": tokens * half, "ner_tags": tags * half, "id": range(2 * half)})


def test_data_of_a_notebook_are_described_and_trained_on(laboratory: Path) -> None:
    frames = {"train": _words(20), "dev": _words(4), "test": _words(4)}
    options: dict[str, Any] = {**LEARNED, "encoder": "bilstm", "paradigm": "stl", "device": "cpu"}
    config = core.describe(frames, **options)
    assert config.tasks == ("ner",)
    (folder,) = (laboratory / "uploads").iterdir()
    assert config.corpus == f"hub:{folder}"
    run = core.train(config, progress=False)
    assert run.scores().loc[("test", "ner"), "tokens"] == 10
    assert core.describe(frames, tasks="ner", paradigm="stl").corpus == config.corpus
    assert len(list((laboratory / "uploads").iterdir())) == 1
    assert facts_of(run.record).readings[0].revision


def test_data_may_be_a_dataset_dict_or_a_single_table(laboratory: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "more": datasets.ClassLabel(names=["x", "y"]),
        }
    )
    rows = {"text": ["it is so", "it is not"], "label": [1, 0], "more": [0, 1]}
    table = datasets.Dataset.from_dict(rows, features=features)
    given = datasets.DatasetDict(train=table, validation=table, test=table)
    config = core.describe(given, name="So it is", columns="text,label", paradigm="stl")
    corpus = load(config.corpus)
    assert (corpus.name, config.tasks) == ("So-it-is", ("So-it-is",))
    assert [sentence.labels["So-it-is"] for sentence in corpus.train] == [("yes",), ("no",)]
    assert len(corpus.dev) == 2

    frame = pd.DataFrame({"text": [f"text {n}" for n in range(40)], "label": pd.Categorical(["a", "b"] * 20)})
    single = load(core.describe(frame, paradigm="stl").corpus)
    assert (len(single.train), len(single.dev), len(single.test)) == (36, 0, 4)
    assert {sentence.tokens[1] for sentence in (*single.train, *single.test)} == set(map(str, range(40)))
    empty = load(core.describe(frame.assign(other=None), paradigm="stl").corpus)
    assert [task.name for task in empty.tasks] == [task.name for task in single.tasks]
    assert "other: left out: no row has a label of it." in empty.notes
    for wrong in (7, {"train": [1]}, {"a b": frame}, pd.DataFrame({"text": ["a", 1]})):
        with pytest.raises(CorpusError):
            core.describe(wrong)
    assert not list((laboratory / "uploads").glob(".*"))


def test_a_run_without_a_laboratory(laboratory: Path) -> None:
    run = core.train(toy_config(laboratory, paradigm="mrn", snapshots=3), progress=False)
    assert repr(run).startswith("<run 1: succeeded, mrn of pos, ner")
    scores = run.scores()
    assert list(scores.index) == [(split, task) for split in ("dev", "test") for task in ("ner", "pos")]
    assert scores.loc[("test", "pos"), "score_name"] == "accuracy"

    words = run.predictions("test")
    pos = words[words["task"] == "pos"]
    assert (pos["gold"] == pos["predicted"]).mean() == pytest.approx(scores.loc[("test", "pos"), "score"])
    assert len(pos) == scores.loc[("test", "pos"), "tokens"]
    assert set(pos[pos["word"] == "boycott"]["gold"]) == {"V"}
    report = run.report("test")
    assert report.loc[("pos", "V"), "support"] == (pos["gold"] == "V").sum()

    curves = run.metrics()
    assert curves[(curves["name"] == "loss") & (curves["task"] == "ner") & (curves["split"] == "train")][
        "step"
    ].is_unique
    best = curves[(curves["split"] == "dev") & (curves["name"] == "score") & (curves["task"] == "pos")]
    assert best["value"].max() >= scores.loc[("dev", "pos"), "score"]

    tagged = run.tag("German lamb rejects . EU call .", confidence=True)
    assert list(tagged.columns) == ["sentence", "word", "pos", "pos confidence", "ner", "ner confidence"]
    assert list(tagged["sentence"]) == [0, 0, 0, 0, 1, 1, 1]
    assert run.tag([["EU", "call"]])["word"].tolist() == ["EU", "call"]
    text = "\U0001f600  EU call .\r\n\r\nGerman \u05e9 lamb rejects EU ."
    of_text = run.spans(text)
    assert [*of_text.columns] == ["sentence", "task", "label", "text", "start", "end", "score"]
    assert set(of_text["task"]) == {"ner"}
    places = of_text[["start", "end"]].to_numpy().tolist()
    assert [text[start:end] for start, end in places] == of_text["text"].tolist()
    of_words = run.spans([["rejects", "EU"], ["EU"]])
    assert of_words[of_words["text"] == "EU"][["sentence", "start", "end"]].to_numpy().tolist() == [
        [0, 8, 10],
        [1, 0, 2],
    ]
    for texts in (["EU call .", "EU ."], ["EU", "call"]):
        for method in ("tag", "spans"):
            with pytest.raises(
                MRNLabError, match=f"{method}.. reads one text, or a list of sentences that are"
            ):
                getattr(run, method)(texts)
    _check_relations(run)

    test = laboratory / "toy" / "test.conll"
    test.write_text(test.read_text().replace("German", "lamb"))
    with pytest.raises(CorpusError, match="has changed"):
        run.predictions("test")
    assert not (laboratory / "runs.db").exists()
    assert not (laboratory / "checkpoints").exists()
    folder = Path(run.record.checkpoint or "").parent
    assert folder.is_dir()
    del run
    assert not folder.exists()


def _check_relations(run: core.StoredRun) -> None:
    steps = run.snapshots()
    assert len(steps) == 3
    assert list(run.relations().columns) == ["pos", "ner"]
    labels = run.relations("label")
    assert labels.index.equals(labels.columns)
    assert {"pos:V", "ner:B-ORG"} <= set(labels.index)
    assert np.allclose(np.diag(labels), 1)
    covariance = run.relations("feature", step=steps[0], covariance=True)
    assert covariance.shape == (16, 16)
    deviations = np.sqrt(np.diag(covariance))
    correlation = run.relations("feature", step=steps[0])
    assert np.allclose(covariance / np.outer(deviations, deviations), correlation, atol=1e-3)
    heatmap = checked(run.plot_relations("label"))
    assert np.allclose(heatmap.data[0]["z"], labels, atol=1e-6)
    assert list(heatmap.data[0]["x"]) == list(labels.columns)
    lines = checked(run.plot_curves("loss"))
    assert {line["name"].partition(", ")[2] for line in lines.data} == {"pos", "ner", ""}
    with pytest.raises(MRNLabError, match="has no metric 'nothing'"):
        run.plot_curves("nothing")


def checked(figure: go.Figure) -> go.Figure:
    """The figure, its properties and values checked by Plotly."""
    go.Figure(json.loads(figure.to_json()))
    return figure


def test_differences_are_a_forest_with_the_verdicts_of_compare(laboratory: Path) -> None:
    lab = core.Laboratory()
    ids = scored_runs(lab)
    figure = checked(lab.plot_differences(ids, baseline=ids[0]))
    pos, ner = figure.data
    assert (pos["name"], ner["name"]) == ("pos", "ner")
    assert pos["x"] == pytest.approx((3.1667,), abs=1e-3)
    assert pos["marker"]["symbol"] == ("circle",)
    assert "higher, +3.17" in pos["text"][0]
    assert list(figure.layout["yaxis"]["ticktext"]) == ["MRN λ=0.001"]
    assert "over MTL" in figure.layout["xaxis"]["title"]["text"]


def scored_runs(lab: core.Laboratory, *, seeds: Sequence[int] = (0, 1, 2), text: str = "a") -> list[int]:
    """Finished runs of MTL, and of MRN 3.17 points above it, on that text."""
    return [
        finished(
            lab.store,
            run_config(paradigm=paradigm, seed=seed),
            run_facts(text_hash=text),
            split_result("test", scores[place]),
            split_result("dev", scores[place]),
        )
        for paradigm, scores in (("mtl", (0.80, 0.81, 0.82)), ("mrn", (0.83, 0.84, 0.855)))
        for place, seed in enumerate(seeds)
    ]


def test_differences_are_of_successful_runs_on_the_text_of_the_baseline(laboratory: Path) -> None:
    lab = core.Laboratory()
    ids = scored_runs(lab)
    expected = lab.plot_differences(ids, baseline=ids[0])
    other_text = finished(
        lab.store, run_config(lambda_=0.5), run_facts(text_hash="b"), split_result("test", 0.99)
    )
    failed = claimed(lab.store, paradigm="mrn", seed=1)
    lab.store.set_facts(failed, run_facts(text_hash="a"))
    lab.store.add_result(failed, split_result("test", 0.99))
    lab.store.finish(failed, RunState.FAILED)
    with pytest.warns(
        UserWarning, match=f"Run {other_text} is on other data. Run {failed} is failed."
    ) as shown:
        figure = lab.plot_differences([*ids, other_text, failed], baseline=ids[0])
    assert len(shown) == 1
    assert figure.to_json() == expected.to_json()
    with pytest.raises(core.MRNLabError, match=f"Run {failed} is failed"):
        lab.plot_differences(ids, baseline=failed)
    with pytest.raises(core.MRNLabError, match=f"Run {ids[3]} is on other data"):
        lab.plot_differences([ids[3]], baseline=other_text)


def test_a_repeated_seed_is_no_further_sample_of_a_series(laboratory: Path) -> None:
    """A failed run of a seed counts in no mean, whatever it has scored; the newest successful one does."""
    lab = core.Laboratory()
    for value, score in ((0.1, 0.8), (0.001, 0.7)):
        finished(lab.store, run_config(lambda_=value), run_facts(text_hash="a"), split_result("test", score))
    failed = claimed(lab.store, lambda_=0.1)
    lab.store.set_facts(failed, run_facts(text_hash="a"))
    lab.store.add_result(failed, split_result("test", 0.2))
    lab.store.finish(failed, RunState.FAILED)
    (mean,) = lab.plot_against("lambda", [1, 2, failed]).data
    assert mean["y"] == pytest.approx((52.5, 60))


def test_scores_are_drawn_against_a_number(laboratory: Path) -> None:
    lab = core.Laboratory()
    for value, score in ((0.1, 0.8), (0.001, 0.7)):
        run_id = claimed(lab.store, lambda_=value)
        lab.store.add_result(run_id, split_result("test", score))
        lab.store.finish(run_id, RunState.SUCCEEDED)
    for name in ("lambda", "lambda_"):
        (mean,) = checked(lab.plot_against(name)).data
        assert (mean["x"], mean["y"]) == ((0.001, 0.1), pytest.approx((52.5, 60)))
    assert len(lab.plot_against("lambda", of_tasks=True).data) == 2
    with pytest.raises(core.MRNLabError, match="differ in epochs alone"):
        lab.plot_against("epochs")


def test_differences_from_a_baseline_are_drawn_against_a_number(laboratory: Path) -> None:
    lab = core.Laboratory()
    for seed in (1, 2):
        for fields, score in (({"paradigm": "mtl"}, 0.7), ({"lambda_": 0.1}, 0.8), ({"lambda_": 0.01}, 0.75)):
            run = run_config(**fields, seed=seed)
            finished(lab.store, run, run_facts(), split_result("test", score + seed / 10))
    (mean,) = checked(lab.plot_against("lambda", baseline="MTL")).data
    of_mtl = lab.scores().query("split == 'test'")["score"].groupby("run").mean()
    expected = [100 * (of_mtl[[run, run + 3]].mean() - of_mtl[[1, 4]].mean()) for run in (3, 2)]
    assert (mean["x"], mean["y"]) == ((0.01, 0.1), pytest.approx(expected))
    with pytest.raises(core.MRNLabError, match=r"named GPT; there is MTL, λ 0\.01 and λ 0\.1\."):
        lab.plot_against("lambda", baseline="GPT")


def test_scores_on_other_text_are_not_drawn_in_one_line(laboratory: Path) -> None:
    lab = core.Laboratory()
    for value, score, text in ((0.1, 0.8, "a"), (0.001, 0.7, "a"), (0.01, 0.9, "b")):
        finished(lab.store, run_config(lambda_=value), run_facts(text_hash=text), split_result("test", score))
    (mean,) = checked(lab.plot_against("lambda")).data
    assert mean["x"] == (0.001, 0.1)
    with pytest.raises(core.MRNLabError, match="differ in lambda alone"):
        lab.plot_against("lambda", [1, 3])


def test_a_run_in_a_laboratory_is_like_a_workers(
    laboratory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = core.Laboratory()
    assert lab.runs().empty
    assert {"state", "paradigm", "seed", "lambda"} <= set(lab.runs().columns)
    config = toy_config(laboratory, paradigm="mrn", device="cpu")
    ours = core.train(config, lab=lab)
    assert "dev score" in capsys.readouterr().err
    (theirs,) = train_runs(lab.store, [config])

    assert ours.scores().equals(lab.run(theirs).scores())
    assert np.array_equal(ours.relations("label"), lab.run(theirs).relations("label"))
    metrics = [lab.run(number).metrics().drop(columns="seconds") for number in (ours.id, theirs)]
    assert metrics[0].equals(metrics[1])
    our_run, their_run = (lab.store.run(number) for number in (ours.id, theirs))
    assert our_run.checkpoint == str(laboratory / "checkpoints" / "1")
    assert sorted(path.name for path in (laboratory / "checkpoints").iterdir()) == ["1", "2"]
    for name in ("state", "step", "epoch", "best_epoch"):
        assert getattr(our_run, name) == getattr(their_run, name)
    assert ours.tag("EU rejects lamb .").equals(lab.run(theirs).tag("EU rejects lamb ."))

    runs = lab.runs()
    assert list(runs.index) == [2, 1]
    assert runs.loc[1, "tasks"] == "pos,ner"
    assert runs.loc[1, "dev_score"] == pytest.approx(ours.scores().loc[["dev"], "score"].mean())
    assert set(lab.metrics([1, 2])["run"]) == {1, 2}
    assert len(lab.scores([1])) * 2 == len(lab.scores())


def test_a_run_can_be_stopped_from_outside_and_is_not_taken_for_lost(laboratory: Path) -> None:
    lab = core.Laboratory()

    def watch(event: Event) -> None:
        if isinstance(event, StepMetrics) and lab.store.state(1) is RunState.RUNNING:
            assert reap(lab.store) == []
            lab.store.request_stop(1)

    with pytest.raises(TrainingError, match="mrnlab resume 1"):
        train_here(lab.store, toy_config(laboratory, epochs=1000), watch)
    assert lab.store.state(1) is RunState.CANCELLED
    assert lab.store.run(1).saved_step is not None
    assert repr(lab.run(1)).startswith("<run 1: stopped")


@pytest.mark.parametrize(
    ("error", "state"), [(KeyboardInterrupt(), RunState.CANCELLED), (ValueError("odd"), RunState.FAILED)]
)
def test_a_run_that_is_interrupted_is_not_left_running(
    laboratory: Path, error: BaseException, state: RunState
) -> None:
    lab = core.Laboratory()

    def watch(event: Event) -> None:
        if isinstance(event, StepMetrics):
            raise error

    with pytest.raises(type(error)):
        train_here(lab.store, toy_config(laboratory), watch)
    assert lab.store.state(1) is state
    if state is RunState.FAILED:
        unexpected = "Training stopped with an unexpected error: ValueError: odd"
        assert error_of(lab.store, 1).message == unexpected


def test_a_paused_queue_holds_it_back_and_nothing_is_left(laboratory: Path) -> None:
    lab = core.Laboratory()
    lab.store.pause_queue()
    with pytest.raises(TrainingError, match="mrnlab queue resume"):
        core.train(toy_config(laboratory), lab=lab)
    with pytest.raises(CorpusError):
        core.train(toy_config(laboratory).with_(corpus=str(laboratory / "nowhere")), lab=lab)
    assert lab.runs().empty


def test_bad_input_is_told_in_one_sentence(laboratory: Path) -> None:
    with pytest.raises(ConfigError, match="paradigm"):
        core.describe("demo", paradigm="mrm")
    with pytest.raises(CorpusError, match="nowhere"):
        core.describe("nowhere")
    with pytest.raises(ConfigError, match="describe"):
        core.train("demo")  # type: ignore[arg-type]
    lab = core.Laboratory()
    with pytest.raises(RunNotFound):
        lab.run(7)
    with pytest.raises(StoreError, match="database URL"):
        core.Laboratory("nothing")
    run = core.train(toy_config(laboratory, epochs=1), lab=lab, progress=False)
    wrong_calls: tuple[Callable[[], object], ...] = (
        lambda: run.relations(),  # MTL has none
        lambda: run.relations("tasks"),
        lambda: run.predictions("train"),
        lambda: run.report("train"),
    )
    for wrong in wrong_calls:
        with pytest.raises(core.MRNLabError):
            wrong()
    (queued,) = lab.store.add_runs([run.config])
    with pytest.raises(core.MRNLabError, match="queued"):
        lab.run(queued).tag("EU .")
    assert lab.run(queued).scores().empty
    assert lab.run(queued).metrics().empty


def _page() -> str:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "library.md").read_text(encoding="utf-8"), re.M | re.S
    )
    return "\n".join(blocks)


def _notebook() -> str:
    cells = json.loads((DOCS / "library.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    return "\n".join("".join(cell["source"]) for cell in code)


@pytest.mark.parametrize("program", [_page, _notebook])
def test_the_page_and_the_notebook_run_as_they_stand(
    program: Callable[[], str], laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On less text and fewer seeds."""
    monkeypatch.chdir(laboratory)
    code = program()
    assert code.count("core.train(") >= 2
    code = code.replace('"demo"', '"demo?train=90"').replace("[1, 2, 3]", "[1, 2]")
    code = re.sub(r'"(demo\?train=\d+)"', r'"\1&dev=10&test=10"', code)
    exec(compile(code, "library", "exec"), {"__name__": "notebook"})
