"""Task embeddings on the Relations page: cosines over training, of MTL as of MRN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.records import Snapshot, StepMetrics
from core.store import Store
from core.transfer.cosines import embedding_curve
from dashboard.relations.sentences import read_embeddings
from tests.making import claimed, relations, run_facts
from tests.pages.conftest import Open, words
from tests.pages.matrices import matrix, shown

STEPS = (4, 8, 12)


def measured_run(*cosines: float, **values: Any) -> int:
    """A running MTL run of pos and ner with these cosines at the first of STEPS."""
    store = Store.open()
    run_id = claimed(store, **{"paradigm": "mtl", "task_embedding": "input"} | values)
    store.set_facts(run_id, run_facts(total_steps=STEPS[-1], meet=((True, False), (False, True))))
    store.add_metrics(
        run_id,
        [
            StepMetrics(step, step / 10, 1.0, {embedding_curve("ner", "pos"): value})
            for step, value in zip(STEPS, cosines, strict=False)
        ],
    )
    store.close()
    return run_id


def test_an_mtl_run_shows_its_cosines_at_every_step(open_page: Open) -> None:
    """Nothing of priors: no bars, no hatching, no covariances in numbers."""
    run = measured_run(0.0, 0.25, 0.03)
    app = open_page("relations", run=str(run))
    seen = shown(app)
    (panel,), (values,) = seen.frame["panels"], seen.panels
    assert seen.frame["steps"] == list(STEPS)
    np.testing.assert_allclose(values[:, 0, 1], (0.0, 0.25, 0.03), atol=1e-4)
    np.testing.assert_allclose(values[:, [0, 1], [0, 1]], 1, atol=1e-4)
    assert (panel["title"], panel["scale"], panel["impossible"]) == ("", "cosine", [])
    assert not panel["variances"]
    assert "**pos** and **ner** embeddings are nearly orthogonal (0.03)." in words(app)
    assert "Task embeddings: input." in words(app)
    assert "**pos** and **ner** over training: 0.030" in words(app)
    assert not any("Effective rank" in frame.value.columns for frame in app.dataframe)
    earlier = open_page("relations", run=str(run), step="8")
    assert "At step 8: Task embeddings: **pos** and **ner** weakly alike (0.25)." in words(earlier)
    app.session_state["how_to_read"] = True
    (equation,) = app.run().latex
    assert r"e_i^\top e_j" in equation.value


def test_mrn_with_embeddings_has_them_beside_its_relations(open_page: Open) -> None:
    run = measured_run(0.5, paradigm="mrn")
    store = Store.open()
    store.add_snapshot(run, Snapshot(10, 1.0, relations()))
    store.close()
    assert shown(open_page("relations", run=str(run))).frame["steps"] == [10]
    app = open_page("relations", run=str(run), mode="Embeddings")
    assert shown(app).frame["steps"] == [4]
    assert "strongly alike (0.50)" in words(app)


def test_runs_beside_each_other_and_their_mean(open_page: Open) -> None:
    first, second = (measured_run(0.0, 0.1, value, seed=seed) for seed, value in ((1, 0.2), (2, 0.4)))
    runs = f"{first},{second}"
    beside = shown(open_page("relations", run=runs, view="Side by side"))
    assert beside.titles == [f"A: {first} · input · seed 1", f"B: {second} · input · seed 2", "A − B"]
    assert beside.panels[2][-1, 0, 1] == pytest.approx(-0.2, abs=1e-3)
    app = open_page("relations", run=runs, view="Mean over seeds")
    assert len(shown(app).panels) == 1
    assert "moderately alike (0.30). The sign holds in each of the 2 seeds." in words(app)


def test_a_run_without_them_is_left_out_and_mtl_has_no_other_mode(open_page: Open) -> None:
    plain = measured_run(paradigm="mrn", task_embedding="none")
    measured = measured_run(0.7)
    app = open_page("relations", run=f"{plain},{measured}", mode="Embeddings", view="Side by side")
    assert len(shown(app).panels) == 1
    assert "One run is chosen" in words(app)
    (modes,) = (group for group in app.get("button_group") if "Embeddings" in str(group.proto))
    assert "Labels" in str(modes.proto)
    alone = open_page("relations", run=str(measured))
    (modes,) = (group for group in alone.get("button_group") if "Embeddings" in str(group.proto))
    assert "Labels" not in str(modes.proto)


def test_before_the_first_step_it_says_so(open_page: Open) -> None:
    app = open_page("relations", run=str(measured_run()))
    assert "The first snapshot comes when training begins." in words(app)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (matrix(2, _01=0.03), "a and b embeddings are nearly orthogonal (0.03)."),
        (matrix(2, _01=-0.6), "Task embeddings: a and b strongly opposed (−0.60)."),
        (
            matrix(3, _01=0.02, _12=-0.05),
            "All task embeddings are nearly orthogonal: b and c come nearest to each other (−0.05).",
        ),
        (
            matrix(3, _01=0.4, _12=-0.15),
            "Task embeddings: a and b moderately alike (0.40) and b and c weakly opposed (−0.15). All others "
            "are nearly orthogonal.",
        ),
        (
            matrix(4, _01=0.9, _02=0.8, _03=0.7, _12=0.2, _13=0.3),
            "Task embeddings: a and b almost fully alike (0.90), a and c strongly alike (0.80) and a and d "
            "strongly alike (0.70). 2 more pairs are weaker.",
        ),
    ],
)
def test_what_the_cosines_say(values: np.ndarray, sentence: str) -> None:
    assert read_embeddings("abcd"[: len(values)], values[None]).replace("**", "") == sentence
