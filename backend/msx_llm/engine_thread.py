"""The thread of the engine, with an event loop of its own."""

import asyncio
import threading

import uvloop

from msx_llm.engine import Engine


class EngineThread:
    """The engine plans a step, starts it, waits for the device and sends what came of it on one thread: no other one
    is woken for a step. Requests come from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._loop = engine, uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="engine", daemon=True)
        started = threading.Event()
        self._loop.call_soon(engine.start)
        self._loop.call_soon(started.set)
        self._thread.start()
        started.wait()

    async def close(self) -> None:
        """Returns when the last step has ended. Requests in progress fail."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._engine.close(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    async def sleep(self, level: int) -> int:
        """See `Engine.sleep`."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._engine.sleep(level), self._loop))

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
