"""What `inspect` prints: YAML, with the names that jelly-cli gives to what it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import yaml

from patchlog.cli.files import file_name, reading, writing
from patchlog.cli.outcome import Session, about
from patchlog.cli.seams import minding_seams
from patchlog.codec.options import Limits
from patchlog.errors import UnexpectedRow
from patchlog.formats import JELLY, Format, choose_format
from patchlog.frames import read_frame_messages
from patchlog.inspection import Counts, Detail, count_frames, describe_options, other_format
from patchlog.layouts import in_final_layout
from patchlog.streams import Write
from patchlog.wire import RdfPatchFrame, RdfStreamFrame

__all__ = ["Report", "inspect_stream"]


def inspect_stream(
    path: str, session: Session, read_as: Format, report: Report, *, to: str, limits: Limits, strict: bool
) -> None:
    """Write the report on a stream of one of the two formats of Jelly. The name of its file may not say the other."""
    choose_format(None, file_name(path), (read_as,), default=read_as)
    with (
        writing(to, session, is_text=True) as write,
        minding_seams(path, session, read_as) as seams,
        about(path, read_as),
    ):
        chunks = seams.watch(reading(path, session))
        if read_as is JELLY:
            chunks = in_final_layout(chunks)
        message = RdfStreamFrame if read_as is JELLY else RdfPatchFrame
        report.write(read_frame_messages(chunks, message, limits=limits, strict=strict), write)


@dataclass(frozen=True, slots=True)
class Report:
    """Which counts are wanted, and of what: of each frame, or of all together."""

    per_frame: bool
    detail: Detail | None
    sizes: bool

    def write(self, frames: Iterable[tuple[Any, int]], write: Write) -> None:
        """Write the report on frames, given as messages with their sizes; on each frame as it goes by."""
        counted = count_frames(frames, detailed=self.detail is not None)
        head: list[Counts] = []
        options = None
        for frame, counts in counted:
            head.append(counts)
            if frame.rows:  # frames without rows may come before it
                options = frame.rows[0].options if frame.rows[0].HasField("options") else None
                break
        if options is None:
            raise UnexpectedRow("the stream does not begin with an options row")
        if other := other_format(options):
            raise UnexpectedRow(f"the options are those of {other}: inspect it as that")
        write(_yaml({"stream_options": describe_options(options)}))
        self._write_counts(chain(head, (counts for _, counts in counted)), write)

    def _write_counts(self, frames: Iterable[Counts], write: Write) -> None:
        if self.per_frame:
            write(b"frames:\n")
            for index, counts in enumerate(frames):
                write(_yaml([self._of_frame(index, counts)]))
            return
        total: Counts | None = None
        for counts in frames:
            if total is None:
                total = counts
            else:
                total.add(counts)
        assert total is not None
        write(_yaml({"frames": {"frame_count": total.frames, **total.report(detail=self.detail, sizes=self.sizes)}}))

    def _of_frame(self, index: int, counts: Counts) -> dict[str, Any]:
        metadata = {key: value.hex() for key, value in sorted(counts.metadata.items())}
        return {
            "frame_index": index,
            **({"metadata": metadata} if metadata else {}),
            **counts.report(detail=self.detail, sizes=self.sizes),
        }


def _yaml(value: Any) -> bytes:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text.encode()
