"""What Compare answers: its verdicts, their family and picture, the seeds that would decide."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.corpora.loading import read
from core.store import Store
from jobs.cli import app as command_line
from jobs.queue.submit import REUSABLE
from tests.making import conll_folder, run_facts
from tests.making import finished as finished_as
from tests.pages.compare_runs import copied_scores, finished_run, in_numbers, mtl
from tests.pages.conftest import (
    Open,
    figures,
    labels,
    press,
    sheets,
    words,
)
from tests.pages.filled_store import TASKS, Filled


def written(app: AppTest) -> list[str]:
    """The numbers under the marks of the answer, of which the columns of a wide page have the same."""
    (answer,) = figures(app, "compare_answer")
    by_name: dict[str, list[str]] = {"numbers": [], "below": []}
    for each in answer["layout"]["annotations"]:
        by_name[each["name"]].append(each["text"])
    assert {"difference", "95% interval", "p"} <= set(by_name["numbers"])
    assert all(text in " ".join(by_name["below"]) for text in by_name["numbers"] if text[:1] in "[+−")
    # A head names the column of p, and nothing else names it there; under a mark it has its name.
    assert not any(text.startswith("p ") for text in by_name["numbers"])
    values = [text for text in by_name["numbers"] if re.fullmatch(r"(&lt; )?[01]\.\d{3}", text)]
    assert len(values) == sum(" p " in text for text in by_name["below"])
    return by_name["below"]


def test_the_answer_comes_first(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", to="MTL")
    shown = words(app)
    assert "scores higher than MTL on ner (+1.08); undecided on pos and chunk." in shown
    # The answer: three pairs of configurations, each on three tasks and in their mean.
    assert sum(text.startswith("higher +1.08 [+") for text in written(app)) == 1
    (answered,) = figures(app, "compare_answer")
    assert [name[-3:] for name in answered["layout"]["yaxis"]["ticktext"]] == ["MTL", "STL", "STL"]
    assert [trace["name"] for trace in answered["data"]] == [*TASKS, "mean of tasks"]
    assert list(sheets(app)[0].index)[:2] == ["STL", "MTL"]
    tested = in_numbers(app)
    (forest,) = figures(app, "compare_forest")
    assert [trace["name"] for trace in forest["data"]] == [*TASKS, "mean of tasks"]
    filled = [
        not symbol.endswith("-open") for trace in forest["data"] for symbol in trace["marker"]["symbol"]
    ]
    is_mean = tested["Task"].str.startswith("mean")
    assert set(tested["Task"][~is_mean]) == set(TASKS)
    assert "MTL" not in set(tested.index)
    assert all(tested["p sentences"][~is_mean] != "")
    assert not any(tested["p sentences"][is_mean])
    unturned = tested[tested.index.str.contains("− MTL", regex=False)]["Verdict"]
    assert sorted(filled) == sorted(not verdict.startswith("undecided") for verdict in unturned)
    # What is copied is what the command line prints.
    printed = CliRunner().invoke(command_line, ["results", "--format", "latex"])
    assert printed.exit_code == 0, printed.output
    assert copied_scores(app).strip() == printed.stdout.strip()
    app.selectbox(key="to").select("STL").run()
    (forest,) = figures(app, "compare_forest")
    assert forest["layout"]["xaxis"]["title"]["text"] == "Points gained over STL (hollow: undecided)"


def test_one_seed_is_not_enough_and_one_click_launches_the_others(
    open_page: Open, filled: Filled, workers: list[str]
) -> None:
    first_seed = [run.id for run in Store.open().runs(ids=filled.finished) if run.config.seed == 1]
    before = {run.id for run in Store.open().runs()}
    app = open_page("compare", run=",".join(map(str, first_seed)), rows="Every row")
    tested = in_numbers(app)
    assert tested["Verdict"].str.contains("1 seed").sum() >= 3
    assert not any(tested["p seeds"])
    # The second seeds are in the store, so they are added, not trained again.
    compared = {run.config for run in Store.open().runs(ids=first_seed)}
    missing = {config.with_(seed=seed) for config in compared for seed in (2, 3, 4, 5)}
    missing -= {run.config for run in Store.open().runs(states=set(REUSABLE))}
    assert {config.seed for config in missing} == {2, 3, 4, 5}
    button = app.button(key="missing_seeds")
    assert button.label == "Launch the missing seeds"
    assert f"{len(missing)} runs, about " in words(app)
    button.click().run()
    queued = [run.config for run in Store.open().runs() if run.id not in before]
    assert sorted(queued, key=repr) == sorted(missing, key=repr)
    assert workers
    assert "See them on Runs" in labels(app, "page_link")
    on_their_way = len(queued) + len(filled.live) + len(filled.queued)
    assert f"{on_their_way} runs queued or in progress: seeds 2, 3, 4, 5, 6 and 9." in words(app)
    assert not [button for button in app.button if button.key == "missing_seeds"]
    # What was compared still is, now with the second seeds.
    assert "2" in set(in_numbers(app)["Seeds"])


def test_no_seed_is_launched_that_could_not_fill_the_table(
    open_page: Open, laboratory: Path, workers: list[str]
) -> None:
    """Once the corpus has another text, a new run is in another table."""
    folder, columns = conll_folder(laboratory / "news"), ("tokens", "ner", "pos")
    store = Store.open()

    def text_now() -> str:
        return read(str(folder), columns).text_hash

    def trained(seed: int, paradigm: str, text: str) -> None:
        run = mtl(seed, corpus=str(folder), columns=columns, paradigm=paradigm)
        store.set_facts(finished_run(run, 0.5 + seed / 100), run_facts(text_hash=text))

    def keys(app: AppTest) -> list[str | None]:
        return [button.key for button in app.button]

    before = text_now()
    for seed in (1, 2, 3):
        trained(seed, "mtl", before)
    trained(1, "mrn", before)
    assert "missing_seeds" in keys(open_page("compare"))
    for file in folder.iterdir():
        file.write_text(file.read_text("utf-8").replace("EU", "UN"), "utf-8")
    # The files have changed and were not read since: the click reads them.
    app = open_page("compare")
    app.button(key="missing_seeds").click().run()
    assert "Nothing was launched: the corpus has changed." in words(app)
    assert "the corpus has another text now" in words(app)
    assert "missing_seeds" not in keys(app)
    assert len(store.runs()) == 4
    assert not workers
    # Nor are runs offered that were trained on the text of now.
    for seed in (2, 3):
        trained(seed, "mrn", text_now())
    app = open_page("compare", data=f"news, text {before[:6]}")
    assert set(in_numbers(app)["Seeds"]) == {"1"}
    assert "missing_seeds" not in keys(app)
    store.close()


@pytest.mark.parametrize(
    ("paradigms", "tasks", "numbers"),
    [
        (("mtl", "mrn"), 2, 3),
        (("mtl", "mrn"), 7, 8),
        (("stl", "mtl", "mrn"), 2, 9),
        (("stl", "mtl", "mrn"), 7, 0),
    ],
)
def test_no_picture_repeats_another(
    open_page: Open, paradigms: tuple[str, ...], tasks: int, numbers: int
) -> None:
    names = tuple(f"task-{place}" for place in range(tasks))
    for seed, paradigm in itertools.product((1, 2, 3), paradigms):
        for of_run in [(name,) for name in names] if paradigm == "stl" else [names]:
            value = 0.7 + 0.05 * len(paradigm) + seed**2 / 1000
            finished_run(mtl(seed, paradigm=paradigm, tasks=of_run), value)
    app = open_page("compare", closer="Differences")
    assert not figures(app, "compare_forest")
    (answer,) = figures(app, "compare_answer")
    below = [each for each in answer["layout"].get("annotations", []) if each["name"] == "below"]
    assert len(below) == numbers


def test_a_difference_has_one_sign_wherever_it_stands(open_page: Open) -> None:
    """Of STL from the baseline MTL, as of MTL from STL in the answer; of the rows asked, as asked."""
    seven_rows()
    app = open_page("compare")
    names = ["MTL − STL"] * 3 + ["MRN − MTL"] * 3 + ["MRN − STL"] * 3
    assert list(in_numbers(app).index) == names
    assert all(text.lstrip(":red[*").startswith("+") for text in in_numbers(app)["Difference, 95% interval"])
    sent_to = [json.loads(part.proto.json or "{}") for part in app.get("bidi_component")]
    *_, differences = [fields["formats"] for fields in sent_to if "formats" in fields]
    assert "\nMTL,STL,pos," in differences[2]["text"]
    app = open_page("compare", of="STL", to="MTL")
    assert set(in_numbers(app).index) == {"STL − MTL", "MRN − MTL", "MRN − STL"}
    (steps,) = figures(app, "compare_answer")
    assert steps["layout"]["yaxis"]["ticktext"] == ["STL − MTL", "MRN − MTL", "MRN − STL"]
    forest = figures(open_page("compare", rows="Every row", closer="Differences"), "compare_forest")[0]
    assert [name[:3] for name in forest["layout"]["yaxis"]["ticktext"]] == ["MRN"] * 5


def test_a_frozen_encoder_that_shares_nothing_leads_to_one_that_does(open_page: Open) -> None:
    for paradigm, seed in itertools.product(("stl", "mtl"), (1, 2)):
        for tasks in (("pos",), ("ner",)) if paradigm == "stl" else (("pos", "ner"),):
            finished_run(mtl(seed, paradigm=paradigm, tasks=tasks), 0.7 + seed / 100)
    app = open_page("compare")
    assert "Frozen without a BiLSTM, MTL shares nothing." in words(app)
    links: Any = app.get("page_link")
    (address,) = (link.proto.query_string for link in links if link.label == "Add a BiLSTM")
    assert "encoder=minilm%2Bbilstm" in address


def seven_rows() -> None:
    """STL, MTL and MRN with five λ on three seeds: with MRN all seeds gain alike, more by λ on dev."""
    for seed, level in enumerate((0.60, 0.64, 0.70), 1):
        for task in ("pos", "ner"):
            finished_run(mtl(seed, paradigm="stl", tasks=(task,)), level - 0.01 + (seed == 2) / 50)
        finished_run(mtl(seed), level)
        for place, value in enumerate((0.001, 0.003, 0.01, 0.03, 0.1)):
            finished_run(
                mtl(seed, paradigm="mrn", lambda_=value), level + 0.01 + seed / 500 + seed * place / 20000
            )


def test_a_row_a_method_decides_what_every_row_leaves_undecided(open_page: Open) -> None:
    seven_rows()
    app = open_page("compare")
    assert list(app.selectbox(key="of").options) == ["STL", "MTL", "MRN"]
    assert "MRN scores higher than MTL on pos (+1.44) and ner (+1.44)." in words(app)
    assert (
        "MRN: MRN λ=0.1, best of 5 on dev. "
        "A difference counts when p < 0.05 after correcting for the 3 pairs, within each task." in words(app)
    )
    assert list(sheets(app)[0].index)[2].replace("\\", "") == "MRN (best of 5 on dev: MRN λ=0.1)"
    app.segmented_control(key="rows").set_value("every").run()
    assert len(sheets(app)[0]) == 7
    assert "MRN λ=0.1 against MTL: undecided on pos and ner." in words(app)
    assert "corrected for all 21 tested pairs of rows on a task (Holm)" in words(app)


def test_a_method_unfolds_to_its_candidates(open_page: Open) -> None:
    seven_rows()
    app = open_page("compare")
    (fold,) = [fold for fold in app.expander if "best of 5" in fold.label]
    assert fold.label.replace("\\", "") == "MRN: best of 5 on dev, MRN λ=0.1"
    app.session_state["candidates_MRN"] = True
    app.run()
    candidates = sheets(app)[1]
    names = [name.replace("\\", "") for name in candidates.index]
    assert names == [f"MRN λ={value}" for value in (0.001, 0.003, 0.01, 0.03, 0.1)]
    assert [text.replace("\\", "") for text in candidates["Mean dev score"]] == [
        "66.07", "66.08", "66.09", "66.10", "**66.11**",
    ]  # fmt: skip
    (drawn,) = figures(app, "expected_best")
    assert drawn["data"][0]["y"][0] == pytest.approx(66.087, abs=1e-3)


def test_the_reader_chooses_the_family(open_page: Open) -> None:
    """Three tests decide less than the two against MTL alone."""
    seven_rows()
    app = open_page("compare", rows="Every row")
    assert "MRN λ=0.1 against MTL: undecided" in words(app)
    app.segmented_control(key="family").set_value("baseline").run()
    assert "MRN λ=0.1 scores higher than MTL on pos (+1.44) and ner (+1.44)." in words(app)
    assert "corrected for the 6 tested differences from MTL on a task (Holm)" in words(app)
    (caption,) = [caption for caption in app.caption if " Bold: " in caption.value]
    assert caption.value.endswith(" Bold: higher than MTL\\.")
    assert "higher than MTL: p over the seeds that both have, corrected for all rows" in caption.help.replace(
        "\\", ""
    )
    app.selectbox(key="to").select("STL").run()
    assert "corrected for the 6 tested differences from STL on a task (Holm)" in words(app)


def test_the_smallest_difference_that_matters_is_in_the_address(open_page: Open) -> None:
    seven_rows()
    app = open_page("compare", matters="3")
    assert app.number_input(key="matters").value == 3
    shown = words(app)
    assert "MRN against MTL: equivalent within 3 on pos and ner." in shown
    assert written(app)[0].startswith("equivalent within 3 +1.44 [+0.89, +1.99] p ")
    assert "smaller than 3 points" in shown
    app.number_input(key="matters").set_value(1.0).run()
    assert "MRN scores higher than MTL" in words(app)
    for impossible in ("-1", "much", "900", ""):
        assert open_page("compare", matters=impossible).number_input(key="matters").value == 0.05


def undecided_pair(*more: tuple[int, float]) -> None:
    """MTL and MRN on seeds whose differences are +1.5 points on average, and spread by two."""
    for seed, gain in ((1, 0.035), (2, -0.005), (3, 0.015), *more):
        finished_run(mtl(seed), 0.7 + seed / 100)
        finished_run(mtl(seed, paradigm="mrn"), 0.7 + seed / 100 + gain)


def test_an_undecided_difference_has_the_seeds_that_it_still_costs(
    open_page: Open, laboratory: Path, workers: list[str]
) -> None:
    undecided_pair()
    app = open_page("compare")
    offered = [button for button in app.button if str(button.key).startswith("deciding_")]
    assert [button.key for button in offered] == ["deciding_pos", "deciding_ner", "deciding_mean of tasks"]
    assert {button.label for button in offered} == {"Add 13 seeds"}
    assert words(app).count("About 13 more seeds (") == 3
    offered[1].click().run()
    queued = [run.config for run in Store.open().runs() if run.state.value == "queued"]
    assert {(run.paradigm, run.seed) for run in queued} == {
        (paradigm, seed) for paradigm in ("mtl", "mrn") for seed in range(4, 17)
    }
    assert workers
    assert not [button for button in app.button if str(button.key).startswith("deciding_")]


def test_more_than_fifty_seeds_have_no_button(open_page: Open) -> None:
    for seed, gain in ((1, 0.03), (2, -0.03), (3, 0.002)):
        finished_run(mtl(seed), 0.7 + seed / 100)
        finished_run(mtl(seed, paradigm="mrn"), 0.7 + seed / 100 + gain)
    app = open_page("compare")
    assert "More than 50 seeds" in words(app)
    assert not [button for button in app.button if str(button.key).startswith("deciding_")]


def test_seeds_until_decided_are_offered_where_something_is_undecided_and_skewed_differences_named(
    open_page: Open,
) -> None:
    undecided_pair()
    app = open_page("compare")
    assert "Add seeds until decided" in [button.label for button in app.button]
    assert "are skewed" not in words(app)
    assert "Add seeds until decided" not in [
        button.label for button in open_page("compare", on="Dev split").button
    ]
    undecided_pair((4, 0.0), (5, 0.001), (6, -0.001), (7, 0.3))
    assert "The differences on pos, ner and mean of tasks are skewed." in words(open_page("compare"))


def test_the_mean_of_tasks_has_a_line_and_a_family_of_its_own(open_page: Open) -> None:
    seven_rows()
    app = open_page("compare")
    assert written(app)[2].startswith("higher +1.44 [+0.89, +1.99] p ")
    assert "Mean of tasks: accuracy of pos and ner, over the seeds that all have." in words(app)
    tested = in_numbers(app)
    assert [task[:4] for task in tested["Task"]] == ["pos", "ner", "mean"] * 3
    (forest,) = figures(open_page("compare", rows="Every row", closer="Differences"), "compare_forest")
    assert [trace["name"] for trace in forest["data"]] == ["pos", "ner", "mean of tasks"]


def test_what_is_compared_stays_while_seeds_are_added_until_decided(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs of a look are a sweep of their own, the newest one."""
    undecided_pair()
    monkeypatch.setattr("dashboard.compare.until_decided.planned", lambda *_: None)
    monkeypatch.setattr("dashboard.compare.until_decided.start_deciding", lambda *_: None)
    app = press(open_page("compare"), "Add seeds until decided")
    for paradigm in ("mtl", "mrn"):
        finished_as(Store.open(), mtl(4, paradigm=paradigm), sweep="until-decided-1")
    assert len(sheets(app.run())[0]) == 2
    assert written(app)[0].startswith("+1.50")


@pytest.mark.parametrize("matters", ["-1", "much", "500", "nan"])
def test_an_impossible_difference_that_matters_is_a_sentence(
    filled: Filled, open_page: Open, matters: str
) -> None:
    app = open_page("compare", matters=matters)
    assert f"What matters is a number of points from 0 to 100, not '{matters}'; 0.05 is used." in words(app)
    assert "What matters is a number" not in words(open_page("compare", matters="0.5"))
