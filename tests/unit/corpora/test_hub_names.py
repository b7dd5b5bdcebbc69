"""A dataset of the Hub by its name: how it is pinned, by what the Hub once answered."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import load
from core.corpora.catalogue import hub
from core.corpora.loading import is_here, pinned_name
from core.errors import CorpusError
from core.recording.resolve import with_absolute_paths
from tests.hub_copies import GLUE, as_parquet

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")
Parquet: Any = pytest.importorskip("datasets.packaged_modules.parquet.parquet").Parquet

COMMIT = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"


def answer(*files: str) -> bytes:
    """The part of the Hub's answer on a revision of a dataset that is used, as recorded."""
    recorded = {"id": "nyu-mll/glue", "sha": COMMIT, "gated": False}
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"{name}/train-*"}]} for name in GLUE
    ]
    siblings = [{"rfilename": file} for file in files]
    return json.dumps({**recorded, "cardData": {"configs": configs}, "siblings": siblings}).encode()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A Hub that has nyu-mll/glue, a script owner/old and nothing else, and the addresses it is asked for."""
    addresses: list[str] = []

    def opened(request: urllib.request.Request, **options: object) -> io.BytesIO:
        addresses.append(request.full_url)
        if "nyu-mll/glue" in request.full_url:
            return io.BytesIO(answer(".gitattributes", "README.md", "cola/train-00000-of-00001.parquet"))
        if "owner/old" in request.full_url:
            return io.BytesIO(answer("README.md", "old.py"))
        raise urllib.error.HTTPError(request.full_url, 404, "Not Found", {}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    monkeypatch.setattr("core.corpora.catalogue.hub.look_up_hub", lambda: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    hub._newest.cache_clear()
    return addresses


def test_a_dataset_is_pinned_by_its_commit_and_then_read_without_the_hub(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "hub:nyu-mll/glue?config=cola"
    pinned = f"{name}&revision={COMMIT}"
    assert not is_here(name)
    assert pinned_name(name) == pinned == pinned_name(pinned)
    assert asked == ["https://huggingface.co/api/datasets/nyu-mll/glue/revision/main"]
    described = RunConfig.build(corpus=name, tasks=["glue-cola"], paradigm="stl")
    assert with_absolute_paths(described).corpus == pinned

    folder = as_parquet(tmp_path / "copy", GLUE)
    given = datasets.load_dataset_builder(str(folder), "cola")
    loads: list[tuple[str, str | None, str | None]] = []

    def builder(source: str, config: str | None, cache_dir: None, revision: str | None) -> Any:
        """What `datasets` gives for the Hub: a builder of such files, with the commit as its hash."""
        loads.append((source, config, revision))
        files = given.config.data_files
        return Parquet(str(tmp_path / "cache"), "glue", config, revision, data_files=files, config_id=config)

    with monkeypatch.context() as online:
        online.setattr(datasets, "load_dataset_builder", builder)
        corpus = load(name)
    assert loads == [("nyu-mll/glue", "cola", COMMIT)]
    # `datasets` keeps what it read under the name of the repository, which a builder of local files has not.
    (tmp_path / "cache" / "glue").rename(tmp_path / "cache" / "nyu-mll___glue")
    (reading,) = corpus.readings
    assert reading.revision == COMMIT
    assert reading.title.startswith(f"glue-cola, dataset nyu-mll/glue, configuration cola, revision {COMMIT}")

    def unreachable(*args: object, **options: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(datasets, "load_dataset_builder", unreachable)
    hub._newest.cache_clear()
    assert is_here(pinned)
    assert hub.read_hub(pinned).train == hub.read_hub(name).train == corpus.train
    assert pinned_name(name) == pinned


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "hub:owner/old",
            r"owner/old is a script \(old.py\), and scripts are never run; .*refs/convert/parquet",
        ),
        ("hub:owner/none", "does not offer the dataset owner/none .it answers 404."),
        ("hub:owner/none?revision=v1", "does not offer the dataset owner/none in the revision v1"),
        ("hub:csv", "'csv' is neither a folder here nor a dataset's name; write hub:OWNER/NAME"),
        ("hub:../x/y", "neither a folder here nor"),
        ("hub:", "names no dataset"),
        ("joined:hub:owner/old+demo", "is a script"),
        ("owner/none", "There is no corpus 'owner/none'.* Write hub:owner/none for the dataset of the Hub"),
    ],
)
def test_what_the_hub_does_not_have_is_told(asked: list[str], name: str, problem: str) -> None:
    with pytest.raises(CorpusError, match=problem):
        load(name)


@pytest.mark.parametrize(
    ("card", "default"),
    [
        ({}, ""),
        ({"configs": [{"config_name": "default"}]}, ""),
        ({"configs": [{"config_name": "conll2003"}]}, "conll2003"),
        ({"configs": [{"config_name": "en"}, {"config_name": "de"}]}, ""),
        ({"configs": [{"config_name": "en"}, {"config_name": "de", "default": True}]}, "de"),
        ({"dataset_info": {"config_name": "split", "features": []}}, "split"),
        ({"dataset_info": {"features": []}}, ""),
    ],
)
def test_the_default_configuration_is_pinned_too(card: dict[str, Any], default: str) -> None:
    assert hub._default_config(card) == default


def test_another_revision_is_asked_for_by_its_name(asked: list[str]) -> None:
    assert pinned_name("hub:owner/glue?revision=refs/convert/parquet".replace("owner", "nyu-mll")).endswith(
        COMMIT
    )
    assert asked[0].endswith("/revision/refs%2Fconvert%2Fparquet")


def test_without_network_and_copy_the_answer_says_what_to_do(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("hub:nyu-mll/glue", f"hub:nyu-mll/glue?revision={COMMIT}"):
        with pytest.raises(CorpusError, match=r"cannot be reached; name the folder of a copy, as hub:/path"):
            load(name)
