"""The clients of RDF Delta's API as consumers of the logs that they read, so that truncation leaves what they lack.

Where they are is kept in memory and written every few seconds: what is written is never ahead of where they are. A
consumer is forgotten when its client did not come for `rdf_delta_client_days`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from sqlalchemy import literal, select
from sqlalchemy.dialects import postgresql, sqlite

from api.rdf_delta.clients import Client
from api.rdf_delta.tracks import PREFIX, Track, Tracks
from api.service import Service
from patchlog.errors import ConsumerNotFound, ConsumerRefused, HistoryMismatch, LogNotFound, PatchLogError
from patchlog.log.consumers import Mover
from patchlog.log.database import Database
from patchlog.log.position import Position
from patchlog.log.records import LogDescription, ms_of
from patchlog.log.tables import CONSUMER, LOG, RDF_DELTA_TRACK

__all__ = ["ClientPositions"]

_logger: Final = logging.getLogger("patchlog.service")

_WRITE_SECONDS: Final = 2.0
"""How long a change may wait to be written with others."""
_SEEN_SECONDS: Final = 3600.0
"""How often it is written that a client came which has all there is."""
_MOST_CLIENTS: Final = 10_000
"""Whose tracks are kept in memory."""
_DAY_MS: Final = 86_400_000

_Key: TypeAlias = tuple[str, str]
"""The id of a log, and the name of a client."""


@dataclass(slots=True)
class _Known:
    log: LogDescription
    owner: str | None
    tracks: Tracks
    written: float
    """When it was written, by the monotonic clock."""


class ClientPositions:
    """The positions of all clients in the logs of a service. Used in one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        database = getattr(service.store, "database", None)
        self._database: Database | None = database if isinstance(database, Database) else None
        self._known: dict[_Key, _Known] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    async def fetched(self, log: LogDescription, client: Client, version: int) -> None:
        """Take notice that a client fetches a version."""
        tracks = await self._tracks(log, client)
        if not tracks.fetched(version):
            # Another process may know it.
            tracks = await self._tracks(log, client, is_stale=True)
            if not tracks.fetched(version):
                tracks.add(version)
        self._write_soon()

    async def appended(self, log: LogDescription, client: Client, version: int) -> None:
        """Take notice that a client has appended a version, which is durable whatever happens here."""
        try:
            tracks = await self._tracks(log, client)
            if not tracks.appended(version):
                tracks = await self._tracks(log, client, is_stale=True)
                if not tracks.appended(version):
                    tracks.add(version)
        except PatchLogError as error:
            _logger.warning("it is not known where the client %s of RDF Delta's API is: %s", client, error)
        self._write_soon()

    async def looked(self, log: LogDescription, client: Client) -> None:
        """Take notice that a client has asked for the head, as it was described."""
        tracks = await self._tracks(log, client)
        there = tracks.looked(log.head.version)
        known = self._known.get((log.id, client.name))
        if there and known is not None and time.monotonic() - known.written > _SEEN_SECONDS:
            for track in there:
                track.is_changed = True
        if any(track.is_changed for track in tracks.all):
            self._write_soon()

    async def flush(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._writing:
            for key, known in list(self._known.items()):
                changed = [track for track in known.tracks.all if track.is_changed]
                if not changed:
                    continue
                copies = [replace(track) for track in changed]
                for track in changed:
                    track.is_changed = track.has_gone_back = False
                known.written = time.monotonic()
                try:
                    is_theirs = await self._service.commit(partial(self._write, known, copies))
                except PatchLogError:
                    for track, copy in zip(changed, copies, strict=True):
                        track.is_changed = True
                        track.has_gone_back |= copy.has_gone_back
                    raise
                if not is_theirs:
                    self._known.pop(key, None)  # to be read again

    async def expire(self, name: str) -> None:
        """Forget the consumers of a log whose clients did not come for long. What waits is written before."""
        await self.flush()
        days = self._service.settings.rdf_delta_client_days
        await self._service.commit(lambda: self._expire(name, time.time_ns() // 1_000_000 - days * _DAY_MS))

    async def _tracks(self, log: LogDescription, client: Client, *, is_stale: bool = False) -> Tracks:
        key = log.id, client.name
        known = self._known.get(key)
        if known is None or is_stale:
            found = await self._service.run(lambda: self._read(log, client))
            if len(self._known) >= _MOST_CLIENTS:
                await self.flush()
                self._known.clear()
            # Other requests of the client may have been as far meanwhile: what they know stays.
            known = self._known.setdefault(key, _Known(log, client.owner, Tracks(client), time.monotonic()))
            known.tracks.merge(found)
        return known.tracks

    def _write_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_SECONDS, self._write_now)

    def _write_now(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self.flush())
        self._task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        _logger.warning("the positions of RDF Delta's clients could not be written and are tried again: %s", error)
        self._write_soon()

    def _read(self, log: LogDescription, client: Client) -> list[Track]:
        names, tracks = Tracks(client), []
        reached: dict[str, int] = {}
        if self._database is not None:
            rows = select(RDF_DELTA_TRACK.c.name, RDF_DELTA_TRACK.c.reached).join(
                LOG, LOG.c.key == RDF_DELTA_TRACK.c.log
            )
            with self._database.reading() as connection:
                found = connection.execute(rows.where(LOG.c.name == log.name))
                reached = {row.name: row.reached for row in found}
        with suppress(LogNotFound):
            for one in self._service.log(log.name).consumers.list():
                if names.is_named(one.name):
                    last = max(one.version, reached.get(one.name, 0))
                    tracks.append(Track(one.name, one.version, last, is_changed=False))
        return tracks

    def _write(self, known: _Known, tracks: Sequence[Track]) -> bool:
        """Write tracks of a log. False where others have moved them further, or the log is not there any more."""
        log = known.log
        consumers = self._service.log(log.name).consumers
        mover = Mover(known.owner, is_admin=True)
        try:
            for track in tracks:
                position = Position(log.id, track.base, None)
                consumers.advance(track.name, position, force=track.has_gone_back, mover=mover)
                self._keep_reached(log, track)
        except (LogNotFound, ConsumerRefused, HistoryMismatch):
            return False
        return True

    def _keep_reached(self, log: LogDescription, track: Track) -> None:
        if self._database is None:
            return
        insert = sqlite.insert if self._database.is_sqlite else postgresql.insert
        columns = ["log", "name", "reached"]
        here = (CONSUMER.c.log == LOG.c.key) & (LOG.c.name == log.name) & (CONSUMER.c.name == track.name)
        row = select(CONSUMER.c.log, CONSUMER.c.name, literal(track.reached)).where(here)
        with self._database.writing() as connection:
            connection.execute(
                insert(RDF_DELTA_TRACK)
                .from_select(columns, row)
                .on_conflict_do_update(
                    index_elements=[RDF_DELTA_TRACK.c.log, RDF_DELTA_TRACK.c.name], set_={"reached": track.reached}
                )
            )

    def _expire(self, name: str, before_ms: float) -> None:
        consumers = self._service.log(name).consumers
        for one in consumers.list():
            if one.name.startswith(PREFIX) and ms_of(one.updated) < before_ms:
                with suppress(ConsumerNotFound):
                    consumers.forget(one.name)
