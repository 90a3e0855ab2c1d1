"""The feeds of live tails, with a log that fails in ways in which no log should."""

import asyncio
import logging

from api.tails import Tails, checked_head
from patchlog.log.memory import MemoryLogStore


def test_tails_of_a_log_that_fails_unexpectedly_end(patches, caplog):
    """Else they would get heartbeats for ever, and no patch."""
    store = MemoryLogStore()
    store.create("people")
    log = store.log("people")
    head = checked_head(log, 0)

    async def failing(call):
        call()
        raise ValueError("unexpected")

    async def follow():
        tails = Tails(store, failing, poll_seconds=60)
        with tails.feed(log, head) as feed:
            log.append(patches.one())
            pieces = [some async for some in feed.patches(0, heartbeat_seconds=30)]
        tails.stop()
        return pieces

    with caplog.at_level(logging.ERROR, "patchlog.service"):
        assert asyncio.run(asyncio.wait_for(follow(), 20)) == []
    assert "the tails of the log 'people' end" in caplog.text
