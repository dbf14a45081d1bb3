"""asyncio streams: order, several at once, and that cancelling the task stops the native work."""
import asyncio
import gc
import threading
import time

import pytest

import mica


def native_threads():
    return [t for t in threading.enumerate() if t.name == "mica-generate"]


def test_text_and_events(model):
    async def run():
        assert await model.agenerate("E", temperature=0).text() == "Hi \U0001f642!"
        with model.session() as session:
            events = [e async for e in session.agenerate("D", temperature=0, top_logprobs=1).events()]
            assert [type(e) for e in events] == [mica.Token, mica.Text, mica.Token, mica.Done]
            stream = session.agenerate("X", temperature=0, max_tokens=40)
            assert "".join([piece async for piece in stream]) == "x" * 40
            assert stream.result.stop_reason == "length"
    asyncio.run(run())


def test_the_loop_goes_on_while_several_generate(model):
    async def run():
        sessions = [model.session() for _ in range(4)]
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        texts = await asyncio.gather(*(s.agenerate("X", temperature=0, max_tokens=200).text() for s in sessions))
        ticking.cancel()
        assert texts == ["x" * 200] * 4
        assert ticks > 4
    asyncio.run(run())


def test_cancelling_the_task(endless):
    async def run():
        taken = 0

        async def consume():
            nonlocal taken
            async for _ in endless.agenerate("X", temperature=0):
                taken += 1

        task = asyncio.create_task(consume())
        while taken < 5:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):  # cancelled outside of the wait: the stream is dropped with the task
            if not native_threads():
                break
            gc.collect()
            await asyncio.sleep(0.01)
        assert not native_threads()
        assert await endless.agenerate("E", temperature=0).text() == "Hi \U0001f642!"
    asyncio.run(run())


def test_leaving_the_loop(endless):
    async def run():
        async with endless.agenerate("X", temperature=0) as stream:
            async for _ in stream:
                break
        assert not native_threads()
        stream = endless.agenerate("X", temperature=0)
        events = stream.events()
        await events.__anext__()
        await events.aclose()
        assert not native_threads()
        assert stream.result.stop_reason == "cancelled"
        stream = endless.agenerate("X", temperature=0)
        await stream.__anext__()
        del stream
        gc.collect()
        assert not native_threads()
    asyncio.run(run())


def test_timeout(endless):
    async def run():
        stream = endless.agenerate("X", temperature=0)
        begun = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.text(), 0.1)
        assert time.monotonic() - begun < 20
        await stream.aclose()
        assert not native_threads()
    asyncio.run(run())


def test_an_open_stream_when_the_loop_ends(endless):
    async def run():
        stream = endless.agenerate("X", temperature=0)
        await stream.__anext__()
        return stream
    stream = asyncio.run(run())
    time.sleep(0.05)
    del stream
    gc.collect()
    assert not native_threads()
    assert endless.generate("E", temperature=0).text() == "Hi \U0001f642!"


def test_errors_arrive(model):
    async def run():
        with model.session(n_ctx=16) as session:
            with pytest.raises(mica.ContextFull):
                await session.agenerate("X", temperature=0).text()
            with pytest.raises(mica.InvalidArgument, match="temperature"):
                await session.agenerate("X", temperature=-1).text()
    asyncio.run(run())


def test_needs_a_loop(session):
    with pytest.raises(RuntimeError, match="no running event loop"):
        session.agenerate("X")
