"""Alignments on the pages: what cannot be related, and mappings in the form."""

from __future__ import annotations

import dataclasses
import json

from core.store import Store
from core.training.events import Snapshot
from tests.making import claimed, relations, run_facts
from tests.pages.conftest import Open


def test_groups_of_tasks_that_never_meet_are_hatched_and_named(open_page: Open) -> None:
    plain = run_facts().tasks
    facts = run_facts(
        alignment="exact",
        tasks=(*plain, dataclasses.replace(plain[0], name="chunk")),
        meet=((True, False, True), (False, True, False), (True, False, True)),
    )
    store = Store.open()
    run_id = claimed(store, alignment="exact", tasks=("pos", "ner", "chunk"))
    store.set_facts(run_id, facts)
    store.add_snapshot(run_id, Snapshot(1, 0.1, relations(tasks=3)))
    store.close()
    app = open_page("relations", run=str(run_id))
    (told,) = [one.value for one in app.info]
    assert "the rows of these groups of tasks (pos, chunk; ner) never meet" in told
    assert "relations of tasks between groups stay at zero" in told
    (matrix,) = [
        json.loads(json.loads(one.proto.json)["figure"])
        for one in app.get("bidi_component")
        if json.loads(one.proto.json or "{}").get("filename", "").startswith("matrix_")
    ]
    # ner with pos and with chunk, on both sides of the diagonal.
    assert len([trace for trace in matrix["data"] if trace["type"] == "bar"]) == 4
