"""Models and settings of the server of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.e2e.server import RunningServer, new_store, pack_service, run_server


@dataclass(frozen=True)
class Setup:
    """`services` are packed from tests/services into the store; `load` is what the server starts with (`--models`)."""

    services: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    prepare: Callable[[Path], None] | None = None
    """Puts more into the store, before the start."""
    flags: tuple[str, ...] = ()
    properties: str = ""
    """Lines of config.properties behind those with free ports."""
    tokens: bool = False
    model_api: bool = True
    env: dict[str, str] = field(default_factory=dict)
    ready: bool = True


@contextmanager
def serving(setup: Setup, folder: Path) -> Iterator[RunningServer]:
    """A server of its own for a case that needs one, or for a module."""
    store = new_store(folder)
    for service in setup.services:
        pack_service(service, store)
    if setup.prepare is not None:
        setup.prepare(store)
    models = ("--models", *setup.load) if setup.load else ()
    with run_server(
        folder,
        *models,
        *setup.flags,
        properties=setup.properties,
        tokens=setup.tokens,
        model_api=setup.model_api,
        env=setup.env,
        ready=setup.ready,
    ) as running:
        yield running


def register(server: RunningServer, url: str, **parameters: str | int | bool) -> httpx.Response:
    """Register what this URL names, with one worker unless told otherwise."""
    return server.management.post("/models", params={"url": url, "initial_workers": 1, **parameters})
