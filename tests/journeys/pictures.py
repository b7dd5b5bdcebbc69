"""Pictures of every page, over runs that are trained for them: `make pictures`, or
`python -m tests.journeys.pictures FOLDER --widths 1440,1024,390 --dark --home HOME`.

Without a HOME that has runs from an earlier call, 56 small runs are trained first, in some minutes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from core.config import RunConfig
from core.recording.owner import this_process
from core.store import RunState, Store
from dashboard.shared.presets import SCARCE, TRY_IT
from tests.journeys.browser import browser_page, running_app, settle
from tests.trained import train_runs

_LABELS = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "encoder": "minilm"}
_LABELS |= {"encoder_training": "frozen", "paradigm": "mrn", "learn": ("task", "label", "feature")}
_SENTENCE = "Police in Rome said that heavy rain will fall on Monday ."
_PAIRS = {"corpus": "demo", "encoder": "bilstm", "epochs": 2, "fraction": 0.3}


def runs_to_train() -> tuple[RunConfig, ...]:
    """Launch's first two cards; MRN with all covariances; each of three tasks alone and in every pair."""
    tasks = _LABELS["tasks"]
    of_labels = [RunConfig.build(**_LABELS, epochs=8, seed=seed) for seed in (1, 2, 3)]
    groups = [("stl", (task,)) for task in tasks] + [("mtl", pair) for pair in combinations(tasks, 2)]
    of_pairs = [
        RunConfig.build(**_PAIRS, paradigm=paradigm, tasks=group, seed=seed)
        for paradigm, group in groups
        for seed in (1, 2, 3)
    ]
    return (*of_pairs, *of_labels, *SCARCE.configs, *TRY_IT.configs)


def links(store: Store) -> dict[str, str]:
    """The pages by the names of their pictures."""
    runs = store.runs(states={RunState.SUCCEEDED})

    def numbers(is_wanted: Callable[[RunConfig], bool]) -> str:
        return ",".join(str(run.id) for run in runs if is_wanted(run.config))

    card = numbers(TRY_IT.configs.__contains__)
    labels = numbers(lambda config: "label" in (config.learn or ()) and config.corpus == "demo")
    tasks = numbers(lambda config: config in SCARCE.configs and config.alignment == "exact")
    return {
        "launch": "launch",
        "runs": f"runs?run={card}",
        "run": f"run?id={labels.split(',')[0]}",
        "curves": f"curves?run={card}",
        "compare": f"compare?run={card}",
        "studies": "studies",
        "study": "studies?study=priors",
        "simulator": "studies?study=simulator&part=Balanced",
        "transfer": "transfer",
        "tasks": f"relations?run={tasks}",
        "relations": f"relations?run={labels}&mode=Labels",
        "tag": f"tag?{urlencode({'run': card, 'text': _SENTENCE})}",
    }


def photograph(page: Page, address: str, path: Path, width: int, *, is_whole: bool = False) -> None:
    """One page once it stands still: its first 1,000 pixels, or all of it."""
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(address)
    settle(page)
    page.wait_for_load_state("networkidle")
    for part in ("stSkeleton", "stSpinner"):  # what the browser has yet to read, and the server to compute
        expect(page.get_by_test_id(part)).to_have_count(0)
    page.wait_for_timeout(1500)  # charts draw themselves after the script has ended
    expect(page.get_by_text("models have answered")).to_have_count(0)
    settle(page)
    if is_whole:  # the page scrolls within the window, so the window is made as high as the page
        height = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
        page.set_viewport_size({"width": width, "height": max(1000, height)})
        page.wait_for_timeout(1500)  # what is drawn once it is seen
    page.screenshot(path=path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--home", type=Path, help="a laboratory of an earlier call, or a new folder for it")
    parser.add_argument("--widths", type=lambda text: list(map(int, text.split(","))), default=[1440])
    parser.add_argument("--dark", action="store_true", help="in both themes")
    parser.add_argument("--whole", action="store_true", help="whole pages, not their first 1,000 pixels")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these pages")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.home or Path(folder)
        os.environ["MRNLAB_HOME"] = str(home)
        is_new = not (home / "runs.db").exists()
        store = Store.open()
        if is_new:
            train_runs(store, runs_to_train(), owner=this_process())
        pages = links(store)
        store.close()
        arguments.folder.mkdir(parents=True, exist_ok=True)
        with running_app(home) as app:
            for dark in (False, True) if arguments.dark else (False,):
                with browser_page(dark=dark) as (page, _, _):
                    for name in arguments.only or pages:
                        for width in arguments.widths:
                            suffix = f"-{width}" * (len(arguments.widths) > 1) + "-dark" * dark
                            path = arguments.folder / f"{name}{suffix}.png"
                            photograph(page, f"{app}/{pages[name]}", path, width, is_whole=arguments.whole)


if __name__ == "__main__":
    main()
