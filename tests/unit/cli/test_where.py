"""mrnlab compare --where and lab.where: the planted bucket, kinds of errors, formats, and what is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import core
from core.config import RunConfig
from core.errors import ConfigError, MRNLabError
from core.results.where import WHERE_COLUMNS
from core.tasks.span_errors import ERROR_KINDS, SCHEMES, span_errors
from core.tasks.spans import numbered
from tests.making import corpus_folder
from tests.unit.cli.conftest import Laboratory
from tests.where_store import SEEDS, fill

DEMO = {"corpus": "demo?train=200", "tasks": "pos,ner", "paradigm": "mtl"}


@pytest.fixture
def gained(lab: Laboratory) -> list[int]:
    """MTL and MRN, five seeds; MRN is right more often with unseen words."""
    return fill(lab.store, RunConfig.build(**DEMO))


def test_the_verb_names_the_planted_bucket(lab: Laboratory, gained: list[int]) -> None:
    out = lab.answer("compare", "--where", "--task", "ner")
    headline = out.splitlines()[0]
    assert headline.startswith("On ner MRN λ=0.001 gains over MTL with words unseen in training (+")
    assert headline.endswith("All others are undecided.")
    assert "explained by words unseen in training" in out
    assert all(kind in out for kind in (*ERROR_KINDS, *SCHEMES))
    assert "On pos" not in out


def test_library_json_and_csv_have_the_same_rows(lab: Laboratory, gained: list[int]) -> None:
    frame = core.Laboratory().where()
    documents = lab.json("compare", "--where")["where"]
    shown = [record for document in documents for record in document["differences"]]
    rows = list(csv.DictReader(io.StringIO(lab.answer("compare", "--where", "--format", "csv"))))
    assert len(frame) == len(shown) == len(rows)
    assert tuple(rows[0]) == tuple(frame.columns) == WHERE_COLUMNS
    assert (
        frame["bucket"].tolist() == [record["bucket"] for record in shown] == [row["bucket"] for row in rows]
    )
    assert frame["difference"].tolist() == pytest.approx([record["difference"] for record in shown])
    assert frame.attrs["headlines"] == [document["headline"] for document in documents]
    latex = lab.answer("compare", "--where", "--task", "ner", "--format", "latex")
    assert latex.count(r"\begin{tabular}") == 3


def test_kinds_of_errors_are_those_of_the_stored_predictions(lab: Laboratory, gained: list[int]) -> None:
    frame = core.Laboratory().where(task="ner").set_index(["feature", "bucket"])
    runs = [run for run in lab.store.runs(gained) if run.config.paradigm == "mrn"]
    counted = [span_errors(*numbered(*lab.store.predictions(run.id, "test", "ner")["ner"])) for run in runs]
    for kind in ERROR_KINDS:
        shares = [errors.counts[kind] / errors.annotated for errors in counted]
        assert frame.loc[("errors", kind), "a"] == pytest.approx(sum(shares) / len(SEEDS))
    assert frame.loc[("errors", "exact"), "verdict"] == "higher"
    scores = lab.store.scores([run.id for run in runs], "test")
    strict = [score.score for score in scores if score.task == "ner"]
    assert frame.loc[("F1 scheme", "strict"), "a"] == pytest.approx(sum(strict) / len(SEEDS))


def test_columns_that_were_not_trained_are_buckets(lab: Laboratory, gained: list[int]) -> None:
    frame = core.Laboratory().where(task="pos", by=["chunk"])
    assert {"NP", "VP"} <= set(frame.query("feature == 'chunk'")["bucket"])
    out = lab.answer("compare", "--where", "--task", "pos", "--by", "chunk,ner", "--format", "csv")
    assert "chunk" in out
    assert "has no column 'genre'; name pos, chunk, ner." in lab.refusal(
        "compare", "--where", "--by", "genre"
    )


def test_a_field_of_the_sentences_is_a_bucket(lab: Laboratory, tmp_path: Path) -> None:
    blocks = [
        f"# genre: {('news', 'mail')[number % 2]}\nEU N\nis V\n{'not' if number % 3 else 'new'} A\n"
        for number in range(60)
    ]
    folder = corpus_folder(
        tmp_path / "genres", {f"{split}.conll": "\n".join(blocks) for split in ("train", "dev", "test")}
    )
    fill(
        lab.store,
        RunConfig.build(corpus=folder, columns="tokens,pos", tasks="pos,genre", paradigm="mtl"),
        seeds=(1, 2),
    )
    frame = core.Laboratory().where(task="pos", by=["genre"])
    assert set(frame.query("feature == 'genre'")["bucket"]) == {"news", "mail"}
    of_sentences = core.Laboratory().where(task="genre")
    assert set(of_sentences["feature"]) <= {"length", "unseen words", "label frequency"}


def test_one_seed_decides_nothing_and_says_so(lab: Laboratory) -> None:
    fill(lab.store, RunConfig.build(**DEMO), seeds=(1,))
    result = lab.call("compare", "--where", "--task", "pos")
    assert result.exit_code == 0
    assert "On pos none of" in result.stdout
    assert "One seed in common: nothing is decided." in result.stderr


def test_dev_sentences_that_differ_by_seed_decide_nothing(lab: Laboratory) -> None:
    fill(
        lab.store, RunConfig.build(**DEMO | {"corpus": "demo-both-pos", "tasks": "pos-a,pos-b"}), seeds=(1, 2)
    )
    result = lab.call("compare", "--where", "--split", "dev")
    assert result.exit_code == 0, result.stderr
    assert "none of" in result.stdout


def test_what_cannot_be_answered_is_a_sentence(lab: Laboratory) -> None:
    fill(lab.store, RunConfig.build(**DEMO), seeds=(1, 2), with_predictions=False)
    assert "No test predictions of MRN λ=0.001 and MTL on pos are stored for a common seed" in lab.refusal(
        "compare", "--where"
    )
    assert "'chunk' has no test score; name pos, ner" in lab.refusal("compare", "--where", "--task", "chunk")
    assert "add --where" in lab.refusal("compare", "--by", "chunk")
    assert "leave it out" in lab.refusal("compare", "--where", "--expect", "mrn > mtl on ner")
    assert "name a task" in lab.refusal("compare", "--where", "--task", "mean of tasks")
    with pytest.raises(ConfigError, match="no row is called"):
        core.Laboratory().where(baseline="crf")


def test_rows_without_a_common_seed_are_a_sentence(lab: Laboratory) -> None:
    fill(lab.store, RunConfig.build(**DEMO), seeds=(1, 2), paradigms=("mtl",))
    fill(lab.store, RunConfig.build(**DEMO), seeds=(3, 4), paradigms=("mrn",))
    with pytest.raises(MRNLabError, match="have no seed in common on"):
        core.Laboratory().where()


def test_a_corpus_that_has_changed_leaves_the_kinds_of_errors(lab: Laboratory, tmp_path: Path) -> None:
    block = "EU B-ORG N\nis O V\nnew O A\n\n"
    files = {f"{split}.conll": block * 30 for split in ("train", "dev", "test")}
    folder = corpus_folder(tmp_path / "changing", files)
    config = RunConfig.build(corpus=folder, columns="tokens,ner,pos", tasks="ner,pos", paradigm="mtl")
    fill(lab.store, config, seeds=(1, 2))
    (Path(folder) / "test.conll").write_text("It O N\n\n" * 30)
    result = lab.call("compare", "--where", "--task", "ner")
    assert result.exit_code == 0, result.stderr
    assert "is no longer what run 2 was scored on" in result.stderr
    assert "wrong boundary" in result.stdout
    assert "is no longer what run" in lab.refusal("compare", "--where", "--task", "pos")
