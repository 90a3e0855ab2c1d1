"""rdflib: parsers and serializers by entry points, and the streams of rdflib terms that they are made of.

Importing this package is only needed for what rdflib cannot find by entry points: the file names that it guesses
formats from (`.jelly`, `.jellyp`, `.rdfp`), and the plugins of a source tree that was never installed.
"""

from patchlog.rdflib_hook.implementation import RdflibDecoder, RdflibEncoder
from patchlog.rdflib_hook.plugins import register, register_missing

__all__ = ["RdflibDecoder", "RdflibEncoder", "register"]

register_missing()
