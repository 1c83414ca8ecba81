"""The outermost layer of a listener, over families of a test."""

from __future__ import annotations

from typing import Any

from msx_frontend.apis.torchserve.predictions import Predictions
from msx_net.http.exchange import Exchange
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family
from msx_net.http.router import Router
from msx_net.http.wire import LogsReplies
from tests.net.http.client import FakeRegistry, as_registry

TORCHSERVE = Family("TorchServe", (), torchserve_failure, closes_on_error=True)


def predictions(registry: FakeRegistry, only_model: str | None = None) -> Family:
    """A test may give the registry other methods later."""
    made = Predictions(lambda job: registry.submit(job), as_registry(registry).find)
    made.only_model = only_model
    return made.family()


def exchange_of(
    *families: Family,
    log: LogsReplies,
    limit: int = 1000,
    **options: Any,
) -> Exchange:
    default = families[0] if families else TORCHSERVE
    return Exchange(Router(families, default, ("inference",)), log, limit=limit, **options)
