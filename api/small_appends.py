"""Small appends, as most requests are, and those that a writer waits for: from their bytes to their answer.

What is ordinary is known by its bytes, whole: nothing here is lenient, and what is not ordinary is left to the parser.
A body is checked in the event loop and handed to the writer of the log; no thread takes it over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Final

from api.conditions import precondition_in, tag
from api.limits import identity_of
from api.principal import Principal
from api.rounds import Ended
from api.service import Service
from patchlog.formats import JELLY_PATCH, RDF_PATCH
from patchlog.log.contract import PatchFormat
from patchlog.log.documents import appended_document
from patchlog.log.records import ANY_HEAD, NAME, Appended, ExpectedHead

__all__ = ["MOST_BYTES", "SmallAppend", "answer_of", "small_append_in"]

MOST_BYTES: Final = 16 << 10
"""The event loop is held up by a body for about a millisecond at most."""

_MOST_HEAD_BYTES: Final = 4 << 10
_END_OF_HEAD: Final = b"\r\n\r\n"

_HEAD: Final = re.compile(
    rb"POST (/logs/(" + NAME.pattern.encode() + rb")/patches) HTTP/1\.1\r\n"
    rb"((?:[A-Za-z0-9-]+:[\t\x20-\x7e]*\r\n)+)\r\n"
)
_MOST_DIGITS: Final = len(str(MOST_BYTES))
_FORMATS: Final[dict[bytes, PatchFormat]] = {
    JELLY_PATCH.media_types[0].encode(): "jelly-patch",
    RDF_PATCH.media_types[0].encode(): "rdf-patch",
}
_OUT_OF_THE_ORDINARY: Final = frozenset(
    {
        b"content-encoding",
        b"expect",
        b"http2-settings",
        b"if-none-match",
        b"origin",
        b"sec-fetch-site",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class SmallAppend:
    """A request of which the head is here."""

    log: str
    path: str
    format: PatchFormat
    head_size: int
    size: int
    """In bytes, of head and body."""
    host: bytes
    if_match: str | None
    authorization: str
    request_ids: Sequence[bytes]
    """Those that the client gave it, of which there is one at most."""

    def begin(self, service: Service, address: str, body: bytes, ended: Ended) -> Principal | None:
        """Append for a principal, and call back with the result; None where the parser has to say why not.

        Nothing was written then.
        """
        if not service.origins.allows_host(self.host):
            return None
        principal = service.access.known_principal(self.authorization)
        if principal is None or not principal.allows("append", self.log):
            return None
        limits = service.limits
        if limits is not None and not limits.allows(identity_of(principal, address)):
            return None
        try:
            expected_heads = self._expected_heads
            prepared = service.log(self.log).prepare(body, self.format)
            if prepared is None or len(expected_heads) != 1:
                return None
        except Exception:  # noqa: BLE001  the long way meets it again, and has words for it
            return None
        if limits is not None:
            limits.begin(identity_of(principal, address), len(body))
        # Not within: what may have been handed to the writer is not sent the long way too.
        prepared.expected_head = expected_heads[0]
        service.rounds.submit(prepared, ended)
        return principal

    @property
    def _expected_heads(self) -> Sequence[ExpectedHead]:
        """Raises Refusal."""
        return (ANY_HEAD,) if self.if_match is None else precondition_in(self.if_match, None).ids


def small_append_in(data: bytes) -> SmallAppend | None:
    """What begins with the head of an ordinary append, with or without its body."""
    end = data.find(_END_OF_HEAD, 0, _MOST_HEAD_BYTES)
    return None if end < 0 else _small_append_with(data[: end + len(_END_OF_HEAD)])


@lru_cache(maxsize=256)
def _small_append_with(head: bytes) -> SmallAppend | None:
    """What a head says. A client sends the same one again and again."""
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    fields: dict[bytes, bytes] = {}
    for line in found[3].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in fields or name in _OUT_OF_THE_ORDINARY:
            return None
        fields[name] = value.strip()
    format = _FORMATS.get(fields.get(b"content-type", b""))
    length = fields.get(b"content-length", b"")
    if format is None or not length.isdigit() or len(length) > _MOST_DIGITS or int(length) > MOST_BYTES:
        return None
    if fields.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    if_match = fields.get(b"if-match")
    return SmallAppend(
        log=found[2].decode(),
        path=found[1].decode(),
        format=format,
        head_size=len(head),
        size=len(head) + int(length),
        host=fields.get(b"host", b""),
        if_match=None if if_match is None else if_match.decode(),
        authorization=fields.get(b"authorization", b"").decode(),
        request_ids=[fields[b"x-request-id"]] if b"x-request-id" in fields else (),
    )


def answer_of(log: str, appended: Appended) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Status, headers and body of what an append is answered."""
    # An encoder that is set up for each answer takes longer than all else here.
    members = [
        f'"{name}":{value if isinstance(value, int) else encode_basestring_ascii(value)}'
        for name, value in appended_document(appended).items()
    ]
    body = f"{{{','.join(members)}}}".encode()
    headers = [
        (b"content-length", b"%d" % len(body)),
        (b"content-type", b"application/json"),
        (b"location", f"/logs/{log}/patches/{appended.version}".encode()),
        (b"etag", tag(appended.id).encode()),
    ]
    return 200 if appended.is_retry else 201, headers, body
