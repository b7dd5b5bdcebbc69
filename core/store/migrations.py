"""Brings a store's tables up to date when it is opened."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, func, inspect, select, text

from core.errors import StoreError
from core.store.schema import metadata, versions

HEAD = "0008"
"""The present revision. A new store is made at it; `_STEPS` bring older ones to it."""

_FIGURES_0006 = ("accuracy", "precision", "recall", "f1_conll", "f1_strict", "seqeval_f1", "spearman")

# Columns are added, tables never rebuilt: SQLite would first drop the rows, and all that depend on them.
# SQL that SQLite and PostgreSQL both take.
_STEPS: dict[str, tuple[str, ...]] = {
    "0002": (
        "ALTER TABLE runs ADD COLUMN archived_at DOUBLE PRECISION",
        "ALTER TABLE runs ADD COLUMN note TEXT DEFAULT '' NOT NULL",
        "ALTER TABLE runs ADD COLUMN tags TEXT DEFAULT '[]' NOT NULL",
    ),
    "0003": (
        "ALTER TABLE runs ADD COLUMN priority INTEGER DEFAULT '0' NOT NULL",
        "ALTER TABLE runs ADD COLUMN retries INTEGER DEFAULT '0' NOT NULL",
        "ALTER TABLE runs ADD COLUMN waiting_for TEXT",
        "ALTER TABLE runs ADD COLUMN engine_job VARCHAR(200)",
        "ALTER TABLE runs ADD COLUMN saved_step INTEGER",
        "CREATE INDEX ix_runs_queue ON runs (state, priority DESC, id)",
        "CREATE TABLE settings (name VARCHAR(300) NOT NULL, value TEXT NOT NULL, "
        "changed_at DOUBLE PRECISION NOT NULL, CONSTRAINT pk_settings PRIMARY KEY (name))",
    ),
    "0004": ("ALTER TABLE scores ADD COLUMN spearman DOUBLE PRECISION",),
    # Scores that are 0/0 were stored as 0.
    "0005": (
        # SQLite cannot drop NOT NULL from a column.
        "ALTER TABLE scores ADD COLUMN new_score DOUBLE PRECISION",
        "ALTER TABLE scores ADD COLUMN new_accuracy DOUBLE PRECISION",
        "UPDATE scores SET new_score = score, new_accuracy = accuracy WHERE tokens > 0",
        # No span is annotated. Runs from the record of a study lack reports, and have no predictions.
        "UPDATE scores SET new_score = NULL, precision = NULL, recall = NULL, f1_conll = NULL, "
        "f1_strict = NULL WHERE score_name = 'f1_conll' AND score = 0 "
        "AND REPLACE(report, '\"support\": 0', '') NOT LIKE '%\"support\"%' "
        "AND EXISTS (SELECT 1 FROM predictions WHERE predictions.run_id = scores.run_id "
        "AND predictions.split = scores.split AND predictions.task = scores.task)",
        "ALTER TABLE scores DROP COLUMN score",
        "ALTER TABLE scores DROP COLUMN accuracy",
        "ALTER TABLE scores RENAME COLUMN new_score TO score",
        "ALTER TABLE scores RENAME COLUMN new_accuracy TO accuracy",
    ),
    # The figures beside the headline become rows. A correlation never had an accuracy: 0 was stored.
    "0006": (
        "CREATE TABLE figures (run_id INTEGER NOT NULL, split VARCHAR(10) NOT NULL, "
        "task VARCHAR(200) NOT NULL, name VARCHAR(40) NOT NULL, value DOUBLE PRECISION NOT NULL, "
        "CONSTRAINT pk_figures PRIMARY KEY (run_id, split, task, name), "
        "CONSTRAINT fk_figures_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, "
        "CONSTRAINT ck_figures_split CHECK (split IN ('train', 'dev', 'test')))",
        *(
            f"INSERT INTO figures (run_id, split, task, name, value) "  # noqa: S608 (our own names)
            f"SELECT run_id, split, task, '{name}', {name} FROM scores "
            f"WHERE {name} IS NOT NULL AND NOT ('{name}' = 'accuracy' AND score_name = 'pearson')"
            for name in _FIGURES_0006
        ),
        *(f"ALTER TABLE scores DROP COLUMN {name}" for name in _FIGURES_0006),
    ),
    "0007": ("ALTER TABLE runs ADD COLUMN threads INTEGER",),
    "0008": (
        "CREATE TABLE plans (key VARCHAR(40) NOT NULL, plan TEXT NOT NULL, "
        "declared_at DOUBLE PRECISION NOT NULL, ends_at DOUBLE PRECISION, "
        "CONSTRAINT pk_plans PRIMARY KEY (key))",
    ),
}
# Any number that no other program on the same database would use.
_LOCK = 0x4D524E4C  # "MRNL"


def upgrade(engine: Engine, name: str) -> None:
    """Creates or upgrades the tables. Processes that race on a new store wait for one another.

    `name` is the store's name for errors. Raises StoreError where a newer MRN Lab made the store.
    """
    with engine.connect() as connection:
        if _revision(connection, name) == HEAD:
            return
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        revision = _revision(connection, name)
        if revision is None:
            metadata.create_all(connection)
            versions.create(connection, checkfirst=True)
            connection.execute(versions.insert(), {"version_num": HEAD})
            return
        for step in sorted(step for step in _STEPS if step > revision):
            for statement in _STEPS[step]:
                connection.execute(text(statement))
        connection.execute(versions.update().values(version_num=HEAD))


def _revision(connection: Connection, name: str) -> str | None:
    """The revision of the tables; None where there are none. Raises StoreError for one of a newer version."""
    if not inspect(connection).has_table(versions.name):
        return None
    revision = connection.scalar(select(versions.c.version_num))
    if revision is not None and revision > HEAD:
        raise StoreError(
            f"The store {name} was made by a newer MRN Lab (revision {revision}); update this one."
        )
    return revision
