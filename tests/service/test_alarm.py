"""A timer that is set and unset all the time, and goes off when it is to and not before."""

import asyncio

import pytest

from api.alarm import Alarm


@pytest.fixture
def run():
    def of(play):
        async def whole():
            loop, rung = asyncio.get_running_loop(), []
            begun = loop.time()
            alarm = Alarm(loop)
            await play(alarm, lambda name: lambda: rung.append((name, loop.time() - begun)))
            return rung

        return asyncio.run(asyncio.wait_for(whole(), 60))

    return of


def test_goes_off_once_and_not_before_its_time(run):
    async def play(alarm, ring):
        alarm.set(0.05, ring("a"))
        await asyncio.sleep(0.3)

    [(name, seconds)] = run(play)

    assert name == "a"
    assert seconds >= 0.049


def test_later_time_and_another_action_replace_those_before(run):
    async def play(alarm, ring):
        alarm.set(0.05, ring("a"))
        alarm.set(0.2, ring("b"))
        await asyncio.sleep(0.5)

    [(name, seconds)] = run(play)

    assert name == "b"
    assert seconds >= 0.199


def test_earlier_time_replaces_a_later_one(run):
    async def play(alarm, ring):
        alarm.set(3600, ring("a"))
        alarm.set(0.05, ring("b"))
        await asyncio.sleep(0.3)

    assert [name for name, _ in run(play)] == ["b"]


@pytest.mark.parametrize("end", [Alarm.unset, Alarm.close])
def test_nothing_happens_once_it_is_unset(run, end):
    async def play(alarm, ring):
        alarm.set(0.05, ring("a"))
        end(alarm)
        await asyncio.sleep(0.3)

    assert run(play) == []


def test_is_set_again_after_it_was_unset_and_after_it_went_off(run):
    async def play(alarm, ring):
        alarm.set(0.05, ring("a"))
        alarm.unset()
        await asyncio.sleep(0.2)
        alarm.set(0.05, ring("b"))
        await asyncio.sleep(0.2)
        alarm.set(0.05, ring("c"))
        await asyncio.sleep(0.2)

    assert [name for name, _ in run(play)] == ["b", "c"]
