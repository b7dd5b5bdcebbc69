"""Stars from one to five as a kind of task: labels of texts in the order of their numbers."""

from tests.recipes.edits import Edit, Recipe

_CLASS = '''\
class TextStars(_TextTask):
    """Stars of whole texts: labels in the order of their numbers."""

    scheme = "stars"
    title = "Stars of a text"
    role = "stars"
    role_title = "stars of a text"
    reads = "text"

    def rows(self, labels: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(set(labels), key=lambda label: (len(label), label)))


'''
_TEST = '''\
"""Stars of texts are read, and learned in the order of their numbers."""

from pathlib import Path

from core.corpora import load
from core.tasks import KINDS


def test_stars_are_read(tmp_path: Path) -> None:
    rows = "text\\tstars\\n" + "".join(f"Good number {star}\\t{star}\\n" for star in (10, 2, 1))
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text(rows, encoding="utf-8")
    corpus = load(str(tmp_path))
    (task,) = corpus.tasks
    assert (task.scheme, task.labels) == ("stars", ("1", "2", "10"))
    assert KINDS[task.scheme].item == "text"
    (reading,) = corpus.readings
    assert [column.taken_for for column in reading.columns] == ["text", "stars of a text: 3 labels"]
'''

RECIPE = Recipe(
    "Add a kind of task",
    (
        Edit("core/tasks/schemes.py", '"stars", ', after='Scheme = Literal["iob2", '),
        Edit(
            "core/tasks/kinds.py",
            _CLASS,
            after='    role_title = "label of a text"\n    reads = "text"\n\n\n',
        ),
        Edit("core/tasks/kinds.py", "TextStars(), ", after="SentenceLabels(), TextLabels(), "),
        Edit(
            "core/corpora/layout/rules.py",
            '            if column.name == "stars" and len(texts) == 1:\n'
            '                schemes[column.name] = "stars"\n',
            after='            schemes[column.name] = "score" if candidate.is_number else "text"'
            ' if len(texts) == 1 else "pair"\n',
        ),
        Edit(
            "docs/texts.md",
            "\nA column `stars` of texts has stars.\n",
            after="show all scores times 100.\n",
        ),
        Edit("tests/unit/corpora/test_stars.py", _TEST),
    ),
)
