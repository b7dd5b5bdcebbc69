"""Too much of anything is refused in a sentence, and a laboratory may read in named folders only."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import assembly, readers, save_upload, uploads
from core.corpora.catalogue import find_folder, locate
from core.corpora.folder import detect_columns, read_folder
from core.corpora.free_text import read_given
from core.corpora.loading import load
from core.corpora.readers import read_table
from core.errors import ConfigError, CorpusError, EncoderError, MRNLabError
from core.models import sources
from core.models.trained_heads import trained_heads
from core.models.word_vectors import check_vectors
from core.mrn.alignments.mapping import MOST_BYTES, read_mapping
from core.transfer.features import read_loss_log
from tests.making import conll_folder
from tests.tiny import tiny_bert


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_long_lines(tmp_path: Path) -> None:
    long = "x" * (readers.MOST_CHARACTERS + 1)
    with pytest.raises(CorpusError, match="line 2: has 100,001 characters"):
        readers.read_lines(_written(tmp_path / "a.conll", f"a N\n{long}\n"))
    with pytest.raises(CorpusError, match=r"mine\.txt, line 1: has 100,001 characters"):
        read_given(long.encode(), "mine.txt", {})
    with pytest.raises(CorpusError, match="line 1: has 100,001 characters"):
        read_loss_log(_written(tmp_path / "losses.txt", long))


def test_many_columns(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="line 1: has 201 columns"):
        read_table(_written(tmp_path / "a.conll", " ".join("a" * 201)))


def test_many_lines_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _written(tmp_path / "a.conll", "a N\n" * 10)
    monkeypatch.setattr(readers, "MOST_LINES", 9)
    with pytest.raises(CorpusError, match="has 10 lines and the most is 9"):
        readers.read_lines(file)
    with (tmp_path / "huge.conll").open("wb") as sparse:
        sparse.truncate(readers.MOST_BYTES + 1)  # takes no disk
    with pytest.raises(CorpusError, match="holds 2,000 MB"):
        readers.read_lines(tmp_path / "huge.conll")


def test_what_is_no_file(tmp_path: Path) -> None:
    """A device or a pipe among the files would be read for ever."""
    os.mkfifo(tmp_path / "train.conll")
    with pytest.raises(CorpusError, match="is not a file"):
        readers.read_lines(tmp_path / "train.conll")
    with pytest.raises(CorpusError, match="is not a file"):
        readers.read_lines(Path("/dev/zero"))
    with pytest.raises(CorpusError, match="is not a file"):
        read_loss_log(tmp_path / "train.conll")
    os.mkfifo(tmp_path / "train.tsv")
    with pytest.raises(CorpusError, match="is not a file"):
        detect_columns(tmp_path / "train.tsv")
    with pytest.raises(ConfigError, match="is not a file"):
        read_mapping(Path("/dev/zero"))


def test_many_labels(tmp_path: Path) -> None:
    rows = "\n".join(f"w L{number}\n" for number in range(assembly.MOST_LABELS + 1))
    _written(tmp_path / "train.conll", rows)
    _written(tmp_path / "test.conll", "w L1\n")
    with pytest.raises(CorpusError, match="has 10,001 different labels"):
        read_folder(tmp_path, ("tokens", "pos"))


def test_large_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert uploads.MOST_MEGABYTES == 200
    monkeypatch.setattr(uploads, "MOST_MEGABYTES", 1)
    with pytest.raises(CorpusError, match="the most is 1 MB"):
        save_upload({"train.conll": b"a N\n" * 300_000, "test.conll": b"a N\n"}, "large")


def test_large_mappings(tmp_path: Path) -> None:
    with (tmp_path / "m.csv").open("wb") as sparse:
        sparse.truncate(MOST_BYTES + 1)
    with pytest.raises(ConfigError, match="the most is 5 MB"):
        read_mapping(tmp_path / "m.csv")
    # A cell without end is refused by the reader of CSV.
    with pytest.raises(ConfigError, match="not proper CSV"):
        read_mapping(_written(tmp_path / "n.csv", '"' + "a" * 200_000))


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "~nobody-here/x", "\ud800", "/" * 300])
def test_names_that_can_be_no_folder(name: str) -> None:
    with pytest.raises(MRNLabError):
        load(name)
    with pytest.raises(MRNLabError):
        sources.check_available(name)


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
