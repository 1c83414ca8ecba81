"""Management: what is served, and by how many workers. The key is the management key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msx_client.errors import MsxError
from msx_client.patience import Patience
from msx_client.registration import LOOK, Loading, Progress

if TYPE_CHECKING:
    from msx_client.http.calls import HttpCalls


class AsyncModels:
    """Every method raises MsxError, and returns the server's sentence unless it says otherwise."""

    def __init__(self, run: Callable[[Any, float | None], Awaitable[Any]], calls: HttpCalls) -> None:
        self._run, self._calls = run, calls

    async def register(
        self,
        url: str,
        *,
        model: str | None = None,
        workers: int | None = None,
        replace: bool = False,
        progress: Progress | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> str:
        """Register an archive of the model store, a folder, or a URL; returns when its workers serve.

        model: its name, if it is not to be the archive's. With `progress`, which is called with each phase of the load,
        `model` is required, and `timeout` (seconds, 600) is that of the whole load. More options are those of the
        management API: `batch_size`, `handler`, `startup_timeout`, ….
        """
        asked = {"synchronous": progress is None, **options}
        asked |= {"model_name": model} if model else {}
        asked |= {"initial_workers": workers} if workers is not None else {}
        asked |= {"replace": True} if replace else {}
        if progress is None:
            return str(await self._run(self._calls.register(url, asked), timeout))
        if model is None:
            raise ValueError("Progress is that of a model: give its name as `model`.")
        end = time.monotonic() + (600.0 if timeout is None else timeout)
        said = await self._watched(model, self._calls.register(url, asked), end - time.monotonic(), progress)
        await self.wait_ready(model, timeout=max(end - time.monotonic(), 0.0), progress=progress)
        return said

    async def _watched(self, model: str, call: Any, timeout: float, progress: Progress) -> str:
        """The call lasts as long as a download, of which describe says how far it is."""
        loading, running = Loading(model, progress), asyncio.ensure_future(self._run(call, timeout))
        try:
            while not (await asyncio.wait([running], timeout=LOOK))[0]:
                with suppress(MsxError):
                    loading.look(await self.describe(model))
            return str(await running)
        finally:
            running.cancel()

    async def scale(
        self,
        model: str,
        workers: int | None = None,
        *,
        max_workers: int | None = None,
        version: str | None = None,
        wait: bool = True,
        timeout: float | None = None,
        **options: Any,
    ) -> str:
        """Have `workers` of them; `wait` until they serve. More options: `stage`, `autoscaling`."""
        asked = {"synchronous": wait, **options}
        asked |= {"min_worker": workers} if workers is not None else {}
        asked |= {"max_worker": max_workers} if max_workers is not None else {}
        return str(await self._run(self._calls.scale(model, version, asked), timeout))

    async def wait_ready(
        self, model: str, *, version: str | None = None, timeout: float = 120.0, progress: Progress | None = None
    ) -> None:
        """Until all workers serve, for `timeout` seconds at most. Raises ModelFailedError when they do not start."""
        patience, loading = Patience(timeout, absent=True), Loading(model, progress)
        while True:
            try:
                if loading.is_ready(await self.describe(model, version=version)):
                    return
                pause = patience.next(loading.phase)
            except MsxError as error:
                pause = patience.pause(error)
            await asyncio.sleep(pause)

    async def describe(
        self, model: str, *, version: str | None = None, customized: bool = False
    ) -> list[dict[str, Any]]:
        """One entry a version (`version="all"` for all): workers, state, configuration."""
        found: list[dict[str, Any]] = await self._run(self._calls.describe(model, version, customized), None)
        return found

    async def list(self) -> AsyncIterator[dict[str, str]]:
        """`modelName` and `modelUrl` of each model; pages are asked for as they are needed."""
        page = "0"
        while page:
            said = await self._run(self._calls.models(100, page), None)
            for model in said["models"]:
                yield model
            page = str(said.get("nextPageToken") or "")

    async def unregister(self, model: str, *, version: str | None = None, timeout: float | None = None) -> str:
        return str(await self._run(self._calls.unregister(model, version), timeout))

    async def set_default(self, model: str, version: str) -> str:
        return str(await self._run(self._calls.set_default(model, version), None))

    async def replace_aliases(self, model: str, aliases: Sequence[str]) -> str:
        """Have requests find the model by these names, too, and by no others but its own."""
        return str(await self._run(self._calls.replace_aliases(model, aliases), None))

    async def traffic(self, model: str) -> dict[str, Any]:
        """Weights and shares of the versions."""
        found: dict[str, Any] = await self._run(self._calls.show_traffic(model), None)
        return found

    async def divide_traffic(self, model: str, weights: Mapping[str, float], *, sticky_header: str = "") -> str:
        """Divide the requests that name no version: `{"1.0": 90, "2.0": 10}`."""
        return str(await self._run(self._calls.divide_traffic(model, weights, sticky_header), None))

    async def end_traffic(self, model: str) -> str:
        """All of them go to the default version again."""
        return str(await self._run(self._calls.end_traffic(model), None))
