"""A laboratory may read in named folders only."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import readers
from core.corpora.catalogue import find_folder, locate
from core.corpora.folder import detect_columns
from core.corpora.loading import load
from core.errors import ConfigError, CorpusError, EncoderError, MRNLabError
from core.models import sources
from core.models.trained_heads import trained_heads
from core.models.word_vectors import check_vectors
from core.mrn.alignments.mapping import read_mapping
from core.transfer.features import read_loss_log
from tests.making import conll_folder
from tests.tiny import tiny_bert


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_laboratory_may_read_in_named_folders_only(
    tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "data" / "inside", tmp_path / "outside"
    inside.parent.mkdir()
    for folder in (inside, outside):
        conll_folder(folder)
    (laboratory / "uploads").mkdir()
    conll_folder(laboratory / "uploads" / "mine")
    encoder = tiny_bert(tmp_path / "encoder")
    mapping = _written(tmp_path / "secret.csv", "a,secret,header\n")
    link = tmp_path / "data" / "link"
    link.symlink_to(outside)
    assert find_folder(str(outside)) == outside  # whoever sets nothing reads everywhere

    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(inside.parent))
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path / "data"))
    for allowed in (str(inside), "inside", str(laboratory / "uploads" / "mine")):
        assert locate(allowed).is_dir()
    for folder in (outside, link, inside / ".." / ".." / "outside", tmp_path / "not there"):
        with pytest.raises(CorpusError, match="outside of the folders that this laboratory reads"):
            locate(str(folder))
    with pytest.raises(CorpusError, match="outside of the folders"):
        locate("../outside")
    with pytest.raises(EncoderError, match="outside of the folders"):
        sources.locate(str(encoder))
    assert Path(sources.locate("minilm")).is_dir()
    with pytest.raises(ConfigError, match="outside of the folders") as refused:
        read_mapping(mapping)
    assert "secret,header" not in str(refused.value)


SECRET = "root:x:0:0:secret"


def _added_to(folder: Path) -> RunConfig:
    return RunConfig.build(
        corpus="demo", tasks=("ner",), paradigm="mrn", prior="predicted", added_to=str(folder),
        encoder_training="frozen",
    )  # fmt: skip


READERS: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(
        [f"corpus/train.{ending}" for ending in ("conll", "conllu", "tsv", "csv", "jsonl")],
        lambda file: load(str(file.parent)),
    ),
    "columns/train.conll": lambda file: detect_columns(file.parent),
    "columns/train.tsv": detect_columns,
    "losses.txt": read_loss_log,
    "mapping.csv": read_mapping,
    "vectors.txt": lambda file: check_vectors(str(file)),
    "vectors/vectors.vec": lambda file: check_vectors(str(file.parent)),
    **dict.fromkeys(
        [f"encoder/{name}" for name in ("config.json", "vocab.txt", "model.safetensors", "more/chat.jinja")],
        lambda file: sources.locate(str(file.parents[file.parent.name == "more"])),
    ),
    "run/run.json": lambda file: trained_heads(_added_to(file.parent)),
    "run/weights.safetensors": lambda file: trained_heads(_added_to(file.parent)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_link_to_a_file_leads_out_of_no_allowed_folder(
    name: str, tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, secret = tmp_path / "allowed" / name, _written(tmp_path / "passwd", f"{SECRET}\n")
    file.parent.mkdir(parents=True)
    if "train" in name:
        _written(file.with_name(f"test{file.suffix}"), "a N\n")
    if "encoder" in name:
        tiny_bert(tmp_path / "allowed" / "encoder")
    file.unlink(missing_ok=True)
    file.symlink_to(secret)
    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(tmp_path / "allowed"))
    with pytest.raises(MRNLabError, match="outside of the folders that this laboratory reads") as refused:
        READERS[name](file)
    assert "x:0:0" not in str(refused.value)


def test_a_link_put_in_place_of_a_file_that_was_checked_is_not_followed(
    tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "train.conll"
    link.symlink_to(_written(tmp_path / "passwd", SECRET))
    assert readers.read_bytes(link) == SECRET.encode()
    monkeypatch.setattr("os.path.realpath", os.path.abspath)  # the link is put there after it was resolved
    with pytest.raises(CorpusError, match="cannot be read"):
        readers.read_bytes(link)
