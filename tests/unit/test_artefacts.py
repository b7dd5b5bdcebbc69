"""Folders in a shared place: whole or not there, confined, and told in one sentence where they fail."""

from __future__ import annotations

import contextlib
import threading
import uuid
from pathlib import Path

import pytest

from core.checkpoints.shared_storage import Artefacts, shared_artefacts
from core.errors import ArtefactError

FILES = {"model.safetensors": b"\x00\x01" * 70_000, "encoder/config.json": b"{}", "empty": b""}


@pytest.fixture(params=["folder", "file", "memory"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Artefacts:
    """An empty place: a folder, the same as a URL, and one of another kind of fsspec."""
    place = tmp_path / "shared place"
    return Artefacts(
        {"folder": str(place), "file": f"file://{place}", "memory": f"memory://{uuid.uuid4()}"}[request.param]
    )


def made(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_there_and_back(shared: Artefacts, tmp_path: Path) -> None:
    shared.push(made(tmp_path / "own"), "states/12/600")
    assert shared.pull("states/12/600", tmp_path / "deep" / "other")
    assert read(tmp_path / "deep" / "other") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["other"]  # nothing is left beside


def test_what_is_there_is_replaced(shared: Artefacts, tmp_path: Path) -> None:
    shared.push(made(tmp_path / "own"), "a")
    shared.push(made(tmp_path / "newer", {"model.safetensors": b"new"}), "a")
    assert shared.pull("a", made(tmp_path / "mine", {"old": b"old"}))
    assert read(tmp_path / "mine") == {"model.safetensors": b"new"}


def test_names_and_removal(shared: Artefacts, tmp_path: Path) -> None:
    assert shared.names() == []
    own = made(tmp_path / "own")
    for name in ("states/12/600", "states/12/1200", "states/120/5", "models/12-1"):
        shared.push(own, name)
    assert shared.names("states/12/") == ["states/12/1200", "states/12/600"]
    assert shared.names("states/12") == ["states/12/1200", "states/12/600", "states/120/5"]
    shared.remove("states/12/600")
    shared.remove("states/12/600")
    assert shared.names() == ["models/12-1", "states/12/1200", "states/120/5"]
    assert not shared.pull("states/12/600", tmp_path / "other")
    assert not (tmp_path / "other").exists()


class TestHalfOnes:
    """What a machine that died while it uploaded leaves behind."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        shared = Artefacts(str(tmp_path / "shared"))
        shared.push(made(tmp_path / "own"), "a")
        return tmp_path / "shared"

    @pytest.mark.parametrize(
        "fault",
        ["no list", "half a list", "file missing", "file cut short", "file of the same size", "odd list"],
    )
    def test_is_not_taken_for_whole(self, fault: str, place: Path, tmp_path: Path) -> None:
        listed = place / "a.files.json"
        model = place / "a" / "model.safetensors"
        match fault:
            case "no list":
                listed.unlink()
            case "half a list":
                listed.write_text(listed.read_text()[:-20])
            case "file missing":
                model.unlink()
            case "file cut short":
                model.write_bytes(model.read_bytes()[:-1])
            case "file of the same size":
                model.write_bytes(bytes(reversed(model.read_bytes())))
            case "odd list":
                listed.write_text("[1]")
        mine = made(tmp_path / "mine", {"old": b"old"})
        assert not Artefacts(str(place)).pull("a", mine)
        assert read(mine) == {"old": b"old"}
        assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("mine.")]

    def test_the_list_goes_first(self, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An upload that ends in the middle leaves no list, not the one of the former upload."""
        shared = Artefacts(str(place))
        put = shared._files.put_file
        uploaded: list[str] = []

        def fails_at_the_second(local: str, remote: str) -> None:
            if uploaded:
                raise OSError(28, "No space left on device")
            uploaded.append(remote)
            put(local, remote)

        monkeypatch.setattr(shared._files, "put_file", fails_at_the_second)
        with pytest.raises(
            ArtefactError, match=r"a cannot be written \(OSError: .*No space left on device\)\.$"
        ):
            shared.push(tmp_path / "own", "a")
        assert uploaded
        assert shared.names() == []
        assert not shared.pull("a", tmp_path / "mine")


def test_two_may_pull_one_at_once(tmp_path: Path) -> None:
    shared = Artefacts(str(tmp_path / "shared"))
    shared.push(made(tmp_path / "own"), "a")
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(Artefacts(shared.url).pull("a", tmp_path / "mine")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert read(tmp_path / "mine") == FILES


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/etc", "a/./b", "", "a\\..\\b", "C:/a", "s3://other/a"]
)
def test_names_stay_inside(name: str, tmp_path: Path) -> None:
    shared = Artefacts(str(tmp_path / "shared"))
    own = made(tmp_path / "own")
    for act in (lambda: shared.push(own, name), lambda: shared.pull(name, own), lambda: shared.remove(name)):
        with pytest.raises(ArtefactError, match="outside of the shared place"):
            act()
    assert read(own) == FILES


def test_files_of_a_list_stay_inside(tmp_path: Path) -> None:
    """Whoever may write to the shared place may not write elsewhere on the machines that pull from it."""
    place = tmp_path / "shared"
    Artefacts(str(place)).push(made(tmp_path / "own"), "a")
    listed = place / "a.files.json"
    listed.write_text(listed.read_text().replace("empty", "../../escaped"))
    (tmp_path / "escaped").write_bytes(b"")
    with pytest.raises(ArtefactError, match="outside of the shared place"):
        Artefacts(str(place)).pull("a", tmp_path / "deep" / "mine")
    assert not (tmp_path / "deep" / "mine").exists()


class TestWhere:
    def test_none_unless_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MRNLAB_ARTEFACTS", raising=False)
        assert shared_artefacts() is None

    def test_no_secret_is_told(self) -> None:
        with pytest.raises(ArtefactError) as caught, contextlib.suppress(KeyError):
            Artefacts("foo://me:secret@there/x")
        assert "secret" not in str(caught.value)
        assert "secret" in Artefacts("memory://me:secret@there/x").url

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(ArtefactError, match=r"^The shared artefacts .*: a cannot be written \("):
            Artefacts(str(tmp_path / "file")).push(made(tmp_path / "own"), "a")
