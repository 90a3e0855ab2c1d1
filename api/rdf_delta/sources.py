"""Our logs as RDF Delta's data sources: found by name, id and URI, created, copied and removed. Blocks; for threads.

A log that was not created here has the URI `delta:NAME`, as RDF Delta's own tools make it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import and_, bindparam, or_, select

from api.errors import Refusal
from api.rdf_delta.documents import BAD_REQUEST, Source
from api.tails import LocalLogStore
from patchlog.errors import LogAlreadyExists, LogNotFound, UsageError
from patchlog.log.database import Database
from patchlog.log.driver import DriverStatement
from patchlog.log.records import NAME, LogDescription, check_log_name
from patchlog.log.rows import AnyRow, description_of
from patchlog.log.tables import LOG, RDF_DELTA_SOURCE
from patchlog.rdf_delta.uris import keep_uri, usual_uri

__all__ = ["LENGTH_OF_IDS", "Sources"]

_PAGE: Final = 1000
LENGTH_OF_IDS: Final = 36

_SOURCE_BY_NAME: Final = DriverStatement(
    select(LOG, RDF_DELTA_SOURCE.c.uri).outerjoin_from(LOG, RDF_DELTA_SOURCE).where(LOG.c.name == bindparam("wanted"))
)
"""A client asks for this before each append, and each time that it looks for new patches."""


class Sources:
    """The data sources of a store."""

    def __init__(self, store: LocalLogStore) -> None:
        self._store = store
        database = getattr(store, "database", None)
        self._database: Database | None = database if isinstance(database, Database) else None
        self._uris: dict[str, str] = {}
        """Of logs in memory, which have no database."""
        self._names: dict[str, str] = {}
        """Ids that were found before: a log keeps its name."""

    def all(self) -> Iterator[Source]:
        """All data sources, by name."""
        uris = self._all_uris()
        after = ""
        while page := self._store.list(after=after, limit=_PAGE):
            for log in page:
                yield Source(log, uris.get(log.name) or usual_uri(log.name))
            after = page[-1].name

    def log(self, name_or_id: str) -> LogDescription | None:
        """The log of a data source, by name or by id. Cheaper than the data source, and asked for by most requests."""
        id = name_or_id.lower()
        if (known := self._known(id)) is not None or (known := self._log_named(name_or_id)) is not None:
            return known
        source = self._looked_for(id) if len(id) == LENGTH_OF_IDS else None
        return None if source is None else source.log

    def named(self, name: str) -> Source | None:
        """The data source of that name."""
        if self._database is None:
            log = self._log_named(name)
            return None if log is None else Source(log, self._uris.get(name) or usual_uri(name))
        if not NAME.fullmatch(name):
            return None
        with self._database.reading() as connection:
            rows: list[AnyRow] = _SOURCE_BY_NAME.rows(connection, {"wanted": name})
        return Source(description_of(rows[0]), rows[0].uri or usual_uri(name)) if rows else None

    def with_id(self, id: str) -> Source | None:
        """The data source with that id."""
        name = self._names.get(id)
        known = None if name is None else self.named(name)
        return known if known is not None and known.log.id == id else self._looked_for(id)

    def with_uri(self, uri: str, is_wanted: Callable[[str], bool]) -> Source | None:
        """The data source with that URI; of several with names that are wanted, the newest."""
        names = filter(is_wanted, self._names_with_uri(uri))
        found = [source for name in names if (source := self.named(name)) is not None and source.uri == uri]
        return max(found, key=lambda source: source.log.created, default=None)

    def create(self, name: str, uri: str | None) -> Source:
        """Make a data source. Raises Refusal."""
        try:
            log = self._store.create(check_log_name(name))
        except (LogAlreadyExists, UsageError) as error:
            raise Refusal(BAD_REQUEST, str(error)) from error
        if uri is not None and uri != usual_uri(name):
            self._keep_uri(log, uri)
        return Source(log, uri or usual_uri(name))

    def copy(self, source: Source, name: str, progress: Callable[[int, int], object]) -> Source:
        """Make a data source with the same patches and ids. Raises Refusal, and what the log raises.

        `progress` is called at each patch with its version and the last one: what it raises ends it, and nothing stays.
        """
        stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S")
        if source.log.first_version > 1:
            raise Refusal(
                BAD_REQUEST, f"the log {source.log.name!r} was truncated, so it cannot be copied from its beginning"
            )
        try:
            check_log_name(name)
            self._store.create(name, source.log.options)
        except (LogAlreadyExists, UsageError) as error:
            raise Refusal(BAD_REQUEST, str(error)) from error
        log, made = self._store.log(source.log.name), self._store.log(name)
        try:
            for logged in log.read():
                progress(logged.record.version, source.log.head.version)
                made.append(logged.chunks, expected_head=logged.record.prev)
            copied = made.describe()
            self._keep_uri(copied, f"{source.uri}_{stamp}")
        except BaseException:
            self._store.delete(name)
            raise
        return Source(copied, f"{source.uri}_{stamp}")

    def forget(self, source: Source) -> None:
        """Forget what is known of a data source besides its log, which is deleted."""
        self._uris.pop(source.log.name, None)

    def _log_named(self, name: str) -> LogDescription | None:
        with suppress(LogNotFound, UsageError):
            return self._store.log(name).describe()
        return None

    def _known(self, id: str) -> LogDescription | None:
        """The log with an id that was looked for before."""
        name = self._names.get(id)
        log = None if name is None else self._log_named(name)
        return log if log is not None and log.id == id else None

    def _looked_for(self, id: str) -> Source | None:
        """The data source with an id that is not known yet, without a look at all of them."""
        if self._database is None:
            return next((source for source in self.all() if source.log.id == id), None)
        try:
            wanted = uuid.UUID(id).bytes
        except ValueError:
            return None
        with self._database.reading() as connection:
            name = connection.execute(select(LOG.c.name).where(LOG.c.id == wanted)).scalar()
        source = None if name is None else self.named(name)
        if source is None or source.log.id != id:
            return None
        self._names[id] = source.log.name
        return source

    def _names_with_uri(self, uri: str) -> list[str]:
        if self._database is None:
            return [source.log.name for source in self.all() if source.uri == uri]
        usual = and_(RDF_DELTA_SOURCE.c.uri.is_(None), LOG.c.name == uri.removeprefix(usual_uri("")))
        names = (
            select(LOG.c.name).outerjoin_from(LOG, RDF_DELTA_SOURCE).where(or_(RDF_DELTA_SOURCE.c.uri == uri, usual))
        )
        with self._database.reading() as connection:
            return list(connection.execute(names).scalars())

    def _all_uris(self) -> dict[str, str]:
        if self._database is None:
            return self._uris
        columns = select(LOG.c.name, RDF_DELTA_SOURCE.c.uri).join_from(RDF_DELTA_SOURCE, LOG)
        with self._database.reading() as connection:
            return {row.name: row.uri for row in connection.execute(columns)}

    def _keep_uri(self, log: LogDescription, uri: str) -> None:
        if self._database is None:
            self._uris[log.name] = uri
            return
        keep_uri(self._database, log.name, uri)
