"""What tests of Launch share: the plan and the card of launched runs as values, and what they fill in."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from core.store import RunState, Store
from dashboard.theme import STATES
from tests.making import claimed
from tests.pages.conftest import sheets

TRAIN = "Anna B-PER NNP\nsings O VBZ\n\nin O IN\nRome B-LOC NNP\n\n"
TEST = "Mars B-PLANET NNP\nshines O VBZ\n\n"
_BASE: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "encoder_training": "frozen"}


def listed(app: AppTest) -> list[tuple[str, str]]:
    """The configurations of the plan, each with its tasks and seeds."""
    return [(str(name), row["Seeds"]) for name, row in sheets(app)[0].iterrows() if row["Runs"]]


def planned(app: AppTest) -> int:
    """How many runs the form makes, by the heading of the plan."""
    heading = next(line.value for line in app.subheader if line.value.startswith("This makes"))
    return int(heading.split()[2].replace(",", ""))


def on_card(app: AppTest) -> list[Any]:
    """The headline of the card of launched runs, and how many of them are in each state."""
    bar = app.get("progress")[0]  # after it, that of the sidebar
    states = {look.word.lower(): state for state, look in STATES.items()}
    parts = [part.split(" ") for part in bar.proto.text.split(", ")]
    return [app.subheader[-1].value, {states[word]: int(count) for count, word in parts}]


def query(app: AppTest) -> dict[str, str]:
    """The parameters of the page's address."""
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def done(**values: Any) -> int:
    """A run that has succeeded in the store of this test."""
    return claimed(Store.open(), RunState.SUCCEEDED, **{**_BASE, **values})


def own_data(app: AppTest, folder: str = "") -> AppTest:
    """The form with a corpus of one's own, and that folder."""
    app.selectbox(key="launch_corpus").select("Your own data").run()
    if folder:
        app.segmented_control(key="launch_own_how").set_value("A folder on this machine").run()
        app.text_input(key="launch_own_folder").set_value(folder).run()
    return app
