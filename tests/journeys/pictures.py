"""Pictures of every page, over runs that are trained for them: `make pictures`, or
`python -m tests.journeys.pictures FOLDER --widths 1440,1024,390 --dark --home HOME`.

Without a HOME that has runs from an earlier call, 47 small runs are trained first, in some minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from core.store import RunState, Store
from tests.journeys.browser import ROOT, browser_page, running_app, settle

_DEMO = ("--corpus", "demo", "--tasks", "pos,chunk,ner")
_LAUNCHES = (
    # Relations, Curves and Compare: frozen features, three paradigms, five seeds.
    (*_DEMO, "--paradigm", "stl,mtl,mrn", "--encoder-training", "frozen", "--seeds", "1-5", "--epochs", "6"),
    # Relations of labels: two tag sets on the same words.
    ("--corpus", "demo-both-pos", "--paradigm", "mtl,mrn", "--encoder-training", "frozen",
     "--seeds", "1-5", "--epochs", "20"),
    # Transfer: every pair of tasks over a shared BiLSTM.
    *((
        "--corpus", "demo", "--tasks", tasks, "--paradigm", paradigm, "--encoder", "bilstm",
        "--seeds", "1-2", "--epochs", "2", "--fraction", "0.3",
    ) for paradigm, tasks in (
        ("stl", "pos,chunk,ner"), ("mtl", "pos,chunk"), ("mtl", "pos,ner"), ("mtl", "chunk,ner"),
    )),
)  # fmt: skip


def train(home: Path) -> None:
    """Train the runs that the pages show."""
    environment = os.environ | {"MRNLAB_HOME": str(home)}
    for arguments in _LAUNCHES:
        command = [sys.executable, "-c", "from jobs.cli import main; main()", "launch", *arguments, "--wait"]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def links(store: Store) -> dict[str, str]:
    """The pages by the names of their pictures."""
    runs = store.runs(states={RunState.SUCCEEDED})
    demo = [run for run in runs if run.config.corpus == "demo" and run.config.encoder == "minilm"]
    chosen = ",".join(str(run.id) for run in demo)
    mrn = ",".join(str(run.id) for run in demo if run.config.paradigm == "mrn")
    labels = ",".join(
        str(run.id) for run in runs if run.config.corpus != "demo" and run.config.paradigm == "mrn"
    )
    return {
        "launch": "launch",
        "runs": f"runs?run={chosen}",
        "run": f"run?id={mrn.split(',')[0]}",
        "curves": f"curves?run={chosen}",
        "compare": f"compare?run={chosen}",
        "studies": "studies",
        "study": "studies?study=priors",
        "transfer": "transfer",
        "tasks": f"relations?run={mrn}",
        "relations": f"relations?run={labels}&mode=label",
        "tag": f"tag?run={mrn.split(',')[0]}",
    }


def photograph(page: Page, address: str, path: Path, width: int) -> None:
    """One page, whole, once it stands still."""
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(address)
    settle(page)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1500)  # charts draw themselves after the script has ended
    settle(page)
    page.screenshot(path=path, full_page=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--home", type=Path, help="a laboratory of an earlier call, or a new folder for it")
    parser.add_argument("--widths", type=lambda text: list(map(int, text.split(","))), default=[1440])
    parser.add_argument("--dark", action="store_true", help="in both themes")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these pages")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.home or Path(folder)
        if not (home / "runs.db").exists():
            train(home)
        store = Store.open(f"sqlite:///{home / 'runs.db'}")
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
                            photograph(page, f"{app}/{pages[name]}", path, width)


if __name__ == "__main__":
    main()
