"""From the store to views: exact on what they hold."""

from __future__ import annotations

from core.config import RunConfig, comparison_key
from core.store import Store
from dashboard.shared import run_views
from jobs.naming import confounds, differing
from tests.pages.filled_store import TASKS, Filled


def config(paradigm: str = "mrn", seed: int = 1, **more: object) -> RunConfig:
    tasks = more.pop("tasks", ("pos",) if paradigm == "stl" else TASKS)
    return RunConfig.build(corpus="demo", paradigm=paradigm, seed=seed, tasks=tasks, **more)


# Names


def test_stl_runs_of_all_tasks_are_one_row() -> None:
    assert comparison_key(config("stl", tasks=("ner",))) == comparison_key(
        config("stl", tasks=("pos",), seed=4)
    )
    assert comparison_key(config("mtl")) != comparison_key(config("mtl", epochs=7))


def test_differing_names_what_differs_and_nothing_else() -> None:
    one, two = config("mrn", lambda_=0.01), config("mrn", lambda_=0.1)
    assert differing([one, config("mtl")]) == ["MRN λ 0.01", "MTL"]
    assert differing([one, two]) == ["MRN · λ 0.01", "MRN · λ 0.1"]
    assert differing([config("mtl"), config("mtl", fraction=0.05)]) == [
        "MTL · 100% of the data",
        "MTL · 5% of the data",
    ]


def test_a_budget_of_subwords_sets_runs_apart() -> None:
    plain, budget = config("mtl"), config("mtl", batch_tokens=512)
    assert differing([plain, budget]) == ["MTL", "MTL · batch tokens 512"]
    assert confounds(config("mrn"), budget) == confounds(budget, config("mrn")) == ("batch tokens",)
    assert confounds(config("mrn"), plain) == ()


# Runs


def test_progress(filled: Filled) -> None:
    store = Store.open()
    live, waiting = store.run(filled.live[0]), store.run(filled.queued[1])
    # 340 steps at 0.035 s
    assert run_views.progress_text(store, live) == "Step 260 of 600, epoch 4 of 8, 12 s left"
    store.pause_queue()
    assert (
        run_views.progress_text(store, waiting) == "The queue is paused: it starts when the queue is resumed."
    )


def test_tasks_keep_their_colour_as_runs_are_added(finished: Filled) -> None:
    store = Store.open()
    before = run_views.tasks_in_order(store.runs())
    store.add_runs([config("stl", tasks=("upos",)), config("mtl", tasks=("ner", "upos"))])
    after = run_views.tasks_in_order(store.runs())
    assert before == list(TASKS)
    assert after[: len(before)] == before


def test_log_tail_is_the_end(tmp_path: object) -> None:
    path = f"{tmp_path}/log"
    with open(path, "w", encoding="utf-8") as log:
        log.writelines(f"line {i}\n" for i in range(5000))
    tail = run_views.log_tail(path)
    assert tail.endswith("line 4999\n")
    assert tail.startswith("line ")
    assert len(tail) <= 16_384
    assert run_views.log_tail(None) == run_views.log_tail(f"{tmp_path}/none") == ""
