"""Runs migrations on the connection that `patchlog.log.migration` brings, or for `alembic …` on `PATCHLOG_DATABASE`."""

import os

from alembic import context
from sqlalchemy import Connection

from patchlog.log.database import Database
from patchlog.log.tables import METADATA


def run_on(connection: Connection) -> None:
    """Run the migrations that were asked for, in the connection's transaction."""
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        transactional_ddl=True,  # SQLite can, and Alembic does not expect it
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run_on(given)
else:
    database = Database(os.environ.get("PATCHLOG_DATABASE", "sqlite:///patchlog.db"))
    with database.writing() as connection:
        run_on(connection)
    database.close()
