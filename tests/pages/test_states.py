"""Every page in every state it can be in: nothing yet, waiting, live, ended badly, without a store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.serving import modules_of_pages
from tests.pages.conftest import Open, page_names, words
from tests.pages.filled_store import Filled

ROOT = Path(__file__).resolve().parents[2]

# What a page says of a run in that state, once the run is chosen; tests/pins has what others say.
SAID = {
    ("launch", "live"): "Starts after 3 runs queued or in progress",
    ("curves", "queued"): ": It starts when a worker is free.",
    ("curves", "failed"): "Dev score",
    ("compare", "live"): "None of the chosen runs has succeeded.",
    ("relations", "live"): "over training: ",
    ("relations", "failed"): "step 140",
    ("tag", "lost"): "Ended without a model",
}


def _sidebar(app: AppTest) -> list[str]:
    return [link.proto.label for link in app.sidebar.get("page_link")]


@pytest.mark.parametrize("page", ["launch", "runs", "curves", "compare", "relations", "tag"])
def test_nothing_yet_offers_what_to_do(page: str, open_page: Open) -> None:
    app = open_page(page)
    assert "Try it" in [button.label for button in app.button]
    assert _sidebar(app) == []


@pytest.mark.parametrize(("page", "state"), SAID)
def test_a_state_is_told(page: str, state: str, open_page: Open, filled: Filled) -> None:
    app = open_page(page, run=str(getattr(filled, state)[0]))
    assert SAID[page, state] in words(app)
    assert _sidebar(app) == ["1 in progress, 2 queued"]


def test_every_list_of_pages_is_that_of_the_navigation() -> None:
    folders = {script.parent.name for script in (ROOT / "dashboard").glob("*/page.py")}
    assert folders == set(page_names())
    table = re.findall(
        r"^\| (\w+) \| [^|]+\?", (ROOT / "docs/pages.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert table == [name.capitalize() for name in page_names()]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert folders <= set(re.findall(r"`dashboard/(\w+)`", contributing))
    modules = modules_of_pages()
    assert {module.split(".")[1] for module in modules} == folders
    assert not [module for module in modules if module.endswith("page")]


@pytest.mark.parametrize("page", page_names())
def test_a_file_that_is_no_store_is_a_sentence(page: str, open_page: Open, laboratory: Path) -> None:
    (laboratory / "runs.db").write_bytes(b"something else " * 300)
    text = words(open_page(page))
    assert "is not a store of MRN Lab; name another file, or move this one away." in text
    assert "Traceback" not in text


@pytest.mark.parametrize("page", ["runs", "tag"])
def test_a_store_that_goes_away_meanwhile_is_a_sentence(
    page: str, open_page: Open, filled: Filled, laboratory: Path
) -> None:
    app = open_page(page)
    (laboratory / "runs.db").write_bytes(b"something else " * 30_000)
    app.run()
    assert "is not a store of MRN Lab" in words(app)


@pytest.mark.parametrize(
    ("page", "chosen", "equation"),
    [
        ("launch", {}, r"\lambda"),
        ("curves", {"metric": "penalty"}, r"\Omega^{-1}"),
        ("curves", {"metric": "objective"}, r"J("),
        ("relations", {}, r"R_{ij}"),
    ],
)
def test_a_number_of_mrn_has_its_equation(
    page: str, chosen: dict[str, str], equation: str, open_page: Open, finished: Filled
) -> None:
    """In a fold, which is drawn once it is opened."""
    app = open_page(page, run=str(finished.mrn[0]))
    for key, value in chosen.items():
        app.session_state[key] = value
    assert not app.run().latex
    app.session_state["how_to_read" if page == "relations" else "what_is_this"] = True
    app.run()
    assert equation in "".join(equation_shown.value for equation_shown in app.latex)
