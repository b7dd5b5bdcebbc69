"""How long a newcomer waits for an answer, in a real browser: from the first click to the verdict.

`python -m tests.benchmarks.walks [--walks card,own,sweep]` starts the app over an empty laboratory for each
walk, and prints the seconds since its first click at each place:

- `card`: README's main job. *Try it* on the first card, *Compare* when its runs have ended, a tagged
  sentence.
- `own`: the reader's own files, uploaded, with the form as it opens.
- `sweep`: five values of λ, with MTL: which one, and does it help?

The last line is JSON, the seconds to the verdict by walk.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from playwright.sync_api import Page, expect

from core.corpora.loading import load
from core.corpora.types import Sentence, Split
from tests.benchmarks._harness import arguments, print_json
from tests.journeys.browser import browser_page, go, picture, running_app, settle

_PATIENCE_MS = 1_200_000
_SENTENCES: Mapping[Split, int] = {"train": 300, "dev": 100, "test": 200}
_COLUMNS = ("pos", "ner")


class Walk:
    """A page that is walked, and its stop-watch, which the first click starts."""

    def __init__(self, name: str, page: Page, address: str, home: Path, share: float = 1) -> None:
        self.name, self.page, self.address, self.home, self.share = name, page, address, home, share
        self._started = 0.0

    def click(self, button: str) -> None:
        self._started = self._started or time.monotonic()
        self.page.get_by_test_id("stMain").get_by_role("button", name=re.compile(button)).first.click()

    def seconds(self, place: str) -> float:
        """Seconds since the first click, printed with a picture of the place."""
        passed = time.monotonic() - self._started
        answer = self.page.locator("[class*=st-key-answer_] p")
        text = answer.first.inner_text() if answer.count() else ""
        print(f"{self.name:6} {passed:6.1f} s  {place:20} {text}", flush=True)
        picture(self.page, f"walk-{self.name}-{place.replace(' ', '-')}")
        return passed

    def fill(self, label: str, text: str) -> None:
        field = self.page.get_by_role("textbox", name=label)
        field.fill(text)
        field.press("Enter")
        settle(self.page)

    def launch_and_compare(self) -> float:
        """Presses *Launch*, waits for the runs to end, presses *Compare*: seconds to the verdict."""
        self._started = self._started or time.monotonic()
        self.page.locator(".st-key-launch button").click()
        self.seconds("launched")
        return self.compare()

    def compare(self) -> float:
        button = self.page.get_by_test_id("stBaseButton-primary").filter(has_text="Compare")
        button.first.click(timeout=_PATIENCE_MS)
        expect(self.page.get_by_role("heading", level=1, name="Compare", exact=True)).to_be_visible()
        expect(self.page.locator("[class*=st-key-answer_] p").first).to_be_visible()
        return self.seconds("verdict")


def card(walk: Walk) -> float:
    walk.page.goto(walk.address)
    settle(walk.page)
    walk.click("Try it")
    verdict = walk.compare()
    go(walk.page, "Tag")
    walk.page.get_by_label("Text", exact=True).press("Control+Enter")
    expect(walk.page.locator(".block .word").first).to_be_visible()
    walk.seconds("tagged sentence")
    return verdict


def own(walk: Walk) -> float:
    folder = walk.home / "mine"
    folder.mkdir()
    corpus = load("demo")
    for split, count in _SENTENCES.items():
        text = "\n\n".join(map(_lines, corpus.split(split)[: int(walk.share * count)]))
        (folder / f"{split}.conll").write_text(text + "\n", encoding="utf-8")
    walk.page.goto(walk.address)
    settle(walk.page)
    walk.click("Use my data")
    walk.page.locator("input[type=file]").set_input_files(list(folder.iterdir()))
    expect(walk.page.get_by_role("heading", name=re.compile("^This makes"))).to_be_visible()
    settle(walk.page)
    return walk.launch_and_compare()


def _lines(sentence: Sentence) -> str:
    rows = zip(sentence.tokens, *(sentence.labels[task] for task in _COLUMNS), strict=True)
    return "\n".join(map("\t".join, rows))


def sweep(walk: Walk) -> float:
    walk.page.goto(walk.address)
    settle(walk.page)
    walk.click("STL$")  # a reader who asks for λ compares with MTL
    settle(walk.page)
    walk.fill("λ, strength of the prior", "0.001, 0.003, 0.01, 0.03, 0.1")
    return walk.launch_and_compare()


WALKS: dict[str, Callable[[Walk], float]] = {"card": card, "own": own, "sweep": sweep}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--walks", default=",".join(WALKS), help="which walks, with commas between")
    args = parser.parse_args()
    names = ["own"] if args.quick else args.walks.split(",")
    verdicts = {}
    for name in names:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            with running_app(home) as address, browser_page() as (page, _, _):
                verdicts[f"{name}_s"] = round(
                    WALKS[name](Walk(name, page, address, home, 0.1 if args.quick else 1)), 1
                )
    print_json(verdicts)


if __name__ == "__main__":
    main()
