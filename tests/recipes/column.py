"""The attempts of a run as a column of `mrnlab runs` and of the page."""

from tests.recipes.edits import Edit, Recipe

_TEST = '''\
"""The attempts stand under their heads, in the terminal and on the page."""

from core.store import RunState
from dashboard.runs.columns import columns_of
from dashboard.runs.views import page_of
from tests.making import claimed
from tests.unit.cli.conftest import Laboratory


def test_the_attempts_stand_under_their_heads(lab: Laboratory) -> None:
    claimed(lab.store, RunState.SUCCEEDED)
    again = claimed(lab.store, RunState.FAILED, seed=2)
    lab.store.requeue(again)
    head, *rows = lab.answer("runs").splitlines()
    place = head.index("attempt")
    assert [row[place:].split()[0] for row in rows] == ["2", "1"]
    for grouped, values in ((True, [2]), (False, [2, 1])):
        page = page_of(lab.store, lab.store.runs(), grouped=grouped, sort="new", page=1)
        (table,) = page.tables
        columns = columns_of(table, "test", ())
        assert list(columns["Attempts"].values) == values
'''

RECIPE = Recipe(
    "Add a column of runs",
    (
        Edit(
            "dashboard/runs/columns.py",
            '    _Entry("Attempts", lambda lines, _: _numbers(list(map(_attempts, lines)))),\n',
            after="_COLUMNS = (\n",
        ),
        Edit(
            "dashboard/runs/columns.py",
            "def _attempts(line: Line) -> int:\n    return max(run.attempt for run in line.runs)\n\n\n",
            after='_Rows = Literal["configurations", "runs"]\n\n\n',
        ),
        Edit(
            "jobs/cli/listing.py",
            '    _Column("attempt", lambda row: row.run.attempt),\n',
            after="_COLUMNS = (\n",
        ),
        Edit("tests/unit/cli/test_attempts.py", _TEST),
    ),
)
