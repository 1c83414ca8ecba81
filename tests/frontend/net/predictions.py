"""Predictions over a registry whose jobs the test answers itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from msx_core.service_errors import ModelNotFound, ModelVersionNotFound, ServiceError
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.job import Job
from msx_frontend.models.registry import Registry
from msx_net.http.family import Family
from msx_net.http.router import Match, Router
from msx_net.model_names import ModelNames


class FakeRegistry:
    """Knows model `m` in version 1.0, and takes every job of it unless `refusal` is set."""

    def __init__(self) -> None:
        self.refusal: ServiceError | None = None
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()

    def find(self, name: str, version: str | None = None) -> Any:
        if name != "m":
            raise ModelNotFound(name)
        if version not in (None, "1.0"):
            raise ModelVersionNotFound(name, version)
        queue = SimpleNamespace(declared=lambda kind: None)
        return SimpleNamespace(schema=SimpleNamespace(signature=None, methods=None), queue=queue)

    def submit(self, job: Job) -> None:
        self.find(job.model_name, job.version)
        if self.refusal is not None:
            raise self.refusal
        self._jobs.put_nowait(job)

    async def next_job(self) -> Job:
        return await self._jobs.get()

    @property
    def idle(self) -> bool:
        return self._jobs.empty()


def as_registry(fake: FakeRegistry) -> Registry:
    return cast(Registry, fake)


def answer(
    job: Job, *chunks: bytes, status: int = 200, phrase: str = "", headers: list[tuple[str, str]] | None = None
) -> None:
    """As a worker group does it, to the end."""
    begin_answer(job, *chunks, status=status, phrase=phrase, headers=headers)
    job.finish(status)


def begin_answer(
    job: Job, *chunks: bytes, status: int = 200, phrase: str = "", headers: list[tuple[str, str]] | None = None
) -> None:
    job.sink.start(status, phrase, headers or [])
    for chunk in chunks:
        job.sink.chunk(chunk)


class ComingPath:
    """`further` of a router: the path `/own` of a model is there while `names` say so."""

    def __init__(self, registry: FakeRegistry) -> None:
        self.names = ModelNames()
        family = predictions(registry)
        self._match = Router([family], family).find("POST", "/predictions/m")
        self._is_there = False

    def __call__(self, method: str, path: str) -> Match | None:
        return self._match if self._is_there and path == "/own" else None

    def come(self) -> None:
        self._is_there = True
        self.names.changed()

    def go(self) -> None:
        self._is_there = False
        self.names.changed()


def predictions(registry: FakeRegistry, only_model: str | None = None) -> Family:
    """A test may give the registry other methods later."""
    made = Predictions(lambda job: registry.submit(job), as_registry(registry).find)
    made.only_model = only_model
    return made.family()
