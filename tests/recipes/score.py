"""The balanced accuracy of labels of words as a score."""

from tests.recipes.edits import Edit, Recipe

_FIGURE = """\
    gold_count, _, both = _label_counts(gold, predicted).T
    recalls = both[gold_count > 0] / gold_count[gold_count > 0]
    figures["balanced_accuracy"] = float(recalls.mean()) if len(recalls) else math.nan
"""
_TEST = '''\
"""The balanced accuracy is the mean recall of the labels, and undefined where nothing is annotated."""

import math

import pytest

from core.tasks import KINDS, score_task


def test_balanced_accuracy() -> None:
    score = score_task("pos", "plain", [["N", "N", "N", "V"]], [["N", "N", "V", "V"]])
    assert score.secondary("balanced_accuracy") == pytest.approx((2 / 3 + 1) / 2)
    assert KINDS["plain"].secondary_scores(score)["Balanced accuracy"] == score.secondary("balanced_accuracy")
    assert math.isnan(score_task("pos", "plain", [], []).secondary("balanced_accuracy") or 0)
'''

RECIPE = Recipe(
    "Add a score of a task",
    (
        Edit(
            "core/tasks/scores.py",
            '    "balanced_accuracy": SecondaryScore("Balanced accuracy"),\n',
            after='    "seqeval_f1": SecondaryScore("seqeval F1"),\n',
        ),
        Edit(
            "core/tasks/scores.py", _FIGURE, after='    figures = {"accuracy": _accuracy(gold, predicted)}\n'
        ),
        Edit(
            "core/tasks/kinds.py",
            ', "balanced_accuracy"',
            after='    secondary = ("precision", "recall", "accuracy"',
        ),
        Edit(
            "docs/texts.md",
            "Labels of words have their balanced accuracy beside it.\n\n",
            after="show all scores times 100.\n\n",
        ),
        Edit("tests/unit/tasks/test_balanced_accuracy.py", _TEST),
    ),
    pins="test",
)
