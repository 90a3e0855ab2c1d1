"""The URIs by which RDF Delta's clients know logs, where they are not the usual ones."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from patchlog.log.database import Database
from patchlog.log.tables import LOG, RDF_DELTA_SOURCE

__all__ = ["keep_uri", "usual_uri"]


def usual_uri(name: str) -> str:
    """Return the URI of a log that has none of its own, as RDF Delta's tools make it."""
    return f"delta:{name}"


def keep_uri(database: Database, name: str, uri: str) -> None:
    """Keep the URI of a log."""
    key = select(LOG.c.key).where(LOG.c.name == name).scalar_subquery()
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    row = insert(RDF_DELTA_SOURCE).values(log=key, uri=uri)
    with database.writing() as connection:
        connection.execute(row.on_conflict_do_update(index_elements=[RDF_DELTA_SOURCE.c.log], set_={"uri": uri}))
