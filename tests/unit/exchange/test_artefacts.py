"""Folders in a shared place: whole or not there, confined, and refused in one sentence where they fail."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.checkpoints.sealed import digest_of, seal
from core.checkpoints.shared_storage import Artefacts, shared_artefacts
from core.errors import ArtefactError

FILES = {"model.safetensors": b"\x00\x01" * 70_000, "encoder/config.json": b"{}", "empty": b""}


def made(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    def write(new: Path) -> None:
        for name, content in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(content)

    return seal(folder, {}, 0, write).folder


def read(folder: Path) -> dict[str, bytes]:
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "manifest.json"}


@pytest.mark.parametrize("kind", ["{folder}", "file://{folder}", "memory://{id}"])
def test_there_and_back(kind: str, tmp_path: Path) -> None:
    """A folder, the same as a URL, and another kind of fsspec."""
    shared = Artefacts(kind.format(folder=tmp_path / "shared place", id=uuid.uuid4()))
    assert shared.names() == []
    sealed = made(tmp_path / "sealed")
    for name in ("states/12/600", "states/12/1200", "states/120/5", "models/12-1"):
        shared.push(sealed, name)
    assert shared.pull("states/12/600", tmp_path / "deep" / "other")
    assert read(tmp_path / "deep" / "other") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["other"]  # nothing is left beside
    shared.push(made(tmp_path / "newer", {"model.safetensors": b"new"}), "models/12-1")
    assert shared.pull("models/12-1", tmp_path / "replaced")
    assert read(tmp_path / "replaced") == {"model.safetensors": b"new"}
    assert shared.pull("models/12-1", tmp_path / "deep" / "other")
    assert read(tmp_path / "deep" / "other") == FILES  # what is here stays

    assert shared.names("states/12/") == ["states/12/1200", "states/12/600"]
    assert shared.names("states/12") == ["states/12/1200", "states/12/600", "states/120/5"]
    for _ in range(2):
        shared.remove("states/12/600")
    shared.remove("states/12/1200")
    assert shared.names() == ["models/12-1", "states/120/5"]
    assert not shared.pull("states/12/600", tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("file", "spoil"),
    [
        ("a.files.json", lambda content: None),
        ("a/model.safetensors", lambda content: None),
        ("a/manifest.json", lambda content: content[:-20]),
        ("a/manifest.json", lambda content: b"[1]"),
        ("a/model.safetensors", lambda content: content[:-1]),
        ("a/model.safetensors", lambda content: content[::-1]),
    ],
    ids=["no list", "file missing", "half a list", "odd list", "file cut short", "file of the same size"],
)
def test_half_a_folder_is_not_taken_for_whole(
    file: str, spoil: Callable[[bytes], bytes | None], tmp_path: Path
) -> None:
    """A machine that died while it uploaded leaves such."""
    place = tmp_path / "shared"
    Artefacts(str(place)).push(made(tmp_path / "sealed"), "a")
    content = spoil((place / file).read_bytes())
    (place / file).unlink()
    if content is not None:
        (place / file).write_bytes(content)
    assert not Artefacts(str(place)).pull("a", tmp_path / "mine")
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("mine")]


def test_the_list_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload that ends in the middle leaves no list, not the one of the former upload."""
    shared = Artefacts(str(tmp_path / "shared"))
    shared.push(made(tmp_path / "sealed"), "a")
    put = shared._files.put_file
    uploads = iter([put])

    def fails_at_the_second(local: str, remote: str) -> None:
        if next(uploads, None) is None:
            raise OSError(28, "No space left on device")
        put(local, remote)

    monkeypatch.setattr(shared._files, "put_file", fails_at_the_second)
    with pytest.raises(ArtefactError, match=r"a cannot be written \(OSError: .*No space left on device\)\.$"):
        shared.push(tmp_path / "sealed", "a")
    assert shared.names() == []
    assert not shared.pull("a", tmp_path / "mine")


def test_several_may_pull_a_folder_at_once(tmp_path: Path) -> None:
    shared = Artefacts(str(tmp_path / "shared"))
    shared.push(made(tmp_path / "sealed"), "a")
    with ThreadPoolExecutor(4) as pool:
        pulls = [pool.submit(Artefacts(shared.url).pull, "a", tmp_path / "mine") for _ in range(4)]
        assert all(pull.result() for pull in pulls)
    assert read(tmp_path / "mine") == FILES


def test_names_stay_inside(tmp_path: Path) -> None:
    shared = Artefacts(str(tmp_path / "shared"))
    sealed = made(tmp_path / "sealed")
    for name in ("../a", "a/../../b", "/etc", "a/./b", "", "a\\..\\b", "C:/a", "s3://other/a"):
        for act in (shared.push, lambda folder, name: shared.pull(name, folder)):
            with pytest.raises(ArtefactError, match="outside of the shared place"):
                act(sealed, name)
        with pytest.raises(ArtefactError, match="outside of the shared place"):
            shared.remove(name)
    assert read(sealed) == FILES


def test_files_of_a_list_stay_inside(tmp_path: Path) -> None:
    """Whoever may write to the shared place may not write elsewhere on the machines that pull from it."""
    place = tmp_path / "shared"
    Artefacts(str(place)).push(made(tmp_path / "sealed"), "a")
    listed = json.loads((place / "a" / "manifest.json").read_text().replace("empty", "../../escaped"))
    listed["sha256"] = digest_of({name: listed[name] for name in ("format", "about", "files")})
    (place / "a" / "manifest.json").write_text(json.dumps(listed))
    (tmp_path / "escaped").write_bytes(b"")
    with pytest.raises(ArtefactError, match="outside of the shared place"):
        Artefacts(str(place)).pull("a", tmp_path / "deep" / "mine")
    assert not (tmp_path / "deep" / "mine").exists()


def test_errors_name_the_place_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRNLAB_ARTEFACTS", raising=False)
    assert shared_artefacts() is None
    with pytest.raises(ArtefactError) as caught, contextlib.suppress(KeyError):
        Artefacts("foo://me:secret@there/x")
    assert "secret" not in str(caught.value)
    assert "secret" in Artefacts("memory://me:secret@there/x").url
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ArtefactError, match=r"^The shared artefacts .*: a cannot be written \("):
        Artefacts(str(tmp_path / "file")).push(made(tmp_path / "sealed"), "a")
