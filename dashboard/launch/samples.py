"""Sample files of an upload: a small corpus of each kind that is read, one file a split."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

_WORDS = {
    "train.conll": [
        "Ada/B-PER/NNP Lovelace/I-PER/NNP lived/O/VBD in/O/IN London/B-LOC/NNP",
        "Rivers/O/NNS cross/O/VBP Germany/B-LOC/NNP",
        "Grace/B-PER/NNP visited/O/VBD Paris/B-LOC/NNP",
    ],
    "dev.conll": ["Paris/B-LOC/NNP grew/O/VBD"],
    "test.conll": ["Ada/B-PER/NNP visited/O/VBD Germany/B-LOC/NNP"],
}
SAMPLES: Mapping[str, Mapping[str, str]] = {
    "CoNLL columns": {
        name: "\n".join(
            "".join(f"{word}\n" for word in sentence.replace("/", "\t").split(" ")) for sentence in sentences
        )
        for name, sentences in _WORDS.items()
    },
    "Lists as JSONL": {
        name.replace("conll", "jsonl"): "".join(
            f"{json.dumps(dict(zip(('tokens', 'ner', 'pos'), columns, strict=True)))}\n"
            for sentence in sentences
            for columns in [list(zip(*(word.split("/") for word in sentence.split(" ")), strict=True))]
        )
        for name, sentences in _WORDS.items()
    },
    "Texts as CSV": {
        "train.csv": "text,sentiment\nA fine film.,positive\nToo long and dull.,negative\n"
        '"Warm, funny and short.",positive\nI left early.,negative\n',
        "dev.csv": "text,sentiment\nA dull film.,negative\n",
        "test.csv": "text,sentiment\nFunny and warm.,positive\n",
    },
}
"""By kind, the text of each file."""


def zipped(files: Mapping[str, str]) -> bytes:
    """Returns these files as a zip archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, text in files.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return archive.getvalue()
