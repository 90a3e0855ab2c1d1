"""Which implementation of the codec runs: native where it is built, else pure Python.

`PATCHLOG_PURE=1` forces the pure one. This is the only module that knows there are two; `IMPLEMENTATION` says which one
it took. What each name offers is written in `patchlog.codec.faces`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

__all__ = [
    "IMPLEMENTATION",
    "ArrowDecoder",
    "ArrowEncoder",
    "CanonicalPatchEncoder",
    "Converter",
    "DatasetEncoder",
    "KnownQuads",
    "NQuadsReader",
    "PatchDecoder",
    "PatchEncoder",
    "PatchIntake",
    "RdfDecoder",
    "RdfEncoder",
    "RdfPatchReader",
    "RdfPatchWriter",
    "WholeIntake",
    "hashes_are_distinct",
    "hashes_by_part",
]

if TYPE_CHECKING:
    from patchlog.pure import (
        ArrowDecoder,
        ArrowEncoder,
        CanonicalPatchEncoder,
        Converter,
        DatasetEncoder,
        KnownQuads,
        NQuadsReader,
        PatchDecoder,
        PatchEncoder,
        PatchIntake,
        RdfDecoder,
        RdfEncoder,
        RdfPatchReader,
        RdfPatchWriter,
        WholeIntake,
        hashes_are_distinct,
        hashes_by_part,
    )

    IMPLEMENTATION: Final[str] = "pure"
else:

    def _choose() -> tuple[str, object]:
        if os.environ.get("PATCHLOG_PURE", "") not in ("", "0"):
            from patchlog import pure

            return "pure", pure
        try:
            from patchlog import _native
        except ImportError:
            from patchlog import pure

            return "pure", pure
        return "native", _native

    IMPLEMENTATION, _chosen = _choose()
    ArrowDecoder = _chosen.ArrowDecoder
    ArrowEncoder = _chosen.ArrowEncoder
    CanonicalPatchEncoder = _chosen.CanonicalPatchEncoder
    Converter = _chosen.Converter
    DatasetEncoder = _chosen.DatasetEncoder
    KnownQuads = _chosen.KnownQuads
    NQuadsReader = _chosen.NQuadsReader
    PatchDecoder = _chosen.PatchDecoder
    PatchEncoder = _chosen.PatchEncoder
    PatchIntake = _chosen.PatchIntake
    RdfDecoder = _chosen.RdfDecoder
    RdfEncoder = _chosen.RdfEncoder
    RdfPatchReader = _chosen.RdfPatchReader
    RdfPatchWriter = _chosen.RdfPatchWriter
    WholeIntake = _chosen.WholeIntake
    hashes_are_distinct = _chosen.hashes_are_distinct
    hashes_by_part = _chosen.hashes_by_part
