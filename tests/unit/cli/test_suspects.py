"""mrnlab suspects and lab.suspects: what all runs contradict, its formats, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import core
from core.config import RunConfig
from core.errors import ConfigError, MRNLabError
from core.events import SplitResult
from core.results.suspects import SUSPECT_COLUMNS
from core.tasks import score_task
from tests.making import corpus_folder, finished
from tests.unit.cli.conftest import Laboratory

_BLOCK = "EU B-ORG N\nis O V\n=1+1 O A\n\nBig B-LOC A\nApple I-LOC N\nsaid O V\n\n"
RIGHT = {"ner": [["B-ORG", "O", "O"], ["B-LOC", "I-LOC", "O"]], "pos": [["N", "V", "A"], ["A", "N", "V"]]}


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    files = {f"{split}.conll": _BLOCK for split in ("train", "dev", "test")}
    folder = corpus_folder(tmp_path / "small", files)
    return RunConfig.build(corpus=folder, columns="tokens,ner,pos", tasks="ner,pos", paradigm="mtl")


def predict(lab: Laboratory, config: RunConfig, seed: int, paradigm: str = "mtl", **changed: object) -> int:
    """A run that predicts what is annotated, but for the labels of `changed` tasks."""
    predicted = RIGHT | changed
    scores = tuple(
        score_task(task, scheme, RIGHT[task], predicted[task])  # type: ignore[arg-type]
        for task, scheme in (("ner", "iob2"), ("pos", "plain"))
    )
    return finished(
        lab.store,
        config.with_(seed=seed, paradigm=paradigm),
        SplitResult("test", 1, scores, predicted, RIGHT),  # type: ignore[arg-type]
    )


ORG = [["B-ORG", "O", "O"], ["B-ORG", "I-ORG", "I-ORG"]]
VERB = [["N", "V", "V"], ["A", "N", "V"]]


@pytest.fixture
def runs(lab: Laboratory, config: RunConfig) -> list[int]:
    """All runs see a longer ORG; of three MTL seeds two, and all of MRN, see a verb in `=1+1`."""
    return [
        predict(lab, config, 1, ner=ORG, pos=VERB),
        predict(lab, config, 2, ner=ORG, pos=VERB),
        predict(lab, config, 3, ner=ORG),
        predict(lab, config, 1, "mrn", ner=ORG, pos=VERB),
    ]


def test_what_all_runs_contradict_comes_first(lab: Laboratory, runs: list[int]) -> None:
    frame = core.Laboratory().suspects(runs, agree=0.8)
    assert tuple(frame.columns) == SUSPECT_COLUMNS
    span, word = frame.to_dict("records")
    assert (span["task"], span["sentence"], span["start"], span["end"]) == ("ner", 1, 0, 3)
    assert (span["gold"], span["predicted"]) == ("B-LOC I-LOC O", "B-ORG I-ORG I-ORG")
    assert (span["agree"], span["runs"], span["related"]) == (1.0, 4, "pos A N V")
    assert (word["task"], word["words"], word["gold"], word["predicted"]) == ("pos", "=1+1", "A", "V")
    assert word["agree"] == pytest.approx((2 / 3 + 1) / 2)  # the mean of MTL's and MRN's shares
    assert word["related"] == "ner O"
    assert len(core.Laboratory().suspects(runs)) == 1


def test_of_equal_agreement_what_training_shows_comes_first(lab: Laboratory, config: RunConfig) -> None:
    folder = Path(config.corpus)
    (folder / "train.conll").write_text(_BLOCK.replace("=1+1 O A", "=1+1 O V") * 5)
    changed = [["V", "V", "V"], ["A", "N", "V"]]
    ids = [predict(lab, config, seed, pos=changed) for seed in (1, 2)]
    frame = core.Laboratory().suspects(ids, "pos")
    assert frame["words"].tolist() == ["=1+1", "EU"]


def test_confusions_that_models_make_elsewhere_come_last(lab: Laboratory, config: RunConfig) -> None:
    """All runs contradict both places alike; what they also do on dev is their mistake, and no wrong gold."""
    on_dev = [["N", "V", "V"], ["A", "N", "V"]]
    on_test = [["N", "V", "V"], ["A", "N", "A"]]
    ids = []
    for seed in (1, 2):
        score = score_task("pos", "plain", RIGHT["pos"], RIGHT["pos"])
        of_splits = [
            SplitResult(split, 1, (score,), {"pos": guess}, {"pos": RIGHT["pos"]})
            for split, guess in (("dev", on_dev), ("test", on_test))
        ]
        ids.append(finished(lab.store, config.with_(seed=seed), *of_splits))
    frame = core.Laboratory().suspects(ids, "pos")
    assert frame["words"].tolist() == ["said", "=1+1"]


def test_formats(lab: Laboratory, runs: list[int]) -> None:
    numbers = [str(run) for run in runs]
    text = lab.answer("suspects", *numbers, "--agree", "0.8", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["task"] for row in rows] == ["ner", "pos"]
    assert rows[1]["words"] == "'=1+1"  # no formula in a spreadsheet
    documents = json.loads(lab.answer("suspects", *numbers, "--agree", "0.8", "--format", "json"))
    assert [document["words"] for document in documents] == ["Big Apple said", "=1+1"]
    conll = lab.answer("suspects", *numbers, "--task", "ner", "--format", "conll")
    assert conll.splitlines()[2:-1] == ["Big\tB-LOC\tB-ORG", "Apple\tI-LOC\tI-ORG", "said\tO\tI-ORG"]
    assert "Big Apple said" in lab.answer("suspects", *numbers)


def test_gold_is_not_changed(lab: Laboratory, runs: list[int]) -> None:
    before = lab.store.predictions(runs[0], "test")
    lab.answer("suspects", *map(str, runs))
    assert lab.store.predictions(runs[0], "test") == before


def test_what_cannot_be_answered_is_a_sentence(lab: Laboratory, config: RunConfig, runs: list[int]) -> None:
    one, two = map(str, runs[:2])
    assert "only run 1 has test predictions" in lab.refusal("suspects", one)
    assert "no test predictions on 'chunk' are stored; name ner, pos" in lab.refusal(
        "suspects", one, two, "--task", "chunk"
    )
    assert "None of these runs has dev predictions stored" in lab.refusal(
        "suspects", one, two, "--split", "dev"
    )
    assert "not a share above 0.5" in lab.refusal("suspects", one, two, "--agree", "0.2")
    assert "is no share" in lab.refusal("suspects", one, two, "--agree", "most")
    (Path(config.corpus) / "test.conll").write_text("It O N\n\n")
    assert "is no longer what run " in lab.refusal("suspects", one, two)
    with pytest.raises(ConfigError, match="agree"):
        core.Laboratory().suspects(runs, agree=2)
    with pytest.raises(MRNLabError):
        core.Laboratory().suspects(runs, split="dev")
