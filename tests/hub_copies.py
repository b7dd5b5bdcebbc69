"""Copies of datasets in the layouts of well-known ones, a few rows of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")

Rows = dict[str, list[Any]]
STRING = datasets.Value("string")
STRINGS = datasets.List(STRING)


def names(*labels: str) -> Any:
    return datasets.ClassLabel(names=list(labels))


def listed(*labels: str) -> Any:
    return datasets.List(names(*labels))


def table(features: Mapping[str, Any], *rows: tuple[Any, ...]) -> Any:
    columns: Rows = {name: [row[place] for row in rows] for place, name in enumerate(features)}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def splits(features: Mapping[str, Any], *rows: tuple[Any, ...], **others: Any) -> Any:
    """A dataset whose splits have the same rows, but for those given."""
    made = {name: table(features, *rows) for name in ("train", "validation", "test")}
    return datasets.DatasetDict(made | others)


CONLL2003 = splits(
    {
        "id": STRING,
        "tokens": STRINGS,
        "pos_tags": listed("NN", "NNP", "VBZ"),
        "chunk_tags": listed("O", "B-NP", "I-NP", "B-VP", "I-VP"),
        "ner_tags": listed("O", "B-PER", "I-PER", "B-ORG", "I-ORG"),
    },
    ("0", ["EU", "rejects", "lamb"], [1, 2, 0], [1, 3, 1], [3, 0, 0]),
    ("1", ["Ada", "Lovelace"], [1, 1], [1, 2], [1, 2]),
    ("2", [], [], [], []),
)
WNUT_17 = splits(
    {"id": STRING, "tokens": STRINGS, "ner_tags": listed("O", "B-corporation", "I-corporation", "B-person")},
    ("0", ["@paulwalk", "at", "Acme", "Inc"], [0, 0, 1, 2]),
    ("1", ["Ada", "ran"], [3, 0]),
)
WIKIANN = splits(
    {"tokens": STRINGS, "ner_tags": listed("O", "B-PER", "I-PER"), "langs": STRINGS, "spans": STRINGS},
    (["R.H.", "Saunders"], [1, 2], ["en", "en"], ["PER: R.H. Saunders"]),
    (["She", "ran", "."], [0, 0, 0], ["en"] * 3, []),
)
UNIVERSAL_DEPENDENCIES = splits(
    {
        "idx": STRING,
        "text": STRING,
        "tokens": STRINGS,
        "lemmas": STRINGS,
        "upos": listed("NOUN", "PUNCT", "VERB", "_"),
        "xpos": STRINGS,
        "feats": STRINGS,
        "head": STRINGS,
        "deprel": STRINGS,
        "deps": STRINGS,
        "misc": STRINGS,
    },
    (
        *("w1", "Dogs bark.", ["Dogs", "bark", "."], ["dog", "bark", "."], [0, 2, 1], [None, None, None]),
        *(["{'Number': 'Plur'}", "None", "None"], ["2", "0", "2"], ["nsubj", "root", "punct"]),
        *(["None"] * 3, ["None", "{'SpaceAfter': 'No'}", "None"]),
    ),
    (
        *("w2", "Cats sleep", ["Cats", "sleep"], ["cat", "sleep"], [0, 2], ["NNS", "VBP"]),
        *(["{'Number': 'Plur'}", "None"], ["2", "0"], ["nsubj", "root"], ["None"] * 2, ["None"] * 2),
    ),
)
INTENTS = splits(
    {
        "utterance_id": STRING,
        "tokens": STRINGS,
        "slots": listed("O", "B-city"),
        "intent": names("book", "ask"),
    },
    ("a", ["fly", "to", "Riga"], [0, 0, 1], 0),
    ("b", ["how", "much", "?"], [0, 0, 0], 1),
    ("c", ["a", "gate"], [0, 0], -1),
)
_ID = datasets.Value("int32")
GLUE = {
    "cola": splits(
        {"sentence": STRING, "label": names("unacceptable", "acceptable"), "idx": _ID},
        ("It works.", 1, 0),
        ("Works it.", 0, 1),
        test=table(
            {"sentence": STRING, "label": names("unacceptable", "acceptable"), "idx": _ID}, ("Ran he.", -1, 0)
        ),
    ),
    "stsb": splits(
        {"sentence1": STRING, "sentence2": STRING, "label": datasets.Value("float32"), "idx": _ID},
        ("A dog runs.", "A dog is running.", 3.8, 0),
        ("A cat.", "A plane.", 0.0, 1),
    ),
    "mnli": datasets.DatasetDict(
        {
            split: table(
                {
                    "premise": STRING,
                    "hypothesis": STRING,
                    "label": names("entailment", "neutral", "contradiction"),
                    "idx": _ID,
                },
                ("It rains.", "It is wet.", 0, 0),
                ("It rains.", "It is dry.", 2, 1),
            )
            for split in ("train", "validation_matched", "validation_mismatched")
        }
    ),
}
"""GLUE, a few sentences of three of its configurations."""


def as_parquet(folder: Path, configs: Mapping[str, Any]) -> Path:
    """A copy as the Hub has it: files of Parquet, and the card that says which are of which configuration."""
    lines = ["---", "configs:"]
    for name, data in configs.items():
        place = folder / name
        place.mkdir(parents=True)
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, rows in data.items():
            rows.to_parquet(place / f"{split}-00000-of-00001.parquet")
            lines += [f"  - split: {split}", f"    path: {name}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*lines, "---", "# A dataset"]), encoding="utf-8")
    return folder


def as_saved(folder: Path, configs: Mapping[str, Any]) -> Path:
    for name, data in configs.items():
        data.save_to_disk(folder if len(configs) == 1 else folder / name)
    return folder
