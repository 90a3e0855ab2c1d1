"""Which implementation makes rdflib terms: the native codec's own where it has them, else the pure one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchlog.engine import IMPLEMENTATION

__all__ = ["RdflibDecoder", "RdflibEncoder"]

if TYPE_CHECKING or IMPLEMENTATION != "native":
    from patchlog.rdflib_hook.decoder import RdflibDecoder
    from patchlog.rdflib_hook.encoder import RdflibEncoder
else:
    try:
        from patchlog._native import RdflibDecoder, RdflibEncoder
    except ImportError:
        from patchlog.rdflib_hook.decoder import RdflibDecoder
        from patchlog.rdflib_hook.encoder import RdflibEncoder
