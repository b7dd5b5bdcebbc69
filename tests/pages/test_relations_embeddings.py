"""The task embeddings on the Relations page: cosines over training, of MTL as of MRN."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.events import Snapshot
from core.metrics import StepMetrics
from core.store import Store
from core.transfer.cosines import embedding_curve
from tests.making import claimed, relations, run_facts
from tests.pages.conftest import Open, words
from tests.pages.matrices import listed, shown

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
    assert (panel["note"], panel["scale"], panel["impossible"]) == ("seed 1", "cosine", [])
    assert not panel["variances"]
    assert "pos and ner embeddings are nearly orthogonal (0.03)." in words(app)
    assert "Task embeddings: input." in words(app)
    assert listed(app).to_numpy().tolist() == [["pos", "ner", "0.03"]]
    assert not any("Effective rank" in frame.value.columns for frame in app.dataframe)
    earlier = open_page("relations", run=str(run), step="8")
    assert "At step 8: Task embeddings: pos and ner weakly alike (0.25)." in words(earlier)
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


def test_seeds_have_a_mean_of_their_embeddings(open_page: Open) -> None:
    runs = [measured_run(0.0, 0.1, value, seed=seed) for seed, value in ((1, 0.2), (2, 0.4))]
    app = open_page("relations", run=",".join(map(str, runs)))
    assert len(shown(app).panels) == 1
    assert "moderately alike (0.30). The sign holds in each of the 2 seeds." in words(app)


def test_a_run_without_them_is_left_out_and_mtl_has_no_other_mode(open_page: Open) -> None:
    plain = measured_run(paradigm="mrn", task_embedding="none")
    measured = measured_run(0.7)
    app = open_page("relations", run=f"{plain},{measured}", mode="Embeddings")
    assert len(shown(app).panels) == 1
    (modes,) = (group for group in app.get("button_group") if "Embeddings" in str(group.proto))
    assert "Labels" in str(modes.proto)
    alone = open_page("relations", run=str(measured))
    (modes,) = (group for group in alone.get("button_group") if "Embeddings" in str(group.proto))
    assert "Labels" not in str(modes.proto)


def test_before_the_first_step_it_says_so(open_page: Open) -> None:
    app = open_page("relations", run=str(measured_run()))
    assert "The first snapshot comes when training begins." in words(app)
