"""Patches as RDF Delta writes them: RDF Patch text whose headers `id` and `prev` have ids of the form `<uuid:…>`.

Ours are `<urn:uuid:…>`. RDF Delta's own library reads both; others look for the one that its server sends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from api.outgoing import Outflow, Piece, as_text

__all__ = ["DeltaText"]

_IDS: Final = re.compile(rb"\AH id <urn:uuid:[^>]*> \.\n(?:H prev <urn:uuid:[^>]*> \.\n)?")
"""What a stored patch begins with."""


class DeltaText:
    """The text of one patch."""

    def __init__(self) -> None:
        self._text: Final[Outflow] = as_text(punctuated=False)
        self.heartbeat: bytes = self._text.heartbeat
        self._has_begun = False

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        """Take pieces in their order and return what can be sent."""
        text = self._text.encode(pieces)
        if self._has_begun or not text:
            return text
        self._has_begun = True
        return _IDS.sub(lambda found: found[0].replace(b"<urn:uuid:", b"<uuid:"), text, count=1)

    def finish(self) -> bytes:
        """The stream ends here."""
        return self._text.finish()
