"""Brings a database to the tables that this release knows. The migrations themselves are in the folder `migrations`.

In a checkout that folder stands beside the packages; an installed patchlog carries a copy inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from patchlog.errors import StorageError, UsageError
from patchlog.log.database import Database
from patchlog.log.tables import REVISION

__all__ = ["MIGRATIONS", "alembic_on", "check_down", "check_migrated", "current_revision", "migrate", "migrate_down"]

_PACKAGE: Final = Path(__file__).parents[1]
MIGRATIONS: Final = next(
    (folder for folder in (_PACKAGE / "migrations", _PACKAGE.parent / "migrations") if folder.is_dir()),
    _PACKAGE / "migrations",
)

# Any number, so long as all processes that migrate take the same.
_MIGRATION_LOCK: Final = 0x70617463686C6F67

_LOST: Final = (
    ("api_key", "0002", "API key"),
    ("snapshot", "0003", "snapshot"),
    ("consumer", "0003", "consumer"),
    ("rdf_delta_source", "0004", "address of RDF Delta"),
)
"""Tables with what people made, the migration that brought each, and what a row is."""
_BEGINS_WITH_SNAPSHOT: Final = (
    "SELECT name FROM log WHERE first_version > 1 "
    "OR EXISTS (SELECT 1 FROM snapshot WHERE snapshot.log = log.key AND snapshot.version = 0) ORDER BY name"
)


def current_revision(database: Database) -> str | None:
    """The migration that the database is at; None before the first."""
    with database.writing() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def check_migrated(database: Database) -> None:
    """Raise StorageError where the tables are not those of this release."""
    found = current_revision(database)
    if found is not None and found > REVISION:
        raise StorageError(
            f"the tables of the database are at migration {found}, those of a newer release; this one knows "
            f"{REVISION}: run the newer release, or let it migrate them down"
        )
    if found != REVISION:
        raise StorageError(f"the tables of the database are at migration {found}, and not at {REVISION}: migrate it")


def migrate(database: Database) -> None:
    """Migrate the database to the tables of this release. Several processes may try at once.

    Raises StorageError where the tables are those of a newer one.
    """
    if (current_revision(database) or "") < REVISION:
        with alembic_on(database) as config:
            command.upgrade(config, REVISION)
    check_migrated(database)


def check_down(database: Database, revision: str) -> list[str]:
    """Say what goes for good where the tables go down to a migration: numbers and names, `2 snapshots`.

    Raises UsageError where the database is not above that migration, or where logs would lose what they begin with.
    """
    found = current_revision(database)
    with database.writing() as connection:
        folder = ScriptDirectory(str(MIGRATIONS))
        known = {script.revision for script in folder.walk_revisions()}
        below = sorted(one for one in known if found in known and one < str(found))
        if revision not in below:
            raise UsageError(
                f"the database is at migration {found or 'none'} and cannot go down to {revision}: "
                f"{'there is none below' if not below else 'below are ' + ', '.join(below)}"
            )
        gone = [(table, noun) for table, since, noun in _LOST if revision < since <= str(found)]
        if ("snapshot", "snapshot") in gone:
            names = connection.execute(text(_BEGINS_WITH_SNAPSHOT)).scalars().all()
            if names:
                raise UsageError(
                    f"what {', '.join(names[:3])}{' …' if len(names) > 3 else ''} begins with is a snapshot, and "
                    f"migration {revision} has none: the dataset would be lost. Pull the patches or delete the log, or "
                    "restore a backup of that release"
                )
        counts = [(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one(), n) for table, n in gone]  # noqa: S608
    return [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count]


def migrate_down(database: Database, revision: str) -> None:
    """Take the tables back to a migration that an older release knows; what the later ones brought is gone.

    Raises UsageError as `check_down` does.
    """
    check_down(database, revision)
    with alembic_on(database) as config:
        command.downgrade(config, revision)


@contextmanager
def alembic_on(database: Database) -> Iterator[Config]:
    """What Alembic's commands take. All that they do in the block is one transaction."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.writing() as connection:
        if not database.is_sqlite:  # which begins to write with the lock of the whole database
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        yield config
