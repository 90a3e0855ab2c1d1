"""The alpha layout of Jelly-RDF, as releases up to April 2024 wrote it.

It differs from the final one in its terms: each is a message of its own, also the one that says "as before"; ids are
never guessed, and 0 stands for an empty prefix or name.
"""

from patchlog.codec.alpha.decoder import AlphaDecoder
from patchlog.codec.alpha.detection import looks_like_alpha
from patchlog.codec.alpha.encoder import AlphaEncoder

__all__ = ["AlphaDecoder", "AlphaEncoder", "looks_like_alpha"]
