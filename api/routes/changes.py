"""What was changed between versions, by whom, and taking it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.answers import Outgoing, answer_patches
from api.conditions import has_current, immutable, precondition_of
from api.documents import AppendDocument, HistoryDocument, RevertDocument
from api.errors import NO_PATCH, Refusal
from api.jobs import Job, checked, checked_log
from api.negotiation import BODIES_OF_PATCHES, JELLY_PATCHES, PATCH_TEXT, chosen
from api.outgoing import PIECES_BYTES, Piece
from api.parameters import MOST_VERSION, StreamType, check_stream_type
from api.routes.append import APPENDED, answer_appended
from api.service import service_of
from patchlog.log.blame import blame, known_after, term_of
from patchlog.log.contract import PatchLog
from patchlog.log.diff import diff, encoded
from patchlog.log.records import EMPTY_HEAD
from patchlog.log.revert import revert

__all__ = ["router"]

router = APIRouter(tags=["changes"])

_BODIES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": BODIES_OF_PATCHES},
    304: {"description": "The client has it"},
}


@router.get(
    "/logs/{log}/diff",
    summary="Get a patch between two versions",
    response_class=Response,
    responses=_BODIES,
    dependencies=[may("read")],
)
async def diff_versions(
    request: Request,
    log: str,
    from_version: Annotated[int, Query(alias="from", ge=0, le=MOST_VERSION)],
    to_version: Annotated[
        int | None, Query(alias="to", ge=0, le=MOST_VERSION, description="The head, where it is missing.")
    ] = None,
    stream_type: StreamType = None,
) -> Response:
    """Get one patch that leads from a version to another; it is empty where they are the same.

    Forwards it has the last word of the patches between on each quad. Backwards it takes back what they have changed,
    and nothing else. It has no headers.
    """
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT))
    check_stream_type(stream_type, is_jelly=form is JELLY_PATCHES)
    patch_log = service.log(log)
    to, hashes = await service.run(lambda: _hashes(patch_log, from_version, to_version))
    kind = "text" if form is PATCH_TEXT else stream_type or "punctuated"
    current = f'W/"{hashes}-{kind}"'
    headers = {
        "ETag": current,
        "Cache-Control": "no-cache" if to_version is None else immutable(is_open=service.access.is_open),
        "Vary": "Accept, Accept-Encoding",
    }
    if has_current(request, current.removeprefix("W/")):
        return Response(status_code=304, headers=headers)

    def begin(job: Job) -> tuple[Outgoing, Job]:
        patches = diff(checked_log(patch_log, job.check), from_version, to)
        chunks = checked(encoded(patches, patch_log.describe().options), job.check)
        return Outgoing.of_pieces(patch_log, _pieces(to, chunks), 1, stream_type, is_alone=True), job

    outgoing, job = await service.jobs.do(service.works, "diff", log, begin, request, is_listed=False)
    return answer_patches(service, request, outgoing, form, headers, run=service.works.run, ended=job.leave)


@router.post(
    "/logs/{log}/revert",
    summary="Take patches back",
    status_code=201,
    response_model=AppendDocument,
    responses=APPENDED,
    dependencies=[may("append")],
)
async def revert_versions(request: Request, log: str, document: RevertDocument) -> Response:
    """Append the patch that takes back what patches have changed; they themselves stay.

    What they added though it was there stays. Where a later patch says the opposite of what taking back would do, that
    is a conflict. `If-Match` as for an append. With an `id` of the new patch, and `to`, it may be retried.
    """
    service = service_of(request)
    patch_log = service.log(log)
    precondition = precondition_of(request)

    def run(job: Job) -> Any:
        expected_head = precondition.expected_head(patch_log)
        head = patch_log.head().version
        from_version, to_version = document.range(head)
        _check_there(patch_log, head, to_version)
        return revert(
            checked_log(patch_log, job.check),
            from_version,
            to_version,
            headers=document.headers,
            id=document.id,
            expected_head=expected_head,
        )

    return await answer_appended(
        service, log, lambda: service.jobs.do(service.works, "revert", log, run, request, is_listed=False)
    )


@router.get(
    "/logs/{log}/history",
    summary="Say who changed what",
    response_model=HistoryDocument,
    dependencies=[may("read")],
)
async def history_of_subject(
    request: Request,
    log: str,
    subject: Annotated[str, Query(description="An IRI, or a term as in N-Triples.")],
    predicate: str | None = None,
    graph: Annotated[str | None, Query(description="Empty for the default graph.")] = None,
) -> Response:
    """Say of each quad of a subject that is there by which patch it came. Reads the whole log.

    Where patches were truncated away, quads that were there already came with `known_after` or before.
    """
    service = service_of(request)
    wanted = [None if text is None else term_of(text) for text in (predicate, graph)]
    patch_log = service.log(log)

    def run(job: Job) -> dict[str, Any]:
        read = checked_log(patch_log, job.check)
        quads = [change.document() for change in blame(read, term_of(subject), *wanted)]
        return {"quads": quads, "known_after": known_after(read)}

    found = await service.jobs.do(service.works, "history", log, run, request, is_listed=False)
    return JSONResponse(found, headers={"Cache-Control": "no-cache"})


def _hashes(log: PatchLog, from_version: int, to_version: int | None) -> tuple[int, str]:
    """The later version, and what vouches for all that both hold. Raises Refusal where there is no such version."""
    head = log.head().version
    to = head if to_version is None else to_version
    hashes = []
    for version in (from_version, to):
        _check_there(log, head, version)
        record = log.find(version) if version else None
        hashes.append((EMPTY_HEAD.hash if record is None else record.chain_hash).hex()[:32])
    return to, "-".join(hashes)


def _check_there(log: PatchLog, head: int, version: int) -> None:
    if version > head:
        raise Refusal(NO_PATCH, f"the log {log.name!r} has no version {version}; its head is {head}")


def _pieces(version: int, chunks: Iterable[bytes]) -> Iterator[list[Piece]]:
    """The bytes of one patch, in lists of about as many bytes as those of stored patches."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        if size >= PIECES_BYTES:
            yield [Piece(version, b"".join(held), ends_patch=False)]
            held, size = [], 0
        held.append(chunk)
        size += len(chunk)
    yield [Piece(version, b"".join(held), ends_patch=True)]
