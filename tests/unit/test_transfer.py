"""A run leaves a laboratory as a folder that stands alone, and is the same run in another."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import ModelCard
from safetensors.numpy import load_file
from transformers import AutoModelForTokenClassification

from core.errors import MRNLabError, RunNotFound
from core.paths import checkpoint_dir
from core.store import RunState, Store
from core.tagging import TaggedSentence, load_tagger
from jobs.transfer import Exported, export_run, import_run
from tests.contracts.test_transfer import assert_same
from tests.making import OWNER, claimed
from tests.trained import toy_config, train_runs

_SENTENCE = ["German", "lamb", "rejects", "EU", "."]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """A laboratory with runs of three kinds: MRN, over a frozen encoder, with a BiLSTM."""
    home = tmp_path_factory.mktemp("from")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        patch.delenv("MRNLAB_DB", raising=False)
        few = {"epochs": 2, "seed": 3}
        encoder = str(home / "encoder")
        configs = [
            toy_config(home, paradigm="mrn", alignment="cooccurrence", snapshots=3, update_every=4, **few),
            toy_config(home, encoder_training="frozen", lr_encoder=None, **few),
            toy_config(home, encoder=f"{encoder}+bilstm", bilstm_hidden=4, **few),
        ]
        store = Store.open()
        ids = train_runs(store, configs)
        store.add_tags([ids[0]], ["paper"])
        store.close()
    return home, dict(zip(("mrn", "frozen", "bilstm"), ids, strict=True))


@pytest.fixture
def source(trained: tuple[Path, dict[str, int]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store of that laboratory."""
    store = Store.open(f"sqlite:///{trained[0] / 'runs.db'}")
    yield store
    store.close()


@pytest.fixture
def target(laboratory: Path) -> Iterator[Store]:
    """The store of another, empty one: this test's."""
    store = Store.open()
    yield store
    store.close()


@pytest.fixture(scope="module")
def exported(trained: tuple[Path, dict[str, int]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The MRN run's export; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("exports") / "mrn"
    export(trained, "mrn", folder)
    return folder


def export(trained: tuple[Path, dict[str, int]], kind: str, folder: Path, **options: Any) -> Exported:
    """Exports that laboratory's run, in that laboratory."""
    home, ids = trained
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open()) as store:
            return export_run(store, ids[kind], folder, **options)


def tagged(checkpoint: str | Path | None) -> list[TaggedSentence]:
    assert checkpoint is not None
    return load_tagger(checkpoint).tag([_SENTENCE])


@pytest.mark.parametrize("kind", ["mrn", "frozen", "bilstm"])
def test_there_and_back(
    kind: str, trained: tuple[Path, dict[str, int]], source: Store, target: Store, tmp_path: Path
) -> None:
    run_id = trained[1][kind]
    made = export(trained, kind, tmp_path / "out")
    # The encoder's folder goes: what was exported stands alone.
    aside = (trained[0] / "encoder").rename(trained[0] / "away")
    try:
        taken = import_run(target, tmp_path / "out")
        assert not taken.was_there
        run = target.run(taken.run_id)
        assert tagged(run.checkpoint) == tagged(made.folder / "checkpoint")
    finally:
        aside.rename(trained[0] / "encoder")
    assert tagged(run.checkpoint) == tagged(source.run(run_id).checkpoint)
    assert run.checkpoint == str(checkpoint_dir(taken.run_id))
    left, right = source.record(run_id), target.record(taken.run_id)
    assert set(right.run.tags) == {*left.run.tags, "imported"}
    target.remove_tags([taken.run_id], ["imported"])
    assert_same(left, target.record(taken.run_id))
    assert left.run.configuration_id == right.run.configuration_id
    assert right.history[-1].message.startswith(f"Imported from {tmp_path / 'out'}")
    own = Path(str(source.run(run_id).checkpoint)) / "weights.safetensors"
    assert (checkpoint_dir(taken.run_id) / "weights.safetensors").read_bytes() == own.read_bytes()
    # Nothing else stayed behind in the laboratory.
    assert [path.name for path in checkpoint_dir(1).parent.iterdir()] == [str(taken.run_id)]


def test_a_packaged_encoder_does_not_travel_twice(
    trained: tuple[Path, dict[str, int]], target: Store, tmp_path: Path
) -> None:
    """Every installation has it. The Transformers folder has it all the same, for those without ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(trained[0]))
        frozen = {"encoder": "minilm", "encoder_training": "frozen", "lr_encoder": None, "max_length": 128}
        with contextlib.closing(Store.open()) as store:
            (run_id,) = train_runs(store, [toy_config(trained[0], epochs=1, **frozen)], "packaged")
            made = export_run(store, run_id, tmp_path / "out", ["ner"])
            own = tagged(checkpoint_dir(run_id))
    assert not (made.folder / "checkpoint" / "encoder").exists()
    assert (made.folder / "ner" / "model.safetensors").stat().st_size > 80e6
    assert tagged(target.run(import_run(target, made.folder).run_id).checkpoint) == own


def test_what_an_export_holds(exported: Path, source: Store, trained: tuple[Path, dict[str, int]]) -> None:
    run_id = trained[1]["mrn"]
    files = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
    assert {name for name in files if "/" not in name} == {
        "README.md", "manifest.json", "run.json", "metrics.parquet", "scores.parquet",
        "predictions.parquet", "snapshots.parquet", "relations.safetensors",
    }  # fmt: skip
    assert {name.split("/")[0] for name in files if "/" in name} == {"checkpoint", "pos", "ner"}
    assert {Path(name).suffix for name in files} <= {".json", ".txt", ".md", ".parquet", ".safetensors"}
    listed = json.loads((exported / "manifest.json").read_text())["files"]
    assert set(listed) == files - {"manifest.json"}
    for name, told in listed.items():
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == told["sha256"]
    for task in ("pos", "ner"):
        model = AutoModelForTokenClassification.from_pretrained(exported / task)
        facts = {one["name"]: one["labels"] for one in source.run(run_id).facts["tasks"]}
        assert list(model.config.id2label.values()) == facts[task]


def test_tables_are_read_by_pandas(
    exported: Path, source: Store, trained: tuple[Path, dict[str, int]]
) -> None:
    run_id = trained[1]["mrn"]
    scores = pd.read_parquet(exported / "scores.parquet")
    stored = {(score.split, score.task): score.score for score in source.scores([run_id])}
    assert {(row.split, row.task): row.score for row in scores.itertuples()} == stored
    labels = pd.read_parquet(exported / "predictions.parquet")
    gold, predicted = source.predictions(run_id, "test")["ner"]
    test = labels[(labels["split"] == "test") & (labels["task"] == "ner")]
    assert [list(row) for row in test["gold"]] == gold
    assert [list(row) for row in test["predicted"]] == predicted
    relations = load_file(exported / "relations.safetensors")
    _, last = source.relations(run_id)
    assert (relations["task"] == last.task).all()
    assert (relations["feature_factor"] == last.feature_factor).all()


def test_no_word_of_the_corpus_is_exported(exported: Path, trained: tuple[Path, dict[str, int]]) -> None:
    """Corpora have licences of their own. (What the tokenizer knows is the encoder's.)"""
    for name in ("run.json", "predictions.parquet", "scores.parquet", "checkpoint/run.json"):
        content = (exported / name).read_bytes()
        if name.endswith(".parquet"):
            content = str(pd.read_parquet(exported / name).to_dict()).encode()
        for word in (b"rejects", b"boycott", b"British"):
            assert word not in content, name


def test_the_card(exported: Path, source: Store, trained: tuple[Path, dict[str, int]]) -> None:
    card = ModelCard.load(exported / "README.md")
    told = card.data.to_dict()
    assert told["pipeline_tag"] == "token-classification"
    assert "mrn" in told["tags"]
    results = {result.task_name: result for result in card.data.eval_results}
    scores = {score.task: score for score in source.scores([trained[1]["mrn"]], "test")}
    assert {task: result.metric_value for task, result in results.items()} == {
        task: round(score.score, 6) for task, score in scores.items()
    }
    assert {task: result.metric_type for task, result in results.items()} == {"pos": "accuracy", "ner": "f1"}
    assert f"{100 * scores['ner'].score:.2f}%" in card.text
    for words in ("n = 1", "chosen by them", "long2017learning", "No licence is claimed", "first subword"):
        assert words in card.text
    # No path of this machine is told.
    assert str(trained[0]) not in card.content


def test_the_example_of_the_card_runs(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = (exported / "README.md").read_text().split("```python\n")[1:]
    monkeypatch.chdir(exported)
    assert len(examples) == 2
    for example in examples:
        exec(example.split("```")[0], {})


def test_some_tasks(source: Store, trained: tuple[Path, dict[str, int]], tmp_path: Path) -> None:
    made = export(trained, "mrn", tmp_path / "out", tasks=["ner"])
    assert made.folders == {"ner": "ner"}
    assert not (tmp_path / "out" / "pos").exists()
    with pytest.raises(MRNLabError, match="no task 'chunk'; it has pos, ner"):
        export(trained, "mrn", tmp_path / "other", tasks=["chunk"])
    assert not (tmp_path / "other").exists()


def test_a_bilstm_says_so(source: Store, trained: tuple[Path, dict[str, int]], tmp_path: Path) -> None:
    made = export(trained, "bilstm", tmp_path / "out")
    assert made.folders == {}
    assert made.no_folders_because is not None
    assert made.no_folders_because in (tmp_path / "out" / "README.md").read_text()
    assert not (tmp_path / "out" / "ner").exists()
    assert not (tmp_path / "out" / "relations.safetensors").exists()  # MTL learns none


def test_only_runs_that_succeeded(source: Store, target: Store, tmp_path: Path) -> None:
    for state in (RunState.RUNNING, RunState.FAILED, RunState.LOST):
        run_id = claimed(target, state)
        with pytest.raises(MRNLabError, match=f"Run {run_id} is {state}; only a run that has succeeded"):
            export_run(target, run_id, tmp_path / "out")
    gone = claimed(target)
    target.finish(gone, RunState.SUCCEEDED, checkpoint=str(tmp_path / "nowhere"), owner=OWNER)
    with pytest.raises(MRNLabError, match="not there any more"):
        export_run(target, gone, tmp_path / "out")
    with pytest.raises(RunNotFound):
        export_run(target, 99, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_kept(source: Store, trained: tuple[Path, dict[str, int]], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    made = export(trained, "frozen", mine)  # an empty folder is as good as none
    assert made.folder == mine
    with pytest.raises(MRNLabError, match="not empty"):
        export(trained, "frozen", mine)
    (mine / "old.txt").write_text("of the export before")
    export(trained, "frozen", mine, force=True)
    assert not (mine / "old.txt").exists()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(MRNLabError, match="does not replace"):
        export(trained, "frozen", precious, force=True)
    with pytest.raises(MRNLabError, match="is a file"):
        export(trained, "frozen", precious / "thesis.tex", force=True)
    assert (precious / "thesis.tex").read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "laboratory",
        "mine",
        "precious",
    ]


def test_the_same_export_twice(exported: Path, source: Store, target: Store, trained: Any) -> None:
    first = import_run(target, exported)
    assert import_run(target, exported) == type(first)(first.run_id, True)
    assert len(target.runs()) == 1
    another = import_run(target, exported, again=True)
    assert not another.was_there
    assert another.run_id != first.run_id
    # The laboratory that it came from knows it too.
    assert import_run(source, exported) == type(first)(trained[1]["mrn"], True)


def test_an_imported_run_can_be_exported_again(exported: Path, target: Store, tmp_path: Path) -> None:
    taken = import_run(target, exported)
    export_run(target, taken.run_id, tmp_path / "again")
    for name in ("metrics.parquet", "predictions.parquet", "snapshots.parquet", "pos/model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (exported / name).read_bytes()


# What a stranger's folder may be. Each changes a copy of a good one.

Spoil = Callable[[Path], object]


def _list(folder: Path, name: str, size: int, digest: str = "0" * 64) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"size": size, "sha256": digest}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _write(folder: Path, name: str, content: bytes) -> None:
    """Writes a file and says so in the list, as someone would who means it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    _list(folder, name, len(content), hashlib.sha256(content).hexdigest())


def _written(name: str, content: bytes) -> Spoil:
    return lambda folder: _write(folder, name, content)


def _edited(name: str, change: Callable[[dict[str, Any]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        _write(folder, name, json.dumps(content).encode())

    return spoil


def _run(**values: Any) -> Spoil:
    return _edited("run.json", lambda run: run.update(values))


def _fact(**values: Any) -> Spoil:
    return _edited("run.json", lambda run: run["facts"].update(values))


def _task_fact(**values: Any) -> Spoil:
    return _edited("run.json", lambda run: run["facts"]["tasks"][0].update(values))


def _event(**values: Any) -> Spoil:
    return _edited("run.json", lambda run: run["history"][0].update(values))


def _table(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Spoil:
    def spoil(folder: Path) -> None:
        frame = change(pd.read_parquet(folder / name))
        table = pa.Table.from_pandas(frame, schema=pq.read_schema(folder / name), preserve_index=False)
        pq.write_table(table.replace_schema_metadata(None), folder / "made.parquet")
        _write(folder, name, (folder / "made.parquet").read_bytes())

    return spoil


def _column(name: str, **values: Any) -> Spoil:
    return _table(name, lambda frame: frame.assign(**values))


def _not_a_number(name: str, column: str) -> Spoil:
    def spoil(folder: Path) -> None:
        table = pq.read_table(folder / name)
        numbers = pa.array([float("nan")] * len(table), type=pa.float64(), from_pandas=False)
        table = table.set_column(table.schema.get_field_index(column), column, numbers)
        pq.write_table(table, folder / "made.parquet")
        _write(folder, name, (folder / "made.parquet").read_bytes())

    return spoil


def _flipped(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)

    return spoil


def _other_columns(folder: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(folder / "made.parquet")
    _write(folder, "scores.parquet", (folder / "made.parquet").read_bytes())


def _link(folder: Path) -> None:
    (folder / "checkpoint" / "more.json").symlink_to(folder / "run.json")
    _list(folder, "checkpoint/more.json", 2)


def _linked_folder(folder: Path) -> None:
    (folder / "pos").rename(folder.parent / "aside")
    (folder / "pos").symlink_to(folder.parent / "aside")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pos" / "more.json")
    _list(folder, "pos/more.json", 0)


def _pipe_instead(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")


def _grown(name: str, size: int) -> Spoil:
    def spoil(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.truncate(size)  # a sparse file takes no room
        _list(folder, name, size)

    return spoil


def _other_encoder(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    files = manifest["files"].items()
    manifest["files"] = {name: file for name, file in files if "checkpoint/encoder/" not in name}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    _edited("checkpoint/run.json", lambda run: run["config"].update(encoder="someone/else"))(folder)


_CONFIG = "checkpoint/encoder/config.json"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "not an export"),
        (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), "is not one of an export"),
        (lambda folder: (folder / "manifest.json").write_text('{"icons": []}'), "is not one of an export"),
        (_flipped("checkpoint/weights.safetensors"), "weights.safetensors is not as it was exported"),
        (_flipped("pos/model.safetensors"), "pos/model.safetensors is not as it was exported"),
        (lambda folder: (folder / "metrics.parquet").write_bytes(b"PAR1"), "metrics.parquet has 4 bytes"),
        (lambda folder: (folder / "scores.parquet").unlink(), "scores.parquet is missing"),
        (lambda folder: _list(folder, "checkpoint/../../outside.json", 2), "leads out of the folder"),
        (lambda folder: _list(folder, "/etc/hostname", 2), "leads out of the folder"),
        (_link, "is a link"),
        (_linked_folder, "pos is a link"),
        (_pipe, "no plain file"),
        (_pipe_instead, "manifest.json is no plain file"),
        (_written("checkpoint/pytorch_model.bin", b"\x80\x04."), "may be a pickle"),
        (lambda folder: (folder / "pos" / "pytorch_model.bin").write_bytes(b"\x80\x04."), "may be a pickle"),
        (_written("checkpoint/encoder/modeling.py", b"print()"), "a kind of file that no export holds"),
        (_grown("run.json", 300 * 1024**2), "more than such a file"),
        (_grown("pos/model.safetensors", 900 * 1024**3), "are free"),
        (_edited(_CONFIG, lambda config: config.update(auto_map={"AutoModel": "x.Y"})), "Python code of its"),
        (_edited(_CONFIG, lambda config: config.update(num_attention_heads=0)), "cannot be loaded"),
        (_other_encoder, "lacks the encoder someone/else"),
        (_edited("checkpoint/run.json", lambda run: run["tasks"][0]["labels"].reverse()), "other tasks or"),
        (_run(format=2), "a newer MRN Lab made it"),
        (_edited("run.json", lambda run: run["config"].update(epochs=-3)), "epochs"),
        (_run(note="a\0b"), "the character 0"),
        (_run(started_at="yesterday"), "started_at"),
        (_run(created_at="0001-01-01T00:00:00+23:59"), "created_at: .* 2000 and 2099"),
        (_run(started_at="2000-01-02T00:00:00Z"), "started before it was made"),
        (_run(finished_at="2000-01-02T00:00:00Z"), "ended before it was started"),
        (_run(step=10**6), "step 1000000 is more than"),
        (_run(best_epoch=900), "best_epoch 900 is more than 2"),
        (_run(epoch=1e300), "epoch 1e\\+300 is more than 2"),
        (_run(tags=["x"] * 2000), "tags"),
        (_event(kind="exploded"), "exploded"),
        (_event(time="0001-01-01T00:00:00+23:59"), r"history\.0\.time: .* 2000 and 2099"),
        (_fact(tasks="all of them"), "tasks"),
        (_fact(total_steps=-1), "below zero"),
        (_fact(total_steps=10**400), "no number of a run"),
        (_fact(total_steps="12"), "total_steps"),
        (_fact(notes=["x" * 200_000]), "200,000 characters"),
        (_fact(cooccurrence=[[0.5, 0.5]]), "no square table"),
        (_fact(label_owners=[["pos"]]), "not an owner for each"),
        (_task_fact(name="chunk"), "facts are of the tasks"),
        (_task_fact(train_tokens=-5), "below zero"),
        (_written("metrics.parquet", b"PAR1 but not really PAR1"), "cannot be read"),
        (_table("metrics.parquet", lambda frame: frame.iloc[::-1]), "not in order"),
        (_column("metrics.parquet", seconds=-1.0), "seconds of a metric"),
        (_not_a_number("metrics.parquet", "epoch"), "epoch of a metric"),
        (_other_columns, "columns"),
        (_column("scores.parquet", split="all"), r"0\.split: "),
        (_column("scores.parquet", task=201 * "x"), r"0\.task: "),
        (_column("scores.parquet", tokens=2**40), r"0\.tokens: "),
        (_column("scores.parquet", accuracy=1.5), r"0\.accuracy: "),
        (_column("scores.parquet", f1_conll=float("inf")), r"0\.f1_conll: "),
        (_not_a_number("scores.parquet", "score"), r"0\.score: "),
        (_column("scores.parquet", report='{"NN": {"f1": NaN}}'), "scores.parquet is not"),
        (_column("scores.parquet", report="[1]"), "it: Input should be"),
        (_column("scores.parquet", epoch=99), "after the last"),
        (_column("scores.parquet", task="chunk"), "two scores|has not"),
        (_table("scores.parquet", lambda frame: pd.concat([frame, frame])), "two scores on one split"),
        (_column("predictions.parquet", gold=lambda frame: [[None] * len(row) for row in frame["gold"]]),
         r"0\.gold\.0: "),
        (_column("predictions.parquet", gold=lambda frame: [["O"]] * len(frame)),
         "a predicted label for each"),
        (_column("snapshots.parquet", step=-1), "snapshots.parquet is not"),
        (_column("snapshots.parquet", epoch=float("inf")), "snapshots.parquet is not"),
        (_column("snapshots.parquet", features=2**30), "covariances"),
        (_table("snapshots.parquet", lambda frame: pd.concat([frame, frame])), "not in order"),
    ],
)  # fmt: skip
def test_a_folder_that_is_none_is_refused(
    spoil: Spoil, message: str, exported: Path, target: Store, tmp_path: Path, laboratory: Path
) -> None:
    folder = shutil.copytree(exported, tmp_path / "given" / "export")
    spoil(folder)
    with pytest.raises(MRNLabError, match=message) as refused:
        import_run(target, folder)
    assert "\n" not in str(refused.value).strip()
    assert target.runs() == []
    checkpoints = laboratory / "checkpoints"
    assert not checkpoints.exists() or list(checkpoints.iterdir()) == []


def test_nothing_is_half_imported(exported: Path, target: Store, laboratory: Path) -> None:
    """A folder that is in the way makes the whole import undone, and stays."""
    place = laboratory / "checkpoints" / "1"
    place.mkdir(parents=True)
    (place / "precious").write_text("of whom?")
    with pytest.raises(MRNLabError, match="there already"):
        import_run(target, exported)
    assert target.runs() == []
    assert [path.name for path in place.parent.iterdir()] == ["1"]
    assert (place / "precious").read_text() == "of whom?"
    shutil.rmtree(place)
    assert tagged(target.run(import_run(target, exported).run_id).checkpoint)
