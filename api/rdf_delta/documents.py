"""What RDF Delta's API says of its data sources, which are our logs. Ids are written `id:UUID` in descriptions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

from api.errors import Problem, Refusal
from api.rdf_delta.locks import Lock
from patchlog.log.records import LogDescription, time_of

__all__ = ["BAD_REQUEST", "Source", "lock_document", "log_document", "parse_id", "source_document"]

BAD_REQUEST: Final = Problem(400, "bad-request", "The request cannot be carried out")


@dataclass(frozen=True, slots=True)
class Source:
    """A log, and the URI that RDF Delta's clients know it by."""

    log: LogDescription
    uri: str


def source_document(source: Source) -> dict[str, Any]:
    """The description of a data source."""
    return {"id": f"id:{source.log.id}", "name": source.log.name, "uri": source.uri}


def log_document(source: Source) -> dict[str, Any]:
    """The description of its log. An empty one has versions 0 to 0."""
    head = source.log.head
    return source_document(source) | {
        "min_version": source.log.first_version if head.version else 0,
        "max_version": head.version,
        "latest": f"id:{head.id}" if head.id else "",
    }


def lock_document(lock: Lock) -> dict[str, Any]:
    """What may be known of a lock: not the reference, by which its holder proves that it is."""
    return {
        "since": time_of(lock.since_ms),
        "refreshed": time_of(lock.refreshed_ms),
        "owner": lock.holder.owner,
        "address": lock.holder.address,
    }


def parse_id(text: object) -> str:
    """An id as requests write it: a UUID, with or without `id:`. Raises Refusal."""
    try:
        return str(uuid.UUID(str(text).removeprefix("id:")))
    except ValueError:
        raise Refusal(BAD_REQUEST, f"{text!r} is not an id: write a UUID, with or without id: before it") from None
