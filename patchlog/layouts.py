"""The two layouts of Jelly-RDF on the wire: the final one, and the alpha one of releases up to April 2024."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, TypeAlias

from patchlog.codec.faces import RdfDecoderFace, RdfEncoderFace
from patchlog.codec.options import Limits, RdfOptions
from patchlog.engine import RdfDecoder, RdfEncoder
from patchlog.errors import UnsupportedOption

__all__ = ["Layout", "ReadLayout", "decoder_for", "encoder_for", "in_final_layout", "told_apart"]

Layout: TypeAlias = Literal["final", "alpha"]
ReadLayout: TypeAlias = Literal["auto", "final", "alpha"]


def told_apart(chunks: Iterable[bytes], layout: ReadLayout) -> tuple[Layout, Iterator[bytes]]:
    """The layout of a stream, and all of its bytes. `auto` looks at the first chunk: alpha if that is beyond doubt."""
    chunks = iter(chunks)
    if layout != "auto":
        return layout, chunks
    # Only here: few have streams that need it.
    from patchlog.codec.alpha import looks_like_alpha

    first = next(chunks, b"")
    return "alpha" if looks_like_alpha(first) else "final", chain([first], chunks)


def in_final_layout(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a stream that has to have the final layout, where frames are looked at as messages."""
    layout, chunks = told_apart(chunks, "auto")
    if layout == "alpha":
        raise UnsupportedOption("the stream has the alpha layout; transcode it first")
    return chunks


def decoder_for(
    layout: Layout, *, limits: Limits, strict: bool, concatenated: bool = False, delimited: bool | None = None
) -> RdfDecoderFace:
    """A decoder of that layout."""
    if layout == "alpha":
        from patchlog.codec.alpha import AlphaDecoder

        return AlphaDecoder(limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
    return RdfDecoder(limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)


def encoder_for(
    layout: Layout,
    options: RdfOptions,
    *,
    rows_per_frame: int,
    delimited: bool = True,
    namespace_declarations: bool = False,
) -> RdfEncoderFace:
    """An encoder of that layout."""
    if layout == "alpha":
        from patchlog.codec.alpha import AlphaEncoder

        if namespace_declarations:
            raise UnsupportedOption("the alpha layout has no namespace declarations")
        return AlphaEncoder(options, rows_per_frame=rows_per_frame, delimited=delimited)
    return RdfEncoder(
        options,
        rows_per_frame=rows_per_frame,
        delimited=delimited,
        namespace_declarations=namespace_declarations,
    )
